/* Kernels of elementwise_arithmetic.def. */
#include "kernels/elementwise_loop.h"

/* Divisors of 0 and -1 don't reach the machine's division, which traps on 0 and on minimum / -1. */
#define INTEGER_QUOTIENT(x, y) ((y) == 0 ? 0 : (y) == (T)-1 && (T)-1 < 0 ? (T)-(x) : (x) / ((y) == 0 ? 1 : (y)))
#define INTEGER_REMAINDER(x, y) ((y) == 0 || ((y) == (T)-1 && (T)-1 < 0) ? 0 : (x) % ((y) == 0 ? 1 : (y)))
#define SIGNS_DIFFER(remainder, y) ((remainder) != 0 && ((remainder) < 0) != ((y) < 0))
#define INTEGER_FLOOR_QUOTIENT(x, y) \
    (INTEGER_QUOTIENT(x, y) - (SIGNS_DIFFER(INTEGER_REMAINDER(x, y), y) ? 1 : 0))
#define INTEGER_FLOOR_REMAINDER(x, y) \
    (INTEGER_REMAINDER(x, y) + (SIGNS_DIFFER(INTEGER_REMAINDER(x, y), y) ? (y) : 0))
#define SHIFT_FITS(type, bits) ((bits) >= 0 && (uint64_t)(bits) < sizeof(type) * 8)

#define DEFINE_FLOAT_HELPERS(type, suffix, fmod_, floor_, copysign_)                               \
    static inline type remainder_##suffix(type x, type y)                                          \
    {                                                                                              \
        const type r = fmod_(x, y);                                                                \
        return r != 0 && (y < 0) != (r < 0) ? r + y : r;                                           \
    }                                                                                              \
    /* Rounds down the exact quotient: x / y itself may round up to the next whole number. */      \
    static inline type div_floor_##suffix(type x, type y)                                          \
    {                                                                                              \
        if (y == 0)                                                                                \
            return x / y;                                                                          \
        const type r = fmod_(x, y);                                                                \
        type quotient = (x - r) / y;                                                               \
        if (r != 0 && (y < 0) != (r < 0))                                                          \
            quotient -= 1;                                                                         \
        if (quotient == 0)                                                                         \
            return copysign_(0, x / y);                                                            \
        const type whole = floor_(quotient);                                                       \
        return quotient - whole > (type)0.5 ? whole + 1 : whole;                                   \
    }
DEFINE_FLOAT_HELPERS(float, f32, fmodf, floorf, copysignf)
DEFINE_FLOAT_HELPERS(double, f64, fmod, floor, copysign)
#define REMAINDER(x, y) BY_FLOAT(x, remainder_f32, remainder_f64)(x, y)
#define DIV_FLOOR(x, y) BY_FLOAT(x, div_floor_f32, div_floor_f64)(x, y)

#define ROUND_HALF_AWAY(x) COPYSIGN(FLOOR(FABS(x)) + (FABS(x) - FLOOR(FABS(x)) >= (T)0.5 ? (T)1 : (T)0), x)

/* Starts from the nearer end, so that weight 1 gives the end exactly. */
#define LERP(start, end, weight)                                                                   \
    (FABS(weight) < (T)0.5 ? (start) + (weight) * ((end) - (start)) : (end) - ((end) - (start)) * (1 - (weight)))

static inline int64_t integer_gcd(int64_t x, int64_t y)
{
    uint64_t a = x < 0 ? -(uint64_t)x : (uint64_t)x, b = y < 0 ? -(uint64_t)y : (uint64_t)y;
    while (b) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return (int64_t)a;
}

/* Modulo 2^64. Negative exponents round towards zero: only 1 and -1 keep a value. */
static inline int64_t integer_power(uint64_t base, int64_t exponent)
{
    if (exponent < 0)
        return base == 1 ? 1 : base == UINT64_MAX ? (exponent & 1 ? -1 : 1) : 0;
    uint64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return (int64_t)result;
}

#define OP(name, inputs, result, cost)
#include "kernels/elementwise_arithmetic.def"
