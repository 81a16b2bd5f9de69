/* Kernels that make each element along one dimension from a few weighted elements along it: upsampling, padding, averages, and
 * their gradients, which are the same with the table turned round.
 *
 * Invariant: an element's terms are added in the table's order, so all ISAs agree bit for bit. */
#ifndef KERNELS_RESAMPLE_H
#define KERNELS_RESAMPLE_H

#include <stdint.h>

#include "kernels/convert.h"

/* Element o is the sum over e in [begin[o], begin[o + 1]) of weight[e] * in[index[e]]. */
struct resample_table {
    int64_t in, out; /* sizes of the dimension before and after */
    const int32_t *begin, *index;
    const double *weight;
};

struct resample_kernels {
    /* in[outer][table->in][inner] -> out[outer][table->out][inner]; f64 and f32 */
    void (*pass[ACCUMULATE_COUNT])(const void *in, void *out, int64_t outer, int64_t inner, const struct resample_table *table);
    /* out[i * out_stride] = in[index[i] * in_stride] for elements of 1 << k bytes; strides in elements */
    void (*gather[5])(void *out, int64_t out_stride, const void *in, int64_t in_stride, const int32_t *index, int64_t n);
};

#endif
