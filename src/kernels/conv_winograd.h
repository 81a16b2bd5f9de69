/* Winograd's F(2x2, 3x3) and F(4x4, 3x3) for 3 x 3 convolutions of stride 1 in f32: 16 products where the direct form has 36,
 * and 36 where it has 144.
 *
 * Rounding of F(2x2) is at the direct kernel's level. F(4x4) has about three times its error, and relative to the largest of a
 * tile's 36 pixels: each enters all results of the tile and cancels up to rounding. Values beyond WINOGRAD_LARGEST could
 * overflow, infinities and NaN would spread within a tile: such images and filters are refused, and the caller takes the direct
 * kernel. Layouts inside (L = lanes, P = 16 or 36 planes): V [P][channels / L][tile][L],
 * U [P][rows / 2L][channels][2L], sizes rounded up with zeros. */
#ifndef KERNELS_CONV_WINOGRAD_H
#define KERNELS_CONV_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WINOGRAD_LARGEST 1e14f

struct winograd_shape {
    int64_t tile;           /* 2: F(2x2, 3x3), 4: F(4x4, 3x3) */
    int64_t channels, rows; /* of the image, and of the result */
    int64_t height, width, out_height, out_width;
    int64_t pad_height, pad_width; /* zeros before the image; >= 0 */
};

/* Images of one shape, images_together of them at most. smalls (gradients of results): gradient's; outs: correlate's. */
struct winograd_batch {
    int64_t count;
    const float *const *images, *const *smalls;
    float *const *outs;
};
enum { WINOGRAD_MOST_IMAGES = 64 };

struct conv_winograd_kernels {
    /* Elements of U (and of a partial sum of its gradient). */
    int64_t (*filter_elements)(const struct winograd_shape *s);
    size_t (*scratch_bytes)(const struct winograd_shape *s);
    /* Images of a call: tiles of small ones are worth the way of U through the caches only together. */
    int64_t (*images_together)(const struct winograd_shape *s);
    /* Are all values small enough? */
    bool (*moderate)(const float *values, int64_t n);
    /* The part of U of rows [panel * row_unit ...) from [rows][channels][3][3]; false: values too large. */
    bool (*filters)(const struct winograd_shape *s, const float *matrix, int64_t panel, float *u);
    /* The images must be moderate. */
    void (*correlate)(const struct winograd_shape *s, const struct winograd_batch *batch, const float *u, const float *bias,
                      void *scratch);
    /* du (+)= gradient of U, for rows [first, first + panels) * row_unit; false: values too large, nothing was added. */
    bool (*gradient)(const struct winograd_shape *s, const struct winograd_batch *batch, int64_t first, int64_t panels, float *du,
                     bool accumulate, void *scratch);
    /* Panels whose part of du stays in the second-level cache together with what is multiplied into it. */
    int64_t (*gradient_panels)(const struct winograd_shape *s);
    /* Rows [panel * row_unit ...) of the weights' gradient from the sum of `blocks` partial sums. */
    void (*finish)(const struct winograd_shape *s, const float *du, int64_t blocks, int64_t panel, float *gradient);
    int64_t row_unit;
};

#endif
