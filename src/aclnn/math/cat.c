/* Joining and rearranging without arithmetic: cat, stack, flip, roll, repeat. Each is a few strided copies. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"

/* --- cat, stack ------------------------------------------------------------------------------------------------------------- */

struct cat_job {
    int dim;
};

/* torch's cat skips one-dimensional tensors without elements, whatever the others look like. */
static bool is_skipped(const struct view *v) { return v->ndim == 1 && v->sizes[0] == 0; }

/* Operand: out; extra views: the inputs. */
static int cat_run(struct plan *plan)
{
    struct view slice = plan->operands[0];
    const int dim = PLAN_IMMEDIATE(plan, struct cat_job)->dim;
    const int64_t step = slice.strides[dim] * (int64_t)dtype_bytes((enum dtype)slice.dtype);
    for (int64_t i = 0; i < plan->extra_view_count; ++i) {
        const struct view *const in = &plan->extra_views[i];
        if (is_skipped(in))
            continue;
        slice.sizes[dim] = in->sizes[dim];
        view_refresh(&slice);
        if (in->count > 0)
            view_copy(&slice, in);
        slice.data += in->sizes[dim] * step;
    }
    return 0;
}

static int copy_views(struct plan *plan, const aclTensorList *tensors)
{
    void *memory;
    TRY(check_not_null(plan, tensors, "tensors"));
    if (tensors->count == 0)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "tensors is an empty list");
    TRY(plan_extra(plan, tensors->count * sizeof(struct view), &memory));
    plan->extra_views = memory;
    for (uint64_t i = 0; i < tensors->count; ++i) {
        const aclTensor *const t = tensors->tensors[i];
        TRY(check_not_null(plan, t, "an entry of tensors"));
        struct view *const view = &plan->extra_views[plan->extra_view_count++];
        *view = t->view;
        if (view->dtype == DTYPE_NONE)
            view->dtype = (uint8_t)plan_stored_dtype((enum operator_id)plan->operator_id, t, ROLE_INPUT);
        if (view->dtype == DTYPE_NONE)
            return plan_refuse_dtype((enum operator_id)plan->operator_id, t, "an entry of tensors");
        if (!view->data && view->count > 0)
            return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "tensors[%llu] has elements but no memory", (unsigned long long)i);
    }
    return 0;
}

/* Complex and real don't mix; everything else converts to out's type. */
static int check_convertible(const struct plan *plan, const struct view *in, const struct view *out)
{
    const bool complex_in = dtype_kind((enum dtype)in->dtype) == KIND_COMPLEX;
    if (in->dtype == out->dtype || (!complex_in && dtype_kind((enum dtype)out->dtype) != KIND_COMPLEX))
        return 0;
    return check_same_dtype(plan, in, "an entry of tensors", out, "out");
}

static int cat_checked(struct plan *plan, const aclTensorList *tensors, int64_t dim, aclTensor *out)
{
    struct view *to;
    int64_t sizes[TENSOR_MAX_DIMS], total = 0;
    int *const wrapped = &PLAN_IMMEDIATE(plan, struct cat_job)->dim;
    TRY(plan_output(plan, out, "out", &to));
    TRY(copy_views(plan, tensors));
    TRY(check_dim(plan, dim, to, "dim", wrapped));
    memcpy(sizes, to->sizes, sizeof sizes);
    for (int64_t i = 0; i < plan->extra_view_count; ++i) {
        const struct view *const in = &plan->extra_views[i];
        TRY(check_convertible(plan, in, to));
        if (is_skipped(in))
            continue;
        if (in->ndim == 0 || in->ndim != to->ndim)
            return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                             "tensors[%lld] is %s and out is %s: they need as many dimensions, "
                             "at least one",
                             (long long)i, view_text(in), view_text(to));
        sizes[*wrapped] = in->sizes[*wrapped];
        TRY(check_sizes(plan, in, "an entry of tensors", sizes, to->ndim));
        total += in->sizes[*wrapped];
    }
    sizes[*wrapped] = total;
    TRY(check_sizes(plan, to, "out", sizes, to->ndim));
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnCatGetWorkspaceSize(const aclTensorList *tensors, int64_t dim, aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Cat, cat_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, cat_checked(plan, tensors, dim, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Cat)

static int stack_checked(struct plan *plan, const aclTensorList *tensors, int64_t dim, aclTensor *out)
{
    struct view *to;
    int64_t sizes[TENSOR_MAX_DIMS];
    int *const wrapped = &PLAN_IMMEDIATE(plan, struct cat_job)->dim;
    TRY(plan_output(plan, out, "out", &to));
    TRY(copy_views(plan, tensors));
    TRY(check_dim(plan, dim, to, "dim", wrapped));
    for (int64_t i = 0; i < plan->extra_view_count; ++i) {
        struct view *const in = &plan->extra_views[i];
        TRY(check_convertible(plan, in, to));
        if (in->ndim + 1 != to->ndim)
            return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "tensors[%lld] is %s and out is %s: out has one dimension more",
                             (long long)i, view_text(in), view_text(to));
        for (int d = in->ndim; d > *wrapped; --d) {
            in->sizes[d] = in->sizes[d - 1];
            in->strides[d] = in->strides[d - 1];
        }
        in->sizes[*wrapped] = in->strides[*wrapped] = 1;
        ++in->ndim;
        view_refresh(in);
        memcpy(sizes, to->sizes, sizeof sizes);
        sizes[*wrapped] = 1;
        TRY(check_sizes(plan, in, "an entry of tensors, with the new dimension,", sizes, to->ndim));
    }
    if (to->sizes[*wrapped] != plan->extra_view_count)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "out is %s; dimension %d must be %lld, one for each tensor",
                         view_text(to), *wrapped, (long long)plan->extra_view_count);
    return check_output_not_expanded(plan, to, "out");
}

