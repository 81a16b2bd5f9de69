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
#include "kernels/gemm_micro.h"

enum { L = LANES_F32, PANEL = 2 * L, STRIP_TILES = 64 };

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t quad_index __attribute__((vector_size(16)));
#define QUAD_SHUFFLE(x, y, ...) VECTOR_SHUFFLE(x, y, quad_index, __VA_ARGS__)
#define LOAD(p) (*(const vector_f32 *)(p))
#define STORE(p, v) (*(vector_f32 *)(p) = (v))

struct tiling {
    int64_t channels, rows; /* rounded up to L, to PANEL */
    int64_t tile_rows, tile_columns, strip_rows, strip_tiles;
    int64_t width, height; /* of the bordered image */
};

static struct tiling tiling_of(const struct winograd_shape *s)
{
    struct tiling t = {.channels = round_up(s->channels, L), .rows = round_up(s->rows, PANEL)};
    t.tile_rows = (s->out_height + 1) / 2;
    t.tile_columns = (s->out_width + 1) / 2;
    t.strip_rows = t.tile_columns < STRIP_TILES ? STRIP_TILES / t.tile_columns : 1;
    t.strip_rows = t.strip_rows < t.tile_rows ? t.strip_rows : t.tile_rows;
    t.strip_tiles = t.strip_rows * t.tile_columns;
    t.height = 2 * t.tile_rows + 2;
    t.width = 2 * t.tile_columns + 2;
    return t;
}

/* Distance of the 16 planes of V, M and Y: a little more than their size, or the 16 stores of a tile fall into one cache set. */
static int64_t plane_of(int64_t elements) { return elements + PANEL; }

static int64_t filter_elements(const struct winograd_shape *s)
{
    const struct tiling t = tiling_of(s);
    return 16 * t.channels * t.rows;
}

static int64_t together(const struct tiling *t)
{
    const int64_t images = t->strip_rows == t->tile_rows ? STRIP_TILES / t->strip_tiles : 1;
    return images < 1 ? 1 : images < WINOGRAD_MOST_IMAGES ? images : WINOGRAD_MOST_IMAGES;
}

static int64_t images_together(const struct winograd_shape *s)
{
    const struct tiling t = tiling_of(s);
    return together(&t);
}

/* Scratch: bordered image, the result's gradient in the same form, V, then M or the gradient's transform. */
static size_t scratch_bytes(const struct winograd_shape *s)
{
    const struct tiling t = tiling_of(s);
    const int64_t tiles = together(&t) * t.strip_tiles;
    return sizeof(float) *
           (size_t)(t.height * t.width * (t.channels + t.rows) + 16 * plane_of(tiles * t.channels) + 16 * plane_of(tiles * t.rows));
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

/* --- transforms ----------------------------------------------------------------------------------------------------- */

/* Which tiles of V, M and Y an image has. */
struct place {
    int64_t tiles, first; /* of all images together; this one's first */
};

/* B' d B of the tiles of a strip: V [16][channels / L][tile][L]. */
static void transform_image(const struct tiling *t, const float *image, int64_t first_row, int64_t rows, struct place at, float *v)
{
    const int64_t tiles = at.tiles, plane = plane_of(t->channels * tiles);
    for (int64_t b = 0; b < t->channels / L; ++b)
        for (int64_t y = 0; y < rows; ++y)
            for (int64_t x = 0; x < t->tile_columns; ++x) {
                const float *const d = image + ((first_row + y) * 2 * t->width + 2 * x) * t->channels + b * L;
                float *const out = v + (b * tiles + at.first + y * t->tile_columns + x) * L;
                vector_f32 u[4][4];
#pragma GCC unroll 4
                for (int j = 0; j < 4; ++j) {
                    const float *const column = d + j * t->channels;
                    const int64_t step = t->width * t->channels;
                    const vector_f32 d0 = LOAD(column), d1 = LOAD(column + step), d2 = LOAD(column + 2 * step),
                                     d3 = LOAD(column + 3 * step);
                    u[0][j] = d0 - d2;
                    u[1][j] = d1 + d2;
                    u[2][j] = d2 - d1;
                    u[3][j] = d1 - d3;
                }
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) {
                    STORE(out + (4 * i) * plane, u[i][0] - u[i][2]);
                    STORE(out + (4 * i + 1) * plane, u[i][1] + u[i][2]);
                    STORE(out + (4 * i + 2) * plane, u[i][2] - u[i][1]);
                    STORE(out + (4 * i + 3) * plane, u[i][1] - u[i][3]);
                }
            }
}

