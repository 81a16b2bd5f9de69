/* aclInit and aclFinalize. See init.h.
 *
 * References and epoch change under init_lock; the epoch is read without it. The end waits for queued work, which may call the
 * application, without the lock: `ending` keeps others out meanwhile. */
#include "runtime/init.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/env.h"
#include "base/error.h"
#include "base/fidelity.h"
#include "base/log.h"
#include "kernels/kernels.h"
#include "runtime/chip.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/stream.h"

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static uint64_t references;
static bool finalized, ending;
static _Atomic uint32_t epoch;
static uint32_t last_epoch;

uint32_t runtime_epoch(void) { return atomic_load_explicit(&epoch, memory_order_acquire); }

int runtime_require(const char *function)
{
    if (__builtin_expect(runtime_epoch() == 0, 0))
        return error_set(ERROR_UNINITIALIZED, function, "the runtime isn't initialized; call aclInit first");
    return 0;
}

/* "baseline avx2 avx512", those that this CPU runs only when asked. */
static void list_kernel_sets(char *text, size_t bytes, bool only_runnable)
{
    int used = 0;
    text[0] = '\0';
    for (int i = 0; kernel_set_at(i); ++i)
        if (!only_runnable || kernel_set_runnable(kernel_set_at(i)->isa))
            used += snprintf(text + used, bytes - (size_t)used, "%s%s", used ? " " : "", kernel_set_at(i)->isa);
}

/* keep: what was chosen before has to stay, as plans depend on it. */
static int choose_kernels(bool keep)
{
    const struct kernel_set *const before = kernels;
    char compiled[128], runnable[128];
    if (kernels_select(env_text(ENV_NPU_ISA)) == 0) {
        const char *const wanted = kernels->isa;
        if (keep && kernels != before) {
            kernels_select(before->isa);
            FAIL(ERROR_INVALID_PARAM, "NPU_ISA asks for %s, but this process began with %s; its plans depend on it", wanted,
                 before->isa);
        }
        LOG_INFO("kernels for %s", kernels->isa);
        return 0;
    }
    list_kernel_sets(compiled, sizeof compiled, false);
    list_kernel_sets(runnable, sizeof runnable, true);
    FAIL(ERROR_INVALID_PARAM, "NPU_ISA=%s can't be used; compiled in: %s; this CPU runs: %s", env_text(ENV_NPU_ISA), compiled,
         runnable);
}

static int check_configuration(const char *path)
{
    REQUIRE(!path || path[0] == '\0' || access(path, R_OK) == 0, ACL_ERROR_INVALID_FILE, "the configuration file %s can't be read",
            path);
    TRY(env_check());
    REQUIRE(chip_profile() != NULL, ERROR_INVALID_PARAM, "ASCEND_SOC=%s is unknown; known are %s", env_text(ENV_ASCEND_SOC),
            chip_names());
    const bool again = last_epoch > 0; /* plans of before may still be there */
    TRY(fidelity_choose(again));
    return choose_kernels(again);
}

/* Takes init_lock once nobody ends the runtime; refuses a task that the end waits for. */
static int lock_runtime(const char *function)
{
    pthread_mutex_lock(&init_lock);
    const bool waited_for = ending && stream_current_executor();
    while (ending && !waited_for)
        pthread_cond_wait(&ended, &init_lock);
    if (!waited_for)
        return 0;
    pthread_mutex_unlock(&init_lock);
    return error_set(ERROR_RT_PARAM_INVALID, function, "the runtime is being finalized, which waits for the task that calls this");
}

aclError aclInit(const char *configPath)
{
    REFUSE_AFTER_FORK();
    log_configure();
    TRY(lock_runtime(__func__));
    int code;
    if (references > 0) {
        ++references;
        code = error_set(ERROR_REPEAT_INITIALIZE, __func__, "the runtime is initialized already");
    } else if ((code = check_configuration(configPath)) == 0 && (code = fork_watch()) == 0) {
        references = 1;
        atomic_store_explicit(&epoch, ++last_epoch, memory_order_release);
    }
    pthread_mutex_unlock(&init_lock);
    return code;
}

/* Called with init_lock, which is given up meanwhile. Failures of queued work have nobody left to tell. */
static void shut_down(void)
{
    ending = true;
    pthread_mutex_unlock(&init_lock);
    if (stream_synchronize_device(-1, -1) != 0)
        LOG_WARNING("work that was queued at aclFinalize failed");
    devices_release();
    pthread_mutex_lock(&init_lock);
    references = 0;
    finalized = true;
    atomic_store_explicit(&epoch, 0, memory_order_release);
    ending = false;
    pthread_cond_broadcast(&ended);
}

static int finalize(const char *function, bool at_once, uint64_t *left)
{
    if (fork_happened())
        return 0;
    TRY(lock_runtime(function));
    const bool last = at_once || references == 1;
    int code = 0;
    if (references == 0)
        code = error_set(finalized ? ACL_ERROR_REPEAT_FINALIZE : ERROR_UNINITIALIZED, function, "the runtime isn't initialized");
    else if (last && stream_current_executor())
        code =
            error_set(ERROR_RT_PARAM_INVALID, function, "a task of a stream can't end the runtime: that would wait for the task");
    else if (last)
        shut_down();
    else
        --references;
    if (left && code == 0)
        *left = references;
    pthread_mutex_unlock(&init_lock);
    return code;
}

aclError aclFinalize(void) { return finalize(__func__, true, NULL); }

aclError aclFinalizeReference(uint64_t *refCount) { return finalize(__func__, false, refCount); }
