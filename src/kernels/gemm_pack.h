/* Template: packing, and the product of packed blocks, for one float type. Shared by matrix products and convolutions.
 * REAL, VECTOR, TAG, REAL_DTYPE, GEMM_INDEX and the GEMM_ sizes are the includer's.
 *
 * Panels: A [depth][r] with r balanced over the rows (at most GEMM_MICRO_ROWS), B [depth][2 vectors], short ones filled with 0. */
#include "kernels/gemm_micro.h"
#include "kernels/half_rows.h"

#define PANEL ((int)(2 * sizeof(VECTOR) / sizeof(REAL)))
typedef REAL GEMM_NAME(quad, TAG) __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
typedef GEMM_INDEX GEMM_NAME(quad_index, TAG) __attribute__((vector_size(4 * sizeof(REAL))));
#define QUAD GEMM_NAME(quad, TAG)
#define SHUFFLE(x, y, ...) VECTOR_SHUFFLE(x, y, GEMM_NAME(quad_index, TAG), __VA_ARGS__)

/* out[k * out_stride + i] = in[i * in_stride + k] for i < 4, k < depth. */
GEMM_INLINE void GEMM_NAME(transpose_four, TAG)(const REAL *in, int64_t in_stride, int64_t depth, REAL *out, int64_t out_stride)
{
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        const QUAD r0 = *(const QUAD *)(in + k), r1 = *(const QUAD *)(in + in_stride + k);
        const QUAD r2 = *(const QUAD *)(in + 2 * in_stride + k), r3 = *(const QUAD *)(in + 3 * in_stride + k);
        const QUAD t0 = SHUFFLE(r0, r1, 0, 4, 1, 5), t1 = SHUFFLE(r2, r3, 0, 4, 1, 5);
        const QUAD t2 = SHUFFLE(r0, r1, 2, 6, 3, 7), t3 = SHUFFLE(r2, r3, 2, 6, 3, 7);
        *(QUAD *)(out + k * out_stride) = SHUFFLE(t0, t1, 0, 1, 4, 5);
        *(QUAD *)(out + (k + 1) * out_stride) = SHUFFLE(t0, t1, 2, 3, 6, 7);
        *(QUAD *)(out + (k + 2) * out_stride) = SHUFFLE(t2, t3, 0, 1, 4, 5);
        *(QUAD *)(out + (k + 3) * out_stride) = SHUFFLE(t2, t3, 2, 3, 6, 7);
    }
    for (; k < depth; ++k)
        for (int i = 0; i < 4; ++i)
            out[k * out_stride + i] = in[i * in_stride + k];
}

static inline REAL GEMM_NAME(load, TAG)(const void *data, int64_t index, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F64: return (REAL)((const double *)data)[index];
    case DTYPE_F16: return (REAL)half_f16_to_f32(((const uint16_t *)data)[index]);
    case DTYPE_BF16: return (REAL)half_bf16_to_f32(((const uint16_t *)data)[index]);
    default: return (REAL)((const float *)data)[index];
    }
}

/* Widens n consecutive half values. */
GEMM_INLINE void GEMM_NAME(widen, TAG)(const uint16_t *in, enum dtype dtype, int64_t n, REAL *out)
{
    if (dtype == DTYPE_BF16)
        for (int64_t i = 0; i < n; ++i)
            out[i] = (REAL)half_bf16_to_f32(in[i]);
    else if (sizeof(REAL) == sizeof(float))
        half_f16_widen_row((float *)out, in, (size_t)n);
    else
        for (int64_t i = 0; i < n; ++i)
            out[i] = (REAL)half_f16_to_f32(in[i]);
}

