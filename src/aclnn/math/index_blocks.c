/* The engine of operators that index whole dimensions. See index_blocks.h. */
#include "aclnn/math/index_blocks.h"

#include <stdatomic.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

enum { PIECE = 256, ITEM = 1 << 14 }; /* elements of a block handled together; elements of a pool item */

/* Work is a grid of (block row, piece of the row, range of positions); one item is one cell. */
struct block_grid {
    const struct index_blocks *w;
    enum block_access access;
    bool along_positions; /* the inner loop runs over positions instead of over the block's last dimension */
    int64_t row;          /* elements of a block row: 1 when along_positions */
    int64_t piece, pieces;
    int64_t span, spans; /* positions of a range; ranges */
    int outer_ndim;      /* block dimensions outside the row */
};

/* --- simplification ------------------------------------------------------------------------------------------------- */

static void simplify_block(struct index_blocks *w)
{
    int used = 0;
    for (int i = 0; i < w->block_ndim; ++i) {
        const int64_t size = w->block_sizes[i], a = w->indexed_strides[i], b = w->block_strides[i];
        if (size == 1)
            continue;
        if (used > 0 && w->indexed_strides[used - 1] == a * size && w->block_strides[used - 1] == b * size) {
            w->block_sizes[used - 1] *= size;
            w->indexed_strides[used - 1] = a;
            w->block_strides[used - 1] = b;
            continue;
        }
        w->block_sizes[used] = size;
        w->indexed_strides[used] = a;
        w->block_strides[used++] = b;
    }
    w->block_ndim = used;
}

static void simplify_positions(struct index_blocks *w)
{
    int used = 0;
    for (int i = 0; i < w->position_ndim; ++i) {
        const int64_t size = w->position_sizes[i], stride = w->position_strides[i];
        if (size == 1)
            continue;
        if (used > 0 && w->position_strides[used - 1] == stride * size) {
            w->position_sizes[used - 1] *= size;
            w->position_strides[used - 1] = stride;
            continue;
        }
        w->position_sizes[used] = size;
        w->position_strides[used++] = stride;
    }
    if (used == 0) {
        w->position_sizes[0] = w->position_strides[0] = 1;
        used = 1;
    }
    w->position_ndim = used;
}

/* --- the inner loops -------------------------------------------------------------------------------------------------- */

/* One piece of a block row at positions [first, past). */
static void pieces_at_positions(const struct block_grid *g, char *indexed, char *blocks, int64_t n, int64_t first, int64_t past)
{
    const struct index_blocks *const w = g->w;
    const int64_t bytes = (int64_t)dtype_bytes(w->dtype), a = w->indexed_strides[w->block_ndim - 1];
    const int64_t b = w->block_strides[w->block_ndim - 1];
    const move_fn move = kernels->index->move[move_size(w->dtype)];
    const update_fn add = kernels->index->update[UPDATE_add][w->dtype];
    const bool single = w->position_ndim == 1;
    for (int64_t p = first; p < past; ++p) {
        char *const place = indexed + w->offsets[p] * bytes;
        char *const block = blocks + (single ? p * w->position_strides[0]
                                             : walk_offset(p, w->position_ndim, w->position_sizes, w->position_strides)) *
                                         bytes;
        if (g->access == BLOCKS_READ)
            move(block, b, place, a, n);
        else if (g->access == BLOCKS_WRITE)
            move(place, a, block, b, n);
        else
            add(place, a, block, b, n);
    }
}

/* One element of the block at positions [first, past): gathers and scatters along the last dimension of the positions. */
static void element_at_positions(const struct block_grid *g, char *indexed, char *blocks, int64_t first, int64_t past)
{
    const struct index_blocks *const w = g->w;
    const int64_t bytes = (int64_t)dtype_bytes(w->dtype);
    const int last = w->position_ndim - 1;
    const int64_t run = w->position_sizes[last], stride = w->position_strides[last];
    for (int64_t p = first; p < past;) {
        const int64_t n = least(run - p % run, past - p);
        char *const block = blocks + walk_offset(p, w->position_ndim, w->position_sizes, w->position_strides) * bytes;
        if (g->access == BLOCKS_READ)
            kernels->index->gather[move_size(w->dtype)](block, stride, indexed, 0, w->offsets + p, 1, n);
        else if (g->access == BLOCKS_WRITE)
            kernels->index->scatter[move_size(w->dtype)](indexed, 0, block, stride, w->offsets + p, 1, n);
        else
            kernels->index->scatter_update[UPDATE_add][w->dtype](indexed, 0, block, stride, w->offsets + p, 1, n);
        p += n;
    }
}

static void grid_items(void *argument, int64_t begin, int64_t end)
{
    const struct block_grid *const g = argument;
    const struct index_blocks *const w = g->w;
    const int64_t bytes = (int64_t)dtype_bytes(w->dtype);
    for (int64_t item = begin; item < end; ++item) {
        const int64_t span = item % g->spans, piece = item / g->spans % g->pieces, row = item / g->spans / g->pieces;
        const int64_t first = span * g->span, past = least(first + g->span, w->positions);
        const int64_t column = piece * g->piece;
        int64_t a = walk_offset(row, g->outer_ndim, w->block_sizes, w->indexed_strides);
        int64_t b = walk_offset(row, g->outer_ndim, w->block_sizes, w->block_strides);
        if (g->along_positions) {
            element_at_positions(g, w->indexed + a * bytes, w->blocks + b * bytes, first, past);
            continue;
        }
        a += column * w->indexed_strides[w->block_ndim - 1];
        b += column * w->block_strides[w->block_ndim - 1];
        pieces_at_positions(g, w->indexed + a * bytes, w->blocks + b * bytes, least(g->piece, g->row - column), first, past);
    }
}

