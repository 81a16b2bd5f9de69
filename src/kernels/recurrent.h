/* Kernels of recurrent cells: what a cell does with the sums that the matrix products gave, one row (one sequence of the batch) a
 * call, forward and backward.
 *
 * Invariant: an element depends on the same column of the row's inputs only, so rows and columns may be cut anywhere. Gates lie
 * side by side in blocks of `n`: an LSTM's are input, forget, candidate, output; a GRU's are reset, update, candidate. */
#ifndef KERNELS_RECURRENT_H
#define KERNELS_RECURRENT_H

#include <stdint.h>

#include "kernels/convert.h"

/* Sums of a row: input + input_bias + hidden + hidden_bias are the gates before their functions. Biases may be NULL. */
struct recurrent_sums {
    const void *input, *hidden, *input_bias, *hidden_bias;
};

struct lstm_row {
    struct recurrent_sums sums;
    const void *cell;     /* before */
    void *hidden, *after; /* of the cell */
    void *gate[4];        /* after their functions; gate[0] NULL: not wanted */
    void *tanh_after;     /* NULL: not wanted */
    int64_t n;
};

struct lstm_gradient_row {
    const void *grad_hidden, *grad_after; /* either may be NULL: zero */
    const void *cell, *after, *gate[4];
    void *grad_gates; /* 4 n: of the sums */
    void *grad_cell;
    int64_t n;
};

struct gru_row {
    struct recurrent_sums sums;
    const void *before;
    void *after;
    void *gate[3];     /* after their functions; gate[0] NULL: not wanted */
    void *hidden_part; /* hidden + hidden_bias of the candidate */
    int64_t n;
};

struct gru_gradient_row {
    const void *grad_after;
    const void *before, *gate[3], *hidden_part;
    void *grad_input, *grad_hidden; /* 3 n each: of the two sums, which differ in the candidate */
    void *grad_before;              /* the part that doesn't go through the products */
    int64_t n;
};

struct recurrent_float_kernels {
    void (*lstm)(const struct lstm_row *row);
    void (*lstm_gradient)(const struct lstm_gradient_row *row);
    void (*gru)(const struct gru_row *row);
    void (*gru_gradient)(const struct gru_gradient_row *row);
};

struct recurrent_kernels {
    struct recurrent_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
};

#endif
