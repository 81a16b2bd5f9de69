/* BatchNorm and BatchNormBackward: [N, C, ...] with statistics over all but C.
 *
 * One channel is one item of work (a block of channels when a channel has one element an image), so sums never depend on the
 * number of threads. Training: biased variance normalises, unbiased variance enters the running one, as in torch. */
#include <math.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"

enum { CHANNEL_BLOCK = 64 };

enum { INPUT, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR, OUTPUT, SAVE_MEAN, SAVE_INVSTD };
enum { GRAD_OUT, B_INPUT, B_WEIGHT, B_RUNNING_MEAN, B_RUNNING_VAR, B_SAVE_MEAN, B_SAVE_INVSTD, GRAD_INPUT, GRAD_WEIGHT, GRAD_BIAS };

struct batch_norm {
    struct staging staging;
    int64_t images, channels, plane;
    double momentum, eps;
    enum accumulate type;
    bool training;
};

/* --- forward -------------------------------------------------------------------------------------------------------- */

struct forward_job {
    const struct batch_norm *b;
    const struct norm_float_kernels *k;
    const char *input;
    char *output;
    const void *weight, *bias;
    void *running_mean, *running_var, *save_mean, *save_invstd;
    int64_t bytes; /* of an element */
};

/* Statistics of channel c are known: notes them and gives the affine map. */
static void note_channel(const struct forward_job *j, int64_t c, double *mean, double variance, double *scale, double *shift)
{
    const struct batch_norm *const b = j->b;
    const double count = (double)(b->images * b->plane);
    if (b->training) {
        const double keep = 1 - b->momentum, unbiased = variance * count / (count - 1);
        staged_set_value(j->running_mean, b->type, c, keep * staged_value(j->running_mean, b->type, c, 0) + b->momentum * *mean);
        staged_set_value(j->running_var, b->type, c, keep * staged_value(j->running_var, b->type, c, 0) + b->momentum * unbiased);
    } else {
        *mean = staged_value(j->running_mean, b->type, c, 0);
        variance = staged_value(j->running_var, b->type, c, 1);
    }
    const double invstd = 1 / sqrt(variance + b->eps);
    staged_set_value(j->save_mean, b->type, c, *mean);
    staged_set_value(j->save_invstd, b->type, c, invstd);
    *scale = invstd * staged_value(j->weight, b->type, c, 1);
    *shift = staged_value(j->bias, b->type, c, 0) - *mean * *scale;
}

static void forward_channels(void *argument, int64_t begin, int64_t end)
{
    const struct forward_job *const j = argument;
    const struct batch_norm *const b = j->b;
    const int64_t count = b->images * b->plane, step = b->channels * b->plane * j->bytes;
    for (int64_t c = begin; c < end; ++c) {
        const char *const in = j->input + c * b->plane * j->bytes;
        double mean = 0, variance = 0, scale, shift;
        if (b->training) {
            for (int64_t n = 0; n < b->images; ++n)
                mean += j->k->sum(in + n * step, b->plane);
            mean /= (double)count;
            for (int64_t n = 0; n < b->images; ++n)
                variance += j->k->square_sum(in + n * step, b->plane, mean);
            variance /= (double)count;
        }
        note_channel(j, c, &mean, variance, &scale, &shift);
        for (int64_t n = 0; n < b->images; ++n)
            j->k->affine(in + n * step, j->output + c * b->plane * j->bytes + n * step, b->plane, scale, shift);
    }
}

/* Planes of one element: channels lie side by side. */
static void forward_columns(void *argument, int64_t begin, int64_t end)
{
    const struct forward_job *const j = argument;
    const struct batch_norm *const b = j->b;
    for (int64_t c = begin; c < end; c += CHANNEL_BLOCK) {
        const int64_t width = end - c < CHANNEL_BLOCK ? end - c : CHANNEL_BLOCK;
        const char *const in = j->input + c * j->bytes;
        double mean[CHANNEL_BLOCK] = {0}, squares[CHANNEL_BLOCK] = {0}, scale[CHANNEL_BLOCK], shift[CHANNEL_BLOCK];
        if (b->training) {
            j->k->column_sums(in, b->images, width, b->channels, mean);
            for (int64_t i = 0; i < width; ++i)
                mean[i] /= (double)b->images;
            j->k->column_squares(in, b->images, width, b->channels, mean, squares);
        }
        for (int64_t i = 0; i < width; ++i)
            note_channel(j, c + i, &mean[i], squares[i] / (double)b->images, &scale[i], &shift[i]);
        j->k->column_affine(in, j->output + c * j->bytes, b->images, width, b->channels, scale, shift);
    }
}

