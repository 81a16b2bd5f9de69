/* Convolution and ConvolutionBackward: 1-D, 2-D and 3-D, with groups, dilation, stride, padding, transposed or not.
 *
 * Two passes exist (convolution.h). "Forward geometry" is the correlation of the larger side (input; output when transposed)
 * with the weights as they are; "back geometry" brings the smaller side to the larger one with rotated weights:
 *     convolution:  out = forward(input)       dinput = back(dout)       dweight = gradient(input, dout)
 *     transposed:   out = back(input)          dinput = forward(dout)    dweight = gradient(dout, input)
 * Integers have no gradients. */
#include "aclnn/nn/convolution.h"

#include <string.h>

#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"
#include "runtime/device.h"

#define MOST_REACH 0x1p61

struct shape {
    int64_t images, groups;
    int64_t large_channels, small_channels; /* of one group */
    int64_t large[3], small[3], taps[3], stride[3], before[3], dilation[3];
    bool transposed;
    enum accumulate type;
};

struct convolution {
    struct staging staging;
    int64_t rotated, work, bias_sums; /* workspace offsets */
    void *shape_memory;               /* struct shape, in plan->extra */
};

static struct shape *shape_of(struct plan *plan) { return PLAN_IMMEDIATE(plan, struct convolution)->shape_memory; }

/* --- geometry ------------------------------------------------------------------------------------------------------- */

static struct conv_pass forward_pass(const struct shape *s)
{
    struct conv_pass p = {.images = s->images, .groups = s->groups, .type = s->type};
    struct conv_geometry *const g = &p.geometry;
    g->channels = s->large_channels;
    g->rows = s->small_channels;
    for (int d = 0; d < 3; ++d) {
        g->in[d] = s->large[d];
        g->insert[d] = 1;
        g->pad[d] = s->before[d];
        g->taps[d] = s->taps[d];
        g->dilation[d] = s->dilation[d];
        g->stride[d] = s->stride[d];
        g->out[d] = s->small[d];
        g->padded[d] = (s->small[d] - 1) * s->stride[d] + (s->taps[d] - 1) * s->dilation[d] + 1;
    }
    return p;
}

static struct conv_pass back_pass(const struct shape *s)
{
    struct conv_pass p = {.images = s->images, .groups = s->groups, .type = s->type};
    struct conv_geometry *const g = &p.geometry;
    g->channels = s->small_channels;
    g->rows = s->large_channels;
    for (int d = 0; d < 3; ++d) {
        const int64_t reach = (s->taps[d] - 1) * s->dilation[d];
        g->in[d] = s->small[d];
        g->insert[d] = s->stride[d];
        g->pad[d] = reach - s->before[d];
        g->padded[d] = s->large[d] + reach;
        g->taps[d] = s->taps[d];
        g->dilation[d] = s->dilation[d];
        g->stride[d] = 1;
        g->out[d] = s->large[d];
    }
    return p;
}

static int64_t weight_elements(const struct shape *s)
{
    return s->groups * s->small_channels * s->large_channels * conv_volume(s->taps);
}

struct arguments {
    const aclIntArray *stride, *padding, *dilation, *output_padding;
    int64_t groups;
    bool transposed, integers;
};

/* Value of spatial dimension d of n, in an array of 1 or n values; NULL gives `otherwise`. */
static int64_t spatial(const aclIntArray *array, int d, int64_t otherwise)
{
    if (!array || array->count == 0)
        return otherwise;
    return array->values[array->count == 1 ? 0 : d];
}

static int check_arguments(const char *name, const struct arguments *a, int n)
{
    const struct {
        const aclIntArray *array;
        const char *parameter;
        int64_t least;
    } lists[] = {{a->stride, "stride", 1},
                 {a->dilation, "dilation", 1},
                 {a->padding, "padding", 0},
                 {a->output_padding, "outputPadding", 0}};
    for (int i = 0; i < 4; ++i) {
        const aclIntArray *const array = lists[i].array;
        if (!array)
            continue;
        const bool both_sides = array == a->padding && (int)array->count == 2 * n;
        REQUIRE(array->count <= 1 || (int)array->count == n || both_sides, ACLNN_ERROR_PARAM,
                "%s: %s has %llu values; 1 or %d are allowed", name, lists[i].parameter, (unsigned long long)array->count, n);
        for (uint64_t k = 0; k < array->count; ++k)
            REQUIRE(array->values[k] >= lists[i].least && array->values[k] <= INT32_MAX, ACLNN_ERROR_PARAM,
                    "%s: %s[%llu] is %lld; %lld to %d are allowed", name, lists[i].parameter, (unsigned long long)k,
                    (long long)array->values[k], (long long)lists[i].least, INT32_MAX);
    }
    REQUIRE(a->groups >= 1, ACLNN_ERROR_PARAM, "%s: groups is %lld; at least 1 is allowed", name, (long long)a->groups);
    return 0;
}

