/* RepeatInterleave: each element (or slice along a dimension) several times in a row, as often as one number or a tensor says.
 * ChannelShuffle, which rearranges slices too. */
#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"

enum { FLATTENED = -1 };

struct repeat_job {
    int dim; /* or FLATTENED: self as one sequence, out of one dimension */
    int64_t times;
};

static int64_t index_at(const struct view *v, int64_t i)
{
    const char *const at = v->data + i * (v->ndim > 0 ? v->strides[0] : 0) * (int64_t)dtype_bytes((enum dtype)v->dtype);
    return v->dtype == DTYPE_I64 ? *(const int64_t *)(const void *)at : *(const int32_t *)(const void *)at;
}

/* --- by one number: operands self, out ------------------------------------------------------------------------------------- */

static int number_run(struct plan *plan)
{
    const struct repeat_job *const job = PLAN_IMMEDIATE(plan, struct repeat_job);
    const struct view *const from = &plan->operands[0], *const to = &plan->operands[1];
    struct strided_copy copy = {.out = to->data, .in = from->data, .bytes = (int)dtype_bytes((enum dtype)to->dtype)};
    int64_t behind = to->ndim > 0 ? to->strides[0] : 0; /* FLATTENED: what one step in the dimension means in out */
    if (to->count == 0)
        return 0;
    for (int d = from->ndim - 1; d >= 0; --d) {
        const bool repeated = d == job->dim;
        copy.sizes[copy.ndim] = from->sizes[d];
        copy.in_strides[copy.ndim] = from->strides[d];
        copy.out_strides[copy.ndim++] = job->dim == FLATTENED ? behind * job->times : to->strides[d] * (repeated ? job->times : 1);
        behind *= from->sizes[d];
    }
    copy.sizes[copy.ndim] = job->times;
    copy.in_strides[copy.ndim] = 0;
    copy.out_strides[copy.ndim++] = job->dim == FLATTENED ? to->strides[0] : to->strides[job->dim];
    strided_copy_run(&copy);
    return 0;
}

static int begin(struct plan *plan, const aclTensor *self, aclTensor *out, struct view **from, struct view **to)
{
    TRY(plan_input(plan, self, "self", from));
    TRY(plan_output(plan, out, "out", to));
    TRY(check_same_dtype(plan, *from, "self", *to, "out"));
    return check_output_not_expanded(plan, *to, "out");
}

/* out's sizes are self's but for the repeated dimension, which is outputSize. */
static int check_out(const struct plan *plan, const struct view *from, const struct view *to, int dim, int64_t output_size)
{
    int64_t sizes[TENSOR_MAX_DIMS] = {0};
    for (int d = 0; d < from->ndim; ++d)
        sizes[d] = from->sizes[d];
    sizes[dim == FLATTENED ? 0 : dim] = output_size;
    return check_sizes(plan, to, "out", sizes, dim == FLATTENED ? 1 : from->ndim);
}

static int number_checked(struct plan *plan, const aclTensor *self, int64_t repeats, const int64_t *dim, int64_t output_size,
                          aclTensor *out)
{
    struct view *from, *to;
    struct repeat_job *const job = PLAN_IMMEDIATE(plan, struct repeat_job);
    TRY(begin(plan, self, out, &from, &to));
    *job = (struct repeat_job){.dim = FLATTENED, .times = repeats};
    if (dim && from->ndim > 0)
        TRY(check_dim(plan, *dim, from, "dim", &job->dim));
    const int64_t length = job->dim == FLATTENED ? from->count : from->sizes[job->dim];
    int64_t wanted;
    if (repeats < 0 || __builtin_mul_overflow(length, repeats, &wanted) || wanted != output_size)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                         "repeats is %lld and outputSize %lld; self %s has %lld entries to repeat", (long long)repeats,
                         (long long)output_size, view_text(from), (long long)length);
    return check_out(plan, from, to, job->dim, output_size);
}

aclnnStatus aclnnRepeatInterleaveIntGetWorkspaceSize(const aclTensor *self, int64_t repeats, int64_t outputSize, aclTensor *out,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_RepeatInterleaveInt, number_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, number_checked(plan, self, repeats, NULL, outputSize, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(RepeatInterleaveInt)

aclnnStatus aclnnRepeatInterleaveIntWithDimGetWorkspaceSize(const aclTensor *self, int64_t repeats, int64_t dim, int64_t outputSize,
                                                            aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_RepeatInterleaveIntWithDim, number_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, number_checked(plan, self, repeats, &dim, outputSize, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(RepeatInterleaveIntWithDim)

/* --- by a tensor: operands self, repeats, out ------------------------------------------------------------------------------- */

/* The sum of repeats, one for each of `length` entries (or one for all), must be what out has room for. */
static int check_repeats(const struct plan *plan, const struct view *repeats, int64_t length, int64_t room)
{
    int64_t total = 0;
    for (int64_t i = 0; i < length; ++i) {
        const int64_t times = index_at(repeats, repeats->count == 1 ? 0 : i);
        if (times < 0 || __builtin_add_overflow(total, times, &total))
            return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "repeats[%lld] is %lld; it must not be negative", (long long)i,
                             (long long)times);
    }
    if (total != room)
        return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "repeats add up to %lld, but out has room for %lld",
                         (long long)total, (long long)room);
    return 0;
}

static int tensor_run(struct plan *plan)
{
    const int dim = PLAN_IMMEDIATE(plan, struct repeat_job)->dim;
    const struct view *const repeats = &plan->operands[1];
    struct view from = plan->operands[0], to = plan->operands[2];
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)from.dtype), length = from.ndim > 0 ? from.sizes[dim] : 1;
    const int64_t from_step = from.ndim > 0 ? from.strides[dim] * bytes : 0, to_step = to.strides[dim] * bytes;
    TRY(check_repeats(plan, repeats, length, to.sizes[dim]));
    if (from.ndim == 0) {
        from.ndim = 1;
        from.sizes[0] = 1;
    }
    from.strides[dim] = 0; /* one slice, as often as wanted */
    for (int64_t i = 0; i < length; ++i) {
        const int64_t times = index_at(repeats, repeats->count == 1 ? 0 : i);
        from.sizes[dim] = to.sizes[dim] = times;
        view_refresh(&from);
        view_refresh(&to);
        if (from.count > 0)
            view_copy(&to, &from);
        from.data += from_step;
        to.data += times * to_step;
    }
    return 0;
}

