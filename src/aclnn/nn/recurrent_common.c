/* What both ways through a recurrent network need: rows, states, products, sums. See recurrent.h. */
#include <string.h>

#include "aclnn/nn/matmul.h"
#include "aclnn/nn/recurrent.h"

int recurrent_sizes(struct plan *plan, const struct network *n, const int64_t **sizes)
{
    const struct view *const v = &plan->operands[R_SIZES];
    const char *const name = plan_name(plan);
    *sizes = NULL;
    if (v->dtype == DTYPE_NONE)
        return 0;
    int64_t *const values = (int64_t *)(void *)(plan->extra_views + plan->extra_view_count);
    stage_load(v, ACCUMULATE_I64, values);
    for (int64_t t = 0; t < n->steps; ++t) {
        const int64_t most = t == 0 ? n->batch : values[t - 1];
        if (values[t] < 1 || values[t] > most || (t == 0 && values[t] != n->batch))
            return error_set(ERROR_RT_DEVICE_TASK, name,
                             "batchSizes[%lld] is %lld; the first must be the batch's %lld, the others 1 to the one before",
                             (long long)t, (long long)values[t], (long long)n->batch);
    }
    *sizes = values;
    return 0;
}

static void clear_absent(const struct direction *d, void *memory, int64_t width)
{
    const struct network *const n = d->n;
    const int64_t row = width * n->bytes;
    for (int64_t t = 0; d->sizes && t < n->steps; ++t)
        memset((char *)memory + (t * n->batch + d->sizes[t]) * row, 0, (size_t)((n->batch - d->sizes[t]) * row));
}

void recurrent_load_rows(const struct direction *d, const struct view *view, void *memory, int64_t width)
{
    const struct network *const n = d->n;
    if (view->dtype == DTYPE_NONE)
        memset(memory, 0, (size_t)(n->steps * n->batch * width * n->bytes));
    else
        stage_load(view, n->type, memory);
    clear_absent(d, memory, width);
}

void recurrent_store_rows(const struct direction *d, const struct view *view, const void *memory)
{
    if (view->dtype != DTYPE_NONE)
        stage_store(view, d->n->type, memory);
}

static struct view state_view(const struct direction *d, int operand)
{
    struct view v = d->plan->operands[operand];
    if (v.dtype == DTYPE_NONE || !v.data)
        return v;
    v.data += d->index * v.strides[0] * (int64_t)dtype_bytes((enum dtype)v.dtype);
    v.sizes[0] = 1;
    view_refresh(&v);
    return v;
}

void recurrent_load_state(const struct direction *d, int operand, void *memory)
{
    const struct view v = state_view(d, operand);
    if (v.dtype == DTYPE_NONE)
        memset(memory, 0, (size_t)(d->n->batch * d->n->hidden * d->n->bytes));
    else
        stage_load(&v, d->n->type, memory);
}

void recurrent_store_state(const struct direction *d, int operand, const void *memory)
{
    const struct view v = state_view(d, operand);
    if (v.dtype != DTYPE_NONE)
        stage_store(&v, d->n->type, memory);
}

int recurrent_multiply(const struct network *n, const struct recurrent_product *p)
{
    const enum dtype type = n->compute;
    struct gemm_problem g = {.rows = p->rows, .columns = p->columns, .depth = p->depth, .alpha = 1, .beta = p->addend ? 1 : 0};
    g.a = (struct gemm_operand){p->a, p->a_transposed ? 1 : p->depth, p->a_transposed ? p->rows : 1, (uint8_t)type};
    g.b = (struct gemm_operand){p->b, p->b_transposed ? 1 : p->columns, p->b_transposed ? p->depth : 1, (uint8_t)type};
    if (p->parameter) {
        const int64_t *const s = p->parameter->strides;
        g.b = (struct gemm_operand){p->parameter->data, s[p->b_transposed], s[!p->b_transposed], p->parameter->dtype};
    }
    g.addend = (struct gemm_operand){p->addend, p->columns, 1, (uint8_t)type};
    g.out = p->out;
    g.aside = p->addend == p->out;
    g.out_row_stride = p->columns;
    g.out_column_stride = 1;
    g.out_dtype = (uint8_t)type;
    return matmul_run(&g, type, 1, NULL, NULL);
}

struct column_job {
    const void *matrix;
    void *sums;
    int64_t rows, width;
    enum accumulate type;
};

static void add_columns(void *argument, int64_t begin, int64_t end)
{
    const struct column_job *const j = argument;
    for (int64_t column = begin; column < end; ++column) {
        double sum = 0;
        for (int64_t at = column; at < j->rows * j->width; at += j->width)
            sum += j->type == ACCUMULATE_F64 ? ((const double *)j->matrix)[at] : (double)((const float *)j->matrix)[at];
        if (j->type == ACCUMULATE_F64)
            ((double *)j->sums)[column] = sum;
        else
            ((float *)j->sums)[column] = (float)sum;
    }
}

void recurrent_column_sums(enum accumulate type, const void *matrix, int64_t rows, int64_t width, void *sums)
{
    struct column_job j = {matrix, sums, rows, width, type};
    parallel_for(width, 4 * rows, add_columns, &j);
}
