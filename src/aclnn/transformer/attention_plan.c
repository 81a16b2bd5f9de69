/* Checks what an attention operator was given and lays out its matrices. See attention_plan.h. */
#include "aclnn/transformer/attention_plan.h"

#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "base/arithmetic.h"

enum { NO_DIMENSION = -1 };
static const int64_t unlimited = (int64_t)1 << 40;

static const char *const parameters[ATTENTION_OPERANDS] = {
    "query", "key", "value", "realShift (pse)", "dropMask", "attenMask", "softmaxMax", "softmaxSum", "attentionOut", "dy", "dq",
    "dk",    "dv",  "dpse"};

/* Which dimension of a tensor is what; heads and columns share the last one in "BSH" and "SBH". */
struct layout {
    const char *name;
    int ndim, batch, row, head, column;
};
static const struct layout layouts[] = {{"BSH", 3, 0, 1, 2, 2},
                                        {"SBH", 3, 1, 0, 2, 2},
                                        {"BSND", 4, 0, 1, 2, 3},
                                        {"BNSD", 4, 0, 2, 1, 3},
                                        {"TND", 3, NO_DIMENSION, 0, 1, 2}};

struct shape {
    int64_t batches, rows, heads, width;
};

static int find_layout(const struct attention_request *q, const struct layout **layout)
{
    const size_t count = sizeof layouts / sizeof layouts[0];
    REQUIRE(q->layout, ACLNN_ERROR_NULLPTR, "%s: inputLayout is null", operator_name(q->id));
    for (size_t i = 0; i < count; ++i)
        if (strcmp(q->layout, layouts[i].name) == 0)
            *layout = &layouts[i];
    REQUIRE(*layout, ACLNN_ERROR_PARAM, "%s: inputLayout is \"%s\"; allowed are BSH, SBH, BSND, BNSD, TND", operator_name(q->id),
            q->layout);
    const bool packed = (*layout)->batch == NO_DIMENSION, has_ends = q->query_ends && q->key_ends && q->query_ends->count > 0;
    REQUIRE(!packed || has_ends, ACLNN_ERROR_PARAM, "%s: inputLayout is \"TND\", which needs both lists of sequence ends",
            operator_name(q->id));
    REQUIRE(packed || !has_ends, ACLNN_ERROR_PARAM, "%s: inputLayout is \"%s\", but lists of sequence ends go with \"TND\"",
            operator_name(q->id), q->layout);
    return 0;
}

/* width: of one head, for layouts that merge heads and columns; 0: follows from heads. */
static int read_shape(const struct plan *plan, const struct layout *l, enum attention_operand which, int64_t heads, int64_t width,
                      struct shape *s)
{
    const struct view *const v = &plan->operands[which];
    REQUIRE(v->ndim == l->ndim, ACLNN_ERROR_PARAM, "%s: %s is %s; layout %s has %d dimensions", plan_name(plan), parameters[which],
            view_text(v), l->name, l->ndim);
    REQUIRE(dtype_is_floating((enum dtype)v->dtype) && v->dtype == plan->operands[ATTENTION_QUERY].dtype, ACLNN_ERROR_PARAM,
            "%s: %s is %s, query is %s; all must be of one type among f64, f32, f16, bf16", plan_name(plan), parameters[which],
            view_text(v), view_text(&plan->operands[ATTENTION_QUERY]));
    s->batches = l->batch == NO_DIMENSION ? 1 : v->sizes[l->batch];
    s->rows = v->sizes[l->row];
    if (l->head != l->column) {
        s->heads = v->sizes[l->head];
        s->width = v->sizes[l->column];
        return 0;
    }
    const int64_t all = v->sizes[l->column];
    s->heads = heads > 0 ? heads : width > 0 ? all / width : 1;
    s->heads = s->heads > 0 ? s->heads : 1;
    s->width = all / s->heads;
    REQUIRE(s->heads * s->width == all, ACLNN_ERROR_PARAM, "%s: the last dimension of %s %s isn't a whole number of heads",
            plan_name(plan), parameters[which], view_text(v));
    return 0;
}

