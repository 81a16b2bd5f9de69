/* DropoutGenMask(V2), DropoutDoMask, DropoutV3, MaskedScale.
 *
 * Masks: CANN's packed form (u8, one bit an element, align(count, 128) / 8 bytes), and, as an extension for frameworks whose
 * masks are bool tensors, one byte an element when the mask tensor's type is bool. `prob` is the probability of a zero. */
#include <math.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/dropout.h"
#include "kernels/kernels.h"

struct dropout {
    struct staging staging;
    struct dropout_mask mask;
    double probability;
    double scale; /* of kept elements */
    int64_t count;
    enum accumulate type;
};

struct dropout_job {
    const struct dropout *d;
    const char *in;
    char *out;
    uint8_t *mask;
    bool packed, generate;
};

/* One block: makes its part of the mask, applies it while it is in the cache. */
static void dropout_blocks(void *argument, int64_t begin, int64_t end)
{
    const struct dropout_job *const j = argument;
    const struct dropout *const d = j->d;
    const struct dropout_kernels *const k = kernels->dropout;
    for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * DROPOUT_BLOCK;
        const int64_t n = d->count - first < DROPOUT_BLOCK ? d->count - first : DROPOUT_BLOCK;
        uint8_t *const mask = j->mask + (j->packed ? first / 8 : first);
        if (j->generate)
            (j->packed ? k->bits : k->bytes)(&d->mask, first, n, mask);
        if (!j->out)
            continue;
        const int64_t at = first * accumulate_bytes(d->type);
        (j->packed ? k->apply_bits : k->apply_bytes)[d->type](j->in + at, mask, d->scale, j->out + at, n);
    }
}

static int64_t packed_bytes(int64_t count) { return (count / 128 + (count % 128 != 0)) * 16; }

/* Probability 0 and 1: no random numbers. */
static void fill_mask(const struct view *mask, const struct dropout *d, bool kept)
{
    if (mask->dtype == DTYPE_B8)
        memset(mask->data, kept, (size_t)d->count);
    else
        memset(mask->data, kept ? 0xff : 0, (size_t)packed_bytes(d->count));
}

static int run_blocks(struct plan *plan, int in, int out, int mask, bool generate)
{
    const struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    const struct view *const m = &plan->operands[mask];
    struct dropout_job j = {.d = d, .mask = (uint8_t *)m->data, .packed = m->dtype != DTYPE_B8, .generate = generate};
    if (in >= 0) {
        j.in = stage_read(plan, &d->staging, in);
        j.out = stage_target(plan, &d->staging, out);
    }
    parallel_for((d->count + DROPOUT_BLOCK - 1) / DROPOUT_BLOCK, 4 * DROPOUT_BLOCK, dropout_blocks, &j);
    if (generate && j.packed) { /* the padding is 0 */
        const int64_t used = (d->count + 7) / 8;
        memset(m->data + used, 0, (size_t)(packed_bytes(d->count) - used));
    }
    if (out >= 0)
        stage_write_back(plan, &d->staging, out);
    return 0;
}

/* out = self (probability 0) or zeros (1). */
static void copy_or_zero(struct plan *plan, const struct dropout *d, int in, int out)
{
    void *const to = stage_target(plan, &d->staging, out);
    const size_t bytes = (size_t)(d->count * accumulate_bytes(d->type));
    const void *const from = d->probability == 0 ? stage_read(plan, &d->staging, in) : NULL;
    if (from && from != to)
        memmove(to, from, bytes);
    else if (!from)
        memset(to, 0, bytes);
    stage_write_back(plan, &d->staging, out);
}

static int run_generate(struct plan *plan)
{
    const struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    if (d->count == 0)
        return 0;
    if (d->probability > 0 && d->probability < 1)
        return run_blocks(plan, -1, -1, 0, true);
    fill_mask(&plan->operands[0], d, d->probability == 0);
    return 0;
}

enum { SELF, MASK, OUT };

static int run_apply(struct plan *plan)
{
    const struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    if (d->count == 0)
        return 0;
    if (d->probability > 0 && d->probability < 1)
        return run_blocks(plan, SELF, OUT, MASK, false);
    copy_or_zero(plan, d, SELF, OUT);
    return 0;
}

