/* Batch normalisation in pieces, for batches that several processes share: sums and statistics of one's own part, their combination, the
 * affine map, and the same backward.
 *
 * [N, C, ...]: one channel is one item of work, so sums never depend on the number of threads. Statistics are of the type that kernels
 * compute in (f32, or f64 for f64 inputs). */
#include <math.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"

enum piece { PIECE_STATS, PIECE_SUMS, PIECE_AFFINE, PIECE_REDUCE_GRADIENT, PIECE_GRADIENT };
/* Operands by place; names in `names`. */
enum {
    INPUT,
    GRAD_OUT,
    MEAN,
    INVSTD,
    WEIGHT,
    BIAS,
    SUM_DY,
    SUM_DY_XMU,
    COUNTER,
    OUT,
    FIRST_OUT,
    SECOND_OUT,
    THIRD_OUT,
    FOURTH_OUT,
    OPERANDS
};

struct pieces {
    struct staging staging;
    enum piece piece;
    int64_t images, channels, plane;
    double eps;
    enum accumulate type;
};

struct piece_job {
    const struct pieces *p;
    const struct norm_float_kernels *k;
    const char *values[OPERANDS];
    double total; /* of the counter */
};

static double channel_value(const struct piece_job *j, int operand, int64_t c, double otherwise)
{
    if (!j->values[operand])
        return otherwise;
    return j->p->type == ACCUMULATE_F64 ? ((const double *)(const void *)j->values[operand])[c]
                                        : (double)((const float *)(const void *)j->values[operand])[c];
}

static void set_channel(const struct piece_job *j, int operand, int64_t c, double value)
{
    void *const to = (void *)(uintptr_t)j->values[operand];
    if (!to)
        return;
    if (j->p->type == ACCUMULATE_F64)
        ((double *)to)[c] = value;
    else
        ((float *)to)[c] = (float)value;
}

static const char *plane_of(const struct piece_job *j, int operand, int64_t image, int64_t c)
{
    return j->values[operand] + (image * j->p->channels + c) * j->p->plane * accumulate_bytes(j->p->type);
}

static void statistics(const struct piece_job *j, int64_t c)
{
    const struct pieces *const p = j->p;
    const double count = (double)(p->images * p->plane);
    const bool squares = p->piece == PIECE_SUMS;
    double sum = 0, square = 0;
    for (int64_t n = 0; n < p->images; ++n)
        sum += j->k->sum(plane_of(j, INPUT, n, c), p->plane);
    for (int64_t n = 0; n < p->images; ++n)
        square += j->k->square_sum(plane_of(j, INPUT, n, c), p->plane, squares ? 0 : sum / count);
    set_channel(j, FIRST_OUT, c, squares ? sum : sum / count);
    set_channel(j, SECOND_OUT, c, squares ? square : 1 / sqrt(square / count + p->eps));
}

static void affine(const struct piece_job *j, int64_t c)
{
    const double scale = channel_value(j, INVSTD, c, 1) * channel_value(j, WEIGHT, c, 1);
    const double shift = channel_value(j, BIAS, c, 0) - channel_value(j, MEAN, c, 0) * scale;
    for (int64_t n = 0; n < j->p->images; ++n)
        j->k->affine(plane_of(j, INPUT, n, c), (void *)(uintptr_t)plane_of(j, OUT, n, c), j->p->plane, scale, shift);
}

static void reduce_gradient(const struct piece_job *j, int64_t c)
{
    double sums[2] = {0, 0};
    for (int64_t n = 0; n < j->p->images; ++n)
        j->k->gradient_sums(plane_of(j, GRAD_OUT, n, c), plane_of(j, INPUT, n, c), j->p->plane, channel_value(j, MEAN, c, 0), sums);
    set_channel(j, FIRST_OUT, c, sums[0]);
    set_channel(j, SECOND_OUT, c, sums[1]);
    set_channel(j, THIRD_OUT, c, sums[1] * channel_value(j, INVSTD, c, 1));
    set_channel(j, FOURTH_OUT, c, sums[0]);
}

