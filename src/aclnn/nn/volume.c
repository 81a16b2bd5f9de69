/* Windows of volumes and planes: max pooling in three dimensions with positions, its inverse, im2col and its gradient. One volume
 * (of one channel) is one item of work. */
#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/volume.h"

enum { AXES = VOLUME_AXES };

struct volumes {
    struct staging staging;
    struct volume_shape shape;
    int64_t count, in, out; /* volumes; elements of each on the two sides */
    enum accumulate type;
    bool add;
};

/* --- phase 2 ---------------------------------------------------------------------------------------------------------- */

struct volume_job {
    const struct volumes *v;
    const char *from;
    char *to;
    int64_t *index;
    _Atomic int failed;
    _Atomic int64_t outside;
};

static void max_volumes(void *argument, int64_t begin, int64_t end)
{
    struct volume_job *const j = argument;
    const struct volumes *const v = j->v;
    const int64_t bytes = accumulate_bytes(v->type);
    int32_t *const positions = pool_scratch(0, (size_t)v->out * sizeof *positions);
    if (!positions) {
        j->failed = 1;
        return;
    }
    for (int64_t i = begin; i < end; ++i) {
        kernels->volume->real[v->type].max(j->from + i * v->in * bytes, &v->shape, j->to + i * v->out * bytes, positions);
        for (int64_t k = 0; k < v->out; ++k)
            j->index[i * v->out + k] = positions[k];
    }
}

/* Operands: self, out, indices. */
static int run_max(struct plan *plan)
{
    const struct volumes *const v = PLAN_IMMEDIATE(plan, struct volumes);
    struct volume_job j = {.v = v, .from = stage_read(plan, &v->staging, 0)};
    j.to = stage_target(plan, &v->staging, 1);
    j.index = stage_target(plan, &v->staging, 2);
    if (v->count * v->out > 0)
        parallel_for(v->count, v->in, max_volumes, &j);
    stage_write_back(plan, &v->staging, 1);
    stage_write_back(plan, &v->staging, 2);
    REQUIRE(!j.failed, ERROR_RT_MEMORY_ALLOCATION, "%s: no memory for a volume's positions", plan_name(plan));
    return 0;
}

static void scatter_volumes(void *argument, int64_t begin, int64_t end)
{
    struct volume_job *const j = argument;
    const struct volumes *const v = j->v;
    const int64_t bytes = accumulate_bytes(v->type);
    for (int64_t i = begin; i < end; ++i)
        j->outside += kernels->volume->real[v->type].scatter(j->from + i * v->out * bytes, j->index + i * v->out, v->out,
                                                             j->to + i * v->in * bytes, v->in, v->add);
}

/* Operands: values, result, indices. */
static int run_scatter(struct plan *plan)
{
    const struct volumes *const v = PLAN_IMMEDIATE(plan, struct volumes);
    struct volume_job j = {.v = v, .from = stage_read(plan, &v->staging, 0)};
    j.to = stage_target(plan, &v->staging, 1);
    j.index = (int64_t *)(uintptr_t)stage_read(plan, &v->staging, 2);
    if (v->count * v->in > 0)
        parallel_for(v->count, v->in, scatter_volumes, &j);
    stage_write_back(plan, &v->staging, 1);
    REQUIRE(j.outside == 0, ERROR_RT_DEVICE_TASK, "%s: %lld of the indices lie outside of a volume of %lld elements",
            plan_name(plan), (long long)j.outside, (long long)v->in);
    return 0;
}

static void unfold_planes(void *argument, int64_t begin, int64_t end)
{
    const struct volume_job *const j = argument;
    const struct volumes *const v = j->v;
    const int64_t bytes = accumulate_bytes(v->type);
    for (int64_t i = begin; i < end; ++i)
        if (v->add)
            kernels->volume->real[v->type].fold(j->from + i * v->out * bytes, &v->shape, j->to + i * v->in * bytes);
        else
            kernels->volume->real[v->type].unfold(j->from + i * v->in * bytes, &v->shape, j->to + i * v->out * bytes);
}

static int run_unfold(struct plan *plan)
{
    const struct volumes *const v = PLAN_IMMEDIATE(plan, struct volumes);
    struct volume_job j = {.v = v, .from = stage_read(plan, &v->staging, 0)};
    j.to = stage_target(plan, &v->staging, 1);
    if (plan->operands[1].count > 0)
        parallel_for(v->count, v->out, unfold_planes, &j);
    stage_write_back(plan, &v->staging, 1);
    return 0;
}

/* --- shapes ------------------------------------------------------------------------------------------------------------ */

