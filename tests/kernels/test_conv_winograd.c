/* Winograd kernels of every ISA: values against sums in double at odd sizes and channel counts, strips of many tiles, and the
 * refusal of values that are too large. */
#include "check.h"
#include "kernels/conv_winograd.h"
#include "kernels/kernels.h"

static uint64_t seed = 1;

static float *random_floats(int64_t n)
{
    float *const x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; ++i)
        x[i] = (float)check_random_real(&seed);
    return x;
}

static float *scaled(const float *from, int64_t n, float scale)
{
    float *const x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; ++i)
        x[i] = scale * from[i];
    return x;
}

/* Calls body with the positions that meet in out[r][y][x] += image[c][iy][ix] * w[r][c][t]. */
#define PRODUCTS(s, body)                                                                                          \
    for (int64_t r = 0; r < (s)->rows; ++r)                                                                         \
        for (int64_t c = 0; c < (s)->channels; ++c)                                                                 \
            for (int64_t y = 0; y < (s)->out_height; ++y)                                                           \
                for (int64_t x = 0; x < (s)->out_width; ++x)                                                        \
                    for (int64_t t = 0; t < 9; ++t) {                                                               \
                        const int64_t iy = y + t / 3 - (s)->pad_height, ix = x + t % 3 - (s)->pad_width;            \
                        if (iy < 0 || ix < 0 || iy >= (s)->height || ix >= (s)->width)                              \
                            continue;                                                                               \
                        const int64_t out_at = (r * (s)->out_height + y) * (s)->out_width + x;                      \
                        const int64_t in_at = (c * (s)->height + iy) * (s)->width + ix, w_at = (r * (s)->channels + c) * 9 + t; \
                        body                                                                                        \
                    }

static void check_all(const float *values, const double *expected, int64_t n, const char *what, const struct winograd_shape *s)
{
    double worst = 0, size = 1;
    for (int64_t i = 0; i < n; ++i) {
        const double off = fabs((double)values[i] - expected[i]);
        worst = off > worst || isnan(off) ? off : worst; /* fmax would drop NaN */
        size = fmax(size, fabs(expected[i]));
    }
    CHECK(worst <= (s->tile == 2 ? 1.5e-6 : 4e-6) * size,
          "%s of %lld -> %lld channels, tiles of %lld, %lld x %lld: off by %g of %g", what, (long long)s->channels,
          (long long)s->rows, (long long)s->tile, (long long)s->out_height, (long long)s->out_width, worst, size);
}

static void test_shape(const struct conv_winograd_kernels *k, struct winograd_shape s)
{
    s.out_height = s.height + 2 * s.pad_height - 2;
    s.out_width = s.width + 2 * s.pad_width - 2;
    const int64_t in = s.channels * s.height * s.width, out = s.rows * s.out_height * s.out_width, w = s.rows * s.channels * 9;
    const int64_t panels = (s.rows + k->row_unit - 1) / k->row_unit;
    float *const image = random_floats(in), *const matrix = random_floats(w), *const small = random_floats(out),
                 *const bias = random_floats(s.rows);
    float *const result = calloc((size_t)out, 4), *const gradient = calloc((size_t)w, 4);
    float *const u = aligned_alloc(64, (size_t)((k->filter_elements(&s) * 4 + 63) / 64 * 64));
    void *const scratch = aligned_alloc(64, (k->scratch_bytes(&s) + 63) / 64 * 64);
    double *const expected = calloc((size_t)out, 8), *const expected_w = calloc((size_t)w, 8);
    /* The gradient is added twice, for the first image and scaled ones. */
    const double weight = 2 * (1 + 0.125 * (double)(k->images_together(&s) - 1));
    for (int64_t i = 0; i < out; ++i)
        expected[i] = bias[i / (s.out_height * s.out_width)];
    PRODUCTS(&s, {
        expected[out_at] += (double)image[in_at] * matrix[w_at];
        expected_w[w_at] += weight * (double)image[in_at] * small[out_at];
    })
    for (int64_t panel = 0; panel < panels; ++panel)
        CHECK(k->filters(&s, matrix, panel, u), "filters");
    /* As many images as a call takes, the other ones copies with another scale. */
    const int64_t count = k->images_together(&s);
    const float *images[WINOGRAD_MOST_IMAGES], *smalls[WINOGRAD_MOST_IMAGES];
    float *outs[WINOGRAD_MOST_IMAGES];
    const struct winograd_batch batch = {count, images, smalls, outs}, one = {1, images, smalls, outs};
    for (int64_t i = 0; i < count; ++i) {
        images[i] = i == 0 ? image : scaled(image, in, 0.5f);
        smalls[i] = i == 0 ? small : scaled(small, out, 0.25f);
        outs[i] = i == 0 ? result : calloc((size_t)out, 4);
    }
    k->correlate(&s, &batch, u, bias, scratch);
    check_all(result, expected, out, "result", &s);
    for (int64_t i = 1; i < count; ++i)
        for (int64_t e = 0; e < out; ++e) {
            const float offset = bias[e / (s.out_height * s.out_width)];
            CHECK(fabsf(outs[i][e] - offset - 0.5f * (result[e] - offset)) < 1e-5f, "image %lld of %lld", (long long)i,
                  (long long)count);
        }
    for (int pass = 0; pass < 2; ++pass)
        for (int64_t first = 0; first < panels; first += k->gradient_panels(&s)) {
            const int64_t left = panels - first, part = k->gradient_panels(&s);
            CHECK(k->gradient(&s, &batch, first, left < part ? left : part, u, pass, scratch), "gradient");
        }
    for (int64_t panel = 0; panel < panels; ++panel)
        k->finish(&s, u, 1, panel, gradient);
    check_all(gradient, expected_w, w, "gradient", &s);
    static const float large[] = {INFINITY, -INFINITY, NAN, -1e16f};
    for (int i = 0; i < 4; ++i) {
        image[in / 2] = large[i];
        CHECK(!k->moderate(image, in), "%g isn't refused", (double)large[i]);
        CHECK(!k->gradient(&s, &one, 0, 1, u, true, scratch), "%g isn't refused", (double)large[i]);
    }
    for (int64_t i = 1; i < count; ++i) {
        free((void *)(uintptr_t)images[i]);
        free((void *)(uintptr_t)smalls[i]);
        free(outs[i]);
    }
    void *const all[] = {image, matrix, small, bias, result, gradient, u, scratch, expected, expected_w};
    for (int i = 0; i < 10; ++i)
        free(all[i]);
}

int main(void)
{
    static const struct winograd_shape shapes[] = {{0, 16, 32, 8, 8, 0, 0, 1, 1},   {0, 17, 33, 7, 9, 0, 0, 1, 1},
                                                   {0, 3, 5, 16, 16, 0, 0, 1, 1},   {0, 8, 70, 5, 6, 0, 0, 2, 2},
                                                   {0, 16, 16, 4, 150, 0, 0, 0, 1}, {0, 64, 64, 12, 16, 0, 0, 1, 1},
                                                   {0, 20, 40, 30, 34, 0, 0, 1, 0}, {0, 100, 20, 9, 11, 0, 0, 1, 1}};
    for (int isa = 0; kernel_set_at(isa); ++isa)
        for (size_t i = 0; kernel_set_runnable(kernel_set_at(isa)->isa) && i < sizeof shapes / sizeof shapes[0]; ++i)
            for (int64_t tile = 2; tile <= 4; tile += 2) {
                struct winograd_shape shape = shapes[i];
                shape.tile = tile;
                test_shape(kernel_set_at(isa)->conv_winograd, shape);
            }
    return check_result();
}
