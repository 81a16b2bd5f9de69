/* Every two-operand operator of the .def files: all types, layouts, broadcasts, in place, scalars, errors, against a reference in
 * double or 64-bit integers. */
#include "aclnnop/all_operators.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"
#include "operand.h"

enum rule { RULE_PROMOTE, RULE_FLOAT, RULE_LOGICAL };
enum { CALL_EXACT_SCALARS = 2, CALL_REFUSE_ZERO = 4 };

typedef int (*phase_1_tt)(const aclTensor *, const aclTensor *, aclTensor *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_ts)(const aclTensor *, const aclScalar *, aclTensor *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_inplace_tt)(aclTensor *, const aclTensor *, uint64_t *, aclOpExecutor **);
typedef int (*phase_1_inplace_ts)(aclTensor *, const aclScalar *, uint64_t *, aclOpExecutor **);

struct row {
    const char *name;
    enum elementwise_id kernel;
    enum rule rule;
    unsigned flags;
    phase_1_tt tt;
    phase_1_ts ts;
    phase_1_inplace_tt inplace_tt;
    phase_1_inplace_ts inplace_ts;
    phase_2_fn phase_2;
};

#define ROW(op, kernel_, rule_, flags_, member, type) \
    {.name = #op, .kernel = ELEMENTWISE_##kernel_, .rule = RULE_##rule_, .flags = (flags_), \
     .member = (type)(void *)aclnn##op##GetWorkspaceSize, .phase_2 = aclnn##op},
static const struct row rows[] = {
#define HAND_WRITTEN(op)
#define UNARY(op, c, kernel, rule)
#define UNARY_INPLACE(op, c, kernel, rule)
#define SCALAR_TENSOR(op, c, kernel, rule, flags)
#define TENSOR_TENSOR(op, c, kernel, rule, flags) ROW(op, kernel, rule, flags, tt, phase_1_tt)
#define TENSOR_SCALAR(op, c, kernel, rule, flags) ROW(op, kernel, rule, flags, ts, phase_1_ts)
#define TENSOR_TENSOR_INPLACE(op, c, d, kernel, rule, flags) ROW(op, kernel, rule, flags, inplace_tt, phase_1_inplace_tt)
#define TENSOR_SCALAR_INPLACE(op, c, kernel, rule, flags) ROW(op, kernel, rule, flags, inplace_ts, phase_1_inplace_ts)
#include "aclnn/math/binary.def"
#define HAND_WRITTEN(op)
#define UNARY(op, c, kernel, rule)
#define UNARY_INPLACE(op, c, kernel, rule)
#define SCALAR_TENSOR(op, c, kernel, rule, flags)
#define TENSOR_TENSOR(op, c, kernel, rule, flags) ROW(op, kernel, rule, flags, tt, phase_1_tt)
#define TENSOR_SCALAR(op, c, kernel, rule, flags) ROW(op, kernel, rule, flags, ts, phase_1_ts)
#define TENSOR_TENSOR_INPLACE(op, c, d, kernel, rule, flags) ROW(op, kernel, rule, flags, inplace_tt, phase_1_inplace_tt)
#define TENSOR_SCALAR_INPLACE(op, c, kernel, rule, flags) ROW(op, kernel, rule, flags, inplace_ts, phase_1_inplace_ts)
#include "aclnn/math/compare.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static int64_t integer_reference(enum elementwise_id kernel, int64_t x, int64_t y, int bits)
{
    const int64_t q = y ? x / y : 0, r = y ? x % y : 0;
    switch (kernel) {
    case ELEMENTWISE_mul: return x * y;
    case ELEMENTWISE_div_floor: return q - (r != 0 && (r < 0) != (y < 0));
    case ELEMENTWISE_remainder: return r + (r != 0 && (r < 0) != (y < 0) ? y : 0);
    case ELEMENTWISE_fmod: return r;
    case ELEMENTWISE_maximum: return x > y ? x : y;
    case ELEMENTWISE_minimum: return x < y ? x : y;
    case ELEMENTWISE_bitwise_and: return x & y;
    case ELEMENTWISE_bitwise_or: return x | y;
    case ELEMENTWISE_bitwise_xor: return x ^ y;
    case ELEMENTWISE_left_shift: return y >= 0 && y < bits ? x * ((int64_t)1 << y) : 0;
    case ELEMENTWISE_right_shift: return y >= 0 && y < bits ? x >> y : x < 0 ? -1 : 0;
    case ELEMENTWISE_gcd: {
        int64_t a = llabs(x), b = llabs(y);
        while (b) {
            const int64_t t = a % b;
            a = b;
            b = t;
        }
        return a;
    }
    default: return 0x7fffffff;
    }
}

static double float_reference(enum elementwise_id kernel, double x, double y)
{
    switch (kernel) {
    case ELEMENTWISE_mul: return x * y;
    case ELEMENTWISE_div: return x / y;
    case ELEMENTWISE_div_floor: return floor(x / y);
    case ELEMENTWISE_remainder: return x - y * floor(x / y);
    case ELEMENTWISE_fmod: return fmod(x, y);
    case ELEMENTWISE_maximum: return x > y ? x : y;
    case ELEMENTWISE_minimum: return x < y ? x : y;
    case ELEMENTWISE_atan2: return atan2(x, y);
    case ELEMENTWISE_log_add_exp: return log(exp(x) + exp(y));
    case ELEMENTWISE_log_add_exp2: return log2(exp2(x) + exp2(y));
    case ELEMENTWISE_xlogy: return x == 0 ? 0 : x * log(y);
    default: return 1e300;
    }
}

static double compare_reference(enum elementwise_id kernel, double x, double y)
{
    switch (kernel) {
    case ELEMENTWISE_eq: return x == y;
    case ELEMENTWISE_ne: return x != y;
    case ELEMENTWISE_lt: return x < y;
    case ELEMENTWISE_le: return x <= y;
    case ELEMENTWISE_gt: return x > y;
    case ELEMENTWISE_ge: return x >= y;
    case ELEMENTWISE_logical_and: return x != 0 && y != 0;
    case ELEMENTWISE_logical_or: return x != 0 || y != 0;
    case ELEMENTWISE_logical_xor: return (x != 0) != (y != 0);
    default: return -1;
    }
}

static int is_comparison(enum elementwise_id kernel) { return kernel >= ELEMENTWISE_eq && kernel <= ELEMENTWISE_logical_xor; }

static double reference(enum elementwise_id kernel, enum dtype compute, double x, double y)
{
    if (is_comparison(kernel))
        return compare_reference(kernel, x, y);
    if (dtype_kind(compute) == KIND_BOOL)
        return integer_reference(kernel, (int64_t)x, (int64_t)y, 8) != 0;
    if (dtype_kind(compute) == KIND_INTEGER)
        return operand_rounded(compute, (double)integer_reference(kernel, (int64_t)x, (int64_t)y, 8 * (int)dtype_bytes(compute)));
    return float_reference(kernel, x, y);
}

static double tolerance(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 8e-3 : dtype == DTYPE_F16 ? 1e-3 : dtype == DTYPE_F32 ? 1e-6 : 1e-14;
}

/* The type a row computes in, for operands of one type. DTYPE_NONE: refused. */
static enum dtype compute_of(const struct row *row, enum dtype dtype)
{
    enum dtype compute = dtype;
    if (row->rule == RULE_LOGICAL)
        compute = DTYPE_B8;
    else if (row->rule == RULE_FLOAT && dtype_kind(dtype) < KIND_FLOAT)
        compute = DTYPE_F32;
    return kernels->elementwise->run[row->kernel][dtype_compute(compute)] ? compute : DTYPE_NONE;
}

static double pick(uint64_t *state, enum dtype dtype, int divisor)
{
    const int choice = (int)(check_random(state) % 9);
    double x = dtype_kind(dtype) >= KIND_FLOAT ? choice * 0.75 - 2.5 : dtype == DTYPE_U8 ? choice : choice - 4;
    if (dtype == DTYPE_B8)
        x = choice & 1;
    return divisor && x == 0 ? 3 : x;
}

static void check_values(const struct row *row, const struct operand *out, const double *x, const double *y, int64_t x_count,
                         int64_t y_count, enum dtype compute, const char *what)
{
    for (int64_t i = 0; i < out->count; ++i) {
        const double a = x[i % x_count], b = y[i % y_count];
        const double expected = operand_rounded(out->dtype, reference(row->kernel, compute, a, b));
        CHECK(check_near(operand_get(out, i), expected, 2 * tolerance(out->dtype)),
              "%s %s %s: element %lld: %g, %g -> %.9g, not %.9g", row->name, what, dtype_name(out->dtype), (long long)i, a, b,
              operand_get(out, i), expected);
    }
}

static enum dtype out_dtype(const struct row *row, enum dtype compute)
{
    const enum dtype halves = compute;
    return is_comparison(row->kernel) ? DTYPE_B8 : halves;
}

/* Operands of one type; layouts and shapes vary. */
static void test_row(const struct row *row, enum dtype dtype, int shape, enum layout layout)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {2, 3, 5}, {3, 1, 700}, {4, 300, 2}, {1, 7, 1}, {2, 0, 3}};
    if (row->kernel == ELEMENTWISE_complex_pair || row->kernel == ELEMENTWISE_polar)
        return;
    const enum dtype compute = compute_of(row, dtype);
    const int inplace = row->inplace_tt || row->inplace_ts, scalar = row->ts || row->inplace_ts;
    uint64_t state = 7 + (uint64_t)shape * 31 + (uint64_t)dtype;
    struct operand a = operand_make(dtype, 3, shapes[shape], layout);
    struct operand b = operand_make(dtype, 3, shapes[shape], (enum layout)((layout + shape) % LAYOUT_COUNT));
    struct operand out = operand_make(compute == DTYPE_NONE ? dtype : out_dtype(row, compute), 3, shapes[shape],
                                      (enum layout)((layout * 3 + shape) % LAYOUT_COUNT));
    double *const x = calloc((size_t)a.count + 1, sizeof *x), *const y = calloc((size_t)a.count + 1, sizeof *y);
    const double number = row->kernel == ELEMENTWISE_left_shift ? 1 : dtype == DTYPE_B8 ? 1 : 2;
    aclScalar *const s = dtype_kind(dtype) >= KIND_FLOAT ? scalar_f64(number)
                         : dtype == DTYPE_B8             ? aclCreateScalar(&(bool){true}, ACL_BOOL)
                                                         : scalar_i64((int64_t)number);
    for (int64_t i = 0; i < a.count; ++i) {
        operand_set(&a, i, pick(&state, dtype, 0));
        operand_set(&b, i, pick(&state, dtype, (row->flags & CALL_REFUSE_ZERO) || row->kernel == ELEMENTWISE_div));
        x[i] = operand_get(&a, i);
        y[i] = scalar ? number : operand_get(&b, i);
    }
    uint64_t bytes = 0;
    aclOpExecutor *executor = NULL;
    const int code = row->tt           ? row->tt(a.tensor, b.tensor, out.tensor, &bytes, &executor)
                     : row->ts         ? row->ts(a.tensor, s, out.tensor, &bytes, &executor)
                     : row->inplace_tt ? row->inplace_tt(a.tensor, b.tensor, &bytes, &executor)
                                       : row->inplace_ts(a.tensor, s, &bytes, &executor);
    const enum dtype result = compute == DTYPE_NONE ? DTYPE_NONE : out_dtype(row, compute);
    if (compute == DTYPE_NONE || (inplace && dtype_kind(result) > dtype_kind(dtype))) {
        CHECK(code == ACLNN_ERROR_PARAM, "%s %s gave %d", row->name, dtype_name(dtype), code);
        error_take_text();
    } else {
        CHECK_OK(code);
        if (code == 0)
            CHECK_OK(operand_launch(row->phase_2, bytes, executor));
        check_values(row, inplace ? &a : &out, x, y, a.count ? a.count : 1, a.count ? a.count : 1, compute,
                     scalar ? "scalar" : "tensor");
    }
    aclDestroyScalar(s);
    operand_free(&a);
    operand_free(&b);
    operand_free(&out);
    free(x);
    free(y);
}

