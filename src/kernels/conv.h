/* Convolution kernels: one image (of one group) a call, as matrix products over patches that are packed on the fly.
 *
 * Two primitives serve all directions and dimensions (1-D and 2-D have leading sizes of 1):
 *   correlate        out[row][pixel] = sum over (channel, tap) of matrix[row][channel, tap] * padded[channel][pixel * stride + tap]
 *   weight_gradient  partial[row][channel, tap] (+)= sum over pixels of small[row][pixel] * padded[channel][pixel * stride + tap]
 * The gradient of the input (and the transposed convolution) is a correlation of the zero-interleaved output gradient with the
 * rotated weights. */
#ifndef KERNELS_CONV_H
#define KERNELS_CONV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/convert.h"

struct conv_geometry {
    int64_t channels, rows; /* of one group */
    /* (depth, height, width): source sizes; distance of source elements in the padded image; zeros before them (negative: cut
     * off); sizes of the padded image; kernel sizes; distance of taps; distance of pixels; sizes of the result */
    int64_t in[3], insert[3], pad[3], padded[3], taps[3], dilation[3], stride[3], out[3];
};

/* Images whose weight gradients are summed in one call: padded ones lie one after the other, results small_step apart. */
struct conv_images {
    const void *padded, *small;
    int64_t count, small_step;
};

static inline int64_t conv_volume(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* How many images a call of weight_gradient should get: small ones only fill the kernel's depth together. */
enum { CONV_PIXELS_TOGETHER = 256 };
static inline int64_t conv_images_together(const struct conv_geometry *g)
{
    const int64_t pixels = conv_volume(g->out);
    return pixels > 0 && pixels <= CONV_PIXELS_TOGETHER / 2 ? CONV_PIXELS_TOGETHER / pixels : 1;
}

/* Few channels and rows, as of depthwise convolutions: products of matrices would be mostly packing. */
enum { CONV_THIN_PRODUCTS = 4, CONV_THIN_DEPTH = 256, CONV_THIN_STRIDE = 16 };
static inline bool conv_is_thin(const struct conv_geometry *g)
{
    const int64_t depth = g->channels * conv_volume(g->taps);
    return g->channels * g->rows <= CONV_THIN_PRODUCTS && depth <= CONV_THIN_DEPTH && g->stride[2] <= CONV_THIN_STRIDE;
}

struct conv_float_kernels {
    /* A row-major [rows][depth] matrix into panels; packed has rows * depth elements. */
    void (*pack_matrix)(const void *matrix, int64_t rows, int64_t depth, void *packed);
    /* padded: channels * volume(padded) elements. */
    void (*pad)(const struct conv_geometry *g, const void *image, void *padded);
    /* Pixels [first, first + pixels), first a multiple of pixel_block; bias: one a row or NULL. */
    void (*correlate)(const struct conv_geometry *g, const void *padded, const void *packed, const void *bias, void *out,
                      int64_t first, int64_t pixels, void *scratch);
    /* Columns [first, first + columns) of [rows][channels * taps], first a multiple of column_unit, columns <= column_block.
     * partial: [rows][columns]. */
    void (*weight_gradient)(const struct conv_geometry *g, const struct conv_images *images, void *partial, int64_t first,
                            int64_t columns, bool accumulate, void *scratch);
    /* The same of a whole image, for thin geometries; the matrix isn't packed, and behind the padded image a vector may be read. */
    void (*thin_correlate)(const struct conv_geometry *g, const void *padded, const void *matrix, const void *bias, void *out);
    void (*thin_gradient)(const struct conv_geometry *g, const void *padded, const void *small, void *partial, bool accumulate);
};

struct conv_kernels {
    struct conv_float_kernels real[ACCUMULATE_COUNT]; /* f64 and f32 */
    int64_t pixel_block, column_unit, column_block;
    size_t scratch_bytes; /* 64-byte aligned */
};

#endif