/* self as one sequence: element after element. */
static int flat_run(struct plan *plan)
{
    const struct view *const from = &plan->operands[0], *const repeats = &plan->operands[1];
    struct view to = plan->operands[2];
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)from->dtype), step = to.strides[0] * bytes;
    _Alignas(16) char element[16];
    TRY(check_repeats(plan, repeats, from->count, to.sizes[0]));
    const struct view single = {.data = element, .dtype = from->dtype, .ndim = 1, .sizes = {1}, .strides = {0}};
    for (int64_t i = 0; i < from->count; ++i) {
        struct view again = single;
        again.sizes[0] = to.sizes[0] = index_at(repeats, repeats->count == 1 ? 0 : i);
        view_refresh(&again);
        view_refresh(&to);
        tile_gather(element, from, i, 1);
        if (again.count > 0)
            view_copy(&to, &again);
        to.data += again.sizes[0] * step;
    }
    return 0;
}

static int tensor_checked(struct plan *plan, const aclTensor *self, const aclTensor *repeats, const int64_t *dim,
                          int64_t output_size, aclTensor *out)
{
    struct view *from, *times, *to;
    struct repeat_job *const job = PLAN_IMMEDIATE(plan, struct repeat_job);
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_input(plan, repeats, "repeats", &times));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_same_dtype(plan, from, "self", to, "out"));
    TRY(check_index_dtype(plan, times, "repeats"));
    TRY(check_output_not_expanded(plan, to, "out"));
    job->dim = FLATTENED;
    if (dim)
        TRY(check_dim(plan, *dim, from, "dim", &job->dim));
    const int64_t length = job->dim == FLATTENED ? from->count : from->ndim > 0 ? from->sizes[job->dim] : 1;
    if (times->ndim > 1 || (times->count != 1 && times->count != length))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                         "repeats is %s; it must have 1 value or one for each of the %lld entries", view_text(times),
                         (long long)length);
    return check_out(plan, from, to, from->ndim > 0 ? job->dim : FLATTENED, output_size);
}

aclnnStatus aclnnRepeatInterleaveWithDimGetWorkspaceSize(const aclTensor *self, const aclTensor *repeats, int64_t dim,
                                                         int64_t outputSize, aclTensor *out, uint64_t *workspaceSize,
                                                         aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_RepeatInterleaveWithDim, tensor_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, tensor_checked(plan, self, repeats, &dim, outputSize, out));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(RepeatInterleaveWithDim)

aclnnStatus aclnnRepeatInterleaveGetWorkspaceSize(const aclTensor *self, const aclTensor *repeats, int64_t outputSize,
                                                  aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_RepeatInterleave, flat_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, tensor_checked(plan, self, repeats, NULL, outputSize, out));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(RepeatInterleave)

/* --- channel shuffle: [n, groups, c / groups, ...] with the two in the middle changed ------------------------------------------ */

static int shuffle_run(struct plan *plan)
{
    const int64_t groups = PLAN_IMMEDIATE(plan, struct repeat_job)->times;
    const struct view *const from = &plan->operands[0], *const to = &plan->operands[1];
    struct strided_copy copy = {.out = to->data, .in = from->data, .bytes = (int)dtype_bytes((enum dtype)to->dtype)};
    if (to->count == 0)
        return 0;
    const int64_t each = from->sizes[1] / groups;
    const int64_t sizes[] = {groups, each};
    const int64_t in_strides[] = {each * from->strides[1], from->strides[1]},
                  out_strides[] = {to->strides[1], groups * to->strides[1]};
    for (int d = 0; d < from->ndim; ++d)
        for (int part = 0; part < (d == 1 ? 2 : 1); ++part) {
            copy.sizes[copy.ndim] = d == 1 ? sizes[part] : from->sizes[d];
            copy.in_strides[copy.ndim] = d == 1 ? in_strides[part] : from->strides[d];
            copy.out_strides[copy.ndim++] = d == 1 ? out_strides[part] : to->strides[d];
        }
    strided_copy_run(&copy);
    return 0;
}

static int shuffle_checked(struct plan *plan, const aclTensor *self, int64_t groups, aclTensor *out)
{
    struct view *from, *to;
    TRY(begin(plan, self, out, &from, &to));
    if (from->ndim < 3 || groups <= 0 || from->sizes[1] % groups != 0)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                         "self is %s and groups %lld; at least 3 dimensions, the second divisible", view_text(from),
                         (long long)groups);
    PLAN_IMMEDIATE(plan, struct repeat_job)->times = groups;
    return check_sizes(plan, to, "out", from->sizes, from->ndim);
}

aclnnStatus aclnnChannelShuffleGetWorkspaceSize(const aclTensor *self, int64_t groups, aclTensor *out, uint64_t *workspaceSize,
                                                aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_ChannelShuffle, shuffle_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, shuffle_checked(plan, self, groups, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ChannelShuffle)