static void test_rows(void)
{
    for (int r = 0; r < ROWS; ++r)
        for (int d = 0; d < DTYPE_COUNT; ++d)
            for (int shape = 0; shape < 6; ++shape)
                if (dtype_kind((enum dtype)d) != KIND_COMPLEX)
                    test_row(&rows[r], (enum dtype)d, shape, (enum layout)((r + shape + d) % LAYOUT_COUNT));
}

static void test_alpha(void)
{
    const int64_t sizes[] = {3, 5}, row_sizes[] = {5};
    struct operand a = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), b = operand_make(DTYPE_F32, 1, row_sizes, LAYOUT_PLAIN);
    struct operand out = operand_make(DTYPE_F32, 2, sizes, LAYOUT_TRANSPOSED);
    aclScalar *const half = scalar_f64(0.5), *const one = scalar_i64(1), *const three = scalar_i64(3);
    for (int64_t i = 0; i < a.count; ++i)
        operand_set(&a, i, (double)i);
    for (int64_t i = 0; i < b.count; ++i)
        operand_set(&b, i, 10 + (double)i);
#define EACH(expression) for (int64_t i = 0; i < out.count; ++i) CHECK_NEAR(operand_get(&out, i), (expression), 1e-6)
    CHECK_OK(RUN(aclnnAdd, a.tensor, b.tensor, half, out.tensor));
    EACH((double)i + 0.5 * (10 + i % 5));
    CHECK_OK(RUN(aclnnSub, a.tensor, b.tensor, one, out.tensor));
    EACH((double)i - (10 + i % 5));
    CHECK_OK(RUN(aclnnRsub, a.tensor, b.tensor, three, out.tensor));
    EACH((10 + i % 5) - 3.0 * (double)i);
    CHECK_OK(RUN(aclnnAdds, a.tensor, half, three, out.tensor));
    EACH((double)i + 1.5);
    CHECK_OK(RUN(aclnnSubs, a.tensor, half, one, out.tensor));
    EACH((double)i - 0.5);
    CHECK_OK(RUN(aclnnRsubs, a.tensor, half, one, out.tensor));
    EACH(0.5 - (double)i);
    CHECK_OK(RUN(aclnnAddV3, half, a.tensor, three, out.tensor));
    EACH(0.5 + 3 * (double)i);
    CHECK_FAILS(RUN(aclnnAdd, a.tensor, b.tensor, NULL, out.tensor), ACLNN_ERROR_NULLPTR, "alpha");
    CHECK_FAILS(RUN(aclnnAdd, a.tensor, NULL, one, out.tensor), ACLNN_ERROR_NULLPTR, "null");
    CHECK_FAILS(RUN(aclnnInplaceAdd, b.tensor, a.tensor, one), ACLNN_ERROR_PARAM, "broadcast");
    CHECK_OK(RUN(aclnnInplaceAdd, a.tensor, b.tensor, half));
    for (int64_t i = 0; i < a.count; ++i)
        CHECK_NEAR(operand_get(&a, i), (double)i + 0.5 * (10 + i % 5), 1e-6);
    aclDestroyScalar(half);
    aclDestroyScalar(one);
    aclDestroyScalar(three);
    operand_free(&a);
    operand_free(&b);
    operand_free(&out);
}

