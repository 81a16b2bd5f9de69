/* The distinct slices of a tensor along a dimension: UniqueDim sorts them, UniqueConsecutive with a dimension compares neighbours. How
 * many there are is known only when this has run, as in unique.c.
 *
 * Invariant: slices are compared element by element, in row-major order, as numbers of 64 bits; NaN differs from everything and sorts
 * behind all numbers. */
#include "aclnn/math/unique_rows.h"

#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "tensor/awaited.h"

/* The immediates. Operands: self, valueOut, inverseOut, countsOut; the last two may be absent. */
struct rows_job {
    struct awaited_shape values, counts;
    int dim;
    bool consecutive;
};

/* Slices as rows of `width` numbers. */
struct rows {
    const int64_t *integers;
    const double *floats; /* just one of the two */
    int64_t count, width;
};

/* < 0, 0, > 0 */
static int compare_rows(const struct rows *r, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < r->width; ++i) {
        if (r->integers) {
            const int64_t x = r->integers[a * r->width + i], y = r->integers[b * r->width + i];
            if (x != y)
                return x < y ? -1 : 1;
            continue;
        }
        const double x = r->floats[a * r->width + i], y = r->floats[b * r->width + i];
        if (x < y || (y != y && x == x))
            return -1;
        if (x > y || (x != x && y == y))
            return 1;
        if (x != x)
            return a < b ? -1 : a > b; /* two NaN: neither equals the other */
    }
    return 0;
}

/* Merges order[0, half) and order[half, n), both sorted. */
static void merge(const struct rows *r, int64_t *order, int64_t half, int64_t n, int64_t *spare)
{
    memcpy(spare, order, (size_t)half * sizeof *spare);
    int64_t left = 0, right = half, at = 0;
    while (left < half)
        order[at++] = right < n && compare_rows(r, order[right], spare[left]) < 0 ? order[right++] : spare[left++];
}

static void sort_rows(const struct rows *r, int64_t *order, int64_t *spare)
{
    for (int64_t width = 1; width < r->count; width *= 2)
        for (int64_t at = 0; at + width < r->count; at += 2 * width)
            merge(r, order + at, width, r->count - at < 2 * width ? r->count - at : 2 * width, spare);
}

/* v with `dim` first. */
static struct view dim_first(const struct view *v, int dim)
{
    struct view moved = *v;
    for (int d = dim; d > 0; --d) {
        moved.sizes[d] = v->sizes[d - 1];
        moved.strides[d] = v->strides[d - 1];
    }
    moved.sizes[0] = v->sizes[dim];
    moved.strides[0] = v->strides[dim];
    view_refresh(&moved);
    return moved;
}

static void write_one(const struct view *out, int64_t at, int64_t value)
{
    if (out->data)
        tile_write(out, at, 1, &value, ACCUMULATE_I64);
}

/* places[i]: the row that distinct slice i is taken from. */
static void write_values(const struct plan *plan, const struct rows_job *job, const int64_t *places, int64_t distinct)
{
    enum { STEP = 512 };
    char piece[STEP * sizeof(complex64_pair)];
    const struct view in = dim_first(&plan->operands[0], job->dim);
    struct view values = plan->operands[0];
    values.data = plan->operands[1].data;
    values.sizes[job->dim] = distinct;
    view_make_contiguous(&values);
    const struct view out = dim_first(&values, job->dim);
    const int64_t width = in.sizes[0] ? in.count / in.sizes[0] : 0;
    for (int64_t i = 0; i < distinct; ++i)
        for (int64_t at = 0; at < width; at += STEP) {
            const int64_t n = width - at < STEP ? width - at : STEP;
            tile_gather(piece, &in, places[i] * width + at, n);
            tile_scatter(&out, i * width + at, n, piece);
        }
    awaited_answer(&job->values, values.ndim, values.sizes);
    awaited_answer(&job->counts, 1, &distinct);
}

