/* Questions to the library itself: versions, errors, logs, element types. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/half.h"
#include "base/log.h"

/* The CANN version that the interface was written to. */
enum { CANN_MAJOR = 8, CANN_MINOR = 5, CANN_RELEASE = 0 };
enum { CANN_NUMBER = CANN_MAJOR * 10000000 + CANN_MINOR * 100000 + CANN_RELEASE * 1000 };
/* Its packages, all of the same version. */
static const char *const packages[] = {"runtime",  "compiler", "hccl",   "toolkit",         "opp",       "opp_kernel",
                                       "ops_math", "ops_nn",   "ops_cv", "ops_transformer", "ops_legacy"};

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
    REQUIRE(majorVersion && minorVersion && patchVersion, ERROR_INVALID_PARAM, "an argument is null");
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return 0;
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
    REQUIRE(version, ERROR_INVALID_PARAM, "version is null");
    REQUIRE((int)name >= ACL_PKG_NAME_CANN && name <= ACL_PKG_NAME_DRIVER, ERROR_INVALID_PARAM, "name is %d; 0 to %d are known",
            (int)name, ACL_PKG_NAME_DRIVER);
    memset(version, 0, sizeof *version);
    snprintf(version->version, sizeof version->version, "%d.%d.%d", CANN_MAJOR, CANN_MINOR, CANN_RELEASE);
    snprintf(version->majorVersion, sizeof version->majorVersion, "%d", CANN_MAJOR);
    snprintf(version->minorVersion, sizeof version->minorVersion, "%d", CANN_MINOR);
    snprintf(version->releaseVersion, sizeof version->releaseVersion, "%d", CANN_RELEASE);
    return 0;
}

static int require_package(const char *function, const char *name, const void *output)
{
    if (!name || !output)
        return error_set(ERROR_INVALID_PARAM, function, "%s is null", name ? "the output pointer" : "pkgName");
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; ++i)
        if (strcmp(packages[i], name) == 0)
            return 0;
    return error_set(ERROR_INVALID_PARAM, function, "there is no package \"%s\"; ops_math and ops_nn are two that there are", name);
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
    TRY(require_package(__func__, pkgName, versionStr));
    snprintf(versionStr, ACL_PKG_VERSION_MAX_SIZE, "%d.%d.%d", CANN_MAJOR, CANN_MINOR, CANN_RELEASE);
    return 0;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
    TRY(require_package(__func__, pkgName, versionNum));
    *versionNum = CANN_NUMBER;
    return 0;
}

const char *aclGetRecentErrMsg(void) { return error_take_text(); }

static int require_thread_level(const char *function, aclrtLastErrLevel level)
{
    if (level != ACL_RT_THREAD_LEVEL)
        return error_set(ERROR_INVALID_PARAM, function, "level is %d; ACL_RT_THREAD_LEVEL (0) is known", (int)level);
    return 0;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
    TRY(require_thread_level(__func__, level));
    return error_last();
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
    TRY(require_thread_level(__func__, level));
    return error_take_last();
}

void aclAppLog(aclLogLevel logLevel, const char *func, const char *file, uint32_t line, const char *fmt, ...)
{
    char where[256];
    va_list arguments;
    if (logLevel < ACL_DEBUG || logLevel > ACL_ERROR || !fmt || !log_is_on((enum log_level)logLevel))
        return;
    const char *const slash = file ? strrchr(file, '/') : NULL;
    snprintf(where, sizeof where, "%s:%u %s", slash ? slash + 1 : file ? file : "", line, func ? func : "");
    va_start(arguments, fmt);
    log_write_list((enum log_level)logLevel, where, fmt, arguments);
    va_end(arguments);
}

float aclFloat16ToFloat(aclFloat16 value) { return half_f16_to_f32(value); }

aclFloat16 aclFloatToFloat16(float value) { return half_f16_from_f32(value); }

size_t aclDataTypeSize(aclDataType dataType)
{
    const enum dtype dtype = dtype_from_acl((int32_t)dataType);
    if (dtype != DTYPE_NONE)
        return dtype_bytes(dtype);
    switch ((int)dataType) { /* types that we know the size of, and no arithmetic */
    case ACL_COMPLEX32: return 4;
    case ACL_UINT16: return 2;
    case ACL_UINT32: return 4;
    case ACL_UINT64: return 8;
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0: return 1;
    default: return 0;
    }
}
