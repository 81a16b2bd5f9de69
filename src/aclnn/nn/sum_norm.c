/* Norms of rows that may be a sum: RmsNorm, AddRmsNorm, AddLayerNorm, DeepNorm and the like, and their gradients.
 *
 * The sum is taken in the type that kernels compute in and handed out rounded; the norm sees it unrounded. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/row_norm.h"
#include "aclnnop/all_operators.h"
#include "kernels/attention.h"
#include "kernels/kernels.h"

enum operand { X1, X2, ADDED, GAMMA, BETA, MEAN, RSTD, GRAD_OUT, GRAD_SUM, OUT, SECOND_OUT, SUM, GRAD_GAMMA, GRAD_BETA, OPERANDS };

struct sum_norm {
    struct staging staging;
    int64_t rows, width, sum, weight, partials; /* workspace offsets; -1: not needed */
    double eps, alpha;
    enum accumulate type;
    bool uncentered, weight_plus_one;
};

struct request {
    enum operator_id id;
    const aclTensor *tensors[OPERANDS];
    double eps, alpha; /* alpha: factor of x1, when there is an x2 */
    bool backward, uncentered, weight_plus_one;
};

static const char *const names[OPERANDS] = {"x1",   "x2", "biasOptional", "gamma", "beta",   "mean", "rstd", "dy",
                                            "dsum", "y",  "y2",           "xOut",  "dgamma", "dbeta"};

/* --- phase 2 ---------------------------------------------------------------------------------------------------------- */

struct sum_job {
    const struct sum_norm *n;
    char *sum;
    const char *second, *added;
    int64_t added_rows; /* the third addend repeats after these */
};

static void sum_rows(void *argument, int64_t begin, int64_t end)
{
    const struct sum_job *const j = argument;
    const struct attention_float_kernels *const k = &kernels->attention->real[j->n->type];
    const int64_t width = j->n->width, bytes = width * accumulate_bytes(j->n->type);
    for (int64_t r = begin; r < end; ++r) {
        if (j->n->alpha != 1)
            k->scale(j->sum + r * bytes, width, j->n->alpha);
        if (j->second)
            k->add(j->sum + r * bytes, j->second + r * bytes, width, 1);
        if (j->added)
            k->add(j->sum + r * bytes, j->added + r % j->added_rows * bytes, width, 1);
    }
}

/* The rows to be normalised: x1 itself, or the sum. */
static const char *find_rows(struct plan *plan, const struct sum_norm *n)
{
    const struct staging *const s = &n->staging;
    if (n->sum < 0)
        return stage_read(plan, s, X1);
    struct sum_job j = {.n = n, .sum = stage_room(plan, n->sum)};
    stage_load(&plan->operands[X1], n->type, j.sum);
    j.second = stage_read(plan, s, X2);
    j.added = stage_read(plan, s, ADDED);
    j.added_rows = plan->operands[ADDED].count == n->width ? 1 : n->rows;
    parallel_for(n->rows, n->width, sum_rows, &j);
    return j.sum;
}

static const void *find_weight(struct plan *plan, const struct sum_norm *n)
{
    const void *const weight = stage_read(plan, &n->staging, GAMMA);
    if (!n->weight_plus_one)
        return weight;
    void *const room = stage_room(plan, n->weight);
    stage_load(&plan->operands[GAMMA], n->type, room);
    for (int64_t i = 0; i < n->width; ++i)
        if (n->type == ACCUMULATE_F64)
            ((double *)room)[i] += 1;
        else
            ((float *)room)[i] += 1;
    return room;
}

static int run_forward(struct plan *plan)
{
    const struct sum_norm *const n = PLAN_IMMEDIATE(plan, struct sum_norm);
    const struct staging *const s = &n->staging;
    if (plan->operands[OUT].count == 0)
        return 0;
    struct row_norm row = {.type = n->type, .rows = n->rows, .width = n->width, .eps = n->eps, .uncentered = n->uncentered};
    row.input = find_rows(plan, n);
    row.weight = find_weight(plan, n);
    row.bias = stage_read(plan, s, BETA);
    row.out = stage_target(plan, s, OUT);
    row.mean = stage_target(plan, s, MEAN);
    row.rstd = stage_target(plan, s, RSTD);
    row_norm_forward(&row);
    for (int i = MEAN; i <= OUT; ++i)
        stage_write_back(plan, s, i);
    if (plan->operands[SECOND_OUT].data)
        stage_store(&plan->operands[SECOND_OUT], n->type, row.out);
    if (plan->operands[SUM].data)
        stage_store(&plan->operands[SUM], n->type, row.input);
    return 0;
}

