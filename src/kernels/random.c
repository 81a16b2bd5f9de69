/* Random kernels. See random.h. */
#include "kernels/random.h"

#include <float.h>
#include <math.h>

#include "base/half.h"
#include "kernels/isa.h"

/* One of the ten rounds, written out by hand: an inner loop would keep the outer one from being vectorised. The key grows by
 * the golden ratio and by sqrt(3) - 1. */
#define ROUND(r)                                                                                          \
    {                                                                                                     \
        const uint64_t p0 = (uint64_t)x0 * 0xD2511F53u, p1 = (uint64_t)x2 * 0xCD9E8D57u;                  \
        const uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ (k0 + (r) * 0x9E3779B9u);                         \
        const uint32_t y2 = (uint32_t)(p0 >> 32) ^ x3 ^ (k1 + (r) * 0xBB67AE85u);                         \
        x1 = (uint32_t)p1;                                                                                \
        x3 = (uint32_t)p0;                                                                                \
        x0 = y0;                                                                                          \
        x2 = y2;                                                                                          \
    }

static void words_(uint32_t *words, uint64_t seed, uint64_t first, uint64_t counter, int64_t n)
{
    uint32_t *restrict w0 = words, *restrict w1 = words + n, *restrict w2 = words + 2 * n, *restrict w3 = words + 3 * n;
    const uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    const uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    const uint32_t first_low = (uint32_t)first, first_high = (uint32_t)(first >> 32);
    for (int64_t i = 0; i < n; ++i) {
        uint32_t x0 = c0, x1 = c1, x2 = first_low + (uint32_t)i, x3 = first_high + (x2 < first_low);
        ROUND(0) ROUND(1) ROUND(2) ROUND(3) ROUND(4) ROUND(5) ROUND(6) ROUND(7) ROUND(8) ROUND(9) w0[i] = x0;
        w1[i] = x1;
        w2[i] = x2;
        w3[i] = x3;
    }
}

/* Unsigned to float through signed halves: a direct conversion doesn't vectorise below AVX-512. Exact as one rounding: the
 * upper part is a multiple of 2^16 and fits, so only the sum rounds. */
static inline float word_to_f32(uint32_t w) { return (float)(int32_t)(w >> 16) * 65536.0f + (float)(int32_t)(w & 0xffffu); }

static inline float unit_f32(uint32_t w) { return word_to_f32(w) * 0x1p-32f + 0x1p-33f; }

static inline double unit_f64(uint32_t low, uint32_t high)
{
    const uint64_t bits = (uint64_t)low ^ ((uint64_t)high << 21);
    return (double)(int64_t)bits * 0x1p-53 + 0x1p-54;
}

/* Cephes' logarithm of a positive normal number, about one unit in the last place. */
static inline float log_f32(float x)
{
    const uint32_t bits = float_bits(x) - 0x3f3504f3u; /* relative to sqrt(1/2) */
    const float e = (float)((int32_t)bits >> 23);
    const float m = float_from_bits((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    const float z = m * m;
    float y = 7.0376836292e-2f;
    y = y * m - 1.1514610310e-1f;
    y = y * m + 1.1676998740e-1f;
    y = y * m - 1.2420140846e-1f;
    y = y * m + 1.4249322787e-1f;
    y = y * m - 1.6668057665e-1f;
    y = y * m + 2.0000714765e-1f;
    y = y * m - 2.4999993993e-1f;
    y = y * m + 3.3333331174e-1f;
    y = y * m * z + e * -2.12194440e-4f;
    y = y - 0.5f * z;
    return m + y + e * 0.693359375f;
}

static void uniform_f32(float *tile, const uint32_t *words, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        tile[i] = unit_f32(words[i]);
}

static void uniform_f64(double *tile, const uint32_t *low, const uint32_t *high, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        tile[i] = unit_f64(low[i], high[i]);
}

static void normal_f32(float *a_, float *b_, const uint32_t *x, const uint32_t *y, int64_t n)
{
    float *restrict a = a_, *restrict b = b_;
    for (int64_t i = 0; i < n; ++i) {
        const float radius = sqrtf(-2.0f * log_f32(unit_f32(x[i])));
        /* The angle in quarter turns: its nearest whole number picks the quadrant, the rest goes to the polynomials. */
        const float quarters = 4.0f * unit_f32(y[i]);
        const int32_t quadrant = (int32_t)(quarters + 0.5f);
        const float t = (quarters - (float)quadrant) * 1.57079632679f, z = t * t;
        const float s = t + t * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
        const float c =
            1.0f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
        const float sine = quadrant & 1 ? c : s, cosine = quadrant & 1 ? s : c;
        a[i] = radius * (quadrant & 2 ? -sine : sine);
        b[i] = radius * ((quadrant + 1) & 2 ? -cosine : cosine);
    }
}

static void normal_f64(double *a, double *b, const uint32_t *words, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        const double radius = sqrt(-2.0 * log(unit_f64(words[i], words[n + i])));
        const double angle = 6.283185307179586 * unit_f64(words[2 * n + i], words[3 * n + i]);
        a[i] = radius * sin(angle);
        b[i] = radius * cos(angle);
    }
}

static void negative_log_f32(float *tile, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        const float x = tile[i], y = -log_f32(x);
        tile[i] = x >= 1.0f - FLT_EPSILON / 2 ? FLT_EPSILON / 2 : y;
    }
}

