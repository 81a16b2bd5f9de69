/* Phase 1 of LSTM, GRU and their gradients. See recurrent.h. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/recurrent.h"
#include "aclnnop/all_operators.h"

enum { LISTS = 7, OPERANDS = R_GRAD_CELL + 1 };

struct request {
    enum operator_id id;
    bool gru, backward, has_bias, train, bidirectional, batch_first;
    int64_t layers;
    double dropout;
    const aclTensor *operand[OPERANDS];
    const aclTensorList *parameters, *gradients, *saved[LISTS];
};

static const char *const operand_names[2][OPERANDS] = {
    {"input", "batchSizes", "h of hx", "c of hx", "output", "hy", "cy"},
    {"input", "batchSizes", "h of hx", "c of hx", "dy", "dh", "dc", "dxOut", "dhPrevOut", "dcPrevOut"}};
/* Where each list of the signature belongs. */
static const int lstm_slots[LISTS] = {0, 2, 1, 3, SAVED_HIDDEN, SAVED_CELL, SAVED_TANH};
static const int gru_slots[LISTS] = {0, 1, 2, SAVED_PART, SAVED_HIDDEN, -1, -1};

/* --- sizes ---------------------------------------------------------------------------------------------------------- */

/* Steps and batch as two dimensions, steps first, whatever the caller's form. */
static int shape_rows(struct plan *plan, const struct request *q, const struct network *n, int operand)
{
    struct view *const v = &plan->operands[operand];
    const bool packed = plan->operands[R_SIZES].dtype != DTYPE_NONE;
    if (v->dtype == DTYPE_NONE)
        return 0;
    if (packed && v->ndim == 2 && n->steps > 0 && v->sizes[0] % n->steps == 0) {
        v->ndim = 3;
        v->sizes[2] = v->sizes[1];
        v->strides[2] = v->strides[1];
        v->sizes[1] = v->sizes[0] / n->steps;
        v->strides[1] = v->strides[0];
        v->strides[0] = v->strides[1] * v->sizes[1];
        v->sizes[0] = n->steps;
        view_refresh(v);
    } else if (q->batch_first && !packed && v->ndim == 3) {
        view_swap_dims(v, 0, 1);
        view_refresh(v);
    }
    REQUIRE(v->ndim == 3, ACLNN_ERROR_PARAM, "%s: %s is %s; 3 dimensions (steps, batch, features) are needed%s",
            operator_name(q->id), operand_names[q->backward][operand], view_text(v),
            packed ? ", or 2 with steps times batch rows" : "");
    return 0;
}

static int set_sizes(struct plan *plan, const struct request *q, struct network *n)
{
    const char *const name = operator_name(q->id);
    const struct view *const sizes = &plan->operands[R_SIZES], *const input = &plan->operands[R_INPUT];
    n->steps = 0;
    if (sizes->dtype != DTYPE_NONE) {
        REQUIRE(sizes->dtype == DTYPE_I64 && sizes->ndim == 1, ACLNN_ERROR_PARAM,
                "%s: batchSizes is %s; i64 of 1 dimension is needed", name, view_text(sizes));
        n->steps = sizes->sizes[0];
    }
    TRY(check_floating(plan, input, "input"));
    TRY(shape_rows(plan, q, n, R_INPUT));
    REQUIRE(sizes->dtype == DTYPE_NONE || input->sizes[0] == n->steps, ACLNN_ERROR_PARAM,
            "%s: batchSizes has %lld steps, input is %s", name, (long long)n->steps, view_text(input));
    REQUIRE(q->layers > 0 && q->layers < INT32_MAX, ACLNN_ERROR_PARAM, "%s: numLayers is %lld; at least 1 is needed", name,
            (long long)q->layers);
    REQUIRE(q->dropout == 0 || !q->train || q->layers == 1, ACLNN_ERROR_PARAM,
            "%s: dropout is %g; between layers in training only 0 is supported", name, q->dropout);
    *n = (struct network){.gru = q->gru, .has_bias = q->has_bias, .train = q->train || q->backward};
    n->gates = q->gru ? 3 : RECURRENT_GATES;
    n->directions = q->bidirectional ? 2 : 1;
    n->layers = q->layers;
    n->steps = input->sizes[0];
    n->batch = input->sizes[1];
    n->input = input->sizes[2];
    n->type = accumulate_of((enum dtype)input->dtype);
    n->compute = n->type == ACCUMULATE_F64 ? DTYPE_F64 : DTYPE_F32;
    n->bytes = accumulate_bytes(n->type);
    return 0;
}

