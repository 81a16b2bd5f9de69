/* The life of plans: launches that fail give them back, repeatable ones keep each launch's workspace and outlive their handle. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/plan.h"
#include "check.h"

enum { FAILING = 10000, WORKSPACE = 64 };

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

static struct aclOpExecutor *make(plan_run_fn run, bool repeatable)
{
    struct plan *plan;
    struct aclOpExecutor *executor = NULL;
    uint64_t bytes = 0;
    void *extra;
    CHECK_OK(plan_begin(OPERATOR_Add, run, &bytes, &executor, &plan));
    CHECK_OK(plan_extra(plan, 16, &extra));
    CHECK_OK(plan_finish(plan, WORKSPACE, &bytes, &executor));
    if (repeatable)
        CHECK_OK(aclSetAclOpExecutorRepeatable(executor));
    return executor;
}

static char workspaces[3][WORKSPACE];

static int launch(struct aclOpExecutor *executor, int number, void *stream)
{
    return plan_launch(OPERATOR_Add, workspaces[number], WORKSPACE, executor, stream);
}

/* Each launch writes its name into the workspace that it was given. Two at a time would mix them up. */
static int run_mark(struct plan *plan)
{
    char *const workspace = plan->workspace;
    ++*(int *)plan->extra;
    usleep(300);
    CHECK(plan->workspace == workspace, "the workspace changed during a run");
    ++workspace[0];
    return 0;
}

static int run_fail(struct plan *plan) { return error_set(ERROR_RT_DEVICE_TASK, "kernel", "index 9 is out of bounds"); }

static void launches_that_fail_leak_nothing(aclrtStream dead, aclrtStream alive)
{
    long before = 0;
    for (int i = 0; i < FAILING + 100; ++i) {
        if (i == 100)
            before = resident_bytes();
        CHECK_INT(launch(make(run_mark, false), 0, dead), ACL_ERROR_RT_INVALID_HANDLE);
        (void)error_take_text();
    }
    CHECK(resident_bytes() - before < 4 << 20, "%ld bytes more", resident_bytes() - before);

    /* In a forked child the stream is known, but nothing can be launched. */
    CHECK_OK(launch(make(run_mark, false), 0, alive));
    CHECK_OK(aclrtSynchronizeStream(alive));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < FAILING + 100; ++i) {
            if (i == 100)
                before = resident_bytes();
            CHECK_INT(launch(make(run_mark, false), 0, alive), ACL_ERROR_RT_CONTEXT_NULL);
            (void)error_take_text();
        }
        CHECK(resident_bytes() - before < 4 << 20, "%ld bytes more in the child", resident_bytes() - before);
        _exit(check_failures != 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
}

static void wait_for_flag(void *flag)
{
    while (!*(_Atomic int *)flag)
        usleep(100);
}

/* Three launches queued together, then the handle is destroyed while they wait. */
static void repeatable_launches_keep_their_workspace(aclrtStream first, aclrtStream second, plan_run_fn run)
{
    _Atomic int released = 0;
    memset(workspaces, 0, sizeof workspaces);
    struct aclOpExecutor *const executor = make(run, true);
    CHECK_OK(aclSetAclOpExecutorRepeatable(executor)); /* twice is once */
    CHECK_OK(aclrtLaunchHostFunc(first, wait_for_flag, &released));
    CHECK_OK(aclrtLaunchHostFunc(second, wait_for_flag, &released));
    for (int round = 0; round < 20; ++round)
        for (int i = 0; i < 3; ++i)
            CHECK_OK(launch(executor, i, (round + i) % 2 ? first : second));
    CHECK_OK(aclDestroyAclOpExecutor(executor));
    for (int i = 0; i < 100; ++i) { /* would take the plan's memory if it were free */
        struct aclOpExecutor *const other = make(run, false);
        CHECK(other != executor, "a plan that is queued was given out again");
        CHECK_OK(aclDestroyAclOpExecutor(other));
    }
    released = 1;
    const int expected = run == run_mark ? 0 : ERROR_RT_DEVICE_TASK;
    CHECK_INT(aclrtSynchronizeStream(first), expected);
    CHECK_INT(aclrtSynchronizeStream(second), expected);
    (void)error_take_text();
    for (int i = 0; i < 3; ++i)
        CHECK_INT(workspaces[i][0], run == run_mark ? 20 : 0);
}

static void refusals_leave_the_plan(aclrtStream stream)
{
    struct aclOpExecutor *const executor = make(run_mark, false);
    CHECK_FAILS(plan_launch(OPERATOR_Add, NULL, WORKSPACE, executor, stream), ACLNN_ERROR_NULLPTR, "workspace is null");
    CHECK_FAILS(plan_launch(OPERATOR_Add, workspaces[0], 1, executor, stream), ACLNN_ERROR_PARAM, "64 are needed");
    CHECK_OK(launch(executor, 0, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
}

int main(void)
{
    aclrtStream first, second, dead;
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&first));
    CHECK_OK(aclrtCreateStream(&second));
    CHECK_OK(aclrtCreateStream(&dead));
    CHECK_OK(aclrtDestroyStream(dead));
    launches_that_fail_leak_nothing(dead, first);
    repeatable_launches_keep_their_workspace(first, second, run_mark);
    repeatable_launches_keep_their_workspace(first, second, run_fail);
    refusals_leave_the_plan(first);
    CHECK_OK(aclrtDestroyStream(first));
    CHECK_OK(aclrtDestroyStream(second));
    CHECK_OK(aclFinalize());
    return check_result();
}
