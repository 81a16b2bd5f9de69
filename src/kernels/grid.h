/* Kernels of grid sampling: one sampled place is a few weighted elements ("taps") of every channel.
 *
 * Invariant: the taps of a place are added in their order in the compute type, channel by channel. */
#ifndef KERNELS_GRID_H
#define KERNELS_GRID_H

#include <stdint.h>

#include "kernels/convert.h"

enum { GRID_TAPS = 16, GRID_DIMS = 3 };

/* weight[t] for in[offset[t]]; slope[d][t]: the weight's derivative by the coordinate d. */
struct grid_taps {
    int64_t offset[GRID_TAPS];
    double weight[GRID_TAPS], slope[GRID_DIMS][GRID_TAPS];
    int count;
};

struct grid_float_kernels {
    /* out[c * out_stride] = the sum of weight * in[c * plane + offset], for each channel */
    void (*sample)(const struct grid_taps *taps, const void *in, int64_t plane, void *out, int64_t out_stride, int64_t channels);
    /* in[c * plane + offset] += weight * grad[c * grad_stride] */
    void (*spread)(const struct grid_taps *taps, void *in, int64_t plane, const void *grad, int64_t grad_stride, int64_t channels);
    /* sums[d] = the sum over channels of grad * (the sum of slope[d] * in) */
    void (*slopes)(const struct grid_taps *taps, const void *in, int64_t plane, const void *grad, int64_t grad_stride,
                   int64_t channels, double *sums);
};

struct grid_kernels {
    struct grid_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
