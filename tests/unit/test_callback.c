/* Callbacks whose thread or stream goes away: each is freed once, nobody waits for ever, a new stream starts without a thread. */
#include <pthread.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

static uint64_t this_thread(void) { return (uint64_t)pthread_self(); }

static void wait_for_flag(void *flag)
{
    while (!*(_Atomic int *)flag)
        usleep(100);
}

static void count_call(void *count) { ++*(_Atomic int *)count; }

/* The subscription ends while the callback is still behind other work. */
static void unsubscribed_before_its_turn(void)
{
    _Atomic int released = 0, calls = 0;
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtLaunchHostFunc(stream, wait_for_flag, &released));
    CHECK_OK(aclrtSubscribeReport(this_thread(), stream));
    CHECK_OK(aclrtLaunchCallback(count_call, &calls, ACL_CALLBACK_BLOCK, stream));
    CHECK_OK(aclrtUnSubscribeReport(this_thread(), stream));
    released = 1;
    CHECK_FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_NO_CB_REG, "no thread is subscribed to the stream any more");
    CHECK_INT(calls, 0);
    CHECK_OK(aclrtDestroyStream(stream));
}

/* The thread that should run a blocking callback destroys the stream instead. */
static void destroyed_by_its_subscriber(void)
{
    _Atomic int calls = 0;
    aclrtStream stream;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtSubscribeReport(this_thread(), stream));
    CHECK_OK(aclrtLaunchCallback(count_call, &calls, ACL_CALLBACK_BLOCK, stream));
    usleep(20000); /* the stream waits for the callback, most probably */
    const int code = aclrtDestroyStream(stream);
    CHECK(code == 0 || code == ACL_ERROR_RT_STREAM_NO_CB_REG, "%d", code);
    CHECK_INT(calls, 0);
    CHECK_FAILS(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE, "subscribed to no stream");
}

static _Atomic(aclrtStream) to_subscribe;

/* Another thread runs its callbacks until the stream is gone. */
static void *report_thread(void *unused)
{
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtSubscribeReport(this_thread(), to_subscribe));
    to_subscribe = NULL;
    int code;
    while ((code = aclrtProcessReport(10)) == 0 || code == ACL_ERROR_RT_REPORT_TIMEOUT)
        ;
    CHECK_INT(code, ACL_ERROR_RT_THREAD_SUBSCRIBE);
    return NULL;
}

static void destroyed_while_another_thread_reports(void)
{
    _Atomic int calls = 0;
    aclrtStream stream;
    pthread_t thread;
    CHECK_OK(aclrtCreateStream(&stream));
    to_subscribe = stream;
    pthread_create(&thread, NULL, report_thread, NULL);
    while (to_subscribe)
        usleep(100);
    for (int i = 0; i < 10; ++i)
        CHECK_OK(aclrtLaunchCallback(count_call, &calls, ACL_CALLBACK_BLOCK, stream));
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_INT(calls, 10);
    pthread_join(thread, NULL);
}

/* A stream that was made where another one died has no subscriber; the default stream of a device that was reset neither. */
static void a_new_stream_has_no_subscriber(void)
{
    for (int i = 0; i < 50; ++i) {
        aclrtStream stream;
        CHECK_OK(aclrtSetDevice(1));
        CHECK_OK(aclrtSubscribeReport(this_thread(), NULL));
        CHECK_OK(aclrtCreateStream(&stream));
        CHECK_OK(aclrtSubscribeReport(this_thread(), stream));
        CHECK_OK(aclrtDestroyStream(stream));
        CHECK_OK(aclrtResetDevice(1));
    }
    CHECK_OK(aclrtSetDevice(0));
    CHECK_FAILS(aclrtProcessReport(0), ACL_ERROR_RT_THREAD_SUBSCRIBE, "subscribed to no stream");
}

int main(void)
{
    alarm(60); /* a hang ends the test */
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    unsubscribed_before_its_turn();
    destroyed_by_its_subscriber();
    destroyed_while_another_thread_reports();
    a_new_stream_has_no_subscriber();
    CHECK_OK(aclFinalize());
    return check_result();
}
