/* Elementwise losses and their gradients: MseLoss, L1Loss, SmoothL1Loss, SoftMarginLoss,
 * BinaryCrossEntropy(WithLogits), KlDiv.
 *
 * Sums: fixed blocks of LOSS_BLOCK elements, each summed on its own, then added in order. */
#include <math.h>
#include <stdatomic.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/loss.h"
#include "kernels/norm.h"

enum { LOSS_BLOCK = 4096 };
enum reduction { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM, REDUCE_BATCH_MEAN };
enum { SELF, TARGET, WEIGHT, POSITIVE_WEIGHT, OUT, GRAD_OUT }; /* order of operands, GRAD_OUT only in gradients */

struct loss {
    struct staging staging;
    enum loss_id id;
    enum reduction reduction;
    int64_t count, partials;
    double parameter, divisor;
    enum accumulate type;
};

struct loss_job {
    const struct loss *l;
    struct loss_operands operands;
    const char *grad_out;
    char *out;
    double *partials;
    int64_t bytes;
    _Atomic int failed;
    _Atomic int64_t improbable[2]; /* the first elements of self and target that aren't probabilities; l->count: none */
};

static const void *advanced(const void *p, int64_t bytes) { return p ? (const char *)p + bytes : NULL; }

/* The first of n values outside 0 to 1, or n. The scan without exits is vectorized. */
#define FIRST_IMPROBABLE(REAL)                                  \
    static int64_t first_improbable_##REAL(const REAL *x, int64_t n) \
    {                                                           \
        bool outside = false;                                   \
        int64_t first = 0;                                      \
        for (int64_t i = 0; i < n; ++i)                         \
            outside |= !(x[i] >= 0 && x[i] <= 1);               \
        if (!outside)                                           \
            return n;                                           \
        while (x[first] >= 0 && x[first] <= 1)                  \
            ++first;                                            \
        return first;                                           \
    }
FIRST_IMPROBABLE(float)
FIRST_IMPROBABLE(double)

/* Looks for what torch's CPU refuses in elements [first, first + n) of self and target. */
static void check_probabilities(struct loss_job *j, int64_t first, int64_t n)
{
    const void *const operands[] = {j->operands.x, j->operands.t};
    for (int i = SELF; i <= TARGET; ++i) {
        const void *const at = advanced(operands[i], first * j->bytes);
        const int64_t found = j->l->type == ACCUMULATE_F64 ? first_improbable_double(at, n) : first_improbable_float(at, n);
        int64_t seen = atomic_load(&j->improbable[i]);
        while (found < n && first + found < seen && !atomic_compare_exchange_weak(&j->improbable[i], &seen, first + found))
            ;
    }
}

static int refuse_improbable(struct plan *plan, const struct loss_job *j, int operand)
{
    static const char *const names[] = {"self", "target"};
    const void *const operands[] = {j->operands.x, j->operands.t};
    const int64_t i = j->improbable[operand];
    const double value =
        j->l->type == ACCUMULATE_F64 ? ((const double *)operands[operand])[i] : (double)((const float *)operands[operand])[i];
    return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "%s[%lld] is %.17g; 0 to 1 are allowed", names[operand], (long long)i,
                     value);
}

static void loss_blocks(void *argument, int64_t begin, int64_t end)
{
    struct loss_job *const j = argument;
    const struct loss *const l = j->l;
    const struct loss_float_kernels *const k = &kernels->loss->real[l->type];
    char *const losses = j->partials ? pool_scratch(0, LOSS_BLOCK * sizeof(double)) : NULL;
    if (j->partials && !losses) {
        j->failed = 1;
        return;
    }
    for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * LOSS_BLOCK, at = first * j->bytes;
        const int64_t n = l->count - first < LOSS_BLOCK ? l->count - first : LOSS_BLOCK;
        if (l->id == LOSS_CROSS_ENTROPY && !j->grad_out)
            check_probabilities(j, first, n);
        const struct loss_operands o = {advanced(j->operands.x, at), advanced(j->operands.t, at), advanced(j->operands.weight, at),
                                        advanced(j->operands.positive_weight, at), l->parameter};
        if (j->grad_out) {
            const int64_t step = l->reduction == REDUCE_NONE;
            k->backward[l->id](&o, j->grad_out + (step ? at : 0), step, 1 / l->divisor, j->out + at, n);
        } else if (losses) {
            k->forward[l->id](&o, losses, n);
            j->partials[block] = kernels->norm->real[l->type].sum(losses, n);
        } else
            k->forward[l->id](&o, j->out + at, n);
    }
}