/* Spatial sizes; checks that the smaller side is what the larger side gives. */
static int set_sizes(const char *name, const struct view *large, const struct view *small, const struct view *weight,
                     const struct arguments *a, struct shape *s)
{
    const int n = large->ndim - 2;
    for (int d = 0; d < 3; ++d) {
        const int from = d - (3 - n); /* leading dimensions of 1-D and 2-D are trivial */
        s->large[d] = s->small[d] = s->taps[d] = s->stride[d] = s->dilation[d] = 1;
        s->before[d] = 0;
        if (from < 0)
            continue;
        const bool both_sides = a->padding && n > 0 && (int)a->padding->count == 2 * n;
        s->large[d] = large->sizes[from + 2];
        s->small[d] = small->sizes[from + 2];
        s->taps[d] = weight->sizes[from + 2];
        s->stride[d] = spatial(a->stride, from, 1);
        s->dilation[d] = spatial(a->dilation, from, 1);
        s->before[d] = both_sides ? a->padding->values[2 * from] : spatial(a->padding, from, 0);
        const int64_t after = both_sides ? a->padding->values[2 * from + 1] : s->before[d];
        const int64_t extra = a->transposed ? spatial(a->output_padding, from, 0) : 0;
        REQUIRE(!a->transposed || extra < most(s->stride[d], s->dilation[d]) || extra == 0, ACLNN_ERROR_PARAM,
                "%s: outputPadding is %lld; it must be less than the stride %lld or the dilation %lld", name, (long long)extra,
                (long long)s->stride[d], (long long)s->dilation[d]);
        REQUIRE((double)s->taps[d] * (double)s->dilation[d] < MOST_REACH, ACLNN_ERROR_PARAM,
                "%s: weight %s with dilation %lld is too large", name, view_text(weight), (long long)s->dilation[d]);
        const int64_t room = s->large[d] - extra + s->before[d] + after - (s->taps[d] - 1) * s->dilation[d] - 1;
        REQUIRE(s->taps[d] > 0 && room >= 0, ACLNN_ERROR_PARAM,
                "%s: the kernel (weight %s) doesn't fit into %s with the padding given", name, view_text(weight), view_text(large));
        REQUIRE(room / s->stride[d] + 1 == s->small[d] && (!a->transposed || room % s->stride[d] == 0), ACLNN_ERROR_PARAM,
                "%s: spatial size %d of %s and %s don't fit kernel size %lld, stride %lld, padding %lld, dilation %lld", name, from,
                view_text(large), view_text(small), (long long)s->taps[d], (long long)s->stride[d], (long long)s->before[d],
                (long long)s->dilation[d]);
    }
    return 0;
}

/* Floating operands may differ; integers are all of one type. */
static bool type_fits(const struct view *v, const struct view *input, bool integers)
{
    return integers ? v->dtype == input->dtype : dtype_is_floating((enum dtype)v->dtype);
}

static int check_types(const char *name, const struct view *const *all, int count, bool integers)
{
    for (int i = 0; i < count; ++i)
        REQUIRE(
            type_fits(all[i], all[0], integers), ACLNN_ERROR_PARAM,
            "%s: an operand is %s; allowed are f64, f32, f16, bf16, and one integer type for all operands of a convolution forward",
            name, view_text(all[i]));
    return 0;
}

