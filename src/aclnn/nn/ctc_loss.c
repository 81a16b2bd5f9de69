/* CtcLoss and its gradient: the probability of a sequence of labels over all its alignments with the steps of the input.
 *
 * log_probs are [steps, batch, classes]. The labels of a sequence are laid out with blanks around each (2 length + 1 "states"); log_alpha
 * holds the log-probability of reaching a state at a step, log_beta that of the rest from there. One sequence is one item of work; sums are
 * in double. Rows of log_alpha may be longer than any sequence needs. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"

enum { LOG_PROBS, TARGETS, LOSS, LOG_ALPHA };                             /* forward */
enum { GRAD_OUT, B_LOG_PROBS, B_TARGETS, B_LOSS, B_LOG_ALPHA, GRADIENT }; /* backward */

struct sequence {
    int64_t steps, labels, first; /* first: of its labels among all */
};

struct ctc {
    struct staging staging;
    int64_t steps, batch, classes, width, blank; /* width: of a row of log_alpha */
    int64_t most_labels, beta;                   /* beta: room for two rows a sequence, in the workspace */
    int64_t target_stride;
    struct sequence *sequences; /* in the plan's extra block */
    bool zero_infinity;
    enum accumulate type;
};

struct ctc_job {
    const struct ctc *c;
    const char *log_probs, *log_alpha, *loss, *grad_out;
    const int64_t *targets;
    char *out, *alpha_out;
    double *beta;
};

static double log_add(double a, double b)
{
    const double high = a > b ? a : b;
    return high == -INFINITY ? high : high + log(exp(a - high) + exp(b - high));
}

static int64_t label_of(const struct ctc_job *j, const struct sequence *q, int64_t state)
{
    return state % 2 == 0 ? j->c->blank : j->targets[q->first + state / 2 * j->c->target_stride];
}

static double log_prob(const struct ctc_job *j, int64_t step, int64_t b, int64_t label)
{
    return tile_value(j->log_probs, j->c->type, (step * j->c->batch + b) * j->c->classes + label);
}

static int64_t alpha_at(const struct ctc *c, int64_t b, int64_t step, int64_t state)
{
    return (b * c->steps + step) * c->width + state;
}

/* A state may be entered from the state two before when it is a label that differs from the one before. */
static bool may_skip(const struct ctc_job *j, const struct sequence *q, int64_t state)
{
    return state >= 2 && state % 2 == 1 && label_of(j, q, state) != label_of(j, q, state - 2);
}

static void run_alpha(const struct ctc_job *j, int64_t b)
{
    const struct ctc *const c = j->c;
    const struct sequence *const q = &c->sequences[b];
    const int64_t states = 2 * q->labels + 1;
    for (int64_t i = 0; i < c->steps * c->width; ++i)
        tile_set_value(j->alpha_out, c->type, b * c->steps * c->width + i, -INFINITY);
    for (int64_t t = 0; t < q->steps; ++t)
        for (int64_t s = 0; s < states; ++s) {
            double from = -INFINITY;
            if (t == 0)
                from = s < 2 ? 0 : -INFINITY;
            else {
                for (int64_t back = 0; back < 3 && back <= s; ++back)
                    if (back < 2 || may_skip(j, q, s))
                        from = log_add(from, tile_value(j->alpha_out, c->type, alpha_at(c, b, t - 1, s - back)));
            }
            if (from > -INFINITY)
                from += log_prob(j, t, b, label_of(j, q, s));
            tile_set_value(j->alpha_out, c->type, alpha_at(c, b, t, s), from);
        }
    double total;
    if (q->steps == 0)
        total = q->labels == 0 ? 0 : -INFINITY;
    else {
        total = tile_value(j->alpha_out, c->type, alpha_at(c, b, q->steps - 1, states - 1));
        if (states > 1)
            total = log_add(total, tile_value(j->alpha_out, c->type, alpha_at(c, b, q->steps - 1, states - 2)));
    }
    tile_set_value(j->out, c->type, b, -total);
}

static void alpha_items(void *argument, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; ++b)
        run_alpha(argument, b);
}

/* Labels are looked at once, before anything reads by them. */
static int check_labels(const struct ctc_job *j, const char *operator)
{
    const struct ctc *const c = j->c;
    for (int64_t b = 0; b < c->batch; ++b)
        for (int64_t i = 0; i < c->sequences[b].labels; ++i) {
            const int64_t label = j->targets[c->sequences[b].first + i * c->target_stride];
            if (label < 0 || label >= c->classes)
                return error_set(ERROR_RT_DEVICE_TASK, operator, "target %lld of sequence %lld is %lld; there are %lld classes",
                                 (long long)i, (long long)b, (long long)label, (long long)c->classes);
        }
    return 0;
}