/* dx = g (dy - sum dy / n - (x - mean) invstd^2 sum dy (x - mean) / n), g = weight * invstd */
static void gradient(const struct piece_job *j, int64_t c)
{
    const double invstd = channel_value(j, INVSTD, c, 1), g = invstd * channel_value(j, WEIGHT, c, 1);
    const double slope = -g * invstd * invstd * channel_value(j, SUM_DY_XMU, c, 0) / j->total;
    const double constant = -g * channel_value(j, SUM_DY, c, 0) / j->total - slope * channel_value(j, MEAN, c, 0);
    for (int64_t n = 0; n < j->p->images; ++n)
        j->k->gradient(plane_of(j, GRAD_OUT, n, c), plane_of(j, INPUT, n, c), (void *)(uintptr_t)plane_of(j, OUT, n, c),
                       j->p->plane, g, slope, constant);
}

static void run_channels(void *argument, int64_t begin, int64_t end)
{
    static void (*const functions[])(const struct piece_job *, int64_t) = {statistics, statistics, affine, reduce_gradient,
                                                                           gradient};
    const struct piece_job *const j = argument;
    for (int64_t c = begin; c < end; ++c)
        functions[j->p->piece](j, c);
}

static int run_piece(struct plan *plan)
{
    const struct pieces *const p = PLAN_IMMEDIATE(plan, struct pieces);
    struct piece_job j = {.p = p, .k = &kernels->norm->real[p->type]};
    for (int i = 0; i < OPERANDS; ++i)
        if (plan->operands[i].dtype != DTYPE_NONE)
            j.values[i] = i < OUT ? stage_read(plan, &p->staging, i) : stage_target(plan, &p->staging, i);
    for (int64_t i = 0; j.values[COUNTER] && i < plan->operands[COUNTER].count; ++i)
        j.total += channel_value(&j, COUNTER, i, 0);
    parallel_for(p->channels, cost_of(2, p->images * p->plane), run_channels, &j);
    for (int i = OUT; i < OPERANDS; ++i)
        stage_write_back(plan, &p->staging, i);
    return 0;
}

/* --- phase 1 of the pieces ---------------------------------------------------------------------------------------------- */

static const char *const names[OPERANDS] = {"input",      "gradOut",  "mean",    "invstd", "weight",           "bias",
                                            "sumDy",      "sumDyXmu", "counter", "output", "the first output", "the second output",
                                            "gradWeight", "gradBias"};

struct piece_request {
    enum operator_id id;
    enum piece piece;
    double eps;
    const aclTensor *tensors[OPERANDS];
    unsigned needed; /* bits of operands */
};

static int check_piece(struct plan *plan, struct pieces *p)
{
    const struct view *const o = plan->operands;
    TRY(check_floating(plan, &o[INPUT], names[INPUT]));
    REQUIRE(o[INPUT].ndim >= 2, ACLNN_ERROR_PARAM, "%s: input is %s; at least 2 dimensions (batch, channels) are needed",
            plan_name(plan), view_text(&o[INPUT]));
    p->images = o[INPUT].sizes[0];
    p->channels = o[INPUT].sizes[1];
    int64_t count;
    REQUIRE(multiply_sizes(&o[INPUT], 2, o[INPUT].ndim, &p->plane) && !__builtin_mul_overflow(p->plane, p->images, &count),
            ACLNN_ERROR_PARAM, "%s: input %s is too large", plan_name(plan), view_text(&o[INPUT]));
    p->type = accumulate_of((enum dtype)o[INPUT].dtype);
    for (int i = 0; i < OPERANDS; ++i) {
        if (o[i].dtype == DTYPE_NONE)
            continue;
        if (i != COUNTER)
            TRY(check_floating(plan, &o[i], names[i]));
        if (i == GRAD_OUT || i == OUT)
            TRY(check_sizes(plan, &o[i], names[i], o[INPUT].sizes, o[INPUT].ndim));
        else if (i != INPUT && i != COUNTER)
            TRY(check_sizes(plan, &o[i], names[i], &p->channels, 1));
        else
            TRY(check_not_complex(plan, &o[i], names[i]));
        if (i >= OUT)
            TRY(check_output_not_expanded(plan, &o[i], names[i]));
        stage_operand(plan, &p->staging, &o[i], p->type);
    }
    return 0;
}