static void set_place(const struct plan *plan, const struct layout *l, enum attention_operand which, int64_t width,
                      struct attention *a)
{
    const struct view *const v = &plan->operands[which];
    struct attention_place *const p = &a->places[which];
    p->batch = l->batch == NO_DIMENSION ? 0 : v->strides[l->batch];
    p->row = v->strides[l->row];
    p->column = v->strides[l->column];
    p->head = l->head == l->column ? width * p->column : v->strides[l->head];
}

static int check_result(const struct plan *plan, const struct layout *l, enum attention_operand which, struct shape wanted,
                        struct attention *a)
{
    struct shape s;
    TRY(read_shape(plan, l, which, wanted.heads, 0, &s));
    REQUIRE(s.batches == wanted.batches && s.rows == wanted.rows && s.heads == wanted.heads && s.width == wanted.width,
            ACLNN_ERROR_PARAM, "%s: %s is %s; it must hold %lld batches, %lld rows, %lld heads of width %lld", plan_name(plan),
            parameters[which], view_text(&plan->operands[which]), (long long)wanted.batches, (long long)wanted.rows,
            (long long)wanted.heads, (long long)wanted.width);
    set_place(plan, l, which, s.width, a);
    return 0;
}

static int set_matrices(struct plan *plan, const struct attention_request *q, const struct layout *l, struct attention *a)
{
    struct shape query, key, value;
    REQUIRE(q->heads > 0, ACLNN_ERROR_PARAM, "%s: headNum is %lld", plan_name(plan), (long long)q->heads);
    TRY(read_shape(plan, l, ATTENTION_QUERY, q->heads, 0, &query));
    TRY(read_shape(plan, l, ATTENTION_KEY, 0, query.width, &key));
    TRY(read_shape(plan, l, ATTENTION_VALUE, key.heads, 0, &value));
    REQUIRE(query.heads == q->heads, ACLNN_ERROR_PARAM, "%s: headNum is %lld, but query is %s", plan_name(plan),
            (long long)q->heads, view_text(&plan->operands[ATTENTION_QUERY]));
    REQUIRE(key.width == query.width && key.batches == query.batches && value.batches == key.batches && value.rows == key.rows &&
                value.heads == key.heads && key.heads > 0 && query.heads % key.heads == 0,
            ACLNN_ERROR_PARAM,
            "%s: query %s, key %s and value %s don't fit each other (batches and widths equal, heads of query a multiple of key's)",
            plan_name(plan), view_text(&plan->operands[ATTENTION_QUERY]), view_text(&plan->operands[ATTENTION_KEY]),
            view_text(&plan->operands[ATTENTION_VALUE]));
    a->type = accumulate_of((enum dtype)plan->operands[ATTENTION_QUERY].dtype);
    a->heads = query.heads;
    a->key_heads = key.heads;
    a->width = query.width;
    a->value_width = value.width;
    a->query_rows = query.rows;
    a->key_rows = key.rows;
    set_place(plan, l, ATTENTION_QUERY, query.width, a);
    set_place(plan, l, ATTENTION_KEY, key.width, a);
    set_place(plan, l, ATTENTION_VALUE, value.width, a);
    const struct shape out = {query.batches, query.rows, query.heads, value.width};
    TRY(check_result(plan, l, ATTENTION_OUT, out, a));
    if (!q->backward)
        return 0;
    TRY(check_result(plan, l, ATTENTION_GRAD_OUT, out, a));
    TRY(check_result(plan, l, ATTENTION_GRAD_QUERY, query, a));
    TRY(check_result(plan, l, ATTENTION_GRAD_KEY, key, a));
    return check_result(plan, l, ATTENTION_GRAD_VALUE, value, a);
}

