/* Tensors of any type and layout for operator tests: values go in and out as doubles by their logical index.
 *
 * Invariant: memory around and between the elements holds a pattern that tensor_free checks, so stray writes are found. */
#ifndef TESTS_OPERATORS_TENSORS_H
#define TESTS_OPERATORS_TENSORS_H

#include "acl/acl.h"
#include "aclnnop/all_operators.h"
#include "base/half.h"
#include "check.h"
#include "kernels/kernels.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "tensor/tensor.h"

enum layout { PLAIN, REVERSED /* column-major */, GAPS /* every other element, after an offset */, LAYOUTS };
enum { TENSOR_FILL = 0x5a, TENSOR_OFFSET = 3 };

struct tensor {
    aclTensor *handle;
    unsigned char *memory;
    enum dtype dtype;
    int ndim;
    int64_t sizes[8], strides[8], offset, count, room; /* room: elements of memory */
};

static inline struct tensor tensor_new(enum dtype dtype, enum layout layout, int ndim, const int64_t *sizes)
{
    struct tensor t = {.dtype = dtype, .ndim = ndim, .count = 1};
    int64_t stride = layout == GAPS ? 2 : 1;
    for (int i = 0; i < ndim; ++i) {
        const int d = layout == REVERSED ? i : ndim - 1 - i;
        t.sizes[d] = sizes[d];
        t.strides[d] = stride;
        stride *= sizes[d] > 0 ? sizes[d] : 1;
        t.count *= sizes[d];
    }
    t.offset = layout == GAPS ? TENSOR_OFFSET : 0;
    t.room = stride + t.offset + 16;
    t.memory = malloc((size_t)t.room * dtype_bytes(dtype));
    memset(t.memory, TENSOR_FILL, (size_t)t.room * dtype_bytes(dtype));
    t.handle = aclCreateTensor(t.sizes, (uint64_t)ndim, (aclDataType)dtype_infos[dtype].acl, t.strides, t.offset, ACL_FORMAT_ND,
                               &t.room, 1, t.memory);
    CHECK(t.handle, "aclCreateTensor");
    return t;
}

#define SIZES(...) (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}

static inline int64_t tensor_at(const struct tensor *t, int64_t index)
{
    int64_t at = t->offset;
    for (int d = t->ndim - 1; d >= 0; --d) {
        at += index % t->sizes[d] * t->strides[d];
        index /= t->sizes[d];
    }
    return at;
}

static inline double tensor_get(const struct tensor *t, int64_t index)
{
    const void *const p = t->memory + tensor_at(t, index) * (int64_t)dtype_bytes(t->dtype);
    switch (t->dtype) {
    case DTYPE_F64: return *(const double *)p;
    case DTYPE_F32: return *(const float *)p;
    case DTYPE_F16: return half_f16_to_f32(*(const uint16_t *)p);
    case DTYPE_BF16: return half_bf16_to_f32(*(const uint16_t *)p);
    case DTYPE_I64: return (double)*(const int64_t *)p;
    case DTYPE_I32: return *(const int32_t *)p;
    case DTYPE_I16: return *(const int16_t *)p;
    case DTYPE_I8: return *(const int8_t *)p;
    default: return *(const uint8_t *)p;
    }
}

static inline void tensor_set(struct tensor *t, int64_t index, double value)
{
    void *const p = t->memory + tensor_at(t, index) * (int64_t)dtype_bytes(t->dtype);
    switch (t->dtype) {
    case DTYPE_F64: *(double *)p = value; break;
    case DTYPE_F32: *(float *)p = (float)value; break;
    case DTYPE_F16: *(uint16_t *)p = half_f16_from_f32((float)value); break;
    case DTYPE_BF16: *(uint16_t *)p = half_bf16_from_f32((float)value); break;
    case DTYPE_I64: *(int64_t *)p = (int64_t)value; break;
    case DTYPE_I32: *(int32_t *)p = (int32_t)value; break;
    case DTYPE_I16: *(int16_t *)p = (int16_t)value; break;
    case DTYPE_I8: *(int8_t *)p = (int8_t)value; break;
    default: *(uint8_t *)p = (uint8_t)value; break;
    }
}

