/* Conversions of the 8-bit floats in integer arithmetic: branch-free, so loops over them vectorise on every machine.
 *
 * Invariant: what torch's CPU gives, bit for bit. Widening is exact, a NaN comes out quiet. Narrowing rounds to nearest, ties to
 * even; e4m3fn has no infinity and stops at its largest number, 448, where e5m2 overflows to infinity; NaN stays NaN. */
#ifndef BASE_FLOAT8_H
#define BASE_FLOAT8_H

#include "base/half.h"

/* e4m3fn: 4 bits of exponent (bias 7), 3 of mantissa; only all ones is NaN. */
static inline float float8_e4m3fn_to_f32(uint8_t code)
{
    const uint32_t magnitude = code & 0x7fu, sign = (uint32_t)(code & 0x80u) << 24;
    const uint32_t normal = (magnitude << 20) + ((127u - 7u) << 23);
    /* A subnormal is a whole number of 2^-9: the distance between floats next to 2^14. */
    const uint32_t subnormal = float_bits(float_from_bits(0x46800000u + magnitude) - 0x1p14f);
    const uint32_t finite = magnitude < 0x08u ? subnormal : normal;
    return float_from_bits((magnitude == 0x7fu ? 0x7ff00000u : finite) | sign);
}

/* The code is chosen 20 bits up from its place: choices between small numbers keep GCC from vectorising. */
static inline uint8_t float8_e4m3fn_from_f32(float x)
{
    const uint32_t bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
    const uint32_t normal = magnitude - ((127u - 7u) << 23) + 0x7ffffu + ((magnitude >> 20) & 1u);
    const uint32_t subnormal = (float_bits(float_from_bits(magnitude) + 0x1p14f) - 0x46800000u) << 20;
    const uint32_t rounded = magnitude < 0x3c800000u ? subnormal : normal;
    const uint32_t number = rounded > 0x7efffffu ? 0x7efffffu : rounded;
    return (uint8_t)((magnitude > 0x7f800000u ? 0x7ffffffu : number) >> 20 | sign);
}

/* e5m2: the upper half of an f16. */
static inline float float8_e5m2_to_f32(uint8_t code)
{
    const uint32_t quiet = (code & 0x7fu) > 0x7cu ? 0x00400000u : 0u;
    return float_from_bits(float_bits(half_f16_to_f32((uint16_t)(code << 8))) | quiet);
}

static inline uint8_t float8_e5m2_from_f32(float x)
{
    const uint32_t bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
    const uint32_t normal = magnitude - ((127u - 15u) << 23) + 0xfffffu + ((magnitude >> 21) & 1u);
    /* The distance between floats next to 2^7 is that of the subnormals, 2^-16. */
    const uint32_t subnormal = (float_bits(float_from_bits(magnitude) + 0x1p7f) - 0x43000000u) << 21;
    const uint32_t rounded = magnitude < 0x38800000u ? subnormal : normal;
    const uint32_t number = rounded > 0xf9fffffu ? 0xf9fffffu : rounded;
    return (uint8_t)((magnitude > 0x7f800000u ? 0xfffffffu : number) >> 21 | sign);
}

/* e8m0: a power of two without a sign, from 2^-127 on; all ones is NaN. Scales of blocks of other 8-bit floats. */
static inline float float8_e8m0_to_f32(uint8_t code)
{
    const uint32_t number = code == 0 ? 0x00400000u : (uint32_t)code << 23;
    return float_from_bits(code == 0xffu ? 0x7f800001u : number);
}

/* Halves round up, but for the half of the smallest float that isn't subnormal. */
static inline uint8_t float8_e8m0_from_f32(float x)
{
    const uint32_t bits = float_bits(x), exponent = (bits >> 23) & 0xffu, below = bits & 0x3fffffu;
    const uint32_t up = (bits >> 22) & ((exponent | below) != 0 ? 1u : 0u);
    return (uint8_t)(exponent + (exponent == 0xffu ? 0u : up));
}

#endif
