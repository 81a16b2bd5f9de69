/* Activations and their gradients: the rows of activation.def, and those with parameters. Gated units: gated.c */
#include <string.h>

#include "aclnn/math/elementwise_export.h"

#include "aclnn/nn/activation.def"

/* --- one operand, and scalars that the kernel takes as they come --------------------------------------------------- */

/* Up to two scalars; a NULL one is refused by name. */
struct scalars {
    const aclScalar *first;
    const char *first_name;
    const aclScalar *second;
    const char *second_name; /* NULL: there is one only */
};

static int plan_with_scalars(enum operator_id id, enum elementwise_id kernel, const aclTensor *self, struct scalars s,
                             const aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE(s.first, ACLNN_ERROR_NULLPTR, "%s: %s is null", operator_name(id), s.first_name);
    REQUIRE(s.second || !s.second_name, ACLNN_ERROR_NULLPTR, "%s: %s is null", operator_name(id), s.second_name);
    const struct elementwise_call call = {.id = id,
                                          .kernel = kernel,
                                          .rule = RULE_PROMOTE,
                                          .flags = (self == out ? CALL_INPLACE : 0) |
                                                   (kernel == ELEMENTWISE_threshold ? 0 : CALL_EXACT_SCALARS),
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(self)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = s.second_name ? 2 : 1,
                                          .parameters = {s.first, s.second}};
    return elementwise_plan(&call, workspace_size, executor);
}

/* A gradient with up to two scalars. */
struct gradient {
    const aclTensor *grad_output, *self, *grad_input;
};

static int plan_gradient(enum operator_id id, enum elementwise_id kernel, struct gradient g, const aclScalar *first,
                         const aclScalar *second, int scalars, uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE((first || scalars < 1) && (second || scalars < 2), ACLNN_ERROR_NULLPTR, "%s: a scalar is null", operator_name(id));
    const struct elementwise_call call = {.id = id,
                                          .kernel = kernel,
                                          .rule = RULE_PROMOTE,
                                          .flags = CALL_EXACT_SCALARS,
                                          .input_count = 2,
                                          .inputs = {INPUT_TENSOR(g.grad_output), INPUT_TENSOR(g.self)},
                                          .out = INPUT_TENSOR(g.grad_input),
                                          .parameter_count = scalars,
                                          .parameters = {first, second}};
    return elementwise_plan(&call, workspace_size, executor);
}

#define ONE_SCALAR(op, kernel, scalar)                                                                                \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *self, const aclScalar *scalar, aclTensor *out,             \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        return plan_with_scalars(OPERATOR_##op, ELEMENTWISE_##kernel, self, (struct scalars){scalar, #scalar, NULL, NULL}, out, \
                                 workspaceSize, executor);                                                           \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define ONE_SCALAR_INPLACE(op, kernel, scalar)                                                                        \
    aclnnStatus aclnn##op##GetWorkspaceSize(aclTensor *selfRef, const aclScalar *scalar, uint64_t *workspaceSize,       \
                                            aclOpExecutor **executor)                                                 \
    {                                                                                                                \
        return plan_with_scalars(OPERATOR_##op, ELEMENTWISE_##kernel, selfRef, (struct scalars){scalar, #scalar, NULL, NULL}, selfRef, \
                                 workspaceSize, executor);                                                           \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define TWO_SCALARS(op, kernel, first, second)                                                                        \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *self, const aclScalar *first, const aclScalar *second,     \
                                            aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)         \
    {                                                                                                                \
        return plan_with_scalars(OPERATOR_##op, ELEMENTWISE_##kernel, self, (struct scalars){first, #first, second, #second}, out, \
                                 workspaceSize, executor);                                                           \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define GRADIENT_ONE_SCALAR(op, kernel, scalar)                                                                       \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclScalar *scalar, \
                                            aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)         \
    {                                                                                                                \
        return plan_gradient(OPERATOR_##op, ELEMENTWISE_##kernel, (struct gradient){gradOutput, self, out}, scalar, NULL, 1, \
                             workspaceSize, executor);                                                               \
    }                                                                                                                \
    ACLNN_PHASE_2(op)
