/* Rotary position embedding: pairs of a row's elements turn by the angle of their position. Cosines and sines repeat over the
 * dimensions in which they have one element; results may replace their inputs. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/rotary.h"

enum { MOST_TENSORS = 2 }; /* that turn by the same angles */
enum { COSINE, SINE, FIRST };
enum { HALF, INTERLEAVED, QUARTER, INTERLEAVED_HALF, MODES };

struct rotary {
    struct staging staging;
    enum accumulate type;
    int tensors; /* operands from FIRST on: each input is followed by its result */
    bool backward, angles;
    int64_t dcosine, dsine; /* workspace offsets of double sums */
    struct rotary_table table;
};

/* --- phase 2 ---------------------------------------------------------------------------------------------------------- */

struct turn_job {
    const struct rotary *r;
    const struct view *shape, *angles; /* of x; of cosine and sine */
    const char *x, *cosine, *sine;
    char *out;
};

/* Which row of the angles belongs to a row of x. */
static int64_t angle_row(const struct view *shape, const struct view *angles, int64_t row)
{
    int64_t at = 0, step = 1;
    for (int d = shape->ndim - 2; d >= 0; --d) {
        if (angles->sizes[d] != 1)
            at += row % shape->sizes[d] * step;
        step *= angles->sizes[d];
        row /= shape->sizes[d];
    }
    return at;
}

static void turn_rows(void *argument, int64_t begin, int64_t end)
{
    const struct turn_job *const j = argument;
    const struct rotary_float_kernels *const k = &kernels->rotary->real[j->r->type];
    const int64_t bytes = j->r->table.width * accumulate_bytes(j->r->type);
    for (int64_t row = begin; row < end; ++row) {
        const int64_t angle = angle_row(j->shape, j->angles, row) * bytes;
        (j->r->backward ? k->turn_back : k->turn)(&j->r->table, j->x + row * bytes, j->cosine + angle, j->sine + angle,
                                                  j->out + row * bytes);
    }
}

static int run_turn(struct plan *plan)
{
    const struct rotary *const r = PLAN_IMMEDIATE(plan, struct rotary);
    const struct staging *const s = &r->staging;
    const char *const cosine = stage_read(plan, s, COSINE), *const sine = stage_read(plan, s, SINE);
    for (int i = 0; i < r->tensors; ++i) {
        const int from = FIRST + 2 * i, to = from + 1;
        struct turn_job j = {
            .r = r, .shape = &plan->operands[from], .angles = &plan->operands[COSINE], .cosine = cosine, .sine = sine};
        if (j.shape->count == 0)
            continue;
        j.x = stage_read(plan, s, from);
        j.out = stage_target(plan, s, to);
        parallel_for(j.shape->count / r->table.width, r->table.width, turn_rows, &j);
        stage_write_back(plan, s, to);
    }
    return 0;
}

/* Sums over all rows that share an angle, in the order of rows. Operands behind the first pair: x, dcosine, dsine. */
static void sum_angles(struct plan *plan, const struct rotary *r)
{
    enum { X = FIRST + 2, GRAD_COSINE, GRAD_SINE };
    const struct view *const shape = &plan->operands[FIRST], *const angles = &plan->operands[COSINE];
    const int64_t bytes = r->table.width * accumulate_bytes(r->type);
    if (angles->count == 0)
        return;
    const char *const dy = stage_read(plan, &r->staging, FIRST), *const x = stage_read(plan, &r->staging, X);
    double *const dcosine = stage_room(plan, r->dcosine), *const dsine = stage_room(plan, r->dsine);
    memset(dcosine, 0, (size_t)angles->count * sizeof *dcosine);
    memset(dsine, 0, (size_t)angles->count * sizeof *dsine);
    for (int64_t row = 0; row < shape->count / r->table.width; ++row) {
        const int64_t at = angle_row(shape, angles, row) * r->table.width;
        kernels->rotary->real[r->type].angles(&r->table, dy + row * bytes, x + row * bytes, dcosine + at, dsine + at);
    }
    struct view dense = *angles;
    dense.dtype = DTYPE_F64;
    view_make_contiguous(&dense);
    dense.data = (char *)dcosine;
    view_copy(&plan->operands[GRAD_COSINE], &dense);
    dense.data = (char *)dsine;
    view_copy(&plan->operands[GRAD_SINE], &dense);
}

static int run_gradient(struct plan *plan)
{
    const struct rotary *const r = PLAN_IMMEDIATE(plan, struct rotary);
    if (r->angles)
        sum_angles(plan, r);
    return run_turn(plan);
}

/* --- phase 1 ---------------------------------------------------------------------------------------------------------- */

