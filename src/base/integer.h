/* Floating numbers to integers, defined for every value: the meaning of torch's conversions, whatever the processor does.
 *
 * Invariant: rounds towards zero; NaN and what doesn't fit the machine's conversion (32 or 64 bits) becomes its smallest number.
 * Types of 8 and 16 bits take the low bits of that conversion, of 32 bits (u8 from f64: of 64), as torch's compilers chose. The
 * number is replaced before it is converted, so that loops stay free of branches. */
#ifndef BASE_INTEGER_H
#define BASE_INTEGER_H

#include <stdint.h>

static inline int32_t integer_i32_from_f32(float x) { return (int32_t)(x >= -0x1p31f && x < 0x1p31f ? x : -0x1p31f); }
static inline int32_t integer_i32_from_f64(double x) { return (int32_t)(x > -0x1p31 - 1 && x < 0x1p31 ? x : -0x1p31); }
static inline int32_t integer_i32_from_i64(int64_t x) { return (int32_t)x; }

static inline int64_t integer_i64_from_f32(float x) { return (int64_t)(x >= -0x1p63f && x < 0x1p63f ? x : -0x1p63f); }
static inline int64_t integer_i64_from_f64(double x) { return (int64_t)(x >= -0x1p63 && x < 0x1p63 ? x : -0x1p63); }
static inline int64_t integer_i64_from_i64(int64_t x) { return x; }

/* x: float, double, or any integer, which wraps. */
#define INTEGER_I64(x) \
    _Generic((x), float: integer_i64_from_f32, double: integer_i64_from_f64, default: integer_i64_from_i64)(x)
#define INTEGER_I32(x) \
    _Generic((x), float: integer_i32_from_f32, double: integer_i32_from_f64, default: integer_i32_from_i64)(x)
#define INTEGER_I16(x) ((int16_t)INTEGER_I32(x))
#define INTEGER_I8(x) ((int8_t)INTEGER_I32(x))
#define INTEGER_U8(x) \
    ((uint8_t)_Generic((x), float: integer_i32_from_f32, double: integer_i64_from_f64, default: integer_i64_from_i64)(x))

#endif
