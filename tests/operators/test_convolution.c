/* Convolution and its gradients through the C API against sums in double: dimensions, strides, groups, transposed, types,
 * layouts, sizes around the tile sizes. */
#include "operators/tensors.h"

static uint64_t seed = 1;

struct problem {
    int n; /* spatial dimensions */
    int64_t images, in_channels, out_channels, groups;
    int64_t in[3], taps[3], stride[3], pad[3], dilation[3], extra[3];
    int transposed;
};

static int64_t out_size(const struct problem *p, int d)
{
    const int64_t reach = p->dilation[d] * (p->taps[d] - 1);
    return p->transposed ? (p->in[d] - 1) * p->stride[d] - 2 * p->pad[d] + reach + p->extra[d] + 1
                         : (p->in[d] + 2 * p->pad[d] - reach - 1) / p->stride[d] + 1;
}

/* Calls visit for each (output element, input element, weight element) that meet. */
#define FOR_EACH_PRODUCT(p, ...)                                                                                           \
    do {                                                                                                                   \
        const int64_t small_group = (p)->transposed ? (p)->in_channels / (p)->groups : (p)->out_channels / (p)->groups;     \
        const int64_t large_group = (p)->transposed ? (p)->out_channels / (p)->groups : (p)->in_channels / (p)->groups;     \
        int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, taps[3] = {1, 1, 1};                                                 \
        for (int d = 0; d < (p)->n; ++d) {                                                                                  \
            in[d] = (p)->in[d];                                                                                             \
            out[d] = out_size(p, d);                                                                                        \
            taps[d] = (p)->taps[d];                                                                                         \
        }                                                                                                                   \
        const int64_t *const large = (p)->transposed ? out : in, *const small = (p)->transposed ? in : out;                 \
        for (int64_t image = 0; image < (p)->images; ++image)                                                               \
            for (int64_t s = 0; s < small_group * (p)->groups; ++s)                                                         \
                for (int64_t lg = 0; lg < large_group; ++lg)                                                                \
                    for (int64_t a = 0; a < small[0] * small[1] * small[2]; ++a)                                            \
                        for (int64_t t = 0; t < taps[0] * taps[1] * taps[2]; ++t) {                                         \
                            const int64_t sp[3] = {a / (small[1] * small[2]), a / small[2] % small[1], a % small[2]};       \
                            const int64_t tp[3] = {t / (taps[1] * taps[2]), t / taps[2] % taps[1], t % taps[2]};            \
                            int64_t at = 0;                                                                                 \
                            int inside = 1;                                                                                 \
                            for (int d = 0; d < 3; ++d) {                                                                   \
                                const int64_t place = d < (p)->n ? sp[d] * (p)->stride[d] + tp[d] * (p)->dilation[d] - (p)->pad[d] : 0; \
                                inside &= place >= 0 && place < large[d];                                                           \
                                at = at * large[d] + place;                                                                     \
                            }                                                                                               \
                            if (!inside)                                                                                    \
                                continue;                                                                                   \
                            const int64_t l = s / small_group * large_group + lg;                                           \
                            const int64_t small_at = (image * small_group * (p)->groups + s) * small[0] * small[1] * small[2] + a; \
                            const int64_t large_at = (image * large_group * (p)->groups + l) * large[0] * large[1] * large[2] + at; \
                            const int64_t weight_at = (s * large_group + lg) * taps[0] * taps[1] * taps[2] + t;             \
                            const int64_t in_at = (p)->transposed ? small_at : large_at;                                    \
                            const int64_t out_at = (p)->transposed ? large_at : small_at;                                   \
                            __VA_ARGS__                                                                                     \
                        }                                                                                                   \
    } while (0)

