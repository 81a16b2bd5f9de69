/* 2-D pooling on [N, C, H, W] or [C, H, W]: one plane is one item of work.
 *
 * MaxPool2dWithMask's "mask" is opaque to callers; we store each plane's int32 positions at its start. Only with 1 x 1 kernels
 * is the plane's part too small for them, and then positions follow from the shape and nothing is stored. */
#include <math.h>
#include <stdatomic.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "kernels/pool.h"

struct pooling {
    struct staging staging;
    struct pool_shape shape;
    bool adaptive;
    int64_t planes, positions; /* positions: workspace offset of int32 indices */
    enum accumulate type;
};

/* --- shapes --------------------------------------------------------------------------------------------------------- */

static int64_t output_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool ceil_mode)
{
    const int64_t span = in + 2 * pad - dilation * (kernel - 1) - 1;
    if (span < 0 && !ceil_mode)
        return 0;
    int64_t out = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (out - 1) * stride >= in + pad)
        --out; /* the last window must start inside the input or its left padding */
    return out;
}

/* One or two values; an empty or missing array gives `otherwise`. */
static int read_pair(const struct plan *plan, const aclIntArray *array, const char *parameter, int64_t least,
                     const int64_t *otherwise, int64_t *height, int64_t *width)
{
    if (!array || array->count == 0) {
        REQUIRE(otherwise, ACLNN_ERROR_NULLPTR, "%s: %s is missing", plan_name(plan), parameter);
        *height = otherwise[0];
        *width = otherwise[1];
        return 0;
    }
    REQUIRE(array->count <= 2, ACLNN_ERROR_PARAM, "%s: %s has %llu values; allowed are 1 or 2", plan_name(plan), parameter,
            (unsigned long long)array->count);
    *height = array->values[0];
    *width = array->values[array->count - 1];
    REQUIRE(*height >= least && *width >= least, ACLNN_ERROR_PARAM, "%s: %s is [%lld, %lld]; at least %lld is allowed",
            plan_name(plan), parameter, (long long)*height, (long long)*width, (long long)least);
    return 0;
}

struct windows {
    const aclIntArray *kernel, *stride, *padding, *dilation;
    bool ceil_mode;
};

static int set_windows(struct plan *plan, const struct windows *w, struct pool_shape *s)
{
    static const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
    TRY(read_pair(plan, w->kernel, "kernelSize", 1, NULL, &s->kernel_height, &s->kernel_width));
    const int64_t same[] = {s->kernel_height, s->kernel_width};
    TRY(read_pair(plan, w->stride, "stride", 1, same, &s->stride_height, &s->stride_width));
    TRY(read_pair(plan, w->padding, "padding", 0, zeros, &s->pad_height, &s->pad_width));
    TRY(read_pair(plan, w->dilation, "dilation", 1, ones, &s->dilation_height, &s->dilation_width));
    REQUIRE(2 * s->pad_height <= s->kernel_height && 2 * s->pad_width <= s->kernel_width, ACLNN_ERROR_PARAM,
            "%s: padding [%lld, %lld] is more than half of kernelSize [%lld, %lld]", plan_name(plan), (long long)s->pad_height,
            (long long)s->pad_width, (long long)s->kernel_height, (long long)s->kernel_width);
    const int64_t height =
        output_size(s->in_height, s->kernel_height, s->stride_height, s->pad_height, s->dilation_height, w->ceil_mode);
    const int64_t width = output_size(s->in_width, s->kernel_width, s->stride_width, s->pad_width, s->dilation_width, w->ceil_mode);
    REQUIRE(height > 0 && width > 0, ACLNN_ERROR_PARAM, "%s: input planes of %lld x %lld are too small for the kernel",
            plan_name(plan), (long long)s->in_height, (long long)s->in_width);
    REQUIRE(height == s->out_height && width == s->out_width, ACLNN_ERROR_PARAM,
            "%s: pooled planes must be %lld x %lld, not %lld x %lld", plan_name(plan), (long long)height, (long long)width,
            (long long)s->out_height, (long long)s->out_width);
    return 0;
}

