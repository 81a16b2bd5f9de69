/* Devices and contexts. See device.h.
 *
 * device_lock guards the list of contexts and the making of default streams. A context's memory is never given back, only used
 * again, so that a stale handle is a wrong answer at worst. A thread's current context counts only in the epoch (init.h) in
 * which it was set. */
#include "runtime/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "base/env.h"
#include "base/error.h"
#include "base/host.h"
#include "runtime/chip.h"
#include "runtime/fork.h"
#include "runtime/init.h"
#include "runtime/stream.h"

struct context {
    int device;
    bool alive;                            /* device_lock; a device's own context always is */
    struct stream *_Atomic default_stream; /* set under device_lock */
    struct context *next;                  /* in `contexts` */
    int64_t options[CONTEXT_OPTIONS];      /* options.c */
};

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct context own_contexts[DEVICES_MAX];
static struct context *contexts;       /* made by aclrtCreateContext */
static _Atomic bool used[DEVICES_MAX]; /* since aclInit */
static _Thread_local struct {
    struct context *context;
    uint32_t epoch;
} current;

/* Set once, from the environment. */
static pthread_once_t visible_once = PTHREAD_ONCE_INIT;
static int visible[DEVICES_MAX], visible_count;
static int64_t capacity;

static bool is_visible(int physical)
{
    for (int i = 0; i < visible_count; ++i)
        if (visible[i] == physical)
            return true;
    return false;
}

/* As upstream does: the list ends before the first number that isn't a device, or stands twice. */
static void read_configuration(void)
{
    const int installed = (int)env_int(ENV_NPU_DEVICE_COUNT);
    for (int i = 0; i < DEVICES_MAX; ++i)
        own_contexts[i].device = i;
    const char *at = env_text(ENV_ASCEND_RT_VISIBLE_DEVICES);
    if (*at == '\0') {
        for (visible_count = 0; visible_count < installed; ++visible_count)
            visible[visible_count] = visible_count;
    }
    while (*at != '\0') {
        char *end;
        const long device = strtol(at, &end, 10);
        if (end == at || device < 0 || device >= installed || is_visible((int)device))
            break;
        visible[visible_count++] = (int)device;
        if (*end != ',')
            break;
        at = end + 1;
    }

    const int64_t limit = env_int(ENV_NPU_MEMORY_LIMIT), share = host_memory() / 2 / env_int(ENV_LOCAL_WORLD_SIZE);
    const int64_t chip = chip_profile() ? chip_profile()->memory_bytes : share;
    capacity = limit > 0 ? limit : chip < share ? chip : share;
}

int device_count(void)
{
    pthread_once(&visible_once, read_configuration);
    return visible_count;
}

int64_t device_memory_capacity(void)
{
    pthread_once(&visible_once, read_configuration);
    return capacity;
}

int device_physical(int device) { return visible[device]; }

int device_require(int64_t device)
{
    const int count = device_count();
    REQUIRE(count > 0, ERROR_RT_INVALID_DEVICE, "device %lld doesn't exist; ASCEND_RT_VISIBLE_DEVICES=%s leaves none",
            (long long)device, env_text(ENV_ASCEND_RT_VISIBLE_DEVICES));
    REQUIRE(device >= 0 && device < count, ERROR_RT_INVALID_DEVICE, "device %lld doesn't exist; devices are 0 to %d",
            (long long)device, count - 1);
    return 0;
}

static struct context *current_context(void)
{
    return current.context && current.epoch == runtime_epoch() ? current.context : NULL;
}

static void set_context(struct context *context)
{
    current.context = context;
    current.epoch = runtime_epoch();
}

int device_current(int *device)
{
    REFUSE_AFTER_FORK();
    const struct context *const context = current_context();
    if (__builtin_expect(!context, 0)) {
        TRY(runtime_require(__func__));
        FAIL(ERROR_RT_CONTEXT_NULL, "this thread has no device; call aclrtSetDevice first");
    }
    *device = context->device;
    return 0;
}

int device_context_options(int64_t **options)
{
    int device;
    TRY(device_current(&device));
    *options = current.context->options;
    return 0;
}

int device_set_current(int device)
{
    REFUSE_AFTER_FORK();
    TRY(runtime_require(__func__));
    TRY(device_require(device));
    if (!atomic_load_explicit(&used[device], memory_order_relaxed)) /* called often: don't make the line bounce */
        used[device] = true;
    set_context(&own_contexts[device]);
    return 0;
}

