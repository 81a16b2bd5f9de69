/* Optimizer steps and gradient scaling: each one pass over memory, in f32 or f64 (halves come through tiles).
 *
 * Invariant: kernels have the signature of elementwise kernels, so that the same strided loops run them; operands that an
 * optimizer updates are read and written. The arithmetic is torch's fused CPU optimizers', operation by operation. */
#ifndef KERNELS_OPTIMIZER_H
#define KERNELS_OPTIMIZER_H

#include <stdbool.h>

#include "kernels/elementwise.h"

/* Operands: parameter, first moment, second moment, gradient, and with amsgrad the largest second moment. */
enum adam_scalar {
    ADAM_SHRINK,     /* the parameter is multiplied by it: 1 - lr * weight decay (AdamW), else 1 */
    ADAM_PENALTY,    /* times the parameter is added to the gradient (Adam), else 0 */
    ADAM_BETA1_REST, /* 1 - beta1 */
    ADAM_BETA2,
    ADAM_BETA2_REST,  /* 1 - beta2 */
    ADAM_STEP_SIZE,   /* lr / (1 - beta1^t) */
    ADAM_CORRECTION2, /* sqrt(1 - beta2^t) */
    ADAM_EPS,
    ADAM_GRADIENT_SIGN,  /* -1 to maximize */
    ADAM_GRADIENT_SCALE, /* the gradient is divided by it, and written back when it isn't 1 */
    ADAM_SCALARS
};

/* Operands: parameter, gradient, and with momentum the momentum buffer. */
enum sgd_scalar {
    SGD_LR,
    SGD_PENALTY,
    SGD_MOMENTUM,
    SGD_DAMPENING_REST, /* 1 - dampening; the first step takes the gradient as it is */
    SGD_NESTEROV,       /* != 0 */
    SGD_FIRST,          /* != 0: the buffer holds nothing yet */
    SGD_GRADIENT_SIGN,
    SGD_GRADIENT_SCALE,
    SGD_SCALARS
};

enum norm_kind { NORM_COUNT /* of elements that aren't 0 */, NORM_ABS, NORM_SQUARE, NORM_MAX, NORM_MIN, NORM_POWER, NORM_KINDS };

enum { OPTIMIZER_TYPES = 2 }; /* f64, f32: DTYPE_F64 and DTYPE_F32 are 0 and 1 */

struct optimizer_kernels {
    elementwise_fn adam[OPTIMIZER_TYPES], adam_amsgrad[OPTIMIZER_TYPES];
    elementwise_fn sgd[OPTIMIZER_TYPES], sgd_momentum[OPTIMIZER_TYPES];
    elementwise_fn adam_scaled[OPTIMIZER_TYPES], adam_amsgrad_scaled[OPTIMIZER_TYPES]; /* the gradient is written, too */
    elementwise_fn sgd_scaled[OPTIMIZER_TYPES], sgd_momentum_scaled[OPTIMIZER_TYPES];
    elementwise_fn unscale[OPTIMIZER_TYPES]; /* operand 0 times s0, in place; exact when s0 is 1 */
    bool (*has_non_finite[OPTIMIZER_TYPES])(const void *in, size_t n);
    /* Sum (or extreme) of |x|^p in a fixed order, the same on every instruction set. */
    double (*norm[NORM_KINDS][OPTIMIZER_TYPES])(const void *in, size_t n, double power);
};

#endif
