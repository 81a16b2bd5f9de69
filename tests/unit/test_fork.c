/* A forked child may free what it inherited, and exit; using the device is refused in words that name spawn. And: the end of a
 * process with queued work is clean. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/pool.h"
#include "check.h"

/* In a child, what other threads of the parent had in their hands looks leaked; and a child needn't wait before it exits. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "atexit_sleep_ms=0"; }

static struct {
    void *device, *host;
    aclrtStream stream;
    aclrtEvent event;
} parent;

static void count_items(void *argument, int64_t begin, int64_t end) { *(_Atomic int64_t *)argument += end - begin; }

static int in_child(void)
{
    const char spawn[] = "you must use the 'spawn' start method";
    void *memory;
    aclrtStream stream;
    aclrtEvent event;
    int32_t device;
    uint32_t count;
    char byte = 0;
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_RT_CONTEXT_NULL, "Cannot re-initialize NPU in forked subprocess");
    CHECK_FAILS(aclrtSetDevice(0), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtMallocHost(&memory, 8), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtMemcpy(&byte, 1, parent.device, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtMemsetAsync(parent.device, 1, 0, 1, parent.stream), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtSynchronizeStream(parent.stream), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtCreateEvent(&event), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_FAILS(aclrtRecordEvent(parent.event, parent.stream), ACL_ERROR_RT_CONTEXT_NULL, spawn);
    CHECK_OK(aclrtGetDeviceCount(&count)); /* asks nobody */
    CHECK_OK(aclrtFree(parent.device));
    CHECK_OK(aclrtFreeHost(parent.host));
    CHECK_OK(aclrtDestroyEvent(parent.event));
    CHECK_OK(aclrtDestroyStream(parent.stream));
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
    CHECK(((char *)parent.host)[0] == 7, "host memory is the child's own copy");
    ((char *)parent.host)[0] = 8;
    _Atomic int64_t sum = 0;
    pool_for(1000, 10, count_items, &sum);
    CHECK_INT(sum, 1000);
    return check_result();
}

static int run_child(int (*body)(void))
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        exit(body());
    waitpid(child, &status, 0);
    return status;
}

static _Atomic bool busy;

static void *keep_busy(void *unused)
{
    CHECK_OK(aclrtSetDevice(0));
    while (busy) { /* takes every lock there is, all the time */
        void *memory, *host;
        aclrtEvent event;
        CHECK_OK(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
        CHECK_OK(aclrtMallocHost(&host, 4096));
        CHECK_OK(aclrtCreateEvent(&event));
        CHECK_OK(aclrtMemcpyAsync(memory, 4096, host, 4096, ACL_MEMCPY_HOST_TO_DEVICE, parent.stream));
        CHECK_OK(aclrtRecordEvent(event, parent.stream));
        CHECK_OK(aclrtSynchronizeEvent(event));
        CHECK_OK(aclrtDestroyEvent(event));
        CHECK_OK(aclrtFreeHost(host));
        CHECK_OK(aclrtFree(memory));
    }
    return NULL;
}

static void sleep_long(void *unused) { usleep(300000); }

static int exit_with_queued_work(void)
{
    aclrtStream stream;
    char *memory;
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtMalloc((void **)&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtLaunchHostFunc(stream, sleep_long, NULL));
    for (int i = 0; i < 500; ++i)
        CHECK_OK(aclrtMemsetAsync(memory, 1 << 20, i, 1 << 20, stream));
    return check_result();
}

int main(void)
{
    CHECK_INT(run_child(exit_with_queued_work), 0); /* forked before the start: a life of its own */
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&parent.stream));
    CHECK_OK(aclrtCreateEvent(&parent.event));
    CHECK_OK(aclrtMalloc(&parent.device, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMallocHost(&parent.host, 4096));
    memset(parent.host, 7, 4096);
    busy = true;
    pthread_t thread;
    pthread_create(&thread, NULL, keep_busy, NULL);
    for (int i = 0; i < 20; ++i)
        CHECK_INT(run_child(in_child), 0);
    busy = false;
    pthread_join(thread, NULL);
    CHECK(((char *)parent.host)[0] == 7, "a child wrote into the parent's memory");
    CHECK_OK(aclrtMemset(parent.device, 4096, 1, 4096)); /* the parent isn't disturbed */
    CHECK_OK(aclrtFree(parent.device));
    CHECK_OK(aclrtFreeHost(parent.host));
    CHECK_OK(aclFinalize());
    return check_result();
}
