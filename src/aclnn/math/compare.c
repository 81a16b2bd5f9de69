/* Comparisons, logic and tests: the rows of compare.def, and is-close and is-in. */
#include "aclnn/math/elementwise_export.h"

#include "aclnn/math/compare.def"

aclnnStatus aclnnIsCloseGetWorkspaceSize(const aclTensor *self, const aclTensor *other, double rtol, double atol, bool equalNan,
                                         aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct elementwise_call call = {
        .id = OPERATOR_IsClose, .kernel = ELEMENTWISE_is_close, .rule = RULE_PROMOTE, .input_count = 2,
        .inputs = {INPUT_TENSOR(self), INPUT_TENSOR(other)}, .out = INPUT_TENSOR(out), .parameter_count = 3,
        .numbers = {rtol, atol, equalNan}};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(IsClose)

/* Against one value, "is in" is "equals". */
aclnnStatus aclnnIsInTensorScalarGetWorkspaceSize(const aclTensor *element, const aclScalar *testElement, bool assumeUnique,
                                                  bool invert, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct elementwise_call call = {
        .id = OPERATOR_IsInTensorScalar, .kernel = invert ? ELEMENTWISE_ne : ELEMENTWISE_eq, .rule = RULE_PROMOTE,
        .input_count = 2, .inputs = {INPUT_TENSOR(element), INPUT_SCALAR(testElement)}, .out = INPUT_TENSOR(out)};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(IsInTensorScalar)
