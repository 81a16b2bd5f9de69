/* Max pooling of volumes with gradients and inverses, im2col and its gradient, against loops over all elements. */
#include "tensors.h"

static uint64_t seed = 29;

struct windows {
    int64_t in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    bool adaptive, ceil_mode;
};

static bool covers(const struct windows *w, int a, int64_t o, int64_t i)
{
    if (w->adaptive) {
        const double in = (double)w->in[a], out = (double)w->out[a];
        return (double)i >= floor((double)o * in / out) && (double)i < ceil((double)(o + 1) * in / out);
    }
    const int64_t from = i - (o * w->stride[a] - w->pad[a]);
    return from >= 0 && from % w->dilation[a] == 0 && from / w->dilation[a] < w->kernel[a];
}

static void split(const int64_t *sizes, int64_t i, int64_t *at)
{
    at[2] = i % sizes[2];
    at[1] = i / sizes[2] % sizes[1];
    at[0] = i / (sizes[1] * sizes[2]);
}

static void check_pooling(const struct windows *w, const struct tensor *x, const struct tensor *y, const struct tensor *index,
                          const struct tensor *dy, const struct tensor *dx)
{
    const int64_t in = w->in[0] * w->in[1] * w->in[2], out = w->out[0] * w->out[1] * w->out[2];
    for (int64_t v = 0; v < x->count / in; ++v) {
        double *const gradient = calloc((size_t)in, 8);
        for (int64_t o = 0; o < out; ++o) {
            int64_t to[3], from[3], where = -1;
            split(w->out, o, to);
            for (int64_t i = 0; i < in; ++i) {
                split(w->in, i, from);
                if (covers(w, 0, to[0], from[0]) && covers(w, 1, to[1], from[1]) && covers(w, 2, to[2], from[2]))
                    where = where < 0 || tensor_get(x, v * in + i) > tensor_get(x, v * in + where) ? i : where;
            }
            CHECK_NEAR(tensor_get(y, v * out + o), tensor_get(x, v * in + where), 0);
            CHECK_INT(tensor_get(index, v * out + o), where);
            gradient[where] += tensor_get(dy, v * out + o);
        }
        for (int64_t i = 0; i < in; ++i)
            CHECK_NEAR(tensor_get(dx, v * in + i), gradient[i], 4 * tensor_tolerance(x->dtype));
        free(gradient);
    }
}

static void test_pooling(enum dtype dtype, enum dtype index_type, enum layout layout, const struct windows *w)
{
    const int64_t in[] = {2, 3, w->in[0], w->in[1], w->in[2]}, out[] = {2, 3, w->out[0], w->out[1], w->out[2]};
    struct tensor x = tensor_random(dtype, layout, &seed, 5, in), y = tensor_new(dtype, layout, 5, out),
                  index = tensor_new(index_type, layout, 5, out);
    struct tensor dy = tensor_random(dtype, layout, &seed, 5, out), dx = tensor_new(dtype, layout, 5, in),
                  back = tensor_new(dtype, layout, 5, in);
    aclIntArray *const kernel = aclCreateIntArray(w->kernel, 3), *const stride = aclCreateIntArray(w->stride, 3),
                       *const pad = aclCreateIntArray(w->pad, 3), *const dilation = aclCreateIntArray(w->dilation, 3),
                       *const to = aclCreateIntArray(w->out, 3), *const from = aclCreateIntArray(w->in, 3);
    if (w->adaptive) {
        RUN(AdaptiveMaxPool3d, x.handle, to, y.handle, index.handle);
        RUN(AdaptiveMaxPool3dBackward, dy.handle, x.handle, index.handle, dx.handle);
    } else {
        RUN(MaxPool3dWithArgmax, x.handle, kernel, stride, pad, dilation, w->ceil_mode, y.handle, index.handle);
        RUN(MaxPool3dWithArgmaxBackward, dy.handle, x.handle, index.handle, kernel, stride, pad, dilation, w->ceil_mode, dx.handle);
    }
    check_pooling(w, &x, &y, &index, &dy, &dx);
    RUN(MaxUnpool3d, y.handle, index.handle, from, stride, pad, back.handle);
    const int64_t large = x.count / 6, small = y.count / 6;
    for (int64_t i = 0; i < x.count; ++i) {
        double value = 0;
        for (int64_t o = 0; o < small; ++o)
            value = (int64_t)tensor_get(&index, i / large * small + o) == i % large ? tensor_get(&y, i / large * small + o) : value;
        CHECK_NEAR(tensor_get(&back, i), value, 0);
    }
    aclIntArray *const arrays[] = {kernel, stride, pad, dilation, to, from};
    for (int i = 0; i < 6; ++i)
        aclDestroyIntArray(arrays[i]);
    struct tensor *const all[] = {&x, &y, &index, &dy, &dx, &back};
    for (int i = 0; i < 6; ++i)
        tensor_free(all[i]);
}