static int run_forward(struct plan *plan)
{
    const struct batch_norm *const b = PLAN_IMMEDIATE(plan, struct batch_norm);
    const struct staging *const s = &b->staging;
    if (plan->operands[OUTPUT].count == 0)
        return 0;
    struct forward_job j = {.b = b, .k = &kernels->norm->real[b->type], .bytes = accumulate_bytes(b->type)};
    j.input = stage_read(plan, s, INPUT);
    j.weight = stage_read(plan, s, WEIGHT);
    j.bias = stage_read(plan, s, BIAS);
    j.running_mean = (void *)(uintptr_t)stage_read(plan, s, RUNNING_MEAN);
    j.running_var = (void *)(uintptr_t)stage_read(plan, s, RUNNING_VAR);
    j.output = stage_target(plan, s, OUTPUT);
    j.save_mean = plan->operands[SAVE_MEAN].count ? stage_target(plan, s, SAVE_MEAN) : NULL;
    j.save_invstd = plan->operands[SAVE_INVSTD].count ? stage_target(plan, s, SAVE_INVSTD) : NULL;
    if (b->plane == 1)
        pool_for(b->channels, CHANNEL_BLOCK, forward_columns, &j);
    else
        parallel_for(b->channels, b->images * b->plane, forward_channels, &j);
    if (b->training) {
        stage_write_back(plan, s, RUNNING_MEAN);
        stage_write_back(plan, s, RUNNING_VAR);
    }
    stage_write_back(plan, s, OUTPUT);
    if (j.save_mean)
        stage_write_back(plan, s, SAVE_MEAN);
    if (j.save_invstd)
        stage_write_back(plan, s, SAVE_INVSTD);
    return 0;
}

/* --- backward ------------------------------------------------------------------------------------------------------- */

struct backward_job {
    const struct batch_norm *b;
    const struct norm_float_kernels *k;
    const char *grad_out, *input;
    char *grad_input;
    const void *weight, *mean, *invstd; /* in evaluation: running mean and variance */
    void *grad_weight, *grad_bias;
    int64_t bytes;
};

static void backward_channels(void *argument, int64_t begin, int64_t end)
{
    const struct backward_job *const j = argument;
    const struct batch_norm *const b = j->b;
    const double count = (double)(b->images * b->plane);
    const int64_t step = b->channels * b->plane * j->bytes;
    for (int64_t c = begin; c < end; ++c) {
        const int64_t at = c * b->plane * j->bytes;
        const double mean = staged_value(j->mean, b->type, c, 0), given = staged_value(j->invstd, b->type, c, 1);
        const double invstd = b->training ? given : 1 / sqrt(given + b->eps);
        double sums[2] = {0, 0};
        if (b->training || j->grad_weight || j->grad_bias)
            for (int64_t n = 0; n < b->images; ++n)
                j->k->gradient_sums(j->grad_out + at + n * step, j->input + at + n * step, b->plane, mean, sums);
        staged_set_value(j->grad_weight, b->type, c, sums[1] * invstd);
        staged_set_value(j->grad_bias, b->type, c, sums[0]);
        if (!j->grad_input)
            continue;
        /* dx = g dy - g / count * (sum dy + (x - mean) invstd^2 sum dy (x - mean)), g = weight * invstd */
        const double g = staged_value(j->weight, b->type, c, 1) * invstd;
        const double slope = b->training ? -g * invstd * invstd * sums[1] / count : 0;
        const double constant = b->training ? -g * sums[0] / count - slope * mean : 0;
        for (int64_t n = 0; n < b->images; ++n)
            j->k->gradient(j->grad_out + at + n * step, j->input + at + n * step, j->grad_input + at + n * step, b->plane, g, slope,
                           constant);
    }
}