static inline struct tensor tensor_random(enum dtype dtype, enum layout layout, uint64_t *seed, int ndim, const int64_t *sizes)
{
    struct tensor t = tensor_new(dtype, layout, ndim, sizes);
    for (int64_t i = 0; i < t.count; ++i)
        tensor_set(&t, i, dtype_is_floating(dtype) ? check_random_real(seed) : (double)(check_random(seed) % 7) - 3);
    return t;
}

static inline void tensor_fill(struct tensor *t, double value)
{
    for (int64_t i = 0; i < t->count; ++i)
        tensor_set(t, i, value);
}

/* Destroys; everything outside of the elements must still hold the pattern. */
static inline void tensor_free(struct tensor *t)
{
    const int64_t bytes = (int64_t)dtype_bytes(t->dtype);
    unsigned char *const used = calloc((size_t)t->room, 1);
    for (int64_t i = 0; i < t->count; ++i)
        used[tensor_at(t, i)] = 1;
    int64_t stray = 0;
    for (int64_t i = 0; i < t->room; ++i)
        for (int64_t b = 0; b < bytes && !used[i]; ++b)
            stray += t->memory[i * bytes + b] != TENSOR_FILL;
    CHECK(stray == 0, "%lld bytes outside of the tensor were written", (long long)stray);
    free(used);
    aclDestroyTensor(t->handle);
    free(t->memory);
    *t = (struct tensor){0};
}

/* Rounding that one operator may add in each type, relative to max(1, |value|). */
static inline double tensor_tolerance(enum dtype dtype)
{
    return dtype == DTYPE_F64 ? 1e-12 : dtype == DTYPE_F32 ? 1e-5 : dtype == DTYPE_F16 ? 2e-3 : dtype == DTYPE_BF16 ? 1.6e-2 : 0;
}

/* Waits for the default stream; gives its first failure. */
static inline int tensors_synchronize(void)
{
    struct stream *stream;
    TRY(stream_resolve(NULL, &stream));
    return stream_synchronize(stream, -1);
}

/* Both phases of an operator on the default stream, and waits. */
#define RUN(name, ...)                                                                              \
    do {                                                                                            \
        uint64_t run_bytes = 0;                                                                     \
        aclOpExecutor *run_executor = NULL;                                                         \
        const int run_code = aclnn##name##GetWorkspaceSize(__VA_ARGS__, &run_bytes, &run_executor); \
        CHECK(run_code == 0, "aclnn" #name " phase 1 gave %d: %s", run_code, error_take_text());    \
        if (run_code == 0) {                                                                        \
            void *const run_workspace = run_bytes ? malloc(run_bytes) : NULL;                       \
            CHECK_OK(aclnn##name(run_workspace, run_bytes, run_executor, NULL));                    \
            CHECK_OK(tensors_synchronize());                                                 \
            free(run_workspace);                                                                    \
        }                                                                                           \
    } while (0)

/* Phase 1 must refuse with a text that contains `part`. */
#define REFUSE(name, code, part, ...)                                                               \
    do {                                                                                            \
        uint64_t run_bytes = 0;                                                                     \
        aclOpExecutor *run_executor = NULL;                                                         \
        CHECK_FAILS(aclnn##name##GetWorkspaceSize(__VA_ARGS__, &run_bytes, &run_executor), code, part); \
    } while (0)

static inline void tensors_begin(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
}

/* Runs body once for each kernel set of this machine. */
#define FOR_EACH_ISA(body)                                                              \
    for (int isa_index = 0; kernel_set_at(isa_index); ++isa_index)                      \
        if (kernel_set_runnable(kernel_set_at(isa_index)->isa)) {                       \
            CHECK(kernels_select(kernel_set_at(isa_index)->isa) == 0, "select");        \
            body;                                                                       \
        }

#endif
