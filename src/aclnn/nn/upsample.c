/* Upsampling: nearest, linear and cubic in one to three dimensions, and the antialiased forms, which widen their filter when they
 * shrink. Positions follow torch, reckoned in float for f32 and halves. */
#include <math.h>

#include "aclnn/nn/resample.h"

/* What a caller gave; a scale of 0 or less wasn't given. */
struct upsample {
    const aclIntArray *input_size; /* backward only */
    const aclIntArray *output_size;
    double scales[RESAMPLE_AXES];
    bool align;
};

static double rounded(const struct resample_axis *axis, double x) { return axis->narrow ? (double)(float)x : x; }

/* --- where an element comes from --------------------------------------------------------------------------------------- */

static int64_t nearest(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    int64_t at = out;
    if (axis->out == 2 * axis->in)
        at = out / 2;
    else if (axis->out != axis->in)
        at = (int64_t)floorf((float)out * (float)axis->scale);
    *index = (int32_t)(at < axis->in ? at : axis->in - 1);
    *weight = 1;
    return 1;
}

static int64_t nearest_exact(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const int64_t at = (int64_t)floorf(((float)out + .5f) * (float)axis->scale);
    *index = (int32_t)(at < axis->in ? at : axis->in - 1);
    *weight = 1;
    return 1;
}

/* Position in the input, in elements. */
static double source(const struct resample_axis *axis, int64_t out)
{
    if (axis->align)
        return rounded(axis, axis->scale * (double)out);
    return rounded(axis, rounded(axis, axis->scale * ((double)out + .5)) - .5);
}

static int64_t linear(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const double at = fmax(source(axis, out), 0);
    const int64_t first = at < (double)axis->in ? (int64_t)at : axis->in - 1;
    index[0] = (int32_t)first;
    index[1] = (int32_t)(first + (first < axis->in - 1));
    weight[1] = rounded(axis, fmin(fmax(at - (double)first, 0), 1));
    weight[0] = rounded(axis, 1 - weight[1]);
    return 2;
}

