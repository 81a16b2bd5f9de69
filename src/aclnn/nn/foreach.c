/* Elementwise operators over lists of tensors: the rows of foreach.def, and those with signatures of their own. */
#include "aclnn/nn/foreach.h"

#include <math.h>

#include "aclnnop/all_operators.h"
#include "base/integer.h"
#include "kernels/optimizer.h"

/* A call before it is a plan. The output list comes first in `lists`. */
struct foreach_call {
    enum operator_id id;
    enum elementwise_id kernel;
    enum elementwise_rule rule;
    int lists;
    const aclTensorList *tensors[4];
    const char *names[4];
    /* The scalar operand, if any, in front of input `constant_at` of the kernel; one of the three is set. */
    int constant_at;
    const aclScalar *constant;
    const aclScalarList *constants;
    const aclTensor *device_constant;
    /* s0, if the kernel has one; one of the two is set. */
    bool has_parameter;
    const aclScalar *parameter;
    const aclTensor *device_parameter;
};

static const aclScalar *constant_of(const struct foreach_call *call, int64_t i)
{
    return call->constants ? call->constants->scalars[i] : call->constant;
}

/* The exponents that have a kernel of their own. */
static enum elementwise_id item_kernel(const struct foreach_call *call, const aclScalar *constant, enum dtype promoted)
{
    if (call->kernel == ELEMENTWISE_pow && dtype_kind(promoted) < KIND_FLOAT)
        return ELEMENTWISE_integer_pow;
    return call->kernel;
}

static int prepare_item(const struct foreach_call *call, const struct plan *plan, const struct foreach_job *job, int64_t i)
{
    struct elementwise_input inputs[4];
    int count = 0;
    const aclScalar *const constant = call->constant_at ? constant_of(call, i) : NULL;
    for (int k = 1; k < call->lists; ++k)
        inputs[count++] = (struct elementwise_input){.name = call->names[k], .tensor = call->tensors[k]->tensors[i]};
    if (constant)
        inputs[count++] = (struct elementwise_input){.name = "scalar", .scalar = constant};
    bool is_default;
    enum dtype promoted = elementwise_promote(inputs, count, &is_default);
    if (call->rule == RULE_FLOAT && dtype_kind(promoted) < KIND_FLOAT)
        promoted = DTYPE_F32;
    struct foreach_item *const item = &job->items[i];
    const enum elementwise_id kernel = item_kernel(call, constant, promoted);
    const enum dtype out = (enum dtype)foreach_view(plan, job, i, 0)->dtype;
    item->compute = (uint8_t)dtype_compute(promoted);
    item->result = item->compute;
    item->run = kernels->elementwise->run[kernel][item->compute];
    REQUIRE(item->run, ACLNN_ERROR_PARAM, "%s: %s[%lld] makes the operation compute in %s, which isn't supported",
            operator_name(call->id), call->names[1], (long long)i, dtype_name(promoted));
    REQUIRE(dtype_kind(promoted) <= dtype_kind(out), ACLNN_ERROR_PARAM,
            "%s: tensor %lld: result type %s can't be cast to the type of the output, %s", operator_name(call->id), (long long)i,
            dtype_name(promoted), dtype_name(out));
    if (constant) {
        item->constant = elementwise_scalar_from(constant, promoted);
        item->constant_dtype = (uint8_t)(dtype_kind(promoted) == KIND_COMPLEX ? DTYPE_C128
                                         : dtype_is_floating(promoted)        ? DTYPE_F64
                                                                              : DTYPE_I64);
    }
    if (call->parameter)
        item->parameter = elementwise_scalar_from(call->parameter, promoted);
    return 0;
}

static int check_scalars(const struct foreach_call *call)
{
    const char *const name = operator_name(call->id);
    if (call->constant_at)
        REQUIRE(call->constant || call->constants || call->device_constant, ACLNN_ERROR_NULLPTR, "%s: the scalar is null", name);
    if (call->has_parameter)
        REQUIRE(call->parameter || call->device_parameter, ACLNN_ERROR_NULLPTR, "%s: the scalar is null", name);
    if (call->constants && call->tensors[0])
        REQUIRE(call->constants->count == call->tensors[0]->count, ACLNN_ERROR_PARAM, "%s: %llu scalars for %llu tensors", name,
                (unsigned long long)call->constants->count, (unsigned long long)call->tensors[0]->count);
    if (call->device_constant)
        REQUIRE(call->device_constant->view.count == 1 && call->device_constant->view.dtype != DTYPE_NONE, ACLNN_ERROR_PARAM,
                "%s: the scalar is %s; it must have one element", name, view_text(&call->device_constant->view));
    if (call->device_parameter)
        REQUIRE(call->device_parameter->view.count == 1 || (call->tensors[0] && call->device_parameter->view.ndim == 1 &&
                                                            call->device_parameter->view.count == (int64_t)call->tensors[0]->count),
                ACLNN_ERROR_PARAM, "%s: the scalars are %s; one element, or a vector of one for each tensor, is needed", name,
                view_text(&call->device_parameter->view));
    return 0;
}

