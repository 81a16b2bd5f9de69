/* Gated units, which take one half of a dimension times a function of the other, and the parametric rectifier. */
#include <string.h>

#include "aclnn/math/elementwise_export.h"

/* The two halves of a dimension, as tensors of their own over the same memory. */
static int split_halves(enum operator_id id, const aclTensor *tensor, const char *name, int64_t dim, aclTensor halves[2])
{
    REQUIRE(tensor, ACLNN_ERROR_NULLPTR, "%s: %s is null", operator_name(id), name);
    const struct view *const v = &tensor->view;
    const int d = view_wrap_dim(dim, v->ndim);
    REQUIRE(v->ndim > 0 && d >= 0, ACLNN_ERROR_PARAM, "%s: dim is %lld, but %s is %s", operator_name(id), (long long)dim, name,
            view_text(v));
    REQUIRE(v->sizes[d] % 2 == 0, ACLNN_ERROR_PARAM, "%s: dimension %d of %s %s is odd; it is split in two halves",
            operator_name(id), d, name, view_text(v));
    for (int k = 0; k < 2; ++k) {
        halves[k] = *tensor;
        halves[k].view.sizes[d] = v->sizes[d] / 2;
        view_refresh(&halves[k].view);
        if (k == 1 && v->data)
            halves[k].view.data += v->sizes[d] / 2 * v->strides[d] * (int64_t)dtype_bytes((enum dtype)v->dtype);
    }
    return 0;
}

static struct elementwise_call pass_of_2(enum operator_id id, enum elementwise_id kernel, const aclTensor *first,
                                         const aclTensor *second, const aclTensor *out)
{
    return (struct elementwise_call){.id = id,
                                     .kernel = kernel,
                                     .rule = RULE_PROMOTE,
                                     .input_count = 2,
                                     .inputs = {INPUT_TENSOR(first), INPUT_TENSOR(second)},
                                     .out = INPUT_TENSOR(out)};
}

static struct elementwise_call pass_of_3(enum operator_id id, enum elementwise_id kernel, const aclTensor *first,
                                         const aclTensor *second, const aclTensor *third, const aclTensor *out)
{
    struct elementwise_call call = pass_of_2(id, kernel, first, second, out);
    call.input_count = 3;
    call.inputs[2] = (struct elementwise_input)INPUT_TENSOR(third);
    return call;
}

static int plan_unit(enum operator_id id, enum elementwise_id kernel, const aclTensor *self, int64_t dim, const aclTensor *out,
                     uint64_t *workspace_size, aclOpExecutor **executor)
{
    aclTensor halves[2];
    TRY(split_halves(id, self, "self", dim, halves));
    const struct elementwise_call call = pass_of_2(id, kernel, &halves[0], &halves[1], out);
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnGluGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor)
{
    return plan_unit(OPERATOR_Glu, ELEMENTWISE_glu, self, dim, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Glu)

aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor *x, int64_t dim, const aclTensor *out, uint64_t *workspaceSize,
                                        aclOpExecutor **executor)
{
    return plan_unit(OPERATOR_SwiGlu, ELEMENTWISE_swiglu, x, dim, out, workspaceSize, executor);
}
ACLNN_PHASE_2(SwiGlu)

aclnnStatus aclnnGeluMulGetWorkspaceSize(const aclTensor *input, char *approximateOptional, const aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const bool tanh = approximateOptional && strcmp(approximateOptional, "tanh") == 0;
    REQUIRE(tanh || !approximateOptional || strcmp(approximateOptional, "none") == 0, ACLNN_ERROR_PARAM,
            "aclnnGeluMul: approximateOptional is \"%s\"; \"none\" and \"tanh\" are allowed", approximateOptional);
    return plan_unit(OPERATOR_GeluMul, tanh ? ELEMENTWISE_geglu_tanh : ELEMENTWISE_geglu_erf, input, -1, out, workspaceSize,
                     executor);
}
ACLNN_PHASE_2(GeluMul)

/* grad * sigmoid(second) is glu's own kernel. */
aclnnStatus aclnnGluBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *self, int64_t dim, const aclTensor *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    aclTensor in[2], to[2];
    TRY(split_halves(OPERATOR_GluBackward, self, "self", dim, in));
    TRY(split_halves(OPERATOR_GluBackward, out, "out", dim, to));
    const struct elementwise_call calls[] = {
        pass_of_2(OPERATOR_GluBackward, ELEMENTWISE_glu, gradOut, &in[1], &to[0]),
        pass_of_3(OPERATOR_GluBackward, ELEMENTWISE_glu_backward_second, gradOut, &in[0], &in[1], &to[1])};
    return elementwise_plan_passes(calls, 2, workspaceSize, executor);
}
ACLNN_PHASE_2(GluBackward)

