/* Attention over blocks of queries and keys: what the forward operator and its gradient share.
 *
 * Nothing of the size queries x keys is ever stored: a block of scores is made, used and forgotten, and the gradient makes it
 * again from each row's maximum and sum. Matrices are strided views of the callers' tensors, whatever the layout; the matrix
 * products take them as they lie and widen halves.
 * Invariant: struct attention lies in the plan's extra block and holds no addresses, so that a repeatable plan may be rebound. */
#ifndef ACLNN_TRANSFORMER_ATTENTION_H
#define ACLNN_TRANSFORMER_ATTENTION_H

#include "aclnn/plan.h"
#include "kernels/attention.h"
#include "kernels/convert.h"
#include "kernels/gemm.h"

enum { ATTENTION_ROWS = 128, ATTENTION_COLUMNS = 256 }; /* of a block of scores; within a tile of every gemm kernel */

/* What the operands of a plan are. Forward plans end with ATTENTION_OUT. */
enum attention_operand {
    ATTENTION_QUERY,
    ATTENTION_KEY,
    ATTENTION_VALUE,
    ATTENTION_SHIFT,
    ATTENTION_DROP,
    ATTENTION_MASK,
    ATTENTION_MAXIMUM,
    ATTENTION_SUM,
    ATTENTION_OUT, /* the result; an input of the gradient */
    ATTENTION_GRAD_OUT,
    ATTENTION_GRAD_QUERY,
    ATTENTION_GRAD_KEY,
    ATTENTION_GRAD_VALUE,
    ATTENTION_GRAD_SHIFT,
    ATTENTION_OPERANDS
};

/* Where a tensor's matrices lie: strides in elements; 0 where it is the same for all. */
struct attention_place {
    int64_t batch, head, row, column;
};

/* One sequence: where its rows begin in a packed tensor (0 otherwise), how many there are. */
struct attention_sequence {
    int64_t query_start, query_rows, key_start, key_rows;
    int64_t first_bit; /* of its dropout mask */
    int64_t prefix;    /* keys below it are seen by all queries */
};

struct attention {
    enum accumulate type;
    int64_t batches, heads, key_heads, width, value_width;
    int64_t query_rows, key_rows; /* most of any sequence */
    bool masked, shifted, shift_first, dropped;
    bool banded, from_end; /* keys i - before <= j <= i + after; i counts so that the last query meets the last key */
    int64_t before, after;
    double scale, drop_factor;
    int64_t shift_gradient; /* workspace offset, or -1 */
    struct attention_place places[ATTENTION_OPERANDS];
    struct attention_sequence sequences[];
};

/* A block of scores: some rows of one head against some keys. */
struct attention_block {
    const struct plan *plan;
    const struct attention *a;
    int64_t batch, head;
    const struct attention_sequence *s;
    int64_t row, rows, column, columns; /* within the sequence */
};

static inline const struct attention *attention_of(const struct plan *plan) { return plan->extra; }
static inline int64_t attention_bytes(const struct attention *a) { return accumulate_bytes(a->type); }

/* Address of the first element of a row of an operand's matrix; NULL when there is no such operand. */
char *attention_row(const struct plan *plan, enum attention_operand which, int64_t batch, int64_t head, int64_t row);
/* The matrix (from `row` of the block's sequence on) as an operand of a product; transposed swaps its strides. */
struct gemm_operand attention_matrix(const struct attention_block *b, enum attention_operand which, int64_t head, int64_t row,
                                     bool transposed);
/* The keys that the rows of a block may see at all: [*first, *last). */
void attention_visible(const struct attention_block *b, int64_t *first, int64_t *last);
/* scores[rows][columns] of a block: scaled products, shifted and hidden. row_room: columns values. */
void attention_scores(const struct attention_block *b, void *scores, void *row_room, void *gemm_scratch);
/* Drops what the mask says from a matrix of the block's shape. */
void attention_drop(const struct attention_block *b, void *values);
/* A whole product in the calling thread, tile by tile. */
void attention_multiply(const struct gemm_problem *problem, enum accumulate type, void *gemm_scratch);
enum dtype attention_dtype(const struct attention *a);

int attention_forward_run(struct plan *plan);
int attention_backward_run(struct plan *plan);

#endif
