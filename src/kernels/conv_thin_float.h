/* Template: convolutions of few channels for one float type, lines of pixels as vectors. REAL, VECTOR, TAG, REAL_DTYPE, GEMM_INDEX
 * are the includer's, who included conv_float.h before.
 *
 * Invariant: a pixel that no product uses is masked, never multiplied by 0: it may be infinite. Reads go at most one vector beyond
 * the padded image, where its owner keeps room. */
#define NAME(name) GEMM_NAME(name, TAG)
#define LANES ((int)(sizeof(VECTOR) / sizeof(REAL)))
#define AT(p) (*(const VECTOR *)(p))
typedef GEMM_INDEX NAME(thin_mask) __attribute__((vector_size(sizeof(VECTOR)), aligned(sizeof(REAL)), may_alias));
#define MASK NAME(thin_mask)

/* out[x] = start + sum over k of weights[k] * in[offsets[k] + x], x < n. */
static void NAME(thin_line)(const REAL *in, const REAL *weights, const int64_t *offsets, int64_t depth, REAL start, int64_t n,
                            REAL *out)
{
    int64_t x = 0;
    for (; x + 4 * LANES <= n; x += 4 * LANES) {
        VECTOR a = (VECTOR){0} + start, b = a, c = a, d = a;
        for (int64_t k = 0; k < depth; ++k) {
            const REAL *const at = in + offsets[k] + x;
            a += weights[k] * AT(at);
            b += weights[k] * AT(at + LANES);
            c += weights[k] * AT(at + 2 * LANES);
            d += weights[k] * AT(at + 3 * LANES);
        }
        *(VECTOR *)(out + x) = a;
        *(VECTOR *)(out + x + LANES) = b;
        *(VECTOR *)(out + x + 2 * LANES) = c;
        *(VECTOR *)(out + x + 3 * LANES) = d;
    }
    for (; x < n; x += LANES) {
        VECTOR a = (VECTOR){0} + start;
        for (int64_t k = 0; k < depth; ++k)
            a += weights[k] * AT(in + offsets[k] + x);
        if (x + LANES <= n)
            *(VECTOR *)(out + x) = a;
        else
            for (int64_t i = 0; x + i < n; ++i)
                out[x + i] = a[i];
    }
}

/* Strided lines are computed without the stride first; a chunk of one holds `per` pixels of the result. */
static void NAME(thin_correlate)(const struct conv_geometry *g, const void *padded_, const void *matrix_, const void *bias_,
                                 void *out_)
{
    const REAL *const padded = padded_, *const bias = bias_;
    REAL *out = out_, line[CONV_THIN_LINE];
    const int64_t depth = g->channels * conv_volume(g->taps), step = g->stride[2],
                  per = step == 1 ? g->out[2] : CONV_THIN_LINE / step;
    int64_t offsets[GEMM_DEPTH];
    NAME(column_offsets)(g, 0, depth, offsets);
    for (int64_t row = 0; row < g->rows; ++row) {
        const REAL *const weights = (const REAL *)matrix_ + row * depth, start = bias ? bias[row] : 0;
        for (int64_t y = 0; y < g->out[0] * g->out[1]; ++y, out += g->out[2]) {
            const REAL *const in =
                padded + (y / g->out[1] * g->stride[0] * g->padded[1] + y % g->out[1] * g->stride[1]) * g->padded[2];
            for (int64_t x = 0; x < g->out[2]; x += per) {
                const int64_t n = g->out[2] - x < per ? g->out[2] - x : per;
                NAME(thin_line)(in + x * step, weights, offsets, depth, start, (n - 1) * step + 1, step == 1 ? out : line);
                for (int64_t i = 0; step > 1 && i < n; ++i)
                    out[x + i] = line[i * step];
            }
        }
    }
}

