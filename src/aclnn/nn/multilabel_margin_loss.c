/* MultilabelMarginLoss: each of a row's labels should be ahead of each class that isn't one by a margin of 1.
 *
 * Labels of a row end with the first negative one. A row is one item of work; rows are added in their order. */
#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"

enum { SELF, TARGET, OUT, IS_TARGET };

struct margins {
    struct staging staging;
    int64_t rows, classes, sums; /* sums: a double a row, in the workspace */
    int64_t reduction;           /* 0 none, 1 mean, 2 sum */
    enum accumulate type;
};

struct margin_job {
    const struct margins *m;
    const void *self;
    const int64_t *targets;
    double *sums;
    void *is_target;
};

static void run_rows(void *argument, int64_t begin, int64_t end)
{
    const struct margin_job *const j = argument;
    const struct margins *const m = j->m;
    for (int64_t row = begin; row < end; ++row) {
        const int64_t first = row * m->classes;
        const int64_t *const labels = j->targets + first;
        double sum = 0;
        int64_t count = 0;
        for (int64_t c = 0; c < m->classes; ++c)
            tile_set_value(j->is_target, m->type, first + c, 0);
        for (; count < m->classes && labels[count] >= 0; ++count)
            tile_set_value(j->is_target, m->type, first + labels[count], 1);
        for (int64_t k = 0; k < count; ++k)
            for (int64_t c = 0; c < m->classes; ++c) {
                const double gap = 1 - tile_value(j->self, m->type, first + labels[k]) + tile_value(j->self, m->type, first + c);
                if (tile_value(j->is_target, m->type, first + c) == 0 && !(gap <= 0))
                    sum += gap;
            }
        j->sums[row] = m->classes > 0 ? sum / (double)m->classes : 0;
    }
}

static int run_margins(struct plan *plan)
{
    const struct margins *const m = PLAN_IMMEDIATE(plan, struct margins);
    struct margin_job j = {.m = m, .sums = stage_room(plan, m->sums)};
    j.self = stage_read(plan, &m->staging, SELF);
    j.targets = stage_read(plan, &m->staging, TARGET);
    for (int64_t i = 0; i < m->rows * m->classes; ++i)
        if (j.targets[i] >= m->classes)
            return error_set(ERROR_RT_DEVICE_TASK, "aclnnMultilabelMarginLoss", "target %lld is %lld; there are %lld classes",
                             (long long)i, (long long)j.targets[i], (long long)m->classes);
    j.is_target = stage_target(plan, &m->staging, IS_TARGET);
    void *const out = stage_target(plan, &m->staging, OUT);
    parallel_for(m->rows, cost_of(m->classes, m->classes), run_rows, &j);
    double total = 0;
    for (int64_t row = 0; row < m->rows; ++row) {
        total += j.sums[row];
        if (m->reduction == 0)
            tile_set_value(out, m->type, row, j.sums[row]);
    }
    if (m->reduction != 0)
        tile_set_value(out, m->type, 0, m->reduction == 1 ? total / (double)m->rows : total);
    stage_write_back(plan, &m->staging, OUT);
    stage_write_back(plan, &m->staging, IS_TARGET);
    return 0;
}

static int check_margins(struct plan *plan, struct margins *m)
{
    const struct view *const o = plan->operands;
    TRY(check_floating(plan, &o[SELF], "self"));
    TRY(check_index_dtype(plan, &o[TARGET], "target"));
    TRY(check_floating(plan, &o[OUT], "out"));
    REQUIRE(m->reduction >= 0 && m->reduction <= 2, ACLNN_ERROR_PARAM,
            "aclnnMultilabelMarginLoss: reduction is %lld; 0 (none), 1 (mean) and 2 (sum) are allowed", (long long)m->reduction);
    REQUIRE(o[SELF].ndim <= 2, ACLNN_ERROR_PARAM, "aclnnMultilabelMarginLoss: self is %s; at most 2 dimensions (batch, classes)",
            view_text(&o[SELF]));
    m->rows = o[SELF].ndim == 2 ? o[SELF].sizes[0] : 1;
    m->classes = o[SELF].ndim == 0 ? 1 : o[SELF].sizes[o[SELF].ndim - 1];
    REQUIRE(m->classes > 0, ACLNN_ERROR_PARAM, "aclnnMultilabelMarginLoss: self is %s; at least one class is needed",
            view_text(&o[SELF]));
    m->type = accumulate_of((enum dtype)o[SELF].dtype);
    TRY(check_sizes(plan, &o[TARGET], "target", o[SELF].sizes, o[SELF].ndim));
    TRY(check_sizes(plan, &o[IS_TARGET], "isTarget", o[SELF].sizes, o[SELF].ndim));
    TRY(check_not_complex(plan, &o[IS_TARGET], "isTarget"));
    REQUIRE(o[OUT].count == (m->reduction == 0 ? m->rows : 1), ACLNN_ERROR_PARAM,
            "aclnnMultilabelMarginLoss: out is %s; %lld elements are needed", view_text(&o[OUT]),
            (long long)(m->reduction == 0 ? m->rows : 1));
    return 0;
}

aclnnStatus aclnnMultilabelMarginLossGetWorkspaceSize(const aclTensor *self, const aclTensor *target, int64_t reduction,
                                                      aclTensor *out, aclTensor *isTarget, uint64_t *workspaceSize,
                                                      aclOpExecutor **executor)
{
    static const char *const names[] = {"self", "target", "out", "isTarget"};
    struct plan *plan;
    TRY(plan_begin(OPERATOR_MultilabelMarginLoss, run_margins, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, names[SELF], NULL));
    PLAN_TRY(plan, plan_input(plan, target, names[TARGET], NULL));
    PLAN_TRY(plan, plan_output(plan, out, names[OUT], NULL));
    PLAN_TRY(plan, plan_output(plan, isTarget, names[IS_TARGET], NULL));
    struct margins *const m = PLAN_IMMEDIATE(plan, struct margins);
    stage_begin(&m->staging);
    m->reduction = reduction;
    PLAN_TRY(plan, check_margins(plan, m));
    for (int i = SELF; i <= IS_TARGET; ++i) {
        if (i >= OUT)
            PLAN_TRY(plan, check_output_not_expanded(plan, &plan->operands[i], names[i]));
        stage_operand(plan, &m->staging, &plan->operands[i], i == TARGET ? ACCUMULATE_I64 : m->type);
    }
    m->sums = stage_reserve(&m->staging, (uint64_t)m->rows * sizeof(double));
    return plan_finish(plan, m->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(MultilabelMarginLoss)
