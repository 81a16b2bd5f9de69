/* Reductions over tiles (see convert.h for the tile types).
 *
 * Invariant: the order of operations is written down here and nowhere depends on the vector length: REDUCE_LANE_BYTES of
 * accumulators take turns, then halve. All ISAs agree bit for bit. Max and min let NaN win; ties keep the earlier element. */
#ifndef KERNELS_REDUCE_H
#define KERNELS_REDUCE_H

#include <stdint.h>

#include "kernels/convert.h"

enum fold { FOLD_sum, FOLD_prod, FOLD_max, FOLD_min, FOLD_COUNT };

/* What happens to each element before it is folded. */
enum map {
    MAP_none,
    MAP_abs,
    MAP_square,
    MAP_nonzero,   /* 1 or 0; NaN is not zero */
    MAP_power,     /* |x| ** parameter */
    MAP_deviation, /* (x - center) ** 2 */
    MAP_exp,       /* exp(x - center) */
    MAP_nan_to_zero,
    MAP_COUNT
};

enum { REDUCE_LANE_BYTES = 256 };

/* *out = fold of n contiguous values; the identity when n is 0. */
typedef void (*fold_row_fn)(void *out, const void *tile, int64_t n);
/* sums[c] = fold of rows[0..count)[c], first row first; count >= 1. stride: elements from row to row. */
typedef void (*fold_columns_fn)(void *sums, const void *rows, int64_t stride, int64_t count, int64_t columns);
/* a[i] = fold(a[i], b[i]) */
typedef void (*fold_pair_fn)(void *a, const void *b, int64_t n);
/* tile[i] = map(tile[i]); center is one value (step 0) or n values (step 1). */
typedef void (*map_fn)(void *tile, int64_t n, double parameter, const void *center, int step);
/* Position of the first element that equals value (NaN equals NaN), n when there is none. */
typedef int64_t (*find_fn)(const void *tile, int64_t n, const void *value);
/* Takes the row into best where it wins; position is what winners get in `where`. */
typedef void (*arg_columns_fn)(void *best, int64_t *where, const void *row, int64_t position, int64_t columns);

struct reduce_kernels {
    fold_row_fn row[FOLD_COUNT][ACCUMULATE_COUNT];
    fold_columns_fn columns[FOLD_COUNT][ACCUMULATE_COUNT];
    fold_pair_fn pair[FOLD_COUNT][ACCUMULATE_COUNT];
    map_fn map[MAP_COUNT][ACCUMULATE_COUNT]; /* NULL for none, and where the type has no such map */
    find_fn find[ACCUMULATE_COUNT];
    arg_columns_fn arg_columns[FOLD_COUNT][ACCUMULATE_COUNT]; /* max and min only */
};

#endif
