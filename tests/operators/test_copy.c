/* Copies and casts between all types and layouts, fills. */
#include "aclnnop/all_operators.h"
#include "operand.h"

static double converted(enum dtype to, double x)
{
    if (to == DTYPE_B8)
        return x != 0;
    if (dtype_kind(to) == KIND_INTEGER)
        x = trunc(x);
    return operand_rounded(to, x);
}

static void test_pair(enum dtype to, enum dtype from, enum layout to_layout, enum layout from_layout, int64_t width)
{
    const int64_t sizes[] = {2, 3, width};
    struct operand in = operand_make(from, 3, sizes, from_layout), out = operand_make(to, 3, sizes, to_layout);
    for (int64_t i = 0; i < in.count; ++i)
        operand_set(&in, i,
                    dtype_kind(from) >= KIND_FLOAT ? (double)(i % 23) * 0.75 - (to == DTYPE_U8 ? 0 : 5)
                                                   : (double)(i % 23) - (to == DTYPE_U8 || from == DTYPE_U8 ? 0 : 5));
    CHECK_OK(RUN(aclnnInplaceCopy, out.tensor, in.tensor));
    for (int64_t i = 0; i < in.count; ++i)
        CHECK(check_near(operand_get(&out, i), converted(to, operand_get(&in, i)), 0), "%s to %s: %g gave %g", dtype_name(from),
              dtype_name(to), operand_get(&in, i), operand_get(&out, i));
    operand_free(&in);
    operand_free(&out);
}

static void test_edges(void)
{
    const int64_t four[] = {4}, one[] = {1}, many[] = {1000, 4};
    struct operand x = operand_make(DTYPE_F32, 1, four, LAYOUT_PLAIN), i32 = operand_make(DTYPE_I32, 1, four, LAYOUT_PLAIN);
    struct operand u8 = operand_make(DTYPE_U8, 1, four, LAYOUT_PLAIN), b8 = operand_make(DTYPE_B8, 1, four, LAYOUT_PLAIN);
    operand_set(&x, 0, -1.75);
    operand_set(&x, 1, 300.5);
    operand_set(&x, 2, (double)NAN);
    operand_set(&x, 3, 0.25);
    CHECK_OK(RUN(aclnnCast, x.tensor, ACL_INT32, i32.tensor));
    CHECK_NEAR(operand_get(&i32, 0), -1, 0);
    CHECK_OK(RUN(aclnnCast, x.tensor, ACL_UINT8, u8.tensor));
    CHECK_NEAR(operand_get(&u8, 0), 255, 0);
    CHECK_NEAR(operand_get(&u8, 1), 44, 0);
    CHECK_OK(RUN(aclnnCast, x.tensor, ACL_BOOL, b8.tensor));
    CHECK_NEAR(operand_get(&b8, 2), 1, 0);
    CHECK_NEAR(operand_get(&b8, 3), 1, 0);
    CHECK_FAILS(RUN(aclnnCast, x.tensor, ACL_BOOL, u8.tensor), ACLNN_ERROR_PARAM, "dtype");
    struct operand wide = operand_make(DTYPE_F64, 2, many, LAYOUT_STEPPED), single = operand_make(DTYPE_F32, 1, one, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnInplaceCopy, wide.tensor, i32.tensor)); /* broadcast */
    CHECK_NEAR(operand_get(&wide, 3996), -1, 0);
    CHECK_FAILS(RUN(aclnnInplaceCopy, i32.tensor, wide.tensor), ACLNN_ERROR_PARAM, "broadcast");
    aclScalar *const number = scalar_f64(2.75);
    CHECK_OK(RUN(aclnnInplaceFillScalar, wide.tensor, number));
    CHECK_NEAR(operand_get(&wide, 1234), 2.75, 0);
    CHECK_OK(RUN(aclnnInplaceFillScalar, i32.tensor, number));
    CHECK_NEAR(operand_get(&i32, 1), 2, 0);
    operand_set(&single, 0, 9);
    CHECK_OK(RUN(aclnnInplaceFillTensor, wide.tensor, single.tensor));
    CHECK_NEAR(operand_get(&wide, 77), 9, 0);
    CHECK_OK(RUN(aclnnInplaceOne, wide.tensor));
    CHECK_NEAR(operand_get(&wide, 78), 1, 0);
    CHECK_OK(RUN(aclnnInplaceZero, wide.tensor));
    CHECK_NEAR(operand_get(&wide, 79), 0, 0);
    aclDestroyScalar(number);
    operand_free(&x);
    operand_free(&i32);
    operand_free(&u8);
    operand_free(&b8);
    operand_free(&wide);
    operand_free(&single);
}

static void test_diagonal(int wrap)
{
    const int64_t sizes[] = {7, 2};
    struct operand x = operand_make(DTYPE_F32, 2, sizes, LAYOUT_TRANSPOSED);
    aclScalar *const four = scalar_i64(4);
    CHECK_OK(RUN(aclnnInplaceFillDiagonal, x.tensor, four, wrap));
    for (int row = 0; row < 7; ++row)
        for (int column = 0; column < 2; ++column)
            CHECK_NEAR(operand_get(&x, row * 2 + column), (wrap ? row % 3 : row) == column ? 4 : 0, 0);
    aclDestroyScalar(four);
    operand_free(&x);
}

/* Large transposes go block by block. */
static void test_transpose(enum dtype dtype, int64_t rows, int64_t columns)
{
    const int64_t sizes[] = {rows, columns};
    struct operand in = operand_make(dtype, 2, sizes, LAYOUT_TRANSPOSED), out = operand_make(dtype, 2, sizes, LAYOUT_PLAIN);
    for (int64_t i = 0; i < in.count; ++i)
        operand_set(&in, i, (double)(i % 127));
    CHECK_OK(RUN(aclnnInplaceCopy, out.tensor, in.tensor));
    int64_t wrong = 0;
    for (int64_t i = 0; i < in.count; ++i)
        wrong += operand_get(&out, i) != operand_rounded(dtype, (double)(i % 127));
    CHECK(wrong == 0, "%s %lld x %lld: %lld elements differ", dtype_name(dtype), (long long)rows, (long long)columns,
          (long long)wrong);
    operand_free(&in);
    operand_free(&out);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    static const int64_t widths[] = {0, 1, 9, 200, 3000};
    for (int to = 0; to < DTYPE_ALL_COUNT; ++to)
        for (int from = 0; from < DTYPE_ALL_COUNT; ++from)
            for (int w = 0; w < 5; ++w)
                test_pair((enum dtype)to, (enum dtype)from, (enum layout)((to + w) % LAYOUT_COUNT),
                          (enum layout)((from + w / 2) % LAYOUT_COUNT), widths[w]);
    test_edges();
    test_diagonal(0);
    test_diagonal(1);
    for (int d = 0; d < DTYPE_ALL_COUNT; ++d) {
        test_transpose((enum dtype)d, 300, 517);
        test_transpose((enum dtype)d, 33, 1000);
    }
    return check_result();
}
