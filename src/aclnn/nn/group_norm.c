/* GroupNorm, GroupNormSilu, GroupNormSwish and gradients: an image's group of channels is one contiguous run and one item of work.
 *
 * The parameters' gradients add one pair of sums an image, in order. */
#include <math.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"

enum { SELF, GAMMA, BETA, OUT, MEAN, RSTD };
enum { GRAD_OUT, B_INPUT, B_MEAN, B_RSTD, B_GAMMA, GRAD_INPUT, GRAD_GAMMA, GRAD_BETA, B_BETA };

struct group_norm {
    struct staging staging;
    int64_t images, channels, plane, groups, sums; /* sums: workspace offset of double[images][channels][2] */
    int64_t slopes;                                /* workspace offset of the gradient below a swish */
    double eps, swish;                             /* swish: factor in the sigmoid; 0: none */
    enum accumulate type;
};

struct group_job {
    const struct group_norm *g;
    const struct norm_float_kernels *k;
    const char *input, *grad_out;
    char *out;
    const void *gamma, *beta;
    void *mean, *rstd, *grad_gamma, *grad_beta;
    double *sums;
    int64_t bytes;
};

static void forward_groups(void *argument, int64_t begin, int64_t end)
{
    const struct group_job *const j = argument;
    const struct group_norm *const g = j->g;
    const int64_t wide = g->channels / g->groups, count = wide * g->plane;
    for (int64_t item = begin; item < end; ++item) {
        const char *const in = j->input + item * count * j->bytes;
        const double mean = j->k->sum(in, count) / (double)count;
        const double rstd = 1 / sqrt(j->k->square_sum(in, count, mean) / (double)count + g->eps);
        staged_set_value(j->mean, g->type, item, mean);
        staged_set_value(j->rstd, g->type, item, rstd);
        for (int64_t c = 0; c < wide; ++c) {
            const int64_t channel = item % g->groups * wide + c, at = c * g->plane * j->bytes;
            const double scale = rstd * staged_value(j->gamma, g->type, channel, 1);
            j->k->affine(in + at, j->out + item * count * j->bytes + at, g->plane, scale,
                         staged_value(j->beta, g->type, channel, 0) - mean * scale);
        }
        if (g->swish != 0)
            j->k->swish(j->out + item * count * j->bytes, count, g->swish);
    }
}

