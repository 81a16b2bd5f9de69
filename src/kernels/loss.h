/* Loss kernels: elementwise losses and their gradients, and the negative log likelihood.
 *
 * Invariant: losses are written element by element; sums are the caller's (kernels/norm.h), so they have its fixed order. */
#ifndef KERNELS_LOSS_H
#define KERNELS_LOSS_H

#include <stdint.h>

#include "kernels/convert.h"

enum loss_id {
    LOSS_SQUARE, /* (x - t)^2 */
    LOSS_ABSOLUTE,
    LOSS_SMOOTH,            /* parameter: beta */
    LOSS_CROSS_ENTROPY,     /* x is a probability */
    LOSS_LOGITS,            /* x is a logit */
    LOSS_DIVERGENCE,        /* t (log t - x) */
    LOSS_DIVERGENCE_LOG,    /* the target is a logarithm */
    LOSS_DIVERGENCE_TARGET, /* the same two, their slope by the target */
    LOSS_DIVERGENCE_LOG_TARGET,
    LOSS_MARGIN, /* log(1 + exp(-t x)) */
    LOSS_COUNT
};

/* x, t, weight (NULL: 1), positive_weight (NULL: 1; LOSS_LOGITS only): n contiguous values. */
struct loss_operands {
    const void *x, *t, *weight, *positive_weight;
    double parameter;
};

/* Log probabilities of some positions: class c of position i is x[c * class_stride + i * position_stride]. */
struct likelihood {
    const void *x, *weight; /* weight: one a class, or NULL */
    const int64_t *target;
    int64_t classes, class_stride, positions, position_stride, ignore;
};

struct loss_float_kernels {
    void (*forward[LOSS_COUNT])(const struct loss_operands *o, void *out, int64_t n);
    /* out = gradient * g[i * g_step] * scale */
    void (*backward[LOSS_COUNT])(const struct loss_operands *o, const void *g, int64_t g_step, double scale, void *out, int64_t n);
    /* Adds to *sum and *weights; losses (NULL: not wanted) are written one a position. Returns the first position whose
     * target is no class, or -1. */
    int64_t (*likelihood)(const struct likelihood *l, void *losses, double *sum, double *weights);
    /* dx[target] = -weight * g[i * g_step] * scale for each position; the rest must be 0 already. */
    int64_t (*likelihood_backward)(const struct likelihood *l, const void *g, int64_t g_step, double scale, void *dx);
};

struct loss_kernels {
    struct loss_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
