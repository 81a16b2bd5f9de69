/* Events.
 *
 * An event is a handle to its latest record. A record is made by each aclrtRecordEvent, is shared by the event, the task that
 * completes it and the tasks that wait for it (a count of references keeps it alive), and completes once. So recording again
 * doesn't disturb who waits for the earlier record, and destroying an event disturbs nobody. event_lock guards the set of live
 * handles and which record each has. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/pointer_set.h"
#include "runtime/device.h"
#include "runtime/event.h"
#include "runtime/fork.h"
#include "runtime/stream.h"

enum record_state { RECORD_PENDING, RECORD_AWAITED, RECORD_DONE };

struct record {
    _Atomic uint32_t state; /* enum record_state; threads sleep on it while it is RECORD_AWAITED */
    _Atomic int references;
    _Atomic int waiting;         /* tasks of aclrtStreamWaitEvent that haven't finished */
    _Atomic int64_t nanoseconds; /* when its task ran, 0 before; written before state */
};

struct event {
    uint32_t flags;
    struct record *record; /* event_lock; NULL: not recorded. Holds a reference */
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_set events;
static _Atomic int64_t wait_limit; /* nanoseconds; 0: none */

void event_limit_wait(int64_t nanoseconds) { wait_limit = nanoseconds; }

static void record_release(struct record *record)
{
    if (record && atomic_fetch_sub(&record->references, 1) == 1)
        free(record);
}

static void record_complete(struct record *record)
{
    if (atomic_exchange(&record->state, RECORD_DONE) == RECORD_AWAITED)
        futex_wake(&record->state, INT32_MAX);
}

/* False when the deadline (nanoseconds, negative: none) passed first. */
static bool record_wait(struct record *record, int64_t deadline)
{
    if (spin_is_useful())
        spin_until_changed(&record->state, RECORD_PENDING);
    for (;;) {
        uint32_t state = RECORD_PENDING;
        atomic_compare_exchange_strong(&record->state, &state, RECORD_AWAITED);
        if (state == RECORD_DONE)
            return true;
        if (deadline >= 0 && clock_nanoseconds() >= deadline)
            return false;
        futex_sleep(&record->state, RECORD_AWAITED, deadline);
    }
}

/* A task that ran is settled within moments. Waiting for that keeps both promises: after a synchronise the event is complete,
 * and who sees it complete finds the stream idle. */
static bool record_is_done(struct record *record)
{
    if (atomic_load_explicit(&record->state, memory_order_acquire) == RECORD_DONE)
        return true;
    return record->nanoseconds != 0 && record_wait(record, -1);
}

/* The event's record with a reference of the caller's (NULL: not recorded), and its flags. Refuses dead handles. */
static int acquire(const char *function, void *handle, struct record **record, uint32_t *flags)
{
    if (fork_happened())
        return fork_refuse(function);
    pthread_mutex_lock(&event_lock);
    const bool known = pointer_set_has(&events, handle);
    struct event *const event = handle;
    *record = known ? event->record : NULL;
    if (*record)
        ++(*record)->references;
    if (flags && known)
        *flags = event->flags;
    pthread_mutex_unlock(&event_lock);
    if (!known)
        return error_set(ERROR_RT_INVALID_HANDLE, function, "%p is no event (destroyed, or never created)", handle);
    return 0;
}

/* Takes over the reference in `record`. False: the handle is dead. */
static bool replace(void *handle, struct record *record)
{
    pthread_mutex_lock(&event_lock);
    const bool known = pointer_set_has(&events, handle);
    struct record *old = record;
    if (known) {
        old = ((struct event *)handle)->record;
        ((struct event *)handle)->record = record;
    }
    pthread_mutex_unlock(&event_lock);
    record_release(old);
    return known;
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static const char *record_name(const struct task *task) { return "aclrtRecordEvent"; }

static const char *wait_name(const struct task *task) { return "aclrtStreamWaitEvent"; }

/* Also when the task is dropped: who waits must not wait for ever. */
static void record_finish(struct task *task)
{
    record_complete(task->out);
    record_release(task->out);
}

static int record_run(struct task *task)
{
    ((struct record *)task->out)->nanoseconds = clock_nanoseconds();
    return 0;
}

static void wait_finish(struct task *task)
{
    struct record *const record = task->out;
    --record->waiting;
    record_release(record);
}

static int wait_run(struct task *task)
{
    const int64_t limit = wait_limit;
    if (!record_wait(task->out, limit ? clock_nanoseconds() + limit : -1))
        return error_set(ERROR_RT_WAIT_TIMEOUT, "aclrtStreamWaitEvent",
                         "the event didn't come within %lld s (aclrtSetOpWaitTimeout)",
                         (long long)(limit / 1000000000)); /* failing drops the task, which ends the wait */
    wait_finish(task);
    return 0;
}

static const struct task_class record_class = {.name = record_name, .drop = record_finish, .settled = record_finish};
static const struct task_class wait_class = {.name = wait_name, .drop = wait_finish};

/* --- public ------------------------------------------------------------------------------------------------------- */

static int create(const char *function, aclrtEvent *event, uint32_t flags)
{
    const uint32_t known_flags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE | ACL_EVENT_IPC;
    int device;
    TRY(device_current(&device));
    if (!event)
        return error_set(ERROR_INVALID_PARAM, function, "event is null");
    if (flags == 0 || (flags & ~known_flags))
        return error_set(ERROR_INVALID_PARAM, function,
                         "flag is 0x%x; it is made of ACL_EVENT_SYNC (1), "
                         "ACL_EVENT_CAPTURE_STREAM_PROGRESS (2), ACL_EVENT_TIME_LINE (8) and ACL_EVENT_IPC (64)",
                         flags);
    struct event *const made = calloc(1, sizeof *made);
    pthread_mutex_lock(&event_lock);
    const bool added = made && pointer_set_add(&events, made);
    pthread_mutex_unlock(&event_lock);
    if (!added) {
        free(made);
        return error_set(ERROR_BAD_ALLOC, function, "out of host memory");
    }
    made->flags = flags;
    *event = made;
    return 0;
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
    return create(__func__, event, ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE);
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag) { return create(__func__, event, flag); }

aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag) { return create(__func__, event, flag); }

aclError aclrtDestroyEvent(aclrtEvent event)
{
    if (fork_happened())
        return 0;
    pthread_mutex_lock(&event_lock);
    const bool known = pointer_set_remove(&events, event);
    pthread_mutex_unlock(&event_lock);
    REQUIRE(known, ERROR_RT_INVALID_HANDLE, "%p is no event (destroyed, or never created)", event);
    record_release(((struct event *)event)->record);
    free(event);
    return 0;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
    struct stream *target;
    struct record *before;
    TRY(acquire(__func__, event, &before, NULL));
    record_release(before);
    TRY(stream_resolve(stream, &target));
    struct record *const record = calloc(1, sizeof *record);
    REQUIRE(record, ERROR_BAD_ALLOC, "out of host memory");
    record->references = 2; /* the event's and the task's */
    struct task task = {.run = record_run, .class = &record_class, .out = record, .flags = TASK_SMALL};
    const int code = stream_launch(target, &task);
    if (code != 0) {
        record_finish(&task);
        record_release(record);
        return code;
    }
    /* Only now may others see it: a wait for it that came into the same stream before the record's own task would never end. */
    REQUIRE(replace(event, record), ERROR_RT_INVALID_HANDLE, "%p is no event any more", event);
    return 0;
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    REQUIRE(replace(event, NULL), ERROR_RT_INVALID_HANDLE, "%p is no event (destroyed, or never created)", event);
    return 0;
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
    struct stream *target;
    struct record *record;
    TRY(stream_resolve(stream, &target));
    TRY(acquire(__func__, event, &record, NULL));
    if (!record || record_is_done(record)) {
        record_release(record);
        return 0;
    }
    ++record->waiting;
    struct task task = {.run = wait_run, .class = &wait_class, .out = record, .flags = TASK_QUEUED};
    const int code = stream_launch(target, &task);
    if (code != 0)
        wait_finish(&task);
    return code;
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status)
{
    struct record *record;
    REQUIRE(status, ERROR_INVALID_PARAM, "status is null");
    TRY(acquire(__func__, event, &record, NULL));
    *status = record && record_is_done(record) ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    record_release(record);
    return 0;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
    aclrtEventRecordedStatus recorded;
    REQUIRE(status, ERROR_INVALID_PARAM, "status is null");
    TRY(aclrtQueryEventStatus(event, &recorded));
    *status = recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return 0;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status)
{
    struct record *record;
    REQUIRE(status, ERROR_INVALID_PARAM, "status is null");
    TRY(acquire(__func__, event, &record, NULL));
    *status = record && record->waiting > 0 ? ACL_EVENT_WAIT_STATUS_NOT_READY : ACL_EVENT_WAIT_STATUS_COMPLETE;
    record_release(record);
    return 0;
}

static int synchronize(const char *function, void *event, int64_t timeout)
{
    struct record *record;
    TRY(acquire(function, event, &record, NULL));
    const int64_t deadline = timeout < 0 ? -1 : clock_nanoseconds() + timeout * 1000000;
    const bool done = !record || record_wait(record, deadline);
    record_release(record);
    if (!done)
        return error_set(ERROR_RT_EVENT_SYNC_TIMEOUT, function, "the event didn't complete within %lld ms", (long long)timeout);
    return 0;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) { return synchronize(__func__, event, -1); }

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) { return synchronize(__func__, event, timeout); }

