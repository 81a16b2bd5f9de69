/* Parked failures of a stream. See failure.h. */
#include "runtime/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int failure_init(struct failure *failure)
{
    memset(failure, 0, sizeof *failure);
    REQUIRE(pthread_mutex_init(&failure->lock, NULL) == 0, ERROR_BAD_ALLOC, "no mutex");
    return 0;
}

void failure_destroy(struct failure *failure)
{
    free(failure->poisons);
    pthread_mutex_destroy(&failure->lock);
}

/* Out of memory here means that a later task may run on undefined data; the failure is reported all the same. */
static void poison_add(struct failure *failure, const char *first, const char *last)
{
    if (failure->poison_count == failure->poison_room) {
        const int room = failure->poison_room ? 2 * failure->poison_room : 16;
        struct poison *const grown = realloc(failure->poisons, (size_t)room * sizeof *grown);
        if (!grown)
            return;
        failure->poisons = grown;
        failure->poison_room = room;
    }
    failure->poisons[failure->poison_count++] = (struct poison){first, last};
}

static void visit_poison_written(void *context, const char *first, const char *last, bool written)
{
    if (written)
        poison_add(context, first, last);
}

struct read_check {
    const struct failure *failure;
    bool reads;
};

static void visit_check_read(void *context, const char *first, const char *last, bool written)
{
    struct read_check *const check = context;
    for (int i = 0; !written && i < check->failure->poison_count; ++i)
        check->reads |= first < check->failure->poisons[i].last && check->failure->poisons[i].first < last;
}

/* Called with the lock. */
static void poison_outputs(struct failure *failure, struct task *task)
{
    if (task->class->ranges)
        task->class->ranges(task, visit_poison_written, failure);
}

/* Called without the lock: giving back what a task owns may take others. */
static void drop(struct task *task)
{
    if (task->class->drop)
        task->class->drop(task);
}

void failure_park(struct failure *failure, struct task *task, int code, struct error_mark mark)
{
    char text[sizeof failure->text - 128];
    error_take_since(mark, text, sizeof text); /* the words now belong to the stream, not to the thread that ran the task */
    pthread_mutex_lock(&failure->lock);
    if (!atomic_load(&failure->failed)) {
        failure->code = code;
        snprintf(failure->name, sizeof failure->name, "%s", task->class->name(task));
        snprintf(failure->text, sizeof failure->text, "failed while it ran on the device: %s", text);
    }
    poison_outputs(failure, task);
    atomic_store(&failure->failed, true);
    pthread_mutex_unlock(&failure->lock);
    drop(task);
}

bool failure_skips(struct failure *failure, struct task *task)
{
    struct read_check check = {failure, false};
    pthread_mutex_lock(&failure->lock);
    if (atomic_load(&failure->failed)) {
        check.reads = atomic_load(&failure->stops);
        if (!check.reads && task->class->ranges)
            task->class->ranges(task, visit_check_read, &check);
        if (check.reads)
            poison_outputs(failure, task);
    }
    pthread_mutex_unlock(&failure->lock);
    if (check.reads)
        drop(task);
    return check.reads;
}

int failure_take(struct failure *failure)
{
    int code = 0;
    pthread_mutex_lock(&failure->lock);
    if (atomic_load(&failure->failed)) {
        code = error_set(failure->code, failure->name, "%s", failure->text);
        failure->poison_count = 0;
        atomic_store(&failure->failed, false);
    }
    pthread_mutex_unlock(&failure->lock);
    return code;
}