static void compare(const struct tensor *t, const double *expected, double scale, const char *what, const struct problem *p)
{
    double worst = 0, size = 0;
    for (int64_t i = 0; i < t->count; ++i) {
        const double d = fabs(tensor_get(t, i) - expected[i]);
        worst = d > worst || d != d ? d : worst;
        size = fmax(size, fabs(expected[i]));
    }
    CHECK(worst <= scale * tensor_tolerance(t->dtype) * fmax(1, size),
          "%s %s: n %d, in %lldx%lld taps %lldx%lld channels %lld->%lld "
          "groups %lld stride %lld transposed %d: off by %g of %g",
          what, dtype_name(t->dtype), p->n, (long long)p->in[0], (long long)p->in[1], (long long)p->taps[0], (long long)p->taps[1],
          (long long)p->in_channels, (long long)p->out_channels, (long long)p->groups, (long long)p->stride[0], p->transposed,
          worst, size);
}

struct sizes {
    int64_t in[5], out[5], weight[5];
};

static struct sizes sizes_of(const struct problem *p)
{
    struct sizes s = {.in = {p->images, p->in_channels}, .out = {p->images, p->out_channels}};
    s.weight[0] = p->transposed ? p->in_channels : p->out_channels;
    s.weight[1] = (p->transposed ? p->out_channels : p->in_channels) / p->groups;
    for (int d = 0; d < p->n; ++d) {
        s.in[d + 2] = p->in[d];
        s.out[d + 2] = out_size(p, d);
        s.weight[d + 2] = p->taps[d];
    }
    return s;
}

static void test_problem(enum dtype dtype, enum layout layout, const struct problem *p)
{
    const struct sizes sizes = sizes_of(p);
    const int n = p->n + 2;
    struct tensor x = tensor_random(dtype, layout, &seed, n, sizes.in), w = tensor_random(dtype, layout, &seed, n, sizes.weight);
    struct tensor bias = tensor_random(dtype, PLAIN, &seed, SIZES(p->out_channels)), y = tensor_new(dtype, layout, n, sizes.out);
    struct tensor dy = tensor_random(dtype, layout, &seed, n, sizes.out), dx = tensor_new(dtype, layout, n, sizes.in);
    struct tensor dw = tensor_new(dtype, layout, n, sizes.weight), db = tensor_new(dtype, PLAIN, SIZES(p->out_channels));
    aclIntArray *const stride = aclCreateIntArray(p->stride, (uint64_t)p->n), *const pad =
                                                                                  aclCreateIntArray(p->pad, (uint64_t)p->n);
    aclIntArray *const dilation = aclCreateIntArray(p->dilation, (uint64_t)p->n), *const extra =
                                                                                      aclCreateIntArray(p->extra, (uint64_t)p->n);
    const bool wanted[] = {true, true, true};
    aclBoolArray *const mask = aclCreateBoolArray(wanted, 3);
    RUN(Convolution, x.handle, w.handle, bias.handle, stride, pad, dilation, p->transposed, extra, p->groups, y.handle, 0);
    RUN(ConvolutionBackward, dy.handle, x.handle, w.handle, NULL, stride, pad, dilation, p->transposed, extra, (int)p->groups, mask,
        0, dx.handle, dw.handle, db.handle);
    double *const ey = calloc((size_t)y.count + 1, 8), *const ex = calloc((size_t)x.count + 1, 8),
                  *const ew = calloc((size_t)w.count + 1, 8);
    double *const eb = calloc((size_t)p->out_channels, 8);
    const int64_t pixels = y.count / (p->images * p->out_channels);
    for (int64_t i = 0; i < y.count; ++i) {
        ey[i] = tensor_get(&bias, i / pixels % p->out_channels);
        eb[i / pixels % p->out_channels] += tensor_get(&dy, i);
    }
    FOR_EACH_PRODUCT(p, {
        const double xv = tensor_get(&x, in_at), wv = tensor_get(&w, weight_at), g = tensor_get(&dy, out_at);
        ey[out_at] += xv * wv;
        ex[in_at] += g * wv;
        ew[weight_at] += g * xv;
    });
    compare(&y, ey, 2, "out", p);
    compare(&dx, ex, 2, "gradInput", p);
    compare(&dw, ew, 4, "gradWeight", p);
    compare(&db, eb, 2, "gradBias", p);
    free(ey);
    free(ex);
    free(ew);
    free(eb);
    aclDestroyBoolArray(mask);
    aclIntArray *const arrays[] = {stride, pad, dilation, extra};
    for (int i = 0; i < 4; ++i)
        aclDestroyIntArray(arrays[i]);
    struct tensor *const all[] = {&x, &w, &bias, &y, &dy, &dx, &dw, &db};
    for (int i = 0; i < 8; ++i)
        tensor_free(all[i]);
}

