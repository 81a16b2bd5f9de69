/* Matrix product kernels. Compiled once per ISA, with contraction: multiply-add is one instruction where the ISA has it.
 *
 * Scratch of a tile: packed block of A, packed panels of B, and the sums when they can't be kept in `out`. */
#include "kernels/gemm.h"

#include "kernels/gemm_sizes.h"
#include "kernels/isa.h"

enum { GEMM_TILE_ROWS = 2 * GEMM_BLOCK_ROWS, GEMM_VECTOR_DEPTH = 4096 };

#define REAL float
#define VECTOR vector_f32
#define TAG f32
#define REAL_DTYPE DTYPE_F32
#define GEMM_INDEX int32_t
#include "kernels/gemm_float.h"
#include "kernels/gemm_vector.h"
#include "kernels/gemm_end.h"

#define REAL double
#define VECTOR vector_f64
#define TAG f64
#define REAL_DTYPE DTYPE_F64
#define GEMM_INDEX int64_t
#include "kernels/gemm_float.h"
#include "kernels/gemm_vector.h"
#include "kernels/gemm_end.h"

/* --- types without a packed kernel ---------------------------------------------------------------------------------- */

#define PLAIN_TILE(tag, type)                                                                                              \
    static void gemm_tile_##tag(const struct gemm_problem *p, const struct gemm_tile *tile, void *scratch)                  \
    {                                                                                                                      \
        type *const sum = scratch;                                                                                         \
        const type *const a = p->a.data, *const b = p->b.data, *const addend = p->addend.data;                              \
        for (int64_t i = tile->row; i < tile->row + tile->rows; ++i) {                                                      \
            for (int64_t j = 0; j < tile->columns; ++j)                                                                     \
                sum[j] = 0;                                                                                                 \
            for (int64_t k = 0; k < p->depth; ++k) {                                                                        \
                const type x = a[i * p->a.row_stride + k * p->a.column_stride];                                             \
                const type *const row = b + k * p->b.row_stride + tile->column * p->b.column_stride;                        \
                for (int64_t j = 0; j < tile->columns; ++j)                                                                 \
                    sum[j] = (type)(sum[j] + x * row[j * p->b.column_stride]);                                              \
            }                                                                                                               \
            type *const out = (type *)p->out + i * p->out_row_stride + tile->column * p->out_column_stride;                 \
            for (int64_t j = 0; j < tile->columns; ++j) {                                                                   \
                type value = (type)((type)p->alpha_integer * sum[j]);                                                       \
                if (addend && p->beta_integer != 0)                                                                         \
                    value = (type)(value + (type)p->beta_integer *                                                          \
                                               addend[i * p->addend.row_stride + (tile->column + j) * p->addend.column_stride]); \
                out[j * p->out_column_stride] = value;                                                                      \
            }                                                                                                               \
        }                                                                                                                   \
    }
PLAIN_TILE(i64, int64_t)
PLAIN_TILE(i32, int32_t)
PLAIN_TILE(i16, int16_t)
PLAIN_TILE(i8, int8_t)
PLAIN_TILE(u8, uint8_t)

#define PAIR complex32_pair
#define REAL float
#define TAG c64
#include "kernels/gemm_pair.h"

#define PAIR complex64_pair
#define REAL double
#define TAG c128
#include "kernels/gemm_pair.h"

const struct gemm_kernels KERNEL_TABLE(gemm_kernels) = {
    .tile = {[DTYPE_F32] = gemm_tile_f32,
             [DTYPE_F64] = gemm_tile_f64,
             [DTYPE_I64] = gemm_tile_i64,
             [DTYPE_I32] = gemm_tile_i32,
             [DTYPE_I16] = gemm_tile_i16,
             [DTYPE_I8] = gemm_tile_i8,
             [DTYPE_U8] = gemm_tile_u8,
             [DTYPE_C64] = gemm_tile_c64,
             [DTYPE_C128] = gemm_tile_c128},
    .vector = {[DTYPE_F32] = gemm_vector_f32, [DTYPE_F64] = gemm_vector_f64},
    .tile_rows = GEMM_TILE_ROWS,
    .tile_columns = GEMM_TILE_COLUMNS,
    .row_unit = GEMM_MICRO_ROWS,
    .column_unit = 2 * LANES_F32,
    .scratch_bytes = sizeof(double) *
                     (GEMM_BLOCK_ROWS * GEMM_DEPTH + GEMM_TILE_COLUMNS * GEMM_DEPTH + GEMM_TILE_ROWS * GEMM_TILE_COLUMNS),
};
