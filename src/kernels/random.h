/* Random numbers from Philox words. See base/philox.h for who gets which word.
 *
 * Invariant: pure functions of the words; logarithm, sine and cosine are polynomials of ours without fused operations, so all
 * ISAs agree bit for bit. The f64 forms call the C library. */
#ifndef KERNELS_RANDOM_H
#define KERNELS_RANDOM_H

#include <stdint.h>

/* Halves round before they are compared with a limit. */
enum random_rounding { ROUNDING_none, ROUNDING_f16, ROUNDING_bf16 };

struct random_kernels {
    /* words[k * n + i] = word k of philox(seed, first + i, counter), k in 0..3 */
    void (*words)(uint32_t *words, uint64_t seed, uint64_t first, uint64_t counter, int64_t n);
    /* (0, 1] */
    void (*uniform_f32)(float *tile, const uint32_t *words, int64_t n);
    void (*uniform_f64)(double *tile, const uint32_t *low, const uint32_t *high, int64_t n);
    /* Two standard normal values from two words (Box-Muller): a takes the sine, b the cosine. */
    void (*normal_f32)(float *a, float *b, const uint32_t *x, const uint32_t *y, int64_t n);
    /* ... and from the four words of one call */
    void (*normal_f64)(double *a, double *b, const uint32_t *words, int64_t n);
    /* tile = -log(tile), for tiles in (0, 1]; never 0, as torch's exponential_ never is */
    void (*negative_log_f32)(float *tile, int64_t n);
    void (*negative_log_f64)(double *tile, int64_t n);
    /* tile = tile * range + low, rounded; values >= high become low */
    void (*scale_f32)(float *tile, int64_t n, float low, float range, float high, enum random_rounding rounding);
    void (*scale_f64)(double *tile, int64_t n, double low, double range, double high);
    /* tile = tile * deviation[i] + mean[i]; a step of 0 takes the first value for all */
    void (*affine_f32)(float *tile, int64_t n, const float *mean, int mean_step, const float *deviation, int deviation_step);
    void (*affine_f64)(double *tile, int64_t n, const double *mean, int mean_step, const double *deviation, int deviation_step);
    /* tile = tile <= probability[i] */
    void (*below_f32)(float *tile, int64_t n, const float *probability, int step);
    void (*below_f64)(double *tile, int64_t n, const double *probability, int step);
    void (*divide_f32)(float *tile, int64_t n, float divisor);
    /* word % range + base, range > 0 */
    void (*integer_32)(int64_t *tile, const uint32_t *words, uint32_t range, int64_t base, int64_t n);
    /* range 0 stands for 2**64 */
    void (*integer_64)(int64_t *tile, const uint32_t *high, const uint32_t *low, uint64_t range, int64_t base, int64_t n);
};

#endif