static uint64_t *word_at(const struct tensor *t, int64_t index) { return (uint64_t *)(void *)t->memory + tensor_at(t, index); }

/* 64-bit integers, whose sums wrap: exact, where a sum in double would not be. */
static void test_integers(enum layout layout, const struct problem *p)
{
    const struct sizes sizes = sizes_of(p);
    const int n = p->n + 2;
    struct tensor x = tensor_new(DTYPE_I64, layout, n, sizes.in), w = tensor_new(DTYPE_I64, layout, n, sizes.weight);
    struct tensor bias = tensor_new(DTYPE_I64, PLAIN, SIZES(p->out_channels)), y = tensor_new(DTYPE_I64, layout, n, sizes.out);
    struct tensor *const filled[] = {&x, &w, &bias};
    for (int t = 0; t < 3; ++t)
        for (int64_t i = 0; i < filled[t]->count; ++i)
            *word_at(filled[t], i) = check_random(&seed);
    aclIntArray *const arrays[] = {aclCreateIntArray(p->stride, (uint64_t)p->n), aclCreateIntArray(p->pad, (uint64_t)p->n),
                                   aclCreateIntArray(p->dilation, (uint64_t)p->n), aclCreateIntArray(p->extra, (uint64_t)p->n)};
    RUN(Convolution, x.handle, w.handle, bias.handle, arrays[0], arrays[1], arrays[2], p->transposed, arrays[3], p->groups,
        y.handle, 0);
    uint64_t *const expected = calloc((size_t)y.count, 8);
    for (int64_t i = 0; i < y.count; ++i)
        expected[i] = *word_at(&bias, i / (y.count / (p->images * p->out_channels)) % p->out_channels);
    FOR_EACH_PRODUCT(p, expected[out_at] += *word_at(&x, in_at) * *word_at(&w, weight_at););
    for (int64_t i = 0; i < y.count; ++i)
        CHECK(*word_at(&y, i) == expected[i], "integers: element %lld of n %d, %lld -> %lld channels", (long long)i, p->n,
              (long long)p->in_channels, (long long)p->out_channels);
    free(expected);
    for (int i = 0; i < 4; ++i)
        aclDestroyIntArray(arrays[i]);
    tensor_free(&y);
    for (int t = 0; t < 3; ++t)
        tensor_free(filled[t]);
}

