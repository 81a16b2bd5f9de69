/* The gradient: one head of keys after the other, with every block of queries that meets it.
 *
 * Invariant: an item of work is one head of keys of one sequence, and it alone writes the gradients of its keys, values and
 * queries, in a fixed order; gradients of a shift that several items share run in one thread. */
#include <stdatomic.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnn/transformer/attention.h"
#include "base/arithmetic.h"
#include "kernels/kernels.h"

struct backward_job {
    struct plan *plan;
    char *shift_gradient; /* contiguous, in the shift's own shape; NULL when nobody wants it */
    _Atomic int failed;
};

/* Of one thread. */
struct backward_room {
    char *scores, *slopes, *row; /* probabilities, their gradients, one row of either */
    char *grad_query;            /* a block's */
    char *grad_key, *grad_value; /* the whole head's */
    char *wide[2];               /* a row of the output and of its gradient */
    double delta[ATTENTION_ROWS];
    void *gemm;
};

static bool find_room(const struct attention *a, struct backward_room *room)
{
    const int64_t bytes = attention_bytes(a);
    const int64_t small = (2 * ATTENTION_ROWS + 1) * ATTENTION_COLUMNS + ATTENTION_ROWS * a->width + 2 * a->value_width;
    room->gemm = pool_scratch(0, kernels->gemm->scratch_bytes);
    char *at = room->scores = pool_scratch(1, (size_t)(small * bytes));
    room->grad_key = pool_scratch(2, (size_t)((a->key_rows * (a->width + a->value_width) + 1) * bytes));
    if (!room->gemm || !at || !room->grad_key)
        return false;
    room->slopes = at += ATTENTION_ROWS * ATTENTION_COLUMNS * bytes;
    room->row = at += ATTENTION_ROWS * ATTENTION_COLUMNS * bytes;
    room->grad_query = at += ATTENTION_COLUMNS * bytes;
    room->wide[0] = at += ATTENTION_ROWS * a->width * bytes;
    room->wide[1] = at + a->value_width * bytes;
    room->grad_value = room->grad_key + a->key_rows * a->width * bytes;
    return true;
}

static double read_statistic(const struct attention_block *b, enum attention_operand which, int64_t row)
{
    const void *const at = attention_row(b->plan, which, b->batch, b->head, b->s->query_start + row);
    return b->plan->operands[which].dtype == DTYPE_F64 ? *(const double *)at : (double)*(const float *)at;
}

/* delta = output . its gradient, row by row: what the softmax's own sum takes away. */
static void find_deltas(const struct attention_block *b, struct backward_room *room)
{
    static const enum attention_operand which[] = {ATTENTION_OUT, ATTENTION_GRAD_OUT};
    const struct attention *const a = b->a;
    for (int64_t i = 0; i < b->rows; ++i) {
        for (int k = 0; k < 2; ++k)
            kernels->convert->load[b->plan->operands[which[k]].dtype][a->type](
                room->wide[k], attention_row(b->plan, which[k], b->batch, b->head, b->s->query_start + b->row + i),
                a->places[which[k]].column, a->value_width);
        room->delta[i] = kernels->attention->real[a->type].dot(room->wide[0], room->wide[1], a->value_width);
    }
}

/* What is added to a dense matrix of `columns` columns: alpha * x y, with y one of the plan's operands. */
struct addition {
    const void *x;
    bool x_transposed;
    enum attention_operand y;
    int64_t y_head, y_row;
    double alpha;
    void *out;
    int64_t columns;
};

static void add_product(const struct attention_block *b, const struct addition *n, void *gemm)
{
    const uint8_t dtype = (uint8_t)attention_dtype(b->a);
    const struct gemm_problem problem = {.rows = n->x_transposed ? b->columns : b->rows,
                                         .columns = n->columns,
                                         .depth = n->x_transposed ? b->rows : b->columns,
                                         .a = {.data = n->x,
                                               .row_stride = n->x_transposed ? 1 : b->columns,
                                               .column_stride = n->x_transposed ? b->columns : 1,
                                               .dtype = dtype},
                                         .b = attention_matrix(b, n->y, n->y_head, n->y_row, false),
                                         .addend = {.data = n->out, .row_stride = n->columns, .column_stride = 1, .dtype = dtype},
                                         .alpha = n->alpha,
                                         .beta = 1,
                                         .out = n->out,
                                         .out_row_stride = n->columns,
                                         .out_column_stride = 1,
                                         .out_dtype = dtype,
                                         .aside = true};
    attention_multiply(&problem, b->a->type, gemm);
}

static void add_shift_gradient(const struct backward_job *j, const struct attention_block *b, const char *slopes)
{
    const struct attention *const a = b->a;
    const struct attention_place *const p = &a->places[ATTENTION_GRAD_SHIFT];
    for (int64_t i = 0; i < b->rows; ++i) {
        const int64_t offset = b->batch * p->batch + b->head * p->head + (b->row + i) * p->row + b->column;
        kernels->attention->real[a->type].add(j->shift_gradient + offset * attention_bytes(a),
                                              slopes + i * b->columns * attention_bytes(a), b->columns,
                                              a->shift_first ? a->scale : 1);
    }
}

