/* Winograd convolution kernels. See conv_winograd.h. Compiled once per ISA, with contraction.
 *
 * An image is turned to [row][column][channel] with its zero border; then everything is vectors of channels. Tiles are taken in
 * strips of whole tile rows, so that V stays in the cache. */
#include "kernels/conv_winograd.h"

#include <string.h>

#define REAL float
#define VECTOR vector_f32
#define TAG f32
#include "base/arithmetic.h"
#include "kernels/conv_winograd_lines.h"
#include "kernels/gemm_micro.h"

/* The most channels of a partial sum of products: a longer one would cause most of the result's error. */
enum { L = LANES_F32, PANEL = 2 * L, STRIP_RESULTS = 128, CHAIN = 32, MOST_PLANES = 36 };

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t quad_index __attribute__((vector_size(16)));
#define QUAD_SHUFFLE(x, y, ...) VECTOR_SHUFFLE(x, y, quad_index, __VA_ARGS__)
#define LOAD(p) (*(const vector_f32 *)(p))
#define STORE(p, v) (*(vector_f32 *)(p) = (v))

struct transforms;

struct tiling {
    const struct transforms *transforms;
    int64_t tile, planes;   /* results of a tile in a line; transformed elements of a tile */
    int64_t channels, rows; /* rounded up to L, to PANEL */
    int64_t tile_rows, tile_columns, strip_rows, most_tiles, strip_tiles;
    int64_t width, height; /* of the bordered image */
};

/* Which tiles of V, M and Y an image has. */
struct place {
    int64_t tiles, first; /* of all images together; this one's first */
};

/* The transforms of one size of tiles. See conv_winograd_tile.h. */
struct transforms {
    void (*image)(const struct tiling *t, const float *image, int64_t first_row, int64_t rows, struct place at, float *v);
    void (*gradient)(const struct tiling *t, const float *image, int64_t channels, int64_t first_row, int64_t rows, struct place at,
                     float *out);
    void (*result)(const struct tiling *t, const float *m, int64_t plane, const float *bias, float *lines);
    void (*filter)(const float *g, float *out, int64_t plane);
    void (*weights)(const vector_f32 *du, vector_f32 *weights);
};

/* Distance of the planes of V, M and Y: a little more than their size, or the stores of a tile fall into one cache set. */
static int64_t plane_of(int64_t elements) { return elements + PANEL; }

#define TILE 2
#include "kernels/conv_winograd_tile.h"
#define TILE 4
#include "kernels/conv_winograd_tile.h"

static const struct transforms transforms_2 = {transform_image_2, transform_gradient_2, transform_result_2, transform_filter_2,
                                               transform_weights_2};
static const struct transforms transforms_4 = {transform_image_4, transform_gradient_4, transform_result_4, transform_filter_4,
                                               transform_weights_4};

static struct tiling tiling_of(const struct winograd_shape *s)
{
    struct tiling t = {.tile = s->tile, .channels = round_up(s->channels, L), .rows = round_up(s->rows, PANEL)};
    t.transforms = s->tile == 4 ? &transforms_4 : &transforms_2;
    t.planes = (t.tile + 2) * (t.tile + 2);
    t.most_tiles = STRIP_RESULTS / t.tile;
    t.tile_rows = divide_up(s->out_height, t.tile);
    t.tile_columns = divide_up(s->out_width, t.tile);
    t.strip_rows = t.tile_columns < t.most_tiles ? t.most_tiles / t.tile_columns : 1;
    t.strip_rows = least(t.strip_rows, t.tile_rows);
    t.strip_tiles = t.strip_rows * t.tile_columns;
    t.height = t.tile * t.tile_rows + 2;
    t.width = t.tile * t.tile_columns + 2;
    return t;
}

static int64_t filter_elements(const struct winograd_shape *s)
{
    const struct tiling t = tiling_of(s);
    return t.planes * t.channels * t.rows;
}

