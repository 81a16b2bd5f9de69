/* Template: the tile loop of matrix products for one complex type. PAIR (its struct), REAL (of its parts) and TAG are the
 * includer's.
 *
 * Invariant: a factor without an imaginary part scales both parts and mixes nothing, so that an infinite sum stays free of NaN. */

static inline PAIR GEMM_NAME(scaled, TAG)(PAIR x, REAL re, REAL im)
{
    PAIR scaled = {re * x.re, re * x.im};
    if (im != 0) {
        scaled.re -= im * x.im;
        scaled.im += im * x.re;
    }
    return scaled;
}

/* Adds row `i` of a times columns [column, column + n) of b to sum. */
static inline void GEMM_NAME(add_products, TAG)(const struct gemm_problem *p, int64_t i, int64_t column, int64_t n, PAIR *sum)
{
    const PAIR *const a = p->a.data, *const b = p->b.data;
    for (int64_t k = 0; k < p->depth; ++k) {
        const PAIR x = a[i * p->a.row_stride + k * p->a.column_stride];
        const PAIR *const row = b + k * p->b.row_stride + column * p->b.column_stride;
        for (int64_t j = 0; j < n; ++j) {
            const PAIR y = row[j * p->b.column_stride];
            sum[j].re += x.re * y.re - x.im * y.im;
            sum[j].im += x.re * y.im + x.im * y.re;
        }
    }
}

static void GEMM_NAME(gemm_tile, TAG)(const struct gemm_problem *p, const struct gemm_tile *tile, void *scratch)
{
    PAIR *const sum = scratch;
    const bool add = p->addend.data && (p->beta != 0 || p->beta_imaginary != 0);
    for (int64_t i = tile->row; i < tile->row + tile->rows; ++i) {
        for (int64_t j = 0; j < tile->columns; ++j)
            sum[j] = (PAIR){0, 0};
        GEMM_NAME(add_products, TAG)(p, i, tile->column, tile->columns, sum);
        PAIR *const out = (PAIR *)p->out + i * p->out_row_stride + tile->column * p->out_column_stride;
        const PAIR *const addend =
            add ? (const PAIR *)p->addend.data + i * p->addend.row_stride + tile->column * p->addend.column_stride : NULL;
        for (int64_t j = 0; j < tile->columns; ++j) {
            PAIR value = GEMM_NAME(scaled, TAG)(sum[j], (REAL)p->alpha, (REAL)p->alpha_imaginary);
            if (add) {
                const PAIR more =
                    GEMM_NAME(scaled, TAG)(addend[j * p->addend.column_stride], (REAL)p->beta, (REAL)p->beta_imaginary);
                value.re += more.re;
                value.im += more.im;
            }
            out[j * p->out_column_stride] = value;
        }
    }
}
#undef PAIR
#undef REAL
#undef TAG
