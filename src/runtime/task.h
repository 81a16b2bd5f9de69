/* One unit of work in a stream.
 *
 * Invariant: 64 bytes, self-contained, copied into the stream's ring. Small operators live in it whole (run, three pointers,
 * count, immediate); large ones put their plan into `owner`, which `run` gives back when it is done. */
#ifndef RUNTIME_TASK_H
#define RUNTIME_TASK_H

#include <stdbool.h>
#include <stdint.h>

struct task;

/* What the stream asks of a kind of task besides running it. All are called on the slow path only. */
struct task_class {
    /* Text for messages: the operator's name. */
    const char *(*name)(const struct task *task);
    /* Calls visit(context, first, past_last, is_written) for each operand's byte range; NULL: the task touches no memory. */
    void (*ranges)(const struct task *task, void (*visit)(void *context, const char *first, const char *last, bool written),
                   void *context);
    /* Instead of run, when the task is skipped: gives back what it owns. NULL: nothing owned. */
    void (*drop)(struct task *task);
    /* Called after run once the stream no longer counts the task as work: who learns from it that the task is done (an event)
     * finds the stream idle too. NULL: nothing to tell. Such a task must not fail. */
    void (*settled)(struct task *task);
};

struct task {
    int (*run)(struct task *task); /* 0, or a code after error_set; runs on the stream's thread or inline in the caller */
    const struct task_class *class;
    void *out;
    const void *a;
    const void *b;
    int64_t count;
    union {
        double f64;
        int64_t i64;
        float f32[2];
        void *pointer;
    } immediate;
    uint16_t operator_id;
    uint8_t dtype;
    uint8_t flags;   /* enum task_flags */
    uint32_t detail; /* free for the class */
};
_Static_assert(sizeof(struct task) == 64, "a task is one cache line");

enum task_flags {
    TASK_SMALL = 1,  /* may run in the caller when the stream is idle */
    TASK_QUEUED = 2, /* must go through the ring even when idle */
};

#endif
