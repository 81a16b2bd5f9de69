/* Elementwise loops over strided operands. See strided_loop.h. */
#include "aclnn/math/strided_loop.h"

#include <string.h>

#include "base/arithmetic.h"
#include "base/pool.h"

enum {
    ELEMENT_BYTES = 16, /* of the largest type */
    TILE_BYTES = LOOP_TILE * ELEMENT_BYTES,
    LONG_ROW = 128 /* rows at least this long are worked on one by one, in place */
};

const struct elementwise_info elementwise_infos[ELEMENTWISE_COUNT] = {
#define OP(name_, inputs_, result_, cost_) \
    [ELEMENTWISE_##name_] = {.name = #name_, .inputs = (inputs_), .result = RESULT_##result_, .cost = (cost_)},
#include "kernels/elementwise.def"
};

static int size_index(size_t bytes) { return __builtin_ctzll(bytes); }

void convert_elements(void *out, enum dtype to, const void *in, enum dtype from, int64_t n)
{
    if (to == from) {
        memmove(out, in, (size_t)n * dtype_bytes(to));
        return;
    }
    const cast_convert_fn direct = kernels->cast->convert[to][from];
    if (direct) {
        direct(out, in, (size_t)n);
        return;
    }
    float middle[LOOP_TILE];
    char *to_bytes = out;
    const char *from_bytes = in;
    while (n > 0) {
        const int64_t step = n < LOOP_TILE ? n : LOOP_TILE;
        kernels->cast->convert[DTYPE_F32][from](middle, from_bytes, (size_t)step);
        convert_elements(to_bytes, to, middle, DTYPE_F32, step);
        to_bytes += (size_t)step * dtype_bytes(to);
        from_bytes += (size_t)step * dtype_bytes(from);
        n -= step;
    }
}

/* --- building ------------------------------------------------------------------------------------------------------ */

void loop_begin_with(struct strided_loop *loop, elementwise_fn run, int cost)
{
    loop->run = run;
    loop->grain = loop_grain(cost);
    loop->operand_count = 0;
    loop->check = NULL;
}

void loop_begin(struct strided_loop *loop, enum elementwise_id kernel, enum dtype compute)
{
    if (kernel == ELEMENTWISE_COUNT)
        loop_begin_with(loop, NULL, 1);
    else
        loop_begin_with(loop, kernels->elementwise->run[kernel][compute], elementwise_infos[kernel].cost);
}

void loop_add(struct strided_loop *loop, const struct view *view, enum dtype kernel_dtype)
{
    const int i = loop->operand_count++;
    struct loop_operand *const o = &loop->operands[i];
    loop->views[i] = *view;
    o->data = view->data;
    o->dtype = view->dtype;
    o->kernel_dtype = (uint8_t)kernel_dtype;
    o->through = DTYPE_NONE;
    o->read = i > 0;
    o->written = i == 0;
}

void loop_round_through(struct strided_loop *loop, enum dtype half)
{
    loop->operands[loop->operand_count - 1].through = (uint8_t)half;
}

void loop_add_updated(struct strided_loop *loop, const struct view *view, enum dtype kernel_dtype)
{
    loop_add(loop, view, kernel_dtype);
    struct loop_operand *const o = &loop->operands[loop->operand_count - 1];
    o->read = o->written = true;
}

void loop_add_constant(struct strided_loop *loop, enum dtype value_dtype, union elementwise_scalar value, enum dtype kernel_dtype)
{
    const int i = loop->operand_count;
    loop->constants[i] = value;
    const struct view scalar = {.data = (char *)&loop->constants[i], .count = 1, .dtype = (uint8_t)value_dtype, .contiguous = true};
    loop_add(loop, &scalar, kernel_dtype);
}

/* Where do the kernel's elements of operand i come from or go to? Wants the coalesced views. */
static void operand_ready(struct strided_loop *loop, int i)
{
    struct loop_operand *const o = &loop->operands[i];
    const struct view *const v = &loop->views[i];
    bool all_zero = !o->written;
    for (int d = 0; d < loop->ndim; ++d) {
        o->strides[d] = v->strides[d];
        all_zero &= v->strides[d] == 0 || v->sizes[d] == 1;
    }
    o->constant = all_zero;
    o->linear = !all_zero && v->contiguous;
    o->direct = !all_zero && o->dtype == o->kernel_dtype && (v->contiguous || v->strides[loop->ndim - 1] == 1);
}

/* The common case needs no sorting: every view is dense in the same order, or a single element. Makes it one long row. */
static bool flatten(struct strided_loop *loop)
{
    struct view *const views = loop->views;
    const int64_t count = views[0].count;
    for (int i = 0; i < loop->operand_count; ++i)
        if (!views[i].contiguous || (views[i].count != 1 && !view_same_sizes(&views[0], &views[i])) ||
            (views[i].count == 1 && (loop->operands[i].written ? count != 1 : views[i].ndim > views[0].ndim)))
            return false;
    for (int i = 0; i < loop->operand_count; ++i) {
        views[i].strides[0] = views[i].count == 1 && count != 1 ? 0 : 1;
        views[i].contiguous = views[i].strides[0] == 1;
        views[i].sizes[0] = views[i].count = count;
        views[i].ndim = 1;
    }
    return true;
}

static bool coalesce(struct strided_loop *loop)
{
    struct view *const views = loop->views;
    for (int i = 1; i < loop->operand_count; ++i)
        if (!view_expand(&views[i], views[0].sizes, views[0].ndim))
            return false;
    if (loop->count == 0)
        return true;
    views_coalesce(views, loop->operand_count);
    if (views[0].ndim > 1) {
        views_sort_by_stride(views, loop->operand_count);
        views_coalesce(views, loop->operand_count);
    }
    return true;
}

/* Half of what fits is enough to make the calls for a tile cheap, and leaves the nearest cache to more operands. */
static int64_t tile_elements(const struct strided_loop *loop)
{
    size_t widest = 1;
    for (int i = 0; i < loop->operand_count; ++i) {
        const struct loop_operand *const o = &loop->operands[i];
        const size_t outside = dtype_bytes((enum dtype)o->dtype), inside = dtype_bytes((enum dtype)o->kernel_dtype);
        widest = outside > widest && !o->constant ? outside : widest;
        widest = inside > widest ? inside : widest;
    }
    const int64_t elements = (int64_t)(TILE_BYTES / 2 / widest);
    return elements > LOOP_TILE ? elements : LOOP_TILE;
}

static void loop_adopt_shape(struct strided_loop *loop)
{
    loop->ndim = loop->views[0].ndim;
    memcpy(loop->sizes, loop->views[0].sizes, sizeof loop->sizes);
}

bool loop_ready(struct strided_loop *loop)
{
    loop->count = loop->views[0].count;
    if (!flatten(loop) && !coalesce(loop))
        return false;
    if (loop->count == 0)
        return true;
    loop_adopt_shape(loop);
    bool all_linear = true;
    for (int i = 0; i < loop->operand_count; ++i) {
        operand_ready(loop, i);
        all_linear &= loop->operands[i].linear || loop->operands[i].constant;
    }
    loop->by_rows = !all_linear && loop->sizes[loop->ndim - 1] >= LONG_ROW;
    loop->tiled = false;
    loop->tile = tile_elements(loop);
    for (int i = 0; i < loop->operand_count; ++i) {
        struct loop_operand *const o = &loop->operands[i];
        o->direct &= o->linear || loop->by_rows;
        loop->tiled |= !o->direct;
    }
    /* A copy reads straight into the output's memory; only gathering with conversion needs a tile on the way. */
    if (!loop->run) {
        const struct loop_operand *const in = &loop->operands[1];
        loop->tiled = !loop->operands[0].direct || !(in->constant || in->linear || in->dtype == in->kernel_dtype);
    }
    return true;
}

/* --- moving rows --------------------------------------------------------------------------------------------------- */

struct position {
    int64_t index[TENSOR_MAX_DIMS];
    int64_t offset; /* elements, of one operand */
};

static int64_t offset_at(const struct strided_loop *loop, const struct loop_operand *o, const int64_t *index)
{
    int64_t offset = 0;
    for (int d = 0; d < loop->ndim; ++d)
        offset += index[d] * o->strides[d];
    return offset;
}

static void split_index(const struct strided_loop *loop, int64_t element, int64_t *index)
{
    for (int d = loop->ndim - 1; d > 0; --d) {
        index[d] = element % loop->sizes[d];
        element /= loop->sizes[d];
    }
    index[0] = element;
}

static void index_advance(const struct strided_loop *loop, int64_t *index, int64_t n)
{
    int d = loop->ndim - 1;
    index[d] += n;
    while (d > 0 && index[d] >= loop->sizes[d]) {
        const int64_t carry = index[d] / loop->sizes[d];
        index[d] -= carry * loop->sizes[d];
        index[--d] += carry;
    }
}

/* To the next row: only the innermost index has run out, by nothing more. */
static void next_row(const struct strided_loop *loop, const struct loop_operand *o, struct position *at)
{
    for (int d = loop->ndim - 1; d > 0 && at->index[d] == loop->sizes[d]; --d) {
        at->offset -= o->strides[d] * loop->sizes[d];
        at->index[d] = 0;
        ++at->index[d - 1];
        at->offset += o->strides[d - 1];
    }
}

static void gather_row(void *out, const char *in, int64_t stride, size_t bytes, int64_t n)
{
    if (stride == 1)
        memmove(out, in, (size_t)n * bytes);
    else if (stride == 0)
        kernels->cast->fill[size_index(bytes)](out, in, (size_t)n);
    else
        kernels->cast->gather[size_index(bytes)](out, in, stride, (size_t)n);
}

static void gather_rows(const struct strided_loop *loop, const struct loop_operand *o, const int64_t *index, int64_t n, char *out)
{
    const int last = loop->ndim - 1;
    const size_t bytes = dtype_bytes((enum dtype)o->dtype);
    struct position at;
    memcpy(at.index, index, sizeof at.index);
    at.offset = offset_at(loop, o, index);
    while (n > 0) {
        const int64_t left = loop->sizes[last] - at.index[last], run = n < left ? n : left;
        if (last > 0 && o->strides[last] == 1 && at.index[last] == 0 && n >= 2 * left) { /* whole rows together */
            const int64_t below = loop->sizes[last - 1] - at.index[last - 1], rows = n / left < below ? n / left : below;
            const size_t row_bytes = (size_t)left * bytes;
            kernels->cast->copy_rows(out, o->data + at.offset * (int64_t)bytes, o->strides[last - 1] * (int64_t)bytes, row_bytes,
                                     (size_t)rows);
            out += (size_t)rows * row_bytes;
            n -= rows * left;
            at.index[last] = left;
            at.index[last - 1] += rows - 1;
            at.offset += (rows - 1) * o->strides[last - 1] + left;
            next_row(loop, o, &at);
            continue;
        }
        gather_row(out, o->data + at.offset * (int64_t)bytes, o->strides[last], bytes, run);
        out += (size_t)run * bytes;
        n -= run;
        at.index[last] += run;
        at.offset += run * o->strides[last];
        next_row(loop, o, &at);
    }
}

static void scatter_rows(const struct strided_loop *loop, const struct loop_operand *o, const int64_t *index, int64_t n,
                         const char *in)
{
    const int last = loop->ndim - 1;
    const size_t bytes = dtype_bytes((enum dtype)o->dtype);
    struct position at;
    memcpy(at.index, index, sizeof at.index);
    at.offset = offset_at(loop, o, index);
    while (n > 0) {
        const int64_t left = loop->sizes[last] - at.index[last], run = n < left ? n : left;
        char *const to = o->data + at.offset * (int64_t)bytes;
        if (o->strides[last] == 1)
            memcpy(to, in, (size_t)run * bytes);
        else
            kernels->cast->scatter[size_index(bytes)](to, o->strides[last], in, (size_t)run);
        in += (size_t)run * bytes;
        n -= run;
        at.index[last] += run;
        at.offset += run * o->strides[last];
        next_row(loop, o, &at);
    }
}

static char *direct_address(const struct strided_loop *loop, const struct loop_operand *o, const int64_t *index, int64_t element)
{
    const int64_t offset = o->linear ? element : offset_at(loop, o, index);
    return o->data + offset * (int64_t)dtype_bytes((enum dtype)o->dtype);
}

/* n elements in the kernel's type to `out`. */
static void load_elements(const struct strided_loop *loop, const struct loop_operand *o, const int64_t *index, int64_t element,
                          int64_t n, void *out)
{
    _Alignas(64) char raw[TILE_BYTES];
    if (o->through != DTYPE_NONE) {
        uint16_t rounded[TILE_BYTES / sizeof(uint16_t)];
        gather_rows(loop, o, index, n, raw);
        convert_elements(rounded, (enum dtype)o->through, raw, (enum dtype)o->dtype, n);
        convert_elements(out, (enum dtype)o->kernel_dtype, rounded, (enum dtype)o->through, n);
        return;
    }
    if (o->linear) {
        convert_elements(out, (enum dtype)o->kernel_dtype, direct_address(loop, o, index, element), (enum dtype)o->dtype, n);
    } else if (o->dtype == o->kernel_dtype) {
        gather_rows(loop, o, index, n, out);
    } else {
        gather_rows(loop, o, index, n, raw);
        convert_elements(out, (enum dtype)o->kernel_dtype, raw, (enum dtype)o->dtype, n);
    }
}

static void store_elements(const struct strided_loop *loop, const struct loop_operand *o, const int64_t *index, int64_t element,
                           int64_t n, const void *in)
{
    _Alignas(64) char raw[TILE_BYTES];
    if (o->linear) {
        convert_elements(direct_address(loop, o, index, element), (enum dtype)o->dtype, in, (enum dtype)o->kernel_dtype, n);
    } else if (o->dtype == o->kernel_dtype) {
        scatter_rows(loop, o, index, n, in);
    } else {
        convert_elements(raw, (enum dtype)o->dtype, in, (enum dtype)o->kernel_dtype, n);
        scatter_rows(loop, o, index, n, raw);
    }
}

static void fill_constant(const struct loop_operand *o, void *out, int64_t n)
{
    _Alignas(16) char element[ELEMENT_BYTES];
    convert_elements(element, (enum dtype)o->kernel_dtype, o->data, (enum dtype)o->dtype, 1);
    kernels->cast->fill[size_index(dtype_bytes((enum dtype)o->kernel_dtype))](out, element, (size_t)n);
}

/* --- running ------------------------------------------------------------------------------------------------------- */

static int64_t step_limit(const struct strided_loop *loop, const int64_t *index, int64_t left)
{
    int64_t n = left;
    if (loop->by_rows) {
        const int64_t row_left = loop->sizes[loop->ndim - 1] - index[loop->ndim - 1];
        n = n < row_left ? n : row_left;
    }
    return loop->tiled && n > loop->tile ? loop->tile : n;
}

static void copy_range(const struct strided_loop *loop, int64_t begin, int64_t end)
{
    _Alignas(64) char tile[TILE_BYTES];
    const struct loop_operand *const out = &loop->operands[0], *const in = &loop->operands[1];
    int64_t index[TENSOR_MAX_DIMS];
    split_index(loop, begin, index);
    while (begin < end) {
        const int64_t n = step_limit(loop, index, end - begin);
        void *const to = out->direct ? direct_address(loop, out, index, begin) : tile;
        if (in->constant)
            fill_constant(in, to, n);
        else if (in->direct)
            convert_elements(to, (enum dtype)in->kernel_dtype, direct_address(loop, in, index, begin), (enum dtype)in->dtype, n);
        else
            load_elements(loop, in, index, begin, n, to);
        if (!out->direct)
            store_elements(loop, out, index, begin, n, tile);
        begin += n;
        index_advance(loop, index, n);
    }
}

/* Puts the operands' elements where the kernel finds them. */
static void load_operands(const struct strided_loop *loop, const int64_t *index, int64_t element, int64_t n,
                          char (*tiles)[TILE_BYTES], void **addresses)
{
    for (int i = 0; i < loop->operand_count; ++i) {
        const struct loop_operand *const o = &loop->operands[i];
        addresses[i] = o->direct ? direct_address(loop, o, index, element) : tiles[i];
        if (o->read && !o->direct && !o->constant)
            load_elements(loop, o, index, element, n, tiles[i]);
    }
}

void loop_range(const struct strided_loop *loop, int64_t begin, int64_t end)
{
    if (!loop->run) {
        copy_range(loop, begin, end);
        return;
    }
    _Alignas(64) char tiles[LOOP_OPERANDS][TILE_BYTES];
    void *addresses[LOOP_OPERANDS];
    int64_t index[TENSOR_MAX_DIMS];
    split_index(loop, begin, index);
    for (int i = 1; i < loop->operand_count; ++i)
        if (loop->operands[i].constant)
            fill_constant(&loop->operands[i], tiles[i], end - begin < loop->tile ? end - begin : loop->tile);
    while (begin < end) {
        const int64_t n = step_limit(loop, index, end - begin);
        load_operands(loop, index, begin, n, tiles, addresses);
        if (loop->check && loop->check(addresses[loop->checked], (size_t)n))
            atomic_store_explicit(loop->found, true, memory_order_relaxed);
        loop->run(addresses, (size_t)n, loop->scalars);
        for (int i = 0; i < loop->operand_count; ++i)
            if (loop->operands[i].written && !loop->operands[i].direct)
                store_elements(loop, &loop->operands[i], index, begin, n, tiles[i]);
        begin += n;
        index_advance(loop, index, n);
    }
}

/* --- transposing copies -------------------------------------------------------------------------------------------- */

enum { TRANSPOSE_BLOCK = 64, TRANSPOSE_COLUMNS = 256 };

/* A copy whose input is dense along another dimension (`rows`) than the output: goes in blocks that fit the nearest cache. */
struct transposition {
    const struct strided_loop *loop;
    int rows, columns;
    int64_t row_blocks, column_blocks;
};

static bool find_transposition(const struct strided_loop *loop, struct transposition *t)
{
    const struct loop_operand *const out = &loop->operands[0], *const in = &loop->operands[1];
    const int last = loop->ndim - 1;
    if (loop->run || loop->ndim < 2 || out->dtype != in->dtype || in->constant || out->strides[last] != 1 || in->strides[last] == 1)
        return false;
    for (int d = 0; d < last; ++d)
        if (in->strides[d] == 1 && loop->sizes[d] >= 8 && loop->sizes[last] >= 8) {
            *t = (struct transposition){loop, d, last, (loop->sizes[d] + TRANSPOSE_BLOCK - 1) / TRANSPOSE_BLOCK,
                                        (loop->sizes[last] + TRANSPOSE_COLUMNS - 1) / TRANSPOSE_COLUMNS};
            return true;
        }
    return false;
}

/* Block `number`: a strip of TRANSPOSE_BLOCK rows by TRANSPOSE_COLUMNS columns of one of the matrices. */
static void transpose_strip(const struct transposition *t, int64_t number)
{
    const struct strided_loop *const loop = t->loop;
    const struct loop_operand *const out = &loop->operands[0], *const in = &loop->operands[1];
    const int64_t first_column = number % t->column_blocks * TRANSPOSE_COLUMNS;
    number /= t->column_blocks;
    const int64_t first_row = number % t->row_blocks * TRANSPOSE_BLOCK;
    number /= t->row_blocks;
    int64_t out_offset = first_row * out->strides[t->rows] + first_column,
            in_offset = first_row + first_column * in->strides[t->columns];
    for (int d = loop->ndim - 1; d >= 0; --d) {
        if (d == t->rows || d == t->columns)
            continue;
        out_offset += number % loop->sizes[d] * out->strides[d];
        in_offset += number % loop->sizes[d] * in->strides[d];
        number /= loop->sizes[d];
    }
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)out->dtype),
                  rows = least(loop->sizes[t->rows] - first_row, TRANSPOSE_BLOCK);
    const int64_t columns = least(loop->sizes[t->columns] - first_column, TRANSPOSE_COLUMNS);
    for (int64_t c = 0; c < columns; c += TRANSPOSE_BLOCK)
        kernels->cast->transpose[size_index((size_t)bytes)](out->data + (out_offset + c) * bytes, out->strides[t->rows],
                                                            in->data + (in_offset + c * in->strides[t->columns]) * bytes,
                                                            in->strides[t->columns], (size_t)rows,
                                                            (size_t)least(columns - c, TRANSPOSE_BLOCK));
}

