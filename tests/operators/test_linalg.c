/* Decompositions: products of the factors give the matrix, what has no decomposition says so, and what the library behind them may do
 * to a process. Skips where there is no LAPACK and NPU_LAPACK names none. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aclnn/math/lapack.h"
#include "aclnnop/all_operators.h"
#include "operand.h"

static uint64_t state = 3;

static int entries(const char *folder)
{
    DIR *const d = opendir(folder);
    int count = 0;
    while (d && readdir(d))
        ++count;
    if (d)
        closedir(d);
    return count;
}

/* In a process of its own, since a process looks for the library once. */
static void refused(const char *library, const char *part)
{
    const pid_t child = fork();
    int status = -1;
    if (child == 0) {
        setenv("NPU_LAPACK", library, 1);
        CHECK_FAILS(lapack_open("aclnnSvd"), ERROR_RT_FEATURE_UNSUPPORTED, part);
        CHECK_FAILS(lapack_open("aclnnQr"), ERROR_RT_FEATURE_UNSUPPORTED, "aclnnQr");
        _exit(check_failures != 0);
    }
    waitpid(child, &status, 0);
    CHECK(status == 0, "%s: status %d", library, status);
}

static void check_loading(void)
{
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    const int threads = entries("/proc/self/task");
    CHECK_OK(lapack_open("test"));
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&before, &after), "the affinity mask has changed");
    CHECK_INT(entries("/proc/self/task"), threads);
    CHECK(lapack_fits(46340, 46340) && lapack_fits(INT32_MAX, 1) && !lapack_fits(46341, 46341) && !lapack_fits(0, (int64_t)1 << 31),
          "lapack_fits");
}

/* --- dense arrays, row by row ------------------------------------------------------------------------------------------------ */

static struct operand filled(enum dtype dtype, enum layout layout, int64_t rows, int64_t columns, double diagonal)
{
    struct operand o = operand_make(dtype, 2, (int64_t[]){rows, columns}, layout);
    for (int64_t i = 0; i < o.count; ++i)
        operand_set(&o, i, (double)(check_random(&state) % 2001) / 1000 - 1 + (i / columns == i % columns ? diagonal : 0));
    return o;
}

static struct operand empty(enum dtype dtype, enum layout layout, int64_t rows, int64_t columns)
{
    return operand_make(dtype, 2, (int64_t[]){rows, columns}, layout);
}

static double at(const struct operand *o, int64_t i, int64_t j) { return operand_get(o, i * o->sizes[1] + j); }

enum form { PLAIN, TURNED }; /* x, x^T */
/* Whether x diag(s) y is `wanted` (NULL: an identity); s may be NULL. Of large matrices some rows are looked at. */
static void check_product(const struct operand *x, enum form turn_x, const struct operand *s, const struct operand *y,
                          enum form turn_y, const struct operand *wanted, const char *what)
{
    const double noise = x->dtype == DTYPE_F64 || x->dtype == DTYPE_C128 ? 1e-11 : 1e-3;
    const int64_t rows = x->sizes[turn_x], inner = s ? s->sizes[0] : x->sizes[!turn_x], columns = y->sizes[!turn_y];
    for (int64_t i = 0; i < rows; i += 1 + rows / 20)
        for (int64_t j = 0; j < columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < inner; ++k)
                sum += (turn_x ? at(x, k, i) : at(x, i, k)) * (s ? operand_get(s, k) : 1) * (turn_y ? at(y, j, k) : at(y, k, j));
            const double right = wanted ? at(wanted, i, j) : i == j;
            CHECK(fabs(sum - right) <= noise * (double)(inner + 1), "%s, %s, element %lld %lld of %lld columns: %g, not %g", what,
                  dtype_name(x->dtype), (long long)i, (long long)j, (long long)columns, sum, right);
        }
}

