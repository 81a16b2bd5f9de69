/* Template: the tile loop of matrix products for one float type. REAL, VECTOR, TAG, REAL_DTYPE are the includer's.
 *
 * The depth is cut every GEMM_DEPTH; each part starts a fresh sum, which also keeps rounding small. */
#include "kernels/gemm_pack.h"

static inline void GEMM_NAME(store, TAG)(void *data, int64_t index, enum dtype dtype, REAL value)
{
    switch (dtype) {
    case DTYPE_F64: ((double *)data)[index] = (double)value; break;
    case DTYPE_F16: ((uint16_t *)data)[index] = half_f16_from_f32((float)value); break;
    case DTYPE_BF16: ((uint16_t *)data)[index] = half_bf16_from_f32((float)value); break;
    default: ((float *)data)[index] = (float)value; break;
    }
}

static inline const void *GEMM_NAME(at, TAG)(const struct gemm_operand *m, int64_t row, int64_t column)
{
    return (const char *)m->data + (row * m->row_stride + column * m->column_stride) * (m->dtype == DTYPE_F64   ? 8
                                                                                        : m->dtype == DTYPE_F32 ? 4
                                                                                                                : 2);
}

/* Half values of n sums in a row. */
static void GEMM_NAME(narrow, TAG)(const REAL *in, REAL alpha, enum dtype dtype, int64_t n, uint16_t *out)
{
    if (dtype == DTYPE_BF16) {
        INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < n; ++i)
            out[i] = half_bf16_from_f32((float)(alpha * in[i]));
        return;
    }
    if (alpha == 1 && sizeof(REAL) == sizeof(float)) {
        half_f16_narrow_row(out, (const float *)(const void *)in, (size_t)n);
        return;
    }
    enum { STEP = 64 };
    float scaled[STEP];
    for (int64_t done = 0; done < n; done += STEP) {
        const int64_t step = n - done < STEP ? n - done : STEP;
        for (int64_t i = 0; i < step; ++i)
            scaled[i] = (float)(alpha * in[done + i]);
        half_f16_narrow_row(out + done, scaled, (size_t)step);
    }
}

/* out = alpha * sum + beta * addend for the tile; sum may be out itself. */
static void GEMM_NAME(finish_tile, TAG)(const struct gemm_problem *p, const struct gemm_tile *tile, const REAL *sum,
                                        int64_t sum_stride)
{
    const REAL alpha = (REAL)p->alpha, beta = (REAL)p->beta;
    const struct gemm_operand *const addend = &p->addend;
    const bool add = addend->data && p->beta != 0;
    const enum dtype add_dtype = (enum dtype)addend->dtype, out_dtype = (enum dtype)p->out_dtype;
    for (int64_t i = 0; i < tile->rows; ++i) {
        const int64_t base = (tile->row + i) * p->out_row_stride + tile->column * p->out_column_stride;
        const int64_t add_base = (tile->row + i) * addend->row_stride + tile->column * addend->column_stride;
        const REAL *const in = sum + i * sum_stride;
        if (p->out_column_stride == 1 && out_dtype == REAL_DTYPE &&
            (!add || (addend->column_stride == 1 && add_dtype == REAL_DTYPE))) {
            REAL *const out = (REAL *)p->out + base;
            const REAL *const extra = add ? (const REAL *)addend->data + add_base : NULL;
            if (add)
                for (int64_t j = 0; j < tile->columns; ++j)
                    out[j] = alpha * in[j] + beta * extra[j];
            else
                for (int64_t j = 0; j < tile->columns; ++j)
                    out[j] = alpha * in[j];
            continue;
        }
        if (p->out_column_stride == 1 && !add && (out_dtype == DTYPE_F16 || out_dtype == DTYPE_BF16)) {
            GEMM_NAME(narrow, TAG)(in, alpha, out_dtype, tile->columns, (uint16_t *)p->out + base);
            continue;
        }
        for (int64_t j = 0; j < tile->columns; ++j) {
            REAL value = alpha * in[j];
            if (add)
                value += beta * GEMM_NAME(load, TAG)(addend->data, add_base + j * addend->column_stride, add_dtype);
            GEMM_NAME(store, TAG)(p->out, base + j * p->out_column_stride, out_dtype, value);
        }
    }
}

