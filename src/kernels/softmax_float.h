/* Template: softmax kernels for one float type; REAL, TAG, EXP and LOG are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

/* NaN wins. */
static inline REAL NAME(larger)(REAL a, REAL b) { return (b > a) | (b != b) ? b : a; }

/* Loops of known length, unrolled as a whole: each width is then one or a few vector operations. */
static REAL NAME(row_maximum)(const REAL *x, int64_t n)
{
    REAL part[64];
    for (int l = 0; l < 64; ++l)
        part[l] = x[0];
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (int l = 0; l < 64; ++l)
            part[l] = NAME(larger)(part[l], x[i + l]);
    for (int l = 0; i < n; ++i, ++l)
        part[l] = NAME(larger)(part[l], x[i]);
#pragma GCC unroll 6
    for (int width = 32; width > 0; width /= 2)
        for (int l = 0; l < width; ++l)
            part[l] = NAME(larger)(part[l], part[l + width]);
    return part[0];
}

static REAL NAME(tree)(REAL *part)
{
#pragma GCC unroll 6
    for (int width = 32; width > 0; width /= 2)
        for (int i = 0; i < width; ++i)
            part[i] += part[i + width];
    return part[0];
}

#define ROW_SUM(total, TERM)                     \
    do {                                         \
        REAL part[64] = {0};                     \
        int64_t i = 0;                           \
        for (; i + 64 <= n; i += 64)             \
            for (int l = 0; l < 64; ++l)         \
                part[l] += TERM(i + l);          \
        for (int l = 0; i < n; ++i, ++l)         \
            part[l] += TERM(i);                  \
        total = NAME(tree)(part);                \
    } while (0)

static void NAME(forward)(const void *x_, void *out_, int64_t n, bool logarithm)
{
    const REAL *const x = x_;
    REAL *const out = out_, best = NAME(row_maximum)(x, n);
    REAL sum;
    if (logarithm) {
#define TERM(i) EXP(x[i] - best)
        ROW_SUM(sum, TERM);
#undef TERM
        const REAL shift = LOG(sum);
        for (int64_t i = 0; i < n; ++i)
            out[i] = x[i] - best - shift;
        return;
    }
    INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i)
        out[i] = EXP(x[i] - best);
#define TERM(i) out[i]
    ROW_SUM(sum, TERM);
#undef TERM
    for (int64_t i = 0; i < n; ++i)
        out[i] /= sum;
}

static void NAME(backward)(const void *dy_, const void *y_, void *dx_, int64_t n, bool logarithm)
{
    const REAL *const dy = dy_, *const y = y_;
    REAL *const dx = dx_;
    REAL sum;
    if (logarithm) {
#define TERM(i) dy[i]
        ROW_SUM(sum, TERM);
#undef TERM
        for (int64_t i = 0; i < n; ++i)
            dx[i] = dy[i] - EXP(y[i]) * sum;
        return;
    }
#define TERM(i) dy[i] * y[i]
    ROW_SUM(sum, TERM);
#undef TERM
    for (int64_t i = 0; i < n; ++i)
        dx[i] = (dy[i] - sum) * y[i];
}

static void NAME(forward_columns)(const void *x_, void *out_, int64_t depth, int64_t stride, int width, bool logarithm)
{
    const REAL *const x = x_;
    REAL *const out = out_;
    REAL best[SOFTMAX_COLUMNS], sum[SOFTMAX_COLUMNS];
    for (int l = 0; l < width; ++l) {
        best[l] = x[l];
        sum[l] = 0;
    }
    for (int64_t i = 1; i < depth; ++i)
        for (int l = 0; l < width; ++l) {
            const REAL v = x[i * stride + l];
            best[l] = v > best[l] || v != v ? v : best[l];
        }
    for (int64_t i = 0; i < depth; ++i)
        for (int l = 0; l < width; ++l) {
            const REAL shifted = x[i * stride + l] - best[l], power = EXP(shifted);
            sum[l] += power;
            out[i * stride + l] = logarithm ? shifted : power;
        }
    if (logarithm)
        for (int l = 0; l < width; ++l)
            sum[l] = LOG(sum[l]);
    for (int64_t i = 0; i < depth; ++i)
        for (int l = 0; l < width; ++l)
            out[i * stride + l] = logarithm ? out[i * stride + l] - sum[l] : out[i * stride + l] / sum[l];
}

static void NAME(backward_columns)(const void *dy_, const void *y_, void *dx_, int64_t depth, int64_t stride, int width,
                                   bool logarithm)
{
    const REAL *const dy = dy_, *const y = y_;
    REAL *const dx = dx_;
    REAL sum[SOFTMAX_COLUMNS];
    for (int l = 0; l < width; ++l)
        sum[l] = 0;
    for (int64_t i = 0; i < depth; ++i)
        for (int l = 0; l < width; ++l)
            sum[l] += logarithm ? dy[i * stride + l] : dy[i * stride + l] * y[i * stride + l];
    for (int64_t i = 0; i < depth; ++i)
        for (int l = 0; l < width; ++l) {
            const int64_t at = i * stride + l;
            dx[at] = logarithm ? dy[at] - EXP(y[at]) * sum[l] : (dy[at] - sum[l]) * y[at];
        }
}

#undef ROW_SUM
#undef NAME
#undef NAME_
#undef NAME__
