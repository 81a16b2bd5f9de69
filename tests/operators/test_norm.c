/* BatchNorm and LayerNorm with their gradients against double formulas. */
#include "operators/tensors.h"

static uint64_t seed = 7;

struct norm_case {
    int ndim;
    int64_t sizes[5];
};

static void test_batch_norm(enum dtype dtype, enum dtype parameter, enum layout layout, const struct norm_case *c, bool training)
{
    const int64_t n = c->sizes[0], channels = c->sizes[1];
    struct tensor x = tensor_random(dtype, layout, &seed, c->ndim, c->sizes), y = tensor_new(dtype, layout, c->ndim, c->sizes);
    struct tensor dy = tensor_random(dtype, layout, &seed, c->ndim, c->sizes), dx = tensor_new(dtype, layout, c->ndim, c->sizes);
    struct tensor w = tensor_random(parameter, PLAIN, &seed, SIZES(channels)),
                  b = tensor_random(parameter, PLAIN, &seed, SIZES(channels));
    struct tensor rm = tensor_random(parameter, PLAIN, &seed, SIZES(channels)),
                  rv = tensor_random(parameter, GAPS, &seed, SIZES(channels));
    struct tensor sm = tensor_new(parameter, PLAIN, SIZES(channels)), si = tensor_new(parameter, PLAIN, SIZES(channels));
    struct tensor dw = tensor_new(parameter, PLAIN, SIZES(channels)), db = tensor_new(parameter, GAPS, SIZES(channels));
    double *const old_mean = calloc((size_t)channels, 8), *const old_var = calloc((size_t)channels, 8);
    for (int64_t i = 0; i < channels; ++i) {
        tensor_set(&rv, i, 1 + .5 * tensor_get(&rv, i));
        old_mean[i] = tensor_get(&rm, i);
        old_var[i] = tensor_get(&rv, i);
    }
    const bool wanted[] = {true, true, true};
    aclBoolArray *const mask = aclCreateBoolArray(wanted, 3);
    RUN(BatchNorm, x.handle, w.handle, b.handle, rm.handle, rv.handle, training, .1, 1e-5, y.handle, sm.handle, si.handle);
    RUN(BatchNormBackward, dy.handle, x.handle, w.handle, rm.handle, rv.handle, sm.handle, si.handle, training, 1e-5, mask,
        dx.handle, dw.handle, db.handle);
    const int64_t plane = x.count / (n * channels), count = n * plane;
    const double tolerance = 4 * tensor_tolerance(dtype);
#define AT(image, p) ((image * channels + ch) * plane + p)
#define EACH(body)                                  \
    for (int64_t i = 0; i < n; ++i)                 \
        for (int64_t p = 0; p < plane; ++p) {       \
            const int64_t at = AT(i, p);            \
            body                                    \
        }
    for (int64_t ch = 0; ch < channels; ++ch) {
        double mean = 0, var = 0, sum = 0, dot = 0;
        EACH(mean += tensor_get(&x, at);)
        mean /= (double)count;
        EACH(var += (tensor_get(&x, at) - mean) * (tensor_get(&x, at) - mean);)
        if (training) {
            CHECK_NEAR(tensor_get(&rm, ch), .9 * old_mean[ch] + .1 * mean, tensor_tolerance(parameter));
            CHECK_NEAR(tensor_get(&rv, ch), .9 * old_var[ch] + .1 * var / (double)(count - 1), tensor_tolerance(parameter));
            var /= (double)count;
        } else {
            mean = tensor_get(&rm, ch);
            var = tensor_get(&rv, ch);
            CHECK_NEAR(mean, old_mean[ch], 0);
        }
        const double invstd = 1 / sqrt(var + 1e-5), g = tensor_get(&w, ch) * invstd;
        CHECK_NEAR(tensor_get(&sm, ch), mean, 4 * tensor_tolerance(parameter));
        CHECK_NEAR(tensor_get(&si, ch), invstd, 4 * tensor_tolerance(parameter));
        EACH(CHECK_NEAR(tensor_get(&y, at), (tensor_get(&x, at) - mean) * g + tensor_get(&b, ch), tolerance);
             sum += tensor_get(&dy, at); dot += tensor_get(&dy, at) * (tensor_get(&x, at) - mean) * invstd;)
        CHECK_NEAR(tensor_get(&dw, ch), dot, 4 * tensor_tolerance(parameter));
        CHECK_NEAR(tensor_get(&db, ch), sum, 4 * tensor_tolerance(parameter));
        const double a = training ? sum / (double)count : 0, k = training ? dot / (double)count : 0;
        EACH(CHECK_NEAR(tensor_get(&dx, at), g * (tensor_get(&dy, at) - a - (tensor_get(&x, at) - mean) * invstd * k),
                        4 * tolerance);)
    }
    free(old_mean);
    free(old_var);
    aclDestroyBoolArray(mask);
    struct tensor *const all[] = {&x, &y, &dy, &dx, &w, &b, &rm, &rv, &sm, &si, &dw, &db};
    for (int i = 0; i < 12; ++i)
        tensor_free(all[i]);
}

