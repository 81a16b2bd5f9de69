/* RReluWithNoise: negative elements times a random slope (training) or the middle of its range.
 *
 * Element i's slope depends on (seed, offset, i) alone: 53 bits of philox(seed, i / 2, offset / 4). */
#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "base/philox.h"

enum { SELF, NOISE, OUT };

struct rrelu {
    struct staging staging;
    double lower, upper;
    uint64_t seed, offset;
    bool training;
    enum accumulate type;
};

struct rrelu_job {
    const struct rrelu *r;
    const void *self;
    void *noise, *out;
};

static double slope_of(const struct rrelu *r, int64_t i)
{
    const struct philox_block block = philox(r->seed, (uint64_t)i / 2, r->offset / 4);
    const int at = (int)(i % 2) * 2;
    const uint64_t bits = ((uint64_t)block.word[at] << 32 | block.word[at + 1]) >> 11;
    return r->lower + (double)bits * 0x1p-53 * (r->upper - r->lower);
}

#define RANGE_FUNCTION(A)                                                                     \
    static void range_##A(const struct rrelu_job *j, int64_t begin, int64_t end)              \
    {                                                                                         \
        const struct rrelu *const r = j->r;                                                   \
        const A *const self = j->self;                                                        \
        A *const noise = j->noise, *const out = j->out, middle = (A)((r->lower + r->upper) / 2); \
        for (int64_t i = begin; i < end; ++i) {                                               \
            const A x = self[i], slope = x > 0 ? 1 : r->training ? (A)slope_of(r, i) : middle; \
            if (noise)                                                                        \
                noise[i] = slope;                                                             \
            out[i] = x > 0 ? x : x * slope;                                                   \
        }                                                                                     \
    }
RANGE_FUNCTION(double)
RANGE_FUNCTION(float)

static void run_range(void *argument, int64_t begin, int64_t end)
{
    const struct rrelu_job *const j = argument;
    (j->r->type == ACCUMULATE_F64 ? range_double : range_float)(j, begin, end);
}

static int run_rrelu(struct plan *plan)
{
    const struct rrelu *const r = PLAN_IMMEDIATE(plan, struct rrelu);
    const int out = plan->operand_count - 1; /* in place: self */
    struct rrelu_job j = {.r = r, .self = stage_read(plan, &r->staging, SELF)};
    j.noise = r->training ? stage_target(plan, &r->staging, NOISE) : NULL;
    j.out = out == OUT ? stage_target(plan, &r->staging, OUT) : (void *)(uintptr_t)j.self;
    parallel_for(plan->operands[SELF].count, r->training ? 32 : 4, run_range, &j);
    if (r->training)
        stage_write_back(plan, &r->staging, NOISE);
    stage_write_back(plan, &r->staging, out == OUT ? OUT : SELF);
    return 0;
}

struct rrelu_request {
    enum operator_id id;
    const aclTensor *self, *noise, *out; /* out NULL: in place */
    const aclScalar *lower, *upper;
    bool training;
    int64_t seed, offset;
};

static int plan_rrelu(const struct rrelu_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *self, *noise, *out = NULL;
    TRY(plan_begin(q->id, run_rrelu, workspace_size, executor, &plan));
    PLAN_TRY(plan, (q->out ? plan_input : plan_inout)(plan, q->self, "self", &self));
    PLAN_TRY(plan, (q->training ? plan_output : plan_input)(plan, q->noise, "noise", &noise));
    if (q->out)
        PLAN_TRY(plan, plan_output(plan, q->out, "out", &out));
    PLAN_REQUIRE(plan, q->lower && q->upper, ACLNN_ERROR_NULLPTR, "%s: lower or upper is null", operator_name(q->id));
    struct rrelu *const r = PLAN_IMMEDIATE(plan, struct rrelu);
    stage_begin(&r->staging);
    *r = (struct rrelu){.staging = r->staging,
                        .lower = scalar_to_double(q->lower),
                        .upper = scalar_to_double(q->upper),
                        .seed = (uint64_t)q->seed,
                        .offset = (uint64_t)q->offset,
                        .training = q->training};
    PLAN_TRY(plan, check_floating(plan, self, "self"));
    PLAN_TRY(plan, check_floating(plan, noise, "noise"));
    r->type = accumulate_of((enum dtype)self->dtype);
    if (q->training) {
        PLAN_TRY(plan, check_sizes(plan, noise, "noise", self->sizes, self->ndim));
        PLAN_TRY(plan, check_output_not_expanded(plan, noise, "noise"));
        stage_operand(plan, &r->staging, noise, r->type);
    }
    if (out) {
        PLAN_TRY(plan, check_floating(plan, out, "out"));
        PLAN_TRY(plan, check_sizes(plan, out, "out", self->sizes, self->ndim));
    }
    PLAN_TRY(plan, check_output_not_expanded(plan, out ? out : self, out ? "out" : "self"));
    stage_operand(plan, &r->staging, self, r->type);
    if (out)
        stage_operand(plan, &r->staging, out, r->type);
    return finish_by_size(plan, r->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnRReluWithNoiseGetWorkspaceSize(const aclTensor *self, const aclTensor *noise, const aclScalar *lower,
                                                const aclScalar *upper, bool training, int64_t seed, int64_t offset, aclTensor *out,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct rrelu_request q = {OPERATOR_RReluWithNoise, self, noise, out, lower, upper, training, seed, offset};
    REQUIRE(out, ACLNN_ERROR_NULLPTR, "aclnnRReluWithNoise: out is null");
    return plan_rrelu(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(RReluWithNoise)

aclnnStatus aclnnInplaceRReluWithNoiseGetWorkspaceSize(const aclTensor *self, const aclTensor *noise, const aclScalar *lower,
                                                       const aclScalar *upper, bool training, int64_t seed, int64_t offset,
                                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct rrelu_request q = {OPERATOR_InplaceRReluWithNoise, self, noise, NULL, lower, upper, training, seed, offset};
    return plan_rrelu(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceRReluWithNoise)