static int run_backward(struct plan *plan)
{
    const struct sum_norm *const n = PLAN_IMMEDIATE(plan, struct sum_norm);
    const struct staging *const s = &n->staging;
    struct row_norm row = {.type = n->type, .rows = n->rows, .width = n->width, .uncentered = n->uncentered};
    row.input = find_rows(plan, n);
    row.weight = find_weight(plan, n);
    row.grad_out = stage_read(plan, s, GRAD_OUT);
    row.mean = (void *)(uintptr_t)stage_read(plan, s, MEAN);
    row.rstd = (void *)(uintptr_t)stage_read(plan, s, RSTD);
    row.out = stage_target(plan, s, OUT);
    row.partials = stage_room(plan, n->partials);
    row.grad_weight = stage_target(plan, s, GRAD_GAMMA);
    row.grad_bias = stage_target(plan, s, GRAD_BETA);
    row_norm_backward(&row);
    struct sum_norm once = *n;
    once.alpha = 1;
    struct sum_job j = {.n = &once, .sum = row.out, .second = stage_read(plan, s, GRAD_SUM)};
    if (j.second)
        parallel_for(n->rows, n->width, sum_rows, &j);
    stage_write_back(plan, s, OUT);
    stage_write_back(plan, s, GRAD_GAMMA);
    stage_write_back(plan, s, GRAD_BETA);
    if (plan->operands[SECOND_OUT].count > 0) { /* of the addend that has a factor */
        void *const scaled = stage_room(plan, n->sum);
        memcpy(scaled, row.out, (size_t)(n->rows * n->width * accumulate_bytes(n->type)));
        kernels->attention->real[n->type].scale(scaled, n->rows * n->width, n->alpha);
        stage_store(&plan->operands[SECOND_OUT], n->type, scaled);
    }
    return 0;
}

/* --- phase 1 ---------------------------------------------------------------------------------------------------------- */

static bool is_output(const struct request *q, int i) { return i >= OUT || (!q->backward && (i == MEAN || i == RSTD)); }

/* Elements that an operand must have; -1: any that repeats over the rows. */
static int64_t count_of(const struct sum_norm *n, int i)
{
    switch (i) {
    case GAMMA:
    case BETA:
    case GRAD_GAMMA:
    case GRAD_BETA: return n->width;
    case MEAN:
    case RSTD: return n->rows;
    case ADDED: return -1;
    default: return n->rows * n->width;
    }
}

static bool is_needed(const struct request *q, int i)
{
    return i == X1 || i == GAMMA || i == OUT || (i == X2 && (q->tensors[X2] || q->id == OPERATOR_DeepNormGrad)) ||
           (q->backward && (i == GRAD_OUT || i == RSTD || i == GRAD_GAMMA));
}

/* Optional operands may be empty instead of NULL; one that is needed has its elements. */
static int take(struct plan *plan, const struct request *q, struct sum_norm *n, int i)
{
    struct view *const v = &plan->operands[i];
    const int64_t wanted = count_of(n, i);
    if (v->dtype == DTYPE_NONE || (v->count == 0 && wanted != 0 && !is_needed(q, i))) {
        *v = (struct view){.dtype = DTYPE_NONE};
        return 0;
    }
    const bool fits = wanted < 0 ? v->count == n->width || v->count == n->rows * n->width : v->count == wanted;
    REQUIRE(fits && dtype_is_floating((enum dtype)v->dtype), ACLNN_ERROR_PARAM, "%s: %s is %s; it must hold %lld floating values",
            plan_name(plan), names[i], view_text(v), (long long)(wanted < 0 ? n->width : wanted));
    if (i != SECOND_OUT && i != SUM && !(i == X1 && n->sum >= 0))
        stage_operand(plan, &n->staging, v, n->type);
    return 0;
}

