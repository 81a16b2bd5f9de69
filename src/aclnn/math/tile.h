/* Ranges of a view's elements, in row-major order, to and from tiles; and strided copies. What operators use that treat their
 * operand as a sequence (reductions, scans, random numbers, ranges of numbers, masks).
 *
 * Invariant: nothing here depends on threads; all functions are safe to call from a pool body. */
#ifndef ACLNN_MATH_TILE_H
#define ACLNN_MATH_TILE_H

#include "kernels/convert.h"
#include "tensor/tensor.h"

enum { TILE = 2048, WALK_MAX_DIMS = 2 * TENSOR_MAX_DIMS };

/* Reads elements [first, first + count) of v into a tile of the accumulate type; v isn't complex. */
void tile_read(void *tile, enum accumulate type, const struct view *v, int64_t first, int64_t count);
void tile_write(const struct view *v, int64_t first, int64_t count, const void *tile, enum accumulate type);

/* One number of a tile of floats. */
static inline double tile_value(const void *tile, enum accumulate type, int64_t i)
{
    return type == ACCUMULATE_F64 ? ((const double *)tile)[i] : (double)((const float *)tile)[i];
}
static inline void tile_set_value(void *tile, enum accumulate type, int64_t i, double x)
{
    if (type == ACCUMULATE_F64)
        ((double *)tile)[i] = x;
    else
        ((float *)tile)[i] = (float)x;
}

/* How elements of type `in` enter a sum of `type` whose result is of type `out`: as if they were converted to `out` first. */
convert_load_fn tile_loader(enum dtype in, enum accumulate type, enum dtype out);

/* Elements (of any type) of v to and from contiguous memory, unconverted. */
void tile_gather(void *memory, const struct view *v, int64_t first, int64_t count);
void tile_scatter(const struct view *v, int64_t first, int64_t count, const void *memory);

/* Offset in elements of element `position` (row-major) of a space of these sizes. */
static inline int64_t walk_offset(int64_t position, int ndim, const int64_t *sizes, const int64_t *strides)
{
    int64_t offset = 0;
    for (int i = ndim - 1; i > 0; --i) {
        const int64_t above = position / sizes[i];
        offset += (position - above * sizes[i]) * strides[i];
        position = above;
    }
    return ndim > 0 ? offset + position * strides[0] : 0;
}

/* A copy between two strided places of equal sizes. Strides in elements, may be negative or 0 (input). */
struct strided_copy {
    char *out;
    const char *in;
    int ndim;
    int bytes; /* of an element */
    int64_t sizes[WALK_MAX_DIMS], out_strides[WALK_MAX_DIMS], in_strides[WALK_MAX_DIMS];
};

/* Runs it over the pool; out and in don't overlap. Simplifies *copy first. */
void strided_copy_run(struct strided_copy *copy);
/* out = in for views of equal sizes, converted when the types differ (not from or to complex). */
void view_copy(const struct view *out, const struct view *in);

/* A complex view as one of floats with a last dimension of 2; other views stay as they are. False when dimensions run out. */
bool view_as_real(struct view *v);

#endif
