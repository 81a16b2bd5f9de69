/* ConstantPadNd: a frame of one value around a tensor; negative widths cut instead. */
#include "aclnn/math/operand_check.h"
#include "aclnn/math/scalar_element.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"

struct pad_job {
    _Alignas(8) char element[16];
    int64_t before[TENSOR_MAX_DIMS], after[TENSOR_MAX_DIMS]; /* of each dimension */
};

static void fill(const struct view *to, const char *element)
{
    struct strided_copy copy = {.out = to->data, .in = element, .ndim = to->ndim, .bytes = (int)dtype_bytes((enum dtype)to->dtype)};
    for (int d = 0; d < to->ndim; ++d) {
        copy.sizes[d] = to->sizes[d];
        copy.out_strides[d] = to->strides[d];
    }
    strided_copy_run(&copy);
}

/* Operands: self, out. */
static int pad_run(struct plan *plan)
{
    const struct pad_job *const job = PLAN_IMMEDIATE(plan, struct pad_job);
    struct view from = plan->operands[0], to = plan->operands[1];
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)to.dtype);
    if (to.count == 0)
        return 0;
    fill(&to, job->element);
    for (int d = 0; d < to.ndim; ++d) {
        const int64_t before = job->before[d], after = job->after[d];
        to.data += (before > 0 ? before : 0) * to.strides[d] * bytes;
        from.data += (before < 0 ? -before : 0) * from.strides[d] * bytes;
        from.sizes[d] += (before < 0 ? before : 0) + (after < 0 ? after : 0);
        if (from.sizes[d] <= 0) /* everything was cut */
            return 0;
        to.sizes[d] = from.sizes[d];
    }
    view_refresh(&from);
    view_refresh(&to);
    if (from.count > 0)
        view_copy(&to, &from);
    return 0;
}

/* pad: (before, after) of the last dimension, then of the one before it ... */
static int read_widths(struct plan *plan, const aclIntArray *pad, const struct view *from, int64_t *sizes)
{
    struct pad_job *const job = PLAN_IMMEDIATE(plan, struct pad_job);
    const char *const name = plan_name(plan);
    if (pad->count % 2 != 0 || pad->count > 2 * (uint64_t)from->ndim)
        return error_set(ACLNN_ERROR_PARAM, name, "pad has %llu values; self %s takes an even number up to %d",
                         (unsigned long long)pad->count, view_text(from), 2 * from->ndim);
    for (int d = 0; d < from->ndim; ++d) {
        const uint64_t pair = (uint64_t)(from->ndim - 1 - d);
        job->before[d] = pair < pad->count / 2 ? pad->values[2 * pair] : 0;
        job->after[d] = pair < pad->count / 2 ? pad->values[2 * pair + 1] : 0;
        if (__builtin_add_overflow(from->sizes[d], job->before[d], &sizes[d]) ||
            __builtin_add_overflow(sizes[d], job->after[d], &sizes[d]) || sizes[d] < 0)
            return error_set(ACLNN_ERROR_PARAM, name, "pad leaves no size for dimension %d of %s: %lld before, %lld behind", d,
                             view_text(from), (long long)job->before[d], (long long)job->after[d]);
    }
    return 0;
}

static int pad_checked(struct plan *plan, const aclTensor *self, const aclIntArray *pad, const aclScalar *value, aclTensor *out)
{
    struct view *from, *to;
    int64_t sizes[TENSOR_MAX_DIMS];
    TRY(plan_input(plan, self, "self", &from));
    TRY(check_not_null(plan, pad, "pad"));
    TRY(check_not_null(plan, value, "value"));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_same_dtype(plan, from, "self", to, "out"));
    TRY(check_output_not_expanded(plan, to, "out"));
    TRY(check_factor(plan, value, "value", (enum dtype)to->dtype));
    TRY(read_widths(plan, pad, from, sizes));
    TRY(check_sizes(plan, to, "out", sizes, from->ndim));
    element_from_scalar(PLAN_IMMEDIATE(plan, struct pad_job)->element, (enum dtype)to->dtype, value);
    return 0;
}

aclnnStatus aclnnConstantPadNdGetWorkspaceSize(const aclTensor *self, const aclIntArray *pad, const aclScalar *value,
                                               aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_ConstantPadNd, pad_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, pad_checked(plan, self, pad, value, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ConstantPadNd)
