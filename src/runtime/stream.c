/* Streams. See stream.h and docs/threads.md.
 *
 * The ring is a single-consumer queue. `tail` is written under the producer lock only; `head` by whoever executes (the device
 * thread, or a producer that runs a small task inline while it holds the producer lock and the ring is empty: then the device
 * thread has nothing to take). So at most one thread executes at any time, and tasks run in order.
 * Sleeping: the device thread spins for a bounded time, then sets `sleeping` and looks once more before the futex; a producer
 * publishes first and then looks at `sleeping`. Sequentially consistent fences on both sides make one of them see the other. */
#define _GNU_SOURCE
#include "runtime/stream.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "runtime/callback.h"
#include "runtime/device.h"
#include "runtime/failure.h"
#include "runtime/fork.h"

enum { RING_TASKS = 1024, RING_MASK = RING_TASKS - 1, SPIN_NS = 50000 };

struct stream {
    _Atomic int references; /* the handle's, and one of each thread that synchronises the whole device */
    int device, priority;
    uint32_t flags;
    bool run_in_caller; /* TASK_QUEUE_ENABLE=0: everything runs inline when the stream is idle */
    pthread_t thread;
    struct stream *next; /* registry; guarded by registry_lock */
    struct failure failure;

    _Alignas(64) atomic_int producer_lock; /* guards tail, head_seen and inline execution */
    bool thread_started;                   /* under producer_lock */
    uint64_t head_seen;                    /* the producers' last look at head */
    _Atomic uint64_t tail;

    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) atomic_int sleeping; /* futex of the device thread */
    _Alignas(64) atomic_int progress; /* futex of waiting threads: counts wake-ups */
    atomic_int waiters;
    atomic_bool stopping;
    atomic_bool abandoned; /* what is queued is dropped, not run */

    _Alignas(64) struct task ring[RING_TASKS];
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *registry;
/* Changes whenever a stream dies: the per-thread "this handle is good" memory of stream_resolve then expires. */
static atomic_uint registry_generation = 1;
static _Thread_local struct {
    void *handle;
    unsigned generation;
} known;
static _Thread_local struct stream *executor;

static void futex_wait(atomic_int *word, int expected, const struct timespec *timeout)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}

static void futex_wake(atomic_int *word, int count) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0); }

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* With one core in the affinity mask, spinning only keeps the other side from running. */
static int64_t spin_budget_ns(void)
{
    static atomic_llong budget = -1;
    int64_t ns = atomic_load_explicit(&budget, memory_order_relaxed);
    if (ns < 0) {
        cpu_set_t mask;
        ns = sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 1 ? SPIN_NS : 0;
        atomic_store_explicit(&budget, ns, memory_order_relaxed);
    }
    return ns;
}

static inline void producer_acquire(struct stream *s)
{
    for (int tries = 0; atomic_exchange_explicit(&s->producer_lock, 1, memory_order_acquire); ++tries)
        while (atomic_load_explicit(&s->producer_lock, memory_order_relaxed)) {
            pause_briefly();
            if (++tries > 1000)
                sched_yield(); /* the holder may run a task inline, or wait for room */
        }
}

static inline void producer_release(struct stream *s) { atomic_store_explicit(&s->producer_lock, 0, memory_order_release); }