static int make_default_stream(struct context *context, struct stream **stream)
{
    pthread_mutex_lock(&device_lock);
    int code = 0;
    struct stream *made = context->default_stream;
    if (!made && (code = stream_create(context->device, 0, &made)) == 0)
        context->default_stream = made;
    pthread_mutex_unlock(&device_lock);
    *stream = made;
    return code;
}

int device_default_stream(int device, struct stream **stream)
{
    struct context *context = current_context();
    if (!context || context->device != device) {
        TRY(device_require(device));
        context = &own_contexts[device];
    }
    struct stream *const made = context->default_stream;
    if (__builtin_expect(made != NULL, 1)) {
        *stream = made;
        return 0;
    }
    return make_default_stream(context, stream);
}

/* Without device_lock: ending a stream waits for its thread, and what that runs may ask for a default stream. */
static int drop_default_stream(struct context *context, bool force)
{
    struct stream *const stream = atomic_exchange(&context->default_stream, NULL);
    return stream ? stream_destroy(stream, force) : 0;
}

/* Contexts stay in their list for ever, so walking on without the lock is allowed. */
static struct context *first_context(void)
{
    pthread_mutex_lock(&device_lock);
    struct context *const first = contexts;
    pthread_mutex_unlock(&device_lock);
    return first;
}

void devices_release(void)
{
    struct context *const first = first_context();
    for (int i = 0; i < DEVICES_MAX; ++i) {
        drop_default_stream(&own_contexts[i], false);
        used[i] = false;
    }
    for (struct context *context = first; context; context = context->next)
        drop_default_stream(context, false);
    pthread_mutex_lock(&device_lock);
    for (struct context *context = first; context; context = context->next)
        context->alive = false;
    pthread_mutex_unlock(&device_lock);
}

/* --- public: devices ---------------------------------------------------------------------------------------------- */

aclError aclrtGetDeviceCount(uint32_t *count)
{
    REQUIRE(count, ERROR_INVALID_PARAM, "count is null");
    *count = (uint32_t)device_count();
    return 0;
}

aclError aclrtSetDevice(int32_t deviceId) { return device_set_current(deviceId); }

aclError aclrtGetDevice(int32_t *deviceId)
{
    int device = -1;
    REQUIRE(deviceId, ERROR_INVALID_PARAM, "deviceId is null");
    TRY(device_current(&device));
    *deviceId = device;
    return 0;
}

static int reset_device(int device, bool force)
{
    if (fork_happened())
        return 0;
    TRY(runtime_require(__func__));
    TRY(device_require(device));
    const int code = force ? 0 : stream_synchronize_device(device, -1);
    const int late = drop_default_stream(&own_contexts[device], force);
    used[device] = false;
    if (current.context == &own_contexts[device])
        current.context = NULL;
    return code ? code : late;
}

aclError aclrtResetDevice(int32_t deviceId) { return reset_device(deviceId, false); }

aclError aclrtResetDeviceForce(int32_t deviceId) { return reset_device(deviceId, true); }

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
    REQUIRE(runMode, ERROR_INVALID_PARAM, "runMode is null");
    *runMode = ACL_HOST;
    return 0;
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, int32_t *active)
{
    TRY(device_require(deviceId));
    REQUIRE(active, ERROR_INVALID_PARAM, "active is null");
    if (flags)
        *flags = 0;
    *active = used[deviceId];
    return 0;
}

/* Differs between devices and machines, equal in all processes of one machine. */
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
    TRY(device_require(deviceId));
    REQUIRE(uuid, ERROR_INVALID_PARAM, "uuid is null");
    memset(uuid, 0, sizeof *uuid);
    const uint64_t host = (uint64_t)gethostid() * 0x9e3779b97f4a7c15u;
    memcpy(uuid->bytes, &host, sizeof host);
    uuid->bytes[15] = (char)visible[deviceId];
    return 0;
}

aclError aclrtDeviceGetBareTgid(int32_t *pid)
{
    REQUIRE(pid, ERROR_INVALID_PARAM, "pid is null");
    *pid = (int32_t)getpid();
    return 0;
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId)
{
    REQUIRE(logicDevId, ERROR_INVALID_PARAM, "logicDevId is null");
    TRY(device_require(userDevid));
    *logicDevId = visible[userDevid];
    return 0;
}

