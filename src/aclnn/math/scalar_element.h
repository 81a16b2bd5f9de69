/* Scalars as elements of a tensor's type. */
#ifndef ACLNN_MATH_SCALAR_ELEMENT_H
#define ACLNN_MATH_SCALAR_ELEMENT_H

#include "tensor/tensor.h"

/* Writes the scalar's value as one element of the type. */
void element_from_scalar(void *element, enum dtype dtype, const struct aclScalar *scalar);
/* Writes a number; infinities become the largest and smallest value of types that have none. */
void element_limit(void *element, enum dtype dtype, double value);

#endif
