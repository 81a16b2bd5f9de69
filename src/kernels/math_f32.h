/* Transcendental functions on f32, branch-free, so that loops over them vectorise on every instruction set.
 *
 * They compute in f64 and round once: within 0.51 units in the last place of the exact value, and bit-equal everywhere (no fused
 * multiply-add). Doubling the width costs less than the error compensation that f32 would need. Limits of the number range
 * need no care: results that leave f32's range become infinite, subnormal or 0 in the final rounding. */
#ifndef KERNELS_MATH_F32_H
#define KERNELS_MATH_F32_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t math_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double math_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define MATH_LN2 0.69314718055994530942
#define MATH_LOG2E 1.44269504088896340736
#define MATH_LOG10E 0.43429448190325182765
/* Adding and taking it away rounds to a whole number; the low bits of the sum are that number. */
#define MATH_ROUNDER 0x1.8p52

/* e^x - 1 = scale * (1 + fraction) - 1 with scale = 2^n and |r| <= ln2 / 2. */
struct math_exponential {
    double scale, fraction;
};

static inline struct math_exponential math_exp_parts(double x)
{
    const double limited = x < -160 ? -160 : x > 160 ? 160 : x;
    const double shifted = limited * MATH_LOG2E + MATH_ROUNDER, n = shifted - MATH_ROUNDER;
    const double r =
        (limited - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33; /* ln2 in two parts, the first one exact times n */
    const double q =
        r * (1 + r * (1.0 / 2 +
                      r * (1.0 / 6 +
                           r * (1.0 / 24 +
                                r * (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880)))))))));
    return (struct math_exponential){math_from_bits((math_bits(shifted) + 1023) << 52), q};
}

static inline double math_exp_f64(double x)
{
    const struct math_exponential e = math_exp_parts(x);
    return e.scale + e.scale * e.fraction;
}

static inline double math_expm1_f64(double x)
{
    const struct math_exponential e = math_exp_parts(x);
    return (e.scale - 1) + e.scale * e.fraction;
}

/* x is positive, finite and not subnormal (no f32 is, once widened). */
static inline double math_log_positive(double x)
{
    const uint64_t bits = math_bits(x), half_root = 0x3fe6a09e667f3bcdu; /* sqrt(1/2): mantissas in [sqrt(1/2), sqrt(2)) */
    const uint64_t exponent = (bits + (0x3ff0000000000000u - half_root)) >> 52;
    const double e = math_from_bits(exponent | 0x4330000000000000u) - (0x1p52 + 1023);
    const double m = math_from_bits(bits - ((exponent - 1023) << 52));
    const double s = (m - 1) / (m + 1), z = s * s;
    const double series =
        z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z * (1.0 / 15)))))));
    return e * MATH_LN2 + (2 * s + 2 * s * series);
}

static inline double math_log_f64(double x)
{
    const int inside = (x > 0) & (x < (double)INFINITY);
    const double value = math_log_positive(inside ? x : 1), outside = x == 0 ? -(double)INFINITY : x > 0 ? x : (double)NAN;
    return inside ? value : outside;
}

static inline double math_log1p_f64(double x)
{
    const double y = 1 + x, lost = x - (y - 1); /* what the sum rounded away */
    return math_log_f64(y) + (x < 1 ? lost : 0);
}

/* For x >= 0, without the branches. */
static inline double math_log1p_positive(double x)
{
    const double y = 1 + x, lost = x - (y - 1);
    return math_log_positive(y) + lost / y;
}

static inline double math_tanh_f64(double x)
{
    const double magnitude = fabs(x), t = math_expm1_f64(2 * (magnitude > 20 ? 20 : magnitude));
    return x != x ? x : copysign(t / (t + 2), x);
}

static inline double math_power(double x, double y)
{
    const double magnitude = fabs(x), value = math_exp_f64(y * math_log_f64(magnitude));
    const double half = y * 0.5;
    const int whole = floor(y) == y, odd = whole && floor(half) != half, negative = copysign(1, x) < 0;
    const double signed_value = negative && odd ? -value : value;
    const double result = x < 0 && !whole && magnitude < (double)INFINITY ? (double)NAN : signed_value;
    const int is_one = y == 0 || x == 1 || (magnitude == 1 && fabs(y) == (double)INFINITY);
    return is_one ? 1 : x != x || y != y ? (double)NAN : result;
}

/* Rational approximations (Cephes): of erf / x up to 1, of erfc * e^(x^2) above. */
static inline double math_erf_small(double x)
{
    const double z = x * x;
    const double p =
        (((9.60497373987051638749 * z + 90.0260197203842689217) * z + 2232.00534594684319226) * z + 7003.32514112805075473) * z +
        55592.3013010394962768;
    const double q =
        ((((z + 33.5617141647503099647) * z + 521.357949780152679795) * z + 4594.32382970980127987) * z + 22629.0000613890934246) *
            z +
        49267.3942608635921086;
    return x * p / q;
}

