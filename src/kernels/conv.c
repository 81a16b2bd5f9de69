/* Convolution kernels. Compiled once per ISA, with contraction. */
#include "kernels/conv.h"

#include "base/arithmetic.h"
#include "kernels/gemm_sizes.h"
#include "kernels/isa.h"

/* Columns of the weight gradient that are summed at once: all of 64 channels x 3 x 3, and a multiple of any panel. */
enum { CONV_COLUMN_BLOCK = 640 };
/* Pixels of a line that are spread at once, and columns summed together, of thin convolutions. */
enum { CONV_THIN_LINE = 256, CONV_THIN_TAPS = 9 };
_Static_assert((int)CONV_THIN_DEPTH <= (int)GEMM_DEPTH, "offsets of all columns");
_Static_assert((int)CONV_PIXELS_TOGETHER <= (int)GEMM_DEPTH, "images of one call fill one depth block at most");

/* The most products of a partial sum, whose rounding error grows with their number. A result of up to LONE_CHAIN products is one
 * sum: to read it again right after it was written costs more than these products, as it may lie in no cache yet. */
enum { CHAIN = 32, LONE_CHAIN = 64 };
/* Chains of equal length. */
static int64_t chain_of(int64_t depth) { return depth > 0 ? divide_up(depth, divide_up(depth, CHAIN)) : 1; }

#define REAL float
#define VECTOR vector_f32
#define TAG f32
#define REAL_DTYPE DTYPE_F32
#define GEMM_INDEX int32_t
#include "kernels/conv_float.h"
#include "kernels/conv_thin_float.h"
#include "kernels/gemm_end.h"

#define REAL double
#define VECTOR vector_f64
#define TAG f64
#define REAL_DTYPE DTYPE_F64
#define GEMM_INDEX int64_t
#include "kernels/conv_float.h"
#include "kernels/conv_thin_float.h"
#include "kernels/gemm_end.h"

const struct conv_kernels KERNEL_TABLE(conv_kernels) = {
    .real = {[ACCUMULATE_F64] = {pack_matrix_f64, pad_f64, correlate_f64, weight_gradient_f64, thin_correlate_f64,
                                 thin_gradient_f64},
             [ACCUMULATE_F32] = {pack_matrix_f32, pad_f32, correlate_f32, weight_gradient_f32, thin_correlate_f32,
                                 thin_gradient_f32}},
    .pixel_block = GEMM_TILE_COLUMNS,
    .column_unit = 2 * LANES_F32,
    .column_block = CONV_COLUMN_BLOCK,
    .scratch_bytes = sizeof(double) * (CONV_COLUMN_BLOCK + GEMM_BLOCK_ROWS) * GEMM_DEPTH,
};
