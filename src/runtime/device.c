/* Skeleton of devices, memory and stream functions: replaced by the runtime part (keep this out of merges: take the runtime's files). */
#include "runtime/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl_base.h"
#include "base/env.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "runtime/fork.h"
#include "runtime/stream.h"

int aclInit(const char *path);
int aclFinalize(void);
int aclrtSetDevice(int32_t d);
int aclrtGetDevice(int32_t *d);
int aclrtResetDevice(int32_t d);
int aclrtGetDeviceCount(uint32_t *n);
int aclrtMalloc(void **p, size_t n, int policy);
int aclrtFree(void *p);
int aclrtMemcpy(void *d, size_t n, const void *s, size_t m, int kind);
int aclrtCreateStream(aclrtStream *s);
int aclrtDestroyStream(aclrtStream s);
int aclrtSynchronizeStream(aclrtStream s);
const char *aclGetRecentErrMsg(void);

static _Thread_local int current = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *defaults[8];

int aclInit(const char *path)
{
    (void)path;
    fork_watch();
    return kernels_select(env_text(ENV_NPU_ISA));
}
int aclFinalize(void) { return 0; }
int device_count(void) { return 8; }
int device_current(int *device)
{
    REQUIRE(current >= 0, ERROR_RT_CONTEXT_NULL, "no device is set on this thread");
    *device = current;
    return 0;
}
int device_set_current(int device)
{
    current = device;
    return 0;
}
int device_default_stream(int device, struct stream **stream)
{
    int code = 0;
    pthread_mutex_lock(&lock);
    if (!defaults[device])
        code = stream_create(device, 0, 0, &defaults[device]);
    *stream = defaults[device];
    pthread_mutex_unlock(&lock);
    return code;
}
int aclrtSetDevice(int32_t d) { return device_set_current(d); }
int aclrtGetDevice(int32_t *d) { return device_current(d); }
int aclrtResetDevice(int32_t d) { (void)d; current = -1; return 0; }
int aclrtGetDeviceCount(uint32_t *n) { *n = 8; return 0; }
int aclrtMalloc(void **p, size_t n, int policy)
{
    (void)policy;
    *p = aligned_alloc(512, (n + 511) / 512 * 512);
    return *p ? 0 : ERROR_RT_MEMORY_ALLOCATION;
}
int aclrtFree(void *p) { free(p); return 0; }
int aclrtMemcpy(void *d, size_t n, const void *s, size_t m, int kind) { (void)n; (void)kind; memcpy(d, s, m); return 0; }
int aclrtCreateStream(aclrtStream *s) { return stream_create(current, 0, 0, (struct stream **)s); }
int aclrtDestroyStream(aclrtStream s) { return stream_destroy(s, false); }
int aclrtSynchronizeStream(aclrtStream s)
{
    struct stream *stream;
    TRY(stream_resolve(s, &stream));
    return stream_synchronize(stream, -1);
}
const char *aclGetRecentErrMsg(void) { return error_take_text(); }
