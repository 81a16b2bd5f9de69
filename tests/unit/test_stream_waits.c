/* Waiting for streams: woken when the work is done, not for each task; limits of the environment; names of the threads. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/futex.h"
#include "check.h"
#include "runtime/stream.h"

static const char *name_of(const struct task *task) { return "a test"; }
static const struct task_class class = {.name = name_of};

static int run_busy(struct task *task)
{
    const int64_t end = clock_nanoseconds() + task->count;
    while (clock_nanoseconds() < end)
        cpu_relax();
    return 0;
}

static long voluntary_switches(void)
{
    struct rusage usage;
    CHECK_INT(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

/* A waiter looks again every 2 ms at most; being woken by every task would be 900 times. */
static void a_waiter_sleeps_through_other_tasks(void)
{
    enum { TASKS = 900 };
    const struct task task = {.run = run_busy, .class = &class, .count = 50000, .flags = TASK_QUEUED};
    struct stream *stream;
    CHECK_OK(stream_create(0, 1, &stream));
    for (int i = 0; i < TASKS; ++i)
        CHECK_OK(stream_launch(stream, &task));
    const long before = voluntary_switches();
    const int64_t start = clock_nanoseconds();
    CHECK_OK(stream_synchronize(stream, -1));
    const long naps = (clock_nanoseconds() - start) / 2000000;
    CHECK(voluntary_switches() - before < naps + TASKS / 4, "woken %ld times, looked %ld times itself",
          voluntary_switches() - before, naps);
    CHECK_OK(stream_destroy(stream, false));
}

struct waiter {
    struct stream *stream;
    _Atomic int launched, done;
    pthread_t thread;
};

static void *wait_often(void *argument)
{
    struct waiter *const w = argument;
    const struct task task = {.run = run_busy, .class = &class, .count = 20000, .flags = TASK_QUEUED};
    for (int i = 0; i < 300; ++i) {
        CHECK_OK(stream_launch(w->stream, &task));
        CHECK_OK(stream_synchronize(w->stream, -1));
    }
    return NULL;
}

/* Several threads sleep for different positions of one stream. */
static void several_waiters(void)
{
    struct waiter waiters[4];
    struct stream *stream;
    CHECK_OK(stream_create(0, 1, &stream));
    for (int i = 0; i < 4; ++i) {
        waiters[i].stream = stream;
        pthread_create(&waiters[i].thread, NULL, wait_often, &waiters[i]);
    }
    for (int i = 0; i < 4; ++i)
        pthread_join(waiters[i].thread, NULL);
    CHECK_OK(stream_destroy(stream, false));
}

static void wait_for_flag(void *flag)
{
    while (!*(_Atomic int *)flag)
        usleep(100);
}

static void the_environment_limits_waits(void)
{
    _Atomic int released = 0;
    aclrtStream stream;
    setenv("ACL_STREAM_TIMEOUT", "30", 1);
    CHECK_OK(aclrtCreateStream(&stream));
    unsetenv("ACL_STREAM_TIMEOUT");
    CHECK_OK(aclrtLaunchHostFunc(stream, wait_for_flag, &released));
    CHECK_FAILS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "30 ms");
    CHECK_FAILS(aclrtSynchronizeDevice(), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "30 ms");
    CHECK_FAILS(aclrtSynchronizeStreamWithTimeout(stream, 10), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "10 ms");
    released = 1;
    CHECK_OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
    CHECK_OK(aclrtDestroyStream(stream));
}

/* How many threads of this process have a name that starts so, all names different? */
static int threads_named(const char *prefix)
{
    int found = 0;
    char seen[16][32] = {""};
    DIR *const folder = opendir("/proc/self/task");
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *const file = fopen(path, "r");
        if (file && fscanf(file, "%31s", name) == 1 && strncmp(name, prefix, strlen(prefix)) == 0 && found < 16) {
            for (int i = 0; i < found; ++i)
                CHECK(strcmp(seen[i], name) != 0, "two threads are named %s", name);
            strcpy(seen[found++], name);
        }
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
    return found;
}

static void threads_have_names(void)
{
    _Atomic int released = 1;
    aclrtStream streams[3];
    for (int i = 0; i < 3; ++i) {
        CHECK_OK(aclrtCreateStream(&streams[i]));
        CHECK_OK(aclrtLaunchHostFunc(streams[i], wait_for_flag, &released));
        CHECK_OK(aclrtSynchronizeStream(streams[i]));
    }
    CHECK_INT(threads_named("npu-stream-"), 3);
    for (int i = 0; i < 3; ++i)
        CHECK_OK(aclrtDestroyStream(streams[i]));
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    a_waiter_sleeps_through_other_tasks();
    several_waiters();
    the_environment_limits_waits();
    threads_have_names();
    CHECK_OK(aclFinalize());
    return check_result();
}