static void store_scalar(void *out, enum accumulate type, double value)
{
    if (type == ACCUMULATE_F64)
        *(double *)out = value;
    else
        *(float *)out = (float)value;
}

static int run_loss(struct plan *plan)
{
    const struct loss *const l = PLAN_IMMEDIATE(plan, struct loss);
    const struct staging *const s = &l->staging;
    const int64_t blocks = (l->count + LOSS_BLOCK - 1) / LOSS_BLOCK;
    struct loss_job j = {.l = l, .bytes = accumulate_bytes(l->type), .improbable = {l->count, l->count}};
    j.operands.x = stage_read(plan, s, SELF);
    j.operands.t = stage_read(plan, s, TARGET);
    j.operands.weight = stage_read(plan, s, WEIGHT);
    j.operands.positive_weight = stage_read(plan, s, POSITIVE_WEIGHT);
    j.grad_out = plan->operand_count > GRAD_OUT ? stage_read(plan, s, GRAD_OUT) : NULL;
    j.out = stage_target(plan, s, OUT);
    j.partials = l->partials >= 0 ? stage_room(plan, l->partials) : NULL;
    parallel_for(blocks, LOSS_BLOCK, loss_blocks, &j);
    REQUIRE(!j.failed, ERROR_RT_MEMORY_ALLOCATION, "%s: no memory for a block of losses", plan_name(plan));
    for (int i = SELF; i <= TARGET; ++i)
        if (j.improbable[i] < l->count)
            return refuse_improbable(plan, &j, i);
    if (!j.grad_out && l->reduction != REDUCE_NONE) {
        double total = 0;
        for (int64_t i = 0; i < blocks; ++i)
            total += j.partials[i];
        store_scalar(j.out, l->type, total / l->divisor);
    }
    stage_write_back(plan, s, OUT);
    return 0;
}

struct loss_request {
    enum operator_id operator_id;
    enum loss_id id;
    const aclTensor *self, *target, *weight, *positive_weight, *grad_out; /* grad_out NULL: forward */
    aclTensor *out;
    int64_t reduction;
    double parameter;
    bool backward;
};

static const char *const operand_names[] = {"self", "target", "weight", "posWeight", "out", "gradOutput"};

static int check_loss(struct plan *plan, const struct loss_request *q, struct loss *l)
{
    struct view *const o = plan->operands;
    const char *const name = operator_name(q->operator_id);
    struct view common = {.dtype = o[SELF].dtype};
    const bool has_batch_mean = q->id >= LOSS_DIVERGENCE && q->id <= LOSS_DIVERGENCE_LOG_TARGET;
    REQUIRE(q->reduction >= REDUCE_NONE && q->reduction <= (has_batch_mean ? REDUCE_BATCH_MEAN : REDUCE_SUM), ACLNN_ERROR_PARAM,
            "%s: reduction is %lld; allowed are 0 (none), 1 (mean)%s", name, (long long)q->reduction,
            has_batch_mean ? ", 2 (sum) and 3 (batchmean)" : " and 2 (sum)");
    l->reduction = (enum reduction)q->reduction;
    REQUIRE(view_broadcast_sizes(&o[SELF], &o[TARGET], common.sizes, &common.ndim), ACLNN_ERROR_PARAM,
            "%s: self %s and target %s don't broadcast", name, view_text(&o[SELF]), view_text(&o[TARGET]));
    view_make_contiguous(&common);
    for (int i = SELF; i < plan->operand_count; ++i) {
        if (o[i].dtype == DTYPE_NONE)
            continue;
        REQUIRE(dtype_is_floating((enum dtype)o[i].dtype), ACLNN_ERROR_PARAM, "%s: %s is %s; allowed are f64, f32, f16, bf16", name,
                operand_names[i], view_text(&o[i]));
        const bool scalar = l->reduction != REDUCE_NONE && (i == GRAD_OUT || (i == OUT && !q->backward));
        if (i == OUT || scalar)
            REQUIRE(scalar ? o[i].count == 1 : view_same_sizes(&o[i], &common), ACLNN_ERROR_PARAM, "%s: %s is %s; it must be %s",
                    name, operand_names[i], view_text(&o[i]), scalar ? "one element" : view_text(&common));
        else if (!scalar)
            REQUIRE(view_expand(&o[i], common.sizes, common.ndim), ACLNN_ERROR_PARAM, "%s: %s %s doesn't broadcast to %s", name,
                    operand_names[i], view_text(&o[i]), view_text(&common));
    }
    l->count = common.count;
    l->divisor = l->reduction == REDUCE_MEAN                            ? (double)common.count
                 : l->reduction == REDUCE_BATCH_MEAN && common.ndim > 0 ? (double)common.sizes[0]
                                                                        : 1;
    return 0;
}