static int foreach_plan(const struct foreach_call *call, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct foreach_job *job;
    TRY(check_scalars(call));
    TRY(plan_begin(call->id, foreach_run, workspace_size, executor, &plan));
    const aclTensor *const device_scalar = call->device_constant ? call->device_constant : call->device_parameter;
    struct view *device_view = NULL;
    if (device_scalar)
        PLAN_TRY(plan, plan_input(plan, device_scalar, "scalar", &device_view));
    PLAN_TRY(plan, foreach_begin(plan, call->lists, call->tensors, call->names, FOREACH_SAME_SHAPES, &job));
    job->cost = elementwise_infos[call->kernel].cost;
    job->constant_at = call->constant_at;
    if (call->device_constant)
        job->device_constant = device_view;
    if (call->device_parameter)
        job->device_parameter = device_view;
    for (int64_t i = 0; i < job->count; ++i)
        PLAN_TRY(plan, prepare_item(call, plan, job, i));
    return plan_finish(plan, 0, workspace_size, executor);
}

/* --- the rows ------------------------------------------------------------------------------------------------------ */

#define CALL(op, kernel_, rule_) .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_
#define FINISH return foreach_plan(&call, workspaceSize, executor)

#define FOREACH_UNARY(op, out_const, kernel_, rule_)                                                                  \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensorList *x, out_const aclTensorList *out,                      \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        const struct foreach_call call = {CALL(op, kernel_, rule_), .lists = 2, .tensors = {out, x}, .names = {"out", "x"}}; \
        FINISH;                                                                                                      \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define FOREACH_LIST(op, out_const, kernel_, rule_)                                                                   \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2, out_const aclTensorList *out, \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        const struct foreach_call call = {CALL(op, kernel_, rule_), .lists = 3, .tensors = {out, x1, x2},              \
                                          .names = {"out", "x1", "x2"}};                                             \
        FINISH;                                                                                                      \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define FOREACH_WITH_SCALAR(op, out_const, kernel_, rule_, type, member)                                              \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensorList *x, const type *scalar, out_const aclTensorList *out,   \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        const struct foreach_call call = {CALL(op, kernel_, rule_), .lists = 2, .tensors = {out, x}, .names = {"out", "x"}, \
                                          .constant_at = 2, .member = scalar};                                       \
        FINISH;                                                                                                      \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define FOREACH_SCALAR(op, out_const, kernel, rule) FOREACH_WITH_SCALAR(op, out_const, kernel, rule, aclScalar, constant)
#define FOREACH_DEVICE_SCALAR(op, out_const, kernel, rule) \
    FOREACH_WITH_SCALAR(op, out_const, kernel, rule, aclTensor, device_constant)
#define FOREACH_SCALAR_LIST(op, out_const, kernel, rule) \
    FOREACH_WITH_SCALAR(op, out_const, kernel, rule, aclScalarList, constants)
#define HAND_WRITTEN(op)
#include "aclnn/nn/foreach.def"

/* --- powers: squares and roots of lists are what optimizers ask for ------------------------------------------------ */

static int plan_power(enum operator_id id, const aclTensorList *x, const aclScalar *exponent, const aclScalarList *exponents,
                      const aclTensorList *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct foreach_call call = {.id = id,
                                .kernel = ELEMENTWISE_pow,
                                .rule = RULE_PROMOTE,
                                .lists = 2,
                                .tensors = {out, x},
                                .names = {"out", "x"},
                                .constant_at = 2,
                                .constant = exponent,
                                .constants = exponents};
    const double value = exponent && dtype_kind(exponent->dtype) != KIND_COMPLEX ? scalar_to_double(exponent) : 0;
    bool all_floating = x != NULL;
    for (uint64_t i = 0; all_floating && i < x->count; ++i)
        all_floating =
            x->tensors[i] && x->tensors[i]->view.dtype != DTYPE_NONE && dtype_is_floating((enum dtype)x->tensors[i]->view.dtype);
    if (all_floating && (value == 2 || value == 3 || value == 0.5)) {
        call.kernel = value == 2 ? ELEMENTWISE_square : value == 3 ? ELEMENTWISE_cube : ELEMENTWISE_sqrt;
        call.constant_at = 0;
        call.constant = NULL;
    }
    FINISH;
}

