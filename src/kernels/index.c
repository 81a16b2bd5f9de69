/* Moves, gathers, scatters. See index.h. */
#include "kernels/index.h"

#include <string.h>

#include "base/half.h"
#include "kernels/isa.h"

typedef complex64_pair size_16;

#define MOVES(tag, type)                                                                                                 \
    static void move_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, int64_t n)                \
    {                                                                                                                    \
        type *restrict out = out_;                                                                                       \
        const type *restrict in = in_;                                                                                   \
        if (out_stride == 1 && in_stride == 1)                                                                           \
            memcpy(out, in, (size_t)n * sizeof(type));                                                                   \
        else if (out_stride == 1 && in_stride == 0)                                                                      \
            for (int64_t i = 0; i < n; ++i)                                                                              \
                out[i] = in[0];                                                                                          \
        else if (out_stride == 1 && in_stride == -1)                                                                     \
            for (int64_t i = 0; i < n; ++i)                                                                              \
                out[i] = in[-i];                                                                                         \
        else if (out_stride == 1)                                                                                        \
            for (int64_t i = 0; i < n; ++i)                                                                              \
                out[i] = in[i * in_stride];                                                                              \
        else                                                                                                             \
            for (int64_t i = 0; i < n; ++i)                                                                              \
                out[i * out_stride] = in[i * in_stride];                                                                 \
    }                                                                                                                    \
    static void gather_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, const int64_t *index,   \
                             int64_t step, int64_t n)                                                                    \
    {                                                                                                                    \
        type *restrict out = out_;                                                                                       \
        const type *restrict in = in_;                                                                                   \
        if (out_stride == 1 && in_stride == 0 && step == 1)                                                              \
            for (int64_t i = 0; i < n; ++i)                                                                              \
                out[i] = in[index[i]];                                                                                   \
        else                                                                                                             \
            for (int64_t i = 0; i < n; ++i)                                                                              \
                out[i * out_stride] = in[i * in_stride + index[i] * step];                                               \
    }                                                                                                                    \
    static void scatter_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, const int64_t *index,  \
                              int64_t step, int64_t n)                                                                   \
    {                                                                                                                    \
        type *out = out_;                                                                                                \
        const type *in = in_;                                                                                            \
        for (int64_t i = 0; i < n; ++i)                                                                                  \
            out[i * out_stride + index[i] * step] = in[i * in_stride];                                                   \
    }
MOVES(1, uint8_t)
MOVES(2, uint16_t)
MOVES(4, uint32_t)
MOVES(8, uint64_t)
MOVES(16, size_16)

#define PLAIN(x) (x)
#define ADD(a, x) ((a) + (x))
#define MUL(a, x) ((a) * (x))
#define MAX(a, x) (((x) > (a)) | ((x) != (x)) ? (x) : (a))
#define MIN(a, x) (((x) < (a)) | ((x) != (x)) ? (x) : (a))
#define OR(a, x) ((a) | (x))
#define AND(a, x) ((a) & (x))

/* A: the type in which the operation runs. */
#define UPDATE(op, tag, type, A, read, write, operation)                                                                 \
    static void update_##op##_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, int64_t n)       \
    {                                                                                                                    \
        type *restrict out = out_;                                                                                       \
        const type *restrict in = in_;                                                                                   \
        if (out_stride == 1 && in_stride == 1)                                                                           \
            for (int64_t i = 0; i < n; ++i) {                                                                            \
                const A a = (A)read(out[i]), x = (A)read(in[i]);                                                         \
                out[i] = (type)write((A)operation(a, x));                                                                \
            }                                                                                                            \
        else                                                                                                             \
            for (int64_t i = 0; i < n; ++i) {                                                                            \
                const A a = (A)read(out[i * out_stride]), x = (A)read(in[i * in_stride]);                                \
                out[i * out_stride] = (type)write((A)operation(a, x));                                                   \
            }                                                                                                            \
    }                                                                                                                    \
    static void scatter_##op##_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride,                 \
                                     const int64_t *index, int64_t step, int64_t n)                                      \
    {                                                                                                                    \
        type *out = out_;                                                                                                \
        const type *in = in_;                                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                                                \
            type *const place = out + i * out_stride + index[i] * step;                                                  \
            const A a = (A)read(*place), x = (A)read(in[i * in_stride]);                                                 \
            *place = (type)write((A)operation(a, x));                                                                    \
        }                                                                                                                \
    }

