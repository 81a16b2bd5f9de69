/* Several threads make, record, await, query and destroy the same events at random, on shared streams: handles go stale under
 * their hands, and still nothing is followed that is dead and no stream waits for ever. (A record that others could see before it was
 * queued made a stream wait for itself.) */
#include <pthread.h>
#include <stdatomic.h>

#include "acl/acl.h"
#include "check.h"

enum { THREADS = 4, EVENTS = 16, STREAMS = 3, STEPS = 3000, BYTES = 4096 };

static void *_Atomic events[EVENTS];
static aclrtStream streams[STREAMS];
static char *memory[STREAMS];

static void exchange(int which, aclrtEvent event)
{
    aclrtEvent const before = atomic_exchange(&events[which], event);
    if (before)
        CHECK_OK(aclrtDestroyEvent(before));
}

/* Codes of stale handles are expected; the calls must only come back. */
static void step(uint64_t random)
{
    const int which = (int)(random % EVENTS), at = (int)((random >> 16) % STREAMS);
    aclrtEvent event = events[which];
    aclrtEventRecordedStatus status;
    aclrtEventWaitStatus waiting;
    float ms;
    void *host;
    switch (random >> 8 & 15) {
    case 0:
        CHECK_OK(aclrtCreateEvent(&event));
        exchange(which, event);
        break;
    case 1:
        if (random >> 24 & 7)
            (void)aclrtEventElapsedTime(&ms, event, events[(which + 1) % EVENTS]);
        else
            exchange(which, NULL);
        break;
    case 2: (void)aclrtResetEvent(event, streams[at]); break;
    case 3: (void)aclrtSynchronizeEventWithTimeout(event, 20); break;
    case 4:
        (void)aclrtQueryEventStatus(event, &status);
        (void)aclrtQueryEventWaitStatus(event, &waiting);
        break;
    case 5:
        CHECK_OK(aclrtMallocHost(&host, BYTES));
        CHECK_OK(aclrtMemcpyAsync(memory[at], BYTES, host, BYTES, ACL_MEMCPY_HOST_TO_DEVICE, streams[at]));
        CHECK_OK(aclrtFreeHost(host));
        break;
    case 6:
    case 7:
    case 8:
    case 9: (void)aclrtStreamWaitEvent(streams[at], event); break;
    default: (void)aclrtRecordEvent(event, streams[at]);
    }
}

static void *steps(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < STEPS; ++i)
        step(check_random(&state));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < STREAMS; ++i) {
        CHECK_OK(aclrtCreateStream(&streams[i]));
        CHECK_OK(aclrtMalloc((void **)&memory[i], BYTES, ACL_MEM_MALLOC_HUGE_FIRST));
    }
    for (uintptr_t i = 0; i < THREADS; ++i)
        pthread_create(&threads[i], NULL, steps, (void *)(i + 1));
    for (int i = 0; i < THREADS; ++i)
        pthread_join(threads[i], NULL);
    CHECK_OK(aclrtSynchronizeDeviceWithTimeout(60000));
    for (int i = 0; i < EVENTS; ++i)
        exchange(i, NULL);
    for (int i = 0; i < STREAMS; ++i)
        CHECK_OK(aclrtFree(memory[i]));
    if (check_failures == 0)
        CHECK_OK(aclFinalize());
    return check_result();
}
