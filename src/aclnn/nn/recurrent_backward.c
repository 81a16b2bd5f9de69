/* Backward through a recurrent network, from what training saved. See recurrent.h. */
#include <string.h>

#include "aclnn/nn/recurrent.h"
#include "kernels/kernels.h"
#include "kernels/recurrent.h"

struct gradient_job {
    const struct direction *d;
    int64_t step;
    const char *grad_output;                  /* of the layer, its directions side by side */
    char *grad_input_sums, *grad_hidden_sums; /* one and the same for an LSTM */
    char *state[2];                           /* gradients that come from later steps */
    char *total;                              /* of the batch: what reaches the hidden state of this step */
    const char *before[2];
    const char *saved[SAVED_COUNT];
};

/* The gradient of a step's hidden state: what its reader and the next step give. */
static void *total_of(const struct gradient_job *j, int64_t b, int64_t at)
{
    const struct network *const n = j->d->n;
    const int64_t h = n->hidden, bytes = h * n->bytes;
    const char *const given = j->grad_output + (at * n->directions + j->d->index % n->directions) * bytes;
    char *const state = j->state[0] + b * bytes, *const total = j->total + b * bytes;
    for (int64_t i = 0; i < h; ++i)
        if (n->type == ACCUMULATE_F64)
            ((double *)(void *)total)[i] = ((const double *)(const void *)given)[i] + ((double *)(void *)state)[i];
        else
            ((float *)(void *)total)[i] = ((const float *)(const void *)given)[i] + ((float *)(void *)state)[i];
    return total;
}

static void lstm_rows(void *argument, int64_t begin, int64_t end)
{
    const struct gradient_job *const j = argument;
    const struct network *const n = j->d->n;
    const int64_t bytes = n->hidden * n->bytes;
    for (int64_t b = begin; b < end; ++b) {
        const int64_t at = j->step * n->batch + b;
        struct lstm_gradient_row r = {.n = n->hidden, .grad_hidden = total_of(j, b, at)};
        r.grad_after = r.grad_cell = j->state[1] + b * bytes;
        r.cell = j->before[1] + at * bytes;
        r.after = j->saved[SAVED_CELL] + at * bytes;
        for (int g = 0; g < RECURRENT_GATES; ++g)
            r.gate[g] = j->saved[g] + at * bytes;
        r.grad_gates = j->grad_input_sums + at * n->gates * bytes;
        kernels->recurrent->real[n->type].lstm_gradient(&r);
    }
}

static void gru_rows(void *argument, int64_t begin, int64_t end)
{
    const struct gradient_job *const j = argument;
    const struct network *const n = j->d->n;
    const int64_t bytes = n->hidden * n->bytes;
    for (int64_t b = begin; b < end; ++b) {
        const int64_t at = j->step * n->batch + b;
        struct gru_gradient_row r = {.n = n->hidden, .grad_after = total_of(j, b, at)};
        r.before = j->before[0] + at * bytes;
        for (int g = 0; g < n->gates; ++g)
            r.gate[g] = j->saved[g] + at * bytes;
        r.hidden_part = j->saved[SAVED_PART] + at * bytes;
        r.grad_input = j->grad_input_sums + at * n->gates * bytes;
        r.grad_hidden = j->grad_hidden_sums + at * n->gates * bytes;
        r.grad_before = j->state[0] + b * bytes;
        kernels->recurrent->real[n->type].gru_gradient(&r);
    }
}

static int run_steps(struct gradient_job *j)
{
    const struct direction *const d = j->d;
    const struct network *const n = d->n;
    const int64_t bytes = n->hidden * n->bytes;
    for (int64_t i = 0; n->batch * n->hidden > 0 && i < n->steps; ++i) {
        j->step = d->reverse ? i : n->steps - 1 - i;
        const int64_t active = recurrent_active(d, j->step);
        parallel_for(active, 16 * n->gates * n->hidden, n->gru ? gru_rows : lstm_rows, j);
        const struct recurrent_product product = {.a = j->grad_hidden_sums + j->step * n->batch * n->gates * bytes,
                                                  .parameter = recurrent_parameter(d, n->parameters, 1),
                                                  .out = j->state[0],
                                                  .addend = n->gru ? j->state[0] : NULL,
                                                  .rows = active,
                                                  .columns = n->hidden,
                                                  .depth = n->gates * n->hidden};
        TRY(recurrent_multiply(n, &product));
    }
    return 0;
}

/* States before each step: those of the step that ran before it, or what the direction began with. */
static void shift_states(const struct direction *d, const char *after, int operand, char *before)
{
    const struct network *const n = d->n;
    const int64_t bytes = n->hidden * n->bytes, row = n->batch * bytes;
    char *const first = recurrent_room(d, n->rooms.step);
    recurrent_load_state(d, operand, first);
    for (int64_t t = 0; row > 0 && t < n->steps; ++t) {
        const int64_t previous = d->reverse ? t + 1 : t - 1;
        const bool is_first = previous < 0 || previous == n->steps;
        const int64_t ran = is_first ? 0 : recurrent_active(d, previous);
        if (ran > 0)
            memcpy(before + t * row, after + previous * row, (size_t)(ran * bytes));
        memcpy(before + t * row + ran * bytes, first + ran * bytes, (size_t)(row - ran * bytes));
    }
}