/* --- execution ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void execute_slow(struct stream *s, struct task *task)
{
    if (failure_skips(&s->failure, task))
        return;
    const int code = task->run(task);
    if (code != 0)
        failure_park(&s->failure, task, code);
}

static inline void execute(struct stream *s, struct task *task)
{
    if (__builtin_expect(atomic_load_explicit(&s->failure.failed, memory_order_relaxed), 0)) {
        execute_slow(s, task);
        return;
    }
    const int code = task->run(task);
    if (__builtin_expect(code != 0, 0))
        failure_park(&s->failure, task, code);
}

static void wake_waiters(struct stream *s)
{
    atomic_fetch_add(&s->progress, 1);
    futex_wake(&s->progress, 1 << 30);
}

static void drop(struct task *task)
{
    if (task->class->drop)
        task->class->drop(task);
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
        if (__builtin_expect(abandoned, 0))
            drop(task);
        else
            execute(s, task);
        struct task settled = {.class = NULL};
        if (__builtin_expect(task->class->settled != NULL && !abandoned, 0))
            settled = *task; /* once head moves on, a producer may use the slot again */
        atomic_store_explicit(&s->head, ++head, memory_order_release);
        if (__builtin_expect(settled.class != NULL, 0))
            settled.class->settled(&settled);
        if (__builtin_expect(atomic_load_explicit(&s->waiters, memory_order_relaxed) != 0, 0))
            wake_waiters(s);
        if (head == tail)
            tail = atomic_load_explicit(&s->tail, memory_order_acquire);
    }
    /* A waiter may have registered between the last store of head and our look: this fence pairs with the waiter's. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->waiters, memory_order_relaxed) != 0)
        wake_waiters(s);
    return true;
}

static bool has_work(struct stream *s)
{
    return atomic_load_explicit(&s->tail, memory_order_acquire) != atomic_load_explicit(&s->head, memory_order_relaxed);
}

static void sleep_until_work(struct stream *s)
{
    const int64_t budget = spin_budget_ns();
    if (budget > 0) {
        const int64_t end = now_ns() + budget;
        do {
            for (int i = 0; i < 64; ++i) {
                if (has_work(s))
                    return;
                pause_briefly();
            }
            sched_yield(); /* who needs the core more gets it */
        } while (now_ns() < end);
    }
    atomic_store(&s->sleeping, 1);
    atomic_thread_fence(memory_order_seq_cst);
    while (!has_work(s) && !atomic_load(&s->stopping) && atomic_load(&s->sleeping))
        futex_wait(&s->sleeping, 1, NULL);
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
    int expected = 1;
    if (atomic_compare_exchange_strong(&s->sleeping, &expected, 0))
        futex_wake(&s->sleeping, 1);
}

/* --- launching ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int start_thread(struct stream *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it: signals are the application's */
    const int failed = pthread_create(&s->thread, NULL, device_thread, s);
    if (!failed)
        pthread_setname_np(s->thread, "npu-stream");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    REQUIRE(!failed, ERROR_BAD_ALLOC, "the stream's thread couldn't be started: %s", strerror(failed));
    s->thread_started = true;
    return 0;
}

/* Blocks until the ring has room. Under the producer lock. */
static __attribute__((noinline)) void wait_for_room(struct stream *s)
{
    const uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    for (int tries = 0;; ++tries) {
        s->head_seen = atomic_load_explicit(&s->head, memory_order_acquire);
        if (tail - s->head_seen <= RING_TASKS * 3 / 4)
            return;
        if (tries < 200) {
            pause_briefly();
            continue;
        }
        const struct timespec moment = {0, 1000000};
        atomic_fetch_add(&s->waiters, 1);
        const int seen = atomic_load(&s->progress);
        if (tail - atomic_load(&s->head) > RING_TASKS * 3 / 4)
            futex_wait(&s->progress, seen, &moment);
        atomic_fetch_sub(&s->waiters, 1);
    }
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
        execute(s, &copy);
        producer_release(s);
        if (__builtin_expect(copy.class->settled != NULL, 0))
            copy.class->settled(&copy);
        return 0;
    }
    const int code = enqueue(s, task);
    producer_release(s);
    return code;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static bool reached(struct stream *s, uint64_t position)
{
    return (int64_t)(atomic_load_explicit(&s->head, memory_order_acquire) - position) >= 0;
}

/* False on time-out. deadline_ns < 0: none. */
static bool wait_until_reached(struct stream *s, uint64_t position, int64_t deadline_ns)
{
    const int64_t spin_end = now_ns() + spin_budget_ns();
    while (!reached(s, position) && now_ns() < spin_end) {
        for (int i = 0; i < 64 && !reached(s, position); ++i)
            pause_briefly();
        sched_yield(); /* the stream's thread may be waiting for this core */
    }
    while (!reached(s, position)) {
        const struct timespec moment = {0, 2000000}; /* a lost wake-up would cost this much, never a hang */
        if (deadline_ns >= 0 && now_ns() > deadline_ns)
            return false;
        atomic_fetch_add(&s->waiters, 1);
        const int seen = atomic_load(&s->progress);
        atomic_thread_fence(memory_order_seq_cst);
        if (!reached(s, position))
            futex_wait(&s->progress, seen, &moment);
        atomic_fetch_sub(&s->waiters, 1);
    }
    return true;
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
        const int64_t deadline = timeout_ms < 0 ? -1 : now_ns() + timeout_ms * 1000000;
        REQUIRE(wait_until_reached(s, position, deadline), ERROR_RT_STREAM_SYNC_TIMEOUT, "the stream had work left after %lld ms",
                (long long)timeout_ms);
    }
    return atomic_load_explicit(&s->failure.failed, memory_order_acquire) ? failure_take(&s->failure) : 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

int stream_create(int device, int priority, uint32_t flags, struct stream **stream)
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
    s->device = device;
    s->priority = priority;
    s->flags = flags;
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
