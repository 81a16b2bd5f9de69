/* Copying and setting memory: at once, or as a task of a stream.
 *
 * Asynchronous copies and host memory: what was allocated or registered here is used in stream order and kept alive by the
 * task. Other host memory may die as soon as the call returns, so it is read before (into a buffer of the task's) or the call
 * waits until it is written. */
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "base/error.h"
#include "base/pool.h"
#include "runtime/device.h"
#include "runtime/fork.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

/* Cut over the pool from PARALLEL bytes on; a task of at most SMALL may run in the caller. */
enum { GRAIN = 512 << 10, PARALLEL = 2 << 20, SMALL = 16 << 10 };

struct span {
    char *out;
    const char *in;
    int value;
};

static void copy_range(void *argument, int64_t begin, int64_t end)
{
    const struct span *const span = argument;
    memcpy(span->out + begin, span->in + begin, (size_t)(end - begin));
}

static void set_range(void *argument, int64_t begin, int64_t end)
{
    const struct span *const span = argument;
    memset(span->out + begin, span->value, (size_t)(end - begin));
}

static void copy_bytes(void *out, const void *in, size_t bytes)
{
    const bool overlapping = (const char *)in < (char *)out + bytes && (char *)out < (const char *)in + bytes;
    struct span span = {.out = out, .in = in};
    if (overlapping || bytes < PARALLEL)
        memmove(out, in, bytes);
    else
        pool_for((int64_t)bytes, GRAIN, copy_range, &span);
}

static void set_bytes(void *out, int value, size_t bytes)
{
    struct span span = {.out = out, .value = value};
    if (bytes < PARALLEL)
        memset(out, value, bytes);
    else
        pool_for((int64_t)bytes, GRAIN, set_range, &span);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Which side is on the device. */
static int sides_of(const char *function, const void *dst, const void *src, aclrtMemcpyKind kind, bool *dst_device,
                    bool *src_device)
{
    switch ((int)kind) {
    case ACL_MEMCPY_HOST_TO_HOST: *dst_device = *src_device = false; return 0;
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_DEVICE: *dst_device = true, *src_device = false; return 0;
    case ACL_MEMCPY_DEVICE_TO_HOST: *dst_device = false, *src_device = true; return 0;
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_DEVICE_TO_DEVICE: *dst_device = *src_device = true; return 0;
    case ACL_MEMCPY_DEFAULT:
        *dst_device = memory_device(dst) >= 0;
        *src_device = memory_device(src) >= 0;
        return 0;
    default:
        return error_set(ERROR_INVALID_PARAM, function, "kind is %d; 0 to %d are known", (int)kind,
                         ACL_MEMCPY_INTER_DEVICE_TO_DEVICE);
    }
}

static int check_side(const char *function, const void *address, size_t bytes, bool on_device, const char *role)
{
    if (on_device)
        return memory_check(address, bytes, function, role);
    if (memory_device(address) >= 0)
        return error_set(ERROR_INVALID_PARAM, function, "%s: %p is device memory, the kind of copy says host", role, address);
    return 0;
}

static int check_copy(const char *function, const void *dst, size_t room, const void *src, size_t count, aclrtMemcpyKind kind,
                      bool *dst_device, bool *src_device)
{
    if (fork_happened())
        return fork_refuse(function);
    if (!dst || !src)
        return error_set(ERROR_INVALID_PARAM, function, "%s is null", dst ? "src" : "dst");
    if (count > room)
        return error_set(ERROR_INVALID_PARAM, function, "count is %zu, but destMax only %zu", count, room);
    TRY(sides_of(function, dst, src, kind, dst_device, src_device));
    if (count == 0)
        return 0;
    TRY(check_side(function, dst, count, *dst_device, "dst"));
    return check_side(function, src, count, *src_device, "src");
}

static int check_set(const char *function, const void *memory, size_t room, size_t count)
{
    if (fork_happened())
        return fork_refuse(function);
    if (!memory)
        return error_set(ERROR_INVALID_PARAM, function, "devPtr is null");
    if (count > room)
        return error_set(ERROR_INVALID_PARAM, function, "count is %zu, but maxCount only %zu", count, room);
    return count > 0 && memory_device(memory) >= 0 ? memory_check(memory, count, function, "devPtr") : 0;
}

/* --- at once ------------------------------------------------------------------------------------------------------ */

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    bool dst_device, src_device;
    int device;
    TRY(check_copy(__func__, dst, destMax, src, count, kind, &dst_device, &src_device));
    TRY(device_current(&device));
    copy_bytes(dst, src, count);
    return 0;
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    int device;
    TRY(check_set(__func__, devPtr, maxCount, count));
    TRY(device_current(&device));
    set_bytes(devPtr, value, count);
    return 0;
}

