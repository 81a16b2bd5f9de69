/* Kernels of elementwise_complex.def: arithmetic and functions of complex numbers, on pairs.
 *
 * The build doesn't vectorise this file: GCC 12 turns a complex product into fused multiply-adds even where contraction is off,
 * and instruction sets would disagree. */
#include "kernels/elementwise_loop.h"

#define COMPLEX_ADD(x, y) ((T){(x).re + (y).re, (x).im + (y).im})
#define COMPLEX_SUB(x, y) ((T){(x).re - (y).re, (x).im - (y).im})
#define COMPLEX_MUL(x, y) ((T){(x).re * (y).re - (x).im * (y).im, (x).re * (y).im + (x).im * (y).re})

#define REAL float
#define PAIR complex32_pair
#define TAG c64
#define C(function) function##f
#include "kernels/complex_functions.h"
#define REAL double
#define PAIR complex64_pair
#define TAG c128
#define C(function) function
#include "kernels/complex_functions.h"

#define BY_PAIR(name, x) _Generic((x), complex32_pair: complex_##name##_c64, default: complex_##name##_c128)
#define COMPLEX_CALL(name, x) BY_PAIR(name, x)(x)
#define COMPLEX_CALL2(name, x, y) BY_PAIR(name, x)(x, y)
#define COMPLEX_CALL3(name, x, y, z) BY_PAIR(name, x)(x, y, z)
#define COMPLEX_CALL4(name, x, y, z, w) BY_PAIR(name, x)(x, y, z, w)

#define COMPLEX_KERNEL(op, tag, result_type, type, real, inputs, ...)                              \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars); \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars)  \
    {                                                                                              \
        typedef type T;                                                                            \
        result_type *const out = operands[0];                                                      \
        const T *const a = operands[1];                                                            \
        const T *const b __attribute__((unused)) = inputs > 1 ? operands[2] : operands[1];         \
        const T *const c __attribute__((unused)) = inputs > 2 ? operands[3] : operands[1];         \
        const T s0 __attribute__((unused)) = {(real)scalars[0].c128.re, (real)scalars[0].c128.im}; \
        for (size_t i = 0; i < n; ++i) {                                                           \
            const T x __attribute__((unused)) = a[i];                                              \
            const T y __attribute__((unused)) = b[i], z __attribute__((unused)) = c[i];            \
            out[i] = (__VA_ARGS__);                                                                \
        }                                                                                          \
    }
#define COMPLEX_1(op, ...)                                                                         \
    COMPLEX_KERNEL(op, c64, complex32_pair, complex32_pair, float, 1, __VA_ARGS__)                 \
    COMPLEX_KERNEL(op, c128, complex64_pair, complex64_pair, double, 1, __VA_ARGS__)
#define COMPLEX_2(op, ...)                                                                         \
    COMPLEX_KERNEL(op, c64, complex32_pair, complex32_pair, float, 2, __VA_ARGS__)                 \
    COMPLEX_KERNEL(op, c128, complex64_pair, complex64_pair, double, 2, __VA_ARGS__)
#define COMPLEX_3(op, ...)                                                                         \
    COMPLEX_KERNEL(op, c64, complex32_pair, complex32_pair, float, 3, __VA_ARGS__)                 \
    COMPLEX_KERNEL(op, c128, complex64_pair, complex64_pair, double, 3, __VA_ARGS__)
#define COMPLEX_TEST_2(op, ...)                                                                    \
    COMPLEX_KERNEL(op, c64, uint8_t, complex32_pair, float, 2, __VA_ARGS__)                        \
    COMPLEX_KERNEL(op, c128, uint8_t, complex64_pair, double, 2, __VA_ARGS__)
#define COMPLEX_REAL(op, ...)                                                                      \
    COMPLEX_KERNEL(op, c64, float, complex32_pair, float, 1, __VA_ARGS__)                          \
    COMPLEX_KERNEL(op, c128, double, complex64_pair, double, 1, __VA_ARGS__)

/* Two real inputs make a complex element. */
#define PAIR_KERNEL(op, tag, pair, real, re_value, im_value)                                       \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars); \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars)  \
    {                                                                                              \
        (void)scalars;                                                                             \
        pair *const out = operands[0];                                                             \
        const real *const a = operands[1], *const b = operands[2];                                 \
        for (size_t i = 0; i < n; ++i) {                                                           \
            const real x = a[i], y = b[i];                                                         \
            out[i] = (pair){re_value, im_value};                                                   \
        }                                                                                          \
    }
PAIR_KERNEL(complex_pair, f32, complex32_pair, float, x, y)
PAIR_KERNEL(complex_pair, f64, complex64_pair, double, x, y)
PAIR_KERNEL(polar, f32, complex32_pair, float, x *cosf(y), x *sinf(y))
PAIR_KERNEL(polar, f64, complex64_pair, double, x *cos(y), x *sin(y))

COMPLEX_KERNEL(complex_abs, c64, float, complex32_pair, float, 1, hypotf(x.re, x.im))
COMPLEX_KERNEL(complex_abs, c128, double, complex64_pair, double, 1, hypot(x.re, x.im))
COMPLEX_KERNEL(complex_angle, c64, float, complex32_pair, float, 1, atan2f(x.im, x.re))
COMPLEX_KERNEL(complex_angle, c128, double, complex64_pair, double, 1, atan2(x.im, x.re))

#define OP(name, inputs, result, cost)
#include "kernels/elementwise_complex.def"
