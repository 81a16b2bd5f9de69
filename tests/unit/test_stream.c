/* Streams from outside: handles, priorities, order of much queued work, callbacks on the application's threads, errors that a
 * task made. */
#include <pthread.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

static void handles(void)
{
    aclrtStream stream;
    uint32_t priority = 99;
    aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
    CHECK_OK(aclrtCreateStreamWithConfig(&stream, 5, 0));
    CHECK_OK(aclrtStreamGetPriority(stream, &priority));
    CHECK_INT(priority, 5);
    CHECK_OK(aclrtStreamQuery(stream, &status));
    CHECK_INT(status, ACL_STREAM_STATUS_COMPLETE);
    CHECK_OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    CHECK_FAILS(aclrtSynchronizeStreamWithTimeout(stream, -2), ACL_ERROR_INVALID_PARAM, "-2");
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_FAILS(aclrtDestroyStream(stream), ACL_ERROR_RT_INVALID_HANDLE, "is no stream");
    CHECK_FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE, "is no stream");
    CHECK_FAILS(aclrtSynchronizeStream(&stream), ACL_ERROR_RT_INVALID_HANDLE, "is no stream");
    CHECK_FAILS(aclrtDestroyStream(NULL), ACL_ERROR_INVALID_PARAM, "default stream");
    CHECK_FAILS(aclrtCreateStreamWithConfig(&stream, 8, 0), ACL_ERROR_INVALID_PARAM, "priority is 8");
    CHECK_FAILS(aclrtCreateStreamWithConfig(&stream, 0, 0x20), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "0x20");
}

enum { MANY = 20000 };
struct list {
    int next, wrong;
};
struct item {
    struct list *list;
    int number;
};

static void check_next(void *argument)
{
    const struct item *const item = argument;
    item->list->wrong += item->list->next++ != item->number;
}

/* More than the ring holds. */
static void order(void)
{
    aclrtStream stream;
    struct list list = {0, 0};
    struct item *const items = malloc(MANY * sizeof *items);
    CHECK_OK(aclrtCreateStream(&stream));
    for (int i = 0; i < MANY; ++i) {
        items[i] = (struct item){&list, i};
        CHECK_OK(aclrtLaunchHostFunc(stream, check_next, &items[i]));
    }
    CHECK_OK(aclrtSynchronizeDevice());
    CHECK_INT(list.next, MANY);
    CHECK_INT(list.wrong, 0);
    CHECK_OK(aclrtDestroyStream(stream));
    free(items);
}

struct reporter {
    _Atomic bool stop, subscribed;
    aclrtStream stream;
    _Atomic int calls, timeouts;
    pthread_t thread;
};

static void *report_thread(void *argument)
{
    struct reporter *const r = argument;
    CHECK_FAILS(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE, "subscribed to no stream");
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtSubscribeReport((uint64_t)pthread_self(), r->stream));
    r->subscribed = true;
    while (!r->stop) {
        const int code = aclrtProcessReport(5);
        CHECK(code == 0 || code == ACL_ERROR_RT_REPORT_TIMEOUT, "%d", code);
        if (code == 0)
            ++r->calls;
        else
            ++r->timeouts;
    }
    CHECK_OK(aclrtUnSubscribeReport((uint64_t)pthread_self(), r->stream));
    return NULL;
}

static struct reporter reporter;
static _Atomic int on_thread;

static void called_back(void *argument)
{
    on_thread += pthread_equal(pthread_self(), reporter.thread);
    usleep(200);
    ++*(_Atomic int *)argument;
}

struct reading {
    _Atomic int *count;
    int seen;
};

static void read_count(void *argument)
{
    struct reading *const reading = argument;
    reading->seen = *reading->count;
}

static void callbacks(void)
{
    _Atomic int count = 0;
    struct reading reading = {&count, 0};
    CHECK_OK(aclrtCreateStream(&reporter.stream));
    CHECK_FAILS(aclrtLaunchCallback(called_back, &count, ACL_CALLBACK_BLOCK, reporter.stream), ACL_ERROR_RT_STREAM_NO_CB_REG,
                "subscribed");
    pthread_create(&reporter.thread, NULL, report_thread, &reporter);
    while (!reporter.subscribed)
        usleep(100);
    CHECK_FAILS(aclrtSubscribeReport(1, reporter.stream), ACL_ERROR_RT_STREAM_SUBSCRIBE, "already");
    CHECK_OK(aclrtLaunchCallback(called_back, &count, ACL_CALLBACK_NO_BLOCK, reporter.stream));
    CHECK_OK(aclrtLaunchCallback(called_back, &count, ACL_CALLBACK_BLOCK, reporter.stream));
    CHECK_OK(aclrtLaunchHostFunc(reporter.stream, read_count, &reading)); /* behind the blocking one */
    CHECK_OK(aclrtSynchronizeStream(reporter.stream));
    CHECK_INT(reading.seen, 2);
    CHECK_INT(on_thread, 2);
    reporter.stop = true;
    pthread_join(reporter.thread, NULL);
    CHECK_INT(reporter.calls, 2);
    CHECK_FAILS(aclrtUnSubscribeReport(1, reporter.stream), ACL_ERROR_RT_THREAD_SUBSCRIBE, "didn't subscribe");
    CHECK_OK(aclrtDestroyStream(reporter.stream));
}

static void wait_for_itself(void *argument)
{
    CHECK_FAILS(aclrtSynchronizeStream(argument), ACL_ERROR_RT_PARAM_INVALID, "can't wait for its own stream");
    CHECK_FAILS(aclrtDestroyStream(argument), ACL_ERROR_RT_PARAM_INVALID, "can't destroy its own stream");
}

static void from_inside(void)
{
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtLaunchHostFunc(stream, wait_for_itself, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_OK(aclrtDestroyStreamForce(stream));
}

static _Atomic int launched;

static void *launcher(void *argument)
{
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < 2000; ++i) {
        aclrtStreamStatus status;
        CHECK_OK(aclrtMemsetAsync((char *)argument + i % 64, 1, i, 1, NULL));
        CHECK_OK(aclrtStreamQuery(NULL, &status));
        ++launched;
        if (i % 100 == 0)
            CHECK_OK(aclrtSynchronizeStream(NULL));
    }
    return NULL;
}

static void many_threads(void)
{
    char *memory;
    pthread_t threads[4];
    CHECK_OK(aclrtMalloc((void **)&memory, 256, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < 4; ++i)
        pthread_create(&threads[i], NULL, launcher, memory + 64 * i);
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    CHECK_OK(aclrtSynchronizeDevice());
    CHECK_INT(launched, 8000);
    CHECK_INT((unsigned char)memory[63], 1983 % 256);
    CHECK_OK(aclrtFree(memory));
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    handles();
    order();
    callbacks();
    from_inside();
    many_threads();
    CHECK_OK(aclFinalize());
    return check_result();
}
