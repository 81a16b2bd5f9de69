/* Every slot of the elementwise, cast and optimizer tables: each instruction set of this machine against the baseline, bit
 * for bit (any NaN equals any NaN), at sizes around the vector lengths; f32 functions against libm in double, in units of the last
 * place. */
#include "check.h"
#include "kernels/cast.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"
#include "kernels/optimizer.h"

enum { MOST = 600, ROOM = MOST * 16 + 64, GUARD = 0x5a };
static const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 515, MOST};
enum { COUNTS = sizeof counts / sizeof counts[0] };
static _Alignas(64) char inputs[4][ROOM], expected[ROOM], actual[ROOM];

static double special(uint64_t r)
{
    static const double values[] = {0,         -0.0, 1,  -1, 0.5,   3,      -3,     1e-3,    1e30,   -1e30,   INFINITY,
                                    -INFINITY, NAN,  20, 89, 1e-40, -3e-42, 5e-324, -1e-310, 3.4e38, -1.7e308};
    return values[r % (sizeof values / sizeof values[0])];
}

/* Elements of a type: ordinary numbers with edges among them; integers of all sizes, zeros included. */
static void fill(enum dtype dtype, char *memory, uint64_t *state)
{
    for (size_t i = 0; i < MOST; ++i) {
        const uint64_t r = check_random(state);
        const double x = r % 5 == 0 ? special(r >> 8) : check_random_real(state) * 6;
        switch (dtype) {
        case DTYPE_F64: ((double *)(void *)memory)[i] = x; break;
        case DTYPE_F32: ((float *)(void *)memory)[i] = (float)x; break;
        case DTYPE_C64:
            ((float *)(void *)memory)[2 * i] = (float)(x * 0.5), ((float *)(void *)memory)[2 * i + 1] =
                                                                     i % 11 ? (float)(i % 7) - 3 : (float)special(r >> 20);
            break;
        case DTYPE_C128:
            ((double *)(void *)memory)[2 * i] = x * 0.5,
                                           ((double *)(void *)memory)[2 * i + 1] = i % 11 ? (double)(i % 7) - 3 : special(r >> 20);
            break;
        case DTYPE_B8: memory[i] = (char)(r >> 20 & 1); break;
        default: {
            const int64_t whole = (int64_t)r >> (r % 3 == 0 ? 8 : 60);
            memcpy(memory + i * dtype_bytes(dtype), &whole, dtype_bytes(dtype));
        }
        }
    }
}

static int same_element(enum dtype dtype, const char *a, const char *b)
{
    if (dtype == DTYPE_C64)
        return same_element(DTYPE_F32, a, b) && same_element(DTYPE_F32, a + 4, b + 4);
    if (dtype == DTYPE_C128)
        return same_element(DTYPE_F64, a, b) && same_element(DTYPE_F64, a + 8, b + 8);
    if (memcmp(a, b, dtype_bytes(dtype)) == 0)
        return 1;
    float f, g;
    double d, e;
    memcpy(&f, a, 4), memcpy(&g, b, 4);
    if (dtype == DTYPE_F32)
        return f != f && g != g;
    memcpy(&d, a, 8), memcpy(&e, b, 8);
    return dtype == DTYPE_F64 && d != d && e != e;
}

static void compare(enum dtype dtype, size_t n, const char *what, const char *isa)
{
    const size_t bytes = dtype_bytes(dtype);
    for (size_t i = 0; i < n; ++i)
        if (!same_element(dtype, expected + i * bytes, actual + i * bytes)) {
            CHECK(0, "%s %s %s: element %zu of %zu differs from the baseline's", what, dtype_name(dtype), isa, i, n);
            return;
        }
    for (size_t i = n * bytes; i < n * bytes + 32; ++i)
        CHECK(actual[i] == (char)GUARD, "%s %s %s wrote past its end", what, dtype_name(dtype), isa);
}

static const char *const names[ELEMENTWISE_COUNT] = {
#define OP(name, inputs_, result, cost) [ELEMENTWISE_##name] = #name,
#include "kernels/elementwise.def"
};
static const enum elementwise_result results[ELEMENTWISE_COUNT] = {
#define OP(name, inputs_, result, cost) [ELEMENTWISE_##name] = RESULT_##result,
#include "kernels/elementwise.def"
};

