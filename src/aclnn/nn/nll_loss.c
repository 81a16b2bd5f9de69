/* NLLLoss, NLLLoss2d and their gradients: [N, C], [C] or [N, C, ...] log probabilities with class numbers as targets.
 *
 * Work items are fixed (an image, or a block of rows), their sums are added in order. A target that is no class is found when
 * the operator runs, and reported then. */
#include <stdatomic.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/loss.h"

enum { ROWS_AN_ITEM = 4096 };
enum { SELF, TARGET, WEIGHT, OUT, TOTAL_WEIGHT, GRAD_OUT }; /* GRAD_OUT only in gradients */

struct nll {
    struct staging staging;
    int64_t images, classes, positions; /* positions of an image; [N, C] is one image of N positions */
    bool rows;                          /* [N, C]: classes are innermost */
    int64_t items, item_positions, partials, reduction, ignore;
    enum accumulate type;
};

struct nll_job {
    const struct nll *l;
    const char *self, *grad_out;
    const int64_t *target;
    const void *weight;
    char *out;
    double *partials;    /* [items][2]: loss, weight */
    double scale;        /* of the gradient */
    _Atomic int64_t bad; /* 1 + position of a target out of range */
};

static struct likelihood item_of(const struct nll_job *j, int64_t item, int64_t *at, int64_t *position)
{
    const struct nll *const l = j->l;
    struct likelihood k = {.weight = j->weight, .classes = l->classes, .ignore = l->ignore};
    if (l->rows) {
        *position = item * l->item_positions;
        k.positions = l->positions - *position < l->item_positions ? l->positions - *position : l->item_positions;
        k.class_stride = 1;
        k.position_stride = l->classes;
        *at = *position * l->classes;
    } else {
        *position = item * l->positions;
        k.positions = l->positions;
        k.class_stride = l->positions;
        k.position_stride = 1;
        *at = item * l->classes * l->positions;
    }
    k.target = j->target + *position;
    k.x = j->self ? j->self + *at * accumulate_bytes(l->type) : NULL;
    return k;
}

static void forward_items(void *argument, int64_t begin, int64_t end)
{
    struct nll_job *const j = argument;
    const struct nll *const l = j->l;
    for (int64_t item = begin; item < end; ++item) {
        int64_t at, position;
        const struct likelihood k = item_of(j, item, &at, &position);
        char *const losses = l->reduction == 0 ? j->out + position * accumulate_bytes(l->type) : NULL;
        double *const partial = j->partials + 2 * item;
        partial[0] = partial[1] = 0;
        const int64_t bad = kernels->loss->real[l->type].likelihood(&k, losses, &partial[0], &partial[1]);
        if (bad >= 0)
            j->bad = 1 + position + bad;
    }
}

static void backward_items(void *argument, int64_t begin, int64_t end)
{
    struct nll_job *const j = argument;
    const struct nll *const l = j->l;
    const int64_t bytes = accumulate_bytes(l->type), step = l->reduction == 0;
    for (int64_t item = begin; item < end; ++item) {
        int64_t at, position;
        const struct likelihood k = item_of(j, item, &at, &position);
        char *const dx = j->out + at * bytes;
        memset(dx, 0, (size_t)(k.positions * l->classes * bytes));
        const int64_t bad =
            kernels->loss->real[l->type].likelihood_backward(&k, j->grad_out + (step ? position * bytes : 0), step, j->scale, dx);
        if (bad >= 0)
            j->bad = 1 + position + bad;
    }
}

static int check_targets(const struct plan *plan, const struct nll_job *j)
{
    if (j->bad == 0)
        return 0;
    return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan),
                     "index out of bounds: target %lld at position %lld is out of bounds for %lld classes (ignore_index %lld)",
                     (long long)j->target[j->bad - 1], (long long)(j->bad - 1), (long long)j->l->classes, (long long)j->l->ignore);
}

static double load_scalar(const void *p, enum accumulate type)
{
    return type == ACCUMULATE_F64 ? *(const double *)p : (double)*(const float *)p;
}

static void store_scalar(void *p, enum accumulate type, double value)
{
    if (!p)
        return;
    if (type == ACCUMULATE_F64)
        *(double *)p = value;
    else
        *(float *)p = (float)value;
}

