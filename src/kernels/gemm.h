/* Matrix products: out = alpha * (a b) + beta * addend, any strides, one tile of `out` a call.
 *
 * Invariant: an element's value depends on the problem alone, never on how `out` was cut into tiles, so callers may cut by the
 * number of threads. f16 and bf16 operands are widened while packing and summed in f32. */
#ifndef KERNELS_GEMM_H
#define KERNELS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/* A matrix in memory; strides count elements and may be 0 or negative. */
struct gemm_operand {
    const void *data; /* NULL: absent (addend only) */
    int64_t row_stride, column_stride;
    uint8_t dtype;
};

struct gemm_problem {
    int64_t rows, columns, depth;
    struct gemm_operand a, b;   /* rows x depth, depth x columns; both of out's compute type or narrower floats */
    struct gemm_operand addend; /* rows x columns; not read when beta is 0 */
    double alpha, beta;         /* for integers: the next two instead; for complex types: the real parts */
    int64_t alpha_integer, beta_integer;
    double alpha_imaginary, beta_imaginary; /* 0 unless the compute type is complex */
    void *out;
    int64_t out_row_stride, out_column_stride;
    uint8_t out_dtype;
    bool aside; /* `out` overlaps an operand that is still read: sum in the scratch first */
};

struct gemm_tile {
    int64_t row, rows, column, columns;
};

typedef void (*gemm_tile_fn)(const struct gemm_problem *problem, const struct gemm_tile *tile, void *scratch);

struct gemm_kernels {
    /* By compute type. A tile has at most tile_rows x tile_columns elements; scratch: scratch_bytes, 64-byte aligned. */
    gemm_tile_fn tile[DTYPE_COUNT];
    /* The same for rows == 1. Only f32 and f64. */
    gemm_tile_fn vector[DTYPE_COUNT];
    int64_t tile_rows, tile_columns;
    int64_t row_unit, column_unit; /* cutting elsewhere than at multiples of these wastes work */
    size_t scratch_bytes;
};

#endif
