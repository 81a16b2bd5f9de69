/* Functions of one operand: the rows of unary.def, and those whose arguments or result types are their own. */
#include <math.h>

#include "aclnn/math/elementwise_export.h"

#include "aclnn/math/unary.def"

/* |z| of complex numbers is real: another kernel, and the output's type differs from the input's. */
aclnnStatus aclnnAbsGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (elementwise_plan_small(OPERATOR_Abs, ELEMENTWISE_abs, self, NULL, out, workspaceSize, executor))
        return 0;
    const bool complex = self && self->view.dtype != DTYPE_NONE && dtype_kind((enum dtype)self->view.dtype) == KIND_COMPLEX;
    const struct elementwise_call call = {.id = OPERATOR_Abs,
                                          .kernel = complex ? ELEMENTWISE_complex_abs : ELEMENTWISE_abs,
                                          .rule = RULE_PROMOTE,
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(self)},
                                          .out = INPUT_TENSOR(out)};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(Abs)

aclnnStatus aclnnAngleV2GetWorkspaceSize(const aclTensor *x, const aclTensor *out, uint64_t *workspaceSize,
                                         aclOpExecutor **executor)
{
    const bool complex = x && x->view.dtype != DTYPE_NONE && dtype_kind((enum dtype)x->view.dtype) == KIND_COMPLEX;
    const struct elementwise_call call = {.id = OPERATOR_AngleV2,
                                          .kernel = complex ? ELEMENTWISE_complex_angle : ELEMENTWISE_angle,
                                          .rule = RULE_FLOAT,
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(x)},
                                          .out = INPUT_TENSOR(out)};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(AngleV2)

/* Infinity as a replacement means the largest finite value of the type, as torch's default does. */
static int plan_nan_to_num(enum operator_id id, const aclTensor *self, float nan, float posinf, float neginf, const aclTensor *out,
                           unsigned flags, uint64_t *workspace_size, aclOpExecutor **executor)
{
    const struct elementwise_call call = {.id = id,
                                          .kernel = ELEMENTWISE_nan_to_num,
                                          .rule = RULE_PROMOTE,
                                          .flags = flags,
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(self)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 3,
                                          .numbers = {nan, posinf, neginf}};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnNanToNumGetWorkspaceSize(const aclTensor *self, float nan, float posinf, float neginf, aclTensor *out,
                                          uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_nan_to_num(OPERATOR_NanToNum, self, nan, posinf, neginf, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(NanToNum)

aclnnStatus aclnnInplaceNanToNumGetWorkspaceSize(aclTensor *selfRef, float nan, float posinf, float neginf, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor)
{
    return plan_nan_to_num(OPERATOR_InplaceNanToNum, selfRef, nan, posinf, neginf, selfRef, CALL_INPLACE, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceNanToNum)

static int plan_round_decimals(enum operator_id id, const aclTensor *self, int64_t decimals, const aclTensor *out, unsigned flags,
                               uint64_t *workspace_size, aclOpExecutor **executor)
{
    const bool integer = self && self->view.dtype != DTYPE_NONE && dtype_kind((enum dtype)self->view.dtype) == KIND_INTEGER;
    const double power = pow(10, (double)(decimals < 0 ? -decimals : decimals));
    const struct elementwise_call call = {.id = id,
                                          .kernel = decimals == 0 || integer ? ELEMENTWISE_round : ELEMENTWISE_round_decimals,
                                          .rule = RULE_PROMOTE,
                                          .flags = flags,
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(self)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 2,
                                          .numbers = {power, decimals < 0}};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnRoundDecimalsGetWorkspaceSize(const aclTensor *self, int64_t decimals, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    return plan_round_decimals(OPERATOR_RoundDecimals, self, decimals, out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(RoundDecimals)

aclnnStatus aclnnInplaceRoundDecimalsGetWorkspaceSize(aclTensor *selfRef, int64_t decimals, uint64_t *workspaceSize,
                                                      aclOpExecutor **executor)
{
    return plan_round_decimals(OPERATOR_InplaceRoundDecimals, selfRef, decimals, selfRef, CALL_INPLACE, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceRoundDecimals)