/* Sizes from the large side (input, its gradient) and the small side (output, its gradient). */
static int set_planes(struct plan *plan, const struct view *large, const struct view *small, struct pooling *p)
{
    /* As torch has it, integers are for maxima, and i64 for means, too. */
    const bool integers = plan->operator_id == OPERATOR_MaxPool2dWithIndices ||
                          (plan->operator_id == OPERATOR_AvgPool2d && large->dtype == DTYPE_I64);
    TRY(check_window_types(plan, (enum dtype)large->dtype, (enum dtype)small->dtype, integers));
    REQUIRE((large->ndim == 3 || large->ndim == 4) && small->ndim == large->ndim, ACLNN_ERROR_PARAM,
            "%s: %s and %s must both have 3 or 4 dimensions", plan_name(plan), view_text(large), view_text(small));
    p->planes = 1;
    for (int d = 0; d < large->ndim - 2; ++d) {
        REQUIRE(large->sizes[d] == small->sizes[d], ACLNN_ERROR_PARAM, "%s: %s and %s differ in batch or channels", plan_name(plan),
                view_text(large), view_text(small));
        p->planes *= large->sizes[d];
    }
    struct pool_shape *const s = &p->shape;
    *s = (struct pool_shape){.in_height = 0}; /* adaptive ones have no window: a recycled plan's must not be taken for one */
    s->in_height = large->sizes[large->ndim - 2];
    s->in_width = large->sizes[large->ndim - 1];
    s->out_height = small->sizes[small->ndim - 2];
    s->out_width = small->sizes[small->ndim - 1];
    REQUIRE(s->in_height * s->in_width <= INT32_MAX, ACLNN_ERROR_PARAM, "%s: planes of more than 2^31 - 1 elements",
            plan_name(plan));
    p->type = accumulate_of((enum dtype)large->dtype);
    p->positions = -1;
    return 0;
}

static int64_t in_plane(const struct pooling *p) { return p->shape.in_height * p->shape.in_width; }
static int64_t out_plane(const struct pooling *p) { return p->shape.out_height * p->shape.out_width; }

/* --- maximum -------------------------------------------------------------------------------------------------------- */

enum { IN, OUT, INDICES };                      /* forward */
enum { GRAD_OUT, SELF, B_INDICES, GRAD_INPUT }; /* backward */

struct max_job {
    const struct pooling *p;
    const char *in; /* forward: input; backward: gradient of the output */
    char *out;      /* output; gradient of the input */
    char *indices;
    int64_t index_step; /* bytes from plane to plane */
    bool wide;          /* int64 indices */
    _Atomic int failed;
};

static void max_planes(void *argument, int64_t begin, int64_t end)
{
    struct max_job *const j = argument;
    const struct pooling *const p = j->p;
    const int64_t bytes = accumulate_bytes(p->type), count = out_plane(p);
    const bool own = j->wide || !j->indices;
    int32_t *const positions = own ? pool_scratch(0, (size_t)count * sizeof(int32_t)) : NULL;
    if (own && !positions) {
        j->failed = 1;
        return;
    }
    for (int64_t i = begin; i < end; ++i) {
        char *const home = j->indices ? j->indices + i * j->index_step : NULL;
        const struct pool_float_kernels *const k = &kernels->pool->real[p->type];
        (p->adaptive ? k->adaptive_max : k->max)(j->in + i * in_plane(p) * bytes, &p->shape, j->out + i * count * bytes,
                                                 own ? positions : (int32_t *)(void *)home);
        if (j->wide)
            kernels->pool->widen_index(positions, (int64_t *)(void *)home, count);
    }
}

