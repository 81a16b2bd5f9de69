/* Template: attention kernels for one float type; REAL, TAG and EXP are the includer's. */
#define NAME_(name, tag) name##_##tag
#define NAME__(name, tag) NAME_(name, tag)
#define NAME(name) NAME__(name, TAG)

static REAL NAME(tree)(REAL *part)
{
#pragma GCC unroll 6
    for (int width = 32; width > 0; width /= 2)
        for (int i = 0; i < width; ++i)
            part[i] += part[i + width];
    return part[0];
}

/* NaN loses here: it comes back through the exponentials. */
static REAL NAME(largest)(const REAL *x, int64_t n)
{
    REAL part[64];
    for (int l = 0; l < 64; ++l)
        part[l] = -(REAL)INFINITY;
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (int l = 0; l < 64; ++l)
            part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
    for (int l = 0; i < n; ++i, ++l)
        part[l] = x[i] > part[l] ? x[i] : part[l];
#pragma GCC unroll 6
    for (int width = 32; width > 0; width /= 2)
        for (int l = 0; l < width; ++l)
            part[l] = part[l + width] > part[l] ? part[l + width] : part[l];
    return part[0];
}

static double NAME(step)(void *scores, int64_t n, double *maximum, double *sum)
{
    REAL *const x = scores, best = NAME(largest)(x, n), before = (REAL)*maximum;
    const REAL now = best > before ? best : before, shift = now == -(REAL)INFINITY ? 0 : now;
    REAL part[64] = {0};
    for (int64_t i = 0; i < n; ++i)
        x[i] = EXP(x[i] - shift);
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (int l = 0; l < 64; ++l)
            part[l] += x[i + l];
    for (int l = 0; i < n; ++i, ++l)
        part[l] += x[i];
    const double factor = before == -(REAL)INFINITY ? 0 : (double)EXP(before - shift);
    *maximum = (double)now;
    *sum = *sum * factor + (double)NAME(tree)(part);
    return factor;
}

static void NAME(probability)(void *scores, int64_t n, double maximum, double sum)
{
    REAL *const x = scores;
    const REAL shift = maximum == -INFINITY ? 0 : (REAL)maximum, factor = sum == 0 ? 0 : (REAL)(1 / sum);
    for (int64_t i = 0; i < n; ++i)
        x[i] = EXP(x[i] - shift) * factor;
}

static void NAME(gradient)(const void *p_, void *d_, int64_t n, double delta)
{
    const REAL *const p = p_;
    REAL *const d = d_, shift = (REAL)delta;
    for (int64_t i = 0; i < n; ++i)
        d[i] = p[i] * (d[i] - shift);
}

static void NAME(scale)(void *x_, int64_t n, double factor)
{
    REAL *const x = x_, by = (REAL)factor;
    for (int64_t i = 0; i < n; ++i)
        x[i] *= by;
}

static void NAME(add)(void *x_, const void *y_, int64_t n, double factor)
{
    REAL *const x = x_, by = (REAL)factor;
    const REAL *const y = y_;
    for (int64_t i = 0; i < n; ++i)
        x[i] += y[i] * by;
}

static double NAME(dot)(const void *x_, const void *y_, int64_t n)
{
    const REAL *const x = x_, *const y = y_;
    REAL part[64] = {0};
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        for (int l = 0; l < 64; ++l)
            part[l] += x[i + l] * y[i + l];
    for (int l = 0; i < n; ++i, ++l)
        part[l] += x[i] * y[i];
    return (double)NAME(tree)(part);
}

static void NAME(hide)(void *scores, const uint8_t *mask, int64_t stride, int64_t n)
{
    REAL *const x = scores;
    if (stride == 1) {
        for (int64_t i = 0; i < n; ++i)
            x[i] = mask[i] ? -(REAL)INFINITY : x[i];
        return;
    }
    for (int64_t i = 0; i < n; ++i)
        x[i] = mask[i * stride] ? -(REAL)INFINITY : x[i];
}

static void NAME(drop)(void *x_, const uint8_t *bits, int64_t first, int64_t n, double factor)
{
    REAL *const x = x_, by = (REAL)factor;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t at = first + i;
        x[i] = (bits[at >> 3] >> (at & 7)) & 1 ? x[i] * by : 0;
    }
}

#undef NAME
#undef NAME_
#undef NAME__