/* Gradients of the parameters: of one product (which: 0 input, 1 hidden) from the gradients of its sums and what it read. */
static int parameter_gradients(const struct direction *d, int which, const void *sums, const void *given)
{
    const struct network *const n = d->n;
    const int64_t rows = n->steps * n->batch, gates = n->gates * n->hidden;
    void *const weight = recurrent_room(d, n->rooms.weight[0]), *const bias = recurrent_room(d, n->rooms.weight[1]);
    if (!n->gradients)
        return 0;
    const struct recurrent_product product = {.a = sums,
                                              .a_transposed = true,
                                              .b = given,
                                              .out = weight,
                                              .rows = gates,
                                              .columns = which == 0 ? recurrent_width(n, d->layer) : n->hidden,
                                              .depth = rows};
    TRY(recurrent_multiply(n, &product));
    recurrent_store_rows(d, recurrent_parameter(d, n->gradients, which), weight);
    if (n->has_bias) {
        recurrent_column_sums(n->type, sums, rows, gates, bias);
        recurrent_store_rows(d, recurrent_parameter(d, n->gradients, 2 + which), bias);
    }
    return 0;
}

static void load_saved(const struct direction *d, struct gradient_job *j)
{
    const struct network *const n = d->n;
    for (int s = 0; s < SAVED_COUNT; ++s)
        if (n->rooms.saved[s] >= 0 && (n->gru || s != SAVED_TANH)) { /* an LSTM's tanh is computed again */
            void *const memory = recurrent_room(d, n->rooms.saved[s]);
            recurrent_load_rows(d, &n->saved[s][d->index], memory, n->hidden);
            j->saved[s] = memory;
        }
    for (int i = 0; i < (n->gru ? 1 : 2); ++i) {
        void *const before = recurrent_room(d, n->rooms.before[i]);
        shift_states(d, j->saved[SAVED_HIDDEN + i], R_HIDDEN + i, before);
        j->before[i] = before;
    }
    for (int i = 0; i < 2; ++i) {
        j->state[i] = recurrent_room(d, n->rooms.state[i]);
        recurrent_load_state(d, R_LAST_HIDDEN + i, j->state[i]);
    }
}

static int run_direction(const struct direction *d, const void *given, const void *grad_output, void *grad_input)
{
    const struct network *const n = d->n;
    struct gradient_job j = {.d = d, .grad_output = grad_output, .total = recurrent_room(d, n->rooms.step)};
    const size_t sums = (size_t)(n->steps * n->batch * n->gates * n->hidden * n->bytes);
    load_saved(d, &j);
    j.grad_input_sums = recurrent_room(d, n->rooms.sums);
    j.grad_hidden_sums = n->gru ? recurrent_room(d, n->rooms.hidden_sums) : j.grad_input_sums;
    if (d->sizes) {
        memset(j.grad_input_sums, 0, sums);
        memset(j.grad_hidden_sums, 0, sums);
    }
    TRY(run_steps(&j));
    TRY(parameter_gradients(d, 0, j.grad_input_sums, given));
    TRY(parameter_gradients(d, 1, j.grad_hidden_sums, j.before[0]));
    recurrent_store_state(d, R_GRAD_HIDDEN, j.state[0]);
    recurrent_store_state(d, R_GRAD_CELL, j.state[1]);
    const struct recurrent_product product = {.a = j.grad_input_sums,
                                              .parameter = recurrent_parameter(d, n->parameters, 0),
                                              .out = grad_input,
                                              .addend = d->reverse ? grad_input : NULL,
                                              .rows = n->steps * n->batch,
                                              .columns = recurrent_width(n, d->layer),
                                              .depth = n->gates * n->hidden};
    return recurrent_multiply(n, &product);
}

/* What a layer had read: the input, or the hidden states of the layer below, side by side. */
static void load_given(const struct direction *d, char *memory)
{
    const struct network *const n = d->n;
    const int64_t bytes = n->hidden * n->bytes;
    if (d->layer == 0) {
        recurrent_load_rows(d, &d->plan->operands[R_INPUT], memory, n->input);
        return;
    }
    char *const states = recurrent_room(d, n->rooms.saved[SAVED_HIDDEN]);
    for (int k = 0; k < n->directions; ++k) {
        recurrent_load_rows(d, &n->saved[SAVED_HIDDEN][(d->layer - 1) * n->directions + k], states, n->hidden);
        for (int64_t row = 0; n->hidden > 0 && row < n->steps * n->batch; ++row)
            memcpy(memory + (row * n->directions + k) * bytes, states + row * bytes, (size_t)bytes);
    }
}

int recurrent_backward_run(struct plan *plan)
{
    const struct network *const n = PLAN_IMMEDIATE(plan, struct network_plan)->network;
    struct direction d = {.plan = plan, .n = n};
    TRY(recurrent_sizes(plan, n, &d.sizes));
    char *grad = recurrent_room(&d, n->rooms.layer[0]), *next = recurrent_room(&d, n->rooms.layer[1]);
    char *const given = recurrent_room(&d, n->rooms.given);
    recurrent_load_rows(&d, &plan->operands[R_OUTPUT], grad, n->directions * n->hidden);
    for (d.layer = n->layers - 1; d.layer >= 0; --d.layer) {
        load_given(&d, given);
        for (int k = 0; k < n->directions; ++k) {
            d.index = d.layer * n->directions + k;
            d.reverse = k == 1;
            TRY(run_direction(&d, given, grad, next));
        }
        char *const swap = grad;
        grad = next;
        next = swap;
    }
    recurrent_store_rows(&d, &plan->operands[R_GRAD_INPUT], grad);
    return 0;
}