static void max_backward_planes(void *argument, int64_t begin, int64_t end)
{
    struct max_job *const j = argument;
    const struct pooling *const p = j->p;
    const struct pool_shape *const s = &p->shape;
    const int64_t bytes = accumulate_bytes(p->type), count = out_plane(p);
    const bool own = j->wide || !j->indices;
    int32_t *const positions = own ? pool_scratch(0, (size_t)count * sizeof(int32_t)) : NULL;
    if (own && !positions) {
        j->failed = 1;
        return;
    }
    if (!j->indices) /* 1 x 1 kernels: the position follows from the place */
        for (int64_t k = 0; k < count; ++k)
            positions[k] = (int32_t)((k / s->out_width * s->stride_height) * s->in_width + k % s->out_width * s->stride_width);
    for (int64_t i = begin; i < end; ++i) {
        const char *const home = j->indices ? j->indices + i * j->index_step : NULL;
        if (j->wide)
            kernels->pool->narrow_index((const int64_t *)(const void *)home, positions, count);
        kernels->pool->real[p->type].max_backward(j->in + i * count * bytes, own ? positions : (const int32_t *)(const void *)home,
                                                  s, j->out + i * in_plane(p) * bytes);
    }
}

static int finish_max(const struct plan *plan, const struct max_job *j)
{
    REQUIRE(!j->failed, ERROR_RT_MEMORY_ALLOCATION, "%s: no memory for a plane's positions", plan_name(plan));
    return 0;
}

/* Indices straight into the tensor, when it is contiguous. */
static void set_indices(struct plan *plan, int operand, struct max_job *j)
{
    const struct view *const v = &plan->operands[operand];
    const struct pooling *const p = j->p;
    if (v->dtype == DTYPE_I8 || v->dtype == DTYPE_U8) { /* a mask */
        j->indices = p->shape.kernel_height * p->shape.kernel_width > 1 ? v->data : NULL;
        j->index_step = p->planes > 0 ? v->count / p->planes : 0;
    } else if (p->staging.offset[operand] >= 0 || v->dtype == DTYPE_I64) {
        j->wide = true;
        j->indices = stage_target(plan, &p->staging, operand);
        j->index_step = out_plane(p) * (int64_t)sizeof(int64_t);
    } else {
        j->indices = v->data;
        j->index_step = out_plane(p) * (int64_t)sizeof(int32_t);
    }
}

static int run_max(struct plan *plan)
{
    const struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);
    struct max_job j = {.p = p};
    j.in = stage_read(plan, &p->staging, IN);
    j.out = stage_target(plan, &p->staging, OUT);
    set_indices(plan, INDICES, &j);
    if (plan->operands[OUT].count > 0)
        parallel_for(p->planes, in_plane(p), max_planes, &j);
    stage_write_back(plan, &p->staging, OUT);
    if (j.wide)
        stage_write_back(plan, &p->staging, INDICES);
    return finish_max(plan, &j);
}

static int run_max_backward(struct plan *plan)
{
    const struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);
    struct max_job j = {.p = p};
    j.in = stage_read(plan, &p->staging, GRAD_OUT);
    j.out = stage_target(plan, &p->staging, GRAD_INPUT);
    set_indices(plan, B_INDICES, &j);
    if (j.wide)
        stage_read(plan, &p->staging, B_INDICES);
    if (plan->operands[GRAD_INPUT].count > 0)
        parallel_for(p->planes, in_plane(p), max_backward_planes, &j);
    stage_write_back(plan, &p->staging, GRAD_INPUT);
    return finish_max(plan, &j);
}

