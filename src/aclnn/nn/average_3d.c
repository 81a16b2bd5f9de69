/* Average pooling of volumes: a window's average is the average along each dimension in turn. */
#include "aclnn/nn/resample.h"

struct windows {
    const aclIntArray *kernel, *stride, *padding;
    bool ceil_mode, count_padding;
    int64_t divisor;
};

static int64_t window(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const int64_t start = out * axis->stride - axis->pad, whole = start + axis->kernel;
    const int64_t padded = whole < axis->in + axis->pad ? whole : axis->in + axis->pad;
    const int64_t first = start > 0 ? start : 0, last = padded < axis->in ? padded : axis->in;
    const double count = axis->factor != 0 ? 1 / axis->factor : (double)(axis->count_padding ? padded - start : last - first);
    for (int64_t i = first; i < last; ++i) {
        index[i - first] = (int32_t)i;
        weight[i - first] = 1 / count;
    }
    return last > first ? last - first : 0;
}

static int64_t adaptive_window(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const int64_t first = out * axis->in / axis->out, last = ((out + 1) * axis->in + axis->out - 1) / axis->out;
    for (int64_t i = first; i < last; ++i) {
        index[i - first] = (int32_t)i;
        weight[i - first] = 1 / (double)(last - first);
    }
    return last - first;
}

/* One value for all dimensions, or one each. */
static int64_t value_of(const aclIntArray *values, int which, int64_t otherwise)
{
    if (!values || values->count == 0)
        return otherwise;
    return values->values[values->count == 1 ? 0 : which];
}

static int64_t pooled_size(const struct resample_axis *a, bool ceil_mode)
{
    const int64_t span = a->in + 2 * a->pad - a->kernel;
    if (span < 0 && !ceil_mode)
        return 0;
    const int64_t out = (span + (ceil_mode ? a->stride - 1 : 0)) / a->stride + 1;
    return out - (ceil_mode && (out - 1) * a->stride >= a->in + a->pad); /* a window must not start in the right padding */
}

static int set_window(const struct resample_request *q, int which, struct resample_axis *axis)
{
    const struct windows *const w = q->context;
    const aclIntArray *const arrays[] = {w->kernel, w->stride, w->padding};
    static const char *const names[] = {"kernelSize", "stride", "padding"};
    for (int i = 0; i < 3; ++i)
        REQUIRE(!arrays[i] || arrays[i]->count == 1 || arrays[i]->count == 3 || (i == 1 && arrays[i]->count == 0),
                ACLNN_ERROR_PARAM, "%s: %s has %llu values; allowed are 1 or 3", operator_name(q->id), names[i],
                (unsigned long long)arrays[i]->count);
    axis->kernel = value_of(w->kernel, which, 0);
    axis->stride = value_of(w->stride, which, axis->kernel);
    axis->pad = value_of(w->padding, which, 0);
    REQUIRE(axis->kernel > 0 && axis->stride > 0 && axis->pad >= 0 && 2 * axis->pad <= axis->kernel, ACLNN_ERROR_PARAM,
            "%s: a kernel of %lld, stride %lld, padding %lld; kernel and stride must be at least 1, padding at most half a kernel",
            operator_name(q->id), (long long)axis->kernel, (long long)axis->stride, (long long)axis->pad);
    REQUIRE(pooled_size(axis, w->ceil_mode) == axis->out, ACLNN_ERROR_PARAM, "%s: %lld elements give %lld, not %lld",
            operator_name(q->id), (long long)axis->in, (long long)pooled_size(axis, w->ceil_mode), (long long)axis->out);
    axis->count_padding = w->count_padding;
    axis->factor = w->divisor == 0 ? 0 : which == 0 ? 1 / (double)w->divisor : 1;
    axis->most = axis->kernel;
    return 0;
}

static int set_adaptive(const struct resample_request *q, int which, struct resample_axis *axis)
{
    axis->most = axis->out > 0 ? axis->in / axis->out + 2 : 1;
    return 0;
}

static int plan_average(struct resample_request q, const struct windows *w, uint64_t *workspace_size, aclOpExecutor **executor)
{
    q.axes = 3;
    q.context = w;
    q.ready = w ? set_window : set_adaptive;
    q.from_name = q.backward ? "gradOutput" : "self";
    q.to_name = q.backward ? "output" : "out";
    REQUIRE(!w || (w->kernel && w->kernel->count > 0), ACLNN_ERROR_NULLPTR, "%s: kernelSize is missing", operator_name(q.id));
    for (int a = 0; a < 3; ++a)
        q.axis[a].terms = w ? window : adaptive_window;
    return resample_plan(&q, workspace_size, executor);
}

aclnnStatus aclnnAvgPool3dGetWorkspaceSize(const aclTensor *self, const aclIntArray *kernelSize, const aclIntArray *stride,
                                           const aclIntArray *padding, bool ceilMode, bool countIncludePad, int64_t divisorOverride,
                                           aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride};
    const struct resample_request q = {.id = OPERATOR_AvgPool3d, .from = self, .to = out};
    return plan_average(q, &w, workspaceSize, executor);
}
ACLNN_PHASE_2(AvgPool3d)

aclnnStatus aclnnAvgPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self,
                                                   const aclIntArray *kernelSize, const aclIntArray *stride,
                                                   const aclIntArray *padding, bool ceilMode, bool countIncludePad,
                                                   int64_t divisorOverride, aclTensor *output, uint64_t *workspaceSize,
                                                   aclOpExecutor **executor)
{
    const struct windows w = {kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride};
    const struct resample_request q = {.id = OPERATOR_AvgPool3dBackward, .from = gradOutput, .to = output, .backward = true};
    return plan_average(q, &w, workspaceSize, executor);
}
ACLNN_PHASE_2(AvgPool3dBackward)

aclnnStatus aclnnAdaptiveAvgPool3dGetWorkspaceSize(const aclTensor *self, const aclIntArray *outputSize, aclTensor *out,
                                                   uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct resample_request q = {.id = OPERATOR_AdaptiveAvgPool3d, .from = self, .to = out};
    return plan_average(q, NULL, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveAvgPool3d)

aclnnStatus aclnnAdaptiveAvgPool3dBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *self, aclTensor *out,
                                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct resample_request q = {.id = OPERATOR_AdaptiveAvgPool3dBackward, .from = gradOutput, .to = out, .backward = true};
    return plan_average(q, NULL, workspaceSize, executor);
}
ACLNN_PHASE_2(AdaptiveAvgPool3dBackward)
