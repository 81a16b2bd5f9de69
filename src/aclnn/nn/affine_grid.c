/* AffineGrid and UnfoldGrad: the places that an affine map sends the elements of an image to; the gradient of windows along a dimension. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"

/* --- affine grid ---------------------------------------------------------------------------------------------------------- */

enum { THETA, PLACES };

struct affine {
    struct staging staging;
    int dims;
    int64_t images, size[3]; /* of the output: (depth,) height, width */
    bool align_corners;
    enum accumulate type;
};

/* Element i of n, from -1 to 1: centres of the outer elements, or the corners of the image. */
static double place_of(const struct affine *a, int64_t i, int64_t n)
{
    if (n <= 1)
        return 0;
    const double at = -1 + 2 * (double)i / (double)(n - 1);
    return a->align_corners ? at : at * (double)(n - 1) / (double)n;
}

static int run_affine(struct plan *plan)
{
    const struct affine *const a = PLAN_IMMEDIATE(plan, struct affine);
    if (plan->operands[PLACES].count == 0)
        return 0;
    const void *const theta = stage_read(plan, &a->staging, THETA);
    void *const out = stage_target(plan, &a->staging, PLACES);
    const int64_t depth = a->dims == 3 ? a->size[0] : 1, height = a->size[a->dims - 2], width = a->size[a->dims - 1];
    int64_t at = 0;
    for (int64_t n = 0; n < a->images; ++n)
        for (int64_t i = 0; i < depth * height * width; ++i) {
            const double base[] = {place_of(a, i % width, width), place_of(a, i / width % height, height),
                                   place_of(a, i / width / height, depth)};
            for (int row = 0; row < a->dims; ++row, ++at) {
                double sum = 0;
                for (int k = 0; k <= a->dims; ++k) {
                    const int64_t t = (n * a->dims + row) * (a->dims + 1) + k;
                    const double factor =
                        a->type == ACCUMULATE_F64 ? ((const double *)theta)[t] : (double)((const float *)theta)[t];
                    sum += factor * (k < a->dims ? base[k] : 1);
                }
                if (a->type == ACCUMULATE_F64)
                    ((double *)out)[at] = sum;
                else
                    ((float *)out)[at] = (float)sum;
            }
        }
    stage_write_back(plan, &a->staging, PLACES);
    return 0;
}

