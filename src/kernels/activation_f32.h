/* What activations compute in f32 alone: a logistic and a normal distribution function within 2 units of the last place of their
 * largest value, for a third of the time of math_f32.h's way through f64. Branch-free, bit-equal everywhere. */
#ifndef KERNELS_ACTIVATION_F32_H
#define KERNELS_ACTIVATION_F32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/softmax_exp.h"

/* 1 / (1 + e^-x); neither side overflows, and small values keep their digits. */
static inline float sigmoid_f32(float x)
{
    const float power = softmax_exp(-fabsf(x));
    return (x < 0 ? power : 1.0f) / (1.0f + power);
}

/* |x|, at most 12.5, beyond which nothing is left above (and NaN, which gets there too, needs no digits). By its bits: of a choice
 * between floats the compiler makes two ways, and computes both. */
static inline float normal_size_f32(float x)
{
    const uint32_t most = 0x41480000;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0x7fffffff;
    bits = bits < most ? bits : most;
    float size;
    memcpy(&size, &bits, sizeof size);
    return size;
}

/* e^(-size^2 / 2): 2^y by its whole and its fractional part. */
static inline float normal_power_f32(float size)
{
    const float y = size * size * -0.72134752f, shifted = y + 12582912.0f, f = y - (shifted - 12582912.0f);
    float p = 1.32647274e-3f;
    p = p * f + 9.67151292e-3f;
    p = p * f + 5.55073375e-2f;
    p = p * f + 2.40222421e-1f;
    p = p * f + 6.93146978e-1f;
    p = p * f + 1.0f;
    uint32_t whole, bits;
    memcpy(&whole, &shifted, sizeof whole);
    memcpy(&bits, &p, sizeof bits);
    bits += whole << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* How much of the normal distribution lies above a size from 0 to 12.5: its power by a quotient of polynomials, fitted so that the error
 * is below a unit of the last place near 0 and grows to 1.3e-6 of the value. */
static inline float normal_above_f32(float size, float power)
{
    float top = 1.50661706e-2f, bottom = 3.77739477e-2f;
    top = top * size + 1.11276214e-1f;
    bottom = bottom * size + 2.78614925e-1f;
    top = top * size + 3.47784860e-1f;
    bottom = bottom * size + 9.14198120e-1f;
    top = top * size + 4.99999967e-1f;
    bottom = bottom * size + 1.49344995f;
    return power * top / (bottom * size + 1.0f);
}

/* Below 0 it is x * above, above 0 x * (1 - above). */
static inline float gelu_f32(float x)
{
    const float size = normal_size_f32(x);
    return 0.5f * x + 0.5f * fabsf(x) - size * normal_above_f32(size, normal_power_f32(size));
}

static inline float gelu_slope_f32(float x)
{
    const float size = normal_size_f32(x), power = normal_power_f32(size);
    const float below = normal_above_f32(size, power) - size * (0.39894228f * power);
    return x < 0 ? below : x != x ? x : 1.0f - below;
}

#endif
