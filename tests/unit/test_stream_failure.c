/* A task that fails parks its error: later readers of its output are skipped, others run, the next synchronise reports it once. */
#include "check.h"

#include <pthread.h>

#include "acl/acl.h"
#include "base/error.h"
#include "runtime/device.h"
#include "runtime/stream.h"

struct memory {
    float bad[4], from_bad[4], good[4];
};

static const char *name_of(const struct task *task) { return task->detail ? "second" : "first"; }

static void ranges_of(const struct task *task, void (*visit)(void *, const char *, const char *, bool), void *context)
{
    if (task->a)
        visit(context, task->a, (const char *)task->a + 16, false);
    visit(context, task->out, (const char *)task->out + 16, true);
}

static const struct task_class class = {.name = name_of, .ranges = ranges_of};

static int run_fail(struct task *task) { return error_set(ERROR_RT_DEVICE_TASK, "kernel", "index 9 is out of bounds"); }

static int run_fill(struct task *task)
{
    for (int i = 0; i < 4; ++i)
        ((float *)task->out)[i] = (float)task->immediate.f64;
    return 0;
}

static struct task make(int (*run)(struct task *), void *out, const void *in, double value, uint8_t flags)
{
    return (struct task){.run = run, .class = &class, .out = out, .a = in, .immediate.f64 = value, .flags = flags, .count = 4};
}

static void failure_is_reported_once_and_readers_are_skipped(uint8_t flags)
{
    struct stream *s;
    struct memory m;
    memset(&m, 0, sizeof m);
    CHECK(stream_create(0, 1, &s) == 0, "create");
    const struct task tasks[] = {make(run_fail, m.bad, NULL, 0, flags), make(run_fill, m.from_bad, m.bad, 1, flags),
                                 make(run_fill, m.good, NULL, 2, flags)};
    for (int i = 0; i < 3; ++i)
        CHECK(stream_launch(s, &tasks[i]) == 0, "launch %d", i);
    CHECK(stream_synchronize(s, -1) == ERROR_RT_DEVICE_TASK, "the failure isn't reported");
    const char *text = error_take_text();
    CHECK(text && strstr(text, "index 9 is out of bounds") && strncmp(text, "first: failed", 13) == 0, "text is %s",
          text ? text : "none");
    CHECK(m.from_bad[0] == 0 && m.good[3] == 2, "reader %g, other %g", (double)m.from_bad[0], (double)m.good[3]);
    CHECK(stream_synchronize(s, -1) == 0, "reported twice");
    const struct task again = make(run_fill, m.from_bad, m.bad, 3, flags);
    CHECK(stream_launch(s, &again) == 0 && stream_synchronize(s, -1) == 0 && m.from_bad[1] == 3, "the stream doesn't work on");
    CHECK(stream_destroy(s, false) == 0, "destroy");
}

static int run_fail_twice(struct task *task)
{
    error_set(ERROR_RT_DEVICE_TASK, "kernel", "the cause");
    return error_set(ERROR_RT_DEVICE_TASK, "kernel", "the consequence");
}

/* A task that runs in the caller's thread leaves the caller's own words and code alone, and takes none of them along. */
static void failures_in_the_caller_are_not_the_callers(void)
{
    struct stream *s;
    struct memory m;
    CHECK(stream_create(0, 1, &s) == 0, "create");
    error_set(111, "mine", "an older mistake");
    error_set(222, "mine", "a mistake\nin two lines");
    const struct task task = make(run_fail_twice, m.bad, NULL, 0, TASK_SMALL);
    CHECK(stream_launch(s, &task) == 0, "launch");
    CHECK_INT(error_last(), 222);
    const char *text = error_take_text();
    CHECK(text && strcmp(text, "mine: a mistake\nin two lines\nmine: an older mistake") == 0, "%s", text ? text : "none");
    error_set(333, "mine", "a later mistake");
    CHECK_INT(stream_synchronize(s, -1), ERROR_RT_DEVICE_TASK);
    text = error_take_text();
    CHECK(text && strstr(text, "kernel: the consequence\nkernel: the cause\nmine: a later mistake"), "%s", text ? text : "none");
    CHECK(text && !strstr(text, "an older mistake"), "%s", text);
    CHECK(stream_destroy(s, false) == 0, "destroy");
    (void)error_take_last();
}

