/* Pooling kernels: one plane (image of one channel) a call. Indices are positions in the input plane, row * width + column.
 *
 * Invariant: max pooling follows torch: the first maximum wins, a NaN wins over everything before it. */
#ifndef KERNELS_POOL_H
#define KERNELS_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/convert.h"

struct pool_shape {
    int64_t in_height, in_width, out_height, out_width;
    int64_t kernel_height, kernel_width, stride_height, stride_width;
    int64_t pad_height, pad_width, dilation_height, dilation_width;
    int64_t divisor; /* average: 0 = the number of elements */
    bool count_padding;
};

struct pool_float_kernels {
    void (*max)(const void *in, const struct pool_shape *shape, void *out, int32_t *index);
    /* Writes the whole of din. */
    void (*max_backward)(const void *dout, const int32_t *index, const struct pool_shape *shape, void *din);
    void (*average)(const void *in, const struct pool_shape *shape, void *out);
    void (*average_backward)(const void *dout, const struct pool_shape *shape, void *din);
    /* Windows of nearly equal size that cover the plane; only the sizes of shape count. */
    void (*adaptive)(const void *in, const struct pool_shape *shape, void *out);
    void (*adaptive_backward)(const void *dout, const struct pool_shape *shape, void *din);
    /* Its gradient is max_backward with a kernel size of 0. */
    void (*adaptive_max)(const void *in, const struct pool_shape *shape, void *out, int32_t *index);
};

struct pool_kernels {
    struct pool_float_kernels real[ACCUMULATE_COUNT];
    void (*widen_index)(const int32_t *in, int64_t *out, int64_t n);
    void (*narrow_index)(const int64_t *in, int32_t *out, int64_t n);
};

#endif
