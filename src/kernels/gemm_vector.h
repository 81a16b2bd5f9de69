/* Template: one row times a matrix. REAL, VECTOR, TAG, REAL_DTYPE are the includer's.
 *
 * Invariant: the sum over the depth runs in 64 partial sums added by a fixed tree when columns lie along the depth, and in
 * plain order otherwise. */

/* dtype is a constant at each call, so that loads inline. `vector` is contiguous and widened already. */
GEMM_INLINE REAL GEMM_NAME(dot_along, TAG)(const REAL *vector, const void *column, const enum dtype dtype, int64_t depth)
{
    REAL part[64] = {0};
    int64_t k = 0;
    for (; k + 64 <= depth; k += 64)
        for (int i = 0; i < 64; ++i)
            part[i] += vector[k + i] * GEMM_NAME(load, TAG)(column, k + i, dtype);
    for (int i = 0; k < depth; ++k, ++i)
        part[i] += vector[k] * GEMM_NAME(load, TAG)(column, k, dtype);
    for (int width = 32; width > 0; width /= 2)
        for (int i = 0; i < width; ++i)
            part[i] += part[i + width];
    return part[0];
}

GEMM_INLINE void GEMM_NAME(add_row, TAG)(REAL *sum, REAL factor, const void *row, const enum dtype dtype, int64_t stride, int64_t n)
{
    if (stride == 1)
        for (int64_t j = 0; j < n; ++j)
            sum[j] += factor * GEMM_NAME(load, TAG)(row, j, dtype);
    else
        for (int64_t j = 0; j < n; ++j)
            sum[j] += factor * GEMM_NAME(load, TAG)(row, j * stride, dtype);
}

/* Sums of columns [column, column + n), n <= GEMM_TILE_COLUMNS, over depths [k, k + depth), added to `sum`. */
GEMM_INLINE void GEMM_NAME(vector_part, TAG)(const struct gemm_operand *b, const enum dtype dtype, const REAL *vector, int64_t k,
                                             int64_t depth, int64_t column, int64_t n, REAL *sum)
{
    if (b->row_stride == 1)
        for (int64_t j = 0; j < n; ++j)
            sum[j] += GEMM_NAME(dot_along, TAG)(vector, GEMM_NAME(at, TAG)(b, k, column + j), dtype, depth);
    else
        for (int64_t i = 0; i < depth; ++i)
            GEMM_NAME(add_row, TAG)(sum, vector[i], GEMM_NAME(at, TAG)(b, k + i, column), dtype, b->column_stride, n);
}

static void GEMM_NAME(gemm_vector, TAG)(const struct gemm_problem *p, const struct gemm_tile *tile, void *scratch)
{
    REAL *const vector = scratch, *const sum = vector + GEMM_VECTOR_DEPTH;
    for (int64_t j = 0; j < tile->columns; ++j)
        sum[j] = 0;
    for (int64_t k = 0; k < p->depth; k += GEMM_VECTOR_DEPTH) {
        const int64_t depth = p->depth - k < GEMM_VECTOR_DEPTH ? p->depth - k : GEMM_VECTOR_DEPTH;
        for (int64_t i = 0; i < depth; ++i)
            vector[i] = GEMM_NAME(load, TAG)(p->a.data, (k + i) * p->a.column_stride, (enum dtype)p->a.dtype);
        switch (p->b.dtype) {
        case DTYPE_F16: GEMM_NAME(vector_part, TAG)(&p->b, DTYPE_F16, vector, k, depth, tile->column, tile->columns, sum); break;
        case DTYPE_BF16: GEMM_NAME(vector_part, TAG)(&p->b, DTYPE_BF16, vector, k, depth, tile->column, tile->columns, sum); break;
        case DTYPE_F64: GEMM_NAME(vector_part, TAG)(&p->b, DTYPE_F64, vector, k, depth, tile->column, tile->columns, sum); break;
        default: GEMM_NAME(vector_part, TAG)(&p->b, DTYPE_F32, vector, k, depth, tile->column, tile->columns, sum); break;
        }
    }
    GEMM_NAME(finish_tile, TAG)(p, tile, sum, 0);
}
