/* Random tensors. Each element's value is a function of (seed, offset, its position, the number of elements): base/philox.h has
 * the rule, which is CUDA's, and the increment by which a caller must move the offset on.
 *
 * The *Tensor forms read seed and offset from device tensors when they run, and add the offset given by the caller. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/philox.h"
#include "base/pool.h"
#include "kernels/kernels.h"
#include "kernels/random.h"

enum { THREADS = 1024, /* virtual threads handled together */ CALL_WORDS = PHILOX_UNROLL };

enum draw_kind { DRAW_uniform, DRAW_normal, DRAW_exponential, DRAW_bernoulli, DRAW_integer };

struct draw {
    enum draw_kind kind;
    bool seed_in_tensors; /* operands 1 and 2 */
    bool wide;            /* 64 bits a value: two values a call instead of four */
    uint64_t seed, offset;
    double low, high; /* uniform: the interval; normal: mean and deviation; exponential: the rate; bernoulli: probability */
    int64_t base;     /* integers: base + word % range */
    uint64_t range;   /* 0: 2**64 */
    int8_t mean_operand, deviation_operand; /* normal and bernoulli: operands that hold them, 0 for none */
};

struct draw_work {
    const struct draw *draw;
    struct view out, mean, deviation; /* the last two expanded to out; data NULL when they are numbers */
    int64_t threads, calls;           /* of the virtual grid; calls of each thread */
    int values;                       /* of a call */
    enum accumulate type;
};

/* --- values from words: tile k gets the call's k-th value of each thread -------------------------------------------------------- */

/* From (0, 1] to [low, high): the upper end, reached by 1 or by rounding, becomes the lower one. Halves round first, so that
 * the comparison sees the value that is stored. */
static void scale_uniform(const struct draw_work *w, double *wide, float *tile, int64_t n)
{
    const struct draw *const d = w->draw;
    const enum random_rounding rounding = w->out.dtype == DTYPE_F16    ? ROUNDING_f16
                                          : w->out.dtype == DTYPE_BF16 ? ROUNDING_bf16
                                                                       : ROUNDING_none;
    if (d->wide)
        kernels->random->scale_f64(wide, n, d->low, d->high - d->low, d->high);
    else
        kernels->random->scale_f32(tile, n, (float)d->low, (float)d->high - (float)d->low, (float)d->high, rounding);
}

static void scale_exponential(const struct draw_work *w, double *wide, float *tile, int64_t n)
{
    if (w->draw->wide) {
        kernels->random->negative_log_f64(wide, n);
        for (int64_t i = 0; i < n; ++i)
            wide[i] /= w->draw->low;
        return;
    }
    kernels->random->negative_log_f32(tile, n);
    kernels->random->divide_f32(tile, n, (float)w->draw->low);
}

static void draw_units(const struct draw_work *w, const uint32_t *words, double *tiles, int64_t n)
{
    for (int k = 0; k < w->values; ++k) {
        double *const wide = tiles + k * THREADS;
        float *const tile = (float *)(void *)wide;
        if (w->draw->wide)
            kernels->random->uniform_f64(wide, words + 2 * k * n, words + (2 * k + 1) * n, n);
        else
            kernels->random->uniform_f32(tile, words + k * n, n);
        if (w->draw->kind == DRAW_uniform)
            scale_uniform(w, wide, tile, n);
        else if (w->draw->kind == DRAW_exponential)
            scale_exponential(w, wide, tile, n);
    }
}

static void draw_normals(const struct draw_work *w, const uint32_t *words, double *tiles, int64_t n)
{
    if (w->draw->wide) {
        kernels->random->normal_f64(tiles, tiles + THREADS, words, n);
        return;
    }
    for (int k = 0; k < w->values; k += 2)
        kernels->random->normal_f32((float *)(void *)(tiles + k * THREADS), (float *)(void *)(tiles + (k + 1) * THREADS),
                                    words + k * n, words + (k + 1) * n, n);
}

