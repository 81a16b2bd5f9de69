/* The exponential of softmax, attention and activations: f32 only, where an error of a unit in the last place is allowed. */
#ifndef KERNELS_SOFTMAX_EXP_H
#define KERNELS_SOFTMAX_EXP_H

#include <stdint.h>
#include <string.h>

/* exp in f32 without branches, so that loops vectorise: 2^k * e^r, |r| <= ln 2 / 2, polynomial of degree 6 (3e-9 off); error below 1 ulp. */
static inline float softmax_exp(float x)
{
    const float low = x < -104.0f ? -104.0f : x, clamped = low > 89.0f ? 89.0f : low; /* NaN passes both */
    const float shifted = clamped * 1.44269504f + 12582912.0f, k = shifted - 12582912.0f;
    const float r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.3814599e-3f;
    p = p * r + 8.3687166e-3f;
    p = p * r + 4.1668389e-2f;
    p = p * r + 1.6666521e-1f;
    p = p * r + 0.49999994f;
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
