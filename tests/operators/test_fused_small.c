/* ScaledMaskedSoftmax and its gradient; GroupNorm followed by a swish; casts between plain formats. */
#include "tensors.h"

static uint64_t seed = 8;

static void test_softmax(enum dtype dtype, enum layout layout, const int64_t *sizes, bool batch_mask, bool triangle)
{
    const int64_t mask_sizes[] = {batch_mask ? sizes[0] : 1, 1, sizes[2], sizes[3]}, width = sizes[3];
    struct tensor x = tensor_random(dtype, layout, &seed, 4, sizes), y = tensor_new(dtype, layout, 4, sizes);
    struct tensor dy = tensor_random(dtype, layout, &seed, 4, sizes), dx = tensor_new(dtype, layout, 4, sizes);
    struct tensor mask = tensor_new(DTYPE_B8, layout, 4, mask_sizes);
    for (int64_t i = 0; i < mask.count; ++i)
        tensor_set(&mask, i, check_random(&seed) % 3 == 0 && i % width != 0);
    RUN(ScaledMaskedSoftmax, x.handle, mask.handle, .7, triangle, y.handle);
    RUN(ScaledMaskedSoftmaxBackward, dy.handle, y.handle, mask.handle, .7, triangle, dx.handle);
    double *const p = calloc((size_t)width, 8);
    for (int64_t r = 0; r < x.count / width; ++r) {
        const int64_t batch = r / (sizes[1] * sizes[2]), row = r % sizes[2];
        double sum = 0, dot = 0;
#define MASKED(j) (triangle ? (j) > row : tensor_get(&mask, ((batch_mask ? batch : 0) * sizes[2] + row) * width + (j)) != 0)
        for (int64_t j = 0; j < width; ++j)
            sum += p[j] = MASKED(j) ? 0 : exp(.7 * tensor_get(&x, r * width + j));
        for (int64_t j = 0; j < width; ++j) {
            CHECK_NEAR(tensor_get(&y, r * width + j), p[j] / sum, 2 * tensor_tolerance(dtype));
            dot += tensor_get(&y, r * width + j) * tensor_get(&dy, r * width + j);
        }
        for (int64_t j = 0; j < width; ++j)
            CHECK_NEAR(tensor_get(&dx, r * width + j),
                       MASKED(j) ? 0 : .7 * tensor_get(&y, r * width + j) * (tensor_get(&dy, r * width + j) - dot),
                       2 * tensor_tolerance(dtype));
    }
    free(p);
    struct tensor *const all[] = {&x, &y, &dy, &dx, &mask};
    for (int i = 0; i < 5; ++i)
        tensor_free(all[i]);
}

static double swish(double y, double scale) { return y / (1 + exp(-scale * y)); }

/* The forward values, and the gradient against differences of the reference. */
static double group_value(const struct tensor *x, const struct tensor *gamma, const struct tensor *beta, int64_t groups,
                          double scale, const struct tensor *dy, int64_t moved, double step, struct tensor *compared)
{
    const int64_t channels = x->sizes[1], plane = x->count / (x->sizes[0] * channels), count = channels / groups * plane;
    double objective = 0;
    for (int64_t item = 0; item < x->sizes[0] * groups; ++item) {
        double mean = 0, var = 0;
#define X(i) (tensor_get(x, item * count + (i)) + (item * count + (i) == moved ? step : 0))
        for (int64_t i = 0; i < count; ++i)
            mean += X(i) / (double)count;
        for (int64_t i = 0; i < count; ++i)
            var += pow(X(i) - mean, 2) / (double)count;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t channel = item % groups * (channels / groups) + i / plane;
            const double y =
                swish((X(i) - mean) / sqrt(var + 1e-5) * tensor_get(gamma, channel) + tensor_get(beta, channel), scale);
            if (compared)
                CHECK_NEAR(tensor_get(compared, item * count + i), y, 4 * tensor_tolerance(x->dtype));
            objective += dy ? y * tensor_get(dy, item * count + i) : 0;
        }
    }
    return objective;
}

