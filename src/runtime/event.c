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
#include "runtime/shared_event.h"
#include "runtime/stream.h"

enum record_state { RECORD_PENDING, RECORD_AWAITED, RECORD_DONE };

struct record {
    _Atomic uint32_t state; /* enum record_state; threads sleep on it while it is RECORD_AWAITED */
    _Atomic int references;
    _Atomic int waiting;         /* tasks of aclrtStreamWaitEvent that haven't finished */
    _Atomic int64_t nanoseconds; /* when its task ran, 0 before; written before state */
    /* Told when the record completes; set once, NULL for most. Holds a reference. */
    struct shared_event *_Atomic shared;
    uint64_t number; /* in shared; written before it */
};

struct event {
    uint32_t flags;
    struct record *record;       /* event_lock; NULL: not recorded. Holds a reference */
    struct shared_event *shared; /* event_lock; NULL: this process only. Holds a reference */
    bool imported;               /* another process records it */
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_set events;
static _Atomic int64_t wait_limit; /* nanoseconds; 0: none */

void event_limit_wait(int64_t nanoseconds) { wait_limit = nanoseconds; }

static void record_release(struct record *record)
{
    if (record && atomic_fetch_sub(&record->references, 1) == 1) {
        shared_event_release(record->shared);
        free(record);
    }
}

static void record_complete(struct record *record)
{
    if (atomic_exchange(&record->state, RECORD_DONE) == RECORD_AWAITED)
        futex_wake(&record->state, INT32_MAX);
    struct shared_event *const shared = atomic_load(&record->shared);
    if (shared)
        shared_event_complete(shared, record->number);
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

/* Called with event_lock: from now on the record's completion is seen by other processes too. */
static void share_record(struct shared_event *shared, struct record *record)
{
    shared_event_hold(shared);
    record->number = shared_event_record(shared);
    atomic_store(&record->shared, shared);
    if (atomic_load(&record->state) == RECORD_DONE) /* before it could know */
        shared_event_complete(shared, record->number);
}

/* Takes over the reference in `record`. False: the handle is dead. */
static bool replace(void *handle, struct record *record)
{
    pthread_mutex_lock(&event_lock);
    const bool known = pointer_set_has(&events, handle);
    struct record *old = record;
    if (known) {
        struct event *const event = handle;
        old = event->record;
        event->record = record;
        if (record && event->shared)
            share_record(event->shared, record);
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

/* --- events of other processes ------------------------------------------------------------------------------------- */

/* What another process records, with a reference of the caller's; NULL for our own events and dead handles. */
static struct shared_event *acquire_imported(const void *handle)
{
    pthread_mutex_lock(&event_lock);
    const struct event *const event = pointer_set_has(&events, handle) ? handle : NULL;
    struct shared_event *const shared = event && event->imported ? event->shared : NULL;
    if (shared)
        shared_event_hold(shared);
    pthread_mutex_unlock(&event_lock);
    return shared;
}

static void imported_drop(struct task *task) { shared_event_release(task->out); }

static int imported_run(struct task *task)
{
    const int64_t limit = wait_limit;
    if (!shared_event_wait(task->out, (uint64_t)task->immediate.i64, limit ? clock_nanoseconds() + limit : -1))
        return error_set(ERROR_RT_WAIT_TIMEOUT, "aclrtStreamWaitEvent",
                         "the event of another process didn't come: it ended, or took longer than aclrtSetOpWaitTimeout allows");
    imported_drop(task);
    return 0;
}

static const struct task_class imported_class = {.name = wait_name, .drop = imported_drop};

/* Takes over the reference. */
static int wait_for_imported(struct stream *stream, struct shared_event *shared)
{
    const uint64_t number = shared_event_latest(shared);
    struct task task = {
        .run = imported_run, .class = &imported_class, .out = shared, .immediate.i64 = (int64_t)number, .flags = TASK_QUEUED};
    const bool done = shared_event_reached(shared, number);
    const int code = done ? 0 : stream_launch(stream, &task);
    if (done || code != 0)
        imported_drop(&task);
    return code;
}

/* --- public ------------------------------------------------------------------------------------------------------- */

/* Puts an event into the set; takes over the reference in `shared`, also on failure. */
static int publish(const char *function, uint32_t flags, struct shared_event *shared, aclrtEvent *event)
{
    struct event *const made = calloc(1, sizeof *made);
    if (made)
        *made = (struct event){.flags = flags, .shared = shared, .imported = shared != NULL};
    pthread_mutex_lock(&event_lock);
    const bool added = made && pointer_set_add(&events, made);
    pthread_mutex_unlock(&event_lock);
    if (!added) {
        free(made);
        shared_event_release(shared);
        return error_set(ERROR_BAD_ALLOC, function, "out of host memory");
    }
    *event = made;
    return 0;
}

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
    return publish(function, flags, NULL, event);
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
    shared_event_release(((struct event *)event)->shared);
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
    struct shared_event *const imported = acquire_imported(event);
    shared_event_release(imported);
    REQUIRE(!imported, ERROR_RT_FEATURE_UNSUPPORTED, "another process records this event; here it can be waited for");
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
    struct shared_event *const imported = record ? NULL : acquire_imported(event);
    if (imported)
        return wait_for_imported(target, imported);
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
    struct shared_event *const imported = record ? NULL : acquire_imported(event);
    const uint64_t latest = imported ? shared_event_latest(imported) : 0;
    const bool done = imported ? latest > 0 && shared_event_reached(imported, latest) : record && record_is_done(record);
    *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    shared_event_release(imported);
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
    struct shared_event *const imported = record ? NULL : acquire_imported(event);
    const bool done =
        imported ? shared_event_wait(imported, shared_event_latest(imported), deadline) : !record || record_wait(record, deadline);
    shared_event_release(imported);
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

/* --- between processes ------------------------------------------------------------------------------------------------ */

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle)
{
    struct record *record;
    struct shared_event *made = NULL;
    uint32_t flags = 0;
    REQUIRE(handle, ERROR_INVALID_PARAM, "handle is null");
    TRY(acquire(__func__, event, &record, &flags));
    record_release(record);
    REQUIRE(flags & ACL_EVENT_IPC, ERROR_INVALID_PARAM, "the event was created without ACL_EVENT_IPC (64)");
    TRY(shared_event_create(&made));
    pthread_mutex_lock(&event_lock);
    struct event *const found = pointer_set_has(&events, event) ? event : NULL;
    const bool imported = found && found->imported;
    if (found && !imported) {
        if (!found->shared) {
            found->shared = made;
            made = NULL;
            if (found->record)
                share_record(found->shared, found->record);
        }
        shared_event_describe(found->shared, handle->reserved, sizeof handle->reserved);
    }
    pthread_mutex_unlock(&event_lock);
    shared_event_release(made);
    REQUIRE(found, ERROR_RT_INVALID_HANDLE, "%p is no event any more", event);
    REQUIRE(!imported, ERROR_RT_FEATURE_UNSUPPORTED, "the event belongs to another process; only that one can hand it on");
    return 0;
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event)
{
    int device;
    struct shared_event *shared;
    REQUIRE(event, ERROR_INVALID_PARAM, "event is null");
    TRY(device_current(&device));
    handle.reserved[sizeof handle.reserved - 1] = '\0';
    TRY(shared_event_open(handle.reserved, &shared));
    return publish(__func__, ACL_EVENT_IPC, shared, event);
}