static void test_layer_norm(enum dtype dtype, enum layout layout, int64_t rows, int64_t width)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(rows, width)), y = tensor_new(dtype, layout, SIZES(rows, width));
    struct tensor dy = tensor_random(dtype, layout, &seed, SIZES(rows, width)), dx = tensor_new(dtype, layout, SIZES(rows, width));
    struct tensor w = tensor_random(dtype, PLAIN, &seed, SIZES(width)), b = tensor_random(dtype, PLAIN, &seed, SIZES(width));
    const enum dtype statistics = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    struct tensor mean = tensor_new(statistics, PLAIN, SIZES(rows, 1)), rstd = tensor_new(statistics, PLAIN, SIZES(rows, 1));
    struct tensor dw = tensor_new(dtype, PLAIN, SIZES(width)), db = tensor_new(dtype, PLAIN, SIZES(width));
    const bool wanted[] = {true, true, true};
    aclBoolArray *const mask = aclCreateBoolArray(wanted, 3);
    aclIntArray *const shape = aclCreateIntArray(&width, 1);
    RUN(LayerNorm, x.handle, shape, w.handle, b.handle, 1e-5, y.handle, mean.handle, rstd.handle);
    RUN(LayerNormBackward, dy.handle, x.handle, shape, mean.handle, rstd.handle, w.handle, b.handle, mask, dx.handle, dw.handle,
        db.handle);
    double *const ew = calloc((size_t)width, 8), *const eb = calloc((size_t)width, 8);
    const double tolerance = 4 * tensor_tolerance(dtype);
    for (int64_t r = 0; r < rows; ++r) {
        double m = 0, v = 0, s0 = 0, s1 = 0;
        for (int64_t i = 0; i < width; ++i)
            m += tensor_get(&x, r * width + i) / (double)width;
        for (int64_t i = 0; i < width; ++i)
            v += pow(tensor_get(&x, r * width + i) - m, 2) / (double)width;
        const double s = 1 / sqrt(v + 1e-5);
        CHECK_NEAR(tensor_get(&mean, r), m, 1e-5);
        CHECK_NEAR(tensor_get(&rstd, r), s, 1e-5);
        for (int64_t i = 0; i < width; ++i) {
            const double h = (tensor_get(&x, r * width + i) - m) * s, g = tensor_get(&dy, r * width + i);
            CHECK_NEAR(tensor_get(&y, r * width + i), h * tensor_get(&w, i) + tensor_get(&b, i), tolerance);
            s0 += g * tensor_get(&w, i) / (double)width;
            s1 += g * tensor_get(&w, i) * h / (double)width;
            ew[i] += g * h;
            eb[i] += g;
        }
        for (int64_t i = 0; i < width; ++i) {
            const double h = (tensor_get(&x, r * width + i) - m) * s, g = tensor_get(&dy, r * width + i) * tensor_get(&w, i);
            CHECK_NEAR(tensor_get(&dx, r * width + i), (g - s0 - h * s1) * s, tolerance * fmax(1, s));
        }
    }
    for (int64_t i = 0; i < width; ++i) {
        CHECK_NEAR(tensor_get(&dw, i), ew[i], 4 * tolerance);
        CHECK_NEAR(tensor_get(&db, i), eb[i], 4 * tolerance);
    }
    free(ew);
    free(eb);
    aclDestroyBoolArray(mask);
    aclDestroyIntArray(shape);
    struct tensor *const all[] = {&x, &y, &dy, &dx, &w, &b, &mean, &rstd, &dw, &db};
    for (int i = 0; i < 10; ++i)
        tensor_free(all[i]);
}

