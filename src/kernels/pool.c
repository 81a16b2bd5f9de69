/* Pooling kernels. Compiled once per ISA. */
#include "kernels/pool.h"

#include "kernels/isa.h"

/* Explicit vectors: compilers turn the interleaved stores into scatter instructions. Half-size vectors where the machine's are
 * 64 bytes, because rows are short. */
#if VECTOR_SIZE > 32
#define ROW_BYTES 32
#else
#define ROW_BYTES VECTOR_SIZE
#endif
typedef float row_f32 __attribute__((vector_size(ROW_BYTES), aligned(4), may_alias));
typedef int32_t row_i32 __attribute__((vector_size(ROW_BYTES), aligned(4), may_alias));
enum { ROW_LANES = ROW_BYTES / 4 };
#if ROW_BYTES == 32
#define ROW_COUNT (row_i32){0, 1, 2, 3, 4, 5, 6, 7}
#define ROW_LOW 0, 8, 1, 9, 2, 10, 3, 11 /* places of the first and of the second half, elements in turn */
#define ROW_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define ROW_COUNT (row_i32){0, 1, 2, 3}
#define ROW_LOW 0, 4, 1, 5
#define ROW_HIGH 2, 6, 3, 7
#endif

static inline void store_interleaved(row_i32 even, row_i32 odd, float *to)
{
    *(row_i32 *)to = VECTOR_SHUFFLE(even, odd, row_i32, ROW_LOW);
    *(row_i32 *)(to + ROW_LANES) = VECTOR_SHUFFLE(even, odd, row_i32, ROW_HIGH);
}

static inline int32_t scatter_row(const float *from, const int32_t *where, int32_t first, int32_t width, int32_t count, float *top,
                                  float *bottom)
{
    int32_t x = 0;
    for (; x + ROW_LANES <= count; x += ROW_LANES) {
        const row_i32 value = *(const row_i32 *)(from + x);
        const row_i32 at = *(const row_i32 *)(where + x) - (first + 2 * x) - 2 * ROW_COUNT;
        store_interleaved(value & (at == 0), value & (at == 1), top + 2 * x);
        store_interleaved(value & (at == width), value & (at == width + 1), bottom + 2 * x);
    }
    return x;
}

static inline int64_t spread_row(const float *from, float divisor, int64_t count, float *top, float *bottom)
{
    int64_t x = 0;
    for (; x + ROW_LANES <= count; x += ROW_LANES) {
        const row_f32 share = *(const row_f32 *)(from + x) / divisor + 0.0f;
        store_interleaved((row_i32)share, (row_i32)share, top + 2 * x);
        store_interleaved((row_i32)share, (row_i32)share, bottom + 2 * x);
    }
    return x;
}

#define LOWEST (-(REAL)__builtin_inf())
#define IS_NAN(value) ((value) != (value))
#define ADD(a, b) ((a) + (b))
#define DIVIDE(a, b) ((a) / (b))

#define REAL float
#define TAG f32
#define SCATTER_ROW scatter_row
#define SPREAD_ROW spread_row
#include "kernels/pool_float.h"
#undef REAL
#undef TAG
#undef SCATTER_ROW
#undef SPREAD_ROW

#define REAL double
#define TAG f64
#define SCATTER_ROW(from, where, first, width, count, top, bottom) 0
#define SPREAD_ROW(from, divisor, count, top, bottom) 0
#include "kernels/pool_float.h"
#undef REAL
#undef TAG
#undef SCATTER_ROW
#undef SPREAD_ROW

#undef LOWEST
#undef IS_NAN
#undef ADD
#undef DIVIDE
/* Integers, which wrap; a mean drops what is behind the point. */
#define LOWEST INT64_MIN
#define IS_NAN(value) 0
#define ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define DIVIDE(a, b) ((b) == -1 ? (int64_t)(0 - (uint64_t)(a)) : (a) / (b))
#define REAL int64_t
#define TAG i64
#define SCATTER_ROW(from, where, first, width, count, top, bottom) 0
#define SPREAD_ROW(from, divisor, count, top, bottom) 0
#include "kernels/pool_float.h"
#undef REAL
#undef TAG
#undef SCATTER_ROW
#undef SPREAD_ROW

static void widen_index(const int32_t *in, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        out[i] = in[i];
}

static void narrow_index(const int64_t *in, int32_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        out[i] = (int32_t)in[i];
}

#define TABLE(tag) \
    {max_##tag, max_backward_##tag, average_##tag, average_backward_##tag, adaptive_##tag, adaptive_backward_##tag, \
     adaptive_max_##tag}

const struct pool_kernels KERNEL_TABLE(pool_kernels) = {
    .real = {[ACCUMULATE_F64] = TABLE(f64), [ACCUMULATE_F32] = TABLE(f32), [ACCUMULATE_I64] = TABLE(i64)},
    .widen_index = widen_index,
    .narrow_index = narrow_index,
};
