/* Conversions and moves. See cast.h. */
#include "kernels/cast.h"

#include "base/half.h"
#include "base/integer.h"
#include "kernels/isa.h"

#pragma GCC diagnostic ignored "-Wbool-compare"

typedef double type_f64;
typedef float type_f32;
typedef int64_t type_i64;
typedef int32_t type_i32;
typedef int16_t type_i16;
typedef int8_t type_i8;
typedef uint8_t type_u8;
typedef uint8_t type_b8;

#define TO_f64(x) (double)(x)
#define TO_f32(x) (float)(x)
#define TO_i64(x) INTEGER_I64(x)
#define TO_i32(x) INTEGER_I32(x)
#define TO_i16(x) INTEGER_I16(x)
#define TO_i8(x) INTEGER_I8(x)
#define TO_u8(x) INTEGER_U8(x)
#define TO_b8(x) (uint8_t)((x) != 0)

#define CONVERT(name, out_type, in_type, value)                                                    \
    static void name(void *out_, const void *in_, size_t n)                                        \
    {                                                                                              \
        out_type *const out = out_;                                                                \
        const in_type *const in = in_;                                                             \
        INDEPENDENT_ITERATIONS                                                                       \
        for (size_t i = 0; i < n; ++i) {                                                           \
            const in_type x = in[i];                                                               \
            out[i] = value;                                                                        \
        }                                                                                          \
    }
