/* Complex elementwise kernels on every ISA against C's functions in long double, and at zeros, infinities and NaN. That all
 * instruction sets agree bit for bit at all lengths is test_elementwise.c's. */
#include <complex.h>

#include "kernel_check.h"
#include "kernels/elementwise.h"

typedef long double _Complex number;

/* s: the call's scalar. */
typedef number (*reference)(number x, number y, number z, number s);

#define REFERENCE(name, value)                                                    \
    static number name(number x, number y, number z, number s)                    \
    {                                                                             \
        (void)y, (void)z, (void)s;                                                \
        return value;                                                             \
    }
static number sigmoid(number x) { return 1 / (1 + cexpl(-x)); }

REFERENCE(exact_add, x + y)
REFERENCE(exact_add_scaled, x + s * y)
REFERENCE(exact_sub, x - y)
REFERENCE(exact_sub_scaled, x - s * y)
REFERENCE(exact_mul, x *y)
REFERENCE(exact_div, x / y)
REFERENCE(exact_neg, -x)
REFERENCE(exact_reciprocal, 1 / x)
REFERENCE(exact_square, x *x)
REFERENCE(exact_cube, x * x * x)
REFERENCE(exact_reciprocal_square, 1 / (x * x))
REFERENCE(exact_addcmul, x + s * y * z)
REFERENCE(exact_addcdiv, x + s * y / z)
REFERENCE(exact_lerp, x + z * (y - x))
REFERENCE(exact_lerp_scaled, x + s * (y - x))
REFERENCE(exact_one, 1)
REFERENCE(exact_same, x)
REFERENCE(exact_exp, cexpl(x))
REFERENCE(exact_exp2, cexpl(x *logl(2)))
REFERENCE(exact_expm1, cexpl(x) - 1)
REFERENCE(exact_log, clogl(x))
REFERENCE(exact_log2, clogl(x) / logl(2))
REFERENCE(exact_log10, clogl(x) / logl(10))
REFERENCE(exact_log1p, clogl(1 + x))
REFERENCE(exact_sqrt, csqrtl(x))
REFERENCE(exact_rsqrt, 1 / csqrtl(x))
REFERENCE(exact_sin, csinl(x))
REFERENCE(exact_cos, ccosl(x))
REFERENCE(exact_tan, ctanl(x))
REFERENCE(exact_sinh, csinhl(x))
REFERENCE(exact_cosh, ccoshl(x))
REFERENCE(exact_tanh, ctanhl(x))
REFERENCE(exact_asin, casinl(x))
REFERENCE(exact_acos, cacosl(x))
REFERENCE(exact_atan, catanl(x))
REFERENCE(exact_asinh, casinhl(x))
REFERENCE(exact_acosh, cacoshl(x))
REFERENCE(exact_atanh, catanhl(x))
REFERENCE(exact_sigmoid, sigmoid(x))
REFERENCE(exact_silu, x *sigmoid(x))
REFERENCE(exact_sinc, x == 0 ? 1 : csinl(acosl(-1) * x) / (acosl(-1) * x))
REFERENCE(exact_sign, x == 0 ? 0 : x / cabsl(x))
REFERENCE(exact_pow, cexpl(y *clogl(x)))
REFERENCE(exact_log_add_exp, clogl(cexpl(x) + cexpl(y)))
REFERENCE(exact_sigmoid_backward, x *conjl((1 - y) * y))
REFERENCE(exact_tanh_backward, x *conjl(1 - y * y))
REFERENCE(exact_silu_backward, x *sigmoid(y) * (1 + y * (1 - sigmoid(y))))

