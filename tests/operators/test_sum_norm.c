/* Norms of rows that may be sums, and their gradients, against plain sums in double. */
#include "tensors.h"

static uint64_t seed = 3;

struct reference {
    int64_t rows, width;
    double *x, *y, *mean, *rstd;
};

/* Normalises x (rows x width, already summed). */
static void reference_norm(struct reference *r, const struct tensor *gamma, const struct tensor *beta, bool centered, double plus,
                           double eps)
{
    for (int64_t k = 0; k < r->rows; ++k) {
        const double *const x = r->x + k * r->width;
        double mean = 0, square = 0;
        for (int64_t i = 0; i < r->width && centered; ++i)
            mean += x[i] / (double)r->width;
        for (int64_t i = 0; i < r->width; ++i)
            square += (x[i] - mean) * (x[i] - mean) / (double)r->width;
        r->mean[k] = mean;
        r->rstd[k] = 1 / sqrt(square + eps);
        for (int64_t i = 0; i < r->width; ++i)
            r->y[k * r->width + i] = (x[i] - mean) * r->rstd[k] * (tensor_get(gamma, i) + plus) + (beta ? tensor_get(beta, i) : 0);
    }
}

static struct reference reference_new(int64_t rows, int64_t width)
{
    return (struct reference){rows,
                              width,
                              calloc((size_t)(rows * width), 8),
                              calloc((size_t)(rows * width), 8),
                              calloc((size_t)rows, 8),
                              calloc((size_t)rows, 8)};
}

static void reference_free(struct reference *r)
{
    free(r->x);
    free(r->y);
    free(r->mean);
    free(r->rstd);
}

static void compare(const struct tensor *t, const double *expected, double tolerance)
{
    for (int64_t i = 0; i < t->count; ++i)
        CHECK_NEAR(tensor_get(t, i), expected[i], tolerance);
}

struct set {
    enum dtype dtype;
    double tolerance;
    int64_t rows, width;
    struct tensor x1, x2, gamma, beta, bias, y, y2, sum, mean, rstd, dy, dsum, dx, dgamma, dbeta;
};

static struct set make(enum dtype dtype, enum layout layout, int64_t rows, int64_t width)
{
    const enum dtype wide = dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    struct set s = {.dtype = dtype, .tolerance = 8 * tensor_tolerance(dtype), .rows = rows, .width = width};
    struct tensor *const random[] = {&s.x1, &s.x2, &s.dy, &s.dsum}, *const results[] = {&s.y, &s.sum, &s.dx};
    struct tensor *const rows_of_1[] = {&s.mean, &s.rstd}, *const parameters[] = {&s.gamma, &s.beta, &s.bias};
    for (int i = 0; i < 4; ++i)
        *random[i] = tensor_random(dtype, layout, &seed, SIZES(2, rows / 2, width));
    for (int i = 0; i < 3; ++i)
        *results[i] = tensor_new(dtype, layout, SIZES(2, rows / 2, width));
    for (int i = 0; i < 2; ++i)
        *rows_of_1[i] = tensor_new(wide, PLAIN, SIZES(2, rows / 2, 1));
    for (int i = 0; i < 3; ++i)
        *parameters[i] = tensor_random(dtype, PLAIN, &seed, SIZES(width));
    s.y2 = tensor_new(wide, layout, SIZES(2, rows / 2, width));
    s.dgamma = tensor_new(wide, PLAIN, SIZES(width));
    s.dbeta = tensor_new(wide, PLAIN, SIZES(width));
    return s;
}

static void drop(struct set *s)
{
    struct tensor *const all[] = {&s->x1,   &s->x2,   &s->gamma, &s->beta, &s->bias, &s->y,      &s->y2,   &s->sum,
                                  &s->mean, &s->rstd, &s->dy,    &s->dsum, &s->dx,   &s->dgamma, &s->dbeta};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        tensor_free(all[i]);
}

/* Expected gradients, by the formula of the norm's derivative. */
static void check_gradients(struct set *s, const struct reference *r, bool centered, bool with_sum)
{
    double *const dgamma = calloc((size_t)s->width, 8), *const dbeta = calloc((size_t)s->width, 8);
    for (int64_t k = 0; k < s->rows; ++k) {
        double plain = 0, weighted = 0;
        for (int64_t i = 0; i < s->width; ++i) {
            const int64_t at = k * s->width + i;
            const double h = (r->x[at] - r->mean[k]) * r->rstd[k], g = tensor_get(&s->dy, at);
            plain += centered ? g * tensor_get(&s->gamma, i) / (double)s->width : 0;
            weighted += g * tensor_get(&s->gamma, i) * h / (double)s->width;
            dgamma[i] += g * h;
            dbeta[i] += g;
        }
        for (int64_t i = 0; i < s->width; ++i) {
            const int64_t at = k * s->width + i;
            const double h = (r->x[at] - r->mean[k]) * r->rstd[k];
            const double dx = (tensor_get(&s->dy, at) * tensor_get(&s->gamma, i) - plain - h * weighted) * r->rstd[k];
            CHECK_NEAR(tensor_get(&s->dx, at), dx + (with_sum ? tensor_get(&s->dsum, at) : 0), s->tolerance * fmax(1, r->rstd[k]));
        }
    }
    compare(&s->dgamma, dgamma, 4 * s->tolerance);
    if (centered)
        compare(&s->dbeta, dbeta, 4 * s->tolerance);
    free(dgamma);
    free(dbeta);
}

static void sum_up(struct reference *r, const struct set *s, double alpha, bool second, bool bias)
{
    for (int64_t i = 0; i < r->rows * r->width; ++i)
        r->x[i] =
            alpha * tensor_get(&s->x1, i) + (second ? tensor_get(&s->x2, i) : 0) + (bias ? tensor_get(&s->bias, i % r->width) : 0);
}