/* A y A' of the 2 x 2 gradients of a strip, `channels` of them: Y [16][channels / PANEL][tile][PANEL]. */
static void transform_gradient(const struct tiling *t, const float *image, int64_t channels, int64_t first_row, int64_t rows,
                               struct place at, float *out_)
{
    const int64_t tiles = at.tiles, plane = plane_of(channels * tiles);
    for (int64_t b = 0; b < channels / L; ++b)
        for (int64_t y = 0; y < rows; ++y)
            for (int64_t x = 0; x < t->tile_columns; ++x) {
                const float *const d = image + ((first_row + y) * 2 * t->width + 2 * x) * channels + b * L;
                float *const out = out_ + (b / 2 * tiles + at.first + y * t->tile_columns + x) * PANEL + b % 2 * L;
                vector_f32 u[4][2];
#pragma GCC unroll 2
                for (int j = 0; j < 2; ++j) {
                    const vector_f32 y0 = LOAD(d + j * channels), y1 = LOAD(d + (t->width + j) * channels);
                    u[0][j] = y0;
                    u[1][j] = y0 + y1;
                    u[2][j] = y0 - y1;
                    u[3][j] = -y1;
                }
#pragma GCC unroll 4
                for (int i = 0; i < 4; ++i) {
                    STORE(out + (4 * i) * plane, u[i][0]);
                    STORE(out + (4 * i + 1) * plane, u[i][0] + u[i][1]);
                    STORE(out + (4 * i + 2) * plane, u[i][0] - u[i][1]);
                    STORE(out + (4 * i + 3) * plane, -u[i][1]);
                }
            }
}

/* A' m A of one tile and one vector of rows, to the four pixels. */
static inline void transform_result(const float *m, int64_t plane, vector_f32 bias, float *top, float *bottom)
{
    vector_f32 u[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        const vector_f32 m0 = LOAD(m + j * plane), m1 = LOAD(m + (4 + j) * plane), m2 = LOAD(m + (8 + j) * plane),
                         m3 = LOAD(m + (12 + j) * plane);
        u[0][j] = m0 + m1 + m2;
        u[1][j] = m1 - m2 - m3;
    }
    STORE(top, u[0][0] + u[0][1] + u[0][2] + bias);
    STORE(top + PANEL, u[0][1] - u[0][2] - u[0][3] + bias);
    STORE(bottom, u[1][0] + u[1][1] + u[1][2] + bias);
    STORE(bottom + PANEL, u[1][1] - u[1][2] - u[1][3] + bias);
}

/* G g G' of one vector of rows: tap t at g + t * PANEL, element xi to out + xi * plane. */
static inline void transform_filter(const float *w, float *out, int64_t plane)
{
    vector_f32 g[4][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
        const vector_f32 w0 = LOAD(w + j * PANEL), w1 = LOAD(w + (3 + j) * PANEL), w2 = LOAD(w + (6 + j) * PANEL);
        g[0][j] = w0;
        g[1][j] = (w0 + w1 + w2) * 0.5f;
        g[2][j] = (w0 - w1 + w2) * 0.5f;
        g[3][j] = w2;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        STORE(out + (4 * i) * plane, g[i][0]);
        STORE(out + (4 * i + 1) * plane, (g[i][0] + g[i][1] + g[i][2]) * 0.5f);
        STORE(out + (4 * i + 2) * plane, (g[i][0] - g[i][1] + g[i][2]) * 0.5f);
        STORE(out + (4 * i + 3) * plane, g[i][2]);
    }
}

