/* Convolution kernels on every ISA: the padded image, products of whole images and of thin ones in one to three dimensions, and
 * their weight gradients, against sums in double; infinite pixels reach no sum that they aren't in. */
#include "kernel_check.h"
#include "kernels/conv.h"

/* What goes around a geometry: elements of one type. */
struct conv_case {
    const char *isa;
    enum accumulate type;
    const struct conv_kernels *kernels;
    const struct conv_float_kernels *k;
    struct conv_geometry g;
    int64_t depth, pixels;
};

static double at(const struct conv_case *c, const void *data, int64_t i) { return get_value(data, c->type, i); }

/* The place in the padded image of tap k = (channel, tap) of a pixel. */
static int64_t place_of(const struct conv_geometry *g, int64_t k, int64_t pixel)
{
    const int64_t taps = conv_volume(g->taps), tap = k % taps;
    const int64_t z = pixel / (g->out[1] * g->out[2]) * g->stride[0] + tap / (g->taps[1] * g->taps[2]) * g->dilation[0];
    const int64_t y = pixel / g->out[2] % g->out[1] * g->stride[1] + tap / g->taps[2] % g->taps[1] * g->dilation[1];
    const int64_t x = pixel % g->out[2] * g->stride[2] + tap % g->taps[2] * g->dilation[2];
    return k / taps * conv_volume(g->padded) + (z * g->padded[1] + y) * g->padded[2] + x;
}

/* Room behind the image for one vector that may be read: it holds NaN, which must reach nothing. */
enum { ROOM_BEHIND = 64 /* bytes */ };

static void *padded_image(const struct conv_case *c, const void *image, int64_t images)
{
    const int64_t volume = c->g.channels * conv_volume(c->g.padded);
    char *const padded = room_for(c->type, images * volume + ROOM_BEHIND / accumulate_bytes(c->type));
    for (int64_t i = 0; i < images; ++i)
        c->k->pad(&c->g, (const char *)image + i * c->g.channels * conv_volume(c->g.in) * accumulate_bytes(c->type),
                  padded + i * volume * accumulate_bytes(c->type));
    return padded;
}

static void test_pad(const struct conv_case *c, const void *image, const void *padded)
{
    const struct conv_geometry *const g = &c->g;
    for (int64_t e = 0; e < g->channels * conv_volume(g->padded); ++e) {
        const int64_t channel = e / conv_volume(g->padded), rest = e % conv_volume(g->padded);
        const int64_t place[] = {rest / (g->padded[1] * g->padded[2]), rest / g->padded[2] % g->padded[1], rest % g->padded[2]};
        int64_t from = channel;
        int inside = 1;
        for (int a = 0; a < 3; ++a) {
            const int64_t way = place[a] - g->pad[a];
            inside &= way >= 0 && way % g->insert[a] == 0 && way / g->insert[a] < g->in[a];
            from = from * g->in[a] + way / g->insert[a];
        }
        CHECK_ELEMENT(c->isa, "padded image", c->type, padded, e, inside ? at(c, image, from) : 0, 0);
    }
}

static void check_result_of(const struct conv_case *c, const char *what, const void *out, const void *padded, const void *matrix,
                            const void *bias)
{
    for (int64_t row = 0; row < c->g.rows; ++row)
        for (int64_t pixel = 0; pixel < c->pixels; ++pixel) {
            double sum = bias ? at(c, bias, row) : 0, size = 1;
            for (int64_t k = 0; k < c->depth; ++k) {
                const double product = at(c, matrix, row * c->depth + k) * at(c, padded, place_of(&c->g, k, pixel));
                sum += product;
                size += fabs(product);
            }
            const double value = at(c, out, row * c->pixels + pixel);
            CHECK(check_near(value, sum, isfinite(size) ? tolerance_of(c->type) * size : 0),
                  "%s: %s, row %lld pixel %lld is %.9g, expected %.9g", c->isa, what, (long long)row, (long long)pixel, value, sum);
        }
}