static int run_forward(struct plan *plan)
{
    const struct ctc *const c = PLAN_IMMEDIATE(plan, struct ctc);
    struct ctc_job j = {.c = c};
    j.log_probs = stage_read(plan, &c->staging, LOG_PROBS);
    j.targets = stage_read(plan, &c->staging, TARGETS);
    TRY(check_labels(&j, "aclnnCtcLoss"));
    j.out = stage_target(plan, &c->staging, LOSS);
    j.alpha_out = stage_target(plan, &c->staging, LOG_ALPHA);
    parallel_for(c->batch, cost_of(64, cost_of(c->steps, c->width)), alpha_items, &j);
    stage_write_back(plan, &c->staging, LOSS);
    stage_write_back(plan, &c->staging, LOG_ALPHA);
    return 0;
}

/* --- backward ----------------------------------------------------------------------------------------------------------- */

/* log_beta of step t into `now`, from that of step t + 1. */
static void step_beta(const struct ctc_job *j, const struct sequence *q, int64_t b, int64_t t, const double *next, double *now)
{
    const int64_t states = 2 * q->labels + 1;
    for (int64_t s = 0; s < states; ++s) {
        double to = -INFINITY;
        if (t == q->steps - 1)
            to = s >= states - 2 ? 0 : -INFINITY;
        else {
            for (int64_t ahead = 0; ahead < 3 && s + ahead < states; ++ahead)
                if (ahead < 2 || may_skip(j, q, s + 2))
                    to = log_add(to, next[s + ahead]);
        }
        now[s] = to > -INFINITY ? to + log_prob(j, t, b, label_of(j, q, s)) : to;
    }
}

/* d loss / d log_prob = e^log_prob - (the share of alignments that pass through the class at this step), as torch defines it: the gradient
 * of the softmax that made log_probs is taken in. */
static void step_gradient(const struct ctc_job *j, int64_t b, int64_t t, const double *beta)
{
    const struct ctc *const c = j->c;
    const struct sequence *const q = &c->sequences[b];
    const double loss = tile_value(j->loss, c->type, b), scale = tile_value(j->grad_out, c->type, b);
    const int64_t row = (t * c->batch + b) * c->classes;
    if (c->zero_infinity && loss == INFINITY) {
        for (int64_t k = 0; k < c->classes; ++k)
            tile_set_value(j->out, c->type, row + k, 0);
        return;
    }
    for (int64_t k = 0; k < c->classes; ++k)
        tile_set_value(j->out, c->type, row + k, -INFINITY);
    for (int64_t s = 0; s < 2 * q->labels + 1; ++s) {
        const int64_t at = row + label_of(j, q, s);
        const double through = tile_value(j->log_alpha, c->type, alpha_at(c, b, t, s)) + beta[s];
        tile_set_value(j->out, c->type, at, log_add(tile_value(j->out, c->type, at), through));
    }
    for (int64_t k = 0; k < c->classes; ++k) {
        const double lp = tile_value(j->log_probs, c->type, row + k);
        const double share = exp(tile_value(j->out, c->type, row + k) + loss - lp);
        tile_set_value(j->out, c->type, row + k, (exp(lp) - share) * scale);
    }
}

static void gradient_items(void *argument, int64_t begin, int64_t end)
{
    const struct ctc_job *const j = argument;
    const struct ctc *const c = j->c;
    const int64_t states = 2 * c->most_labels + 1;
    for (int64_t b = begin; b < end; ++b) {
        const struct sequence *const q = &c->sequences[b];
        double *const rows = j->beta + 2 * b * states;
        for (int64_t t = c->steps - 1; t >= 0; --t) {
            double *const now = rows + t % 2 * states, *const next = rows + (t + 1) % 2 * states;
            if (t < q->steps) {
                step_beta(j, q, b, t, next, now);
                step_gradient(j, b, t, now);
            } else {
                for (int64_t k = 0; k < c->classes; ++k)
                    tile_set_value(j->out, c->type, (t * c->batch + b) * c->classes + k, 0);
            }
        }
    }
}