static int64_t together(const struct tiling *t)
{
    const int64_t images = t->strip_rows == t->tile_rows ? t->most_tiles / t->strip_tiles : 1;
    return images < 1 ? 1 : images < WINOGRAD_MOST_IMAGES ? images : WINOGRAD_MOST_IMAGES;
}

static int64_t images_together(const struct winograd_shape *s)
{
    const struct tiling t = tiling_of(s);
    return together(&t);
}

/* Elements of the bordered image, and of the result in the same form (its gradient, or the lines on their way back). */
static int64_t bordered_elements(const struct tiling *t) { return t->height * t->width * t->channels; }
static int64_t bordered_results(const struct tiling *t) { return t->height * t->width * t->rows; }

/* Scratch: bordered image, the result in the same form, V, then M or the gradient's transform. */
static size_t scratch_bytes(const struct winograd_shape *s)
{
    const struct tiling t = tiling_of(s);
    const int64_t tiles = together(&t) * t.strip_tiles;
    return sizeof(float) * (size_t)(bordered_elements(&t) + bordered_results(&t) + t.planes * plane_of(tiles * t.channels) +
                                    t.planes * plane_of(tiles * t.rows));
}

/* --- layouts -------------------------------------------------------------------------------------------------------- */

/* out[p * stride + c] = in[c * in_stride + p], 4 x 4. */
static inline void transpose_quad(const float *in, int64_t in_stride, float *out, int64_t stride)
{
    const quad r0 = *(const quad *)in, r1 = *(const quad *)(in + in_stride);
    const quad r2 = *(const quad *)(in + 2 * in_stride), r3 = *(const quad *)(in + 3 * in_stride);
    const quad t0 = QUAD_SHUFFLE(r0, r1, 0, 4, 1, 5), t1 = QUAD_SHUFFLE(r2, r3, 0, 4, 1, 5);
    const quad t2 = QUAD_SHUFFLE(r0, r1, 2, 6, 3, 7), t3 = QUAD_SHUFFLE(r2, r3, 2, 6, 3, 7);
    *(quad *)out = QUAD_SHUFFLE(t0, t1, 0, 1, 4, 5);
    *(quad *)(out + stride) = QUAD_SHUFFLE(t0, t1, 2, 3, 6, 7);
    *(quad *)(out + 2 * stride) = QUAD_SHUFFLE(t2, t3, 0, 1, 4, 5);
    *(quad *)(out + 3 * stride) = QUAD_SHUFFLE(t2, t3, 2, 3, 6, 7);
}

/* columns x rows floats, turned: out[p * out_stride + c] = in[c * in_stride + p], p < columns, c < rows. */
static void transpose(const float *in, int64_t in_stride, int64_t rows, int64_t columns, float *out, int64_t out_stride)
{
    int64_t p = 0;
    for (; p + 4 <= columns; p += 4) {
        int64_t c = 0;
        for (; c + 4 <= rows; c += 4)
            transpose_quad(in + c * in_stride + p, in_stride, out + p * out_stride + c, out_stride);
        for (; c < rows; ++c)
            for (int64_t i = 0; i < 4; ++i)
                out[(p + i) * out_stride + c] = in[c * in_stride + p + i];
    }
    for (; p < columns; ++p)
        for (int64_t c = 0; c < rows; ++c)
            out[p * out_stride + c] = in[c * in_stride + p];
}

