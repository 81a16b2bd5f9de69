/* Template: the register tile of matrix products and convolutions for one float type.
 *
 * Before including define REAL (float or double), VECTOR, TAG; they stay defined. Gives micro_<TAG>(rows, ...): a block of
 * `rows` x 2 vectors of C from a packed panel of A ([depth][rows]) and one of B ([depth][2 vectors]).
 * Invariant: each element is one chain of multiply-adds over the depth, started at 0, then added to C or stored. */
#include "kernels/isa.h"

#ifndef GEMM_MICRO_CASES
/* The largest register tile: accumulators, two vectors of B and a broadcast must fit into the registers. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { GEMM_MICRO_ROWS = 14 };
#define GEMM_MICRO_CASES(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
enum { GEMM_MICRO_ROWS = 6 };
#define GEMM_MICRO_CASES(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
#define GEMM_NAME_(name, tag) name##_##tag
#define GEMM_NAME(name, tag) GEMM_NAME_(name, tag)
#define GEMM_INLINE static inline __attribute__((always_inline))
#endif

#define LANES ((int)(sizeof(VECTOR) / sizeof(REAL)))

/* rows is a constant at each call, so everything unrolls and the accumulators live in registers. */
GEMM_INLINE void GEMM_NAME(micro_fixed, TAG)(const int rows, int64_t depth, const REAL *a, int64_t a_step, const REAL *b,
                                             int64_t b_step, REAL *c, int64_t c_stride, int accumulate)
{
    VECTOR sum[GEMM_MICRO_ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i)
        sum[i][0] = sum[i][1] = (VECTOR){0};
    for (int64_t k = 0; k < depth; ++k, a += a_step, b += b_step) {
        const VECTOR b0 = *(const VECTOR *)b, b1 = *(const VECTOR *)(b + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            sum[i][0] += a[i] * b0;
            sum[i][1] += a[i] * b1;
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
        VECTOR *const c0 = (VECTOR *)(c + i * c_stride), *const c1 = (VECTOR *)(c + i * c_stride + LANES);
        if (accumulate) {
            sum[i][0] += *c0;
            sum[i][1] += *c1;
        }
        *c0 = sum[i][0];
        *c1 = sum[i][1];
    }
}

/* a_step, b_step: elements from one depth to the next (rows and 2 vectors for packed panels). */
static inline void GEMM_NAME(micro, TAG)(int rows, int64_t depth, const REAL *a, int64_t a_step, const REAL *b, int64_t b_step,
                                         REAL *c, int64_t c_stride, int accumulate)
{
    switch (rows) {
#define GEMM_CASE(n)                                                                                    \
    case n:                                                                                             \
        GEMM_NAME(micro_fixed, TAG)(n, depth, a, a_step, b, b_step, c, c_stride, accumulate);           \
        break;
        GEMM_MICRO_CASES(GEMM_CASE)
#undef GEMM_CASE
    }
}

#undef LANES
