/* Switches that programs set and read back: of the operator compiler (texts), of the operator library and of the collectives
 * (numbers). They are kept for the process; option_lock guards all of them.
 *
 * None changes what the kernels compute: those are compiled already, deterministic, and reduce in a fixed order. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_op_compiler.h"
#include "acl/acl_rt.h"
#include "base/error.h"
#include "hccl/hccl.h"
#include "runtime/device.h"

enum { COMPILE_OPTIONS = ACL_OP_DEBUG_OPTION + 1, SYSTEM_OPTIONS = ACL_OPT_STRONG_CONSISTENCY + 1, LEVELS_OF_DETERMINISM = 3 };

static pthread_mutex_t option_lock = PTHREAD_MUTEX_INITIALIZER;
static char *compile_options[COMPILE_OPTIONS]; /* owned; NULL: not set */
static int64_t system_options[SYSTEM_OPTIONS];

/* Called with the lock. Operators don't compile when they first run, and programs look at that option. */
static const char *compile_option(unsigned option)
{
    if (option < COMPILE_OPTIONS && compile_options[option])
        return compile_options[option];
    return option == ACL_OP_JIT_COMPILE ? "disable" : "";
}

static int require_compile_option(const char *function, int option)
{
    if (option < 0 || option >= COMPILE_OPTIONS)
        return error_set(ERROR_INVALID_PARAM, function, "opt is %d; 0 to %d are known", option, COMPILE_OPTIONS - 1);
    return 0;
}

aclError aclSetCompileopt(aclCompileOpt opt, const char *value)
{
    TRY(require_compile_option(__func__, (int)opt));
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    char *const copy = strdup(value);
    REQUIRE(copy, ERROR_BAD_ALLOC, "out of host memory");
    pthread_mutex_lock(&option_lock);
    char *const before = compile_options[opt];
    compile_options[opt] = copy;
    pthread_mutex_unlock(&option_lock);
    free(before);
    return 0;
}

size_t aclGetCompileoptSize(aclCompileOpt opt)
{
    if (require_compile_option(__func__, (int)opt) != 0)
        return 0;
    pthread_mutex_lock(&option_lock);
    const size_t bytes = strlen(compile_option(opt)) + 1;
    pthread_mutex_unlock(&option_lock);
    return bytes;
}

aclError aclGetCompileopt(aclCompileOpt opt, char *value, size_t length)
{
    TRY(require_compile_option(__func__, (int)opt));
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    pthread_mutex_lock(&option_lock);
    const char *const text = compile_option(opt);
    const size_t bytes = strlen(text) + 1;
    if (bytes <= length)
        memcpy(value, text, bytes);
    pthread_mutex_unlock(&option_lock);
    REQUIRE(bytes <= length, ERROR_INVALID_PARAM, "length is %zu; the option takes %zu bytes (aclGetCompileoptSize)", length,
            bytes);
    return 0;
}

static int require_system_option(const char *function, int option)
{
    if (option < 0 || option >= SYSTEM_OPTIONS)
        return error_set(ERROR_INVALID_PARAM, function, "opt is %d; 0 to %d are known", option, SYSTEM_OPTIONS - 1);
    return 0;
}

static void store(int64_t *place, int64_t value)
{
    pthread_mutex_lock(&option_lock);
    *place = value;
    pthread_mutex_unlock(&option_lock);
}

static int64_t load(const int64_t *place)
{
    pthread_mutex_lock(&option_lock);
    const int64_t value = *place;
    pthread_mutex_unlock(&option_lock);
    return value;
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    TRY(require_system_option(__func__, (int)opt));
    store(&system_options[opt], value);
    return 0;
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    TRY(require_system_option(__func__, (int)opt));
    *value = load(&system_options[opt]);
    return 0;
}

_Static_assert((int)SYSTEM_OPTIONS <= (int)CONTEXT_OPTIONS, "a context has room for every option");

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value)
{
    int64_t *options;
    TRY(require_system_option(__func__, (int)opt));
    TRY(device_context_options(&options));
    store(&options[opt], value);
    return 0;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t *value)
{
    int64_t *options;
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    TRY(require_system_option(__func__, (int)opt));
    TRY(device_context_options(&options));
    *value = load(&options[opt]);
    return 0;
}

/* What may be asked of collectives holds whatever is asked: their results don't depend on timing. */
HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue)
{
    if (config == HCCL_DETERMINISTIC && configValue.value >= 0 && configValue.value < LEVELS_OF_DETERMINISM)
        return HCCL_SUCCESS;
    error_set(ERROR_INVALID_PARAM, __func__, "config %d with value %d; HCCL_DETERMINISTIC (0) with 0 to %d is known", (int)config,
              configValue.value, LEVELS_OF_DETERMINISM - 1);
    return HCCL_E_PARA;
}
