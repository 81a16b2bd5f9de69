/* Functions of complex numbers for elementwise_complex.c, as torch's CPU defines them. A template: included once a real type with
 *   REAL   float or double          PAIR   its pair
 *   TAG    c64 or c128              C(f)   the C library's name of a function for REAL
 * Each becomes complex_<name>_<TAG>. Edge values are the C library's (C11, annex G) wherever it has the function. */
#include <complex.h>
#include <math.h>

#include "kernels/isa.h"

#define NAME(function) ISA_PASTE(complex_##function, TAG)

static inline REAL _Complex NAME(number)(PAIR x) { return __builtin_complex(x.re, x.im); }
static inline PAIR NAME(parts)(REAL _Complex x) { return (PAIR){C(creal)(x), C(cimag)(x)}; }

static inline PAIR NAME(times)(PAIR x, PAIR y) { return (PAIR){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

/* Smith's method: scales by the larger part, so that finite quotients don't overflow on the way. */
static inline PAIR NAME(div)(PAIR x, PAIR y)
{
    if (C(fabs)(y.re) >= C(fabs)(y.im)) {
        if (y.re == 0 && y.im == 0)
            return (PAIR){x.re / C(fabs)(y.re), x.im / C(fabs)(y.im)};
        const REAL ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
        return (PAIR){(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
    }
    const REAL ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);
    return (PAIR){(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}

#define LIBRARY_FUNCTION(name) \
    static inline PAIR NAME(name)(PAIR x) { return NAME(parts)(C(c##name)(NAME(number)(x))); }
LIBRARY_FUNCTION(exp)
LIBRARY_FUNCTION(log)
LIBRARY_FUNCTION(sqrt)
LIBRARY_FUNCTION(sin)
LIBRARY_FUNCTION(cos)
LIBRARY_FUNCTION(tan)
LIBRARY_FUNCTION(sinh)
LIBRARY_FUNCTION(cosh)
LIBRARY_FUNCTION(tanh)
LIBRARY_FUNCTION(asin)
LIBRARY_FUNCTION(acos)
LIBRARY_FUNCTION(atan)
LIBRARY_FUNCTION(asinh)
LIBRARY_FUNCTION(acosh)
LIBRARY_FUNCTION(atanh)
#undef LIBRARY_FUNCTION

static inline PAIR NAME(scaled_log)(PAIR x, REAL scale)
{
    const PAIR value = NAME(log)(x);
    return (PAIR){value.re * scale, value.im * scale};
}
static inline PAIR NAME(log2)(PAIR x) { return NAME(scaled_log)(x, (REAL)1.44269504088896340736); }
static inline PAIR NAME(log10)(PAIR x) { return NAME(scaled_log)(x, (REAL)0.43429448190325182765); }

/* The real part is half the logarithm of |1 + x|^2 = 1 + (2 re + |x|^2), which keeps the digits of a small x. */
static inline PAIR NAME(log1p)(PAIR x)
{
    const REAL real = C(fabs)(x.re) < (REAL)0.5 && C(fabs)(x.im) < (REAL)0.5 ? (REAL)0.5 * C(log1p)(x.re * (2 + x.re) + x.im * x.im)
                                                                             : C(log)(C(hypot)(1 + x.re, x.im));
    return (PAIR){real, C(atan2)(x.im, 1 + x.re)};
}

static inline PAIR NAME(exp2)(PAIR x)
{
    const REAL log_2 = (REAL)0.69314718055994530942;
    return NAME(exp)((PAIR){x.re * log_2, x.im * log_2});
}

/* exp(a) cos(b) - 1 = expm1(a) cos(b) - 2 sin(b / 2)^2 */
static inline PAIR NAME(expm1)(PAIR x)
{
    const REAL half = C(sin)(x.im / 2);
    return (PAIR){C(expm1)(x.re) * C(cos)(x.im) - 2 * half * half, C(exp)(x.re) * C(sin)(x.im)};
}

static inline PAIR NAME(rsqrt)(PAIR x) { return NAME(div)((PAIR){1, 0}, NAME(sqrt)(x)); }

static inline PAIR NAME(one_plus_exp_of_minus)(PAIR x)
{
    const PAIR power = NAME(exp)((PAIR){-x.re, -x.im});
    return (PAIR){1 + power.re, power.im};
}
static inline PAIR NAME(sigmoid)(PAIR x) { return NAME(div)((PAIR){1, 0}, NAME(one_plus_exp_of_minus)(x)); }
static inline PAIR NAME(silu)(PAIR x) { return NAME(div)(x, NAME(one_plus_exp_of_minus)(x)); }
/* sigmoid(x) (1 + x (1 - sigmoid(x))) */
static inline PAIR NAME(silu_slope)(PAIR x)
{
    const PAIR gate = NAME(sigmoid)(x), inner = NAME(times)(x, (PAIR){1 - gate.re, -gate.im});
    return NAME(times)(gate, (PAIR){1 + inner.re, inner.im});
}
/* conj((1 - y) y) and conj(1 - y y), of the functions' results */
static inline PAIR NAME(sigmoid_slope)(PAIR y)
{
    const PAIR slope = NAME(times)((PAIR){1 - y.re, -y.im}, y);
    return (PAIR){slope.re, -slope.im};
}
static inline PAIR NAME(tanh_slope)(PAIR y)
{
    const PAIR square = NAME(times)(y, y);
    return (PAIR){1 - square.re, square.im};
}

static inline PAIR NAME(sinc)(PAIR x)
{
    const PAIR product = {(REAL)3.14159265358979323846 * x.re, (REAL)3.14159265358979323846 * x.im};
    return x.re == 0 && x.im == 0 ? (PAIR){1, 0} : NAME(div)(NAME(sin)(product), product);
}

/* x / |x|, and 0 for 0 */
static inline PAIR NAME(sign)(PAIR x)
{
    const REAL magnitude = C(hypot)(x.re, x.im);
    return magnitude == 0 ? (PAIR){0, 0} : (PAIR){x.re / magnitude, x.im / magnitude};
}

static inline PAIR NAME(cube)(PAIR x) { return NAME(times)(NAME(times)(x, x), x); }
static inline PAIR NAME(reciprocal_square)(PAIR x) { return NAME(div)((PAIR){1, 0}, NAME(times)(x, x)); }
static inline PAIR NAME(pow)(PAIR x, PAIR y) { return NAME(parts)(C(cpow)(NAME(number)(x), NAME(number)(y))); }

/* The one with the larger real part outside, so that its exponential doesn't overflow. */
static inline PAIR NAME(log_add_exp)(PAIR x, PAIR y)
{
    const int first = x.re >= y.re;
    const PAIR high = first ? x : y, low = first ? y : x;
    if (x.re != x.re || y.re != y.re || x.im != x.im || y.im != y.im)
        return (PAIR){(REAL)NAN, (REAL)NAN};
    if (C(fabs)(high.re) == (REAL)INFINITY && high.re == low.re && high.re < 0)
        return high;
    const PAIR rest = NAME(log1p)(NAME(exp)((PAIR){low.re - high.re, low.im - high.im}));
    return (PAIR){high.re + rest.re, high.im + rest.im};
}

static inline PAIR NAME(addcmul)(PAIR x, PAIR value, PAIR y, PAIR z)
{
    const PAIR product = NAME(times)(NAME(times)(value, y), z);
    return (PAIR){x.re + product.re, x.im + product.im};
}
static inline PAIR NAME(addcdiv)(PAIR x, PAIR value, PAIR y, PAIR z)
{
    const PAIR quotient = NAME(div)(NAME(times)(value, y), z);
    return (PAIR){x.re + quotient.re, x.im + quotient.im};
}
/* From the nearer end: exact at both. */
static inline PAIR NAME(lerp)(PAIR start, PAIR end, PAIR weight)
{
    const PAIR way = {end.re - start.re, end.im - start.im};
    if (weight.re * weight.re + weight.im * weight.im < (REAL)0.25) {
        const PAIR step = NAME(times)(weight, way);
        return (PAIR){start.re + step.re, start.im + step.im};
    }
    const PAIR step = NAME(times)(way, (PAIR){1 - weight.re, -weight.im});
    return (PAIR){end.re - step.re, end.im - step.im};
}

#undef NAME
#undef REAL
#undef PAIR
#undef TAG
#undef C
