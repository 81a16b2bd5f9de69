/* Kernels of elementwise_compare.def: comparisons, and the choice between two elements of any type. */
#include "kernels/elementwise_loop.h"

#define SIGN_BIT(x) BY_FLOAT(x, sign_bit_f32, sign_bit_f64)(x)
static inline int sign_bit_f32(float x) { return __builtin_signbitf(x) != 0; }
static inline int sign_bit_f64(double x) { return __builtin_signbit(x) != 0; }

/* |x - y| <= atol + rtol |y|; infinities are close to themselves only. */
#define IS_CLOSE(x, y)                                                                             \
    ((x) == (y) || (s2 != 0 && (x) != (x) && (y) != (y)) ||                                         \
     (FABS((x) - (y)) < (T)INFINITY && FABS((x) - (y)) <= s1 + FABS(s0 * (y))))

static inline int integer_is_close(double x, double y, int equal, const union elementwise_scalar *scalars)
{
    return equal || fabs(x - y) <= scalars[1].f64 + fabs(scalars[0].f64 * y);
}

/* Reads a mask of bools and moves whole elements. */
#define CHOICE_KERNEL(op, tag, type)                                                               \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars); \
    void KERNEL_NAME(op, tag)(void *const *operands, size_t n, const union elementwise_scalar *scalars)  \
    {                                                                                              \
        (void)scalars;                                                                             \
        type *const out = operands[0];                                                             \
        const uint8_t *const mask = operands[1];                                                   \
        const type *const a = operands[2], *const b = operands[3];                                 \
        INDEPENDENT_ITERATIONS                                                                       \
        for (size_t i = 0; i < n; ++i)                                                             \
            out[i] = mask[i] ? a[i] : b[i];                                                        \
    }
#define CHOICE(op)                                                                                 \
    CHOICE_KERNEL(op, f64, double) CHOICE_KERNEL(op, f32, float) CHOICE_KERNEL(op, f16, uint16_t)  \
    CHOICE_KERNEL(op, bf16, uint16_t) CHOICE_KERNEL(op, i64, int64_t) CHOICE_KERNEL(op, i32, int32_t) \
    CHOICE_KERNEL(op, i16, int16_t) CHOICE_KERNEL(op, i8, int8_t) CHOICE_KERNEL(op, u8, uint8_t)   \
    CHOICE_KERNEL(op, b8, uint8_t) CHOICE_KERNEL(op, c64, complex32_pair) CHOICE_KERNEL(op, c128, complex64_pair)

#define OP(name, inputs, result, cost)
#include "kernels/elementwise_compare.def"