/* Packed sequences from their ends; a plain tensor's are all alike. */
static int set_sequences(struct plan *plan, const struct attention_request *q, const struct layout *l, struct attention *a)
{
    int64_t bits = 0, query = 0, key = 0;
    const bool packed = l->batch == NO_DIMENSION;
    const int64_t all_queries = a->query_rows, all_keys = a->key_rows;
    if (packed)
        a->query_rows = a->key_rows = 0;
    for (int64_t i = 0; i < a->batches; ++i) {
        struct attention_sequence *const s = &a->sequences[i];
        s->query_start = packed ? query : 0;
        s->key_start = packed ? key : 0;
        s->query_rows = packed ? q->query_ends->values[i] - query : a->query_rows;
        s->key_rows = packed ? q->key_ends->values[i] - key : a->key_rows;
        s->first_bit = bits;
        REQUIRE(s->query_rows >= 0 && s->key_rows >= 0 && s->query_start + s->query_rows <= all_queries &&
                    s->key_start + s->key_rows <= all_keys,
                ACLNN_ERROR_PARAM, "%s: sequence %lld ends at query %lld and key %lld; there are %lld and %lld", plan_name(plan),
                (long long)i, (long long)(s->query_start + s->query_rows), (long long)(s->key_start + s->key_rows),
                (long long)all_queries, (long long)all_keys);
        bits += a->heads * s->query_rows * s->key_rows;
        query += s->query_rows;
        key += s->key_rows;
        a->query_rows = a->query_rows > s->query_rows ? a->query_rows : s->query_rows;
        a->key_rows = a->key_rows > s->key_rows ? a->key_rows : s->key_rows;
    }
    const struct view *const drop = &plan->operands[ATTENTION_DROP];
    a->dropped = q->keep < 1;
    if (!a->dropped)
        return 0;
    REQUIRE(q->keep >= 0 && (drop->dtype == DTYPE_U8 || drop->dtype == DTYPE_B8) && drop->contiguous &&
                drop->count >= (bits + 7) / 8,
            ACLNN_ERROR_PARAM, "%s: keepProb is %g and dropMask %s; it must hold %lld bits in contiguous u8", plan_name(plan),
            q->keep, drop->dtype == DTYPE_NONE ? "is missing" : view_text(drop), (long long)bits);
    a->drop_factor = q->keep > 0 ? 1 / q->keep : 0;
    return 0;
}

/* A tensor of [batch, head, row, column], each size the whole one or 1; the last two alone will do. */
static int set_broadcast(struct plan *plan, enum attention_operand which, bool packed, struct attention *a)
{
    const struct view *const v = &plan->operands[which];
    const int64_t wanted[] = {a->batches, a->heads, a->query_rows, a->key_rows};
    int64_t strides[4] = {0};
    REQUIRE(v->ndim == 2 || v->ndim == 4, ACLNN_ERROR_PARAM, "%s: %s is %s; it must have 2 or 4 dimensions", plan_name(plan),
            parameters[which], view_text(v));
    for (int d = 0; d < v->ndim; ++d) {
        const int at = 4 - v->ndim + d;
        const bool larger = packed && at >= 2 && v->sizes[d] > wanted[at];
        REQUIRE(v->sizes[d] == wanted[at] || v->sizes[d] == 1 || larger, ACLNN_ERROR_PARAM,
                "%s: %s is %s; it must fit [%lld, %lld, %lld, %lld]", plan_name(plan), parameters[which], view_text(v),
                (long long)wanted[0], (long long)wanted[1], (long long)wanted[2], (long long)wanted[3]);
        strides[at] = v->sizes[d] == 1 ? 0 : v->strides[d];
    }
    a->places[which] = (struct attention_place){strides[0], strides[1], strides[2], strides[3]};
    return 0;
}

static int64_t within_limits(int64_t tokens) { return tokens > unlimited ? unlimited : tokens < -unlimited ? -unlimited : tokens; }

