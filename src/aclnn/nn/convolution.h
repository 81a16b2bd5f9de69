/* The two passes that every convolution operator is made of (kernels/conv.h), over a batch and its groups.
 *
 * Invariant: sums over images are cut into a number of blocks that depends on sizes alone, added in order. */
#ifndef ACLNN_NN_CONVOLUTION_H
#define ACLNN_NN_CONVOLUTION_H

#include "kernels/conv.h"

struct conv_pass {
    struct conv_geometry geometry; /* of one group */
    int64_t images, groups;
    enum accumulate type; /* i64: correlations only */
};

/* out[image][group * rows] from source[image][group * channels]; matrix: [group][rows][channels * taps]; bias: one value a row
 * of every group, or NULL. */
struct conv_operands {
    const void *source, *matrix, *bias;
    void *out;
};

/* workspace: conv_correlate_bytes. 0 or an error code. */
uint64_t conv_correlate_bytes(const struct conv_pass *pass);
int conv_correlate(const struct conv_pass *pass, const struct conv_operands *operands, void *workspace);

/* What conv_correlate does for i64; needs no workspace. */
void conv_correlate_integer(const struct conv_pass *pass, const struct conv_operands *operands);

/* gradient [group][rows][channels * taps] from source (as above) and small[image][group * rows][out]. */
uint64_t conv_weight_gradient_bytes(const struct conv_pass *pass);
int conv_weight_gradient(const struct conv_pass *pass, const void *source, const void *small, void *gradient, void *workspace);

/* rotated [group][inner][outer][taps reversed] from [group][outer][inner][taps]. */
void conv_rotate(enum accumulate type, const void *matrix, int64_t groups, int64_t outer, int64_t inner, int64_t taps,
                 void *rotated);

#endif