#define UPDATES(op, operation, on_bool)                                                     \
    UPDATE(op, f64, double, double, PLAIN, PLAIN, operation)                                \
    UPDATE(op, f32, float, float, PLAIN, PLAIN, operation)                                  \
    UPDATE(op, f16, uint16_t, float, half_f16_to_f32, half_f16_from_f32, operation)         \
    UPDATE(op, bf16, uint16_t, float, half_bf16_to_f32, half_bf16_from_f32, operation)      \
    UPDATE(op, i64, int64_t, int64_t, PLAIN, PLAIN, operation)                              \
    UPDATE(op, i32, int32_t, int32_t, PLAIN, PLAIN, operation)                              \
    UPDATE(op, i16, int16_t, int32_t, PLAIN, PLAIN, operation)                              \
    UPDATE(op, i8, int8_t, int32_t, PLAIN, PLAIN, operation)                                \
    UPDATE(op, u8, uint8_t, int32_t, PLAIN, PLAIN, operation)                               \
    UPDATE(op, b8, uint8_t, int32_t, 0 !=, PLAIN, on_bool)

UPDATES(add, ADD, OR)
UPDATES(mul, MUL, AND)
UPDATES(max, MAX, OR)
UPDATES(min, MIN, AND)

#define COMPLEX_ADD(tag, type)                                                                                           \
    static void update_add_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride, int64_t n)          \
    {                                                                                                                    \
        type *out = out_;                                                                                                \
        const type *in = in_;                                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                                                \
            out[i * out_stride].re += in[i * in_stride].re;                                                              \
            out[i * out_stride].im += in[i * in_stride].im;                                                              \
        }                                                                                                                \
    }                                                                                                                    \
    static void scatter_add_##tag(void *out_, int64_t out_stride, const void *in_, int64_t in_stride,                    \
                                  const int64_t *index, int64_t step, int64_t n)                                         \
    {                                                                                                                    \
        type *out = out_;                                                                                                \
        const type *in = in_;                                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                                                \
            type *const place = out + i * out_stride + index[i] * step;                                                  \
            place->re += in[i * in_stride].re;                                                                           \
            place->im += in[i * in_stride].im;                                                                           \
        }                                                                                                                \
    }
COMPLEX_ADD(c64, complex32_pair)
COMPLEX_ADD(c128, complex64_pair)

static int outside(const int64_t *index, int64_t n, int64_t size)
{
    int64_t bad = 0; /* its sign */
    for (int64_t i = 0; i < n; ++i)
        bad |= index[i] | (size - 1 - index[i]);
    return bad < 0;
}

static int offsets(int64_t *restrict offsets_, const int64_t *restrict index, int64_t n, int64_t size, int64_t stride, int wrap,
                   int adds)
{
    const int64_t from_end = wrap ? size : 0;
    int64_t bad = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t place = index[i] + (index[i] >> 63 & from_end);
        bad |= place | (size - 1 - place);
        offsets_[i] = (adds ? offsets_[i] : 0) + place * stride;
    }
    return bad < 0;
}

#define BY_SIZE(f) {f##_1, f##_2, f##_4, f##_8, f##_16}
#define REAL_TYPES(f)                                                                                         \
    [DTYPE_F64] = f##_f64, [DTYPE_F32] = f##_f32, [DTYPE_F16] = f##_f16, [DTYPE_BF16] = f##_bf16,             \
    [DTYPE_I64] = f##_i64, [DTYPE_I32] = f##_i32, [DTYPE_I16] = f##_i16, [DTYPE_I8] = f##_i8,                 \
    [DTYPE_U8] = f##_u8, [DTYPE_B8] = f##_b8

const struct index_kernels KERNEL_TABLE(index_kernels) = {
    .outside = outside,
    .offsets = offsets,
    .move = BY_SIZE(move),
    .gather = BY_SIZE(gather),
    .scatter = BY_SIZE(scatter),
    .update = {[UPDATE_add] = {REAL_TYPES(update_add), [DTYPE_C64] = update_add_c64, [DTYPE_C128] = update_add_c128},
               [UPDATE_mul] = {REAL_TYPES(update_mul)},
               [UPDATE_max] = {REAL_TYPES(update_max)},
               [UPDATE_min] = {REAL_TYPES(update_min)}},
    .scatter_update = {[UPDATE_add] = {REAL_TYPES(scatter_add), [DTYPE_C64] = scatter_add_c64, [DTYPE_C128] = scatter_add_c128},
                       [UPDATE_mul] = {REAL_TYPES(scatter_mul)},
                       [UPDATE_max] = {REAL_TYPES(scatter_max)},
                       [UPDATE_min] = {REAL_TYPES(scatter_min)}},
};
