/* Upsampling, pads and averages of volumes, with gradients, against sums written down directly: an element of the result is a sum
 * over all elements of the input, each weighted by the product of what the dimensions give it. */
#include "tensors.h"

static uint64_t seed = 5;

enum { AXES = 3 };

/* Weight of input element i in output element o of one dimension, from the definition. */
struct rule;
typedef double (*weight_fn)(const struct rule *r, int axis, int64_t o, int64_t i);
struct rule {
    weight_fn weight;
    int axes;
    int64_t in[AXES], out[AXES];
    int64_t pads[2 * AXES]; /* last dimension first */
    double scales[AXES];
    bool align;
    int64_t kernel[AXES], stride[AXES], padding[AXES], divisor;
    bool ceil_mode, count_padding;
};

static double ratio(const struct rule *r, int axis)
{
    if (r->align)
        return r->out[axis] > 1 ? (double)(r->in[axis] - 1) / (double)(r->out[axis] - 1) : 0;
    return r->scales[axis] > 0 ? 1 / r->scales[axis] : (double)r->in[axis] / (double)r->out[axis];
}

static double clamp(double x, double low, double high) { return fmax(low, fmin(high, x)); }

static double nearest(const struct rule *r, int axis, int64_t o, int64_t i)
{
    return (double)i == clamp(floor((double)o * ratio(r, axis) + 1e-9), 0, (double)r->in[axis] - 1);
}

static double exact(const struct rule *r, int axis, int64_t o, int64_t i)
{
    return (double)i == clamp(floor(((double)o + .5) * ratio(r, axis) + 1e-9), 0, (double)r->in[axis] - 1);
}

static double position(const struct rule *r, int axis, int64_t o)
{
    return r->align ? (double)o * ratio(r, axis) : ((double)o + .5) * ratio(r, axis) - .5;
}

/* Interpolating between neighbours with the ends repeated is a hat function round the clamped position. */
static double linear(const struct rule *r, int axis, int64_t o, int64_t i)
{
    const double at = clamp(position(r, axis, o), 0, (double)r->in[axis] - 1);
    return fmax(0, 1 - fabs(at - (double)i));
}

