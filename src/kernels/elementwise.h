/* Elementwise kernels on contiguous tiles. */
#ifndef KERNELS_ELEMENTWISE_H
#define KERNELS_ELEMENTWISE_H

#include <stddef.h>

#include "base/dtype.h"

enum binary_kernel_id { BINARY_add, BINARY_mul, BINARY_COUNT };

/* out[i] = a[i] op b[i]; out may equal a or b, other overlaps are the caller's to avoid. */
typedef void (*binary_kernel_fn)(void *out, const void *a, const void *b, size_t n);

struct elementwise_kernels {
    binary_kernel_fn binary[BINARY_COUNT][DTYPE_COUNT]; /* NULL: not for this type */
};

#endif
