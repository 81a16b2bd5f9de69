/* Attention kernels: rows of a block of scores between the two matrix products of flash attention.
 *
 * Invariant: a hidden score is -Inf and its probability exactly 0; a row in which everything is hidden has the maximum -Inf and
 * the sum 0, and gives zeros. Sums run in 64 partial sums, so all ISAs agree. Arrays are of the table index's type. */
#ifndef KERNELS_ATTENTION_H
#define KERNELS_ATTENTION_H

#include <stdint.h>

#include "kernels/convert.h"

struct attention_float_kernels {
    /* Takes n more scores of a row: *maximum and *sum move on and the scores become e^(score - maximum). Returns the factor by
     * which everything summed before must shrink. */
    double (*step)(void *scores, int64_t n, double *maximum, double *sum);
    /* scores = e^(score - maximum) / sum */
    void (*probability)(void *scores, int64_t n, double maximum, double sum);
    /* d = p * (d - delta) */
    void (*gradient)(const void *p, void *d, int64_t n, double delta);
    /* x = x * factor */
    void (*scale)(void *x, int64_t n, double factor);
    /* x = x + y * factor */
    void (*add)(void *x, const void *y, int64_t n, double factor);
    double (*dot)(const void *x, const void *y, int64_t n);
    /* scores = -Inf where the mask isn't 0; stride in bytes, may be 0 */
    void (*hide)(void *scores, const uint8_t *mask, int64_t stride, int64_t n);
    /* x[i] = x[i] * (bit first + i is set ? factor : 0), lowest bit of a byte first */
    void (*drop)(void *x, const uint8_t *bits, int64_t first, int64_t n, double factor);
};

struct attention_kernels {
    struct attention_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
