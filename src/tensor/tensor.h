/* Tensors, scalars and lists as CANN's C API hands them over (aclCreateTensor, aclCreateScalar, aclCreateIntArray ...).
 *
 * Invariant: a handle owns its sizes and strides and never the memory it points at. `struct view` is the operand form:
 * everything a kernel needs, address already computed; plans keep copies of views and never handles, because a caller may
 * destroy its handles as soon as phase 2 was launched. */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"

enum { TENSOR_MAX_DIMS = 8 };

/* Strided memory. sizes and strides count elements; only the first `ndim` entries are defined.
 * contiguous: row-major without gaps (an empty tensor and a one-element tensor are contiguous). */
struct view {
    char *data;
    int64_t count;
    uint8_t dtype; /* enum dtype; a handle of a type that is only stored says DTYPE_NONE, see plan_stored_dtype */
    uint8_t ndim;
    bool contiguous;
    int64_t sizes[TENSOR_MAX_DIMS];
    int64_t strides[TENSOR_MAX_DIMS];
};

/* What every tensor needs shares a cache line or two: a launch makes three. */
struct aclTensor {
    struct aclTensor *next; /* free list of the thread */
    uint64_t ticket;        /* tensor/awaited.h; 0: no plan is going to set the shape */
    char *storage;          /* what the caller passed: the storage's base */
    int64_t offset;         /* elements */
    int32_t acl_dtype;
    int32_t format;
    uint8_t storage_ndim;
    struct view view;
    int64_t storage_sizes[TENSOR_MAX_DIMS];
    struct aclTensor *next_awaited; /* under awaited.c's lock */
};

struct aclScalar {
    enum dtype dtype;
    union {
        double f64;
        int64_t i64;
        complex64_pair c128;
    } value; /* f64 for floats, i64 for integers and bool */
};

struct aclIntArray {
    uint64_t count;
    int64_t values[];
};
struct aclFloatArray {
    uint64_t count;
    float values[];
};
struct aclBoolArray {
    uint64_t count;
    bool values[];
};
struct aclTensorList {
    uint64_t count;
    struct aclTensor *tensors[];
}; /* owns its tensors */
struct aclScalarList {
    uint64_t count;
    struct aclScalar *scalars[];
}; /* owns its scalars */

/* Fills s->value from one element of s->dtype. */
void scalar_read(struct aclScalar *s, const void *value);
/* The value of a scalar in the type asked for; complex values give their real part. */
double scalar_to_double(const struct aclScalar *scalar);
int64_t scalar_to_int64(const struct aclScalar *scalar);
complex64_pair scalar_to_complex(const struct aclScalar *scalar);

/* --- views ------------------------------------------------------------------------------------------------------- */

/* Row-major strides of `sizes`; recomputes count and contiguous. */
void view_make_contiguous(struct view *v);
/* Recomputes count and contiguous after sizes or strides changed. */
void view_refresh(struct view *v);
/* Exchanges two dimensions; view_refresh is the caller's. */
void view_swap_dims(struct view *v, int a, int b);
bool view_same_sizes(const struct view *a, const struct view *b);
/* "f32[2,3]", into a thread-local ring of texts: up to 8 live at once, for error messages. */
const char *view_text(const struct view *v);
/* Sizes of a broadcast with b, torch's rules. False when they don't fit. */
bool view_broadcast_sizes(const struct view *a, const struct view *b, int64_t *sizes, uint8_t *ndim);
/* `v` expanded to sizes (strides 0 where it is broadcast); false when it doesn't fit. */
bool view_expand(struct view *v, const int64_t *sizes, uint8_t ndim);
/* Do the byte ranges [lowest, highest address) of the two meet? Empty views never do. */
bool view_overlaps(const struct view *a, const struct view *b);
/* Two elements of one view share an address (an expanded output). */
bool view_overlaps_itself(const struct view *v);
/* Byte range of a view, relative to nothing: first and past-last address. */
void view_range(const struct view *v, const char **first, const char **last);

/* Drops dimensions of size 1 and merges neighbours that are contiguous in all views at once (sizes equal in all; the first
 * gives them). Operands keep one common shape; ndim becomes at least 1. Used by every elementwise loop. */
void views_coalesce(struct view *views, int count);
/* Reorders the dimensions of all views so that views[0] has its smallest stride innermost. */
void views_sort_by_stride(struct view *views, int count);

/* dim may be negative; a 0-dimensional tensor takes 0 and -1. Returns the dimension, or -1 when out of range. */
int view_wrap_dim(int64_t dim, int ndim);

#endif