struct windows {
    const aclIntArray *kernel, *stride, *padding, *dilation;
    bool ceil_mode;
};

/* `axes` values, or one for all; missing: those of `otherwise`. */
static int read_values(const struct plan *plan, const aclIntArray *array, const char *parameter, int axes, int64_t least,
                       const int64_t *otherwise, int64_t *values)
{
    REQUIRE(array || otherwise, ACLNN_ERROR_NULLPTR, "%s: %s is null", plan_name(plan), parameter);
    const uint64_t count = array ? array->count : 0;
    REQUIRE(count == 1 || count == (uint64_t)axes || (count == 0 && otherwise), ACLNN_ERROR_PARAM,
            "%s: %s has %llu values; allowed are 1 or %d", plan_name(plan), parameter, (unsigned long long)count, axes);
    for (int a = 0; a < axes; ++a) {
        const int64_t value = count == 0 ? otherwise[AXES - axes + a] : array->values[count == 1 ? 0 : a];
        REQUIRE(value >= least, ACLNN_ERROR_PARAM, "%s: %s[%d] is %lld; at least %lld is allowed", plan_name(plan), parameter, a,
                (long long)value, (long long)least);
        values[AXES - axes + a] = value;
    }
    return 0;
}

static int set_windows(const struct plan *plan, const struct windows *w, int axes, struct volume_shape *s)
{
    static const int64_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    memcpy(s->kernel, ones, sizeof ones);
    memcpy(s->stride, ones, sizeof ones);
    memcpy(s->dilation, ones, sizeof ones);
    memcpy(s->pad, zeros, sizeof zeros);
    TRY(read_values(plan, w->kernel, "kernelSize", axes, 1, NULL, s->kernel));
    int64_t kernel[AXES];
    memcpy(kernel, s->kernel, sizeof kernel);
    TRY(read_values(plan, w->stride, "stride", axes, 1, kernel, s->stride));
    TRY(read_values(plan, w->padding, "padding", axes, 0, zeros, s->pad));
    return read_values(plan, w->dilation, "dilation", axes, 1, ones, s->dilation);
}

static int64_t window_count(const struct volume_shape *s, int a, bool ceil_mode)
{
    const int64_t span = s->in[a] + 2 * s->pad[a] - s->dilation[a] * (s->kernel[a] - 1) - 1;
    if (span < 0 && !ceil_mode)
        return 0;
    const int64_t out = (span + (ceil_mode ? s->stride[a] - 1 : 0)) / s->stride[a] + 1;
    return out - (ceil_mode && (out - 1) * s->stride[a] >= s->in[a] + s->pad[a]);
}

/* Volumes of the large side (input, its gradient) and the small side, in their last dimensions. */
static int set_volumes(struct plan *plan, const struct view *large, const struct view *small, int axes, struct volumes *v)
{
    /* As torch has it, integers are for maxima only. */
    const bool integers = plan->operator_id == OPERATOR_MaxPool3dWithArgmax;
    TRY(check_window_types(plan, (enum dtype)large->dtype, (enum dtype)small->dtype, integers));
    REQUIRE((large->ndim == axes + 1 || large->ndim == axes + 2) && small->ndim == large->ndim, ACLNN_ERROR_PARAM,
            "%s: %s and %s must both have %d or %d dimensions", plan_name(plan), view_text(large), view_text(small), axes + 1,
            axes + 2);
    v->count = v->in = v->out = 1;
    for (int a = 0; a < AXES; ++a)
        v->shape.in[a] = v->shape.out[a] = 1;
    for (int d = 0; d < large->ndim; ++d) {
        const int a = d - large->ndim + AXES;
        if (d >= large->ndim - axes) {
            v->in *= v->shape.in[a] = large->sizes[d];
            v->out *= v->shape.out[a] = small->sizes[d];
            continue;
        }
        REQUIRE(large->sizes[d] == small->sizes[d], ACLNN_ERROR_PARAM, "%s: %s and %s differ in batch or channels", plan_name(plan),
                view_text(large), view_text(small));
        v->count *= large->sizes[d];
    }
    REQUIRE(v->in <= INT32_MAX && (v->in > 0 || v->out == 0), ACLNN_ERROR_PARAM, "%s: volumes of %lld elements", plan_name(plan),
            (long long)v->in);
    v->type = accumulate_of((enum dtype)large->dtype);
    v->shape.adaptive = false;
    return 0;
}

