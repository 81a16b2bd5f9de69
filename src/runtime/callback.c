/* Host functions in stream order: on a thread of the runtime, or on one that the application offers.
 *
 * A thread that subscribed to a stream has a report: a queue of callbacks, which aclrtProcessReport empties. `lock` guards the
 * list of reports and everything in them; `changed` is signalled when a callback comes in or was run. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "base/error.h"
#include "base/futex.h"
#include "runtime/callback.h"
#include "runtime/fork.h"
#include "runtime/stream.h"

struct callback {
    aclrtCallback function;
    void *data;
    bool *finished; /* of the task that waits for it, or NULL; the callback is freed by who ran it */
    struct callback *next;
};

struct subscription {
    uint64_t thread;
    struct stream *stream;
    struct callback *first, **last;
    struct subscription *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct subscription *subscriptions;

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* --- aclrtLaunchHostFunc ------------------------------------------------------------------------------------------ */

static const char *function_name(const struct task *task) { return "aclrtLaunchHostFunc"; }

static int function_run(struct task *task)
{
    aclrtHostFunc function;
    memcpy(&function, &task->immediate, sizeof function);
    function(task->out);
    return 0;
}

static const struct task_class function_class = {.name = function_name};

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
    struct stream *target;
    REQUIRE(fn, ERROR_INVALID_PARAM, "fn is null");
    TRY(stream_resolve(stream, &target));
    struct task task = {.run = function_run, .class = &function_class, .out = args, .flags = TASK_QUEUED};
    memcpy(&task.immediate, &fn, sizeof fn);
    return stream_launch(target, &task);
}

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* Called with the lock. thread 0: any. */
static struct subscription *find(const struct stream *stream, uint64_t thread)
{
    for (struct subscription *s = subscriptions; s; s = s->next)
        if ((!stream || s->stream == stream) && (!thread || s->thread == thread))
            return s;
    return NULL;
}

