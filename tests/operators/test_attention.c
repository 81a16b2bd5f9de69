/* Flash attention and its gradient against the plain formulas in double, which hold whole rows of scores. */
#include "tensors.h"

static uint64_t seed = 11;

enum mask_shape { MASK_NONE, MASK_PLAIN, MASK_BATCH, MASK_FULL };
enum shift_shape { SHIFT_NONE, SHIFT_FULL, SHIFT_NO_BATCH, SHIFT_ONE_ROW };

struct problem {
    const char *layout;
    int64_t batches, heads, key_heads, queries, keys, width, value_width;
    int64_t mode, before, after;
    enum mask_shape mask;
    enum shift_shape shift;
    double keep;
    int64_t shift_kind;     /* < 0: the first version of the operator */
    const int64_t *ends[2]; /* TND: of queries and keys */
};

struct sequence {
    int64_t query, queries, key, keys, bit;
};

static struct sequence sequence_of(const struct problem *p, int64_t batch)
{
    struct sequence s = {0, p->queries, 0, p->keys, batch * p->heads * p->queries * p->keys};
    if (!p->ends[0])
        return s;
    s.bit = 0;
    for (int64_t i = 0; i <= batch; ++i) {
        s.query = i ? p->ends[0][i - 1] : 0;
        s.key = i ? p->ends[1][i - 1] : 0;
        s.queries = p->ends[0][i] - s.query;
        s.keys = p->ends[1][i] - s.key;
        s.bit += i < batch ? p->heads * s.queries * s.keys : 0;
    }
    return s;
}

/* Sizes of a tensor of that many rows, heads and width. */
static int tensor_sizes(const struct problem *p, int64_t rows, int64_t heads, int64_t width, int64_t *sizes)
{
    const struct {
        const char *name;
        int count;
        int64_t sizes[4];
    } known[] = {{"BSH", 3, {p->batches, rows, heads * width}},
                 {"SBH", 3, {rows, p->batches, heads * width}},
                 {"BSND", 4, {p->batches, rows, heads, width}},
                 {"BNSD", 4, {p->batches, heads, rows, width}},
                 {"TND", 3, {rows, heads, width}}};
    for (int i = 0;; ++i)
        if (strcmp(p->layout, known[i].name) == 0) {
            memcpy(sizes, known[i].sizes, sizeof known[i].sizes);
            return known[i].count;
        }
}

static int64_t place(const struct problem *p, int64_t rows, int64_t heads, int64_t width, int64_t b, int64_t n, int64_t s,
                     int64_t d)
{
    if (strcmp(p->layout, "SBH") == 0)
        return ((s * p->batches + b) * heads + n) * width + d;
    if (strcmp(p->layout, "BNSD") == 0)
        return ((b * heads + n) * rows + s) * width + d;
    return (((p->ends[0] ? 0 : b) * rows + s) * heads + n) * width + d;
}

static bool band_allows(const struct problem *p, const struct sequence *s, int64_t i, int64_t j)
{
    const int64_t shifted = i + s->keys - s->queries;
    switch (p->mode) {
    case 0: return j >= i - p->before && j <= i + p->after;
    case 2: return j <= i;
    case 3: return j <= shifted;
    case 4: return j >= shifted - p->before && j <= shifted + p->after;
    default: return true;
    }
}

struct operands {
    struct tensor q, k, v, dy, out, dq, dk, dv, mask, shift, dshift, maximum, sum;
    uint8_t *bits;
    aclTensor *drop;
    double *eq, *ek, *ev, *eshift; /* expected gradients */
};

static int64_t total(const struct problem *p, int which)
{
    return p->ends[which] ? p->ends[which][p->batches - 1] : which ? p->keys : p->queries;
}

static int64_t shift_place(const struct problem *p, int64_t b, int64_t n, int64_t i, int64_t j)
{
    if (p->shift == SHIFT_ONE_ROW)
        return (b * p->heads + n) * p->keys + j;
    return (((p->shift == SHIFT_NO_BATCH ? 0 : b) * p->heads + n) * p->queries + i) * p->keys + j;
}