static int plan_loss(const struct loss_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->operator_id, run_loss, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, q->self, "self", NULL));
    PLAN_TRY(plan, plan_input(plan, q->target, "target", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->weight, ROLE_INPUT, "weight", NULL));
    PLAN_TRY(plan, plan_optional(plan, q->positive_weight, ROLE_INPUT, "posWeight", NULL));
    PLAN_TRY(plan, plan_output(plan, q->out, "out", NULL));
    if (q->backward)
        PLAN_TRY(plan, plan_input(plan, q->grad_out, "gradOutput", NULL));
    struct loss *const l = PLAN_IMMEDIATE(plan, struct loss);
    stage_begin(&l->staging);
    l->id = q->id;
    l->parameter = q->parameter;
    l->partials = -1;
    PLAN_TRY(plan, check_loss(plan, q, l));
    l->type = ACCUMULATE_F32;
    for (int i = 0; i < plan->operand_count; ++i)
        if (plan->operands[i].dtype == DTYPE_F64)
            l->type = ACCUMULATE_F64;
    for (int i = 0; i < plan->operand_count; ++i)
        stage_operand(plan, &l->staging, &plan->operands[i], l->type);
    if (!q->backward && l->reduction != REDUCE_NONE)
        l->partials = stage_reserve(&l->staging, (uint64_t)((l->count + LOSS_BLOCK - 1) / LOSS_BLOCK) * sizeof(double));
    return plan_finish(plan, l->staging.bytes, workspace_size, executor);
}

/* --- operators ------------------------------------------------------------------------------------------------------ */

#define PLAIN_LOSS(NAME, ID)                                                                                                    \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, const aclTensor *target, int64_t reduction, aclTensor *out, \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                                \
    {                                                                                                                           \
        const struct loss_request q = {                                                                                         \
            .operator_id = OPERATOR_##NAME, .id = ID, .self = self, .target = target, .out = out, .reduction = reduction};      \
        return plan_loss(&q, workspaceSize, executor);                                                                          \
    }                                                                                                                           \
    ACLNN_PHASE_2(NAME)                                                                                                         \
    aclnnStatus aclnn##NAME##BackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, \
                                                      int64_t reduction, aclTensor *out, uint64_t *workspaceSize,               \
                                                      aclOpExecutor **executor)                                                 \
    {                                                                                                                           \
        const struct loss_request q = {.operator_id = OPERATOR_##NAME##Backward, .id = ID, .self = self, .target = target,      \
                                       .grad_out = gradOutput, .out = out, .reduction = reduction, .backward = true};           \
        return plan_loss(&q, workspaceSize, executor);                                                                          \
    }                                                                                                                           \
    ACLNN_PHASE_2(NAME##Backward)
PLAIN_LOSS(MseLoss, LOSS_SQUARE)
PLAIN_LOSS(L1Loss, LOSS_ABSOLUTE)
PLAIN_LOSS(SoftMarginLoss, LOSS_MARGIN)

aclnnStatus aclnnSmoothL1LossGetWorkspaceSize(const aclTensor *self, const aclTensor *target, int64_t reduction, float beta,
                                              aclTensor *result, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_SmoothL1Loss,
                                   .id = beta == 0 ? LOSS_ABSOLUTE : LOSS_SMOOTH,
                                   .self = self,
                                   .target = target,
                                   .out = result,
                                   .reduction = reduction,
                                   .parameter = (double)beta};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(SmoothL1Loss)

aclnnStatus aclnnSmoothL1LossBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *self, const aclTensor *target,
                                                      int64_t reduction, float beta, aclTensor *gradInput, uint64_t *workspaceSize,
                                                      aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_SmoothL1LossBackward,
                                   .id = beta == 0 ? LOSS_ABSOLUTE : LOSS_SMOOTH,
                                   .self = self,
                                   .target = target,
                                   .grad_out = gradOut,
                                   .out = gradInput,
                                   .reduction = reduction,
                                   .parameter = (double)beta,
                                   .backward = true};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(SmoothL1LossBackward)

