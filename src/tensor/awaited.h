/* Tensors whose shape is known only when an operator has run (nonzero, unique, masked_select): phase 1 takes a ticket for the
 * handle, the run answers it.
 *
 * Invariant: a handle may be destroyed as soon as phase 2 was launched. Its tickets die with it, and an answer to a dead ticket
 * changes nothing, not even a new handle at the same address. */
#ifndef TENSOR_AWAITED_H
#define TENSOR_AWAITED_H

#include "tensor/tensor.h"

struct awaited_shape {
    struct aclTensor *handle; /* NULL: nobody asks */
    uint64_t ticket;
};

struct awaited_shape awaited_begin(struct aclTensor *handle);
/* Row-major strides; the memory stays. */
void awaited_answer(const struct awaited_shape *awaited, int ndim, const int64_t *sizes);
/* aclDestroyTensor calls it for handles with a ticket. */
void awaited_forget(struct aclTensor *handle);
/* In a forked child: nobody waits there. */
void awaited_forget_after_fork(void);

#endif