static inline double math_erfc_tail(double x)
{
    const double p = (((((((2.46196981473530512524e-10 * x + 0.564189564831068821977) * x + 7.46321056442269912687) * x +
                          48.6371970985681366614) *
                             x +
                         196.520832956077098242) *
                            x +
                        526.445194995477358631) *
                           x +
                       934.528527171957607540) *
                          x +
                      1027.55188689515710272) *
                         x +
                     557.535335369399327526;
    const double q = (((((((x + 13.2281951154744992508) * x + 86.7072140885989742329) * x + 354.937778887819891062) * x +
                         975.708501743205489753) *
                            x +
                        1823.90916687909736289) *
                           x +
                       2246.33760818710981792) *
                          x +
                      1656.66309194161350182) *
                         x +
                     557.535340817727675546;
    return math_exp_f64(-x * x) * p / q;
}

static inline double math_erf_f64(double x)
{
    const double magnitude = fabs(x), tail = 1 - math_erfc_tail(magnitude > 7 ? 7 : magnitude);
    return magnitude < 1 ? math_erf_small(x) : x != x ? x : copysign(tail, x);
}

static inline double math_erfc_f64(double x)
{
    const double magnitude = fabs(x), tail = math_erfc_tail(magnitude > 12 ? 12 : magnitude);
    return magnitude < 1 ? 1 - math_erf_small(x) : x != x ? x : x > 0 ? tail : 2 - tail;
}

/* --- f32 --------------------------------------------------------------------------------------------------------------- */

static inline float math_exp(float x) { return (float)math_exp_f64((double)x); }
static inline float math_exp2(float x) { return (float)math_exp_f64((double)x * MATH_LN2); }
static inline float math_expm1(float x) { return (float)math_expm1_f64((double)x); }
static inline float math_log(float x) { return (float)math_log_f64((double)x); }
static inline float math_log2(float x) { return (float)(math_log_f64((double)x) * MATH_LOG2E); }
static inline float math_log10(float x) { return (float)(math_log_f64((double)x) * MATH_LOG10E); }
static inline float math_log1p(float x) { return (float)math_log1p_f64((double)x); }
static inline float math_tanh(float x) { return (float)math_tanh_f64((double)x); }
static inline float math_erf(float x) { return (float)math_erf_f64((double)x); }
static inline float math_erfc(float x) { return (float)math_erfc_f64((double)x); }
static inline float math_pow(float x, float y) { return (float)math_power((double)x, (double)y); }

static inline float math_sinh(float x)
{
    const double t = math_expm1_f64(fabs((double)x)), value = 0.5 * (t + t / (t + 1));
    return (float)(x != x ? (double)x : copysign(value, (double)x));
}

static inline float math_cosh(float x)
{
    const double e = math_exp_f64(fabs((double)x));
    return (float)(0.5 * (e + 1 / e));
}

static inline float math_asinh(float x)
{
    const double magnitude = fabs((double)x), square = magnitude * magnitude;
    const double value = math_log1p_f64(magnitude + square / (1 + sqrt(1 + square)));
    return (float)copysign(magnitude < (double)INFINITY ? value : magnitude, (double)x);
}

static inline float math_acosh(float x)
{
    const double t = (double)x - 1;
    return x < 1 ? NAN : (float)math_log1p_f64(t + sqrt(t * t + 2 * t));
}

static inline float math_atanh(float x) { return (float)(0.5 * math_log1p_f64(2 * (double)x / (1 - (double)x))); }

/* Sine and cosine of up to MATH_TURNS: beyond, the reduction loses digits and the kernels take the C library's. */
#define MATH_TURNS 1e6f
static inline double math_sine(double x, uint64_t quarter)
{
    const double shifted = x * 0.63661977236758134308 + MATH_ROUNDER, n = shifted - MATH_ROUNDER;
    const double r = (x - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34; /* pi / 2 in two parts, the first one exact times n */
    const double z = r * r;
    const double sine = r + r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800)))));
    const double cosine =
        1 + z * (-1.0 / 2 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600))))));
    const uint64_t turn = math_bits(shifted) + quarter;
    const double value = turn & 1 ? cosine : sine;
    return math_from_bits(math_bits(value) ^ (turn & 2) << 62);
}
static inline float math_sin(float x) { return (float)math_sine((double)x, 0); }
static inline float math_cos(float x) { return (float)math_sine((double)x, 1); }
static inline float math_tan(float x) { return (float)(math_sine((double)x, 0) / math_sine((double)x, 1)); }

/* These stay the C library's, one by one. */
static inline float math_asin(float x) { return asinf(x); }
static inline float math_acos(float x) { return acosf(x); }
static inline float math_atan(float x) { return atanf(x); }
static inline float math_atan2(float x, float y) { return atan2f(x, y); }

#endif
