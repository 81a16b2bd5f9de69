/* One number for each operator that is implemented, from operators.def. */
#ifndef ACLNN_OPERATOR_IDS_H
#define ACLNN_OPERATOR_IDS_H

enum operator_id {
    OPERATOR_NONE,
#define OPERATOR(name) OPERATOR_##name,
#include "aclnn/operators.def"
#undef OPERATOR
    OPERATOR_COUNT
};

#endif
