/* Softmax, LogSoftmax and their gradients along one dimension. */
#include <stdatomic.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/softmax.h"

struct softmax {
    struct staging staging;
    int64_t outer, depth, inner;
    int64_t column_blocks; /* of the inner dimension; 0: rows are contiguous */
    enum accumulate type;
    bool logarithm;
};

struct softmax_job {
    const struct softmax *s;
    const struct softmax_float_kernels *k;
    const char *in, *grad_out; /* backward: in is the forward's output */
    char *out;
};

static void softmax_items(void *argument, int64_t begin, int64_t end)
{
    const struct softmax_job *const j = argument;
    const struct softmax *const s = j->s;
    const int64_t bytes = accumulate_bytes(s->type);
    for (int64_t item = begin; item < end; ++item) {
        if (s->column_blocks == 0) {
            const int64_t at = item * s->depth * bytes;
            if (j->grad_out)
                j->k->backward(j->grad_out + at, j->in + at, j->out + at, s->depth, s->logarithm);
            else
                j->k->forward(j->in + at, j->out + at, s->depth, s->logarithm);
            continue;
        }
        const int64_t first = item % s->column_blocks * SOFTMAX_COLUMNS, left = s->inner - first;
        const int64_t at = (item / s->column_blocks * s->depth * s->inner + first) * bytes;
        const int width = left < SOFTMAX_COLUMNS ? (int)left : SOFTMAX_COLUMNS;
        if (j->grad_out)
            j->k->backward_columns(j->grad_out + at, j->in + at, j->out + at, s->depth, s->inner, width, s->logarithm);
        else
            j->k->forward_columns(j->in + at, j->out + at, s->depth, s->inner, width, s->logarithm);
    }
}

/* Operands: (gradOutput,) self or output, out. */
static int run_softmax(struct plan *plan)
{
    const struct softmax *const s = PLAN_IMMEDIATE(plan, struct softmax);
    const bool backward = plan->operand_count == 3;
    const int out = plan->operand_count - 1;
    if (plan->operands[out].count == 0)
        return 0;
    struct softmax_job j = {.s = s, .k = &kernels->softmax->real[s->type]};
    j.grad_out = backward ? stage_read(plan, &s->staging, 0) : NULL;
    j.in = stage_read(plan, &s->staging, out - 1);
    j.out = stage_target(plan, &s->staging, out);
    const int64_t blocks = s->column_blocks ? s->column_blocks : 1;
    parallel_for(s->outer * blocks, s->depth * (s->column_blocks ? SOFTMAX_COLUMNS : 1) * 4, softmax_items, &j);
    stage_write_back(plan, &s->staging, out);
    return 0;
}

static int plan_softmax(enum operator_id id, const aclTensor *grad_out, const char *in_name, const aclTensor *in, int64_t dim,
                        aclTensor *out, bool logarithm, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    const char *const name = operator_name(id);
    const bool backward = id == OPERATOR_SoftmaxBackward || id == OPERATOR_LogSoftmaxBackward;
    struct view *x, *o;
    TRY(plan_begin(id, run_softmax, workspace_size, executor, &plan));
    if (backward)
        PLAN_TRY(plan, plan_input(plan, grad_out, "gradOutput", NULL));
    PLAN_TRY(plan, plan_input(plan, in, in_name, &x));
    PLAN_TRY(plan, plan_output(plan, out, "out", &o));
    struct softmax *const s = PLAN_IMMEDIATE(plan, struct softmax);
    stage_begin(&s->staging);
    s->logarithm = logarithm;
    for (int i = 0; i < plan->operand_count; ++i) {
        const struct view *const v = &plan->operands[i];
        PLAN_REQUIRE(plan, dtype_is_floating((enum dtype)v->dtype), ACLNN_ERROR_PARAM,
                     "%s: an operand is %s; allowed are f64, f32, f16, bf16", name, view_text(v));
        PLAN_REQUIRE(plan, view_same_sizes(v, x), ACLNN_ERROR_PARAM, "%s: %s and %s %s differ in their sizes", name, view_text(v),
                     in_name, view_text(x));
        s->type = v->dtype == DTYPE_F64 ? ACCUMULATE_F64 : i == 0 ? ACCUMULATE_F32 : s->type;
    }
    const int along = view_wrap_dim(dim, x->ndim);
    PLAN_REQUIRE(plan, along >= 0, ACLNN_ERROR_PARAM, "%s: dim is %lld, but %s is %s", name, (long long)dim, in_name, view_text(x));
    s->outer = s->inner = 1;
    s->depth = x->ndim ? x->sizes[along] : 1;
    for (int d = 0; d < x->ndim; ++d)
        if (d != along)
            *(d < along ? &s->outer : &s->inner) *= x->sizes[d];
    s->column_blocks = s->inner == 1 ? 0 : (s->inner + SOFTMAX_COLUMNS - 1) / SOFTMAX_COLUMNS;
    for (int i = 0; i < plan->operand_count; ++i)
        stage_operand(plan, &s->staging, &plan->operands[i], s->type);
    return plan_finish(plan, s->staging.bytes, workspace_size, executor);
}

#define SOFTMAX(NAME, LOGARITHM)                                                                                               \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, int64_t dim, aclTensor *out, uint64_t *workspaceSize,      \
                                              aclOpExecutor **executor)                                                        \
    {                                                                                                                          \
        return plan_softmax(OPERATOR_##NAME, NULL, "self", self, dim, out, LOGARITHM, workspaceSize, executor);                \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME)                                                                                                        \
    aclnnStatus aclnn##NAME##BackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *output, int64_t dim,       \
                                                      aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)       \
    {                                                                                                                          \
        return plan_softmax(OPERATOR_##NAME##Backward, gradOutput, "output", output, dim, out, LOGARITHM, workspaceSize,       \
                            executor);                                                                                         \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME##Backward)
SOFTMAX(Softmax, false)
SOFTMAX(LogSoftmax, true)
