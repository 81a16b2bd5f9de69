/* The engine of all reductions. See reduce_engine.h. */
#include "aclnn/math/reduce_engine.h"

#include <string.h>

#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/kernels.h"

enum {
    ROW_BLOCK = TILE,    /* elements folded by one kernel call */
    COLUMN_BLOCK = 256,  /* neighbouring results handled together */
    COLUMN_ROWS = 32,    /* rows folded by one kernel call */
    ITEM = 1 << 15,      /* elements that a work item should have at least */
    ENOUGH_ITEMS = 8,    /* with fewer than this, sequences are cut */
    SMALL_COLUMNS = 16,  /* fewer neighbours than this aren't worth a column kernel ... */
    SHORT_SEQUENCE = 64, /* ... and with short sequences, it is better in any case ... */
    SHORT_RUN = 16,      /* ... but for those that lie together and fill a vector */
    TREE_DEPTH = 48,
};

static int64_t magnitude(int64_t a) { return a < 0 ? -a : a; }

/* --- geometry ------------------------------------------------------------------------------------------------------- */

/* Adds a dimension inside the ones so far, merging it where it continues the previous one. */
static void append_dim(int *ndim, int64_t *sizes, int64_t *strides, int64_t size, int64_t stride)
{
    if (size == 1)
        return;
    if (*ndim > 0 && strides[*ndim - 1] == stride * size) {
        sizes[*ndim - 1] *= size;
        strides[*ndim - 1] = stride;
        return;
    }
    sizes[*ndim] = size;
    strides[(*ndim)++] = stride;
}

/* Dimensions of the mask by falling stride. The order of a sequence is free, and memory order is the fast one; a single
 * dimension or a contiguous tensor keeps its own order, as arg reductions need. */
static int sorted_dims(const struct view *in, uint32_t mask, int *order)
{
    int n = 0;
    for (int d = 0; d < in->ndim; ++d) {
        if (!(mask >> d & 1))
            continue;
        int k = n++;
        for (; k > 0 && magnitude(in->strides[order[k - 1]]) < magnitude(in->strides[d]); --k)
            order[k] = order[k - 1];
        order[k] = d;
    }
    return n;
}

static void choose_columns(struct reduction *r)
{
    r->columns = false;
    if (r->kept_ndim == 0 || r->reduced_ndim == 0)
        return;
    const int64_t neighbours = r->kept_sizes[r->kept_ndim - 1];
    const int64_t kept = magnitude(r->kept_strides[r->kept_ndim - 1]);
    const int64_t reduced = magnitude(r->reduced_strides[r->reduced_ndim - 1]);
    if (neighbours < SMALL_COLUMNS)
        return;
    const int64_t shortest = reduced == 1 ? SHORT_RUN - 1 : SHORT_SEQUENCE;
    r->columns = (kept > 0 && kept < reduced) || r->reduced_count <= shortest;
}

/* How many segments: enough work items for a pool, none below ITEM elements, cuts at multiples of a kernel's block. */
static void cut(struct reduction *r)
{
    int64_t width, block;
    if (r->columns) {
        const int64_t neighbours = r->kept_sizes[r->kept_ndim - 1];
        r->chunk = COLUMN_BLOCK;
        r->chunks = r->kept_count / neighbours * ((neighbours + COLUMN_BLOCK - 1) / COLUMN_BLOCK);
        width = least(neighbours, COLUMN_BLOCK);
        block = COLUMN_ROWS;
    } else {
        r->chunk = most(1, ITEM / most(1, r->reduced_count));
        r->chunks = (r->kept_count + r->chunk - 1) / r->chunk;
        width = 1;
        block = ROW_BLOCK;
    }
    r->segment = most(1, r->reduced_count);
    r->segments = 1;
    if (r->chunks >= ENOUGH_ITEMS || r->kept_count == 0)
        return;
    const int64_t wanted = (2 * ENOUGH_ITEMS + r->chunks - 1) / r->chunks;
    const int64_t length = most(ITEM / width, (r->reduced_count + wanted - 1) / wanted);
    r->segment = (length + block - 1) / block * block;
    r->segments = most(1, (r->reduced_count + r->segment - 1) / r->segment);
}

