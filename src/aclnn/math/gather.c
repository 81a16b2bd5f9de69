/* Element by element indexing along one dimension: gather, scatter in all its forms, take, put.
 *
 * Invariant of scatters: elements that could meet at one place differ in the coordinate of `dim` only, so work is cut along the
 * other dimensions and the meeting ones are handled in order: the last write wins and sums are reproducible. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/index_blocks.h"
#include "aclnn/math/operand_check.h"
#include "aclnn/math/scalar_element.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

enum { PIECE = 512, ITEM = 1 << 14 };
enum access { ACCESS_gather, ACCESS_scatter, ACCESS_update };

/* torch's numbers for what scatter does. */
enum scatter_reduce { SCATTER_none, SCATTER_add, SCATTER_multiply, SCATTER_max, SCATTER_min, SCATTER_mean };

/* `elements` has the index's sizes; `indexed` is the tensor in which the index picks along dim. */
struct element_work {
    struct view index, elements, indexed;
    int dim;
    enum access access;
    enum update update;
    int other_ndim; /* dimensions but dim and the last one */
    int64_t other_sizes[TENSOR_MAX_DIMS], other_index[TENSOR_MAX_DIMS], other_elements[TENSOR_MAX_DIMS],
        other_indexed[TENSOR_MAX_DIMS];
    int64_t piece, pieces; /* of the last dimension */
    int64_t span, spans;   /* of dim, when it isn't the last one */
    _Atomic bool failed;
    _Atomic int64_t bad; /* an index that is out of range */
};

/* n elements of one row: `at` are the offsets of the first one. */
static void run_piece(struct element_work *w, int64_t at_index, int64_t at_elements, int64_t at_indexed, int64_t n)
{
    const int last = w->index.ndim - 1;
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)w->indexed.dtype), size = w->indexed.sizes[w->dim];
    const int64_t step = w->indexed.strides[w->dim], stride = w->elements.strides[last];
    const int64_t along = last == w->dim ? 0 : w->indexed.strides[last];
    int64_t index[PIECE];
    kernels->convert->load[w->index.dtype][ACCUMULATE_I64](
        index, w->index.data + at_index * (int64_t)dtype_bytes((enum dtype)w->index.dtype), w->index.strides[last], n);
    if (kernels->index->outside(index, n, size)) {
        for (int64_t i = 0; i < n; ++i)
            if ((index[i] < 0 || index[i] >= size) && !atomic_exchange(&w->failed, true))
                atomic_store(&w->bad, index[i]);
        return;
    }
    char *const element = w->elements.data + at_elements * bytes, *const place = w->indexed.data + at_indexed * bytes;
    if (w->access == ACCESS_gather)
        kernels->index->gather[move_size((enum dtype)w->indexed.dtype)](element, stride, place, along, index, step, n);
    else if (w->access == ACCESS_scatter)
        kernels->index->scatter[move_size((enum dtype)w->indexed.dtype)](place, along, element, stride, index, step, n);
    else
        kernels->index->scatter_update[w->update][w->indexed.dtype](place, along, element, stride, index, step, n);
}

/* Items are (other coordinates, piece of the last dimension, span of dim). */
static void run_items(void *argument, int64_t begin, int64_t end)
{
    struct element_work *const w = argument;
    const int last = w->index.ndim - 1;
    const bool along_dim = last == w->dim;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t span = item % w->spans, piece = item / w->spans % w->pieces, other = item / w->spans / w->pieces;
        const int64_t i = walk_offset(other, w->other_ndim, w->other_sizes, w->other_index);
        const int64_t e = walk_offset(other, w->other_ndim, w->other_sizes, w->other_elements);
        const int64_t x = walk_offset(other, w->other_ndim, w->other_sizes, w->other_indexed);
        const int64_t column = piece * w->piece, columns = least(w->piece, w->index.sizes[last] - column);
        const int64_t first = along_dim ? 0 : span * w->span;
        const int64_t past = along_dim ? 1 : least(first + w->span, w->index.sizes[w->dim]);
        for (int64_t k = first; k < past; ++k)
            for (int64_t c = column; c < column + columns; c += PIECE)
                run_piece(w, i + c * w->index.strides[last] + (along_dim ? 0 : k * w->index.strides[w->dim]),
                          e + c * w->elements.strides[last] + (along_dim ? 0 : k * w->elements.strides[w->dim]),
                          x + (along_dim ? 0 : c * w->indexed.strides[last]), least(PIECE, column + columns - c));
    }
}

