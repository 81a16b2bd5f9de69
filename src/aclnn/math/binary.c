/* Operators of two operands: the rows of binary.def, sums and differences with alpha, and divisions with a rounding mode. */
#include "aclnn/math/elementwise_export.h"

#include "aclnn/math/binary.def"

/* --- self +- alpha * other ----------------------------------------------------------------------------------------- */

static bool scalar_is_one(const struct aclScalar *s)
{
    switch (dtype_kind(s->dtype)) {
    case KIND_FLOAT: return s->value.f64 == 1;
    case KIND_COMPLEX: return s->value.c128.re == 1 && s->value.c128.im == 0;
    default: return s->value.i64 == 1;
    }
}

/* Either operand may be a scalar. negate: subtract. */
static int plan_sum(enum operator_id id, struct elementwise_input self, struct elementwise_input other, const aclScalar *alpha,
                    bool negate, const aclTensor *out, unsigned flags, uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE(alpha, ACLNN_ERROR_NULLPTR, "%s: alpha is null", operator_name(id));
    const bool plain = scalar_is_one(alpha);
    struct elementwise_call call = {.id = id,
                                    .rule = RULE_PROMOTE,
                                    .flags = flags | CALL_EXACT_SCALARS,
                                    .input_count = 2,
                                    .inputs = {self, other},
                                    .out = INPUT_TENSOR(out),
                                    .kernel = plain ? (negate ? ELEMENTWISE_sub : ELEMENTWISE_add)
                                                    : (negate ? ELEMENTWISE_sub_scaled : ELEMENTWISE_add_scaled)};
    if (plain)
        return elementwise_plan(&call, workspace_size, executor);
    call.parameter_count = 1;
    call.parameters[0] = alpha;
    const bool given = (self.scalar || (self.tensor && self.tensor->view.dtype != DTYPE_NONE)) &&
                       (other.scalar || (other.tensor && other.tensor->view.dtype != DTYPE_NONE));
    if (given) {
        bool is_default;
        const enum dtype promoted = elementwise_promote(call.inputs, 2, &is_default);
        const bool counts = dtype_kind(alpha->dtype) <= KIND_INTEGER; /* any whole number goes with bools */
        REQUIRE(counts || dtype_kind(alpha->dtype) <= dtype_kind(promoted), ACLNN_ERROR_PARAM,
                "%s: alpha is %s, but the operands compute in %s; alpha must not be of a higher kind", operator_name(id),
                dtype_name(alpha->dtype), dtype_name(promoted));
    }
    return elementwise_plan(&call, workspace_size, executor);
}

#define TENSOR(x) ((struct elementwise_input)INPUT_TENSOR(x))
#define SCALAR(x) ((struct elementwise_input)INPUT_SCALAR(x))

static bool plan_plain_sum(enum operator_id id, enum elementwise_id kernel, const aclTensor *self, const aclTensor *other,
                           const aclScalar *alpha, const aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    return self && other && alpha && out && scalar_is_one(alpha) &&
           elementwise_plan_small(id, kernel, self, other, out, workspace_size, executor);
}

/* With alpha 1; scalar_first: the scalar is the left operand. */
static bool plan_plain_scalar_sum(enum operator_id id, enum elementwise_id kernel, const aclTensor *tensor, const aclScalar *scalar,
                                  bool scalar_first, const aclScalar *alpha, const aclTensor *out, uint64_t *workspace_size,
                                  aclOpExecutor **executor)
{
    return alpha && scalar_is_one(alpha) &&
           elementwise_plan_small_scalar(id, kernel, CALL_EXACT_SCALARS, tensor, scalar, scalar_first, out, workspace_size,
                                         executor);
}

aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_sum(OPERATOR_Add, ELEMENTWISE_add, self, other, alpha, out, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_Add, TENSOR(self), TENSOR(other), alpha, false, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Add)

aclnnStatus aclnnInplaceAddGetWorkspaceSize(const aclTensor *selfRef, const aclTensor *other, const aclScalar *alpha,
                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_sum(OPERATOR_InplaceAdd, ELEMENTWISE_add, selfRef, other, alpha, selfRef, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_InplaceAdd, TENSOR(selfRef), TENSOR(other), alpha, false, selfRef, CALL_INPLACE, workspaceSize,
                    executor);
}
ACLNN_PHASE_2(InplaceAdd)

aclnnStatus aclnnAddsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_scalar_sum(OPERATOR_Adds, ELEMENTWISE_add, self, other, false, alpha, out, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_Adds, TENSOR(self), SCALAR(other), alpha, false, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Adds)

aclnnStatus aclnnInplaceAddsGetWorkspaceSize(const aclTensor *selfRef, const aclScalar *other, const aclScalar *alpha,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_scalar_sum(OPERATOR_InplaceAdds, ELEMENTWISE_add, selfRef, other, false, alpha, selfRef, workspaceSize,
                              executor))
        return 0;
    return plan_sum(OPERATOR_InplaceAdds, TENSOR(selfRef), SCALAR(other), alpha, false, selfRef, CALL_INPLACE, workspaceSize,
                    executor);
}
ACLNN_PHASE_2(InplaceAdds)