/* --- in stream order ---------------------------------------------------------------------------------------------- */

/* task.detail: what immediate.pointer is, and who gives it back. */
enum { OWNS_NOTHING, OWNS_BUFFER, OWNS_HOST_BLOCK };

static const char *copy_name(const struct task *task) { return "aclrtMemcpyAsync"; }

static const char *set_name(const struct task *task) { return "aclrtMemsetAsync"; }

static void task_ranges(const struct task *task, void (*visit)(void *, const char *, const char *, bool), void *context)
{
    visit(context, task->out, (const char *)task->out + task->count, true);
    if (task->a)
        visit(context, task->a, (const char *)task->a + task->count, false);
}

static void copy_drop(struct task *task)
{
    if (task->detail == OWNS_BUFFER)
        free(task->immediate.pointer);
    else if (task->detail == OWNS_HOST_BLOCK)
        host_block_release(task->immediate.pointer);
}

static int copy_run(struct task *task)
{
    copy_bytes(task->out, task->a, (size_t)task->count);
    copy_drop(task);
    return 0;
}

static int set_run(struct task *task)
{
    set_bytes(task->out, (int)task->immediate.i64, (size_t)task->count);
    return 0;
}

static const struct task_class copy_class = {.name = copy_name, .ranges = task_ranges, .drop = copy_drop};
static const struct task_class set_class = {.name = set_name, .ranges = task_ranges};

/* Reads host memory that may be gone later: the task copies from a buffer of its own. */
static int stage(struct task *task)
{
    void *const buffer = malloc((size_t)task->count);
    REQUIRE(buffer, ERROR_BAD_ALLOC, "%lld bytes for the copy aren't there; use memory of aclrtMallocHost", (long long)task->count);
    copy_bytes(buffer, task->a, (size_t)task->count);
    task->a = buffer;
    task->immediate.pointer = buffer;
    task->detail = OWNS_BUFFER;
    return 0;
}

static int launch_copy(struct stream *stream, struct task *task, bool dst_device, bool src_device)
{
    struct host_block *block = NULL;
    bool wait = false; /* until the copy is done: then nothing needs to be kept alive */
    if (!dst_device && !src_device)
        wait = true;
    else if (!dst_device)
        wait = !(block = host_block_acquire(task->out, (size_t)task->count));
    else if (!src_device && !(block = host_block_acquire(task->a, (size_t)task->count)))
        TRY(stage(task));
    REQUIRE(!wait || stream_current_executor() != stream, ERROR_RT_PARAM_INVALID,
            "a task of this stream can't copy into pageable host memory in it: that would wait for itself");
    if (block) {
        task->immediate.pointer = block;
        task->detail = OWNS_HOST_BLOCK;
    }
    const int code = stream_launch(stream, task);
    if (code != 0)
        copy_drop(task);
    return code == 0 && wait ? stream_synchronize(stream, -1) : code;
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream)
{
    bool dst_device, src_device;
    struct stream *target;
    TRY(check_copy(__func__, dst, destMax, src, count, kind, &dst_device, &src_device));
    TRY(stream_resolve(stream, &target));
    if (count == 0)
        return 0;
    struct task task = {.run = copy_run, .class = &copy_class, .out = dst, .a = src, .count = (int64_t)count};
    task.flags = count <= SMALL ? TASK_SMALL : 0;
    return launch_copy(target, &task, dst_device, src_device);
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream)
{
    return aclrtMemcpyAsync(dst, destMax, src, count, kind, stream);
}

