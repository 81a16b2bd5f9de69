/* Sort, topk, k-th value and median along one dimension: lines of the tensor, each sorted by sort_line.c. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/index_blocks.h"
#include "aclnn/math/operand_check.h"
#include "aclnn/math/sort_line.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

enum { ITEM = 1 << 13 };

/* What of the sorted line is wanted. */
enum wanted { WANTED_all, WANTED_first, WANTED_rank, WANTED_median, WANTED_nan_median };

struct sort_job {
    int dim;
    bool descending;
    enum wanted wanted;
    int64_t k; /* first: how many; rank: which, from 1 */
};

/* Operands: self, values, indices (absent for medians of everything). values and indices have as many dimensions as self; dim
 * is 1 long for ranks. */
struct sort_work {
    const struct sort_job *job;
    struct view self, values, indices;
    int other_ndim;
    int64_t other_sizes[TENSOR_MAX_DIMS], other_self[TENSOR_MAX_DIMS], other_values[TENSOR_MAX_DIMS],
        other_indices[TENSOR_MAX_DIMS];
    int64_t lines;
    _Atomic bool failed;
};

/* Where the median is: NaN wins, unless NaN are left out. */
static int64_t median_rank(const struct sort_line *s, enum wanted wanted)
{
    const int64_t numbers = s->n - s->nan_count;
    if (wanted == WANTED_median ? s->nan_count > 0 : numbers == 0)
        return numbers + 1; /* the first NaN */
    return (numbers + 1) / 2;
}

static void write_line(const struct sort_work *w, const struct sort_line *s, int64_t first, int64_t count, const char *self,
                       int64_t values, int64_t indices)
{
    const int dim = w->job->dim;
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)w->self.dtype);
    int64_t positions[TILE];
    for (int64_t i = 0; i < count; i += TILE) {
        const int64_t n = count - i < TILE ? count - i : TILE;
        for (int64_t k = 0; k < n; ++k)
            positions[k] = sort_line_position(s, first + i + k);
        kernels->index->gather[move_size((enum dtype)w->self.dtype)](w->values.data + (values + i * w->values.strides[dim]) * bytes,
                                                                     w->values.strides[dim], self, 0, positions,
                                                                     w->self.strides[dim], n);
        if (w->indices.data)
            kernels->convert->store[w->indices.dtype][ACCUMULATE_I64](
                w->indices.data + (indices + i * w->indices.strides[dim]) * (int64_t)dtype_bytes((enum dtype)w->indices.dtype),
                w->indices.strides[dim], positions, n);
    }
}

static void sort_lines(void *argument, int64_t begin, int64_t end)
{
    struct sort_work *const w = argument;
    const struct sort_job *const job = w->job;
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)w->self.dtype);
    for (int64_t line = begin; line < end; ++line) {
        struct sort_line s;
        struct view row = {
            .dtype = w->self.dtype, .ndim = 1, .sizes = {w->self.sizes[job->dim]}, .strides = {w->self.strides[job->dim]}};
        row.data = w->self.data + walk_offset(line, w->other_ndim, w->other_sizes, w->other_self) * bytes;
        view_refresh(&row);
        if (!sort_line_begin(&s, &row, job->descending)) {
            atomic_store(&w->failed, true);
            return;
        }
        int64_t first = 0, count = job->wanted == WANTED_all ? s.n : job->wanted == WANTED_first ? job->k : 1;
        if (job->wanted == WANTED_all)
            sort_line_sort(&s);
        else if (job->wanted == WANTED_first)
            sort_line_sort_first(&s, job->k);
        else {
            const int64_t rank = job->wanted == WANTED_rank ? job->k : median_rank(&s, job->wanted);
            sort_line_select(&s, rank);
            first = rank - 1;
        }
        write_line(w, &s, first, count, row.data, walk_offset(line, w->other_ndim, w->other_sizes, w->other_values),
                   walk_offset(line, w->other_ndim, w->other_sizes, w->other_indices));
    }
}

