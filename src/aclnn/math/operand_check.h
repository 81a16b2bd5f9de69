/* Checks that phase 1 of many operators makes. Each returns 0, or a code after error_set with a text that names the operator,
 * the parameter, what was given and what is allowed. For use in PLAN_TRY. */
#ifndef ACLNN_MATH_OPERAND_CHECK_H
#define ACLNN_MATH_OPERAND_CHECK_H

#include "aclnn/plan.h"

int check_sizes(const struct plan *plan, const struct view *v, const char *parameter, const int64_t *sizes, int ndim);
int check_same_dtype(const struct plan *plan, const struct view *a, const char *a_name, const struct view *b, const char *b_name);
int check_not_complex(const struct plan *plan, const struct view *v, const char *parameter);
int check_floating(const struct plan *plan, const struct view *v, const char *parameter);
/* Both floating, or with `integers` also the same integer type. */
int check_window_types(const struct plan *plan, enum dtype large, enum dtype small, bool integers);
/* A complex factor (NULL: there is none) multiplies complex tensors only. */
int check_factor(const struct plan *plan, const struct aclScalar *factor, const char *parameter, enum dtype dtype);
/* i64 or i32 */
int check_index_dtype(const struct plan *plan, const struct view *v, const char *parameter);
int check_output_not_expanded(const struct plan *plan, const struct view *v, const char *parameter);
/* Turns a dim argument, maybe negative, into a dimension of v (0 for a 0-dimensional one). */
int check_dim(const struct plan *plan, int64_t dim, const struct view *v, const char *parameter, int *wrapped);
/* Bit set for each dim of the list; all dimensions for a NULL or empty one. */
int check_dims(const struct plan *plan, const struct aclIntArray *dims, const struct view *v, uint32_t *mask);
/* plan_finish for an operator whose work grows with its operands: small ones may run in the caller. */
int finish_by_size(struct plan *plan, uint64_t workspace, uint64_t *workspace_size, struct aclOpExecutor **executor);
int check_not_null(const struct plan *plan, const void *handle, const char *parameter);

#endif
