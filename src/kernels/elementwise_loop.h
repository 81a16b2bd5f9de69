/* The loops that turn a line of elementwise.def into kernels. Included by the elementwise_*.c files, each of which then
 * includes its own part of the list. */
#ifndef KERNELS_ELEMENTWISE_LOOP_H
#define KERNELS_ELEMENTWISE_LOOP_H

#include <math.h>

#include "kernels/elementwise.h"
#include "kernels/isa.h"

/* Unsigned types meet tests like x < 0, which are simply false for them. */
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wbool-compare"

#define KERNEL_NAME(op, tag) KERNEL_TABLE(elementwise_##op##_##tag)

#define SCALARS_OF(type, member)                                                                  \
    const type s0 __attribute__((unused)) = (type)scalars[0].member;                              \
    const type s1 __attribute__((unused)) = (type)scalars[1].member;                              \
    const type s2 __attribute__((unused)) = (type)scalars[2].member;                              \
    const type s3 __attribute__((unused)) = (type)scalars[3].member;

/* No iteration depends on another: outputs are an input's very memory or lie apart from it (elementwise.h). */
#define KERNEL(op, tag, result_type, type, member, inputs, ...)                                    \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars); \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars)  \
    {                                                                                              \
        typedef type T;                                                                            \
        result_type *const out = operands[0];                                                      \
        const T *const a = operands[1];                                                            \
        const T *const b __attribute__((unused)) = inputs > 1 ? operands[2] : operands[1];         \
        const T *const c __attribute__((unused)) = inputs > 2 ? operands[3] : operands[1];         \
        SCALARS_OF(T, member)                                                                      \
        INDEPENDENT_ITERATIONS                                                                       \
        for (size_t i = 0; i < n; ++i) {                                                           \
            const T x = a[i];                                                                      \
            const T y __attribute__((unused)) = b[i];                                              \
            const T z __attribute__((unused)) = c[i];                                              \
            out[i] = (result_type)(__VA_ARGS__);                                                   \
        }                                                                                          \
    }

#define FOR_FLOATS(op, inputs, ...)                                                                \
    KERNEL(op, f64, double, double, f64, inputs, __VA_ARGS__)                                      \
    KERNEL(op, f32, float, float, f64, inputs, __VA_ARGS__)
#define FOR_SIGNED(op, inputs, ...)                                                                \
    KERNEL(op, i64, int64_t, int64_t, i64, inputs, __VA_ARGS__)                                    \
    KERNEL(op, i32, int32_t, int32_t, i64, inputs, __VA_ARGS__)                                    \
    KERNEL(op, i16, int16_t, int16_t, i64, inputs, __VA_ARGS__)                                    \
    KERNEL(op, i8, int8_t, int8_t, i64, inputs, __VA_ARGS__)
#define FOR_INTEGERS(op, inputs, ...)                                                              \
    FOR_SIGNED(op, inputs, __VA_ARGS__)                                                            \
    KERNEL(op, u8, uint8_t, uint8_t, i64, inputs, __VA_ARGS__)
#define FOR_BOOLEAN(op, inputs, ...) KERNEL(op, b8, uint8_t, uint8_t, i64, inputs, __VA_ARGS__)

#define FLOAT_1(op, ...) FOR_FLOATS(op, 1, __VA_ARGS__)
#define FLOAT_2(op, ...) FOR_FLOATS(op, 2, __VA_ARGS__)
#define FLOAT_3(op, ...) FOR_FLOATS(op, 3, __VA_ARGS__)
#define INTEGER_1(op, ...) FOR_INTEGERS(op, 1, __VA_ARGS__)
#define INTEGER_2(op, ...) FOR_INTEGERS(op, 2, __VA_ARGS__)
#define INTEGER_3(op, ...) FOR_INTEGERS(op, 3, __VA_ARGS__)
#define SIGNED_1(op, ...) FOR_SIGNED(op, 1, __VA_ARGS__)
#define BOOLEAN_1(op, ...) FOR_BOOLEAN(op, 1, __VA_ARGS__)
#define BOOLEAN_2(op, ...) FOR_BOOLEAN(op, 2, __VA_ARGS__)
#define BOOLEAN_3(op, ...) FOR_BOOLEAN(op, 3, __VA_ARGS__)