static int set_shape(struct plan *plan, const struct request *q, struct sum_norm *n)
{
    const struct view *const x = &plan->operands[X1], *const gamma = &plan->operands[GAMMA];
    TRY(check_floating(plan, x, names[X1]));
    REQUIRE(gamma->ndim >= 1 && gamma->ndim <= x->ndim, ACLNN_ERROR_PARAM, "%s: gamma is %s, x1 %s; gamma has x1's last sizes",
            operator_name(q->id), view_text(gamma), view_text(x));
    for (int d = 0; d < gamma->ndim; ++d)
        REQUIRE(gamma->sizes[d] == x->sizes[x->ndim - gamma->ndim + d], ACLNN_ERROR_PARAM,
                "%s: gamma is %s, x1 %s; gamma has x1's last sizes", operator_name(q->id), view_text(gamma), view_text(x));
    n->width = gamma->count;
    n->rows = gamma->count > 0 ? x->count / gamma->count : 0;
    n->type = accumulate_of((enum dtype)x->dtype);
    return 0;
}

static int plan_norm(const struct request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, q->backward ? run_backward : run_forward, workspace_size, executor, &plan));
    for (int i = 0; i < OPERANDS; ++i) {
        if (is_needed(q, i))
            PLAN_TRY(plan, check_not_null(plan, q->tensors[i], names[i]));
        PLAN_TRY(plan, plan_optional(plan, q->tensors[i], is_output(q, i) ? ROLE_OUTPUT : ROLE_INPUT, names[i], NULL));
    }
    struct sum_norm *const n = PLAN_IMMEDIATE(plan, struct sum_norm);
    stage_begin(&n->staging);
    n->eps = q->eps;
    n->alpha = q->tensors[X2] && q->alpha != 0 ? q->alpha : 1;
    n->uncentered = q->uncentered;
    n->weight_plus_one = q->weight_plus_one;
    PLAN_TRY(plan, set_shape(plan, q, n));
    const uint64_t all = (uint64_t)(n->rows * n->width * accumulate_bytes(n->type));
    n->sum = q->tensors[X2] || q->tensors[ADDED] ? stage_reserve(&n->staging, all) : -1;
    n->weight = n->weight_plus_one ? stage_reserve(&n->staging, (uint64_t)(n->width * accumulate_bytes(n->type))) : -1;
    n->partials = q->backward ? stage_reserve(&n->staging, row_norm_partials_bytes(n->rows, n->width)) : -1;
    for (int i = 0; i < OPERANDS; ++i)
        PLAN_TRY(plan, take(plan, q, n, i));
    return plan_finish(plan, n->staging.bytes, workspace_size, executor);
}