/* --- lists ---------------------------------------------------------------------------------------------------------- */

static int check_list(const struct request *q, const aclTensorList *list, const char *name, int64_t count)
{
    REQUIRE(list, ACLNN_ERROR_NULLPTR, "%s: %s is null", operator_name(q->id), name);
    REQUIRE((int64_t)list->count == count, ACLNN_ERROR_PARAM, "%s: %s has %llu tensors; %lld are needed", operator_name(q->id),
            name, (unsigned long long)list->count, (long long)count);
    return 0;
}

/* One member: of the input's type, with these sizes and memory. */
static int take(const struct plan *plan, const aclTensorList *list, int64_t i, const char *name, const int64_t *sizes, int ndim,
                struct view *view)
{
    const char *const operator = plan_name(plan);
    const aclTensor *const t = list->tensors[i];
    REQUIRE(t, ACLNN_ERROR_NULLPTR, "%s: %s[%lld] is null", operator, name, (long long)i);
    REQUIRE(t->view.dtype == plan->operands[R_INPUT].dtype, ACLNN_ERROR_PARAM,
            "%s: %s[%lld] is %s; it must have the type of input, %s", operator, name, (long long)i, view_text(&t->view),
            dtype_name((enum dtype)plan->operands[R_INPUT].dtype));
    TRY(check_sizes(plan, &t->view, name, sizes, ndim));
    REQUIRE(t->view.data || t->view.count == 0, ACLNN_ERROR_NULLPTR, "%s: %s[%lld] has elements but no memory", operator, name,
            (long long)i);
    *view = t->view;
    return 0;
}

static int take_parameters(const struct plan *plan, const struct network *n, const aclTensorList *list, const char *name,
                           struct view *views)
{
    const int each = n->has_bias ? 4 : 2;
    for (int64_t i = 0; i < (int64_t)list->count; ++i) {
        const int which = (int)(i % each);
        const int64_t width = recurrent_width(n, i / each / n->directions);
        const int64_t sizes[] = {n->gates * n->hidden, which == 0 ? width : n->hidden};
        TRY(take(plan, list, i, name, sizes, which < 2 ? 2 : 1, &views[i]));
    }
    return 0;
}

static int take_lists(struct plan *plan, const struct request *q, struct network *n, struct view *views)
{
    const int64_t each = n->layers * n->directions, parameters = each * (n->has_bias ? 4 : 2);
    const int *const slots = q->gru ? gru_slots : lstm_slots;
    const int64_t sizes[] = {n->steps, n->batch, n->hidden};
    n->parameters = views;
    TRY(take_parameters(plan, n, q->parameters, "params", views));
    views += parameters;
    if (q->gradients) {
        TRY(take_parameters(plan, n, q->gradients, "dparamsOut", views));
        for (int64_t i = 0; i < parameters; ++i)
            TRY(check_output_not_expanded(plan, &views[i], "dparamsOut"));
        n->gradients = views;
        views += parameters;
    }
    for (int k = 0; n->train && k < LISTS; ++k) {
        if (slots[k] < 0)
            continue;
        for (int64_t i = 0; i < each; ++i) {
            TRY(take(plan, q->saved[k], i, "a list of saved tensors", sizes, 3, &views[i]));
            if (!q->backward)
                TRY(check_output_not_expanded(plan, &views[i], "a saved tensor"));
        }
        n->saved[slots[k]] = views;
        views += each;
    }
    return 0;
}

static int check_lists(const struct request *q, const struct network *n, int64_t *count)
{
    const int64_t each = n->layers * n->directions, parameters = each * (n->has_bias ? 4 : 2);
    const int lists = !n->train ? 0 : q->gru ? 5 : LISTS;
    TRY(check_list(q, q->parameters, "params", parameters));
    if (q->gradients)
        TRY(check_list(q, q->gradients, "dparamsOut", parameters));
    for (int k = 0; k < lists; ++k)
        TRY(check_list(q, q->saved[k], "a list of saved tensors", each));
    *count = parameters * (q->gradients ? 2 : 1) + lists * each;
    return 0;
}

