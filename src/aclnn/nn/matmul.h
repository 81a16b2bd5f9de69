/* Matrix products on views, for the operators that are one and for those that need one inside. */
#ifndef ACLNN_NN_MATMUL_H
#define ACLNN_NN_MATMUL_H

#include "kernels/gemm.h"

/* Runs `batches` problems; advance(context, batch, problem) sets the pointers of one (NULL when batches is 1). By the pool,
 * or in the caller when there is little to do. 0 or an error code with words. */
typedef void (*matmul_advance_fn)(const void *context, int64_t batch, struct gemm_problem *problem);
int matmul_run(const struct gemm_problem *problem, enum dtype compute, int64_t batches, matmul_advance_fn advance,
               const void *context);

#endif
