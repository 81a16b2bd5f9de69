/* Rows that are normalised each by its own mean and deviation (layer norm) or root mean square, forward and backward, on dense
 * memory of one type. What LayerNorm, RmsNorm and their relatives share.
 *
 * Gradients of weight and bias are column sums: fixed blocks of rows each add into their own doubles, then the blocks are added in
 * order, whatever the number of threads. */
#ifndef ACLNN_NN_ROW_NORM_H
#define ACLNN_NN_ROW_NORM_H

#include <stdbool.h>

#include "aclnn/nn/staging.h"

struct row_norm {
    enum accumulate type;
    int64_t rows, width;
    double eps;
    bool uncentered;               /* no mean is taken away: root mean square */
    const char *input;             /* rows x width, as grad_out and out */
    const char *grad_out;          /* backward */
    const void *weight, *bias;     /* width, or NULL: 1 and 0 */
    void *mean, *rstd;             /* one a row; written forward (may be NULL), read backward (mean NULL: 0) */
    char *out;                     /* forward the result, backward the input's gradient; backward NULL: not wanted */
    double *partials;              /* row_norm_partials_bytes; NULL: no gradients of parameters */
    void *grad_weight, *grad_bias; /* may be NULL */
};

void row_norm_forward(const struct row_norm *n);
void row_norm_backward(const struct row_norm *n);
uint64_t row_norm_partials_bytes(int64_t rows, int64_t width);

#endif
