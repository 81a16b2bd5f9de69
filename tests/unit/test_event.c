/* Events: order between streams, both query forms, times, records made again, handles that are dead. */
#include <pthread.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

enum { ALL = ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void pass_gate(void *unused)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void expect_state(aclrtEvent event, bool complete)
{
    aclrtEventStatus older;
    aclrtEventRecordedStatus newer;
    CHECK_OK(aclrtQueryEvent(event, &older));
    CHECK_OK(aclrtQueryEventStatus(event, &newer));
    CHECK_INT(older, complete ? 0 : 1);
    CHECK_INT(newer, complete ? 1 : 0);
}

/* A closed gate holds the first stream; the second must not run past the event. */
static void order(aclrtStream first, aclrtStream second)
{
    aclrtEvent event;
    aclrtEventWaitStatus waiting;
    int *memory, result = 0;
    CHECK_OK(aclrtMalloc((void **)&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtCreateEventExWithFlag(&event, ALL));
    expect_state(event, false); /* not recorded */
    CHECK_OK(aclrtStreamWaitEvent(second, event));
    CHECK_OK(aclrtSynchronizeEvent(event));
    CHECK_OK(aclrtSynchronizeStream(second));

    pthread_mutex_lock(&gate);
    CHECK_OK(aclrtLaunchHostFunc(first, pass_gate, NULL));
    CHECK_OK(aclrtMemsetAsync(memory, 4, 7, 4, first));
    CHECK_OK(aclrtRecordEvent(event, first));
    CHECK_OK(aclrtStreamWaitEvent(second, event));
    CHECK_OK(aclrtMemcpyAsync(memory + 1, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, second));
    expect_state(event, false);
    CHECK_OK(aclrtQueryEventWaitStatus(event, &waiting));
    CHECK_INT(waiting, ACL_EVENT_WAIT_STATUS_NOT_READY);
    CHECK_FAILS(aclrtSynchronizeEventWithTimeout(event, 20), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "20 ms");
    CHECK_FAILS(aclrtSynchronizeStreamWithTimeout(second, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "20 ms");
    pthread_mutex_unlock(&gate);
    CHECK_OK(aclrtSynchronizeStream(second));
    expect_state(event, true);
    CHECK_OK(aclrtQueryEventWaitStatus(event, &waiting));
    CHECK_INT(waiting, ACL_EVENT_WAIT_STATUS_COMPLETE);
    CHECK_OK(aclrtMemcpy(&result, 4, memory + 1, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_INT(result, 0x07070707);
    CHECK_OK(aclrtResetEvent(event, first));
    expect_state(event, false);
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtFree(memory));
}

/* Who waits for a record isn't released by a later record of the same event on an idle stream, nor by its destruction. */
static void recorded_again(aclrtStream first, aclrtStream second, aclrtStream third)
{
    aclrtEvent event;
    int *memory, result = 0;
    CHECK_OK(aclrtMalloc((void **)&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset(memory, 8, 0, 8));
    CHECK_OK(aclrtCreateEvent(&event));
    pthread_mutex_lock(&gate);
    CHECK_OK(aclrtLaunchHostFunc(first, pass_gate, NULL));
    CHECK_OK(aclrtMemsetAsync(memory, 4, 1, 4, first));
    CHECK_OK(aclrtRecordEvent(event, first));
    CHECK_OK(aclrtStreamWaitEvent(second, event));
    CHECK_OK(aclrtMemcpyAsync(memory + 1, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_DEVICE, second));
    CHECK_OK(aclrtRecordEvent(event, third));
    CHECK_OK(aclrtSynchronizeEvent(event)); /* the latest record: the third stream is idle */
    CHECK_OK(aclrtDestroyEvent(event));
    usleep(2000);
    pthread_mutex_unlock(&gate);
    CHECK_OK(aclrtSynchronizeStream(second));
    CHECK_OK(aclrtMemcpy(&result, 4, memory + 1, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK_INT(result, 0x01010101);
    CHECK_OK(aclrtFree(memory));
}

/* Whoever synchronised the stream finds its events complete, at once. */
static void complete_after_synchronize(aclrtStream stream)
{
    enum { BYTES = 128 << 10 };
    aclrtEvent event;
    char *memory;
    int late = 0;
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtMalloc((void **)&memory, BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    for (int i = 0; i < 2000; ++i) {
        aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        CHECK_OK(aclrtMemsetAsync(memory, BYTES, i, BYTES, stream));
        CHECK_OK(aclrtRecordEvent(event, stream));
        CHECK_OK(aclrtSynchronizeStream(stream));
        CHECK_OK(aclrtQueryEventStatus(event, &status));
        late += status != ACL_EVENT_RECORDED_STATUS_COMPLETE;
    }
    CHECK_INT(late, 0);
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtFree(memory));
}

static void sleep_10_ms(void *unused) { usleep(10000); }

static void times(aclrtStream stream)
{
    aclrtEvent start, end, untimed;
    float ms = -1;
    uint64_t before = 0, after = 0;
    CHECK_OK(aclrtCreateEventWithFlag(&start, ALL));
    CHECK_OK(aclrtCreateEventWithFlag(&end, ALL));
    CHECK_OK(aclrtCreateEventWithFlag(&untimed, ACL_EVENT_SYNC));
    CHECK_OK(aclrtRecordEvent(start, stream));
    CHECK_OK(aclrtSynchronizeEvent(start));
    CHECK_FAILS(aclrtEventElapsedTime(&ms, start, end), ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "endEvent hasn't been recorded");
    CHECK_OK(aclrtLaunchHostFunc(stream, sleep_10_ms, NULL));
    CHECK_OK(aclrtRecordEvent(end, stream));
    CHECK_OK(aclrtRecordEvent(untimed, stream));
    CHECK_OK(aclrtSynchronizeEvent(untimed));
    CHECK_OK(aclrtEventElapsedTime(&ms, start, end));
    CHECK(ms >= 10 && ms < 5000, "10 ms took %f", (double)ms);
    CHECK_OK(aclrtEventGetTimestamp(start, &before));
    CHECK_OK(aclrtEventGetTimestamp(end, &after));
    CHECK(after - before >= 10000 && after - before <= (uint64_t)(ms * 1000) + 1, "%llu us", (unsigned long long)(after - before));
    CHECK_FAILS(aclrtEventElapsedTime(&ms, end, start), ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL, "before startEvent");
    CHECK_FAILS(aclrtEventElapsedTime(&ms, start, untimed), ACL_ERROR_INVALID_PARAM, "ACL_EVENT_TIME_LINE");
    CHECK_OK(aclrtDestroyEvent(start));
    CHECK_OK(aclrtDestroyEvent(end));
    CHECK_OK(aclrtDestroyEvent(untimed));
    CHECK_FAILS(aclrtDestroyEvent(start), ACL_ERROR_RT_INVALID_HANDLE, "is no event");
    CHECK_FAILS(aclrtRecordEvent(start, stream), ACL_ERROR_RT_INVALID_HANDLE, "is no event");
    CHECK_FAILS(aclrtRecordEvent(&ms, stream), ACL_ERROR_RT_INVALID_HANDLE, "is no event");
    CHECK_FAILS(aclrtStreamWaitEvent(stream, NULL), ACL_ERROR_RT_INVALID_HANDLE, "is no event");
    CHECK_FAILS(aclrtCreateEventWithFlag(&start, ACL_EVENT_EXTERNAL), ACL_ERROR_INVALID_PARAM, "0x20");
}

enum { ROUNDS = 400, STREAMS = 3 };
static aclrtStream ring[STREAMS];

static void add_one(void *argument) { ++*(int *)argument; }

/* A token goes round the streams, ordered by events only; every step adds one without any lock. */
static void *relay(void *unused)
{
    int counter = 0;
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < ROUNDS; ++i) {
        aclrtEvent event;
        CHECK_OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
        CHECK_OK(aclrtLaunchHostFunc(ring[i % STREAMS], add_one, &counter));
        CHECK_OK(aclrtRecordEvent(event, ring[i % STREAMS]));
        CHECK_OK(aclrtStreamWaitEvent(ring[(i + 1) % STREAMS], event));
        CHECK_OK(aclrtDestroyEvent(event));
    }
    CHECK_OK(aclrtSynchronizeStream(ring[ROUNDS % STREAMS]));
    CHECK_INT(counter, ROUNDS);
    return NULL;
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < STREAMS; ++i)
        CHECK_OK(aclrtCreateStreamWithConfig(&ring[i], (uint32_t)i, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
    order(ring[0], ring[1]);
    order(NULL, ring[2]);
    recorded_again(ring[0], ring[1], ring[2]);
    complete_after_synchronize(ring[0]);
    times(ring[0]);
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
        pthread_create(&threads[i], NULL, relay, NULL);
    relay(NULL);
    for (int i = 0; i < 3; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < STREAMS; ++i)
        CHECK_OK(aclrtDestroyStream(ring[i]));
    CHECK_OK(aclFinalize());
    return check_result();
}