static void draw_integers(const struct draw_work *w, const uint32_t *words, double *tiles, int64_t n)
{
    for (int k = 0; k < w->values; ++k) {
        int64_t *const tile = (int64_t *)(void *)(tiles + k * THREADS);
        if (w->draw->wide)
            kernels->random->integer_64(tile, words + 2 * k * n, words + (2 * k + 1) * n, w->draw->range, w->draw->base, n);
        else
            kernels->random->integer_32(tile, words + k * n, (uint32_t)w->draw->range, w->draw->base, n);
    }
}

/* --- with mean, deviation, probability of each element ----------------------------------------------------------------------- */

/* Values for elements [first, first + n), or one value for all; returns the step between them. */
static int read_or_set(double *tile, const struct view *v, double value, enum accumulate type, int64_t first, int64_t n)
{
    if (v->data) {
        tile_read(tile, type, v, first, n);
        return 1;
    }
    if (type == ACCUMULATE_F64)
        tile[0] = value;
    else
        ((float *)(void *)tile)[0] = (float)value;
    return 0;
}

/* Elements [first, first + n) of out from their standard values. */
static void finish_elements(const struct draw_work *w, double *tile, int64_t first, int64_t n)
{
    double mean[THREADS], deviation[THREADS];
    float *const narrow = (float *)(void *)tile;
    if (w->draw->kind == DRAW_bernoulli) {
        const int step = read_or_set(mean, &w->mean, w->draw->low, w->type, first, n);
        if (w->type == ACCUMULATE_F64)
            kernels->random->below_f64(tile, n, mean, step);
        else
            kernels->random->below_f32(narrow, n, (const float *)(const void *)mean, step);
    } else if (w->draw->kind == DRAW_normal) {
        const int mean_step = read_or_set(mean, &w->mean, w->draw->low, w->type, first, n);
        const int deviation_step = read_or_set(deviation, &w->deviation, w->draw->high, w->type, first, n);
        if (w->type == ACCUMULATE_F64)
            kernels->random->affine_f64(tile, n, mean, mean_step, deviation, deviation_step);
        else
            kernels->random->affine_f32(narrow, n, (const float *)(const void *)mean, mean_step,
                                        (const float *)(const void *)deviation, deviation_step);
    }
}

/* Items are (call, group of THREADS threads). */
static void draw_items(void *argument, int64_t begin, int64_t end)
{
    const struct draw_work *const w = argument;
    const struct draw *const d = w->draw;
    uint32_t words[CALL_WORDS * THREADS];
    double tiles[CALL_WORDS * THREADS];
    const int64_t groups = (w->threads + THREADS - 1) / THREADS, count = w->out.count;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t call = item / groups, thread = item % groups * THREADS;
        const int64_t n = w->threads - thread < THREADS ? w->threads - thread : THREADS;
        kernels->random->words(words, d->seed, (uint64_t)thread, d->offset / 4 + (uint64_t)call, n);
        if (d->kind == DRAW_normal)
            draw_normals(w, words, tiles, n);
        else if (d->kind == DRAW_integer)
            draw_integers(w, words, tiles, n);
        else
            draw_units(w, words, tiles, n);
        for (int k = 0; k < w->values; ++k) {
            const int64_t first = thread + w->threads * (k + w->values * call);
            const int64_t elements = count - first < n ? count - first : n;
            if (elements <= 0)
                break;
            finish_elements(w, tiles + k * THREADS, first, elements);
            tile_write(&w->out, first, elements, tiles + k * THREADS, w->type);
        }
    }
}

/* A generator's state in a device tensor: one 64-bit number. */
static uint64_t read_state(const struct view *v)
{
    int64_t value = 0;
    if (v->count > 0)
        tile_read(&value, ACCUMULATE_I64, v, 0, 1);
    return (uint64_t)value;
}

static struct view operand_like(const struct plan *plan, int operand, const struct view *out)
{
    struct view v = {.data = NULL};
    if (operand > 0) {
        v = plan->operands[operand];
        view_expand(&v, out->sizes, out->ndim);
    }
    return v;
}

