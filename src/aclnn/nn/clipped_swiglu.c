/* ClippedSwiglu: min(a, limit) * sigmoid(alpha a) * (clamp(b) + bias), where a and b are halves or neighbours of what lies from a dimension
 * on. With group sizes only the rows that they add up to are computed; the others become 0. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"

enum { X, GROUPS, OUT };

struct clipped {
    struct staging staging;
    int64_t rows, width; /* width: of a result row */
    double alpha, limit, bias;
    bool interleaved;
    enum accumulate type;
};

struct clipped_job {
    const struct clipped *c;
    const void *x;
    void *out;
};

#define ROW_FUNCTION(A, EXP)                                                                                        \
    static void row_##A(const struct clipped_job *j, int64_t row)                                                   \
    {                                                                                                               \
        const struct clipped *const c = j->c;                                                                       \
        const A *const x = (const A *)j->x + row * 2 * c->width;                                                    \
        A *const out = (A *)j->out + row * c->width;                                                                \
        const A limit = (A)c->limit, alpha = (A)c->alpha, bias = (A)c->bias;                                        \
        for (int64_t i = 0; i < c->width; ++i) {                                                                    \
            const A first = c->interleaved ? x[2 * i] : x[i], second = c->interleaved ? x[2 * i + 1] : x[c->width + i]; \
            const A a = first > limit ? limit : first;                                                              \
            const A b = second > limit ? limit : second < -limit ? -limit : second;                                 \
            out[i] = a / (1 + EXP(-alpha * a)) * (b + bias);                                                        \
        }                                                                                                           \
    }
ROW_FUNCTION(double, exp)
ROW_FUNCTION(float, expf)

static void run_rows(void *argument, int64_t begin, int64_t end)
{
    const struct clipped_job *const j = argument;
    for (int64_t row = begin; row < end; ++row)
        (j->c->type == ACCUMULATE_F64 ? row_double : row_float)(j, row);
}

static int run_clipped(struct plan *plan)
{
    const struct clipped *const c = PLAN_IMMEDIATE(plan, struct clipped);
    struct clipped_job j = {.c = c, .x = stage_read(plan, &c->staging, X)};
    const int64_t *const groups = stage_read(plan, &c->staging, GROUPS);
    int64_t rows = groups ? 0 : c->rows;
    for (int64_t g = 0; groups && g < plan->operands[GROUPS].count; ++g) {
        if (groups[g] < 0 || groups[g] > c->rows - rows)
            return error_set(ERROR_RT_DEVICE_TASK, "aclnnClippedSwiglu",
                             "groupIndexOptional[%lld] is %lld; %lld of %lld rows are left", (long long)g, (long long)groups[g],
                             (long long)(c->rows - rows), (long long)c->rows);
        rows += groups[g];
    }
    j.out = stage_target(plan, &c->staging, OUT);
    parallel_for(rows, cost_of(16, c->width), run_rows, &j);
    const int64_t bytes = c->width * accumulate_bytes(c->type);
    if (rows < c->rows && bytes > 0)
        memset((char *)j.out + rows * bytes, 0, (size_t)((c->rows - rows) * bytes));
    stage_write_back(plan, &c->staging, OUT);
    return 0;
}

aclnnStatus aclnnClippedSwigluGetWorkspaceSize(const aclTensor *x, const aclTensor *groupIndexOptional, int64_t dim, double alpha,
                                               double limit, double bias, bool interleaved, const aclTensor *out,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *groups, *to;
    int d;
    TRY(plan_begin(OPERATOR_ClippedSwiglu, run_clipped, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, x, "x", &in));
    PLAN_TRY(plan, plan_optional(plan, groupIndexOptional, ROLE_INPUT, "groupIndexOptional", &groups));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_floating(plan, in, "x"));
    PLAN_TRY(plan, check_same_dtype(plan, to, "out", in, "x"));
    PLAN_TRY(plan, check_dim(plan, dim, in, "dim", &d));
    PLAN_REQUIRE(plan, in->ndim > 0 && in->sizes[d] % 2 == 0, ACLNN_ERROR_PARAM,
                 "aclnnClippedSwiglu: x is %s; dimension %d must be even", view_text(in), d);
    PLAN_REQUIRE(plan, groups->dtype == DTYPE_NONE || (groups->dtype == DTYPE_I64 && groups->ndim == 1), ACLNN_ERROR_PARAM,
                 "aclnnClippedSwiglu: groupIndexOptional is %s; i64 of 1 dimension is needed", view_text(groups));
    struct clipped *const c = PLAN_IMMEDIATE(plan, struct clipped);
    stage_begin(&c->staging);
    *c = (struct clipped){.staging = c->staging,
                          .rows = 1,
                          .width = 1,
                          .alpha = alpha,
                          .limit = limit,
                          .bias = bias,
                          .interleaved = interleaved,
                          .type = accumulate_of((enum dtype)in->dtype)};
    int64_t sizes[TENSOR_MAX_DIMS];
    for (int k = 0; k < in->ndim; ++k) {
        sizes[k] = k == d ? in->sizes[k] / 2 : in->sizes[k];
        const bool fits = !__builtin_mul_overflow(*(k < d ? &c->rows : &c->width), sizes[k], k < d ? &c->rows : &c->width);
        PLAN_REQUIRE(plan, fits, ACLNN_ERROR_PARAM, "aclnnClippedSwiglu: x %s is too large", view_text(in));
    }
    PLAN_TRY(plan, check_sizes(plan, to, "out", sizes, in->ndim));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    stage_operand(plan, &c->staging, in, c->type);
    stage_operand(plan, &c->staging, to, c->type);
    if (groups->dtype != DTYPE_NONE)
        stage_operand(plan, &c->staging, groups, ACCUMULATE_I64);
    return plan_finish(plan, c->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(ClippedSwiglu)
