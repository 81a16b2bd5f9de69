/* Template: convolution kernels for one float type. REAL, VECTOR, TAG, REAL_DTYPE, GEMM_INDEX are the includer's. */
#include "kernels/gemm_pack.h"

#define NAME(name) GEMM_NAME(name, TAG)

static void NAME(pack_matrix)(const void *matrix_, int64_t rows, int64_t depth, void *packed_)
{
    const REAL *const matrix = matrix_;
    REAL *out = packed_;
    for (int64_t k = 0; k < depth; k += GEMM_DEPTH) {
        const int64_t part = depth - k < GEMM_DEPTH ? depth - k : GEMM_DEPTH;
        for (int64_t i = 0; i < rows; i += GEMM_BLOCK_ROWS) {
            const int64_t block = rows - i < GEMM_BLOCK_ROWS ? rows - i : GEMM_BLOCK_ROWS;
            const int64_t groups = (block + GEMM_MICRO_ROWS - 1) / GEMM_MICRO_ROWS;
            int64_t row = 0;
            for (int64_t g = 0; g < groups; ++g) {
                const int r = (int)((block - row + groups - g - 1) / (groups - g));
                NAME(pack_panel)(matrix + (i + row) * depth + k, REAL_DTYPE, depth, 1, r, r, part, out);
                out += part * r;
                row += r;
            }
        }
    }
}

static void NAME(pad)(const struct conv_geometry *g, const void *image_, void *padded_)
{
    const REAL *image = image_;
    REAL *padded = padded_;
    const int64_t plane = g->padded[1] * g->padded[2], volume = g->padded[0] * plane;
    for (int64_t c = 0; c < g->channels; ++c, padded += volume) {
        for (int64_t i = 0; i < volume; ++i)
            padded[i] = 0;
        for (int64_t z = 0; z < g->in[0]; ++z)
            for (int64_t y = 0; y < g->in[1]; ++y, image += g->in[2]) {
                const int64_t to_z = z * g->insert[0] + g->pad[0], to_y = y * g->insert[1] + g->pad[1], step = g->insert[2];
                if (to_z < 0 || to_z >= g->padded[0] || to_y < 0 || to_y >= g->padded[1])
                    continue;
                int64_t first = g->pad[2] < 0 ? (-g->pad[2] + step - 1) / step : 0;
                int64_t last = (g->padded[2] - g->pad[2] + step - 1) / step;
                last = last < g->in[2] ? last : g->in[2];
                REAL *const row = padded + to_z * plane + to_y * g->padded[2] + g->pad[2];
                if (step == 1)
                    for (int64_t x = first; x < last; ++x)
                        row[x] = image[x];
                else
                    for (int64_t x = first; x < last; ++x)
                        row[x * step] = image[x];
            }
    }
}

/* Where column k = (channel, tap) of the patch matrix starts in the padded image. */
static void NAME(column_offsets)(const struct conv_geometry *g, int64_t first, int64_t n, int64_t *offsets)
{
    const int64_t taps = conv_volume(g->taps), volume = conv_volume(g->padded);
    for (int64_t i = 0; i < n; ++i) {
        const int64_t channel = (first + i) / taps, tap = (first + i) % taps;
        const int64_t x = tap % g->taps[2], y = tap / g->taps[2] % g->taps[1], z = tap / (g->taps[2] * g->taps[1]);
        offsets[i] =
            channel * volume + (z * g->dilation[0] * g->padded[1] + y * g->dilation[1]) * g->padded[2] + x * g->dilation[2];
    }
}

/* Pixels that follow each other in one row of the result. */
struct NAME(run) {
    int64_t offset, length;
};

/* Cuts pixels [first, first + n) into runs; returns how many. */
static int NAME(pixel_runs)(const struct conv_geometry *g, int64_t first, int64_t n, struct NAME(run) * runs)
{
    int count = 0;
    while (n > 0) {
        const int64_t x = first % g->out[2], y = first / g->out[2] % g->out[1], z = first / (g->out[2] * g->out[1]);
        const int64_t length = g->out[2] - x < n ? g->out[2] - x : n;
        runs[count++] =
            (struct NAME(run)){(z * g->stride[0] * g->padded[1] + y * g->stride[1]) * g->padded[2] + x * g->stride[2], length};
        first += length;
        n -= length;
    }
    return count;
}

