/* CrossEntropyLoss and its gradient: of scores [rows, classes] and the right class of each row, with weights of classes and smoothed labels.
 *
 * A row is one item of work; rows are added in their order, in double. CANN's squared log-sum loss is documented as not there yet: its
 * outputs are zeros, and a factor other than 0 is refused. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"

enum { INPUT, TARGET, WEIGHT, LOSS, LOG_PROB, ZLOSS, LSE };                   /* forward */
enum { GRAD_LOSS, B_LOG_PROB, B_TARGET, B_WEIGHT, B_GRAD_ZLOSS, B_LSE, OUT }; /* backward */
enum reduction { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

struct entropy {
    struct staging staging;
    int64_t rows, classes, ignore, sums; /* sums: two doubles a row, in the workspace */
    double smoothing;
    enum reduction reduction;
    enum accumulate type;
};

struct entropy_job {
    const struct entropy *e;
    const void *input, *weight; /* backward: input holds log_prob */
    const int64_t *target;
    void *log_prob, *out;
    const void *grad;
    double *sums; /* loss and weight of each row */
    double total; /* of the weights */
};

static double weight_of(const struct entropy_job *j, int64_t c) { return j->weight ? tile_value(j->weight, j->e->type, c) : 1; }

static void forward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct entropy_job *const j = argument;
    const struct entropy *const e = j->e;
    for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * e->classes, target = j->target[row];
        double high = -INFINITY, sum = 0, smooth = 0;
        for (int64_t c = 0; c < e->classes; ++c)
            high = fmax(high, tile_value(j->input, e->type, first + c));
        for (int64_t c = 0; c < e->classes; ++c)
            sum += exp(tile_value(j->input, e->type, first + c) - high);
        const double lse = high + log(sum);
        for (int64_t c = 0; c < e->classes; ++c) {
            const double log_prob = tile_value(j->input, e->type, first + c) - lse;
            tile_set_value(j->log_prob, e->type, first + c, log_prob);
            smooth -= log_prob * weight_of(j, c);
        }
        j->sums[2 * row] = j->sums[2 * row + 1] = 0;
        if (target == e->ignore)
            continue;
        const double weight = weight_of(j, target), loss = -(tile_value(j->input, e->type, first + target) - lse) * weight;
        j->sums[2 * row] = (1 - e->smoothing) * loss + (e->smoothing > 0 ? e->smoothing * smooth / (double)e->classes : 0);
        j->sums[2 * row + 1] = weight;
    }
}

static int check_targets(const struct entropy_job *j, const char *operator)
{
    for (int64_t row = 0; row < j->e->rows; ++row)
        if (j->target[row] != j->e->ignore && (j->target[row] < 0 || j->target[row] >= j->e->classes))
            return error_set(ERROR_RT_DEVICE_TASK, operator, "target[%lld] is %lld; there are %lld classes", (long long)row,
                             (long long)j->target[row], (long long)j->e->classes);
    return 0;
}

static void clear(struct plan *plan, const struct entropy *e, int operand)
{
    const struct view *const v = &plan->operands[operand];
    if (v->dtype == DTYPE_NONE || v->count == 0)
        return;
    memset(stage_target(plan, &e->staging, operand), 0, (size_t)(v->count * accumulate_bytes(e->type)));
    stage_write_back(plan, &e->staging, operand);
}

static int run_forward(struct plan *plan)
{
    const struct entropy *const e = PLAN_IMMEDIATE(plan, struct entropy);
    struct entropy_job j = {.e = e, .sums = stage_room(plan, e->sums)};
    j.input = stage_read(plan, &e->staging, INPUT);
    j.target = stage_read(plan, &e->staging, TARGET);
    j.weight = stage_read(plan, &e->staging, WEIGHT);
    TRY(check_targets(&j, "aclnnCrossEntropyLoss"));
    j.log_prob = stage_target(plan, &e->staging, LOG_PROB);
    void *const loss = stage_target(plan, &e->staging, LOSS);
    parallel_for(e->rows, cost_of(32, e->classes), forward_rows, &j);
    double total = 0, weights = 0;
    for (int64_t row = 0; row < e->rows; ++row) {
        total += j.sums[2 * row];
        weights += j.sums[2 * row + 1];
        if (e->reduction == REDUCE_NONE)
            tile_set_value(loss, e->type, row, j.sums[2 * row]);
    }
    if (e->reduction != REDUCE_NONE)
        tile_set_value(loss, e->type, 0, e->reduction == REDUCE_MEAN ? total / weights : total);
    stage_write_back(plan, &e->staging, LOSS);
    stage_write_back(plan, &e->staging, LOG_PROB);
    clear(plan, e, ZLOSS);
    clear(plan, e, LSE);
    return 0;
}

