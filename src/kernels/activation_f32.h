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

enum { NORMAL_MOST = 0x41480000 }; /* the bits of 12.5 */

/* |x|, at most 12.5, beyond which nothing is left above. By its bits (NaN gets there too, and needs no digits): of a choice between
 * floats the compiler makes two ways, and computes both. */
static inline float normal_size_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0x7fffffff;
    bits = bits < NORMAL_MOST ? bits : NORMAL_MOST;
    float size;
    memcpy(&size, &bits, sizeof size);
    return size;
}

/* e^(-size^2 / 2), 0 at 12.5: 2^y by its whole and its fractional part. */
static inline float normal_power_f32(float size)
{
    const float y = size * size * -0.72134752f, shifted = y + 12582912.0f, f = y - (shifted - 12582912.0f);
    float p = 1.32647274e-3f;
    p = p * f + 9.67151292e-3f;
    p = p * f + 5.55073375e-2f;
    p = p * f + 2.40222421e-1f;
    p = p * f + 6.93146978e-1f;
    p = p * f + 1.0f;
    uint32_t whole, bits, all;
    memcpy(&whole, &shifted, sizeof whole);
    memcpy(&bits, &p, sizeof bits);
    memcpy(&all, &size, sizeof all);
    bits = all < NORMAL_MOST ? bits + (whole << 23) : 0;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* How much of the normal distribution lies below x, by what lies above its size: power times a quotient of polynomials, which was
 * fitted to be off by 6e-8 of the value up to 1 and by 7e-7 in the end. */
static inline float normal_below_f32(float x, float size, float power)
{
    float top = 5.23997314e-7f, bottom = 3.02106108e-2f;
    top = top * size + 1.20307694e-2f;
    bottom = bottom * size + 2.42175073e-1f;
    top = top * size + 9.69870648e-2f;
    bottom = bottom * size + 8.40736973e-1f;
    top = top * size + 3.19681025e-1f;
    bottom = bottom * size + 1.43724626f;
    top = top * size + 0.5f;
    const float above = power * top / (bottom * size + 1.0f);
    return x < 0 ? above : 1.0f - above;
}

static inline float gelu_f32(float x)
{
    const float size = normal_size_f32(x);
    return x * normal_below_f32(x, size, normal_power_f32(size));
}

static inline float gelu_slope_f32(float x)
{
    const float size = normal_size_f32(x), power = normal_power_f32(size);
    return normal_below_f32(x, size, power) + x * (0.39894228f * power);
}

#endif
