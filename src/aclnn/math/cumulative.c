/* Running sums, products and extremes along one dimension. Floats accumulate in f64, integers in i64, as torch's CPU does. */
#include <string.h>

#include "aclnn/math/complex_product.h"
#include "aclnn/math/index_blocks.h"
#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/kernels.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"

enum { COLUMNS = 256, ITEM = 1 << 14 };

/* in and out as lines along dim, or, when the last dimension is another one, as groups of neighbouring lines. */
struct scan_work {
    struct view in, out, positions;
    int dim;
    enum scan scan;
    int minimum; /* extremes: 1 for the smallest */
    enum accumulate type;
    int other_ndim;
    int64_t other_sizes[TENSOR_MAX_DIMS], other_in[TENSOR_MAX_DIMS], other_out[TENSOR_MAX_DIMS], other_positions[TENSOR_MAX_DIMS];
    int64_t lines;
};

static void scan_lines(void *argument, int64_t begin, int64_t end)
{
    const struct scan_work *const w = argument;
    const convert_load_fn load = tile_loader((enum dtype)w->in.dtype, w->type, (enum dtype)w->out.dtype);
    const convert_store_fn store = kernels->convert->store[w->out.dtype][w->type];
    const int64_t in_bytes = (int64_t)dtype_bytes((enum dtype)w->in.dtype);
    const int64_t out_bytes = (int64_t)dtype_bytes((enum dtype)w->out.dtype);
    const int64_t n = w->in.sizes[w->dim], in_stride = w->in.strides[w->dim], out_stride = w->out.strides[w->dim];
    double tile[TILE];
    for (int64_t line = begin; line < end; ++line) {
        const char *const in = w->in.data + walk_offset(line, w->other_ndim, w->other_sizes, w->other_in) * in_bytes;
        char *const out = w->out.data + walk_offset(line, w->other_ndim, w->other_sizes, w->other_out) * out_bytes;
        union {
            double f64;
            int64_t i64;
        } carry;
        if (w->type == ACCUMULATE_F64)
            carry.f64 = w->scan == SCAN_prod;
        else
            carry.i64 = w->scan == SCAN_prod;
        for (int64_t i = 0; i < n; i += TILE) {
            const int64_t count = least(TILE, n - i);
            load(tile, in + i * in_stride * in_bytes, in_stride, count);
            kernels->scan->row[w->scan][w->type](tile, count, &carry);
            store(out + i * out_stride * out_bytes, out_stride, tile, count);
        }
    }
}

/* Groups of up to COLUMNS neighbours along the last dimension; a line of the others is a row of such groups. */
static void scan_columns(void *argument, int64_t begin, int64_t end)
{
    const struct scan_work *const w = argument;
    const int last = w->in.ndim - 1;
    const convert_load_fn load = tile_loader((enum dtype)w->in.dtype, w->type, (enum dtype)w->out.dtype);
    const convert_store_fn store = kernels->convert->store[w->out.dtype][w->type];
    const fold_pair_fn pair = kernels->reduce->pair[w->scan == SCAN_sum ? FOLD_sum : FOLD_prod][w->type];
    const int64_t in_bytes = (int64_t)dtype_bytes((enum dtype)w->in.dtype);
    const int64_t out_bytes = (int64_t)dtype_bytes((enum dtype)w->out.dtype);
    const int64_t width = w->in.sizes[last], groups = (width + COLUMNS - 1) / COLUMNS;
    double sums[COLUMNS], row[COLUMNS];
    for (int64_t item = begin; item < end; ++item) {
        const int64_t line = item / groups, column = item % groups * COLUMNS, count = least(COLUMNS, width - column);
        const char *in =
            w->in.data + (walk_offset(line, w->other_ndim, w->other_sizes, w->other_in) + column * w->in.strides[last]) * in_bytes;
        char *out = w->out.data +
                    (walk_offset(line, w->other_ndim, w->other_sizes, w->other_out) + column * w->out.strides[last]) * out_bytes;
        for (int64_t i = 0; i < w->in.sizes[w->dim]; ++i) {
            load(i == 0 ? sums : row, in, w->in.strides[last], count);
            if (i > 0)
                pair(sums, row, count);
            store(out, w->out.strides[last], sums, count);
            in += w->in.strides[w->dim] * in_bytes;
            out += w->out.strides[w->dim] * out_bytes;
        }
    }
}