aclnnStatus aclnnSwiGluGradGetWorkspaceSize(const aclTensor *yGrad, const aclTensor *x, int64_t dim, const aclTensor *out,
                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    aclTensor in[2], to[2];
    TRY(split_halves(OPERATOR_SwiGluGrad, x, "x", dim, in));
    TRY(split_halves(OPERATOR_SwiGluGrad, out, "out", dim, to));
    const struct elementwise_call calls[] = {
        pass_of_3(OPERATOR_SwiGluGrad, ELEMENTWISE_swiglu_backward_first, yGrad, &in[0], &in[1], &to[0]),
        pass_of_2(OPERATOR_SwiGluGrad, ELEMENTWISE_swiglu_backward_second, yGrad, &in[0], &to[1])};
    return elementwise_plan_passes(calls, 2, workspaceSize, executor);
}
ACLNN_PHASE_2(SwiGluGrad)

/* --- gelu of one half, which half the flag says -------------------------------------------------------------------- */

static int check_approximate(enum operator_id id, int64_t approximate)
{
    REQUIRE(approximate == 0 || approximate == 1, ACLNN_ERROR_PARAM, "%s: approximate is %lld; 0 = erf, 1 = tanh",
            operator_name(id), (long long)approximate);
    return 0;
}

aclnnStatus aclnnGeGluV3GetWorkspaceSize(const aclTensor *self, int64_t dim, int64_t approximate, bool activateLeft, aclTensor *out,
                                         aclTensor *outGelu, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const enum operator_id id = OPERATOR_GeGluV3;
    aclTensor in[2];
    TRY(check_approximate(id, approximate));
    TRY(split_halves(id, self, "self", dim, in));
    const aclTensor *const activated = &in[activateLeft ? 0 : 1], *const plain = &in[activateLeft ? 1 : 0];
    struct elementwise_call calls[] = {
        pass_of_2(id, approximate ? ELEMENTWISE_geglu_tanh : ELEMENTWISE_geglu_erf, activated, plain, out),
        pass_of_2(id, approximate ? ELEMENTWISE_gelu_tanh : ELEMENTWISE_gelu_erf, activated, NULL, outGelu)};
    calls[1].input_count = 1;
    return elementwise_plan_passes(calls, 2, workspaceSize, executor);
}
ACLNN_PHASE_2(GeGluV3)

aclnnStatus aclnnGeGluV3BackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *gelu,
                                                 int64_t dim, int64_t approximate, bool activateLeft, aclTensor *gradInput,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const enum operator_id id = OPERATOR_GeGluV3Backward;
    aclTensor in[2], to[2];
    TRY(check_approximate(id, approximate));
    TRY(split_halves(id, self, "self", dim, in));
    TRY(split_halves(id, gradInput, "gradInput", dim, to));
    const int activated = activateLeft ? 0 : 1, plain = 1 - activated;
    const struct elementwise_call calls[] = {
        pass_of_3(id, approximate ? ELEMENTWISE_geglu_tanh_backward : ELEMENTWISE_geglu_erf_backward, gradOutput, &in[activated],
                  &in[plain], &to[activated]),
        pass_of_2(id, ELEMENTWISE_mul, gradOutput, gelu, &to[plain])};
    return elementwise_plan_passes(calls, 2, workspaceSize, executor);
}
ACLNN_PHASE_2(GeGluV3Backward)

/* --- prelu --------------------------------------------------------------------------------------------------------- */

/* One weight a channel comes as one dimension and applies to dimension 1. */
static aclTensor along_channels(const aclTensor *weight, const aclTensor *self)
{
    aclTensor along = *weight;
    if (weight->view.ndim == 1 && self->view.ndim > 2 && weight->view.count == self->view.sizes[1]) {
        along.view.ndim = (uint8_t)(self->view.ndim - 1);
        for (int d = 0; d < along.view.ndim; ++d) {
            along.view.sizes[d] = d == 0 ? weight->view.count : 1;
            along.view.strides[d] = d == 0 ? weight->view.strides[0] : 1;
        }
        view_refresh(&along.view);
    }
    return along;
}

aclnnStatus aclnnPreluGetWorkspaceSize(const aclTensor *self, const aclTensor *weight, aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    REQUIRE(self && weight, ACLNN_ERROR_NULLPTR, "aclnnPrelu: self or weight is null");
    const aclTensor along = along_channels(weight, self);
    const struct elementwise_call call = pass_of_2(OPERATOR_Prelu, ELEMENTWISE_prelu, self, &along, out);
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(Prelu)