static int run_forward(struct plan *plan)
{
    const struct nll *const l = PLAN_IMMEDIATE(plan, struct nll);
    const struct staging *const s = &l->staging;
    struct nll_job j = {.l = l,
                        .self = stage_read(plan, s, SELF),
                        .target = stage_read(plan, s, TARGET),
                        .weight = stage_read(plan, s, WEIGHT),
                        .out = stage_target(plan, s, OUT),
                        .partials = stage_room(plan, l->partials)};
    parallel_for(l->items, l->rows ? l->item_positions * 4 : l->positions, forward_items, &j);
    TRY(check_targets(plan, &j));
    double loss = 0, weight = 0;
    for (int64_t i = 0; i < l->items; ++i) {
        loss += j.partials[2 * i];
        weight += j.partials[2 * i + 1];
    }
    if (l->reduction != 0)
        store_scalar(j.out, l->type, l->reduction == 1 ? loss / weight : loss);
    store_scalar(stage_target(plan, s, TOTAL_WEIGHT), l->type, l->reduction == 0 ? 0 : weight);
    stage_write_back(plan, s, OUT);
    stage_write_back(plan, s, TOTAL_WEIGHT);
    return 0;
}

static int run_backward(struct plan *plan)
{
    const struct nll *const l = PLAN_IMMEDIATE(plan, struct nll);
    const struct staging *const s = &l->staging;
    struct nll_job j = {.l = l,
                        .target = stage_read(plan, s, TARGET),
                        .weight = stage_read(plan, s, WEIGHT),
                        .grad_out = stage_read(plan, s, GRAD_OUT),
                        .out = stage_target(plan, s, OUT),
                        .scale = 1};
    if (l->reduction == 1)
        j.scale = 1 / load_scalar(stage_read(plan, s, TOTAL_WEIGHT), l->type);
    parallel_for(l->items, l->item_positions * l->classes, backward_items, &j);
    TRY(check_targets(plan, &j));
    stage_write_back(plan, s, OUT);
    return 0;
}

/* --- planning ------------------------------------------------------------------------------------------------------- */

struct nll_request {
    enum operator_id id;
    const aclTensor *self, *target, *weight, *grad_out, *total_weight_in;
    aclTensor *out, *total_weight;
    int64_t reduction, ignore;
    bool backward;
};

static int set_shape(const struct view *self, const struct view *target, const char *name, struct nll *l)
{
    REQUIRE(dtype_is_floating((enum dtype)self->dtype), ACLNN_ERROR_PARAM, "%s: self is %s; allowed are f64, f32, f16, bf16", name,
            view_text(self));
    REQUIRE(dtype_kind((enum dtype)target->dtype) == KIND_INTEGER, ACLNN_ERROR_PARAM, "%s: target is %s; allowed are integer types",
            name, view_text(target));
    REQUIRE(self->ndim >= 1, ACLNN_ERROR_PARAM, "%s: self %s must have at least 1 dimension", name, view_text(self));
    const int along = self->ndim == 1 ? 0 : 1;
    REQUIRE(target->ndim == self->ndim - 1 || (self->ndim == 1 && target->count == 1), ACLNN_ERROR_PARAM,
            "%s: self %s and target %s don't fit", name, view_text(self), view_text(target));
    for (int d = 0; d < self->ndim; ++d)
        REQUIRE(d == along || self->sizes[d] == target->sizes[d < along ? d : d - 1], ACLNN_ERROR_PARAM,
                "%s: self %s and target %s don't fit", name, view_text(self), view_text(target));
    l->rows = self->ndim <= 2;
    l->classes = self->sizes[along];
    l->images = l->rows ? 1 : self->sizes[0];
    l->positions = l->rows ? target->count : l->images > 0 ? target->count / l->images : 0;
    l->item_positions = l->rows ? ROWS_AN_ITEM : l->positions;
    l->items = l->rows ? (l->positions + ROWS_AN_ITEM - 1) / ROWS_AN_ITEM : l->images;
    return 0;
}