static int element_work_run(struct plan *plan, struct element_work *w)
{
    w->index = view_at_least_1d(w->index);
    w->elements = view_at_least_1d(w->elements);
    w->indexed = view_at_least_1d(w->indexed);
    if (w->index.count == 0)
        return 0;
    const int last = w->index.ndim - 1;
    int64_t others = 1;
    for (int d = 0; d < last; ++d) {
        if (d == w->dim)
            continue;
        others *= w->index.sizes[d];
        w->other_sizes[w->other_ndim] = w->index.sizes[d];
        w->other_index[w->other_ndim] = w->index.strides[d];
        w->other_elements[w->other_ndim] = w->elements.strides[d];
        w->other_indexed[w->other_ndim++] = w->indexed.strides[d];
    }
    const bool reads = w->access == ACCESS_gather;
    w->piece = last == w->dim && !reads ? w->index.sizes[last] : PIECE;
    w->pieces = (w->index.sizes[last] + w->piece - 1) / w->piece;
    const int64_t length = last == w->dim ? 1 : w->index.sizes[w->dim], columns = least(w->piece, w->index.sizes[last]);
    w->span = reads ? least(length, 1 + ITEM / columns) : length;
    w->spans = (length + w->span - 1) / w->span;
    pool_for(others * w->pieces * w->spans, 1 + ITEM / (columns * w->span), run_items, w);
    if (!w->failed)
        return 0;
    return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "index %lld is out of bounds for dimension %d with size %lld",
                     (long long)w->bad, w->dim, (long long)w->indexed.sizes[w->dim]);
}

/* --- gather: operands self, index, out ------------------------------------------------------------------------------------- */

struct gather_job {
    int dim;
};

static int gather_run(struct plan *plan)
{
    struct element_work w = {.index = plan->operands[1],
                             .elements = plan->operands[2],
                             .indexed = plan->operands[0],
                             .dim = PLAN_IMMEDIATE(plan, struct gather_job)->dim,
                             .access = ACCESS_gather};
    return element_work_run(plan, &w);
}

/* Where the index has elements, it must fit into the tensor in all dimensions but dim. */
static int check_index_fits(const struct plan *plan, const struct view *index, const struct view *indexed, int dim)
{
    if (index->count == 0)
        return 0;
    const struct view a = view_at_least_1d(*index), b = view_at_least_1d(*indexed);
    bool fits = a.ndim == b.ndim;
    for (int d = 0; fits && d < a.ndim; ++d)
        fits = d == dim || a.sizes[d] <= b.sizes[d];
    if (fits)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                     "index is %s and self is %s; with dim %d the index needs as many dimensions "
                     "and at most self's sizes in the others",
                     view_text(index), view_text(indexed), dim);
}

static int gather_checked(struct plan *plan, const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out)
{
    struct view *from, *list, *to;
    int *const wrapped = &PLAN_IMMEDIATE(plan, struct gather_job)->dim;
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_input(plan, index, "index", &list));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_dim(plan, dim, from, "dim", wrapped));
    TRY(check_index_dtype(plan, list, "index"));
    TRY(check_same_dtype(plan, from, "self", to, "out"));
    TRY(check_sizes(plan, to, "out", list->sizes, list->ndim));
    TRY(check_index_fits(plan, list, from, *wrapped));
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnGatherGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Gather, gather_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, gather_checked(plan, self, dim, index, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Gather)

/* --- scatter: operands self (or NULL), index, source (or NULL), out ---------------------------------------------------------- */

struct scatter_job {
    int dim;
    bool in_place, has_value, exclude_self;
    enum scatter_reduce reduce;
    complex64_pair value; /* one element of out's type */
};

static enum update update_of(enum scatter_reduce reduce)
{
    switch (reduce) {
    case SCATTER_multiply: return UPDATE_mul;
    case SCATTER_max: return UPDATE_max;
    case SCATTER_min: return UPDATE_min;
    default: return UPDATE_add;
    }
}

/* A view of one element that stands everywhere. */
static struct view everywhere(const struct view *like, const void *element, enum dtype dtype)
{
    struct view v = *like;
    v.data = (char *)(uintptr_t)element;
    v.dtype = (uint8_t)dtype;
    memset(v.strides, 0, sizeof v.strides);
    v.contiguous = v.count == 1;
    return v;
}