/* --- many at once ------------------------------------------------------------------------------------------------- */

struct batch {
    void **dsts, **srcs;
    size_t *rooms, *sizes, count;
    const aclrtMemcpyBatchAttr *attributes;
    const size_t *first_of; /* copy from which attributes[k] counts */
    size_t attribute_count;
};

static int check_batch(const char *function, const struct batch *batch)
{
    if (!batch->dsts || !batch->srcs || !batch->rooms || !batch->sizes || batch->count == 0)
        return error_set(ERROR_INVALID_PARAM, function, "dsts, destMaxs, srcs or sizes is null, or numBatches 0");
    if (!batch->attributes || !batch->first_of || batch->attribute_count == 0 || batch->attribute_count > batch->count ||
        batch->first_of[0] != 0)
        return error_set(ERROR_INVALID_PARAM, function, "the attributes must count from the first copy on (numAttrs is %zu)",
                         batch->attribute_count);
    for (size_t i = 1; i < batch->attribute_count; ++i)
        if (batch->first_of[i] <= batch->first_of[i - 1] || batch->first_of[i] >= batch->count)
            return error_set(ERROR_INVALID_PARAM, function, "attrsIndexes must rise and be below numBatches: entry %zu is %zu", i,
                             batch->first_of[i]);
    return 0;
}

static bool on_device(aclrtMemLocation location) { return location.type == ACL_MEM_LOCATION_TYPE_DEVICE; }

static aclrtMemcpyKind kind_of(const aclrtMemcpyBatchAttr *attribute)
{
    if (on_device(attribute->dstLoc))
        return on_device(attribute->srcLoc) ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_HOST_TO_DEVICE;
    return on_device(attribute->srcLoc) ? ACL_MEMCPY_DEVICE_TO_HOST : ACL_MEMCPY_HOST_TO_HOST;
}

/* Stops at the first copy that is refused. stream: NULL for copies at once. */
static int copy_batch(const char *function, const struct batch *batch, size_t *failed, bool at_once, aclrtStream stream)
{
    size_t unused, attribute = 0;
    size_t *const index = failed ? failed : &unused;
    *index = SIZE_MAX;
    TRY(check_batch(function, batch));
    for (size_t i = 0; i < batch->count; ++i) {
        while (attribute + 1 < batch->attribute_count && batch->first_of[attribute + 1] <= i)
            ++attribute;
        const aclrtMemcpyKind kind = kind_of(&batch->attributes[attribute]);
        const int code = at_once ? aclrtMemcpy(batch->dsts[i], batch->rooms[i], batch->srcs[i], batch->sizes[i], kind)
                                 : aclrtMemcpyAsync(batch->dsts[i], batch->rooms[i], batch->srcs[i], batch->sizes[i], kind, stream);
        if (code != 0) {
            *index = i;
            return code;
        }
    }
    return 0;
}

aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches, aclrtMemcpyBatchAttr *attrs,
                          size_t *attrsIndexes, size_t numAttrs, size_t *failIndex)
{
    const struct batch batch = {dsts, srcs, destMaxs, sizes, numBatches, attrs, attrsIndexes, numAttrs};
    return copy_batch(__func__, &batch, failIndex, true, NULL);
}

aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes, size_t numAttrs, size_t *failIndex,
                               aclrtStream stream)
{
    const struct batch batch = {dsts, srcs, destMaxs, sizes, numBatches, attrs, attrsIndexes, numAttrs};
    return copy_batch(__func__, &batch, failIndex, false, stream);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
{
    struct stream *target;
    TRY(check_set(__func__, devPtr, maxCount, count));
    TRY(stream_resolve(stream, &target));
    if (count == 0)
        return 0;
    struct task task = {.run = set_run, .class = &set_class, .out = devPtr, .count = (int64_t)count, .immediate.i64 = value};
    task.flags = count <= SMALL ? TASK_SMALL : 0;
    return stream_launch(target, &task);
}