#define GRADIENT_TWO_SCALARS(op, kernel, first, second)                                                               \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclScalar *first,  \
                                            const aclScalar *second, aclTensor *out, uint64_t *workspaceSize,          \
                                            aclOpExecutor **executor)                                                 \
    {                                                                                                                \
        return plan_gradient(OPERATOR_##op, ELEMENTWISE_##kernel, (struct gradient){gradOutput, self, out}, first, second, 2, \
                             workspaceSize, executor);                                                               \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

ONE_SCALAR(LeakyRelu, leaky_relu, negativeSlope)
ONE_SCALAR_INPLACE(InplaceLeakyRelu, leaky_relu, negativeSlope)
ONE_SCALAR(Softshrink, softshrink, lambd)
ONE_SCALAR(Hardshrink, hardshrink, lambd)
TWO_SCALARS(Softplus, softplus, beta, threshold)
TWO_SCALARS(Threshold, threshold, threshold, value)
GRADIENT_ONE_SCALAR(ThresholdBackward, threshold_backward, threshold)
GRADIENT_ONE_SCALAR(SoftshrinkBackward, shrink_backward, lambd)
GRADIENT_ONE_SCALAR(HardshrinkBackward, shrink_backward, lambd)
GRADIENT_TWO_SCALARS(SoftplusBackward, softplus_backward, beta, threshold)
GRADIENT_TWO_SCALARS(HardtanhBackward, hardtanh_backward, min, max)

aclnnStatus aclnnInplaceThresholdGetWorkspaceSize(aclTensor *selfRef, const aclScalar *threshold, const aclScalar *value,
                                                  uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_with_scalars(OPERATOR_InplaceThreshold, ELEMENTWISE_threshold, selfRef,
                             (struct scalars){threshold, "threshold", value, "value"}, selfRef, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceThreshold)

/* Whether `self` is the input or the result doesn't matter: a slope keeps the sign unless it is negative, which torch refuses. */
aclnnStatus aclnnLeakyReluBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                   const aclScalar *negativeSlope, bool selfIsResult, aclTensor *out,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(!selfIsResult || !negativeSlope || scalar_to_double(negativeSlope) >= 0, ACLNN_ERROR_PARAM,
            "aclnnLeakyReluBackward: negativeSlope is %g; with selfIsResult it must not be negative, the input's sign is lost",
            scalar_to_double(negativeSlope));
    return plan_gradient(OPERATOR_LeakyReluBackward, ELEMENTWISE_leaky_relu_backward, (struct gradient){gradOutput, self, out},
                         negativeSlope, NULL, 1, workspaceSize, executor);
}
ACLNN_PHASE_2(LeakyReluBackward)

/* --- exponential units --------------------------------------------------------------------------------------------- */

static int plan_elu(enum operator_id id, const aclTensor *self, const aclScalar *alpha, const aclScalar *scale,
                    const aclScalar *input_scale, const aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE(alpha && scale && input_scale, ACLNN_ERROR_NULLPTR, "%s: alpha, scale or inputScale is null", operator_name(id));
    const struct elementwise_call call = {
        .id = id,
        .kernel = ELEMENTWISE_elu,
        .rule = RULE_PROMOTE,
        .flags = self == out ? CALL_INPLACE : 0,
        .input_count = 1,
        .inputs = {INPUT_TENSOR(self)},
        .out = INPUT_TENSOR(out),
        .parameter_count = 3,
        .numbers = {scalar_to_double(alpha) * scalar_to_double(scale), scalar_to_double(scale), scalar_to_double(input_scale)}};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnEluGetWorkspaceSize(const aclTensor *self, const aclScalar *alpha, const aclScalar *scale,
                                     const aclScalar *inputScale, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_elu(OPERATOR_Elu, self, alpha, scale, inputScale, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Elu)

aclnnStatus aclnnInplaceEluGetWorkspaceSize(aclTensor *selfRef, const aclScalar *alpha, const aclScalar *scale,
                                            const aclScalar *inputScale, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_elu(OPERATOR_InplaceElu, selfRef, alpha, scale, inputScale, selfRef, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceElu)

aclnnStatus aclnnEluBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclScalar *alpha, const aclScalar *scale,
                                             const aclScalar *inputScale, bool isResult, const aclTensor *selfOrResult,
                                             aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(alpha && scale && inputScale, ACLNN_ERROR_NULLPTR, "aclnnEluBackward: alpha, scale or inputScale is null");
    const struct elementwise_call call = {.id = OPERATOR_EluBackward,
                                          .kernel = ELEMENTWISE_elu_backward,
                                          .rule = RULE_PROMOTE,
                                          .input_count = 2,
                                          .inputs = {INPUT_TENSOR(gradOutput), INPUT_TENSOR(selfOrResult)},
                                          .out = INPUT_TENSOR(gradInput),
                                          .parameter_count = 4,
                                          .numbers = {scalar_to_double(alpha) * scalar_to_double(scale), scalar_to_double(scale),
                                                      scalar_to_double(inputScale), isResult}};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(EluBackward)

/* celu(x) = elu(x) with the input scaled by 1 / alpha */
static int plan_celu(enum operator_id id, const aclTensor *self, const aclScalar *alpha, const aclTensor *out,
                     uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE(alpha, ACLNN_ERROR_NULLPTR, "%s: alpha is null", operator_name(id));
    REQUIRE(scalar_to_double(alpha) != 0, ACLNN_ERROR_PARAM, "%s: alpha is 0; it must differ from 0", operator_name(id));
    static const struct aclScalar one = {.dtype = DTYPE_F64, .value.f64 = 1};
    const struct aclScalar inverse = {.dtype = DTYPE_F64, .value.f64 = 1 / scalar_to_double(alpha)};
    return plan_elu(id, self, alpha, &one, &inverse, out, workspace_size, executor);
}

aclnnStatus aclnnCeluGetWorkspaceSize(const aclTensor *self, const aclScalar *alpha, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    return plan_celu(OPERATOR_Celu, self, alpha, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Celu)

aclnnStatus aclnnInplaceCeluGetWorkspaceSize(aclTensor *selfRef, const aclScalar *alpha, uint64_t *workspaceSize,
                                             aclOpExecutor **executor)
{
    return plan_celu(OPERATOR_InplaceCelu, selfRef, alpha, selfRef, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceCelu)

/* --- gelu ---------------------------------------------------------------------------------------------------------- */

aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor *x, int64_t approximate, aclTensor *y, uint64_t *workspaceSize,
                                        aclOpExecutor **executor)
{
    REQUIRE(approximate == 0 || approximate == 1, ACLNN_ERROR_PARAM, "aclnnGeluV2: approximate is %lld; 0 = erf, 1 = tanh",
            (long long)approximate);
    const struct elementwise_call call = {.id = OPERATOR_GeluV2,
                                          .kernel = approximate ? ELEMENTWISE_gelu_tanh : ELEMENTWISE_gelu_erf,
                                          .rule = RULE_PROMOTE,
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(x)},
                                          .out = INPUT_TENSOR(y)};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(GeluV2)

aclnnStatus aclnnGeluBackwardV2GetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, char *approximate,
                                                aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(approximate, ACLNN_ERROR_NULLPTR, "aclnnGeluBackwardV2: approximate is null");
    const bool tanh = strcmp(approximate, "tanh") == 0;
    REQUIRE(tanh || strcmp(approximate, "none") == 0, ACLNN_ERROR_PARAM,
            "aclnnGeluBackwardV2: approximate is \"%s\"; \"none\" and \"tanh\" are allowed", approximate);
    return plan_gradient(OPERATOR_GeluBackwardV2, tanh ? ELEMENTWISE_gelu_tanh_backward : ELEMENTWISE_gelu_erf_backward,
                         (struct gradient){gradOutput, self, gradInput}, NULL, NULL, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(GeluBackwardV2)

/* --- logarithm of the sigmoid -------------------------------------------------------------------------------------- */

/* The buffer is what torch's CPU keeps for the gradient; other devices leave it empty, and the gradient here doesn't need it. */
aclnnStatus aclnnLogSigmoidForwardGetWorkspaceSize(const aclTensor *self, aclTensor *out, aclTensor *buffer,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct elementwise_call calls[] = {{.id = OPERATOR_LogSigmoidForward,
                                        .kernel = ELEMENTWISE_log_sigmoid,
                                        .rule = RULE_PROMOTE,
                                        .input_count = 1,
                                        .inputs = {INPUT_TENSOR(self)},
                                        .out = INPUT_TENSOR(out)},
                                       {.id = OPERATOR_LogSigmoidForward,
                                        .kernel = ELEMENTWISE_log_sigmoid_buffer,
                                        .rule = RULE_PROMOTE,
                                        .input_count = 1,
                                        .inputs = {INPUT_TENSOR(self)},
                                        .out = INPUT_TENSOR(buffer)}};
    const bool wanted =
        buffer && self && self->view.count > 0 && buffer->view.count == self->view.count && buffer->view.dtype != DTYPE_NONE;
    return elementwise_plan_passes(calls, wanted ? 2 : 1, workspaceSize, executor);
}
ACLNN_PHASE_2(LogSigmoidForward)

aclnnStatus aclnnLogSigmoidBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *buffer,
                                                    aclTensor *gradInput, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    (void)buffer;
    return plan_gradient(OPERATOR_LogSigmoidBackward, ELEMENTWISE_log_sigmoid_backward,
                         (struct gradient){gradOutput, self, gradInput}, NULL, NULL, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(LogSigmoidBackward)

/* --- logit: eps < 0 means none ------------------------------------------------------------------------------------- */

aclnnStatus aclnnLogitGetWorkspaceSize(const aclTensor *input, double eps, const aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    const struct elementwise_call call = {.id = OPERATOR_Logit,
                                          .kernel = ELEMENTWISE_logit,
                                          .rule = RULE_FLOAT,
                                          .input_count = 1,
                                          .inputs = {INPUT_TENSOR(input)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 1,
                                          .numbers = {eps}};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(Logit)

aclnnStatus aclnnLogitGradGetWorkspaceSize(const aclTensor *x, const aclTensor *dy, double eps, const aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct elementwise_call call = {.id = OPERATOR_LogitGrad,
                                          .kernel = ELEMENTWISE_logit_grad,
                                          .rule = RULE_PROMOTE,
                                          .input_count = 2,
                                          .inputs = {INPUT_TENSOR(x), INPUT_TENSOR(dy)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 1,
                                          .numbers = {eps}};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(LogitGrad)

/* --- sum and rectifier --------------------------------------------------------------------------------------------- */

static int plan_add_relu(enum operator_id id, const aclTensor *self, const aclTensor *other, const aclScalar *alpha,
                         const aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE(alpha, ACLNN_ERROR_NULLPTR, "%s: alpha is null", operator_name(id));
    const struct elementwise_call call = {.id = id,
                                          .kernel = ELEMENTWISE_add_relu,
                                          .rule = RULE_PROMOTE,
                                          .flags = CALL_EXACT_SCALARS | (self == out ? CALL_INPLACE : 0),
                                          .input_count = 2,
                                          .inputs = {INPUT_TENSOR(self), INPUT_TENSOR(other)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 1,
                                          .parameters = {alpha}};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnAddReluGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclScalar *alpha, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_add_relu(OPERATOR_AddRelu, self, other, alpha, out, workspaceSize, executor);
}
ACLNN_PHASE_2(AddRelu)

aclnnStatus aclnnInplaceAddReluGetWorkspaceSize(aclTensor *selfRef, const aclTensor *other, aclScalar *alpha,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_add_relu(OPERATOR_InplaceAddRelu, selfRef, other, alpha, selfRef, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceAddRelu)
