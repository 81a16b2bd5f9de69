/* ThnnFusedLstmCell and its gradient: what an LSTM cell does with the two products that its caller made.
 *
 * Operands: [batch, 4 hidden] sums in torch's order of gates (input, forget, candidate, output), biases of 4 hidden, states of
 * [batch, hidden]; `storage` keeps the gates after their functions for the gradient. */
#include "aclnn/math/operand_check.h"
#include "aclnn/nn/recurrent.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/recurrent.h"

enum { GATES = RECURRENT_GATES };
enum { INPUT, HIDDEN, CX, INPUT_BIAS, HIDDEN_BIAS, HY, CY, STORAGE };
enum { GRAD_HY, GRAD_CY, B_CX, B_CY, B_STORAGE, GRAD_GATES, GRAD_CX, GRAD_BIAS };

struct cell {
    struct staging staging;
    int64_t batch, hidden;
    enum accumulate type;
};

struct cell_job {
    const struct cell *cell;
    const char *input[5];
    char *output[3];
    int64_t bytes; /* of an element */
};

static const void *row_of(const struct cell_job *j, const char *base, int64_t row, int64_t width)
{
    return base ? base + row * width * j->cell->hidden * j->bytes : NULL;
}

static void forward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct cell_job *const j = argument;
    const int64_t n = j->cell->hidden;
    for (int64_t row = begin; row < end; ++row) {
        struct lstm_row r = {.n = n, .cell = row_of(j, j->input[CX], row, 1)};
        r.sums = (struct recurrent_sums){row_of(j, j->input[INPUT], row, GATES), row_of(j, j->input[HIDDEN], row, GATES),
                                         j->input[INPUT_BIAS], j->input[HIDDEN_BIAS]};
        r.hidden = (void *)(uintptr_t)row_of(j, j->output[0], row, 1);
        r.after = (void *)(uintptr_t)row_of(j, j->output[1], row, 1);
        for (int g = 0; g < GATES; ++g)
            r.gate[g] = j->output[2] + (row * GATES + g) * n * j->bytes;
        kernels->recurrent->real[j->cell->type].lstm(&r);
    }
}

static int run_forward(struct plan *plan)
{
    const struct cell *const c = PLAN_IMMEDIATE(plan, struct cell);
    struct cell_job j = {.cell = c, .bytes = accumulate_bytes(c->type)};
    for (int i = INPUT; i <= HIDDEN_BIAS; ++i)
        j.input[i] = stage_read(plan, &c->staging, i);
    for (int i = HY; i <= STORAGE; ++i)
        j.output[i - HY] = stage_target(plan, &c->staging, i);
    parallel_for(c->hidden ? c->batch : 0, cost_of(16 * GATES, c->hidden), forward_rows, &j);
    for (int i = HY; i <= STORAGE; ++i)
        stage_write_back(plan, &c->staging, i);
    return 0;
}

static void backward_rows(void *argument, int64_t begin, int64_t end)
{
    const struct cell_job *const j = argument;
    const int64_t n = j->cell->hidden;
    for (int64_t row = begin; row < end; ++row) {
        struct lstm_gradient_row r = {.n = n};
        r.grad_hidden = row_of(j, j->input[GRAD_HY], row, 1);
        r.grad_after = row_of(j, j->input[GRAD_CY], row, 1);
        r.cell = row_of(j, j->input[B_CX], row, 1);
        r.after = row_of(j, j->input[B_CY], row, 1);
        for (int g = 0; g < GATES; ++g)
            r.gate[g] = j->input[B_STORAGE] + (row * GATES + g) * n * j->bytes;
        r.grad_gates = j->output[0] + row * GATES * n * j->bytes;
        r.grad_cell = j->output[1] + row * n * j->bytes;
        kernels->recurrent->real[j->cell->type].lstm_gradient(&r);
    }
}

static int run_backward(struct plan *plan)
{
    const struct cell *const c = PLAN_IMMEDIATE(plan, struct cell);
    struct cell_job j = {.cell = c, .bytes = accumulate_bytes(c->type)};
    for (int i = GRAD_HY; i <= B_STORAGE; ++i)
        j.input[i] = stage_read(plan, &c->staging, i);
    j.output[0] = stage_target(plan, &c->staging, GRAD_GATES);
    j.output[1] = stage_target(plan, &c->staging, GRAD_CX);
    parallel_for(c->hidden ? c->batch : 0, cost_of(16 * GATES, c->hidden), backward_rows, &j);
    if (plan->operands[GRAD_BIAS].data) {
        recurrent_column_sums(c->type, j.output[0], c->batch, GATES * c->hidden, stage_target(plan, &c->staging, GRAD_BIAS));
        stage_write_back(plan, &c->staging, GRAD_BIAS);
    }
    stage_write_back(plan, &c->staging, GRAD_GATES);
    stage_write_back(plan, &c->staging, GRAD_CX);
    return 0;
}

/* --- planning ------------------------------------------------------------------------------------------------------- */

/* Every operand that is there has the type of the state, and [batch, width hidden] elements ([width hidden] for a bias). */
static int check_operand(struct plan *plan, const struct cell *c, int index, const char *name, int width)
{
    const struct view *const v = &plan->operands[index];
    if (v->dtype == DTYPE_NONE)
        return 0;
    const bool bias = width < 0;
    if (plan->roles[index] & ROLE_OUTPUT)
        TRY(check_output_not_expanded(plan, v, name));
    const int64_t sizes[] = {c->batch, (bias ? -width : width) * c->hidden};
    TRY(check_floating(plan, v, name));
    return check_sizes(plan, v, name, bias ? sizes + 1 : sizes, bias ? 1 : 2);
}