static int run_both(struct plan *plan)
{
    const struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    if (d->count == 0)
        return 0;
    if (d->probability > 0 && d->probability < 1)
        return run_blocks(plan, SELF, OUT, MASK, true);
    copy_or_zero(plan, d, SELF, OUT);
    if (plan->operands[MASK].dtype == DTYPE_B8) /* a bool mask is whole; CANN leaves the packed one untouched */
        fill_mask(&plan->operands[MASK], d, d->probability == 0);
    return 0;
}

/* --- planning ------------------------------------------------------------------------------------------------------- */

static int set_mask(struct plan *plan, const struct view *mask, double probability, int64_t count, struct dropout *d)
{
    const char *const name = plan_name(plan);
    REQUIRE(probability >= 0 && probability <= 1, ACLNN_ERROR_PARAM, "%s: prob is %g; it must be between 0 and 1", name,
            probability);
    const bool whole = mask->dtype == DTYPE_B8 && mask->count == count;
    REQUIRE(mask->contiguous && (whole || (mask->dtype == DTYPE_U8 && mask->count >= packed_bytes(count))), ACLNN_ERROR_PARAM,
            "%s: the mask is %s; it must be contiguous u8 of %lld bytes (packed bits), or bool with %lld elements", name,
            view_text(mask), (long long)packed_bytes(count), (long long)count);
    d->probability = probability;
    d->scale = 1 / (1 - probability);
    d->count = count;
    return 0;
}

static void set_generator(struct dropout *d, int64_t seed, int64_t offset)
{
    const double threshold = d->probability * 4294967296.0;
    d->mask =
        (struct dropout_mask){(uint64_t)seed, (uint64_t)offset / 4, threshold >= 4294967295.0 ? UINT32_MAX : (uint32_t)threshold};
}