/* Before a reduction that leaves self out: the touched places get the reduction's identity. */
static int clear_touched(struct plan *plan, const struct element_work *like, enum scatter_reduce reduce)
{
    static const double identities[] = {
        [SCATTER_add] = 0, [SCATTER_multiply] = 1, [SCATTER_max] = -INFINITY, [SCATTER_min] = INFINITY, [SCATTER_mean] = 0};
    complex64_pair element = {0, 0};
    struct element_work w = *like;
    const enum dtype dtype = (enum dtype)w.indexed.dtype;
    element_limit(&element, dtype, identities[reduce]);
    w.elements = everywhere(&w.index, &element, dtype);
    w.access = ACCESS_scatter;
    return element_work_run(plan, &w);
}

struct mean_work {
    const struct view *out, *counts;
    bool exclude_self;
    enum accumulate type;
};

static void divide_range(void *argument, int64_t begin, int64_t end)
{
    const struct mean_work *const w = argument;
    double tile[TILE];
    int64_t count[TILE];
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t n = least(TILE, end - at);
        tile_read(tile, w->type, w->out, at, n);
        tile_read(count, ACCUMULATE_I64, w->counts, at, n);
        for (int64_t i = 0; i < n; ++i) {
            const int64_t c = count[i] + !w->exclude_self;
            int64_t *const integer = (int64_t *)(void *)tile + i;
            if (c <= 1)
                continue;
            if (w->type == ACCUMULATE_F64)
                tile[i] /= (double)c;
            else if (w->type == ACCUMULATE_F32)
                ((float *)(void *)tile)[i] /= (float)c;
            else
                *integer = *integer / c - (*integer % c < 0);
        }
        tile_write(w->out, at, n, tile, w->type);
    }
}

/* The mean of what met in a place: the sum is there already, the workspace counts. */
static int divide_by_counts(struct plan *plan, const struct element_work *like, bool exclude_self)
{
    struct element_work w = *like;
    const int64_t one = 1;
    struct view counts = w.indexed;
    counts.data = plan->workspace;
    counts.dtype = DTYPE_I64;
    view_make_contiguous(&counts);
    memset(counts.data, 0, (size_t)counts.count * 8);
    const struct view out = w.indexed;
    w.indexed = counts;
    w.elements = everywhere(&w.index, &one, DTYPE_I64);
    TRY(element_work_run(plan, &w));
    struct mean_work mean = {&out, &counts, exclude_self, accumulate_of((enum dtype)out.dtype)};
    pool_for(out.count, ITEM, divide_range, &mean);
    return 0;
}

static int scatter_run(struct plan *plan)
{
    struct scatter_job *const job = PLAN_IMMEDIATE(plan, struct scatter_job);
    const struct view *const self = &plan->operands[0], *const out = &plan->operands[3];
    struct element_work w = {.index = plan->operands[1],
                             .elements = plan->operands[2],
                             .indexed = *out,
                             .dim = job->dim,
                             .access = job->reduce == SCATTER_none ? ACCESS_scatter : ACCESS_update,
                             .update = update_of(job->reduce)};
    if (!job->in_place && out->count > 0 && self->data != out->data)
        view_copy(out, self);
    if (w.index.count == 0 || out->count == 0)
        return 0;
    if (job->has_value)
        w.elements = everywhere(&w.index, &job->value, (enum dtype)out->dtype);
    const struct element_work plain = w;
    if (job->exclude_self)
        TRY(clear_touched(plan, &plain, job->reduce));
    TRY(element_work_run(plan, &w));
    return job->reduce == SCATTER_mean ? divide_by_counts(plan, &plain, job->exclude_self) : 0;
}

struct scatter_arguments {
    const aclTensor *self;
    int64_t dim;
    const aclTensor *index, *source;
    const aclScalar *value; /* instead of source */
    int64_t reduce, most_reduce;
    bool exclude_self;
    aclTensor *out; /* NULL: in place */
};