static void backward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct entropy_job *const j = argument;
    const struct entropy *const e = j->e;
    double weights = 0;
    for (int64_t c = 0; c < e->classes; ++c)
        weights += weight_of(j, c);
    for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * e->classes, target = j->target[row];
        double grad = tile_value(j->grad, e->type, e->reduction == REDUCE_NONE ? row : 0);
        if (e->reduction == REDUCE_MEAN)
            grad /= j->total;
        const bool counts = target != e->ignore;
        const double right = counts ? grad * (1 - e->smoothing) * weight_of(j, target) : 0;
        const double each = counts ? grad * e->smoothing / (double)e->classes : 0;
        for (int64_t c = 0; c < e->classes; ++c) {
            const double probability = exp(tile_value(j->input, e->type, first + c));
            tile_set_value(j->out, e->type, first + c,
                           probability * (right + each * weights) - (c == target ? right : 0) - each * weight_of(j, c));
        }
    }
}

static int run_backward(struct plan *plan)
{
    const struct entropy *const e = PLAN_IMMEDIATE(plan, struct entropy);
    struct entropy_job j = {.e = e};
    j.grad = stage_read(plan, &e->staging, GRAD_LOSS);
    j.input = stage_read(plan, &e->staging, B_LOG_PROB);
    j.target = stage_read(plan, &e->staging, B_TARGET);
    j.weight = stage_read(plan, &e->staging, B_WEIGHT);
    TRY(check_targets(&j, "aclnnCrossEntropyLossGrad"));
    for (int64_t row = 0; row < e->rows; ++row)
        j.total += j.target[row] == e->ignore ? 0 : weight_of(&j, j.target[row]);
    j.out = stage_target(plan, &e->staging, OUT);
    parallel_for(e->rows, cost_of(32, e->classes), backward_rows, &j);
    stage_write_back(plan, &e->staging, OUT);
    return 0;
}

/* --- phase 1 ------------------------------------------------------------------------------------------------------------ */

struct entropy_request {
    enum operator_id id;
    const char *reduction;
    int64_t ignore;
    double smoothing, square_scale;
};

static int set_entropy(struct plan *plan, const struct entropy_request *q, const struct view *scores, const struct view *target)
{
    static const char *const words[] = {"none", "mean", "sum"};
    struct entropy *const e = PLAN_IMMEDIATE(plan, struct entropy);
    const char *const name = operator_name(q->id), *const reduction = q->reduction ? q->reduction : "mean";
    stage_begin(&e->staging);
    int which = 0;
    while (which < 3 && strcmp(reduction, words[which]) != 0)
        ++which;
    REQUIRE(which < 3, ACLNN_ERROR_PARAM, "%s: reductionOptional is \"%s\"; \"none\", \"mean\" and \"sum\" are allowed", name,
            reduction);
    REQUIRE(q->smoothing >= 0 && q->smoothing <= 1, ACLNN_ERROR_PARAM, "%s: labelSmoothing is %g; 0 to 1 is allowed", name,
            q->smoothing);
    REQUIRE(q->square_scale == 0, ACLNN_ERROR_PARAM, "%s: lseSquareScaleForZloss is %g; only 0 is supported", name,
            q->square_scale);
    TRY(check_floating(plan, scores, "the scores"));
    TRY(check_index_dtype(plan, target, "target"));
    REQUIRE(scores->ndim == 2, ACLNN_ERROR_PARAM, "%s: the scores are %s; 2 dimensions (rows, classes) are needed", name,
            view_text(scores));
    e->reduction = (enum reduction)which;
    e->smoothing = q->smoothing;
    e->ignore = q->ignore;
    e->rows = scores->sizes[0];
    e->classes = scores->sizes[1];
    e->type = accumulate_of((enum dtype)scores->dtype);
    return check_sizes(plan, target, "target", &e->rows, 1);
}