static int check_windows(const struct plan *plan, const struct windows *w, struct volume_shape *s)
{
    TRY(set_windows(plan, w, AXES, s));
    for (int a = 0; a < AXES; ++a) {
        REQUIRE(2 * s->pad[a] <= s->kernel[a], ACLNN_ERROR_PARAM, "%s: padding[%d] is %lld, more than half of kernelSize %lld",
                plan_name(plan), a, (long long)s->pad[a], (long long)s->kernel[a]);
        REQUIRE(window_count(s, a, w->ceil_mode) == s->out[a] && s->out[a] > 0, ACLNN_ERROR_PARAM,
                "%s: %lld elements give %lld windows, not %lld", plan_name(plan), (long long)s->in[a],
                (long long)window_count(s, a, w->ceil_mode), (long long)s->out[a]);
    }
    return 0;
}

static int take_indices(struct plan *plan, struct volumes *v)
{
    const struct view *const index = &plan->operands[2];
    TRY(check_index_dtype(plan, index, "indices"));
    REQUIRE(index->count == v->count * v->out, ACLNN_ERROR_PARAM, "%s: indices is %s; it must have %lld elements", plan_name(plan),
            view_text(index), (long long)(v->count * v->out));
    stage_operand(plan, &v->staging, index, ACCUMULATE_I64);
    stage_operand(plan, &v->staging, &plan->operands[0], v->type);
    stage_operand(plan, &v->staging, &plan->operands[1], v->type);
    return 0;
}

/* --- pooling ----------------------------------------------------------------------------------------------------------- */

/* w: NULL for adaptive windows, here and below. */
static int plan_max(enum operator_id id, const aclTensor *self, const struct windows *w, const aclTensor *out,
                    const aclTensor *indices, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *to;
    TRY(plan_begin(id, run_max, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, plan_output(plan, indices, "indices", NULL));
    struct volumes *const v = PLAN_IMMEDIATE(plan, struct volumes);
    stage_begin(&v->staging);
    PLAN_TRY(plan, set_volumes(plan, in, to, AXES, v));
    if (w)
        PLAN_TRY(plan, check_windows(plan, w, &v->shape));
    v->shape.adaptive = !w;
    PLAN_TRY(plan, take_indices(plan, v));
    return plan_finish(plan, v->staging.bytes, workspace_size, executor);
}

/* Gradients (values add up where windows overlap) and the inverse of pooling (the last one wins). */
static int plan_scatter(enum operator_id id, const aclTensor *const tensors[3], int axes, bool add, uint64_t *workspace_size,
                        aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(id, run_scatter, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, tensors[0], add ? "gradOutput" : "self", &from));
    PLAN_TRY(plan, plan_output(plan, tensors[1], add ? "gradInput" : "out", &to));
    PLAN_TRY(plan, plan_input(plan, tensors[2], "indices", NULL));
    struct volumes *const v = PLAN_IMMEDIATE(plan, struct volumes);
    stage_begin(&v->staging);
    v->add = add;
    PLAN_TRY(plan, set_volumes(plan, to, from, axes, v));
    PLAN_TRY(plan, take_indices(plan, v));
    return plan_finish(plan, v->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnMaxPool3dWithArgmaxGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize,
                                                     const aclIntArray *stride, const aclIntArray *padding,
                                                     const aclIntArray *dilation, bool ceilMode, aclTensor *out, aclTensor *indices,
                                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, stride, padding, dilation, ceilMode};
    return plan_max(OPERATOR_MaxPool3dWithArgmax, self, &w, out, indices, workspaceSize, executor);
}
ACLNN_PHASE_2(MaxPool3dWithArgmax)

aclnnStatus aclnnMaxPool3dWithArgmaxBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                             const aclTensor *indices, const aclIntArray *kernelSize,
                                                             const aclIntArray *stride, const aclIntArray *padding,
                                                             const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput,
                                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_scatter(OPERATOR_MaxPool3dWithArgmaxBackward, (const aclTensor *const[]){gradOutput, gradInput, indices}, AXES,
                        true, workspaceSize, executor);
}
ACLNN_PHASE_2(MaxPool3dWithArgmaxBackward)

