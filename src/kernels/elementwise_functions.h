/* Type-generic names of the transcendental functions, for the expressions of elementwise_math.def and _activation.def. */
#ifndef KERNELS_ELEMENTWISE_FUNCTIONS_H
#define KERNELS_ELEMENTWISE_FUNCTIONS_H

#include "kernels/activation_f32.h"
#include "kernels/elementwise_loop.h"
#include "kernels/math_f32.h"

#define EXP(x) BY_FLOAT(x, math_exp, exp)(x)
#define EXP2(x) BY_FLOAT(x, math_exp2, exp2)(x)
#define EXPM1(x) BY_FLOAT(x, math_expm1, expm1)(x)
#define LOG(x) BY_FLOAT(x, math_log, log)(x)
#define LOG2(x) BY_FLOAT(x, math_log2, log2)(x)
#define LOG10(x) BY_FLOAT(x, math_log10, log10)(x)
#define LOG1P(x) BY_FLOAT(x, math_log1p, log1p)(x)
#define SIN(x) BY_FLOAT(x, math_sin, sin)(x)
#define COS(x) BY_FLOAT(x, math_cos, cos)(x)
#define TAN(x) BY_FLOAT(x, math_tan, tan)(x)
#define ASIN(x) BY_FLOAT(x, math_asin, asin)(x)
#define ACOS(x) BY_FLOAT(x, math_acos, acos)(x)
#define ATAN(x) BY_FLOAT(x, math_atan, atan)(x)
#define SINH(x) BY_FLOAT(x, math_sinh, sinh)(x)
#define COSH(x) BY_FLOAT(x, math_cosh, cosh)(x)
#define TANH(x) BY_FLOAT(x, math_tanh, tanh)(x)
#define ASINH(x) BY_FLOAT(x, math_asinh, asinh)(x)
#define ACOSH(x) BY_FLOAT(x, math_acosh, acosh)(x)
#define ATANH(x) BY_FLOAT(x, math_atanh, atanh)(x)
#define ERF(x) BY_FLOAT(x, math_erf, erf)(x)
#define ERFC(x) BY_FLOAT(x, math_erfc, erfc)(x)
#define POW(x, y) BY_FLOAT(x, math_pow, pow)(x, y)
#define ATAN2(x, y) BY_FLOAT(x, math_atan2, atan2)(x, y)
#define ERFINV(x) BY_FLOAT(x, erfinv_f32, erfinv_f64)(x)
#define SIGMOID(x) BY_FLOAT(x, sigmoid_f32, sigmoid_f64)(x)
#define GELU(x) BY_FLOAT(x, gelu_f32, gelu_f64)(x)
#define GELU_SLOPE(x) BY_FLOAT(x, gelu_slope_f32, gelu_slope_f64)(x)
#define SILU(x) ((x) / (1 + BY_FLOAT(x, softmax_exp, exp)(-(x))))
static inline double sigmoid_f64(double x) { return 1 / (1 + exp(-x)); }

#define SQRT_HALF 0.70710678118654752440
#define GAUSS_PEAK 0.39894228040143267794 /* 1 / sqrt(2 pi) */
#define GELU_BETA 0.79788456080286535588  /* sqrt(2 / pi) */
#define GELU_KAPPA 0.044715
#define PI 3.14159265358979323846

static inline double gelu_f64(double x) { return x * 0.5 * (1 + erf(x * SQRT_HALF)); }
static inline double gelu_slope_f64(double x) { return 0.5 * (1 + erf(x * SQRT_HALF)) + x * (GAUSS_PEAK * exp(x * x * -0.5)); }

/* erf(x) - y without losing digits near 1 and -1. */
static inline double erf_residual(double x, double y)
{
    return y > 0.5 ? (1 - y) - erfc(x) : y < -0.5 ? erfc(-x) - (1 + y) : erf(x) - y;
}

/* Giles's approximation, then two Newton steps on erf. */
static inline double erfinv_f64(double y)
{
    if (!(fabs(y) < 1))
        return fabs(y) == 1 ? copysign((double)INFINITY, y) : (double)NAN;
    double w = -log((1 - y) * (1 + y)), x;
    if (w < 5) {
        w -= 2.5;
        x = 1.50140941 +
            w * (0.246640727 +
                 w * (-0.00417768164 +
                      w * (-0.00125372503 +
                           w * (0.00021858087 +
                                w * (-4.39150654e-06 + w * (-3.5233877e-06 + w * (3.43273939e-07 + w * 2.81022636e-08)))))));
    } else {
        w = sqrt(w) - 3;
        x = 2.83297682 +
            w * (1.00167406 +
                 w * (0.00943887047 +
                      w * (-0.0076224613 +
                           w * (0.00573950773 +
                                w * (-0.00367342844 + w * (0.00134934322 + w * (0.000100950558 + w * -0.000200214257)))))));
    }
    x *= y;
    const double half_sqrt_pi = 0.88622692545275801365;
    for (int step = 0; step < 2; ++step)
        x -= erf_residual(x, y) * half_sqrt_pi * exp(x * x);
    return x;
}
static inline float erfinv_f32(float y) { return (float)erfinv_f64(y); }

/* tanh(log(1 + e^x)), without the logarithm: a ratio of polynomials in e^x. */
static inline float mish_gate_f32(float x)
{
    const double e = math_exp_f64(x > 40 ? 40 : (double)x), n = e * (e + 2);
    return (float)(n / (n + 2));
}
static inline double mish_gate_f64(double x) { return tanh(log1p(exp(x))); }
#define MISH_GATE(x) BY_FLOAT(x, mish_gate_f32, mish_gate_f64)(x)