static int run_backward(struct plan *plan)
{
    const struct batch_norm *const b = PLAN_IMMEDIATE(plan, struct batch_norm);
    const struct staging *const s = &b->staging;
    if (plan->operands[GRAD_OUT].count == 0) {
        for (int i = GRAD_WEIGHT; i <= GRAD_BIAS; ++i)
            if (plan->operands[i].count) {
                for (int64_t c = 0; c < b->channels; ++c)
                    staged_set_value(stage_target(plan, s, i), b->type, c, 0);
                stage_write_back(plan, s, i);
            }
        return 0;
    }
    struct backward_job j = {.b = b, .k = &kernels->norm->real[b->type], .bytes = accumulate_bytes(b->type)};
    j.grad_out = stage_read(plan, s, GRAD_OUT);
    j.input = stage_read(plan, s, B_INPUT);
    j.weight = stage_read(plan, s, B_WEIGHT);
    j.mean = stage_read(plan, s, b->training ? B_SAVE_MEAN : B_RUNNING_MEAN);
    j.invstd = stage_read(plan, s, b->training ? B_SAVE_INVSTD : B_RUNNING_VAR);
    j.grad_input = stage_target(plan, s, GRAD_INPUT);
    j.grad_weight = stage_target(plan, s, GRAD_WEIGHT);
    j.grad_bias = stage_target(plan, s, GRAD_BIAS);
    parallel_for(b->channels, b->images * b->plane, backward_channels, &j);
    for (int i = GRAD_INPUT; i <= GRAD_BIAS; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

/* --- planning ------------------------------------------------------------------------------------------------------- */

static int set_shape(struct plan *plan, const struct view *input, struct batch_norm *b, bool training, double eps)
{
    const char *const name = plan_name(plan);
    REQUIRE(dtype_is_floating((enum dtype)input->dtype), ACLNN_ERROR_PARAM, "%s: input is %s; allowed are f64, f32, f16, bf16",
            name, dtype_name((enum dtype)input->dtype));
    REQUIRE(input->ndim >= 2, ACLNN_ERROR_PARAM, "%s: input %s must have at least 2 dimensions (batch, channels)", name,
            view_text(input));
    b->images = input->sizes[0];
    b->channels = input->sizes[1];
    b->plane = 1;
    for (int d = 2; d < input->ndim; ++d)
        b->plane *= input->sizes[d];
    b->training = training;
    b->eps = eps;
    b->type = accumulate_of((enum dtype)input->dtype);
    REQUIRE(!training || input->count == 0 || b->images * b->plane > 1, ACLNN_ERROR_PARAM,
            "%s: input %s has 1 value per channel; training needs more", name, view_text(input));
    return 0;
}

/* Operands first..last are per channel: right size (or empty, where that is allowed) and floating. */
static int check_channels(struct plan *plan, const struct batch_norm *b, int first, int last, const char *const *names)
{
    for (int i = first; i <= last; ++i) {
        struct view *const v = &plan->operands[i];
        if (v->count == 0) /* an empty one is as absent as NULL, wherever it points */
            *v = (struct view){.dtype = DTYPE_NONE};
        if (v->dtype == DTYPE_NONE)
            continue;
        REQUIRE(dtype_is_floating((enum dtype)v->dtype) && v->count == b->channels, ACLNN_ERROR_PARAM,
                "%s: %s is %s; it must hold %lld floating values, one a channel", plan_name(plan), names[i], view_text(v),
                (long long)b->channels);
        stage_operand(plan, (struct staging *)(uintptr_t)&b->staging, v, b->type);
    }
    return 0;
}

aclnnStatus aclnnBatchNormGetWorkspaceSize(const aclTensor *input, const aclTensor *weight, const aclTensor *bias,
                                           aclTensor *runningMean, aclTensor *runningVar, bool training, double momentum,
                                           double eps, aclTensor *output, aclTensor *saveMean, aclTensor *saveInvstd,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    static const char *const names[] = {"input", "weight", "bias", "runningMean", "runningVar", "output", "saveMean", "saveInvstd"};
    struct plan *plan;
    TRY(plan_begin(OPERATOR_BatchNorm, run_forward, workspaceSize, executor, &plan));
    struct view *in, *out;
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_optional(plan, weight, ROLE_INPUT, "weight", NULL));
    PLAN_TRY(plan, plan_optional(plan, bias, ROLE_INPUT, "bias", NULL));
    const enum operand_role running = training ? ROLE_BOTH : ROLE_INPUT;
    PLAN_TRY(plan, plan_optional(plan, runningMean, running, "runningMean", NULL));
    PLAN_TRY(plan, plan_optional(plan, runningVar, running, "runningVar", NULL));
    PLAN_TRY(plan, plan_output(plan, output, "output", &out));
    PLAN_TRY(plan, plan_optional(plan, saveMean, ROLE_OUTPUT, "saveMean", NULL));
    PLAN_TRY(plan, plan_optional(plan, saveInvstd, ROLE_OUTPUT, "saveInvstd", NULL));
    struct batch_norm *const b = PLAN_IMMEDIATE(plan, struct batch_norm);
    stage_begin(&b->staging);
    PLAN_TRY(plan, set_shape(plan, in, b, training, eps));
    b->momentum = momentum;
    PLAN_REQUIRE(plan, view_same_sizes(in, out) && dtype_is_floating((enum dtype)out->dtype), ACLNN_ERROR_PARAM,
                 "aclnnBatchNorm: output %s must have the sizes of input %s and a floating type", view_text(out), view_text(in));
    PLAN_REQUIRE(plan, training || in->count == 0 || (plan->operands[RUNNING_MEAN].count && plan->operands[RUNNING_VAR].count),
                 ACLNN_ERROR_NULLPTR, "aclnnBatchNorm: runningMean and runningVar are needed when training is false");
    PLAN_TRY(plan, check_channels(plan, b, WEIGHT, RUNNING_VAR, names));
    PLAN_TRY(plan, check_channels(plan, b, SAVE_MEAN, SAVE_INVSTD, names));
    stage_operand(plan, &b->staging, in, b->type);
    stage_operand(plan, &b->staging, out, b->type);
    return plan_finish(plan, b->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNorm)

aclnnStatus aclnnBatchNormBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *input, const aclTensor *weight,
                                                   const aclTensor *runningMean, const aclTensor *runningVar,
                                                   const aclTensor *saveMean, const aclTensor *saveInvstd, bool training,
                                                   double eps, const aclBoolArray *outputMask, aclTensor *gradInput,
                                                   aclTensor *gradWeight, aclTensor *gradBias, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    static const char *const names[] = {"gradOut",  "input",      "weight",    "runningMean", "runningVar",
                                        "saveMean", "saveInvstd", "gradInput", "gradWeight",  "gradBias"};
    struct plan *plan;
    TRY(plan_begin(OPERATOR_BatchNormBackward, run_backward, workspaceSize, executor, &plan));
    struct view *dy, *in;
    PLAN_REQUIRE(plan, outputMask && outputMask->count == 3, ACLNN_ERROR_PARAM,
                 "aclnnBatchNormBackward: outputMask must hold 3 values (gradInput, gradWeight, gradBias)");
    PLAN_TRY(plan, plan_input(plan, gradOut, "gradOut", &dy));
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    const aclTensor *const inputs[] = {weight, runningMean, runningVar, saveMean, saveInvstd};
    for (int i = 0; i < 5; ++i)
        PLAN_TRY(plan, plan_optional(plan, inputs[i], ROLE_INPUT, names[B_WEIGHT + i], NULL));
    aclTensor *const outputs[] = {gradInput, gradWeight, gradBias};
    for (int i = 0; i < 3; ++i) {
        PLAN_REQUIRE(plan, !outputMask->values[i] || outputs[i], ACLNN_ERROR_NULLPTR,
                     "aclnnBatchNormBackward: %s is null, but outputMask asks for it", names[GRAD_INPUT + i]);
        PLAN_TRY(plan, plan_optional(plan, outputMask->values[i] ? outputs[i] : NULL, ROLE_OUTPUT, names[GRAD_INPUT + i], NULL));
    }
    struct batch_norm *const b = PLAN_IMMEDIATE(plan, struct batch_norm);
    stage_begin(&b->staging);
    PLAN_TRY(plan, set_shape(plan, in, b, training, eps));
    const struct view *const dx = &plan->operands[GRAD_INPUT];
    PLAN_REQUIRE(plan, view_same_sizes(in, dy) && dtype_is_floating((enum dtype)dy->dtype), ACLNN_ERROR_PARAM,
                 "aclnnBatchNormBackward: gradOut %s must have the sizes of input %s and a floating type", view_text(dy),
                 view_text(in));
    PLAN_REQUIRE(plan, dx->dtype == DTYPE_NONE || (view_same_sizes(in, dx) && dtype_is_floating((enum dtype)dx->dtype)),
                 ACLNN_ERROR_PARAM, "aclnnBatchNormBackward: gradInput %s must have the sizes of input %s and a floating type",
                 view_text(dx), view_text(in));
    const int statistics = training ? B_SAVE_MEAN : B_RUNNING_MEAN;
    PLAN_REQUIRE(plan, in->count == 0 || (plan->operands[statistics].count && plan->operands[statistics + 1].count),
                 ACLNN_ERROR_NULLPTR, "aclnnBatchNormBackward: %s and %s are needed", names[statistics], names[statistics + 1]);
    PLAN_TRY(plan, check_channels(plan, b, B_WEIGHT, B_SAVE_INVSTD, names));
    PLAN_TRY(plan, check_channels(plan, b, GRAD_WEIGHT, GRAD_BIAS, names));
    for (int i = GRAD_OUT; i <= B_INPUT; ++i)
        stage_operand(plan, &b->staging, &plan->operands[i], b->type);
    stage_operand(plan, &b->staging, dx, b->type);
    return plan_finish(plan, b->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormBackward)