aclnnStatus aclnnBinaryCrossEntropyGetWorkspaceSize(const aclTensor *self, const aclTensor *target, const aclTensor *weight,
                                                    int64_t reduction, aclTensor *out, uint64_t *workspaceSize,
                                                    aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_BinaryCrossEntropy,
                                   .id = LOSS_CROSS_ENTROPY,
                                   .self = self,
                                   .target = target,
                                   .weight = weight,
                                   .out = out,
                                   .reduction = reduction};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BinaryCrossEntropy)

aclnnStatus aclnnBinaryCrossEntropyBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                            const aclTensor *target, const aclTensor *weightOptional,
                                                            int64_t reduction, aclTensor *out, uint64_t *workspaceSize,
                                                            aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_BinaryCrossEntropyBackward,
                                   .id = LOSS_CROSS_ENTROPY,
                                   .self = self,
                                   .target = target,
                                   .weight = weightOptional,
                                   .grad_out = gradOutput,
                                   .out = out,
                                   .reduction = reduction,
                                   .backward = true};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BinaryCrossEntropyBackward)

aclnnStatus aclnnBinaryCrossEntropyWithLogitsGetWorkspaceSize(const aclTensor *self, const aclTensor *target,
                                                              const aclTensor *weightOptional, const aclTensor *posWeightOptional,
                                                              int64_t reduction, aclTensor *out, uint64_t *workspaceSize,
                                                              aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_BinaryCrossEntropyWithLogits,
                                   .id = LOSS_LOGITS,
                                   .self = self,
                                   .target = target,
                                   .weight = weightOptional,
                                   .positive_weight = posWeightOptional,
                                   .out = out,
                                   .reduction = reduction};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BinaryCrossEntropyWithLogits)

aclnnStatus aclnnBinaryCrossEntropyWithLogitsBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                                      const aclTensor *target, const aclTensor *weightOptional,
                                                                      const aclTensor *posWeightOptional, int64_t reduction,
                                                                      aclTensor *out, uint64_t *workspaceSize,
                                                                      aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_BinaryCrossEntropyWithLogitsBackward,
                                   .id = LOSS_LOGITS,
                                   .self = self,
                                   .target = target,
                                   .weight = weightOptional,
                                   .positive_weight = posWeightOptional,
                                   .grad_out = gradOutput,
                                   .out = out,
                                   .reduction = reduction,
                                   .backward = true};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(BinaryCrossEntropyWithLogitsBackward)

aclnnStatus aclnnKlDivGetWorkspaceSize(const aclTensor *self, const aclTensor *target, int64_t reduction, bool logTarget,
                                       aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_KlDiv,
                                   .id = logTarget ? LOSS_DIVERGENCE_LOG : LOSS_DIVERGENCE,
                                   .self = self,
                                   .target = target,
                                   .out = out,
                                   .reduction = reduction};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(KlDiv)

aclnnStatus aclnnKlDivBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target,
                                               int64_t reduction, bool logTarget, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_KlDivBackward,
                                   .id = logTarget ? LOSS_DIVERGENCE_LOG : LOSS_DIVERGENCE,
                                   .self = self,
                                   .target = target,
                                   .grad_out = gradOutput,
                                   .out = out,
                                   .reduction = reduction,
                                   .backward = true};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(KlDivBackward)

aclnnStatus aclnnKlDivTargetBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target,
                                                     int64_t reduction, bool logTarget, aclTensor *gradTarget,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct loss_request q = {.operator_id = OPERATOR_KlDivTargetBackward,
                                   .id = logTarget ? LOSS_DIVERGENCE_LOG_TARGET : LOSS_DIVERGENCE_TARGET,
                                   .self = self,
                                   .target = target,
                                   .grad_out = gradOutput,
                                   .out = gradTarget,
                                   .reduction = reduction,
                                   .backward = true};
    return plan_loss(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(KlDivTargetBackward)