static int scatter_checked(struct plan *plan, const struct scatter_arguments *a)
{
    struct scatter_job *const job = PLAN_IMMEDIATE(plan, struct scatter_job);
    struct view *from, *list, *source, *to;
    *job = (struct scatter_job){.in_place = !a->out,
                                .reduce = (enum scatter_reduce)a->reduce,
                                .has_value = a->value != NULL,
                                .exclude_self = a->exclude_self && a->reduce != SCATTER_none};
    plan->copes_with_same = 1; /* self */
    TRY(a->out ? plan_input(plan, a->self, "self", &from) : plan_optional(plan, NULL, ROLE_INPUT, "self", &from));
    TRY(plan_input(plan, a->index, "index", &list));
    TRY(a->value ? plan_optional(plan, NULL, ROLE_INPUT, "value", &source) : plan_input(plan, a->source, "src", &source));
    TRY(a->out ? plan_output(plan, a->out, "out", &to) : plan_inout(plan, a->self, "selfRef", &to));
    TRY(check_dim(plan, a->dim, to, "dim", &job->dim));
    TRY(check_index_dtype(plan, list, "index"));
    TRY(check_index_fits(plan, list, to, job->dim));
    TRY(check_output_not_expanded(plan, to, "out"));
    if (a->out) {
        TRY(check_same_dtype(plan, from, "self", to, "out"));
        TRY(check_sizes(plan, to, "out", from->sizes, from->ndim));
    }
    if (a->reduce < 0 || a->reduce > a->most_reduce)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "reduce is %lld; 0 to %lld are allowed", (long long)a->reduce,
                         (long long)a->most_reduce);
    if (a->reduce > SCATTER_add)
        TRY(check_not_complex(plan, to, "self"));
    if (a->value) {
        element_from_scalar(&job->value, (enum dtype)to->dtype, a->value);
        return 0;
    }
    TRY(check_same_dtype(plan, source, "src", to, "self"));
    const struct view places = view_at_least_1d(*list), values = view_at_least_1d(*source);
    bool fits = list->count == 0 || values.ndim == places.ndim;
    for (int d = 0; list->count > 0 && fits && d < places.ndim; ++d)
        fits = places.sizes[d] <= values.sizes[d];
    if (!fits)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "index is %s and src is %s; src must be at least as large",
                         view_text(list), view_text(source));
    return 0;
}

static int scatter_plan(enum operator_id id, struct scatter_arguments arguments, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, scatter_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, scatter_checked(plan, &arguments));
    const int64_t counts = arguments.reduce == SCATTER_mean ? plan->operands[3].count * 8 : 0;
    return finish_by_size(plan, (uint64_t)counts, workspace_size, executor);
}

aclnnStatus aclnnScatterGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src,
                                         int64_t reduce, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(out, ACLNN_ERROR_NULLPTR, "out is null");
    return scatter_plan(
        OPERATOR_Scatter,
        (struct scatter_arguments){
            .self = self, .dim = dim, .index = index, .source = src, .reduce = reduce, .most_reduce = SCATTER_multiply, .out = out},
        workspaceSize, executor);
}
ACLNN_PHASE_2(Scatter)

aclnnStatus aclnnInplaceScatterGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor *src,
                                                int64_t reduce, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return scatter_plan(
        OPERATOR_InplaceScatter,
        (struct scatter_arguments){
            .self = selfRef, .dim = dim, .index = index, .source = src, .reduce = reduce, .most_reduce = SCATTER_multiply},
        workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceScatter)

aclnnStatus aclnnScatterValueGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclScalar *value,
                                              int64_t reduce, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(out && value, ACLNN_ERROR_NULLPTR, "out or value is null");
    return scatter_plan(OPERATOR_ScatterValue,
                        (struct scatter_arguments){.self = self,
                                                   .dim = dim,
                                                   .index = index,
                                                   .value = value,
                                                   .reduce = reduce,
                                                   .most_reduce = SCATTER_multiply,
                                                   .out = out},
                        workspaceSize, executor);
}
ACLNN_PHASE_2(ScatterValue)

aclnnStatus aclnnInplaceScatterValueGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index,
                                                     const aclScalar *value, int64_t reduce, uint64_t *workspaceSize,
                                                     aclOpExecutor **executor)
{
    REQUIRE(value, ACLNN_ERROR_NULLPTR, "value is null");
    return scatter_plan(
        OPERATOR_InplaceScatterValue,
        (struct scatter_arguments){
            .self = selfRef, .dim = dim, .index = index, .value = value, .reduce = reduce, .most_reduce = SCATTER_multiply},
        workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceScatterValue)

aclnnStatus aclnnScatterAddGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src,
                                            aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(out, ACLNN_ERROR_NULLPTR, "out is null");
    return scatter_plan(
        OPERATOR_ScatterAdd,
        (struct scatter_arguments){
            .self = self, .dim = dim, .index = index, .source = src, .reduce = SCATTER_add, .most_reduce = SCATTER_add, .out = out},
        workspaceSize, executor);
}
ACLNN_PHASE_2(ScatterAdd)