aclnnStatus aclnnAffineGridGetWorkspaceSize(const aclTensor *theta, const aclIntArray *size, bool alignCorners, aclTensor *out,
                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *to;
    TRY(plan_begin(OPERATOR_AffineGrid, run_affine, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, theta, "theta", &in));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, check_floating(plan, in, "theta"));
    PLAN_TRY(plan, check_same_dtype(plan, to, "out", in, "theta"));
    PLAN_REQUIRE(plan, size && (size->count == 4 || size->count == 5), ACLNN_ERROR_PARAM,
                 "aclnnAffineGrid: size must hold 4 or 5 numbers (batch, channels, (depth,) height, width)");
    struct affine *const a = PLAN_IMMEDIATE(plan, struct affine);
    stage_begin(&a->staging);
    a->dims = (int)size->count - 2;
    a->align_corners = alignCorners;
    a->type = accumulate_of((enum dtype)in->dtype);
    a->images = size->values[0];
    int64_t sizes[5] = {a->images};
    for (int d = 0; d < a->dims; ++d)
        sizes[d + 1] = a->size[d] = size->values[d + 2];
    sizes[a->dims + 1] = a->dims;
    const int64_t factors[] = {a->images, a->dims, a->dims + 1};
    PLAN_TRY(plan, check_sizes(plan, in, "theta", factors, 3));
    PLAN_TRY(plan, check_sizes(plan, to, "out", sizes, a->dims + 2));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    stage_operand(plan, &a->staging, in, a->type);
    stage_operand(plan, &a->staging, to, a->type);
    return plan_finish(plan, a->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(AffineGrid)

/* --- gradient of unfold ------------------------------------------------------------------------------------------------------ */

enum { GRAD_OUT, GRAD_IN };

struct unfold {
    struct staging staging;
    int64_t outer, length, inner, windows, size, step;
    enum accumulate type;
};

struct unfold_job {
    const struct unfold *u;
    const char *from; /* [outer, windows, inner, size] */
    char *to;         /* [outer, length, inner] */
};

#define ADD_FUNCTION(A)                                                                                              \
    static void add_##A(const struct unfold *u, const A *from, A *to)                                                \
    {                                                                                                                \
        for (int64_t w = 0; w < u->windows; ++w)                                                                     \
            for (int64_t i = 0; i < u->inner; ++i)                                                                   \
                for (int64_t k = 0; k < u->size; ++k)                                                                \
                    to[(w * u->step + k) * u->inner + i] += from[(w * u->inner + i) * u->size + k];                  \
    }
ADD_FUNCTION(double)
ADD_FUNCTION(float)

static void add_windows(void *argument, int64_t begin, int64_t end)
{
    const struct unfold_job *const j = argument;
    const struct unfold *const u = j->u;
    const int64_t from = u->windows * u->inner * u->size, to = u->length * u->inner;
    for (int64_t o = begin; o < end; ++o)
        if (u->type == ACCUMULATE_F64)
            add_double(u, (const double *)(const void *)j->from + o * from, (double *)(void *)j->to + o * to);
        else
            add_float(u, (const float *)(const void *)j->from + o * from, (float *)(void *)j->to + o * to);
}

static int run_unfold(struct plan *plan)
{
    const struct unfold *const u = PLAN_IMMEDIATE(plan, struct unfold);
    if (plan->operands[GRAD_IN].count == 0)
        return 0;
    struct unfold_job j = {.u = u, .from = stage_read(plan, &u->staging, GRAD_OUT)};
    j.to = stage_target(plan, &u->staging, GRAD_IN);
    memset(j.to, 0, (size_t)(plan->operands[GRAD_IN].count * accumulate_bytes(u->type)));
    if (plan->operands[GRAD_OUT].count > 0)
        parallel_for(u->outer, u->windows * u->inner * u->size, add_windows, &j);
    stage_write_back(plan, &u->staging, GRAD_IN);
    return 0;
}

static int check_unfold(struct plan *plan, struct unfold *u, int d, const struct view *from, const struct view *to)
{
    REQUIRE(u->size >= 0 && u->size <= u->length && u->step > 0, ACLNN_ERROR_PARAM,
            "aclnnUnfoldGrad: size is %lld and step %lld; dimension %d has %lld elements", (long long)u->size, (long long)u->step,
            d, (long long)u->length);
    u->windows = (u->length - u->size) / u->step + 1;
    int64_t sizes[TENSOR_MAX_DIMS + 1];
    memcpy(sizes, to->sizes, sizeof to->sizes);
    REQUIRE(to->ndim < TENSOR_MAX_DIMS, ACLNN_ERROR_PARAM, "aclnnUnfoldGrad: gradIn %s has too many dimensions", view_text(to));
    if (to->ndim > 0)
        sizes[d] = u->windows;
    sizes[to->ndim] = u->size;
    return check_sizes(plan, from, "gradOut", sizes, to->ndim + 1);
}

aclnnStatus aclnnUnfoldGradGetWorkspaceSize(const aclTensor *gradOut, const aclIntArray *inputSizes, int64_t dim, int64_t size,
                                            int64_t step, const aclTensor *gradIn, uint64_t *workspaceSize,
                                            aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    int d;
    TRY(plan_begin(OPERATOR_UnfoldGrad, run_unfold, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, gradOut, "gradOut", &from));
    PLAN_TRY(plan, plan_output(plan, gradIn, "gradIn", &to));
    PLAN_TRY(plan, check_floating(plan, from, "gradOut"));
    PLAN_TRY(plan, check_same_dtype(plan, to, "gradIn", from, "gradOut"));
    PLAN_REQUIRE(plan, inputSizes && inputSizes->count <= TENSOR_MAX_DIMS, ACLNN_ERROR_PARAM,
                 "aclnnUnfoldGrad: inputSizes is null or has more than %d numbers", TENSOR_MAX_DIMS);
    PLAN_TRY(plan, check_sizes(plan, to, "gradIn", inputSizes->values, (int)inputSizes->count));
    PLAN_TRY(plan, check_dim(plan, dim, to, "dim", &d));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "gradIn"));
    struct unfold *const u = PLAN_IMMEDIATE(plan, struct unfold);
    stage_begin(&u->staging);
    u->type = accumulate_of((enum dtype)from->dtype);
    u->size = size;
    u->step = step;
    u->length = to->ndim > 0 ? to->sizes[d] : 1;
    PLAN_REQUIRE(plan, multiply_sizes(to, 0, d, &u->outer) && multiply_sizes(to, d + 1, to->ndim, &u->inner), ACLNN_ERROR_PARAM,
                 "aclnnUnfoldGrad: gradIn %s is too large", view_text(to));
    PLAN_TRY(plan, check_unfold(plan, u, d, from, to));
    stage_operand(plan, &u->staging, from, u->type);
    stage_operand(plan, &u->staging, to, u->type);
    return plan_finish(plan, u->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(UnfoldGrad)
