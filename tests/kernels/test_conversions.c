/* Conversions between element types on every ISA: cast (copies) and convert (tiles) give the same, defined for all numbers. */
#include "base/half.h"
#include "check.h"
#include "kernels/cast.h"
#include "kernels/convert.h"
#include "kernels/kernels.h"

enum { COUNT = 67 }; /* whole vectors and a tail */

static const double numbers[] = {0,      1.5,         -1.5,      255.9,  -300.2,      40000,        -40000,
                                 70000,  2147483520., 3e9,       -3e9,   0x1p31,      -0x1p31,      0x1p32,
                                 0x1p40, -0x1p40,     0x1p62,    0x1p63, -0x1p63,     -0x1p64,      1e30,
                                 -1e30,  INFINITY,    -INFINITY, NAN,    4294967301., 2147483647.5, -2147483648.5};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };
static const enum dtype integers[] = {DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8};

/* In long double, which holds all 64-bit integers: what fits is cut off, the rest is the smallest number. */
static int64_t machine_integer(double x, int bits)
{
    const long double limit = bits == 32 ? 0x1p31l : 0x1p63l, whole = truncl((long double)x);
    return whole >= -limit && whole < limit ? (int64_t)whole : bits == 32 ? INT32_MIN : INT64_MIN;
}

static int64_t expected_integer(double x, enum dtype from, enum dtype to)
{
    switch (to) {
    case DTYPE_I64: return machine_integer(x, 64);
    case DTYPE_I32: return machine_integer(x, 32);
    case DTYPE_I16: return (int16_t)machine_integer(x, 32);
    case DTYPE_I8: return (int8_t)machine_integer(x, 32);
    default: return (uint8_t)machine_integer(x, from == DTYPE_F64 || from == DTYPE_C128 ? 64 : 32);
    }
}

