/* Tiles of views and strided copies. See tile.h. */
#include "aclnn/math/tile.h"

#include <string.h>

#include "aclnn/math/strided_loop.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

/* Calls visit for each run of elements along the last dimension inside [first, first + count). */
typedef void (*run_fn)(void *context, char *data, int64_t stride, int64_t done, int64_t n);

static void walk_runs(const struct view *v, int64_t first, int64_t count, run_fn visit, void *context)
{
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)v->dtype);
    if (v->contiguous || v->ndim <= 1) {
        const int64_t stride = v->contiguous || v->ndim == 0 ? 1 : v->strides[0];
        visit(context, v->data + first * stride * bytes, stride, 0, count);
        return;
    }
    const int last = v->ndim - 1;
    const int64_t row = v->sizes[last], stride = v->strides[last];
    int64_t outer = first / row, column = first - outer * row;
    for (int64_t done = 0; done < count; ++outer, column = 0) {
        const int64_t n = count - done < row - column ? count - done : row - column;
        const int64_t offset = walk_offset(outer, last, v->sizes, v->strides) + column * stride;
        visit(context, v->data + offset * bytes, stride, done, n);
        done += n;
    }
}

struct convert_run {
    char *tile;
    int64_t bytes;
    convert_load_fn load;
    convert_store_fn store;
};

static void load_run(void *context, char *data, int64_t stride, int64_t done, int64_t n)
{
    const struct convert_run *const c = context;
    c->load(c->tile + done * c->bytes, data, stride, n);
}

static void store_run(void *context, char *data, int64_t stride, int64_t done, int64_t n)
{
    const struct convert_run *const c = context;
    c->store(data, stride, c->tile + done * c->bytes, n);
}

convert_load_fn tile_loader(enum dtype in, enum accumulate type, enum dtype out)
{
    /* u8 takes the low bits of either; b8 is no sum. */
    const bool narrow = type == ACCUMULATE_I64 && (out == DTYPE_I32 || out == DTYPE_I16 || out == DTYPE_I8);
    return narrow && kernels->convert->load_narrow[in] ? kernels->convert->load_narrow[in] : kernels->convert->load[in][type];
}

void tile_read(void *tile, enum accumulate type, const struct view *v, int64_t first, int64_t count)
{
    struct convert_run c = {.tile = tile, .bytes = accumulate_bytes(type), .load = kernels->convert->load[v->dtype][type]};
    walk_runs(v, first, count, load_run, &c);
}

void tile_write(const struct view *v, int64_t first, int64_t count, const void *tile, enum accumulate type)
{
    struct convert_run c = {
        .tile = (char *)(uintptr_t)tile, .bytes = accumulate_bytes(type), .store = kernels->convert->store[v->dtype][type]};
    walk_runs(v, first, count, store_run, &c);
}

struct move_run {
    char *memory;
    int64_t bytes;
    move_fn move;
};

static void gather_run(void *context, char *data, int64_t stride, int64_t done, int64_t n)
{
    const struct move_run *const m = context;
    m->move(m->memory + done * m->bytes, 1, data, stride, n);
}

static void scatter_run(void *context, char *data, int64_t stride, int64_t done, int64_t n)
{
    const struct move_run *const m = context;
    m->move(data, stride, m->memory + done * m->bytes, 1, n);
}

void tile_gather(void *memory, const struct view *v, int64_t first, int64_t count)
{
    struct move_run m = {memory, (int64_t)dtype_bytes((enum dtype)v->dtype), kernels->index->move[move_size((enum dtype)v->dtype)]};
    walk_runs(v, first, count, gather_run, &m);
}

void tile_scatter(const struct view *v, int64_t first, int64_t count, const void *memory)
{
    struct move_run m = {(char *)(uintptr_t)memory, (int64_t)dtype_bytes((enum dtype)v->dtype),
                         kernels->index->move[move_size((enum dtype)v->dtype)]};
    walk_runs(v, first, count, scatter_run, &m);
}

/* --- strided copies ------------------------------------------------------------------------------------------------ */

