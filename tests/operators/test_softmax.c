/* Softmax, LogSoftmax and their gradients against double formulas, along every dimension. */
#include "operators/tensors.h"

static uint64_t seed = 5;

static void test_softmax(enum dtype dtype, enum layout layout, int ndim, const int64_t *sizes, int dim, bool logarithm,
                         double scale)
{
    struct tensor x = tensor_random(dtype, layout, &seed, ndim, sizes), y = tensor_new(dtype, layout, ndim, sizes);
    struct tensor dy = tensor_random(dtype, layout, &seed, ndim, sizes), dx = tensor_new(dtype, layout, ndim, sizes);
    for (int64_t i = 0; i < x.count; ++i)
        tensor_set(&x, i, tensor_get(&x, i) * scale);
    if (logarithm) {
        RUN(LogSoftmax, x.handle, dim, y.handle);
        RUN(LogSoftmaxBackward, dy.handle, y.handle, dim, dx.handle);
    } else {
        RUN(Softmax, x.handle, dim, y.handle);
        RUN(SoftmaxBackward, dy.handle, y.handle, dim, dx.handle);
    }
    const int along = dim < 0 ? dim + ndim : dim;
    int64_t inner = 1;
    for (int d = along + 1; d < ndim; ++d)
        inner *= sizes[d];
    const int64_t depth = ndim ? sizes[along] : 1;
    const double tolerance = (logarithm ? fmax(1, scale) : 1) * 2 * tensor_tolerance(dtype);
    for (int64_t row = 0; row < x.count / depth; ++row) {
        const int64_t base = row / inner * depth * inner + row % inner;
        double best = -INFINITY, sum = 0, dot = 0, plain = 0;
        for (int64_t i = 0; i < depth; ++i)
            best = fmax(best, tensor_get(&x, base + i * inner));
        for (int64_t i = 0; i < depth; ++i)
            sum += exp(tensor_get(&x, base + i * inner) - best);
        for (int64_t i = 0; i < depth; ++i) {
            const double s = tensor_get(&x, base + i * inner) - best, p = exp(s) / sum;
            CHECK_NEAR(tensor_get(&y, base + i * inner), logarithm ? s - log(sum) : p, tolerance);
            dot += tensor_get(&dy, base + i * inner) * tensor_get(&y, base + i * inner);
            plain += tensor_get(&dy, base + i * inner);
        }
        for (int64_t i = 0; i < depth; ++i) {
            const double g = tensor_get(&dy, base + i * inner), v = tensor_get(&y, base + i * inner);
            CHECK_NEAR(tensor_get(&dx, base + i * inner), logarithm ? g - exp(v) * plain : (g - dot) * v,
                       4 * tensor_tolerance(dtype));
        }
    }
    struct tensor *const all[] = {&x, &y, &dy, &dx};
    for (int i = 0; i < 4; ++i)
        tensor_free(all[i]);
}

static void test_extremes(void)
{
    struct tensor x = tensor_new(DTYPE_F32, PLAIN, SIZES(5, 3)), y = tensor_new(DTYPE_F32, PLAIN, SIZES(5, 3));
    static const double rows[5][3] = {
        {1e30, -1e30, 0}, {-INFINITY, 0, 0}, {-INFINITY, -INFINITY, -INFINITY}, {NAN, 1, 2}, {-95, 0, -103}};
    for (int i = 0; i < 15; ++i)
        tensor_set(&x, i, rows[i / 3][i % 3]);
    RUN(Softmax, x.handle, 1, y.handle);
    CHECK_NEAR(tensor_get(&y, 0), 1, 0);
    CHECK_NEAR(tensor_get(&y, 1), 0, 0);
    CHECK_NEAR(tensor_get(&y, 3), 0, 0);
    CHECK_NEAR(tensor_get(&y, 4), .5, 0);
    for (int i = 6; i < 12; ++i)
        CHECK(isnan(tensor_get(&y, i)), "element %d is %g", i, tensor_get(&y, i));
    CHECK(fabs(tensor_get(&y, 12) / exp(-95) - 1) < 1e-3, "exp(-95) came out as %g", tensor_get(&y, 12));
    RUN(LogSoftmax, x.handle, 0, y.handle);
    tensor_free(&x);
    tensor_free(&y);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    for (int t = 0; t < 4; ++t)
        for (int logarithm = 0; logarithm < 2; ++logarithm) {
            for (int dim = -1; dim < 2; ++dim)
                test_softmax(types[t], (enum layout)((dim + 1 + t) % LAYOUTS), SIZES(3, 5, 70), dim, logarithm, 3);
            test_softmax(types[t], PLAIN, SIZES(128, 10), 1, logarithm, 20);
            test_softmax(types[t], PLAIN, SIZES(4, 1000), -1, logarithm, 30);
            test_softmax(types[t], PLAIN, 0, NULL, 0, logarithm, 1);
        }
    test_extremes();
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    return check_result();
}