/* A stream that stops at failures drops records of events: they complete, once. */
static void a_stopped_stream_completes_its_events(uint8_t flags)
{
    aclrtStream stream;
    aclrtEvent event;
    struct memory m;
    memset(&m, 0, sizeof m);
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
    const struct task tasks[] = {make(run_fail, m.bad, NULL, 0, flags), make(run_fill, m.good, NULL, 2, flags)};
    for (int i = 0; i < 2; ++i)
        CHECK_OK(stream_launch(stream, &tasks[i]));
    for (int i = 0; i < 3; ++i)
        CHECK_OK(aclrtRecordEvent(event, stream));
    CHECK_OK(aclrtSynchronizeEventWithTimeout(event, 10000));
    CHECK_FAILS(aclrtSynchronizeStream(stream), ERROR_RT_DEVICE_TASK, "index 9 is out of bounds");
    CHECK(m.good[3] == 0, "%g", (double)m.good[3]);
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtDestroyStream(stream));
}

static int run_count(struct task *task)
{
    ++*(int64_t *)task->out; /* not atomic: one executor at a time is what the stream promises */
    return 0;
}

struct producer {
    struct stream *stream;
    int64_t *counter;
    uint8_t flags;
};

static void *produce(void *argument)
{
    const struct producer *const p = argument;
    for (int i = 0; i < 20000; ++i) {
        const struct task task = {
            .run = run_count, .class = &class, .out = p->counter, .flags = i % 3 ? p->flags : (uint8_t)(TASK_SMALL ^ p->flags)};
        CHECK(stream_launch(p->stream, &task) == 0, "launch");
        if (i % 997 == 0)
            CHECK(stream_synchronize(p->stream, -1) == 0, "synchronize");
    }
    return NULL;
}

/* More tasks than the ring holds, inline and queued mixed, from several threads: none lost, none at the same time. */
static void several_producers_share_one_stream(void)
{
    struct stream *s;
    int64_t counter = 0;
    pthread_t threads[3];
    CHECK(stream_create(0, 1, &s) == 0, "create");
    struct producer p[3] = {{s, &counter, TASK_SMALL}, {s, &counter, 0}, {s, &counter, TASK_SMALL}};
    for (int i = 0; i < 3; ++i)
        CHECK(pthread_create(&threads[i], NULL, produce, &p[i]) == 0, "thread");
    for (int i = 0; i < 3; ++i)
        pthread_join(threads[i], NULL);
    CHECK(stream_synchronize(s, -1) == 0, "synchronize");
    CHECK(counter == 60000, "%lld of 60000 tasks ran", (long long)counter);
    CHECK(stream_destroy(s, false) == 0, "destroy");
}

static void a_destroyed_handle_is_refused(void)
{
    struct stream *s, *resolved;
    CHECK(stream_create(0, 1, &s) == 0, "create");
    CHECK(stream_resolve(s, &resolved) == 0 && resolved == s, "resolve");
    CHECK(stream_destroy(s, false) == 0, "destroy");
    CHECK(stream_resolve(s, &resolved) == ERROR_RT_INVALID_HANDLE, "a dead handle was accepted");
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK(device_set_current(0) == 0, "device");
    failure_is_reported_once_and_readers_are_skipped(TASK_QUEUED);
    failure_is_reported_once_and_readers_are_skipped(TASK_SMALL);
    a_stopped_stream_completes_its_events(TASK_QUEUED);
    a_stopped_stream_completes_its_events(TASK_SMALL);
    failures_in_the_caller_are_not_the_callers();
    several_producers_share_one_stream();
    a_destroyed_handle_is_refused();
    return check_result();
}
