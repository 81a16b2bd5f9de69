/* Dropout kernels: random keep masks, packed (bit i of element i, lowest first) or one byte an element, and their use.
 *
 * Invariant: element i's bit depends on (seed, offset, probability, i) alone: word i % 4 of philox(seed, i / 4, offset / 4). */
#ifndef KERNELS_DROPOUT_H
#define KERNELS_DROPOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/convert.h"

/* Dropped when the random word is below threshold (probability * 2^32). */
struct dropout_mask {
    uint64_t seed, counter;
    uint32_t threshold;
};

enum { DROPOUT_BLOCK = 1024 }; /* elements of a block; masks are made by whole blocks but the last */

struct dropout_kernels {
    /* first: a multiple of DROPOUT_BLOCK; n: elements, the bits past them become 0 up to a whole byte. */
    void (*bits)(const struct dropout_mask *m, int64_t first, int64_t n, uint8_t *bits);
    void (*bytes)(const struct dropout_mask *m, int64_t first, int64_t n, uint8_t *bytes);
    /* out[i] = x[i] * (kept ? scale : 0); bits start at a whole byte. */
    void (*apply_bits[ACCUMULATE_COUNT])(const void *x, const uint8_t *bits, double scale, void *out, int64_t n);
    void (*apply_bytes[ACCUMULATE_COUNT])(const void *x, const uint8_t *bytes, double scale, void *out, int64_t n);
};

#endif