aclnnStatus aclnnAdaptiveMaxPool3dGetWorkspaceSize(const aclTensor *self, const aclIntArray *outputSize, aclTensor *outputOut,
                                                   aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_max(OPERATOR_AdaptiveMaxPool3d, self, NULL, outputOut, indicesOut, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveMaxPool3d)

aclnnStatus aclnnAdaptiveMaxPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                           const aclTensor *indices, aclTensor *gradInput, uint64_t *workspaceSize,
                                                           aclOpExecutor **executor)
{
    return plan_scatter(OPERATOR_AdaptiveMaxPool3dBackward, (const aclTensor *const[]){gradOutput, gradInput, indices}, AXES, true,
                        workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveMaxPool3dBackward)

aclnnStatus aclnnMaxUnpool2dGetWorkspaceSize(const aclTensor *self, const aclTensor *indices, const aclIntArray *outputSize,
                                             aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_scatter(OPERATOR_MaxUnpool2d, (const aclTensor *const[]){self, out, indices}, 2, false, workspaceSize, executor);
}
ACLNN_PHASE_2(MaxUnpool2d)

aclnnStatus aclnnMaxUnpool3dGetWorkspaceSize(const aclTensor *self, const aclTensor *indices, const aclIntArray *outputSize,
                                             const aclIntArray *stride, const aclIntArray *padding, aclTensor *outRef,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_scatter(OPERATOR_MaxUnpool3d, (const aclTensor *const[]){self, outRef, indices}, AXES, false, workspaceSize,
                        executor);
}
ACLNN_PHASE_2(MaxUnpool3d)

/* --- im2col ------------------------------------------------------------------------------------------------------------ */

/* planes: [N, C, H, W] (or without N); columns: [N, C * taps, windows]. */
static int plan_unfold(enum operator_id id, const aclTensor *const tensors[2], const struct windows *w, uint64_t *workspace_size,
                       aclOpExecutor **executor)
{
    struct plan *plan;
    const bool backward = id == OPERATOR_Im2colBackward;
    TRY(plan_begin(id, run_unfold, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, tensors[0], backward ? "gradOutput" : "self", NULL));
    PLAN_TRY(plan, plan_output(plan, tensors[1], "out", NULL));
    const struct view *const planes = &plan->operands[backward], *const columns = &plan->operands[!backward];
    struct volumes *const v = PLAN_IMMEDIATE(plan, struct volumes);
    struct volume_shape *const s = &v->shape;
    stage_begin(&v->staging);
    v->add = backward;
    if (backward || dtype_kind((enum dtype)planes->dtype) != KIND_BOOL)
        PLAN_TRY(plan, check_floating(plan, planes, backward ? "out" : "self"));
    PLAN_TRY(plan, check_same_dtype(plan, planes, "the planes", columns, "the columns"));
    PLAN_REQUIRE(plan, planes->ndim == 3 || planes->ndim == 4, ACLNN_ERROR_PARAM, "%s: planes of %s; they must be [N, C, H, W]",
                 operator_name(id), view_text(planes));
    PLAN_TRY(plan, set_windows(plan, w, 2, s));
    s->in[0] = s->out[0] = 1;
    for (int a = 1; a < AXES; ++a) {
        s->in[a] = planes->sizes[planes->ndim - AXES + a];
        s->out[a] = window_count(s, a, false);
        PLAN_REQUIRE(plan, s->out[a] > 0, ACLNN_ERROR_PARAM, "%s: %lld elements are too few for a window", operator_name(id),
                     (long long)s->in[a]);
    }
    const int64_t channels = planes->sizes[planes->ndim - 3], taps = s->kernel[1] * s->kernel[2];
    const int64_t sizes[] = {planes->ndim == 4 ? planes->sizes[0] : 1, channels * taps, s->out[1] * s->out[2]};
    PLAN_TRY(plan, check_sizes(plan, columns, "the columns", sizes + (planes->ndim == 3), planes->ndim - 1));
    v->type = accumulate_of((enum dtype)planes->dtype);
    v->count = sizes[0] * channels;
    v->in = s->in[1] * s->in[2];
    v->out = taps * sizes[2];
    stage_operand(plan, &v->staging, &plan->operands[0], v->type);
    stage_operand(plan, &v->staging, &plan->operands[1], v->type);
    return plan_finish(plan, v->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnIm2colGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *dilation,
                                        const aclIntArray *padding, const aclIntArray *stride, const aclTensor *out,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, stride, padding, dilation, false};
    return plan_unfold(OPERATOR_Im2col, (const aclTensor *const[]){self, out}, &w, workspaceSize, executor);
}
ACLNN_PHASE_2(Im2col)

aclnnStatus aclnnIm2colBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclIntArray *inputSize,
                                                const aclIntArray *kernelSize, const aclIntArray *dilation,
                                                const aclIntArray *padding, const aclIntArray *stride, aclTensor *out,
                                                uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, stride, padding, dilation, false};
    return plan_unfold(OPERATOR_Im2colBackward, (const aclTensor *const[]){gradOutput, out}, &w, workspaceSize, executor);
}
ACLNN_PHASE_2(Im2colBackward)