static void test_correlate(const struct conv_case *c, const void *padded, const void *matrix, const void *bias)
{
    const int64_t n = c->g.rows * c->pixels;
    void *const out = room_for(c->type, n), *const packed = room_for(c->type, c->g.rows * c->depth);
    void *const scratch = aligned_alloc(64, (c->kernels->scratch_bytes + 63) / 64 * 64);
    c->k->pack_matrix(matrix, c->g.rows, c->depth, packed);
    for (int64_t first = 0; first < c->pixels; first += c->kernels->pixel_block) {
        const int64_t left = c->pixels - first, block = c->kernels->pixel_block;
        c->k->correlate(&c->g, padded, packed, bias, out, first, left < block ? left : block, scratch);
    }
    check_result_of(c, "correlate", out, padded, matrix, bias);
    free(scratch);
    if (!conv_is_thin(&c->g))
        return;
    void *const thin = room_for(c->type, n);
    c->k->thin_correlate(&c->g, padded, matrix, bias, thin);
    check_result_of(c, "thin_correlate", thin, padded, matrix, bias);
}

/* One gradient of weights, `count` images; added to 1 where `added`. */
static void check_gradient(const struct conv_case *c, const char *what, const void *partial, const void *padded, const void *small,
                           int64_t count, int added)
{
    const int64_t volume = c->g.channels * conv_volume(c->g.padded);
    for (int64_t row = 0; row < c->g.rows; ++row)
        for (int64_t k = 0; k < c->depth; ++k) {
            double sum = added, size = 1;
            for (int64_t i = 0; i < count; ++i)
                for (int64_t pixel = 0; pixel < c->pixels; ++pixel) {
                    const double product = at(c, small, (i * c->g.rows + row) * c->pixels + pixel) *
                                           at(c, padded, i * volume + place_of(&c->g, k, pixel));
                    sum += product;
                    size += fabs(product);
                }
            const double value = at(c, partial, row * c->depth + k);
            CHECK(check_near(value, sum, isfinite(size) ? tolerance_of(c->type) * size : 0),
                  "%s: %s, row %lld column %lld is %.9g, expected %.9g", c->isa, what, (long long)row, (long long)k, value, sum);
        }
}

static void ones(const struct conv_case *c, void *data, int64_t n)
{
    for (int64_t i = 0; i < n; ++i)
        put_value(data, c->type, i, 1);
}

static void test_gradient(const struct conv_case *c, const void *padded, const void *small, int64_t count, int added)
{
    const struct conv_images images = {padded, small, count, c->g.rows * c->pixels};
    const int64_t n = c->g.rows * c->depth, block = c->kernels->column_block;
    void *const scratch = aligned_alloc(64, (c->kernels->scratch_bytes + 63) / 64 * 64);
    void *const whole = room_for(c->type, n), *const partial = room_for(c->type, n);
    for (int64_t first = 0; first < c->depth; first += block) {
        const int64_t columns = c->depth - first < block ? c->depth - first : block;
        ones(c, partial, c->g.rows * columns);
        c->k->weight_gradient(&c->g, &images, partial, first, columns, added, scratch);
        for (int64_t row = 0; row < c->g.rows; ++row)
            for (int64_t j = 0; j < columns; ++j)
                put_value(whole, c->type, row * c->depth + first + j, at(c, partial, row * columns + j));
    }
    check_gradient(c, "weight_gradient", whole, padded, small, count, added);
    free(scratch);
    if (!conv_is_thin(&c->g))
        return;
    void *const thin = room_for(c->type, n);
    ones(c, thin, n);
    c->k->thin_gradient(&c->g, padded, small, thin, added);
    check_gradient(c, "thin_gradient", thin, padded, small, 1, added);
}

static void test_geometry(const struct kernel_set *set, enum accumulate type, const struct conv_geometry *g,
                          enum test_values values)
{
    struct conv_case c = {set->isa, type, set->conv, &set->conv->real[type], *g, g->channels * conv_volume(g->taps), 0};
    for (int a = 0; a < 3; ++a)
        c.g.out[a] = (c.g.padded[a] - c.g.dilation[a] * (c.g.taps[a] - 1) - 1) / c.g.stride[a] + 1;
    c.pixels = conv_volume(c.g.out);
    const int64_t together = conv_images_together(&c.g), count = together < 3 ? together : 3;
    const void *const image = random_values(type, count * c.g.channels * conv_volume(c.g.in), values);
    const void *const matrix = random_values(type, c.g.rows * c.depth, VALUES_ORDINARY);
    const void *const bias = random_values(type, c.g.rows, VALUES_ORDINARY);
    const void *const small = random_values(type, count * c.g.rows * c.pixels, VALUES_ORDINARY);
    const void *const padded = padded_image(&c, image, count);
    test_pad(&c, image, padded);
    test_correlate(&c, padded, matrix, NULL);
    test_correlate(&c, padded, matrix, bias);
    for (int64_t images = 1; images <= count; ++images)
        for (int added = 0; added < 2; ++added)
            test_gradient(&c, padded, small, images, added);
    guarded_end(set->isa, "a convolution");
}

