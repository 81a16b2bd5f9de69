/* Operators over lists of tensors: every row of foreach.def against the elementwise operator's reference, many small and one
 * large tensor, in place, types, errors. */
#include "aclnnop/all_operators.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"
#include "operand.h"

enum { TENSORS = 40 };
enum rule { RULE_PROMOTE, RULE_FLOAT };

/* Shapes from empty to larger than one piece of work. */
static void make_list(struct operand *tensors, enum dtype dtype, int layout, double start)
{
    for (int i = 0; i < TENSORS; ++i) {
        const int64_t sizes[] = {i % 5, i == 7 ? 9000 : 1 + i % 3};
        tensors[i] = operand_make(dtype, 2, sizes, (enum layout)((layout + i) % LAYOUT_COUNT));
        for (int64_t k = 0; k < tensors[i].count; ++k)
            operand_set(&tensors[i], k, start + (double)((k * 7 + i) % 11) * 0.07);
    }
}

static aclTensorList *list_of(const struct operand *tensors)
{
    aclTensor *handles[TENSORS];
    for (int i = 0; i < TENSORS; ++i)
        handles[i] = tensors[i].tensor;
    return aclCreateTensorList(handles, TENSORS);
}

static void free_list(struct operand *tensors, aclTensorList *list)
{
    aclDestroyTensorList(list); /* and its tensors */
    for (int i = 0; i < TENSORS; ++i)
        free(tensors[i].memory);
}

static double tolerance(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 1.6e-2 : dtype == DTYPE_F16 ? 2e-3 : dtype == DTYPE_F32 ? 2e-6 : 1e-14;
}

static double reference_1(enum elementwise_id kernel, double x)
{
    switch (kernel) {
    case ELEMENTWISE_abs: return fabs(x);
    case ELEMENTWISE_acos: return acos(x);
    case ELEMENTWISE_asin: return asin(x);
    case ELEMENTWISE_atan: return atan(x);
    case ELEMENTWISE_cos: return cos(x);
    case ELEMENTWISE_cosh: return cosh(x);
    case ELEMENTWISE_erf: return erf(x);
    case ELEMENTWISE_erfc: return erfc(x);
    case ELEMENTWISE_exp: return exp(x);
    case ELEMENTWISE_expm1: return expm1(x);
    case ELEMENTWISE_log: return log(x);
    case ELEMENTWISE_log10: return log10(x);
    case ELEMENTWISE_log1p: return log1p(x);
    case ELEMENTWISE_log2: return log2(x);
    case ELEMENTWISE_neg: return -x;
    case ELEMENTWISE_reciprocal: return 1 / x;
    case ELEMENTWISE_sigmoid: return 1 / (1 + exp(-x));
    case ELEMENTWISE_sign: return (x > 0) - (x < 0);
    case ELEMENTWISE_sin: return sin(x);
    case ELEMENTWISE_sinh: return sinh(x);
    case ELEMENTWISE_sqrt: return sqrt(x);
    case ELEMENTWISE_tan: return tan(x);
    case ELEMENTWISE_tanh: return tanh(x);
    default: return 1e300;
    }
}

static double reference_2(enum elementwise_id kernel, double x, double y)
{
    switch (kernel) {
    case ELEMENTWISE_add: return x + y;
    case ELEMENTWISE_sub: return x - y;
    case ELEMENTWISE_mul: return x * y;
    case ELEMENTWISE_div: return x / y;
    case ELEMENTWISE_maximum: return fmax(x, y);
    case ELEMENTWISE_minimum: return fmin(x, y);
    case ELEMENTWISE_pow: return pow(x, y);
    default: return 1e300;
    }
}