void reduction_prepare(struct reduction *r, const struct view *in, uint32_t mask, enum accumulate type)
{
    int order[TENSOR_MAX_DIMS];
    *r = (struct reduction){.data = in->data, .dtype = (enum dtype)in->dtype, .type = type, .kept_count = 1, .reduced_count = 1};
    r->load = kernels->convert->load[r->dtype][type];
    for (int d = 0; d < in->ndim; ++d) {
        *(mask >> d & 1 ? &r->reduced_count : &r->kept_count) *= in->sizes[d];
        if (!(mask >> d & 1))
            append_dim(&r->kept_ndim, r->kept_sizes, r->kept_strides, in->sizes[d], in->strides[d]);
    }
    const int n = sorted_dims(in, mask, order);
    for (int i = 0; i < n; ++i)
        append_dim(&r->reduced_ndim, r->reduced_sizes, r->reduced_strides, in->sizes[order[i]], in->strides[order[i]]);
    r->whole_runs = r->reduced_ndim > 1 && r->reduced_sizes[r->reduced_ndim - 1] >= ROW_BLOCK / 4;
    choose_columns(r);
    cut(r);
}

/* --- rows: one result at a time --------------------------------------------------------------------------------------- */

/* Elements [first, first + n) of the sequence at `data`, mapped, as a tile: in place where possible, else copied to `tile`. */
static const char *sequence_tile(const struct reduction *r, const char *data, int64_t first, int64_t n, char *tile)
{
    const int last = r->reduced_ndim - 1;
    const int64_t bytes = (int64_t)dtype_bytes(r->dtype);
    const convert_load_fn load = r->load;
    if (last < 0) {
        load(tile, data, 1, n);
        return tile;
    }
    const int64_t run = r->reduced_sizes[last], stride = r->reduced_strides[last];
    int64_t outer = first / run, column = first - outer * run;
    if (stride == 1 && column + n <= run && r->map == MAP_none && accumulate_is_native(r->dtype, r->type))
        return data + (walk_offset(outer, last, r->reduced_sizes, r->reduced_strides) + column) * bytes;
    for (int64_t done = 0; done < n; ++outer, column = 0) {
        const int64_t piece = least(n - done, run - column);
        const int64_t offset = walk_offset(outer, last, r->reduced_sizes, r->reduced_strides) + column * stride;
        load(tile + done * accumulate_bytes(r->type), data + offset * bytes, stride, piece);
        done += piece;
    }
    return tile;
}

static void fold_sequence(const struct reduction *r, int64_t result, int64_t first, int64_t end, char *tile, char *out)
{
    const int64_t size = accumulate_bytes(r->type);
    const fold_row_fn row = kernels->reduce->row[r->fold][r->type];
    const fold_pair_fn pair = kernels->reduce->pair[r->fold][r->type];
    const map_fn map = kernels->reduce->map[r->map][r->type];
    const char *const data =
        r->data + walk_offset(result, r->kept_ndim, r->kept_sizes, r->kept_strides) * (int64_t)dtype_bytes(r->dtype);
    const int64_t run = r->reduced_ndim > 0 ? r->reduced_sizes[r->reduced_ndim - 1] : 1;
    double tree[TREE_DEPTH]; /* as a binary counter: entry i holds 2^i blocks while bit i of `blocks` is set */
    int64_t blocks = 0;
    for (int64_t i = first, n; i < end || blocks == 0; i += n) {
        n = least(end - i, ROW_BLOCK);
        if (r->whole_runs)
            n = least(n, run - i % run);
        const char *const values = n > 0 ? sequence_tile(r, data, i, n, tile) : tile;
        if (map)
            map(tile, n, r->parameter, r->center ? r->center + result * size : NULL, 0);
        double sum;
        row(&sum, values, n);
        int level = 0;
        for (; blocks >> level & 1; ++level) {
            pair(&tree[level], &sum, 1);
            sum = tree[level];
        }
        tree[level] = sum;
        ++blocks;
    }
    double total = 0;
    bool any = false;
    for (int level = 0; blocks >> level > 0; ++level) {
        if (!(blocks >> level & 1))
            continue;
        if (any)
            pair(&tree[level], &total, 1);
        total = tree[level];
        any = true;
    }
    memcpy(out, &total, (size_t)size);
}