static void test_elementwise(const struct kernel_set *base, const struct kernel_set *other)
{
    uint64_t state = 5;
    for (int op = 0; op < ELEMENTWISE_COUNT; ++op)
        for (int d = 0; d < DTYPE_COUNT; ++d) {
            const elementwise_fn slow = base->elementwise->run[op][d], fast = other->elementwise->run[op][d];
            CHECK(!slow == !fast, "%s %s: only one of baseline and %s has it", names[op], dtype_name((enum dtype)d), other->isa);
            if (!slow || !fast)
                continue;
            union elementwise_scalar scalars[ELEMENTWISE_SCALARS];
            for (int i = 0; i < ELEMENTWISE_SCALARS; ++i)
                scalars[i] = dtype_kind((enum dtype)d) <= KIND_INTEGER ? (union elementwise_scalar){.i64 = 1 + i}
                                                                       : (union elementwise_scalar){.c128 = {0.5 + i, 1}};
            for (int k = 0; k < 3; ++k)
                fill(op == ELEMENTWISE_where && k == 0   ? DTYPE_B8
                     : d == DTYPE_F16 || d == DTYPE_BF16 ? DTYPE_I16
                                                         : (enum dtype)d,
                     inputs[k], &state);
            const enum dtype result = elementwise_result_dtype(results[op], (enum dtype)d);
            for (int c = 0; c < COUNTS; ++c) {
                void *to_expected[] = {expected, inputs[0], inputs[1], inputs[2]},
                     *to_actual[] = {actual, inputs[0], inputs[1], inputs[2]};
                memset(actual, GUARD, sizeof actual);
                slow(to_expected, counts[c], scalars);
                fast(to_actual, counts[c], scalars);
                compare(result, counts[c], names[op], other->isa);
            }
        }
}

static void test_casts(const struct kernel_set *base, const struct kernel_set *other)
{
    uint64_t state = 9;
    for (int from = 0; from < DTYPE_COUNT; ++from)
        for (int to = 0; to < DTYPE_COUNT; ++to) {
            const cast_convert_fn slow = base->cast->convert[to][from], fast = other->cast->convert[to][from];
            CHECK(!slow == !fast, "cast: only one has it");
            if (!slow || !fast)
                continue;
            fill(from == DTYPE_F16 || from == DTYPE_BF16 ? DTYPE_I16 : (enum dtype)from, inputs[0], &state);
            for (int c = 0; c < COUNTS; ++c) {
                memset(actual, GUARD, sizeof actual);
                slow(expected, inputs[0], counts[c]);
                fast(actual, inputs[0], counts[c]);
                compare((enum dtype)to, counts[c], "cast", other->isa);
            }
        }
    for (int s = 0; s < CAST_SIZES; ++s)
        for (int64_t stride = 2; stride < 4; ++stride) {
            static const enum dtype of_size[] = {DTYPE_U8, DTYPE_I16, DTYPE_I32, DTYPE_I64, DTYPE_C128};
            const size_t n = MOST / 4;
            fill(DTYPE_I64, inputs[0], &state);
            memset(actual, GUARD, sizeof actual);
            base->cast->gather[s](expected, inputs[0], stride, n);
            other->cast->gather[s](actual, inputs[0], stride, n);
            compare(of_size[s], n, "gather", other->isa);
            memset(expected, 0, sizeof expected);
            memset(actual, 0, sizeof actual);
            base->cast->scatter[s](expected, stride, inputs[0], n);
            other->cast->scatter[s](actual, stride, inputs[0], n);
            CHECK(memcmp(expected, actual, sizeof actual) == 0, "scatter of %d bytes, %s", 1 << s, other->isa);
            base->cast->transpose[s](expected, 9, inputs[0], 16, 16, 9);
            other->cast->transpose[s](actual, 9, inputs[0], 16, 16, 9);
            CHECK(memcmp(expected, actual, sizeof actual) == 0, "transpose of %d bytes, %s", 1 << s, other->isa);
        }
}