static const struct problem problems[] = {
    {2, 2, 3, 4, 1, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 3, 16, 20, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 2, 33, 17, 1, {16, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 1, 32, 48, 1, {12, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 2, 16, 16, 1, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 2, 16, 32, 1, {9, 8}, {3, 3}, {1, 1}, {0, 0}, {1, 1}, {0}, 0},
    {2, 2, 16, 16, 1, {6, 6}, {3, 3}, {1, 1}, {2, 2}, {1, 1}, {0}, 0},
    {2, 2, 16, 16, 1, {1, 1}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 5, 3, 64, 1, {32, 32}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 4, 32, 32, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0}, /* from here: sizes for which Winograd is chosen */
    {2, 5, 48, 64, 1, {9, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 4, 64, 64, 2, {10, 12}, {3, 3}, {1, 1}, {0, 2}, {1, 1}, {0}, 0},
    {2, 9, 16, 32, 1, {8, 24}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 4, 32, 32, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
    {2, 2, 6, 9, 3, {9, 7}, {3, 2}, {2, 1}, {1, 0}, {1, 2}, {0}, 0},
    {2, 2, 8, 8, 8, {10, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0},
    {2, 3, 5, 7, 1, {11, 13}, {5, 3}, {3, 2}, {2, 1}, {1, 1}, {0}, 0},
    {2, 2, 24, 36, 1, {9, 9}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {0}, 0},
    {2, 2, 4, 4, 1, {3, 3}, {1, 1}, {2, 2}, {0, 0}, {1, 1}, {0}, 0},
    {2, 2, 4, 6, 1, {10, 11}, {2, 5}, {3, 2}, {0, 2}, {1, 1}, {0}, 0},   /* from here: strided, so that gradients have phases */
    {2, 2, 4, 4, 2, {9, 12}, {3, 3}, {2, 4}, {2, 1}, {2, 2}, {0}, 0},    /* phases that no tap meets */
    {2, 1, 3, 2, 1, {21, 10}, {3, 2}, {9, 1}, {1, 0}, {1, 1}, {0}, 0},   /* too far apart for phases */
    {2, 4, 16, 32, 1, {17, 16}, {5, 5}, {2, 2}, {2, 2}, {1, 1}, {0}, 0}, /* a phase of 3 x 3 taps, done by Winograd */
    {2, 2, 4, 6, 1, {5, 6}, {4, 4}, {2, 2}, {1, 1}, {1, 1}, {0}, 1},
    {2, 1, 4, 6, 1, {4, 3}, {1, 3}, {2, 3}, {0, 1}, {1, 2}, {1, 0}, 1},
    {2, 2, 3, 3, 3, {7, 75}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0}, 0}, /* from here: few channels a group */
    {2, 1, 2, 4, 2, {5, 601}, {3, 5}, {2, 2}, {1, 2}, {1, 1}, {0}, 0},
    {2, 2, 4, 2, 2, {6, 130}, {2, 4}, {1, 3}, {0, 1}, {2, 1}, {0}, 0},
    {2, 2, 3, 3, 3, {6, 40}, {2, 2}, {2, 17}, {0, 0}, {1, 1}, {0}, 0},
    {3, 2, 3, 3, 3, {4, 5, 18}, {3, 3, 3}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0}, 0},
    {2, 1, 3, 3, 3, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {1, 3, 4, 6, 2, {20}, {5}, {2}, {3}, {2}, {0}, 0},
    {3, 2, 4, 5, 1, {5, 4, 6}, {3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2}, {0}, 0},
    {2, 2, 6, 4, 1, {5, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1},
    {2, 2, 6, 4, 2, {4, 6}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, {0, 0}, 1},
    {2, 2, 16, 24, 1, {8, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 1},
    {1, 2, 4, 4, 1, {7}, {4}, {3}, {2}, {2}, {1}, 1},
    {3, 1, 3, 4, 1, {3, 3, 3}, {2, 2, 2}, {2, 1, 2}, {0, 1, 0}, {1, 1, 1}, {0, 0, 1}, 1},
};

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
        for (int t = 0; t < 4; ++t)
            if (t < 2 || problems[i].in_channels < 10)
                test_problem(types[t], (enum layout)((i + (size_t)t) % LAYOUTS), &problems[i]);
}

static void test_all_integers(void)
{
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; ++i)
        if (problems[i].in_channels < 10)
            test_integers((enum layout)(i % LAYOUTS), &problems[i]);
}

/* A NaN or an infinity in one image stays in its neighbourhood and its image. */
static void test_not_finite(double value)
{
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(4, 32, 8, 8)),
                  w = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(32, 32, 3, 3));
    struct tensor y = tensor_new(DTYPE_F32, PLAIN, SIZES(4, 32, 8, 8));
    tensor_set(&x, 3 * 32 * 64 + 3 * 64 + 4 * 8 + 4, value);
    const int64_t one[] = {1, 1};
    aclIntArray *const ones = aclCreateIntArray(one, 2);
    RUN(Convolution, x.handle, w.handle, NULL, ones, ones, ones, false, NULL, 1, y.handle, 0);
    for (int64_t i = 0; i < y.count; ++i) {
        const int64_t row = i / 8 % 8, column = i % 8;
        const int near = i >= 3 * 32 * 64 && row >= 3 && row <= 5 && column >= 3 && column <= 5;
        CHECK(isfinite(tensor_get(&y, i)) == !near, "element %lld is %g", (long long)i, tensor_get(&y, i));
        if (isinf(value) && near)
            CHECK(isinf(tensor_get(&y, i)), "element %lld is %g", (long long)i, tensor_get(&y, i));
    }
    aclDestroyIntArray(ones);
    tensor_free(&x);
    tensor_free(&w);
    tensor_free(&y);
}

/* What no product uses may be anything: pixels between those of a strided depthwise convolution. */
static void test_unused_pixels(void)
{
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 3, 5, 21)),
                  w = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(3, 1, 1, 1));
    struct tensor y = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 3, 3, 11)),
                  dy = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(2, 3, 3, 11));
    struct tensor dw = tensor_new(DTYPE_F32, PLAIN, SIZES(3, 1, 1, 1));
    for (int64_t i = 0; i < x.count; ++i)
        if (i % 21 % 2 == 1 || i / 21 % 5 % 2 == 1)
            tensor_set(&x, i, i % 3 ? (double)INFINITY : (double)NAN);
    const int64_t two[] = {2, 2}, none[] = {0, 0}, one[] = {1, 1};
    const bool wanted[] = {false, true, false};
    aclIntArray *const twos = aclCreateIntArray(two, 2), *const zeros = aclCreateIntArray(none, 2),
                       *const ones = aclCreateIntArray(one, 2);
    aclBoolArray *const mask = aclCreateBoolArray(wanted, 3);
    RUN(Convolution, x.handle, w.handle, NULL, twos, zeros, ones, false, NULL, 3, y.handle, 0);
    RUN(ConvolutionBackward, dy.handle, x.handle, w.handle, NULL, twos, zeros, ones, false, zeros, 3, mask, 0, NULL, dw.handle,
        NULL);
    for (int64_t i = 0; i < y.count; ++i)
        CHECK(isfinite(tensor_get(&y, i)), "element %lld is %g", (long long)i, tensor_get(&y, i));
    for (int64_t i = 0; i < dw.count; ++i)
        CHECK(isfinite(tensor_get(&dw, i)), "gradient %lld is %g", (long long)i, tensor_get(&dw, i));
    aclIntArray *const arrays[] = {twos, zeros, ones};
    struct tensor *const all[] = {&x, &w, &y, &dy, &dw};
    for (int i = 0; i < 3; ++i)
        aclDestroyIntArray(arrays[i]);
    aclDestroyBoolArray(mask);
    for (int i = 0; i < 5; ++i)
        tensor_free(all[i]);
}