static int run_forward(struct plan *plan)
{
    const struct group_norm *const g = PLAN_IMMEDIATE(plan, struct group_norm);
    const struct staging *const s = &g->staging;
    if (plan->operands[OUT].count == 0)
        return 0;
    struct group_job j = {.g = g, .k = &kernels->norm->real[g->type], .bytes = accumulate_bytes(g->type)};
    j.input = stage_read(plan, s, SELF);
    j.gamma = stage_read(plan, s, GAMMA);
    j.beta = stage_read(plan, s, BETA);
    j.out = stage_target(plan, s, OUT);
    j.mean = stage_target(plan, s, MEAN);
    j.rstd = stage_target(plan, s, RSTD);
    parallel_for(g->images * g->groups, g->channels / g->groups * g->plane, forward_groups, &j);
    for (int i = OUT; i <= RSTD; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

/* dx = rstd (gamma dy - A / count - xhat B / count), A = sum gamma dy, B = sum gamma dy xhat over the group. */
static void backward_groups(void *argument, int64_t begin, int64_t end)
{
    const struct group_job *const j = argument;
    const struct group_norm *const g = j->g;
    const int64_t wide = g->channels / g->groups, count = wide * g->plane;
    for (int64_t item = begin; item < end; ++item) {
        const double mean = staged_value(j->mean, g->type, item, 0), rstd = staged_value(j->rstd, g->type, item, 1);
        double *const sums = j->sums + item * wide * 2;
        double plain = 0, weighted = 0;
        for (int64_t c = 0; c < wide; ++c) {
            const int64_t at = (item * count + c * g->plane) * j->bytes;
            const double gamma = staged_value(j->gamma, g->type, item % g->groups * wide + c, 1);
            sums[2 * c] = sums[2 * c + 1] = 0;
            j->k->gradient_sums(j->grad_out + at, j->input + at, g->plane, mean, sums + 2 * c);
            sums[2 * c + 1] *= rstd;
            plain += gamma * sums[2 * c];
            weighted += gamma * sums[2 * c + 1];
        }
        const double slope = -rstd * rstd * weighted / (double)count, constant = -rstd * plain / (double)count - slope * mean;
        for (int64_t c = 0; j->out && c < wide; ++c) {
            const int64_t at = (item * count + c * g->plane) * j->bytes;
            const double gamma = staged_value(j->gamma, g->type, item % g->groups * wide + c, 1);
            j->k->gradient(j->grad_out + at, j->input + at, j->out + at, g->plane, gamma * rstd, slope, constant);
        }
    }
}

/* The gradient of the norm's result from that of its swish. */
static void slope_groups(void *argument, int64_t begin, int64_t end)
{
    const struct group_job *const j = argument;
    const struct group_norm *const g = j->g;
    const int64_t wide = g->channels / g->groups;
    for (int64_t item = begin; item < end; ++item)
        for (int64_t c = 0; c < wide; ++c) {
            const int64_t channel = item % g->groups * wide + c, at = (item * wide + c) * g->plane * j->bytes;
            const double scale = staged_value(j->rstd, g->type, item, 1) * staged_value(j->gamma, g->type, channel, 1);
            const double shift = staged_value(j->beta, g->type, channel, 0) - staged_value(j->mean, g->type, item, 0) * scale;
            j->k->swish_gradient((char *)(uintptr_t)j->grad_out + at, j->input + at, g->plane, scale, shift, g->swish);
        }
}

static int run_backward(struct plan *plan)
{
    const struct group_norm *const g = PLAN_IMMEDIATE(plan, struct group_norm);
    const struct staging *const s = &g->staging;
    struct group_job j = {.g = g, .k = &kernels->norm->real[g->type], .bytes = accumulate_bytes(g->type)};
    j.grad_out = stage_read(plan, s, GRAD_OUT);
    j.input = stage_read(plan, s, B_INPUT);
    j.mean = (void *)(uintptr_t)stage_read(plan, s, B_MEAN);
    j.rstd = (void *)(uintptr_t)stage_read(plan, s, B_RSTD);
    j.gamma = stage_read(plan, s, B_GAMMA);
    j.out = stage_target(plan, s, GRAD_INPUT);
    j.grad_gamma = stage_target(plan, s, GRAD_GAMMA);
    j.grad_beta = stage_target(plan, s, GRAD_BETA);
    j.sums = stage_room(plan, g->sums);
    if (g->swish != 0 && g->plane > 0) {
        stage_load(&plan->operands[GRAD_OUT], g->type, stage_room(plan, g->slopes));
        j.grad_out = stage_room(plan, g->slopes);
        j.beta = stage_read(plan, s, B_BETA);
        parallel_for(g->images * g->groups, g->channels / g->groups * g->plane, slope_groups, &j);
    }
    if (g->plane > 0)
        parallel_for(g->images * g->groups, g->channels / g->groups * g->plane, backward_groups, &j);
    for (int64_t c = 0; c < g->channels && (j.grad_gamma || j.grad_beta); ++c) {
        double plain = 0, weighted = 0;
        for (int64_t n = 0; n < g->images && g->plane > 0; ++n) {
            plain += j.sums[(n * g->channels + c) * 2];
            weighted += j.sums[(n * g->channels + c) * 2 + 1];
        }
        staged_set_value(j.grad_gamma, g->type, c, weighted);
        staged_set_value(j.grad_beta, g->type, c, plain);
    }
    for (int i = GRAD_INPUT; i <= GRAD_BETA; ++i)
        stage_write_back(plan, s, i);
    return 0;
}

static int set_shape(const struct view *input, const int64_t *sizes, const char *name, struct group_norm *g)
{
    REQUIRE(dtype_is_floating((enum dtype)input->dtype), ACLNN_ERROR_PARAM, "%s: the input is %s; allowed are f64, f32, f16, bf16",
            name, view_text(input));
    g->images = sizes[0];
    g->channels = sizes[1];
    g->plane = sizes[2];
    g->groups = sizes[3];
    REQUIRE(g->groups > 0 && g->channels % g->groups == 0, ACLNN_ERROR_PARAM, "%s: %lld channels can't be cut into %lld groups",
            name, (long long)g->channels, (long long)g->groups);
    int64_t count, all; /* all: what the workspace and the statistics need */
    const bool overflows = __builtin_mul_overflow(g->images, g->channels, &count) ||
                           __builtin_mul_overflow(count, 2 * (int64_t)sizeof(double), &all) ||
                           __builtin_mul_overflow(count, g->plane, &count) || __builtin_mul_overflow(g->images, g->groups, &all);
    REQUIRE(g->images >= 0 && g->channels >= 0 && g->plane >= 0 && !overflows && count == input->count, ACLNN_ERROR_PARAM,
            "%s: N %lld, C %lld and HxW %lld don't give the elements of %s", name, (long long)g->images, (long long)g->channels,
            (long long)g->plane, view_text(input));
    g->type = accumulate_of((enum dtype)input->dtype);
    return 0;
}

struct forward_request {
    enum operator_id id;
    const aclTensor *self, *gamma, *beta, *out, *mean, *rstd;
    int64_t sizes[4]; /* N, C, HxW, groups */
    double eps, swish;
};

static int plan_forward(const struct forward_request *q, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(q->id, run_forward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, q->self, "self", &in));
    PLAN_TRY(plan, plan_optional(plan, q->gamma, ROLE_INPUT, "gamma", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->beta, ROLE_INPUT, "beta", NULL));
    PLAN_TRY(plan, plan_output(plan, q->out, "out", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->mean, ROLE_OUTPUT, "meanOut", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->rstd, ROLE_OUTPUT, "rstdOut", NULL));
    struct group_norm *const g = PLAN_IMMEDIATE(plan, struct group_norm);
    stage_begin(&g->staging);
    g->eps = q->eps;
    g->swish = q->swish;
    PLAN_TRY(plan, set_shape(in, q->sizes, operator_name(q->id), g));
    PLAN_TRY(plan, stage_values(plan, &g->staging, SELF, in->count, "self", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, GAMMA, g->channels, "gamma", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, BETA, g->channels, "beta", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, OUT, in->count, "out", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, MEAN, g->images * g->groups, "meanOut", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, RSTD, g->images * g->groups, "rstdOut", g->type));
    return plan_finish(plan, g->staging.bytes, workspaceSize, executor);
}

aclnnStatus aclnnGroupNormGetWorkspaceSize(const aclTensor *self, const aclTensor *gamma, const aclTensor *beta, int64_t N,
                                           int64_t C, int64_t HxW, int64_t group, double eps, aclTensor *out, aclTensor *meanOut,
                                           aclTensor *rstdOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct forward_request q = {OPERATOR_GroupNorm, self, gamma, beta, out, meanOut, rstdOut, {N, C, HxW, group}, eps, 0};
    return plan_forward(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(GroupNorm)

aclnnStatus aclnnGroupNormBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *input, const aclTensor *mean,
                                                   const aclTensor *rstd, const aclTensor *gamma, int64_t N, int64_t C, int64_t HxW,
                                                   int64_t group, const aclBoolArray *outputMask, aclTensor *gradInput,
                                                   aclTensor *gradGammaOut, aclTensor *gradBetaOut, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    static const char *const names[] = {"gradInput", "gradGammaOut", "gradBetaOut"};
    struct plan *plan;
    struct view *in;
    TRY(plan_begin(OPERATOR_GroupNormBackward, run_backward, workspaceSize, executor, &plan));
    PLAN_REQUIRE(plan, outputMask && outputMask->count == 3, ACLNN_ERROR_PARAM,
                 "aclnnGroupNormBackward: outputMask must hold 3 values (gradInput, gradGamma, gradBeta)");
    PLAN_TRY(plan, plan_input(plan, gradOut, "gradOut", NULL));
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_input(plan, mean, "mean", NULL));
    PLAN_TRY(plan, plan_input(plan, rstd, "rstd", NULL));
    PLAN_TRY(plan, plan_optional(plan, gamma, ROLE_INPUT, "gamma", NULL));
    aclTensor *const outputs[] = {gradInput, gradGammaOut, gradBetaOut};
    for (int i = 0; i < 3; ++i) {
        PLAN_REQUIRE(plan, !outputMask->values[i] || outputs[i], ACLNN_ERROR_NULLPTR,
                     "aclnnGroupNormBackward: %s is null, but outputMask asks for it", names[i]);
        PLAN_TRY(plan, plan_optional(plan, outputMask->values[i] ? outputs[i] : NULL, ROLE_OUTPUT, names[i], NULL));
    }
    struct group_norm *const g = PLAN_IMMEDIATE(plan, struct group_norm);
    stage_begin(&g->staging);
    g->swish = 0;
    PLAN_TRY(plan, set_shape(in, (const int64_t[]){N, C, HxW, group}, "aclnnGroupNormBackward", g));
    PLAN_TRY(plan, stage_values(plan, &g->staging, GRAD_OUT, in->count, "gradOut", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, B_INPUT, in->count, "input", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, B_MEAN, N * group, "mean", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, B_RSTD, N * group, "rstd", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, B_GAMMA, C, "gamma", g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, GRAD_INPUT, in->count, names[0], g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, GRAD_GAMMA, C, names[1], g->type));
    PLAN_TRY(plan, stage_values(plan, &g->staging, GRAD_BETA, C, names[2], g->type));
    g->sums = stage_reserve(&g->staging, (uint64_t)(2 * N * C) * sizeof(double));
    return plan_finish(plan, g->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(GroupNormBackward)

/* --- with a swish behind ------------------------------------------------------------------------------------------------ */

/* N, C and HxW of [N, C, ...]. */
static int read_sizes(enum operator_id id, const aclTensor *self, const char *format, int64_t groups, int64_t *sizes)
{
    REQUIRE(self, ACLNN_ERROR_NULLPTR, "%s: the input is null", operator_name(id));
    REQUIRE(!format || strcmp(format, "NCHW") == 0, ACLNN_ERROR_PARAM, "%s: dataFormat is \"%s\"; NCHW is supported",
            operator_name(id), format);
    REQUIRE(self->view.ndim >= 2, ACLNN_ERROR_PARAM, "%s: the input is %s; it must be [N, C, ...]", operator_name(id),
            view_text(&self->view));
    sizes[0] = self->view.sizes[0];
    sizes[1] = self->view.sizes[1];
    sizes[2] = 1;
    sizes[3] = groups;
    for (int d = 2; d < self->view.ndim; ++d)
        sizes[2] *= self->view.sizes[d];
    return 0;
}

aclnnStatus aclnnGroupNormSiluGetWorkspaceSize(const aclTensor *self, const aclTensor *gamma, const aclTensor *beta, int64_t group,
                                               double eps, aclTensor *out, aclTensor *meanOut, aclTensor *rstdOut,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct forward_request q = {OPERATOR_GroupNormSilu, self, gamma, beta, out, meanOut, rstdOut, {0}, eps, 1};
    TRY(read_sizes(q.id, self, NULL, group, q.sizes));
    return plan_forward(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(GroupNormSilu)

aclnnStatus aclnnGroupNormSwishGetWorkspaceSize(const aclTensor *x, const aclTensor *gamma, const aclTensor *beta,
                                                int64_t numGroups, char *dataFormatOptional, double eps, bool activateSwish,
                                                double swishScale, const aclTensor *yOut, const aclTensor *meanOut,
                                                const aclTensor *rstdOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const double swish = activateSwish ? swishScale : 0;
    struct forward_request q = {OPERATOR_GroupNormSwish, x, gamma, beta, yOut, meanOut, rstdOut, {0}, eps, swish};
    TRY(read_sizes(q.id, x, dataFormatOptional, numGroups, q.sizes));
    return plan_forward(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(GroupNormSwish)

aclnnStatus aclnnGroupNormSwishGradGetWorkspaceSize(const aclTensor *dy, const aclTensor *mean, const aclTensor *rstd,
                                                    const aclTensor *x, const aclTensor *gamma, const aclTensor *beta,
                                                    int64_t numGroups, char *dataFormatOptional, double swishScale,
                                                    bool dgammaIsRequire, bool dbetaIsRequire, const aclTensor *dxOut,
                                                    const aclTensor *dgammaOut, const aclTensor *dbetaOut, uint64_t *workspaceSize,
                                                    aclOpExecutor **executor)
{
    static const char *const names[] = {"dy", "x", "mean", "rstd", "gamma", "dxOut", "dgammaOut", "dbetaOut", "beta"};
    const aclTensor *const tensors[] = {
        dy, x, mean, rstd, gamma, dxOut, dgammaIsRequire ? dgammaOut : NULL, dbetaIsRequire ? dbetaOut : NULL, beta};
    const enum operator_id id = OPERATOR_GroupNormSwishGrad;
    int64_t sizes[4];
    struct plan *plan;
    TRY(read_sizes(id, x, dataFormatOptional, numGroups, sizes));
    REQUIRE(dy && mean && rstd && dxOut, ACLNN_ERROR_NULLPTR, "aclnnGroupNormSwishGrad: dy, mean, rstd or dxOut is null");
    TRY(plan_begin(id, run_backward, workspaceSize, executor, &plan));
    struct group_norm *const g = PLAN_IMMEDIATE(plan, struct group_norm);
    stage_begin(&g->staging);
    g->swish = swishScale;
    const int64_t elements = x->view.count, channels = sizes[1], statistics = sizes[0] * numGroups;
    const int64_t counts[] = {elements, elements, statistics, statistics, channels, elements, channels, channels, channels};
    for (int i = 0; i <= B_BETA; ++i)
        PLAN_TRY(plan,
                 plan_optional(plan, tensors[i], i >= GRAD_INPUT && i <= GRAD_BETA ? ROLE_OUTPUT : ROLE_INPUT, names[i], NULL));
    PLAN_TRY(plan, set_shape(&plan->operands[B_INPUT], sizes, operator_name(id), g));
    for (int i = 0; i <= B_BETA; ++i)
        PLAN_TRY(plan, stage_values(plan, &g->staging, i, counts[i], names[i], g->type));
    g->sums = stage_reserve(&g->staging, (uint64_t)(2 * sizes[0] * channels) * sizeof(double));
    g->slopes = stage_reserve(&g->staging, (uint64_t)(elements * accumulate_bytes(g->type)));
    return plan_finish(plan, g->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(GroupNormSwishGrad)
