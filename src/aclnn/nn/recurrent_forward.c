/* Forward through a recurrent network. See recurrent.h. */
#include <string.h>

#include "aclnn/nn/recurrent.h"
#include "kernels/kernels.h"
#include "kernels/recurrent.h"

struct step_job {
    const struct direction *d;
    int64_t step;
    const char *sums, *hidden_sums;
    const void *bias[2];
    char *state[2];
    char *saved[SAVED_COUNT];
};

static void *row_at(char *base, int64_t row, int64_t bytes) { return base + row * bytes; }

static void lstm_rows(void *argument, int64_t begin, int64_t end)
{
    const struct step_job *const j = argument;
    const struct network *const n = j->d->n;
    const int64_t bytes = n->hidden * n->bytes;
    for (int64_t b = begin; b < end; ++b) {
        const int64_t at = j->step * n->batch + b;
        struct lstm_row r = {.n = n->hidden, .cell = row_at(j->state[1], b, bytes)};
        r.sums =
            (struct recurrent_sums){j->sums + at * n->gates * bytes, j->hidden_sums + b * n->gates * bytes, j->bias[0], j->bias[1]};
        r.hidden = row_at(j->saved[SAVED_HIDDEN], at, bytes);
        r.after = row_at(j->saved[SAVED_CELL], at, bytes);
        for (int g = 0; n->train && g < RECURRENT_GATES; ++g)
            r.gate[g] = row_at(j->saved[g], at, bytes);
        r.tanh_after = n->train ? row_at(j->saved[SAVED_TANH], at, bytes) : NULL;
        kernels->recurrent->real[n->type].lstm(&r);
        memcpy(j->state[0] + b * bytes, r.hidden, (size_t)bytes);
        memcpy(j->state[1] + b * bytes, r.after, (size_t)bytes);
    }
}

static void gru_rows(void *argument, int64_t begin, int64_t end)
{
    const struct step_job *const j = argument;
    const struct network *const n = j->d->n;
    const int64_t bytes = n->hidden * n->bytes;
    for (int64_t b = begin; b < end; ++b) {
        const int64_t at = j->step * n->batch + b;
        struct gru_row r = {.n = n->hidden, .before = row_at(j->state[0], b, bytes)};
        r.sums =
            (struct recurrent_sums){j->sums + at * n->gates * bytes, j->hidden_sums + b * n->gates * bytes, j->bias[0], j->bias[1]};
        r.after = row_at(j->saved[SAVED_HIDDEN], at, bytes);
        for (int g = 0; n->train && g < n->gates; ++g)
            r.gate[g] = row_at(j->saved[g], at, bytes);
        r.hidden_part = n->train ? row_at(j->saved[SAVED_PART], at, bytes) : NULL;
        kernels->recurrent->real[n->type].gru(&r);
        memcpy(j->state[0] + b * bytes, r.after, (size_t)bytes);
    }
}

static int run_steps(struct step_job *j)
{
    const struct direction *const d = j->d;
    const struct network *const n = d->n;
    for (int64_t i = 0; n->batch * n->hidden > 0 && i < n->steps; ++i) {
        j->step = d->reverse ? n->steps - 1 - i : i;
        const int64_t active = recurrent_active(d, j->step);
        const struct recurrent_product product = {.a = j->state[0],
                                                  .parameter = recurrent_parameter(d, n->parameters, 1),
                                                  .b_transposed = true,
                                                  .out = (void *)(uintptr_t)j->hidden_sums,
                                                  .rows = active,
                                                  .columns = n->gates * n->hidden,
                                                  .depth = n->hidden};
        TRY(recurrent_multiply(n, &product));
        parallel_for(active, 16 * n->gates * n->hidden, n->gru ? gru_rows : lstm_rows, j);
    }
    return 0;
}

/* The layer's output has the directions side by side. */
static void place_output(const struct direction *d, const char *from, char *to)
{
    const struct network *const n = d->n;
    const int64_t bytes = n->hidden * n->bytes, at = d->index % n->directions;
    for (int64_t row = 0; n->hidden > 0 && row < n->steps * n->batch; ++row)
        memcpy(to + (row * n->directions + at) * bytes, from + row * bytes, (size_t)bytes);
}

static void save(const struct direction *d, const struct step_job *j)
{
    for (int s = 0; s < SAVED_COUNT; ++s)
        if (d->n->saved[s])
            recurrent_store_rows(d, &d->n->saved[s][d->index], j->saved[s]);
}

static int run_direction(const struct direction *d, const void *from, void *to)
{
    const struct network *const n = d->n;
    const struct recurrent_rooms *const rooms = &n->rooms;
    struct step_job j = {.d = d, .sums = recurrent_room(d, rooms->sums), .hidden_sums = recurrent_room(d, rooms->hidden_sums)};
    for (int s = 0; s < SAVED_COUNT; ++s) {
        j.saved[s] = rooms->saved[s] < 0 ? NULL : recurrent_room(d, rooms->saved[s]);
        if (j.saved[s] && d->sizes)
            memset(j.saved[s], 0, (size_t)(n->steps * n->batch * n->hidden * n->bytes));
    }
    for (int i = 0; i < 2; ++i) {
        j.state[i] = recurrent_room(d, rooms->state[i]);
        recurrent_load_state(d, R_HIDDEN + i, j.state[i]);
        if (n->has_bias) {
            void *const bias = recurrent_room(d, rooms->bias[i]);
            stage_load(recurrent_parameter(d, n->parameters, 2 + i), n->type, bias);
            j.bias[i] = bias;
        }
    }
    const struct recurrent_product product = {.a = from,
                                              .parameter = recurrent_parameter(d, n->parameters, 0),
                                              .b_transposed = true,
                                              .out = (void *)(uintptr_t)j.sums,
                                              .rows = n->steps * n->batch,
                                              .columns = n->gates * n->hidden,
                                              .depth = recurrent_width(n, d->layer)};
    TRY(recurrent_multiply(n, &product));
    TRY(run_steps(&j));
    place_output(d, j.saved[SAVED_HIDDEN], to);
    save(d, &j);
    recurrent_store_state(d, R_LAST_HIDDEN, j.state[0]);
    recurrent_store_state(d, R_LAST_CELL, j.state[1]);
    return 0;
}

int recurrent_forward_run(struct plan *plan)
{
    const struct network *const n = PLAN_IMMEDIATE(plan, struct network_plan)->network;
    struct direction d = {.plan = plan, .n = n};
    TRY(recurrent_sizes(plan, n, &d.sizes));
    char *from = recurrent_room(&d, n->rooms.layer[0]), *to = recurrent_room(&d, n->rooms.layer[1]);
    recurrent_load_rows(&d, &plan->operands[R_INPUT], from, n->input);
    for (d.layer = 0; d.layer < n->layers; ++d.layer) {
        for (int k = 0; k < n->directions; ++k) {
            d.index = d.layer * n->directions + k;
            d.reverse = k == 1;
            TRY(run_direction(&d, from, to));
        }
        char *const swap = from;
        from = to;
        to = swap;
    }
    recurrent_store_rows(&d, &plan->operands[R_OUTPUT], from);
    return 0;
}
