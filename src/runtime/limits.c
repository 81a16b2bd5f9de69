/* How many cores operators may use: of a device, of a stream, and what counts for a thread. See acl/acl_rt.h.
 *
 * Limits are kept and reported; the software NPU cuts its work over the host's cores (NPU_POOL_THREADS) whatever they say.
 * A limit of 0 means none was set. */
#include "acl/acl_rt.h"
#include "base/error.h"
#include "runtime/chip.h"
#include "runtime/device.h"
#include "runtime/stream.h"

/* The stream whose limits count for this thread; NULL: its device's count. A stream that died since is refused when asked. */
static _Thread_local void *used_stream;

static _Atomic uint32_t device_limits[DEVICES_MAX][RESOURCE_KINDS];

static int cores_of_chip(const char *function, aclrtDevResLimitType type, uint32_t *cores)
{
    const struct chip_profile *const chip = chip_profile();
    if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE)
        return error_set(ERROR_INVALID_PARAM, function, "type is %d; 0 (cube cores) and 1 (vector cores) are known", (int)type);
    *cores = (uint32_t)(!chip ? 0 : type == ACL_RT_DEV_RES_CUBE_CORE ? chip->cube_cores : chip->vector_cores);
    return 0;
}

static int device_limit(const char *function, int device, aclrtDevResLimitType type, uint32_t *value)
{
    uint32_t cores = 0;
    TRY(device_require(device));
    TRY(cores_of_chip(function, type, &cores));
    const uint32_t limit = device_limits[device][type];
    *value = limit ? limit : cores;
    return 0;
}

static int check_limit(const char *function, aclrtDevResLimitType type, uint32_t value)
{
    uint32_t cores = 0;
    TRY(cores_of_chip(function, type, &cores));
    if (value == 0 || value > cores)
        return error_set(ERROR_INVALID_PARAM, function, "value is %u; the chip has %u of these cores", value, cores);
    return 0;
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value)
{
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    return device_limit(__func__, deviceId, type, value);
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)
{
    TRY(device_require(deviceId));
    TRY(check_limit(__func__, type, value));
    device_limits[deviceId][type] = value;
    return 0;
}

aclError aclrtResetDeviceResLimit(int32_t deviceId)
{
    TRY(device_require(deviceId));
    for (int type = 0; type < RESOURCE_KINDS; ++type)
        device_limits[deviceId][type] = 0;
    return 0;
}

static int stream_limit(const char *function, struct stream *stream, aclrtDevResLimitType type, uint32_t *value)
{
    TRY(device_limit(function, stream_device(stream), type, value));
    const uint32_t limit = stream_resource_limits(stream)[type];
    if (limit)
        *value = limit;
    return 0;
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t *value)
{
    struct stream *target;
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    TRY(stream_resolve(stream, &target));
    return stream_limit(__func__, target, type, value);
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    TRY(check_limit(__func__, type, value));
    stream_resource_limits(target)[type] = value;
    return 0;
}

aclError aclrtResetStreamResLimit(aclrtStream stream)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    for (int type = 0; type < RESOURCE_KINDS; ++type)
        stream_resource_limits(target)[type] = 0;
    return 0;
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    used_stream = target;
    return 0;
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    if (used_stream == target)
        used_stream = NULL;
    return 0;
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t *value)
{
    int device;
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    if (used_stream)
        return aclrtGetStreamResLimit(used_stream, type, value);
    TRY(device_current(&device));
    return device_limit(__func__, device, type, value);
}