/* Element j of the result: made of `source` and, with a sign, `partner`. */
static void pair_of(int mode, int64_t width, int64_t j, int32_t *source, int32_t *partner, float *sign)
{
    const int64_t half = width / 2, quarter = width / 4;
    int64_t own = j, other = j, below;
    switch (mode) {
    case HALF:
        below = j < half;
        other = below ? j + half : j - half;
        break;
    case INTERLEAVED:
        below = j % 2 == 0;
        other = below ? j + 1 : j - 1;
        break;
    case QUARTER:
        below = j % half < quarter;
        other = below ? j + quarter : j - quarter;
        break;
    default: /* the even elements, then the odd ones, turned as halves */
        below = j < half;
        own = below ? 2 * j : 2 * (j - half) + 1;
        other = below ? own + 1 : own - 1;
        break;
    }
    *source = (int32_t)own;
    *partner = (int32_t)other;
    *sign = below ? -1 : 1;
}

static int set_table(struct plan *plan, struct rotary *r, int64_t mode, int64_t width)
{
    void *memory;
    REQUIRE(mode >= 0 && mode < MODES, ACLNN_ERROR_PARAM, "%s: mode is %lld; 0 half, 1 interleave, 2 quarter, 3 interleave-half",
            plan_name(plan), (long long)mode);
    REQUIRE(width % (mode == QUARTER ? 4 : 2) == 0 && width < INT32_MAX, ACLNN_ERROR_PARAM,
            "%s: the last dimension has %lld elements, which can't be paired", plan_name(plan), (long long)width);
    TRY(plan_extra(plan, (size_t)(3 * width) * sizeof(int32_t), &memory));
    int32_t *const source = memory, *const partner = source + width;
    float *const sign = (float *)(void *)(partner + width);
    for (int64_t j = 0; j < width; ++j)
        pair_of((int)mode, width, j, &source[j], &partner[j], &sign[j]);
    r->table = (struct rotary_table){width, source, partner, sign};
    return 0;
}

static int check_angles(const struct plan *plan, const struct view *x, const char *name)
{
    for (int i = COSINE; i <= SINE; ++i) {
        const struct view *const a = &plan->operands[i];
        bool fits = a->ndim == x->ndim && x->ndim >= 2 && dtype_is_floating((enum dtype)a->dtype) &&
                    view_same_sizes(a, &plan->operands[COSINE]);
        for (int d = 0; fits && d < x->ndim; ++d)
            fits = a->sizes[d] == x->sizes[d] || (d < x->ndim - 1 && a->sizes[d] == 1);
        REQUIRE(fits, ACLNN_ERROR_PARAM, "%s: %s is %s and %s %s; its sizes must be those or 1, the last one equal",
                plan_name(plan), i == COSINE ? "cos" : "sin", view_text(a), name, view_text(x));
    }
    return 0;
}

struct request {
    enum operator_id id;
    const aclTensor *cosine, *sine;
    int tensors;
    const aclTensor *from[MOST_TENSORS], *to[MOST_TENSORS];
    const char *names[MOST_TENSORS];
    int64_t mode;
    bool backward;
    const aclTensor *x, *dcosine, *dsine; /* of the gradient; NULL: angles aren't wanted */
};

static int take_angle_gradients(struct plan *plan, const struct request *q, struct rotary *r)
{
    const struct view *const angles = &plan->operands[COSINE];
    struct view *x, *results[2];
    TRY(plan_input(plan, q->x, "xOptional", &x));
    TRY(plan_output(plan, q->dcosine, "dcosOut", &results[0]));
    TRY(plan_output(plan, q->dsine, "dsinOut", &results[1]));
    TRY(check_floating(plan, x, "xOptional"));
    TRY(check_floating(plan, results[0], "dcosOut"));
    TRY(check_floating(plan, results[1], "dsinOut"));
    REQUIRE(
        view_same_sizes(x, &plan->operands[FIRST]) && view_same_sizes(results[0], angles) && view_same_sizes(results[1], angles),
        ACLNN_ERROR_PARAM, "%s: xOptional %s, dcosOut %s or dsinOut %s has other sizes than dy %s or cos %s", operator_name(q->id),
        view_text(x), view_text(results[0]), view_text(results[1]), view_text(&plan->operands[FIRST]), view_text(angles));
    r->angles = true;
    r->dcosine = stage_reserve(&r->staging, (uint64_t)angles->count * sizeof(double));
    r->dsine = stage_reserve(&r->staging, (uint64_t)angles->count * sizeof(double));
    stage_operand(plan, &r->staging, x, r->type);
    return 0;
}

