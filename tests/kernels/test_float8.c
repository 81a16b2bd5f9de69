/* 8-bit floats on every ISA: all codes widened, floats around all rounding edges and random bits narrowed, against arithmetic on
 * the fields in double; sizes around the vector lengths, guards behind the output, tiles with strides. */
#include "base/float8.h"
#include "check.h"
#include "kernels/cast.h"
#include "kernels/convert.h"
#include "kernels/kernels.h"

enum { MOST = 131, GUARD = 0x5a, GUARD_BYTES = 32, RANDOM_ROUNDS = 400 };
static const size_t counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, MOST};
enum { COUNTS = sizeof counts / sizeof counts[0] };
static const enum dtype types[] = {DTYPE_F8_E4M3FN, DTYPE_F8_E5M2, DTYPE_F8_E8M0};
enum { TYPES = sizeof types / sizeof types[0] };

/* --- the reference ------------------------------------------------------------------------------------------------------ */

static double field_value(int magnitude, int fraction_bits, int bias)
{
    const int exponent = magnitude >> fraction_bits, fraction = magnitude & ((1 << fraction_bits) - 1);
    return exponent ? ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits)
                    : ldexp(fraction, 1 - bias - fraction_bits);
}

static double code_value(enum dtype dtype, int code)
{
    const int magnitude = code & 0x7f;
    const double sign = code & 0x80 ? -1 : 1;
    if (dtype == DTYPE_F8_E8M0)
        return code == 0xff ? (double)NAN : ldexp(1, code - 127);
    if (dtype == DTYPE_F8_E4M3FN)
        return magnitude == 0x7f ? (double)NAN : sign * field_value(magnitude, 3, 7);
    return magnitude > 0x7c ? (double)NAN : magnitude == 0x7c ? sign * (double)INFINITY : sign * field_value(magnitude, 2, 15);
}

/* Powers of two: half way goes up; below the normal floats only what is more than 2^-127. */
static int expected_power(float x)
{
    int exponent;
    const double fraction = frexp(fabs((double)x), &exponent);
    if (!isfinite(x))
        return 0xff;
    if (fabsf(x) < 0x1p-126f)
        return fabsf(x) > 0x1p-127f;
    return exponent - 1 + 127 + (fraction >= 0.75);
}

static int expected_code(enum dtype dtype, float x)
{
    if (dtype == DTYPE_F8_E8M0)
        return expected_power(x);
    const int sign = signbit(x) ? 0x80 : 0, top = dtype == DTYPE_F8_E4M3FN ? 0x7e : 0x7c;
    const double size = fabs((double)x);
    if (isnan(x))
        return sign | 0x7f;
    int code = 0;
    while (code < top) { /* up to the neighbour above, or half way to it */
        const double here = code_value(dtype, code);
        const double above = dtype == DTYPE_F8_E5M2 && code == 0x7b ? 65536 : code_value(dtype, code + 1);
        const double middle = (here + above) / 2;
        if (size < middle || (size == middle && !(code & 1)))
            break;
        ++code;
    }
    return sign | code;
}

/* --- comparing ---------------------------------------------------------------------------------------------------------- */

static int same_float(double expected, float given)
{
    return isnan(expected) ? isnan(given) : given == expected && !signbit(given) == !signbit(expected);
}

static void check_guard(const void *end, const char *isa, const char *what)
{
    for (int i = 0; i < GUARD_BYTES; ++i)
        CHECK(((const uint8_t *)end)[i] == GUARD, "%s: %s wrote past its end", isa, what);
}

static void narrow(const struct kernel_set *k, enum dtype dtype, const float *in, size_t n)
{
    static _Alignas(64) uint8_t out[2 * MOST + GUARD_BYTES];
    static _Alignas(64) double wide[MOST];
    memset(out, GUARD, sizeof out);
    k->cast->convert[dtype][DTYPE_F32](out, in, n);
    for (size_t i = 0; i < n; ++i)
        CHECK(out[i] == expected_code(dtype, in[i]), "%s: %a to %s gave %02x, expected %02x (element %zu of %zu)", k->isa,
              (double)in[i], dtype_name(dtype), out[i], expected_code(dtype, in[i]), i, n);
    check_guard(out + n, k->isa, "cast");
    memset(out, GUARD, sizeof out);
    k->convert->store[dtype][ACCUMULATE_F32](out, 2, in, (int64_t)n);
    for (size_t i = 0; i < n; ++i)
        CHECK(out[2 * i] == expected_code(dtype, in[i]) && out[2 * i + 1] == GUARD, "%s: a store with steps gave %02x for %a",
              k->isa, out[2 * i], (double)in[i]);
    for (size_t i = 0; i < n; ++i)
        wide[i] = (double)in[i];
    memset(out, GUARD, sizeof out);
    k->convert->store[dtype][ACCUMULATE_F64](out, 1, wide, (int64_t)n);
    for (size_t i = 0; i < n; ++i)
        CHECK(out[i] == expected_code(dtype, in[i]), "%s: a store of %a gave %02x", k->isa, wide[i], out[i]);
    check_guard(out + n, k->isa, "store");
}