static int run_backward(struct plan *plan)
{
    const struct ctc *const c = PLAN_IMMEDIATE(plan, struct ctc);
    struct ctc_job j = {.c = c, .beta = stage_room(plan, c->beta)};
    j.grad_out = stage_read(plan, &c->staging, GRAD_OUT);
    j.log_probs = stage_read(plan, &c->staging, B_LOG_PROBS);
    j.targets = stage_read(plan, &c->staging, B_TARGETS);
    j.loss = stage_read(plan, &c->staging, B_LOSS);
    j.log_alpha = stage_read(plan, &c->staging, B_LOG_ALPHA);
    TRY(check_labels(&j, "aclnnCtcLossBackward"));
    j.out = stage_target(plan, &c->staging, GRADIENT);
    parallel_for(c->batch, cost_of(64, cost_of(c->steps, c->width / 2 + c->classes / 2)), gradient_items, &j);
    stage_write_back(plan, &c->staging, GRADIENT);
    return 0;
}

/* --- phase 1 ------------------------------------------------------------------------------------------------------------ */

struct ctc_request {
    enum operator_id id;
    const aclIntArray *input_lengths, *target_lengths;
    int64_t blank;
    bool zero_infinity;
};

static int set_sequences(struct plan *plan, const struct ctc_request *q, struct ctc *c, const struct view *targets)
{
    const char *const name = operator_name(q->id);
    REQUIRE(q->input_lengths && q->target_lengths, ACLNN_ERROR_NULLPTR, "%s: the lists of lengths are needed", name);
    REQUIRE((int64_t)q->input_lengths->count == c->batch && (int64_t)q->target_lengths->count == c->batch, ACLNN_ERROR_PARAM,
            "%s: inputLengths has %llu numbers and targetLengths %llu; the batch has %lld sequences", name,
            (unsigned long long)q->input_lengths->count, (unsigned long long)q->target_lengths->count, (long long)c->batch);
    TRY(plan_extra(plan, (size_t)c->batch * sizeof *c->sequences, (void **)&c->sequences));
    int64_t total = 0;
    for (int64_t b = 0; b < c->batch; ++b) {
        const int64_t steps = q->input_lengths->values[b], labels = q->target_lengths->values[b];
        const int64_t room = targets->ndim == 1 ? targets->count - total : targets->sizes[1];
        REQUIRE(steps >= 0 && steps <= c->steps, ACLNN_ERROR_PARAM, "%s: inputLengths[%lld] is %lld; logProbs has %lld steps", name,
                (long long)b, (long long)steps, (long long)c->steps);
        REQUIRE(labels >= 0 && labels <= room, ACLNN_ERROR_PARAM, "%s: targetLengths[%lld] is %lld; targets %s hold %lld there",
                name, (long long)b, (long long)labels, view_text(targets), (long long)room);
        c->sequences[b] = (struct sequence){steps, labels, targets->ndim == 1 ? total : b * targets->sizes[1]};
        c->most_labels = labels > c->most_labels ? labels : c->most_labels;
        total += labels;
    }
    return 0;
}

static int set_ctc(struct plan *plan, const struct ctc_request *q, const struct view *log_probs, const struct view *targets)
{
    struct ctc *const c = PLAN_IMMEDIATE(plan, struct ctc);
    const char *const name = operator_name(q->id);
    stage_begin(&c->staging);
    TRY(check_floating(plan, log_probs, "logProbs"));
    TRY(check_index_dtype(plan, targets, "targets"));
    REQUIRE(log_probs->ndim == 3 && (targets->ndim == 1 || (targets->ndim == 2 && targets->sizes[0] == log_probs->sizes[1])),
            ACLNN_ERROR_PARAM,
            "%s: logProbs is %s and targets %s; (steps, batch, classes) and (batch, labels) or one row are needed", name,
            view_text(log_probs), view_text(targets));
    c->steps = log_probs->sizes[0];
    c->batch = log_probs->sizes[1];
    c->classes = log_probs->sizes[2];
    c->blank = q->blank;
    c->zero_infinity = q->zero_infinity;
    c->target_stride = 1;
    c->most_labels = 0;
    c->type = accumulate_of((enum dtype)log_probs->dtype);
    REQUIRE(q->blank >= 0 && q->blank < c->classes, ACLNN_ERROR_PARAM, "%s: blank is %lld; there are %lld classes", name,
            (long long)q->blank, (long long)c->classes);
    return set_sequences(plan, q, c, targets);
}

