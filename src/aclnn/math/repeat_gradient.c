/* The list of indices that a tensor of repeats stands for, and the gradient of repeating by it. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/resample.h"

enum { SELF, REPEATS, OUT };

struct repeats {
    struct staging staging;
    int dim;
    int64_t count, total;         /* elements along dim, and what they become */
    int64_t indices;              /* workspace offset, as below */
    int64_t order, ends, weights; /* of the gradient's table */
};

/* indices[o] = the element that fills place o. */
static int make_indices(struct plan *plan, int64_t *indices)
{
    const struct repeats *const r = PLAN_IMMEDIATE(plan, struct repeats);
    const int64_t *const repeats = stage_read(plan, &r->staging, REPEATS);
    const bool one = plan->operands[REPEATS].count == 1;
    int64_t place = 0;
    for (int64_t i = 0; i < r->count; ++i) {
        const int64_t n = repeats[one ? 0 : i];
        REQUIRE(n >= 0, ERROR_RT_DEVICE_TASK, "%s: repeats[%lld] is %lld", plan_name(plan), (long long)(one ? 0 : i), (long long)n);
        REQUIRE(n <= r->total - place, ERROR_RT_DEVICE_TASK, "%s: repeats add up to more than the %lld elements of out",
                plan_name(plan), (long long)r->total);
        for (int64_t k = 0; k < n; ++k)
            indices[place++] = i;
    }
    REQUIRE(place == r->total, ERROR_RT_DEVICE_TASK, "%s: repeats add up to %lld, but out has %lld elements", plan_name(plan),
            (long long)place, (long long)r->total);
    return 0;
}

static struct view dense(void *data, enum dtype dtype, int64_t count)
{
    struct view v = {.data = data, .dtype = (uint8_t)dtype, .ndim = 1, .sizes = {count}};
    view_make_contiguous(&v);
    return v;
}

static int run_tensor(struct plan *plan)
{
    const struct repeats *const r = PLAN_IMMEDIATE(plan, struct repeats);
    int64_t *const indices = stage_room(plan, r->indices);
    TRY(make_indices(plan, indices));
    const struct view list = dense(indices, DTYPE_I64, r->total);
    if (r->total > 0)
        view_copy(&plan->operands[OUT], &list);
    return 0;
}

/* Sums over each element's repeats, one row of the dimensions behind it after the other. */
static int run_gradient(struct plan *plan)
{
    enum { GRAD_OUT = SELF };
    const struct repeats *const r = PLAN_IMMEDIATE(plan, struct repeats);
    const enum accumulate type = (enum accumulate)r->staging.type[OUT];
    int64_t *const indices = stage_room(plan, r->indices);
    int32_t *const order = stage_room(plan, r->order), *const ends = stage_room(plan, r->ends);
    TRY(make_indices(plan, indices));
    double *const weight = stage_room(plan, r->weights);
    memset(ends, 0, (size_t)(r->count + 1) * sizeof *ends);
    for (int64_t i = 0; i < r->total; ++i) {
        ++ends[indices[i] + 1];
        order[i] = (int32_t)i;
        weight[i] = 1;
    }
    for (int64_t i = 0; i < r->count; ++i)
        ends[i + 1] += ends[i];
    const struct view *const out = &plan->operands[OUT];
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < out->ndim; ++d)
        if (d != r->dim)
            *(d < r->dim ? &outer : &inner) *= out->sizes[d];
    const struct resample_table table = {.in = r->total, .out = r->count, .begin = ends, .index = order, .weight = weight};
    const void *const grad = stage_read(plan, &r->staging, GRAD_OUT);
    if (out->count > 0)
        kernels->resample->pass[type](grad, stage_target(plan, &r->staging, OUT), outer, inner, &table);
    stage_write_back(plan, &r->staging, OUT);
    return 0;
}

static int take_repeats(struct plan *plan, struct repeats *r)
{
    const struct view *const v = &plan->operands[REPEATS];
    TRY(check_index_dtype(plan, v, "repeats"));
    REQUIRE(v->ndim <= 1 && (v->count == r->count || v->count == 1), ACLNN_ERROR_PARAM,
            "%s: repeats is %s; it must have one element or %lld", plan_name(plan), view_text(v), (long long)r->count);
    stage_operand(plan, &r->staging, v, ACCUMULATE_I64);
    r->indices = stage_reserve(&r->staging, (uint64_t)r->total * sizeof(int64_t));
    return 0;
}

/* The indices themselves. */
aclnnStatus aclnnRepeatInterleaveTensorGetWorkspaceSize(const aclTensor *repeats, int64_t outputSize, aclTensor *out,
                                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *to;
    TRY(plan_begin(OPERATOR_RepeatInterleaveTensor, run_tensor, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_optional(plan, NULL, ROLE_INPUT, "self", NULL));
    PLAN_TRY(plan, plan_input(plan, repeats, "repeats", &in));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    struct repeats *const r = PLAN_IMMEDIATE(plan, struct repeats);
    stage_begin(&r->staging);
    PLAN_REQUIRE(plan, to->ndim == 1, ACLNN_ERROR_PARAM, "aclnnRepeatInterleaveTensor: out is %s; it must have 1 dimension",
                 view_text(to));
    PLAN_TRY(plan, check_index_dtype(plan, to, "out"));
    r->count = in->count;
    r->total = to->count;
    PLAN_TRY(plan, take_repeats(plan, r));
    return plan_finish(plan, r->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(RepeatInterleaveTensor)

aclnnStatus aclnnRepeatInterleaveGradGetWorkspaceSize(const aclTensor *yGrad, const aclTensor *repeats, int64_t axis,
                                                      const aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *grad, *to;
    int64_t sizes[TENSOR_MAX_DIMS];
    TRY(plan_begin(OPERATOR_RepeatInterleaveGrad, run_gradient, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, yGrad, "yGrad", &grad));
    PLAN_TRY(plan, plan_input(plan, repeats, "repeats", NULL));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    struct repeats *const r = PLAN_IMMEDIATE(plan, struct repeats);
    stage_begin(&r->staging);
    PLAN_TRY(plan, check_floating(plan, grad, "yGrad"));
    PLAN_TRY(plan, check_floating(plan, to, "out"));
    PLAN_REQUIRE(plan, to->ndim > 0, ACLNN_ERROR_PARAM, "aclnnRepeatInterleaveGrad: out has no dimension");
    PLAN_TRY(plan, check_dim(plan, axis, to, "axis", &r->dim));
    memcpy(sizes, to->sizes, sizeof sizes);
    sizes[r->dim] = grad->ndim == to->ndim ? grad->sizes[r->dim] : 0;
    PLAN_TRY(plan, check_sizes(plan, grad, "yGrad", sizes, to->ndim));
    r->count = to->sizes[r->dim];
    r->total = grad->sizes[r->dim];
    PLAN_REQUIRE(plan, r->total < INT32_MAX, ACLNN_ERROR_PARAM, "aclnnRepeatInterleaveGrad: yGrad is %s, which is too long",
                 view_text(grad));
    PLAN_TRY(plan, take_repeats(plan, r));
    r->order = stage_reserve(&r->staging, (uint64_t)r->total * sizeof(int32_t));
    r->weights = stage_reserve(&r->staging, (uint64_t)r->total * sizeof(double));
    r->ends = stage_reserve(&r->staging, (uint64_t)(r->count + 1) * sizeof(int32_t));
    const enum accumulate type = accumulate_of((enum dtype)to->dtype);
    stage_operand(plan, &r->staging, grad, type);
    stage_operand(plan, &r->staging, to, type);
    return plan_finish(plan, r->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(RepeatInterleaveGrad)