static int plan_rotary(const struct request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, q->backward ? run_gradient : run_turn, workspace_size, executor, &plan));
    struct rotary *const r = PLAN_IMMEDIATE(plan, struct rotary);
    stage_begin(&r->staging);
    r->tensors = q->tensors;
    r->backward = q->backward;
    r->angles = false;
    PLAN_TRY(plan, plan_input(plan, q->cosine, "cos", NULL));
    PLAN_TRY(plan, plan_input(plan, q->sine, "sin", NULL));
    for (int i = 0; i < q->tensors; ++i) {
        struct view *from, *to;
        PLAN_TRY(plan, plan_input(plan, q->from[i], q->names[i], &from));
        PLAN_TRY(plan, plan_output(plan, q->to[i], "out", &to));
        PLAN_TRY(plan, check_floating(plan, from, q->names[i]));
        PLAN_TRY(plan, check_sizes(plan, to, "out", from->sizes, from->ndim));
        PLAN_TRY(plan, check_floating(plan, to, "out"));
        PLAN_TRY(plan, check_angles(plan, from, q->names[i]));
        PLAN_TRY(plan, check_same_dtype(plan, &plan->operands[FIRST], q->names[0], from, q->names[i])); /* one kernel for all */
        r->type = accumulate_of((enum dtype)from->dtype);
        stage_operand(plan, &r->staging, from, r->type);
        stage_operand(plan, &r->staging, to, r->type);
        /* In place a row would be read after it was written in part. */
        if (r->staging.offset[FIRST + 2 * i] < 0 && r->staging.offset[FIRST + 2 * i + 1] < 0 && view_overlaps(from, to)) {
            r->staging.offset[FIRST + 2 * i] = stage_reserve(&r->staging, (uint64_t)(from->count * accumulate_bytes(r->type)));
        }
    }
    for (int i = COSINE; i <= SINE; ++i)
        stage_operand(plan, &r->staging, &plan->operands[i], r->type);
    if (q->x)
        PLAN_TRY(plan, take_angle_gradients(plan, q, r));
    PLAN_TRY(plan, set_table(plan, r, q->mode, plan->operands[FIRST].sizes[plan->operands[FIRST].ndim - 1]));
    return plan_finish(plan, r->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnRotaryPositionEmbeddingGetWorkspaceSize(const aclTensor *x, const aclTensor *cos, const aclTensor *sin,
                                                         int64_t mode, aclTensor *out, uint64_t *workspaceSize,
                                                         aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_RotaryPositionEmbedding,
                              .cosine = cos,
                              .sine = sin,
                              .tensors = 1,
                              .from = {x},
                              .to = {out},
                              .names = {"x"},
                              .mode = mode};
    return plan_rotary(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(RotaryPositionEmbedding)

aclnnStatus aclnnRotaryPositionEmbeddingGradGetWorkspaceSize(const aclTensor *dy, const aclTensor *cos, const aclTensor *sin,
                                                             const aclTensor *xOptional, int64_t mode, const aclTensor *dxOut,
                                                             const aclTensor *dcosOut, const aclTensor *dsinOut,
                                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct request q = {.id = OPERATOR_RotaryPositionEmbeddingGrad,
                              .cosine = cos,
                              .sine = sin,
                              .tensors = 1,
                              .from = {dy},
                              .to = {dxOut},
                              .names = {"dy"},
                              .mode = mode,
                              .backward = true,
                              .x = xOptional,
                              .dcosine = dcosOut,
                              .dsine = dsinOut};
    return plan_rotary(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(RotaryPositionEmbeddingGrad)

/* layout 1 BSND, 2 SBND, 3 BNSD, 4 TND: the angles' sizes of 1 say the same. */
static int plan_both(enum operator_id id, const aclTensor *const tensors[4], int64_t layout, int64_t mode, uint64_t *workspace_size,
                     aclOpExecutor **executor)
{
    REQUIRE(layout >= 1 && layout <= 4, ACLNN_ERROR_PARAM, "%s: layout is %lld; 1 BSND, 2 SBND, 3 BNSD, 4 TND", operator_name(id),
            (long long)layout);
    const struct request q = {.id = id,
                              .cosine = tensors[2],
                              .sine = tensors[3],
                              .tensors = 2,
                              .from = {tensors[0], tensors[1]},
                              .to = {tensors[0], tensors[1]},
                              .names = {"queryRef", "keyRef"},
                              .mode = mode};
    return plan_rotary(&q, workspace_size, executor);
}

aclnnStatus aclnnApplyRotaryPosEmbGetWorkspaceSize(aclTensor *queryRef, aclTensor *keyRef, const aclTensor *cos,
                                                   const aclTensor *sin, int64_t layout, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    return plan_both(OPERATOR_ApplyRotaryPosEmb, (const aclTensor *const[]){queryRef, keyRef, cos, sin}, layout, HALF,
                     workspaceSize, executor);
}
ACLNN_PHASE_2(ApplyRotaryPosEmb)

aclnnStatus aclnnApplyRotaryPosEmbV2GetWorkspaceSize(aclTensor *queryRef, aclTensor *keyRef, const aclTensor *cos,
                                                     const aclTensor *sin, int64_t layout, char *rotaryMode,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    static const char *const modes[MODES] = {"half", "interleave", "quarter", "interleave-half"};
    int64_t mode = rotaryMode ? MODES : HALF;
    for (int i = 0; rotaryMode && i < MODES; ++i)
        mode = strcmp(rotaryMode, modes[i]) == 0 ? i : mode;
    REQUIRE(mode < MODES, ACLNN_ERROR_PARAM,
            "aclnnApplyRotaryPosEmbV2: rotaryMode is \"%s\"; half, interleave, quarter are allowed", rotaryMode);
    return plan_both(OPERATOR_ApplyRotaryPosEmbV2, (const aclTensor *const[]){queryRef, keyRef, cos, sin}, layout, mode,
                     workspaceSize, executor);
}
ACLNN_PHASE_2(ApplyRotaryPosEmbV2)