/* Mixed types, a type that can't hold the result, integers divided by zero, an expanded output. */
static void test_types_and_errors(void)
{
    const int64_t sizes[] = {4}, none[] = {0};
    struct operand i32 = operand_make(DTYPE_I32, 1, sizes, LAYOUT_PLAIN), f16 = operand_make(DTYPE_F16, 1, sizes, LAYOUT_PLAIN);
    struct operand f32 = operand_make(DTYPE_F32, 1, sizes, LAYOUT_PLAIN), zero = operand_make(DTYPE_I32, 1, sizes, LAYOUT_PLAIN);
    struct operand f64_single = operand_make(DTYPE_F64, 0, none, LAYOUT_PLAIN);
    aclScalar *const one = scalar_i64(1), *const tenth = scalar_f64(0.1);
    for (int64_t i = 0; i < 4; ++i) {
        operand_set(&i32, i, (double)i);
        operand_set(&f16, i, 0.1);
    }
    operand_set(&f64_single, 0, 0.25);
    CHECK_OK(RUN(aclnnMul, i32.tensor, f64_single.tensor, f32.tensor));
    for (int64_t i = 0; i < 4; ++i)
        CHECK_NEAR(operand_get(&f32, i), (double)i * 0.25, 1e-6);
    struct operand mask = operand_make(DTYPE_B8, 1, sizes, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnEqScalar, f16.tensor, tenth, mask.tensor)); /* the scalar is rounded to f16 first */
    CHECK_NEAR(operand_get(&mask, 2), 1, 0);
    CHECK_FAILS(RUN(aclnnAdd, i32.tensor, f32.tensor, one, i32.tensor), ACLNN_ERROR_PARAM, "can't be cast");
    CHECK_FAILS(RUN(aclnnAdd, i32.tensor, i32.tensor, tenth, i32.tensor), ACLNN_ERROR_PARAM, "alpha");
    CHECK_FAILS(RUN(aclnnFloorDivide, i32.tensor, zero.tensor, i32.tensor), ERROR_RT_DEVICE_TASK, "ZeroDivisionError");
    const int64_t stride0[] = {0};
    struct operand expanded = operand_alias(&f32, 1, sizes, stride0, 0);
    CHECK_FAILS(RUN(aclnnInplaceMul, expanded.tensor, f32.tensor), ACLNN_ERROR_PARAM, "expanded");
    CHECK_OK(RUN(aclnnMul, expanded.tensor, f32.tensor, f32.tensor));
    operand_drop(&expanded);
    operand_free(&mask);
    aclDestroyScalar(one);
    aclDestroyScalar(tenth);
    operand_free(&i32);
    operand_free(&f16);
    operand_free(&f32);
    operand_free(&zero);
    operand_free(&f64_single);
}