static void test_rms(enum dtype dtype, enum layout layout, int64_t rows, int64_t width)
{
    struct set s = make(dtype, layout, rows, width);
    struct reference r = reference_new(rows, width);
    sum_up(&r, &s, 1, false, false);
    reference_norm(&r, &s.gamma, NULL, false, 0, 1e-5);
    RUN(RmsNorm, s.x1.handle, s.gamma.handle, 1e-5, s.y.handle, s.rstd.handle);
    compare(&s.y, r.y, s.tolerance);
    compare(&s.rstd, r.rstd, 1e-5);
    RUN(RmsNormGrad, s.dy.handle, s.x1.handle, s.rstd.handle, s.gamma.handle, s.dx.handle, s.dgamma.handle);
    check_gradients(&s, &r, false, false);
    reference_norm(&r, &s.gamma, NULL, false, 1, 1e-6);
    RUN(GemmaRmsNorm, s.x1.handle, s.gamma.handle, 1e-6, s.y.handle, s.rstd.handle);
    compare(&s.y, r.y, s.tolerance);
    sum_up(&r, &s, 1, true, false);
    reference_norm(&r, &s.gamma, NULL, false, 0, 1e-5);
    RUN(AddRmsNorm, s.x1.handle, s.x2.handle, s.gamma.handle, 1e-5, s.y.handle, s.rstd.handle, s.sum.handle);
    compare(&s.y, r.y, s.tolerance);
    compare(&s.sum, r.x, s.tolerance);
    RUN(AddRmsNormCast, s.x1.handle, s.x2.handle, s.gamma.handle, 1e-5, s.y2.handle, s.y.handle, s.rstd.handle, s.sum.handle);
    compare(&s.y, r.y, s.tolerance);
    compare(&s.y2, r.y, s.tolerance);
    RUN(InplaceAddRmsNorm, s.x1.handle, s.x2.handle, s.gamma.handle, 1e-5, s.rstd.handle);
    compare(&s.x1, r.y, s.tolerance);
    compare(&s.x2, r.x, s.tolerance);
    reference_free(&r);
    drop(&s);
}

static void test_layer(enum dtype dtype, enum layout layout, int64_t rows, int64_t width)
{
    struct set s = make(dtype, layout, rows, width);
    struct reference r = reference_new(rows, width);
    aclIntArray *const shape = aclCreateIntArray(&width, 1);
    sum_up(&r, &s, 1, false, false);
    reference_norm(&r, &s.gamma, &s.beta, true, 0, 1e-5);
    RUN(FastLayerNorm, s.x1.handle, shape, s.gamma.handle, s.beta.handle, 1e-5, s.y.handle, s.mean.handle, s.rstd.handle);
    compare(&s.y, r.y, s.tolerance);
    sum_up(&r, &s, 1.5, true, false);
    reference_norm(&r, &s.gamma, &s.beta, true, 0, 1e-5);
    RUN(DeepNorm, s.x1.handle, s.x2.handle, s.beta.handle, s.gamma.handle, 1.5, 1e-5, s.mean.handle, s.rstd.handle, s.y.handle);
    compare(&s.y, r.y, s.tolerance);
    compare(&s.mean, r.mean, 1e-5);
    sum_up(&r, &s, 1, true, true);
    reference_norm(&r, &s.gamma, &s.beta, true, 0, 1e-5);
    RUN(AddLayerNorm, s.x1.handle, s.x2.handle, s.gamma.handle, s.beta.handle, s.bias.handle, 1e-5, true, s.y.handle, s.mean.handle,
        s.rstd.handle, s.sum.handle);
    compare(&s.y, r.y, s.tolerance);
    compare(&s.sum, r.x, s.tolerance);
    sum_up(&r, &s, 1, true, false);
    reference_norm(&r, &s.gamma, &s.beta, true, 0, 1e-5);
    RUN(AddLayerNorm, s.x1.handle, s.x2.handle, s.gamma.handle, s.beta.handle, NULL, 1e-5, false, s.y.handle, s.mean.handle,
        s.rstd.handle, NULL);
    compare(&s.y, r.y, s.tolerance);
    RUN(AddLayerNormGrad, s.dy.handle, s.x1.handle, s.x2.handle, s.rstd.handle, s.mean.handle, s.gamma.handle, s.dsum.handle,
        s.dx.handle, s.dgamma.handle, s.dbeta.handle);
    check_gradients(&s, &r, true, true);
    aclDestroyIntArray(shape);
    reference_free(&r);
    drop(&s);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    static const int64_t shapes[][2] = {{6, 129}, {40, 16}, {2, 1000}};
    for (int t = 0; t < 4; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout)
            for (int i = 0; i < 3; ++i) {
                test_rms(types[t], (enum layout)layout, shapes[i][0], shapes[i][1]);
                test_layer(types[t], (enum layout)layout, shapes[i][0], shapes[i][1]);
            }
}

static void test_refusals(void)
{
    struct tensor x = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 3)), gamma = tensor_new(DTYPE_F32, PLAIN, SIZES(4)),
                  rstd = tensor_new(DTYPE_F32, PLAIN, SIZES(2, 1));
    REFUSE(RmsNorm, ACLNN_ERROR_PARAM, "gamma is f32[4]", x.handle, gamma.handle, 1e-5, x.handle, rstd.handle);
    REFUSE(RmsNorm, ACLNN_ERROR_NULLPTR, "gamma", x.handle, NULL, 1e-5, x.handle, rstd.handle);
    tensor_free(&x);
    tensor_free(&gamma);
    tensor_free(&rstd);
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    test_refusals();
    return check_result();
}