static bool hidden(const struct problem *p, const struct operands *o, const struct sequence *s, int64_t b, int64_t n, int64_t i,
                   int64_t j)
{
    if (p->mask == MASK_NONE)
        return false;
    if (!band_allows(p, s, i, j))
        return true;
    if (p->mode != 0 && p->mode != 1)
        return false;
    const int64_t row = p->mask == MASK_PLAIN ? 0 : p->mask == MASK_BATCH ? b : b * p->heads + n;
    return tensor_get(&o->mask, (row * p->queries + i) * p->keys + j) != 0;
}

/* One row of one head: probabilities, the output's row, the statistics, then this row's part of the gradients. */
static void check_row(const struct problem *p, const struct operands *o, int64_t b, int64_t n, int64_t i, double scale,
                      double tolerance)
{
    const struct sequence s = sequence_of(p, b);
    const int64_t nk = n / (p->heads / p->key_heads), rows = total(p, 0), keys = total(p, 1);
    double *const score = calloc((size_t)s.keys + 1, 8), *const dp = calloc((size_t)s.keys + 1, 8);
    double best = -INFINITY, sum = 0, delta = 0;
#define Q(d) tensor_get(&o->q, place(p, rows, p->heads, p->width, b, n, s.query + i, d))
#define K(j, d) tensor_get(&o->k, place(p, keys, p->key_heads, p->width, b, nk, s.key + (j), d))
#define V(j, d) tensor_get(&o->v, place(p, keys, p->key_heads, p->value_width, b, nk, s.key + (j), d))
#define DY(d) tensor_get(&o->dy, place(p, rows, p->heads, p->value_width, b, n, s.query + i, d))
#define KEPT(j) (!o->bits || ((o->bits[(s.bit + (n * s.queries + i) * s.keys + (j)) / 8] >> ((s.bit + (n * s.queries + i) * s.keys + (j)) % 8)) & 1))
    for (int64_t j = 0; j < s.keys; ++j) {
        for (int64_t d = 0; d < p->width; ++d)
            score[j] += Q(d) * K(j, d);
        const double shift = p->shift ? tensor_get(&o->shift, shift_place(p, b, n, i, j)) : 0;
        score[j] = p->shift_kind == 0 ? score[j] * scale + shift : (score[j] + shift) * scale;
        score[j] = hidden(p, o, &s, b, n, i, j) ? -INFINITY : score[j];
        best = score[j] > best ? score[j] : best;
    }
    for (int64_t j = 0; j < s.keys; ++j)
        sum += score[j] = best == -INFINITY ? 0 : exp(score[j] - best);
    for (int64_t j = 0; j < s.keys; ++j)
        score[j] = sum ? score[j] / sum : 0;
    for (int64_t d = 0; d < p->value_width; ++d) {
        double y = 0;
        for (int64_t j = 0; j < s.keys; ++j)
            y += KEPT(j) ? score[j] * V(j, d) / p->keep : 0;
        CHECK_NEAR(tensor_get(&o->out, place(p, rows, p->heads, p->value_width, b, n, s.query + i, d)), y, tolerance);
        delta += y * DY(d);
    }
    const int64_t statistic = p->ends[0] ? n * rows + s.query + i : (b * p->heads + n) * rows + i;
    for (int lane = 0; lane < 8; lane += 7) {
        CHECK_NEAR(tensor_get(&o->maximum, statistic * 8 + lane), best, fmin(tolerance, 1e-4));
        CHECK_NEAR(tensor_get(&o->sum, statistic * 8 + lane), sum, fmin(tolerance, 1e-4));
    }
    for (int64_t j = 0; j < s.keys; ++j) {
        for (int64_t d = 0; d < p->value_width; ++d) {
            dp[j] += KEPT(j) ? DY(d) * V(j, d) / p->keep : 0;
            o->ev[place(p, keys, p->key_heads, p->value_width, b, nk, s.key + j, d)] += KEPT(j) ? score[j] * DY(d) / p->keep : 0;
        }
        const double slope = score[j] * (dp[j] - delta);
        for (int64_t d = 0; d < p->width; ++d) {
            o->eq[place(p, rows, p->heads, p->width, b, n, s.query + i, d)] += scale * slope * K(j, d);
            o->ek[place(p, keys, p->key_heads, p->width, b, nk, s.key + j, d)] += scale * slope * Q(d);
        }
        if (p->shift)
            o->eshift[shift_place(p, b, n, i, j)] += p->shift_kind == 0 ? slope : scale * slope;
    }
    free(score);
    free(dp);
}

