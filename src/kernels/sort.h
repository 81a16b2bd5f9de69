/* Sorting of lines: elements become unsigned keys that sort as torch orders them (NaN above all, -0 equal to 0; complemented
 * for a descending order), with their positions beside them.
 *
 * Invariant: positions differ, so (key, position) is a total order: every sort is stable, and every result is unique. Types of
 * at most 32 bits pack both into one word ("narrow": key above, position below; lines of less than 2^32 elements). */
#ifndef KERNELS_SORT_H
#define KERNELS_SORT_H

#include <stdint.h>

struct sort_item {
    uint64_t key, position;
};

struct sort_kernels {
    /* Keys of n tile values; the first one has position `first`. */
    void (*keys_f32)(uint64_t *items, const float *tile, int64_t first, int64_t n, int descending);
    void (*keys_i32)(uint64_t *items, const int64_t *tile, int64_t first, int64_t n, int descending);
    void (*keys_f64)(struct sort_item *items, const double *tile, int64_t first, int64_t n, int descending);
    void (*keys_i64)(struct sort_item *items, const int64_t *tile, int64_t first, int64_t n, int descending);
    /* Items whose positions are in order; spare: as large as items. */
    void (*sort_narrow)(uint64_t *items, uint64_t *spare, int64_t n);
    void (*sort_wide)(struct sort_item *items, struct sort_item *spare, int64_t n);
    /* The k smallest, sorted, into best; for small k: each newcomer is moved to its place. 1 <= k <= n. */
    void (*few_narrow)(uint64_t *best, int64_t k, const uint64_t *items, int64_t n);
    /* Brings the k smallest to the front, in any order, the k-th smallest to items[k - 1]; 1 <= k <= n. */
    void (*select_narrow)(uint64_t *items, uint64_t *spare, int64_t n, int64_t k);
    void (*select_wide)(struct sort_item *items, struct sort_item *spare, int64_t n, int64_t k);
};

#endif