/* input and output (or their gradients), weight -> shape. */
static int set_shape(const char *name, const struct view *input, const struct view *output, const struct view *weight,
                     const struct arguments *a, struct shape *s)
{
    const struct view *const all[] = {input, output, weight};
    TRY(check_types(name, all, 3, a->integers));
    REQUIRE(input->ndim >= 3 && input->ndim <= 5 && output->ndim == input->ndim && weight->ndim == input->ndim, ACLNN_ERROR_PARAM,
            "%s: input %s, weight %s and output %s must all have 3, 4 or 5 dimensions", name, view_text(input), view_text(weight),
            view_text(output));
    TRY(check_arguments(name, a, input->ndim - 2));
    const struct view *const large = a->transposed ? output : input, *const small = a->transposed ? input : output;
    REQUIRE(input->sizes[0] == output->sizes[0], ACLNN_ERROR_PARAM, "%s: input %s and output %s differ in their batch", name,
            view_text(input), view_text(output));
    REQUIRE(small->sizes[1] == weight->sizes[0] && weight->sizes[0] % a->groups == 0 &&
                large->sizes[1] == weight->sizes[1] * a->groups,
            ACLNN_ERROR_PARAM, "%s: channels of input %s, weight %s and output %s don't fit %lld groups", name, view_text(input),
            view_text(weight), view_text(output), (long long)a->groups);
    s->images = input->sizes[0];
    s->groups = a->groups;
    s->large_channels = weight->sizes[1];
    s->small_channels = weight->sizes[0] / a->groups;
    s->transposed = a->transposed;
    s->type = accumulate_of((enum dtype)input->dtype);
    if (weight->dtype == DTYPE_F64 || output->dtype == DTYPE_F64)
        s->type = ACCUMULATE_F64;
    return set_sizes(name, large, small, weight, a, s);
}

/* --- running -------------------------------------------------------------------------------------------------------- */

/* From the smaller side to the larger one: rotates the weights first. */
static int run_back(struct plan *plan, const void *small, const void *weight, const void *bias, void *large)
{
    const struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    const struct shape *const s = c->shape_memory;
    const struct conv_pass pass = back_pass(s);
    void *const rotated = stage_room(plan, c->rotated);
    conv_rotate(s->type, weight, s->groups, s->small_channels, s->large_channels, conv_volume(s->taps), rotated);
    const struct conv_operands o = {small, rotated, bias, large};
    return conv_correlate(&pass, &o, stage_room(plan, c->work));
}

static int run_forward(struct plan *plan, const void *large, const void *weight, const void *bias, void *small)
{
    const struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    const struct conv_pass pass = forward_pass(c->shape_memory);
    const struct conv_operands o = {large, weight, bias, small};
    return conv_correlate(&pass, &o, stage_room(plan, c->work));
}

enum { INPUT, WEIGHT, BIAS, OUTPUT };

static int run_convolution(struct plan *plan)
{
    const struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    const struct shape *const s = c->shape_memory;
    if (plan->operands[OUTPUT].count == 0)
        return 0;
    const void *const input = stage_read(plan, &c->staging, INPUT), *const weight = stage_read(plan, &c->staging, WEIGHT);
    const void *const bias = stage_read(plan, &c->staging, BIAS);
    void *const output = stage_target(plan, &c->staging, OUTPUT);
    TRY(s->transposed ? run_back(plan, input, weight, bias, output) : run_forward(plan, input, weight, bias, output));
    stage_write_back(plan, &c->staging, OUTPUT);
    return 0;
}

enum { GRAD_OUTPUT, B_INPUT, B_WEIGHT, GRAD_INPUT, GRAD_WEIGHT, GRAD_BIAS };

struct bias_job {
    const struct shape *s;
    const char *grad_output;
    double *sums;
    int64_t channels, pixels;
};

static void bias_planes(void *argument, int64_t begin, int64_t end)
{
    const struct bias_job *const j = argument;
    const int64_t bytes = accumulate_bytes(j->s->type);
    for (int64_t plane = begin; plane < end; ++plane)
        j->sums[plane] = kernels->norm->real[j->s->type].sum(j->grad_output + plane * j->pixels * bytes, j->pixels);
}

/* One sum a plane, then over the images in order. */
static void run_bias(struct plan *plan, const void *grad_output)
{
    const struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    const struct shape *const s = c->shape_memory;
    const struct view *const view = &plan->operands[GRAD_OUTPUT];
    struct bias_job j = {.s = s, .grad_output = grad_output, .sums = stage_room(plan, c->bias_sums), .channels = view->sizes[1]};
    j.pixels = conv_volume(s->transposed ? s->large : s->small);
    parallel_for(s->images * j.channels, j.pixels, bias_planes, &j);
    void *const out = stage_target(plan, &c->staging, GRAD_BIAS);
    for (int64_t i = 0; i < j.channels; ++i) {
        double sum = 0;
        for (int64_t n = 0; n < s->images; ++n)
            sum += j.sums[n * j.channels + i];
        if (s->type == ACCUMULATE_F64)
            ((double *)out)[i] = sum;
        else
            ((float *)out)[i] = (float)sum;
    }
}

