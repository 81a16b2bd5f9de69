/* The same passes by Winograd's kernels, where they apply and pay. See convolution.h. */
#ifndef ACLNN_NN_CONVOLUTION_WINOGRAD_H
#define ACLNN_NN_CONVOLUTION_WINOGRAD_H

#include <stdbool.h>

#include "aclnn/nn/convolution.h"

/* Decided by sizes, the instruction set and NPU_FIDELITY, so that results don't depend on the number of threads. */
bool winograd_applies(const struct conv_pass *pass);

/* *refused: one flag an image and group whose values were too large (NULL: all of them), when *complete is false. */
uint64_t winograd_correlate_bytes(const struct conv_pass *pass);
int winograd_correlate(const struct conv_pass *pass, const struct conv_operands *operands, void *workspace, const uint8_t **refused,
                       bool *complete);

/* *complete false: an image was refused; nothing of the result counts. */
uint64_t winograd_gradient_bytes(const struct conv_pass *pass);
int winograd_gradient(const struct conv_pass *pass, const void *source, const void *small, void *gradient, void *workspace,
                      bool *complete);

#endif