static int plan_piece(const struct piece_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, run_piece, workspace_size, executor, &plan));
    for (int i = 0; i < OPERANDS; ++i) {
        const enum operand_role role = i < OUT ? ROLE_INPUT : ROLE_OUTPUT;
        if (q->needed >> i & 1)
            PLAN_TRY(plan, check_not_null(plan, q->tensors[i], names[i]));
        PLAN_TRY(plan, plan_optional(plan, q->tensors[i], role, names[i], NULL));
    }
    struct pieces *const p = PLAN_IMMEDIATE(plan, struct pieces);
    stage_begin(&p->staging);
    p->piece = q->piece;
    p->eps = q->eps;
    PLAN_TRY(plan, check_piece(plan, p));
    return plan_finish(plan, p->staging.bytes, workspace_size, executor);
}

#define BIT(operand) (1u << (operand))

aclnnStatus aclnnBatchNormStatsGetWorkspaceSize(const aclTensor *input, double eps, aclTensor *mean, aclTensor *invstd,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct piece_request q = {.id = OPERATOR_BatchNormStats,
                                    .piece = PIECE_STATS,
                                    .eps = eps,
                                    .tensors = {[INPUT] = input, [FIRST_OUT] = mean, [SECOND_OUT] = invstd},
                                    .needed = BIT(INPUT) | BIT(FIRST_OUT) | BIT(SECOND_OUT)};
    return plan_piece(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormStats)

aclnnStatus aclnnBatchNormReduceGetWorkspaceSize(const aclTensor *x, aclTensor *sum, aclTensor *squareSum, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor)
{
    const struct piece_request q = {.id = OPERATOR_BatchNormReduce,
                                    .piece = PIECE_SUMS,
                                    .tensors = {[INPUT] = x, [FIRST_OUT] = sum, [SECOND_OUT] = squareSum},
                                    .needed = BIT(INPUT) | BIT(FIRST_OUT) | BIT(SECOND_OUT)};
    return plan_piece(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormReduce)

aclnnStatus aclnnBatchNormElemtGetWorkspaceSize(const aclTensor *input, const aclTensor *weight, const aclTensor *bias,
                                                aclTensor *mean, aclTensor *invstd, double eps, aclTensor *output,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct piece_request q = {
        .id = OPERATOR_BatchNormElemt,
        .piece = PIECE_AFFINE,
        .eps = eps,
        .tensors = {[INPUT] = input, [WEIGHT] = weight, [BIAS] = bias, [MEAN] = mean, [INVSTD] = invstd, [OUT] = output},
        .needed = BIT(INPUT) | BIT(MEAN) | BIT(INVSTD) | BIT(OUT)};
    return plan_piece(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormElemt)

aclnnStatus aclnnBatchNormReduceBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *input, const aclTensor *mean,
                                                         const aclTensor *invstd, const aclTensor *weight, bool inputG,
                                                         bool weightG, bool biasG, aclTensor *sumDy, aclTensor *sumDyXmu,
                                                         aclTensor *gradWeight, aclTensor *gradBias, uint64_t *workspaceSize,
                                                         aclOpExecutor **executor)
{
    const struct piece_request q = {.id = OPERATOR_BatchNormReduceBackward,
                                    .piece = PIECE_REDUCE_GRADIENT,
                                    .tensors = {[INPUT] = input,
                                                [GRAD_OUT] = gradOut,
                                                [MEAN] = mean,
                                                [INVSTD] = invstd,
                                                [WEIGHT] = weight,
                                                [FIRST_OUT] = inputG ? sumDy : NULL,
                                                [SECOND_OUT] = inputG ? sumDyXmu : NULL,
                                                [THIRD_OUT] = weightG ? gradWeight : NULL,
                                                [FOURTH_OUT] = biasG ? gradBias : NULL},
                                    .needed = BIT(INPUT) | BIT(GRAD_OUT) | BIT(MEAN) | BIT(INVSTD) |
                                              (inputG ? BIT(FIRST_OUT) | BIT(SECOND_OUT) : 0) | (weightG ? BIT(THIRD_OUT) : 0) |
                                              (biasG ? BIT(FOURTH_OUT) : 0)};
    return plan_piece(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormReduceBackward)

aclnnStatus aclnnBatchNormElemtBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *input, const aclTensor *mean,
                                                        const aclTensor *invstd, const aclTensor *weight, const aclTensor *sumDy,
                                                        const aclTensor *sumDyXmu, aclTensor *counter, aclTensor *gradInput,
                                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct piece_request q = {.id = OPERATOR_BatchNormElemtBackward,
                                    .piece = PIECE_GRADIENT,
                                    .tensors = {[INPUT] = input,
                                                [GRAD_OUT] = gradOut,
                                                [MEAN] = mean,
                                                [INVSTD] = invstd,
                                                [WEIGHT] = weight,
                                                [SUM_DY] = sumDy,
                                                [SUM_DY_XMU] = sumDyXmu,
                                                [COUNTER] = counter,
                                                [OUT] = gradInput},
                                    .needed = BIT(INPUT) | BIT(GRAD_OUT) | BIT(MEAN) | BIT(INVSTD) | BIT(SUM_DY) | BIT(SUM_DY_XMU) |
                                              BIT(COUNTER) | BIT(OUT)};
    return plan_piece(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormElemtBackward)

/* --- statistics of all parts ---------------------------------------------------------------------------------------------- */

enum { G_FIRST, G_SECOND, G_COUNTS, G_RUNNING_MEAN, G_RUNNING_VAR, G_MEAN, G_INVSTD, G_OPERANDS };

struct gather {
    struct staging staging;
    int64_t parts, channels;
    double momentum, eps;
    bool sums; /* the parts gave sums and sums of squares, not means and inverse deviations */
    enum accumulate type;
};

/* Mean and sum of squared distances from it, part after part (Chan's rule). */
static void combine(const struct gather *g, const void *const *in, int64_t c, double *count, double *mean, double *squares)
{
    *count = *mean = *squares = 0;
    for (int64_t part = 0; part < g->parts; ++part) {
        const int64_t at = part * g->channels + c;
        const double n = tile_value(in[G_COUNTS], g->type, part), second = tile_value(in[G_SECOND], g->type, at);
        double m = tile_value(in[G_FIRST], g->type, at), s = (1 / second / second - g->eps) * n;
        if (n <= 0)
            continue;
        if (g->sums) {
            m /= n;
            s = second - n * m * m;
        }
        const double total = *count + n, distance = m - *mean;
        *squares += s + distance * distance * *count * n / total;
        *mean += distance * n / total;
        *count = total;
    }
}

static int run_gather(struct plan *plan)
{
    const struct gather *const g = PLAN_IMMEDIATE(plan, struct gather);
    const void *in[G_OPERANDS] = {0};
    void *out[G_OPERANDS] = {0};
    for (int i = 0; i < G_OPERANDS; ++i)
        if (plan->operands[i].dtype != DTYPE_NONE && i < G_MEAN)
            in[i] = stage_read(plan, &g->staging, i);
    for (int i = G_RUNNING_MEAN; i < G_OPERANDS; ++i)
        out[i] = plan->operands[i].dtype == DTYPE_NONE ? NULL : stage_target(plan, &g->staging, i);
    for (int64_t c = 0; c < g->channels; ++c) {
        double count, mean, squares;
        combine(g, in, c, &count, &mean, &squares);
        tile_set_value(out[G_MEAN], g->type, c, mean);
        tile_set_value(out[G_INVSTD], g->type, c, 1 / sqrt(squares / count + g->eps));
        const double now[] = {mean, squares / (count - 1)};
        for (int i = 0; i < 2; ++i)
            if (out[G_RUNNING_MEAN + i])
                tile_set_value(out[G_RUNNING_MEAN + i], g->type, c,
                               (1 - g->momentum) * tile_value(in[G_RUNNING_MEAN + i], g->type, c) + g->momentum * now[i]);
    }
    for (int i = G_RUNNING_MEAN; i < G_OPERANDS; ++i)
        stage_write_back(plan, &g->staging, i);
    return 0;
}

struct gather_request {
    enum operator_id id;
    bool sums;
    double momentum, eps;
    const aclTensor *tensors[G_OPERANDS];
};

static int check_gather(struct plan *plan, const struct gather_request *q, struct gather *g)
{
    static const char *const words[2][G_OPERANDS] = {
        {"mean", "invstd", "counts", "runningMean", "runningVar", "meanAll", "invstdAll"},
        {"totalSum", "totalSquareSum", "sampleCount", "mean", "variance", "batchMean", "batchInvstd"}};
    const struct view *const o = plan->operands;
    REQUIRE(o[G_FIRST].ndim == 2, ACLNN_ERROR_PARAM, "%s: %s is %s; 2 dimensions (parts, channels) are needed",
            operator_name(q->id), words[q->sums][G_FIRST], view_text(&o[G_FIRST]));
    g->parts = o[G_FIRST].sizes[0];
    g->channels = o[G_FIRST].sizes[1];
    TRY(check_floating(plan, &o[G_FIRST], words[q->sums][G_FIRST]));
    g->type = accumulate_of((enum dtype)o[G_FIRST].dtype);
    for (int i = 0; i < G_OPERANDS; ++i) {
        const char *const name = words[q->sums][i];
        if (o[i].dtype == DTYPE_NONE)
            continue;
        if (i == G_COUNTS) {
            TRY(check_not_complex(plan, &o[i], name));
            REQUIRE(o[i].count == g->parts, ACLNN_ERROR_PARAM, "%s: %s is %s; %lld numbers are needed", operator_name(q->id), name,
                    view_text(&o[i]), (long long)g->parts);
        } else {
            TRY(check_floating(plan, &o[i], name));
            TRY(check_sizes(plan, &o[i], name, i < G_COUNTS ? o[G_FIRST].sizes : &g->channels, i < G_COUNTS ? 2 : 1));
        }
        if (i >= G_RUNNING_MEAN)
            TRY(check_output_not_expanded(plan, &o[i], name));
        stage_operand(plan, &g->staging, &o[i], g->type);
    }
    return 0;
}

static int plan_gather(const struct gather_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, run_gather, workspace_size, executor, &plan));
    for (int i = 0; i < G_OPERANDS; ++i) {
        const bool running = i == G_RUNNING_MEAN || i == G_RUNNING_VAR;
        if (!running)
            PLAN_TRY(plan, check_not_null(plan, q->tensors[i], "a tensor"));
        PLAN_TRY(plan, plan_optional(plan, q->tensors[i],
                                     running            ? ROLE_BOTH
                                     : i < G_COUNTS + 1 ? ROLE_INPUT
                                                        : ROLE_OUTPUT,
                                     "a tensor", NULL));
    }
    struct gather *const g = PLAN_IMMEDIATE(plan, struct gather);
    stage_begin(&g->staging);
    g->sums = q->sums;
    g->momentum = q->momentum;
    g->eps = q->eps;
    PLAN_TRY(plan, check_gather(plan, q, g));
    return plan_finish(plan, g->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnBatchNormGatherStatsWithCountsGetWorkspaceSize(const aclTensor *input, const aclTensor *mean,
                                                                const aclTensor *invstd, aclTensor *runningMean,
                                                                aclTensor *runningVar, double momentum, double eps,
                                                                const aclTensor *counts, aclTensor *meanAll, aclTensor *invstdAll,
                                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct gather_request q = {.id = OPERATOR_BatchNormGatherStatsWithCounts,
                                     .momentum = momentum,
                                     .eps = eps,
                                     .tensors = {mean, invstd, counts, runningMean, runningVar, meanAll, invstdAll}};
    (void)input; /* gives CANN its format only */
    return plan_gather(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BatchNormGatherStatsWithCounts)

aclnnStatus aclnnSyncBatchNormGatherStatsGetWorkspaceSize(const aclTensor *totalSum, const aclTensor *totalSquareSum,
                                                          const aclTensor *sampleCount, aclTensor *mean, aclTensor *variance,
                                                          float momentum, float eps, aclTensor *batchMean, aclTensor *batchInvstd,
                                                          uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct gather_request q = {.id = OPERATOR_SyncBatchNormGatherStats,
                                     .sums = true,
                                     .momentum = (double)momentum,
                                     .eps = (double)eps,
                                     .tensors = {totalSum, totalSquareSum, sampleCount, mean, variance, batchMean, batchInvstd}};
    return plan_gather(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(SyncBatchNormGatherStats)