static int set_cell(struct plan *plan, const struct view *state, const char *name)
{
    struct cell *const c = PLAN_IMMEDIATE(plan, struct cell);
    stage_begin(&c->staging);
    TRY(check_floating(plan, state, name));
    REQUIRE(state->ndim == 2, ACLNN_ERROR_PARAM, "%s: %s is %s; it must have 2 dimensions (batch, hidden)", plan_name(plan), name,
            view_text(state));
    c->batch = state->sizes[0];
    c->hidden = state->sizes[1];
    REQUIRE(c->hidden <= INT32_MAX, ACLNN_ERROR_PARAM, "%s: %s is %s; at most %d hidden elements", plan_name(plan), name,
            view_text(state), INT32_MAX);
    c->type = accumulate_of((enum dtype)state->dtype);
    return 0;
}

static int finish(struct plan *plan, const char *const *names, const signed char *widths, uint64_t *workspace_size,
                  aclOpExecutor **executor)
{
    struct cell *const c = PLAN_IMMEDIATE(plan, struct cell);
    for (int i = 0; i < plan->operand_count; ++i) {
        PLAN_TRY(plan, check_operand(plan, c, i, names[i], widths[i]));
        if (plan->operands[i].dtype != DTYPE_NONE)
            stage_operand(plan, &c->staging, &plan->operands[i], c->type);
    }
    return finish_by_size(plan, c->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnThnnFusedLstmCellGetWorkspaceSize(const aclTensor *inputGates, const aclTensor *hiddenGates, const aclTensor *cx,
                                                   const aclTensor *inputBiasOptional, const aclTensor *hiddenBiasOptional,
                                                   aclTensor *hyOut, aclTensor *cyOut, aclTensor *storageOut,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    static const char *const names[] = {"inputGates",         "hiddenGates", "cx",    "inputBiasOptional",
                                        "hiddenBiasOptional", "hyOut",       "cyOut", "storageOut"};
    static const signed char widths[] = {GATES, GATES, 1, -GATES, -GATES, 1, 1, GATES};
    struct plan *plan;
    struct view *state;
    TRY(plan_begin(OPERATOR_ThnnFusedLstmCell, run_forward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, inputGates, names[INPUT], NULL));
    PLAN_TRY(plan, plan_input(plan, hiddenGates, names[HIDDEN], NULL));
    PLAN_TRY(plan, plan_input(plan, cx, names[CX], &state));
    PLAN_TRY(plan, plan_optional(plan, inputBiasOptional, ROLE_INPUT, names[INPUT_BIAS], NULL));
    PLAN_TRY(plan, plan_optional(plan, hiddenBiasOptional, ROLE_INPUT, names[HIDDEN_BIAS], NULL));
    PLAN_TRY(plan, plan_output(plan, hyOut, names[HY], NULL));
    PLAN_TRY(plan, plan_output(plan, cyOut, names[CY], NULL));
    PLAN_TRY(plan, plan_output(plan, storageOut, names[STORAGE], NULL));
    PLAN_TRY(plan, set_cell(plan, state, names[CX]));
    return finish(plan, names, widths, workspaceSize, executor);
}
ACLNN_PHASE_2(ThnnFusedLstmCell)

aclnnStatus aclnnThnnFusedLstmCellBackwardGetWorkspaceSize(const aclTensor *gradHyOptional, const aclTensor *gradCOptional,
                                                           const aclTensor *cx, const aclTensor *cy, const aclTensor *storage,
                                                           bool hasBias, aclTensor *gradGatesOut, aclTensor *gradCxOut,
                                                           aclTensor *gradBiasOut, uint64_t *workspaceSize,
                                                           aclOpExecutor **executor)
{
    static const char *const names[] = {"gradHyOptional", "gradCOptional", "cx",        "cy",
                                        "storage",        "gradGatesOut",  "gradCxOut", "gradBiasOut"};
    static const signed char widths[] = {1, 1, 1, 1, GATES, GATES, 1, -GATES};
    struct plan *plan;
    struct view *state;
    TRY(plan_begin(OPERATOR_ThnnFusedLstmCellBackward, run_backward, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_optional(plan, gradHyOptional, ROLE_INPUT, names[GRAD_HY], NULL));
    PLAN_TRY(plan, plan_optional(plan, gradCOptional, ROLE_INPUT, names[GRAD_CY], NULL));
    PLAN_TRY(plan, plan_input(plan, cx, names[B_CX], &state));
    PLAN_TRY(plan, plan_input(plan, cy, names[B_CY], NULL));
    PLAN_TRY(plan, plan_input(plan, storage, names[B_STORAGE], NULL));
    PLAN_TRY(plan, plan_output(plan, gradGatesOut, names[GRAD_GATES], NULL));
    PLAN_TRY(plan, plan_output(plan, gradCxOut, names[GRAD_CX], NULL));
    PLAN_REQUIRE(plan, !hasBias || gradBiasOut, ACLNN_ERROR_NULLPTR,
                 "aclnnThnnFusedLstmCellBackward: gradBiasOut is null, but "
                 "hasBias asks for it");
    PLAN_TRY(plan, plan_optional(plan, hasBias ? gradBiasOut : NULL, ROLE_OUTPUT, names[GRAD_BIAS], NULL));
    PLAN_TRY(plan, set_cell(plan, state, names[B_CX]));
    return finish(plan, names, widths, workspaceSize, executor);
}
ACLNN_PHASE_2(ThnnFusedLstmCellBackward)