aclnnStatus aclnnAddV3GetWorkspaceSize(const aclScalar *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_sum(OPERATOR_AddV3, SCALAR(self), TENSOR(other), alpha, false, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(AddV3)

aclnnStatus aclnnSubGetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_sum(OPERATOR_Sub, ELEMENTWISE_sub, self, other, alpha, out, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_Sub, TENSOR(self), TENSOR(other), alpha, true, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Sub)

aclnnStatus aclnnInplaceSubGetWorkspaceSize(aclTensor *selfRef, const aclTensor *other, const aclScalar *alpha,
                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_sum(OPERATOR_InplaceSub, ELEMENTWISE_sub, selfRef, other, alpha, selfRef, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_InplaceSub, TENSOR(selfRef), TENSOR(other), alpha, true, selfRef, CALL_INPLACE, workspaceSize,
                    executor);
}
ACLNN_PHASE_2(InplaceSub)

aclnnStatus aclnnSubsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_scalar_sum(OPERATOR_Subs, ELEMENTWISE_sub, self, other, false, alpha, out, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_Subs, TENSOR(self), SCALAR(other), alpha, true, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Subs)

aclnnStatus aclnnInplaceSubsGetWorkspaceSize(aclTensor *selfRef, const aclScalar *other, const aclScalar *alpha,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_scalar_sum(OPERATOR_InplaceSubs, ELEMENTWISE_sub, selfRef, other, false, alpha, selfRef, workspaceSize,
                              executor))
        return 0;
    return plan_sum(OPERATOR_InplaceSubs, TENSOR(selfRef), SCALAR(other), alpha, true, selfRef, CALL_INPLACE, workspaceSize,
                    executor);
}
ACLNN_PHASE_2(InplaceSubs)

/* other - alpha * self */
aclnnStatus aclnnRsubGetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_sum(OPERATOR_Rsub, TENSOR(other), TENSOR(self), alpha, true, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Rsub)

aclnnStatus aclnnRsubsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, const aclScalar *alpha, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (plan_plain_scalar_sum(OPERATOR_Rsubs, ELEMENTWISE_sub, self, other, true, alpha, out, workspaceSize, executor))
        return 0;
    return plan_sum(OPERATOR_Rsubs, SCALAR(other), TENSOR(self), alpha, true, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Rsubs)

/* --- division with a rounding mode --------------------------------------------------------------------------------- */

static int plan_division(enum operator_id id, struct elementwise_input self, struct elementwise_input other, int mode,
                         const aclTensor *out, unsigned flags, uint64_t *workspace_size, aclOpExecutor **executor)
{
    static const enum elementwise_id kernel_of[] = {ELEMENTWISE_div, ELEMENTWISE_div_trunc, ELEMENTWISE_div_floor};
    REQUIRE(mode >= 0 && mode <= 2, ACLNN_ERROR_PARAM, "%s: mode is %d; 0 = none, 1 = trunc, 2 = floor", operator_name(id), mode);
    const struct elementwise_call call = {.id = id,
                                          .kernel = kernel_of[mode],
                                          .rule = mode ? RULE_PROMOTE : RULE_FLOAT,
                                          .flags = flags | CALL_EXACT_SCALARS | (mode ? CALL_REFUSE_ZERO : 0),
                                          .input_count = 2,
                                          .inputs = {self, other},
                                          .out = INPUT_TENSOR(out)};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnDivModGetWorkspaceSize(const aclTensor *self, const aclTensor *other, int mode, aclTensor *out,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_division(OPERATOR_DivMod, TENSOR(self), TENSOR(other), mode, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(DivMod)

aclnnStatus aclnnInplaceDivModGetWorkspaceSize(aclTensor *selfRef, const aclTensor *other, int mode, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    return plan_division(OPERATOR_InplaceDivMod, TENSOR(selfRef), TENSOR(other), mode, selfRef, CALL_INPLACE, workspaceSize,
                         executor);
}
ACLNN_PHASE_2(InplaceDivMod)

aclnnStatus aclnnDivModsGetWorkspaceSize(const aclTensor *self, const aclScalar *other, int mode, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_division(OPERATOR_DivMods, TENSOR(self), SCALAR(other), mode, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(DivMods)

aclnnStatus aclnnInplaceDivModsGetWorkspaceSize(aclTensor *selfRef, const aclScalar *other, int mode, uint64_t *workspaceSize,
                                                aclOpExecutor **executor)
{
    return plan_division(OPERATOR_InplaceDivMods, TENSOR(selfRef), SCALAR(other), mode, selfRef, CALL_INPLACE, workspaceSize,
                         executor);
}
ACLNN_PHASE_2(InplaceDivMods)