/* Integer positions, or the opaque bytes of the mask forms. */
static int take_indices(struct plan *plan, struct pooling *p, int operand, bool mask)
{
    const struct view *const v = &plan->operands[operand];
    const struct pool_shape *const s = &p->shape;
    if (mask) {
        const int64_t taps = s->kernel_height * s->kernel_width, least = taps > 1 ? p->planes * out_plane(p) * 4 : 0;
        REQUIRE((v->dtype == DTYPE_I8 || v->dtype == DTYPE_U8) && v->contiguous && v->count >= least, ACLNN_ERROR_PARAM,
                "%s: indices is %s; it must be contiguous i8 of [n, c, %lld, %lld]", plan_name(plan), view_text(v), (long long)taps,
                (long long)((out_plane(p) + 15) / 16 + 1) * 32);
        return 0;
    }
    REQUIRE((v->dtype == DTYPE_I64 || v->dtype == DTYPE_I32) && v->count == p->planes * out_plane(p), ACLNN_ERROR_PARAM,
            "%s: indices is %s; it must be i64 or i32 with %lld elements", plan_name(plan), view_text(v),
            (long long)(p->planes * out_plane(p)));
    if (!(v->dtype == DTYPE_I32 && v->contiguous))
        stage_operand(plan, &p->staging, v, ACCUMULATE_I64);
    return 0;
}

/* outputSize of the adaptive operators says what `out` must be. */
static int check_output_size(const char *name, const aclIntArray *wanted, const struct view *out)
{
    REQUIRE(wanted, ACLNN_ERROR_NULLPTR, "%s: outputSize is null", name);
    REQUIRE(wanted->count == 2 && wanted->values[0] == out->sizes[out->ndim - 2] && wanted->values[1] == out->sizes[out->ndim - 1],
            ACLNN_ERROR_PARAM, "%s: outputSize has %llu values, from %lld to %lld; it must hold the two last sizes of out %s", name,
            (unsigned long long)wanted->count, (long long)(wanted->count > 0 ? wanted->values[0] : 0),
            (long long)(wanted->count > 0 ? wanted->values[wanted->count - 1] : 0), view_text(out));
    return 0;
}

/* w: NULL for adaptive windows, here and below; then output_size counts. */
static int plan_max(enum operator_id id, const aclTensor *self, const struct windows *w, const aclIntArray *output_size,
                    aclTensor *out, aclTensor *indices, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, run_max, workspace_size, executor, &plan));
    struct view *in, *o;
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, plan_output(plan, out, "out", &o));
    PLAN_TRY(plan, plan_output(plan, indices, "indices", NULL));
    struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);
    stage_begin(&p->staging);
    PLAN_TRY(plan, set_planes(plan, in, o, p));
    p->adaptive = !w;
    PLAN_TRY(plan, w ? set_windows(plan, w, &p->shape) : check_output_size(plan_name(plan), output_size, o));
    PLAN_TRY(plan, take_indices(plan, p, INDICES, id == OPERATOR_MaxPool2dWithMask));
    stage_operand(plan, &p->staging, in, p->type);
    stage_operand(plan, &p->staging, o, p->type);
    return plan_finish(plan, p->staging.bytes, workspace_size, executor);
}

static int plan_max_backward(enum operator_id id, const aclTensor *const *inputs, const struct windows *w, aclTensor *gradInput,
                             bool mask, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, run_max_backward, workspace_size, executor, &plan));
    struct view *dy, *self, *dx;
    PLAN_TRY(plan, plan_input(plan, inputs[0], "gradOutput", &dy));
    PLAN_TRY(plan, plan_input(plan, inputs[1], "self", &self));
    PLAN_TRY(plan, plan_input(plan, inputs[2], "indices", NULL));
    PLAN_TRY(plan, plan_output(plan, gradInput, "gradInput", &dx));
    struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);
    stage_begin(&p->staging);
    PLAN_TRY(plan, set_planes(plan, dx, dy, p));
    PLAN_REQUIRE(plan, view_same_sizes(self, dx), ACLNN_ERROR_PARAM, "%s: gradInput %s and self %s differ", plan_name(plan),
                 view_text(dx), view_text(self));
    if (w)
        PLAN_TRY(plan, set_windows(plan, w, &p->shape));
    PLAN_TRY(plan, take_indices(plan, p, B_INDICES, mask));
    stage_operand(plan, &p->staging, dy, p->type);
    stage_operand(plan, &p->staging, dx, p->type);
    return plan_finish(plan, p->staging.bytes, workspace_size, executor);
}