static void test_optimizers(const struct kernel_set *base, const struct kernel_set *other)
{
    static char left[5][ROOM], right[5][ROOM];
    const struct optimizer_kernels *const a = base->optimizer, *const b = other->optimizer;
    union elementwise_scalar scalars[ADAM_SCALARS];
    uint64_t state = 11;
    for (int i = 0; i < ADAM_SCALARS; ++i)
        scalars[i].f64 = 0.25 + 0.0625 * i;
    for (int t = 0; t < OPTIMIZER_TYPES; ++t) {
        const elementwise_fn slow[] = {a->adam[t],   a->adam_amsgrad[t], a->adam_scaled[t], a->adam_amsgrad_scaled[t],
                                       a->sgd[t],    a->sgd_momentum[t], a->sgd_scaled[t],  a->sgd_momentum_scaled[t],
                                       a->unscale[t]};
        const elementwise_fn fast[] = {b->adam[t],   b->adam_amsgrad[t], b->adam_scaled[t], b->adam_amsgrad_scaled[t],
                                       b->sgd[t],    b->sgd_momentum[t], b->sgd_scaled[t],  b->sgd_momentum_scaled[t],
                                       b->unscale[t]};
        for (int f = 0; f < 9; ++f)
            for (int c = 0; c < COUNTS; ++c) {
                void *l[5], *r[5];
                for (int k = 0; k < 5; ++k) {
                    fill((enum dtype)t, left[k], &state);
                    memcpy(right[k], left[k], ROOM);
                    l[k] = left[k], r[k] = right[k];
                }
                slow[f](l, counts[c], scalars);
                fast[f](r, counts[c], scalars);
                for (int k = 0; k < 5; ++k)
                    for (size_t i = 0; i < MOST; ++i)
                        CHECK(same_element((enum dtype)t, left[k] + i * dtype_bytes((enum dtype)t),
                                           right[k] + i * dtype_bytes((enum dtype)t)),
                              "optimizer kernel %d, operand %d, %s", f, k, other->isa);
            }
        for (int kind = 0; kind < NORM_KINDS; ++kind)
            for (int c = 0; c < COUNTS; ++c) {
                const double x = a->norm[kind][t](left[0], counts[c], 3), y = b->norm[kind][t](left[0], counts[c], 3);
                CHECK(x == y || (x != x && y != y), "norm %d, %s: %.17g and %.17g", kind, other->isa, x, y);
            }
    }
}

/* Distance from the exact value in units of the last place of f32. */
static double ulps(float value, double exact)
{
    if (value == (float)exact || (isnan(value) && isnan(exact)))
        return 0;
    if (!isfinite(value) || !isfinite(exact))
        return 1e9;
    int exponent;
    frexp(exact, &exponent);
    return fabs((double)value - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void test_function(const struct kernel_set *set, enum elementwise_id op, double (*exact)(double), double low, double high,
                          double limit)
{
    static float x[4096], y[4096];
    static const float edges[] = {0,      -0.0f,   1,      -1,          INFINITY,   -INFINITY, NAN,
                                  1e-30f, -1e-30f, 1e-41f, 0.99999994f, 1.0000001f, 88.8f,     -104};
    enum { EDGES = sizeof edges / sizeof edges[0] };
    double worst = 0;
    float at = 0;
    uint64_t state = 3;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 4096; ++i)
            x[i] = i < EDGES ? edges[i] : (float)(low + (high - low) * 0.5 * (check_random_real(&state) + 1));
        void *const operands[] = {y, x};
        const union elementwise_scalar scalars[ELEMENTWISE_SCALARS] = {{.f64 = 0}};
        set->elementwise->run[op][DTYPE_F32](operands, 4096, scalars);
        for (int i = 0; i < 4096; ++i) {
            const double u = ulps(y[i], exact((double)x[i]));
            if (u > worst)
                worst = u, at = x[i];
        }
    }
    CHECK(worst <= limit, "%s %s: %.3f units in the last place at %.9g", names[op], set->isa, worst, (double)at);
}

/* GELU and its slope: off by two units of the last place of the larger of 1 and x, and small results in relation to themselves: by 4e-7
 * up to 1, by 4e-6 beyond. */