aclnnStatus aclnnForeachPowScalarV2GetWorkspaceSize(const aclTensorList *x, const aclScalar *scalar, aclTensorList *out,
                                                    uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_power(OPERATOR_ForeachPowScalarV2, x, scalar, NULL, out, workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachPowScalarV2)

aclnnStatus aclnnForeachPowScalarListGetWorkspaceSize(const aclTensorList *x, const aclScalarList *scalars,
                                                      const aclTensorList *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_power(OPERATOR_ForeachPowScalarList, x, NULL, scalars, out, workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachPowScalarList)

aclnnStatus aclnnForeachPowListGetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *out,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct foreach_call call = {CALL(ForeachPowList, pow, PROMOTE), .lists = 3, .tensors = {out, x1, x2},
                                      .names = {"out", "x1", "x2"}};
    FINISH;
}
ACLNN_PHASE_2(ForeachPowList)

aclnnStatus aclnnForeachPowScalarAndTensorGetWorkspaceSize(const aclScalar *scalar, const aclTensorList *x,
                                                           const aclTensorList *out, uint64_t *workspaceSize,
                                                           aclOpExecutor **executor)
{
    const struct foreach_call call = {CALL(ForeachPowScalarAndTensor, pow, PROMOTE),
                                      .lists = 2,
                                      .tensors = {out, x},
                                      .names = {"out", "x"},
                                      .constant_at = 1,
                                      .constant = scalar};
    FINISH;
}
ACLNN_PHASE_2(ForeachPowScalarAndTensor)

/* --- sums with alpha ----------------------------------------------------------------------------------------------- */

#define FOREACH_SUM(op, kernel_, type, member, out_const)                                                             \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2, const type *alpha,        \
                                            out_const aclTensorList *out, uint64_t *workspaceSize, aclOpExecutor **executor) \
    {                                                                                                                \
        const struct foreach_call call = {CALL(op, kernel_, PROMOTE), .lists = 3, .tensors = {out, x1, x2},            \
                                          .names = {"out", "x1", "x2"}, .has_parameter = true, .member = alpha};       \
        FINISH;                                                                                                      \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
FOREACH_SUM(ForeachAddList, add_scaled, aclTensor, device_parameter, )
FOREACH_SUM(ForeachAddListV2, add_scaled, aclScalar, parameter, )
FOREACH_SUM(ForeachSubList, sub_scaled, aclTensor, device_parameter, const)
FOREACH_SUM(ForeachSubListV2, sub_scaled, aclScalar, parameter, )

/* --- x1 + scalar * x2 * x3, x1 + scalar * x2 / x3 ------------------------------------------------------------------ */

#define FOREACH_ADDC(op, kernel_, type, member, out_const)                                                            \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *x3,  \
                                            const type *scalar, out_const aclTensorList *out, uint64_t *workspaceSize,  \
                                            aclOpExecutor **executor)                                                 \
    {                                                                                                                \
        const struct foreach_call call = {CALL(op, kernel_, PROMOTE), .lists = 4, .tensors = {out, x1, x2, x3},        \
                                          .names = {"out", "x1", "x2", "x3"}, .has_parameter = true, .member = scalar}; \
        FINISH;                                                                                                      \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
FOREACH_ADDC(ForeachAddcdivScalar, addcdiv, aclTensor, device_parameter, )
FOREACH_ADDC(ForeachAddcdivScalarList, addcdiv, aclTensor, device_parameter, )
FOREACH_ADDC(ForeachAddcdivScalarV2, addcdiv, aclScalar, parameter, )
FOREACH_ADDC(ForeachAddcmulScalar, addcmul, aclTensor, device_parameter, const)
FOREACH_ADDC(ForeachAddcmulScalarList, addcmul, aclTensor, device_parameter, const)
FOREACH_ADDC(ForeachAddcmulScalarV2, addcmul, aclScalar, parameter, )

aclnnStatus aclnnForeachLerpListGetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2, const aclTensorList *weight,
                                                 aclTensorList *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct foreach_call call = {CALL(ForeachLerpList, lerp, PROMOTE), .lists = 4, .tensors = {out, x1, x2, weight},
                                      .names = {"out", "x1", "x2", "weight"}};
    FINISH;
}
ACLNN_PHASE_2(ForeachLerpList)

aclnnStatus aclnnForeachLerpScalarGetWorkspaceSize(const aclTensorList *x1, const aclTensorList *x2, const aclScalar *weight,
                                                   aclTensorList *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct foreach_call call = {CALL(ForeachLerpScalar, lerp_scaled, PROMOTE),
                                      .lists = 3,
                                      .tensors = {out, x1, x2},
                                      .names = {"out", "x1", "x2"},
                                      .has_parameter = true,
                                      .parameter = weight};
    FINISH;
}
ACLNN_PHASE_2(ForeachLerpScalar)

/* --- rounding, copies, zeros --------------------------------------------------------------------------------------- */