/* The output overlaps an input by all but one element: values must be those from before. */
static void test_partial_overlap(void)
{
    const int64_t all[] = {20000}, part[] = {19999}, stride[] = {1};
    struct operand base = operand_make(DTYPE_F32, 1, all, LAYOUT_PLAIN);
    for (int64_t i = 0; i < base.count; ++i)
        operand_set(&base, i, (double)i);
    struct operand low = operand_alias(&base, 1, part, stride, 0), high = operand_alias(&base, 1, part, stride, 1);
    CHECK_OK(RUN(aclnnMul, low.tensor, low.tensor, high.tensor));
    for (int64_t i = 0; i < 100; ++i)
        CHECK_NEAR(operand_get(&high, i), (double)i * (double)i, 1e-6);
    for (int64_t i = 0; i < base.count; ++i)
        operand_set(&base, i, (double)i);
    CHECK_OK(RUN(aclnnInplaceCopy, low.tensor, high.tensor));
    CHECK_OK(RUN(aclnnInplaceCopy, high.tensor, low.tensor));
    for (int64_t i = 0; i < high.count; ++i)
        CHECK_NEAR(operand_get(&high, i), (double)i + 1, 0);
    operand_drop(&low);
    operand_drop(&high);
    operand_free(&base);
}

static void test_complex(void)
{
    const int64_t sizes[] = {2};
    struct operand a = operand_make(DTYPE_C64, 1, sizes, LAYOUT_PLAIN), b = operand_make(DTYPE_C64, 1, sizes, LAYOUT_PLAIN);
    struct operand out = operand_make(DTYPE_C64, 1, sizes, LAYOUT_PLAIN), real = operand_make(DTYPE_F32, 1, sizes, LAYOUT_PLAIN);
    const float x[] = {3, 4, 1, -2}, y[] = {1, 2, 0, 5};
    memcpy(a.memory, x, sizeof x);
    memcpy(b.memory, y, sizeof y);
    const float *const z = (const float *)(void *)out.memory;
    CHECK_OK(RUN(aclnnMul, a.tensor, b.tensor, out.tensor));
    CHECK(z[0] == 3 - 8 && z[1] == 6 + 4, "%g %g", (double)z[0], (double)z[1]);
    CHECK_OK(RUN(aclnnDiv, a.tensor, b.tensor, out.tensor));
    CHECK(fabsf(z[0] - 2.2f) < 1e-6f && fabsf(z[1] + 0.4f) < 1e-6f, "%g %g", (double)z[0], (double)z[1]);
    CHECK_OK(RUN(aclnnAbs, a.tensor, real.tensor));
    CHECK_NEAR(operand_get(&real, 0), 5, 1e-6);
    struct operand imaginary = operand_make(DTYPE_F32, 1, sizes, LAYOUT_PLAIN);
    operand_set(&imaginary, 1, 7);
    CHECK_OK(RUN(aclnnComplex, real.tensor, imaginary.tensor, out.tensor));
    CHECK(z[0] == 5 && z[3] == 7, "%g %g", (double)z[0], (double)z[3]);
    operand_free(&imaginary);
    operand_free(&a);
    operand_free(&b);
    operand_free(&out);
    operand_free(&real);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    test_rows();
    test_alpha();
    test_types_and_errors();
    test_partial_overlap();
    test_complex();
    return check_result();
}
