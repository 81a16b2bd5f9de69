/* Moving elements: strided copies, gathers and scatters by element size, additions by element type.
 *
 * Invariant: the loops run in element order, so of several writes to one place the last wins, and sums grow in that order. */
#ifndef KERNELS_INDEX_H
#define KERNELS_INDEX_H

#include <stdint.h>

#include "base/dtype.h"

enum { MOVE_SIZES = 5 }; /* elements of 1, 2, 4, 8, 16 bytes, by log2 */

static inline int move_size(enum dtype d) { return __builtin_ctz((unsigned)dtype_bytes(d)); }

/* out[i * out_stride] = in[i * in_stride] */
typedef void (*move_fn)(void *out, int64_t out_stride, const void *in, int64_t in_stride, int64_t n);
/* out[i * out_stride] = in[i * in_stride + index[i] * step] */
typedef void (*gather_fn)(void *out, int64_t out_stride, const void *in, int64_t in_stride, const int64_t *index, int64_t step,
                          int64_t n);
/* out[i * out_stride + index[i] * step] op= in[i * in_stride] */
typedef void (*scatter_fn)(void *out, int64_t out_stride, const void *in, int64_t in_stride, const int64_t *index, int64_t step,
                           int64_t n);
/* out[i * out_stride] op= in[i * in_stride] */
typedef void (*update_fn)(void *out, int64_t out_stride, const void *in, int64_t in_stride, int64_t n);

enum update { UPDATE_add, UPDATE_mul, UPDATE_max, UPDATE_min, UPDATE_COUNT };

/* Is any of n indices outside [0, size)? */
typedef int (*outside_fn)(const int64_t *index, int64_t n, int64_t size);
/* offsets[i] (+)= index * stride, where negative indices count from the end if `wrap`. Returns whether any was out of range. */
typedef int (*offsets_fn)(int64_t *offsets, const int64_t *index, int64_t n, int64_t size, int64_t stride, int wrap, int adds);

struct index_kernels {
    outside_fn outside;
    offsets_fn offsets;
    move_fn move[MOVE_SIZES];
    gather_fn gather[MOVE_SIZES];
    scatter_fn scatter[MOVE_SIZES];
    update_fn update[UPDATE_COUNT][DTYPE_ALL_COUNT]; /* NULL: a type that is only stored */
    scatter_fn scatter_update[UPDATE_COUNT][DTYPE_ALL_COUNT];
};

#endif
