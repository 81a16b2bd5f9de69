/* Half-precision conversions in integer arithmetic: branch-free, so loops over them vectorise on every machine.
 *
 * Invariant: widening is exact; narrowing rounds to nearest, ties to even and overflows to infinity. NaN becomes quiet, and
 * in f16 keeps what fits of its payload: what processors with an instruction for it do. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float half_bf16_to_f32(uint16_t h) { return float_from_bits((uint32_t)h << 16); }

static inline uint16_t half_bf16_from_f32(float x)
{
    const uint32_t bits = float_bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

static inline float half_f16_to_f32(uint16_t h)
{
    const uint32_t magnitude = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t rebias = (127u - 15u) << 23;
    const uint32_t normal = (magnitude << 13) + rebias + (magnitude >= 0x7c00u ? rebias : 0u); /* twice for Inf and NaN */
    /* A subnormal is a whole number of 2^-24: the distance between floats next to 0.5. */
    const uint32_t subnormal = float_bits(float_from_bits(0x3f000000u + magnitude) - 0.5f);
    const uint32_t quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
    return float_from_bits((magnitude < 0x0400u ? subnormal : normal) | quiet | sign);
}

static inline uint16_t half_f16_from_f32(float x)
{
    const uint32_t bits = float_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude - ((127u - 15u) << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const uint32_t subnormal = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t huge = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
    const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    return (uint16_t)((magnitude >= 0x47800000u ? huge : finite) | sign);
}

#endif
