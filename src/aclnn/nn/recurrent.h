/* Whole LSTM and GRU networks: layers, directions, time steps, sequences of different lengths. The plan is made in recurrent_plan.c,
 * recurrent_forward.c and recurrent_backward.c run it.
 *
 * Everything is computed on contiguous [step, batch, width] memory of the compute type in the workspace; what a layer saves is
 * brought home after each direction. With sizes, step t runs sequences [0, sizes[t]) only, which never grow with t; rows of the
 * others are zero, and their states stand still.
 * Invariant: memory of struct network belongs to the plan (plan_extra), its views are plan->extra_views. */
#ifndef ACLNN_NN_RECURRENT_H
#define ACLNN_NN_RECURRENT_H

#include "aclnn/nn/staging.h"

enum { RECURRENT_GATES = 4 };
/* What training saves for each direction: gates, states after each step, and the cell's tanh or the candidate's hidden part. */
enum saved { SAVED_GATE, SAVED_HIDDEN = RECURRENT_GATES, SAVED_CELL, SAVED_TANH, SAVED_PART = SAVED_TANH, SAVED_COUNT };
/* Operands of the plans; grad_* of an input stand where forward has the output. */
enum recurrent_operand {
    R_INPUT,
    R_SIZES,
    R_HIDDEN,
    R_CELL,
    R_OUTPUT,
    R_LAST_HIDDEN,
    R_LAST_CELL,
    R_GRAD_INPUT,
    R_GRAD_HIDDEN,
    R_GRAD_CELL
};

/* Rooms in the workspace, as offsets; -1: not needed. */
struct recurrent_rooms {
    int64_t layer[2]; /* input and output of a layer, in turn; gradients too */
    int64_t given;    /* backward: what the layer had read */
    int64_t sums, hidden_sums, bias[2];
    int64_t state[2];  /* of the batch: hidden, cell; backward: their gradients */
    int64_t before[2]; /* backward: hidden and cell before each step */
    int64_t step;      /* of the batch */
    int64_t saved[SAVED_COUNT];
    int64_t weight[2]; /* backward: gradients */
};

struct network {
    bool gru, has_bias, train;
    int gates, directions;
    int64_t layers, steps, batch, input, hidden;
    enum accumulate type;
    enum dtype compute;
    int64_t bytes; /* of an element of the compute type */
    struct recurrent_rooms rooms;
    struct view *parameters;         /* weight_ih, weight_hh, (bias_ih, bias_hh) for each direction of each layer */
    struct view *gradients;          /* of the same; NULL: forward, or not wanted */
    struct view *saved[SAVED_COUNT]; /* one for each direction of each layer; NULL: none */
};

struct network_plan {
    struct staging staging; /* for its bytes only */
    struct network *network;
};

/* A direction of a layer while it runs. */
struct direction {
    struct plan *plan;
    const struct network *n;
    int64_t layer, index; /* index: layer * directions + direction */
    bool reverse;
    const int64_t *sizes; /* NULL: all sequences have all steps */
};

static inline void *recurrent_room(const struct direction *d, int64_t offset) { return stage_room(d->plan, offset); }
static inline int64_t recurrent_width(const struct network *n, int64_t layer)
{
    return layer == 0 ? n->input : n->directions * n->hidden;
}
static inline int64_t recurrent_active(const struct direction *d, int64_t step) { return d->sizes ? d->sizes[step] : d->n->batch; }
static inline struct view *recurrent_parameter(const struct direction *d, struct view *list, int which)
{
    return &list[d->index * (d->n->has_bias ? 4 : 2) + which];
}

int recurrent_forward_run(struct plan *plan);
int recurrent_backward_run(struct plan *plan);

/* Reads the sizes of a plan into its network's memory, and checks them. *sizes is NULL when there are none. */
int recurrent_sizes(struct plan *plan, const struct network *n, const int64_t **sizes);
/* [steps, batch, width] memory and a view with steps and batch in either order; rows of absent sequences are zero on loading. */
void recurrent_load_rows(const struct direction *d, const struct view *view, void *memory, int64_t width);
void recurrent_store_rows(const struct direction *d, const struct view *view, const void *memory);
/* State `index` of [layers * directions, batch, hidden], zero when the operand is absent. */
void recurrent_load_state(const struct direction *d, int operand, void *memory);
void recurrent_store_state(const struct direction *d, int operand, const void *memory);
/* out[rows][columns] = a b (+ addend); a is [rows][depth] or, transposed, [depth][rows]; b is a matrix of the compute type or any
 * parameter. Strides count elements. */
struct recurrent_product {
    const void *a, *b;
    const struct view *parameter; /* instead of b: its rows are columns of the product (transposed) or not */
    void *out;
    const void *addend;
    int64_t rows, columns, depth;
    bool a_transposed, b_transposed;
};
int recurrent_multiply(const struct network *n, const struct recurrent_product *p);
/* sums[column] = the sum over rows, added one after the other in double. */
void recurrent_column_sums(enum accumulate type, const void *matrix, int64_t rows, int64_t width, void *sums);

#endif