/* Sequences of one block that lie in place at equal distances: nothing but the kernel. */
static bool plain_rows(const struct reduction *r)
{
    return r->map == MAP_none && r->reduced_ndim == 1 && r->reduced_strides[0] == 1 && r->reduced_count <= ROW_BLOCK &&
           r->kept_ndim == 1 && accumulate_is_native(r->dtype, r->type);
}

static void fold_plain_rows(const struct reduction *r, int64_t begin, int64_t end)
{
    const fold_row_fn row = kernels->reduce->row[r->fold][r->type];
    const int64_t size = accumulate_bytes(r->type), step = r->kept_strides[0] * size, n = r->reduced_count;
    for (int64_t k = begin; k < end; ++k)
        row(r->results + k * size, r->data + k * step, n);
}

/* Items are (segment, chunk of results), segment-major. */
static void row_items(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    const int64_t size = accumulate_bytes(r->type);
    double tile[ROW_BLOCK];
    if (r->segments == 1 && plain_rows(r)) {
        fold_plain_rows(r, begin * r->chunk, least(end * r->chunk, r->kept_count));
        return;
    }
    for (int64_t item = begin; item < end; ++item) {
        const int64_t segment = item / r->chunks, chunk = item % r->chunks;
        const int64_t first = segment * r->segment, past = least(first + r->segment, r->reduced_count);
        const int64_t last = least((chunk + 1) * r->chunk, r->kept_count);
        for (int64_t k = chunk * r->chunk; k < last; ++k)
            fold_sequence(r, k, first, past, (char *)tile, r->results + (segment * r->kept_count + k) * size);
    }
}

/* --- columns: neighbouring results together ----------------------------------------------------------------------------- */

struct columns {
    const struct reduction *r;
    const char *data; /* first element of the first result */
    const char *center;
    int64_t stride; /* between results */
    int64_t count;  /* results */
    char *tile;     /* COLUMN_ROWS rows */
};

static int64_t row_offset(const struct reduction *r, int64_t row)
{
    return walk_offset(row, r->reduced_ndim, r->reduced_sizes, r->reduced_strides) * (int64_t)dtype_bytes(r->dtype);
}

/* Folds rows [first, past), at most COLUMN_ROWS of them, into sums. */
static void fold_few_rows(const struct columns *c, int64_t first, int64_t past, char *sums)
{
    const struct reduction *const r = c->r;
    const fold_columns_fn fold = kernels->reduce->columns[r->fold][r->type];
    if (r->map == MAP_none && c->stride == 1 && r->reduced_ndim == 1 && accumulate_is_native(r->dtype, r->type)) {
        fold(sums, c->data + row_offset(r, first), r->reduced_strides[0], past - first, c->count);
        return;
    }
    const convert_load_fn load = r->load;
    const map_fn map = kernels->reduce->map[r->map][r->type];
    const int64_t row_bytes = c->count * accumulate_bytes(r->type);
    for (int64_t row = first; row < past; ++row) {
        char *const tile = c->tile + (row - first) * row_bytes;
        load(tile, c->data + row_offset(r, row), c->stride, c->count);
        if (map)
            map(tile, c->count, r->parameter, c->center, 1);
    }
    fold(sums, c->tile, c->count, past - first, c->count);
}

/* Folds rows [first, past) into sums as a binary tree; `spare` has room for one row of results a level. */
static void fold_rows(const struct columns *c, int64_t first, int64_t past, char *sums, char *spare)
{
    const int64_t rows = past - first;
    if (rows <= COLUMN_ROWS) {
        fold_few_rows(c, first, past, sums);
        return;
    }
    int64_t half = COLUMN_ROWS;
    while (half * 2 < rows)
        half *= 2;
    fold_rows(c, first, first + half, sums, spare);
    fold_rows(c, first + half, past, spare, spare + COLUMN_BLOCK * 8);
    kernels->reduce->pair[c->r->fold][c->r->type](sums, spare, c->count);
}

