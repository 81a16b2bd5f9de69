/* Phase 1 of the operators that find distinct slices; see unique_rows.c. */
#ifndef ACLNN_MATH_UNIQUE_ROWS_H
#define ACLNN_MATH_UNIQUE_ROWS_H

#include "aclnn/plan.h"
#include "tensor/tensor.h"

/* inverse and counts may be NULL. */
int unique_rows_plan(enum operator_id id, const struct aclTensor *self, int64_t dim, struct aclTensor *values,
                     struct aclTensor *inverse, struct aclTensor *counts, uint64_t *workspace_size,
                     struct aclOpExecutor **executor);

/* 161001 when an output was asked for and isn't there. */
int unique_check_asked(enum operator_id id, bool asked, const struct aclTensor *tensor, const char *name);

/* Adds an output of indices with room for at least so many. NULL is one that wasn't asked for. */
int unique_add_indices(struct plan *plan, struct aclTensor *tensor, const char *name, int64_t least_count);

#endif
