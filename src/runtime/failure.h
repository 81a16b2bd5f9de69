/* What is known of the first failed task of a stream, and of the memory that its failure left undefined.
 *
 * Invariant: `failed` is set while a report is due; while it is set, tasks that read poisoned memory are skipped and poison what
 * they would have written; the rest runs, unless `stops` (ACL_STOP_ON_FAILURE) skips it too. Taking the report clears everything. */
#ifndef RUNTIME_FAILURE_H
#define RUNTIME_FAILURE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "runtime/task.h"

struct failure {
    atomic_bool failed, stops;
    pthread_mutex_t lock; /* guards everything below */
    int code;
    char name[64]; /* the operator's, under which the failure is reported */
    char text[1024];
    struct poison {
        const char *first, *last;
    } *poisons; /* owned */
    int poison_count, poison_room;
};

int failure_init(struct failure *failure);
void failure_destroy(struct failure *failure);
/* The task failed with this code; what the thread wrote since the mark are its words. Drops the task. */
void failure_park(struct failure *failure, struct task *task, int code, struct error_mark mark);
/* Called while failed: does the task read poisoned memory, or stops the stream? Then it is dropped and its outputs are poisoned. */
bool failure_skips(struct failure *failure, struct task *task);
/* Writes the parked text into the calling thread's slot, clears the failure, returns its code (0: none). */
int failure_take(struct failure *failure);

#endif