static void test_group_norm(enum dtype dtype, enum layout layout, int64_t images, int64_t channels, int64_t plane, int64_t groups)
{
    const int64_t wide = channels / groups, count = wide * plane;
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(images, channels, plane)),
                  y = tensor_new(dtype, layout, SIZES(images, channels, plane));
    struct tensor dy = tensor_random(dtype, layout, &seed, SIZES(images, channels, plane)),
                  dx = tensor_new(dtype, layout, SIZES(images, channels, plane));
    struct tensor w = tensor_random(dtype, PLAIN, &seed, SIZES(channels)), b = tensor_random(dtype, PLAIN, &seed, SIZES(channels));
    const enum dtype statistics = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    struct tensor mean = tensor_new(statistics, PLAIN, SIZES(images, groups)),
                  rstd = tensor_new(statistics, PLAIN, SIZES(images, groups));
    struct tensor dw = tensor_new(dtype, PLAIN, SIZES(channels)), db = tensor_new(dtype, PLAIN, SIZES(channels));
    const bool wanted[] = {true, true, true};
    aclBoolArray *const mask = aclCreateBoolArray(wanted, 3);
    RUN(GroupNorm, x.handle, w.handle, b.handle, images, channels, plane, groups, 1e-5, y.handle, mean.handle, rstd.handle);
    RUN(GroupNormBackward, dy.handle, x.handle, mean.handle, rstd.handle, w.handle, images, channels, plane, groups, mask,
        dx.handle, dw.handle, db.handle);
    double *const ew = calloc((size_t)channels, 8), *const eb = calloc((size_t)channels, 8);
    const double tolerance = 4 * tensor_tolerance(dtype);
    for (int64_t item = 0; item < images * groups; ++item) {
        double m = 0, v = 0, s0 = 0, s1 = 0;
        for (int64_t i = 0; i < count; ++i)
            m += tensor_get(&x, item * count + i) / (double)count;
        for (int64_t i = 0; i < count; ++i)
            v += pow(tensor_get(&x, item * count + i) - m, 2) / (double)count;
        const double s = 1 / sqrt(v + 1e-5);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t c = item % groups * wide + i / plane;
            const double h = (tensor_get(&x, item * count + i) - m) * s, g = tensor_get(&dy, item * count + i);
            CHECK_NEAR(tensor_get(&y, item * count + i), h * tensor_get(&w, c) + tensor_get(&b, c), tolerance);
            s0 += g * tensor_get(&w, c) / (double)count;
            s1 += g * tensor_get(&w, c) * h / (double)count;
            ew[c] += g * h;
            eb[c] += g;
        }
        for (int64_t i = 0; i < count; ++i) {
            const double h = (tensor_get(&x, item * count + i) - m) * s;
            const double g = tensor_get(&dy, item * count + i) * tensor_get(&w, item % groups * wide + i / plane);
            CHECK_NEAR(tensor_get(&dx, item * count + i), (g - s0 - h * s1) * s, tolerance * fmax(1, s));
        }
    }
    for (int64_t i = 0; i < channels; ++i) {
        CHECK_NEAR(tensor_get(&dw, i), ew[i], 4 * tolerance);
        CHECK_NEAR(tensor_get(&db, i), eb[i], 4 * tolerance);
    }
    free(ew);
    free(eb);
    aclDestroyBoolArray(mask);
    struct tensor *const all[] = {&x, &y, &dy, &dx, &w, &b, &mean, &rstd, &dw, &db};
    for (int i = 0; i < 10; ++i)
        tensor_free(all[i]);
}

static void test_all(void)
{
    static const struct norm_case cases[] = {{4, {4, 3, 5, 7}},    {2, {9, 70}},        {3, {2, 5, 100}},
                                             {5, {2, 2, 3, 2, 4}}, {4, {2, 4, 65, 64}}, {4, {1, 2, 1, 3}}};
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int t = 0; t < 4; ++t)
            for (int training = 0; training < 2; ++training)
                test_batch_norm(types[t], t == 1 ? DTYPE_F64 : DTYPE_F32, (enum layout)((i + (size_t)t) % LAYOUTS), &cases[i],
                                training);
    for (int t = 0; t < 4; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout) {
            test_group_norm(types[t], (enum layout)layout, 3, 12, 35, 4);
            test_group_norm(types[t], (enum layout)layout, 2, 6, 1, 2);
            test_layer_norm(types[t], (enum layout)layout, 5, 129);
            test_layer_norm(types[t], (enum layout)layout, 40, 16);
            test_layer_norm(types[t], (enum layout)layout, 1, 1000);
        }
}

static void test_group_sizes_are_checked(void)
{
    static const int64_t cases[][3] = {{-2, -3, 4}, {2, 3, 5}, {1ll << 32, 1ll << 32, 1}, {1ll << 62, 4, 0}};
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 3, 4)), y = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 3, 4));
    tensor_fill(&y, 0);
    for (int i = 0; i < 4; ++i)
        REFUSE(GroupNorm, ACLNN_ERROR_PARAM, "don't give the elements", x.handle, NULL, NULL, cases[i][0], cases[i][1], cases[i][2],
               1, 1e-5, y.handle, NULL, NULL);
    tensor_free(&x);
    tensor_free(&y);
}

int main(void)
{
    tensors_begin();
    test_group_sizes_are_checked();
    FOR_EACH_ISA(test_all())
    return check_result();
}
