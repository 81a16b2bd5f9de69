/* Views: strides, broadcasting, overlap, coalescing. See tensor.h. */
#include "tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

void view_make_contiguous(struct view *v)
{
    int64_t stride = 1;
    for (int i = v->ndim - 1; i >= 0; --i) {
        v->strides[i] = stride;
        stride *= v->sizes[i] > 0 ? v->sizes[i] : 1;
    }
    view_refresh(v);
}

void view_refresh(struct view *v)
{
    int64_t count = 1;
    bool contiguous = true;
    for (int i = v->ndim - 1; i >= 0; --i) {
        contiguous &= v->sizes[i] == 1 || v->strides[i] == count;
        count *= v->sizes[i];
    }
    v->count = count;
    v->contiguous = contiguous || count == 0;
}

bool view_same_sizes(const struct view *a, const struct view *b)
{
    return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, a->ndim * sizeof a->sizes[0]) == 0;
}

enum { TEXTS = 8, TEXT_BYTES = 192 };

static void free_texts(void);
static _Thread_local char *texts; /* made on first use: static TLS is scarce */
static _Thread_local struct thread_cleanup texts_cleanup = {.run = free_texts};

static void free_texts(void)
{
    free(texts);
    texts = NULL;
}

const char *view_text(const struct view *v)
{
    static _Thread_local unsigned turn;
    static char no_memory[TEXT_BYTES];
    if (!texts) {
        texts = calloc(TEXTS, TEXT_BYTES);
        thread_at_exit(&texts_cleanup);
    }
    char *const text = texts ? texts + (size_t)(turn++ % TEXTS) * TEXT_BYTES : no_memory;
    int used = snprintf(text, TEXT_BYTES, "%s[", dtype_name((enum dtype)v->dtype));
    for (int i = 0; i < v->ndim && used < TEXT_BYTES - 2; ++i)
        used += snprintf(text + used, (size_t)(TEXT_BYTES - used), "%s%lld", i ? "," : "", (long long)v->sizes[i]);
    if (used < TEXT_BYTES - 1)
        snprintf(text + used, (size_t)(TEXT_BYTES - used), "]");
    return text;
}

bool view_broadcast_sizes(const struct view *a, const struct view *b, int64_t *sizes, uint8_t *ndim)
{
    const int n = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 0; i < n; ++i) {
        const int ia = i - (n - a->ndim), ib = i - (n - b->ndim);
        const int64_t sa = ia < 0 ? 1 : a->sizes[ia], sb = ib < 0 ? 1 : b->sizes[ib];
        if (sa != sb && sa != 1 && sb != 1)
            return false;
        sizes[i] = sa == 1 ? sb : sa;
    }
    *ndim = (uint8_t)n;
    return true;
}

bool view_expand(struct view *v, const int64_t *sizes, uint8_t ndim)
{
    if (v->ndim > ndim)
        return false;
    struct view wide = *v;
    wide.ndim = ndim;
    for (int i = 0; i < ndim; ++i) {
        const int from = i - (ndim - v->ndim);
        const int64_t size = from < 0 ? 1 : v->sizes[from];
        if (size != sizes[i] && size != 1)
            return false;
        wide.sizes[i] = sizes[i];
        wide.strides[i] = from < 0 || size != sizes[i] ? 0 : v->strides[from];
    }
    view_refresh(&wide);
    *v = wide;
    return true;
}

void view_range(const struct view *v, const char **first, const char **last)
{
    int64_t low = 0, high = 0;
    if (v->count == 0 || !v->data) {
        *first = *last = v->data;
        return;
    }
    for (int i = 0; i < v->ndim; ++i) {
        const int64_t reach = (v->sizes[i] - 1) * v->strides[i];
        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)v->dtype);
    *first = v->data + low * bytes;
    *last = v->data + (high + 1) * bytes;
}

bool view_overlaps(const struct view *a, const struct view *b)
{
    const char *a_first, *a_last, *b_first, *b_last;
    if (a->count == 0 || b->count == 0)
        return false;
    view_range(a, &a_first, &a_last);
    view_range(b, &b_first, &b_last);
    return a_first < b_last && b_first < a_last;
}

bool view_overlaps_itself(const struct view *v)
{
    if (v->count < 2 || v->contiguous)
        return false;
    /* Sorted by stride, each stride must step over everything that the smaller ones reach. Exact for all but interleaved
     * layouts, which it calls overlapping, as torch's own cheap test does. */
    int order[TENSOR_MAX_DIMS], n = 0;
    for (int i = 0; i < v->ndim; ++i)
        if (v->sizes[i] > 1)
            order[n++] = i;
    for (int i = 1; i < n; ++i)
        for (int k = i; k > 0 && v->strides[order[k]] < v->strides[order[k - 1]]; --k) {
            const int swap = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swap;
        }
    int64_t reach = 0;
    for (int i = 0; i < n; ++i) {
        if (v->strides[order[i]] <= reach)
            return true;
        reach += (v->sizes[order[i]] - 1) * v->strides[order[i]];
    }
    return false;
}

static void move_dim(struct view *views, int count, int to, int from)
{
    for (int k = 0; k < count; ++k) {
        views[k].sizes[to] = views[k].sizes[from];
        views[k].strides[to] = views[k].strides[from];
    }
}

/* Can dimension `outer` (walking outwards) be folded into `inner` for all views? */
static bool foldable(const struct view *views, int count, int outer, int inner)
{
    for (int k = 0; k < count; ++k)
        if (views[k].strides[outer] != views[k].strides[inner] * views[0].sizes[inner])
            return false;
    return true;
}

void views_coalesce(struct view *views, int count)
{
    const int ndim = views[0].ndim;
    int used = 0; /* dimensions kept so far, at the front; outermost first */
    for (int i = 0; i < ndim; ++i) {
        if (views[0].sizes[i] == 1)
            continue;
        if (used > 0 && foldable(views, count, used - 1, i)) {
            const int64_t merged = views[0].sizes[used - 1] * views[0].sizes[i];
            for (int k = 0; k < count; ++k) {
                views[k].sizes[used - 1] = merged;
                views[k].strides[used - 1] = views[k].strides[i];
            }
        } else {
            move_dim(views, count, used, i);
            ++used;
        }
    }
    for (int k = 0; k < count; ++k) {
        if (used == 0) {
            views[k].sizes[0] = 1;
            views[k].strides[0] = 1;
        }
        views[k].ndim = (uint8_t)(used ? used : 1);
        view_refresh(&views[k]);
    }
}

void view_swap_dims(struct view *v, int a, int b)
{
    const int64_t size = v->sizes[a], stride = v->strides[a];
    v->sizes[a] = v->sizes[b];
    v->strides[a] = v->strides[b];
    v->sizes[b] = size;
    v->strides[b] = stride;
}

void views_sort_by_stride(struct view *views, int count)
{
    const int ndim = views[0].ndim;
    for (int i = 1; i < ndim; ++i)
        for (int k = i; k > 0 && views[0].strides[k - 1] < views[0].strides[k]; --k)
            for (int j = 0; j < count; ++j)
                view_swap_dims(&views[j], k - 1, k);
    for (int k = 0; k < count; ++k)
        view_refresh(&views[k]);
}

int view_wrap_dim(int64_t dim, int ndim)
{
    const int64_t range = ndim > 0 ? ndim : 1;
    if (dim < -range || dim >= range)
        return -1;
    return (int)(dim < 0 ? dim + range : dim);
}
