/* Tensors for operator tests: any type, any layout, in plain heap memory so that the sanitizers see every stray access.
 *
 * Values are read and written as doubles (integers up to 2^53 and halves are exact in them). */
#ifndef TESTS_OPERATORS_OPERAND_H
#define TESTS_OPERATORS_OPERAND_H

#include "aclnn/acl_meta.h"
#include "base/dtype.h"
#include "base/float8.h"
#include "base/half.h"
#include "check.h"

aclError aclInit(const char *path);
aclError aclrtSetDevice(int32_t device);
aclError aclrtSynchronizeStream(aclrtStream stream);

enum { OPERAND_DIMS = 4 };

enum layout { LAYOUT_PLAIN, LAYOUT_TRANSPOSED, LAYOUT_STEPPED, LAYOUT_OFFSET, LAYOUT_COUNT };

struct operand {
    enum dtype dtype;
    int ndim;
    int64_t sizes[OPERAND_DIMS], strides[OPERAND_DIMS];
    int64_t count, offset, span; /* span: elements of memory */
    char *memory;
    aclTensor *tensor;
};

static inline double operand_load(enum dtype dtype, const void *p)
{
    switch (dtype) {
    case DTYPE_F64: return *(const double *)p;
    case DTYPE_F32: return *(const float *)p;
    case DTYPE_F16: return half_f16_to_f32(*(const uint16_t *)p);
    case DTYPE_BF16: return half_bf16_to_f32(*(const uint16_t *)p);
    case DTYPE_I64: return (double)*(const int64_t *)p;
    case DTYPE_I32: return *(const int32_t *)p;
    case DTYPE_I16: return *(const int16_t *)p;
    case DTYPE_I8: return *(const int8_t *)p;
    case DTYPE_U8:
    case DTYPE_B8: return *(const uint8_t *)p;
    case DTYPE_F8_E4M3FN: return float8_e4m3fn_to_f32(*(const uint8_t *)p);
    case DTYPE_F8_E5M2: return float8_e5m2_to_f32(*(const uint8_t *)p);
    case DTYPE_F8_E8M0: return float8_e8m0_to_f32(*(const uint8_t *)p);
    case DTYPE_C64: return ((const float *)p)[0];
    default: return ((const double *)p)[0];
    }
}

static inline void operand_store(enum dtype dtype, void *p, double x)
{
    switch (dtype) {
    case DTYPE_F64: *(double *)p = x; break;
    case DTYPE_F32: *(float *)p = (float)x; break;
    case DTYPE_F16: *(uint16_t *)p = half_f16_from_f32((float)x); break;
    case DTYPE_BF16: *(uint16_t *)p = half_bf16_from_f32((float)x); break;
    case DTYPE_I64: *(int64_t *)p = (int64_t)x; break;
    case DTYPE_I32: *(int32_t *)p = (int32_t)(int64_t)x; break;
    case DTYPE_I16: *(int16_t *)p = (int16_t)(int64_t)x; break;
    case DTYPE_I8: *(int8_t *)p = (int8_t)(int64_t)x; break;
    case DTYPE_U8: *(uint8_t *)p = (uint8_t)(int64_t)x; break;
    case DTYPE_B8: *(uint8_t *)p = x != 0; break;
    case DTYPE_F8_E4M3FN: *(uint8_t *)p = float8_e4m3fn_from_f32((float)x); break;
    case DTYPE_F8_E5M2: *(uint8_t *)p = float8_e5m2_from_f32((float)x); break;
    case DTYPE_F8_E8M0: *(uint8_t *)p = float8_e8m0_from_f32((float)x); break;
    case DTYPE_C64:
        ((float *)p)[0] = (float)x;
        ((float *)p)[1] = 0;
        break;
    default:
        ((double *)p)[0] = x;
        ((double *)p)[1] = 0;
        break;
    }
}

static inline int64_t operand_place(const struct operand *o, int64_t element)
{
    int64_t place = o->offset;
    for (int d = o->ndim - 1; d >= 0; --d) {
        place += element % o->sizes[d] * o->strides[d];
        element /= o->sizes[d];
    }
    return place;
}

static inline double operand_get(const struct operand *o, int64_t element)
{
    return operand_load(o->dtype, o->memory + operand_place(o, element) * (int64_t)dtype_bytes(o->dtype));
}