static int sort_work_run(struct plan *plan, struct sort_work *w)
{
    const int64_t n = w->self.sizes[w->job->dim];
    w->lines = 1;
    for (int d = 0; d < w->self.ndim; ++d) {
        if (d == w->job->dim)
            continue;
        w->lines *= w->self.sizes[d];
        w->other_sizes[w->other_ndim] = w->self.sizes[d];
        w->other_self[w->other_ndim] = w->self.strides[d];
        w->other_values[w->other_ndim] = w->values.strides[d];
        w->other_indices[w->other_ndim++] = w->indices.strides[d];
    }
    if (w->lines > 0 && n > 0)
        pool_for(w->lines, 1 + ITEM / n, sort_lines, w);
    if (w->failed)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan),
                         "no memory to sort lines of %lld "
                         "elements",
                         (long long)n);
    return 0;
}

/* The dimension of a result that was dropped, put back. */
static struct view with_dim(struct view v, const struct view *self, int dim)
{
    if (v.ndim >= self->ndim || !v.data)
        return view_at_least_1d(v);
    for (int d = v.ndim; d > dim; --d) {
        v.sizes[d] = v.sizes[d - 1];
        v.strides[d] = v.strides[d - 1];
    }
    v.sizes[dim] = v.strides[dim] = 1;
    ++v.ndim;
    return v;
}

static int sort_run(struct plan *plan)
{
    struct sort_work w = {.job = PLAN_IMMEDIATE(plan, struct sort_job), .self = view_at_least_1d(plan->operands[0])};
    if (plan->operands[1].count == 0)
        return 0;
    w.values = with_dim(plan->operands[1], &w.self, w.job->dim);
    w.indices = with_dim(plan->operands[2], &w.self, w.job->dim);
    return sort_work_run(plan, &w);
}

/* --- phase 1 ---------------------------------------------------------------------------------------------------------------- */

struct sort_arguments {
    const aclTensor *self;
    int64_t dim;
    bool keepdim;
    aclTensor *values, *indices;
};

static int add_result(struct plan *plan, const struct sort_arguments *a, const aclTensor *tensor, const char *name,
                      const struct view *self, const struct sort_job *job, int64_t length)
{
    struct view *out;
    int64_t sizes[TENSOR_MAX_DIMS];
    int n = 0;
    TRY(plan_output(plan, tensor, name, &out));
    for (int d = 0; d < self->ndim; ++d)
        if (d != job->dim || a->keepdim)
            sizes[n++] = d == job->dim ? length : self->sizes[d];
    TRY(check_sizes(plan, out, name, sizes, n));
    return check_output_not_expanded(plan, out, name);
}

static int sort_checked(struct plan *plan, const struct sort_arguments *a, struct sort_job *job)
{
    struct view *self;
    const char *const name = plan_name(plan);
    TRY(plan_input(plan, a->self, "self", &self));
    TRY(check_not_complex(plan, self, "self"));
    TRY(check_dim(plan, a->dim, self, "dim", &job->dim));
    const int64_t n = self->ndim ? self->sizes[job->dim] : 1;
    if ((job->wanted == WANTED_first && (job->k < 0 || job->k > n)) || (job->wanted == WANTED_rank && (job->k < 1 || job->k > n)))
        return error_set(ACLNN_ERROR_PARAM, name, "k is %lld; dimension %d has %lld elements", (long long)job->k, job->dim,
                         (long long)n);
    const int64_t length = job->wanted == WANTED_all ? n : job->wanted == WANTED_first ? job->k : 1;
    TRY(add_result(plan, a, a->values, "valuesOut", self, job, length));
    TRY(add_result(plan, a, a->indices, "indicesOut", self, job, length));
    TRY(check_same_dtype(plan, self, "self", &plan->operands[1], "valuesOut"));
    TRY(check_index_dtype(plan, &plan->operands[2], "indicesOut"));
    if (job->wanted >= WANTED_rank && n == 0 && plan->operands[1].count > 0)
        return error_set(ACLNN_ERROR_PARAM, name, "self is %s: dim %d has no elements", view_text(self), job->dim);
    return 0;
}

static int sort_plan(enum operator_id id, struct sort_arguments arguments, struct sort_job job, uint64_t *workspace_size,
                     aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, sort_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, sort_checked(plan, &arguments, &job));
    *PLAN_IMMEDIATE(plan, struct sort_job) = job;
    return finish_by_size(plan, 0, workspace_size, executor);
}

/* Every sort here is stable. */
aclnnStatus aclnnSortGetWorkspaceSize(const aclTensor *self, bool stable, int64_t dim, bool descending, aclTensor *valuesOut,
                                      aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return sort_plan(OPERATOR_Sort, (struct sort_arguments){self, dim, true, valuesOut, indicesOut},
                     (struct sort_job){.descending = descending, .wanted = WANTED_all}, workspaceSize, executor);
}
ACLNN_PHASE_2(Sort)

