/* Kernels of elementwise_math.def. */
#include "kernels/elementwise_loop.h"
#include "kernels/elementwise_functions.h"

enum { PERIODIC_CHUNK = 512 };

/* Is every angle small enough for math_f32.h's reduction? NaN is. */
static int angles_are_small(const float *x, size_t n)
{
    int32_t large = 0;
    for (size_t i = 0; i < n; ++i)
        large |= (int32_t)(fabsf(x[i]) > MATH_TURNS);
    return !large;
}

#define PERIODIC_1(op)                                                                             \
    KERNEL(op, f64, double, double, f64, 1, op(x))                                                 \
    static void op##_library(float *out, const float *a, size_t n)                                 \
    {                                                                                              \
        for (size_t i = 0; i < n; ++i)                                                             \
            out[i] = op##f(a[i]);                                                                  \
    }                                                                                              \
    void KERNEL_NAME(op, f32)(void *const *operands, size_t n, const union elementwise_scalar *scalars); \
    void KERNEL_NAME(op, f32)(void *const *operands, size_t n, const union elementwise_scalar *scalars)  \
    {                                                                                              \
        (void)scalars;                                                                             \
        for (size_t at = 0; at < n; at += PERIODIC_CHUNK) {                                        \
            const size_t count = n - at < PERIODIC_CHUNK ? n - at : PERIODIC_CHUNK;                \
            float *const out = (float *)operands[0] + at;                                          \
            const float *const a = (const float *)operands[1] + at;                                \
            if (!angles_are_small(a, count)) {                                                     \
                op##_library(out, a, count);                                                       \
                continue;                                                                          \
            }                                                                                      \
            INDEPENDENT_ITERATIONS                                                                   \
            for (size_t i = 0; i < count; ++i)                                                     \
                out[i] = math_##op(a[i]);                                                          \
        }                                                                                          \
    }

#define OP(name, inputs, result, cost)
#include "kernels/elementwise_math.def"
