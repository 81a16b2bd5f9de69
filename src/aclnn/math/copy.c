/* Copies, casts and fills: any type to any type, any strides. */
#include <string.h>

#include "aclnn/math/elementwise.h"
#include "aclnn/math/strided_loop.h"
#include "aclnnop/all_operators.h"

static struct view dense_view(void *data, int64_t count, enum dtype dtype)
{
    return (struct view){
        .data = data, .count = count, .dtype = (uint8_t)dtype, .ndim = 1, .contiguous = true, .sizes = {count}, .strides = {1}};
}

/* operands[0] = operands[1]; an overlapping source goes through the workspace. */
static int run_copy(struct plan *plan)
{
    const struct view *const out = &plan->operands[0];
    struct view in = plan->operands[1];
    if (plan->workspace_bytes) {
        in.data = plan->workspace;
        view_make_contiguous(&in);
        copy_view(&in, &plan->operands[1]);
    }
    copy_view(out, &in);
    return 0;
}

/* One type, one shape, both dense: the task is everything. Larger ones are cut over the pool. */
enum { SMALL_COPY_BYTES = 32768, SMALL_STRIDED_ELEMENTS = 1024 };

static int run_dense_copy(struct task *task)
{
    const int64_t bytes = task->count * (int64_t)dtype_bytes((enum dtype)task->dtype);
    if (bytes <= SMALL_COPY_BYTES) {
        if (bytes > 0) /* without elements there may be no memory */
            memmove(task->out, task->a, (size_t)bytes);
        return 0;
    }
    const struct view out = dense_view(task->out, task->count, (enum dtype)task->dtype);
    const struct view in = dense_view((void *)(uintptr_t)task->a, task->count, (enum dtype)task->dtype);
    copy_view(&out, &in);
    return 0;
}

static bool copies_densely(const struct view *out, const struct view *in)
{
    return out->dtype == in->dtype && out->contiguous && in->contiguous && view_same_sizes(out, in) &&
           (out->data == in->data || !view_overlaps(out, in));
}

static void small_task(struct plan *plan, int (*run)(struct task *task), const struct view *out, const void *in)
{
    plan->small = 1;
    plan->task =
        (struct task){.run = run,
                      .class = &plan_small_class,
                      .out = out->data,
                      .a = in,
                      .count = out->count,
                      .dtype = out->dtype,
                      .flags = out->count * (int64_t)dtype_bytes((enum dtype)out->dtype) <= SMALL_COPY_BYTES ? TASK_SMALL : 0};
}

static int plan_copy(enum operator_id id, const aclTensor *to, const char *to_name, const aclTensor *from, const char *from_name,
                     uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *out, *in;
    TRY(plan_begin(id, run_copy, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, to, to_name, &out));
    PLAN_TRY(plan, plan_input(plan, from, from_name, &in));
    if (copies_densely(out, in)) {
        small_task(plan, run_dense_copy, out, in->data);
        return plan_finish(plan, 0, workspace_size, executor);
    }
    struct view expanded = *in;
    if (in->count == 1)
        expanded.ndim = 0; /* torch-npu copies one element of one dimension into a tensor of none */
    PLAN_REQUIRE(plan, view_expand(&expanded, out->sizes, out->ndim), ACLNN_ERROR_PARAM, "%s: %s %s doesn't broadcast to %s %s",
                 operator_name(id), from_name, view_text(in), to_name, view_text(out));
    PLAN_TRY(plan, elementwise_check_output(id, out, to_name));
    plan->copes_with_overlap = PLAN_ALL_OPERANDS;
    const uint64_t workspace = elementwise_overlaps(out, in) ? (uint64_t)in->count * dtype_bytes((enum dtype)in->dtype) : 0;
    plan->task.flags = out->count <= SMALL_STRIDED_ELEMENTS ? TASK_SMALL : 0;
    return plan_finish(plan, workspace, workspace_size, executor);
}

aclnnStatus aclnnInplaceCopyGetWorkspaceSize(aclTensor *selfRef, const aclTensor *src, uint64_t *workspaceSize,
                                             aclOpExecutor **executor)
{
    return plan_copy(OPERATOR_InplaceCopy, selfRef, "selfRef", src, "src", workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceCopy)

aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor *self, aclDataType dtype, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    REQUIRE(!out || out->acl_dtype == (int32_t)dtype, ACLNN_ERROR_PARAM, "aclnnCast: dtype is %d, but out has data type %d",
            (int)dtype, out->acl_dtype);
    return plan_copy(OPERATOR_Cast, out, "out", self, "self", workspaceSize, executor);
}
ACLNN_PHASE_2(Cast)

