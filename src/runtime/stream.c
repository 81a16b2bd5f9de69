/* Streams. See stream.h and docs/threads.md.
 *
 * The ring is a single-consumer queue. `tail` is written under the producer lock only; `head` by whoever executes (the device
 * thread, or a producer that runs a small task inline while it holds the producer lock and the ring is empty: then the device
 * thread has nothing to take). So at most one thread executes at any time, and tasks run in order.
 * Sleeping: the device thread spins for a bounded time, then sets `sleeping` and looks once more before the futex; a producer
 * publishes first and then looks at `sleeping`. Sequentially consistent fences on both sides make one of them see the other. */
#define _GNU_SOURCE
#include "runtime/stream.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/thread.h"
#include "runtime/callback.h"
#include "runtime/device.h"
#include "runtime/failure.h"
#include "runtime/fork.h"

enum { RING_TASKS = 1024, RING_MASK = RING_TASKS - 1, RING_RESUME = RING_TASKS * 3 / 4 };
/* Who sleeps until a position is reached looks again after this long: a lost wake-up would cost this much, never a hang. */
enum { LONGEST_SLEEP = 2000000 };
#define NO_POSITION UINT64_MAX

struct stream {
    _Atomic int references; /* the handle's, and one of each thread that synchronises the whole device */
    int device, priority;
    unsigned number;       /* of all streams of the process, for the thread's name */
    bool run_in_caller;    /* TASK_QUEUE_ENABLE=0: everything runs inline when the stream is idle */
    int64_t usual_timeout; /* milliseconds, or -1 */
    _Atomic uint32_t resource_limits[RESOURCE_KINDS];
    pthread_t thread;
    struct stream *next; /* registry; guarded by registry_lock */
    struct failure failure;

    _Alignas(64) atomic_int producer_lock; /* guards tail, head_seen and inline execution */
    bool thread_started;                   /* under producer_lock */
    uint64_t head_seen;                    /* the producers' last look at head */
    _Atomic uint64_t tail;

    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint32_t sleeping; /* futex of the device thread */
    _Alignas(64) _Atomic uint32_t progress; /* futex of waiting threads: counts wake-ups */
    _Atomic uint64_t wanted;                /* the smallest head that somebody sleeps for, or NO_POSITION */
    atomic_bool stopping;
    atomic_bool abandoned; /* what is queued is dropped, not run */