/* The cubic filter with the parameter a at a distance. */
static double cubic_filter(double distance, double a)
{
    const double x = fabs(distance);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static int64_t cubic(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const double at = source(axis, out), first = floor(at), part = at - first;
    for (int64_t k = 0; k < 4; ++k) {
        const int64_t place = (int64_t)first - 1 + k;
        index[k] = (int32_t)(place < 0 ? 0 : place >= axis->in ? axis->in - 1 : place);
        weight[k] = cubic_filter(part + 1 - (double)k, -.75);
    }
    return 4;
}

/* axis->kernel: how far the filter reaches, 1 linear, 2 cubic, times 2. */
static int64_t smoothed(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight)
{
    const bool is_cubic = axis->kernel == 4;
    const double widening = axis->scale >= 1 ? axis->scale : 1, reach = (double)axis->kernel / 2 * widening;
    const double center = axis->scale * ((double)out + .5);
    const int64_t low = (int64_t)(center - reach + .5), high = (int64_t)(center + reach + .5);
    const int64_t first = low < 0 ? 0 : low < axis->in ? low : axis->in, end = high < axis->in ? high : axis->in;
    const int64_t last = end > first ? end : first; /* a scale that isn't the sizes' may look behind the input */
    double total = 0;
    for (int64_t i = first; i < last; ++i) {
        const double distance = ((double)i - center + .5) / widening;
        const double w = is_cubic ? cubic_filter(distance, -.5) : fmax(1 - fabs(distance), 0);
        index[i - first] = (int32_t)i;
        weight[i - first] = w;
        total += w;
    }
    for (int64_t i = first; i < last && total != 0; ++i)
        weight[i - first] /= total;
    return last - first;
}

/* --- phase 1 ---------------------------------------------------------------------------------------------------------- */

static int set_axis(const struct resample_request *q, int which, struct resample_axis *axis)
{
    const struct upsample *const u = q->context;
    const aclIntArray *const sizes[] = {u->output_size, q->backward ? u->input_size : NULL};
    for (int k = 0; k < 2; ++k) {
        if (!sizes[k] || sizes[k]->count < (uint64_t)q->axes)
            continue;
        const int64_t wanted = sizes[k]->values[sizes[k]->count - (uint64_t)(q->axes - which)], given = k ? axis->in : axis->out;
        REQUIRE(wanted == given, ACLNN_ERROR_PARAM, "%s: %s says %lld, but the tensor has %lld", operator_name(q->id),
                k ? "inputSize" : "outputSize", (long long)wanted, (long long)given);
    }
    const double scale = u->scales[which];
    axis->align = u->align;
    if (u->align)
        axis->scale = axis->out > 1 ? (double)(axis->in - 1) / (double)(axis->out - 1) : 0;
    else
        axis->scale = scale > 0 ? 1 / scale : axis->out > 0 ? (double)axis->in / (double)axis->out : 0;
    axis->scale = rounded(axis, axis->scale);
    REQUIRE(axis->scale * (double)(axis->out + 1) < INT32_MAX, ACLNN_ERROR_PARAM,
            "%s: scale %g makes %lld elements reach over more than 2^31 of the input", operator_name(q->id), scale,
            (long long)axis->out);
    if (axis->terms == smoothed)
        axis->most = (int64_t)ceil((double)axis->kernel / 2 * (axis->scale >= 1 ? axis->scale : 1)) * 2 + 1;
    return 0;
}

typedef int64_t (*terms_fn)(const struct resample_axis *axis, int64_t out, int32_t *index, double *weight);
struct filter {
    terms_fn terms;
    int64_t most, kernel;
};
static const struct filter filter_nearest = {nearest, 1, 1}, filter_exact = {nearest_exact, 1, 1}, filter_linear = {linear, 2, 2},
                           filter_cubic = {cubic, 4, 4}, filter_smooth_linear = {smoothed, 0, 2},
                           filter_smooth_cubic = {smoothed, 0, 4};

static int plan_upsample(enum operator_id id, const struct filter *filter, int axes, const struct upsample *u,
                         const aclTensor *const tensors[2], uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct resample_request q = {.id = id,
                                 .from = tensors[0],
                                 .to = tensors[1],
                                 .from_name = u->input_size ? "gradOut" : "self",
                                 .to_name = u->input_size ? "gradInput" : "out",
                                 .backward = u->input_size,
                                 .copies = filter->most == 1,
                                 .axes = axes,
                                 .ready = set_axis,
                                 .context = u};
    REQUIRE(u->output_size, ACLNN_ERROR_NULLPTR, "%s: outputSize is null", operator_name(id));
    for (int a = 0; a < axes; ++a)
        q.axis[a] = (struct resample_axis){.terms = filter->terms, .most = filter->most, .kernel = filter->kernel};
    return resample_plan(&q, workspace_size, executor);
}

#define LIST(...) __VA_ARGS__
/* PARAMETERS: between outputSize and out; ...: what they say of struct upsample */
#define FORWARD(NAME, FILTER, AXES, PARAMETERS, ...)                                                                           \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *self, const aclIntArray *outputSize PARAMETERS, aclTensor *out, \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                               \
    {                                                                                                                          \
        const struct upsample u = {.output_size = outputSize, __VA_ARGS__};                                                    \
        return plan_upsample(OPERATOR_##NAME, &FILTER, AXES, &u, (const aclTensor *const[]){self, out}, workspaceSize,         \
                             executor);                                                                                        \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME)
#define BACKWARD(NAME, FILTER, AXES, PARAMETERS, ...)                                                                          \
    aclnnStatus aclnn##NAME##GetWorkspaceSize(const aclTensor *gradOut, const aclIntArray *outputSize,                         \
                                              const aclIntArray *inputSize PARAMETERS, aclTensor *gradInput,                   \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                               \
    {                                                                                                                          \
        const struct upsample u = {.input_size = inputSize, .output_size = outputSize, __VA_ARGS__};                           \
        REQUIRE(inputSize, ACLNN_ERROR_NULLPTR, "aclnn" #NAME ": inputSize is null");                                          \
        return plan_upsample(OPERATOR_##NAME, &FILTER, AXES, &u, (const aclTensor *const[]){gradOut, gradInput},               \
                             workspaceSize, executor);                                                                         \
    }                                                                                                                          \
    ACLNN_PHASE_2(NAME)
#define SCALES_1 , double scales
#define SCALES_2 , double scalesH, double scalesW
#define SCALES_3 , double scalesD, double scalesH, double scalesW
#define ALIGN_1 , bool alignCorners, double scales
#define ALIGN_2 , bool alignCorners, double scalesH, double scalesW
#define ALIGN_3 , bool alignCorners, double scalesD, double scalesH, double scalesW
#define SAYS_1 .scales = {scales}
#define SAYS_2 .scales = {scalesH, scalesW}
#define SAYS_3 .scales = {scalesD, scalesH, scalesW}

FORWARD(UpsampleNearest1d, filter_nearest, 1, , .align = false)
FORWARD(UpsampleNearest2d, filter_nearest, 2, , .align = false)
FORWARD(UpsampleNearest1dV2, filter_nearest, 1, LIST(, float scaleL), .scales = {(double)scaleL})
FORWARD(UpsampleNearest2dV2, filter_nearest, 2, LIST(, float scalesH, float scalesW), .scales = {(double)scalesH, (double)scalesW})
FORWARD(UpsampleNearest3d, filter_nearest, 3, SCALES_3, SAYS_3)
FORWARD(UpsampleNearestExact1d, filter_exact, 1, SCALES_1, SAYS_1)
FORWARD(UpsampleNearestExact2d, filter_exact, 2, SCALES_2, SAYS_2)
FORWARD(UpsampleNearestExact3d, filter_exact, 3, SCALES_3, SAYS_3)
FORWARD(UpsampleLinear1d, filter_linear, 1, ALIGN_1, SAYS_1, .align = alignCorners)
FORWARD(UpsampleBilinear2d, filter_linear, 2, ALIGN_2, SAYS_2, .align = alignCorners)
FORWARD(UpsampleTrilinear3d, filter_linear, 3, ALIGN_3, SAYS_3, .align = alignCorners)
FORWARD(UpsampleBicubic2d, filter_cubic, 2, ALIGN_2, SAYS_2, .align = alignCorners)
FORWARD(UpsampleBilinear2dAA, filter_smooth_linear, 2, ALIGN_2, SAYS_2, .align = alignCorners)
FORWARD(UpsampleBicubic2dAA, filter_smooth_cubic, 2, ALIGN_2, SAYS_2, .align = alignCorners)

BACKWARD(UpsampleNearest1dBackward, filter_nearest, 1, SCALES_1, SAYS_1)
BACKWARD(UpsampleNearest2dBackward, filter_nearest, 2, SCALES_2, SAYS_2)
BACKWARD(UpsampleNearest3dBackward, filter_nearest, 3, SCALES_3, SAYS_3)
BACKWARD(UpsampleNearestExact1dBackward, filter_exact, 1, SCALES_1, SAYS_1)
BACKWARD(UpsampleNearestExact2dBackward, filter_exact, 2, SCALES_2, SAYS_2)
BACKWARD(UpsampleNearestExact3dBackward, filter_exact, 3, SCALES_3, SAYS_3)
BACKWARD(UpsampleLinear1dBackward, filter_linear, 1, ALIGN_1, SAYS_1, .align = alignCorners)
BACKWARD(UpsampleBilinear2dBackward, filter_linear, 2, ALIGN_2, SAYS_2, .align = alignCorners)
BACKWARD(UpsampleBilinear2dBackwardV2, filter_linear, 2, ALIGN_2, SAYS_2, .align = alignCorners)
BACKWARD(UpsampleTrilinear3dBackward, filter_linear, 3, ALIGN_3, SAYS_3, .align = alignCorners)
BACKWARD(UpsampleBicubic2dBackward, filter_cubic, 2, ALIGN_2, SAYS_2, .align = alignCorners)
BACKWARD(UpsampleBilinear2dAABackward, filter_smooth_linear, 2, ALIGN_2, SAYS_2, .align = alignCorners)
BACKWARD(UpsampleBicubic2dAAGrad, filter_smooth_cubic, 2, ALIGN_2, SAYS_2, .align = alignCorners)
