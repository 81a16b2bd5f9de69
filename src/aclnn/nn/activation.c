/* Activations and their gradients: the rows of activation.def, and those with parameters. */
#include "aclnn/math/elementwise_export.h"

#include "aclnn/nn/activation.def"

aclnnStatus aclnnThresholdBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclScalar *threshold,
                                                   aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(threshold, ACLNN_ERROR_NULLPTR, "aclnnThresholdBackward: threshold is null");
    const struct elementwise_call call = {
        .id = OPERATOR_ThresholdBackward, .kernel = ELEMENTWISE_threshold_backward, .rule = RULE_PROMOTE, .input_count = 2,
        .inputs = {INPUT_TENSOR(gradOutput), INPUT_TENSOR(self)}, .out = INPUT_TENSOR(out), .parameter_count = 1,
        .parameters = {threshold}};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(ThresholdBackward)