static int check_rest(struct plan *plan, const struct nll_request *q, const struct nll *l)
{
    const struct view *const o = plan->operands;
    const char *const name = operator_name(q->id);
    REQUIRE(q->reduction >= 0 && q->reduction <= 2, ACLNN_ERROR_PARAM,
            "%s: reduction is %lld; allowed are 0 (none), 1 (mean) and 2 (sum)", name, (long long)q->reduction);
    REQUIRE(o[WEIGHT].dtype == DTYPE_NONE || (o[WEIGHT].count == l->classes && dtype_is_floating((enum dtype)o[WEIGHT].dtype)),
            ACLNN_ERROR_PARAM, "%s: weight is %s; it must hold %lld floating values, one a class", name, view_text(&o[WEIGHT]),
            (long long)l->classes);
    const int64_t losses = q->reduction == 0 ? o[TARGET].count : 1;
    const struct view *const loss = q->backward ? &o[GRAD_OUT] : &o[OUT];
    REQUIRE(loss->count == losses, ACLNN_ERROR_PARAM, "%s: %s is %s; it must have %lld elements", name,
            q->backward ? "gradOutput" : "out", view_text(loss), (long long)losses);
    REQUIRE(!q->backward || view_same_sizes(&o[OUT], &o[SELF]), ACLNN_ERROR_PARAM, "%s: out %s and self %s differ", name,
            view_text(&o[OUT]), view_text(&o[SELF]));
    REQUIRE(o[TOTAL_WEIGHT].dtype == DTYPE_NONE ? !(q->backward && q->reduction == 1) : o[TOTAL_WEIGHT].count == 1,
            ACLNN_ERROR_PARAM, "%s: the total weight must be one element", name);
    for (int i = OUT; i < plan->operand_count; ++i)
        REQUIRE(o[i].dtype == DTYPE_NONE || dtype_is_floating((enum dtype)o[i].dtype), ACLNN_ERROR_PARAM,
                "%s: an operand is %s; allowed are f64, f32, f16, bf16", name, view_text(&o[i]));
    return 0;
}

static int plan_nll(const struct nll_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, q->backward ? run_backward : run_forward, workspace_size, executor, &plan));
    struct view *self, *target;
    PLAN_TRY(plan, plan_input(plan, q->self, "self", &self));
    PLAN_TRY(plan, plan_input(plan, q->target, "target", &target));
    PLAN_TRY(plan, plan_optional(plan, q->weight, ROLE_INPUT, "weight", NULL));
    PLAN_TRY(plan, plan_output(plan, q->out, "out", NULL));
    if (q->backward) {
        PLAN_TRY(plan, plan_optional(plan, q->total_weight_in, ROLE_INPUT, "totalWeight", NULL));
        PLAN_TRY(plan, plan_input(plan, q->grad_out, "gradOutput", NULL));
    } else
        PLAN_TRY(plan, plan_output(plan, q->total_weight, "totalWeightOut", NULL));
    struct nll *const l = PLAN_IMMEDIATE(plan, struct nll);
    stage_begin(&l->staging);
    l->reduction = q->reduction;
    l->ignore = q->ignore;
    l->type = accumulate_of((enum dtype)self->dtype);
    PLAN_TRY(plan, set_shape(self, target, operator_name(q->id), l));
    PLAN_TRY(plan, check_rest(plan, q, l));
    for (int i = 0; i < plan->operand_count; ++i)
        if (i != TARGET && !(i == SELF && q->backward))
            stage_operand(plan, &l->staging, &plan->operands[i], l->type);
    stage_operand(plan, &l->staging, target, ACCUMULATE_I64);
    l->partials = stage_reserve(&l->staging, (uint64_t)(2 * l->items + 2) * sizeof(double));
    return plan_finish(plan, l->staging.bytes, workspace_size, executor);
}

#define NLL(NAME, TOTAL_QUALIFIER)                                                                                               \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, const aclTensor *target, const aclTensor *weight,           \
                                              int64_t reduction, int64_t ignoreIndex, aclTensor *out, aclTensor *totalWeightOut, \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                                 \
    {                                                                                                                            \
        const struct nll_request q = {.id = OPERATOR_##NAME, .self = self, .target = target, .weight = weight, .out = out,       \
                                      .total_weight = totalWeightOut, .reduction = reduction, .ignore = ignoreIndex};            \
        return plan_nll(&q, workspaceSize, executor);                                                                            \
    }                                                                                                                            \
    ACLNN_PHASE_2(NAME)                                                                                                          \
    aclnnStatus aclnn##NAME##BackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, const aclTensor *target, \
                                                      const aclTensor *weight, int64_t reduction, int64_t ignoreIndex,           \
                                                      TOTAL_QUALIFIER aclTensor *totalWeight, aclTensor *out,                    \
                                                      uint64_t *workspaceSize, aclOpExecutor **executor)                         \
    {                                                                                                                            \
        const struct nll_request q = {.id = OPERATOR_##NAME##Backward, .self = self, .target = target, .weight = weight,         \
                                      .grad_out = gradOutput, .total_weight_in = totalWeight, .out = out,                        \
                                      .reduction = reduction, .ignore = ignoreIndex, .backward = true};                          \
        return plan_nll(&q, workspaceSize, executor);                                                                            \
    }                                                                                                                            \
    ACLNN_PHASE_2(NAME##Backward)
NLL(NLLLoss, const)
NLL(NLLLoss2d, )