/* One panel of patches: out[k][pixel] for `depth` columns of the patch matrix and up to PANEL pixels. */
static void NAME(pack_patches)(const struct conv_geometry *g, const REAL *padded, const int64_t *offsets, int64_t depth,
                               int64_t first, int64_t pixels, REAL *out)
{
    struct NAME(run) runs[PANEL];
    const int count = NAME(pixel_runs)(g, first, pixels, runs);
    const int64_t step = g->stride[2];
    for (int64_t k = 0; k < depth; ++k, out += PANEL) {
        const REAL *const from = padded + offsets[k];
        REAL *to = out;
        for (int r = 0; r < count; ++r) {
            const REAL *const in = from + runs[r].offset;
            const int64_t length = runs[r].length;
            if (step == 1 && length == PANEL) {
                const VECTOR a = *(const VECTOR *)in, b = *(const VECTOR *)(in + PANEL / 2);
                *(VECTOR *)to = a;
                *(VECTOR *)(to + PANEL / 2) = b;
            } else if (step == 1 && length == PANEL / 2)
                *(VECTOR *)to = *(const VECTOR *)in;
            else
                for (int64_t i = 0; i < length; ++i)
                    to[i] = in[i * step];
            to += length;
        }
        for (; to < out + PANEL; ++to)
            *to = 0;
    }
}

static void NAME(correlate)(const struct conv_geometry *g, const void *padded, const void *packed_, const void *bias_, void *out_,
                            int64_t first, int64_t pixels, void *scratch)
{
    const REAL *const packed = packed_, *const bias = bias_;
    REAL *const out = out_, *const panels = scratch;
    const int64_t depth = g->channels * conv_volume(g->taps), image = conv_volume(g->out);
    for (int64_t at = first; at < first + pixels; at += GEMM_TILE_COLUMNS) {
        const int64_t n = first + pixels - at < GEMM_TILE_COLUMNS ? first + pixels - at : GEMM_TILE_COLUMNS;
        for (int64_t k = 0; k < depth; k += GEMM_DEPTH) {
            const int64_t part = depth - k < GEMM_DEPTH ? depth - k : GEMM_DEPTH;
            const int64_t chain = depth > LONE_CHAIN ? chain_of(part) : depth;
            int64_t offsets[GEMM_DEPTH];
            NAME(column_offsets)(g, k, part, offsets);
            for (int64_t j = 0; j < n; j += PANEL)
                NAME(pack_patches)(g, padded, offsets, part, at + j, n - j < PANEL ? n - j : PANEL, panels + j * part);
            for (int64_t i = 0; i < g->rows; i += GEMM_BLOCK_ROWS)
                NAME(multiply_block)(g->rows - i < GEMM_BLOCK_ROWS ? g->rows - i : GEMM_BLOCK_ROWS, n, part, chain,
                                     packed + k * g->rows + i * part, panels,
                                     (struct NAME(target)){out + i * image + at, image, k > 0});
        }
        for (int64_t i = 0; bias && i < g->rows; ++i)
            for (int64_t j = 0; j < n; ++j)
                out[i * image + at + j] += bias[i];
    }
}

/* out[p * PANEL + i] = in[i][p] for four columns of the patch matrix. */
GEMM_INLINE void NAME(transpose_columns)(const REAL *const *in, int64_t n, REAL *out)
{
    int64_t p = 0;
    for (; p + 4 <= n; p += 4) {
        const QUAD r0 = *(const QUAD *)(in[0] + p), r1 = *(const QUAD *)(in[1] + p);
        const QUAD r2 = *(const QUAD *)(in[2] + p), r3 = *(const QUAD *)(in[3] + p);
        const QUAD t0 = SHUFFLE(r0, r1, 0, 4, 1, 5), t1 = SHUFFLE(r2, r3, 0, 4, 1, 5);
        const QUAD t2 = SHUFFLE(r0, r1, 2, 6, 3, 7), t3 = SHUFFLE(r2, r3, 2, 6, 3, 7);
        *(QUAD *)(out + p * PANEL) = SHUFFLE(t0, t1, 0, 1, 4, 5);
        *(QUAD *)(out + (p + 1) * PANEL) = SHUFFLE(t0, t1, 2, 3, 6, 7);
        *(QUAD *)(out + (p + 2) * PANEL) = SHUFFLE(t2, t3, 0, 1, 4, 5);
        *(QUAD *)(out + (p + 3) * PANEL) = SHUFFLE(t2, t3, 2, 3, 6, 7);
    }
    for (; p < n; ++p)
        for (int i = 0; i < 4; ++i)
            out[p * PANEL + i] = in[i][p];
}