/* The chunk-th group of neighbours: its first result and how many there are. */
static void locate_chunk(const struct reduction *r, int64_t chunk, int64_t *first, int64_t *count)
{
    const int64_t neighbours = r->kept_sizes[r->kept_ndim - 1];
    const int64_t groups = (neighbours + COLUMN_BLOCK - 1) / COLUMN_BLOCK;
    const int64_t outer = chunk / groups, column = chunk % groups * COLUMN_BLOCK;
    *first = outer * neighbours + column;
    *count = least(COLUMN_BLOCK, neighbours - column);
}

static void column_items(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    const int64_t size = accumulate_bytes(r->type);
    double tile[COLUMN_ROWS * COLUMN_BLOCK], spare[TREE_DEPTH * COLUMN_BLOCK / 2];
    for (int64_t item = begin; item < end; ++item) {
        const int64_t segment = item / r->chunks, first = segment * r->segment;
        int64_t k, count;
        locate_chunk(r, item % r->chunks, &k, &count);
        const struct columns c = {
            .r = r,
            .data = r->data + walk_offset(k, r->kept_ndim, r->kept_sizes, r->kept_strides) * (int64_t)dtype_bytes(r->dtype),
            .center = r->center ? r->center + k * size : NULL,
            .stride = r->kept_strides[r->kept_ndim - 1],
            .count = count,
            .tile = (char *)tile,
        };
        fold_rows(&c, first, least(first + r->segment, r->reduced_count), r->results + (segment * r->kept_count + k) * size,
                  (char *)spare);
    }
}

/* --- both ------------------------------------------------------------------------------------------------------------- */

static void fill_identity(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    const int64_t size = accumulate_bytes(r->type);
    for (int64_t k = begin; k < end; ++k)
        kernels->reduce->row[r->fold][r->type](r->results + k * size, r->results, 0);
}

/* Folds segments [first, past) of results [begin, end) into the first one, as a binary tree. */
static void fold_segments(const struct reduction *r, int64_t first, int64_t past, int64_t begin, int64_t end)
{
    if (past - first < 2)
        return;
    int64_t half = 1;
    while (half * 2 < past - first)
        half *= 2;
    fold_segments(r, first, first + half, begin, end);
    fold_segments(r, first + half, past, begin, end);
    const int64_t size = accumulate_bytes(r->type);
    kernels->reduce->pair[r->fold][r->type](r->results + (first * r->kept_count + begin) * size,
                                            r->results + ((first + half) * r->kept_count + begin) * size, end - begin);
}

static void segment_items(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    fold_segments(r, 0, r->segments, begin, end);
}

/* Items of a pool job so that each has about ITEM elements. */
static int64_t item_grain(const struct reduction *r)
{
    const int64_t results = r->columns ? least(COLUMN_BLOCK, r->kept_sizes[r->kept_ndim - 1]) : r->chunk;
    return most(1, ITEM / most(1, results * least(r->segment, most(1, r->reduced_count))));
}

void reduction_run(struct reduction *r, enum fold fold, enum map map, double parameter, const void *center, void *results)
{
    r->fold = fold;
    r->map = map;
    r->parameter = parameter;
    r->center = center;
    r->results = results;
    if (r->kept_count == 0)
        return;
    if (r->reduced_count == 0) {
        pool_for(r->kept_count, ITEM, fill_identity, r);
        return;
    }
    pool_for(r->segments * r->chunks, item_grain(r), r->columns ? column_items : row_items, r);
    if (r->segments > 1)
        pool_for(r->kept_count, ITEM, segment_items, r);
}

/* --- positions of the largest or smallest ---------------------------------------------------------------------------- */

/* Does a beat b? Values are of the accumulate type, in the first bytes. */
static bool beats(const struct reduction *r, const double *a, const double *b)
{
    double best = *b;
    int64_t where = 0;
    kernels->reduce->arg_columns[r->fold][r->type](&best, &where, a, 1, 1);
    return where == 1;
}