/* Drops dimensions of size 1, merges neighbours that are regular in both operands. */
static void strided_copy_simplify(struct strided_copy *c)
{
    int used = 0;
    for (int i = 0; i < c->ndim; ++i) {
        if (c->sizes[i] == 1)
            continue;
        if (used > 0 && c->out_strides[used - 1] == c->out_strides[i] * c->sizes[i] &&
            c->in_strides[used - 1] == c->in_strides[i] * c->sizes[i]) {
            c->sizes[used - 1] *= c->sizes[i];
            c->out_strides[used - 1] = c->out_strides[i];
            c->in_strides[used - 1] = c->in_strides[i];
            continue;
        }
        c->sizes[used] = c->sizes[i];
        c->out_strides[used] = c->out_strides[i];
        c->in_strides[used++] = c->in_strides[i];
    }
    if (used == 0) {
        c->sizes[0] = c->out_strides[0] = c->in_strides[0] = 1;
        used = 1;
    }
    c->ndim = used;
}

enum { COPY_PIECE = 1 << 15 }; /* elements that one pool item moves, at least */

/* Rows [begin, end): positions in all dimensions but the last. */
static void copy_rows(void *argument, int64_t begin, int64_t end)
{
    const struct strided_copy *const c = argument;
    const int last = c->ndim - 1;
    const move_fn move = kernels->index->move[__builtin_ctz((unsigned)c->bytes)];
    for (int64_t row = begin; row < end; ++row)
        move(c->out + walk_offset(row, last, c->sizes, c->out_strides) * c->bytes, c->out_strides[last],
             c->in + walk_offset(row, last, c->sizes, c->in_strides) * c->bytes, c->in_strides[last], c->sizes[last]);
}

/* A copy of one long row. */
static void copy_piece(void *argument, int64_t begin, int64_t end)
{
    const struct strided_copy *const c = argument;
    kernels->index->move[__builtin_ctz((unsigned)c->bytes)](c->out + begin * c->out_strides[0] * c->bytes, c->out_strides[0],
                                                            c->in + begin * c->in_strides[0] * c->bytes, c->in_strides[0],
                                                            end - begin);
}

void strided_copy_run(struct strided_copy *c)
{
    int64_t rows = 1;
    for (int i = 0; i < c->ndim; ++i)
        if (c->sizes[i] == 0)
            return;
    strided_copy_simplify(c);
    for (int i = 0; i + 1 < c->ndim; ++i)
        rows *= c->sizes[i];
    if (c->ndim == 1) {
        pool_for(c->sizes[0], COPY_PIECE, copy_piece, c);
        return;
    }
    const int64_t grain = COPY_PIECE / c->sizes[c->ndim - 1];
    pool_for(rows, grain > 1 ? grain : 1, copy_rows, c);
}

struct convert_copy {
    const struct view *out, *in;
    enum accumulate type;
};

static void convert_piece(void *argument, int64_t begin, int64_t end)
{
    const struct convert_copy *const c = argument;
    char tile[TILE * 8];
    for (int64_t i = begin; i < end; i += TILE) {
        const int64_t n = end - i < TILE ? end - i : TILE;
        tile_read(tile, c->type, c->in, i, n);
        tile_write(c->out, i, n, tile, c->type);
    }
}

void view_copy(const struct view *out, const struct view *in)
{
    bool forwards = true;
    for (int d = 0; d < in->ndim; ++d)
        forwards &= in->strides[d] >= 0 && out->strides[d] >= 0;
    if (forwards) {
        copy_view(out, in);
        return;
    }
    if (out->dtype != in->dtype) {
        const enum accumulate type = accumulate_of((enum dtype)in->dtype);
        pool_for(in->count, COPY_PIECE, convert_piece, &(struct convert_copy){out, in, type});
        return;
    }
    struct strided_copy c = {.out = out->data, .in = in->data, .ndim = in->ndim, .bytes = (int)dtype_bytes((enum dtype)in->dtype)};
    for (int i = 0; i < in->ndim; ++i) {
        c.sizes[i] = in->sizes[i];
        c.out_strides[i] = out->strides[i];
        c.in_strides[i] = in->strides[i];
    }
    strided_copy_run(&c);
}

bool view_as_real(struct view *v)
{
    if (dtype_kind((enum dtype)v->dtype) != KIND_COMPLEX)
        return true;
    if (v->ndim >= TENSOR_MAX_DIMS)
        return false;
    for (int i = 0; i < v->ndim; ++i)
        v->strides[i] *= 2;
    v->sizes[v->ndim] = 2;
    v->strides[v->ndim++] = 1;
    v->dtype = v->dtype == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    view_refresh(v);
    return true;
}
