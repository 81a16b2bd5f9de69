/* Loss kernels. Compiled once per ISA. */
#include "kernels/loss.h"

#include <math.h>

#include "kernels/isa.h"

#define REAL float
#define TAG f32
#define F(function) function##f
#include "kernels/loss_float.h"
#undef REAL
#undef TAG
#undef F

#define REAL double
#define TAG f64
#define F(function) function
#include "kernels/loss_float.h"
#undef REAL
#undef TAG
#undef F

#define LIST(X) X(square) X(absolute) X(smooth_loss) X(cross_entropy) X(logits) X(divergence) X(divergence_log)     \
    X(divergence_target) X(divergence_log_target) X(margin)
#define FORWARD_F32(name) name##_f32,
#define FORWARD_F64(name) name##_f64,
#define BACKWARD_F32(name) name##_backward_f32,
#define BACKWARD_F64(name) name##_backward_f64,

const struct loss_kernels KERNEL_TABLE(loss_kernels) = {
    .real = {[ACCUMULATE_F64] = {{LIST(FORWARD_F64)}, {LIST(BACKWARD_F64)}, likelihood_f64, likelihood_backward_f64},
             [ACCUMULATE_F32] = {{LIST(FORWARD_F32)}, {LIST(BACKWARD_F32)}, likelihood_f32, likelihood_backward_f32}},
};