    _Alignas(64) struct task ring[RING_TASKS];
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *registry;
static atomic_uint streams_made;
/* Changes whenever a stream dies: the per-thread "this handle is good" memory of stream_resolve then expires. */
static atomic_uint registry_generation = 1;
static _Thread_local struct {
    void *handle;
    unsigned generation;
} known;
static _Thread_local struct stream *executor;
static atomic_llong task_time_limit; /* nanoseconds; 0: none */

static inline void producer_acquire(struct stream *s)
{
    for (int tries = 0; atomic_exchange_explicit(&s->producer_lock, 1, memory_order_acquire); ++tries)
        while (atomic_load_explicit(&s->producer_lock, memory_order_relaxed)) {
            cpu_relax();
            if (++tries > 1000)
                sched_yield(); /* the holder may run a task inline, or wait for room */
        }
}

static inline void producer_release(struct stream *s) { atomic_store_explicit(&s->producer_lock, 0, memory_order_release); }

/* --- execution ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) bool execute_slow(struct stream *s, struct task *task)
{
    if (failure_skips(&s->failure, task))
        return false;
    const struct error_mark mark = error_here();
    const int code = task->run(task);
    if (code != 0)
        failure_park(&s->failure, task, code, mark);
    return true;
}

/* False: the task was dropped instead. */
static inline bool execute(struct stream *s, struct task *task)
{
    if (__builtin_expect(atomic_load_explicit(&s->failure.failed, memory_order_relaxed), 0))
        return execute_slow(s, task);
    const struct error_mark mark = error_here();
    const int code = task->run(task);
    if (__builtin_expect(code != 0, 0))
        failure_park(&s->failure, task, code, mark);
    return true;
}

/* Wakes who waits for `head` or less; those of them that want more say so again. */
static inline void wake_waiters(struct stream *s, uint64_t head)
{
    if (__builtin_expect(head < atomic_load_explicit(&s->wanted, memory_order_relaxed), 1))
        return;
    atomic_store(&s->wanted, NO_POSITION);
    atomic_fetch_add(&s->progress, 1);
    futex_wake(&s->progress, INT32_MAX);
}

static bool drop(struct task *task)
{
    if (task->class->drop)
        task->class->drop(task);
    return false;
}

/* Runs what is queued; false when there was nothing. Device thread only. */
static bool drain(struct stream *s)
{
    uint64_t head = atomic_load_explicit(&s->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    if (head == tail)
        return false;
    while (head != tail) {
        struct task *const task = &s->ring[head & RING_MASK];
        const bool abandoned = atomic_load_explicit(&s->abandoned, memory_order_relaxed);
        const bool ran = __builtin_expect(abandoned, 0) ? drop(task) : execute(s, task);
        struct task settled = {.class = NULL};
        if (__builtin_expect(task->class->settled != NULL && ran, 0))
            settled = *task; /* once head moves on, a producer may use the slot again */
        atomic_store_explicit(&s->head, ++head, memory_order_release);
        if (__builtin_expect(settled.class != NULL, 0))
            settled.class->settled(&settled);
        wake_waiters(s, head);
        if (head == tail)
            tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    }
    /* A waiter may have registered between the last store of head and our look: this fence pairs with the waiter's. */
    atomic_thread_fence(memory_order_seq_cst);
    wake_waiters(s, head);
    return true;
}

static bool has_work(const void *stream)
{
    const struct stream *const s = stream;
    return atomic_load_explicit(&s->tail, memory_order_acquire) != atomic_load_explicit(&s->head, memory_order_relaxed);
}

static void sleep_until_work(struct stream *s)
{
    if (spin_is_useful() && spin_until(has_work, s))
        return;
    atomic_store(&s->sleeping, 1);
    atomic_thread_fence(memory_order_seq_cst);
    while (!has_work(s) && !atomic_load(&s->stopping) && atomic_load(&s->sleeping))
        futex_sleep(&s->sleeping, 1, -1);
    atomic_store(&s->sleeping, 0);
}

static void *device_thread(void *argument)
{
    struct stream *const s = argument;
    executor = s;
    device_set_current(s->device);
    /* 0 is the greatest urgency, 1 torch's normal one; from 2 on a stream's thread yields to the process's others. */
    if (s->priority > 1)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), s->priority - 1);
    for (;;)
        if (!drain(s)) {
            if (atomic_load(&s->stopping))
                return NULL;
            sleep_until_work(s);
        }
}

static void wake_device_thread(struct stream *s)
{
    uint32_t expected = 1;
    if (atomic_compare_exchange_strong(&s->sleeping, &expected, 0))
        futex_wake(&s->sleeping, 1);
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int start_thread(struct stream *s)
{
    char name[16];
    snprintf(name, sizeof name, "npu-stream-%u", s->number % 10000);
    const int failed = thread_start(device_thread, s, name, &s->thread);
    REQUIRE(!failed, ERROR_BAD_ALLOC, "the stream's thread couldn't be started: %s", strerror(failed));
    s->thread_started = true;
    return 0;
}

static bool reached(const struct stream *s, uint64_t position)
{
    return (int64_t)(atomic_load_explicit(&s->head, memory_order_acquire) - position) >= 0;
}

/* Sleeps until the position may be reached, at most until the deadline (clock_nanoseconds; negative: none) or LONGEST_SLEEP. */
static void sleep_for_position(struct stream *s, uint64_t position, int64_t deadline)
{
    const int64_t latest = clock_nanoseconds() + LONGEST_SLEEP;
    const uint32_t seen = atomic_load(&s->progress); /* before `wanted` is published: a wake-up that takes it changes progress */
    uint64_t wanted = atomic_load(&s->wanted);
    while (position < wanted && !atomic_compare_exchange_weak(&s->wanted, &wanted, position))
        ;
    atomic_thread_fence(memory_order_seq_cst);
    if (!reached(s, position))
        futex_sleep(&s->progress, seen, deadline >= 0 && deadline < latest ? deadline : latest);
}

/* Blocks until a quarter of the ring is free. Under the producer lock. */
static __attribute__((noinline)) void wait_for_room(struct stream *s)
{
    const uint64_t position = atomic_load_explicit(&s->tail, memory_order_relaxed) - RING_RESUME;
    for (int tries = 0; !reached(s, position); ++tries)
        if (tries < 200)
            cpu_relax();
        else
            sleep_for_position(s, position, -1);
    s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
}

static int enqueue(struct stream *s, const struct task *task)
{
    const uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    if (__builtin_expect(!s->thread_started, 0))
        TRY(start_thread(s));
    if (__builtin_expect(tail - s->head_seen >= RING_TASKS, 0)) {
        s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
        if (tail - s->head_seen >= RING_TASKS)
            wait_for_room(s);
    }
    s->ring[tail & RING_MASK] = *task;
    atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&s->sleeping, memory_order_relaxed) == 1, 0))
        wake_device_thread(s);
    return 0;
}

