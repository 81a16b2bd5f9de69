/* Operands of network operators as contiguous memory of the type that their kernels compute in.
 *
 * Phase 1 asks for each operand (stage_operand); one that is already contiguous and of that type is used in place, any other
 * gets room in the plan's workspace. Phase 2 reads (stage_read), asks for the place to write (stage_target) and brings results
 * home (stage_write_back). struct staging is the first member of an operator's immediates.
 * Invariant: offsets are multiples of 64, so kernels may rely on aligned scratch in the workspace. */
#ifndef ACLNN_NN_STAGING_H
#define ACLNN_NN_STAGING_H

#include "aclnn/math/tile.h"
#include "aclnn/plan.h"
#include "base/pool.h"
#include "kernels/convert.h"

struct staging {
    int64_t offset[PLAN_OPERANDS]; /* into the workspace; < 0: in place */
    uint8_t type[PLAN_OPERANDS];   /* enum accumulate */
    uint64_t bytes;                /* workspace asked for so far */
};

void stage_begin(struct staging *s);
/* view: one of plan->operands. An absent operand (data NULL) needs nothing. */
void stage_operand(struct plan *plan, struct staging *s, const struct view *view, enum accumulate type);
/* Room of the plan's own; returns its offset. */
int64_t stage_reserve(struct staging *s, uint64_t bytes);

/* NULL for an absent operand. */
const void *stage_read(struct plan *plan, const struct staging *s, int operand);
void *stage_target(struct plan *plan, const struct staging *s, int operand);
void stage_write_back(struct plan *plan, const struct staging *s, int operand);
static inline void *stage_room(struct plan *plan, int64_t offset) { return (char *)plan->workspace + offset; }

/* Copies between a view and contiguous memory, by the pool. */
void stage_load(const struct view *view, enum accumulate type, void *memory);
void stage_store(const struct view *view, enum accumulate type, const void *memory);

/* One number of an operand as stage_read or stage_target gave it; an absent one reads as `otherwise`, and keeps nothing. */
static inline double staged_value(const void *values, enum accumulate type, int64_t i, double otherwise)
{
    return values ? tile_value(values, type, i) : otherwise;
}
static inline void staged_set_value(void *values, enum accumulate type, int64_t i, double x)
{
    if (values)
        tile_set_value(values, type, i, x);
}

/* Phase 1 of an operand of `count` floating values, in any shape, or none at all: checks and stages it. */
int stage_values(struct plan *plan, struct staging *s, int operand, int64_t count, const char *parameter, enum accumulate type);

/* a * b, or a large number: the cost of an item, which is only looked at, may overflow where tensors are empty. */
static inline int64_t cost_of(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > INT64_MAX / 1024 ? INT64_MAX / 1024 : product;
}

/* The product of sizes [first, past) in *product; false when it is too large, as an empty tensor's may be. */
static inline bool multiply_sizes(const struct view *v, int first, int past, int64_t *product)
{
    *product = 1;
    for (int d = first; d < past; ++d)
        if (__builtin_mul_overflow(*product, v->sizes[d], product))
            return false;
    return true;
}

/* pool_for for items that are independent of each other: pieces big enough to be worth a thread (cost: elements an item
 * touches), small enough that the threads end together. */
void parallel_for(int64_t count, int64_t cost, pool_body_fn body, void *argument);

#endif
