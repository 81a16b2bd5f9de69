/* Fork detection. See fork.h. */
#include "runtime/fork.h"

#include <pthread.h>

#include "base/error.h"
#include "base/pool.h"
#include "tensor/awaited.h"

int fork_flag;

static void child_after_fork(void)
{
    fork_flag = 1;
    pool_forget_after_fork();
    awaited_forget_after_fork();
}

int fork_watch(void)
{
    static bool watching; /* under aclInit's lock */
    if (!watching)
        REQUIRE(pthread_atfork(NULL, NULL, child_after_fork) == 0, ERROR_BAD_ALLOC, "pthread_atfork failed");
    watching = true;
    return 0;
}

int fork_refuse(const char *what)
{
    return error_set(ERROR_RT_CONTEXT_NULL, what,
                     "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' "
                     "start method");
}
