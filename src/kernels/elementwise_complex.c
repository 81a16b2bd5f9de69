/* Kernels of elementwise_complex.def: complex arithmetic on pairs.
 *
 * The build doesn't vectorise this file: GCC 12 turns a complex product into fused multiply-adds even where contraction is off,
 * and instruction sets would disagree. */
#include "kernels/elementwise_loop.h"

#define COMPLEX_ADD(x, y) ((T){(x).re + (y).re, (x).im + (y).im})
#define COMPLEX_SUB(x, y) ((T){(x).re - (y).re, (x).im - (y).im})
#define COMPLEX_MUL(x, y) ((T){(x).re * (y).re - (x).im * (y).im, (x).re * (y).im + (x).im * (y).re})

/* Smith's method: scales by the larger part, so that finite quotients don't overflow on the way. */
#define DEFINE_COMPLEX_DIV(pair, real, suffix, fabs_)                                              \
    static inline pair complex_div_##suffix(pair x, pair y)                                        \
    {                                                                                              \
        if (fabs_(y.re) >= fabs_(y.im)) {                                                          \
            if (y.re == 0 && y.im == 0)                                                            \
                return (pair){x.re / fabs_(y.re), x.im / fabs_(y.im)};                             \
            const real ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);                     \
            return (pair){(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};           \
        }                                                                                          \
        const real ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);                         \
        return (pair){(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};               \
    }
DEFINE_COMPLEX_DIV(complex32_pair, float, c64, fabsf)
DEFINE_COMPLEX_DIV(complex64_pair, double, c128, fabs)
#define COMPLEX_DIV(x, y) _Generic((x), complex32_pair: complex_div_c64, default: complex_div_c128)(x, y)

#define COMPLEX_KERNEL(op, tag, result_type, type, real, inputs, ...)                              \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars); \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars)  \
    {                                                                                              \
        typedef type T;                                                                            \
        result_type *const out = operands[0];                                                      \
        const T *const a = operands[1];                                                            \
        const T *const b __attribute__((unused)) = inputs > 1 ? operands[2] : operands[1];         \
        const T s0 __attribute__((unused)) = {(real)scalars[0].c128.re, (real)scalars[0].c128.im}; \
        for (size_t i = 0; i < n; ++i) {                                                           \
            const T x = a[i], y __attribute__((unused)) = b[i];                                    \
            out[i] = (__VA_ARGS__);                                                                \
        }                                                                                          \
    }
#define COMPLEX_1(op, ...)                                                                         \
    COMPLEX_KERNEL(op, c64, complex32_pair, complex32_pair, float, 1, __VA_ARGS__)                 \
    COMPLEX_KERNEL(op, c128, complex64_pair, complex64_pair, double, 1, __VA_ARGS__)
#define COMPLEX_2(op, ...)                                                                         \
    COMPLEX_KERNEL(op, c64, complex32_pair, complex32_pair, float, 2, __VA_ARGS__)                 \
    COMPLEX_KERNEL(op, c128, complex64_pair, complex64_pair, double, 2, __VA_ARGS__)
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
