/* Checks that phase 1 of many operators makes. See operand_check.h. */
#include "aclnn/math/operand_check.h"

#include <string.h>

int check_sizes(const struct plan *plan, const struct view *v, const char *parameter, const int64_t *sizes, int ndim)
{
    struct view wanted = {.dtype = v->dtype, .ndim = (uint8_t)ndim};
    if (ndim > 0) /* sizes may be NULL otherwise */
        memcpy(wanted.sizes, sizes, (size_t)ndim * sizeof *sizes);
    if (view_same_sizes(v, &wanted))
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s is %s, expected %s", parameter, view_text(v), view_text(&wanted));
}

int check_same_dtype(const struct plan *plan, const struct view *a, const char *a_name, const struct view *b, const char *b_name)
{
    if (a->dtype == b->dtype)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s has data type %s and %s has %s; they must be equal", a_name,
                     dtype_name((enum dtype)a->dtype), b_name, dtype_name((enum dtype)b->dtype));
}

int check_not_complex(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (dtype_kind((enum dtype)v->dtype) != KIND_COMPLEX)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s has data type %s; real types are allowed", parameter,
                     dtype_name((enum dtype)v->dtype));
}

int check_floating(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (dtype_is_floating((enum dtype)v->dtype))
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s has data type %s; f64, f32, f16 and bf16 are allowed", parameter,
                     dtype_name((enum dtype)v->dtype));
}

int check_window_types(const struct plan *plan, enum dtype large, enum dtype small, bool integers)
{
    if (integers && large == small && dtype_kind(large) == KIND_INTEGER)
        return 0;
    REQUIRE(dtype_is_floating(large) && dtype_is_floating(small), ACLNN_ERROR_PARAM,
            "%s: types %s and %s; allowed are f64, f32, f16, bf16", plan_name(plan), dtype_name(large), dtype_name(small));
    return 0;
}

int check_factor(const struct plan *plan, const struct aclScalar *factor, const char *parameter, enum dtype dtype)
{
    if (!factor || dtype_kind(factor->dtype) != KIND_COMPLEX || dtype_kind(dtype) == KIND_COMPLEX)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s is complex (%s), the tensors are %s; a real factor is needed",
                     parameter, dtype_name(factor->dtype), dtype_name(dtype));
}

int check_index_dtype(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (v->dtype == DTYPE_I64 || v->dtype == DTYPE_I32)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s has data type %s; i64 and i32 are allowed", parameter,
                     dtype_name((enum dtype)v->dtype));
}

int check_output_not_expanded(const struct plan *plan, const struct view *v, const char *parameter)
{
    if (!view_overlaps_itself(v))
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "elements of %s share memory (an expanded tensor can't be written)",
                     parameter);
}

int check_dim(const struct plan *plan, int64_t dim, const struct view *v, const char *parameter, int *wrapped)
{
    *wrapped = view_wrap_dim(dim, v->ndim);
    if (*wrapped >= 0)
        return 0;
    const int range = v->ndim > 0 ? v->ndim : 1;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "%s is %lld; a tensor of %d dimensions takes [%d, %d]", parameter,
                     (long long)dim, v->ndim, -range, range - 1);
}

int check_dims(const struct plan *plan, const struct aclIntArray *dims, const struct view *v, uint32_t *mask)
{
    *mask = 0;
    if (!dims || dims->count == 0) {
        *mask = (1u << v->ndim) - 1;
        return 0;
    }
    for (uint64_t i = 0; i < dims->count; ++i) {
        int d;
        TRY(check_dim(plan, dims->values[i], v, "dim", &d));
        if (*mask >> d & 1)
            return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "dim %d appears twice in the list of dims", d);
        *mask |= 1u << d;
    }
    *mask &= (1u << v->ndim) - 1; /* a 0-dimensional tensor accepts dim 0 and has nothing to reduce */
    return 0;
}

int check_not_null(const struct plan *plan, const void *handle, const char *parameter)
{
    if (handle)
        return 0;
    return error_set(ACLNN_ERROR_NULLPTR, plan_name(plan), "%s is null", parameter);
}

int finish_by_size(struct plan *plan, uint64_t workspace, uint64_t *workspace_size, struct aclOpExecutor **executor)
{
    enum { SMALL = 2048 };
    int64_t elements = 0;
    for (int i = 0; i < plan->operand_count; ++i)
        elements += plan->operands[i].count;
    for (int64_t i = 0; i < plan->extra_view_count; ++i)
        elements += plan->extra_views[i].count;
    plan->task.flags = elements <= SMALL ? TASK_SMALL : 0;
    return plan_finish(plan, workspace, workspace_size, executor);
}
