/* Functions of one operand, activations and gradients: the rows of unary.def, compare.def and activation.def against libm in double,
 * and the hand-written ones by example. */
#include "aclnnop/all_operators.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"
#include "operand.h"

enum rule { RULE_PROMOTE, RULE_FLOAT, RULE_LOGICAL };

typedef int (*phase_1_unary)(const aclTensor *, aclTensor *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_inplace)(aclTensor *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_gradient)(const aclTensor *, const aclTensor *, aclTensor *, uint64_t *, aclOpExecutor **);

struct row {
    const char *name;
    enum elementwise_id kernel;
    enum rule rule;
    phase_2_fn phase_2;
    phase_1_unary unary;
    phase_1_inplace inplace;
    phase_1_gradient gradient;
};

#define ROW(op, kernel_, rule_, member, type) \
    {.name = #op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .phase_2 = aclnn##op, \
     .member = (type)(void *)aclnn##op##GetWorkspaceSize},
static const struct row rows[] = {
#define HAND_WRITTEN(op)
#define TENSOR_SCALAR(op, c, kernel, rule, flags)
#define SCALAR_TENSOR(op, c, kernel, rule, flags)
#define TENSOR_TENSOR(op, c, kernel, rule, flags)
#define TENSOR_TENSOR_INPLACE(op, c, d, kernel, rule, flags)
#define TENSOR_SCALAR_INPLACE(op, c, kernel, rule, flags)
#define UNARY(op, c, kernel, rule) ROW(op, kernel, rule, unary, phase_1_unary)
#define UNARY_INPLACE(op, c, kernel, rule) ROW(op, kernel, rule, inplace, phase_1_inplace)
#include "aclnn/math/unary.def"
#define HAND_WRITTEN(op)
#define TENSOR_SCALAR(op, c, kernel, rule, flags)
#define SCALAR_TENSOR(op, c, kernel, rule, flags)
#define TENSOR_TENSOR(op, c, kernel, rule, flags)
#define TENSOR_TENSOR_INPLACE(op, c, d, kernel, rule, flags)
#define TENSOR_SCALAR_INPLACE(op, c, kernel, rule, flags)
#define UNARY(op, c, kernel, rule) ROW(op, kernel, rule, unary, phase_1_unary)
#define UNARY_INPLACE(op, c, kernel, rule) ROW(op, kernel, rule, inplace, phase_1_inplace)
#include "aclnn/math/compare.def"
#define HAND_WRITTEN(op)
#define TENSOR_TENSOR(op, c, kernel, rule, flags) ROW(op, kernel, rule, gradient, phase_1_gradient)
#define UNARY(op, c, kernel, rule) ROW(op, kernel, rule, unary, phase_1_unary)
#define UNARY_INPLACE(op, c, kernel, rule) ROW(op, kernel, rule, inplace, phase_1_inplace)
#include "aclnn/nn/activation.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double relu6(double x) { return x != x ? x : fmin(fmax(x + 3, 0), 6); }
static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static double mish(double x) { return x * tanh(log1p(exp(x))); }
static double silu(double x) { return x * sigmoid(x); }
static double fast_gelu(double x) { return x * sigmoid(1.702 * x); }

static double reference_1(enum elementwise_id kernel, double x)
{
    switch (kernel) {
    case ELEMENTWISE_neg: return -x;
    case ELEMENTWISE_sign: return (x > 0) - (x < 0);
    case ELEMENTWISE_floor: return floor(x);
    case ELEMENTWISE_ceil: return ceil(x);
    case ELEMENTWISE_trunc: return trunc(x);
    case ELEMENTWISE_round: return rint(x);
    case ELEMENTWISE_frac: return x - trunc(x);
    case ELEMENTWISE_sqrt: return sqrt(x);
    case ELEMENTWISE_rsqrt: return 1 / sqrt(x);
    case ELEMENTWISE_reciprocal: return 1 / x;
    case ELEMENTWISE_exp: return exp(x);
    case ELEMENTWISE_exp2: return exp2(x);
    case ELEMENTWISE_expm1: return expm1(x);
    case ELEMENTWISE_log: return log(x);
    case ELEMENTWISE_log2: return log2(x);
    case ELEMENTWISE_log10: return log10(x);
    case ELEMENTWISE_log1p: return log1p(x);
    case ELEMENTWISE_sin: return sin(x);
    case ELEMENTWISE_cos: return cos(x);
    case ELEMENTWISE_tan: return tan(x);
    case ELEMENTWISE_asin: return asin(x);
    case ELEMENTWISE_acos: return acos(x);
    case ELEMENTWISE_atan: return atan(x);
    case ELEMENTWISE_sinh: return sinh(x);
    case ELEMENTWISE_cosh: return cosh(x);
    case ELEMENTWISE_tanh: return tanh(x);
    case ELEMENTWISE_asinh: return asinh(x);
    case ELEMENTWISE_acosh: return acosh(x);
    case ELEMENTWISE_atanh: return atanh(x);
    case ELEMENTWISE_erf: return erf(x);
    case ELEMENTWISE_erfc: return erfc(x);
    case ELEMENTWISE_sinc: return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x);
    case ELEMENTWISE_sigmoid: return sigmoid(x);
    case ELEMENTWISE_logical_not: return x == 0;
    case ELEMENTWISE_is_finite: return isfinite(x);
    case ELEMENTWISE_is_pos_inf: return x == (double)INFINITY;
    case ELEMENTWISE_is_neg_inf: return x == -(double)INFINITY;
    case ELEMENTWISE_sign_bit: return signbit(x) != 0;
    case ELEMENTWISE_relu: return x != x ? x : fmax(x, 0);
    case ELEMENTWISE_silu: return silu(x);
    case ELEMENTWISE_gelu_tanh: return gelu_tanh(x);
    case ELEMENTWISE_fast_gelu: return fast_gelu(x);
    case ELEMENTWISE_hardswish: return x * relu6(x) / 6;
    case ELEMENTWISE_hardsigmoid: return relu6(x) / 6;
    case ELEMENTWISE_mish: return mish(x);
    case ELEMENTWISE_log_sigmoid: return x != x ? x : fmin(x, 0) - log1p(exp(-fabs(x)));
    default: return 1e300;
    }
}

/* Gradients from their own formula, or by differences where that is enough. */
static double slope(double (*f)(double), double x) { return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5; }

static double reference_gradient(enum elementwise_id kernel, double g, double y)
{
    switch (kernel) {
    case ELEMENTWISE_silu_backward: return g * slope(silu, y);
    case ELEMENTWISE_sigmoid_backward: return g * (1 - y) * y;
    case ELEMENTWISE_tanh_backward: return g * (1 - y * y);
    case ELEMENTWISE_gelu_tanh_backward: return g * slope(gelu_tanh, y);
    case ELEMENTWISE_fast_gelu_backward: return g * slope(fast_gelu, y);
    case ELEMENTWISE_hardswish_backward: return y <= -3 ? 0 : y < 3 ? g * (y / 3 + 0.5) : g;
    case ELEMENTWISE_hardsigmoid_backward: return y > -3 && y < 3 ? g / 6 : 0;
    case ELEMENTWISE_mish_backward: return g * slope(mish, y);
    default: return 1e300;
    }
}

static double tolerance(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 8e-3 : dtype == DTYPE_F16 ? 1e-3 : dtype == DTYPE_F32 ? 1e-6 : 1e-9;
}

static const double samples[] = {
    0,           -0.0, 0.5, -0.5, 1,  -1, 2.5, -2.5, 3, -3, 0.1, 7, -7, 40, -40, 1e-3, -1e-3, (double)INFINITY, -(double)INFINITY,
    (double)NAN, 0.9,  1.5, -1.5, 300};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static int is_test(enum elementwise_id kernel) { return kernel >= ELEMENTWISE_eq && kernel <= ELEMENTWISE_sign_bit; }

static double sample_for(const struct row *row, enum dtype dtype, int64_t i)
{
    const double x = samples[i % SAMPLES];
    if (dtype_kind(dtype) < KIND_FLOAT)
        return dtype == DTYPE_B8 ? i & 1 : dtype == DTYPE_U8 ? i % 7 : (double)(i % 7) - 3;
    if (row->gradient && !isfinite(x))
        return 0.25;
    return x;
}

/* Values that overflow the type, or whose reference has lost its digits, are compared loosely or not at all. */
static int comparable(const struct row *row, enum dtype dtype, double x, double expected)
{
    if (row->kernel == ELEMENTWISE_erfinv || row->kernel == ELEMENTWISE_bitwise_not)
        return 0;
    if (dtype == DTYPE_F16 && fabs(expected) > 60000 && isfinite(expected))
        return 0;
    if (row->kernel == ELEMENTWISE_sinc && fabs(x) > 3)
        return 0;
    return !(row->gradient && isnan(expected)) && !(row->kernel == ELEMENTWISE_hardswish && isinf(x)) &&
           !((row->kernel == ELEMENTWISE_mish || row->kernel == ELEMENTWISE_silu || row->kernel == ELEMENTWISE_gelu_tanh ||
              row->kernel == ELEMENTWISE_fast_gelu) &&
             isinf(x));
}

static void test_row(const struct row *row, enum dtype dtype, enum layout layout, int64_t width)
{
    const int64_t sizes[] = {3, width};
    enum dtype compute = dtype;
    if (row->rule == RULE_LOGICAL)
        compute = DTYPE_B8;
    else if (row->rule == RULE_FLOAT && dtype_kind(dtype) < KIND_FLOAT)
        compute = DTYPE_F32;
    const int supported = kernels->elementwise->run[row->kernel][dtype_compute(compute)] != NULL;
    struct operand x = operand_make(dtype, 2, sizes, layout);
    struct operand g = operand_make(dtype, 2, sizes, LAYOUT_PLAIN);
    struct operand out =
        operand_make(is_test(row->kernel) ? DTYPE_B8 : compute, 2, sizes, (enum layout)((layout + width) % LAYOUT_COUNT));
    double *const kept = calloc((size_t)x.count + 1, sizeof *kept);
    for (int64_t i = 0; i < x.count; ++i) {
        operand_set(&x, i, sample_for(row, dtype, i));
        operand_set(&g, i, sample_for(row, dtype, i + 4) * 0.5);
        kept[i] = operand_get(&x, i);
    }
    uint64_t bytes = 0;
    aclOpExecutor *executor = NULL;
    const int code = row->unary     ? row->unary(x.tensor, out.tensor, &bytes, &executor)
                     : row->inplace ? row->inplace(x.tensor, &bytes, &executor)
                                    : row->gradient(g.tensor, x.tensor, out.tensor, &bytes, &executor);
    if (!supported || (row->inplace && dtype_kind(is_test(row->kernel) ? DTYPE_B8 : compute) > dtype_kind(dtype))) {
        CHECK(code == ACLNN_ERROR_PARAM, "%s %s gave %d", row->name, dtype_name(dtype), code);
        error_take_text();
    } else {
        CHECK_OK(code);
        if (code == 0)
            CHECK_OK(operand_launch(row->phase_2, bytes, executor));
        const struct operand *const result = row->inplace ? &x : &out;
        for (int64_t i = 0; i < x.count; ++i) {
            const double raw =
                row->gradient ? reference_gradient(row->kernel, operand_get(&g, i), kept[i]) : reference_1(row->kernel, kept[i]);
            if (!comparable(row, dtype, kept[i], raw))
                continue;
            const double expected = operand_rounded(result->dtype, raw);
            CHECK(check_near(operand_get(result, i), expected, tolerance(result->dtype) * (row->gradient ? 4 : 1)),
                  "%s %s: %.9g -> %.9g, not %.9g", row->name, dtype_name(dtype), kept[i], operand_get(result, i), expected);
        }
    }
    free(kept);
    operand_free(&x);
    operand_free(&g);
    operand_free(&out);
}

static void test_examples(void)
{
    const int64_t sizes[] = {4};
    struct operand x = operand_make(DTYPE_F32, 1, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 1, sizes, LAYOUT_STEPPED);
    struct operand g = operand_make(DTYPE_F32, 1, sizes, LAYOUT_PLAIN), mask = operand_make(DTYPE_B8, 1, sizes, LAYOUT_PLAIN);
    aclScalar *const slope = scalar_f64(0.1), *const one = scalar_i64(1), *const two = scalar_f64(2),
                     *const twenty = scalar_i64(20);
    aclScalar *const minus = scalar_f64(-1);
#define SET(o, a, b, c, d) operand_set(&(o), 0, a), operand_set(&(o), 1, b), operand_set(&(o), 2, c), operand_set(&(o), 3, d)
#define EXPECT(o, a, b, c, d)                                                                                         \
    do {                                                                                                             \
        const double wanted[] = {a, b, c, d};                                                                        \
        for (int i = 0; i < 4; ++i)                                                                                  \
            CHECK_NEAR(operand_get(&(o), i), wanted[i], 2e-6);                                                       \
    } while (0)
    SET(x, -2, -0.5, 0.5, 3);
    SET(g, 1, 2, 3, 4);
    CHECK_OK(RUN(aclnnLeakyRelu, x.tensor, slope, out.tensor));
    EXPECT(out, -0.2, -0.05, 0.5, 3);
    CHECK_OK(RUN(aclnnLeakyReluBackward, g.tensor, x.tensor, slope, false, out.tensor));
    EXPECT(out, 0.1, 0.2, 3, 4);
    CHECK_OK(RUN(aclnnSoftplus, x.tensor, two, twenty, out.tensor));
    EXPECT(out, log1p(exp(-4)) / 2, log1p(exp(-1)) / 2, log1p(exp(1)) / 2, log1p(exp(6)) / 2);
    CHECK_OK(RUN(aclnnSoftplusBackward, g.tensor, x.tensor, two, twenty, out.tensor));
    EXPECT(out, sigmoid(-4), 2 * sigmoid(-1), 3 * sigmoid(1), 4 * sigmoid(6));
    CHECK_OK(RUN(aclnnThreshold, x.tensor, slope, twenty, out.tensor));
    EXPECT(out, 20, 20, 0.5, 3);
    CHECK_OK(RUN(aclnnThresholdBackward, g.tensor, x.tensor, slope, out.tensor));
    EXPECT(out, 0, 0, 3, 4);
    CHECK_OK(RUN(aclnnElu, x.tensor, two, one, one, out.tensor));
    EXPECT(out, 2 * expm1(-2), 2 * expm1(-0.5), 0.5, 3);
    CHECK_OK(RUN(aclnnEluBackward, g.tensor, two, one, one, false, x.tensor, out.tensor));
    EXPECT(out, 2 * exp(-2), 4 * exp(-0.5), 3, 4);
    CHECK_OK(RUN(aclnnCelu, x.tensor, two, out.tensor));
    EXPECT(out, 2 * expm1(-1), 2 * expm1(-0.25), 0.5, 3);
    CHECK_OK(RUN(aclnnHardtanh, x.tensor, minus, one, out.tensor));
    EXPECT(out, -1, -0.5, 0.5, 1);
    CHECK_OK(RUN(aclnnHardtanhBackward, g.tensor, x.tensor, minus, one, out.tensor));
    EXPECT(out, 0, 2, 3, 0);
    CHECK_OK(RUN(aclnnClamp, x.tensor, NULL, slope, out.tensor));
    EXPECT(out, -2, -0.5, 0.1, 0.1);
    CHECK_OK(RUN(aclnnClampTensor, x.tensor, NULL, g.tensor, out.tensor));
    EXPECT(out, -2, -0.5, 0.5, 3);
    CHECK_FAILS(RUN(aclnnClamp, x.tensor, NULL, NULL, out.tensor), ACLNN_ERROR_NULLPTR, "bounds");
    CHECK_OK(RUN(aclnnSoftshrink, x.tensor, one, out.tensor));
    EXPECT(out, -1, 0, 0, 2);
    CHECK_OK(RUN(aclnnHardshrink, x.tensor, one, out.tensor));
    EXPECT(out, -2, 0, 0, 3);
    CHECK_OK(RUN(aclnnHardshrinkBackward, g.tensor, x.tensor, one, out.tensor));
    EXPECT(out, 1, 0, 0, 4);
    CHECK_OK(RUN(aclnnGeluV2, x.tensor, 0, out.tensor));
#define GELU(v) ((v) * 0.5 * (1 + erf((v) / sqrt(2))))
    EXPECT(out, GELU(-2), GELU(-0.5), GELU(0.5), GELU(3));
    CHECK_OK(RUN(aclnnGeluBackwardV2, g.tensor, x.tensor, (char[]){"none"}, out.tensor));
#define GELU_SLOPE(v) (0.5 * (1 + erf((v) / sqrt(2))) + (v) * exp(-(v) * (v) / 2) / sqrt(2 * M_PI))
    EXPECT(out, GELU_SLOPE(-2.0), 2 * GELU_SLOPE(-0.5), 3 * GELU_SLOPE(0.5), 4 * GELU_SLOPE(3.0));
    CHECK_OK(RUN(aclnnLogSigmoidForward, x.tensor, out.tensor, g.tensor));
    EXPECT(out, log(sigmoid(-2)), log(sigmoid(-0.5)), log(sigmoid(0.5)), log(sigmoid(3)));
    SET(g, 1, 2, 3, 4);
    CHECK_OK(RUN(aclnnLogSigmoidBackward, g.tensor, x.tensor, g.tensor, out.tensor));
    EXPECT(out, sigmoid(2), 2 * sigmoid(0.5), 3 * sigmoid(-0.5), 4 * sigmoid(-3));
    CHECK_OK(RUN(aclnnPrelu, x.tensor, g.tensor, out.tensor));
    EXPECT(out, -2, -1, 0.5, 3);
    CHECK_OK(RUN(aclnnAddRelu, x.tensor, g.tensor, minus, out.tensor));
    EXPECT(out, 0, 0, 0, 0);
    CHECK_OK(RUN(aclnnAbs, x.tensor, out.tensor));
    EXPECT(out, 2, 0.5, 0.5, 3);
    CHECK_OK(RUN(aclnnRoundDecimals, x.tensor, 0, out.tensor));
    EXPECT(out, -2, 0, 0, 3);
    SET(x, 0.125, -1.375, 2.5, 17);
    CHECK_OK(RUN(aclnnRoundDecimals, x.tensor, 2, out.tensor));
    EXPECT(out, 0.12, -1.38, 2.5, 17);
    CHECK_OK(RUN(aclnnRoundDecimals, x.tensor, -1, out.tensor));
    EXPECT(out, 0, -0.0, 0, 20);
    SET(x, (double)NAN, (double)INFINITY, -(double)INFINITY, 1);
    CHECK_OK(RUN(aclnnNanToNum, x.tensor, 7, 8, 9, out.tensor));
    EXPECT(out, 7, 8, 9, 1);
    CHECK_OK(RUN(aclnnIsClose, x.tensor, x.tensor, 1e-5, 1e-8, false, mask.tensor));
    EXPECT(mask, 0, 1, 1, 1);
    CHECK_OK(RUN(aclnnIsClose, x.tensor, x.tensor, 1e-5, 1e-8, true, mask.tensor));
    EXPECT(mask, 1, 1, 1, 1);
    SET(x, 1, 2, 3, 4);
    SET(mask, 1, 0, 0, 1);
    CHECK_OK(RUN(aclnnSWhere, mask.tensor, x.tensor, g.tensor, out.tensor));
    SET(g, -1, -2, -3, -4);
    CHECK_OK(RUN(aclnnSWhere, mask.tensor, x.tensor, g.tensor, out.tensor));
    EXPECT(out, 1, -2, -3, 4);
    CHECK_OK(RUN(aclnnInplaceMaskedFillScalar, g.tensor, mask.tensor, two));
    EXPECT(g, 2, -2, -3, 2);
    CHECK_OK(RUN(aclnnAddcmul, x.tensor, x.tensor, g.tensor, two, out.tensor));
    EXPECT(out, 5, -6, -15, 20);
    CHECK_OK(RUN(aclnnAddcdiv, x.tensor, x.tensor, g.tensor, two, out.tensor));
    EXPECT(out, 2, 0, 1, 8);
    CHECK_OK(RUN(aclnnLerps, x.tensor, g.tensor, slope, out.tensor));
    EXPECT(out, 1.1, 1.6, 2.4, 3.8);
    CHECK_OK(RUN(aclnnPowTensorScalar, x.tensor, two, out.tensor));
    EXPECT(out, 1, 4, 9, 16);
    CHECK_OK(RUN(aclnnPowScalarTensor, two, x.tensor, out.tensor));
    EXPECT(out, 2, 4, 8, 16);
    CHECK_OK(RUN(aclnnPowTensorTensor, x.tensor, g.tensor, out.tensor));
    EXPECT(out, 1, 0.25, 1.0 / 27, 16);
    struct operand single = operand_make(DTYPE_B8, 0, NULL, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnIsInScalarTensor, two, x.tensor, false, false, single.tensor));
    CHECK_NEAR(operand_get(&single, 0), 1, 0);
    CHECK_OK(RUN(aclnnIsInScalarTensor, twenty, x.tensor, false, false, single.tensor));
    CHECK_NEAR(operand_get(&single, 0), 0, 0);
    operand_free(&single);
    SET(x, 0.5, -0.25, 0, 0.99);
    CHECK_OK(RUN(aclnnErfinv, x.tensor, out.tensor));
    for (int i = 0; i < 4; ++i)
        CHECK_NEAR(erf(operand_get(&out, i)), operand_get(&x, i), 1e-6);
    CHECK_OK(RUN(aclnnLogit, x.tensor, 0.1, out.tensor));
    EXPECT(out, 0, log(0.1 / 0.9), log(0.1 / 0.9), log(9));
    aclScalar *const all[] = {slope, one, two, twenty, minus};
    for (int i = 0; i < 5; ++i)
        aclDestroyScalar(all[i]);
    operand_free(&x);
    operand_free(&g);
    operand_free(&out);
    operand_free(&mask);
}