/* --- operands and rooms --------------------------------------------------------------------------------------------- */

static int check_operands(struct plan *plan, const struct request *q, const struct network *n)
{
    const int64_t states[] = {n->layers * n->directions, n->batch, n->hidden};
    const int64_t rows[] = {n->steps, n->batch, n->directions * n->hidden}, given[] = {n->steps, n->batch, n->input};
    for (int i = R_HIDDEN; i < plan->operand_count; ++i) {
        struct view *const v = &plan->operands[i];
        const char *const name = operand_names[q->backward][i];
        if (v->dtype == DTYPE_NONE)
            continue;
        TRY(check_same_dtype(plan, v, name, &plan->operands[R_INPUT], "input"));
        if (i == R_OUTPUT || i == R_GRAD_INPUT)
            TRY(shape_rows(plan, q, n, i));
        TRY(check_sizes(plan, v, name, i == R_OUTPUT ? rows : i == R_GRAD_INPUT ? given : states, 3));
        if (plan->roles[i] != ROLE_INPUT)
            TRY(check_output_not_expanded(plan, v, name));
    }
    return 0;
}

/* Elements of the compute type, or -1 after an overflow was noted. */
static int64_t reserve(struct staging *s, const struct network *n, int64_t rows, int64_t width, bool *too_large)
{
    int64_t bytes;
    if (__builtin_mul_overflow(rows, width, &bytes) || __builtin_mul_overflow(bytes, n->bytes, &bytes) || bytes > INT64_MAX / 64) {
        *too_large = true;
        return -1;
    }
    return stage_reserve(s, (uint64_t)bytes);
}

static int set_rooms(const struct plan *plan, const struct request *q, struct staging *s, struct network *n)
{
    struct recurrent_rooms *const r = &n->rooms;
    const int64_t gates = n->gates * n->hidden, output = n->directions * n->hidden;
    const int64_t widest = n->input > output ? n->input : output;
    int64_t rows;
    bool too_large = __builtin_mul_overflow(n->steps, n->batch, &rows);
    memset(r, -1, sizeof *r);
    for (int i = 0; i < 2; ++i) {
        r->layer[i] = reserve(s, n, rows, widest, &too_large);
        r->state[i] = reserve(s, n, n->batch, n->hidden, &too_large);
        if (q->backward)
            r->before[i] = reserve(s, n, rows, n->hidden, &too_large);
        else
            r->bias[i] = reserve(s, n, 1, gates, &too_large);
    }
    r->sums = reserve(s, n, rows, gates, &too_large);
    r->hidden_sums = reserve(s, n, q->backward ? rows : n->batch, gates, &too_large);
    for (int i = 0; i < SAVED_COUNT; ++i)
        if (n->saved[i] || i == SAVED_HIDDEN || (i == SAVED_CELL && !n->gru))
            r->saved[i] = reserve(s, n, rows, n->hidden, &too_large);
    if (q->backward) {
        r->given = reserve(s, n, rows, widest, &too_large);
        r->step = reserve(s, n, n->batch, n->hidden, &too_large);
        r->weight[0] = reserve(s, n, gates, widest, &too_large);
        r->weight[1] = reserve(s, n, 1, gates, &too_large);
    }
    REQUIRE(!too_large && s->bytes < INT64_MAX, ACLNN_ERROR_PARAM, "%s: input %s with %lld hidden features is too large",
            operator_name(q->id), view_text(&plan->operands[R_INPUT]), (long long)n->hidden);
    return 0;
}

static int add_operands(struct plan *plan, const struct request *q)
{
    for (int i = 0; i < (q->backward ? OPERANDS : R_GRAD_INPUT); ++i) {
        const bool output = i >= (q->backward ? R_GRAD_INPUT : R_OUTPUT);
        const bool needed = i == R_INPUT || (!q->backward && i >= R_OUTPUT && !(q->gru && i == R_LAST_CELL));
        const char *const name = operand_names[q->backward][i];
        if (needed)
            TRY((output ? plan_output : plan_input)(plan, q->operand[i], name, NULL));
        else
            TRY(plan_optional(plan, q->operand[i], output ? ROLE_OUTPUT : ROLE_INPUT, name, NULL));
    }
    return 0;
}

