/* Normalisation kernels: sums and affine maps over contiguous runs (planes of a channel, rows of a layer).
 *
 * Invariant: a run is summed in 64 partial sums over blocks of NORM_BLOCK elements, the blocks' sums are added in double; sums by
 * column (column_sums, column_squares, layer_parameters) add row after row in double. So the result depends on neither the ISA nor
 * the number of threads. `real` is f32 or f64, chosen by the table's index. */
#ifndef KERNELS_NORM_H
#define KERNELS_NORM_H

#include <stdint.h>

#include "kernels/convert.h"

enum { NORM_BLOCK = 4096 };

struct norm_float_kernels {
    double (*sum)(const void *x, int64_t n);
    /* sum of (x - mean)^2 */
    double (*square_sum)(const void *x, int64_t n, double mean);
    /* out = x * scale + shift */
    void (*affine)(const void *x, void *out, int64_t n, double scale, double shift);
    /* sums[0] += sum dy, sums[1] += sum dy * (x - mean) */
    void (*gradient_sums)(const void *dy, const void *x, int64_t n, double mean, double *sums);
    /* dx = dy * a + x * b + c */
    void (*gradient)(const void *dy, const void *x, void *dx, int64_t n, double a, double b, double c);

    /* Columns of a matrix: rows of `width` elements, `stride` apart; totals are double[width].
     * sums[j] += sum x[i][j]; squares[j] += sum (x[i][j] - mean[j])^2 */
    void (*column_sums)(const void *x, int64_t rows, int64_t width, int64_t stride, double *sums);
    void (*column_squares)(const void *x, int64_t rows, int64_t width, int64_t stride, const double *mean, double *squares);
    void (*column_affine)(const void *x, void *out, int64_t rows, int64_t width, int64_t stride, const double *scale,
                          const double *shift);

    /* One row of a layer; weight and bias may be NULL (1 and 0). */
    void (*layer)(const void *x, const void *weight, const void *bias, void *out, int64_t n, double mean, double rstd);
    /* sums[0] = sum dy * weight, sums[1] = sum dy * weight * (x - mean) * rstd */
    void (*layer_sums)(const void *dy, const void *x, const void *weight, int64_t n, double mean, double rstd, double *sums);
    /* dx = (dy * weight - sums[0] / n - xhat * sums[1] / n) * rstd */
    void (*layer_gradient)(const void *dy, const void *x, const void *weight, void *dx, int64_t n, double mean, double rstd,
                           const double *sums);
    /* weight_sums[j] += dy * xhat, bias_sums[j] += dy; either may be NULL. */
    void (*layer_parameters)(const void *dy, const void *x, int64_t n, double mean, double rstd, double *weight_sums,
                             double *bias_sums);
    /* x = x / (1 + e^(-scale x)) */
    void (*swish)(void *x, int64_t n, double scale);
    /* dy = dy * swish'(y), where y = x * a + b */
    void (*swish_gradient)(void *dy, const void *x, int64_t n, double a, double b, double scale);
};

struct norm_kernels {
    struct norm_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