static int run_convolution_backward(struct plan *plan)
{
    const struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    const struct shape *const s = c->shape_memory;
    const struct view *const o = plan->operands;
    const void *const grad = stage_read(plan, &c->staging, GRAD_OUTPUT);
    if (o[GRAD_INPUT].data && o[GRAD_INPUT].count > 0) {
        const void *const weight = stage_read(plan, &c->staging, B_WEIGHT);
        void *const out = stage_target(plan, &c->staging, GRAD_INPUT);
        TRY(s->transposed ? run_forward(plan, grad, weight, NULL, out) : run_back(plan, grad, weight, NULL, out));
        stage_write_back(plan, &c->staging, GRAD_INPUT);
    }
    if (o[GRAD_WEIGHT].data && o[GRAD_WEIGHT].count > 0) {
        const void *const input = stage_read(plan, &c->staging, B_INPUT);
        const struct conv_pass pass = forward_pass(s);
        void *const out = stage_target(plan, &c->staging, GRAD_WEIGHT);
        TRY(conv_weight_gradient(&pass, s->transposed ? grad : input, s->transposed ? input : grad, out,
                                 stage_room(plan, c->work)));
        stage_write_back(plan, &c->staging, GRAD_WEIGHT);
    }
    if (o[GRAD_BIAS].data && o[GRAD_BIAS].count > 0) {
        run_bias(plan, grad);
        stage_write_back(plan, &c->staging, GRAD_BIAS);
    }
    return 0;
}

/* --- planning ------------------------------------------------------------------------------------------------------- */

static int begin_shape(struct plan *plan)
{
    struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    stage_begin(&c->staging);
    return plan_extra(plan, sizeof(struct shape), &c->shape_memory);
}

/* A pass works on images with their padding (those of its phases, where the source is spread), one a thread: in double, as huge
 * paddings overflow. Integers are convolved without such a copy. */
static int check_padded(const char *name, const struct conv_pass *pass)
{
    const struct conv_geometry *const g = &pass->geometry;
    double bytes = (double)g->channels * (double)accumulate_bytes(pass->type);
    for (int d = 0; d < 3; ++d)
        bytes *= (double)divide_up(g->padded[d], g->insert[d]);
    const double most_bytes = (double)device_memory_capacity();
    REQUIRE(pass->type == ACCUMULATE_I64 || bytes <= most_bytes, ERROR_RT_MEMORY_ALLOCATION,
            "%s: an image with its padding takes %.1f GiB; the device has %.1f GiB", name, bytes / (1 << 30),
            most_bytes / (1 << 30));
    return 0;
}

/* Room for a correlation forwards or backwards. */
static int correlate_work(struct plan *plan, bool back, uint64_t *work)
{
    struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    const struct shape *const s = c->shape_memory;
    const struct conv_pass pass = back ? back_pass(s) : forward_pass(s);
    TRY(check_padded(plan_name(plan), &pass));
    if (back)
        c->rotated = stage_reserve(&c->staging, (uint64_t)(weight_elements(s) * accumulate_bytes(s->type)));
    *work = conv_correlate_bytes(&pass);
    return 0;
}