static int64_t get(const void *p, enum dtype dtype, int i)
{
    switch (dtype) {
    case DTYPE_I64: return ((const int64_t *)p)[i];
    case DTYPE_I32: return ((const int32_t *)p)[i];
    case DTYPE_I16: return ((const int16_t *)p)[i];
    case DTYPE_I8: return ((const int8_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

/* Fills p with x as the type has it, and returns that. */
static double fill(void *p, enum dtype dtype, double x)
{
    for (int i = 0; i < COUNT; ++i)
        switch (dtype) {
        case DTYPE_F64: ((double *)p)[i] = x; break;
        case DTYPE_F32: ((float *)p)[i] = (float)x; break;
        case DTYPE_F16: ((uint16_t *)p)[i] = half_f16_from_f32((float)x); break;
        case DTYPE_BF16: ((uint16_t *)p)[i] = half_bf16_from_f32((float)x); break;
        case DTYPE_C64: ((complex32_pair *)p)[i] = (complex32_pair){(float)x, 7}; break;
        default: ((complex64_pair *)p)[i] = (complex64_pair){x, 7}; break;
        }
    switch (dtype) {
    case DTYPE_F16: return (double)half_f16_to_f32(((uint16_t *)p)[0]);
    case DTYPE_BF16: return (double)half_bf16_to_f32(((uint16_t *)p)[0]);
    case DTYPE_F64:
    case DTYPE_C128: return x;
    default: return (double)(float)x;
    }
}

static void check_all(const void *p, enum dtype to, int64_t expected, const char *isa, const char *what, double x)
{
    for (int i = 0; i < COUNT; ++i)
        CHECK(get(p, to, i) == expected, "%s: %s of %.17g to %s gave %lld, expected %lld (element %d)", isa, what, x,
              dtype_name(to), (long long)get(p, to, i), (long long)expected, i);
}

static void to_integers(const struct kernel_set *k, double number, enum dtype to)
{
    static const enum dtype floats[] = {DTYPE_F64, DTYPE_F32, DTYPE_C64, DTYPE_C128};
    static const enum dtype tiles[] = {DTYPE_F64, DTYPE_F32};
    _Alignas(64) char in[COUNT * 16], out[COUNT * 8];
    for (int f = 0; f < 4; ++f) {
        const double x = fill(in, floats[f], number);
        k->cast->convert[to][floats[f]](out, in, COUNT);
        check_all(out, to, expected_integer(x, floats[f], to), k->isa, "cast", x);
    }
    for (int a = 0; a < 2; ++a) {
        const double x = fill(in, tiles[a], number);
        k->convert->store[to][a ? ACCUMULATE_F32 : ACCUMULATE_F64](out, 1, in, COUNT);
        check_all(out, to, expected_integer(x, tiles[a], to), k->isa, "store", x);
    }
}

static void to_tiles_of_integers(const struct kernel_set *k, double number)
{
    static const enum dtype from[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    _Alignas(64) char in[COUNT * 8], out[COUNT * 8];
    for (int f = 0; f < 4; ++f) {
        const double x = fill(in, from[f], number);
        k->convert->load[from[f]][ACCUMULATE_I64](out, in, 1, COUNT);
        check_all(out, DTYPE_I64, machine_integer(x, 64), k->isa, "load", x);
        k->convert->load_narrow[from[f]](out, in, 1, COUNT);
        check_all(out, DTYPE_I64, machine_integer(x, 32), k->isa, "narrow load", x);
    }
}

/* Integers keep their low bits. */
static void between_integers(const struct kernel_set *k, int64_t value, enum dtype to)
{
    _Alignas(64) int64_t in[COUNT];
    _Alignas(64) char out[COUNT * 8];
    const int64_t expected = to == DTYPE_I64   ? value
                             : to == DTYPE_I32 ? (int32_t)value
                             : to == DTYPE_I16 ? (int16_t)value
                             : to == DTYPE_I8  ? (int8_t)value
                                               : (uint8_t)value;
    for (int i = 0; i < COUNT; ++i)
        in[i] = value;
    k->cast->convert[to][DTYPE_I64](out, in, COUNT);
    check_all(out, to, expected, k->isa, "cast", (double)value);
    k->convert->store[to][ACCUMULATE_I64](out, 1, in, COUNT);
    check_all(out, to, expected, k->isa, "store", (double)value);
}

/* Every f16 value, and floats around every rounding edge, bit for bit as base/half.h has them, in rows of every length up to
 * COUNT: the processor's own conversions and the ends of rows must not be told apart. */
static void halves_as_in_base(const struct kernel_set *k)
{
    static uint16_t halves[65536], narrow[3 * 65536];
    static float wide[3 * 65536], loaded[65536];
    for (int i = 0; i < 65536; ++i)
        halves[i] = (uint16_t)i;
    k->cast->convert[DTYPE_F32][DTYPE_F16](wide, halves, 65536);
    k->convert->load[DTYPE_F16][ACCUMULATE_F32](loaded, halves, 1, 65536);
    int wrong = 0;
    for (int i = 0; i < 65536; ++i)
        wrong += float_bits(wide[i]) != float_bits(half_f16_to_f32((uint16_t)i)) || float_bits(loaded[i]) != float_bits(wide[i]);
    CHECK(wrong == 0, "%s: %d of 65536 f16 widen in another way than base/half.h", k->isa, wrong);

    const uint32_t patterns[] = {0x7f800001u, 0xffbfffffu, 0x7fc12345u, 0x00000001u,
                                 0x807fffffu, 0x33000000u, 0x33000001u, 0x477fefffu};
    const int count = 3 * 65536;
    for (int i = 0; i < 65536; ++i) { /* between two halves, the middle, and a step to each side of it */
        const uint32_t middle = float_bits(half_f16_to_f32((uint16_t)i)) + 0x1000u;
        for (int step = 0; step < 3; ++step)
            wide[3 * i + step] = float_from_bits(middle + (uint32_t)step - 1);
    }
    for (int i = 0; i < 8; ++i)
        wide[7 * i] = float_from_bits(patterns[i]);
    k->cast->convert[DTYPE_F16][DTYPE_F32](narrow, wide, (size_t)count);
    for (int i = 0; i < count; ++i)
        wrong += narrow[i] != half_f16_from_f32(wide[i]);
    k->convert->store[DTYPE_F16][ACCUMULATE_F32](narrow, 1, wide, count);
    for (int i = 0; i < count; ++i)
        wrong += narrow[i] != half_f16_from_f32(wide[i]);
    CHECK(wrong == 0, "%s: %d of %d floats narrow to f16 in another way than base/half.h", k->isa, wrong, count);

    for (int n = 0; n <= COUNT; ++n) {
        narrow[n] = 0xabcd;
        k->cast->convert[DTYPE_F16][DTYPE_F32](narrow, wide, (size_t)n);
        CHECK(narrow[n] == 0xabcd, "%s: a row of %d f16 was written beyond its end", k->isa, n);
        wide[n] = -1;
        k->cast->convert[DTYPE_F32][DTYPE_F16](wide, halves, (size_t)n);
        CHECK(wide[n] == -1, "%s: a row of %d f32 was written beyond its end", k->isa, n);
    }
}

int main(void)
{
    static const int64_t wholes[] = {0, -1, 300, -40000, 3000000000, INT64_MIN, INT64_MAX};
    for (int isa = 0; kernel_set_at(isa); ++isa) {
        const struct kernel_set *const k = kernel_set_at(isa);
        if (!kernel_set_runnable(k->isa))
            continue;
        halves_as_in_base(k);
        for (int i = 0; i < NUMBERS; ++i) {
            for (int t = 0; t < 5; ++t)
                to_integers(k, numbers[i], integers[t]);
            to_tiles_of_integers(k, numbers[i]);
        }
        for (int i = 0; i < 7; ++i)
            for (int t = 0; t < 5; ++t)
                between_integers(k, wholes[i], integers[t]);
    }
    return check_result();
}