void index_blocks_run(struct index_blocks *w, enum block_access access)
{
    struct block_grid g = {.w = w, .access = access};
    int64_t block = 1;
    for (int i = 0; i < w->block_ndim; ++i)
        block *= w->block_sizes[i];
    if (w->positions == 0 || block == 0)
        return;
    simplify_block(w);
    simplify_positions(w);
    const int last = w->block_ndim - 1;
    g.along_positions = last < 0 || (w->block_sizes[last] < 8 && w->positions > w->block_sizes[last]) ||
                        (w->block_strides[last] != 1 && w->position_strides[w->position_ndim - 1] == 1);
    g.outer_ndim = g.along_positions ? w->block_ndim : last;
    g.row = g.along_positions ? 1 : w->block_sizes[last];
    const bool reads = access == BLOCKS_READ;
    g.piece = reads ? g.row : least(g.row, PIECE);
    g.pieces = (g.row + g.piece - 1) / g.piece;
    g.span = reads ? least(w->positions, most(1, ITEM / g.piece)) : w->positions;
    g.spans = (w->positions + g.span - 1) / g.span;
    const int64_t items = block / g.row * g.pieces * g.spans;
    pool_for(items, most(1, ITEM / (g.piece * g.span)), grid_items, &g);
}

/* --- offsets ------------------------------------------------------------------------------------------------------------ */

struct offsets_work {
    const struct index_term *term;
    int64_t *offsets;
    bool wrap, adds;
    _Atomic int64_t first_bad; /* position, or INT64_MAX */
};

static void note_bad(struct offsets_work *w, int64_t position)
{
    int64_t seen = atomic_load(&w->first_bad);
    while (position < seen && !atomic_compare_exchange_weak(&w->first_bad, &seen, position))
        ;
}

static void offsets_range(void *argument, int64_t begin, int64_t end)
{
    struct offsets_work *const w = argument;
    const int64_t size = w->term->size, stride = w->term->stride;
    int64_t tile[TILE];
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t n = least(TILE, end - at);
        int64_t *const offsets = w->offsets + at;
        tile_read(tile, ACCUMULATE_I64, &w->term->index, at, n);
        const int bad = kernels->index->offsets(offsets, tile, n, size, stride, w->wrap, w->adds);
        for (int64_t i = 0; bad && i < n; ++i)
            if (tile[i] >= size || tile[i] < (w->wrap ? -size : 0)) {
                note_bad(w, at + i);
                break;
            }
    }
}

int index_offsets(enum operator_id id, const struct index_term *terms, int count, bool wrap, int64_t *offsets)
{
    for (int t = 0; t < count; ++t) {
        struct offsets_work w = {&terms[t], offsets, wrap, t > 0, INT64_MAX};
        pool_for(terms[t].index.count, ITEM, offsets_range, &w);
        if (w.first_bad == INT64_MAX)
            continue;
        int64_t value;
        tile_read(&value, ACCUMULATE_I64, &terms[t].index, w.first_bad, 1);
        return error_set(ERROR_RT_DEVICE_TASK, operator_name(id), "index %lld is out of bounds for dimension %d with size %lld",
                         (long long)value, terms[t].dim, (long long)terms[t].size);
    }
    return 0;
}

/* --- one index tensor for one dimension --------------------------------------------------------------------------------- */

struct view view_at_least_1d(struct view v)
{
    if (v.ndim == 0) {
        v.ndim = 1;
        v.sizes[0] = v.strides[0] = 1;
    }
    return v;
}

static int on_dim(struct plan *plan, const struct view *indexed, const struct view *index, const struct view *blocks, int dim,
                  enum block_access access, bool wrap)
{
    const enum operator_id id = (enum operator_id)plan->operator_id;
    const bool everywhere = blocks->ndim == 0;
    struct index_blocks w = {.indexed = indexed->data,
                             .blocks = blocks->data,
                             .dtype = (enum dtype)indexed->dtype,
                             .positions = index->count,
                             .position_ndim = index->ndim};
    if (index->count == 0)
        return 0;
    for (int i = 0; i < index->ndim; ++i) {
        w.position_sizes[i] = index->sizes[i];
        w.position_strides[i] = everywhere ? 0 : blocks->strides[dim + i];
    }
    for (int d = 0; d < indexed->ndim; ++d) {
        if (d == dim)
            continue;
        const int from = d < dim ? d : d + index->ndim - 1;
        w.block_sizes[w.block_ndim] = indexed->sizes[d];
        w.indexed_strides[w.block_ndim] = indexed->strides[d];
        w.block_strides[w.block_ndim++] = everywhere ? 0 : blocks->strides[from];
    }
    int64_t *const offsets = pool_scratch(0, (size_t)index->count * sizeof *offsets);
    if (!offsets)
        return error_set(ERROR_BAD_ALLOC, operator_name(id), "no memory for %lld indices", (long long)index->count);
    const struct index_term term = {*index, dim, indexed->sizes[dim], indexed->strides[dim]};
    TRY(index_offsets(id, &term, 1, wrap, offsets));
    w.offsets = offsets;
    index_blocks_run(&w, access);
    return 0;
}

int index_blocks_on_dim(struct plan *plan, const struct view *indexed, const struct view *index, const struct view *blocks, int dim,
                        enum block_access access)
{
    return on_dim(plan, indexed, index, blocks, dim, access, false);
}

int index_blocks_on_dim_wrapping(struct plan *plan, const struct view *indexed, const struct view *index, const struct view *blocks,
                                 int dim, enum block_access access)
{
    return on_dim(plan, indexed, index, blocks, dim, access, true);
}