static void scan_extremes(void *argument, int64_t begin, int64_t end)
{
    const struct scan_work *const w = argument;
    const int64_t in_bytes = (int64_t)dtype_bytes((enum dtype)w->in.dtype), n = w->in.sizes[w->dim];
    const int64_t positions_bytes = (int64_t)dtype_bytes((enum dtype)w->positions.dtype);
    const int64_t in_stride = w->in.strides[w->dim] * in_bytes, out_stride = w->out.strides[w->dim] * in_bytes;
    const int64_t positions_stride = w->positions.strides[w->dim] * positions_bytes;
    double tile[TILE];
    int64_t where[TILE];
    for (int64_t line = begin; line < end; ++line) {
        const char *const in = w->in.data + walk_offset(line, w->other_ndim, w->other_sizes, w->other_in) * in_bytes;
        char *const out = w->out.data + walk_offset(line, w->other_ndim, w->other_sizes, w->other_out) * in_bytes;
        char *const positions =
            w->positions.data + walk_offset(line, w->other_ndim, w->other_sizes, w->other_positions) * positions_bytes;
        double best = 0;
        int64_t at = -1;
        for (int64_t i = 0; i < n; i += TILE) {
            const int64_t count = least(TILE, n - i);
            kernels->convert->load[w->in.dtype][w->type](tile, in + i * in_stride, w->in.strides[w->dim], count);
            kernels->scan->extreme[w->minimum][w->type](tile, where, count, i, &best, &at);
            kernels->convert->store[w->out.dtype][w->type](out + i * out_stride, w->out.strides[w->dim], tile, count);
            kernels->convert->store[w->positions.dtype][ACCUMULATE_I64](positions + i * positions_stride,
                                                                        w->positions.strides[w->dim], where, count);
        }
    }
}

/* Collects the dimensions that a line doesn't run along. */
static void find_lines(struct scan_work *w, bool without_last)
{
    w->lines = 1;
    for (int d = 0; d < w->in.ndim; ++d) {
        if (d == w->dim || (without_last && d == w->in.ndim - 1))
            continue;
        w->lines *= w->in.sizes[d];
        w->other_sizes[w->other_ndim] = w->in.sizes[d];
        w->other_in[w->other_ndim] = w->in.strides[d];
        w->other_out[w->other_ndim] = w->out.strides[d];
        w->other_positions[w->other_ndim++] = w->positions.strides[d];
    }
}

struct scan_job {
    int dim;
    enum scan scan;
    int minimum;
};

/* Operands: self, out. */
static int scan_run(struct plan *plan)
{
    const struct scan_job *const job = PLAN_IMMEDIATE(plan, struct scan_job);
    struct scan_work w = {
        .in = view_at_least_1d(plan->operands[0]), .out = view_at_least_1d(plan->operands[1]), .dim = job->dim, .scan = job->scan};
    if (w.in.count == 0)
        return 0;
    if (w.scan == SCAN_prod && dtype_kind((enum dtype)w.in.dtype) == KIND_COMPLEX) {
        complex_running_product(&w.out, &w.in, w.dim);
        return 0;
    }
    view_as_real(&w.in);
    view_as_real(&w.out);
    w.type = accumulate_of((enum dtype)w.out.dtype) == ACCUMULATE_I64 ? ACCUMULATE_I64 : ACCUMULATE_F64;
    const int64_t n = w.in.sizes[w.dim], width = w.in.sizes[w.in.ndim - 1];
    const bool columns = w.dim != w.in.ndim - 1;
    find_lines(&w, columns);
    if (columns)
        pool_for(w.lines * ((width + COLUMNS - 1) / COLUMNS), 1 + ITEM / (n * least(width, COLUMNS)), scan_columns, &w);
    else
        pool_for(w.lines, 1 + ITEM / n, scan_lines, &w);
    return 0;
}

static int scan_checked(struct plan *plan, const aclTensor *self, int64_t dim, aclTensor *out, int *wrapped)
{
    struct view *from, *to;
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_dim(plan, dim, from, "dim", wrapped));
    TRY(check_sizes(plan, to, "out", from->sizes, from->ndim));
    return check_output_not_expanded(plan, to, "out");
}

