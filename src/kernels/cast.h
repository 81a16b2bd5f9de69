/* Moving elements: conversion between types, gathering and scattering with a stride, filling.
 *
 * Invariant: conversions follow torch on the CPU: floats become integers as base/integer.h says, integers wrap, anything but 0 is true, real
 * numbers come from the real part. f16, bf16 and the 8-bit floats convert from and to f32 only; other pairs go through f32, as torch's do. */
#ifndef KERNELS_CAST_H
#define KERNELS_CAST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"

enum { CAST_SIZES = 5 }; /* element sizes 1, 2, 4, 8, 16, by their binary logarithm */

typedef void (*cast_convert_fn)(void *out, const void *in, size_t n);

struct cast_kernels {
    cast_convert_fn convert[DTYPE_ALL_COUNT][DTYPE_ALL_COUNT]; /* [to][from]; NULL: a narrow float with another than f32 */
    void (*gather[CAST_SIZES])(void *out, const void *in, int64_t stride, size_t n);
    void (*scatter[CAST_SIZES])(void *out, int64_t stride, const void *in, size_t n);
    void (*fill[CAST_SIZES])(void *out, const void *element, size_t n);
    /* `rows` pieces of row_bytes, in_step bytes apart, one behind the other. */
    void (*copy_rows)(void *out, const void *in, int64_t in_step, size_t row_bytes, size_t rows);
    /* out[row * out_stride + column] = in[column * in_stride + row]: a block small enough for the nearest cache. */
    void (*transpose[CAST_SIZES])(void *out, int64_t out_stride, const void *in, int64_t in_stride, size_t rows, size_t columns);
    /* Is any of n integers of the type zero? NULL for types that aren't integers. */
    bool (*has_zero[DTYPE_COUNT])(const void *in, size_t n);
};

#endif