static void make_operands(const struct problem *p, enum dtype dtype, enum layout layout, struct operands *o)
{
    int64_t sizes[4];
    int count = tensor_sizes(p, total(p, 0), p->heads, p->width, sizes);
    const enum dtype statistics = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    o->q = tensor_random(dtype, layout, &seed, count, sizes);
    o->dq = tensor_new(dtype, layout, count, sizes);
    count = tensor_sizes(p, total(p, 0), p->heads, p->value_width, sizes);
    o->out = tensor_new(dtype, layout, count, sizes);
    o->dy = tensor_random(dtype, layout, &seed, count, sizes);
    count = tensor_sizes(p, total(p, 1), p->key_heads, p->width, sizes);
    o->k = tensor_random(dtype, layout, &seed, count, sizes);
    o->dk = tensor_new(dtype, layout, count, sizes);
    count = tensor_sizes(p, total(p, 1), p->key_heads, p->value_width, sizes);
    o->v = tensor_random(dtype, layout, &seed, count, sizes);
    o->dv = tensor_new(dtype, layout, count, sizes);
    if (p->ends[0]) {
        o->maximum = tensor_new(statistics, PLAIN, SIZES(p->heads, total(p, 0), 8));
        o->sum = tensor_new(statistics, PLAIN, SIZES(p->heads, total(p, 0), 8));
    } else {
        o->maximum = tensor_new(statistics, PLAIN, SIZES(p->batches, p->heads, p->queries, 8));
        o->sum = tensor_new(statistics, PLAIN, SIZES(p->batches, p->heads, p->queries, 8));
    }
    if (p->mask) {
        const bool compressed = p->mode >= 2;
        o->mask = p->mask == MASK_PLAIN
                      ? tensor_new(DTYPE_B8, PLAIN, SIZES(compressed ? 2048 : p->queries, compressed ? 2048 : p->keys))
                      : tensor_new(DTYPE_U8, layout, SIZES(p->batches, p->mask == MASK_FULL ? p->heads : 1, p->queries, p->keys));
        for (int64_t i = 0; i < o->mask.count; ++i)
            tensor_set(&o->mask, i, p->mode == 0 && p->mask == MASK_PLAIN && p->ends[0] ? 0 : check_random(&seed) % 4 == 0);
        if (p->mask == MASK_FULL) /* a row in which nothing is seen */
            for (int64_t j = 0; j < p->keys; ++j)
                tensor_set(&o->mask, j, 1);
    }
    if (p->shift) {
        const int64_t shape[] = {p->shift == SHIFT_NO_BATCH ? 1 : p->batches, p->heads, p->shift == SHIFT_ONE_ROW ? 1 : p->queries,
                                 p->keys};
        o->shift = tensor_random(dtype, layout, &seed, 4, shape);
        o->dshift = tensor_new(dtype, layout, 4, shape);
        o->eshift = calloc((size_t)o->shift.count, 8);
    }
    int64_t bits = 0;
    for (int64_t b = 0; b < p->batches; ++b) {
        const struct sequence s = sequence_of(p, b);
        bits += p->heads * s.queries * s.keys;
    }
    if (p->keep < 1) {
        const int64_t bytes = (bits + 127) / 128 * 16, one = 1;
        o->bits = malloc((size_t)bytes);
        for (int64_t i = 0; i < bytes; ++i)
            o->bits[i] = (uint8_t)(check_random(&seed) | check_random(&seed));
        o->drop = aclCreateTensor(&bytes, 1, ACL_UINT8, &one, 0, ACL_FORMAT_ND, &bytes, 1, o->bits);
    }
    o->eq = calloc((size_t)o->q.count + 1, 8);
    o->ek = calloc((size_t)o->k.count + 1, 8);
    o->ev = calloc((size_t)o->v.count + 1, 8);
}