static void test_gelu(const struct kernel_set *set)
{
    enum { N = 4001 };
    static float x[N], ones[N], value[N], slope[N];
    const union elementwise_scalar scalars[ELEMENTWISE_SCALARS] = {{.f64 = 0}};
    for (int i = 0; i < N; ++i)
        x[i] = (float)(i - N / 2) * 0.004f, ones[i] = 1;
    void *const forward[] = {value, x}, *const backward[] = {slope, ones, x};
    set->elementwise->run[ELEMENTWISE_gelu_erf][DTYPE_F32](forward, N, scalars);
    set->elementwise->run[ELEMENTWISE_gelu_erf_backward][DTYPE_F32](backward, N, scalars);
    for (int i = 0; i < N; ++i) {
        const double at = (double)x[i], below = 0.5 * erfc(-at / sqrt(2)), size = fmax(1, fabs(at));
        const double exact = at * below, exact_slope = below + at * exp(-at * at / 2) / sqrt(2 * acos(-1));
        const double off = fabs((double)value[i] - exact), slope_off = fabs((double)slope[i] - exact_slope);
        CHECK(off <= 2.4e-7 * size && off <= (size > 1 ? 4e-6 : 4e-7) * fabs(exact) + 1e-10, "%s: gelu(%g) is off by %g", set->isa,
              at, off);
        CHECK(slope_off <= 2.4e-7 * size, "%s: the slope of gelu at %g is off by %g", set->isa, at, slope_off);
    }
    /* As x * below and below + x * density are: at infinity the latter's product is NaN, beyond 12.5 nothing is left. */
    const float edges[] = {INFINITY, -INFINITY, NAN, 3e38f, -3e38f, -0.0f, 1e-44f, -1e-8f};
    enum { EDGES = sizeof edges / sizeof edges[0] };
    const float values[EDGES] = {INFINITY, NAN, NAN, 3e38f, 0, -0.0f, 1e-44f * 0.5f, -5e-9f},
                slopes[EDGES] = {NAN, NAN, NAN, 1, 0, 0.5f, 0.5f, 0.5f};
    memcpy(x, edges, sizeof edges);
    set->elementwise->run[ELEMENTWISE_gelu_erf][DTYPE_F32](forward, EDGES, scalars);
    set->elementwise->run[ELEMENTWISE_gelu_erf_backward][DTYPE_F32](backward, EDGES, scalars);
    for (int i = 0; i < EDGES; ++i) {
        CHECK(value[i] == values[i] || (isnan(value[i]) && isnan(values[i])), "%s: gelu(%g) is %g", set->isa, (double)edges[i],
              (double)value[i]);
        CHECK(slope[i] == slopes[i] || (isnan(slope[i]) && isnan(slopes[i])), "%s: the slope of gelu at %g is %g", set->isa,
              (double)edges[i], (double)slope[i]);
    }
    CHECK(signbit(value[5]), "%s: gelu(-0.0) lost its sign", set->isa);
}

static void test_functions(const struct kernel_set *set)
{
    test_gelu(set);
    test_function(set, ELEMENTWISE_exp, exp, -105, 90, 1);
    test_function(set, ELEMENTWISE_exp2, exp2, -150, 129, 1);
    test_function(set, ELEMENTWISE_expm1, expm1, -2, 2, 1);
    test_function(set, ELEMENTWISE_log, log, 0, 3, 1);
    test_function(set, ELEMENTWISE_log2, log2, 0, 1000, 1);
    test_function(set, ELEMENTWISE_log10, log10, 0, 1e6, 1);
    test_function(set, ELEMENTWISE_log1p, log1p, -1, 1, 1);
    test_function(set, ELEMENTWISE_tanh, tanh, -10, 10, 1);
    test_function(set, ELEMENTWISE_sigmoid, sigmoid, -90, 90, 2);
    test_function(set, ELEMENTWISE_erf, erf, -5, 5, 1);
    test_function(set, ELEMENTWISE_erfc, erfc, -4, 10, 1);
    test_function(set, ELEMENTWISE_sinh, sinh, -3, 3, 1);
    test_function(set, ELEMENTWISE_cosh, cosh, -90, 90, 1);
    test_function(set, ELEMENTWISE_asinh, asinh, -3, 3, 1);
    test_function(set, ELEMENTWISE_acosh, acosh, 1, 9, 1);
    test_function(set, ELEMENTWISE_atanh, atanh, -1, 1, 1);
    test_function(set, ELEMENTWISE_sin, sin, -100, 100, 1);
    test_function(set, ELEMENTWISE_cos, cos, -900000, 900000, 1);
    test_function(set, ELEMENTWISE_tan, tan, -100, 100, 1);
    test_function(set, ELEMENTWISE_sin, sin, 1e6, 1e9, 1);
    test_function(set, ELEMENTWISE_asin, asin, -1, 1, 1);
    test_function(set, ELEMENTWISE_acos, acos, -1, 1, 1);
    test_function(set, ELEMENTWISE_atan, atan, -9, 9, 1);
}

int main(void)
{
    const struct kernel_set *const base = kernel_set_at(0);
    test_functions(base);
    for (int i = 1; kernel_set_at(i); ++i) {
        const struct kernel_set *const other = kernel_set_at(i);
        if (!kernel_set_runnable(other->isa))
            continue;
        test_elementwise(base, other);
        test_casts(base, other);
        test_optimizers(base, other);
        test_functions(other);
    }
    return check_result();
}