static void square(enum dtype dtype, enum layout layout, int64_t n)
{
    struct operand a = filled(dtype, layout, n, n, 3 + sqrt((double)n)), inverse = empty(dtype, (layout + 1) % LAYOUT_COUNT, n, n);
    struct operand positive = empty(dtype, layout, n, n), factor = empty(dtype, (layout + 2) % LAYOUT_COUNT, n, n),
                   copy = empty(dtype, layout, n, n);
    struct operand b = filled(dtype, layout, n, 3, 0), x = empty(dtype, (layout + 1) % LAYOUT_COUNT, n, 3);
    CHECK_OK(RUN(aclnnInverse, a.tensor, inverse.tensor));
    check_product(&a, PLAIN, NULL, &inverse, PLAIN, NULL, "inverse");
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
            operand_set(&positive, i * n + j, at(&a, i, j) + at(&a, j, i) + (i == j ? (double)n : 0));
    for (int upper = 0; upper < 2; ++upper) {
        CHECK_OK(RUN(aclnnLinalgCholesky, positive.tensor, upper, factor.tensor));
        check_product(&factor, upper ? TURNED : PLAIN, NULL, &factor, upper ? PLAIN : TURNED, &positive, "Cholesky");
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = i + 1; j < n; ++j)
                CHECK((upper ? at(&factor, j, i) : at(&factor, i, j)) == 0, "Cholesky: the other triangle isn't 0");
        for (int transpose = 0; transpose < 2; ++transpose) {
            CHECK_OK(RUN(aclnnTriangularSolve, b.tensor, factor.tensor, upper, transpose, false, x.tensor, copy.tensor));
            check_product(&factor, transpose ? TURNED : PLAIN, NULL, &x, PLAIN, &b, "triangular system");
        }
    }
    struct operand sign = operand_make(dtype, 0, NULL, LAYOUT_PLAIN), size = sign, other = sign;
    size = operand_make(dtype == DTYPE_C64 ? DTYPE_F32 : dtype == DTYPE_C128 ? DTYPE_F64 : dtype, 0, NULL, LAYOUT_PLAIN);
    other = operand_make(size.dtype, 0, NULL, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnSlogdet, positive.tensor, sign.tensor, size.tensor));
    CHECK_NEAR(operand_get(&sign, 0), 1, 1e-6);
    CHECK_OK(RUN(aclnnSlogdet, factor.tensor, sign.tensor, other.tensor));
    CHECK_NEAR(operand_get(&size, 0), 2 * operand_get(&other, 0), 1e-4);
    struct operand *const all[] = {&a, &inverse, &positive, &factor, &copy, &b, &x, &sign, &size, &other};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        operand_free(all[i]);
}

static void rectangle(enum dtype dtype, enum layout layout, int64_t rows, int64_t columns)
{
    const int64_t least = rows < columns ? rows : columns;
    struct operand a = filled(dtype, layout, rows, columns, 0);
    struct operand sigma = operand_make(dtype == DTYPE_C64    ? DTYPE_F32
                                        : dtype == DTYPE_C128 ? DTYPE_F64
                                                              : dtype,
                                        1, &least, layout);
    for (int full = 0; full < 2; ++full) {
        struct operand q = empty(dtype, (layout + 1) % LAYOUT_COUNT, rows, full ? rows : least),
                       r = empty(dtype, (layout + 2) % LAYOUT_COUNT, full ? rows : least, columns),
                       u = empty(dtype, (layout + 3) % LAYOUT_COUNT, rows, full ? rows : least),
                       v = empty(dtype, (layout + 1) % LAYOUT_COUNT, columns, full ? columns : least);
        CHECK_OK(RUN(aclnnLinalgQr, a.tensor, full, q.tensor, r.tensor));
        check_product(&q, PLAIN, NULL, &r, PLAIN, &a, "QR");
        check_product(&q, TURNED, NULL, &q, PLAIN, NULL, "Q");
        CHECK_OK(RUN(aclnnSvd, a.tensor, full, true, sigma.tensor, u.tensor, v.tensor));
        check_product(&u, PLAIN, &sigma, &v, TURNED, &a, "singular values");
        check_product(&u, TURNED, NULL, &u, PLAIN, NULL, "u");
        check_product(&v, TURNED, NULL, &v, PLAIN, NULL, "v");
        struct operand *const all[] = {&q, &r, &u, &v};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
            operand_free(all[i]);
    }
    for (int64_t k = 1; k < least; ++k)
        CHECK(operand_get(&sigma, k) <= operand_get(&sigma, k - 1), "singular values aren't in order");
    operand_free(&a);
    operand_free(&sigma);
}

/* Results are NaN, and there is one. */
static void no_decomposition(double wrong)
{
    enum { N = 40 };
    const int64_t n = N;
    struct operand a = filled(DTYPE_F64, LAYOUT_PLAIN, N, N, 9), out = empty(DTYPE_F64, LAYOUT_PLAIN, N, N),
                   other = empty(DTYPE_F64, LAYOUT_PLAIN, N, N), sigma = operand_make(DTYPE_F64, 1, &n, LAYOUT_PLAIN);
    operand_set(&a, 7 * N + 7, wrong);
    CHECK_OK(RUN(aclnnSvd, a.tensor, true, true, sigma.tensor, out.tensor, other.tensor));
    CHECK(isnan(operand_get(&sigma, 0)) && isnan(operand_get(&sigma, N - 1)) && isnan(at(&out, 3, 4)), "Svd with %g", wrong);
    CHECK_OK(RUN(aclnnSvd, a.tensor, false, false, sigma.tensor, NULL, NULL));
    CHECK(isnan(operand_get(&sigma, 0)), "Svd with %g, values only", wrong);
    CHECK_OK(RUN(aclnnLinalgQr, a.tensor, 0, out.tensor, other.tensor));
    CHECK(isnan(at(&other, N - 1, N - 1)), "QR with %g", wrong);
    CHECK_OK(RUN(aclnnInverse, a.tensor, out.tensor));
    CHECK_OK(RUN(aclnnLinalgCholesky, a.tensor, false, out.tensor));
    if (isnan(wrong))
        CHECK(isnan(at(&out, N - 1, N - 1)), "Cholesky with NaN");
    struct operand *const all[] = {&a, &out, &other, &sigma};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        operand_free(all[i]);
}