static void drop_operands(struct operands *o)
{
    struct tensor *const all[] = {&o->q,  &o->k,    &o->v,     &o->dy,     &o->out,     &o->dq, &o->dk,
                                  &o->dv, &o->mask, &o->shift, &o->dshift, &o->maximum, &o->sum};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        if (all[i]->memory)
            tensor_free(all[i]);
    if (o->drop)
        aclDestroyTensor(o->drop);
    free(o->bits);
    free(o->eq);
    free(o->ek);
    free(o->ev);
    free(o->eshift);
}

#define INPUTS o.q.handle, o.k.handle, o.v.handle
#define GRADIENTS o.dq.handle, o.dk.handle, o.dv.handle, o.dshift.handle
#define NUMBERS scale, p->keep, p->before, p->after, p->heads, layout_name, 0, p->mode
static void run_operators(const struct problem *p, struct operands *operands, double scale)
{
    const struct operands o = *operands;
    char layout_name[8];
    strcpy(layout_name, p->layout);
    if (p->ends[0]) {
        aclIntArray *const queries = aclCreateIntArray(p->ends[0], (uint64_t)p->batches);
        aclIntArray *const keys = aclCreateIntArray(p->ends[1], (uint64_t)p->batches);
        RUN(FlashAttentionVarLenScore, INPUTS, o.shift.handle, o.drop, NULL, o.mask.handle, NULL, queries, keys, NUMBERS,
            o.maximum.handle, o.sum.handle, NULL, o.out.handle);
        RUN(FlashAttentionUnpaddingScoreGrad, INPUTS, o.dy.handle, o.shift.handle, o.drop, NULL, o.mask.handle, o.maximum.handle,
            o.sum.handle, NULL, o.out.handle, NULL, queries, keys, NUMBERS, GRADIENTS);
        aclDestroyIntArray(queries);
        aclDestroyIntArray(keys);
    } else if (p->shift_kind < 0) {
        RUN(FlashAttentionScore, INPUTS, o.shift.handle, o.drop, NULL, o.mask.handle, NULL, NUMBERS, o.maximum.handle, o.sum.handle,
            NULL, o.out.handle);
        RUN(FlashAttentionScoreGrad, INPUTS, o.dy.handle, o.shift.handle, o.drop, NULL, o.mask.handle, o.maximum.handle,
            o.sum.handle, NULL, o.out.handle, NULL, NUMBERS, GRADIENTS);
    } else {
        RUN(FlashAttentionScoreV2, INPUTS, o.shift.handle, o.drop, NULL, o.mask.handle, NULL, NULL, NULL, NUMBERS, p->shift_kind,
            o.maximum.handle, o.sum.handle, NULL, o.out.handle);
        RUN(FlashAttentionScoreGradV2, INPUTS, o.dy.handle, o.shift.handle, o.drop, NULL, o.mask.handle, o.maximum.handle,
            o.sum.handle, NULL, o.out.handle, NULL, NULL, NULL, NUMBERS, p->shift_kind, GRADIENTS);
    }
}

static void check_gradient(const struct tensor *t, const double *expected, double tolerance)
{
    for (int64_t i = 0; i < t->count; ++i)
        CHECK_NEAR(tensor_get(t, i), expected[i], tolerance);
}

static void test_problem(const struct problem *p, enum dtype dtype, enum layout layout)
{
    struct operands o = {0};
    const double scale = 1 / sqrt((double)p->width), tolerance = 8 * tensor_tolerance(dtype);
    make_operands(p, dtype, layout, &o);
    run_operators(p, &o, scale);
    for (int64_t b = 0; b < p->batches; ++b) {
        const struct sequence s = sequence_of(p, b);
        for (int64_t n = 0; n < p->heads; ++n)
            for (int64_t i = 0; i < s.queries; ++i)
                check_row(p, &o, b, n, i, scale, tolerance);
    }
    check_gradient(&o.dq, o.eq, tolerance);
    check_gradient(&o.dk, o.ek, tolerance);
    check_gradient(&o.dv, o.ev, 2 * tolerance);
    if (p->shift)
        check_gradient(&o.dshift, o.eshift, tolerance);
    drop_operands(&o);
}

