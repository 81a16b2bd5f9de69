/* The public stream functions, over stream.h. */
#include "acl/acl.h"
#include "base/error.h"
#include "runtime/device.h"
#include "runtime/event.h"
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

aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId)
{
    struct stream *target;
    REQUIRE(streamId, ERROR_INVALID_PARAM, "streamId is null");
    TRY(stream_resolve(stream, &target));
    *streamId = stream_id(target);
    return 0;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
{
    struct stream *target;
    REQUIRE(mode == ACL_CONTINUE_ON_FAILURE || mode == ACL_STOP_ON_FAILURE, ERROR_INVALID_PARAM,
            "mode is %llu; 0 (continue) and 1 (stop) are known", (unsigned long long)mode);
    TRY(stream_resolve(stream, &target));
    stream_stop_on_failure(target, mode == ACL_STOP_ON_FAILURE);
    return 0;
}

aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
{
    struct stream *target;
    TRY(stream_resolve(stream, &target));
    REQUIRE(flag == 0, ERROR_RT_FEATURE_UNSUPPORTED,
            "flag is %u; overflow isn't watched for, it shows as infinities and NaN, so only 0 is possible", flag);
    return 0;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t *flag)
{
    struct stream *target;
    REQUIRE(flag, ERROR_INVALID_PARAM, "flag is null");
    TRY(stream_resolve(stream, &target));
    *flag = 0;
    return 0;
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, aclrtStreamAttrValue *value)
{
    REQUIRE(value, ERROR_INVALID_PARAM, "value is null");
    switch ((int)stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE: return aclrtSetStreamFailureMode(stream, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: return aclrtSetStreamOverflowSwitch(stream, value->overflowSwitch);
    default:
        FAIL(ERROR_RT_FEATURE_UNSUPPORTED, "attribute %d isn't available; the failure mode (1) and the overflow check (2) are",
             (int)stmAttrType);
    }
}

/* Streams don't record. */
aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status, aclmdlRI *modelRI)
{
    struct stream *target;
    REQUIRE(status, ERROR_INVALID_PARAM, "status is null");
    TRY(stream_resolve(stream, &target));
    *status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
    if (modelRI)
        *modelRI = NULL;
    return 0;
}

enum { MICROSECOND = 1000, SECOND = 1000000000 };

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
    stream_limit_task_time((int64_t)timeout * SECOND);
    return 0;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
    const uint64_t longest = INT64_MAX / MICROSECOND;
    REQUIRE(actualTimeout, ERROR_INVALID_PARAM, "actualTimeout is null");
    *actualTimeout = timeout < longest ? timeout : longest;
    stream_limit_task_time((int64_t)*actualTimeout * MICROSECOND);
    return 0;
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout)
{
    event_limit_wait((int64_t)timeout * SECOND);
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
