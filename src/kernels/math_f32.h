/* Transcendental functions on f32, for loops. */
#ifndef KERNELS_MATH_F32_H
#define KERNELS_MATH_F32_H

#include <math.h>

static inline float math_exp(float x) { return expf(x); }
static inline float math_exp2(float x) { return exp2f(x); }
static inline float math_expm1(float x) { return expm1f(x); }
static inline float math_log(float x) { return logf(x); }
static inline float math_log2(float x) { return log2f(x); }
static inline float math_log10(float x) { return log10f(x); }
static inline float math_log1p(float x) { return log1pf(x); }
static inline float math_sin(float x) { return sinf(x); }
static inline float math_cos(float x) { return cosf(x); }
static inline float math_tan(float x) { return tanf(x); }
static inline float math_asin(float x) { return asinf(x); }
static inline float math_acos(float x) { return acosf(x); }
static inline float math_atan(float x) { return atanf(x); }
static inline float math_sinh(float x) { return sinhf(x); }
static inline float math_cosh(float x) { return coshf(x); }
static inline float math_tanh(float x) { return tanhf(x); }
static inline float math_asinh(float x) { return asinhf(x); }
static inline float math_acosh(float x) { return acoshf(x); }
static inline float math_atanh(float x) { return atanhf(x); }
static inline float math_erf(float x) { return erff(x); }
static inline float math_erfc(float x) { return erfcf(x); }
static inline float math_pow(float x, float y) { return powf(x, y); }
static inline float math_atan2(float x, float y) { return atan2f(x, y); }

#endif
