/* Normalised rows. See row_norm.h. */
#include "aclnn/nn/row_norm.h"

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/norm.h"

enum { PARAMETER_BLOCKS = 16 };

static void forward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct row_norm *const n = argument;
    const struct norm_float_kernels *const k = &kernels->norm->real[n->type];
    const int64_t bytes = n->width * accumulate_bytes(n->type);
    for (int64_t r = begin; r < end; ++r) {
        const char *const in = n->input + r * bytes;
        const double mean = n->uncentered ? 0 : k->sum(in, n->width) / (double)n->width;
        const double rstd = 1 / sqrt(k->square_sum(in, n->width, mean) / (double)n->width + n->eps);
        staged_set_value(n->mean, n->type, r, mean);
        staged_set_value(n->rstd, n->type, r, rstd);
        k->layer(in, n->weight, n->bias, n->out + r * bytes, n->width, mean, rstd);
    }
}

void row_norm_forward(const struct row_norm *n)
{
    if (n->rows > 0 && n->width > 0)
        parallel_for(n->rows, n->width, forward_rows, (void *)(uintptr_t)n);
}

static void backward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct row_norm *const n = argument;
    const struct norm_float_kernels *const k = &kernels->norm->real[n->type];
    for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * n->width * accumulate_bytes(n->type);
        const double mean = staged_value(n->mean, n->type, r, 0), rstd = staged_value(n->rstd, n->type, r, 0);
        double sums[2];
        k->layer_sums(n->grad_out + at, n->input + at, n->weight, n->width, mean, rstd, sums);
        if (n->uncentered)
            sums[0] = 0;
        k->layer_gradient(n->grad_out + at, n->input + at, n->weight, n->out + at, n->width, mean, rstd, sums);
    }
}

static int64_t rows_a_block(int64_t rows) { return rows > PARAMETER_BLOCKS ? (rows + PARAMETER_BLOCKS - 1) / PARAMETER_BLOCKS : 1; }
static int64_t block_count(int64_t rows) { return (rows + rows_a_block(rows) - 1) / rows_a_block(rows); }

uint64_t row_norm_partials_bytes(int64_t rows, int64_t width) { return (uint64_t)(2 * block_count(rows) * width) * sizeof(double); }

static void parameter_blocks(void *argument, int64_t begin, int64_t end)
{
    const struct row_norm *const n = argument;
    const struct norm_float_kernels *const k = &kernels->norm->real[n->type];
    const int64_t bytes = n->width * accumulate_bytes(n->type), blocks = block_count(n->rows), rows = rows_a_block(n->rows);
    for (int64_t block = begin; block < end; ++block) {
        double *const weight = n->partials + block * n->width, *const bias = weight + blocks * n->width;
        memset(weight, 0, (size_t)n->width * sizeof *weight);
        memset(bias, 0, (size_t)n->width * sizeof *bias);
        const int64_t last = (block + 1) * rows < n->rows ? (block + 1) * rows : n->rows;
        for (int64_t r = block * rows; r < last; ++r)
            k->layer_parameters(n->grad_out + r * bytes, n->input + r * bytes, n->width, staged_value(n->mean, n->type, r, 0),
                                staged_value(n->rstd, n->type, r, 0), weight, bias);
    }
}

static void add_blocks(const struct row_norm *n)
{
    const int64_t blocks = block_count(n->rows);
    for (int64_t i = 0; i < n->width; ++i) {
        double weight = 0, bias = 0;
        for (int64_t block = 0; block < blocks; ++block) {
            weight += n->partials[block * n->width + i];
            bias += n->partials[(blocks + block) * n->width + i];
        }
        staged_set_value(n->grad_weight, n->type, i, weight);
        staged_set_value(n->grad_bias, n->type, i, bias);
    }
}

void row_norm_backward(const struct row_norm *n)
{
    if (n->out && n->rows * n->width > 0)
        parallel_for(n->rows, 2 * n->width, backward_rows, (void *)(uintptr_t)n);
    if (!n->partials)
        return;
    pool_for(block_count(n->rows), 1, parameter_blocks, (void *)(uintptr_t)n);
    add_blocks(n);
}