static bool filters(const struct winograd_shape *s, const float *matrix, int64_t panel, float *u)
{
    enum { TURNED_CHANNELS = 8 };
    const struct tiling t = tiling_of(s);
    const int64_t plane = t.channels * t.rows, first = panel * PANEL, used = s->rows - first < PANEL ? s->rows - first : PANEL;
    float turned[TURNED_CHANNELS * 9 * PANEL] = {0};
    for (int xi = 0; xi < 16 && s->channels < t.channels; ++xi)
        memset(u + xi * plane + first * t.channels + s->channels * PANEL, 0,
               (size_t)(PANEL * (t.channels - s->channels)) * sizeof *u);
    if (!moderate(matrix + first * s->channels * 9, used * s->channels * 9))
        return false;
    for (int64_t c = 0; c < s->channels; c += TURNED_CHANNELS) {
        const int64_t n = s->channels - c < TURNED_CHANNELS ? s->channels - c : TURNED_CHANNELS;
        transpose(matrix + (first * s->channels + c) * 9, s->channels * 9, used, n * 9, turned, PANEL);
        for (int64_t i = 0; i < n; ++i)
            for (int half = 0; half < PANEL; half += L)
                transform_filter(turned + i * 9 * PANEL + half, u + (panel * t.channels + c + i) * PANEL + half, plane);
    }
    return true;
}

/* --- products ------------------------------------------------------------------------------------------------------- */

/* M[tile][PANEL] = V (r tiles, channels in blocks of L that are block_step apart) times one panel of U. */
GEMM_INLINE void tiles_fixed(const int r, int64_t blocks, const float *v, int64_t block_step, const float *u, float *m)
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
        STORE(m + i * PANEL, sum[i][0]);
        STORE(m + i * PANEL + L, sum[i][1]);
    }
}

static void multiply_tiles(int64_t tiles, int64_t channels, const float *v, const float *u, float *m)
{
    const int64_t groups = (tiles + GEMM_MICRO_ROWS - 1) / GEMM_MICRO_ROWS;
    int64_t tile = 0;
    for (int64_t g = 0; g < groups; ++g) {
        const int r = (int)((tiles - tile + groups - g - 1) / (groups - g));
        switch (r) {
#define GEMM_CASE(n)                                                                                  \
    case n:                                                                                           \
        tiles_fixed(n, channels / L, v + tile * L, tiles * L, u, m + tile * PANEL);                   \
        break;
            GEMM_MICRO_CASES(GEMM_CASE)
#undef GEMM_CASE
        }
        tile += r;
    }
}

/* Rows of tiles that are multiplied together, on their way back. */
struct strip {
    const struct winograd_shape *s;
    const struct tiling *t;
    const float *m; /* products of one panel, for the tiles of all images */
    int64_t first_row, rows;
    const float *bias; /* or NULL */
    float *pair;       /* room for two rows of the result */
};

/* Inverse transform of one panel of a strip, a pair of rows at a time, and back to [row][y][x]. */
static void store_strip(const struct strip *strip, struct place at, int64_t panel, float *out)
{
    const struct winograd_shape *const s = strip->s;
    const struct tiling *const t = strip->t;
    float *const pair = strip->pair;
    const int64_t width = 2 * t->tile_columns, used = s->rows - panel * PANEL, first_row = strip->first_row;
    float offsets[PANEL] = {0};
    for (int64_t i = 0; strip->bias && i < PANEL && i < used; ++i)
        offsets[i] = strip->bias[panel * PANEL + i];
    for (int64_t y = 0; y < strip->rows; ++y) {
        for (int64_t x = 0; x < t->tile_columns; ++x)
            for (int half = 0; half < PANEL; half += L)
                transform_result(strip->m + (at.first + y * t->tile_columns + x) * PANEL + half, plane_of(at.tiles * PANEL),
                                 LOAD(offsets + half), pair + 2 * x * PANEL + half, pair + (width + 2 * x) * PANEL + half);
        for (int64_t i = 0; i < 2 && 2 * (first_row + y) + i < s->out_height; ++i)
            transpose(pair + i * width * PANEL, PANEL, s->out_width, used < PANEL ? used : PANEL,
                      out + (panel * PANEL * s->out_height + 2 * (first_row + y) + i) * s->out_width, s->out_height * s->out_width);
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
        transform_image(t, bordered, row, rows, (struct place){batch->count * tiles, i * tiles}, v);
    }
}

