/* Copies, casts and fills: any type to any type, any strides. */
#include <string.h>

#include "aclnn/math/elementwise.h"
#include "aclnn/math/strided_loop.h"
#include "aclnnop/all_operators.h"

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

static int plan_copy(enum operator_id id, const aclTensor *to, const char *to_name, const aclTensor *from, const char *from_name,
                     uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *out, *in;
    TRY(plan_begin(id, run_copy, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, to, to_name, &out));
    PLAN_TRY(plan, plan_input(plan, from, from_name, &in));
    struct view expanded = *in;
    PLAN_REQUIRE(plan, view_expand(&expanded, out->sizes, out->ndim), ACLNN_ERROR_PARAM, "%s: %s %s doesn't broadcast to %s %s",
                 operator_name(id), from_name, view_text(in), to_name, view_text(out));
    PLAN_TRY(plan, elementwise_check_output(id, out, to_name));
    const uint64_t workspace = elementwise_overlaps(out, in) ? (uint64_t)in->count * dtype_bytes((enum dtype)in->dtype) : 0;
    plan->task.flags = 0;
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

struct fill { union elementwise_scalar value; enum dtype dtype; };

static int run_fill(struct plan *plan)
{
    const struct fill *const fill = PLAN_IMMEDIATE(plan, struct fill);
    fill_view(&plan->operands[0], fill->dtype, fill->value);
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
    struct fill *const fill = PLAN_IMMEDIATE(plan, struct fill);
    const enum dtype_kind kind = dtype_kind((enum dtype)out->dtype);
    fill->dtype = kind == KIND_COMPLEX ? DTYPE_C128 : kind == KIND_FLOAT ? DTYPE_F64 : DTYPE_I64;
    fill->value = elementwise_scalar_from(value, (enum dtype)out->dtype);
    plan->task.flags = 0;
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
