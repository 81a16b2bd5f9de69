/* The end of the runtime while work is queued that calls it: refused in words, not a hang; others wait for the end. */
#include <pthread.h>
#include <unistd.h>

#include "acl/acl.h"
#include "check.h"

static _Atomic int init_code = -1, finalize_code = -1, running;

static void call_the_runtime(void *unused)
{
    running = 1;
    usleep(200000); /* aclFinalize waits by now */
    finalize_code = aclFinalize();
    init_code = aclInit(NULL);
}

static void *start_again(void *unused)
{
    while (!running)
        usleep(100);
    usleep(100000);
    CHECK_OK(aclInit(NULL)); /* after the end, not in the middle of it */
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtSynchronizeDevice());
    return NULL;
}

static void end_from_a_task(void *unused)
{
    CHECK_FAILS(aclFinalize(), ACL_ERROR_RT_PARAM_INVALID, "aclFinalize: a task of a stream can't end the runtime");
    CHECK_FAILS(aclFinalizeReference(NULL), ACL_ERROR_RT_PARAM_INVALID, "can't end the runtime");
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE, "already");
    CHECK_OK(aclFinalizeReference(NULL)); /* the one just counted: nothing to wait for */
}

/* Plans of before may still be there: a runtime that starts again can't choose other kernels. */
static void start_otherwise(void)
{
    setenv("NPU_FIDELITY", "fast", 1);
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_INVALID_PARAM, "NPU_FIDELITY=fast, but this process began with ieee");
    setenv("NPU_FIDELITY", "ieee", 1);
    setenv("NPU_ISA", "avx2", 1);
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_INVALID_PARAM, "NPU_ISA");
    unsetenv("NPU_ISA");
    unsetenv("NPU_FIDELITY");
    setenv("NPU_ISA", "baseline", 1);
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclFinalize());
}

int main(void)
{
    pthread_t thread;
    alarm(60);                        /* a hang ends the test */
    setenv("NPU_ISA", "baseline", 1); /* any, as long as there is another one */
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtLaunchHostFunc(NULL, end_from_a_task, NULL));
    CHECK_OK(aclrtSynchronizeStream(NULL));

    CHECK_OK(aclrtLaunchHostFunc(NULL, call_the_runtime, NULL));
    pthread_create(&thread, NULL, start_again, NULL);
    CHECK_OK(aclFinalize());
    CHECK_INT(finalize_code, ACL_ERROR_RT_PARAM_INVALID);
    CHECK_INT(init_code, ACL_ERROR_RT_PARAM_INVALID);
    pthread_join(thread, NULL);
    CHECK_OK(aclFinalize());
    start_otherwise();
    return check_result();
}
