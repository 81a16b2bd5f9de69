/* The versions of FlashAttentionScore and its gradient: V2 adds the kind of shift, VarLen and Unpadding take packed sequences,
 * V4 of these says how the statistics lie, which follows from their sizes here. */
#include "aclnn/transformer/attention_plan.h"

/* Parameter lists that all versions share. */
#define FORWARD_TENSORS                                                                                                      \
    const aclTensor *query, const aclTensor *key, const aclTensor *value, const aclTensor *realShiftOptional,                \
        const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional, const aclTensor *attenMaskOptional
#define BACKWARD_TENSORS                                                                                                     \
    const aclTensor *query, const aclTensor *keyIn, const aclTensor *value, const aclTensor *dy,                             \
        const aclTensor *pseShiftOptional, const aclTensor *dropMaskOptional, const aclTensor *paddingMaskOptional,          \
        const aclTensor *attenMaskOptional, const aclTensor *softmaxMaxOptional, const aclTensor *softmaxSumOptional,        \
        const aclTensor *softmaxInOptional, const aclTensor *attentionInOptional
#define NUMBERS                                                                                                              \
    double scaleValue, double keepProb, int64_t preTokens, int64_t nextTokens, int64_t headNum, char *inputLayout,           \
        int64_t innerPrecise, int64_t sparseMode
#define FORWARD_OUTPUTS                                                                                                      \
    const aclTensor *softmaxMaxOut, const aclTensor *softmaxSumOut, const aclTensor *softmaxOutOut,                          \
        const aclTensor *attentionOutOut
#define BACKWARD_OUTPUTS const aclTensor *dqOut, const aclTensor *dkOut, const aclTensor *dvOut, const aclTensor *dpseOut
#define ENDS const aclIntArray *actualSeqQLenOptional, const aclIntArray *actualSeqKvLenOptional
#define STARTS const aclIntArray *qStartIdxOptional, const aclIntArray *kvStartIdxOptional

#define FORWARD_PART                                                                                                         \
    .tensors = {[ATTENTION_QUERY] = query, [ATTENTION_KEY] = key, [ATTENTION_VALUE] = value,                                 \
                [ATTENTION_SHIFT] = realShiftOptional, [ATTENTION_DROP] = dropMaskOptional,                                  \
                [ATTENTION_MASK] = attenMaskOptional, [ATTENTION_MAXIMUM] = softmaxMaxOut,                                   \
                [ATTENTION_SUM] = softmaxSumOut, [ATTENTION_OUT] = attentionOutOut}
#define BACKWARD_PART                                                                                                        \
    .backward = true,                                                                                                        \
    .tensors = {[ATTENTION_QUERY] = query, [ATTENTION_KEY] = keyIn, [ATTENTION_VALUE] = value,                               \
                [ATTENTION_SHIFT] = pseShiftOptional, [ATTENTION_DROP] = dropMaskOptional,                                   \
                [ATTENTION_MASK] = attenMaskOptional, [ATTENTION_MAXIMUM] = softmaxMaxOptional,                              \
                [ATTENTION_SUM] = softmaxSumOptional, [ATTENTION_OUT] = attentionInOptional, [ATTENTION_GRAD_OUT] = dy,      \
                [ATTENTION_GRAD_QUERY] = dqOut, [ATTENTION_GRAD_KEY] = dkOut, [ATTENTION_GRAD_VALUE] = dvOut,                \
                [ATTENTION_GRAD_SHIFT] = dpseOut}
#define NUMBERS_PART                                                                                                         \
    .prefix = prefixOptional, .scale = scaleValue, .keep = keepProb, .before = preTokens, .after = nextTokens,               \
    .heads = headNum, .sparse_mode = sparseMode, .layout = inputLayout
#define ENDS_PART .query_ends = actualSeqQLenOptional, .key_ends = actualSeqKvLenOptional

/* NAME, its parameters, the request's parts */
#define ATTENTION(NAME, PARAMETERS, ...)                                                                                     \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(PARAMETERS, uint64_t *workspaceSize, aclOpExecutor **executor)                 \
    {                                                                                                                        \
        const struct attention_request q = {.id = OPERATOR_##NAME, NUMBERS_PART, __VA_ARGS__};                               \
        return attention_plan(&q, workspaceSize, executor);                                                                  \
    }                                                                                                                        \
    ACLNN_PHASE_2(NAME)
#define LIST(...) __VA_ARGS__

ATTENTION(FlashAttentionScore, LIST(FORWARD_TENSORS, const aclIntArray *prefixOptional, NUMBERS, FORWARD_OUTPUTS), FORWARD_PART,
          .shift_kind = 1)
ATTENTION(FlashAttentionScoreV2,
          LIST(FORWARD_TENSORS, const aclIntArray *prefixOptional, STARTS, NUMBERS, int64_t pseType, FORWARD_OUTPUTS), FORWARD_PART,
          .shift_kind = pseType)
ATTENTION(FlashAttentionVarLenScore, LIST(FORWARD_TENSORS, const aclIntArray *prefixOptional, ENDS, NUMBERS, FORWARD_OUTPUTS),
          FORWARD_PART, ENDS_PART, .shift_kind = 1)
ATTENTION(FlashAttentionVarLenScoreV2,
          LIST(FORWARD_TENSORS, const aclIntArray *prefixOptional, ENDS, STARTS, NUMBERS, int64_t pseType, FORWARD_OUTPUTS),
          FORWARD_PART, ENDS_PART, .shift_kind = pseType)
ATTENTION(FlashAttentionVarLenScoreV4,
          LIST(FORWARD_TENSORS, const aclIntArray *prefixOptional, ENDS, NUMBERS, char *softmaxOutLayout, FORWARD_OUTPUTS),
          FORWARD_PART, ENDS_PART, .shift_kind = 1)

ATTENTION(FlashAttentionScoreGrad, LIST(BACKWARD_TENSORS, const aclIntArray *prefixOptional, NUMBERS, BACKWARD_OUTPUTS),
          BACKWARD_PART, .shift_kind = 1)
ATTENTION(FlashAttentionScoreGradV2,
          LIST(BACKWARD_TENSORS, const aclIntArray *prefixOptional, STARTS, NUMBERS, int64_t pseType, BACKWARD_OUTPUTS),
          BACKWARD_PART, .shift_kind = pseType)
ATTENTION(FlashAttentionUnpaddingScoreGrad,
          LIST(BACKWARD_TENSORS, const aclIntArray *prefixOptional, ENDS, NUMBERS, BACKWARD_OUTPUTS), BACKWARD_PART, ENDS_PART,
          .shift_kind = 1)
ATTENTION(FlashAttentionUnpaddingScoreGradV2,
          LIST(BACKWARD_TENSORS, const aclIntArray *prefixOptional, ENDS, STARTS, NUMBERS, int64_t pseType, BACKWARD_OUTPUTS),
          BACKWARD_PART, ENDS_PART, .shift_kind = pseType)
ATTENTION(FlashAttentionUnpaddingScoreGradV4,
          LIST(BACKWARD_TENSORS, const aclIntArray *prefixOptional, ENDS, NUMBERS, BACKWARD_OUTPUTS, char *softmaxInLayout),
          BACKWARD_PART, ENDS_PART, .shift_kind = 1)