static void test_refusals(void)
{
    struct tensor x = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(1, 3, 8, 8)),
                  w = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(4, 2, 3, 3));
    struct tensor y = tensor_new(DTYPE_F32, PLAIN, SIZES(1, 4, 8, 8));
    tensor_fill(&y, 0);
    REFUSE(Convolution, ACLNN_ERROR_PARAM, "channels", x.handle, w.handle, NULL, NULL, NULL, NULL, false, NULL, 1, y.handle, 0);
    struct tensor fits = tensor_random(DTYPE_F32, PLAIN, &seed, SIZES(4, 3, 3, 3));
    REFUSE(Convolution, ACLNN_ERROR_PARAM, "spatial size", x.handle, fits.handle, NULL, NULL, NULL, NULL, false, NULL, 1, y.handle,
           0);
    struct tensor whole = tensor_random(DTYPE_I64, PLAIN, &seed, SIZES(1, 3, 8, 8));
    REFUSE(Convolution, ACLNN_ERROR_PARAM, "one integer type for all operands", whole.handle, fits.handle, NULL, NULL, NULL, NULL,
           false, NULL, 1, y.handle, 0);
    struct tensor *const all[] = {&x, &w, &y, &fits, &whole};
    for (int i = 0; i < 5; ++i)
        tensor_free(all[i]);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA({
        test_all();
        test_not_finite(NAN);
        test_not_finite(INFINITY);
        test_unused_pixels();
    })
    test_all_integers();
    test_refusals();
    return check_result();
}
