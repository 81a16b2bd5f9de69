/* Positions of extremes along one dimension, and the comparison of whole tensors. */
#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/reduce_engine.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"

struct arg_job {
    int dim;
    enum fold fold;
    bool has_values;
};

enum { OWN_BYTES = 1 << 16, RESULT_GRAIN = 1 << 14 };

struct write_work {
    struct view out;
    const char *results;
    enum accumulate type;
};

static void write_range(void *argument, int64_t begin, int64_t end)
{
    const struct write_work *const w = argument;
    tile_write(&w->out, begin, end - begin, w->results + begin * accumulate_bytes(w->type), w->type);
}

static void write_results(const struct view *out, const void *results, enum accumulate type)
{
    pool_for(out->count, RESULT_GRAIN, write_range, &(struct write_work){*out, results, type});
}

/* Operands: self, indices, values (when there are any). */
static int arg_run(struct plan *plan)
{
    const struct arg_job *const job = PLAN_IMMEDIATE(plan, struct arg_job);
    const struct view *const in = &plan->operands[0];
    struct reduction r;
    if (plan->operands[1].count == 0)
        return 0;
    reduction_prepare(&r, in, in->ndim ? 1u << job->dim : 0, accumulate_of((enum dtype)in->dtype));
    const int64_t bytes = reduction_bytes(&r) + reduction_where_bytes(&r);
    char *const results = bytes <= OWN_BYTES ? pool_scratch(0, (size_t)bytes) : plan->workspace;
    REQUIRE(results, ERROR_BAD_ALLOC, "%s: no memory for %lld bytes", plan_name(plan), (long long)bytes);
    int64_t *const where = (int64_t *)(void *)(results + reduction_bytes(&r));
    reduction_run_arg(&r, job->fold, results, where);
    write_results(&plan->operands[1], where, ACCUMULATE_I64);
    if (job->has_values)
        write_results(&plan->operands[2], results, r.type);
    return 0;
}

static int add_output(struct plan *plan, const aclTensor *tensor, const char *name, const struct view *in, int dim, bool keepdim)
{
    struct view *out;
    int64_t sizes[TENSOR_MAX_DIMS];
    int n = 0;
    TRY(plan_output(plan, tensor, name, &out));
    for (int d = 0; d < in->ndim; ++d)
        if (d != dim)
            sizes[n++] = in->sizes[d];
        else if (keepdim)
            sizes[n++] = 1;
    TRY(check_sizes(plan, out, name, sizes, n));
    TRY(check_not_complex(plan, out, name));
    return check_output_not_expanded(plan, out, name);
}

static int arg_checked(struct plan *plan, const aclTensor *self, int64_t dim, bool keepdim, aclTensor *values, aclTensor *indices,
                       const char *indices_name, struct arg_job *job, int64_t *bytes)
{
    struct view *in;
    struct reduction r;
    TRY(plan_input(plan, self, "self", &in));
    TRY(check_not_complex(plan, in, "self"));
    TRY(check_dim(plan, dim, in, "dim", &job->dim));
    TRY(add_output(plan, indices, indices_name, in, job->dim, keepdim));
    TRY(check_index_dtype(plan, &plan->operands[1], indices_name));
    if (job->has_values)
        TRY(add_output(plan, values, "out", in, job->dim, keepdim));
    if (in->ndim > 0 && in->sizes[job->dim] == 0 && plan->operands[1].count > 0)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "self is %s: dim %d has no elements, so there is no extreme",
                         view_text(in), job->dim);
    reduction_prepare(&r, in, in->ndim ? 1u << job->dim : 0, accumulate_of((enum dtype)in->dtype));
    *bytes = reduction_bytes(&r) + reduction_where_bytes(&r);
    return 0;
}

static int arg_plan(enum operator_id id, const aclTensor *self, int64_t dim, bool keepdim, aclTensor *values, aclTensor *indices,
                    uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    int64_t bytes;
    const bool with_values = id == OPERATOR_MaxDim || id == OPERATOR_MinDim;
    TRY(plan_begin(id, arg_run, workspace_size, executor, &plan));
    struct arg_job *const job = PLAN_IMMEDIATE(plan, struct arg_job);
    job->fold = id == OPERATOR_MaxDim || id == OPERATOR_ArgMax ? FOLD_max : FOLD_min;
    job->has_values = with_values;
    PLAN_TRY(plan, arg_checked(plan, self, dim, keepdim, values, indices, with_values ? "indices" : "out", job, &bytes));
    return finish_by_size(plan, bytes > OWN_BYTES ? (uint64_t)bytes : 0, workspace_size, executor);
}