/* Hidden features: a column of weight_hh each. */
static int set_hidden(const struct request *q, struct network *n)
{
    const aclTensor *const weight = q->parameters->tensors[1];
    REQUIRE(weight, ACLNN_ERROR_NULLPTR, "%s: params[1] is null", operator_name(q->id));
    REQUIRE(weight->view.ndim == 2, ACLNN_ERROR_PARAM, "%s: params[1] is %s; 2 dimensions are needed", operator_name(q->id),
            view_text(&weight->view));
    n->hidden = weight->view.sizes[1];
    REQUIRE(n->hidden <= INT32_MAX, ACLNN_ERROR_PARAM, "%s: params[1] is %s; at most %d hidden features are possible",
            operator_name(q->id), view_text(&weight->view), INT32_MAX);
    return 0;
}

static int plan_network(const struct request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct network n;
    int64_t views;
    char *memory;
    TRY(plan_begin(q->id, q->backward ? recurrent_backward_run : recurrent_forward_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, add_operands(plan, q));
    PLAN_TRY(plan, set_sizes(plan, q, &n));
    PLAN_TRY(plan, check_lists(q, &n, &views));
    PLAN_TRY(plan, set_hidden(q, &n));
    const size_t view_bytes = (size_t)views * sizeof(struct view);
    const size_t step_bytes = plan->operands[R_SIZES].dtype == DTYPE_NONE ? 0 : (size_t)n.steps * sizeof(int64_t);
    PLAN_TRY(plan, plan_extra(plan, view_bytes + step_bytes + sizeof n, (void **)&memory));
    PLAN_TRY(plan, take_lists(plan, q, &n, (struct view *)(void *)memory));
    plan->extra_views = (struct view *)(void *)memory;
    plan->extra_view_count = views;
    PLAN_TRY(plan, check_operands(plan, q, &n));
    struct network_plan *const p = PLAN_IMMEDIATE(plan, struct network_plan);
    stage_begin(&p->staging);
    PLAN_TRY(plan, set_rooms(plan, q, &p->staging, &n));
    p->network = (struct network *)(void *)(memory + view_bytes + step_bytes);
    *p->network = n;
    return plan_finish(plan, p->staging.bytes, workspace_size, executor);
}

/* --- LSTM ----------------------------------------------------------------------------------------------------------- */

static int set_states(struct request *q, const aclTensorList *hx)
{
    if (!hx || hx->count == 0)
        return 0;
    REQUIRE(hx->count == 2, ACLNN_ERROR_PARAM, "%s: hx has %llu tensors; the hidden and the cell state are needed",
            operator_name(q->id), (unsigned long long)hx->count);
    q->operand[R_HIDDEN] = hx->tensors[0];
    q->operand[R_CELL] = hx->tensors[1];
    return 0;
}

aclnnStatus aclnnLSTMGetWorkspaceSize(const aclTensor *input, const aclTensorList *params, const aclTensorList *hx,
                                      const aclTensor *batchSizes, bool hasBias, int64_t numLayers, double dropout, bool train,
                                      bool bidirectional, bool batchFirst, aclTensor *output, aclTensor *hy, aclTensor *cy,
                                      aclTensorList *iOut, aclTensorList *jOut, aclTensorList *fOut, aclTensorList *oOut,
                                      aclTensorList *hOut, aclTensorList *cOut, aclTensorList *tanhCOut, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    struct request q = {
        .id = OPERATOR_LSTM,
        .has_bias = hasBias,
        .train = train,
        .bidirectional = bidirectional,
        .batch_first = batchFirst,
        .layers = numLayers,
        .dropout = dropout,
        .parameters = params,
        .operand = {[R_INPUT] = input, [R_SIZES] = batchSizes, [R_OUTPUT] = output, [R_LAST_HIDDEN] = hy, [R_LAST_CELL] = cy},
        .saved = {iOut, jOut, fOut, oOut, hOut, cOut, tanhCOut}};
    TRY(set_states(&q, hx));
    return plan_network(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(LSTM)

aclnnStatus aclnnLstmBackwardGetWorkspaceSize(const aclTensor *input, const aclTensorList *hx, const aclTensorList *params,
                                              const aclTensor *dy, const aclTensor *dh, const aclTensor *dc, const aclTensorList *i,
                                              const aclTensorList *g, const aclTensorList *f, const aclTensorList *o,
                                              const aclTensorList *h, const aclTensorList *c, const aclTensorList *tanhc,
                                              const aclTensor *batchSizesOptional, bool hasBias, int64_t numLayers, double dropout,
                                              bool train, bool bidirectional, bool batchFirst, const aclBoolArray *outputMask,
                                              aclTensor *dxOut, aclTensor *dhPrevOut, aclTensor *dcPrevOut,
                                              aclTensorList *dparamsOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct request q = {.id = OPERATOR_LstmBackward,
                        .backward = true,
                        .has_bias = hasBias,
                        .train = train,
                        .bidirectional = bidirectional,
                        .batch_first = batchFirst,
                        .layers = numLayers,
                        .dropout = dropout,
                        .parameters = params,
                        .operand = {[R_INPUT] = input,
                                    [R_SIZES] = batchSizesOptional,
                                    [R_OUTPUT] = dy,
                                    [R_LAST_HIDDEN] = dh,
                                    [R_LAST_CELL] = dc,
                                    [R_GRAD_INPUT] = dxOut,
                                    [R_GRAD_HIDDEN] = dhPrevOut,
                                    [R_GRAD_CELL] = dcPrevOut},
                        .gradients = dparamsOut,
                        .saved = {i, g, f, o, h, c, tanhc}};
    (void)outputMask; /* as CANN's: what isn't wanted may be null */
    TRY(set_states(&q, hx));
    return plan_network(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(LstmBackward)

/* --- GRU ------------------------------------------------------------------------------------------------------------ */

aclnnStatus aclnnGRUGetWorkspaceSize(const aclTensor *input, const aclTensorList *params, const aclTensor *hx,
                                     const aclTensor *batchSizes, bool hasBias, int64_t numLayers, double dropout, bool train,
                                     bool bidirection, bool batchFirst, aclTensor *output, aclTensor *hy, aclTensorList *rOut,
                                     aclTensorList *zOut, aclTensorList *nOut, aclTensorList *hnOut, aclTensorList *hOut,
                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {
        .id = OPERATOR_GRU,
        .gru = true,
        .has_bias = hasBias,
        .train = train,
        .bidirectional = bidirection,
        .batch_first = batchFirst,
        .layers = numLayers,
        .dropout = dropout,
        .parameters = params,
        .operand = {[R_INPUT] = input, [R_SIZES] = batchSizes, [R_HIDDEN] = hx, [R_OUTPUT] = output, [R_LAST_HIDDEN] = hy},
        .saved = {rOut, zOut, nOut, hnOut, hOut}};
    return plan_network(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(GRU)

aclnnStatus aclnnGRUBackwardGetWorkspaceSize(const aclTensor *input, const aclTensorList *params, const aclTensor *hx,
                                             const aclTensor *dy, const aclTensor *dh, const aclTensorList *r,
                                             const aclTensorList *z, const aclTensorList *n, const aclTensorList *hn,
                                             const aclTensorList *h, const aclTensor *batchSizes, bool hasBias, int64_t numLayers,
                                             bool bidirection, bool batchFirst, aclTensor *dxOut, aclTensor *dhPrevOut,
                                             aclTensorList *dparamsOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_GRUBackward,
                              .gru = true,
                              .backward = true,
                              .has_bias = hasBias,
                              .train = true,
                              .bidirectional = bidirection,
                              .batch_first = batchFirst,
                              .layers = numLayers,
                              .parameters = params,
                              .operand = {[R_INPUT] = input,
                                          [R_SIZES] = batchSizes,
                                          [R_HIDDEN] = hx,
                                          [R_OUTPUT] = dy,
                                          [R_LAST_HIDDEN] = dh,
                                          [R_GRAD_INPUT] = dxOut,
                                          [R_GRAD_HIDDEN] = dhPrevOut},
                              .gradients = dparamsOut,
                              .saved = {r, z, n, hn, h}};
    return plan_network(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(GRUBackward)
