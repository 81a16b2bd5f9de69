/* Operators of three operands: bounds, choices, interpolation, sums of products. */
#include "aclnn/math/elementwise.h"
#include "aclnnop/all_operators.h"

#define TENSOR(x) ((struct elementwise_input)INPUT_TENSOR(x))
#define SCALAR(x) ((struct elementwise_input)INPUT_SCALAR(x))

/* --- clamp: either bound may be missing ---------------------------------------------------------------------------- */

static bool given(struct elementwise_input input) { return input.tensor || input.scalar; }

static int plan_clamp(enum operator_id id, const aclTensor *self, struct elementwise_input low, struct elementwise_input high,
                      const aclTensor *out, unsigned flags, uint64_t *workspace_size, aclOpExecutor **executor)
{
    REQUIRE(given(low) || given(high), ACLNN_ERROR_NULLPTR, "%s: both bounds are null; at least one is needed", operator_name(id));
    struct elementwise_call call = {.id = id, .rule = RULE_PROMOTE, .flags = flags, .out = INPUT_TENSOR(out)};
    call.inputs[0] = TENSOR(self);
    if (given(low) && given(high)) {
        call.kernel = ELEMENTWISE_clamp;
        call.input_count = 3;
        call.inputs[1] = low;
        call.inputs[2] = high;
    } else {
        call.kernel = given(low) ? ELEMENTWISE_maximum : ELEMENTWISE_minimum;
        call.input_count = 2;
        call.inputs[1] = given(low) ? low : high;
    }
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnClampGetWorkspaceSize(const aclTensor *self, const aclScalar *clipValueMin, const aclScalar *clipValueMax,
                                       aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_clamp(OPERATOR_Clamp, self, SCALAR(clipValueMin), SCALAR(clipValueMax), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Clamp)

aclnnStatus aclnnClampTensorGetWorkspaceSize(const aclTensor *self, const aclTensor *clipValueMin, const aclTensor *clipValueMax,
                                             aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_clamp(OPERATOR_ClampTensor, self, TENSOR(clipValueMin), TENSOR(clipValueMax), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ClampTensor)

aclnnStatus aclnnHardtanhGetWorkspaceSize(const aclTensor *self, const aclScalar *clipValueMin, const aclScalar *clipValueMax,
                                          aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_clamp(OPERATOR_Hardtanh, self, SCALAR(clipValueMin), SCALAR(clipValueMax), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(Hardtanh)

aclnnStatus aclnnInplaceHardtanhGetWorkspaceSize(aclTensor *selfRef, const aclScalar *clipValueMin, const aclScalar *clipValueMax,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_clamp(OPERATOR_InplaceHardtanh, selfRef, SCALAR(clipValueMin), SCALAR(clipValueMax), selfRef, CALL_INPLACE,
                      workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceHardtanh)

/* --- choices ------------------------------------------------------------------------------------------------------- */

static int plan_choice(enum operator_id id, const aclTensor *mask, struct elementwise_input chosen, struct elementwise_input other,
                       const aclTensor *out, unsigned flags, uint64_t *workspace_size, aclOpExecutor **executor)
{
    const struct elementwise_call call = {.id = id,
                                          .kernel = ELEMENTWISE_where,
                                          .rule = RULE_RAW,
                                          .flags = flags | CALL_MASK_FIRST,
                                          .input_count = 3,
                                          .inputs = {{.name = "mask", .tensor = mask}, chosen, other},
                                          .out = INPUT_TENSOR(out)};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnSWhereGetWorkspaceSize(const aclTensor *condition, const aclTensor *self, const aclTensor *other, aclTensor *out,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_choice(OPERATOR_SWhere, condition, TENSOR(self), TENSOR(other), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(SWhere)

/* The value takes the type of self, whatever its own is: x.masked_fill_(mask, 1.5) on integers is refused, 1 on floats isn't. */
static int check_fill_kind(enum operator_id id, const aclTensor *self, enum dtype value)
{
    if (!self || self->view.dtype == DTYPE_NONE || value == DTYPE_NONE)
        return 0;
    const enum dtype dtype = (enum dtype)self->view.dtype;
    REQUIRE(dtype == DTYPE_B8 || dtype_kind(value) <= dtype_kind(dtype), ACLNN_ERROR_PARAM,
            "%s: value is %s and can't be cast to the type of selfRef, %s", operator_name(id), dtype_name(value),
            dtype_name(dtype));
    return 0;
}

aclnnStatus aclnnInplaceMaskedFillScalarGetWorkspaceSize(aclTensor *selfRef, const aclTensor *mask, const aclScalar *value,
                                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(value, ACLNN_ERROR_NULLPTR, "aclnnInplaceMaskedFillScalar: value is null");
    TRY(check_fill_kind(OPERATOR_InplaceMaskedFillScalar, selfRef, value->dtype));
    struct aclScalar cast = *value;
    if (selfRef && selfRef->view.dtype == DTYPE_B8) { /* so that a number doesn't promote the bools */
        cast.dtype = DTYPE_B8;
        cast.value.i64 = scalar_to_double(value) != 0;
    }
    const struct elementwise_input fill = {.name = "value", .scalar = &cast};
    return plan_choice(OPERATOR_InplaceMaskedFillScalar, mask, fill, TENSOR(selfRef), selfRef, CALL_INPLACE, workspaceSize,
                       executor);
}
ACLNN_PHASE_2(InplaceMaskedFillScalar)

aclnnStatus aclnnInplaceMaskedFillTensorGetWorkspaceSize(aclTensor *selfRef, const aclTensor *mask, const aclTensor *value,
                                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(!value || value->view.count == 1, ACLNN_ERROR_PARAM,
            "aclnnInplaceMaskedFillTensor: value is %s; it must have one element", view_text(&value->view));
    if (value)
        TRY(check_fill_kind(OPERATOR_InplaceMaskedFillTensor, selfRef, (enum dtype)value->view.dtype));
    aclTensor single;
    if (value) {
        single = *value;
        single.view.ndim = 0; /* so that its type doesn't take part in promotion */
    }
    const struct elementwise_input fill = {.name = "value", .tensor = value ? &single : NULL};
    return plan_choice(OPERATOR_InplaceMaskedFillTensor, mask, fill, TENSOR(selfRef), selfRef, CALL_INPLACE, workspaceSize,
                       executor);
}
ACLNN_PHASE_2(InplaceMaskedFillTensor)

/* --- self + value * tensor1 * tensor2, self + value * tensor1 / tensor2 -------------------------------------------- */

static int plan_addc(enum operator_id id, enum elementwise_id kernel, const aclTensor *self, const aclTensor *tensor1,
                     const aclTensor *tensor2, const aclScalar *value, const aclTensor *out, uint64_t *workspace_size,
                     aclOpExecutor **executor)
{
    REQUIRE(value, ACLNN_ERROR_NULLPTR, "%s: value is null", operator_name(id));
    const struct elementwise_call call = {.id = id,
                                          .kernel = kernel,
                                          .rule = RULE_PROMOTE,
                                          .flags = CALL_EXACT_SCALARS | (self == out ? CALL_INPLACE : 0),
                                          .input_count = 3,
                                          .inputs = {INPUT_TENSOR(self), INPUT_TENSOR(tensor1), INPUT_TENSOR(tensor2)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 1,
                                          .parameters = {value}};
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnAddcmulGetWorkspaceSize(const aclTensor *self, const aclTensor *tensor1, const aclTensor *tensor2,
                                         const aclScalar *value, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_addc(OPERATOR_Addcmul, ELEMENTWISE_addcmul, self, tensor1, tensor2, value, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Addcmul)

aclnnStatus aclnnInplaceAddcmulGetWorkspaceSize(const aclTensor *selfRef, const aclTensor *tensor1, const aclTensor *tensor2,
                                                const aclScalar *value, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_addc(OPERATOR_InplaceAddcmul, ELEMENTWISE_addcmul, selfRef, tensor1, tensor2, value, selfRef, workspaceSize,
                     executor);
}
ACLNN_PHASE_2(InplaceAddcmul)

aclnnStatus aclnnAddcdivGetWorkspaceSize(const aclTensor *self, const aclTensor *tensor1, const aclTensor *tensor2,
                                         const aclScalar *value, const aclTensor *out, uint64_t *workspaceSize,
                                         aclOpExecutor **executor)
{
    return plan_addc(OPERATOR_Addcdiv, ELEMENTWISE_addcdiv, self, tensor1, tensor2, value, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Addcdiv)

aclnnStatus aclnnInplaceAddcdivGetWorkspaceSize(const aclTensor *selfRef, const aclTensor *tensor1, const aclTensor *tensor2,
                                                const aclScalar *value, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_addc(OPERATOR_InplaceAddcdiv, ELEMENTWISE_addcdiv, selfRef, tensor1, tensor2, value, selfRef, workspaceSize,
                     executor);
}
ACLNN_PHASE_2(InplaceAddcdiv)

/* --- interpolation ------------------------------------------------------------------------------------------------- */

static int plan_lerp(enum operator_id id, const aclTensor *self, const aclTensor *end, struct elementwise_input weight,
                     const aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct elementwise_call call = {.id = id,
                                    .kernel = ELEMENTWISE_lerp,
                                    .rule = RULE_PROMOTE,
                                    .flags = CALL_EXACT_SCALARS | (self == out ? CALL_INPLACE : 0),
                                    .input_count = 3,
                                    .inputs = {INPUT_TENSOR(self), INPUT_TENSOR(end), weight},
                                    .out = INPUT_TENSOR(out)};
    if (weight.scalar) {
        call.kernel = ELEMENTWISE_lerp_scaled;
        call.input_count = 2;
        call.parameter_count = 1;
        call.parameters[0] = weight.scalar;
    } else {
        REQUIRE(weight.tensor, ACLNN_ERROR_NULLPTR, "%s: weight is null", operator_name(id));
    }
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnLerpGetWorkspaceSize(const aclTensor *self, const aclTensor *end, const aclTensor *weight, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_lerp(OPERATOR_Lerp, self, end, TENSOR(weight), out, workspaceSize, executor);
}
ACLNN_PHASE_2(Lerp)

aclnnStatus aclnnInplaceLerpGetWorkspaceSize(aclTensor *selfRef, const aclTensor *end, const aclTensor *weight,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_lerp(OPERATOR_InplaceLerp, selfRef, end, TENSOR(weight), selfRef, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceLerp)

aclnnStatus aclnnLerpsGetWorkspaceSize(const aclTensor *self, const aclTensor *end, const aclScalar *weight, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_lerp(OPERATOR_Lerps, self, end, SCALAR(weight), out, workspaceSize, executor);
}
ACLNN_PHASE_2(Lerps)

aclnnStatus aclnnInplaceLerpsGetWorkspaceSize(aclTensor *selfRef, const aclTensor *end, const aclScalar *weight,
                                              uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_lerp(OPERATOR_InplaceLerps, selfRef, end, SCALAR(weight), selfRef, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceLerps)
