/* Turns the rows of the elementwise .def files into exported pairs. Include it, then the .def file. */
#ifndef ACLNN_MATH_ELEMENTWISE_EXPORT_H
#define ACLNN_MATH_ELEMENTWISE_EXPORT_H

#include "aclnn/math/elementwise.h"
#include "aclnnop/all_operators.h"

#define TENSOR_TENSOR(op, out_const, kernel_, rule_, flags_)                                                          \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *self, const aclTensor *other, out_const aclTensor *out,    \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        if (self && other && out && elementwise_is_same(ELEMENTWISE_##kernel_, flags_, RULE_##rule_) &&                \
            elementwise_plan_small(OPERATOR_##op, ELEMENTWISE_##kernel_, self, other, out, workspaceSize, executor))   \
            return 0;                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = (flags_),             \
            .input_count = 2, .inputs = {INPUT_TENSOR(self), INPUT_TENSOR(other)}, .out = INPUT_TENSOR(out)};          \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#define TENSOR_TENSOR_INPLACE(op, self_const, other_const, kernel_, rule_, flags_)                                    \
    aclnnStatus aclnn##op##GetWorkspaceSize(self_const aclTensor *selfRef, other_const aclTensor *other,                \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        if (selfRef && other && elementwise_is_same(ELEMENTWISE_##kernel_, flags_, RULE_##rule_) &&                    \
            elementwise_plan_small(OPERATOR_##op, ELEMENTWISE_##kernel_, selfRef, other, selfRef, workspaceSize, executor)) \
            return 0;                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = (flags_) | CALL_INPLACE, \
            .input_count = 2, .inputs = {INPUT_TENSOR(selfRef), INPUT_TENSOR(other)}, .out = INPUT_TENSOR(selfRef)};    \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#define TENSOR_SCALAR(op, out_const, kernel_, rule_, flags_)                                                          \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *self, const aclScalar *other, out_const aclTensor *out,    \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        if (RULE_##rule_ != RULE_LOGICAL &&                                                                          \
            elementwise_plan_small_scalar(OPERATOR_##op, ELEMENTWISE_##kernel_, flags_, self, other, false, out,       \
                                          workspaceSize, executor))                                                  \
            return 0;                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = (flags_),             \
            .input_count = 2, .inputs = {INPUT_TENSOR(self), INPUT_SCALAR(other)}, .out = INPUT_TENSOR(out)};          \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#define TENSOR_SCALAR_INPLACE(op, self_const, kernel_, rule_, flags_)                                                 \
    aclnnStatus aclnn##op##GetWorkspaceSize(self_const aclTensor *selfRef, const aclScalar *other,                     \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        if (RULE_##rule_ != RULE_LOGICAL &&                                                                          \
            elementwise_plan_small_scalar(OPERATOR_##op, ELEMENTWISE_##kernel_, flags_, selfRef, other, false, selfRef, \
                                          workspaceSize, executor))                                                  \
            return 0;                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = (flags_) | CALL_INPLACE, \
            .input_count = 2, .inputs = {INPUT_TENSOR(selfRef), INPUT_SCALAR(other)}, .out = INPUT_TENSOR(selfRef)};    \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#define SCALAR_TENSOR(op, out_const, kernel_, rule_, flags_)                                                          \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclScalar *self, const aclTensor *other, out_const aclTensor *out,    \
                                            uint64_t *workspaceSize, aclOpExecutor **executor)                        \
    {                                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = (flags_),             \
            .input_count = 2, .inputs = {INPUT_SCALAR(self), INPUT_TENSOR(other)}, .out = INPUT_TENSOR(out)};          \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#define UNARY(op, out_const, kernel_, rule_)                                                                          \
    aclnnStatus aclnn##op##GetWorkspaceSize(const aclTensor *self, out_const aclTensor *out, uint64_t *workspaceSize,   \
                                            aclOpExecutor **executor)                                                 \
    {                                                                                                                \
        if (self && out && elementwise_is_same(ELEMENTWISE_##kernel_, 0, RULE_##rule_) &&                              \
            elementwise_plan_small(OPERATOR_##op, ELEMENTWISE_##kernel_, self, NULL, out, workspaceSize, executor))    \
            return 0;                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_,                                \
            .input_count = 1, .inputs = {INPUT_TENSOR(self)}, .out = INPUT_TENSOR(out)};                              \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#define UNARY_INPLACE(op, self_const, kernel_, rule_)                                                                 \
    aclnnStatus aclnn##op##GetWorkspaceSize(self_const aclTensor *selfRef, uint64_t *workspaceSize,                    \
                                            aclOpExecutor **executor)                                                 \
    {                                                                                                                \
        if (selfRef && elementwise_is_same(ELEMENTWISE_##kernel_, 0, RULE_##rule_) &&                                  \
            elementwise_plan_small(OPERATOR_##op, ELEMENTWISE_##kernel_, selfRef, NULL, selfRef, workspaceSize, executor)) \
            return 0;                                                                                                \
        const struct elementwise_call call = {                                                                       \
            .id = OPERATOR_##op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = CALL_INPLACE,         \
            .input_count = 1, .inputs = {INPUT_TENSOR(selfRef)}, .out = INPUT_TENSOR(selfRef)};                       \
        return elementwise_plan(&call, workspaceSize, executor);                                                     \
    }                                                                                                                \
    ACLNN_PHASE_2(op)

#endif