static void arg_sequence(const struct reduction *r, int64_t result, int64_t first, int64_t end, char *tile, int64_t slot)
{
    const int64_t size = accumulate_bytes(r->type);
    const char *const data =
        r->data + walk_offset(result, r->kept_ndim, r->kept_sizes, r->kept_strides) * (int64_t)dtype_bytes(r->dtype);
    double best = 0, value = 0;
    int64_t block = first;
    for (int64_t i = first; i < end; i += ROW_BLOCK) {
        const int64_t n = least(end - i, ROW_BLOCK);
        kernels->reduce->row[r->fold][r->type](&value, sequence_tile(r, data, i, n, tile), n);
        if (i == first || beats(r, &value, &best)) {
            best = value;
            block = i;
        }
    }
    const int64_t n = least(end - block, ROW_BLOCK);
    r->where[slot] = block + kernels->reduce->find[r->type](sequence_tile(r, data, block, n, tile), n, &best);
    memcpy(r->results + slot * size, &best, (size_t)size);
}

static void arg_row_items(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    double tile[ROW_BLOCK];
    for (int64_t item = begin; item < end; ++item) {
        const int64_t segment = item / r->chunks, chunk = item % r->chunks;
        const int64_t first = segment * r->segment, past = least(first + r->segment, r->reduced_count);
        const int64_t last = least((chunk + 1) * r->chunk, r->kept_count);
        for (int64_t k = chunk * r->chunk; k < last; ++k)
            arg_sequence(r, k, first, past, (char *)tile, segment * r->kept_count + k);
    }
}

static void arg_column_items(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    const int64_t size = accumulate_bytes(r->type), bytes = (int64_t)dtype_bytes(r->dtype);
    const convert_load_fn load = r->load;
    double tile[COLUMN_BLOCK];
    for (int64_t item = begin; item < end; ++item) {
        const int64_t segment = item / r->chunks, first = segment * r->segment;
        const int64_t past = least(first + r->segment, r->reduced_count), stride = r->kept_strides[r->kept_ndim - 1];
        int64_t k, count;
        locate_chunk(r, item % r->chunks, &k, &count);
        const char *const data = r->data + walk_offset(k, r->kept_ndim, r->kept_sizes, r->kept_strides) * bytes;
        char *const best = r->results + (segment * r->kept_count + k) * size;
        int64_t *const where = r->where + segment * r->kept_count + k;
        load(best, data + row_offset(r, first), stride, count);
        for (int64_t c = 0; c < count; ++c)
            where[c] = first;
        for (int64_t row = first + 1; row < past; ++row) {
            load(tile, data + row_offset(r, row), stride, count);
            kernels->reduce->arg_columns[r->fold][r->type](best, where, tile, row, count);
        }
    }
}

/* Later segments win only when they beat the earlier ones. */
static void arg_segment_items(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *const r = argument;
    const int64_t size = accumulate_bytes(r->type);
    for (int64_t segment = 1; segment < r->segments; ++segment)
        for (int64_t k = begin; k < end; ++k) {
            const int64_t slot = segment * r->kept_count + k;
            double challenger = 0, best = 0;
            memcpy(&challenger, r->results + slot * size, (size_t)size);
            memcpy(&best, r->results + k * size, (size_t)size);
            if (!beats(r, &challenger, &best))
                continue;
            memcpy(r->results + k * size, &challenger, (size_t)size);
            r->where[k] = r->where[slot];
        }
}

void reduction_run_arg(struct reduction *r, enum fold fold, void *results, int64_t *where)
{
    r->fold = fold;
    r->map = MAP_none;
    r->center = NULL;
    r->results = results;
    r->where = where;
    if (r->kept_count == 0 || r->reduced_count == 0)
        return;
    pool_for(r->segments * r->chunks, item_grain(r), r->columns ? arg_column_items : arg_row_items, r);
    if (r->segments > 1)
        pool_for(r->kept_count, ITEM, arg_segment_items, r);
}