static int scan_plan(enum operator_id id, const aclTensor *self, int64_t dim, enum scan scan, aclTensor *out,
                     uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, scan_run, workspace_size, executor, &plan));
    struct scan_job *const job = PLAN_IMMEDIATE(plan, struct scan_job);
    job->scan = scan;
    plan->copes_with_same = 1; /* self */
    PLAN_TRY(plan, scan_checked(plan, self, dim, out, &job->dim));
    const struct view *const from = &plan->operands[0], *const to = &plan->operands[1];
    if (dtype_kind((enum dtype)from->dtype) == KIND_COMPLEX || dtype_kind((enum dtype)to->dtype) == KIND_COMPLEX)
        PLAN_TRY(plan, check_same_dtype(plan, from, "self", to, "out"));
    PLAN_REQUIRE(plan, dtype_kind((enum dtype)from->dtype) != KIND_COMPLEX || scan == SCAN_prod || from->ndim < TENSOR_MAX_DIMS,
                 ACLNN_ERROR_PARAM, "%s: self is %s; sums of complex types have at most %d dimensions", operator_name(id),
                 view_text(from), TENSOR_MAX_DIMS - 1);
    return finish_by_size(plan, 0, workspace_size, executor);
}

/* dtype is out's type. */
aclnnStatus aclnnCumsumGetWorkspaceSize(const aclTensor *self, int64_t dim, aclDataType dtype, aclTensor *out,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return scan_plan(OPERATOR_Cumsum, self, dim, SCAN_sum, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Cumsum)

aclnnStatus aclnnCumprodGetWorkspaceSize(const aclTensor *input, const aclScalar *dim, aclDataType dtype, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(dim, ACLNN_ERROR_NULLPTR, "dim is null");
    return scan_plan(OPERATOR_Cumprod, input, scalar_to_int64(dim), SCAN_prod, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Cumprod)

/* Operands: self, values, indices. */
static int extreme_run(struct plan *plan)
{
    const struct scan_job *const job = PLAN_IMMEDIATE(plan, struct scan_job);
    struct scan_work w = {.in = view_at_least_1d(plan->operands[0]),
                          .out = view_at_least_1d(plan->operands[1]),
                          .positions = view_at_least_1d(plan->operands[2]),
                          .dim = job->dim,
                          .minimum = job->minimum};
    if (w.in.count == 0)
        return 0;
    w.type = accumulate_of((enum dtype)w.in.dtype);
    find_lines(&w, false);
    pool_for(w.lines, 1 + ITEM / w.in.sizes[w.dim], scan_extremes, &w);
    return 0;
}

static int extreme_plan(enum operator_id id, const aclTensor *self, int64_t dim, aclTensor *values, aclTensor *indices,
                        uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *positions;
    TRY(plan_begin(id, extreme_run, workspace_size, executor, &plan));
    struct scan_job *const job = PLAN_IMMEDIATE(plan, struct scan_job);
    job->minimum = id == OPERATOR_Cummin;
    PLAN_TRY(plan, scan_checked(plan, self, dim, values, &job->dim));
    PLAN_TRY(plan, plan_output(plan, indices, "indicesOut", &positions));
    PLAN_TRY(plan, check_not_complex(plan, &plan->operands[0], "self"));
    PLAN_TRY(plan, check_same_dtype(plan, &plan->operands[0], "self", &plan->operands[1], "valuesOut"));
    PLAN_TRY(plan, check_index_dtype(plan, positions, "indicesOut"));
    PLAN_TRY(plan, check_sizes(plan, positions, "indicesOut", plan->operands[0].sizes, plan->operands[0].ndim));
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnCummaxGetWorkspaceSize(const aclTensor *self, int64_t dim, aclTensor *valuesOut, aclTensor *indicesOut,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return extreme_plan(OPERATOR_Cummax, self, dim, valuesOut, indicesOut, workspaceSize, executor);
}
ACLNN_PHASE_2(Cummax)

aclnnStatus aclnnCumminGetWorkspaceSize(const aclTensor *self, int64_t dim, aclTensor *valuesOut, aclTensor *indicesOut,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return extreme_plan(OPERATOR_Cummin, self, dim, valuesOut, indicesOut, workspaceSize, executor);
}
ACLNN_PHASE_2(Cummin)
