/* The public stream functions, over stream.h. */
#include "acl/acl.h"
#include "base/error.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/stream.h"

enum { LOWEST_PRIORITY = 7 };

static int create(const char *function, aclrtStream *stream, uint32_t priority, uint32_t flags)
{
    int device;
    struct stream *made;
    TRY(device_current(&device));
    if (!stream)
        return error_set(ERROR_INVALID_PARAM, function, "stream is null");
    if (priority > LOWEST_PRIORITY)
        return error_set(ERROR_INVALID_PARAM, function, "priority is %u; it goes from 0 (first) to %d", priority, LOWEST_PRIORITY);
    if (flags & ~(ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC))
        return error_set(ERROR_RT_FEATURE_UNSUPPORTED, function,
                         "flag is 0x%x; ACL_STREAM_FAST_LAUNCH (1) and ACL_STREAM_FAST_SYNC (2) "
                         "are available",
                         flags);
    TRY(stream_create(device, (int)priority, &made));
    *stream = made;
    return 0;
}

aclError aclrtCreateStream(aclrtStream *stream) { return create(__func__, stream, 0, 0); }

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag)
{
    return create(__func__, stream, priority, flag);
}

static int destroy(const char *function, void *handle, bool force)
{
    struct stream *stream;
    if (fork_happened())
        return 0;
    if (!handle)
        return error_set(ERROR_INVALID_PARAM, function, "stream is null; a default stream ends with its context");
    TRY(stream_resolve(handle, &stream));
    return stream_destroy(stream, force);
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy(__func__, stream, false); }

aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy(__func__, stream, true); }

aclError aclrtSynchronizeStream(aclrtStream stream)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    return stream_synchronize(target, STREAM_TIMEOUT_USUAL);
}

static int require_timeout(const char *function, int32_t timeout)
{
    if (timeout < -1)
        return error_set(ERROR_INVALID_PARAM, function, "timeout is %d; it is milliseconds, or -1 for ever", timeout);
    return 0;
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
    struct stream *target;
    TRY(require_timeout(__func__, timeout));
    TRY(stream_resolve(stream, &target));
    return stream_synchronize(target, timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
    struct stream *target;
    REQUIRE(status, ERROR_INVALID_PARAM, "status is null");
    TRY(stream_resolve(stream, &target));
    REFUSE_AFTER_FORK();
    *status = stream_is_idle(target) ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return 0;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority)
{
    struct stream *target;
    REQUIRE(priority, ERROR_INVALID_PARAM, "priority is null");
    TRY(stream_resolve(stream, &target));
    *priority = (uint32_t)stream_priority(target);
    return 0;
}

aclError aclrtSynchronizeDevice(void)
{
    int device;
    TRY(device_current(&device));
    return stream_synchronize_device(device, STREAM_TIMEOUT_USUAL);
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
    int device;
    TRY(require_timeout(__func__, timeout));
    TRY(device_current(&device));
    return stream_synchronize_device(device, timeout);
}
