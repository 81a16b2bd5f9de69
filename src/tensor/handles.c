/* The public create and destroy functions of tensors, scalars, arrays and lists. See tensor.h. */
#include <stdlib.h>
#include <string.h>

#include "aclnn/aclnn_base.h"
#include "base/error.h"
#include "base/thread.h"
#include "tensor/awaited.h"

/* Freed tensors of this thread, for the next create: a launch makes and destroys three of them. Bounded, so that a thread that
 * only destroys doesn't collect them all. */
enum { FREE_TENSORS = 64 };
static void drop_free_tensors(void);
static _Thread_local struct {
    struct aclTensor *first;
    int count;
} free_tensors;
static _Thread_local struct thread_cleanup free_tensors_cleanup = {.run = drop_free_tensors};

static void drop_free_tensors(void)
{
    while (free_tensors.first) {
        struct aclTensor *const t = free_tensors.first;
        free_tensors.first = t->next;
        free(t);
    }
    free_tensors.count = 0;
}

static struct aclTensor *tensor_take(void)
{
    struct aclTensor *const t = free_tensors.first;
    if (__builtin_expect(t != NULL, 1)) {
        free_tensors.first = t->next;
        --free_tensors.count;
        return t;
    }
    return aligned_alloc(64, (sizeof *t + 63) / 64 * 64);
}

/* More than an address space holds, and little enough that no product with an element's size, no sum of a few such numbers and
 * no address computed from them overflows. */
#define MOST_ELEMENTS ((int64_t)1 << 48)

static int tensor_fill(struct aclTensor *t, const int64_t *dims, uint64_t ndim, const int64_t *strides)
{
    struct view *const v = &t->view;
    int64_t count = 1;
    bool contiguous = true;
    v->ndim = (uint8_t)ndim;
    for (int i = (int)ndim - 1; i >= 0; --i) {
        if (dims[i] < 0)
            FAIL(ACLNN_ERROR_PARAM, "viewDims[%d] is %lld; sizes are >= 0", i, (long long)dims[i]);
        v->sizes[i] = dims[i];
        v->strides[i] = strides ? strides[i] : count;
        if (dims[i] == 1) { /* the stride is never taken; a harmless one, as some loops step once behind the end */
            if (v->strides[i] > MOST_ELEMENTS || v->strides[i] < 0)
                v->strides[i] = 0;
        } else
            contiguous &= v->strides[i] == count;
        if (__builtin_mul_overflow(count, dims[i], &count))
            FAIL(ACLNN_ERROR_PARAM, "the number of elements of the view exceeds 64 bits");
    }
    v->count = count;
    v->contiguous = contiguous || count == 0;
    return 0;
}

/* The view begins in its storage and ends in the address space. */
static int tensor_check_reach(struct view *v, int64_t offset)
{
    int64_t low = 0, high = 0, reach;
    if (v->count == 0) /* there is nothing to reach: strides may be anything, so they become harmless */
        memset(v->strides, 0, sizeof v->strides);
    if (v->count > MOST_ELEMENTS)
        FAIL(ACLNN_ERROR_PARAM, "the view has %lld elements; at most 2^48 are allowed", (long long)v->count);
    if (offset < 0 || offset > MOST_ELEMENTS)
        FAIL(ACLNN_ERROR_PARAM, "offset is %lld; 0 to 2^48 elements are allowed", (long long)offset);
    if (v->contiguous) /* reaches as far as it has elements */
        return 0;
    for (int i = 0; i < v->ndim; ++i)
        if (v->sizes[i] == 1)
            continue;
        else if (__builtin_mul_overflow(v->sizes[i] - 1, v->strides[i], &reach) || reach > MOST_ELEMENTS || reach < -MOST_ELEMENTS)
            FAIL(ACLNN_ERROR_PARAM, "stride[%d] is %lld for %lld elements; a view reaches at most 2^48 elements", i,
                 (long long)v->strides[i], (long long)v->sizes[i]);
        else
            *(reach < 0 ? &low : &high) += reach;
    if (offset + low < 0)
        FAIL(ACLNN_ERROR_PARAM, "the view begins %lld elements before its storage", (long long)-(offset + low));
    return 0;
}

aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                           void *tensorDataAddr)
{
    if (viewDimsNum > TENSOR_MAX_DIMS || storageDimsNum > TENSOR_MAX_DIMS) {
        error_set(ACLNN_ERROR_PARAM, __func__, "%llu view and %llu storage dimensions; at most %d are allowed",
                  (unsigned long long)viewDimsNum, (unsigned long long)storageDimsNum, TENSOR_MAX_DIMS);
        return NULL;
    }
    if ((!viewDims && viewDimsNum) || (!storageDims && storageDimsNum)) {
        error_set(ACLNN_ERROR_NULLPTR, __func__, "viewDims or storageDims is null");
        return NULL;
    }
    struct aclTensor *const t = tensor_take();
    if (!t) {
        error_set(ERROR_BAD_ALLOC, __func__, "out of host memory");
        return NULL;
    }
    t->ticket = 0;
    if (tensor_fill(t, viewDims, viewDimsNum, stride) != 0 || tensor_check_reach(&t->view, offset) != 0) {
        aclDestroyTensor(t);
        return NULL;
    }
    t->acl_dtype = (int32_t)dataType;
    const enum dtype dtype = dtype_from_acl((int32_t)dataType);
    t->view.dtype = (uint8_t)(dtype < DTYPE_COUNT ? dtype : DTYPE_NONE);
    t->storage = tensorDataAddr;
    t->offset = offset;
    t->view.data = t->storage ? t->storage + offset * (int64_t)dtype_bytes(dtype) : NULL;
    t->format = (int32_t)format;
    t->storage_ndim = (uint8_t)storageDimsNum;
    for (uint64_t i = 0; i < storageDimsNum; ++i)
        t->storage_sizes[i] = storageDims[i];
    return t;
}

aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
    struct aclTensor *const t = (struct aclTensor *)(uintptr_t)tensor;
    if (!t)
        return 0;
    if (__builtin_expect(t->ticket != 0, 0))
        awaited_forget(t);
    if (free_tensors.count >= FREE_TENSORS) {
        free(t);
        return 0;
    }
    thread_at_exit(&free_tensors_cleanup);
    t->next = free_tensors.first;
    free_tensors.first = t;
    ++free_tensors.count;
    return 0;
}

aclScalar *aclCreateScalar(void *value, aclDataType dataType)
{
    const enum dtype dtype = dtype_from_acl((int32_t)dataType);
    struct aclScalar *s;
    if (!value || dtype >= DTYPE_COUNT) {
        error_set(value ? ACLNN_ERROR_PARAM : ACLNN_ERROR_NULLPTR, __func__, "value is %p, dataType is %d", value, (int)dataType);
        return NULL;
    }
    if (!(s = malloc(sizeof *s))) {
        error_set(ERROR_BAD_ALLOC, __func__, "out of host memory");
        return NULL;
    }
    s->dtype = dtype;
    scalar_read(s, value);
    return s;
}

aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
    free((void *)(uintptr_t)scalar);
    return 0;
}

/* The five arrays differ in their element only. */
#define ARRAY_FUNCTIONS(Name, element, parameter)                                                                     \
    acl##Name *aclCreate##Name(element *value, uint64_t size)                                                   \
    {                                                                                                                 \
        struct acl##Name *array;                                                                                      \
        if (size > 0 && !value) {                                                                                     \
            error_set(ACLNN_ERROR_NULLPTR, __func__, "value is null, size is %llu", (unsigned long long)size);        \
            return NULL;                                                                                              \
        }                                                                                                             \
        /* In whole words: compilers read neighbouring bools together, as far as the alignment allows. */             \
        const uint64_t words = size < UINT64_MAX / 32 ? (size * sizeof(element) + 7) / 8 : UINT64_MAX / 32;           \
        array = malloc(sizeof *array + (size_t)words * 8);                                                            \
        if (!array) {                                                                                                 \
            error_set(ERROR_BAD_ALLOC, __func__, "no host memory for %llu values", (unsigned long long)size);         \
            return NULL;                                                                                              \
        }                                                                                                             \
        array->count = size;                                                                                          \
        if (size > 0)                                                                                                 \
            memcpy(array->parameter, value, size * sizeof(element));                                                  \
        return array;                                                                                                 \
    }

ARRAY_FUNCTIONS(IntArray, const int64_t, values)
ARRAY_FUNCTIONS(FloatArray, const float, values)
ARRAY_FUNCTIONS(BoolArray, const bool, values)
ARRAY_FUNCTIONS(TensorList, aclTensor *const, tensors)
ARRAY_FUNCTIONS(ScalarList, aclScalar *const, scalars)

#define DESTROY_ARRAY(Name)                               \
    aclnnStatus aclDestroy##Name(const acl##Name *array)  \
    {                                                     \
        free((void *)(uintptr_t)array);                   \
        return 0;                                         \
    }
DESTROY_ARRAY(IntArray)
DESTROY_ARRAY(FloatArray)
DESTROY_ARRAY(BoolArray)

aclnnStatus aclDestroyTensorList(const aclTensorList *array)
{
    for (uint64_t i = 0; array && i < array->count; ++i)
        aclDestroyTensor(array->tensors[i]);
    free((void *)(uintptr_t)array);
    return 0;
}

aclnnStatus aclDestroyScalarList(const aclScalarList *array)
{
    for (uint64_t i = 0; array && i < array->count; ++i)
        aclDestroyScalar(array->scalars[i]);
    free((void *)(uintptr_t)array);
    return 0;
}

aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum)
{
    REQUIRE(tensor && viewDims && viewDimsNum, ACLNN_ERROR_NULLPTR, "tensor, viewDims or viewDimsNum is null");
    const size_t bytes = sizeof(int64_t) * (tensor->view.ndim ? tensor->view.ndim : 1);
    int64_t *const dims = malloc(bytes);
    REQUIRE(dims, ERROR_BAD_ALLOC, "out of host memory");
    memcpy(dims, tensor->view.sizes, sizeof(int64_t) * tensor->view.ndim);
    *viewDims = dims;
    *viewDimsNum = tensor->view.ndim;
    return 0;
}

aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType)
{
    REQUIRE(tensor && dataType, ACLNN_ERROR_NULLPTR, "tensor or dataType is null");
    *dataType = (aclDataType)tensor->acl_dtype;
    return 0;
}