/* Rows [first, first + rows) of A, at depths [k, k + depth), as panels. */
static void GEMM_NAME(pack_block, TAG)(const struct gemm_problem *p, int64_t first, int64_t rows, int64_t k, int64_t depth,
                                       REAL *panels)
{
    const enum dtype dtype = (enum dtype)p->a.dtype;
    const bool half = dtype == DTYPE_F16 || dtype == DTYPE_BF16;
    const int64_t groups = (rows + GEMM_MICRO_ROWS - 1) / GEMM_MICRO_ROWS;
    /* Halves whose rows are neighbours are widened by whole blocks: a panel's few at a time don't fill vectors. */
    for (int64_t d = 0; half && p->a.row_stride == 1 && d < depth; ++d) {
        REAL line[GEMM_BLOCK_ROWS];
        GEMM_NAME(widen, TAG)(GEMM_NAME(at, TAG)(&p->a, first, k + d), dtype, rows, line);
        for (int64_t g = 0, row = 0; g < groups; ++g) {
            const int r = (int)((rows - row + groups - g - 1) / (groups - g));
            for (int i = 0; i < r; ++i)
                panels[row * depth + d * r + i] = line[row + i];
            row += r;
        }
    }
    if (half && p->a.row_stride == 1)
        return;
    for (int64_t g = 0, row = 0; g < groups; ++g) {
        const int r = (int)((rows - row + groups - g - 1) / (groups - g));
        GEMM_NAME(pack_panel, TAG)(GEMM_NAME(at, TAG)(&p->a, first + row, k), dtype, p->a.row_stride, p->a.column_stride, r, r,
                                   depth, panels + row * depth);
        row += r;
    }
}

/* A shallow product's sums are finished a few rows at a time, from the nearest cache: with all rows first, finishing half types took
 * as long as the product. */
static void GEMM_NAME(shallow_tile, TAG)(const struct gemm_problem *p, const struct gemm_tile *tile, REAL *a_panels,
                                         const REAL *b_panels, REAL *sums)
{
    for (int64_t i = 0; i < tile->rows; i += GEMM_SHALLOW_ROWS) {
        const int64_t left = tile->rows - i, rows = left < GEMM_SHALLOW_ROWS ? left : GEMM_SHALLOW_ROWS;
        const struct gemm_tile part = {.row = tile->row + i, .rows = rows, .column = tile->column, .columns = tile->columns};
        GEMM_NAME(pack_block, TAG)(p, part.row, rows, 0, p->depth, a_panels);
        GEMM_NAME(multiply_block, TAG)(rows, tile->columns, p->depth, p->depth, a_panels, b_panels,
                                       (struct GEMM_NAME(target, TAG)){sums, GEMM_TILE_COLUMNS, false});
        GEMM_NAME(finish_tile, TAG)(p, &part, sums, GEMM_TILE_COLUMNS);
    }
}

static void GEMM_NAME(gemm_tile, TAG)(const struct gemm_problem *p, const struct gemm_tile *tile, void *scratch)
{
    REAL *const a_panels = scratch, *const b_panels = a_panels + GEMM_BLOCK_ROWS * GEMM_DEPTH;
    REAL *const sums = b_panels + GEMM_TILE_COLUMNS * GEMM_DEPTH;
    const bool direct = !p->aside && p->out_dtype == REAL_DTYPE && p->out_column_stride == 1;
    REAL *const c = direct ? (REAL *)p->out + tile->row * p->out_row_stride + tile->column : sums;
    const int64_t c_stride = direct ? p->out_row_stride : GEMM_TILE_COLUMNS;
    for (int64_t k = 0; k < p->depth; k += GEMM_DEPTH) {
        const int64_t depth = p->depth - k < GEMM_DEPTH ? p->depth - k : GEMM_DEPTH;
        for (int64_t j = 0; j < tile->columns; j += PANEL) {
            const int64_t left = tile->columns - j;
            GEMM_NAME(pack_panel, TAG)(GEMM_NAME(at, TAG)(&p->b, k, tile->column + j), (enum dtype)p->b.dtype, p->b.column_stride,
                                       p->b.row_stride, left < PANEL ? (int)left : PANEL, PANEL, depth, b_panels + j * depth);
        }
        if (!direct && !p->aside && p->depth <= GEMM_SHALLOW) {
            GEMM_NAME(shallow_tile, TAG)(p, tile, a_panels, b_panels, sums);
            return;
        }
        for (int64_t i = 0; i < tile->rows; i += GEMM_BLOCK_ROWS) {
            const int64_t rows = tile->rows - i < GEMM_BLOCK_ROWS ? tile->rows - i : GEMM_BLOCK_ROWS;
            GEMM_NAME(pack_block, TAG)(p, tile->row + i, rows, k, depth, a_panels);
            GEMM_NAME(multiply_block, TAG)(rows, tile->columns, depth, depth, a_panels, b_panels,
                                           (struct GEMM_NAME(target, TAG)){c + i * c_stride, c_stride, k > 0});
        }
    }
    if (p->depth == 0)
        for (int64_t i = 0; i < tile->rows; ++i)
            for (int64_t j = 0; j < tile->columns; ++j)
                c[i * c_stride + j] = 0;
    if (!direct || p->alpha != 1 || (p->addend.data && p->beta != 0))
        GEMM_NAME(finish_tile, TAG)(p, tile, c, c_stride);
}
