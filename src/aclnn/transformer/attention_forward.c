/* The forward pass: a block of queries meets block after block of keys, and what it summed so far shrinks when a larger score
 * turns up. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnn/transformer/attention.h"
#include "base/arithmetic.h"
#include "kernels/kernels.h"

struct forward_job {
    struct plan *plan;
    int64_t query_blocks;
    _Atomic int failed;
};

/* Of one thread, for one block of queries. */
struct forward_room {
    char *scores, *row, *sums;
    double maximum[ATTENTION_ROWS], sum[ATTENTION_ROWS];
    void *gemm;
};

static bool find_room(const struct attention *a, struct forward_room *room)
{
    const int64_t values = (ATTENTION_ROWS + 1) * ATTENTION_COLUMNS + ATTENTION_ROWS * a->value_width;
    room->gemm = pool_scratch(0, kernels->gemm->scratch_bytes);
    room->scores = pool_scratch(1, (size_t)(values * attention_bytes(a)));
    if (!room->gemm || !room->scores)
        return false;
    room->row = room->scores + ATTENTION_ROWS * ATTENTION_COLUMNS * attention_bytes(a);
    room->sums = room->row + ATTENTION_COLUMNS * attention_bytes(a);
    return true;
}

/* sums = sums + probabilities * values */
static void add_values(const struct attention_block *b, struct forward_room *room, bool first)
{
    const struct attention *const a = b->a;
    const uint8_t dtype = (uint8_t)attention_dtype(a);
    const struct gemm_problem problem = {
        .rows = b->rows,
        .columns = a->value_width,
        .depth = b->columns,
        .a = {.data = room->scores, .row_stride = b->columns, .column_stride = 1, .dtype = dtype},
        .b = attention_matrix(b, ATTENTION_VALUE, b->head / (a->heads / a->key_heads), b->column, false),
        .addend = {.data = room->sums, .row_stride = a->value_width, .column_stride = 1, .dtype = dtype},
        .alpha = 1,
        .beta = first ? 0 : 1,
        .out = room->sums,
        .out_row_stride = a->value_width,
        .out_column_stride = 1,
        .out_dtype = dtype,
        .aside = !first};
    attention_multiply(&problem, a->type, room->gemm);
}

/* All eight lanes of a row's statistic hold the same number. */
static void store_statistic(const struct attention_block *b, enum attention_operand which, int64_t row, double value)
{
    const struct view *const v = &b->plan->operands[which];
    if (v->count == 0)
        return;
    char *const at = attention_row(b->plan, which, b->batch, b->head, b->s->query_start + row);
    for (int64_t lane = 0; lane < v->sizes[v->ndim - 1]; ++lane) {
        const int64_t place = lane * b->a->places[which].column;
        if (v->dtype == DTYPE_F64)
            ((double *)(void *)at)[place] = value;
        else
            ((float *)(void *)at)[place] = (float)value;
    }
}

static void finish_rows(const struct attention_block *b, struct forward_room *room, bool nothing)
{
    const struct attention *const a = b->a;
    const struct attention_float_kernels *const k = &kernels->attention->real[a->type];
    const convert_store_fn store = kernels->convert->store[b->plan->operands[ATTENTION_OUT].dtype][a->type];
    if (nothing)
        memset(room->sums, 0, (size_t)(b->rows * a->value_width * attention_bytes(a)));
    for (int64_t i = 0; i < b->rows; ++i) {
        char *const row = room->sums + i * a->value_width * attention_bytes(a);
        k->scale(row, a->value_width, room->sum[i] == 0 ? 0 : 1 / room->sum[i]);
        store(attention_row(b->plan, ATTENTION_OUT, b->batch, b->head, b->s->query_start + b->row + i),
              a->places[ATTENTION_OUT].column, row, a->value_width);
        store_statistic(b, ATTENTION_MAXIMUM, b->row + i, room->maximum[i]);
        store_statistic(b, ATTENTION_SUM, b->row + i, room->sum[i]);
    }
}

static void run_queries(struct attention_block *b, struct forward_room *room)
{
    const struct attention *const a = b->a;
    const struct attention_float_kernels *const k = &kernels->attention->real[a->type];
    const int64_t bytes = attention_bytes(a);
    int64_t first, last;
    attention_visible(b, &first, &last);
    for (int64_t i = 0; i < b->rows; ++i) {
        room->maximum[i] = -INFINITY;
        room->sum[i] = 0;
    }
    for (b->column = first; b->column < last; b->column += ATTENTION_COLUMNS) {
        b->columns = least(ATTENTION_COLUMNS, last - b->column);
        attention_scores(b, room->scores, room->row, room->gemm);
        for (int64_t i = 0; i < b->rows; ++i) {
            const double factor = k->step(room->scores + i * b->columns * bytes, b->columns, &room->maximum[i], &room->sum[i]);
            if (b->column > first && factor != 1)
                k->scale(room->sums + i * a->value_width * bytes, a->value_width, factor);
        }
        if (a->dropped)
            attention_drop(b, room->scores);
        add_values(b, room, b->column == first);
    }
    finish_rows(b, room, first >= last);
}

static void run_items(void *argument, int64_t begin, int64_t end)
{
    struct forward_job *const j = argument;
    const struct attention *const a = attention_of(j->plan);
    struct forward_room room;
    if (!find_room(a, &room)) {
        j->failed = 1;
        return;
    }
    for (int64_t item = begin; item < end; ++item) {
        struct attention_block b = {.plan = j->plan, .a = a};
        b.row = item % j->query_blocks * ATTENTION_ROWS;
        b.head = item / j->query_blocks % a->heads;
        b.batch = item / j->query_blocks / a->heads;
        b.s = &a->sequences[b.batch];
        b.rows = least(ATTENTION_ROWS, b.s->query_rows - b.row);
        if (b.rows > 0)
            run_queries(&b, &room);
    }
}

int attention_forward_run(struct plan *plan)
{
    const struct attention *const a = attention_of(plan);
    struct forward_job j = {.plan = plan, .query_blocks = (a->query_rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS};
    const int64_t rows = least(a->query_rows, ATTENTION_ROWS);
    if (plan->operands[ATTENTION_OUT].count > 0)
        parallel_for(a->batches * a->heads * j.query_blocks, rows * a->key_rows * (1 + a->width / 8), run_items, &j);
    REQUIRE(!j.failed, ERROR_RT_MEMORY_ALLOCATION, "%s: no memory for a block of scores", plan_name(plan));
    return 0;
}