#define MAX_POOL(NAME, MASK)                                                                                                    \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,   \
                                              const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode,           \
                                              aclTensor *out, aclTensor *indices, uint64_t *workspaceSize,                      \
                                              aclOpExecutor **executor)                                                         \
    {                                                                                                                           \
        const struct windows w = {kernelSize, stride, padding, dilation, ceilMode};                                             \
        return plan_max(OPERATOR_##NAME, self, &w, NULL, out, indices, workspaceSize, executor);                                \
    }                                                                                                                           \
    ACLNN_PHASE_2(NAME)                                                                                                         \
    aclnnStatus aclnn##NAME##BackwardGetWorkspaceSize(                                                                          \
        const aclTensor *gradOutput, const aclTensor *self, const aclTensor *indices, const aclIntArray *kernelSize,            \
        const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation, bool ceilMode, aclTensor *gradInput, \
        uint64_t *workspaceSize, aclOpExecutor **executor)                                                                      \
    {                                                                                                                           \
        const struct windows w = {kernelSize, stride, padding, dilation, ceilMode};                                             \
        const aclTensor *const inputs[] = {gradOutput, self, indices};                                                          \
        return plan_max_backward(OPERATOR_##NAME##Backward, inputs, &w, gradInput, MASK, workspaceSize, executor);              \
    }                                                                                                                           \
    ACLNN_PHASE_2(NAME##Backward)
MAX_POOL(MaxPool2dWithIndices, false)
MAX_POOL(MaxPool2dWithMask, true)

aclnnStatus aclnnAdaptiveMaxPool2dGetWorkspaceSize(const aclTensor *self, const aclIntArray *outputSize, aclTensor *outputOut,
                                                   aclTensor *indicesOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_max(OPERATOR_AdaptiveMaxPool2d, self, NULL, outputSize, outputOut, indicesOut, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveMaxPool2d)

aclnnStatus aclnnAdaptiveMaxPool2dBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                           const aclTensor *indices, aclTensor *gradInput, uint64_t *workspaceSize,
                                                           aclOpExecutor **executor)
{
    const aclTensor *const inputs[] = {gradOutput, self, indices};
    return plan_max_backward(OPERATOR_AdaptiveMaxPool2dBackward, inputs, NULL, gradInput, false, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveMaxPool2dBackward)

/* --- average -------------------------------------------------------------------------------------------------------- */

struct average_job {
    const struct pooling *p;
    void (*kernel)(const void *from, const struct pool_shape *shape, void *to);
    const char *from;
    char *to;
    int64_t from_step, to_step; /* bytes */
};

static void average_planes(void *argument, int64_t begin, int64_t end)
{
    const struct average_job *const j = argument;
    for (int64_t i = begin; i < end; ++i)
        j->kernel(j->from + i * j->from_step, &j->p->shape, j->to + i * j->to_step);
}

/* Operand 0 is read and operand 1 written; which of them is the large side depends on the direction. */
static int run_average_with(struct plan *plan, void (*kernel)(const void *, const struct pool_shape *, void *), bool backward)
{
    const struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);
    const int64_t large = in_plane(p) * accumulate_bytes(p->type), small = out_plane(p) * accumulate_bytes(p->type);
    struct average_job j = {.p = p, .kernel = kernel};
    j.from = stage_read(plan, &p->staging, 0);
    j.to = stage_target(plan, &p->staging, 1);
    j.from_step = backward ? small : large;
    j.to_step = backward ? large : small;
    if (plan->operands[1].count > 0)
        parallel_for(p->planes, in_plane(p), average_planes, &j);
    stage_write_back(plan, &p->staging, 1);
    return 0;
}

#define AVERAGE_RUN(name, kernel, backward)                                                             \
    static int run_##name(struct plan *plan)                                                            \
    {                                                                                                   \
        const struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);                           \
        return run_average_with(plan, kernels->pool->real[p->type].kernel, backward);                   \
    }
AVERAGE_RUN(average, average, false)
AVERAGE_RUN(average_backward, average_backward, true)
AVERAGE_RUN(adaptive, adaptive, false)
AVERAGE_RUN(adaptive_backward, adaptive_backward, true)

struct average_request {
    enum operator_id id;
    plan_run_fn run;
    const aclTensor *from;
    aclTensor *to;
    const char *from_name, *to_name;
    const struct windows *windows;  /* NULL: adaptive */
    const aclIntArray *output_size; /* of adaptive ones, forward */
    int64_t divisor;
    bool backward, count_padding;
};

static int plan_average(const struct average_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, q->run, workspace_size, executor, &plan));
    struct view *from, *to;
    PLAN_TRY(plan, plan_input(plan, q->from, q->from_name, &from));
    PLAN_TRY(plan, plan_output(plan, q->to, q->to_name, &to));
    struct pooling *const p = PLAN_IMMEDIATE(plan, struct pooling);
    stage_begin(&p->staging);
    PLAN_TRY(plan, set_planes(plan, q->backward ? to : from, q->backward ? from : to, p));
    if (q->windows)
        PLAN_TRY(plan, set_windows(plan, q->windows, &p->shape));
    else if (!q->backward)
        PLAN_TRY(plan, check_output_size(plan_name(plan), q->output_size, to));
    p->shape.divisor = q->divisor;
    p->shape.count_padding = q->count_padding;
    stage_operand(plan, &p->staging, from, p->type);
    stage_operand(plan, &p->staging, to, p->type);
    return plan_finish(plan, p->staging.bytes, workspace_size, executor);
}

