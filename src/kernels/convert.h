/* Tiles: strided elements of any type to and from contiguous memory of the type in which arithmetic accumulates.
 *
 * Invariant: narrow floats accumulate in f32, all integers and bool in i64, so that kernels exist for three types only.
 * Complex numbers come as pairs of floats (the caller adds a dimension of 2). */
#ifndef KERNELS_CONVERT_H
#define KERNELS_CONVERT_H

#include <stdint.h>

#include "base/dtype.h"

enum accumulate { ACCUMULATE_F64, ACCUMULATE_F32, ACCUMULATE_I64, ACCUMULATE_COUNT };

static inline enum accumulate accumulate_of(enum dtype d)
{
    if (dtype_kind(d) <= KIND_INTEGER)
        return ACCUMULATE_I64;
    return d == DTYPE_F64 || d == DTYPE_C128 ? ACCUMULATE_F64 : ACCUMULATE_F32;
}

static inline int64_t accumulate_bytes(enum accumulate a) { return a == ACCUMULATE_F32 ? 4 : 8; }

/* Can memory of type d be used as a tile as it is? */
static inline int accumulate_is_native(enum dtype d, enum accumulate a)
{
    return (d == DTYPE_F64 && a == ACCUMULATE_F64) || (d == DTYPE_F32 && a == ACCUMULATE_F32) ||
           (d == DTYPE_I64 && a == ACCUMULATE_I64);
}

/* stride counts elements. A bool reads as 0 or 1 and is written as value != 0; floats become integers as
 * base/integer.h says, and integers wrap when they are narrowed. */
typedef void (*convert_load_fn)(void *tile, const void *in, int64_t stride, int64_t n);
typedef void (*convert_store_fn)(void *out, int64_t stride, const void *tile, int64_t n);

struct convert_kernels {
    convert_load_fn load[DTYPE_ALL_COUNT][ACCUMULATE_COUNT]; /* NULL: complex */
    convert_load_fn load_narrow[DTYPE_ALL_COUNT];            /* floats as i32 to tiles of i64; NULL: other types */
    convert_store_fn store[DTYPE_ALL_COUNT][ACCUMULATE_COUNT];
};

#endif
