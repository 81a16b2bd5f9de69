/* PreluBackward: the gradient of the input, and that of the weights as a sum over everything that a weight applies to.
 *
 * One channel (dimension 1) is one item of work, so sums never depend on the number of threads; the gradient of a weight that
 * all channels share adds the channels' sums in their order. */
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"

enum { GRAD_OUT, SELF, WEIGHT, GRAD_INPUT, GRAD_WEIGHT };

struct prelu {
    struct staging staging;
    int64_t images, channels, plane;
    int64_t sums; /* a double for each channel, in the workspace */
    enum accumulate type;
    bool shared; /* one weight for all channels */
};

struct prelu_job {
    const struct prelu *p;
    const void *grad, *self, *weight;
    void *grad_input;
    double *sums;
};

#define CHANNEL_FUNCTION(A)                                                                  \
    static double channel_##A(const struct prelu_job *j, int64_t c)                          \
    {                                                                                        \
        const struct prelu *const p = j->p;                                                  \
        const A weight = ((const A *)j->weight)[p->shared ? 0 : c];                          \
        double sum = 0;                                                                      \
        for (int64_t n = 0; n < p->images; ++n) {                                            \
            const int64_t at = (n * p->channels + c) * p->plane;                             \
            const A *const grad = (const A *)j->grad + at, *const x = (const A *)j->self + at; \
            A *const result = (A *)j->grad_input + at;                                       \
            for (int64_t i = 0; i < p->plane; ++i) {                                         \
                const A g = grad[i];                                                         \
                sum += x[i] > 0 ? 0 : (double)x[i] * (double)g;                              \
                result[i] = x[i] > 0 ? g : g * weight;                                       \
            }                                                                                \
        }                                                                                    \
        return sum;                                                                          \
    }
CHANNEL_FUNCTION(double)
CHANNEL_FUNCTION(float)

static void channels(void *argument, int64_t begin, int64_t end)
{
    const struct prelu_job *const j = argument;
    for (int64_t c = begin; c < end; ++c)
        j->sums[c] = j->p->type == ACCUMULATE_F64 ? channel_double(j, c) : channel_float(j, c);
}

static void set(void *values, enum accumulate type, int64_t i, double value)
{
    if (type == ACCUMULATE_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

static int prelu_backward_run(struct plan *plan)
{
    const struct prelu *const p = PLAN_IMMEDIATE(plan, struct prelu);
    const struct staging *const s = &p->staging;
    struct prelu_job j = {.p = p, .sums = stage_room(plan, p->sums)};
    j.grad = stage_read(plan, s, GRAD_OUT);
    j.self = stage_read(plan, s, SELF);
    j.weight = stage_read(plan, s, WEIGHT);
    j.grad_input = stage_target(plan, s, GRAD_INPUT);
    void *const grad_weight = stage_target(plan, s, GRAD_WEIGHT);
    parallel_for(p->channels, 2 * p->images * p->plane, channels, &j);
    double all = 0;
    for (int64_t c = 0; c < p->channels; ++c) {
        all += j.sums[c];
        if (!p->shared)
            set(grad_weight, p->type, c, j.sums[c]);
    }
    if (p->shared)
        set(grad_weight, p->type, 0, all);
    stage_write_back(plan, s, GRAD_INPUT);
    stage_write_back(plan, s, GRAD_WEIGHT);
    return 0;
}

static int check(struct plan *plan, struct prelu *p)
{
    const struct view *const o = plan->operands, *const self = &o[SELF];
    static const char *const names[] = {"gradOutput", "self", "weight", "gradInput", "gradWeight"};
    for (int i = GRAD_OUT; i <= GRAD_WEIGHT; ++i)
        REQUIRE(dtype_is_floating((enum dtype)o[i].dtype), ACLNN_ERROR_PARAM,
                "aclnnPreluBackward: %s is %s; allowed are f64, f32, f16, bf16", names[i], view_text(&o[i]));
    REQUIRE(view_same_sizes(self, &o[GRAD_OUT]) && view_same_sizes(self, &o[GRAD_INPUT]), ACLNN_ERROR_PARAM,
            "aclnnPreluBackward: gradOutput %s and gradInput %s must have the sizes of self %s", view_text(&o[GRAD_OUT]),
            view_text(&o[GRAD_INPUT]), view_text(self));
    p->channels = self->ndim > 1 ? self->sizes[1] : 1;
    p->images = self->ndim > 1 ? self->sizes[0] : 1;
    p->plane = 1;
    for (int d = self->ndim > 1 ? 2 : 0; d < self->ndim; ++d)
        p->plane *= self->sizes[d];
    const int64_t weights = o[WEIGHT].count;
    REQUIRE(weights == 1 || weights == p->channels, ACLNN_ERROR_PARAM,
            "aclnnPreluBackward: weight is %s for self %s; one weight, or one for each of the %lld channels, is needed",
            view_text(&o[WEIGHT]), view_text(self), (long long)p->channels);
    REQUIRE(o[GRAD_WEIGHT].count == weights, ACLNN_ERROR_PARAM, "aclnnPreluBackward: gradWeight is %s and weight is %s; they agree",
            view_text(&o[GRAD_WEIGHT]), view_text(&o[WEIGHT]));
    p->shared = weights == 1;
    return 0;
}

aclnnStatus aclnnPreluBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *weight,
                                               aclTensor *gradInput, aclTensor *gradWeight, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_PreluBackward, prelu_backward_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, gradOutput, "gradOutput", NULL));
    PLAN_TRY(plan, plan_input(plan, self, "self", NULL));
    PLAN_TRY(plan, plan_input(plan, weight, "weight", NULL));
    PLAN_TRY(plan, plan_output(plan, gradInput, "gradInput", NULL));
    PLAN_TRY(plan, plan_output(plan, gradWeight, "gradWeight", NULL));
    struct prelu *const p = PLAN_IMMEDIATE(plan, struct prelu);
    stage_begin(&p->staging);
    PLAN_TRY(plan, check(plan, p));
    p->type = accumulate_of((enum dtype)plan->operands[SELF].dtype);
    for (int i = GRAD_OUT; i <= GRAD_WEIGHT; ++i)
        stage_operand(plan, &p->staging, &plan->operands[i], p->type);
    p->sums = stage_reserve(&p->staging, (uint64_t)p->channels * sizeof(double));
    return plan_finish(plan, p->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(PreluBackward)