/* Sums `taps` columns over one line of n pixels, spread with the mask `used` (whole vectors). */
GEMM_INLINE void NAME(thin_products)(const int taps, const REAL *in, const int64_t *offsets, const REAL *small,
                                     const GEMM_INDEX *used, int64_t n, VECTOR *sums)
{
    VECTOR sum[CONV_THIN_TAPS];
#pragma GCC unroll 16
    for (int k = 0; k < taps; ++k)
        sum[k] = sums[k];
    for (int64_t x = 0; x < n; x += LANES) {
        const VECTOR s = AT(small + x);
        const MASK mask = *(const MASK *)(used + x);
#pragma GCC unroll 16
        for (int k = 0; k < taps; ++k)
            sum[k] += s * (VECTOR)((MASK)AT(in + offsets[k] + x) & mask);
    }
#pragma GCC unroll 16
    for (int k = 0; k < taps; ++k)
        sums[k] = sum[k];
}

/* A line of the result's gradient at the places of the pixels that it came from; the rest of whole vectors becomes 0. */
static int64_t NAME(thin_spread)(const REAL *small, int64_t n, int64_t step, REAL *line)
{
    const int64_t dense = (n - 1) * step + 1, whole = (dense + LANES - 1) / LANES * LANES;
    for (int64_t i = 0; i < whole; ++i)
        line[i] = 0;
    for (int64_t i = 0; i < n; ++i)
        line[i * step] = small[i];
    return whole;
}

static void NAME(thin_gradient)(const struct conv_geometry *g, const void *padded_, const void *small_, void *partial_,
                                bool accumulate)
{
    const REAL *const padded = padded_;
    REAL *const partial = partial_, line[CONV_THIN_LINE];
    GEMM_INDEX all[CONV_THIN_LINE], tail[CONV_THIN_LINE];
    const int64_t depth = g->channels * conv_volume(g->taps), step = g->stride[2], per = CONV_THIN_LINE / step;
    const int64_t last = (g->out[2] - 1) % per + 1; /* pixels of a line's last chunk */
    int64_t offsets[GEMM_DEPTH];
    NAME(column_offsets)(g, 0, depth, offsets);
    for (int64_t i = 0; i < CONV_THIN_LINE; ++i) {
        all[i] = i % step == 0 && i / step < per ? -1 : 0;
        tail[i] = i % step == 0 && i / step < last ? -1 : 0;
    }
    for (int64_t row = 0; row < g->rows; ++row)
        for (int64_t first = 0; first < depth; first += CONV_THIN_TAPS) {
            const int taps = depth - first < CONV_THIN_TAPS ? (int)(depth - first) : CONV_THIN_TAPS;
            const REAL *small = (const REAL *)small_ + row * conv_volume(g->out);
            VECTOR sums[CONV_THIN_TAPS] = {{0}};
            for (int64_t y = 0; y < g->out[0] * g->out[1]; ++y) {
                const REAL *const in =
                    padded + (y / g->out[1] * g->stride[0] * g->padded[1] + y % g->out[1] * g->stride[1]) * g->padded[2];
                for (int64_t x = 0; x < g->out[2]; x += per) {
                    const int64_t n = g->out[2] - x < per ? g->out[2] - x : per;
                    const int64_t whole = NAME(thin_spread)(small + x, n, step, line);
                    const GEMM_INDEX *const used = x + n == g->out[2] ? tail : all;
                    if (taps == CONV_THIN_TAPS)
                        NAME(thin_products)(CONV_THIN_TAPS, in + x * step, offsets + first, line, used, whole, sums);
                    else
                        for (int k = 0; k < taps; ++k)
                            NAME(thin_products)(1, in + x * step, offsets + first + k, line, used, whole, sums + k);
                }
                small += g->out[2];
            }
            for (int k = 0; k < taps; ++k) {
                REAL total = 0;
                for (int i = 0; i < LANES; ++i)
                    total += sums[k][i];
                REAL *const to = partial + row * depth + first + k;
                *to = accumulate ? *to + total : total;
            }
        }
}

#undef NAME
#undef LANES
#undef AT
#undef MASK