static int plan_generate(enum operator_id id, const aclIntArray *shape, double prob, const int64_t *seed_offset, aclTensor *out,
                         uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *mask;
    TRY(plan_begin(id, run_generate, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, out, "out", &mask));
    PLAN_REQUIRE(plan, shape, ACLNN_ERROR_NULLPTR, "%s: shape is null", operator_name(id));
    struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    stage_begin(&d->staging);
    int64_t count = 1;
    for (uint64_t i = 0; i < shape->count; ++i)
        PLAN_REQUIRE(plan, shape->values[i] >= 0 && !__builtin_mul_overflow(count, shape->values[i], &count), ACLNN_ERROR_PARAM,
                     "%s: shape[%llu] is %lld; sizes are at least 0 and their product fits 64 bits", operator_name(id),
                     (unsigned long long)i, (long long)shape->values[i]);
    PLAN_TRY(plan, set_mask(plan, mask, prob, count, d));
    set_generator(d, seed_offset[0], seed_offset[1]);
    return plan_finish(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnDropoutGenMaskGetWorkspaceSize(const aclIntArray *shape, double prob, int64_t seed, int64_t offset, aclTensor *out,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_generate(OPERATOR_DropoutGenMask, shape, prob, (const int64_t[]){seed, offset}, out, workspaceSize, executor);
}
ACLNN_PHASE_2(DropoutGenMask)

aclnnStatus aclnnDropoutGenMaskV2GetWorkspaceSize(const aclIntArray *shape, double prob, int64_t seed, int64_t offset,
                                                  aclDataType probDataType, aclTensor *out, uint64_t *workspaceSize,
                                                  aclOpExecutor **executor)
{
    return plan_generate(OPERATOR_DropoutGenMaskV2, shape, prob, (const int64_t[]){seed, offset}, out, workspaceSize, executor);
}
ACLNN_PHASE_2(DropoutGenMaskV2)

static int check_data(struct plan *plan, struct dropout *d)
{
    const struct view *const in = &plan->operands[SELF], *const out = &plan->operands[OUT];
    const char *const name = plan_name(plan);
    REQUIRE(dtype_is_floating((enum dtype)in->dtype) && dtype_is_floating((enum dtype)out->dtype), ACLNN_ERROR_PARAM,
            "%s: self %s and out %s; allowed are f64, f32, f16, bf16", name, view_text(in), view_text(out));
    REQUIRE(view_same_sizes(in, out), ACLNN_ERROR_PARAM, "%s: self %s and out %s differ in their sizes", name, view_text(in),
            view_text(out));
    d->type = accumulate_of((enum dtype)in->dtype);
    stage_operand(plan, &d->staging, in, d->type);
    stage_operand(plan, &d->staging, out, d->type);
    return 0;
}

aclnnStatus aclnnDropoutDoMaskGetWorkspaceSize(const aclTensor *self, const aclTensor *mask, double prob, aclTensor *out,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *m;
    TRY(plan_begin(OPERATOR_DropoutDoMask, run_apply, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, plan_input(plan, mask, "mask", &m));
    PLAN_TRY(plan, plan_output(plan, out, "out", NULL));
    struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    stage_begin(&d->staging);
    PLAN_TRY(plan, set_mask(plan, m, prob, in->count, d));
    PLAN_TRY(plan, check_data(plan, d));
    return plan_finish(plan, d->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(DropoutDoMask)

aclnnStatus aclnnDropoutV3GetWorkspaceSize(const aclTensor *input, const aclTensor *optionalNoiseShape, double p, int64_t seed,
                                           int64_t offset, aclTensor *out, aclTensor *maskOut, uint64_t *workspaceSize,
                                           aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *m;
    TRY(plan_begin(OPERATOR_DropoutV3, run_both, workspaceSize, executor, &plan));
    PLAN_REQUIRE(plan, !optionalNoiseShape, ACLNN_ERROR_PARAM, "aclnnDropoutV3: optionalNoiseShape must be null");
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_output(plan, maskOut, "maskOut", &m));
    PLAN_TRY(plan, plan_output(plan, out, "out", NULL));
    struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    stage_begin(&d->staging);
    PLAN_TRY(plan, set_mask(plan, m, p, in->count, d));
    PLAN_TRY(plan, check_data(plan, d));
    set_generator(d, seed, offset);
    return plan_finish(plan, d->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(DropoutV3)

/* --- MaskedScale: out = self * mask * scale, with a mask of any real type -------------------------------------------- */

struct scale_job {
    const char *in, *mask;
    char *out;
    double scale;
    enum accumulate type;
};

static void scale_range(void *argument, int64_t begin, int64_t end)
{
    const struct scale_job *const j = argument;
    if (j->type == ACCUMULATE_F64)
        for (int64_t i = begin; i < end; ++i)
            ((double *)(void *)j->out)[i] =
                ((const double *)(const void *)j->in)[i] * ((const double *)(const void *)j->mask)[i] * j->scale;
    else
        for (int64_t i = begin; i < end; ++i)
            ((float *)(void *)j->out)[i] =
                ((const float *)(const void *)j->in)[i] * ((const float *)(const void *)j->mask)[i] * (float)j->scale;
}

static int run_masked_scale(struct plan *plan)
{
    struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    const struct view *const mask = &plan->operands[MASK];
    if (d->count == 0)
        return 0;
    if (mask->dtype == DTYPE_B8 && mask->contiguous) {
        struct dropout_job j = {.d = d, .mask = (uint8_t *)mask->data};
        j.in = stage_read(plan, &d->staging, SELF);
        j.out = stage_target(plan, &d->staging, OUT);
        parallel_for((d->count + DROPOUT_BLOCK - 1) / DROPOUT_BLOCK, 4 * DROPOUT_BLOCK, dropout_blocks, &j);
    } else {
        struct scale_job j = {.scale = d->scale, .type = d->type};
        j.in = stage_read(plan, &d->staging, SELF);
        j.mask = stage_read(plan, &d->staging, MASK);
        j.out = stage_target(plan, &d->staging, OUT);
        parallel_for(d->count, 1, scale_range, &j);
    }
    stage_write_back(plan, &d->staging, OUT);
    return 0;
}

aclnnStatus aclnnMaskedScaleGetWorkspaceSize(const aclTensor *self, const aclTensor *mask, double scale, aclTensor *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *m;
    TRY(plan_begin(OPERATOR_MaskedScale, run_masked_scale, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, plan_input(plan, mask, "mask", &m));
    PLAN_TRY(plan, plan_output(plan, out, "out", NULL));
    struct dropout *const d = PLAN_IMMEDIATE(plan, struct dropout);
    stage_begin(&d->staging);
    d->count = in->count;
    d->scale = scale;
    PLAN_TRY(plan, check_data(plan, d));
    PLAN_REQUIRE(plan, view_same_sizes(in, m) && dtype_kind((enum dtype)m->dtype) != KIND_COMPLEX, ACLNN_ERROR_PARAM,
                 "aclnnMaskedScale: mask %s must have the sizes of self %s and a real type", view_text(m), view_text(in));
    if (!(m->dtype == DTYPE_B8 && m->contiguous))
        stage_operand(plan, &d->staging, m, d->type);
    return plan_finish(plan, d->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(MaskedScale)