aclnnStatus aclnnInplaceFillTensorGetWorkspaceSize(aclTensor *selfRef, const aclTensor *value, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    REQUIRE(!value || value->view.count == 1, ACLNN_ERROR_PARAM, "aclnnInplaceFillTensor: value is %s; it must have one element",
            view_text(&value->view));
    if (value && value->view.ndim > 0) {
        aclTensor single = *value;
        single.view.ndim = 0;
        return plan_copy(OPERATOR_InplaceFillTensor, selfRef, "selfRef", &single, "value", workspaceSize, executor);
    }
    return plan_copy(OPERATOR_InplaceFillTensor, selfRef, "selfRef", value, "value", workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceFillTensor)

/* --- fills with a number ------------------------------------------------------------------------------------------- */

struct fill {
    union elementwise_scalar value;
    enum dtype dtype;
};

static int run_fill(struct plan *plan)
{
    const struct fill *const fill = PLAN_IMMEDIATE(plan, struct fill);
    fill_view(&plan->operands[0], fill->dtype, fill->value);
    return 0;
}

/* The value sits in the immediate: f64 for floats, i64 for integers and bool. */
static int run_dense_fill(struct task *task)
{
    const enum dtype dtype = (enum dtype)task->dtype, from = dtype_is_floating(dtype) ? DTYPE_F64 : DTYPE_I64;
    if (task->count * (int64_t)dtype_bytes(dtype) <= SMALL_COPY_BYTES) {
        double element;
        convert_elements(&element, dtype, &task->immediate, from, 1);
        kernels->cast->fill[__builtin_ctzll(dtype_bytes(dtype))](task->out, &element, (size_t)task->count);
        return 0;
    }
    const struct view out = dense_view(task->out, task->count, dtype);
    fill_view(&out, from, (union elementwise_scalar){.i64 = task->immediate.i64});
    return 0;
}

static int plan_fill(enum operator_id id, const aclTensor *self, const struct aclScalar *value, uint64_t *workspace_size,
                     aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *out;
    TRY(plan_begin(id, run_fill, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, self, "selfRef", &out));
    PLAN_REQUIRE(plan, value, ACLNN_ERROR_NULLPTR, "%s: value is null", operator_name(id));
    PLAN_TRY(plan, elementwise_check_output(id, out, "selfRef"));
    if (out->contiguous && dtype_kind((enum dtype)out->dtype) != KIND_COMPLEX) {
        small_task(plan, run_dense_fill, out, NULL);
        plan->task.immediate.i64 = elementwise_scalar_from(value, (enum dtype)out->dtype).i64;
        return plan_finish(plan, 0, workspace_size, executor);
    }
    struct fill *const fill = PLAN_IMMEDIATE(plan, struct fill);
    const enum dtype_kind kind = dtype_kind((enum dtype)out->dtype);
    fill->dtype = kind == KIND_COMPLEX ? DTYPE_C128 : kind == KIND_FLOAT ? DTYPE_F64 : DTYPE_I64;
    fill->value = elementwise_scalar_from(value, (enum dtype)out->dtype);
    plan->task.flags = out->count <= SMALL_STRIDED_ELEMENTS ? TASK_SMALL : 0;
    return plan_finish(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnInplaceFillScalarGetWorkspaceSize(aclTensor *selfRef, const aclScalar *value, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    return plan_fill(OPERATOR_InplaceFillScalar, selfRef, value, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceFillScalar)

aclnnStatus aclnnInplaceZeroGetWorkspaceSize(aclTensor *selfRef, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    static const struct aclScalar zero = {.dtype = DTYPE_I64, .value.i64 = 0};
    return plan_fill(OPERATOR_InplaceZero, selfRef, &zero, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceZero)

aclnnStatus aclnnInplaceOneGetWorkspaceSize(const aclTensor *selfRef, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    static const struct aclScalar one = {.dtype = DTYPE_I64, .value.i64 = 1};
    return plan_fill(OPERATOR_InplaceOne, selfRef, &one, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceOne)

/* --- the main diagonal ------------------------------------------------------------------------------------------------------ */

struct diagonal {
    union elementwise_scalar value;
    enum dtype dtype;
    bool wrap;
};

/* One diagonal, or with `wrap` a new one below each one that ended (matrices that are taller than wide). */
static int run_fill_diagonal(struct plan *plan)
{
    const struct diagonal *const d = PLAN_IMMEDIATE(plan, struct diagonal);
    const struct view *const self = &plan->operands[0];
    int64_t length = self->sizes[0], stride = 0;
    for (int i = 0; i < self->ndim; ++i) {
        stride += self->strides[i];
        length = self->sizes[i] < length ? self->sizes[i] : length;
    }
    const int64_t rows = self->sizes[0], step = d->wrap ? self->sizes[1] + 1 : rows;
    for (int64_t row = 0; row < rows; row += step) {
        const int64_t count = rows - row < length ? rows - row : length;
        struct view line = dense_view(self->data + row * self->strides[0] * (int64_t)dtype_bytes((enum dtype)self->dtype), count,
                                      (enum dtype)self->dtype);
        line.strides[0] = stride;
        view_refresh(&line);
        fill_view(&line, d->dtype, d->value);
    }
    return 0;
}

aclnnStatus aclnnInplaceFillDiagonalGetWorkspaceSize(aclTensor *selfRef, const aclScalar *fillValue, bool wrap,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const enum operator_id id = OPERATOR_InplaceFillDiagonal;
    struct plan *plan;
    struct view *self;
    TRY(plan_begin(id, run_fill_diagonal, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_inout(plan, selfRef, "selfRef", &self));
    PLAN_REQUIRE(plan, fillValue, ACLNN_ERROR_NULLPTR, "%s: fillValue is null", operator_name(id));
    PLAN_REQUIRE(plan, self->ndim >= 2, ACLNN_ERROR_PARAM, "%s: selfRef is %s; it must have at least two dimensions",
                 operator_name(id), view_text(self));
    for (int i = 1; i < self->ndim && self->ndim > 2; ++i)
        PLAN_REQUIRE(plan, self->sizes[i] == self->sizes[0], ACLNN_ERROR_PARAM,
                     "%s: selfRef is %s; all dimensions must be equal when there are more than two", operator_name(id),
                     view_text(self));
    PLAN_TRY(plan, elementwise_check_output(id, self, "selfRef"));
    const enum dtype_kind kind = dtype_kind((enum dtype)self->dtype);
    *PLAN_IMMEDIATE(plan, struct diagonal) = (struct diagonal){.value = elementwise_scalar_from(fillValue, (enum dtype)self->dtype),
                                                               .wrap = wrap && self->ndim == 2,
                                                               .dtype = kind == KIND_COMPLEX ? DTYPE_C128
                                                                        : kind == KIND_FLOAT ? DTYPE_F64
                                                                                             : DTYPE_I64};
    plan->task.flags = 0;
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceFillDiagonal)