enum { ALL = 1 << 20 };
static const int64_t query_ends[] = {5, 5, 140, 151}, key_ends[] = {7, 9, 160, 171};
static const struct problem problems[] = {
    {"BSH", 2, 2, 2, 5, 7, 8, 8, 0, ALL, ALL, MASK_NONE, SHIFT_NONE, 1, -1, {0}},
    {"SBH", 2, 4, 2, 9, 9, 4, 4, 0, ALL, ALL, MASK_PLAIN, SHIFT_NONE, 1, -1, {0}},
    {"BSND", 1, 2, 1, 6, 13, 16, 5, 1, 0, 0, MASK_FULL, SHIFT_FULL, .8, -1, {0}},
    {"BNSD", 2, 2, 2, 150, 300, 16, 16, 3, 0, 0, MASK_PLAIN, SHIFT_NONE, 1, -1, {0}},
    {"BNSD", 1, 1, 1, 300, 270, 8, 8, 2, 0, 0, MASK_PLAIN, SHIFT_NONE, .7, -1, {0}},
    {"BNSD", 1, 2, 2, 140, 530, 8, 8, 4, 20, 3, MASK_PLAIN, SHIFT_NONE, 1, -1, {0}},
    {"BNSD", 2, 3, 3, 12, 11, 8, 8, 0, 3, 2, MASK_BATCH, SHIFT_NO_BATCH, 1, 0, {0}},
    {"BSH", 2, 2, 1, 10, 6, 8, 8, 0, ALL, ALL, MASK_BATCH, SHIFT_ONE_ROW, 1, 1, {0}},
    {"BNSD", 1, 1, 1, 4, 4, 300, 270, 0, ALL, ALL, MASK_NONE, SHIFT_NONE, 1, -1, {0}},
    {"TND", 4, 2, 1, 135, 151, 8, 8, 3, 0, 0, MASK_PLAIN, SHIFT_NONE, .9, -1, {query_ends, key_ends}},
    {"TND", 4, 2, 2, 135, 151, 8, 4, 0, ALL, ALL, MASK_NONE, SHIFT_NONE, 1, -1, {query_ends, key_ends}},
};

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_F64};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
        for (int t = 0; t < 4; ++t)
            for (int layout = 0; layout < LAYOUTS; ++layout)
                if (problems[i].queries < 100 || layout == (int)(i % LAYOUTS))
                    test_problem(&problems[i], types[t], (enum layout)layout);
}

static void test_refusals(void)
{
    struct tensor q = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 2, 4, 8)), k = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 2, 4, 8));
    struct tensor wrong = tensor_new(DTYPE_F16, PLAIN, SIZES(1, 2, 4, 8)),
                  statistics = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 2, 4, 8));
    char layout[] = "BNSD", unknown[] = "NBSD";
#define SCORE(query, key, name, heads, mode, keep)                                                                           \
    query, key, k.handle, NULL, NULL, NULL, NULL, NULL, 1.0, keep, 10, 10, heads, name, 0, mode, statistics.handle, statistics.handle,   \
        NULL, k.handle
    REFUSE(FlashAttentionScore, ACLNN_ERROR_NULLPTR, "query", SCORE(NULL, k.handle, layout, 2, 0, 1));
    REFUSE(FlashAttentionScore, ACLNN_ERROR_PARAM, "f16", SCORE(q.handle, wrong.handle, layout, 2, 0, 1));
    REFUSE(FlashAttentionScore, ACLNN_ERROR_PARAM, "NBSD", SCORE(q.handle, k.handle, unknown, 2, 0, 1));
    REFUSE(FlashAttentionScore, ACLNN_ERROR_PARAM, "headNum is 3", SCORE(q.handle, k.handle, layout, 3, 0, 1));
    REFUSE(FlashAttentionScore, ACLNN_ERROR_PARAM, "sparseMode is 9", SCORE(q.handle, k.handle, layout, 2, 9, 1));
    REFUSE(FlashAttentionScore, ACLNN_ERROR_PARAM, "dropMask", SCORE(q.handle, k.handle, layout, 2, 0, .5));
    tensor_free(&q);
    tensor_free(&k);
    tensor_free(&wrong);
    tensor_free(&statistics);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_refusals();
    return check_result();
}
