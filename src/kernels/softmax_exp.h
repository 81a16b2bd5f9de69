/* The exponential of softmax and attention: f32 only, as softmax's arguments are never above 0 and its sums hide an ulp. */
#ifndef KERNELS_SOFTMAX_EXP_H
#define KERNELS_SOFTMAX_EXP_H

#include <stdint.h>
#include <string.h>

/* exp in f32 without branches, so that loops vectorise: 2^k * e^r, |r| <= ln 2 / 2, polynomial of degree 6; error about 1 ulp. */
static inline float softmax_exp(float x)
{
    const float low = x < -104.0f ? -104.0f : x, clamped = low > 89.0f ? 89.0f : low; /* NaN passes both */
    const float shifted = clamped * 1.44269504f + 12582912.0f, k = shifted - 12582912.0f;
    const float r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    /* In two factors, so that results below the normal range come out. */
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    const int32_t exponent = bits - 0x4b400000, half = exponent >> 1;
    const int32_t first = (half + 127) << 23, second = (exponent - half + 127) << 23;
    float a, b;
    memcpy(&a, &first, sizeof a);
    memcpy(&b, &second, sizeof b);
    return p * a * b;
}

#endif
