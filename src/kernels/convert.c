/* Tile loads and stores. See convert.h. Compiled once per ISA; the unit-stride loops are the vectoriser's. */
#include "kernels/convert.h"

#include "base/float8.h"
#include "base/integer.h"
#include "kernels/half_rows.h"
#include "kernels/isa.h"

#define READ_plain(x) (x)
#define READ_f16(x) half_f16_to_f32(x)
#define READ_bf16(x) half_bf16_to_f32(x)
#define READ_f8_e4m3fn(x) float8_e4m3fn_to_f32(x)
#define READ_f8_e5m2(x) float8_e5m2_to_f32(x)
#define READ_f8_e8m0(x) float8_e8m0_to_f32(x)
#define READ_bool(x) ((x) != 0)

#define WRITE_f64(x) ((double)(x))
#define WRITE_f32(x) ((float)(x))
#define WRITE_f16(x) half_f16_from_f32((float)(x))
#define WRITE_bf16(x) half_bf16_from_f32((float)(x))
#define WRITE_f8_e4m3fn(x) float8_e4m3fn_from_f32((float)(x))
#define WRITE_f8_e5m2(x) float8_e5m2_from_f32((float)(x))
#define WRITE_f8_e8m0(x) float8_e8m0_from_f32((float)(x))
#define WRITE_i64(x) INTEGER_I64(x)
#define WRITE_i32(x) INTEGER_I32(x)
#define WRITE_i16(x) INTEGER_I16(x)
#define WRITE_i8(x) INTEGER_I8(x)
#define WRITE_u8(x) INTEGER_U8(x)
#define WRITE_b8(x) ((x) != 0)

#define CONVERT(tag, type, read, A, a)                                                   \
    static void load_##tag##_##a(void *tile_, const void *in_, int64_t stride, int64_t n) \
    {                                                                                    \
        A *restrict tile = tile_;                                                        \
        const type *restrict in = in_;                                                   \
        if (stride == 1)                                                                 \
            for (int64_t i = 0; i < n; ++i)                                              \
                tile[i] = WRITE_##a(READ_##read(in[i]));                                        \
        else                                                                             \
            for (int64_t i = 0; i < n; ++i)                                              \
                tile[i] = WRITE_##a(READ_##read(in[i * stride]));                              \
    }                                                                                    \
    static void store_##tag##_##a(void *out_, int64_t stride, const void *tile_, int64_t n) \
    {                                                                                    \
        type *restrict out = out_;                                                       \
        const A *restrict tile = tile_;                                                  \
        if (stride == 1)                                                                 \
            for (int64_t i = 0; i < n; ++i)                                              \
                out[i] = WRITE_##tag(tile[i]);                                           \
        else                                                                             \
            for (int64_t i = 0; i < n; ++i)                                              \
                out[i * stride] = WRITE_##tag(tile[i]);                                  \
    }

#define TYPES_BUT_F16(X, A, a)            \
    X(f64, double, plain, A, a)           \
    X(f32, float, plain, A, a)            \
    X(bf16, uint16_t, bf16, A, a)         \
    X(i64, int64_t, plain, A, a)          \
    X(i32, int32_t, plain, A, a)          \
    X(i16, int16_t, plain, A, a)          \
    X(i8, int8_t, plain, A, a)            \
    X(u8, uint8_t, plain, A, a)           \
    X(b8, uint8_t, bool, A, a)            \
    X(f8_e4m3fn, uint8_t, f8_e4m3fn, A, a) \
    X(f8_e5m2, uint8_t, f8_e5m2, A, a)     \
    X(f8_e8m0, uint8_t, f8_e8m0, A, a)

#define CONVERT_NARROW(tag, type, read)                                                      \
    static void load_narrow_##tag(void *tile_, const void *in_, int64_t stride, int64_t n)   \
    {                                                                                        \
        int64_t *restrict tile = tile_;                                                      \
        const type *restrict in = in_;                                                       \
        for (int64_t i = 0; i < n; ++i)                                                      \
            tile[i] = INTEGER_I32(READ_##read(in[i * stride]));                              \
    }
CONVERT_NARROW(f64, double, plain)
CONVERT_NARROW(f32, float, plain)
CONVERT_NARROW(f16, uint16_t, f16)
CONVERT_NARROW(bf16, uint16_t, bf16)

TYPES_BUT_F16(CONVERT, double, f64)
TYPES_BUT_F16(CONVERT, float, f32)
TYPES_BUT_F16(CONVERT, int64_t, i64)
CONVERT(f16, uint16_t, f16, double, f64)
CONVERT(f16, uint16_t, f16, int64_t, i64)

static void load_f16_f32(void *tile, const void *in_, int64_t stride, int64_t n)
{
    const uint16_t *const in = in_;
    if (stride == 1)
        half_f16_widen_row(tile, in, (size_t)n);
    else
        for (int64_t i = 0; i < n; ++i)
            ((float *)tile)[i] = half_f16_to_f32(in[i * stride]);
}

static void store_f16_f32(void *out_, int64_t stride, const void *tile, int64_t n)
{
    uint16_t *const out = out_;
    if (stride == 1)
        half_f16_narrow_row(out, tile, (size_t)n);
    else
        for (int64_t i = 0; i < n; ++i)
            out[i * stride] = half_f16_from_f32(((const float *)tile)[i]);
}

#define ROW(function, UPPER, tag)                                                                             \
    [DTYPE_##UPPER] = {[ACCUMULATE_F64] = function##_##tag##_f64, [ACCUMULATE_F32] = function##_##tag##_f32,  \
                       [ACCUMULATE_I64] = function##_##tag##_i64},
#define ROWS(function)                                                                        \
    ROW(function, F64, f64) ROW(function, F32, f32) ROW(function, F16, f16)                   \
    ROW(function, BF16, bf16) ROW(function, I64, i64) ROW(function, I32, i32)                 \
    ROW(function, I16, i16) ROW(function, I8, i8) ROW(function, U8, u8) ROW(function, B8, b8)     \
    ROW(function, F8_E4M3FN, f8_e4m3fn) ROW(function, F8_E5M2, f8_e5m2) \
    ROW(function, F8_E8M0, f8_e8m0)

const struct convert_kernels KERNEL_TABLE(convert_kernels) = {
    .load = {ROWS(load)},
    .load_narrow = {[DTYPE_F64] = load_narrow_f64,
                    [DTYPE_F32] = load_narrow_f32,
                    [DTYPE_F16] = load_narrow_f16,
                    [DTYPE_BF16] = load_narrow_bf16},
    .store = {ROWS(store)},
};