static void free_callbacks(struct callback *callback)
{
    while (callback) {
        struct callback *const next = callback->next;
        if (callback->finished)
            *callback->finished = true;
        free(callback);
        callback = next;
    }
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    struct stream *target;
    REQUIRE(threadId != 0, ERROR_INVALID_PARAM, "threadId is 0");
    TRY(stream_resolve(stream, &target));
    pthread_once(&once, make_condition);
    struct subscription *const made = calloc(1, sizeof *made);
    REQUIRE(made, ERROR_BAD_ALLOC, "out of host memory");
    *made = (struct subscription){.thread = threadId, .stream = target};
    made->last = &made->first;
    pthread_mutex_lock(&lock);
    const bool taken = find(target, 0) != NULL;
    if (!taken) {
        made->next = subscriptions;
        subscriptions = made;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (taken)
        free(made);
    REQUIRE(!taken, ACL_ERROR_RT_STREAM_SUBSCRIBE, "the stream has a thread for its callbacks already");
    return 0;
}

/* thread 0: whichever is subscribed. False: none. */
static bool unsubscribe(const struct stream *stream, uint64_t thread)
{
    struct subscription *found = NULL;
    pthread_mutex_lock(&lock);
    for (struct subscription **link = &subscriptions; *link && !found; link = found ? link : &(*link)->next)
        if ((*link)->stream == stream && (!thread || (*link)->thread == thread)) {
            found = *link;
            *link = found->next;
        }
    if (found) {
        free_callbacks(found->first); /* nobody will run them; tasks that wait for them go on */
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return found != NULL;
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
    if (fork_happened())
        return 0;
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    REQUIRE(threadId != 0 && unsubscribe(target, threadId), ACL_ERROR_RT_THREAD_SUBSCRIBE,
            "thread %llu didn't subscribe to this stream", (unsigned long long)threadId);
    return 0;
}

void callback_forget_stream(const struct stream *stream, uint64_t thread) { unsubscribe(stream, thread); }

static const char *callback_name(const struct task *task) { return "aclrtLaunchCallback"; }

static void callback_drop(struct task *task) { free(task->out); }

/* Hands the callback to the subscribed thread, and waits for it when the stream is blocked by it. */
static int callback_run(struct task *task)
{
    struct callback *const callback = task->out;
    const bool blocks = task->detail == ACL_CALLBACK_BLOCK;
    bool finished = false;
    pthread_mutex_lock(&lock);
    struct subscription *const report = find(task->immediate.pointer, 0);
    if (report) {
        callback->finished = blocks ? &finished : NULL;
        *report->last = callback;
        report->last = &callback->next;
        pthread_cond_broadcast(&changed);
        while (blocks && !finished)
            pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
    if (!report) /* the stream drops the task, and callback_drop frees the callback */
        return error_set(ACL_ERROR_RT_STREAM_NO_CB_REG, "aclrtLaunchCallback", "no thread is subscribed to the stream any more");
    return 0;
}

static const struct task_class callback_class = {.name = callback_name, .drop = callback_drop};

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream)
{
    struct stream *target;
    REQUIRE(fn, ERROR_INVALID_PARAM, "fn is null");
    REQUIRE(blockType == ACL_CALLBACK_NO_BLOCK || blockType == ACL_CALLBACK_BLOCK, ERROR_INVALID_PARAM,
            "blockType is %d; 0 (no block) and 1 (block) are known", (int)blockType);
    TRY(stream_resolve(stream, &target));
    pthread_once(&once, make_condition);
    pthread_mutex_lock(&lock);
    const bool subscribed = find(target, 0) != NULL;
    pthread_mutex_unlock(&lock);
    REQUIRE(subscribed, ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread is subscribed to the stream; call aclrtSubscribeReport first");
    struct callback *const callback = calloc(1, sizeof *callback);
    REQUIRE(callback, ERROR_BAD_ALLOC, "out of host memory");
    callback->function = fn;
    callback->data = userData;
    struct task task = {.run = callback_run,
                        .class = &callback_class,
                        .out = callback,
                        .immediate.pointer = target,
                        .detail = (uint32_t)blockType,
                        .flags = TASK_QUEUED};
    const int code = stream_launch(target, &task);
    if (code != 0)
        free(callback);
    return code;
}

/* Called with the lock: the oldest callback of a report of this thread. */
static struct callback *take(uint64_t thread)
{
    for (struct subscription *s = subscriptions; s; s = s->next)
        if (s->thread == thread && s->first) {
            struct callback *const callback = s->first;
            s->first = callback->next;
            if (!s->first)
                s->last = &s->first;
            return callback;
        }
    return NULL;
}

/* Called with the lock. NULL: the time is up. */
static struct callback *wait_for_callback(uint64_t thread, int64_t timeout)
{
    const int64_t deadline = timeout < 0 ? INT64_MAX : clock_nanoseconds() + timeout * 1000000;
    const struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    struct callback *callback = take(thread);
    while (!callback) {
        const int code = timeout < 0 ? pthread_cond_wait(&changed, &lock) : pthread_cond_timedwait(&changed, &lock, &until);
        callback = take(thread);
        if (code == ETIMEDOUT)
            break;
    }
    return callback;
}

aclError aclrtProcessReport(int32_t timeout)
{
    REFUSE_AFTER_FORK();
    REQUIRE(timeout >= -1, ERROR_INVALID_PARAM, "timeout is %d; it is milliseconds, or -1 for ever", timeout);
    const uint64_t thread = (uint64_t)pthread_self();
    pthread_once(&once, make_condition);
    pthread_mutex_lock(&lock);
    const bool subscribed = find(NULL, thread) != NULL;
    struct callback *const callback = subscribed ? wait_for_callback(thread, timeout) : NULL;
    pthread_mutex_unlock(&lock);
    REQUIRE(subscribed, ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread is subscribed to no stream");
    if (!callback)
        return ACL_ERROR_RT_REPORT_TIMEOUT; /* the usual end of a poll: no words */
    callback->function(callback->data);
    pthread_mutex_lock(&lock);
    if (callback->finished)
        *callback->finished = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    free(callback);
    return 0;
}