/* One panel of transposed patches: out[pixel][column] for up to PANEL columns. */
static void NAME(pack_columns)(const struct conv_geometry *g, const REAL *padded, const struct NAME(run) * runs, int run_count,
                               int64_t first, int used, REAL *out)
{
    int64_t offsets[PANEL];
    const int64_t step = g->stride[2];
    NAME(column_offsets)(g, first, used, offsets);
    for (int r = 0; r < run_count; ++r, out += runs[r - 1].length * PANEL) {
        const REAL *const from = padded + runs[r].offset;
        const int64_t length = runs[r].length;
        int i = 0;
        for (; step == 1 && i + 4 <= used; i += 4) {
            const REAL *const in[4] = {from + offsets[i], from + offsets[i + 1], from + offsets[i + 2], from + offsets[i + 3]};
            NAME(transpose_columns)(in, length, out + i);
        }
        for (; i < used; ++i)
            for (int64_t p = 0; p < length; ++p)
                out[p * PANEL + i] = from[offsets[i] + p * step];
        for (; i < PANEL; ++i)
            for (int64_t p = 0; p < length; ++p)
                out[p * PANEL + i] = 0;
    }
}

/* Rows [first, first + rows) of `small`, pixels [p, p + part) of each image one after the other, as panels. */
static void NAME(pack_rows)(const struct conv_geometry *g, const struct conv_images *images, int64_t first, int64_t rows, int64_t p,
                            int64_t part, REAL *out)
{
    const int64_t image = conv_volume(g->out), groups = (rows + GEMM_MICRO_ROWS - 1) / GEMM_MICRO_ROWS;
    int64_t row = 0;
    for (int64_t n = 0; n < groups; ++n) {
        const int r = (int)((rows - row + groups - n - 1) / (groups - n));
        for (int64_t i = 0; i < images->count; ++i, out += part * r)
            NAME(pack_panel)((const REAL *)images->small + i * images->small_step + (first + row) * image + p, REAL_DTYPE, image, 1,
                             r, r, part, out);
        row += r;
    }
}

static void NAME(weight_gradient)(const struct conv_geometry *g, const struct conv_images *images, void *partial_, int64_t first,
                                  int64_t columns, bool accumulate, void *scratch)
{
    REAL *const partial = partial_, *const panels = scratch, *const rows = panels + CONV_COLUMN_BLOCK * GEMM_DEPTH;
    const int64_t image = conv_volume(g->out), padded_step = g->channels * conv_volume(g->padded);
    for (int64_t p = 0; p < image; p += GEMM_DEPTH) {
        const int64_t part = image - p < GEMM_DEPTH ? image - p : GEMM_DEPTH, depth = part * images->count;
        struct NAME(run) runs[GEMM_DEPTH];
        int count = 0;
        for (int64_t i = 0; i < images->count; ++i) {
            const int more = NAME(pixel_runs)(g, p, part, runs + count);
            for (int r = count; r < count + more; ++r)
                runs[r].offset += i * padded_step;
            count += more;
        }
        for (int64_t j = 0; j < columns; j += PANEL)
            NAME(pack_columns)(g, images->padded, runs, count, first + j, columns - j < PANEL ? (int)(columns - j) : PANEL,
                               panels + j * depth);
        for (int64_t i = 0; i < g->rows; i += GEMM_BLOCK_ROWS) {
            const int64_t block = g->rows - i < GEMM_BLOCK_ROWS ? g->rows - i : GEMM_BLOCK_ROWS;
            NAME(pack_rows)(g, images, i, block, p, part, rows);
            NAME(multiply_block)(block, columns, depth, chain_of(depth), rows, panels,
                                 (struct NAME(target)){partial + i * columns, columns, accumulate || p > 0});
        }
    }
}

#undef NAME