static void negative_log_f64(double *tile, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        const double x = tile[i];
        tile[i] = x >= 1.0 - DBL_EPSILON / 2 ? DBL_EPSILON / 2 : -log(x);
    }
}

static void scale_f32(float *tile, int64_t n, float low, float range, float high, enum random_rounding rounding)
{
    for (int64_t i = 0; i < n; ++i)
        tile[i] = tile[i] * range + low;
    for (int64_t i = 0; rounding == ROUNDING_f16 && i < n; ++i)
        tile[i] = half_f16_to_f32(half_f16_from_f32(tile[i]));
    for (int64_t i = 0; rounding == ROUNDING_bf16 && i < n; ++i)
        tile[i] = half_bf16_to_f32(half_bf16_from_f32(tile[i]));
    for (int64_t i = 0; i < n; ++i)
        tile[i] = tile[i] >= high ? low : tile[i];
}

static void scale_f64(double *tile, int64_t n, double low, double range, double high)
{
    for (int64_t i = 0; i < n; ++i) {
        const double value = tile[i] * range + low;
        tile[i] = value >= high ? low : value;
    }
}

#define WITH_OPERANDS(tag, A)                                                                                                \
    static void affine_##tag(A *restrict tile, int64_t n, const A *restrict mean, int mean_step, const A *restrict deviation, \
                             int deviation_step)                                                                             \
    {                                                                                                                        \
        if (mean_step == 0 && deviation_step == 0)                                                                           \
            for (int64_t i = 0; i < n; ++i)                                                                                  \
                tile[i] = tile[i] * deviation[0] + mean[0];                                                                  \
        else                                                                                                                 \
            for (int64_t i = 0; i < n; ++i)                                                                                  \
                tile[i] = tile[i] * deviation[i * deviation_step] + mean[i * mean_step];                                     \
    }                                                                                                                        \
    static void below_##tag(A *restrict tile, int64_t n, const A *restrict probability, int step)                            \
    {                                                                                                                        \
        if (step == 0)                                                                                                       \
            for (int64_t i = 0; i < n; ++i)                                                                                  \
                tile[i] = tile[i] <= probability[0];                                                                         \
        else                                                                                                                 \
            for (int64_t i = 0; i < n; ++i)                                                                                  \
                tile[i] = tile[i] <= probability[i];                                                                         \
    }
WITH_OPERANDS(f32, float)
WITH_OPERANDS(f64, double)

static void divide_f32(float *tile, int64_t n, float divisor)
{
    for (int64_t i = 0; i < n; ++i)
        tile[i] /= divisor;
}

static void integer_32(int64_t *tile, const uint32_t *words, uint32_t range, int64_t base, int64_t n)
{
    if ((range & (range - 1)) == 0)
        for (int64_t i = 0; i < n; ++i)
            tile[i] = (int64_t)(words[i] & (range - 1)) + base;
    else
        for (int64_t i = 0; i < n; ++i)
            tile[i] = (int64_t)(words[i] % range) + base;
}

static void integer_64(int64_t *tile, const uint32_t *high, const uint32_t *low, uint64_t range, int64_t base, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t word = (uint64_t)high[i] << 32 | low[i];
        tile[i] = (int64_t)((range ? word % range : word) + (uint64_t)base);
    }
}

const struct random_kernels KERNEL_TABLE(random_kernels) = {
    .words = words_,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = normal_f32,
    .normal_f64 = normal_f64,
    .negative_log_f32 = negative_log_f32,
    .negative_log_f64 = negative_log_f64,
    .scale_f32 = scale_f32,
    .scale_f64 = scale_f64,
    .affine_f32 = affine_f32,
    .affine_f64 = affine_f64,
    .below_f32 = below_f32,
    .below_f64 = below_f64,
    .divide_f32 = divide_f32,
    .integer_32 = integer_32,
    .integer_64 = integer_64,
};
