/* Sorting one line of a tensor by positions. Used by sort, topk, median, unique.
 *
 * Works in scratch of the calling thread (slots 1 and 2), so it may run in a pool body. */
#ifndef ACLNN_MATH_SORT_LINE_H
#define ACLNN_MATH_SORT_LINE_H

#include "kernels/sort.h"
#include "tensor/tensor.h"

struct sort_line {
    int64_t n;
    bool wide;               /* 64-bit keys */
    uint64_t *narrow_items;  /* not wide */
    struct sort_item *items; /* wide */
    void *spare;
    int64_t nan_count; /* of floats */
};

/* Takes the scratch and makes the keys of all elements of `line`, a real view, in row-major order. False: no memory. */
bool sort_line_begin(struct sort_line *s, const struct view *line, bool descending);
void sort_line_sort(struct sort_line *s);
/* The first k are sorted; the rest is in any order. */
void sort_line_sort_first(struct sort_line *s, int64_t k);
/* The k-th smallest goes to place k - 1, smaller ones before it. */
void sort_line_select(struct sort_line *s, int64_t k);

static inline int64_t sort_line_position(const struct sort_line *s, int64_t i)
{
    return (int64_t)(s->wide ? s->items[i].position : s->narrow_items[i] & UINT32_MAX);
}

static inline uint64_t sort_line_key(const struct sort_line *s, int64_t i)
{
    return s->wide ? s->items[i].key : s->narrow_items[i] >> 32;
}

#endif