static void correlate(const struct winograd_shape *s, const struct winograd_batch *batch, const float *u, const float *bias,
                      void *scratch)
{
    const struct tiling t = tiling_of(s);
    float *const bordered = scratch, *const pair = bordered + t.height * t.width * t.channels;
    float *const v = pair + t.height * t.width * t.rows, *const m = v + 16 * plane_of(together(&t) * t.strip_tiles * t.channels);
    for (int64_t row = 0; row < t.tile_rows; row += t.strip_rows) {
        const int64_t rows = t.tile_rows - row < t.strip_rows ? t.tile_rows - row : t.strip_rows;
        const int64_t one = rows * t.tile_columns, tiles = batch->count * one;
        const struct strip strip = {s, &t, m, row, rows, bias, pair};
        transform_strip(s, &t, batch, row, rows, bordered, v);
        for (int64_t panel = 0; panel < t.rows / PANEL; ++panel) {
            for (int xi = 0; xi < 16; ++xi)
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
    const int64_t tiles = together(&t) * t.strip_tiles, image = 16 * tiles * t.channels, panel = 16 * PANEL * (t.channels + tiles);
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
    float *const bordered = scratch, *const results = bordered + t.height * t.width * t.channels;
    float *const v = results + t.height * t.width * t.rows, *const y = v + 16 * plane_of(together(&t) * t.strip_tiles * t.channels);
    for (int64_t i = 0; i < batch->count; ++i)
        if (!moderate(batch->images[i], s->channels * s->height * s->width) ||
            !moderate(batch->smalls[i] + first * PANEL * result, used * result))
            return false;
    for (int64_t row = 0; row < t.tile_rows; row += t.strip_rows) {
        const int64_t rows = t.tile_rows - row < t.strip_rows ? t.tile_rows - row : t.strip_rows;
        const int64_t one = rows * t.tile_columns, tiles = batch->count * one;
        transform_strip(s, &t, batch, row, rows, bordered, v);
        for (int64_t i = 0; i < batch->count; ++i) {
            if (row == 0)
                turn_image(batch->smalls[i] + first * PANEL * result, used, s->out_height, s->out_width, 0, 0, &t, channels,
                           results);
            transform_gradient(&t, results, channels, row, rows, (struct place){tiles, i * one}, y);
        }
        for (int64_t xi = 0; xi < 16; ++xi)
            for (int64_t panel = 0; panel < panels; ++panel)
                for (int64_t c = 0; c < t.channels; c += L / 2)
                    micro_f32(L / 2, tiles, v + xi * plane_of(tiles * t.channels) + c / L * tiles * L + c % L, L,
                              y + xi * plane_of(tiles * channels) + panel * PANEL * tiles, PANEL,
                              du + (xi * t.rows + (first + panel) * PANEL) * t.channels + c * PANEL, PANEL, accumulate || row > 0);
    }
    return true;
}

/* G' of one column of four. */
static inline void transform_filter_gradient(vector_f32 s0, vector_f32 s1, vector_f32 s2, vector_f32 s3, vector_f32 *g)
{
    const vector_f32 half_sum = (s1 + s2) * 0.5f;
    g[0] = s0 + half_sum;
    g[1] = (s1 - s2) * 0.5f;
    g[2] = half_sum + s3;
}

/* G' du G of the sum of the blocks, a vector of rows at a time. */
static void finish(const struct winograd_shape *s, const float *du, int64_t blocks, int64_t panel, float *out)
{
    const struct tiling t = tiling_of(s);
    const int64_t plane = t.channels * t.rows;
    for (int64_t c = 0; c < s->channels; ++c)
        for (int64_t half = 0; half < PANEL; half += L) {
            const float *const from = du + (panel * t.channels + c) * PANEL + half;
            vector_f32 sum[16], g[4][3], result[3][3];
            for (int xi = 0; xi < 16; ++xi) {
                sum[xi] = LOAD(from + xi * plane);
                for (int64_t block = 1; block < blocks; ++block)
                    sum[xi] += LOAD(from + (block * 16 + xi) * plane);
            }
            for (int i = 0; i < 4; ++i)
                transform_filter_gradient(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3], g[i]);
            for (int j = 0; j < 3; ++j) {
                vector_f32 column[3];
                transform_filter_gradient(g[0][j], g[1][j], g[2][j], g[3][j], column);
                for (int i = 0; i < 3; ++i)
                    result[i][j] = column[i];
            }
            for (int64_t r = 0; r < L && panel * PANEL + half + r < s->rows; ++r)
                for (int i = 0; i < 9; ++i)
                    out[((panel * PANEL + half + r) * s->channels + c) * 9 + i] = result[i / 3][i % 3][r];
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
