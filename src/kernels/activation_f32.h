/* What activations compute in f32 alone: a logistic and a normal distribution function within 2 units of the last place of their
 * largest value, for a third of the time of math_f32.h's way through f64. Branch-free, bit-equal everywhere. */
#ifndef KERNELS_ACTIVATION_F32_H
#define KERNELS_ACTIVATION_F32_H

#include <math.h>

#include "kernels/softmax_exp.h"

/* 1 / (1 + e^-x); neither side overflows, and small values keep their digits. */
static inline float sigmoid_f32(float x)
{
    const float power = softmax_exp(-fabsf(x));
    return (x < 0 ? power : 1.0f) / (1.0f + power);
}

/* The distribution function of the normal distribution, from power = e^(-x^2 / 2), which gradients need too. */
static inline float normal_below_f32(float x, float power)
{
    const float size = fabsf(x), square = size * size;
    /* Up to 1: 1/2 + x * polynomial of x^2. */
    float near = -7.6542093e-6f;
    near = near * square + 1.1348640e-4f;
    near = near * square - 1.1863300e-3f;
    near = near * square + 9.9733234e-3f;
    near = near * square - 6.6490360e-2f;
    near = near * square + 3.9894228e-1f;
    /* Beyond: what lies above |x| is power * polynomial of 1 / (1 + 0.32 |x|). */
    const float t = 1.0f / (1.0f + 0.32f * size);
    float far = -7.4488871e-2f;
    far = far * t + 1.5862577e-1f;
    far = far * t + 3.2001406e-2f;
    far = far * t + 1.3059445e-1f;
    far = far * t + 1.2535057e-1f;
    far = far * t + 1.2779459e-1f;
    const float above = far * t * power, beyond = x < 0 ? above : 1.0f - above;
    return size < 1 ? 0.5f + x * near : beyond;
}

static inline float gelu_f32(float x) { return x * normal_below_f32(x, softmax_exp(x * x * -0.5f)); }

static inline float gelu_slope_f32(float x)
{
    const float power = softmax_exp(x * x * -0.5f);
    return normal_below_f32(x, power) + x * (0.39894228f * power);
}

#endif
