/* Kernels on volumes and planes: maxima of windows, and the columns of windows that im2col lays out.
 *
 * Invariant: maxima follow torch: the first maximum wins, a NaN wins over everything before it; positions count through the volume. */
#ifndef KERNELS_VOLUME_H
#define KERNELS_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/convert.h"

enum { VOLUME_AXES = 3 };

struct volume_shape { /* outermost first; planes have a first size of 1 */
    int64_t in[VOLUME_AXES], out[VOLUME_AXES];
    int64_t kernel[VOLUME_AXES], stride[VOLUME_AXES], pad[VOLUME_AXES], dilation[VOLUME_AXES];
    bool adaptive; /* windows of nearly equal size that cover the volume; only the sizes count */
};

struct volume_float_kernels {
    void (*max)(const void *in, const struct volume_shape *s, void *out, int32_t *index);
    /* din[index[i]] += dout[i] after it was zeroed; indices outside are skipped and counted */
    int64_t (*scatter)(const void *dout, const int64_t *index, int64_t n, void *din, int64_t size, bool add);
    /* columns[kernel][out] of one plane (the last two axes): elements outside are 0 */
    void (*unfold)(const void *in, const struct volume_shape *s, void *columns);
    /* the sum that unfold's gradient is; writes the whole plane */
    void (*fold)(const void *columns, const struct volume_shape *s, void *out);
};

struct volume_kernels {
    struct volume_float_kernels real[ACCUMULATE_COUNT];
};

#endif
