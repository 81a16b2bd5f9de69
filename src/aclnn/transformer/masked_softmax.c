/* ScaledMaskedSoftmax along the last dimension, and its gradient. A masked score counts as -10000, as on the chip, so a row in
 * which all are masked is uniform. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/attention.h"
#include "kernels/kernels.h"
#include "kernels/softmax.h"

enum { IN, GRAD_OUT, MASK, OUT }; /* forward: IN is x; backward: y */

struct masked_softmax {
    struct staging staging;
    double scale;
    int64_t width;
    enum accumulate type;
    bool triangle, backward;
    int64_t mask_strides[TENSOR_MAX_DIMS]; /* 0 where it repeats */
};

struct softmax_job {
    const struct masked_softmax *m;
    const struct view *shape;
    const char *in, *grad_out, *mask;
    char *out;
};

/* Whether element j of a row is masked; the row's place in the mask was found before. */
static bool is_masked(const struct softmax_job *j, const char *mask, int64_t row, int64_t i)
{
    if (j->m->triangle)
        return i > row % j->shape->sizes[j->shape->ndim - 2];
    return mask && mask[i * j->m->mask_strides[j->shape->ndim - 1]];
}

static const char *mask_of_row(const struct softmax_job *j, int64_t row)
{
    const int last = j->shape->ndim - 1;
    return j->mask && !j->m->triangle ? j->mask + walk_offset(row, last, j->shape->sizes, j->m->mask_strides) : NULL;
}

static void forward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct softmax_job *const j = argument;
    const struct masked_softmax *const m = j->m;
    const int64_t bytes = m->width * accumulate_bytes(m->type);
    for (int64_t row = begin; row < end; ++row) {
        void *const row_out = j->out + row * bytes;
        const char *const mask = mask_of_row(j, row);
        memmove(row_out, j->in + row * bytes, (size_t)bytes);
        kernels->attention->real[m->type].scale(row_out, m->width, m->scale);
        for (int64_t i = 0; i < m->width && (mask || m->triangle); ++i)
            if (is_masked(j, mask, row, i))
                tile_set_value(row_out, m->type, i, -10000);
        kernels->softmax->real[m->type].forward(row_out, row_out, m->width, false);
    }
}

static void backward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct softmax_job *const j = argument;
    const struct masked_softmax *const m = j->m;
    const int64_t bytes = m->width * accumulate_bytes(m->type);
    for (int64_t row = begin; row < end; ++row) {
        void *const row_out = j->out + row * bytes;
        const char *const mask = mask_of_row(j, row);
        kernels->softmax->real[m->type].backward(j->grad_out + row * bytes, j->in + row * bytes, row_out, m->width, false);
        kernels->attention->real[m->type].scale(row_out, m->width, m->scale);
        for (int64_t i = 0; i < m->width && (mask || m->triangle); ++i)
            if (is_masked(j, mask, row, i))
                tile_set_value(row_out, m->type, i, 0);
    }
}

static int run_masked_softmax(struct plan *plan)
{
    const struct masked_softmax *const m = PLAN_IMMEDIATE(plan, struct masked_softmax);
    if (plan->operands[OUT].count == 0)
        return 0;
    struct softmax_job j = {.m = m, .shape = &plan->operands[OUT], .mask = plan->operands[MASK].data};
    j.in = stage_read(plan, &m->staging, IN);
    j.grad_out = stage_read(plan, &m->staging, GRAD_OUT);
    j.out = stage_target(plan, &m->staging, OUT);
    parallel_for(j.shape->count / m->width, 4 * m->width, m->backward ? backward_rows : forward_rows, &j);
    stage_write_back(plan, &m->staging, OUT);
    return 0;
}

static int set_mask(struct plan *plan, struct masked_softmax *m)
{
    const struct view *const x = &plan->operands[IN];
    struct view mask = plan->operands[MASK];
    if (mask.dtype == DTYPE_NONE || m->triangle)
        return 0;
    REQUIRE((mask.dtype == DTYPE_B8 || mask.dtype == DTYPE_U8) && view_expand(&mask, x->sizes, x->ndim), ACLNN_ERROR_PARAM,
            "%s: mask is %s; it must be bool and fit %s", plan_name(plan), view_text(&plan->operands[MASK]), view_text(x));
    for (int d = 0; d < x->ndim; ++d)
        m->mask_strides[d] = mask.strides[d];
    return 0;
}

static int plan_masked_softmax(enum operator_id id, const aclTensor *const tensors[4], double scale, bool triangle,
                               uint64_t *workspace_size, aclOpExecutor **executor)
{
    static const char *const names[] = {"x", "gradOutput", "mask", "out"};
    struct plan *plan;
    const bool backward = id == OPERATOR_ScaledMaskedSoftmaxBackward;
    TRY(plan_begin(id, run_masked_softmax, workspace_size, executor, &plan));
    struct masked_softmax *const m = PLAN_IMMEDIATE(plan, struct masked_softmax);
    stage_begin(&m->staging);
    for (int i = IN; i <= OUT; ++i) {
        if (i != MASK && (i != GRAD_OUT || backward))
            PLAN_TRY(plan, check_not_null(plan, tensors[i], names[i]));
        PLAN_TRY(plan, plan_optional(plan, tensors[i], i == OUT ? ROLE_OUTPUT : ROLE_INPUT, names[i], NULL));
    }
    const struct view *const x = &plan->operands[IN];
    PLAN_REQUIRE(plan, x->ndim >= 2, ACLNN_ERROR_PARAM, "%s: x is %s; it needs at least 2 dimensions", operator_name(id),
                 view_text(x));
    m->type = accumulate_of((enum dtype)x->dtype);
    m->scale = scale;
    m->triangle = triangle;
    m->backward = backward;
    m->width = x->sizes[x->ndim - 1];
    for (int i = IN; i <= OUT; ++i) {
        struct view *const v = &plan->operands[i];
        if (i == MASK || v->dtype == DTYPE_NONE)
            continue;
        PLAN_TRY(plan, check_floating(plan, v, names[i]));
        PLAN_TRY(plan, check_sizes(plan, v, names[i], x->sizes, x->ndim));
        stage_operand(plan, &m->staging, v, m->type);
    }
    PLAN_TRY(plan, set_mask(plan, m));
    return plan_finish(plan, m->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnScaledMaskedSoftmaxGetWorkspaceSize(const aclTensor *x, const aclTensor *mask, double scale, bool fixedTriuMask,
                                                     aclTensor *y, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_masked_softmax(OPERATOR_ScaledMaskedSoftmax, (const aclTensor *const[]){x, NULL, mask, y}, scale, fixedTriuMask,
                               workspaceSize, executor);
}
ACLNN_PHASE_2(ScaledMaskedSoftmax)

aclnnStatus aclnnScaledMaskedSoftmaxBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *y, const aclTensor *mask,
                                                             double scale, bool fixTriuMask, aclTensor *out,
                                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_masked_softmax(OPERATOR_ScaledMaskedSoftmaxBackward, (const aclTensor *const[]){y, gradOutput, mask, out}, scale,
                               fixTriuMask, workspaceSize, executor);
}
ACLNN_PHASE_2(ScaledMaskedSoftmaxBackward)