#define EACH(out, expression)                                                                       \
    for (int i = 0; i < TENSORS; ++i)                                                               \
        for (int64_t k = 0; k < (out)[i].count; ++k) {                                              \
            const double value = operand_get(&(out)[i], k), expected = operand_rounded((out)[i].dtype, (expression)); \
            CHECK(check_near(value, expected, tolerance((out)[i].dtype)), "%s %s tensor %d element %lld: %.9g, not %.9g", name, \
                  dtype_name((out)[i].dtype), i, (long long)k, value, expected);                    \
        }

typedef int (*phase_1_unary)(const aclTensorList *, aclTensorList *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_list)(const aclTensorList *, const aclTensorList *, aclTensorList *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_scalar)(const aclTensorList *, const aclScalar *, aclTensorList *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_device)(const aclTensorList *, const aclTensor *, aclTensorList *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_scalars)(const aclTensorList *, const aclScalarList *, aclTensorList *, uint64_t *, aclOpExecutor **);

struct row {
    const char *name;
    enum elementwise_id kernel;
    phase_2_fn phase_2;
    phase_1_unary unary;
    phase_1_list list;
    phase_1_scalar scalar;
    phase_1_device device;
    phase_1_scalars scalars;
};

#define ROW(op, kernel_, member_, type) \
    {.name = #op, .kernel = ELEMENTWISE_##kernel_, .phase_2 = aclnn##op, .member_ = (type)(void *)aclnn##op##GetWorkspaceSize},
static const struct row rows[] = {
#define HAND_WRITTEN(op)
#define FOREACH_UNARY(op, c, kernel, rule) ROW(op, kernel, unary, phase_1_unary)
#define FOREACH_LIST(op, c, kernel, rule) ROW(op, kernel, list, phase_1_list)
#define FOREACH_SCALAR(op, c, kernel, rule) ROW(op, kernel, scalar, phase_1_scalar)
#define FOREACH_DEVICE_SCALAR(op, c, kernel, rule) ROW(op, kernel, device, phase_1_device)
#define FOREACH_SCALAR_LIST(op, c, kernel, rule) ROW(op, kernel, scalars, phase_1_scalars)
#include "aclnn/nn/foreach.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void test_row(const struct row *row, enum dtype dtype, int inplace)
{
    struct operand a[TENSORS], b[TENSORS], out[TENSORS], kept[TENSORS];
    make_list(a, dtype, 0, 0.1);
    make_list(kept, dtype, 0, 0.1);
    make_list(b, dtype, 1, 0.2);
    make_list(out, dtype, 2, 0);
    aclTensorList *const list_a = list_of(a), *const list_b = list_of(b), *const list_out = list_of(out),
                         *const list_kept = list_of(kept);
    aclTensorList *const to = inplace ? list_a : list_out;
    const struct operand *const result = inplace ? a : out;
    aclScalar *scalars[TENSORS];
    for (int i = 0; i < TENSORS; ++i)
        scalars[i] = scalar_f64(0.25 + i);
    aclScalarList *const scalar_list = aclCreateScalarList(scalars, TENSORS);
    aclScalar *const quarter = scalar_f64(0.25);
    const int64_t one[] = {1};
    struct operand device = operand_make(DTYPE_F32, 1, one, LAYOUT_PLAIN);
    operand_set(&device, 0, 0.25);
    uint64_t bytes = 0;
    aclOpExecutor *executor = NULL;
    const int code = row->unary    ? row->unary(list_a, to, &bytes, &executor)
                     : row->list   ? row->list(list_a, list_b, to, &bytes, &executor)
                     : row->scalar ? row->scalar(list_a, quarter, to, &bytes, &executor)
                     : row->device ? row->device(list_a, device.tensor, to, &bytes, &executor)
                                   : row->scalars(list_a, scalar_list, to, &bytes, &executor);
    CHECK_OK(code);
    if (code == 0)
        CHECK_OK(operand_launch(row->phase_2, bytes, executor));
    const char *const name = row->name;
    if (row->unary)
        EACH(result, reference_1(row->kernel, operand_get(&kept[i], k)))
    else
        EACH(result, reference_2(row->kernel, operand_get(&kept[i], k),
                                 row->list      ? operand_get(&b[i], k)
                                 : row->scalars ? 0.25 + i
                                                : 0.25))
    aclDestroyScalar(quarter);
    aclDestroyScalarList(scalar_list);
    operand_free(&device);
    free_list(a, list_a);
    free_list(b, list_b);
    free_list(out, list_out);
    free_list(kept, list_kept);
}

static void test_hand_written(enum dtype dtype)
{
    struct operand a[TENSORS], b[TENSORS], c[TENSORS], out[TENSORS];
    make_list(a, dtype, 0, 0.1);
    make_list(b, dtype, 1, 0.2);
    make_list(c, dtype, 3, 0.4);
    make_list(out, dtype, 2, 0);
    aclTensorList *const x1 = list_of(a), *const x2 = list_of(b), *const x3 = list_of(c), *const to = list_of(out);
    aclScalar *const s = scalar_f64(0.3), *const two = scalar_i64(2), *const down = scalar_i64(2);
    const int64_t sizes[] = {TENSORS};
    struct operand each = operand_make(DTYPE_F32, 1, sizes, LAYOUT_PLAIN);
    for (int i = 0; i < TENSORS; ++i)
        operand_set(&each, i, 0.5 + i);
#define X operand_get(&a[i], k)
#define Y operand_get(&b[i], k)
#define Z operand_get(&c[i], k)
    const char *name = "AddListV2";
    CHECK_OK(RUN(aclnnForeachAddListV2, x1, x2, s, to));
    EACH(out, X + 0.3 * Y)
    name = "SubListV2";
    CHECK_OK(RUN(aclnnForeachSubListV2, x1, x2, s, to));
    EACH(out, X - 0.3 * Y)
    name = "AddcmulScalarV2";
    CHECK_OK(RUN(aclnnForeachAddcmulScalarV2, x1, x2, x3, s, to));
    EACH(out, X + 0.3 * Y * Z)
    name = "AddcdivScalarList";
    CHECK_OK(RUN(aclnnForeachAddcdivScalarList, x1, x2, x3, each.tensor, to));
    EACH(out, X + (0.5 + i) * Y / Z)
    name = "LerpScalar";
    CHECK_OK(RUN(aclnnForeachLerpScalar, x1, x2, s, to));
    EACH(out, X + 0.3 * (Y - X))
    name = "LerpList";
    CHECK_OK(RUN(aclnnForeachLerpList, x1, x2, x3, to));
    EACH(out, X + Z * (Y - X))
    name = "PowScalarV2";
    CHECK_OK(RUN(aclnnForeachPowScalarV2, x1, two, to));
    EACH(out, X * X)
    name = "PowScalarAndTensor";
    CHECK_OK(RUN(aclnnForeachPowScalarAndTensor, s, x1, to));
    EACH(out, pow(0.3, X))
    name = "RoundOffNumberV2";
    CHECK_OK(RUN(aclnnForeachRoundOffNumberV2, x1, down, to));
    EACH(out, floor(X))
    const int64_t one = 1; /* NaN isn't the number of a mode: refused in words, whatever an integer would make of it */
    aclTensor *const no_mode = aclCreateTensor(&one, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &one, 1, &(float){NAN});
    CHECK_FAILS(RUN(aclnnForeachRoundOffNumber, x1, no_mode, to), ERROR_RT_DEVICE_TASK, "roundMode");
    aclDestroyTensor(no_mode);
    name = "Copy";
    CHECK_OK(RUN(aclnnForeachCopy, x3, to));
    EACH(out, Z)
    name = "ZeroInplace";
    CHECK_OK(RUN(aclnnForeachZeroInplace, to));
    EACH(out, 0 * X)
    aclDestroyScalar(s);
    aclDestroyScalar(two);
    aclDestroyScalar(down);
    operand_free(&each);
    free_list(a, x1);
    free_list(b, x2);
    free_list(c, x3);
    free_list(out, to);
}

static void test_norm(double order)
{
    struct operand a[TENSORS], out[TENSORS];
    make_list(a, DTYPE_F32, 0, -0.3);
    for (int i = 0; i < TENSORS; ++i)
        out[i] = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    aclTensorList *const x = list_of(a), *const to = list_of(out);
    aclScalar *const p = scalar_f64(order);
    CHECK_OK(RUN(aclnnForeachNorm, x, p, to));
    for (int i = 0; i < TENSORS; ++i) {
        double expected = 0;
        for (int64_t k = 0; k < a[i].count; ++k) {
            const double v = fabs(operand_get(&a[i], k));
            expected = order == (double)INFINITY ? fmax(expected, v) : order == 0 ? expected + (v != 0) : expected + pow(v, order);
        }
        if (isfinite(order) && order != 0)
            expected = pow(expected, 1 / order);
        CHECK_NEAR(operand_get(&out[i], 0), expected, 1e-6);
    }
    aclDestroyScalar(p);
    free_list(a, x);
    free_list(out, to);
}

static void test_unscale(enum dtype dtype)
{
    struct operand a[TENSORS], kept[TENSORS];
    make_list(a, dtype, 0, 1);
    make_list(kept, dtype, 0, 1);
    aclTensorList *const x = list_of(a), *const before = list_of(kept);
    struct operand found = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN), scale = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    operand_set(&scale, 0, 0.5);
    CHECK_OK(RUN(aclnnForeachNonFiniteCheckAndUnscale, x, found.tensor, scale.tensor));
    CHECK_NEAR(operand_get(&found, 0), 0, 0);
    const char *const name = "unscale";
    EACH(a, 0.5 * operand_get(&kept[i], k))
    operand_set(&a[7], a[7].count - 1, (double)INFINITY);
    CHECK_OK(RUN(aclnnForeachNonFiniteCheckAndUnscale, x, found.tensor, scale.tensor));
    CHECK_NEAR(operand_get(&found, 0), 1, 0);
    operand_free(&found);
    operand_free(&scale);
    free_list(a, x);
    free_list(kept, before);
}

static void test_errors(void)
{
    struct operand a[TENSORS], b[TENSORS];
    make_list(a, DTYPE_F32, 0, 1);
    make_list(b, DTYPE_I32, 0, 1);
    aclTensorList *const x = list_of(a), *const integers = list_of(b);
    aclTensor *two[] = {aclCreateTensor(a[1].sizes, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, a[1].sizes, 2, a[1].memory)};
    aclTensorList *const shorter = aclCreateTensorList(two, 1);
    CHECK_FAILS(RUN(aclnnForeachMulList, x, shorter, x), ACLNN_ERROR_PARAM, "tensors");
    CHECK_FAILS(RUN(aclnnForeachMulList, x, NULL, x), ACLNN_ERROR_NULLPTR, "null");
    CHECK_FAILS(RUN(aclnnForeachSqrt, integers, integers), ACLNN_ERROR_PARAM, "can't be cast");
    CHECK_FAILS(RUN(aclnnForeachAddScalarV2, x, NULL, x), ACLNN_ERROR_NULLPTR, "scalar");
    aclTensorList *const none = aclCreateTensorList(NULL, 0);
    CHECK_OK(RUN(aclnnForeachSqrt, none, none));
    aclDestroyTensorList(none);
    aclDestroyTensorList(shorter);
    free_list(a, x);
    free_list(b, integers);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    for (int r = 0; r < ROWS; ++r)
        for (int d = 0; d < 4; ++d)
            test_row(&rows[r], types[d], (r + d) & 1);
    for (int d = 0; d < 4; ++d) {
        test_hand_written(types[d]);
        test_unscale(types[d]);
    }
    test_norm(2);
    test_norm(1);
    test_norm(0);
    test_norm(3.5);
    test_norm((double)INFINITY);
    test_errors();
    return check_result();
}