/* Operands that are there: floating but the target; sizes: rows or one (reduced), rows x classes, classes. */
static int check_rest(struct plan *plan, int target, int weight, int reduced, int matrix)
{
    struct entropy *const e = PLAN_IMMEDIATE(plan, struct entropy);
    const char *const name = plan_name(plan);
    const int64_t sizes[] = {e->rows, e->classes};
    for (int i = 0; i < plan->operand_count; ++i) {
        const struct view *const v = &plan->operands[i];
        if (v->dtype == DTYPE_NONE)
            continue;
        if (i != target)
            TRY(check_floating(plan, v, "an operand"));
        if (i == weight)
            TRY(check_sizes(plan, v, "weightOptional", &e->classes, 1));
        if (i == matrix)
            TRY(check_sizes(plan, v, "the gradient or logProb", sizes, 2));
        const int64_t count = e->reduction == REDUCE_NONE ? e->rows : 1;
        REQUIRE(i != reduced || v->count == count, ACLNN_ERROR_PARAM,
                "%s: the loss or its gradient is %s; %lld elements are needed", name, view_text(v), (long long)count);
        if (plan->roles[i] == ROLE_OUTPUT)
            TRY(check_output_not_expanded(plan, v, "an output"));
        stage_operand(plan, &e->staging, v, i == target ? ACCUMULATE_I64 : e->type);
    }
    return 0;
}

aclnnStatus aclnnCrossEntropyLossGetWorkspaceSize(const aclTensor *input, const aclTensor *target, const aclTensor *weightOptional,
                                                  char *reductionOptional, int64_t ignoreIndex, double labelSmoothing,
                                                  double lseSquareScaleForZloss, bool returnZloss, const aclTensor *lossOut,
                                                  const aclTensor *logProbOut, const aclTensor *zlossOut,
                                                  const aclTensor *lseForZlossOut, uint64_t *workspaceSize,
                                                  aclOpExecutor **executor)
{
    const struct entropy_request q = {OPERATOR_CrossEntropyLoss, reductionOptional, ignoreIndex, labelSmoothing,
                                      lseSquareScaleForZloss};
    struct plan *plan;
    struct view *scores, *labels;
    (void)returnZloss;
    TRY(plan_begin(q.id, run_forward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, input, "input", &scores));
    PLAN_TRY(plan, plan_input(plan, target, "target", &labels));
    PLAN_TRY(plan, plan_optional(plan, weightOptional, ROLE_INPUT, "weightOptional", NULL));
    PLAN_TRY(plan, plan_output(plan, lossOut, "lossOut", NULL));
    PLAN_TRY(plan, plan_output(plan, logProbOut, "logProbOut", NULL));
    PLAN_TRY(plan, plan_optional(plan, zlossOut, ROLE_OUTPUT, "zlossOut", NULL));
    PLAN_TRY(plan, plan_optional(plan, lseForZlossOut, ROLE_OUTPUT, "lseForZlossOut", NULL));
    PLAN_TRY(plan, set_entropy(plan, &q, scores, labels));
    PLAN_TRY(plan, check_rest(plan, TARGET, WEIGHT, LOSS, LOG_PROB));
    struct entropy *const e = PLAN_IMMEDIATE(plan, struct entropy);
    e->sums = stage_reserve(&e->staging, (uint64_t)e->rows * 2 * sizeof(double));
    return plan_finish(plan, e->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(CrossEntropyLoss)

aclnnStatus aclnnCrossEntropyLossGradGetWorkspaceSize(const aclTensor *gradLoss, const aclTensor *logProb, const aclTensor *target,
                                                      const aclTensor *weightOptional, const aclTensor *gradZlossOptional,
                                                      const aclTensor *lseForZlossOptional, char *reductionOptional,
                                                      int64_t ignoreIndex, double labelSmoothing, double lseSquareScaleForZloss,
                                                      const aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct entropy_request q = {OPERATOR_CrossEntropyLossGrad, reductionOptional, ignoreIndex, labelSmoothing,
                                      lseSquareScaleForZloss};
    struct plan *plan;
    struct view *scores, *labels;
    TRY(plan_begin(q.id, run_backward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, gradLoss, "gradLoss", NULL));
    PLAN_TRY(plan, plan_input(plan, logProb, "logProb", &scores));
    PLAN_TRY(plan, plan_input(plan, target, "target", &labels));
    PLAN_TRY(plan, plan_optional(plan, weightOptional, ROLE_INPUT, "weightOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, gradZlossOptional, ROLE_INPUT, "gradZlossOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, lseForZlossOptional, ROLE_INPUT, "lseForZlossOptional", NULL));
    PLAN_TRY(plan, plan_output(plan, out, "out", NULL));
    PLAN_TRY(plan, set_entropy(plan, &q, scores, labels));
    PLAN_TRY(plan, check_rest(plan, B_TARGET, B_WEIGHT, GRAD_LOSS, OUT));
    struct entropy *const e = PLAN_IMMEDIATE(plan, struct entropy);
    return plan_finish(plan, e->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(CrossEntropyLossGrad)
