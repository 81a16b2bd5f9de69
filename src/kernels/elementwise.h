/* Elementwise kernels on contiguous tiles, one for each operation and type; the list is elementwise.def.
 *
 * Invariant: all kernels have one signature, so that the engine, foreach operators and tile programs drive them alike. */
#ifndef KERNELS_ELEMENTWISE_H
#define KERNELS_ELEMENTWISE_H

#include <stddef.h>

#include "base/dtype.h"

enum elementwise_id {
#define OP(name, inputs, result, cost) ELEMENTWISE_##name,
#include "kernels/elementwise.def"
    ELEMENTWISE_COUNT
};

enum { ELEMENTWISE_SCALARS = 4, ELEMENTWISE_OPERANDS = 4 /* the output and at most three inputs */ };

/* A scalar of a call: f64 for float kernels, i64 for integers and bool, c128 for complex ones. */
union elementwise_scalar {
    double f64;
    int64_t i64;
    complex64_pair c128;
};

/* operands[0][i] = op(operands[1][i], ...). The output may be the very same memory as an input of the same element size; other
 * overlaps are the caller's to avoid. scalars: as many as the kernel names (s0..s3). */
typedef void (*elementwise_fn)(void *const *operands, size_t n, const union elementwise_scalar *scalars);

struct elementwise_kernels {
    elementwise_fn run[ELEMENTWISE_COUNT][DTYPE_ALL_COUNT]; /* by the type computed in; NULL: not for this type */
};

/* The type of a kernel's result, given the type that it computes in. */
enum elementwise_result { RESULT_SAME, RESULT_BOOL, RESULT_REAL, RESULT_COMPLEX };

struct elementwise_info {
    const char *name;
    uint8_t inputs;
    uint8_t result; /* enum elementwise_result */
    uint8_t cost;   /* time for one element; 1 = an addition */
};

static inline enum dtype elementwise_result_dtype(enum elementwise_result result, enum dtype compute)
{
    switch (result) {
    case RESULT_BOOL: return DTYPE_B8;
    case RESULT_REAL: return compute == DTYPE_C128 ? DTYPE_F64 : compute == DTYPE_C64 ? DTYPE_F32 : compute;
    case RESULT_COMPLEX: return compute == DTYPE_F64 ? DTYPE_C128 : DTYPE_C64;
    default: return compute;
    }
}

#endif