static int draw_run(struct plan *plan)
{
    struct draw draw = *PLAN_IMMEDIATE(plan, struct draw);
    struct draw_work w = {.draw = &draw, .out = plan->operands[0]};
    if (w.out.count == 0)
        return 0;
    if (draw.seed_in_tensors) {
        draw.seed = read_state(&plan->operands[1]);
        draw.offset += read_state(&plan->operands[2]);
    }
    w.mean = operand_like(plan, draw.mean_operand, &w.out);
    w.deviation = operand_like(plan, draw.deviation_operand, &w.out);
    w.values = draw.wide ? CALL_WORDS / 2 : CALL_WORDS;
    w.type = draw.kind == DRAW_integer ? ACCUMULATE_I64 : draw.wide ? ACCUMULATE_F64 : ACCUMULATE_F32;
    w.threads = philox_threads(w.out.count);
    w.calls = (w.out.count + w.threads * w.values - 1) / (w.threads * w.values);
    const int64_t groups = (w.threads + THREADS - 1) / THREADS;
    pool_for(w.calls * groups, 4, draw_items, &w);
    return 0;
}

/* --- phase 1 ---------------------------------------------------------------------------------------------------------------- */

/* Where seed and offset come from. */
struct state {
    const aclTensor *seed_tensor, *offset_tensor;
    bool in_tensors;
    uint64_t seed, offset;
};

#define NUMBERS(seed_, offset_) ((struct state){.seed = (uint64_t)(seed_), .offset = (uint64_t)(offset_)})
#define TENSORS(seed_, offset_, more)                                                                          \
    ((struct state){.seed_tensor = (seed_), .offset_tensor = (offset_), .in_tensors = true, .offset = (uint64_t)(more)})

static int draw_begin(enum operator_id id, const aclTensor *out, const char *name, struct state state, struct draw draw,
                      uint64_t *workspace_size, aclOpExecutor **executor, struct plan **plan)
{
    struct view *to, *seed, *offset;
    TRY(plan_begin(id, draw_run, workspace_size, executor, plan));
    PLAN_TRY(*plan, plan_output(*plan, out, name, &to));
    PLAN_TRY(*plan, check_not_complex(*plan, to, name));
    PLAN_TRY(*plan, check_output_not_expanded(*plan, to, name));
    if (state.in_tensors) {
        PLAN_TRY(*plan, plan_input(*plan, state.seed_tensor, "seedTensor", &seed));
        PLAN_TRY(*plan, plan_input(*plan, state.offset_tensor, "offsetTensor", &offset));
        PLAN_TRY(*plan, check_index_dtype(*plan, seed, "seedTensor"));
        PLAN_TRY(*plan, check_index_dtype(*plan, offset, "offsetTensor"));
    }
    draw.seed_in_tensors = state.in_tensors;
    draw.seed = state.seed;
    draw.offset = state.offset;
    *PLAN_IMMEDIATE(*plan, struct draw) = draw;
    return 0;
}