/* All devices live in one address space. */
aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
    REQUIRE(canAccessPeer, ERROR_INVALID_PARAM, "canAccessPeer is null");
    TRY(device_require(deviceId));
    TRY(device_require(peerDeviceId));
    REQUIRE(deviceId != peerDeviceId, ERROR_INVALID_PARAM, "device %d isn't its own peer", deviceId);
    *canAccessPeer = 1;
    return 0;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
    int device;
    TRY(device_current(&device));
    TRY(device_require(peerDeviceId));
    REQUIRE(flags == 0, ERROR_INVALID_PARAM, "flags is %u; it must be 0", flags);
    REQUIRE(device != peerDeviceId, ERROR_INVALID_PARAM, "device %d isn't its own peer", device);
    return 0;
}

static int require_faults_output(const char *function, int32_t device, const void *output)
{
    TRY(device_require(device));
    if (!output)
        return error_set(ERROR_INVALID_PARAM, function, "the output pointer is null");
    return 0;
}

/* A software device has no faults of the hardware. */
aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize, size_t *retSize)
{
    TRY(require_faults_output(__func__, deviceId, retSize));
    *retSize = 0;
    return 0;
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo *errorInfo)
{
    TRY(require_faults_output(__func__, deviceId, errorInfo));
    memset(errorInfo, 0, sizeof *errorInfo);
    errorInfo->errorType = ACL_RT_NO_ERROR;
    return 0;
}

/* --- public: contexts --------------------------------------------------------------------------------------------- */

/* Called with device_lock. NULL when the handle is none of ours, or destroyed. */
static struct context *find_context(const void *handle)
{
    for (int i = 0; i < visible_count; ++i)
        if (handle == &own_contexts[i])
            return &own_contexts[i];
    for (struct context *context = contexts; context; context = context->next)
        if (handle == context && context->alive)
            return context;
    return NULL;
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
    REFUSE_AFTER_FORK();
    REQUIRE(context, ERROR_INVALID_PARAM, "context is null");
    TRY(runtime_require(__func__));
    TRY(device_require(deviceId));
    pthread_mutex_lock(&device_lock);
    struct context *made = contexts;
    while (made && made->alive)
        made = made->next;
    if (!made && (made = calloc(1, sizeof *made)) != NULL) {
        made->next = contexts;
        contexts = made;
    }
    if (made) {
        made->device = deviceId;
        made->alive = true;
        memset(made->options, 0, sizeof made->options);
    }
    pthread_mutex_unlock(&device_lock);
    REQUIRE(made, ERROR_BAD_ALLOC, "out of host memory");
    used[deviceId] = true;
    set_context(made);
    *context = made;
    return 0;
}

aclError aclrtDestroyContext(aclrtContext context)
{
    if (fork_happened())
        return 0;
    struct stream *stream = NULL;
    pthread_mutex_lock(&device_lock);
    struct context *const found = find_context(context);
    const bool own = found && found >= own_contexts && found < own_contexts + DEVICES_MAX;
    if (found && !own) {
        stream = atomic_exchange(&found->default_stream, NULL);
        found->alive = false;
    }
    pthread_mutex_unlock(&device_lock);
    REQUIRE(found, ERROR_RT_PARAM_INVALID, "%p is not a context, or was destroyed", context);
    REQUIRE(!own, ERROR_RT_PARAM_INVALID, "this context belongs to its device; aclrtResetDevice ends it");
    if (current.context == found)
        current.context = NULL;
    return stream ? stream_destroy(stream, false) : 0;
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
    REFUSE_AFTER_FORK();
    TRY(runtime_require(__func__));
    device_count();
    pthread_mutex_lock(&device_lock);
    struct context *const found = find_context(context);
    pthread_mutex_unlock(&device_lock);
    REQUIRE(found, ERROR_RT_CONTEXT_NULL, "%p is not a context, or was destroyed", context);
    used[found->device] = true;
    set_context(found);
    return 0;
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
    int device;
    REQUIRE(context, ERROR_INVALID_PARAM, "context is null");
    TRY(device_current(&device));
    *context = current.context;
    return 0;
}
