/* Attributes of the operators of before aclnn (acl/acl_op.h). */
#ifndef TENSOR_ATTRIBUTES_H
#define TENSOR_ATTRIBUTES_H

#include <stddef.h>

#include "acl/acl_op.h"

/* "axis=1, keep_dims=true", cut where the room ends; "" for none (NULL too). */
void attributes_describe(const aclopAttr *attributes, char *text, size_t room);

#endif
