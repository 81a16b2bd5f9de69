/* Optimizer kernels. See optimizer.h. */
#include "kernels/optimizer.h"

#include <math.h>

#include "kernels/isa.h"

_Static_assert(DTYPE_F64 == 0 && DTYPE_F32 == 1, "optimizer tables are indexed by these");

#define S(name) ((T)scalars[name].f64)

/* amsgrad and scaled are constants, so that each kernel has just its own operations. */
#define ADAM(name, T_, sqrt_, fabs_, amsgrad, scaled)                                              \
    static void name(void *const *operands, size_t n, const union elementwise_scalar *scalars)     \
    {                                                                                              \
        typedef T_ T;                                                                              \
        T *const parameter = operands[0], *const first = operands[1], *const second = operands[2]; \
        T *const gradient = operands[3], *const largest = amsgrad ? operands[4] : operands[2];     \
        const T shrink = S(ADAM_SHRINK), penalty = S(ADAM_PENALTY), weight = S(ADAM_BETA1_REST);   \
        const T beta2 = S(ADAM_BETA2), beta2_rest = S(ADAM_BETA2_REST), step = S(ADAM_STEP_SIZE);  \
        const T correction = S(ADAM_CORRECTION2), eps = S(ADAM_EPS), sign = S(ADAM_GRADIENT_SIGN); \
        const T scale = S(ADAM_GRADIENT_SCALE);                                                    \
        const int from_start = fabs_(weight) < (T)0.5;                                             \
        INDEPENDENT_ITERATIONS                                                                       \
        for (size_t i = 0; i < n; ++i) {                                                           \
            T g = gradient[i], p = parameter[i] * shrink;                                          \
            if (scaled)                                                                            \
                gradient[i] = g = g / scale;                                                       \
            g = penalty != 0 ? g * sign + p * penalty : g * sign;                                                            \
            const T difference = g - first[i];                                                     \
            const T m = from_start ? first[i] + weight * difference : g + (weight - 1) * difference; \
            const T v = second[i] * beta2 + beta2_rest * g * g;                                    \
            first[i] = m;                                                                          \
            second[i] = v;                                                                         \
            T bound = v;                                                                           \
            if (amsgrad) {                                                                         \
                bound = largest[i] > v || largest[i] != largest[i] ? largest[i] : v;               \
                largest[i] = bound;                                                                \
            }                                                                                      \
            parameter[i] = p - step * m / (sqrt_(bound) / correction + eps);                       \
        }                                                                                          \
    }