/* The result is sorted whether asked for or not. */
aclnnStatus aclnnTopkGetWorkspaceSize(const aclTensor *self, int64_t k, int64_t dim, bool largest, bool sorted,
                                      aclTensor *valuesOut, aclTensor *indicesOut, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    return sort_plan(OPERATOR_Topk, (struct sort_arguments){self, dim, true, valuesOut, indicesOut},
                     (struct sort_job){.descending = largest, .wanted = WANTED_first, .k = k}, workspaceSize, executor);
}
ACLNN_PHASE_2(Topk)

/* sortPolicy names an algorithm of the chip. */
aclnnStatus aclnnTopkV2GetWorkspaceSize(const aclTensor *self, int64_t k, int64_t dim, bool largest, bool sorted,
                                        int64_t sortPolicy, aclTensor *valuesOut, aclTensor *indicesOut, uint64_t *workspaceSize,
                                        aclOpExecutor **executor)
{
    return sort_plan(OPERATOR_TopkV2, (struct sort_arguments){self, dim, true, valuesOut, indicesOut},
                     (struct sort_job){.descending = largest, .wanted = WANTED_first, .k = k}, workspaceSize, executor);
}
ACLNN_PHASE_2(TopkV2)

aclnnStatus aclnnKthvalueGetWorkspaceSize(const aclTensor *self, int64_t k, int64_t dim, bool keepdim, aclTensor *valuesOut,
                                          aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return sort_plan(OPERATOR_Kthvalue, (struct sort_arguments){self, dim, keepdim, valuesOut, indicesOut},
                     (struct sort_job){.wanted = WANTED_rank, .k = k}, workspaceSize, executor);
}
ACLNN_PHASE_2(Kthvalue)

#define MEDIAN_OF_DIM(Name, which)                                                                                             \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, int64_t dim, bool keepDim, aclTensor *valuesOut,         \
                                              aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor)       \
    {                                                                                                                         \
        return sort_plan(OPERATOR_##Name, (struct sort_arguments){self, dim, keepDim, valuesOut, indicesOut},                 \
                         (struct sort_job){.wanted = which}, workspaceSize, executor);                                        \
    }                                                                                                                         \
    ACLNN_PHASE_2(Name)
MEDIAN_OF_DIM(MedianDim, WANTED_median)
MEDIAN_OF_DIM(NanMedianDim, WANTED_nan_median)

/* The median of a whole tensor: one line, in whatever layout. */
static int median_run(struct plan *plan)
{
    const struct view *const self = &plan->operands[0], *const out = &plan->operands[1];
    struct sort_line s;
    double value = NAN;
    if (self->count == 0) {
        tile_write(out, 0, 1, &value, ACCUMULATE_F64);
        return 0;
    }
    if (!sort_line_begin(&s, self, false))
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld elements", (long long)self->count);
    const int64_t rank = median_rank(&s, PLAN_IMMEDIATE(plan, struct sort_job)->wanted);
    sort_line_select(&s, rank);
    complex64_pair element;
    tile_gather(&element, self, sort_line_position(&s, rank - 1), 1);
    tile_scatter(out, 0, 1, &element);
    return 0;
}

static int median_plan(enum operator_id id, const aclTensor *self, aclTensor *out, enum wanted wanted, uint64_t *workspace_size,
                       aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(id, median_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_not_complex(plan, from, "self"));
    PLAN_TRY(plan, check_same_dtype(plan, from, "self", to, "out"));
    PLAN_REQUIRE(plan, to->count == 1, ACLNN_ERROR_PARAM, "%s: out is %s; it takes one value", operator_name(id), view_text(to));
    PLAN_IMMEDIATE(plan, struct sort_job)->wanted = wanted;
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnMedianGetWorkspaceSize(const aclTensor *self, aclTensor *valuesOut, uint64_t *workspaceSize,
                                        aclOpExecutor **executor)
{
    return median_plan(OPERATOR_Median, self, valuesOut, WANTED_median, workspaceSize, executor);
}
ACLNN_PHASE_2(Median)

aclnnStatus aclnnNanMedianGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return median_plan(OPERATOR_NanMedian, self, out, WANTED_nan_median, workspaceSize, executor);
}
ACLNN_PHASE_2(NanMedian)