/* One panel: out[k * width + i] = matrix[i * across + k * along], i < used; i in [used, width) becomes 0. */
static void GEMM_NAME(pack_panel, TAG)(const void *data, enum dtype dtype, int64_t across, int64_t along, int used, int width,
                                       int64_t depth, REAL *out)
{
    const bool half = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
    const bool same = dtype == REAL_DTYPE;
    int done = 0;
    if (used < width)
        for (int64_t k = 0; k < depth; ++k)
            for (int i = used; i < width; ++i)
                out[k * width + i] = 0;
    if (across == 1 && same) {
        const REAL *const in = data;
        if (used == PANEL && width == PANEL)
            for (int64_t k = 0; k < depth; ++k)
                for (int i = 0; i < PANEL; ++i)
                    out[k * PANEL + i] = in[k * along + i];
        else
            for (int64_t k = 0; k < depth; ++k)
                for (int i = 0; i < used; ++i)
                    out[k * width + i] = in[k * along + i];
        return;
    }
    if (across == 1 && half) {
        for (int64_t k = 0; k < depth; ++k)
            GEMM_NAME(widen, TAG)((const uint16_t *)data + k * along, dtype, used, out + k * width);
        return;
    }
    if (along == 1 && same)
        for (; done + 4 <= used; done += 4)
            GEMM_NAME(transpose_four, TAG)((const REAL *)data + done * across, across, depth, out + done, width);
    if (along == 1 && half) {
        REAL rows[4][GEMM_DEPTH];
        for (; done + 4 <= used; done += 4) {
            for (int i = 0; i < 4; ++i)
                GEMM_NAME(widen, TAG)((const uint16_t *)data + (done + i) * across, dtype, depth, rows[i]);
            GEMM_NAME(transpose_four, TAG)(rows[0], GEMM_DEPTH, depth, out + done, width);
        }
    }
    for (; done < used; ++done)
        for (int64_t k = 0; k < depth; ++k)
            out[k * width + done] = GEMM_NAME(load, TAG)(data, done * across + k * along, dtype);
}

/* Where a product goes. */
struct GEMM_NAME(target, TAG) {
    REAL *c;
    int64_t stride; /* of its rows */
    bool accumulate;
};

/* The product of two panels, in chains of `chain` products whose sums are added in the target. */
GEMM_INLINE void GEMM_NAME(multiply_panels, TAG)(int r, int64_t depth, int64_t chain, const REAL *a, const REAL *b,
                                                 struct GEMM_NAME(target, TAG) to)
{
    int64_t k = 0;
    do {
        const int64_t part = depth - k < chain ? depth - k : chain;
        GEMM_NAME(micro, TAG)(r, part, a + k * r, r, b + k * PANEL, PANEL, to.c, to.stride, to.accumulate || k > 0);
        k += part;
    } while (k < depth);
}

/* Rows [0, rows) of A against all packed B panels. The target has `columns` elements a row that may be written. */
static void GEMM_NAME(multiply_block, TAG)(int64_t rows, int64_t columns, int64_t depth, int64_t chain, const REAL *a,
                                           const REAL *b, struct GEMM_NAME(target, TAG) to)
{
    const int64_t groups = (rows + GEMM_MICRO_ROWS - 1) / GEMM_MICRO_ROWS;
    for (int64_t j = 0; j < columns; j += PANEL, b += depth * PANEL) {
        const int64_t width = columns - j < PANEL ? columns - j : PANEL;
        const REAL *panel = a;
        int64_t row = 0;
        for (int64_t g = 0; g < groups; ++g) {
            const int r = (int)((rows - row + groups - g - 1) / (groups - g));
            REAL *const c = to.c + row * to.stride + j;
            if (width == PANEL)
                GEMM_NAME(multiply_panels, TAG)(r, depth, chain, panel, b,
                                                (struct GEMM_NAME(target, TAG)){c, to.stride, to.accumulate});
            else {
                REAL part[GEMM_MICRO_ROWS * PANEL];
                GEMM_NAME(multiply_panels, TAG)(r, depth, chain, panel, b, (struct GEMM_NAME(target, TAG)){part, PANEL, false});
                for (int i = 0; i < r; ++i)
                    for (int64_t x = 0; x < width; ++x)
                        c[i * to.stride + x] = to.accumulate ? part[i * PANEL + x] + c[i * to.stride + x] : part[i * PANEL + x];
            }
            panel += depth * r;
            row += r;
        }
    }
}
