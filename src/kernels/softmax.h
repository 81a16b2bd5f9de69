/* Softmax kernels on one row, or on a block of columns of a [depth][columns] matrix at once.
 *
 * Invariant: sums run in 64 partial sums (rows) or in plain order (columns); a row of all -Inf gives NaN, as torch's. */
#ifndef KERNELS_SOFTMAX_H
#define KERNELS_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/convert.h"

enum { SOFTMAX_COLUMNS = 64 }; /* most columns of a block */

struct softmax_float_kernels {
    void (*forward)(const void *x, void *out, int64_t n, bool logarithm);
    void (*backward)(const void *dy, const void *y, void *dx, int64_t n, bool logarithm);
    /* `width` <= SOFTMAX_COLUMNS columns; rows are `stride` apart. */
    void (*forward_columns)(const void *x, void *out, int64_t depth, int64_t stride, int width, bool logarithm);
    void (*backward_columns)(const void *dy, const void *y, void *dx, int64_t depth, int64_t stride, int width, bool logarithm);
};

struct softmax_kernels {
    struct softmax_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