static void named_elements(void)
{
    enum { N = 5 };
    struct operand a = empty(DTYPE_F64, LAYOUT_PLAIN, N, N), out = empty(DTYPE_F64, LAYOUT_TRANSPOSED, N, N);
    for (int64_t k = 0; k < N; ++k)
        operand_set(&a, k * N + k, k == 3 ? -1 : 4);
    CHECK_OK(RUN(aclnnLinalgCholesky, a.tensor, true, out.tensor));
    CHECK(at(&out, 2, 2) == 2 && isnan(at(&out, 3, 3)) && isnan(at(&out, 4, 4)) && at(&out, 4, 3) == 0, "not positive");
    operand_set(&a, 3 * N + 3, 0);
    CHECK_OK(RUN(aclnnInverse, a.tensor, out.tensor));
    CHECK(!isnan(at(&out, 2, 2)) && isnan(at(&out, 3, 3)) && isnan(at(&out, 4, 4)), "singular");
    struct operand sign = operand_make(DTYPE_F64, 0, NULL, LAYOUT_PLAIN), size = operand_make(DTYPE_F64, 0, NULL, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnSlogdet, a.tensor, sign.tensor, size.tensor));
    CHECK(operand_get(&sign, 0) == 0 && operand_get(&size, 0) == -INFINITY, "determinant 0");
    struct operand *const all[] = {&a, &out, &sign, &size};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        operand_free(all[i]);
}

/* Vectors of a matrix without elements are an identity. */
static void no_elements(void)
{
    const int64_t zero = 0;
    struct operand a = empty(DTYPE_F32, LAYOUT_PLAIN, 0, 3), u = empty(DTYPE_F32, LAYOUT_PLAIN, 0, 0),
                   v = filled(DTYPE_F32, LAYOUT_TRANSPOSED, 3, 3, 0), sigma = operand_make(DTYPE_F32, 1, &zero, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnSvd, a.tensor, true, true, sigma.tensor, u.tensor, v.tensor));
    check_product(&v, PLAIN, NULL, &v, PLAIN, NULL, "v of nothing");
    CHECK_INT(at(&v, 1, 1), 1);
    struct operand *const all[] = {&a, &u, &v, &sigma};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        operand_free(all[i]);
}

static void too_large(void)
{
    const int64_t n = 20000;
    float number = 0;
    struct operand a = {.dtype = DTYPE_F32, .ndim = 2, .sizes = {n, n}, .strides = {0, 0}, .count = n * n, .span = 1};
    a.memory = (char *)&number;
    operand_handle(&a);
    struct operand sigma = operand_make(DTYPE_F32, 1, &n, LAYOUT_PLAIN);
    CHECK_FAILS(RUN(aclnnSvd, a.tensor, false, false, sigma.tensor, NULL, NULL), ACLNN_ERROR_PARAM, "10000");
    operand_drop(&a);
    operand_free(&sigma);
}

int main(void)
{
    refused("/nowhere/liblapack.so", "scipy-openblas32");
    refused("libm.so.6", "no function");
    if (!getenv("NPU_LAPACK") && lapack_open("test") != 0)
        return 77;
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    check_loading();
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_C64, DTYPE_C128};
    for (int t = 0; t < 4; ++t)
        for (enum layout layout = 0; layout < LAYOUT_COUNT; ++layout) {
            for (int64_t n = 1; n < 20; n += 1 + n)
                square(types[t], layout, n);
            for (int64_t rows = 1; rows < 12; rows += 5)
                for (int64_t columns = 1; columns < 12; columns += 5)
                    rectangle(types[t], layout, rows, columns);
        }
    square(DTYPE_F64, LAYOUT_PLAIN, 300);
    rectangle(DTYPE_F64, LAYOUT_PLAIN, 300, 300);
    rectangle(DTYPE_C128, LAYOUT_PLAIN, 30, 200);
    no_decomposition(NAN);
    no_decomposition(INFINITY);
    named_elements();
    no_elements();
    too_large();
    return check_result();
}