#define REAL(to, from) CONVERT(from##_to_##to, type_##to, type_##from, TO_##to(x))
#define COMPLEX_TO_REAL(to) \
    CONVERT(c64_to_##to, type_##to, complex32_pair, TO_##to(x.re)) CONVERT(c128_to_##to, type_##to, complex64_pair, TO_##to(x.re))
#define REAL_TO_COMPLEX(from)                                                                      \
    CONVERT(from##_to_c64, complex32_pair, type_##from, ((complex32_pair){(float)x, 0}))           \
    CONVERT(from##_to_c128, complex64_pair, type_##from, ((complex64_pair){(double)x, 0}))

#define FROM_REALS(to, X) X(to, f64) X(to, f32) X(to, i64) X(to, i32) X(to, i16) X(to, i8) X(to, u8) X(to, b8)
#define REALS(X) X(f64) X(f32) X(i64) X(i32) X(i16) X(i8) X(u8) X(b8)
#define REALS_BUT_BOOL(X) X(f64) X(f32) X(i64) X(i32) X(i16) X(i8) X(u8)
FROM_REALS(f64, REAL)
FROM_REALS(f32, REAL)
FROM_REALS(i64, REAL)
FROM_REALS(i32, REAL)
FROM_REALS(i16, REAL)
FROM_REALS(i8, REAL)
FROM_REALS(u8, REAL)
FROM_REALS(b8, REAL)
REALS_BUT_BOOL(COMPLEX_TO_REAL)
REALS(REAL_TO_COMPLEX)
CONVERT(c64_to_b8, uint8_t, complex32_pair, (uint8_t)((x.re != 0) | (x.im != 0)))
CONVERT(c128_to_b8, uint8_t, complex64_pair, (uint8_t)((x.re != 0) | (x.im != 0)))
CONVERT(c64_to_c128, complex64_pair, complex32_pair, ((complex64_pair){x.re, x.im}))
CONVERT(c128_to_c64, complex32_pair, complex64_pair, ((complex32_pair){(float)x.re, (float)x.im}))
CONVERT(f16_to_f32, float, uint16_t, half_f16_to_f32(x))
CONVERT(bf16_to_f32, float, uint16_t, half_bf16_to_f32(x))
CONVERT(f32_to_f16, uint16_t, float, half_f16_from_f32(x))
CONVERT(f32_to_bf16, uint16_t, float, half_bf16_from_f32(x))

#define MOVES(bits, type)                                                                          \
    static void gather_##bits(void *out_, const void *in_, int64_t stride, size_t n)               \
    {                                                                                              \
        type *const out = out_;                                                                    \
        const type *const in = in_;                                                                \
        for (size_t i = 0; i < n; ++i)                                                             \
            out[i] = in[(int64_t)i * stride];                                                      \
    }                                                                                              \
    static void scatter_##bits(void *out_, int64_t stride, const void *in_, size_t n)              \
    {                                                                                              \
        type *const out = out_;                                                                    \
        const type *const in = in_;                                                                \
        for (size_t i = 0; i < n; ++i)                                                             \
            out[(int64_t)i * stride] = in[i];                                                      \
    }                                                                                              \
    static void fill_##bits(void *out_, const void *element, size_t n)                             \
    {                                                                                              \
        type *const out = out_;                                                                    \
        const type value = *(const type *)element;                                                 \
        for (size_t i = 0; i < n; ++i)                                                             \
            out[i] = value;                                                                        \
    }                                                                                              \
    static void transpose_##bits(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, size_t rows, \
                                 size_t columns)                                                   \
    {                                                                                              \
        type *const out = out_;                                                                    \
        const type *const in = in_;                                                                \
        for (size_t row = 0; row < rows; ++row)                                                    \
            for (size_t column = 0; column < columns; ++column)                                    \
                out[(int64_t)row * out_stride + (int64_t)column] = in[(int64_t)column * in_stride + (int64_t)row]; \
    }
typedef struct {
    uint64_t low, high;
} sixteen_bytes;
MOVES(8, uint8_t)
MOVES(16, uint16_t)
MOVES(32, uint32_t)
MOVES(64, uint64_t)
MOVES(128, sixteen_bytes)

#define HAS_ZERO(tag)                                                                              \
    static bool has_zero_##tag(const void *in_, size_t n)                                          \
    {                                                                                              \
        const type_##tag *const in = in_;                                                          \
        type_##tag found = 0;                                                                      \
        for (size_t i = 0; i < n; ++i)                                                             \
            found |= (type_##tag)(in[i] == 0);                                                     \
        return found != 0;                                                                         \
    }
HAS_ZERO(i64)
HAS_ZERO(i32)
HAS_ZERO(i16)
HAS_ZERO(i8)
HAS_ZERO(u8)

#define ENTRY_REAL(to, TO, from, FROM) [DTYPE_##TO][DTYPE_##FROM] = from##_to_##to,
#define ENTRIES_FROM(from, FROM)                                                                   \
    ENTRY_REAL(f64, F64, from, FROM) ENTRY_REAL(f32, F32, from, FROM) ENTRY_REAL(i64, I64, from, FROM) \
    ENTRY_REAL(i32, I32, from, FROM) ENTRY_REAL(i16, I16, from, FROM) ENTRY_REAL(i8, I8, from, FROM)   \
    ENTRY_REAL(u8, U8, from, FROM) ENTRY_REAL(b8, B8, from, FROM)
#define MOVE_ENTRIES(name) {name##_8, name##_16, name##_32, name##_64, name##_128}

const struct cast_kernels KERNEL_TABLE(cast_kernels) = {
    .convert = {ENTRIES_FROM(f64, F64) ENTRIES_FROM(f32, F32) ENTRIES_FROM(i64, I64) ENTRIES_FROM(i32, I32) ENTRIES_FROM(i16, I16)
                    ENTRIES_FROM(i8, I8) ENTRIES_FROM(u8, U8) ENTRIES_FROM(b8, B8) ENTRIES_FROM(c64, C64) ENTRIES_FROM(c128, C128)
#define ENTRIES_TO_COMPLEX(from, FROM) ENTRY_REAL(c64, C64, from, FROM) ENTRY_REAL(c128, C128, from, FROM)
                        ENTRIES_TO_COMPLEX(f64, F64) ENTRIES_TO_COMPLEX(f32, F32) ENTRIES_TO_COMPLEX(i64, I64)
                            ENTRIES_TO_COMPLEX(i32, I32) ENTRIES_TO_COMPLEX(i16, I16) ENTRIES_TO_COMPLEX(i8, I8)
                                ENTRIES_TO_COMPLEX(u8, U8) ENTRIES_TO_COMPLEX(b8, B8) ENTRY_REAL(c64, C64, c128, C128)
                                    ENTRY_REAL(c128, C128, c64, C64) ENTRY_REAL(f32, F32, f16, F16) ENTRY_REAL(f32, F32, bf16, BF16)
                                        ENTRY_REAL(f16, F16, f32, F32) ENTRY_REAL(bf16, BF16, f32, F32)},
    .gather = MOVE_ENTRIES(gather),
    .scatter = MOVE_ENTRIES(scatter),
    .fill = MOVE_ENTRIES(fill),
    .transpose = MOVE_ENTRIES(transpose),
    .has_zero = {[DTYPE_I64] = has_zero_i64,
                 [DTYPE_I32] = has_zero_i32,
                 [DTYPE_I16] = has_zero_i16,
                 [DTYPE_I8] = has_zero_i8,
                 [DTYPE_U8] = has_zero_u8},
};
