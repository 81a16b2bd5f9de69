/* Template: normalisation kernels for one float type; REAL, TAG and EXP are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

static double NAME(tree)(REAL *part)
{
#pragma GCC unroll 6
    for (int width = 32; width > 0; width /= 2)
        for (int i = 0; i < width; ++i)
            part[i] += part[i + width];
    return (double)part[0];
}

/* One sum: TERM(i) over [0, n) in blocks. */
#define BLOCK_SUM(total, TERM)                                                \
    for (int64_t block = 0; block < n; block += NORM_BLOCK) {                 \
        const int64_t end = n - block < NORM_BLOCK ? n : block + NORM_BLOCK;  \
        REAL part[64] = {0};                                                  \
        int64_t i = block;                                                    \
        for (; i + 64 <= end; i += 64)                                        \
            for (int l = 0; l < 64; ++l)                                      \
                part[l] += TERM(i + l);                                       \
        for (int l = 0; i < end; ++i, ++l)                                    \
            part[l] += TERM(i);                                               \
        total += NAME(tree)(part);                                            \
    }

static double NAME(sum)(const void *x_, int64_t n)
{
    const REAL *const x = x_;
    double total = 0;
#define TERM(i) x[i]
    BLOCK_SUM(total, TERM)
#undef TERM
    return total;
}

static double NAME(square_sum)(const void *x_, int64_t n, double mean_)
{
    const REAL *const x = x_, mean = (REAL)mean_;
    double total = 0;
#define TERM(i) (x[i] - mean) * (x[i] - mean)
    BLOCK_SUM(total, TERM)
#undef TERM
    return total;
}

static void NAME(affine)(const void *x_, void *out_, int64_t n, double scale_, double shift_)
{
    const REAL *const x = x_, scale = (REAL)scale_, shift = (REAL)shift_;
    REAL *const out = out_;
    INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i)
        out[i] = x[i] * scale + shift;
}

static void NAME(gradient_sums)(const void *dy_, const void *x_, int64_t n, double mean_, double *sums)
{
    const REAL *const dy = dy_, *const x = x_, mean = (REAL)mean_;
    for (int64_t block = 0; block < n; block += NORM_BLOCK) {
        const int64_t end = n - block < NORM_BLOCK ? n : block + NORM_BLOCK;
        REAL plain[64] = {0}, weighted[64] = {0};
        int64_t i = block;
        for (; i + 64 <= end; i += 64)
            for (int l = 0; l < 64; ++l) {
                plain[l] += dy[i + l];
                weighted[l] += dy[i + l] * (x[i + l] - mean);
            }
        for (int l = 0; i < end; ++i, ++l) {
            plain[l] += dy[i];
            weighted[l] += dy[i] * (x[i] - mean);
        }
        sums[0] += NAME(tree)(plain);
        sums[1] += NAME(tree)(weighted);
    }
}

static void NAME(gradient)(const void *dy_, const void *x_, void *dx_, int64_t n, double a_, double b_, double c_)
{
    const REAL *const dy = dy_, *const x = x_, a = (REAL)a_, b = (REAL)b_, c = (REAL)c_;
    REAL *const dx = dx_;
    INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i)
        dx[i] = dy[i] * a + x[i] * b + c;
}

static void NAME(column_sums)(const void *x_, int64_t rows, int64_t width, int64_t stride, double *sums)
{
    const REAL *const x = x_;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j)
            sums[j] += (double)x[i * stride + j];
}

static void NAME(column_squares)(const void *x_, int64_t rows, int64_t width, int64_t stride, const double *mean, double *squares)
{
    const REAL *const x = x_;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < width; ++j) {
            const double d = (double)x[i * stride + j] - mean[j];
            squares[j] += d * d;
        }
}

static void NAME(column_affine)(const void *x_, void *out_, int64_t rows, int64_t width, int64_t stride, const double *scale,
                                const double *shift)
{
    const REAL *const x = x_;
    REAL *const out = out_;
    for (int64_t i = 0; i < rows; ++i)
        INDEPENDENT_ITERATIONS
    for (int64_t j = 0; j < width; ++j)
        out[i * stride + j] = x[i * stride + j] * (REAL)scale[j] + (REAL)shift[j];
}

static void NAME(layer)(const void *x_, const void *weight_, const void *bias_, void *out_, int64_t n, double mean_, double rstd_)
{
    const REAL *const x = x_, *const weight = weight_, *const bias = bias_, mean = (REAL)mean_, rstd = (REAL)rstd_;
    REAL *const out = out_;
    if (weight && bias)
        for (int64_t i = 0; i < n; ++i)
            out[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    else
        for (int64_t i = 0; i < n; ++i)
            out[i] = (x[i] - mean) * rstd * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
}

static void NAME(layer_sums)(const void *dy_, const void *x_, const void *weight_, int64_t n, double mean_, double rstd_,
                             double *sums)
{
    const REAL *const dy = dy_, *const x = x_, *const weight = weight_, mean = (REAL)mean_, rstd = (REAL)rstd_;
    sums[0] = sums[1] = 0;
#define TERM(i) dy[i] * (weight ? weight[i] : 1)
    BLOCK_SUM(sums[0], TERM)
#undef TERM
#define TERM(i) dy[i] * (weight ? weight[i] : 1) * ((x[i] - mean) * rstd)
    BLOCK_SUM(sums[1], TERM)
#undef TERM
}

static void NAME(layer_gradient)(const void *dy_, const void *x_, const void *weight_, void *dx_, int64_t n, double mean_,
                                 double rstd_, const double *sums)
{
    const REAL *const dy = dy_, *const x = x_, *const weight = weight_, mean = (REAL)mean_, rstd = (REAL)rstd_;
    const REAL a = (REAL)(sums[0] / (double)n), b = (REAL)(sums[1] / (double)n);
    REAL *const dx = dx_;
    for (int64_t i = 0; i < n; ++i)
        dx[i] = (dy[i] * (weight ? weight[i] : 1) - a - (x[i] - mean) * rstd * b) * rstd;
}

static void NAME(layer_parameters)(const void *dy_, const void *x_, int64_t n, double mean_, double rstd_, double *weight_sums,
                                   double *bias_sums)
{
    const REAL *const dy = dy_, *const x = x_, mean = (REAL)mean_, rstd = (REAL)rstd_;
    if (weight_sums)
        for (int64_t i = 0; i < n; ++i)
            weight_sums[i] += (double)(dy[i] * ((x[i] - mean) * rstd));
    if (bias_sums)
        for (int64_t i = 0; i < n; ++i)
            bias_sums[i] += (double)dy[i];
}

static void NAME(swish)(void *x_, int64_t n, double scale)
{
    REAL *const x = x_;
    const REAL by = (REAL)-scale;
    for (int64_t i = 0; i < n; ++i)
        x[i] /= 1 + EXP(by * x[i]);
}

static void NAME(swish_gradient)(void *dy_, const void *x_, int64_t n, double a_, double b_, double scale)
{
    REAL *const dy = dy_;
    const REAL *const x = x_, a = (REAL)a_, b = (REAL)b_, by = (REAL)scale;
    for (int64_t i = 0; i < n; ++i) {
        const REAL y = x[i] * a + b, gate = 1 / (1 + EXP(-by * y));
        dy[i] *= gate * (1 + by * y * (1 - gate));
    }
}

#undef BLOCK_SUM
#undef NAME
#undef NAME_
#undef NAME__
