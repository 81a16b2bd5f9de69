/* Masks: how many of their elements are set, and where. */
#ifndef ACLNN_MATH_INDEX_MASK_H
#define ACLNN_MATH_INDEX_MASK_H

#include "tensor/tensor.h"

/* Elements that aren't zero (NaN isn't). Any type. */
int64_t mask_count(const struct view *mask);

/* The coordinates of the first `limit` such elements in row-major order: coordinate d of element k goes to
 * out[d * limit + k] (dim_major), or to out[k * ndim + d]. */
void mask_positions(const struct view *mask, int64_t *out, int dim_major, int64_t limit);

#endif
