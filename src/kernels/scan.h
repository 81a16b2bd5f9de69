/* Running sums, products and extremes over a tile.
 *
 * Invariant: strictly one element after the other, in f64 or i64, as torch's CPU does: no tree, so results don't depend on
 * where tiles are cut. */
#ifndef KERNELS_SCAN_H
#define KERNELS_SCAN_H

#include <stdint.h>

#include "kernels/convert.h"

enum scan { SCAN_sum, SCAN_prod, SCAN_COUNT };

/* tile[i] = carry op tile[0] op ... op tile[i]; *carry becomes the last one. */
typedef void (*scan_fn)(void *tile, int64_t n, void *carry);
/* Running extreme with the position of the latest element that equals it; NaN wins and stays. The first tile starts with
 * *where == -1; first is the position of tile[0]. */
typedef void (*scan_extreme_fn)(void *tile, int64_t *positions, int64_t n, int64_t first, void *best, int64_t *where);

struct scan_kernels {
    scan_fn row[SCAN_COUNT][ACCUMULATE_COUNT];    /* NULL for f32 */
    scan_extreme_fn extreme[2][ACCUMULATE_COUNT]; /* 0: max, 1: min */
};

#endif
