/* Blocks of scores. See attention.h. */
#include "aclnn/transformer/attention.h"

#include "base/arithmetic.h"
#include "kernels/kernels.h"

enum dtype attention_dtype(const struct attention *a) { return a->type == ACCUMULATE_F64 ? DTYPE_F64 : DTYPE_F32; }

char *attention_row(const struct plan *plan, enum attention_operand which, int64_t batch, int64_t head, int64_t row)
{
    const struct view *const v = &plan->operands[which];
    const struct attention_place *const p = &attention_of(plan)->places[which];
    const int64_t offset = batch * p->batch + head * p->head + row * p->row;
    return v->data ? v->data + offset * (int64_t)dtype_bytes((enum dtype)v->dtype) : NULL;
}

struct gemm_operand attention_matrix(const struct attention_block *b, enum attention_operand which, int64_t head, int64_t row,
                                     bool transposed)
{
    const struct attention_place *const p = &b->a->places[which];
    const bool of_keys = which == ATTENTION_KEY || which == ATTENTION_VALUE;
    const int64_t start = of_keys ? b->s->key_start : b->s->query_start;
    return (struct gemm_operand){.data = attention_row(b->plan, which, b->batch, head, start + row),
                                 .row_stride = transposed ? p->column : p->row,
                                 .column_stride = transposed ? p->row : p->column,
                                 .dtype = b->plan->operands[which].dtype};
}

void attention_multiply(const struct gemm_problem *problem, enum accumulate type, void *gemm_scratch)
{
    const struct gemm_kernels *const k = kernels->gemm;
    const gemm_tile_fn run = k->tile[type == ACCUMULATE_F64 ? DTYPE_F64 : DTYPE_F32];
    for (int64_t column = 0; column < problem->columns; column += k->tile_columns)
        for (int64_t row = 0; row < problem->rows; row += k->tile_rows) {
            const struct gemm_tile tile = {.row = row,
                                           .rows = least(k->tile_rows, problem->rows - row),
                                           .column = column,
                                           .columns = least(k->tile_columns, problem->columns - column)};
            run(problem, &tile, gemm_scratch);
        }
}

/* The keys that one row sees, but for a prefix. */
static void band_of_row(const struct attention_block *b, int64_t row, int64_t *first, int64_t *last)
{
    const struct attention *const a = b->a;
    const int64_t at = row + (a->from_end ? b->s->key_rows - b->s->query_rows : 0);
    *first = at - a->before > 0 ? at - a->before : 0;
    *last = least(at + a->after + 1, b->s->key_rows);
    if (*last < *first)
        *last = *first = least(*first, b->s->key_rows);
}

void attention_visible(const struct attention_block *b, int64_t *first, int64_t *last)
{
    *first = 0;
    *last = b->s->key_rows;
    if (!b->a->banded || b->rows == 0)
        return;
    int64_t ignored;
    band_of_row(b, b->row, first, &ignored);
    band_of_row(b, b->row + b->rows - 1, &ignored, last);
    if (b->s->prefix > 0) {
        *first = 0;
        *last = *last > b->s->prefix ? *last : b->s->prefix;
    }
}

static void hide_outside_band(const struct attention_block *b, int64_t row, char *scores)
{
    static const uint8_t hidden = 1;
    const struct attention_float_kernels *const k = &kernels->attention->real[b->a->type];
    const int64_t bytes = attention_bytes(b->a), end = b->column + b->columns;
    int64_t first, last;
    band_of_row(b, row, &first, &last);
    const int64_t shown = b->s->prefix > b->column ? b->s->prefix : b->column; /* the part before it stays as it is */
    first = least(first, end);
    if (first > shown)
        k->hide(scores + (shown - b->column) * bytes, &hidden, 0, first - shown);
    last = last > shown ? last : shown;
    if (last < end)
        k->hide(scores + (last - b->column) * bytes, &hidden, 0, end - last);
}

static void shift_row(const struct attention_block *b, int64_t row, char *scores, void *room)
{
    const struct attention *const a = b->a;
    const struct view *const v = &b->plan->operands[ATTENTION_SHIFT];
    const int64_t stride = a->places[ATTENTION_SHIFT].column;
    const char *const from = attention_row(b->plan, ATTENTION_SHIFT, b->batch, b->head, row) +
                             b->column * stride * (int64_t)dtype_bytes((enum dtype)v->dtype);
    kernels->convert->load[v->dtype][a->type](room, from, stride, b->columns);
    kernels->attention->real[a->type].add(scores, room, b->columns, a->shift_first ? a->scale : 1);
}

void attention_scores(const struct attention_block *b, void *scores, void *row_room, void *gemm_scratch)
{
    const struct attention *const a = b->a;
    const int64_t key_head = b->head / (a->heads / a->key_heads), mask_stride = a->places[ATTENTION_MASK].column;
    const struct gemm_problem problem = {.rows = b->rows,
                                         .columns = b->columns,
                                         .depth = a->width,
                                         .a = attention_matrix(b, ATTENTION_QUERY, b->head, b->row, false),
                                         .b = attention_matrix(b, ATTENTION_KEY, key_head, b->column, true),
                                         .alpha = a->scale,
                                         .out = scores,
                                         .out_row_stride = b->columns,
                                         .out_column_stride = 1,
                                         .out_dtype = (uint8_t)attention_dtype(a)};
    attention_multiply(&problem, a->type, gemm_scratch);
    for (int64_t i = 0; i < b->rows; ++i) {
        char *const row = (char *)scores + i * b->columns * attention_bytes(a);
        if (a->shifted)
            shift_row(b, b->row + i, row, row_room);
        if (a->masked) {
            const char *const mask = attention_row(b->plan, ATTENTION_MASK, b->batch, b->head, b->row + i);
            kernels->attention->real[a->type].hide(row, (const uint8_t *)mask + b->column * mask_stride, mask_stride, b->columns);
        }
        if (a->banded)
            hide_outside_band(b, b->row + i, row);
    }
}

void attention_drop(const struct attention_block *b, void *values)
{
    const struct attention *const a = b->a;
    const uint8_t *const bits = (const uint8_t *)b->plan->operands[ATTENTION_DROP].data;
    for (int64_t i = 0; i < b->rows; ++i) {
        const int64_t at = b->s->first_bit + (b->head * b->s->query_rows + b->row + i) * b->s->key_rows + b->column;
        kernels->attention->real[a->type].drop((char *)values + i * b->columns * attention_bytes(a), bits, at, b->columns,
                                               a->drop_factor);
    }
}
