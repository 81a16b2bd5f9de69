/* Versions, error texts and codes, logs, element types. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/log.h"
#include "check.h"

/* The core's names of codes and upstream's agree. */
static void codes(void)
{
    CHECK_INT(ERROR_INVALID_PARAM, ACL_ERROR_INVALID_PARAM);
    CHECK_INT(ERROR_UNINITIALIZED, ACL_ERROR_UNINITIALIZE);
    CHECK_INT(ERROR_REPEAT_INITIALIZE, ACL_ERROR_REPEAT_INITIALIZE);
    CHECK_INT(ERROR_BAD_ALLOC, ACL_ERROR_BAD_ALLOC);
    CHECK_INT(ERROR_API_NOT_SUPPORT, ACL_ERROR_API_NOT_SUPPORT);
    CHECK_INT(ERROR_RT_PARAM_INVALID, ACL_ERROR_RT_PARAM_INVALID);
    CHECK_INT(ERROR_RT_INVALID_DEVICE, ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_INT(ERROR_RT_CONTEXT_NULL, ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_INT(ERROR_RT_INVALID_HANDLE, ACL_ERROR_RT_INVALID_HANDLE);
    CHECK_INT(ERROR_RT_WAIT_TIMEOUT, ACL_ERROR_RT_WAIT_TIMEOUT);
    CHECK_INT(ERROR_RT_FEATURE_UNSUPPORTED, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    CHECK_INT(ERROR_RT_MEMORY_ALLOCATION, ACL_ERROR_RT_MEMORY_ALLOCATION);
    CHECK_INT(ERROR_RT_STREAM_SYNC_TIMEOUT, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    CHECK_INT(ERROR_RT_EVENT_SYNC_TIMEOUT, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    CHECK_INT(ERROR_RT_DEVICE_TASK, ACL_ERROR_RT_AICORE_EXCEPTION);
    CHECK_INT(ERROR_INTERNAL, ACL_ERROR_INTERNAL_ERROR);
}

static void versions(void)
{
    aclCANNPackageVersion version;
    char package[] = "ops_math", unknown[] = "ops_of_nobody", text[ACL_PKG_VERSION_MAX_SIZE];
    int32_t major = -1, minor = -1, patch = -1, number = 0;
    CHECK_OK(aclrtGetVersion(&major, &minor, &patch));
    CHECK(major == 1 && minor == 17 && patch == 0, "%d.%d.%d", major, minor, patch);
    CHECK_OK(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version));
    CHECK(strcmp(version.version, "8.5.0") == 0, "%s", version.version);
    CHECK(strcmp(version.minorVersion, "5") == 0, "%s", version.minorVersion);
    CHECK_FAILS(aclsysGetCANNVersion((aclCANNPackageName)8, &version), ACL_ERROR_INVALID_PARAM, "name is 8");
    CHECK_OK(aclsysGetVersionStr(package, text));
    CHECK_OK(aclsysGetVersionNum(package, &number));
    CHECK(number == 80500000 && strcmp(text, version.version) == 0, "%s, %d", text, number);
    CHECK_FAILS(aclsysGetVersionStr(unknown, text), ACL_ERROR_INVALID_PARAM, "ops_of_nobody");
    CHECK_FAILS(aclsysGetVersionNum(unknown, &number), ACL_ERROR_INVALID_PARAM, "ops_of_nobody");
}

/* Two texts can be held one after the other; long ones are cut, not overrun. */
static void texts(void)
{
    error_set(1, "first", "one");
    const char *const given = aclGetRecentErrMsg();
    CHECK(strcmp(given, "first: one") == 0, "%s", given);
    error_set(2, "second", "two");
    CHECK(strcmp(given, "first: one") == 0, "a new error changed a text that was handed out: %s", given);
    error_set(3, "core_third", "three"); /* the core's prefix isn't shown */
    CHECK(strcmp(aclGetRecentErrMsg(), "third: three\nsecond: two") == 0, "newest first");
    CHECK(aclGetRecentErrMsg() == NULL, "cleared");
    char *const large = malloc(100000);
    memset(large, 'x', 99999);
    large[99999] = '\0';
    for (int i = 0; i < 3; ++i)
        error_set(4, "large", "%s", large);
    CHECK_INT(strlen(aclGetRecentErrMsg()), 2047);

    /* What was added since a mark, also when the older words were cut, read meanwhile, or are too many to count. */
    char taken[4096];
    error_set(5, "old", "words");
    struct error_mark mark = error_here();
    error_take_since(mark, taken, sizeof taken);
    CHECK(taken[0] == '\0' && error_last() == 5, "%s", taken);
    error_set(6, "large", "%s", large);
    error_set(6, "new", "words");
    error_take_since(mark, taken, sizeof taken);
    CHECK(strlen(taken) == 2047 && strncmp(taken, "new: words\nlarge: xxx", 20) == 0, "%s", taken);
    CHECK(aclGetRecentErrMsg() == NULL, "cut words come back");
    mark = error_here();
    error_set(7, "lost", "words");
    CHECK(aclGetRecentErrMsg() != NULL, "words");
    error_set(7, "new", "words");
    error_take_since(mark, taken, sizeof taken);
    CHECK(strcmp(taken, "new: words") == 0 && error_last() == 5, "%s", taken);
    error_set(8, "old", "words");
    mark = error_here();
    for (int i = 0; i < 40; ++i)
        error_set(9, "n", "%d", i);
    error_take_since(mark, taken, 12);
    CHECK(strcmp(taken, "n: 39\nn: 38") == 0 || strcmp(taken, "n: 39\nn: 3") == 0, "%s", taken);
    CHECK(aclGetRecentErrMsg() == NULL && error_take_last() == 8, "too many to count");
    free(large);
    CHECK_INT(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
    CHECK_FAILS(aclrtGetLastError((aclrtLastErrLevel)1), ACL_ERROR_INVALID_PARAM, "level is 1");
}

/* What the body writes to a file descriptor. */
static void capture(int descriptor, void (*body)(void), char *text, size_t bytes)
{
    char path[] = "/tmp/npu-log-XXXXXX";
    fflush(NULL);
    const int file = mkstemp(path), saved = dup(descriptor);
    dup2(file, descriptor);
    body();
    fflush(NULL);
    dup2(saved, descriptor);
    const ssize_t length = pread(file, text, bytes - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(file);
    close(saved);
    unlink(path);
}

static void write_logs(void)
{
    log_configure();
    LOG_DEBUG("a detail %d", 1);
    LOG_WARNING("a warning %d", 2);
    ACL_APP_LOG(ACL_ERROR, "an application's %s", "error");
    error_set(5, "function", "a failure");
    (void)error_take_text();
}

static void logs(void)
{
    char text[4096];
    unsetenv("ASCEND_GLOBAL_LOG_LEVEL");
    unsetenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    capture(STDERR_FILENO, write_logs, text, sizeof text);
    CHECK(text[0] == '\0', "nothing was asked for: %s", text);
    setenv("ASCEND_GLOBAL_LOG_LEVEL", "2", 1);
    capture(STDERR_FILENO, write_logs, text, sizeof text);
    CHECK(strstr(text, "[WARNING] NPU(") && strstr(text, "[write_logs] a warning 2\n"), "%s", text);
    CHECK(strstr(text, "test_inquiry.c:") && strstr(text, "write_logs] an application's error\n"), "%s", text);
    CHECK(strstr(text, "[ERROR]") && strstr(text, "5 function: a failure\n"), "%s", text);
    CHECK(!strstr(text, "a detail"), "%s", text);
    setenv("ASCEND_GLOBAL_LOG_LEVEL", "0", 1);
    setenv("ASCEND_SLOG_PRINT_TO_STDOUT", "1", 1);
    capture(STDOUT_FILENO, write_logs, text, sizeof text);
    CHECK(strstr(text, "[DEBUG]") && strstr(text, "a detail 1\n"), "%s", text);
    setenv("ASCEND_GLOBAL_LOG_LEVEL", "4", 1);
    capture(STDOUT_FILENO, write_logs, text, sizeof text);
    CHECK(text[0] == '\0', "level 4 is silence: %s", text);
    setenv("ASCEND_GLOBAL_LOG_LEVEL", "5", 1);
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_INVALID_PARAM, "ASCEND_GLOBAL_LOG_LEVEL=5 isn't a number from 0 to 4");
    unsetenv("ASCEND_GLOBAL_LOG_LEVEL");
    unsetenv("ASCEND_SLOG_PRINT_TO_STDOUT");
    log_configure();
}

static void element_types(void)
{
    static const struct {
        int type;
        size_t bytes;
    } sizes[] = {
        {ACL_FLOAT, 4}, {ACL_FLOAT16, 2},   {ACL_BF16, 2},         {ACL_DOUBLE, 8}, {ACL_INT8, 1},
        {ACL_BOOL, 1},  {ACL_COMPLEX64, 8}, {ACL_COMPLEX128, 16},  {ACL_UINT64, 8}, {ACL_UINT16, 2},
        {ACL_INT4, 0},  {ACL_STRING, 0},    {ACL_DT_UNDEFINED, 0}, {99, 0},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i)
        CHECK(aclDataTypeSize((aclDataType)sizes[i].type) == sizes[i].bytes, "type %d: %zu", sizes[i].type,
              aclDataTypeSize((aclDataType)sizes[i].type));
    CHECK_INT(aclFloatToFloat16(1.5f), 0x3e00);
    CHECK_NEAR(aclFloat16ToFloat(0x3e00), 1.5, 0);
    const aclCannAttr *list = NULL;
    size_t count = 0;
    int32_t value = -1;
    CHECK_OK(aclGetCannAttributeList(&list, &count));
    CHECK_INT(count, 3);
    CHECK_OK(aclGetCannAttribute(ACL_CANN_ATTR_INF_NAN, &value));
    CHECK_INT(value, 1);
    CHECK_OK(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &value));
    CHECK_INT(value, 0);
    CHECK_FAILS(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &value), ACL_ERROR_INVALID_PARAM, "cannAttr is -1");
}

/* The profile is chosen once, hence the processes. */
static void bfloat16(void)
{
    static const char *const chips[] = {"Ascend910A", "Ascend910B2"};
    for (int has = 0; has < 2; ++has) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0) {
            int32_t value = -1;
            setenv("ASCEND_SOC", chips[has], 1);
            CHECK_OK(aclGetCannAttribute(ACL_CANN_ATTR_BF16, &value));
            CHECK_INT(value, has);
            _exit(check_failures != 0);
        }
        waitpid(child, &status, 0);
        CHECK(status == 0, "%s: %d", chips[has], status);
    }
}

int main(void)
{
    bfloat16();
    codes();
    versions();
    texts();
    logs();
    element_types();
    return check_result();
}
