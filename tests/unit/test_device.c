/* Start and end of the runtime, the current device of each thread, contexts, visible devices. */
#include <pthread.h>

#include "acl/acl.h"
#include "check.h"

static void *other_thread(void *unused)
{
    int32_t device = -1;
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "aclrtSetDevice first");
    CHECK_OK(aclrtSetDevice(1));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK_INT(device, 1);
    return NULL;
}

static void before_start(void)
{
    uint32_t count = 0;
    int32_t device;
    CHECK_OK(aclrtGetDeviceCount(&count));
    CHECK_INT(count, 3);
    CHECK(strcmp(aclrtGetSocName(), "Ascend910B2") == 0, "%s", aclrtGetSocName());
    CHECK_FAILS(aclrtSetDevice(0), ACL_ERROR_UNINITIALIZE, "aclInit");
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_UNINITIALIZE, "aclInit");
    CHECK_FAILS(aclFinalize(), ACL_ERROR_UNINITIALIZE, "isn't initialized");
    CHECK_FAILS(aclInit("/nowhere/acl.json"), ACL_ERROR_INVALID_FILE, "/nowhere/acl.json");
    setenv("NPU_ISA", "mmx", 1);
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_INVALID_PARAM, "NPU_ISA=mmx can't be used; compiled in: baseline");
    unsetenv("NPU_ISA");
    setenv("NPU_FIDELITY", "exact", 1);
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_INVALID_PARAM, "NPU_FIDELITY=exact isn't available; ieee and fast are");
    unsetenv("NPU_FIDELITY");
    setenv("NPU_POOL_THREADS", "some", 1);
    CHECK_FAILS(aclInit(NULL), ACL_ERROR_INVALID_PARAM, "NPU_POOL_THREADS=some");
    unsetenv("NPU_POOL_THREADS");
}

static void devices(void)
{
    int32_t device = -1, active = -1, logic = -1, peer = 0;
    int64_t value = 0;
    uint32_t flags;
    aclrtUuid a, b;
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "no device");
    CHECK_FAILS(aclrtSetDevice(3), ACL_ERROR_RT_INVALID_DEVICEID, "device 3 doesn't exist; devices are 0 to 2");
    CHECK_FAILS(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID, "device -1");
    CHECK_OK(aclrtGetPrimaryCtxState(2, &flags, &active));
    CHECK_INT(active, 0);
    CHECK_OK(aclrtSetDevice(2));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK_INT(device, 2);
    CHECK_OK(aclrtGetPrimaryCtxState(2, &flags, &active));
    CHECK_INT(active, 1);
    CHECK_OK(aclrtGetLogicDevIdByUserDevId(2, &logic));
    CHECK_INT(logic, 7);
    CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &value));
    CHECK_INT(value, 24);
    CHECK_OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value));
    CHECK(value > 0 && value <= 64ll << 30, "%lld bytes", (long long)value);
    CHECK_FAILS(aclrtGetDeviceInfo(0, (aclrtDevAttr)999, &value), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "attribute 999");
    CHECK_OK(aclrtDeviceCanAccessPeer(&peer, 0, 1));
    CHECK_INT(peer, 1);
    CHECK_FAILS(aclrtDeviceCanAccessPeer(&peer, 1, 1), ACL_ERROR_INVALID_PARAM, "own peer");
    CHECK_OK(aclrtDeviceGetUuid(0, &a));
    CHECK_OK(aclrtDeviceGetUuid(1, &b));
    CHECK(memcmp(&a, &b, sizeof a) != 0, "two devices have different ids");
    CHECK_FAILS(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "INFNAN");

    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    CHECK_OK(aclrtGetDevice(&device));
    CHECK_INT(device, 2);
    CHECK_OK(aclrtResetDevice(2));
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "no device");
}

static void contexts(void)
{
    aclrtContext own, made, now;
    int32_t device = -1;
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtGetCurrentContext(&own));
    CHECK_OK(aclrtCreateContext(&made, 1));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK_INT(device, 1);
    CHECK_OK(aclrtSynchronizeStream(NULL));
    CHECK_OK(aclrtSetCurrentContext(own));
    CHECK_OK(aclrtGetDevice(&device));
    CHECK_INT(device, 0);
    CHECK_OK(aclrtGetCurrentContext(&now));
    CHECK(now == own, "%p, expected %p", now, own);
    CHECK_FAILS(aclrtDestroyContext(own), ACL_ERROR_RT_PARAM_INVALID, "belongs to its device");
    CHECK_OK(aclrtDestroyContext(made));
    CHECK_FAILS(aclrtDestroyContext(made), ACL_ERROR_RT_PARAM_INVALID, "not a context");
    CHECK_FAILS(aclrtSetCurrentContext(made), ACL_ERROR_RT_CONTEXT_NULL, "not a context");
    CHECK_FAILS(aclrtSetCurrentContext(&own), ACL_ERROR_RT_CONTEXT_NULL, "not a context");
}

static void errors(void)
{
    int32_t device = 0;
    CHECK_INT(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
    CHECK_INT(aclrtSetDevice(77), ACL_ERROR_RT_INVALID_DEVICEID);
    CHECK_INT(aclrtGetDevice(NULL), ACL_ERROR_INVALID_PARAM);
    CHECK_OK(aclrtGetDevice(&device)); /* success doesn't clear the last error */
    CHECK_INT(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
    CHECK_INT(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PARAM);
    CHECK_INT(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
    const char *const text = aclGetRecentErrMsg();
    CHECK(text && strncmp(text, "aclrtGetDevice: ", 16) == 0 && strstr(text, "\ndevice_require: device 77"), "newest first: %s",
          text);
    CHECK(aclGetRecentErrMsg() == NULL, "reading clears");
}

int main(void)
{
    setenv("NPU_DEVICE_COUNT", "8", 1);
    setenv("ASCEND_RT_VISIBLE_DEVICES", "0,4,7,9,1", 1); /* ends before 9 */
    before_start();
    CHECK_OK(aclInit(NULL));
    CHECK_FAILS(aclInit(""), ACL_ERROR_REPEAT_INITIALIZE, "already");
    devices();
    contexts();
    errors();

    uint64_t left = 9;
    CHECK_OK(aclFinalizeReference(&left));
    CHECK_INT(left, 1);
    CHECK_OK(aclFinalizeReference(&left));
    CHECK_INT(left, 0);
    int32_t device;
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_UNINITIALIZE, "aclInit");
    CHECK_FAILS(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE, "isn't initialized");
    CHECK_OK(aclInit(NULL));
    CHECK_FAILS(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "no device"); /* a new life: nothing is remembered */
    CHECK_OK(aclFinalize());
    return check_result();
}
