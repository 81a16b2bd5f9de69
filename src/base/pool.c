/* The worker pool. See pool.h.
 *
 * One job at a time, owned by whoever holds job_lock. `state` says whether the job takes helpers (OPEN) and how many are inside;
 * a worker enters with a compare-and-swap that fails once the owner closed the job, so the job's fields change only while nobody
 * is inside. Idle workers spin for a bounded time, then sleep on `generation`; the owner waits on `state` for the last helper. */
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/env.h"
#include "base/futex.h"
#include "base/host.h"
#include "base/log.h"
#include "base/thread.h"

enum { HUGE_PAGE = 2 << 20 };
#define STATE_OPEN 0x80000000u
#define STATE_OWNER_WAITS 0x40000000u
#define STATE_INSIDE 0x3fffffffu

/* Each word that several threads write has a cache line of its own. */
static struct {
    _Alignas(64) _Atomic uint32_t state;
    _Alignas(64) _Atomic uint32_t generation; /* one more for each job */
    _Alignas(64) _Atomic int sleepers;
    _Alignas(64) _Atomic int64_t next; /* first item that nobody took */
    _Alignas(64) pool_body_fn body;
    void *argument;
    int64_t count, grain;
} job;

static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t size_once = PTHREAD_ONCE_INIT;
static int threads;   /* wanted, the caller included; set by size_once */
static bool spinning; /* every thread has a core */
static bool several_cores;
static bool started; /* job_lock */
static _Atomic bool forgotten;

/* Waits until *word != seen, or the time is up. */
static void spin_while(_Atomic uint32_t *word, uint32_t seen)
{
    if (spinning)
        spin_until_changed(word, seen);
}

static void take_ranges(void)
{
    const int64_t count = job.count, grain = job.grain;
    const pool_body_fn body = job.body;
    void *const argument = job.argument;
    for (;;) {
        const int64_t begin = atomic_fetch_add(&job.next, grain);
        if (begin >= count)
            return;
        body(argument, begin, count - begin < grain ? count : begin + grain);
    }
}

/* Joins the open job, if there is one. */
static void help(void)
{
    uint32_t state = job.state;
    do {
        if (!(state & STATE_OPEN))
            return;
    } while (!atomic_compare_exchange_weak(&job.state, &state, state + 1));
    take_ranges();
    state = atomic_fetch_sub(&job.state, 1) - 1;
    if (state == STATE_OWNER_WAITS)
        futex_wake(&job.state, 1);
}

static void *worker(void *unused)
{
    uint32_t seen = 0;
    for (;;) {
        spin_while(&job.generation, seen);
        if (job.generation == seen) {
            ++job.sleepers;
            /* The owner raises generation before it looks for sleepers, so one of the two sees the other. */
            if (job.generation == seen)
                futex_sleep(&job.generation, seen, -1);
            --job.sleepers;
        }
        if (job.generation == seen)
            continue;
        seen = job.generation;
        help();
    }
    return NULL;
}

static void choose_size(void)
{
    const int cores = host_cores();
    const int asked = (int)env_int(ENV_NPU_POOL_THREADS);
    const int share = cores / (int)env_int(ENV_LOCAL_WORLD_SIZE);
    threads = asked > 0 ? asked : share > 0 ? share : 1;
    several_cores = cores > 1;
    spinning = several_cores && threads <= cores;
}

int pool_threads(void)
{
    if (forgotten)
        return 1;
    pthread_once(&size_once, choose_size);
    return threads;
}

/* Called with job_lock. A thread that can't be started makes the pool smaller, not the job wrong. */
static void start_workers(void)
{
    started = true;
    for (int i = 1; i < threads; ++i) {
        char name[32];
        snprintf(name, sizeof name, "npu-pool-%d", i);
        const int code = thread_start(worker, NULL, name, NULL);
        if (code != 0) {
            LOG_WARNING("started %d of %d pool threads: error %d", i - 1, threads - 1, code);
            break;
        }
    }
}

static void run_shared(int64_t count, int64_t grain, pool_body_fn body, void *argument)
{
    if (!started)
        start_workers();
    job.body = body;
    job.argument = argument;
    job.count = count;
    job.grain = grain;
    job.next = 0;
    job.state = STATE_OPEN;
    ++job.generation;
    const int64_t helpers = (count - 1) / grain; /* ranges besides the caller's first */
    if (job.sleepers > 0)
        futex_wake(&job.generation, helpers < threads ? (int)helpers : threads);
    take_ranges();

    uint32_t state = atomic_fetch_and(&job.state, ~STATE_OPEN) & ~STATE_OPEN;
    while (state & STATE_INSIDE) {
        spin_while(&job.state, state);
        state = job.state;
        if (!(state & STATE_INSIDE))
            break;
        if (!(state & STATE_OWNER_WAITS)) {
            if (!atomic_compare_exchange_strong(&job.state, &state, state | STATE_OWNER_WAITS))
                continue; /* somebody left meanwhile; state is fresh */
            state |= STATE_OWNER_WAITS;
        }
        futex_sleep(&job.state, state, -1);
        state = job.state;
    }
    job.state = 0;
}

void pool_for(int64_t count, int64_t grain, pool_body_fn body, void *argument)
{
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    if (count > grain && pool_threads() > 1 && pthread_mutex_trylock(&job_lock) == 0) {
        run_shared(count, grain, body, argument);
        pthread_mutex_unlock(&job_lock);
        return;
    }
    for (int64_t begin = 0; begin < count; begin += grain)
        body(argument, begin, count - begin < grain ? count : begin + grain);
}

bool spin_is_useful(void)
{
    pool_threads(); /* size_once */
    return several_cores;
}

void pool_forget_after_fork(void) { forgotten = true; }

/* --- scratch ------------------------------------------------------------------------------------------------------ */

static void free_scratch(void);
static _Thread_local struct {
    void *memory;
    size_t bytes;
} scratch[POOL_SCRATCH_SLOTS];
static _Thread_local struct thread_cleanup scratch_cleanup = {.run = free_scratch};

static void free_scratch(void)
{
    for (int i = 0; i < POOL_SCRATCH_SLOTS; ++i) {
        free(scratch[i].memory);
        scratch[i].memory = NULL;
        scratch[i].bytes = 0;
    }
}

void *pool_scratch(int slot, size_t bytes)
{
    if (__builtin_expect(bytes <= scratch[slot].bytes && scratch[slot].memory, 1))
        return scratch[slot].memory;
    thread_at_exit(&scratch_cleanup);
    free(scratch[slot].memory); /* contents needn't survive: freeing first keeps the peak low */
    const bool large = bytes >= 2 * (size_t)HUGE_PAGE;
    const size_t alignment = large ? HUGE_PAGE : 64;
    const size_t rounded = (bytes + bytes / 4 + alignment) / alignment * alignment;
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, rounded) != 0)
        memory = NULL;
    else if (large)
        madvise(memory, rounded, MADV_HUGEPAGE); /* packed panels are walked many times: fewer page faults and TLB misses */
    scratch[slot].memory = memory;
    scratch[slot].bytes = memory ? rounded : 0;
    return memory;
}