/* units: of the last place of the result's magnitude, or of `floor` where that is larger. */
static const struct function {
    enum elementwise_id id;
    const char *name;
    reference exact;
    double reach, units, floor;
} functions[] = {
#define FUNCTION(name, reach, units, floor) {ELEMENTWISE_##name, #name, exact_##name, reach, units, floor}
    FUNCTION(add, 5, 1, 0),
    FUNCTION(add_scaled, 5, 4, 8),
    FUNCTION(sub, 5, 1, 0),
    FUNCTION(sub_scaled, 5, 4, 8),
    FUNCTION(mul, 5, 2, 0),
    FUNCTION(div, 5, 5, 0),
    FUNCTION(neg, 5, 0, 0),
    FUNCTION(reciprocal, 5, 4, 0),
    FUNCTION(square, 5, 2, 0),
    FUNCTION(cube, 5, 4, 0),
    FUNCTION(reciprocal_square, 5, 6, 0),
    FUNCTION(addcmul, 5, 4, 50),
    FUNCTION(addcdiv, 5, 8, 50),
    FUNCTION(lerp, 3, 4, 20),
    FUNCTION(lerp_scaled, 5, 4, 10),
    {ELEMENTWISE_power_zero, "power_zero", exact_one, 5, 0, 0},
    {ELEMENTWISE_power_one, "power_one", exact_same, 5, 0, 0},
    FUNCTION(exp, 20, 4, 0),
    FUNCTION(exp2, 20, 30, 0),
    FUNCTION(expm1, 2, 4, 0),
    FUNCTION(log, 5, 4, 0),
    FUNCTION(log2, 5, 4, 0),
    FUNCTION(log10, 5, 4, 0),
    FUNCTION(log1p, 0.4, 4, 0),
    FUNCTION(log1p, 5, 4, 1),
    FUNCTION(sqrt, 5, 4, 0),
    FUNCTION(rsqrt, 5, 6, 0),
    FUNCTION(sin, 5, 4, 0),
    FUNCTION(cos, 5, 4, 0),
    FUNCTION(tan, 5, 6, 0),
    FUNCTION(sinh, 5, 4, 0),
    FUNCTION(cosh, 5, 4, 0),
    FUNCTION(tanh, 5, 6, 0),
    FUNCTION(asin, 5, 4, 0),
    FUNCTION(acos, 5, 4, 0),
    FUNCTION(atan, 5, 4, 0),
    FUNCTION(asinh, 5, 4, 0),
    FUNCTION(acosh, 5, 4, 0),
    FUNCTION(atanh, 5, 4, 0),
    FUNCTION(sigmoid, 2, 8, 0),
    FUNCTION(silu, 2, 8, 0),
    FUNCTION(sinc, 3, 16, 1),
    FUNCTION(sign, 5, 2, 0),
    FUNCTION(pow, 3, 60, 0),
    FUNCTION(log_add_exp, 1.5, 6, 3),
    FUNCTION(sigmoid_backward, 3, 6, 20),
    FUNCTION(tanh_backward, 3, 6, 20),
    FUNCTION(silu_backward, 2, 12, 10),
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static enum dtype complex_dtype(enum accumulate type) { return type == ACCUMULATE_F32 ? DTYPE_C64 : DTYPE_C128; }
static enum dtype real_dtype(enum accumulate type) { return type == ACCUMULATE_F32 ? DTYPE_F32 : DTYPE_F64; }
static double unit_of(enum accumulate type) { return type == ACCUMULATE_F32 ? 0x1p-24 : 0x1p-53; }

static number get_number(const void *data, enum accumulate type, int64_t i)
{
    return __builtin_complex((long double)get_value(data, type, 2 * i), (long double)get_value(data, type, 2 * i + 1));
}

static void *random_numbers(enum accumulate type, int64_t n, double reach)
{
    void *const data = guarded(2 * n, (size_t)accumulate_bytes(type));
    for (int64_t i = 0; i < 2 * n; ++i)
        put_value(data, type, i, reach * check_random_real(&test_state));
    return data;
}

static void test_function(const struct kernel_set *set, const struct function *f, enum accumulate type)
{
    enum { N = 300 };
    const elementwise_fn run = set->elementwise->run[f->id][complex_dtype(type)];
    CHECK(run != NULL, "%s: no %s of complex numbers", set->isa, f->name);
    if (!run)
        return;
    void *const in[3] = {random_numbers(type, N, f->reach), random_numbers(type, N, f->reach), random_numbers(type, N, f->reach)};
    void *const out = room_for(type, 2 * N), *const operands[] = {out, in[0], in[1], in[2]};
    const union elementwise_scalar scalars[ELEMENTWISE_SCALARS] = {{.c128 = {0.75, -0.5}}};
    run(operands, N, scalars);
    for (int64_t i = 0; i < N; ++i) {
        const number expected = f->exact(get_number(in[0], type, i), get_number(in[1], type, i), get_number(in[2], type, i),
                                         __builtin_complex(0.75L, -0.5L));
        const number value = get_number(out, type, i);
        const double off = (double)cabsl(value - expected), size = fmax(f->floor, (double)cabsl(expected));
        CHECK(off <= (f->units + 1) * unit_of(type) * size, "%s: %s %s of (%g, %g), (%g, %g): off by %g units", set->isa, f->name,
              dtype_name(complex_dtype(type)), get_value(in[0], type, 2 * i), get_value(in[0], type, 2 * i + 1),
              get_value(in[1], type, 2 * i), get_value(in[1], type, 2 * i + 1), off / size / unit_of(type));
    }
    guarded_end(set->isa, f->name);
}

/* --- results that aren't complex, and inputs that aren't -------------------------------------------------------------- */

static void test_parts(const struct kernel_set *set, enum accumulate type, int64_t n)
{
    const struct elementwise_kernels *const k = set->elementwise;
    const union elementwise_scalar scalars[ELEMENTWISE_SCALARS] = {{.f64 = 0}};
    void *const x = random_numbers(type, n, 5), *const y = copy_of(type, x, 2 * n), *const real = room_for(type, n);
    void *const a = random_values(type, n, VALUES_SPECIAL), *const b = random_values(type, n, VALUES_SPECIAL);
    void *const pair = room_for(type, 2 * n);
    uint8_t *const equal = guarded(n, 1), *const unequal = guarded(n, 1);
    for (int64_t i = 0; i < n; ++i)
        if (i % 3)
            put_value(y, type, 2 * i + i % 3 - 1, i % 6 == 1 ? NAN : 7);
    void *const to_equal[] = {equal, x, y}, *const to_unequal[] = {unequal, x, y};
    k->run[ELEMENTWISE_eq][complex_dtype(type)](to_equal, (size_t)n, scalars);
    k->run[ELEMENTWISE_ne][complex_dtype(type)](to_unequal, (size_t)n, scalars);
    for (int64_t i = 0; i < n; ++i)
        CHECK(equal[i] == (i % 3 == 0) && unequal[i] == (i % 3 != 0), "%s: equality of complex numbers", set->isa);
    void *const to_real[] = {real, x};
    k->run[ELEMENTWISE_complex_abs][complex_dtype(type)](to_real, (size_t)n, scalars);
    for (int64_t i = 0; i < n; ++i)
        CHECK_ELEMENT(set->isa, "abs", type, real, i, (double)cabsl(get_number(x, type, i)), 2 * unit_of(type));
    k->run[ELEMENTWISE_complex_angle][complex_dtype(type)](to_real, (size_t)n, scalars);
    for (int64_t i = 0; i < n; ++i)
        CHECK_ELEMENT(set->isa, "angle", type, real, i, (double)cargl(get_number(x, type, i)), 2 * unit_of(type));
    void *const to_pair[] = {pair, a, b};
    k->run[ELEMENTWISE_complex_pair][real_dtype(type)](to_pair, (size_t)n, scalars);
    for (int64_t i = 0; i < n; ++i) {
        CHECK_ELEMENT(set->isa, "pair", type, pair, 2 * i, get_value(a, type, i), 0);
        CHECK_ELEMENT(set->isa, "pair", type, pair, 2 * i + 1, get_value(b, type, i), 0);
    }
    k->run[ELEMENTWISE_polar][real_dtype(type)](to_pair, (size_t)n, scalars);
    for (int64_t i = 0; i < n; ++i) {
        const double size = get_value(a, type, i), angle = get_value(b, type, i);
        CHECK_ELEMENT(set->isa, "polar", type, pair, 2 * i, size * cos(angle), 8 * unit_of(type));
        CHECK_ELEMENT(set->isa, "polar", type, pair, 2 * i + 1, size * sin(angle), 8 * unit_of(type));
    }
    guarded_end(set->isa, "parts of complex numbers");
}

/* --- edges ------------------------------------------------------------------------------------------------------------ */

/* Signs of zeros count where `signs`. */
static const struct edge {
    enum elementwise_id id;
    double x[2], y[2], value[2];
    int signs;
} edges[] = {
    {ELEMENTWISE_add, {-0.0, INFINITY}, {-0.0, -INFINITY}, {-0.0, NAN}, 1},
    {ELEMENTWISE_neg, {0, -INFINITY}, {0, 0}, {-0.0, INFINITY}, 1},
    {ELEMENTWISE_mul, {INFINITY, 1}, {2, 0}, {INFINITY, NAN}, 0},
    {ELEMENTWISE_div, {1, -1}, {0, 0}, {INFINITY, -INFINITY}, 0},
    {ELEMENTWISE_div, {0, 1}, {0, 0}, {NAN, INFINITY}, 0},
    {ELEMENTWISE_div, {2e30, 2e30}, {1e30, 1e30}, {2, 0}, 0},
    {ELEMENTWISE_div, {1e-30, 0}, {0, 1e-30}, {0, -1}, 0},
    {ELEMENTWISE_reciprocal, {0, 1e-37}, {0, 0}, {0, -1e37}, 0},
    {ELEMENTWISE_exp, {-INFINITY, 2}, {0, 0}, {-0.0, 0}, 1},
    {ELEMENTWISE_exp, {INFINITY, 0}, {0, 0}, {INFINITY, 0}, 1},
    {ELEMENTWISE_exp, {NAN, 0}, {0, 0}, {NAN, 0}, 1},
    {ELEMENTWISE_expm1, {1e-20, 0}, {0, 0}, {1e-20, 0}, 0},
    {ELEMENTWISE_log, {0, 0}, {0, 0}, {-INFINITY, 0}, 1},
    {ELEMENTWISE_log, {-0.0, -0.0}, {0, 0}, {-INFINITY, -3.14159265358979323846}, 1},
    {ELEMENTWISE_log, {-INFINITY, INFINITY}, {0, 0}, {INFINITY, 2.35619449019234492885}, 0},
    {ELEMENTWISE_log1p, {1e-20, 1e-20}, {0, 0}, {1e-20, 1e-20}, 0},
    {ELEMENTWISE_log1p, {-1, 0}, {0, 0}, {-INFINITY, 0}, 0},
    {ELEMENTWISE_sqrt, {-4, -0.0}, {0, 0}, {0, -2}, 1},
    {ELEMENTWISE_sqrt, {NAN, INFINITY}, {0, 0}, {INFINITY, INFINITY}, 0},
    {ELEMENTWISE_sqrt, {2e38, 2e38}, {0, 0}, {1.5537739740300374e19, 6.435942529055827e18}, 0},
    {ELEMENTWISE_tanh, {INFINITY, 1}, {0, 0}, {1, 0}, 1},
    {ELEMENTWISE_tanh, {500, 1}, {0, 0}, {1, 0}, 0},
    {ELEMENTWISE_asin, {2, 0}, {0, 0}, {1.57079632679489661923, 1.31695789692481670863}, 0},
    {ELEMENTWISE_asin, {2, -0.0}, {0, 0}, {1.57079632679489661923, -1.31695789692481670863}, 0},
    {ELEMENTWISE_atanh, {1, 0}, {0, 0}, {INFINITY, 0}, 1},
    {ELEMENTWISE_acosh, {0.5, -0.0}, {0, 0}, {0, -1.04719755119659774615}, 1},
    {ELEMENTWISE_sigmoid, {200, 0}, {0, 0}, {1, 0}, 0},
    {ELEMENTWISE_sinc, {0, -0.0}, {0, 0}, {1, 0}, 1},
    {ELEMENTWISE_sign, {-0.0, 0}, {0, 0}, {0, 0}, 0},
    {ELEMENTWISE_power_zero, {NAN, INFINITY}, {0, 0}, {1, 0}, 1},
    {ELEMENTWISE_log_add_exp, {-INFINITY, 0}, {-INFINITY, 0}, {-INFINITY, 0}, 0},
    {ELEMENTWISE_log_add_exp, {1000, 1}, {1000, 1}, {1000.693147180559945309, 1}, 0},
    {ELEMENTWISE_log_add_exp, {NAN, 0}, {1, 0}, {NAN, NAN}, 0},
};

static void test_edges(const struct kernel_set *set, enum accumulate type)
{
    const union elementwise_scalar scalars[ELEMENTWISE_SCALARS] = {{.c128 = {0, 0}}};
    for (size_t e = 0; e < sizeof edges / sizeof edges[0]; ++e) {
        void *const x = room_for(type, 2), *const y = room_for(type, 2), *const out = room_for(type, 2);
        void *const operands[] = {out, x, y};
        for (int part = 0; part < 2; ++part) {
            put_value(x, type, part, edges[e].x[part]);
            put_value(y, type, part, edges[e].y[part]);
        }
        set->elementwise->run[edges[e].id][complex_dtype(type)](operands, 1, scalars);
        for (int part = 0; part < 2; ++part) {
            const double value = get_value(out, type, part), expected = edges[e].value[part];
            const int near = check_near(value, expected, 0) ||
                             (isfinite(expected) && fabs(value - expected) <= 8 * unit_of(type) * fabs(expected));
            CHECK(near && (!edges[e].signs || isnan(expected) || signbit(value) == signbit(expected)),
                  "%s: function %d of (%g, %g), (%g, %g): part %d is %g, expected %g", set->isa, edges[e].id, edges[e].x[0],
                  edges[e].x[1], edges[e].y[0], edges[e].y[1], part, value, expected);
        }
        guarded_end(set->isa, "complex edges");
    }
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    (void)base; /* test_elementwise.c compares with it */
    for (int t = 0; t < 2; ++t) {
        for (int f = 0; f < FUNCTIONS; ++f)
            test_function(set, &functions[f], float_types[t]);
        for (int s = 0; s < TEST_SIZES; ++s)
            test_parts(set, float_types[t], test_sizes[s]);
        test_edges(set, float_types[t]);
    }
}

int main(void) { return for_each_kernel_set(test_set); }