enum { ROUND_MODES = 8 };
static const enum elementwise_id round_kernels[ROUND_MODES] = {
    [0] = ELEMENTWISE_COUNT,           [1] = ELEMENTWISE_round, [2] = ELEMENTWISE_floor, [3] = ELEMENTWISE_ceil,
    [4] = ELEMENTWISE_round_half_away, [5] = ELEMENTWISE_trunc, [6] = ELEMENTWISE_COUNT, [7] = ELEMENTWISE_frac,
};

aclnnStatus aclnnForeachRoundOffNumberV2GetWorkspaceSize(const aclTensorList *x, const aclScalar *roundMode, aclTensorList *out,
                                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(roundMode, ACLNN_ERROR_NULLPTR, "aclnnForeachRoundOffNumberV2: roundMode is null");
    const int64_t mode = scalar_to_int64(roundMode);
    REQUIRE(mode > 0 && mode < ROUND_MODES && round_kernels[mode] != ELEMENTWISE_COUNT, ACLNN_ERROR_PARAM,
            "aclnnForeachRoundOffNumberV2: roundMode is %lld; 1 = nearest even, 2 = floor, 3 = ceil, 4 = half away from zero, "
            "5 = towards zero, 7 = fraction",
            (long long)mode);
    const struct foreach_call call = {.id = OPERATOR_ForeachRoundOffNumberV2,
                                      .kernel = round_kernels[mode],
                                      .rule = RULE_PROMOTE,
                                      .lists = 2,
                                      .tensors = {out, x},
                                      .names = {"out", "x"}};
    FINISH;
}
ACLNN_PHASE_2(ForeachRoundOffNumberV2)

/* The mode lives in device memory: kernels are chosen when the plan runs. */
static int run_round(struct plan *plan)
{
    struct foreach_job *const job = foreach_job_of(plan);
    const int64_t mode = integer_i64_from_f64(foreach_read(&plan->operands[0], 0));
    REQUIRE(mode > 0 && mode < ROUND_MODES && round_kernels[mode] != ELEMENTWISE_COUNT, ERROR_RT_DEVICE_TASK,
            "aclnnForeachRoundOffNumber: roundMode is %lld; 1 = nearest even, 2 = floor, 3 = ceil, 4 = half away from zero, "
            "5 = towards zero, 7 = fraction",
            (long long)mode);
    for (int64_t i = 0; i < job->count; ++i)
        job->items[i].run = kernels->elementwise->run[round_kernels[mode]][job->items[i].compute];
    return foreach_run(plan);
}

aclnnStatus aclnnForeachRoundOffNumberGetWorkspaceSize(const aclTensorList *x, const aclTensor *roundMode, const aclTensorList *out,
                                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct foreach_call call = {CALL(ForeachRoundOffNumber, round, PROMOTE), .lists = 2, .tensors = {out, x},
                                      .names = {"out", "x"}};
    struct plan *plan;
    struct foreach_job *job;
    TRY(plan_begin(call.id, run_round, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, roundMode, "roundMode", NULL));
    PLAN_REQUIRE(plan, roundMode->view.count == 1, ACLNN_ERROR_PARAM, "%s: roundMode is %s; it must have one element",
                 operator_name(call.id), view_text(&roundMode->view));
    PLAN_TRY(plan, foreach_begin(plan, call.lists, call.tensors, call.names, FOREACH_SAME_SHAPES, &job));
    for (int64_t i = 0; i < job->count; ++i)
        PLAN_TRY(plan, prepare_item(&call, plan, job, i));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachRoundOffNumber)

aclnnStatus aclnnForeachCopyGetWorkspaceSize(const aclTensorList *x, aclTensorList *out, uint64_t *workspaceSize,
                                             aclOpExecutor **executor)
{
    const aclTensorList *const lists[] = {out, x};
    static const char *const names[] = {"out", "x"};
    struct plan *plan;
    struct foreach_job *job;
    TRY(plan_begin(OPERATOR_ForeachCopy, foreach_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, foreach_begin(plan, 2, lists, names, FOREACH_SAME_SHAPES, &job));
    for (int64_t i = 0; i < job->count; ++i)
        job->items[i].compute = job->items[i].result = foreach_view(plan, job, i, 0)->dtype;
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachCopy)

aclnnStatus aclnnForeachZeroInplaceGetWorkspaceSize(const aclTensorList *x, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    static const char *const names[] = {"x"};
    struct plan *plan;
    struct foreach_job *job;
    TRY(plan_begin(OPERATOR_ForeachZeroInplace, foreach_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, foreach_begin(plan, 1, &x, names, FOREACH_SAME_SHAPES, &job));
    job->constant_at = 1; /* a copy of the constant 0 */
    for (int64_t i = 0; i < job->count; ++i) {
        job->items[i].compute = job->items[i].result = foreach_view(plan, job, i, 0)->dtype;
        job->items[i].constant_dtype = DTYPE_I64;
    }
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachZeroInplace)
