/* The engine of operators that index whole dimensions: index_select, embedding, x[i, j] and its assignments.
 *
 * A tensor's indexed dimensions become one list of positions, each an offset in elements; the other dimensions form the block
 * that is found at every position. The other operand ("blocks") holds one block for each position.
 * Invariant: writes to one place happen in the order of positions, so the last one wins and sums are reproducible: work is cut
 * along the blocks, never along the positions, unless it only reads. */
#ifndef ACLNN_MATH_INDEX_BLOCKS_H
#define ACLNN_MATH_INDEX_BLOCKS_H

#include "aclnn/math/tile.h"
#include "aclnn/plan.h"

enum block_access { BLOCKS_READ, BLOCKS_WRITE, BLOCKS_ADD };

struct index_blocks {
    char *indexed;
    char *blocks;
    enum dtype dtype;
    int64_t positions;
    const int64_t *offsets; /* into indexed, one for each position */
    int position_ndim;      /* how the positions lie in blocks */
    int64_t position_sizes[TENSOR_MAX_DIMS], position_strides[TENSOR_MAX_DIMS];
    int block_ndim;
    int64_t block_sizes[TENSOR_MAX_DIMS], indexed_strides[TENSOR_MAX_DIMS], block_strides[TENSOR_MAX_DIMS];
};

/* READ: blocks = indexed; WRITE: indexed = blocks; ADD: indexed += blocks. Simplifies *work first. */
void index_blocks_run(struct index_blocks *work, enum block_access access);

/* One index tensor among those that select positions. */
struct index_term {
    struct view index;    /* i64 or i32, expanded to the common sizes */
    int dim;              /* of the indexed tensor, for messages */
    int64_t size, stride; /* of that dimension */
};

/* offsets[p] = sum over terms of index[p] * stride. Negative indices count from the end if `wrap`.
 * Out of range: ERROR_RT_DEVICE_TASK, naming the first bad one. */
int index_offsets(enum operator_id id, const struct index_term *terms, int count, bool wrap, int64_t *offsets);

/* The common case of one index tensor for one dimension. blocks has the indexed tensor's dimensions, with the index's in place
 * of dim; or stands for one element everywhere when it has none. The indexed tensor has at least one dimension. The second
 * form lets negative indices count from the end. Offsets take scratch 0. */
int index_blocks_on_dim(struct plan *plan, const struct view *indexed, const struct view *index, const struct view *blocks, int dim,
                        enum block_access access);
int index_blocks_on_dim_wrapping(struct plan *plan, const struct view *indexed, const struct view *index, const struct view *blocks,
                                 int dim, enum block_access access);

/* A tensor without dimensions as one of one element. */
struct view view_at_least_1d(struct view v);

#endif