static void transpose_body(void *argument, int64_t begin, int64_t end)
{
    for (int64_t number = begin; number < end; ++number)
        transpose_strip(argument, number);
}

static void transpose_run(struct transposition *t)
{
    const struct strided_loop *const loop = t->loop;
    const int64_t matrices = loop->count / (loop->sizes[t->rows] * loop->sizes[t->columns]);
    pool_for(matrices * t->row_blocks * t->column_blocks, 1, transpose_body, t);
}

/* --- all elements -------------------------------------------------------------------------------------------------- */

static void loop_body(void *argument, int64_t begin, int64_t end) { loop_range(argument, begin, end); }

void loop_run(struct strided_loop *loop)
{
    struct transposition transposition;
    if (loop->count == 0)
        return;
    if (find_transposition(loop, &transposition))
        transpose_run(&transposition);
    else
        pool_for(loop->count, loop->grain, loop_body, loop);
}

void read_elements(const struct view *v, int64_t begin, int64_t n, enum dtype to, void *out)
{
    struct strided_loop loop;
    int64_t index[TENSOR_MAX_DIMS];
    loop_begin_with(&loop, NULL, 1);
    loop_add(&loop, v, to);
    loop.count = v->count;
    views_coalesce(loop.views, 1); /* unsorted: the order of the elements stays */
    loop_adopt_shape(&loop);
    operand_ready(&loop, 0);
    split_index(&loop, begin, index);
    load_elements(&loop, &loop.operands[0], index, begin, n, out);
}

void copy_view(const struct view *out, const struct view *in)
{
    struct strided_loop loop;
    loop_begin(&loop, ELEMENTWISE_COUNT, (enum dtype)out->dtype);
    loop_add(&loop, out, (enum dtype)out->dtype);
    loop_add(&loop, in, (enum dtype)out->dtype);
    if (loop_ready(&loop))
        loop_run(&loop);
}

void fill_view(const struct view *out, enum dtype value_dtype, union elementwise_scalar value)
{
    struct strided_loop loop;
    loop_begin(&loop, ELEMENTWISE_COUNT, (enum dtype)out->dtype);
    loop_add(&loop, out, (enum dtype)out->dtype);
    loop_add_constant(&loop, value_dtype, value, (enum dtype)out->dtype);
    if (loop_ready(&loop))
        loop_run(&loop);
}