/* {channels, rows, in, insert, pad, padded, taps, dilation, stride} of three axes each */
static const struct conv_geometry geometries[] = {
    /* thin, one dimension: lines around vectors, every stride, chunks of long lines */
    {1, 1, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 1, {1, 1, 15}, {1, 1, 1}, {0, 0, 1}, {1, 1, 17}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 2, {1, 1, 16}, {1, 1, 1}, {0, 0, 1}, {1, 1, 18}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {2, 1, {1, 1, 17}, {1, 1, 1}, {0, 0, 1}, {1, 1, 19}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 1, {1, 1, 63}, {1, 1, 1}, {0, 0, 2}, {1, 1, 67}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 1, {1, 1, 65}, {1, 1, 1}, {0, 0, 0}, {1, 1, 65}, {1, 1, 2}, {1, 1, 3}, {1, 1, 2}, {0}},
    {1, 1, {1, 1, 600}, {1, 1, 1}, {0, 0, 1}, {1, 1, 602}, {1, 1, 11}, {1, 1, 1}, {1, 1, 3}, {0}},
    {1, 1, {1, 1, 520}, {1, 1, 1}, {0, 0, 0}, {1, 1, 520}, {1, 1, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 1, {1, 1, 300}, {1, 1, 1}, {0, 0, 0}, {1, 1, 300}, {1, 1, 2}, {1, 1, 1}, {1, 1, 16}, {0}},
    {1, 1, {1, 1, 256}, {1, 1, 1}, {0, 0, 0}, {1, 1, 256}, {1, 1, 256}, {1, 1, 1}, {1, 1, 1}, {0}},
    /* thin, planes and volumes */
    {1, 1, {1, 7, 9}, {1, 1, 1}, {0, 1, 1}, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {2, 2, {1, 8, 33}, {1, 1, 1}, {0, 1, 1}, {1, 10, 35}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0}},
    {4, 1, {1, 6, 20}, {1, 1, 1}, {0, 2, 2}, {1, 10, 24}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 4, {3, 5, 6}, {1, 1, 1}, {1, 1, 1}, {5, 7, 8}, {3, 3, 3}, {1, 1, 1}, {1, 2, 1}, {0}},
    {1, 1, {1, 5, 6}, {1, 2, 3}, {0, 1, 2}, {1, 11, 20}, {1, 2, 3}, {1, 2, 2}, {1, 1, 1}, {0}},
    {1, 1, {1, 9, 9}, {1, 1, 1}, {0, -2, -1}, {1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {1, 1, {1, 4, 9}, {1, 2, 2}, {0, -1, -3}, {1, 5, 11}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0}},
    /* products of matrices: rows and channels around panels, columns and depth beyond one block */
    {3, 7, {1, 5, 5}, {1, 1, 1}, {0, 1, 1}, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {17, 31, {1, 6, 9}, {1, 1, 1}, {0, 1, 1}, {1, 8, 11}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0}},
    {80, 5, {1, 4, 17}, {1, 1, 1}, {0, 1, 1}, {1, 6, 19}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0}},
    {4, 33, {2, 5, 6}, {1, 1, 1}, {1, 1, 0}, {4, 7, 6}, {2, 2, 3}, {2, 1, 1}, {1, 2, 1}, {0}},
    {6, 6, {1, 1, 70}, {1, 1, 1}, {0, 0, 0}, {1, 1, 70}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
    {5, 150, {1, 1, 33}, {1, 1, 1}, {0, 0, 2}, {1, 1, 37}, {1, 1, 5}, {1, 1, 1}, {1, 1, 2}, {0}},
    {2, 9, {1, 20, 30}, {1, 1, 1}, {0, 0, 0}, {1, 20, 30}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}},
    {3, 5, {1, 6, 5}, {1, 3, 2}, {0, -2, 2}, {1, 15, 13}, {1, 4, 3}, {1, 1, 2}, {1, 1, 1}, {0}},
};

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    (void)base; /* fused operations: instruction sets differ in the last place */
    for (int t = 0; t < 2; ++t)
        for (size_t g = 0; g < sizeof geometries / sizeof geometries[0]; ++g) {
            test_geometry(set, float_types[t], &geometries[g], VALUES_ORDINARY);
            test_geometry(set, float_types[t], &geometries[g], VALUES_SPECIAL);
        }
}

int main(void) { return for_each_kernel_set(test_set); }
