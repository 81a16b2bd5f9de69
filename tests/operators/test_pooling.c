/* 2-D pooling and its gradients against plain loops; indices, masks, NaN, edges. */
#include "operators/tensors.h"

static uint64_t seed = 11;

struct pool_case {
    int64_t planes, h, w, kh, kw, sh, sw, ph, pw, dh, dw;
    bool ceil_mode, count_padding;
    int64_t divisor;
};

static int64_t out_size(int64_t in, int64_t k, int64_t s, int64_t p, int64_t d, bool ceil_mode)
{
    int64_t out = (in + 2 * p - d * (k - 1) - 1 + (ceil_mode ? s - 1 : 0)) / s + 1;
    return ceil_mode && (out - 1) * s >= in + p ? out - 1 : out;
}

static void test_max(enum dtype dtype, enum layout layout, enum dtype index_type, const struct pool_case *c, bool with_nan)
{
    const int64_t oh = out_size(c->h, c->kh, c->sh, c->ph, c->dh, c->ceil_mode),
                  ow = out_size(c->w, c->kw, c->sw, c->pw, c->dw, c->ceil_mode);
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(2, c->planes, c->h, c->w));
    struct tensor y = tensor_new(dtype, layout, SIZES(2, c->planes, oh, ow)),
                  dy = tensor_random(dtype, layout, &seed, SIZES(2, c->planes, oh, ow));
    struct tensor dx = tensor_new(dtype, layout, SIZES(2, c->planes, c->h, c->w));
    const bool mask = index_type == DTYPE_I8;
    struct tensor index = mask ? tensor_new(DTYPE_I8, PLAIN, SIZES(2, c->planes, c->kh * c->kw, ((oh * ow + 15) / 16 + 1) * 32))
                               : tensor_new(index_type, layout, SIZES(2, c->planes, oh, ow));
    for (int64_t i = 0; i < x.count; ++i) /* many ties */
        tensor_set(&x, i, with_nan && i % 7 == 0 ? NAN : rint(tensor_get(&x, i) * 3));
    aclIntArray *const k = aclCreateIntArray((int64_t[]){c->kh, c->kw}, 2), *const s =
                                                                                aclCreateIntArray((int64_t[]){c->sh, c->sw}, 2);
    aclIntArray *const p = aclCreateIntArray((int64_t[]){c->ph, c->pw}, 2), *const d =
                                                                                aclCreateIntArray((int64_t[]){c->dh, c->dw}, 2);
    if (mask) {
        RUN(MaxPool2dWithMask, x.handle, k, s, p, d, c->ceil_mode, y.handle, index.handle);
        RUN(MaxPool2dWithMaskBackward, dy.handle, x.handle, index.handle, k, s, p, d, c->ceil_mode, dx.handle);
    } else {
        RUN(MaxPool2dWithIndices, x.handle, k, s, p, d, c->ceil_mode, y.handle, index.handle);
        RUN(MaxPool2dWithIndicesBackward, dy.handle, x.handle, index.handle, k, s, p, d, c->ceil_mode, dx.handle);
    }
    double *const expected = calloc((size_t)x.count, 8);
    for (int64_t o = 0; o < y.count; ++o) {
        const int64_t plane = o / (oh * ow), oy = o / ow % oh, ox = o % ow;
        double best = -INFINITY;
        int64_t where = -1;
        for (int64_t i = 0; i < c->kh; ++i)
            for (int64_t j = 0; j < c->kw; ++j) {
                const int64_t iy = oy * c->sh - c->ph + i * c->dh, ix = ox * c->sw - c->pw + j * c->dw;
                if (iy < 0 || ix < 0 || iy >= c->h || ix >= c->w)
                    continue;
                const double v = tensor_get(&x, plane * c->h * c->w + iy * c->w + ix);
                if (where < 0 || v > best || isnan(v)) {
                    best = v;
                    where = iy * c->w + ix;
                }
            }
        CHECK_NEAR(tensor_get(&y, o), best, 0);
        if (!mask)
            CHECK_INT(tensor_get(&index, o), where);
        expected[plane * c->h * c->w + where] += tensor_get(&dy, o);
    }
    for (int64_t i = 0; i < x.count; ++i)
        CHECK_NEAR(tensor_get(&dx, i), expected[i], 4 * tensor_tolerance(dtype));
    free(expected);
    aclIntArray *const arrays[] = {k, s, p, d};
    for (int i = 0; i < 4; ++i)
        aclDestroyIntArray(arrays[i]);
    struct tensor *const all[] = {&x, &y, &dy, &dx, &index};
    for (int i = 0; i < 5; ++i)
        tensor_free(all[i]);
}