static void test_group_swish(enum dtype dtype, enum layout layout, const int64_t *sizes, int64_t groups)
{
    const int64_t channels = sizes[1];
    const enum dtype wide = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    struct tensor x = tensor_random(dtype, layout, &seed, 4, sizes), y = tensor_new(dtype, layout, 4, sizes);
    struct tensor dy = tensor_random(dtype, layout, &seed, 4, sizes), dx = tensor_new(dtype, layout, 4, sizes);
    struct tensor gamma = tensor_random(dtype, PLAIN, &seed, SIZES(channels)),
                  beta = tensor_random(dtype, PLAIN, &seed, SIZES(channels));
    struct tensor dgamma = tensor_new(dtype, PLAIN, SIZES(channels)), dbeta = tensor_new(dtype, PLAIN, SIZES(channels));
    struct tensor mean = tensor_new(wide, PLAIN, SIZES(sizes[0], groups)), rstd = tensor_new(wide, PLAIN, SIZES(sizes[0], groups));
    char format[] = "NCHW";
    RUN(GroupNormSilu, x.handle, gamma.handle, beta.handle, groups, 1e-5, y.handle, mean.handle, rstd.handle);
    group_value(&x, &gamma, &beta, groups, 1, NULL, -1, 0, &y);
    RUN(GroupNormSwish, x.handle, gamma.handle, beta.handle, groups, format, 1e-5, true, 1.5, y.handle, mean.handle, rstd.handle);
    group_value(&x, &gamma, &beta, groups, 1.5, NULL, -1, 0, &y);
    RUN(GroupNormSwishGrad, dy.handle, mean.handle, rstd.handle, x.handle, gamma.handle, beta.handle, groups, format, 1.5, true,
        true, dx.handle, dgamma.handle, dbeta.handle);
    for (int64_t i = 0; i < x.count; i += 7) {
        const double high = group_value(&x, &gamma, &beta, groups, 1.5, &dy, i, 1e-5, NULL),
                     low = group_value(&x, &gamma, &beta, groups, 1.5, &dy, i, -1e-5, NULL);
        CHECK_NEAR(tensor_get(&dx, i), (high - low) / 2e-5, 1e-4 + 8 * tensor_tolerance(dtype));
    }
    double weighted = 0, plain = 0; /* channel 0 */
    const int64_t plane = x.count / (sizes[0] * channels);
    for (int64_t n = 0; n < sizes[0]; ++n)
        for (int64_t i = 0; i < plane; ++i) {
            const int64_t at = n * channels * plane + i;
            const double h = (tensor_get(&x, at) - tensor_get(&mean, n * groups)) * tensor_get(&rstd, n * groups);
            const double v = h * tensor_get(&gamma, 0) + tensor_get(&beta, 0), gate = 1 / (1 + exp(-1.5 * v));
            const double slope = tensor_get(&dy, at) * gate * (1 + 1.5 * v * (1 - gate));
            weighted += slope * h;
            plain += slope;
        }
    CHECK_NEAR(tensor_get(&dgamma, 0), weighted, 16 * tensor_tolerance(dtype));
    CHECK_NEAR(tensor_get(&dbeta, 0), plain, 16 * tensor_tolerance(dtype));
    struct tensor *const all[] = {&x, &y, &dy, &dx, &gamma, &beta, &dgamma, &dbeta, &mean, &rstd};
    for (int i = 0; i < 10; ++i)
        tensor_free(all[i]);
}

static aclTensor *with_format(const struct tensor *t, aclFormat format)
{
    return aclCreateTensor(t->sizes, (uint64_t)t->ndim, (aclDataType)dtype_infos[t->dtype].acl, t->strides, t->offset, format,
                           &t->room, 1, t->memory);
}

static void test_format_cast(enum dtype dtype, enum layout layout)
{
    int64_t *shape;
    uint64_t count;
    int format;
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(2, 3, 4, 5)), y = tensor_new(dtype, layout, SIZES(2, 4, 5, 3));
    struct tensor same = tensor_new(dtype, layout, SIZES(2, 3, 4, 5));
    aclTensor *const from = with_format(&x, ACL_FORMAT_NCHW), *const to = with_format(&y, ACL_FORMAT_NHWC),
                     *const nd = with_format(&same, ACL_FORMAT_ND);
    aclTensor *const blocked = with_format(&same, (aclFormat)29);
    CHECK_OK(aclnnNpuFormatCastCalculateSizeAndFormat(from, ACL_FORMAT_NHWC, 0, &shape, &count, &format));
    CHECK_INT(count, 4);
    CHECK_INT(format, ACL_FORMAT_NHWC);
    for (int d = 0; d < 4; ++d)
        CHECK_INT(shape[d], y.sizes[d]);
    free(shape);
    RUN(NpuFormatCast, from, to);
    RUN(NpuFormatCast, from, nd);
    for (int64_t i = 0; i < x.count; ++i) {
        CHECK_NEAR(tensor_get(&same, i), tensor_get(&x, i), 0);
        CHECK_NEAR(tensor_get(&y, (i / 60 * 20 + i % 20) * 3 + i / 20 % 3), tensor_get(&x, i), 0);
    }
    CHECK_FAILS(aclnnNpuFormatCastCalculateSizeAndFormat(from, 29, 0, &shape, &count, &format), ACLNN_ERROR_PARAM, "format 29");
    REFUSE(NpuFormatCast, ACLNN_ERROR_PARAM, "format 29", from, blocked);
    REFUSE(NpuFormatCast, ACLNN_ERROR_PARAM, "dstTensor", to, nd);
    aclDestroyTensor(from);
    aclDestroyTensor(to);
    aclDestroyTensor(nd);
    aclDestroyTensor(blocked);
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&same);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    static const int64_t scores[][4] = {{2, 3, 5, 7}, {1, 2, 32, 64}, {3, 1, 4, 130}},
                         planes[][4] = {{2, 4, 3, 5}, {1, 6, 7, 2}, {3, 2, 1, 4}};
    for (int t = 0; t < 4; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout)
            for (int i = 0; i < 3; ++i) {
                test_softmax(types[t], (enum layout)layout, scores[i], i != 1, layout == 1 && i == 1);
                test_group_swish(types[t], (enum layout)layout, planes[i], 2);
            }
    for (int layout = 0; layout < LAYOUTS; ++layout) {
        test_format_cast(DTYPE_F32, (enum layout)layout);
        test_format_cast(DTYPE_BF16, (enum layout)layout);
        test_format_cast(DTYPE_I64, (enum layout)layout);
        test_format_cast(DTYPE_I8, (enum layout)layout);
    }
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    return check_result();
}