/* PARAMETERS of the operator; ... says what they are in struct request. */
#define LIST(...) __VA_ARGS__
#define NORM(NAME, PARAMETERS, FLAGS, ...)                                                                                     \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(PARAMETERS, uint64_t *workspaceSize, aclOpExecutor **executor)                   \
    {                                                                                                                          \
        const struct request q = {.id = OPERATOR_##NAME, .tensors = {__VA_ARGS__}, FLAGS};                                     \
        return plan_norm(&q, workspaceSize, executor);                                                                         \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME)

NORM(RmsNorm, LIST(const aclTensor *x, const aclTensor *gamma, double epsilon, const aclTensor *yOut, const aclTensor *rstdOut),
     LIST(.eps = epsilon, .uncentered = true), [X1] = x, [GAMMA] = gamma, [OUT] = yOut, [RSTD] = rstdOut)
NORM(GemmaRmsNorm,
     LIST(const aclTensor *x, const aclTensor *gamma, double epsilon, const aclTensor *yOut, const aclTensor *rstdOut),
     LIST(.eps = epsilon, .uncentered = true, .weight_plus_one = true), [X1] = x, [GAMMA] = gamma, [OUT] = yOut, [RSTD] = rstdOut)
NORM(AddRmsNorm,
     LIST(const aclTensor *x1, const aclTensor *x2, const aclTensor *gamma, double epsilon, aclTensor *yOut, aclTensor *rstdOut,
          aclTensor *xOut),
     LIST(.eps = epsilon, .uncentered = true), [X1] = x1, [X2] = x2, [GAMMA] = gamma, [OUT] = yOut, [RSTD] = rstdOut, [SUM] = xOut)
NORM(InplaceAddRmsNorm, LIST(aclTensor *x1Ref, aclTensor *x2Ref, const aclTensor *gamma, double epsilon, const aclTensor *rstdOut),
     LIST(.eps = epsilon, .uncentered = true), [X1] = x1Ref, [X2] = x2Ref, [GAMMA] = gamma, [OUT] = x1Ref, [RSTD] = rstdOut,
     [SUM] = x2Ref)
NORM(AddRmsNormCast,
     LIST(const aclTensor *x1, const aclTensor *x2, const aclTensor *gamma, double epsilon, const aclTensor *y1Out,
          const aclTensor *y2Out, const aclTensor *rstdOut, const aclTensor *xOut),
     LIST(.eps = epsilon, .uncentered = true), [X1] = x1, [X2] = x2, [GAMMA] = gamma, [OUT] = y1Out, [SECOND_OUT] = y2Out,
     [RSTD] = rstdOut, [SUM] = xOut)
NORM(AddLayerNorm,
     LIST(const aclTensor *x1, const aclTensor *x2, const aclTensor *gamma, const aclTensor *beta, const aclTensor *biasOptional,
          double epsilon, bool additionalOutput, const aclTensor *yOut, const aclTensor *meanOut, const aclTensor *rstdOut,
          const aclTensor *xOut),
     LIST(.eps = epsilon), [X1] = x1, [X2] = x2, [GAMMA] = gamma, [BETA] = beta, [ADDED] = biasOptional, [OUT] = yOut,
     [MEAN] = meanOut, [RSTD] = rstdOut, [SUM] = additionalOutput ? xOut : NULL)
NORM(DeepNorm,
     LIST(const aclTensor *x, const aclTensor *gx, const aclTensor *beta, const aclTensor *gamma, double alpha, double epsilon,
          const aclTensor *meanOut, const aclTensor *rstdOut, const aclTensor *yOut),
     LIST(.eps = epsilon, .alpha = alpha), [X1] = x, [X2] = gx, [GAMMA] = gamma, [BETA] = beta, [OUT] = yOut, [MEAN] = meanOut,
     [RSTD] = rstdOut)
NORM(RmsNormGrad,
     LIST(const aclTensor *dy, const aclTensor *x, const aclTensor *rstd, const aclTensor *gamma, const aclTensor *dxOut,
          const aclTensor *dgammaOut),
     LIST(.backward = true, .uncentered = true), [X1] = x, [GAMMA] = gamma, [RSTD] = rstd, [GRAD_OUT] = dy, [OUT] = dxOut,
     [GRAD_GAMMA] = dgammaOut)
NORM(AddLayerNormGrad,
     LIST(const aclTensor *dy, const aclTensor *x1, const aclTensor *x2, const aclTensor *rstd, const aclTensor *mean,
          const aclTensor *gamma, const aclTensor *dsumOptional, const aclTensor *dxOut, const aclTensor *dgammaOut,
          const aclTensor *dbetaOut),
     LIST(.backward = true), [X1] = x1, [X2] = x2, [GAMMA] = gamma, [RSTD] = rstd, [MEAN] = mean, [GRAD_OUT] = dy,
     [GRAD_SUM] = dsumOptional, [OUT] = dxOut, [GRAD_GAMMA] = dgammaOut, [GRAD_BETA] = dbetaOut)
NORM(DeepNormGrad,
     LIST(const aclTensor *dy, const aclTensor *x, const aclTensor *gx, const aclTensor *gamma, const aclTensor *mean,
          const aclTensor *rstd, double alpha, const aclTensor *dxOut, const aclTensor *dgxOut, const aclTensor *dbetaOut,
          const aclTensor *dgammaOut),
     LIST(.backward = true, .alpha = alpha), [X1] = x, [X2] = gx, [GAMMA] = gamma, [RSTD] = rstd, [MEAN] = mean, [GRAD_OUT] = dy,
     [OUT] = dgxOut, [SECOND_OUT] = dxOut, [GRAD_GAMMA] = dgammaOut, [GRAD_BETA] = dbetaOut)