aclnnStatus aclnnStackGetWorkspaceSize(const aclTensorList *tensors, int64_t dim, aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Stack, cat_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, stack_checked(plan, tensors, dim, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Stack)

/* --- flip, roll, repeat: operands self, out ------------------------------------------------------------------------------------ */

static int two_operands(struct plan *plan, const aclTensor *self, aclTensor *out, struct view **from, struct view **to)
{
    TRY(plan_input(plan, self, "self", from));
    TRY(plan_output(plan, out, "out", to));
    TRY(check_same_dtype(plan, *from, "self", *to, "out"));
    return check_output_not_expanded(plan, *to, "out");
}

static int copy_run(struct plan *plan)
{
    if (plan->operands[0].count > 0)
        view_copy(&plan->operands[1], &plan->operands[0]);
    return 0;
}

/* A flipped dimension is one read backwards. */
static int flip_checked(struct plan *plan, const aclTensor *self, const aclIntArray *dims, aclTensor *out)
{
    struct view *from, *to;
    uint32_t mask = 0;
    TRY(two_operands(plan, self, out, &from, &to));
    TRY(check_sizes(plan, to, "out", from->sizes, from->ndim));
    if (dims && dims->count > 0)
        TRY(check_dims(plan, dims, from, &mask));
    for (int d = 0; d < from->ndim && from->count > 0; ++d)
        if (mask >> d & 1) {
            from->data += (from->sizes[d] - 1) * from->strides[d] * (int64_t)dtype_bytes((enum dtype)from->dtype);
            from->strides[d] = -from->strides[d];
        }
    view_refresh(from);
    return 0;
}

aclnnStatus aclnnFlipGetWorkspaceSize(const aclTensor *self, const aclIntArray *dims, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Flip, copy_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, flip_checked(plan, self, dims, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Flip)

struct roll_job {
    int64_t shifts[TENSOR_MAX_DIMS];
    bool flattened;
};

/* Each rolled dimension is two pieces, so k of them make 2^k copies. */
static void roll_pieces(struct view from, struct view to, const int64_t *shifts, int dim)
{
    for (; dim < from.ndim && shifts[dim] == 0; ++dim)
        ;
    if (dim == from.ndim) {
        view_refresh(&from);
        view_refresh(&to);
        view_copy(&to, &from);
        return;
    }
    const int64_t size = from.sizes[dim], shift = shifts[dim], bytes = (int64_t)dtype_bytes((enum dtype)from.dtype);
    struct view a = from, b = to;
    a.sizes[dim] = b.sizes[dim] = size - shift;
    b.data += shift * to.strides[dim] * bytes;
    roll_pieces(a, b, shifts, dim + 1);
    a = from;
    b = to;
    a.sizes[dim] = b.sizes[dim] = shift;
    a.data += (size - shift) * from.strides[dim] * bytes;
    roll_pieces(a, b, shifts, dim + 1);
}

static int roll_run(struct plan *plan)
{
    const struct roll_job *const job = PLAN_IMMEDIATE(plan, struct roll_job);
    const struct view *const from = &plan->operands[0], *const to = &plan->operands[1];
    if (from->count == 0)
        return 0;
    if (!job->flattened) {
        roll_pieces(*from, *to, job->shifts, 0);
        return 0;
    }
    /* Rolled as one sequence: tiles go from one position to another, whatever the layout. */
    const int64_t shift = job->shifts[0], count = from->count;
    char tile[TILE * 16];
    for (int64_t i = 0, n; i < count; i += n) {
        const int64_t at = i < count - shift ? i + shift : i - (count - shift);
        n = count - at < TILE ? count - at : TILE;
        n = n < count - i ? n : count - i;
        tile_gather(tile, from, i, n);
        tile_scatter(to, at, n, tile);
    }
    return 0;
}

static int roll_checked(struct plan *plan, const aclTensor *self, const aclIntArray *shifts, const aclIntArray *dims,
                        aclTensor *out)
{
    struct view *from, *to;
    struct roll_job *const job = PLAN_IMMEDIATE(plan, struct roll_job);
    *job = (struct roll_job){.flattened = !dims || dims->count == 0};
    TRY(two_operands(plan, self, out, &from, &to));
    TRY(check_sizes(plan, to, "out", from->sizes, from->ndim));
    TRY(check_not_null(plan, shifts, "shifts"));
    const uint64_t wanted = job->flattened ? 1 : dims->count;
    if (shifts->count != wanted)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "shifts has %llu values, %llu are needed",
                         (unsigned long long)shifts->count, (unsigned long long)wanted);
    for (uint64_t i = 0; i < shifts->count; ++i) {
        int d = 0;
        if (!job->flattened)
            TRY(check_dim(plan, dims->values[i], from, "dims", &d));
        const int64_t size = job->flattened || from->ndim == 0 ? from->count : from->sizes[d];
        if (size > 0)
            job->shifts[d] = ((job->shifts[d] + shifts->values[i]) % size + size) % size;
    }
    return 0;
}

aclnnStatus aclnnRollGetWorkspaceSize(const aclTensor *x, const aclIntArray *shifts, const aclIntArray *dims, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Roll, roll_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, roll_checked(plan, x, shifts, dims, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Roll)

/* out as [repeats0, size0, repeats1, size1, ...], read with stride 0 along the repeats. */
static int repeat_run(struct plan *plan)
{
    const struct view *const from = &plan->operands[0], *const to = &plan->operands[1];
    const int extra = to->ndim - from->ndim;
    struct strided_copy copy = {.out = to->data, .in = from->data, .bytes = (int)dtype_bytes((enum dtype)to->dtype)};
    for (int d = 0; d < to->ndim; ++d) {
        const int64_t size = d < extra ? 1 : from->sizes[d - extra];
        const int64_t repeats = size > 0 ? to->sizes[d] / size : 0;
        copy.sizes[copy.ndim] = repeats;
        copy.out_strides[copy.ndim] = to->strides[d] * size;
        copy.in_strides[copy.ndim++] = 0;
        copy.sizes[copy.ndim] = size;
        copy.out_strides[copy.ndim] = to->strides[d];
        copy.in_strides[copy.ndim++] = d < extra ? 0 : from->strides[d - extra];
    }
    if (to->count > 0)
        strided_copy_run(&copy);
    return 0;
}

static int repeat_checked(struct plan *plan, const aclTensor *self, const aclIntArray *repeats, aclTensor *out)
{
    struct view *from, *to;
    int64_t sizes[TENSOR_MAX_DIMS];
    TRY(two_operands(plan, self, out, &from, &to));
    TRY(check_not_null(plan, repeats, "repeats"));
    if (repeats->count < from->ndim || repeats->count > TENSOR_MAX_DIMS)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "repeats has %llu values; self %s takes %d to %d",
                         (unsigned long long)repeats->count, view_text(from), from->ndim, TENSOR_MAX_DIMS);
    const int extra = (int)repeats->count - from->ndim;
    for (int d = 0; d < (int)repeats->count; ++d) {
        if (repeats->values[d] < 0)
            return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "repeats[%d] is %lld; it must not be negative", d,
                             (long long)repeats->values[d]);
        sizes[d] = repeats->values[d] * (d < extra ? 1 : from->sizes[d - extra]);
    }
    return check_sizes(plan, to, "out", sizes, (int)repeats->count);
}

aclnnStatus aclnnRepeatGetWorkspaceSize(const aclTensor *self, const aclIntArray *repeats, aclTensor *out, uint64_t *workspaceSize,
                                        aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_Repeat, repeat_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, repeat_checked(plan, self, repeats, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Repeat)