aclnnStatus aclnnAvgPool2dGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *strides,
                                           const aclIntArray *paddings, bool ceilMode, bool countIncludePad,
                                           int64_t divisorOverride, int8_t cubeMathType, aclTensor *out, uint64_t *workspaceSize,
                                           aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, strides, paddings, NULL, ceilMode};
    const struct average_request q = {.id = OPERATOR_AvgPool2d,
                                      .run = run_average,
                                      .from = self,
                                      .to = out,
                                      .from_name = "self",
                                      .to_name = "out",
                                      .windows = &w,
                                      .divisor = divisorOverride,
                                      .count_padding = countIncludePad};
    return plan_average(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(AvgPool2d)

aclnnStatus aclnnAvgPool2dBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                   const aclIntArray *kernelSize, const aclIntArray *stride,
                                                   const aclIntArray *padding, bool ceilMode, bool countIncludePad,
                                                   int64_t divisorOverride, int8_t cubeMathType, aclTensor *gradInput,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, stride, padding, NULL, ceilMode};
    const struct average_request q = {.id = OPERATOR_AvgPool2dBackward,
                                      .run = run_average_backward,
                                      .from = gradOutput,
                                      .to = gradInput,
                                      .from_name = "gradOutput",
                                      .to_name = "gradInput",
                                      .windows = &w,
                                      .divisor = divisorOverride,
                                      .backward = true,
                                      .count_padding = countIncludePad};
    return plan_average(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(AvgPool2dBackward)

aclnnStatus aclnnAdaptiveAvgPool2dGetWorkspaceSize(const aclTensor *self, const aclIntArray *outputSize, aclTensor *out,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct average_request q = {.id = OPERATOR_AdaptiveAvgPool2d,
                                      .run = run_adaptive,
                                      .from = self,
                                      .to = out,
                                      .from_name = "self",
                                      .to_name = "out",
                                      .output_size = outputSize};
    return plan_average(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveAvgPool2d)

aclnnStatus aclnnAdaptiveAvgPool2dBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, aclTensor *out,
                                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct average_request q = {.id = OPERATOR_AdaptiveAvgPool2dBackward,
                                      .run = run_adaptive_backward,
                                      .from = gradOutput,
                                      .to = out,
                                      .from_name = "gradOutput",
                                      .to_name = "out",
                                      .backward = true};
    return plan_average(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveAvgPool2dBackward)