/* log(1 + e^(x beta)) / beta below the threshold. */
static inline float softplus_f32(float x, float beta, float threshold)
{
    const float scaled = x * beta;
    const double power = math_exp_f64((double)(scaled > 80 ? 80 : scaled));
    const float value = (float)math_log1p_positive(power) / beta;
    return scaled > threshold ? x : value;
}
static inline double softplus_f64(double x, double beta, double threshold)
{
    return x * beta > threshold ? x : log1p(exp(x * beta)) / beta;
}
#define SOFTPLUS(x, beta, threshold) BY_FLOAT(x, softplus_f32, softplus_f64)(x, beta, threshold)

#define DEFINE_FUNCTION_HELPERS(T, suffix)                                                         \
    static inline T sinc_##suffix(T x)                                                             \
    {                                                                                              \
        const T product = (T)PI * x;                                                               \
        return x == 0 ? 1 : BY_FLOAT(product, sinf, sin)(product) / product;                       \
    }                                                                                              \
    static inline T log_add_exp_##suffix(T x, T y)                                                 \
    {                                                                                              \
        const T high = MAXIMUM(x, y), gap = FABS(x - y);                                           \
        return x == y && FABS(x) == (T)INFINITY ? x : x != x || y != y ? x + y : high + LOG1P(EXP(-gap)); \
    }                                                                                              \
    static inline T log_add_exp2_##suffix(T x, T y)                                                \
    {                                                                                              \
        const T high = MAXIMUM(x, y), gap = FABS(x - y);                                           \
        return x == y && FABS(x) == (T)INFINITY ? x                                                \
               : x != x || y != y ? x + y : high + LOG1P(EXP2(-gap)) * (T)1.44269504088896340736;  \
    }                                                                                              \
    static inline T logit_##suffix(T x, T eps)                                                     \
    {                                                                                              \
        const T low = eps < 0 ? x : x < eps ? eps : x > 1 - eps ? 1 - eps : x;                     \
        return LOG(low / (1 - low));                                                               \
    }                                                                                              \
    static inline T logit_grad_##suffix(T x, T dy, T eps)                                          \
    {                                                                                              \
        const T outside = eps < 0 ? (T)NAN : 0, low = eps < 0 ? 0 : eps;                           \
        return x < low || x > 1 - low ? outside : x == 0 || x == 1 ? dy * (T)INFINITY : dy / (x * (1 - x)); \
    }                                                                                              \
    static inline T gelu_tanh_backward_##suffix(T gradient, T x)                                   \
    {                                                                                              \
        const T beta = (T)GELU_BETA, kappa = (T)GELU_KAPPA;                                        \
        const T square = x * x, inner = beta * (x + kappa * (x * square)), t = TANH(inner);        \
        const T left = (T)0.5 * x, right = 1 + t;                                                  \
        const T slope = beta * (1 + 3 * kappa * square);                                           \
        return gradient * ((T)0.5 * right + left * ((1 - t * t) * slope));                         \
    }                                                                                              \
    static inline T softplus_backward_##suffix(T gradient, T x, T beta, T threshold)               \
    {                                                                                              \
        const T power = EXP(x * beta);                                                             \
        return x * beta > threshold ? gradient : gradient * power / (power + 1);                   \
    }                                                                                              \
    static inline T elu_backward_##suffix(T gradient, T x, T negative, T positive, T input, T is_result) \
    {                                                                                              \
        const T by_input = gradient * input * negative * EXP(x * input);                           \
        const T by_result = gradient * input * (x + negative);                                     \
        return x <= 0 ? (is_result != 0 ? by_result : by_input) : gradient * positive;             \
    }                                                                                              \
    static inline T mish_backward_##suffix(T gradient, T x)                                        \
    {                                                                                              \
        const T sigmoid = SIGMOID(x), t = MISH_GATE(x);                                     \
        return gradient * (t + x * sigmoid * (1 - t * t));                                         \
    }                                                                                              \
    static inline T log_sigmoid_backward_##suffix(T gradient, T x)                                 \
    {                                                                                              \
        const T power = EXP(-FABS(x)), part = power / (1 + power);                                 \
        return (x < 0 ? 1 - part : part) * gradient;                                               \
    }
DEFINE_FUNCTION_HELPERS(float, f32)
DEFINE_FUNCTION_HELPERS(double, f64)
#define SINC(x) BY_FLOAT(x, sinc_f32, sinc_f64)(x)
#define LOG_ADD_EXP(x, y) BY_FLOAT(x, log_add_exp_f32, log_add_exp_f64)(x, y)
#define LOG_ADD_EXP2(x, y) BY_FLOAT(x, log_add_exp2_f32, log_add_exp2_f64)(x, y)
#define LOGIT(x, eps) BY_FLOAT(x, logit_f32, logit_f64)(x, eps)
#define LOGIT_GRAD(x, dy, eps) BY_FLOAT(x, logit_grad_f32, logit_grad_f64)(x, dy, eps)
#define GELU_TANH_BACKWARD(x, y) BY_FLOAT(x, gelu_tanh_backward_f32, gelu_tanh_backward_f64)(x, y)
#define SOFTPLUS_BACKWARD(x, y, beta, threshold) \
    BY_FLOAT(x, softplus_backward_f32, softplus_backward_f64)(x, y, beta, threshold)
#define ELU_BACKWARD(x, y) BY_FLOAT(x, elu_backward_f32, elu_backward_f64)(x, y, s0, s1, s2, s3)
#define MISH_BACKWARD(x, y) BY_FLOAT(x, mish_backward_f32, mish_backward_f64)(x, y)
#define LOG_SIGMOID_BACKWARD(x, y) BY_FLOAT(x, log_sigmoid_backward_f32, log_sigmoid_backward_f64)(x, y)

#endif
