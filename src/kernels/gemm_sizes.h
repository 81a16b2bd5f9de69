/* Block sizes of matrix products and convolutions: packed panels of B for one depth block stay in the second-level cache
 * together with a block of A, one panel of each in the first. */
#ifndef KERNELS_GEMM_SIZES_H
#define KERNELS_GEMM_SIZES_H

enum {
    GEMM_DEPTH = 256,
#if defined(__AVX512F__) || defined(__aarch64__)
    GEMM_BLOCK_ROWS = 140,
#else
    GEMM_BLOCK_ROWS = 132,
#endif
    GEMM_TILE_COLUMNS = 256,
    GEMM_SHALLOW = 32,      /* depth up to which B is small beside the sums */
    GEMM_SHALLOW_ROWS = 24, /* rows of sums that fit the nearest cache */
};

#endif