static void test_gated(void)
{
    const int64_t sizes[] = {3, 8}, half[] = {3, 4};
    struct operand x = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), to = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    struct operand g = operand_make(DTYPE_F32, 2, half, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 2, half, LAYOUT_PLAIN);
    for (int i = 0; i < 24; ++i)
        operand_set(&x, i, (i - 12) * 0.25);
    for (int i = 0; i < 12; ++i)
        operand_set(&g, i, 1 + i * 0.1);
#define A operand_get(&x, i / 4 * 8 + i % 4)
#define B operand_get(&x, i / 4 * 8 + i % 4 + 4)
#define G operand_get(&g, i)
    CHECK_OK(RUN(aclnnGlu, x.tensor, -1, out.tensor));
    for (int i = 0; i < 12; ++i)
        CHECK_NEAR(operand_get(&out, i), A * sigmoid(B), 1e-6);
    CHECK_OK(RUN(aclnnGluBackward, g.tensor, x.tensor, 1, to.tensor));
    for (int i = 0; i < 12; ++i) {
        CHECK_NEAR(operand_get(&to, i / 4 * 8 + i % 4), G * sigmoid(B), 1e-6);
        CHECK_NEAR(operand_get(&to, i / 4 * 8 + i % 4 + 4), G * A * sigmoid(B) * (1 - sigmoid(B)), 1e-6);
    }
    CHECK_OK(RUN(aclnnSwiGlu, x.tensor, -1, out.tensor));
    for (int i = 0; i < 12; ++i)
        CHECK_NEAR(operand_get(&out, i), silu(A) * B, 1e-6);
    CHECK_OK(RUN(aclnnSwiGluGrad, g.tensor, x.tensor, -1, to.tensor));
    for (int i = 0; i < 12; ++i) {
        CHECK_NEAR(operand_get(&to, i / 4 * 8 + i % 4), G * B * slope(silu, A), 1e-6);
        CHECK_NEAR(operand_get(&to, i / 4 * 8 + i % 4 + 4), G * silu(A), 1e-6);
    }
    struct operand gelu = operand_make(DTYPE_F32, 2, half, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnGeGluV3, x.tensor, -1, 1, false, out.tensor, gelu.tensor));
    for (int i = 0; i < 12; ++i)
        CHECK_NEAR(operand_get(&out, i), gelu_tanh(B) * A, 1e-6);
    CHECK_OK(RUN(aclnnGeGluV3Backward, g.tensor, x.tensor, gelu.tensor, -1, 1, false, to.tensor));
    for (int i = 0; i < 12; ++i) {
        CHECK_NEAR(operand_get(&to, i / 4 * 8 + i % 4), G * gelu_tanh(B), 1e-6);
        CHECK_NEAR(operand_get(&to, i / 4 * 8 + i % 4 + 4), G * A * slope(gelu_tanh, B), 1e-6);
    }
    CHECK_FAILS(RUN(aclnnGlu, x.tensor, 0, out.tensor), ACLNN_ERROR_PARAM, "odd");
    operand_free(&gelu);
    operand_free(&x);
    operand_free(&to);
    operand_free(&g);
    operand_free(&out);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    static const int64_t widths[] = {0, 1, 15, 64, 700};
    for (int r = 0; r < ROWS; ++r)
        for (int d = 0; d < DTYPE_COUNT; ++d)
            for (int w = 0; w < 5; ++w)
                if (dtype_kind((enum dtype)d) != KIND_COMPLEX)
                    test_row(&rows[r], (enum dtype)d, (enum layout)((r + d + w) % LAYOUT_COUNT), widths[w]);
    test_examples();
    test_gated();
    return check_result();
}