static void widen(const struct kernel_set *k, enum dtype dtype, const uint8_t *in, size_t n)
{
    static _Alignas(64) float out[MOST + GUARD_BYTES / 4];
    memset(out, GUARD, sizeof out);
    k->cast->convert[DTYPE_F32][dtype](out, in, n);
    for (size_t i = 0; i < n; ++i)
        CHECK(same_float(code_value(dtype, in[i]), out[i]), "%s: %s %02x gave %a (element %zu of %zu)", k->isa, dtype_name(dtype),
              in[i], (double)out[i], i, n);
    check_guard(out + n, k->isa, "cast");
    memset(out, GUARD, sizeof out);
    k->convert->load[dtype][ACCUMULATE_F32](out, in, 2, (int64_t)((n + 1) / 2));
    for (size_t i = 0; i < n; i += 2)
        CHECK(same_float(code_value(dtype, in[i]), out[i / 2]), "%s: a load of %02x with steps gave %a", k->isa, in[i],
              (double)out[i / 2]);
    check_guard(out + (n + 1) / 2, k->isa, "load");
}

/* --- what is tried ------------------------------------------------------------------------------------------------------ */

/* Every code, its neighbours, and the middles between codes with the floats around them, of both signs. */
static int edges(enum dtype dtype, float *values)
{
    static const float more[] = {0x1p-149f, 0x1p-127f, 0x1.8p-127f, 0x1p-126f, 464, 480, 448.5f, 61440, 65536, 3e38f, INFINITY};
    int n = 0;
    for (int code = 0; code < 0xff; ++code) {
        const double value = code_value(dtype, code), above = code_value(dtype, code + 1);
        if (!isfinite(value) || signbit(value))
            continue;
        const float points[] = {(float)value, (float)(isfinite(above) ? (value + above) / 2 : value * 1.0625)};
        for (int i = 0; i < 2; ++i)
            for (int side = 0; side < 3; ++side)
                values[n++] = side ? nextafterf(points[i], side == 1 ? 0 : INFINITY) : points[i];
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; ++i)
        values[n++] = more[i];
    values[n++] = float_from_bits(0x7f800001u);
    values[n++] = float_from_bits(0x7fffffffu);
    for (int i = 0; i < n; ++i)
        values[n + i] = -values[i];
    return 2 * n;
}

static void narrow_all(const struct kernel_set *k, enum dtype dtype)
{
    static float values[6 * 256 * 2 + 64];
    static _Alignas(64) float in[MOST];
    uint64_t state = 8;
    const int total = edges(dtype, values);
    for (int first = 0; first < total; first += MOST)
        narrow(k, dtype, values + first, (size_t)(total - first < MOST ? total - first : MOST));
    for (int round = 0; round < RANDOM_ROUNDS; ++round) {
        for (int i = 0; i < MOST; ++i) {
            const uint64_t r = check_random(&state);
            in[i] = r & 1 ? float_from_bits((uint32_t)(r >> 32)) : (float)(check_random_real(&state) * (r & 2 ? 600 : 0.03));
        }
        narrow(k, dtype, in, counts[round % COUNTS]);
    }
}

static void widen_all(const struct kernel_set *k, enum dtype dtype)
{
    static _Alignas(64) uint8_t codes[256 + MOST];
    for (int i = 0; i < 256 + MOST; ++i)
        codes[i] = (uint8_t)i;
    for (int c = 0; c < COUNTS; ++c)
        for (int first = 0; first < 256; first += c == COUNTS - 1 ? MOST : 37)
            widen(k, dtype, codes + first, counts[c]);
}

/* Through integers, as torch's CPU: floats first, then the cut. */
static void integers(const struct kernel_set *k, enum dtype dtype)
{
    uint8_t code = 0;
    int64_t wide = 0;
    for (int64_t value = -600; value < 600; ++value) {
        k->convert->store[dtype][ACCUMULATE_I64](&code, 1, &value, 1);
        CHECK(code == expected_code(dtype, (float)value), "%s: the integer %lld gave %02x", k->isa, (long long)value, code);
        k->convert->load[dtype][ACCUMULATE_I64](&wide, &code, 1, 1);
        if (dtype != DTYPE_F8_E8M0)
            CHECK_INT(wide, (int64_t)code_value(dtype, code));
    }
}

int main(void)
{
    for (int isa = 0; kernel_set_at(isa); ++isa) {
        const struct kernel_set *const k = kernel_set_at(isa);
        if (!kernel_set_runnable(k->isa))
            continue;
        for (int t = 0; t < TYPES; ++t) {
            narrow_all(k, types[t]);
            widen_all(k, types[t]);
            integers(k, types[t]);
        }
    }
    return check_result();
}