#define ADAMS(T, suffix, sqrt_, fabs_)                                                             \
    ADAM(adam_##suffix, T, sqrt_, fabs_, 0, 0)                                                     \
    ADAM(adam_amsgrad_##suffix, T, sqrt_, fabs_, 1, 0)                                             \
    ADAM(adam_scaled_##suffix, T, sqrt_, fabs_, 0, 1)                                              \
    ADAM(adam_amsgrad_scaled_##suffix, T, sqrt_, fabs_, 1, 1)
ADAMS(double, f64, sqrt, fabs)
ADAMS(float, f32, sqrtf, fabsf)

#define SGD(name, T_, with_momentum, scaled)                                                       \
    static void name(void *const *operands, size_t n, const union elementwise_scalar *scalars)     \
    {                                                                                              \
        typedef T_ T;                                                                              \
        T *const parameter = operands[0], *const gradient = operands[1];                           \
        T *const momentum = with_momentum ? operands[2] : operands[0];                             \
        const T lr = S(SGD_LR), penalty = S(SGD_PENALTY), factor = S(SGD_MOMENTUM);                \
        const T rest = S(SGD_DAMPENING_REST), sign = S(SGD_GRADIENT_SIGN), scale = S(SGD_GRADIENT_SCALE); \
        const int nesterov = scalars[SGD_NESTEROV].f64 != 0, first = scalars[SGD_FIRST].f64 != 0;  \
        INDEPENDENT_ITERATIONS                                                                       \
        for (size_t i = 0; i < n; ++i) {                                                           \
            T g = gradient[i], p = parameter[i];                                                   \
            if (scaled)                                                                            \
                gradient[i] = g = g / scale;                                                       \
            g = penalty != 0 ? g * sign + p * penalty : g * sign;                                                            \
            if (with_momentum) {                                                                   \
                const T old = first ? 0 : momentum[i];                                             \
                const T m = first ? g : old * factor + g * rest;                                   \
                momentum[i] = m;                                                                   \
                g = nesterov ? g + m * factor : m;                                                 \
            }                                                                                      \
            parameter[i] = p - lr * g;                                                             \
        }                                                                                          \
    }
#define SGDS(T, suffix)                                                                            \
    SGD(sgd_##suffix, T, 0, 0)                                                                     \
    SGD(sgd_momentum_##suffix, T, 1, 0)                                                            \
    SGD(sgd_scaled_##suffix, T, 0, 1)                                                              \
    SGD(sgd_momentum_scaled_##suffix, T, 1, 1)
SGDS(double, f64)
SGDS(float, f32)

#define UNSCALE(suffix, T)                                                                         \
    static void unscale_##suffix(void *const *operands, size_t n, const union elementwise_scalar *scalars) \
    {                                                                                              \
        T *const x = operands[0];                                                                  \
        const T factor = (T)scalars[0].f64;                                                        \
        for (size_t i = 0; i < n; ++i)                                                             \
            x[i] *= factor;                                                                        \
    }
UNSCALE(f64, double)
UNSCALE(f32, float)

#define HAS_NON_FINITE(suffix, T, integer, fabs_)                                                  \
    static bool has_non_finite_##suffix(const void *in_, size_t n)                                 \
    {                                                                                              \
        const T *const in = in_;                                                                   \
        integer found = 0;                                                                         \
        for (size_t i = 0; i < n; ++i)                                                             \
            found |= (integer)!(fabs_(in[i]) < (T)INFINITY);                                       \
        return found != 0;                                                                         \
    }
HAS_NON_FINITE(f64, double, int64_t, fabs)
HAS_NON_FINITE(f32, float, int32_t, fabsf)

/* 64 running values and a halving tree: the order of additions depends on n alone. */
enum { SUM_LANES = 64 };
#define NORM(name, T, start, value, join)                                                          \
    static double name(const void *in_, size_t n, double power)                                    \
    {                                                                                              \
        (void)power;                                                                               \
        const T *const in = in_;                                                                   \
        double sums[SUM_LANES];                                                                    \
        for (int l = 0; l < SUM_LANES; ++l)                                                        \
            sums[l] = (start);                                                                     \
        size_t i = 0;                                                                              \
        for (; i + SUM_LANES <= n; i += SUM_LANES)                                                 \
            for (size_t l = 0; l < SUM_LANES; ++l) {                                               \
                const double x = fabs((double)in[i + l]), y = (value), s = sums[l];                \
                sums[l] = join(s, y);                                                              \
            }                                                                                      \
        for (size_t l = 0; i < n; ++i, ++l) {                                                      \
            const double x = fabs((double)in[i]), y = (value), s = sums[l];                        \
            sums[l] = join(s, y);                                                                  \
        }                                                                                          \
        for (int half = SUM_LANES / 2; half > 0; half /= 2)                                        \
            for (int l = 0; l < half; ++l) {                                                       \
                const double s = sums[l], y = sums[l + half];                                      \
                sums[l] = join(s, y);                                                              \
            }                                                                                      \
        return sums[0];                                                                            \
    }
#define JOIN_SUM(s, y) ((s) + (y))
#define JOIN_MAX(s, y) ((s) > (y) || (s) != (s) ? (s) : (y))
#define JOIN_MIN(s, y) ((s) < (y) || (s) != (s) ? (s) : (y))
#define NORMS(T, suffix)                                                                           \
    NORM(norm_count_##suffix, T, 0, (double)(x != 0), JOIN_SUM)                                    \
    NORM(norm_abs_##suffix, T, 0, x, JOIN_SUM)                                                     \
    NORM(norm_square_##suffix, T, 0, x * x, JOIN_SUM)                                              \
    NORM(norm_max_##suffix, T, 0, x, JOIN_MAX)                                                     \
    NORM(norm_min_##suffix, T, (double)INFINITY, x, JOIN_MIN)                                      \
    NORM(norm_power_##suffix, T, 0, pow(x, power), JOIN_SUM)
NORMS(double, f64)
NORMS(float, f32)

#define BOTH(name) {name##_f64, name##_f32}
const struct optimizer_kernels KERNEL_TABLE(optimizer_kernels) = {
    .adam = BOTH(adam),
    .adam_amsgrad = BOTH(adam_amsgrad),
    .adam_scaled = BOTH(adam_scaled),
    .adam_amsgrad_scaled = BOTH(adam_amsgrad_scaled),
    .sgd = BOTH(sgd),
    .sgd_momentum = BOTH(sgd_momentum),
    .sgd_scaled = BOTH(sgd_scaled),
    .sgd_momentum_scaled = BOTH(sgd_momentum_scaled),
    .unscale = BOTH(unscale),
    .has_non_finite = BOTH(has_non_finite),
    .norm = {BOTH(norm_count), BOTH(norm_abs), BOTH(norm_square), BOTH(norm_max), BOTH(norm_min), BOTH(norm_power)},
};