/* Without a mask tensor every query sees every key, whatever the mode says. */
static int set_mask(struct plan *plan, const struct attention_request *q, bool packed, struct attention *a)
{
    enum { DEFAULT, ALL, CAUSAL, CAUSAL_FROM_END, BAND, PREFIX, PREFIX_COMPRESSED };
    const struct view *const v = &plan->operands[ATTENTION_MASK];
    const int64_t mode = q->sparse_mode;
    REQUIRE(mode >= DEFAULT && mode <= PREFIX_COMPRESSED, ACLNN_ERROR_PARAM, "%s: sparseMode is %lld; 0 to 6 are supported",
            plan_name(plan), (long long)mode);
    if (v->count == 0 || v->dtype == DTYPE_NONE)
        return 0;
    REQUIRE(v->dtype == DTYPE_B8 || v->dtype == DTYPE_U8, ACLNN_ERROR_PARAM, "%s: attenMask is %s; it must be bool or u8",
            plan_name(plan), view_text(v));
    a->masked = mode == DEFAULT || mode == ALL || mode == PREFIX;
    a->banded = mode == DEFAULT || !a->masked;
    a->from_end = mode == CAUSAL_FROM_END || mode == BAND || mode == PREFIX_COMPRESSED;
    const bool free_band = mode == DEFAULT || mode == BAND;
    a->before = free_band ? within_limits(q->before) : unlimited;
    a->after = free_band ? within_limits(q->after) : 0;
    if (mode == DEFAULT && a->before >= a->query_rows && a->after >= a->key_rows)
        a->banded = false;
    if (mode == PREFIX_COMPRESSED) {
        REQUIRE(q->prefix && (int64_t)q->prefix->count == a->batches, ACLNN_ERROR_PARAM,
                "%s: sparseMode 6 needs a prefix for each of the %lld sequences", plan_name(plan), (long long)a->batches);
        for (int64_t i = 0; i < a->batches; ++i)
            a->sequences[i].prefix = least(q->prefix->values[i], a->sequences[i].key_rows);
    }
    return a->masked ? set_broadcast(plan, ATTENTION_MASK, packed, a) : 0;
}

static int set_shift(struct plan *plan, const struct attention_request *q, bool packed, struct attention *a, struct staging *s)
{
    const struct view *const v = &plan->operands[ATTENTION_SHIFT], *const gradient = &plan->operands[ATTENTION_GRAD_SHIFT];
    a->shift_gradient = -1;
    a->shift_first = q->shift_kind == 1;
    if (v->dtype == DTYPE_NONE || v->count == 0)
        return 0;
    REQUIRE(q->shift_kind == 0 || q->shift_kind == 1, ACLNN_ERROR_PARAM,
            "%s: pseType is %lld; supported are 0 (scale, then add) and 1 (add, then scale)", plan_name(plan),
            (long long)q->shift_kind);
    REQUIRE(dtype_is_floating((enum dtype)v->dtype), ACLNN_ERROR_PARAM,
            "%s: realShift (pse) is %s; allowed are f64, f32, f16, bf16", plan_name(plan), view_text(v));
    a->shifted = true;
    TRY(set_broadcast(plan, ATTENTION_SHIFT, packed, a));
    if (!q->backward || gradient->dtype == DTYPE_NONE || gradient->count == 0)
        return 0;
    REQUIRE(view_same_sizes(v, gradient) && dtype_is_floating((enum dtype)gradient->dtype) &&
                a->places[ATTENTION_SHIFT].column != 0,
            ACLNN_ERROR_PARAM, "%s: dpse is %s, but pse is %s", plan_name(plan), view_text(gradient), view_text(v));
    struct view dense = *gradient; /* the sums' own layout */
    view_make_contiguous(&dense);
    struct attention_place *const p = &a->places[ATTENTION_GRAD_SHIFT];
    for (int d = 0; d < dense.ndim; ++d) {
        int64_t *const strides[] = {&p->batch, &p->head, &p->row, &p->column};
        *strides[4 - dense.ndim + d] = dense.sizes[d] == 1 ? 0 : dense.strides[d];
    }
    p->column = 1;
    a->shift_gradient = stage_reserve(s, (uint64_t)(dense.count * attention_bytes(a)));
    return 0;
}

