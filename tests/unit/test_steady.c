/* Nothing grows: 20,000 failing calls, and threads, streams, events and blocks that come and go. Memory, descriptors and threads
 * are compared after a warm-up and at the end. */
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MAY_GROW = 512 << 20 }; /* they keep freed memory back */
#else
enum { MAY_GROW = 1 << 20 };
#endif

static long resident_bytes(void)
{
    long size = 0, resident = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%ld %ld", &size, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident * sysconf(_SC_PAGESIZE);
}

static int entries(const char *path)
{
    int count = 0;
    DIR *const folder = opendir(path);
    while (folder && readdir(folder))
        ++count;
    if (folder)
        closedir(folder);
    return count;
}

static void *short_thread(void *unused)
{
    int32_t device;
    void *memory;
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "no device");
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtMalloc(&memory, 100000, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMemset(memory, 100000, 1, 100000));
    CHECK_OK(aclrtFree(memory));
    return NULL;
}

static void round_trip(void)
{
    aclrtStream stream;
    aclrtEvent event;
    aclrtContext own, context;
    void *memory, *host;
    pthread_t thread;
    for (int i = 0; i < 50; ++i) {
        CHECK_FAILS(aclrtSetDevice(99), ACL_ERROR_RT_INVALID_DEVICEID, "99");
        CHECK_FAILS(aclrtFree(&stream), ACL_ERROR_INVALID_PARAM, "not device memory");
    }
    CHECK_OK(aclrtGetCurrentContext(&own));
    CHECK_OK(aclrtCreateContext(&context, 1));
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK_OK(aclrtDestroyContext(context));
    CHECK_OK(aclrtSetCurrentContext(own));
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateEvent(&event));
    CHECK_OK(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK_OK(aclrtMallocHost(&host, 1 << 20));
    CHECK_OK(aclrtMemcpyAsync(memory, 1 << 20, host, 1 << 20, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_OK(aclrtRecordEvent(event, stream));
    CHECK_OK(aclrtStreamWaitEvent(NULL, event));
    CHECK_OK(aclrtFreeHost(host));
    CHECK_OK(aclrtDestroyEvent(event));
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtFree(memory));
    pthread_create(&thread, NULL, short_thread, NULL);
    pthread_join(thread, NULL);
    CHECK_OK(aclrtSynchronizeDevice());
}

int main(void)
{
    long memory = 0;
    int descriptors = 0, threads = 0;
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int i = 0; i < 200; ++i) {
        round_trip();
        if (i == 50) {
            memory = resident_bytes();
            descriptors = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    usleep(20000); /* joined threads leave /proc a moment later */
    CHECK(resident_bytes() - memory <= MAY_GROW, "%ld bytes more", resident_bytes() - memory);
    CHECK_INT(entries("/proc/self/fd"), descriptors);
    CHECK_INT(entries("/proc/self/task"), threads);
    CHECK_OK(aclFinalize());
    return check_result();
}