static inline void operand_set(const struct operand *o, int64_t element, double x)
{
    operand_store(o->dtype, o->memory + operand_place(o, element) * (int64_t)dtype_bytes(o->dtype), x);
}

/* What a value becomes in a type. */
static inline double operand_rounded(enum dtype dtype, double x)
{
    _Alignas(16) char place[16];
    operand_store(dtype, place, x);
    return operand_load(dtype, place);
}

static inline void operand_handle(struct operand *o)
{
    o->tensor = aclCreateTensor(o->sizes, (uint64_t)o->ndim, (aclDataType)dtype_infos[o->dtype].acl, o->strides, o->offset,
                                ACL_FORMAT_ND, &o->span, 1, o->memory);
    CHECK(o->tensor, "aclCreateTensor failed");
}

static inline struct operand operand_make(enum dtype dtype, int ndim, const int64_t *sizes, enum layout layout)
{
    struct operand o = {.dtype = dtype, .ndim = ndim, .count = 1};
    int64_t stride = layout == LAYOUT_STEPPED ? 2 : 1;
    for (int k = 0; k < ndim; ++k) {
        const int d = layout == LAYOUT_TRANSPOSED ? k : ndim - 1 - k;
        o.sizes[d] = sizes[d];
        o.strides[d] = stride;
        stride *= sizes[d] + (layout == LAYOUT_STEPPED && k == 0 ? 1 : 0);
        o.count *= sizes[d];
    }
    o.offset = layout == LAYOUT_OFFSET || layout == LAYOUT_STEPPED ? 3 : 0;
    int64_t reach = 0;
    for (int d = 0; d < ndim; ++d)
        reach += (o.sizes[d] > 0 ? o.sizes[d] - 1 : 0) * o.strides[d];
    o.span = o.count ? o.offset + reach + 1 : 0;
    o.memory = calloc((size_t)(o.span ? o.span : 1), dtype_bytes(dtype));
    operand_handle(&o);
    return o;
}

/* Another handle of the same tensor, for a list, which destroys what is in it. */
static inline aclTensor *operand_again(const struct operand *o)
{
    struct operand again = *o;
    operand_handle(&again);
    return again.tensor;
}

/* Another view of the same memory; freed with operand_drop. */
static inline struct operand operand_alias(const struct operand *of, int ndim, const int64_t *sizes, const int64_t *strides,
                                           int64_t offset)
{
    struct operand o = *of;
    o.ndim = ndim;
    o.offset = offset;
    o.count = 1;
    for (int d = 0; d < ndim; ++d) {
        o.sizes[d] = sizes[d];
        o.strides[d] = strides[d];
        o.count *= sizes[d];
    }
    operand_handle(&o);
    return o;
}
static inline void operand_drop(struct operand *o) { aclDestroyTensor(o->tensor); }

static inline void operand_free(struct operand *o)
{
    aclDestroyTensor(o->tensor);
    free(o->memory);
}

static inline aclScalar *scalar_f64(double x) { return aclCreateScalar(&x, ACL_DOUBLE); }
static inline aclScalar *scalar_i64(int64_t x) { return aclCreateScalar(&x, ACL_INT64); }

/* Both phases on the default stream, and a synchronise. Returns the first code that isn't 0. */
typedef int (*phase_2_fn)(void *workspace, uint64_t bytes, aclOpExecutor *executor, aclrtStream stream);
static inline int operand_launch(phase_2_fn phase_2, uint64_t bytes, aclOpExecutor *executor)
{
    void *const workspace = bytes ? malloc(bytes) : NULL;
    const int code = phase_2(workspace, bytes, executor, NULL);
    const int later = aclrtSynchronizeStream(NULL);
    free(workspace);
    return code ? code : later;
}

/* RUN(aclnnAdd, a, b, alpha, out): the operator's code. */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define RUN(name, ...)                                                                             \
    __extension__({                                                                                \
        uint64_t run_bytes = 0;                                                                    \
        aclOpExecutor *run_executor = NULL;                                                        \
        int run_code = name##GetWorkspaceSize(__VA_ARGS__, &run_bytes, &run_executor);             \
        run_code ? run_code : operand_launch(name, run_bytes, run_executor);                       \
    })

#endif
