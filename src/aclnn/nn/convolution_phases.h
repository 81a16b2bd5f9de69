/* Correlations of a source whose elements lie apart, with zeros between them: gradients of the input of strided convolutions, and
 * strided transposed ones.
 *
 * Pixels at a distance of geometry.insert meet the same taps, and only those of every insert-th tap. So each residue (a "phase")
 * is a dense correlation of its own, with part of the weights: insert^n times fewer products than with the zeros in place. */
#ifndef ACLNN_NN_CONVOLUTION_PHASES_H
#define ACLNN_NN_CONVOLUTION_PHASES_H

#include "aclnn/nn/convolution.h"

bool conv_has_phases(const struct conv_pass *pass);
/* workspace: conv_phases_bytes. 0 or an error code. */
uint64_t conv_phases_bytes(const struct conv_pass *pass);
int conv_correlate_phases(const struct conv_pass *pass, const struct conv_operands *operands, void *workspace);

#endif
