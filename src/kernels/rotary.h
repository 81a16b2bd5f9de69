/* Rotary position embedding kernels: one row (the last dimension of one position and head) a call.
 *
 * A row is turned by out[j] = x[source[j]] * cosine[j] + sign[j] * x[partner[j]] * sine[j]; the tables say which elements form a
 * pair. Invariant: source and partner are permutations. */
#ifndef KERNELS_ROTARY_H
#define KERNELS_ROTARY_H

#include <stdint.h>

#include "kernels/convert.h"

struct rotary_table {
    int64_t width;
    const int32_t *source, *partner;
    const float *sign; /* 1 or -1 */
};

struct rotary_float_kernels {
    void (*turn)(const struct rotary_table *t, const void *x, const void *cosine, const void *sine, void *out);
    /* dx of the above */
    void (*turn_back)(const struct rotary_table *t, const void *dy, const void *cosine, const void *sine, void *dx);
    /* dcosine[j] += dy[j] * x[source[j]], dsine[j] += dy[j] * sign[j] * x[partner[j]] */
    void (*angles)(const struct rotary_table *t, const void *dy, const void *x, double *dcosine, double *dsine);
};

struct rotary_kernels {
    struct rotary_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