/* When the event completed. */
static int time_of(const char *function, const char *role, void *event, int64_t *nanoseconds)
{
    struct record *record;
    uint32_t flags = 0;
    TRY(acquire(function, event, &record, &flags));
    const bool done = record && record_is_done(record);
    *nanoseconds = done ? record->nanoseconds : 0;
    record_release(record);
    if (!(flags & ACL_EVENT_TIME_LINE))
        return error_set(ERROR_INVALID_PARAM, function, "%s was created without ACL_EVENT_TIME_LINE: it keeps no time", role);
    if (!done)
        return error_set(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, function, "%s hasn't been recorded, or hasn't completed", role);
    return 0;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
{
    int64_t start, end;
    REQUIRE(ms, ERROR_INVALID_PARAM, "ms is null");
    TRY(time_of(__func__, "startEvent", startEvent, &start));
    TRY(time_of(__func__, "endEvent", endEvent, &end));
    REQUIRE(end >= start, ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "endEvent completed %.6f ms before startEvent",
            (double)(start - end) * 1e-6);
    *ms = (float)((double)(end - start) * 1e-6);
    return 0;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
    int64_t nanoseconds;
    REQUIRE(timestamp, ERROR_INVALID_PARAM, "timestamp is null");
    TRY(time_of(__func__, "event", event, &nanoseconds));
    *timestamp = (uint64_t)nanoseconds / 1000;
    return 0;
}