aclnnStatus aclnnScatterReduceGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, const aclTensor *src,
                                               int64_t reduce, bool includeSelf, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    REQUIRE(out, ACLNN_ERROR_NULLPTR, "out is null");
    return scatter_plan(OPERATOR_ScatterReduce,
                        (struct scatter_arguments){.self = self,
                                                   .dim = dim,
                                                   .index = index,
                                                   .source = src,
                                                   .reduce = reduce,
                                                   .most_reduce = SCATTER_mean,
                                                   .exclude_self = !includeSelf,
                                                   .out = out},
                        workspaceSize, executor);
}
ACLNN_PHASE_2(ScatterReduce)

aclnnStatus aclnnInplaceScatterReduceGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor *src,
                                                      int64_t reduce, bool includeSelf, uint64_t *workspaceSize,
                                                      aclOpExecutor **executor)
{
    return scatter_plan(OPERATOR_InplaceScatterReduce,
                        (struct scatter_arguments){.self = selfRef,
                                                   .dim = dim,
                                                   .index = index,
                                                   .source = src,
                                                   .reduce = reduce,
                                                   .most_reduce = SCATTER_mean,
                                                   .exclude_self = !includeSelf},
                        workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceScatterReduce)

/* --- take, put: indices into the flattened tensor ----------------------------------------------------------------------------- */

struct put_job {
    bool accumulate;
};

/* Operands: the tensor, index, the elements. */
static int flat_run(struct plan *plan, enum block_access access)
{
    const struct view *const indexed = &plan->operands[0], *const index = &plan->operands[1], *const elements = &plan->operands[2];
    const struct index_term term = {*index, 0, indexed->count, 1};
    if (index->count == 0)
        return 0;
    int64_t *const offsets = pool_scratch(0, (size_t)index->count * sizeof *offsets);
    if (!offsets)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld indices", (long long)index->count);
    TRY(index_offsets((enum operator_id)plan->operator_id, &term, 1, true, offsets));
    for (int64_t i = 0; i < index->count && !indexed->contiguous; ++i)
        offsets[i] = walk_offset(offsets[i], indexed->ndim, indexed->sizes, indexed->strides);
    struct index_blocks w = {.indexed = indexed->data,
                             .blocks = elements->data,
                             .dtype = (enum dtype)indexed->dtype,
                             .positions = index->count,
                             .offsets = offsets,
                             .position_ndim = elements->ndim};
    memcpy(w.position_sizes, elements->sizes, sizeof w.position_sizes);
    memcpy(w.position_strides, elements->strides, sizeof w.position_strides);
    index_blocks_run(&w, access);
    return 0;
}

static int take_run(struct plan *plan) { return flat_run(plan, BLOCKS_READ); }

static int put_run(struct plan *plan)
{
    return flat_run(plan, PLAN_IMMEDIATE(plan, struct put_job)->accumulate ? BLOCKS_ADD : BLOCKS_WRITE);
}

aclnnStatus aclnnTakeGetWorkspaceSize(const aclTensor *self, const aclTensor *index, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *list, *to;
    TRY(plan_begin(OPERATOR_Take, take_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_input(plan, index, "index", &list));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_index_dtype(plan, list, "index"));
    PLAN_TRY(plan, check_same_dtype(plan, from, "self", to, "out"));
    PLAN_TRY(plan, check_sizes(plan, to, "out", list->sizes, list->ndim));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Take)

aclnnStatus aclnnInplacePutGetWorkspaceSize(aclTensor *selfRef, const aclTensor *index, const aclTensor *source, bool accumulate,
                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *to, *list, *from;
    TRY(plan_begin(OPERATOR_InplacePut, put_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_inout(plan, selfRef, "selfRef", &to));
    PLAN_TRY(plan, plan_input(plan, index, "index", &list));
    PLAN_TRY(plan, plan_input(plan, source, "source", &from));
    PLAN_TRY(plan, check_index_dtype(plan, list, "index"));
    PLAN_TRY(plan, check_same_dtype(plan, to, "selfRef", from, "source"));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "selfRef"));
    PLAN_REQUIRE(plan, from->count == list->count, ACLNN_ERROR_PARAM, "index is %s and source is %s; they need as many elements",
                 view_text(list), view_text(from));
    PLAN_IMMEDIATE(plan, struct put_job)->accumulate = accumulate;
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(InplacePut)