/* Is every magnitude at most WINOGRAD_LARGEST? Compared as integers, so NaN and infinities are too large. */
static bool moderate(const float *x, int64_t n)
{
    const float limit = WINOGRAD_LARGEST;
    int32_t limit_bits, largest = 0;
    memcpy(&limit_bits, &limit, sizeof limit_bits);
    typedef int32_t aliased __attribute__((may_alias));
    const aliased *const bits = (const aliased *)x;
    for (int64_t i = 0; i < n; ++i) {
        const int32_t magnitude = bits[i] & 0x7fffffff;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest <= limit_bits;
}

/* [channels][height][width] to [row][column][channel] with `pad` zeros before, `padded` channels. */
static void turn_image(const float *image, int64_t channels, int64_t height, int64_t width, int64_t pad_height, int64_t pad_width,
                       const struct tiling *t, int64_t padded, float *out)
{
    memset(out, 0, (size_t)(t->height * t->width * padded) * sizeof *out);
    const int64_t columns = width < t->width - pad_width ? width : t->width - pad_width;
    for (int64_t y = 0; y < height && y + pad_height < t->height; ++y)
        transpose(image + y * width, height * width, channels, columns, out + ((y + pad_height) * t->width + pad_width) * padded,
                  padded);
}

/* --- filters -------------------------------------------------------------------------------------------------------- */

static bool filters(const struct winograd_shape *s, const float *matrix, int64_t panel, float *u)
{
    enum { TURNED_CHANNELS = 8 };
    const struct tiling t = tiling_of(s);
    const int64_t plane = t.channels * t.rows, first = panel * PANEL, used = least(s->rows - first, PANEL);
    float turned[TURNED_CHANNELS * 9 * PANEL] = {0};
    for (int64_t xi = 0; xi < t.planes && s->channels < t.channels; ++xi)
        memset(u + xi * plane + first * t.channels + s->channels * PANEL, 0,
               (size_t)(PANEL * (t.channels - s->channels)) * sizeof *u);
    if (!moderate(matrix + first * s->channels * 9, used * s->channels * 9))
        return false;
    for (int64_t c = 0; c < s->channels; c += TURNED_CHANNELS) {
        const int64_t n = least(s->channels - c, TURNED_CHANNELS);
        transpose(matrix + (first * s->channels + c) * 9, s->channels * 9, used, n * 9, turned, PANEL);
        for (int64_t i = 0; i < n; ++i)
            t.transforms->filter(turned + i * 9 * PANEL, u + (panel * t.channels + c + i) * PANEL, plane);
    }
    return true;
}

/* --- products ------------------------------------------------------------------------------------------------------- */

/* M[tile][PANEL] (+)= V (r tiles, channels in blocks of L that are block_step apart) times one panel of U. */
GEMM_INLINE void tiles_fixed(const int r, int64_t blocks, const float *v, int64_t block_step, const float *u, float *m, bool add)
{
    vector_f32 sum[GEMM_MICRO_ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < r; ++i)
        sum[i][0] = sum[i][1] = (vector_f32){0};
    for (int64_t b = 0; b < blocks; ++b, v += block_step)
#pragma GCC unroll 4
        for (int k = 0; k < L; ++k, u += PANEL) {
            const vector_f32 u0 = LOAD(u), u1 = LOAD(u + L);
#pragma GCC unroll 16
            for (int i = 0; i < r; ++i) {
                sum[i][0] += v[i * L + k] * u0;
                sum[i][1] += v[i * L + k] * u1;
            }
        }
#pragma GCC unroll 16
    for (int i = 0; i < r; ++i) {
        if (add) {
            sum[i][0] += LOAD(m + i * PANEL);
            sum[i][1] += LOAD(m + i * PANEL + L);
        }
        STORE(m + i * PANEL, sum[i][0]);
        STORE(m + i * PANEL + L, sum[i][1]);
    }
}

/* One part of the channels: `blocks` vectors of them. */
static void multiply_part(int64_t tiles, int64_t blocks, const float *v, const float *u, float *m, bool add)
{
    const int64_t groups = divide_up(tiles, GEMM_MICRO_ROWS);
    int64_t tile = 0;
    for (int64_t g = 0; g < groups; ++g) {
        const int r = (int)((tiles - tile + groups - g - 1) / (groups - g));
        switch (r) {
#define GEMM_CASE(n)                                                                                  \
    case n:                                                                                           \
        tiles_fixed(n, blocks, v + tile * L, tiles * L, u, m + tile * PANEL, add);                    \
        break;
            GEMM_MICRO_CASES(GEMM_CASE)
#undef GEMM_CASE
        }
        tile += r;
    }
}

static void multiply_tiles(int64_t tiles, int64_t channels, const float *v, const float *u, float *m)
{
    const int64_t blocks = channels / L, parts = divide_up(channels, CHAIN);
    for (int64_t part = 0; part < parts; ++part) {
        const int64_t first = part * blocks / parts, last = (part + 1) * blocks / parts;
        multiply_part(tiles, last - first, v + first * tiles * L, u + first * L * PANEL, m, part > 0);
    }
}

/* Rows of tiles that are multiplied together, on their way back. */
struct strip {
    const struct winograd_shape *s;
    const struct tiling *t;
    const float *m; /* products of one panel, for the tiles of all images */
    int64_t first_row, rows;
    const float *bias; /* or NULL */
    float *lines;      /* room for the lines of a row of tiles */
};

/* Inverse transform of one panel of a strip, a row of tiles at a time, and back to [row][y][x]. */
static void store_strip(const struct strip *strip, struct place at, int64_t panel, float *out)
{
    const struct winograd_shape *const s = strip->s;
    const struct tiling *const t = strip->t;
    const int64_t width = t->tile * t->tile_columns, used = s->rows - panel * PANEL;
    float offsets[PANEL] = {0};
    for (int64_t i = 0; strip->bias && i < PANEL && i < used; ++i)
        offsets[i] = strip->bias[panel * PANEL + i];
    for (int64_t row = 0; row < strip->rows; ++row) {
        const int64_t y = t->tile * (strip->first_row + row);
        t->transforms->result(t, strip->m + (at.first + row * t->tile_columns) * PANEL, plane_of(at.tiles * PANEL), offsets,
                              strip->lines);
        for (int64_t i = 0; i < t->tile && y + i < s->out_height; ++i)
            transpose(strip->lines + i * width * PANEL, PANEL, s->out_width, least(used, PANEL),
                      out + (panel * PANEL * s->out_height + y + i) * s->out_width, s->out_height * s->out_width);
    }
}

/* The strip of every image to V; with several images a strip is all of one. */
static void transform_strip(const struct winograd_shape *s, const struct tiling *t, const struct winograd_batch *batch, int64_t row,
                            int64_t rows, float *bordered, float *v)
{
    const int64_t tiles = rows * t->tile_columns;
    for (int64_t i = 0; i < batch->count; ++i) {
        if (row == 0)
            turn_image(batch->images[i], s->channels, s->height, s->width, s->pad_height, s->pad_width, t, t->channels, bordered);
        t->transforms->image(t, bordered, row, rows, (struct place){batch->count * tiles, i * tiles}, v);
    }
}

static void correlate(const struct winograd_shape *s, const struct winograd_batch *batch, const float *u, const float *bias,
                      void *scratch)
{
    const struct tiling t = tiling_of(s);
    float *const bordered = scratch, *const lines = bordered + bordered_elements(&t), *const v = lines + bordered_results(&t);
    float *const m = v + t.planes * plane_of(together(&t) * t.strip_tiles * t.channels);
    for (int64_t row = 0; row < t.tile_rows; row += t.strip_rows) {
        const int64_t rows = least(t.tile_rows - row, t.strip_rows);
        const int64_t one = rows * t.tile_columns, tiles = batch->count * one;
        const struct strip strip = {s, &t, m, row, rows, bias, lines};
        transform_strip(s, &t, batch, row, rows, bordered, v);
        for (int64_t panel = 0; panel < t.rows / PANEL; ++panel) {
            for (int64_t xi = 0; xi < t.planes; ++xi)
                multiply_tiles(tiles, t.channels, v + xi * plane_of(tiles * t.channels),
                               u + (xi * t.rows + panel * PANEL) * t.channels, m + xi * plane_of(tiles * PANEL));
            for (int64_t i = 0; i < batch->count; ++i)
                store_strip(&strip, (struct place){tiles, i * one}, panel, batch->outs[i]);
        }
    }
}

static int64_t gradient_panels(const struct winograd_shape *s)
{
    enum { CACHE_ELEMENTS = 200000, LEAST = 2 };
    const struct tiling t = tiling_of(s);
    const int64_t tiles = together(&t) * t.strip_tiles, image = t.planes * tiles * t.channels;
    const int64_t panel = t.planes * PANEL * (t.channels + tiles);
    const int64_t fitting = (CACHE_ELEMENTS - image) / panel, all = t.rows / PANEL;
    const int64_t panels = fitting > LEAST ? fitting : LEAST;
    return panels < all ? panels : all;
}

static bool gradient(const struct winograd_shape *s, const struct winograd_batch *batch, int64_t first, int64_t panels, float *du,
                     bool accumulate, void *scratch)
{
    const struct tiling t = tiling_of(s);
    const int64_t result = s->out_height * s->out_width, channels = panels * PANEL;
    const int64_t used = s->rows - first * PANEL < channels ? s->rows - first * PANEL : channels;
    float *const bordered = scratch, *const results = bordered + bordered_elements(&t), *const v = results + bordered_results(&t);
    float *const y = v + t.planes * plane_of(together(&t) * t.strip_tiles * t.channels);
    for (int64_t i = 0; i < batch->count; ++i)
        if (!moderate(batch->images[i], s->channels * s->height * s->width) ||
            !moderate(batch->smalls[i] + first * PANEL * result, used * result))
            return false;
    for (int64_t row = 0; row < t.tile_rows; row += t.strip_rows) {
        const int64_t rows = least(t.tile_rows - row, t.strip_rows);
        const int64_t one = rows * t.tile_columns, tiles = batch->count * one;
        transform_strip(s, &t, batch, row, rows, bordered, v);
        for (int64_t i = 0; i < batch->count; ++i) {
            if (row == 0)
                turn_image(batch->smalls[i] + first * PANEL * result, used, s->out_height, s->out_width, 0, 0, &t, channels,
                           results);
            t.transforms->gradient(&t, results, channels, row, rows, (struct place){tiles, i * one}, y);
        }
        for (int64_t xi = 0; xi < t.planes; ++xi)
            for (int64_t panel = 0; panel < panels; ++panel)
                for (int64_t c = 0; c < t.channels; c += L / 2)
                    micro_f32(L / 2, tiles, v + xi * plane_of(tiles * t.channels) + c / L * tiles * L + c % L, L,
                              y + xi * plane_of(tiles * channels) + panel * PANEL * tiles, PANEL,
                              du + (xi * t.rows + (first + panel) * PANEL) * t.channels + c * PANEL, PANEL, accumulate || row > 0);
    }
    return true;
}

/* G' du G of the sum of the blocks, a vector of rows at a time. */
static void finish(const struct winograd_shape *s, const float *du, int64_t blocks, int64_t panel, float *out)
{
    const struct tiling t = tiling_of(s);
    const int64_t plane = t.channels * t.rows;
    for (int64_t c = 0; c < s->channels; ++c)
        for (int64_t half = 0; half < PANEL; half += L) {
            const float *const from = du + (panel * t.channels + c) * PANEL + half;
            vector_f32 sum[MOST_PLANES], weights[9];
            for (int64_t xi = 0; xi < t.planes; ++xi) {
                sum[xi] = LOAD(from + xi * plane);
                for (int64_t block = 1; block < blocks; ++block)
                    sum[xi] += LOAD(from + (block * t.planes + xi) * plane);
            }
            t.transforms->weights(sum, weights);
            for (int64_t r = 0; r < L && panel * PANEL + half + r < s->rows; ++r)
                for (int i = 0; i < 9; ++i)
                    out[((panel * PANEL + half + r) * s->channels + c) * 9 + i] = weights[i][r];
        }
}

const struct conv_winograd_kernels KERNEL_TABLE(conv_winograd_kernels) = {
    .filter_elements = filter_elements,
    .scratch_bytes = scratch_bytes,
    .images_together = images_together,
    .moderate = moderate,
    .filters = filters,
    .correlate = correlate,
    .gradient = gradient,
    .gradient_panels = gradient_panels,
    .finish = finish,
    .row_unit = PANEL,
};