/* [batch, head, row, lane], of packed sequences [head, row, lane] or [row, head, lane]. */
static int set_statistic(struct plan *plan, enum attention_operand which, bool packed, bool needed, struct attention *a)
{
    const struct view *const v = &plan->operands[which];
    if (!needed && (v->dtype == DTYPE_NONE || v->count == 0))
        return 0;
    const int64_t rows = packed ? plan->operands[ATTENTION_QUERY].sizes[0] : a->batches * a->query_rows;
    REQUIRE((v->dtype == DTYPE_F32 || v->dtype == DTYPE_F64) && v->ndim == (packed ? 3 : 4) && v->sizes[v->ndim - 1] > 0 &&
                v->count == rows * a->heads * v->sizes[v->ndim - 1] && (packed || v->sizes[0] == a->batches),
            ACLNN_ERROR_PARAM, "%s: %s is %s; it must be f32 with 8 lanes for each of %lld heads and %lld rows", plan_name(plan),
            parameters[which], v->dtype == DTYPE_NONE ? "missing" : view_text(v), (long long)a->heads, (long long)rows);
    struct attention_place *const p = &a->places[which];
    p->batch = packed ? 0 : v->strides[0];
    p->column = v->strides[v->ndim - 1];
    const bool heads_first = !packed || v->sizes[0] != rows;
    p->head = v->strides[packed ? !heads_first : 1];
    p->row = v->strides[packed ? heads_first : 2];
    REQUIRE(v->sizes[packed ? !heads_first : 1] == a->heads, ACLNN_ERROR_PARAM, "%s: %s is %s, but there are %lld heads",
            plan_name(plan), parameters[which], view_text(v), (long long)a->heads);
    return 0;
}

static int add_operands(struct plan *plan, const struct attention_request *q)
{
    for (int i = 0; i < (q->backward ? ATTENTION_OPERANDS : ATTENTION_OUT + 1); ++i) {
        const bool statistic = i == ATTENTION_MAXIMUM || i == ATTENTION_SUM || i == ATTENTION_OUT;
        const enum operand_role role = i >= ATTENTION_GRAD_QUERY || (statistic && !q->backward) ? ROLE_OUTPUT : ROLE_INPUT;
        const bool optional = (i >= ATTENTION_SHIFT && i <= ATTENTION_SUM) || i == ATTENTION_GRAD_SHIFT;
        if (!optional)
            TRY(check_not_null(plan, q->tensors[i], parameters[i]));
        TRY(plan_optional(plan, q->tensors[i], role, parameters[i], NULL));
    }
    return 0;
}

static int set_all(struct plan *plan, const struct attention_request *q, struct staging *s)
{
    const struct layout *layout = NULL;
    struct attention *a;
    void *memory;
    TRY(find_layout(q, &layout));
    TRY(add_operands(plan, q));
    const bool packed = layout->batch == NO_DIMENSION;
    const struct view *const query = &plan->operands[ATTENTION_QUERY];
    REQUIRE(query->ndim == layout->ndim, ACLNN_ERROR_PARAM, "%s: query is %s; layout %s has %d dimensions", plan_name(plan),
            view_text(query), layout->name, layout->ndim);
    REQUIRE(!packed || q->query_ends->count == q->key_ends->count, ACLNN_ERROR_PARAM, "%s: %llu query ends and %llu key ends",
            plan_name(plan), (unsigned long long)q->query_ends->count, (unsigned long long)q->key_ends->count);
    const int64_t batches = packed ? (int64_t)q->query_ends->count : query->sizes[layout->batch];
    TRY(plan_extra(plan, sizeof *a + (size_t)batches * sizeof a->sequences[0], &memory));
    a = memory;
    a->batches = batches;
    a->scale = q->scale;
    TRY(set_matrices(plan, q, layout, a));
    TRY(set_sequences(plan, q, layout, a));
    TRY(set_mask(plan, q, packed, a));
    TRY(set_shift(plan, q, packed, a, s));
    TRY(set_statistic(plan, ATTENTION_MAXIMUM, packed, q->backward, a));
    return set_statistic(plan, ATTENTION_SUM, packed, q->backward, a);
}

int attention_plan(const struct attention_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct staging s; /* only counts the workspace: nothing is staged */
    stage_begin(&s);
    TRY(plan_begin(q->id, q->backward ? attention_backward_run : attention_forward_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, set_all(plan, q, &s));
    return plan_finish(plan, s.bytes, workspace_size, executor);
}
