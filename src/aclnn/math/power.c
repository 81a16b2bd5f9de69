/* Powers: tensor ** tensor, tensor ** scalar, scalar ** tensor. */
#include "aclnn/math/elementwise_export.h"

/* The exponents that torch computes without pow, and so exactly. ELEMENTWISE_pow: none of them. */
static enum elementwise_id power_kernel(double exponent)
{
    return exponent == 2      ? ELEMENTWISE_square
           : exponent == 3    ? ELEMENTWISE_cube
           : exponent == 0.5  ? ELEMENTWISE_sqrt
           : exponent == -0.5 ? ELEMENTWISE_rsqrt
           : exponent == -1   ? ELEMENTWISE_reciprocal
           : exponent == -2   ? ELEMENTWISE_reciprocal_square
           : exponent == 1    ? ELEMENTWISE_mul /* by the exponent itself */
                              : ELEMENTWISE_pow;
}

/* And the kernels for complex numbers, whose pow gives NaN for 0 ** 0. */
static enum elementwise_id complex_power_kernel(complex64_pair exponent)
{
    if (exponent.im != 0)
        return ELEMENTWISE_pow;
    return exponent.re == 0 ? ELEMENTWISE_power_zero : exponent.re == 1 ? ELEMENTWISE_power_one : power_kernel(exponent.re);
}

static int plan_power(enum operator_id id, struct elementwise_input base, struct elementwise_input exponent, const aclTensor *out,
                      unsigned flags, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct elementwise_call call = {.id = id,
                                    .kernel = ELEMENTWISE_pow,
                                    .rule = RULE_PROMOTE,
                                    .flags = flags | CALL_EXACT_SCALARS,
                                    .input_count = 2,
                                    .inputs = {base, exponent},
                                    .out = INPUT_TENSOR(out)};
    const bool given = (base.tensor || base.scalar) && (exponent.tensor || exponent.scalar);
    if (!given || (base.tensor && base.tensor->view.dtype == DTYPE_NONE) ||
        (exponent.tensor && exponent.tensor->view.dtype == DTYPE_NONE))
        return elementwise_plan(&call, workspace_size, executor); /* says what is wrong */
    bool is_default;
    const enum dtype promoted = elementwise_promote(call.inputs, 2, &is_default);
    if (dtype_kind(promoted) < KIND_FLOAT) {
        call.kernel = ELEMENTWISE_integer_pow;
        REQUIRE(!exponent.scalar || scalar_to_int64(exponent.scalar) >= 0, ACLNN_ERROR_PARAM,
                "%s: integers to negative integer powers are not allowed; the exponent is %lld", operator_name(id),
                exponent.scalar ? (long long)scalar_to_int64(exponent.scalar) : 0);
    }
    if (exponent.scalar && dtype_kind(exponent.scalar->dtype) != KIND_COMPLEX &&
        (dtype_is_floating(promoted) || dtype_kind(promoted) == KIND_INTEGER)) {
        const enum elementwise_id kernel = power_kernel(scalar_to_double(exponent.scalar));
        /* torch takes roots of f16 through pow, which is infinite for -infinity, where the root is NaN. */
        const bool root = kernel == ELEMENTWISE_sqrt || kernel == ELEMENTWISE_rsqrt;
        const bool same_type = base.tensor && base.tensor->view.dtype == promoted && !(root && promoted == DTYPE_F16);
        if (same_type && kernel != ELEMENTWISE_pow && kernels->elementwise->run[kernel][dtype_compute(promoted)]) {
            call.kernel = kernel;
            call.input_count = kernel == ELEMENTWISE_mul ? 2 : 1;
        }
    }
    if (exponent.scalar && base.tensor && (enum dtype)base.tensor->view.dtype == promoted && dtype_kind(promoted) == KIND_COMPLEX) {
        call.kernel = complex_power_kernel(scalar_to_complex(exponent.scalar));
        call.input_count = call.kernel == ELEMENTWISE_pow ? 2 : 1;
    }
    return elementwise_plan(&call, workspace_size, executor);
}

aclnnStatus aclnnPowTensorTensorGetWorkspaceSize(const aclTensor *self, const aclTensor *exponent, aclTensor *out,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_power(OPERATOR_PowTensorTensor, (struct elementwise_input)INPUT_TENSOR(self),
                      (struct elementwise_input)INPUT_TENSOR(exponent), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(PowTensorTensor)

aclnnStatus aclnnInplacePowTensorTensorGetWorkspaceSize(const aclTensor *self, const aclTensor *exponent, uint64_t *workspaceSize,
                                                        aclOpExecutor **executor)
{
    return plan_power(OPERATOR_InplacePowTensorTensor, (struct elementwise_input)INPUT_TENSOR(self),
                      (struct elementwise_input)INPUT_TENSOR(exponent), self, CALL_INPLACE, workspaceSize, executor);
}
ACLNN_PHASE_2(InplacePowTensorTensor)

aclnnStatus aclnnPowTensorScalarGetWorkspaceSize(const aclTensor *self, const aclScalar *exponent, const aclTensor *out,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_power(OPERATOR_PowTensorScalar, (struct elementwise_input)INPUT_TENSOR(self),
                      (struct elementwise_input)INPUT_SCALAR(exponent), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(PowTensorScalar)

aclnnStatus aclnnInplacePowTensorScalarGetWorkspaceSize(const aclTensor *self, const aclScalar *exponent, uint64_t *workspaceSize,
                                                        aclOpExecutor **executor)
{
    return plan_power(OPERATOR_InplacePowTensorScalar, (struct elementwise_input)INPUT_TENSOR(self),
                      (struct elementwise_input)INPUT_SCALAR(exponent), self, CALL_INPLACE, workspaceSize, executor);
}
ACLNN_PHASE_2(InplacePowTensorScalar)

aclnnStatus aclnnPowScalarTensorGetWorkspaceSize(const aclScalar *self, const aclTensor *exponent, const aclTensor *out,
                                                 uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_power(OPERATOR_PowScalarTensor, (struct elementwise_input)INPUT_SCALAR(self),
                      (struct elementwise_input)INPUT_TENSOR(exponent), out, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(PowScalarTensor)
