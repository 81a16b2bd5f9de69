/* The one worker pool of the process, sized from the affinity mask (environment: NPU_POOL_THREADS).
 *
 * Invariant: a body sees ranges cut at multiples of `grain` and nothing of threads, so results don't depend on how many
 * workers there are. The calling thread is worker 0. A pool that is busy with another caller's job, or count <= grain,
 * makes the caller do everything itself; bodies must not rely on running in parallel, and must not call pool_for. */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef void (*pool_body_fn)(void *argument, int64_t begin, int64_t end);

/* Calls body(argument, begin, end) for consecutive ranges of at most `grain` items that cover [0, count). */
void pool_for(int64_t count, int64_t grain, pool_body_fn body, void *argument);

/* How many threads work on a job, the caller included; >= 1. For choosing grains of coarse work only. */
int pool_threads(void);

/* A buffer of the calling thread (64-byte aligned, contents undefined), valid until its next call of the same slot.
 * slot: 0 .. POOL_SCRATCH_SLOTS-1, so that a packer and its caller can each have one. NULL when memory is exhausted. */
enum { POOL_SCRATCH_SLOTS = 4 };
void *pool_scratch(int slot, size_t bytes);

/* After fork, in the child: forget the workers (they don't exist there); everything runs in the caller. */
void pool_forget_after_fork(void);

#endif
