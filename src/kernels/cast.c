/* Conversions and moves. See cast.h. */
#include "kernels/cast.h"

#include <string.h>

#include "base/float8.h"
#include "base/integer.h"
#include "kernels/half_rows.h"
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
static void f16_to_f32(void *out, const void *in, size_t n) { half_f16_widen_row(out, in, n); }
CONVERT(bf16_to_f32, float, uint16_t, half_bf16_to_f32(x))
static void f32_to_f16(void *out, const void *in, size_t n) { half_f16_narrow_row(out, in, n); }
CONVERT(f32_to_bf16, uint16_t, float, half_bf16_from_f32(x))
CONVERT(f8_e4m3fn_to_f32, float, uint8_t, float8_e4m3fn_to_f32(x))
CONVERT(f8_e5m2_to_f32, float, uint8_t, float8_e5m2_to_f32(x))
CONVERT(f32_to_f8_e4m3fn, uint8_t, float, float8_e4m3fn_from_f32(x))
CONVERT(f32_to_f8_e5m2, uint8_t, float, float8_e5m2_from_f32(x))
CONVERT(f8_e8m0_to_f32, float, uint8_t, float8_e8m0_to_f32(x))
CONVERT(f32_to_f8_e8m0, uint8_t, float, float8_e8m0_from_f32(x))

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
    static void transpose_plain_##bits(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, size_t rows, \
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

/* 16 x 16 elements of 32 bits through registers and a block of its own: every line of memory is touched once, so that lines which
 * share a set of the cache (strides of a power of 2) don't drive each other out. */
static void transpose_block(uint32_t *out, int64_t out_stride, const uint32_t *in, int64_t in_stride)
{
    typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t quad_index __attribute__((vector_size(16)));
    enum { SIDE = 16 };
    uint32_t block[SIDE * SIDE];
#pragma GCC unroll 4
    for (int c = 0; c < SIDE; c += 4)
#pragma GCC unroll 4
        for (int r = 0; r < SIDE; r += 4) {
            const uint32_t *const from = in + c * in_stride + r;
            const quad r0 = *(const quad *)from, r1 = *(const quad *)(from + in_stride);
            const quad r2 = *(const quad *)(from + 2 * in_stride), r3 = *(const quad *)(from + 3 * in_stride);
            const quad t0 = VECTOR_SHUFFLE(r0, r1, quad_index, 0, 4, 1, 5), t1 = VECTOR_SHUFFLE(r2, r3, quad_index, 0, 4, 1, 5);
            const quad t2 = VECTOR_SHUFFLE(r0, r1, quad_index, 2, 6, 3, 7), t3 = VECTOR_SHUFFLE(r2, r3, quad_index, 2, 6, 3, 7);
            *(quad *)(block + r * SIDE + c) = VECTOR_SHUFFLE(t0, t1, quad_index, 0, 1, 4, 5);
            *(quad *)(block + (r + 1) * SIDE + c) = VECTOR_SHUFFLE(t0, t1, quad_index, 2, 3, 6, 7);
            *(quad *)(block + (r + 2) * SIDE + c) = VECTOR_SHUFFLE(t2, t3, quad_index, 0, 1, 4, 5);
            *(quad *)(block + (r + 3) * SIDE + c) = VECTOR_SHUFFLE(t2, t3, quad_index, 2, 3, 6, 7);
        }
    /* As it was written, a quad at a time: a wider load would wait until the narrow stores have left the core. */
    for (int r = 0; r < SIDE; ++r)
#pragma GCC unroll 4
        for (int c = 0; c < SIDE; c += 4)
            *(quad *)(out + r * out_stride + c) = *(const quad *)(block + r * SIDE + c);
}

static void transpose_blocks_32(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, size_t rows, size_t columns)
{
    uint32_t *const out = out_;
    const uint32_t *const in = in_;
    const size_t whole_rows = rows / 16 * 16, whole_columns = columns / 16 * 16;
    for (size_t column = 0; column < whole_columns; column += 16)
        for (size_t row = 0; row < whole_rows; row += 16)
            transpose_block(out + (int64_t)row * out_stride + (int64_t)column, out_stride,
                            in + (int64_t)column * in_stride + (int64_t)row, in_stride);
    transpose_plain_32(out + whole_columns, out_stride, in + (int64_t)whole_columns * in_stride, in_stride, whole_rows,
                       columns - whole_columns);
    transpose_plain_32(out + (int64_t)whole_rows * out_stride, out_stride, in + whole_rows, in_stride, rows - whole_rows, columns);
}

/* Short rows: a call of memcpy would take longer than the copy. The last piece of a row overlaps the one before. */
static void copy_rows(void *out_, const void *in_, int64_t in_step, size_t row_bytes, size_t rows)
{
    typedef uint8_t piece __attribute__((vector_size(VECTOR_SIZE), aligned(1), may_alias));
    char *out = out_;
    const char *in = in_;
    for (; rows > 0; --rows, out += row_bytes, in += in_step) {
        if (row_bytes < sizeof(piece) || row_bytes > 16 * sizeof(piece)) {
            memcpy(out, in, row_bytes);
            continue;
        }
        for (size_t at = 0; at + sizeof(piece) < row_bytes; at += sizeof(piece))
            *(piece *)(void *)(out + at) = *(const piece *)(const void *)(in + at);
        *(piece *)(void *)(out + row_bytes - sizeof(piece)) = *(const piece *)(const void *)(in + row_bytes - sizeof(piece));
    }
}

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
                                        ENTRY_REAL(f16, F16, f32, F32) ENTRY_REAL(bf16, BF16, f32, F32)
                                            ENTRY_REAL(f32, F32, f8_e4m3fn, F8_E4M3FN) ENTRY_REAL(f32, F32, f8_e5m2, F8_E5M2)
                                                ENTRY_REAL(f8_e4m3fn, F8_E4M3FN, f32, F32) ENTRY_REAL(f8_e5m2, F8_E5M2, f32, F32)
                                                    ENTRY_REAL(f32, F32, f8_e8m0, F8_E8M0) ENTRY_REAL(f8_e8m0, F8_E8M0, f32, F32)},
    .gather = MOVE_ENTRIES(gather),
    .scatter = MOVE_ENTRIES(scatter),
    .fill = MOVE_ENTRIES(fill),
    .copy_rows = copy_rows,
    .transpose = {transpose_plain_8, transpose_plain_16, transpose_blocks_32, transpose_plain_64, transpose_plain_128},
    .has_zero = {[DTYPE_I64] = has_zero_i64,
                 [DTYPE_I32] = has_zero_i32,
                 [DTYPE_I16] = has_zero_i16,
                 [DTYPE_I8] = has_zero_i8,
                 [DTYPE_U8] = has_zero_u8},
};
