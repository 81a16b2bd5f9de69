/* Products of complex numbers. See complex_product.h. */
#include "aclnn/math/complex_product.h"

#include "aclnn/math/strided_loop.h"
#include "aclnn/math/tile.h"
#include "base/pool.h"

enum { ITEM = 1 << 14 };

struct product_work {
    struct view out, kept; /* of equal sizes; kept: the first factor of each result */
    struct view factors;   /* of one result, its data that of the first */
    bool running;
};

static complex64_pair times(complex64_pair x, complex64_pair y)
{
    return (complex64_pair){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

static void store(char *place, enum dtype dtype, complex64_pair value)
{
    if (dtype == DTYPE_C128)
        *(complex64_pair *)(void *)place = value;
    else
        *(complex32_pair *)(void *)place = (complex32_pair){(float)value.re, (float)value.im};
}

static char *place_of(const struct view *v, int64_t position)
{
    return v->data + walk_offset(position, v->ndim, v->sizes, v->strides) * (int64_t)dtype_bytes((enum dtype)v->dtype);
}

/* place: of the result, or with step != 0 of the first of the running ones, `step` bytes apart. */
static void multiply(const struct view *factors, char *place, int64_t step, enum dtype dtype)
{
    complex64_pair tile[LOOP_TILE], product = {1, 0};
    for (int64_t i = 0; i < factors->count; i += LOOP_TILE) {
        const int64_t n = factors->count - i < LOOP_TILE ? factors->count - i : LOOP_TILE;
        read_elements(factors, i, n, DTYPE_C128, tile);
        for (int64_t k = 0; k < n; ++k) {
            product = i + k == 0 ? tile[0] : times(product, tile[k]);
            if (step)
                store(place + (i + k) * step, dtype, product);
        }
    }
    if (!step)
        store(place, dtype, product);
}

static void multiply_range(void *argument, int64_t begin, int64_t end)
{
    const struct product_work *const w = argument;
    const enum dtype dtype = (enum dtype)w->out.dtype;
    for (int64_t result = begin; result < end; ++result) {
        struct view factors = w->factors;
        factors.data = place_of(&w->kept, result);
        if (w->running)
            multiply(&factors, place_of(&w->out, result), w->out.strides[w->out.ndim] * (int64_t)dtype_bytes(dtype), dtype);
        else
            multiply(&factors, place_of(&w->out, result), 0, dtype);
    }
}

static void append(struct view *v, const struct view *from, int d)
{
    v->sizes[v->ndim] = from->sizes[d];
    v->strides[v->ndim++] = from->strides[d];
}

static void run(struct product_work *w)
{
    if (w->kept.count > 0)
        pool_for(w->kept.count, 1 + ITEM / (1 + w->factors.count), multiply_range, w);
}

void complex_product(const struct view *out, const struct view *in, uint32_t mask)
{
    struct product_work w = {.out = *out, .kept = *in, .factors = *in};
    w.kept.ndim = w.factors.ndim = w.out.ndim = 0;
    for (int d = 0, k = 0; d < in->ndim; ++d) {
        const bool reduced = mask >> d & 1;
        append(reduced ? &w.factors : &w.kept, in, d);
        if (!reduced || out->ndim == in->ndim) { /* with keepdim the reduced ones are there, of size 1 */
            if (!reduced)
                append(&w.out, out, k);
            ++k;
        }
    }
    view_refresh(&w.kept);
    view_refresh(&w.factors);
    run(&w);
}

void complex_running_product(const struct view *out, const struct view *in, int dim)
{
    struct product_work w = {.out = *out, .kept = *in, .factors = *in, .running = true};
    w.kept.ndim = w.factors.ndim = w.out.ndim = 0;
    append(&w.factors, in, dim);
    for (int d = 0; d < in->ndim; ++d)
        if (d != dim) {
            append(&w.kept, in, d);
            append(&w.out, out, d);
        }
    w.out.strides[w.out.ndim] = out->strides[dim]; /* behind its dimensions: along the line */
    view_refresh(&w.kept);
    view_refresh(&w.factors);
    if (w.factors.count > 0)
        run(&w);
}