#define TEST_INTEGERS(op, inputs, ...)                                                             \
    KERNEL(op, i64, uint8_t, int64_t, i64, inputs, __VA_ARGS__)                                    \
    KERNEL(op, i32, uint8_t, int32_t, i64, inputs, __VA_ARGS__)                                    \
    KERNEL(op, i16, uint8_t, int16_t, i64, inputs, __VA_ARGS__)                                    \
    KERNEL(op, i8, uint8_t, int8_t, i64, inputs, __VA_ARGS__)                                      \
    KERNEL(op, u8, uint8_t, uint8_t, i64, inputs, __VA_ARGS__)
#define TEST_FLOATS(op, inputs, ...)                                                               \
    KERNEL(op, f64, uint8_t, double, f64, inputs, __VA_ARGS__)                                     \
    KERNEL(op, f32, uint8_t, float, f64, inputs, __VA_ARGS__)
#define FLOAT_TEST_1(op, ...) TEST_FLOATS(op, 1, __VA_ARGS__)
#define FLOAT_TEST_2(op, ...) TEST_FLOATS(op, 2, __VA_ARGS__)
#define INTEGER_TEST_1(op, ...) TEST_INTEGERS(op, 1, __VA_ARGS__)
#define INTEGER_TEST_2(op, ...) TEST_INTEGERS(op, 2, __VA_ARGS__)
#define BOOLEAN_TEST_1(op, ...) KERNEL(op, b8, uint8_t, uint8_t, i64, 1, __VA_ARGS__)
#define BOOLEAN_TEST_2(op, ...) KERNEL(op, b8, uint8_t, uint8_t, i64, 2, __VA_ARGS__)

/* Type-generic helpers of the expressions: the same text serves f32 and f64. */
#define BY_FLOAT(x, f32_function, f64_function) _Generic((x), float: f32_function, default: f64_function)
#define FABS(x) BY_FLOAT(x, fabsf, fabs)(x)
#define SQRT(x) BY_FLOAT(x, sqrtf, sqrt)(x)
#define FLOOR(x) BY_FLOAT(x, floorf, floor)(x)
#define CEIL(x) BY_FLOAT(x, ceilf, ceil)(x)
#define TRUNC(x) BY_FLOAT(x, truncf, trunc)(x)
#define RINT(x) BY_FLOAT(x, rintf, rint)(x)
#define FMOD(x, y) BY_FLOAT(x, fmodf, fmod)(x, y)
#define COPYSIGN(x, y) BY_FLOAT(x, copysignf, copysign)(x, y)

/* NaN wins, as in torch. Functions, so that each argument is computed once and loops stay free of branches. */
static inline float maximum_f32(float x, float y) { return ((x > y) | (x != x)) ? x : y; }
static inline double maximum_f64(double x, double y) { return ((x > y) | (x != x)) ? x : y; }
static inline float minimum_f32(float x, float y) { return ((x < y) | (x != x)) ? x : y; }
static inline double minimum_f64(double x, double y) { return ((x < y) | (x != x)) ? x : y; }
#define MAXIMUM(x, y) BY_FLOAT(x, maximum_f32, maximum_f64)(x, y)
#define MINIMUM(x, y) BY_FLOAT(x, minimum_f32, minimum_f64)(x, y)
/* min(max(x, low), high), any NaN winning; the compiler vectorises this form. */
#define DEFINE_CLAMP(T, suffix)                                                                                                    \
    static inline T clamp_##suffix(T x, T low, T high)                                                                             \
    {                                                                                                                              \
        const T raised = x > low ? x : low, value = raised > high ? high : raised;                                                 \
        return ((x != x) | (high != high)) ? x + high : value;                                                                       \
    }
DEFINE_CLAMP(float, f32)
DEFINE_CLAMP(double, f64)
#define CLAMP(x, low, high) BY_FLOAT(x, clamp_f32, clamp_f64)(x, low, high)

#endif