aclnnStatus aclnnConvolutionGetWorkspaceSize(const aclTensor *input, const aclTensor *weight, const aclTensor *bias,
                                             const aclIntArray *stride, const aclIntArray *padding, const aclIntArray *dilation,
                                             bool transposed, const aclIntArray *outputPadding, int64_t groups, aclTensor *output,
                                             int8_t cubeMathType, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct arguments a = {stride, padding, dilation, outputPadding, groups, transposed, false};
    struct plan *plan;
    struct view *in, *w, *b, *out;
    TRY(plan_begin(OPERATOR_Convolution, run_convolution, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_input(plan, weight, "weight", &w));
    PLAN_TRY(plan, plan_optional(plan, bias, ROLE_INPUT, "bias", &b));
    PLAN_TRY(plan, plan_output(plan, output, "output", &out));
    PLAN_TRY(plan, begin_shape(plan));
    struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    struct shape *const s = shape_of(plan);
    a.integers = dtype_kind((enum dtype)in->dtype) == KIND_INTEGER;
    PLAN_TRY(plan, set_shape(plan_name(plan), in, out, w, &a, s));
    PLAN_REQUIRE(plan, b->dtype == DTYPE_NONE || (b->count == out->sizes[1] && type_fits(b, in, a.integers)), ACLNN_ERROR_PARAM,
                 "aclnnConvolution: bias is %s; it must hold %lld %s values", view_text(b), (long long)out->sizes[1],
                 a.integers ? dtype_name((enum dtype)in->dtype) : "floating");
    for (int i = INPUT; i <= OUTPUT; ++i)
        stage_operand(plan, &c->staging, &plan->operands[i], s->type);
    uint64_t work;
    PLAN_TRY(plan, correlate_work(plan, transposed, &work));
    c->work = stage_reserve(&c->staging, work);
    return plan_finish(plan, c->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(Convolution)

static int check_gradients(struct plan *plan, const aclBoolArray *mask, aclTensor *const *gradients)
{
    static const char *const names[] = {"gradInput", "gradWeight", "gradBias"};
    const struct view *const o = plan->operands;
    for (int i = 0; i < 3; ++i) {
        struct view *v;
        REQUIRE(!mask->values[i] || gradients[i], ACLNN_ERROR_NULLPTR,
                "aclnnConvolutionBackward: %s is null, but outputMask asks for it", names[i]);
        TRY(plan_optional(plan, mask->values[i] ? gradients[i] : NULL, ROLE_OUTPUT, names[i], &v));
        if (v->dtype == DTYPE_NONE)
            continue;
        const bool fits = i == 2 ? v->count == o[GRAD_OUTPUT].sizes[1] : view_same_sizes(v, &o[i == 0 ? B_INPUT : B_WEIGHT]);
        REQUIRE(fits && dtype_is_floating((enum dtype)v->dtype), ACLNN_ERROR_PARAM,
                "aclnnConvolutionBackward: %s is %s, which doesn't fit gradOutput %s, input %s and weight %s", names[i],
                view_text(v), view_text(&o[GRAD_OUTPUT]), view_text(&o[B_INPUT]), view_text(&o[B_WEIGHT]));
    }
    return 0;
}

aclnnStatus aclnnConvolutionBackwardGetWorkspaceSize(const aclTensor *gradOutput, const aclTensor *input, const aclTensor *weight,
                                                     const aclIntArray *biasSizes, const aclIntArray *stride,
                                                     const aclIntArray *padding, const aclIntArray *dilation, bool transposed,
                                                     const aclIntArray *outputPadding, int groups, const aclBoolArray *outputMask,
                                                     int8_t cubeMathType, aclTensor *gradInput, aclTensor *gradWeight,
                                                     aclTensor *gradBias, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct arguments a = {stride, padding, dilation, outputPadding, groups, transposed, false};
    aclTensor *const gradients[] = {gradInput, gradWeight, gradBias};
    struct plan *plan;
    struct view *dy, *in, *w;
    TRY(plan_begin(OPERATOR_ConvolutionBackward, run_convolution_backward, workspaceSize, executor, &plan));
    PLAN_REQUIRE(plan, outputMask && outputMask->count == 3, ACLNN_ERROR_PARAM,
                 "aclnnConvolutionBackward: outputMask must hold 3 values (gradInput, gradWeight, gradBias)");
    PLAN_TRY(plan, plan_input(plan, gradOutput, "gradOutput", &dy));
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_input(plan, weight, "weight", &w));
    PLAN_TRY(plan, begin_shape(plan));
    struct convolution *const c = PLAN_IMMEDIATE(plan, struct convolution);
    struct shape *const s = shape_of(plan);
    PLAN_TRY(plan, set_shape(plan_name(plan), in, dy, w, &a, s));
    PLAN_TRY(plan, check_gradients(plan, outputMask, gradients));
    for (int i = GRAD_OUTPUT; i <= GRAD_BIAS; ++i)
        stage_operand(plan, &c->staging, &plan->operands[i], s->type);
    uint64_t work = 0;
    if (outputMask->values[0])
        PLAN_TRY(plan, correlate_work(plan, !transposed, &work));
    const struct conv_pass pass = forward_pass(s);
    if (outputMask->values[1])
        PLAN_TRY(plan, check_padded(plan_name(plan), &pass));
    const uint64_t gradient_work = outputMask->values[1] ? conv_weight_gradient_bytes(&pass) : 0;
    work = work > gradient_work ? work : gradient_work;
    c->work = stage_reserve(&c->staging, work);
    c->bias_sums = stage_reserve(&c->staging, outputMask->values[2] ? (uint64_t)(s->images * dy->sizes[1]) * sizeof(double) : 0);
    return plan_finish(plan, c->staging.bytes, workspaceSize, executor);
}
ACLNN_PHASE_2(ConvolutionBackward)