#define EXTREME_OF_DIM(Name)                                                                                                \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out,             \
                                              aclTensor *indices, uint64_t *workspaceSize, aclOpExecutor **executor)        \
    {                                                                                                                       \
        return arg_plan(OPERATOR_##Name, self, dim, keepdim, out, indices, workspaceSize, executor);                        \
    }                                                                                                                       \
    ACLNN_PHASE_2(Name)
EXTREME_OF_DIM(MaxDim)
EXTREME_OF_DIM(MinDim)

#define POSITION_OF_EXTREME(Name)                                                                                           \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out,             \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                            \
    {                                                                                                                       \
        return arg_plan(OPERATOR_##Name, self, dim, keepdim, NULL, out, workspaceSize, executor);                           \
    }                                                                                                                       \
    ACLNN_PHASE_2(Name)
POSITION_OF_EXTREME(ArgMax)
POSITION_OF_EXTREME(ArgMin)

/* --- Equal: are two tensors the same? ------------------------------------------------------------------------------------ */

struct equal_work {
    struct view a, b;
    enum accumulate type;
    atomic_bool differ;
};

enum { EQUAL_GRAIN = 1 << 15 };

static bool tiles_differ(const void *a, const void *b, enum accumulate type, int64_t n)
{
    int differ = 0;
    for (int64_t i = 0; i < n; ++i)
        switch (type) {
        case ACCUMULATE_F64: differ |= ((const double *)a)[i] != ((const double *)b)[i]; break;
        case ACCUMULATE_F32: differ |= ((const float *)a)[i] != ((const float *)b)[i]; break;
        default: differ |= ((const int64_t *)a)[i] != ((const int64_t *)b)[i];
        }
    return differ != 0;
}

static void compare_range(void *argument, int64_t begin, int64_t end)
{
    struct equal_work *const w = argument;
    double a[TILE], b[TILE];
    for (int64_t i = begin; i < end && !atomic_load_explicit(&w->differ, memory_order_relaxed); i += TILE) {
        const int64_t n = end - i < TILE ? end - i : TILE;
        tile_read(a, w->type, &w->a, i, n);
        tile_read(b, w->type, &w->b, i, n);
        if (tiles_differ(a, b, w->type, n))
            atomic_store_explicit(&w->differ, true, memory_order_relaxed);
    }
}

/* A complex tensor of 8 dimensions has no room for one more: its outermost one is walked here. */
static void compare_parts(struct equal_work *w)
{
    struct view a = w->a, b = w->b;
    const bool fits = view_as_real(&a) && view_as_real(&b);
    const int64_t slices = fits ? 1 : w->a.sizes[0], bytes = (int64_t)dtype_bytes((enum dtype)w->a.dtype);
    for (int64_t i = 0; i < slices && !w->differ; ++i) {
        struct view *const sides[] = {&w->a, &w->b};
        const struct view whole[] = {w->a, w->b};
        for (int k = 0; k < 2; ++k) {
            struct view *const v = sides[k];
            if (!fits) {
                v->data += i * v->strides[0] * bytes;
                --v->ndim;
                memmove(v->sizes, v->sizes + 1, v->ndim * sizeof *v->sizes);
                memmove(v->strides, v->strides + 1, v->ndim * sizeof *v->strides);
                view_refresh(v);
            }
            view_as_real(v);
        }
        pool_for(w->a.count, EQUAL_GRAIN, compare_range, w);
        w->a = whole[0];
        w->b = whole[1];
    }
}

static int equal_run(struct plan *plan)
{
    struct equal_work work = {.a = plan->operands[0], .b = plan->operands[1]};
    const struct view *const out = &plan->operands[2];
    bool differ = !view_same_sizes(&work.a, &work.b);
    if (!differ && work.a.count > 0) {
        work.type = accumulate_of(dtype_promote((enum dtype)work.a.dtype, (enum dtype)work.b.dtype));
        compare_parts(&work);
        differ = work.differ;
    }
    const int64_t equal = !differ;
    tile_write(out, 0, out->count, &equal, ACCUMULATE_I64);
    return 0;
}

static int equal_checked(struct plan *plan, const aclTensor *self, const aclTensor *other, aclTensor *out)
{
    struct view *a, *b, *result;
    TRY(plan_input(plan, self, "self", &a));
    TRY(plan_input(plan, other, "other", &b));
    TRY(plan_output(plan, out, "out", &result));
    TRY(check_not_complex(plan, result, "out"));
    if (dtype_kind((enum dtype)a->dtype) == KIND_COMPLEX || dtype_kind((enum dtype)b->dtype) == KIND_COMPLEX ||
        dtype_is_stored_only((enum dtype)a->dtype) || dtype_is_stored_only((enum dtype)b->dtype))
        TRY(check_same_dtype(plan, a, "self", b, "other"));
    if (result->count != 1)
        return error_set(ACLNN_ERROR_PARAM, "aclnnEqual", "out is %s; it takes one value", view_text(result));
    return 0;
}

aclnnStatus aclnnEqualGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Equal, equal_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, equal_checked(plan, self, other, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Equal)
