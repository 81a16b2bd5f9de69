/* Values that streams write and wait for, batches of copies, limits of time, and streams that stop behind a failure. */
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

static aclrtStream first, second;

static void values(void)
{
    uint64_t *words, seen = 0;
    CHECK_OK(aclrtMalloc((void **)&words, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset(words, 64, 0, 64));
    CHECK_OK(aclrtValueWait(words, 5, ACL_STREAM_WAIT_VALUE_GEQ, first));
    CHECK_OK(aclrtValueWrite(words + 1, 77, 0, first));
    aclrtStreamStatus status;
    usleep(20000);
    CHECK_OK(aclrtStreamQuery(first, &status));
    CHECK_INT(status, ACL_STREAM_STATUS_NOT_READY);
    CHECK_OK(aclrtValueWrite(words, 6, 0, second));
    CHECK_OK(aclrtSynchronizeStreamWithTimeout(first, 20000));
    CHECK_OK(aclrtMemcpy(&seen, 8, words + 1, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_INT(seen, 77);
    CHECK_OK(aclrtValueWait(words, 6, ACL_STREAM_WAIT_VALUE_EQ, first));
    CHECK_OK(aclrtValueWait(words, 2, ACL_STREAM_WAIT_VALUE_AND, first));
    CHECK_OK(aclrtValueWait(words, 1, ACL_STREAM_WAIT_VALUE_NOR, first));
    CHECK_OK(aclrtSynchronizeStreamWithTimeout(first, 20000));
    CHECK_FAILS(aclrtValueWait(words, 1, 4, first), ACL_ERROR_INVALID_PARAM, "flag is 4");
    CHECK_FAILS(aclrtValueWrite((char *)words + 4, 1, 0, first), ACL_ERROR_INVALID_PARAM, "multiple of 8");
    CHECK_FAILS(aclrtValueWrite(&seen, 1, 0, first), ACL_ERROR_INVALID_PARAM, "not device memory");
    CHECK_OK(aclrtFree(words));
}

static void batches(void)
{
    char host[4][16] = {"zero", "one", "two", "three"}, back[4][16] = {"", "", "", ""}, *device;
    void *to[4], *from[4], *again[4];
    size_t rooms[4] = {16, 16, 16, 16}, sizes[4] = {16, 16, 16, 16}, starts[2] = {0, 2}, failed;
    aclrtMemcpyBatchAttr up = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE}, .srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}};
    aclrtMemcpyBatchAttr down = {.dstLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}, .srcLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtMemcpyBatchAttr mixed[2] = {up, down};
    CHECK_OK(aclrtMalloc((void **)&device, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < 4; ++i) {
        to[i] = device + 16 * i;
        from[i] = host[i];
        again[i] = back[i];
    }
    CHECK_OK(aclrtMemcpyBatch(to, rooms, from, sizes, 4, &up, starts, 1, &failed));
    CHECK(failed == SIZE_MAX, "%zu", failed);
    CHECK_OK(aclrtMemcpyBatchAsync(again, rooms, to, sizes, 4, &down, starts, 1, &failed, first));
    CHECK_OK(aclrtSynchronizeStream(first));
    CHECK(memcmp(host, back, sizeof host) == 0, "bytes changed on their way");
    to[2] = back[0]; /* device to host from copy 2 on */
    from[2] = device + 48;
    to[3] = back[1];
    CHECK_FAILS(aclrtMemcpyBatch(to, rooms, from, sizes, 4, mixed, starts, 2, &failed), ACL_ERROR_INVALID_PARAM,
                "not device memory");
    CHECK_INT(failed, 3);
    CHECK(strcmp(back[0], "three") == 0, "%s", back[0]);
    starts[1] = 4;
    CHECK_FAILS(aclrtMemcpyBatch(to, rooms, from, sizes, 4, mixed, starts, 2, &failed), ACL_ERROR_INVALID_PARAM, "attrsIndexes");
    CHECK_OK(aclrtFree(device));
}

static void sleep_long(void *argument) { usleep(*(unsigned *)argument); }

static void times(void)
{
    unsigned long_time = 400000;
    aclrtEvent event;
    uint64_t actual;
    CHECK_OK(aclrtSetOpExecuteTimeOutV2(50000, &actual));
    CHECK_OK(aclrtLaunchHostFunc(first, sleep_long, &long_time));
    CHECK_FAILS(aclrtSynchronizeStream(first), ACL_ERROR_RT_AICORE_TIMEOUT, "aclrtSetOpExecuteTimeOut");
    CHECK_OK(aclrtSetOpExecuteTimeOut(0));
    CHECK_OK(aclrtSynchronizeStream(first));

    unsigned longer = 1500000;
    CHECK_OK(aclrtSetOpWaitTimeout(1));
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtLaunchHostFunc(first, sleep_long, &longer));
    CHECK_OK(aclrtRecordEvent(event, first));
    CHECK_OK(aclrtStreamWaitEvent(second, event));
    CHECK_FAILS(aclrtSynchronizeStream(second), ACL_ERROR_RT_WAIT_TIMEOUT, "within 1 s");
    CHECK_OK(aclrtSetOpWaitTimeout(0));
    CHECK_OK(aclrtSynchronizeStream(first));
    CHECK_OK(aclrtDestroyEvent(event));
}

/* The failed wait of above, once with a stream that goes on behind it, once with one that stops. */
static void stops(uint64_t mode, uint64_t expected)
{
    unsigned longer = 1200000;
    aclrtEvent event;
    uint64_t *word, seen = 9;
    CHECK_OK(aclrtMalloc((void **)&word, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset(word, 8, 0, 8));
    CHECK_OK(aclrtSetStreamFailureMode(second, mode));
    CHECK_OK(aclrtSetOpWaitTimeout(1));
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtLaunchHostFunc(first, sleep_long, &longer));
    CHECK_OK(aclrtRecordEvent(event, first));
    CHECK_OK(aclrtStreamWaitEvent(second, event));
    CHECK_OK(aclrtValueWrite(word, 1, 0, second));
    CHECK_FAILS(aclrtSynchronizeStream(second), ACL_ERROR_RT_WAIT_TIMEOUT, "within 1 s");
    CHECK_OK(aclrtMemcpy(&seen, 8, word, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_INT(seen, expected);
    CHECK_OK(aclrtValueWrite(word, 2, 0, second)); /* reported: the stream works again */
    CHECK_OK(aclrtSynchronizeStream(second));
    CHECK_OK(aclrtMemcpy(&seen, 8, word, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_INT(seen, 2);
    CHECK_OK(aclrtSetOpWaitTimeout(0));
    CHECK_OK(aclrtSynchronizeStream(first));
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtFree(word));
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&first));
    CHECK_OK(aclrtCreateStream(&second));
    values();
    batches();
    times();
    stops(ACL_CONTINUE_ON_FAILURE, 1);
    stops(ACL_STOP_ON_FAILURE, 0);
    CHECK_OK(aclrtDestroyStream(first));
    CHECK_OK(aclrtDestroyStream(second));
    CHECK_OK(aclFinalize());
    return check_result();
}
