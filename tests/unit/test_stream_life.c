/* The end of streams: what force drops, what a plain end reports, and ends while other threads synchronise the device. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"
#include "runtime/stream.h"

static _Atomic int calls;

static void slow_call(void *unused)
{
    ++calls;
    usleep(20000);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Queued work is dropped: not run, what it owns given back, its events complete. */
static void force_drops_queued_work(void)
{
    enum { QUEUED = 200, BYTES = 1 << 20 };
    aclrtStream stream;
    aclrtEvent event;
    void *memory;
    char *const host = calloc(1, BYTES);
    CHECK_OK(aclrtMalloc(&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateEvent(&event));
    calls = 0;
    for (int i = 0; i < QUEUED; ++i)
        CHECK_OK(aclrtLaunchHostFunc(stream, slow_call, NULL));
    CHECK_OK(aclrtMemcpyAsync(memory, BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, stream)); /* owns a copy of `host` */
    CHECK_OK(aclrtRecordEvent(event, stream));
    const double start = seconds();
    CHECK_OK(aclrtDestroyStreamForce(stream));
    CHECK(seconds() - start < 0.02 * QUEUED / 2, "%g s", seconds() - start);
    CHECK(calls < QUEUED / 2, "%d of %d calls were made", calls, QUEUED);
    CHECK_OK(aclrtSynchronizeEventWithTimeout(event, 1000));
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtFree(memory));
    free(host);
}

static void force_of_a_device_drops_queued_work(void)
{
    CHECK_OK(aclrtSetDevice(2));
    calls = 0;
    for (int i = 0; i < 200; ++i)
        CHECK_OK(aclrtLaunchHostFunc(NULL, slow_call, NULL));
    CHECK_OK(aclrtResetDeviceForce(2));
    CHECK(calls < 100, "%d of 200 calls were made", calls);
    CHECK_OK(aclrtSetDevice(0));
}

static const char *name_of(const struct task *task) { return "a test"; }

static int run_fail(struct task *task)
{
    usleep(2000);
    return error_set(ERROR_RT_DEVICE_TASK, "kernel", "index 9 is out of bounds");
}

/* A failure that nobody synchronised for is returned, and the stream is gone all the same. */
static void the_end_reports_a_failure(void)
{
    static const struct task_class class = {.name = name_of};
    const struct task task = {.run = run_fail, .class = &class, .flags = TASK_QUEUED};
    aclrtStream stream;
    struct stream *target;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(stream_launch(stream, &task));
    CHECK_FAILS(aclrtDestroyStream(stream), ERROR_RT_DEVICE_TASK, "index 9 is out of bounds");
    CHECK_FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE, "is no stream");

    CHECK_OK(aclrtSetDevice(2));
    CHECK_OK(stream_resolve(NULL, &target));
    CHECK_OK(stream_launch(target, &task));
    CHECK_FAILS(aclrtResetDevice(2), ERROR_RT_DEVICE_TASK, "index 9 is out of bounds");
    CHECK_OK(aclrtSetDevice(0));
}

static _Atomic bool over;

static void *synchronize_device(void *unused)
{
    CHECK_OK(aclrtSetDevice(0));
    while (!over)
        CHECK_OK(aclrtSynchronizeDevice());
    return NULL;
}

static void short_call(void *unused) { usleep(300); }

/* Whoever waits for the device keeps a stream's memory, whoever destroys it ends its thread. */
static void ends_while_others_synchronize(void)
{
    pthread_t threads[2];
    over = false;
    for (int i = 0; i < 2; ++i)
        pthread_create(&threads[i], NULL, synchronize_device, NULL);
    for (int i = 0; i < 300; ++i) {
        aclrtStream stream;
        CHECK_OK(aclrtCreateStream(&stream));
        CHECK_OK(aclrtLaunchHostFunc(stream, short_call, NULL));
        CHECK_OK(i % 2 ? aclrtDestroyStream(stream) : aclrtDestroyStreamForce(stream));
    }
    over = true;
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    force_drops_queued_work();
    force_of_a_device_drops_queued_work();
    the_end_reports_a_failure();
    ends_while_others_synchronize();
    CHECK_OK(aclFinalize());
    return check_result();
}