static double keys(double x, double a)
{
    x = fabs(x);
    return x < 1 ? (a + 2) * x * x * x - (a + 3) * x * x + 1 : x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

static double cubic(const struct rule *r, int axis, int64_t o, int64_t i)
{
    const double at = position(r, axis, o);
    double sum = 0;
    for (int64_t k = (int64_t)floor(at) - 2; k <= (int64_t)floor(at) + 3; ++k) /* the ends stand for all beyond them */
        if ((double)i == clamp((double)k, 0, (double)r->in[axis] - 1))
            sum += keys(at - (double)k, -.75);
    return sum;
}

static double smoothed(const struct rule *r, int axis, int64_t o, int64_t i, bool is_cubic)
{
    const double scale = ratio(r, axis), wide = fmax(scale, 1), center = ((double)o + .5) * scale;
    double sum = 0, mine = 0;
    for (int64_t k = 0; k < r->in[axis]; ++k) {
        const double x = ((double)k + .5 - center) / wide;
        const double w = is_cubic ? keys(x, -.5) : fmax(0, 1 - fabs(x));
        sum += w;
        mine = k == i ? w : mine;
    }
    return mine / sum;
}
static double smooth_linear(const struct rule *r, int axis, int64_t o, int64_t i) { return smoothed(r, axis, o, i, false); }
static double smooth_cubic(const struct rule *r, int axis, int64_t o, int64_t i) { return smoothed(r, axis, o, i, true); }

static double reflected(const struct rule *r, int axis, int64_t o, int64_t i)
{
    const int64_t at = o - r->pads[2 * (r->axes - 1 - axis)], period = 2 * (r->in[axis] - 1);
    const int64_t folded = period ? ((at % period) + period) % period : 0;
    return i == (folded < r->in[axis] ? folded : period - folded);
}

static double replicated(const struct rule *r, int axis, int64_t o, int64_t i)
{
    return (double)i == clamp((double)(o - r->pads[2 * (r->axes - 1 - axis)]), 0, (double)r->in[axis] - 1);
}

static double window(const struct rule *r, int axis, int64_t o, int64_t i)
{
    int64_t inside = 0, padded = 0;
    bool mine = false;
    for (int64_t k = 0; k < r->kernel[axis]; ++k) {
        const int64_t at = o * r->stride[axis] - r->padding[axis] + k;
        inside += at >= 0 && at < r->in[axis];
        padded += at < r->in[axis] + r->padding[axis];
        mine |= at == i;
    }
    return mine ? 1 / (double)(r->divisor ? (axis == 0 ? r->divisor : 1) : r->count_padding ? padded : inside) : 0;
}

static double adaptive(const struct rule *r, int axis, int64_t o, int64_t i)
{
    const double in = (double)r->in[axis], out = (double)r->out[axis];
    const double first = floor((double)o * in / out), last = ceil((double)(o + 1) * in / out);
    return (double)i >= first && (double)i < last ? 1 / (last - first) : 0;
}

struct tensors {
    struct tensor x, y, dy, dx;
};

/* Runs over all (output, input) pairs of one plane. */
static void check(const struct rule *r, const struct tensors *t, double tolerance, bool gradient)
{
    int64_t in = 1, out = 1;
    for (int a = 0; a < r->axes; ++a) {
        in *= r->in[a];
        out *= r->out[a];
    }
    for (int64_t plane = 0; plane < t->x.count / in; ++plane) {
        double *const dx = calloc((size_t)in, 8);
        for (int64_t o = 0; o < out; ++o) {
            double sum = 0;
            for (int64_t i = 0; i < in; ++i) {
                double weight = 1;
                int64_t ol = o, il = i;
                for (int a = r->axes - 1; a >= 0 && weight != 0; --a) {
                    weight *= r->weight(r, a, ol % r->out[a], il % r->in[a]);
                    ol /= r->out[a];
                    il /= r->in[a];
                }
                sum += weight == 0 ? 0 : weight * tensor_get(&t->x, plane * in + i);
                if (gradient)
                    dx[i] += weight == 0 ? 0 : weight * tensor_get(&t->dy, plane * out + o);
            }
            CHECK_NEAR(tensor_get(&t->y, plane * out + o), sum, tolerance);
        }
        for (int64_t i = 0; gradient && i < in; ++i)
            CHECK_NEAR(tensor_get(&t->dx, plane * in + i), dx[i], 4 * tolerance);
        free(dx);
    }
}

static struct tensors make(const struct rule *r, enum dtype dtype, enum layout layout)
{
    int64_t in[5] = {2, 3}, out[5] = {2, 3};
    for (int a = 0; a < r->axes; ++a) {
        in[2 + a] = r->in[a];
        out[2 + a] = r->out[a];
    }
    const int ndim = 2 + r->axes;
    return (struct tensors){tensor_random(dtype, layout, &seed, ndim, in), tensor_new(dtype, layout, ndim, out),
                            tensor_random(dtype, layout, &seed, ndim, out), tensor_new(dtype, layout, ndim, in)};
}

static void finish(const struct rule *r, struct tensors *t, enum dtype dtype, bool gradient)
{
    check(r, t, 4 * tensor_tolerance(dtype), gradient);
    tensor_free(&t->x);
    tensor_free(&t->y);
    tensor_free(&t->dy);
    tensor_free(&t->dx);
}

#define ARRAY(values, count) aclCreateIntArray(values, (uint64_t)(count))
#define X t.x.handle
#define Y t.y.handle
#define DY t.dy.handle
#define DX t.dx.handle
/* Expressions for what stands between the sizes and the result. */
#define S1 , r.scales[0]
#define S2 , r.scales[0], r.scales[1]
#define S3 , r.scales[0], r.scales[1], r.scales[2]
#define A1 , r.align S1
#define A2 , r.align S2
#define A3 , r.align S3
#define F1 , (float)r.scales[0]
#define F2 , (float)r.scales[0], (float)r.scales[1]
#define UPSAMPLE(NAME, BACKWARD, WEIGHT, AXIS_COUNT, ARGUMENTS, BACKWARD_ARGUMENTS)                                           \
    static void test_##NAME(enum dtype dtype, enum layout layout, struct rule r)                                              \
    {                                                                                                                         \
        r.axes = AXIS_COUNT;                                                                                                  \
        r.weight = WEIGHT;                                                                                                    \
        struct tensors t = make(&r, dtype, layout);                                                                           \
        aclIntArray *const to = ARRAY(r.out, AXIS_COUNT);                                                                     \
        const int64_t full[] = {2, 3, r.in[0], r.in[1], r.in[2]};                                                             \
        aclIntArray *const from = ARRAY(full, 2 + AXIS_COUNT);                                                                \
        RUN(NAME, X, to ARGUMENTS, Y);                                                                                        \
        if (dtype_is_floating(dtype))                                                                                         \
            RUN(BACKWARD, DY, to, from BACKWARD_ARGUMENTS, DX);                                                               \
        finish(&r, &t, dtype, dtype_is_floating(dtype));                                                                      \
        aclDestroyIntArray(to);                                                                                               \
        aclDestroyIntArray(from);                                                                                             \
    }
UPSAMPLE(UpsampleNearest1d, UpsampleNearest1dBackward, nearest, 1, , S1)
UPSAMPLE(UpsampleNearest2d, UpsampleNearest2dBackward, nearest, 2, , S2)
UPSAMPLE(UpsampleNearest1dV2, UpsampleNearest1dBackward, nearest, 1, F1, S1)
UPSAMPLE(UpsampleNearest2dV2, UpsampleNearest2dBackward, nearest, 2, F2, S2)
UPSAMPLE(UpsampleNearest3d, UpsampleNearest3dBackward, nearest, 3, S3, S3)
UPSAMPLE(UpsampleNearestExact1d, UpsampleNearestExact1dBackward, exact, 1, S1, S1)
UPSAMPLE(UpsampleNearestExact2d, UpsampleNearestExact2dBackward, exact, 2, S2, S2)
UPSAMPLE(UpsampleNearestExact3d, UpsampleNearestExact3dBackward, exact, 3, S3, S3)
UPSAMPLE(UpsampleLinear1d, UpsampleLinear1dBackward, linear, 1, A1, A1)
UPSAMPLE(UpsampleBilinear2d, UpsampleBilinear2dBackward, linear, 2, A2, A2)
UPSAMPLE(UpsampleTrilinear3d, UpsampleTrilinear3dBackward, linear, 3, A3, A3)
UPSAMPLE(UpsampleBicubic2d, UpsampleBicubic2dBackward, cubic, 2, A2, A2)
UPSAMPLE(UpsampleBilinear2dAA, UpsampleBilinear2dAABackward, smooth_linear, 2, A2, A2)
UPSAMPLE(UpsampleBicubic2dAA, UpsampleBicubic2dAAGrad, smooth_cubic, 2, A2, A2)

#define PAD(NAME, WEIGHT, AXIS_COUNT)                                                                                         \
    static void test_##NAME(enum dtype dtype, enum layout layout, struct rule r)                                              \
    {                                                                                                                         \
        r.axes = AXIS_COUNT;                                                                                                  \
        r.weight = WEIGHT;                                                                                                    \
        for (int a = 0; a < AXIS_COUNT; ++a)                                                                                  \
            r.out[a] = r.in[a] + r.pads[2 * (AXIS_COUNT - 1 - a)] + r.pads[2 * (AXIS_COUNT - 1 - a) + 1];                     \
        struct tensors t = make(&r, dtype, layout);                                                                           \
        aclIntArray *const pads = ARRAY(r.pads, 2 * AXIS_COUNT);                                                              \
        RUN(NAME, X, pads, Y);                                                                                                \
        if (dtype_is_floating(dtype))                                                                                         \
            RUN(NAME##Backward, DY, X, pads, DX);                                                                             \
        finish(&r, &t, dtype, dtype_is_floating(dtype));                                                                      \
        aclDestroyIntArray(pads);                                                                                             \
    }
PAD(ReflectionPad1d, reflected, 1)
PAD(ReflectionPad2d, reflected, 2)
PAD(ReflectionPad3d, reflected, 3)
PAD(ReplicationPad1d, replicated, 1)
PAD(ReplicationPad2d, replicated, 2)
PAD(ReplicationPad3d, replicated, 3)

typedef void (*test_fn)(enum dtype dtype, enum layout layout, struct rule r);

static void test_upsample(enum dtype dtype, enum layout layout)
{
    static const test_fn copies[] = {test_UpsampleNearest1d,      test_UpsampleNearest2d,      test_UpsampleNearest3d,
                                     test_UpsampleNearestExact1d, test_UpsampleNearestExact2d, test_UpsampleNearestExact3d};
    static const test_fn scaled[] = {test_UpsampleNearest1dV2, test_UpsampleNearest2dV2};
    static const test_fn sums[] = {test_UpsampleLinear1d,  test_UpsampleBilinear2d,   test_UpsampleTrilinear3d,
                                   test_UpsampleBicubic2d, test_UpsampleBilinear2dAA, test_UpsampleBicubic2dAA};
    static const struct rule rules[] = {{.in = {3, 4, 5}, .out = {6, 8, 10}},
                                        {.in = {4, 7, 3}, .out = {6, 3, 7}},
                                        {.in = {5, 6, 2}, .out = {2, 9, 1}, .align = true},
                                        {.in = {4, 4, 4}, .out = {8, 10, 6}, .scales = {2, 2.5, 1.5}}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        struct rule plain = rules[i];
        plain.align = false;
        for (size_t k = 0; k < 2; ++k)
            scaled[k](dtype, layout, plain);
        for (size_t k = 0; k < 6; ++k)
            if (i < 3 || k >= 2) /* the first two take no scales */
                copies[k](dtype, layout, plain);
        for (size_t k = 0; k < 6 && dtype_is_floating(dtype); ++k)
            if (!(k >= 4 && rules[i].align))
                sums[k](dtype, layout, rules[i]);
    }
}

static void test_pads(enum dtype dtype, enum layout layout)
{
    static const test_fn tests[] = {test_ReflectionPad1d,  test_ReflectionPad2d,  test_ReflectionPad3d,
                                    test_ReplicationPad1d, test_ReplicationPad2d, test_ReplicationPad3d};
    static const struct rule rules[] = {{.in = {3, 4, 5}, .pads = {2, 1, 0, 2, 1, 2}},
                                        {.in = {4, 4, 4}, .pads = {3, 3, 1, 0, 0, 0}},
                                        {.in = {5, 3, 6}, .pads = {-1, 2, 1, -1, 0, 1}}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i)
        for (size_t k = 0; k < 6; ++k)
            tests[k](dtype, layout, rules[i]);
}

static int64_t pooled(const struct rule *r, int a)
{
    int64_t out = 0; /* windows that start inside the input or its left padding */
    while (r->ceil_mode ? out * r->stride[a] < r->in[a] + r->padding[a] &&
                              (out == 0 || out * r->stride[a] + r->kernel[a] - r->stride[a] < r->in[a] + 2 * r->padding[a])
                        : out * r->stride[a] + r->kernel[a] <= r->in[a] + 2 * r->padding[a])
        ++out;
    return out;
}

static void test_average(enum dtype dtype, enum layout layout)
{
    static const struct rule rules[] = {
        {.in = {6, 5, 7}, .kernel = {2, 3, 2}, .stride = {2, 1, 3}, .count_padding = true},
        {.in = {5, 6, 4}, .kernel = {3, 3, 2}, .stride = {2, 2, 2}, .padding = {1, 1, 1}, .count_padding = true, .ceil_mode = true},
        {.in = {5, 6, 4}, .kernel = {3, 3, 2}, .stride = {2, 2, 2}, .padding = {1, 1, 1}},
        {.in = {4, 4, 4}, .kernel = {3, 2, 2}, .stride = {1, 2, 1}, .padding = {1, 0, 1}, .divisor = 5}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        struct rule r = rules[i];
        r.axes = 3;
        r.weight = window;
        for (int a = 0; a < 3; ++a)
            r.out[a] = pooled(&r, a);
        struct tensors t = make(&r, dtype, layout);
        aclIntArray *const kernel = ARRAY(r.kernel, 3), *const stride = ARRAY(r.stride, 3), *const padding = ARRAY(r.padding, 3);
        RUN(AvgPool3d, X, kernel, stride, padding, r.ceil_mode, r.count_padding, r.divisor, Y);
        RUN(AvgPool3dBackward, DY, X, kernel, stride, padding, r.ceil_mode, r.count_padding, r.divisor, DX);
        finish(&r, &t, dtype, true);
        aclDestroyIntArray(kernel);
        aclDestroyIntArray(stride);
        aclDestroyIntArray(padding);
    }
}

static void test_adaptive(enum dtype dtype, enum layout layout)
{
    static const struct rule rules[] = {
        {.in = {6, 5, 7}, .out = {2, 3, 4}}, {.in = {4, 4, 4}, .out = {1, 1, 1}}, {.in = {3, 5, 2}, .out = {3, 7, 3}}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        struct rule r = rules[i];
        r.axes = 3;
        r.weight = adaptive;
        struct tensors t = make(&r, dtype, layout);
        aclIntArray *const to = ARRAY(r.out, 3);
        RUN(AdaptiveAvgPool3d, X, to, Y);
        RUN(AdaptiveAvgPool3dBackward, DY, X, DX);
        finish(&r, &t, dtype, true);
        aclDestroyIntArray(to);
    }
}

static void test_refusals(void)
{
    struct tensor x = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 1, 3)), y = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 1, 9));
    struct tensor i = tensor_new(DTYPE_I64, PLAIN, SIZES(1, 1, 3)), o = tensor_new(DTYPE_I64, PLAIN, SIZES(1, 1, 9));
    const int64_t three[] = {3, 3}, nine = 9, one = 1;
    aclIntArray *const pads = ARRAY(three, 2), *const size = ARRAY(&nine, 1), *const wrong = ARRAY(&one, 1);
    REFUSE(ReflectionPad1d, ACLNN_ERROR_PARAM, "mirrored", x.handle, pads, y.handle);
    REFUSE(ReflectionPad1d, ACLNN_ERROR_NULLPTR, "padding", x.handle, NULL, y.handle);
    REFUSE(ReflectionPad1d, ACLNN_ERROR_PARAM, "1 values", x.handle, wrong, y.handle);
    REFUSE(ReplicationPad2d, ACLNN_ERROR_PARAM, "needs 4", x.handle, pads, y.handle);
    REFUSE(UpsampleLinear1d, ACLNN_ERROR_PARAM, "outputSize says 1", x.handle, wrong, false, 0, y.handle);
    REFUSE(UpsampleLinear1d, ACLNN_ERROR_PARAM, "i64", i.handle, size, false, 0, o.handle);
    REFUSE(UpsampleLinear1d, ACLNN_ERROR_NULLPTR, "self", NULL, size, false, 0, o.handle);
    aclDestroyIntArray(pads);
    aclDestroyIntArray(size);
    aclDestroyIntArray(wrong);
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&i);
    tensor_free(&o);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    for (int t = 0; t < 4; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout) {
            test_upsample(types[t], (enum layout)layout);
            test_pads(types[t], (enum layout)layout);
            test_average(types[t], (enum layout)layout);
            test_adaptive(types[t], (enum layout)layout);
        }
    test_upsample(DTYPE_U8, PLAIN);
    test_pads(DTYPE_I64, REVERSED);
    test_pads(DTYPE_I8, GAPS);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_refusals();
    return check_result();
}