int stream_launch(struct stream *s, const struct task *task)
{
    if (__builtin_expect(fork_happened(), 0))
        return fork_refuse(task->class->name(task));
    producer_acquire(s);
    const bool inline_allowed = (task->flags & TASK_SMALL) || (s->run_in_caller && !(task->flags & TASK_QUEUED));
    if (inline_allowed &&
        atomic_load_explicit(&s->tail, memory_order_relaxed) == atomic_load_explicit(&s->head, memory_order_acquire)) {
        struct task copy = *task;
        const bool ran = execute(s, &copy);
        producer_release(s);
        if (__builtin_expect(copy.class->settled != NULL && ran, 0))
            copy.class->settled(&copy);
        return 0;
    }
    const int code = enqueue(s, task);
    producer_release(s);
    return code;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

struct target {
    struct stream *stream;
    uint64_t position;
};

static bool target_reached(const void *argument)
{
    const struct target *const target = argument;
    return reached(target->stream, target->position);
}

/* How long the stream has been busy with the same task. */
struct patience {
    uint64_t head;
    int64_t since;
};

static bool task_runs_too_long(struct stream *s, struct patience *patience)
{
    const int64_t limit = atomic_load_explicit(&task_time_limit, memory_order_relaxed);
    const uint64_t head = atomic_load_explicit(&s->head, memory_order_acquire);
    if (limit == 0 || head != patience->head || patience->since == 0) {
        *patience = (struct patience){head, clock_nanoseconds()};
        return false;
    }
    return clock_nanoseconds() - patience->since > limit;
}

/* timeout_ms < 0: none. */
static int wait_until_reached(struct stream *s, uint64_t position, int64_t timeout_ms)
{
    const int64_t deadline = timeout_ms < 0 ? -1 : clock_nanoseconds() + timeout_ms * 1000000;
    const struct target target = {s, position};
    struct patience patience = {0, 0};
    if (spin_is_useful())
        spin_until(target_reached, &target);
    while (!reached(s, position)) {
        if (deadline >= 0 && clock_nanoseconds() > deadline)
            FAIL(ERROR_RT_STREAM_SYNC_TIMEOUT, "the stream had work left after %lld ms", (long long)timeout_ms);
        if (task_runs_too_long(s, &patience))
            FAIL(ERROR_RT_OPERATOR_TIMEOUT, "one operator has run for more than %lld s, the limit of aclrtSetOpExecuteTimeOut",
                 (long long)(atomic_load(&task_time_limit) / 1000000000));
        sleep_for_position(s, position, deadline);
    }
    return 0;
}

bool stream_is_idle(struct stream *s)
{
    return atomic_load_explicit(&s->head, memory_order_acquire) == atomic_load_explicit(&s->tail, memory_order_acquire) &&
           !atomic_load_explicit(&s->producer_lock, memory_order_acquire);
}

int stream_synchronize(struct stream *s, int64_t timeout_ms)
{
    if (__builtin_expect(fork_happened(), 0))
        return fork_refuse("synchronize");
    REQUIRE(executor != s, ERROR_RT_PARAM_INVALID, "a task of a stream can't wait for its own stream");
    /* Through the lock, so that a task another thread runs inline right now counts as earlier work. */
    producer_acquire(s);
    const uint64_t position = atomic_load_explicit(&s->tail, memory_order_relaxed);
    producer_release(s);
    if (!reached(s, position)) {
        if (timeout_ms == STREAM_TIMEOUT_USUAL)
            timeout_ms = s->usual_timeout;
        TRY(wait_until_reached(s, position, timeout_ms));
    }
    return atomic_load_explicit(&s->failure.failed, memory_order_acquire) ? failure_take(&s->failure) : 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int stream_create(int device, int priority, struct stream **stream)
{
    if (fork_happened())
        return fork_refuse("stream creation");
    struct stream *const s = aligned_alloc(64, sizeof *s);
    REQUIRE(s, ERROR_BAD_ALLOC, "out of host memory");
    memset(s, 0, offsetof(struct stream, ring));
    if (failure_init(&s->failure) != 0) {
        free(s);
        return ERROR_BAD_ALLOC;
    }
    s->references = 1;
    s->wanted = NO_POSITION;
    s->number = atomic_fetch_add(&streams_made, 1);
    s->device = device;
    s->priority = priority;
    s->usual_timeout = env_int(ENV_ACL_STREAM_TIMEOUT);
    s->run_in_caller = env_int(ENV_TASK_QUEUE_ENABLE) == 0;
    pthread_mutex_lock(&registry_lock);
    s->next = registry;
    registry = s;
    pthread_mutex_unlock(&registry_lock);
    *stream = s;
    return 0;
}

static bool registry_remove(struct stream *s)
{
    bool found = false;
    pthread_mutex_lock(&registry_lock);
    for (struct stream **link = &registry; *link; link = &(*link)->next)
        if (*link == s) {
            *link = s->next;
            found = true;
            break;
        }
    atomic_fetch_add(&registry_generation, 1);
    pthread_mutex_unlock(&registry_lock);
    return found;
}

static void release(struct stream *s)
{
    if (atomic_fetch_sub(&s->references, 1) != 1)
        return;
    failure_destroy(&s->failure);
    free(s);
}

int stream_destroy(struct stream *s, bool force)
{
    int code = 0;
    if (fork_happened())
        return 0; /* the thread doesn't exist here */
    REQUIRE(executor != s, ERROR_RT_PARAM_INVALID, "a task of a stream can't destroy its own stream");
    /* Callbacks that wait for this thread would be waited for in vain; those of other threads may still run, unless forced. */
    callback_forget_stream(s, force ? 0 : (uint64_t)pthread_self());
    if (force)
        atomic_store(&s->abandoned, true);
    else
        code = stream_synchronize(s, -1);
    REQUIRE(registry_remove(s), ERROR_RT_INVALID_HANDLE, "the stream was destroyed before");
    callback_forget_stream(s, 0);
    if (s->thread_started) {
        atomic_store(&s->stopping, true);
        atomic_thread_fence(memory_order_seq_cst);
        wake_device_thread(s);
        pthread_join(s->thread, NULL);
    }
    release(s);
    return code;
}

static bool registry_has(const struct stream *s)
{
    bool found = false;
    pthread_mutex_lock(&registry_lock);
    for (const struct stream *at = registry; at && !found; at = at->next)
        found = at == s;
    pthread_mutex_unlock(&registry_lock);
    return found;
}

int stream_resolve(void *handle, struct stream **stream)
{
    const unsigned generation = atomic_load_explicit(&registry_generation, memory_order_acquire);
    if (__builtin_expect(handle && handle == known.handle && generation == known.generation, 1)) {
        *stream = handle;
        return 0;
    }
    if (fork_happened())
        return fork_refuse("stream");
    if (!handle) {
        int device;
        TRY(device_current(&device));
        return device_default_stream(device, stream);
    }
    REQUIRE(registry_has(handle), ERROR_RT_INVALID_HANDLE, "%p is no stream (destroyed, or never created)", handle);
    known.handle = handle;
    known.generation = generation;
    *stream = handle;
    return 0;
}

int stream_device(const struct stream *stream) { return stream->device; }

int stream_priority(const struct stream *stream) { return stream->priority; }

int stream_id(const struct stream *stream) { return (int)stream->number; }

_Atomic uint32_t *stream_resource_limits(struct stream *stream) { return stream->resource_limits; }

void stream_stop_on_failure(struct stream *stream, bool stop) { atomic_store(&stream->failure.stops, stop); }

void stream_limit_task_time(int64_t nanoseconds) { atomic_store(&task_time_limit, nanoseconds); }

struct stream *stream_current_executor(void) { return executor; }

/* The streams of a device at this moment, for waiting without the registry lock; the caller frees the list and releases each. */
static struct stream **registry_snapshot(int device, int *count)
{
    int room = 0;
    *count = 0;
    pthread_mutex_lock(&registry_lock);
    for (const struct stream *s = registry; s; s = s->next)
        ++room;
    struct stream **const list = malloc(sizeof *list * (size_t)(room ? room : 1));
    for (struct stream *s = registry; s && list; s = s->next)
        if (device < 0 || s->device == device) {
            ++s->references;
            list[(*count)++] = s;
        }
    pthread_mutex_unlock(&registry_lock);
    return list;
}

int stream_synchronize_device(int device, int64_t timeout_ms)
{
    int count, result = 0;
    if (fork_happened())
        return fork_refuse("synchronize");
    struct stream **const list = registry_snapshot(device, &count);
    REQUIRE(list, ERROR_BAD_ALLOC, "out of host memory");
    for (int i = 0; i < count; ++i) {
        const int code = list[i] == executor ? 0 : stream_synchronize(list[i], timeout_ms);
        result = result ? result : code;
        release(list[i]);
    }
    free(list);
    return result;
}