static int uniform_plan(enum operator_id id, const aclTensor *self, double from, double to, struct state state,
                        uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct draw draw = {.kind = DRAW_uniform, .low = from, .high = to, .wide = self && self->view.dtype == DTYPE_F64};
    TRY(draw_begin(id, self, "selfRef", state, draw, workspace_size, executor, &plan));
    PLAN_TRY(plan, check_floating(plan, &plan->operands[0], "selfRef"));
    PLAN_REQUIRE(plan, from <= to, ACLNN_ERROR_PARAM, "%s: from is %g and to is %g; from <= to is needed", operator_name(id), from,
                 to);
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnInplaceUniformGetWorkspaceSize(const aclTensor *selfRef, double from, double to, uint64_t seed, uint64_t offset,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return uniform_plan(OPERATOR_InplaceUniform, selfRef, from, to, NUMBERS(seed, offset), workspaceSize, executor);
}

aclnnStatus aclnnInplaceUniformTensorGetWorkspaceSize(const aclTensor *selfRef, double from, double to, const aclTensor *seedTensor,
                                                      const aclTensor *offsetTensor, uint64_t offset, uint64_t *workspaceSize,
                                                      aclOpExecutor **executor)
{
    return uniform_plan(OPERATOR_InplaceUniformTensor, selfRef, from, to, TENSORS(seedTensor, offsetTensor, offset), workspaceSize,
                        executor);
}

/* Tensors override the numbers; they broadcast to out. */
struct normal_request {
    const aclTensor *mean_tensor;
    double mean;
    const aclTensor *deviation_tensor;
    double deviation;
};

static int normal_plan(enum operator_id id, const aclTensor *out, struct normal_request q, struct state state,
                       uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *v;
    struct draw draw = {.kind = DRAW_normal, .low = q.mean, .high = q.deviation, .wide = out && out->view.dtype == DTYPE_F64};
    TRY(draw_begin(id, out, "out", state, draw, workspace_size, executor, &plan));
    struct draw *const d = PLAN_IMMEDIATE(plan, struct draw);
    PLAN_TRY(plan, check_floating(plan, &plan->operands[0], "out"));
    PLAN_REQUIRE(plan, q.deviation >= 0, ACLNN_ERROR_PARAM, "%s: std is %g; it must not be negative", operator_name(id),
                 q.deviation);
    const aclTensor *const tensors[2] = {q.mean_tensor, q.deviation_tensor};
    for (int i = 0; i < 2; ++i) {
        if (!tensors[i])
            continue;
        PLAN_TRY(plan, plan_input(plan, tensors[i], i ? "std" : "mean", &v));
        PLAN_TRY(plan, check_not_complex(plan, v, i ? "std" : "mean"));
        struct view wide = *v;
        PLAN_REQUIRE(plan, view_expand(&wide, plan->operands[0].sizes, plan->operands[0].ndim), ACLNN_ERROR_PARAM,
                     "%s: %s is %s and doesn't broadcast to out %s", operator_name(id), i ? "std" : "mean", view_text(v),
                     view_text(&plan->operands[0]));
        *(i ? &d->deviation_operand : &d->mean_operand) = (int8_t)(plan->operand_count - 1);
    }
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnInplaceNormalGetWorkspaceSize(const aclTensor *selfRef, float mean, float std, int64_t seed, int64_t offset,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return normal_plan(OPERATOR_InplaceNormal, selfRef, (struct normal_request){NULL, mean, NULL, std}, NUMBERS(seed, offset),
                       workspaceSize, executor);
}

aclnnStatus aclnnInplaceNormalTensorGetWorkspaceSize(const aclTensor *selfRef, float mean, float std, const aclTensor *seedTensor,
                                                     const aclTensor *offsetTensor, int64_t offset, uint64_t *workspaceSize,
                                                     aclOpExecutor **executor)
{
    return normal_plan(OPERATOR_InplaceNormalTensor, selfRef, (struct normal_request){NULL, mean, NULL, std},
                       TENSORS(seedTensor, offsetTensor, offset), workspaceSize, executor);
}

aclnnStatus aclnnNormalFloatFloatGetWorkspaceSize(float mean, float std, int64_t seed, int64_t offset, aclTensor *out,
                                                  uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return normal_plan(OPERATOR_NormalFloatFloat, out, (struct normal_request){NULL, mean, NULL, std}, NUMBERS(seed, offset),
                       workspaceSize, executor);
}

aclnnStatus aclnnNormalTensorFloatGetWorkspaceSize(const aclTensor *mean, float std, int64_t seed, int64_t offset, aclTensor *out,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(mean, ACLNN_ERROR_NULLPTR, "mean is null");
    return normal_plan(OPERATOR_NormalTensorFloat, out, (struct normal_request){mean, 0, NULL, std}, NUMBERS(seed, offset),
                       workspaceSize, executor);
}

aclnnStatus aclnnNormalFloatTensorGetWorkspaceSize(float mean, const aclTensor *std, int64_t seed, int64_t offset, aclTensor *out,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(std, ACLNN_ERROR_NULLPTR, "std is null");
    return normal_plan(OPERATOR_NormalFloatTensor, out, (struct normal_request){NULL, mean, std, 0}, NUMBERS(seed, offset),
                       workspaceSize, executor);
}

aclnnStatus aclnnNormalTensorTensorGetWorkspaceSize(const aclTensor *mean, const aclTensor *std, int64_t seed, int64_t offset,
                                                    aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(mean && std, ACLNN_ERROR_NULLPTR, "mean or std is null");
    return normal_plan(OPERATOR_NormalTensorTensor, out, (struct normal_request){mean, 0, std, 0}, NUMBERS(seed, offset),
                       workspaceSize, executor);
}

static int exponential_plan(enum operator_id id, const aclTensor *self, double rate, struct state state, uint64_t *workspace_size,
                            aclOpExecutor **executor)
{
    struct plan *plan;
    struct draw draw = {.kind = DRAW_exponential, .low = rate, .wide = self && self->view.dtype == DTYPE_F64};
    TRY(draw_begin(id, self, "selfRef", state, draw, workspace_size, executor, &plan));
    PLAN_TRY(plan, check_floating(plan, &plan->operands[0], "selfRef"));
    PLAN_REQUIRE(plan, rate > 0, ACLNN_ERROR_PARAM, "%s: lambda is %g; it must be positive", operator_name(id), rate);
    return finish_by_size(plan, 0, workspace_size, executor);
}

/* count is the number of elements, which selfRef knows too. */
aclnnStatus aclnnSimThreadExponentialGetWorkspaceSize(aclTensor *selfRef, int64_t count, double lambda, int64_t seed,
                                                      int64_t offset, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return exponential_plan(OPERATOR_SimThreadExponential, selfRef, lambda, NUMBERS(seed, offset), workspaceSize, executor);
}

aclnnStatus aclnnStatelessExponentialTensorGetWorkspaceSize(aclTensor *selfRef, const aclTensor *seedTensor,
                                                            const aclTensor *offsetTensor, int64_t offset, double lambd,
                                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return exponential_plan(OPERATOR_StatelessExponentialTensor, selfRef, lambd, TENSORS(seedTensor, offsetTensor, offset),
                            workspaceSize, executor);
}

aclnnStatus aclnnInplaceBernoulliGetWorkspaceSize(const aclTensor *selfRef, const aclScalar *prob, int64_t seed, int64_t offset,
                                                  uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    REQUIRE(prob, ACLNN_ERROR_NULLPTR, "prob is null");
    const double p = scalar_to_double(prob);
    struct draw draw = {.kind = DRAW_bernoulli, .low = p, .wide = selfRef && selfRef->view.dtype == DTYPE_F64};
    TRY(draw_begin(OPERATOR_InplaceBernoulli, selfRef, "selfRef", NUMBERS(seed, offset), draw, workspaceSize, executor, &plan));
    PLAN_REQUIRE(plan, p >= 0 && p <= 1, ACLNN_ERROR_PARAM, "prob is %g; it must be in [0, 1]", p);
    return finish_by_size(plan, 0, workspaceSize, executor);
}

aclnnStatus aclnnInplaceBernoulliTensorGetWorkspaceSize(const aclTensor *selfRef, const aclTensor *prob, int64_t seed,
                                                        int64_t offset, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *p;
    struct draw draw = {.kind = DRAW_bernoulli, .wide = prob && prob->view.dtype == DTYPE_F64, .mean_operand = 1};
    TRY(draw_begin(OPERATOR_InplaceBernoulliTensor, selfRef, "selfRef", NUMBERS(seed, offset), draw, workspaceSize, executor,
                   &plan));
    PLAN_TRY(plan, plan_input(plan, prob, "prob", &p));
    PLAN_TRY(plan, check_not_complex(plan, p, "prob"));
    struct view wide = *p;
    PLAN_REQUIRE(plan, view_expand(&wide, plan->operands[0].sizes, plan->operands[0].ndim), ACLNN_ERROR_PARAM,
                 "prob is %s and doesn't broadcast to selfRef %s", view_text(p), view_text(&plan->operands[0]));
    return finish_by_size(plan, 0, workspaceSize, executor);
}

/* --- integers ------------------------------------------------------------------------------------------------------------- */

static int integer_plan(enum operator_id id, const aclTensor *self, struct draw draw, struct state state, uint64_t *workspace_size,
                        aclOpExecutor **executor)
{
    struct plan *plan;
    draw.kind = DRAW_integer;
    TRY(draw_begin(id, self, "selfRef", state, draw, workspace_size, executor, &plan));
    return finish_by_size(plan, 0, workspace_size, executor);
}

/* torch's rule: from 2**28 values on, 64 bits a value, so that the remainder's bias stays small. */
static int from_to_plan(enum operator_id id, const aclTensor *self, int64_t from, int64_t to, struct state state,
                        uint64_t *workspace_size, aclOpExecutor **executor)
{
    const uint64_t range = (uint64_t)to - (uint64_t)from;
    REQUIRE(from < to, ACLNN_ERROR_PARAM, "%s: from is %lld and to is %lld; from < to is needed", operator_name(id),
            (long long)from, (long long)to);
    return integer_plan(id, self, (struct draw){.base = from, .range = range, .wide = range >= 1ull << 28}, state, workspace_size,
                        executor);
}

aclnnStatus aclnnInplaceRandomGetWorkspaceSize(const aclTensor *selfRef, int64_t from, int64_t to, int64_t seed, int64_t offset,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return from_to_plan(OPERATOR_InplaceRandom, selfRef, from, to, NUMBERS(seed, offset), workspaceSize, executor);
}

aclnnStatus aclnnInplaceRandomTensorGetWorkspaceSize(const aclTensor *selfRef, int64_t from, int64_t to,
                                                     const aclTensor *seedTensor, const aclTensor *offsetTensor, int64_t offset,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return from_to_plan(OPERATOR_InplaceRandomTensor, selfRef, from, to, TENSORS(seedTensor, offsetTensor, offset), workspaceSize,
                        executor);
}

/* Without limits: all values that are not negative, for floats those up to which every integer is exact. */
static struct draw whole_range(const aclTensor *self)
{
    switch (self ? (enum dtype)self->view.dtype : DTYPE_NONE) {
    case DTYPE_F64: return (struct draw){.range = (1ull << 53) + 1, .wide = true};
    case DTYPE_F32: return (struct draw){.range = (1ull << 24) + 1};
    case DTYPE_F16: return (struct draw){.range = (1ull << 11) + 1};
    case DTYPE_BF16: return (struct draw){.range = (1ull << 8) + 1};
    case DTYPE_I64: return (struct draw){.range = 1ull << 63, .wide = true};
    case DTYPE_I32: return (struct draw){.range = 1ull << 31};
    case DTYPE_I16: return (struct draw){.range = 1ull << 15};
    case DTYPE_I8: return (struct draw){.range = 1ull << 7};
    case DTYPE_U8: return (struct draw){.range = 1ull << 8};
    default: return (struct draw){.range = 2};
    }
}

aclnnStatus aclnnInplaceRandomWithoutFromToGetWorkspaceSize(const aclTensor *selfRef, int64_t seed, int64_t offset,
                                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return integer_plan(OPERATOR_InplaceRandomWithoutFromTo, selfRef, whole_range(selfRef), NUMBERS(seed, offset), workspaceSize,
                        executor);
}

aclnnStatus aclnnInplaceRandomWithoutFromToTensorGetWorkspaceSize(const aclTensor *selfRef, const aclTensor *seedTensor,
                                                                  const aclTensor *offsetTensor, int64_t offset,
                                                                  uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return integer_plan(OPERATOR_InplaceRandomWithoutFromToTensor, selfRef, whole_range(selfRef),
                        TENSORS(seedTensor, offsetTensor, offset), workspaceSize, executor);
}

ACLNN_PHASE_2(InplaceUniform)
ACLNN_PHASE_2(InplaceUniformTensor)
ACLNN_PHASE_2(InplaceNormal)
ACLNN_PHASE_2(InplaceNormalTensor)
ACLNN_PHASE_2(NormalFloatFloat)
ACLNN_PHASE_2(NormalTensorFloat)
ACLNN_PHASE_2(NormalFloatTensor)
ACLNN_PHASE_2(NormalTensorTensor)
ACLNN_PHASE_2(SimThreadExponential)
ACLNN_PHASE_2(StatelessExponentialTensor)
ACLNN_PHASE_2(InplaceBernoulli)
ACLNN_PHASE_2(InplaceBernoulliTensor)
ACLNN_PHASE_2(InplaceRandom)
ACLNN_PHASE_2(InplaceRandomTensor)
ACLNN_PHASE_2(InplaceRandomWithoutFromTo)
ACLNN_PHASE_2(InplaceRandomWithoutFromToTensor)
