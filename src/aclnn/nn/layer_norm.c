/* LayerNorm and LayerNormBackward: rows of the normalised sizes.
 *
 * Gradients of weight and bias are column sums: fixed blocks of rows each add into their own doubles, then the blocks are
 * added in order, whatever the number of threads. */
#include <math.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"

enum { INPUT, WEIGHT, BIAS, OUT, MEAN, RSTD };
enum { GRAD_OUT, B_INPUT, B_MEAN, B_RSTD, B_WEIGHT, GRAD_INPUT, GRAD_WEIGHT, GRAD_BIAS };
enum { PARAMETER_BLOCKS = 16 };

struct layer_norm {
    struct staging staging;
    int64_t rows, width;
    int64_t blocks, rows_a_block, partials; /* of the parameters' gradients; workspace offset */
    double eps;
    enum accumulate type;
};

struct layer_job {
    const struct layer_norm *l;
    const struct norm_float_kernels *k;
    const char *input, *grad_out;
    const void *weight, *bias;
    void *mean, *rstd;
    char *out;
    double *weight_partials, *bias_partials;
    void *grad_weight, *grad_bias;
    int64_t bytes;
};

static double get(const void *values, enum accumulate type, int64_t i)
{
    return type == ACCUMULATE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void set(void *values, enum accumulate type, int64_t i, double value)
{
    if (!values)
        return;
    if (type == ACCUMULATE_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

static void forward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct layer_job *const j = argument;
    const struct layer_norm *const l = j->l;
    for (int64_t r = begin; r < end; ++r) {
        const char *const in = j->input + r * l->width * j->bytes;
        const double mean = j->k->sum(in, l->width) / (double)l->width;
        const double rstd = 1 / sqrt(j->k->square_sum(in, l->width, mean) / (double)l->width + l->eps);
        set(j->mean, l->type, r, mean);
        set(j->rstd, l->type, r, rstd);
        j->k->layer(in, j->weight, j->bias, j->out + r * l->width * j->bytes, l->width, mean, rstd);
    }
}

static int run_forward(struct plan *plan)
{
    const struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    const struct staging *const s = &l->staging;
    if (plan->operands[OUT].count == 0)
        return 0;
    struct layer_job j = {.l = l, .k = &kernels->norm->real[l->type], .bytes = accumulate_bytes(l->type)};
    j.input = stage_read(plan, s, INPUT);
    j.weight = stage_read(plan, s, WEIGHT);
    j.bias = stage_read(plan, s, BIAS);
    j.out = stage_target(plan, s, OUT);
    j.mean = stage_target(plan, s, MEAN);
    j.rstd = stage_target(plan, s, RSTD);
    parallel_for(l->rows, l->width, forward_rows, &j);
    for (int i = OUT; i <= RSTD; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

static void backward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct layer_job *const j = argument;
    const struct layer_norm *const l = j->l;
    for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * l->width * j->bytes;
        const double mean = get(j->mean, l->type, r), rstd = get(j->rstd, l->type, r);
        double sums[2];
        j->k->layer_sums(j->grad_out + at, j->input + at, j->weight, l->width, mean, rstd, sums);
        j->k->layer_gradient(j->grad_out + at, j->input + at, j->weight, j->out + at, l->width, mean, rstd, sums);
    }
}

static void parameter_blocks(void *argument, int64_t begin, int64_t end)
{
    const struct layer_job *const j = argument;
    const struct layer_norm *const l = j->l;
    for (int64_t block = begin; block < end; ++block) {
        double *const weight = j->weight_partials + block * l->width, *const bias = j->bias_partials + block * l->width;
        memset(weight, 0, (size_t)l->width * sizeof *weight);
        memset(bias, 0, (size_t)l->width * sizeof *bias);
        const int64_t first = block * l->rows_a_block;
        const int64_t last = first + l->rows_a_block < l->rows ? first + l->rows_a_block : l->rows;
        for (int64_t r = first; r < last; ++r)
            j->k->layer_parameters(j->grad_out + r * l->width * j->bytes, j->input + r * l->width * j->bytes, l->width,
                                   get(j->mean, l->type, r), get(j->rstd, l->type, r), weight, bias);
    }
}

static void add_blocks(const struct layer_job *j)
{
    const struct layer_norm *const l = j->l;
    for (int64_t i = 0; i < l->width; ++i) {
        double weight = 0, bias = 0;
        for (int64_t block = 0; block < l->blocks; ++block) {
            weight += j->weight_partials[block * l->width + i];
            bias += j->bias_partials[block * l->width + i];
        }
        set(j->grad_weight, l->type, i, weight);
        set(j->grad_bias, l->type, i, bias);
    }
}

static int run_backward(struct plan *plan)
{
    const struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    const struct staging *const s = &l->staging;
    struct layer_job j = {.l = l, .k = &kernels->norm->real[l->type], .bytes = accumulate_bytes(l->type)};
    j.grad_out = stage_read(plan, s, GRAD_OUT);
    j.input = stage_read(plan, s, B_INPUT);
    j.mean = (void *)(uintptr_t)stage_read(plan, s, B_MEAN);
    j.rstd = (void *)(uintptr_t)stage_read(plan, s, B_RSTD);
    j.weight = stage_read(plan, s, B_WEIGHT);
    j.out = stage_target(plan, s, GRAD_INPUT);
    j.grad_weight = stage_target(plan, s, GRAD_WEIGHT);
    j.grad_bias = stage_target(plan, s, GRAD_BIAS);
    if (j.out && l->rows * l->width > 0)
        parallel_for(l->rows, 2 * l->width, backward_rows, &j);
    if (l->partials >= 0) {
        j.weight_partials = stage_room(plan, l->partials);
        j.bias_partials = j.weight_partials + l->blocks * l->width;
        pool_for(l->blocks, 1, parameter_blocks, &j);
        add_blocks(&j);
    }
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

/* Checks the number of elements of operand i and stages it. */
static int take(struct plan *plan, struct layer_norm *l, int i, int64_t count, const char *parameter)
{
    const struct view *const v = &plan->operands[i];
    if (v->dtype == DTYPE_NONE)
        return 0;
    REQUIRE(v->count == count && dtype_is_floating((enum dtype)v->dtype), ACLNN_ERROR_PARAM,
            "%s: %s is %s; it must hold %lld floating values", operator_name((enum operator_id)plan->operator_id), parameter,
            view_text(v), (long long)count);
    stage_operand(plan, &l->staging, v, l->type);
    return 0;
}

aclnnStatus aclnnLayerNormGetWorkspaceSize(const aclTensor *input, const aclIntArray *normalizedShape,
                                           const aclTensor *weightOptional, const aclTensor *biasOptional, double eps,
                                           aclTensor *out, aclTensor *meanOutOptional, aclTensor *rstdOutOptional,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_LayerNorm, run_forward, workspaceSize, executor, &plan));
    struct view *in;
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_optional(plan, weightOptional, ROLE_INPUT, "weightOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, biasOptional, ROLE_INPUT, "biasOptional", NULL));
    PLAN_TRY(plan, plan_output(plan, out, "out", NULL));
    PLAN_TRY(plan, plan_optional(plan, meanOutOptional, ROLE_OUTPUT, "meanOutOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, rstdOutOptional, ROLE_OUTPUT, "rstdOutOptional", NULL));
    struct layer_norm *const l = PLAN_IMMEDIATE(plan, struct layer_norm);
    stage_begin(&l->staging);
    l->eps = eps;
    PLAN_TRY(plan, set_shape(in, normalizedShape, "aclnnLayerNorm", l));
    PLAN_TRY(plan, take(plan, l, INPUT, in->count, "input"));
    PLAN_TRY(plan, take(plan, l, WEIGHT, l->width, "weightOptional"));
    PLAN_TRY(plan, take(plan, l, BIAS, l->width, "biasOptional"));
    PLAN_TRY(plan, take(plan, l, OUT, in->count, "out"));
    PLAN_TRY(plan, take(plan, l, MEAN, l->rows, "meanOutOptional"));
    PLAN_TRY(plan, take(plan, l, RSTD, l->rows, "rstdOutOptional"));
    return plan_finish(plan, l->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(LayerNorm)

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
    PLAN_TRY(plan, take(plan, l, GRAD_OUT, in->count, "gradOut"));
    PLAN_TRY(plan, take(plan, l, B_INPUT, in->count, "input"));
    PLAN_TRY(plan, take(plan, l, B_MEAN, l->rows, "mean"));
    PLAN_TRY(plan, take(plan, l, B_RSTD, l->rows, "rstd"));
    PLAN_TRY(plan, take(plan, l, B_WEIGHT, l->width, "weightOptional"));
    PLAN_TRY(plan, take(plan, l, GRAD_INPUT, in->count, names[0]));
    PLAN_TRY(plan, take(plan, l, GRAD_WEIGHT, l->width, names[1]));
    PLAN_TRY(plan, take(plan, l, GRAD_BIAS, l->width, names[2]));
    if (outputMask->values[1] || outputMask->values[2]) {
        l->rows_a_block = (l->rows + PARAMETER_BLOCKS - 1) / PARAMETER_BLOCKS;
        l->rows_a_block = l->rows_a_block > 0 ? l->rows_a_block : 1;
        l->blocks = (l->rows + l->rows_a_block - 1) / l->rows_a_block;
        l->partials = stage_reserve(&l->staging, (uint64_t)(2 * l->blocks * l->width) * sizeof(double));
    }
    return plan_finish(plan, l->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(LayerNormBackward)
