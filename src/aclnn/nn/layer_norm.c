/* LayerNorm and LayerNormBackward: rows of the normalised sizes. */
#include "aclnn/nn/row_norm.h"
#include "aclnnop/all_operators.h"

enum { INPUT, WEIGHT, BIAS, OUT, MEAN, RSTD };
enum { GRAD_OUT, B_INPUT, B_MEAN, B_RSTD, B_WEIGHT, GRAD_INPUT, GRAD_WEIGHT, GRAD_BIAS };

struct layer_norm {
    struct staging staging;
    int64_t rows, width;
    int64_t partials; /* of the parameters' gradients; workspace offset */
    double eps;
    enum accumulate type;
};

static int run_forward(struct plan *plan)
{
    const struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    const struct staging *const s = &l->staging;
    if (plan->operands[OUT].count == 0)
        return 0;
    struct row_norm n = {.type = l->type, .rows = l->rows, .width = l->width, .eps = l->eps};
    n.input = stage_read(plan, s, INPUT);
    n.weight = stage_read(plan, s, WEIGHT);
    n.bias = stage_read(plan, s, BIAS);
    n.out = stage_target(plan, s, OUT);
    n.mean = stage_target(plan, s, MEAN);
    n.rstd = stage_target(plan, s, RSTD);
    row_norm_forward(&n);
    for (int i = OUT; i <= RSTD; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

static int run_backward(struct plan *plan)
{
    const struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    const struct staging *const s = &l->staging;
    struct row_norm n = {.type = l->type, .rows = l->rows, .width = l->width};
    n.grad_out = stage_read(plan, s, GRAD_OUT);
    n.input = stage_read(plan, s, B_INPUT);
    n.mean = (void *)(uintptr_t)stage_read(plan, s, B_MEAN);
    n.rstd = (void *)(uintptr_t)stage_read(plan, s, B_RSTD);
    n.weight = stage_read(plan, s, B_WEIGHT);
    n.out = stage_target(plan, s, GRAD_INPUT);
    n.grad_weight = stage_target(plan, s, GRAD_WEIGHT);
    n.grad_bias = stage_target(plan, s, GRAD_BIAS);
    n.partials = l->partials >= 0 ? stage_room(plan, l->partials) : NULL;
    row_norm_backward(&n);
    for (int i = GRAD_INPUT; i <= GRAD_BIAS; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

static int set_shape(const struct view *input, const aclIntArray *normalized, const char *name, struct layer_norm *l)
{
    REQUIRE(dtype_is_floating((enum dtype)input->dtype), ACLNN_ERROR_PARAM, "%s: input is %s; allowed are f64, f32, f16, bf16",
            name, dtype_name((enum dtype)input->dtype));
    REQUIRE(normalized && normalized->count >= 1 && normalized->count <= input->ndim, ACLNN_ERROR_PARAM,
            "%s: normalizedShape must name 1 to %d sizes", name, input->ndim);
    const int first = input->ndim - (int)normalized->count;
    l->rows = l->width = 1;
    for (int d = 0; d < input->ndim; ++d) {
        REQUIRE(d < first || normalized->values[d - first] == input->sizes[d], ACLNN_ERROR_PARAM,
                "%s: normalizedShape[%d] is %lld, but input is %s", name, d - first, (long long)normalized->values[d - first],
                view_text(input));
        *(d < first ? &l->rows : &l->width) *= input->sizes[d];
    }
    l->type = accumulate_of((enum dtype)input->dtype);
    l->partials = -1;
    return 0;
}

struct layer_request {
    const aclTensor *input, *weight, *bias, *out, *mean, *rstd;
    const aclIntArray *shape;
    double eps;
};

static int plan_layer(enum operator_id id, const struct layer_request *q, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, run_forward, workspaceSize, executor, &plan));
    struct view *in;
    PLAN_TRY(plan, plan_input(plan, q->input, "input", &in));
    PLAN_TRY(plan, plan_optional(plan, q->weight, ROLE_INPUT, "weightOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->bias, ROLE_INPUT, "biasOptional", NULL));
    PLAN_TRY(plan, plan_output(plan, q->out, "out", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->mean, ROLE_OUTPUT, "meanOutOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->rstd, ROLE_OUTPUT, "rstdOutOptional", NULL));
    struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    stage_begin(&l->staging);
    l->eps = q->eps;
    PLAN_TRY(plan, set_shape(in, q->shape, operator_name(id), l));
    PLAN_TRY(plan, stage_values(plan, &l->staging, INPUT, in->count, "input", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, WEIGHT, l->width, "weightOptional", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, BIAS, l->width, "biasOptional", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, OUT, in->count, "out", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, MEAN, l->rows, "meanOutOptional", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, RSTD, l->rows, "rstdOutOptional", l->type));
    return plan_finish(plan, l->staging.bytes, workspaceSize, executor);
}

#define LAYER_NORM(NAME)                                                                                                       \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *input, const aclIntArray *normalizedShape,                      \
                                              const aclTensor *weightOptional, const aclTensor *biasOptional, double eps,      \
                                              aclTensor *out, aclTensor *meanOutOptional, aclTensor *rstdOutOptional,          \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                               \
    {                                                                                                                          \
        const struct layer_request q = {input, weightOptional, biasOptional,    out,                                           \
                                        meanOutOptional, rstdOutOptional, normalizedShape, eps};                               \
        return plan_layer(OPERATOR_##NAME, &q, workspaceSize, executor);                                                       \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME)
LAYER_NORM(LayerNorm)
LAYER_NORM(FastLayerNorm)

aclnnStatus aclnnLayerNormBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *input,
                                                   const aclIntArray *normalizedShape, const aclTensor *mean, const aclTensor *rstd,
                                                   const aclTensor *weightOptional, const aclTensor *biasOptional,
                                                   const aclBoolArray *outputMask, aclTensor *gradInputOut,
                                                   aclTensor *gradWeightOut, aclTensor *gradBiasOut, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    static const char *const names[] = {"gradInputOut", "gradWeightOut", "gradBiasOut"};
    struct plan *plan;
    TRY(plan_begin(OPERATOR_LayerNormBackward, run_backward, workspaceSize, executor, &plan));
    PLAN_REQUIRE(plan, outputMask && outputMask->count == 3, ACLNN_ERROR_PARAM,
                 "aclnnLayerNormBackward: outputMask must hold 3 values (gradInput, gradWeight, gradBias)");
    struct view *in;
    PLAN_TRY(plan, plan_input(plan, gradOut, "gradOut", NULL));
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_input(plan, mean, "mean", NULL));
    PLAN_TRY(plan, plan_input(plan, rstd, "rstd", NULL));
    PLAN_TRY(plan, plan_optional(plan, weightOptional, ROLE_INPUT, "weightOptional", NULL));
    aclTensor *const outputs[] = {gradInputOut, gradWeightOut, gradBiasOut};
    for (int i = 0; i < 3; ++i) {
        PLAN_REQUIRE(plan, !outputMask->values[i] || outputs[i], ACLNN_ERROR_NULLPTR,
                     "aclnnLayerNormBackward: %s is null, but outputMask asks for it", names[i]);
        PLAN_TRY(plan, plan_optional(plan, outputMask->values[i] ? outputs[i] : NULL, ROLE_OUTPUT, names[i], NULL));
    }
    struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    stage_begin(&l->staging);
    PLAN_TRY(plan, set_shape(in, normalizedShape, "aclnnLayerNormBackward", l));
    PLAN_TRY(plan, stage_values(plan, &l->staging, GRAD_OUT, in->count, "gradOut", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, B_INPUT, in->count, "input", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, B_MEAN, l->rows, "mean", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, B_RSTD, l->rows, "rstd", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, B_WEIGHT, l->width, "weightOptional", l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, GRAD_INPUT, in->count, names[0], l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, GRAD_WEIGHT, l->width, names[1], l->type));
    PLAN_TRY(plan, stage_values(plan, &l->staging, GRAD_BIAS, l->width, names[2], l->type));
    if (outputMask->values[1] || outputMask->values[2])
        l->partials = stage_reserve(&l->staging, row_norm_partials_bytes(l->rows, l->width));
    return plan_finish(plan, l->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(LayerNormBackward)
