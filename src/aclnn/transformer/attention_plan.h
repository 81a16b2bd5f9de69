/* Phase 1 of the attention operators: what a caller asked for, whichever version of the operator it called. */
#ifndef ACLNN_TRANSFORMER_ATTENTION_PLAN_H
#define ACLNN_TRANSFORMER_ATTENTION_PLAN_H

#include "aclnn/transformer/attention.h"
#include "aclnnop/all_operators.h"

struct attention_request {
    enum operator_id id;
    bool backward;
    const aclTensor *tensors[ATTENTION_OPERANDS];
    const aclIntArray *prefix, *query_ends, *key_ends; /* ends: of packed sequences, cumulative */
    double scale, keep;
    int64_t before, after, heads, sparse_mode;
    int64_t shift_kind; /* 0: scores are scaled, then shifted; 1: shifted, then scaled */
    const char *layout;
};

int attention_plan(const struct attention_request *q, uint64_t *workspace_size, aclOpExecutor **executor);

#endif
