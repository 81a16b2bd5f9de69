/* Sorting one line of a tensor. See sort_line.h. */
#include "aclnn/math/sort_line.h"

#include <stdlib.h>
#include <string.h>

#include "aclnn/math/tile.h"
#include "base/pool.h"
#include "kernels/kernels.h"

enum { FEW = 64 }; /* so many are picked out one by one */

static bool is_wide(const struct view *line)
{
    return line->dtype == DTYPE_F64 || line->dtype == DTYPE_I64 || line->count > UINT32_MAX;
}

static int64_t count_nans(const double *tile, enum accumulate type, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n && type != ACCUMULATE_I64; ++i)
        if (type == ACCUMULATE_F64)
            count += tile[i] != tile[i];
        else
            count += ((const float *)(const void *)tile)[i] != ((const float *)(const void *)tile)[i];
    return count;
}

bool sort_line_begin(struct sort_line *s, const struct view *line, bool descending)
{
    *s = (struct sort_line){.n = line->count, .wide = is_wide(line)};
    const size_t bytes = (size_t)(line->count + 1) * (s->wide ? sizeof(struct sort_item) : sizeof(uint64_t));
    void *const items = pool_scratch(1, bytes);
    s->spare = pool_scratch(2, bytes);
    if (!items || !s->spare)
        return false;
    s->items = items;
    s->narrow_items = items;
    enum accumulate type = accumulate_of((enum dtype)line->dtype);
    if (s->wide && type == ACCUMULATE_F32)
        type = ACCUMULATE_F64;
    double tile[TILE];
    const int64_t *const integers = (const int64_t *)(const void *)tile;
    for (int64_t i = 0; i < s->n; i += TILE) {
        const int64_t n = s->n - i < TILE ? s->n - i : TILE;
        tile_read(tile, type, line, i, n);
        s->nan_count += count_nans(tile, type, n);
        if (s->wide && type == ACCUMULATE_F64)
            kernels->sort->keys_f64(s->items + i, tile, i, n, descending);
        else if (s->wide)
            kernels->sort->keys_i64(s->items + i, integers, i, n, descending);
        else if (type == ACCUMULATE_F32)
            kernels->sort->keys_f32(s->narrow_items + i, (const float *)(const void *)tile, i, n, descending);
        else
            kernels->sort->keys_i32(s->narrow_items + i, integers, i, n, descending);
    }
    return true;
}

void sort_line_sort(struct sort_line *s)
{
    if (s->wide)
        kernels->sort->sort_wide(s->items, s->spare, s->n);
    else
        kernels->sort->sort_narrow(s->narrow_items, s->spare, s->n);
}

void sort_line_select(struct sort_line *s, int64_t k)
{
    if (s->wide)
        kernels->sort->select_wide(s->items, s->spare, s->n, k);
    else
        kernels->sort->select_narrow(s->narrow_items, s->spare, s->n, k);
}

/* By comparison: after a selection the positions aren't in order any more, which the radix sort would need. */
static int compare_narrow(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int compare_wide(const void *a, const void *b)
{
    const struct sort_item *const x = a, *const y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

void sort_line_sort_first(struct sort_line *s, int64_t k)
{
    if (k == 0)
        return;
    if (!s->wide && k <= FEW) {
        uint64_t *const best = s->spare;
        kernels->sort->few_narrow(best, k, s->narrow_items, s->n);
        memcpy(s->narrow_items, best, (size_t)k * sizeof *best);
        return;
    }
    if (k > s->n / 8) {
        sort_line_sort(s);
        return;
    }
    sort_line_select(s, k);
    if (s->wide)
        qsort(s->items, (size_t)k, sizeof *s->items, compare_wide);
    else
        qsort(s->narrow_items, (size_t)k, sizeof *s->narrow_items, compare_narrow);
}
