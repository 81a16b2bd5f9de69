/* The engine of all reductions: geometry, cutting, and the fixed order of combination.
 *
 * Invariant: which elements are combined in which order depends on sizes, strides and dimensions only. A reduction's elements
 * form a sequence (row-major over the reduced dimensions, largest stride first); blocks of it are folded by kernels, and the
 * blocks' results in a binary tree. Long sequences with few results are cut into segments for the pool. */
#ifndef ACLNN_MATH_REDUCE_ENGINE_H
#define ACLNN_MATH_REDUCE_ENGINE_H

#include "aclnn/math/tile.h"
#include "kernels/reduce.h"

struct reduction {
    const char *data;
    enum dtype dtype;     /* of the input; never complex */
    enum accumulate type; /* of tiles and results */
    convert_load_fn load; /* elements to tiles; reduction_prepare's may be replaced */
    int kept_ndim, reduced_ndim;
    int64_t kept_sizes[TENSOR_MAX_DIMS], kept_strides[TENSOR_MAX_DIMS];
    int64_t reduced_sizes[TENSOR_MAX_DIMS], reduced_strides[TENSOR_MAX_DIMS];
    int64_t kept_count, reduced_count; /* results; elements that go into each */
    bool whole_runs;                   /* blocks end where the innermost reduced dimension does, so that they need no copy */
    bool columns;                      /* neighbours in memory belong to different results */
    int64_t chunk;                     /* results of one work item */
    int64_t chunks;                    /* work items that cover all results */
    int64_t segment, segments;         /* elements of one segment; segments of a sequence */
    /* What to do; set by reduction_run. */
    enum fold fold;
    enum map map;
    double parameter;
    const char *center; /* kept_count values of `type`, or NULL */
    char *results;      /* segments x kept_count values of `type` */
    int64_t *where;     /* with results: positions in the sequence, or NULL (arg reductions only) */
};

/* mask: bit d set = dimension d is reduced. in isn't complex. */
void reduction_prepare(struct reduction *r, const struct view *in, uint32_t mask, enum accumulate type);

/* Bytes that results (and where, when positions are asked for) need. */
static inline int64_t reduction_bytes(const struct reduction *r)
{
    return (r->segments * r->kept_count * accumulate_bytes(r->type) + 63) / 64 * 64;
}
static inline int64_t reduction_where_bytes(const struct reduction *r) { return r->segments * r->kept_count * 8; }

/* Leaves kept_count results at the start of `results`, row-major over the kept dimensions. center: as long, or NULL.
 * Sequences of length 0 give the fold's identity. */
void reduction_run(struct reduction *r, enum fold fold, enum map map, double parameter, const void *center, void *results);
/* Max or min with positions; reduced_count > 0. The first of equals wins, NaN wins over all. A position is that of the
 * sequence, so reduce one dimension, or all of a contiguous tensor. */
void reduction_run_arg(struct reduction *r, enum fold fold, void *results, int64_t *where);

#endif
