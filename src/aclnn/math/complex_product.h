/* Products of complex numbers, whole or running. The reduction engine works on real parts, where sums fall apart into two; products
 * don't.
 *
 * Invariant: factors are taken in row-major order, in double precision, whatever the number of threads. */
#ifndef ACLNN_MATH_COMPLEX_PRODUCT_H
#define ACLNN_MATH_COMPLEX_PRODUCT_H

#include "aclnn/plan.h"

/* out (of a complex type, row-major over the dimensions that aren't in the mask) = products of in over those that are. */
void complex_product(const struct view *out, const struct view *in, uint32_t mask);
/* out[..., i, ...] = in[..., 0, ...] * ... * in[..., i, ...] along dim; of equal sizes, at least 1-dimensional. */
void complex_running_product(const struct view *out, const struct view *in, int dim);

#endif
