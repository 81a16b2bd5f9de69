/* Kernels of elementwise_compare.def. */
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

#define OP(name, inputs, result, cost)
#include "kernels/elementwise_compare.def"
