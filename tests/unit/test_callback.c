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

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    unsubscribed_before_its_turn();
    CHECK_OK(aclFinalize());
    return check_result();
}