static void test_average(enum dtype dtype, enum layout layout, const struct pool_case *c)
{
    const int64_t oh = out_size(c->h, c->kh, c->sh, c->ph, 1, c->ceil_mode),
                  ow = out_size(c->w, c->kw, c->sw, c->pw, 1, c->ceil_mode);
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(c->planes, c->h, c->w)),
                  y = tensor_new(dtype, layout, SIZES(c->planes, oh, ow));
    struct tensor dy = tensor_random(dtype, layout, &seed, SIZES(c->planes, oh, ow)),
                  dx = tensor_new(dtype, layout, SIZES(c->planes, c->h, c->w));
    aclIntArray *const k = aclCreateIntArray((int64_t[]){c->kh, c->kw}, 2), *const s =
                                                                                aclCreateIntArray((int64_t[]){c->sh, c->sw}, 2);
    aclIntArray *const p = aclCreateIntArray((int64_t[]){c->ph, c->pw}, 2);
    RUN(AvgPool2d, x.handle, k, s, p, c->ceil_mode, c->count_padding, c->divisor, 0, y.handle);
    RUN(AvgPool2dBackward, dy.handle, x.handle, k, s, p, c->ceil_mode, c->count_padding, c->divisor, 0, dx.handle);
    double *const expected = calloc((size_t)x.count, 8);
    for (int64_t o = 0; o < y.count; ++o) {
        const int64_t plane = o / (oh * ow), top = o / ow % oh * c->sh - c->ph, left = o % ow * c->sw - c->pw;
        double sum = 0, inside = 0, padded = 0;
        for (int64_t iy = top; iy < top + c->kh; ++iy)
            for (int64_t ix = left; ix < left + c->kw; ++ix) {
                padded += iy < c->h + c->ph && ix < c->w + c->pw;
                if (iy < 0 || ix < 0 || iy >= c->h || ix >= c->w)
                    continue;
                ++inside;
                sum += tensor_get(&x, (plane * c->h + iy) * c->w + ix);
            }
        const double divisor = c->divisor ? (double)c->divisor : c->count_padding ? padded : inside;
        CHECK_NEAR(tensor_get(&y, o), sum / divisor, tensor_tolerance(dtype));
        for (int64_t iy = top < 0 ? 0 : top; iy < top + c->kh && iy < c->h; ++iy)
            for (int64_t ix = left < 0 ? 0 : left; ix < left + c->kw && ix < c->w; ++ix)
                expected[(plane * c->h + iy) * c->w + ix] += tensor_get(&dy, o) / divisor;
    }
    for (int64_t i = 0; i < x.count; ++i)
        CHECK_NEAR(tensor_get(&dx, i), expected[i], 2 * tensor_tolerance(dtype));
    free(expected);
    aclIntArray *const arrays[] = {k, s, p};
    for (int i = 0; i < 3; ++i)
        aclDestroyIntArray(arrays[i]);
    struct tensor *const all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_adaptive(enum dtype dtype, int64_t h, int64_t w, int64_t oh, int64_t ow)
{
    struct tensor x = tensor_random(dtype, PLAIN, &seed, SIZES(3, 2, h, w)), y = tensor_new(dtype, PLAIN, SIZES(3, 2, oh, ow));
    struct tensor dy = tensor_random(dtype, PLAIN, &seed, SIZES(3, 2, oh, ow)), dx = tensor_new(dtype, PLAIN, SIZES(3, 2, h, w));
    aclIntArray *const size = aclCreateIntArray((int64_t[]){oh, ow}, 2);
    RUN(AdaptiveAvgPool2d, x.handle, size, y.handle);
    RUN(AdaptiveAvgPool2dBackward, dy.handle, x.handle, dx.handle);
    double *const expected = calloc((size_t)x.count, 8);
    for (int64_t o = 0; o < y.count; ++o) {
        const int64_t plane = o / (oh * ow), oy = o / ow % oh, ox = o % ow;
        const int64_t top = oy * h / oh, bottom = ((oy + 1) * h + oh - 1) / oh, left = ox * w / ow,
                      right = ((ox + 1) * w + ow - 1) / ow;
        double sum = 0;
        const double count = (double)((bottom - top) * (right - left));
        for (int64_t i = top; i < bottom; ++i)
            for (int64_t j = left; j < right; ++j) {
                sum += tensor_get(&x, (plane * h + i) * w + j);
                expected[(plane * h + i) * w + j] += tensor_get(&dy, o) / count;
            }
        CHECK_NEAR(tensor_get(&y, o), sum / count, tensor_tolerance(dtype));
    }
    for (int64_t i = 0; i < x.count; ++i)
        CHECK_NEAR(tensor_get(&dx, i), expected[i], 2 * tensor_tolerance(dtype));
    free(expected);
    aclDestroyIntArray(size);
    struct tensor *const all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_adaptive_max(enum dtype dtype, int64_t h, int64_t w, int64_t oh, int64_t ow)
{
    struct tensor x = tensor_random(dtype, GAPS, &seed, SIZES(2, h, w)), y = tensor_new(dtype, PLAIN, SIZES(2, oh, ow));
    struct tensor index = tensor_new(DTYPE_I64, PLAIN, SIZES(2, oh, ow)), dy = tensor_random(dtype, PLAIN, &seed, SIZES(2, oh, ow));
    struct tensor dx = tensor_new(dtype, PLAIN, SIZES(2, h, w));
    aclIntArray *const size = aclCreateIntArray((int64_t[]){oh, ow}, 2);
    RUN(AdaptiveMaxPool2d, x.handle, size, y.handle, index.handle);
    RUN(AdaptiveMaxPool2dBackward, dy.handle, x.handle, index.handle, dx.handle);
    double *const expected = calloc((size_t)x.count, 8);
    for (int64_t o = 0; o < y.count; ++o) {
        const int64_t plane = o / (oh * ow), oy = o / ow % oh, ox = o % ow;
        double best = -INFINITY;
        int64_t where = -1;
        for (int64_t i = oy * h / oh; i < ((oy + 1) * h + oh - 1) / oh; ++i)
            for (int64_t j = ox * w / ow; j < ((ox + 1) * w + ow - 1) / ow; ++j)
                if (tensor_get(&x, (plane * h + i) * w + j) > best) {
                    best = tensor_get(&x, (plane * h + i) * w + j);
                    where = i * w + j;
                }
        CHECK_NEAR(tensor_get(&y, o), best, 0);
        CHECK_INT(tensor_get(&index, o), where);
        expected[plane * h * w + where] += tensor_get(&dy, o);
    }
    for (int64_t i = 0; i < x.count; ++i)
        CHECK_NEAR(tensor_get(&dx, i), expected[i], 2 * tensor_tolerance(dtype));
    free(expected);
    aclDestroyIntArray(size);
    struct tensor *const all[] = {&x, &y, &index, &dy, &dx};
    for (int i = 0; i < 5; ++i)
        tensor_free(all[i]);
}

static const struct pool_case cases[] = {
    {3, 8, 8, 2, 2, 2, 2, 0, 0, 1, 1, false, true, 0},    {2, 32, 32, 2, 2, 2, 2, 0, 0, 1, 1, false, true, 0},
    {2, 9, 7, 2, 2, 2, 2, 0, 0, 1, 1, false, false, 0},   {2, 9, 7, 2, 2, 2, 2, 0, 0, 1, 1, true, false, 0},
    {2, 12, 11, 3, 3, 2, 2, 1, 1, 1, 1, false, true, 0},  {2, 12, 11, 3, 3, 2, 2, 1, 1, 1, 1, true, true, 5},
    {1, 10, 10, 2, 3, 3, 1, 1, 0, 2, 2, false, false, 0}, {1, 5, 5, 1, 1, 2, 2, 0, 0, 1, 1, false, true, 0},
    {1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, false, true, 0},
};

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16}, indices[] = {DTYPE_I64, DTYPE_I32, DTYPE_I8};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int t = 0; t < 4; ++t) {
            const enum layout layout = (enum layout)((i + (size_t)t) % LAYOUTS);
            for (int k = 0; k < 3; ++k)
                test_max(types[t], layout, indices[k], &cases[i], (i + (size_t)t) % 2);
            test_average(types[t], layout, &cases[i]);
        }
    for (int t = 0; t < 4; ++t) {
        test_adaptive(types[t], 7, 9, 1, 1);
        test_adaptive_max(types[t], 7, 9, 1, 1);
        test_adaptive_max(types[t], 10, 7, 3, 4);
        test_adaptive(types[t], 10, 7, 3, 4);
        test_adaptive(types[t], 3, 3, 5, 2);
    }
}