static void test_unpool_2d(enum dtype dtype, enum layout layout)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(2, 1, 2, 2)), y = tensor_new(dtype, layout, SIZES(2, 1, 4, 4)),
                  index = tensor_new(DTYPE_I64, layout, SIZES(2, 1, 2, 2));
    static const int64_t places[] = {1, 6, 8, 15, 0, 3, 12, 11}, size[] = {4, 4};
    aclIntArray *const to = aclCreateIntArray(size, 2);
    for (int i = 0; i < 8; ++i)
        tensor_set(&index, i, (double)places[i]);
    RUN(MaxUnpool2d, x.handle, index.handle, to, y.handle);
    for (int64_t i = 0; i < 32; ++i) {
        double value = 0;
        for (int k = 0; k < 4; ++k)
            value = places[i / 16 * 4 + k] == i % 16 ? tensor_get(&x, i / 16 * 4 + k) : value;
        CHECK_NEAR(tensor_get(&y, i), value, 0);
    }
    tensor_set(&index, 3, 16); /* outside: found when it runs */
    uint64_t bytes;
    aclOpExecutor *executor;
    CHECK_OK(aclnnMaxUnpool2dGetWorkspaceSize(x.handle, index.handle, to, y.handle, &bytes, &executor));
    void *const workspace = malloc(bytes + 1);
    const int code = aclnnMaxUnpool2d(workspace, bytes, executor, NULL), later = tensors_synchronize();
    CHECK((code ? code : later) == ERROR_RT_DEVICE_TASK, "code %d, then %d", code, later);
    (void)error_take_text();
    (void)error_take_last();
    free(workspace);
    aclDestroyIntArray(to);
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&index);
}

static void test_unfold(enum dtype dtype, enum layout layout, const struct windows *w)
{
    const int64_t taps = w->kernel[1] * w->kernel[2], places = w->out[1] * w->out[2], plane = w->in[1] * w->in[2];
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(2, 3, w->in[1], w->in[2])),
                  y = tensor_new(dtype, layout, SIZES(2, 3 * taps, places));
    struct tensor dy = tensor_random(dtype, layout, &seed, SIZES(2, 3 * taps, places)),
                  dx = tensor_new(dtype, layout, SIZES(2, 3, w->in[1], w->in[2]));
    aclIntArray *const kernel = aclCreateIntArray(w->kernel + 1, 2), *const stride = aclCreateIntArray(w->stride + 1, 2),
                       *const pad = aclCreateIntArray(w->pad + 1, 2), *const dilation = aclCreateIntArray(w->dilation + 1, 2),
                       *const from = aclCreateIntArray(w->in + 1, 2);
    RUN(Im2col, x.handle, kernel, dilation, pad, stride, y.handle);
    RUN(Im2colBackward, dy.handle, from, kernel, dilation, pad, stride, dx.handle);
    double *const sums = calloc((size_t)x.count, 8);
    for (int64_t i = 0; i < y.count; ++i) {
        const int64_t place = i % places, tap = i / places % taps, volume = i / (places * taps);
        const int64_t r = place / w->out[2] * w->stride[1] - w->pad[1] + tap / w->kernel[2] * w->dilation[1];
        const int64_t c = place % w->out[2] * w->stride[2] - w->pad[2] + tap % w->kernel[2] * w->dilation[2];
        const bool inside = r >= 0 && r < w->in[1] && c >= 0 && c < w->in[2];
        CHECK_NEAR(tensor_get(&y, i), inside ? tensor_get(&x, volume * plane + r * w->in[2] + c) : 0, 0);
        if (inside)
            sums[volume * plane + r * w->in[2] + c] += tensor_get(&dy, i);
    }
    for (int64_t i = 0; i < x.count; ++i)
        CHECK_NEAR(tensor_get(&dx, i), sums[i], 4 * tensor_tolerance(dtype));
    free(sums);
    aclIntArray *const arrays[] = {kernel, stride, pad, dilation, from};
    for (int i = 0; i < 5; ++i)
        aclDestroyIntArray(arrays[i]);
    struct tensor *const all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    static const struct windows windows[] = {{{6, 5, 7}, {3, 3, 3}, {2, 3, 2}, {2, 1, 2}, {0, 0, 0}, {1, 1, 1}, false, false},
                                             {{5, 6, 4}, {3, 4, 3}, {3, 3, 2}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, false, true},
                                             {{7, 7, 7}, {3, 3, 5}, {3, 3, 2}, {1, 1, 1}, {0, 0, 0}, {2, 2, 2}, false, false},
                                             {{6, 5, 7}, {2, 3, 4}, {1, 1, 1}, {1, 1, 1}, {0}, {1, 1, 1}, true, false}};
    static const struct windows planes[] = {{{1, 5, 6}, {1, 4, 5}, {1, 2, 2}, {1, 1, 1}, {0}, {1, 1, 1}, false, false},
                                            {{1, 6, 7}, {1, 3, 4}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}, false, false},
                                            {{1, 5, 5}, {1, 5, 5}, {1, 3, 2}, {1, 1, 1}, {0, 2, 1}, {1, 2, 2}, false, false}};
    for (int t = 0; t < 4; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout) {
            for (int i = 0; i < 4; ++i)
                test_pooling(types[t], i % 2 ? DTYPE_I64 : DTYPE_I32, (enum layout)layout, &windows[i]);
            for (int i = 0; i < 3; ++i)
                test_unfold(types[t], (enum layout)layout, &planes[i]);
            test_unpool_2d(types[t], (enum layout)layout);
        }
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    return check_result();
}
