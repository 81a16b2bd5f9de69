/* float8 through the C API: operators that move or compare it take it, with one type among all operands; the others refuse it. */
#include "acl/acl_base.h"
#include "aclnnop/all_operators.h"
#include "operand.h"

static const int64_t sizes[] = {3, 5};

static struct operand numbers(enum dtype dtype, enum layout layout)
{
    struct operand o = operand_make(dtype, 2, sizes, layout);
    for (int64_t i = 0; i < o.count; ++i)
        operand_set(&o, i, (double)i * 0.25 - 1);
    return o;
}

static void test_comparisons(enum dtype dtype, enum layout layout)
{
    struct operand a = numbers(dtype, layout), b = numbers(dtype, LAYOUT_PLAIN), out = operand_make(DTYPE_B8, 2, sizes, layout);
    operand_set(&b, 7, (double)NAN);
    operand_set(&b, 8, 40);
    CHECK_OK(RUN(aclnnEqTensor, a.tensor, b.tensor, out.tensor));
    for (int64_t i = 0; i < out.count; ++i)
        CHECK(operand_get(&out, i) == (i != 7 && i != 8), "element %lld", (long long)i);
    CHECK_OK(RUN(aclnnNeTensor, b.tensor, b.tensor, out.tensor));
    for (int64_t i = 0; i < out.count; ++i)
        CHECK(operand_get(&out, i) == (i == 7), "element %lld", (long long)i);
    aclScalar *const near = scalar_f64(1.26); /* becomes 1.25 first, as the elements did */
    CHECK_OK(RUN(aclnnEqScalar, a.tensor, near, out.tensor));
    for (int64_t i = 0; i < out.count; ++i)
        CHECK(operand_get(&out, i) == (i == 9), "element %lld", (long long)i);
    aclDestroyScalar(near);
    operand_free(&a);
    operand_free(&b);
    operand_free(&out);
}

static void test_choices(enum dtype dtype, enum layout layout)
{
    struct operand a = numbers(dtype, layout), b = operand_make(dtype, 2, sizes, LAYOUT_STEPPED);
    struct operand mask = operand_make(DTYPE_B8, 2, sizes, LAYOUT_PLAIN), out = operand_make(dtype, 2, sizes, layout);
    for (int64_t i = 0; i < b.count; ++i) {
        operand_set(&b, i, 16);
        operand_set(&mask, i, i % 3 == 0);
    }
    CHECK_OK(RUN(aclnnSWhere, mask.tensor, a.tensor, b.tensor, out.tensor));
    for (int64_t i = 0; i < out.count; ++i)
        CHECK_NEAR(operand_get(&out, i), i % 3 == 0 ? operand_get(&a, i) : 16, 0);
    CHECK_OK(RUN(aclnnMul, a.tensor, b.tensor, out.tensor));
    for (int64_t i = 0; i < out.count; ++i)
        CHECK_NEAR(operand_get(&out, i), operand_rounded(dtype, 16 * operand_get(&a, i)), 0);
    operand_free(&a);
    operand_free(&b);
    operand_free(&mask);
    operand_free(&out);
}

static void test_refusals(void)
{
    struct operand a = numbers(DTYPE_F8_E4M3FN, LAYOUT_PLAIN), b = numbers(DTYPE_F8_E5M2, LAYOUT_PLAIN);
    struct operand f = numbers(DTYPE_F32, LAYOUT_PLAIN), out = operand_make(DTYPE_B8, 2, sizes, LAYOUT_PLAIN);
    const float pair[] = {1, 2};
    uint8_t code = 0x38;
    aclScalar *const one = scalar_f64(1), *const complex = aclCreateScalar((void *)(uintptr_t)pair, ACL_COMPLEX64);
    CHECK_FAILS(RUN(aclnnAdd, a.tensor, a.tensor, one, a.tensor), ACLNN_ERROR_PARAM, "f8_e4m3fn");
    CHECK_FAILS(RUN(aclnnAdd, f.tensor, f.tensor, one, b.tensor), ACLNN_ERROR_PARAM, "f8_e5m2");
    CHECK_FAILS(RUN(aclnnExp, f.tensor, a.tensor), ACLNN_ERROR_PARAM, "cast it");
    CHECK_FAILS(RUN(aclnnMuls, a.tensor, one, a.tensor), ACLNN_ERROR_PARAM, "f8_e4m3fn");
    CHECK_FAILS(RUN(aclnnEqTensor, a.tensor, b.tensor, out.tensor), ACLNN_ERROR_PARAM, "one type");
    CHECK_FAILS(RUN(aclnnEqTensor, a.tensor, f.tensor, out.tensor), ACLNN_ERROR_PARAM, "one type");
    CHECK_FAILS(RUN(aclnnEqTensor, a.tensor, a.tensor, a.tensor), ACLNN_ERROR_PARAM, "out has data type f8_e4m3fn");
    CHECK_FAILS(RUN(aclnnNeScalar, a.tensor, complex, out.tensor), ACLNN_ERROR_PARAM, "complex");
    CHECK_FAILS(RUN(aclnnSWhere, out.tensor, a.tensor, f.tensor, a.tensor), ACLNN_ERROR_PARAM, "one type");
    CHECK_FAILS(RUN(aclnnMul, a.tensor, f.tensor, f.tensor), ACLNN_ERROR_PARAM, "one type");
    CHECK_FAILS(RUN(aclnnEqual, a.tensor, b.tensor, out.tensor), ACLNN_ERROR_PARAM, "must be equal");
    CHECK(aclCreateScalar(&code, ACL_FLOAT8_E4M3FN) == NULL, "a scalar of a type that is only stored");
    (void)error_take_text();
    CHECK_INT(aclDataTypeSize(ACL_FLOAT8_E4M3FN), 1);
    CHECK_INT(aclDataTypeSize(ACL_FLOAT8_E5M2), 1);
    aclDestroyScalar(one);
    aclDestroyScalar(complex);
    operand_free(&a);
    operand_free(&b);
    operand_free(&f);
    operand_free(&out);
}

int main(void)
{
    static const enum dtype types[] = {DTYPE_F8_E4M3FN, DTYPE_F8_E5M2};
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int t = 0; t < 2; ++t)
        for (int layout = 0; layout < LAYOUT_COUNT; ++layout) {
            test_comparisons(types[t], (enum layout)layout);
            test_choices(types[t], (enum layout)layout);
        }
    test_refusals();
    return check_result();
}