/* outputSize and out must agree. */
static void test_output_size(void)
{
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 6, 8)), y = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 3, 4));
    struct tensor index = tensor_new(DTYPE_I64, PLAIN, SIZES(2, 3, 4));
    tensor_fill(&y, 0);
    tensor_fill(&index, 0);
    for (int i = 0; i < 3; ++i) {
        aclIntArray *const size = aclCreateIntArray((const int64_t[][2]){{4, 3}, {3, 5}, {3, 4}}[i], i == 2 ? 1 : 2);
        REFUSE(AdaptiveAvgPool2d, ACLNN_ERROR_PARAM, "outputSize", x.handle, size, y.handle);
        REFUSE(AdaptiveMaxPool2d, ACLNN_ERROR_PARAM, "outputSize", x.handle, size, y.handle, index.handle);
        aclDestroyIntArray(size);
    }
    REFUSE(AdaptiveAvgPool2d, ACLNN_ERROR_NULLPTR, "outputSize", x.handle, NULL, y.handle);
    REFUSE(AdaptiveMaxPool2d, ACLNN_ERROR_NULLPTR, "outputSize", x.handle, NULL, y.handle, index.handle);
    struct tensor *const all[] = {&x, &y, &index};
    for (int i = 0; i < 3; ++i)
        tensor_free(all[i]);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_output_size();
    return check_result();
}