/* scores: the block's probabilities; slopes: the gradient of its scores. */
static void find_slopes(const struct attention_block *b, struct backward_room *room)
{
    const struct attention *const a = b->a;
    const struct attention_float_kernels *const k = &kernels->attention->real[a->type];
    const int64_t step = b->columns * attention_bytes(a);
    attention_scores(b, room->scores, room->row, room->gemm);
    for (int64_t i = 0; i < b->rows; ++i)
        k->probability(room->scores + i * step, b->columns, read_statistic(b, ATTENTION_MAXIMUM, b->row + i),
                       read_statistic(b, ATTENTION_SUM, b->row + i));
    const struct gemm_problem products = {
        .rows = b->rows,
        .columns = b->columns,
        .depth = a->value_width,
        .a = attention_matrix(b, ATTENTION_GRAD_OUT, b->head, b->row, false),
        .b = attention_matrix(b, ATTENTION_VALUE, b->head / (a->heads / a->key_heads), b->column, true),
        .alpha = 1,
        .out = room->slopes,
        .out_row_stride = b->columns,
        .out_column_stride = 1,
        .out_dtype = (uint8_t)attention_dtype(a)};
    attention_multiply(&products, a->type, room->gemm);
    if (a->dropped)
        attention_drop(b, room->slopes);
    for (int64_t i = 0; i < b->rows; ++i)
        k->gradient(room->scores + i * step, room->slopes + i * step, b->columns, room->delta[i]);
    if (a->dropped)
        attention_drop(b, room->scores);
}

/* One block of scores: its part of all gradients. */
static void run_block(const struct backward_job *j, const struct attention_block *b, struct backward_room *room)
{
    const struct attention *const a = b->a;
    const int64_t bytes = attention_bytes(a), key_head = b->head / (a->heads / a->key_heads);
    find_slopes(b, room);
    if (j->shift_gradient)
        add_shift_gradient(j, b, room->slopes);
    const struct addition additions[] = {
        {room->scores, true, ATTENTION_GRAD_OUT, b->head, b->row, 1, room->grad_value + b->column * a->value_width * bytes,
         a->value_width},
        {room->slopes, true, ATTENTION_QUERY, b->head, b->row, a->scale, room->grad_key + b->column * a->width * bytes, a->width},
        {room->slopes, false, ATTENTION_KEY, key_head, b->column, a->scale, room->grad_query, a->width}};
    for (int i = 0; i < 3; ++i)
        add_product(b, &additions[i], room->gemm);
}

static void store_rows(const struct attention_block *b, enum attention_operand which, int64_t head, int64_t row, int64_t rows,
                       const char *values, int64_t width)
{
    const convert_store_fn store = kernels->convert->store[b->plan->operands[which].dtype][b->a->type];
    for (int64_t i = 0; i < rows; ++i)
        store(attention_row(b->plan, which, b->batch, head, row + i), b->a->places[which].column,
              values + i * width * attention_bytes(b->a), width);
}

static void run_key_head(const struct backward_job *j, int64_t batch, int64_t key_head, struct backward_room *room)
{
    const struct attention *const a = attention_of(j->plan);
    const struct attention_sequence *const s = &a->sequences[batch];
    const int64_t group = a->heads / a->key_heads, bytes = attention_bytes(a);
    struct attention_block b = {.plan = j->plan, .a = a, .batch = batch, .s = s};
    memset(room->grad_key, 0, (size_t)(s->key_rows * a->width * bytes));
    memset(room->grad_value, 0, (size_t)(s->key_rows * a->value_width * bytes));
    for (b.head = key_head * group; b.head < (key_head + 1) * group; ++b.head)
        for (b.row = 0; b.row < s->query_rows; b.row += ATTENTION_ROWS) {
            int64_t first, last;
            b.rows = least(ATTENTION_ROWS, s->query_rows - b.row);
            attention_visible(&b, &first, &last);
            find_deltas(&b, room);
            memset(room->grad_query, 0, (size_t)(b.rows * a->width * bytes));
            for (b.column = first; b.column < last; b.column += ATTENTION_COLUMNS) {
                b.columns = least(ATTENTION_COLUMNS, last - b.column);
                run_block(j, &b, room);
            }
            store_rows(&b, ATTENTION_GRAD_QUERY, b.head, s->query_start + b.row, b.rows, room->grad_query, a->width);
        }
    store_rows(&b, ATTENTION_GRAD_KEY, key_head, s->key_start, s->key_rows, room->grad_key, a->width);
    store_rows(&b, ATTENTION_GRAD_VALUE, key_head, s->key_start, s->key_rows, room->grad_value, a->value_width);
}

static void run_items(void *argument, int64_t begin, int64_t end)
{
    struct backward_job *const j = argument;
    const struct attention *const a = attention_of(j->plan);
    struct backward_room room;
    if (!find_room(a, &room)) {
        j->failed = 1;
        return;
    }
    for (int64_t item = begin; item < end; ++item)
        run_key_head(j, item % a->batches, item / a->batches, &room);
}

int attention_backward_run(struct plan *plan)
{
    const struct attention *const a = attention_of(plan);
    const struct view *const shift = &plan->operands[ATTENTION_GRAD_SHIFT];
    struct backward_job j = {.plan = plan};
    const int64_t items = a->batches * a->key_heads;
    int64_t grain = 1;
    if (a->shift_gradient >= 0) {
        j.shift_gradient = stage_room(plan, a->shift_gradient);
        memset(j.shift_gradient, 0, (size_t)(shift->count * attention_bytes(a)));
        grain = a->places[ATTENTION_GRAD_SHIFT].head == 0 ? items : a->batches;
    }
    if (items > 0)
        pool_for(items, grain, run_items, &j);
    if (j.shift_gradient)
        stage_store(shift, a->type, j.shift_gradient);
    REQUIRE(!j.failed, ERROR_RT_MEMORY_ALLOCATION, "%s: no memory for the gradients of a head", plan_name(plan));
    return 0;
}