static int rows_run(struct plan *plan)
{
    const struct rows_job *const job = PLAN_IMMEDIATE(plan, struct rows_job);
    const struct view in = dim_first(&plan->operands[0], job->dim);
    const int64_t count = in.sizes[0];
    const bool floating = dtype_is_floating((enum dtype)in.dtype);
    char *const memory = plan->workspace;
    int64_t *const order = (int64_t *)(void *)(memory + in.count * 8), *const spare = order + count, *const places = spare + count;
    const struct rows r = {.integers = floating ? NULL : (const int64_t *)(const void *)memory,
                           .floats = floating ? (const double *)(const void *)memory : NULL,
                           .count = count,
                           .width = count ? in.count / count : 0};
    for (int64_t at = 0; at < in.count; at += TILE)
        tile_read(memory + at * 8, floating ? ACCUMULATE_F64 : ACCUMULATE_I64, &in, at,
                  in.count - at < TILE ? in.count - at : TILE);
    for (int64_t i = 0; i < count; ++i)
        order[i] = i;
    if (!job->consecutive)
        sort_rows(&r, order, spare);
    int64_t distinct = 0, first = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i == 0 || compare_rows(&r, order[i - 1], order[i]) != 0) {
            if (i > 0)
                write_one(&plan->operands[3], distinct - 1, i - first);
            first = i;
            places[distinct++] = order[i];
        }
        write_one(&plan->operands[2], order[i], distinct - 1);
    }
    if (distinct > 0)
        write_one(&plan->operands[3], distinct - 1, count - first);
    write_values(plan, job, places, distinct);
    return 0;
}

int unique_check_asked(enum operator_id id, bool asked, const aclTensor *tensor, const char *name)
{
    REQUIRE(!asked || tensor, ACLNN_ERROR_NULLPTR, "%s: %s is null, but was asked for", operator_name(id), name);
    return 0;
}

int unique_add_indices(struct plan *plan, aclTensor *tensor, const char *name, int64_t least_count)
{
    struct view *v;
    if (!tensor)
        return plan_optional(plan, NULL, ROLE_OUTPUT, name, NULL);
    TRY(plan_output(plan, tensor, name, &v));
    TRY(check_index_dtype(plan, v, name));
    if (v->count >= least_count)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s is %s; it needs room for %lld values", name, view_text(v),
                     (long long)least_count);
}

int unique_rows_plan(enum operator_id id, const aclTensor *self, int64_t dim, aclTensor *values, aclTensor *inverse,
                     aclTensor *counts, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *to;
    int wrapped;
    TRY(plan_begin(id, rows_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, plan_output(plan, values, "valueOut", &to));
    PLAN_TRY(plan, check_not_complex(plan, in, "self"));
    PLAN_TRY(plan, check_same_dtype(plan, in, "self", to, "valueOut"));
    PLAN_TRY(plan, check_dim(plan, dim, in, "dim", &wrapped));
    PLAN_REQUIRE(plan, in->ndim > 0, ACLNN_ERROR_PARAM, "%s: self is %s; at least one dimension is wanted", operator_name(id),
                 view_text(in));
    PLAN_REQUIRE(plan, to->count >= in->count && to->contiguous, ACLNN_ERROR_PARAM,
                 "%s: valueOut is %s; it is contiguous with room for all %lld elements of self", operator_name(id), view_text(to),
                 (long long)in->count);
    const int64_t rows = in->sizes[wrapped];
    PLAN_TRY(plan, unique_add_indices(plan, inverse, "inverseOut", rows));
    PLAN_TRY(plan, unique_add_indices(plan, counts, "countsOut", rows));
    *PLAN_IMMEDIATE(plan, struct rows_job) =
        (struct rows_job){awaited_begin(values), awaited_begin(counts), wrapped, id == OPERATOR_UniqueConsecutive};
    return plan_finish(plan, (uint64_t)(in->count + 3 * rows) * 8, workspace_size, executor);
}

/* Slices come sorted whether asked for or not. */
aclnnStatus aclnnUniqueDimGetWorkspaceSize(const aclTensor *self, bool sorted, bool returnInverse, int64_t dim, aclTensor *valueOut,
                                           aclTensor *inverseOut, aclTensor *countsOut, uint64_t *workspaceSize,
                                           aclOpExecutor **executor)
{
    TRY(unique_check_asked(OPERATOR_UniqueDim, returnInverse, inverseOut, "inverseOut"));
    return unique_rows_plan(OPERATOR_UniqueDim, self, dim, valueOut, returnInverse ? inverseOut : NULL, countsOut, workspaceSize,
                            executor);
}
ACLNN_PHASE_2(UniqueDim)
