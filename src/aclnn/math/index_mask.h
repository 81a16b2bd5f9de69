/* Masks: how many of their elements are set, and where. */
#ifndef ACLNN_MATH_INDEX_MASK_H
#define ACLNN_MATH_INDEX_MASK_H

#include "tensor/tensor.h"

/* How many elements aren't zero (NaN isn't). Any type. False: no memory for the counts. */
bool mask_count(const struct view *mask, int64_t *count);

/* The coordinates of the first `limit` such elements in row-major order: coordinate d of element k goes to
 * out[d * limit + k] (dim_major), or to out[k * ndim + d]. False: no memory. */
bool mask_positions(const struct view *mask, int64_t *out, int dim_major, int64_t limit);

#endif