static int check_alpha(struct plan *plan, struct ctc *c, const struct view *alpha, const struct view *loss, const char *alpha_name)
{
    const char *const name = plan_name(plan);
    REQUIRE(alpha->ndim == 3 && alpha->sizes[0] == c->batch && alpha->sizes[1] == c->steps && alpha->sizes[2] > 2 * c->most_labels,
            ACLNN_ERROR_PARAM, "%s: %s is %s; (%lld, %lld, at least %lld) is needed", name, alpha_name, view_text(alpha),
            (long long)c->batch, (long long)c->steps, (long long)(2 * c->most_labels + 1));
    c->width = alpha->sizes[2];
    return check_sizes(plan, loss, "the loss", &c->batch, 1);
}

static int finish(struct plan *plan, int targets, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct ctc *const c = PLAN_IMMEDIATE(plan, struct ctc);
    for (int i = 0; i < plan->operand_count; ++i) {
        if (i != targets)
            PLAN_TRY(plan, check_floating(plan, &plan->operands[i], "an operand"));
        if (plan->roles[i] == ROLE_OUTPUT)
            PLAN_TRY(plan, check_output_not_expanded(plan, &plan->operands[i], "an output"));
        stage_operand(plan, &c->staging, &plan->operands[i], i == targets ? ACCUMULATE_I64 : c->type);
    }
    c->beta = stage_reserve(&c->staging, (uint64_t)c->batch * 2 * (2 * (uint64_t)c->most_labels + 1) * sizeof(double));
    return plan_finish(plan, c->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnCtcLossGetWorkspaceSize(const aclTensor *logProbs, const aclTensor *targets, const aclIntArray *inputLengths,
                                         const aclIntArray *targetlengths, int64_t blank, bool zeroInfinity,
                                         aclTensor *negLogLikelihoodOut, aclTensor *logAlphaOut, uint64_t *workspaceSize,
                                         aclOpExecutor **executor)
{
    const struct ctc_request q = {OPERATOR_CtcLoss, inputLengths, targetlengths, blank, zeroInfinity};
    struct plan *plan;
    struct view *in, *labels, *loss, *alpha;
    TRY(plan_begin(q.id, run_forward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, logProbs, "logProbs", &in));
    PLAN_TRY(plan, plan_input(plan, targets, "targets", &labels));
    PLAN_TRY(plan, plan_output(plan, negLogLikelihoodOut, "negLogLikelihoodOut", &loss));
    PLAN_TRY(plan, plan_output(plan, logAlphaOut, "logAlphaOut", &alpha));
    PLAN_TRY(plan, set_ctc(plan, &q, in, labels));
    PLAN_TRY(plan, check_alpha(plan, PLAN_IMMEDIATE(plan, struct ctc), alpha, loss, "logAlphaOut"));
    return finish(plan, TARGETS, workspaceSize, executor);
}
ACLNN_PHASE_2(CtcLoss)

aclnnStatus aclnnCtcLossBackwardGetWorkspaceSize(const aclTensor *gradOut, const aclTensor *logProbs, const aclTensor *targets,
                                                 const aclIntArray *inputLengths, const aclIntArray *targetLengths,
                                                 const aclTensor *negLogLikelihood, const aclTensor *logAlpha, int64_t blank,
                                                 bool zeroInfinity, aclTensor *out, uint64_t *workspaceSize,
                                                 aclOpExecutor **executor)
{
    const struct ctc_request q = {OPERATOR_CtcLossBackward, inputLengths, targetLengths, blank, zeroInfinity};
    struct plan *plan;
    struct view *grad, *in, *labels, *loss, *alpha, *to;
    TRY(plan_begin(q.id, run_backward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, gradOut, "gradOut", &grad));
    PLAN_TRY(plan, plan_input(plan, logProbs, "logProbs", &in));
    PLAN_TRY(plan, plan_input(plan, targets, "targets", &labels));
    PLAN_TRY(plan, plan_input(plan, negLogLikelihood, "negLogLikelihood", &loss));
    PLAN_TRY(plan, plan_input(plan, logAlpha, "logAlpha", &alpha));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, set_ctc(plan, &q, in, labels));
    struct ctc *const c = PLAN_IMMEDIATE(plan, struct ctc);
    PLAN_TRY(plan, check_alpha(plan, c, alpha, loss, "logAlpha"));
    PLAN_TRY(plan, check_sizes(plan, grad, "gradOut", &c->batch, 1));
    PLAN_TRY(plan, check_sizes(plan, to, "out", in->sizes, 3));
    return finish(plan, B_TARGETS, workspaceSize, executor);
}
ACLNN_PHASE_2(CtcLossBackward)
