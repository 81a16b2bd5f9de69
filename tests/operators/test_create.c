/* Ranges of numbers, eye, triangles, cat, stack, flip, roll, repeat and one-hot through the C API against plain loops. */
#include "aclnnop/all_operators.h"
#include "operand.h"

static uint64_t state = 7;
static const enum dtype types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I64, DTYPE_I32,
                                   DTYPE_I16, DTYPE_I8,  DTYPE_U8,  DTYPE_B8,   DTYPE_C64, DTYPE_C128};
enum { TYPES = sizeof types / sizeof types[0] };

static void fill(const struct operand *o)
{
    for (int64_t i = 0; i < o->count; ++i)
        operand_set(o, i, o->dtype == DTYPE_B8 ? (double)(check_random(&state) % 2) : (double)(check_random(&state) % 100));
}

static void ranges(enum dtype dtype, enum layout layout)
{
    const int64_t n = 100;
    struct operand out = operand_make(dtype, 1, &n, layout);
    aclScalar *const start = scalar_i64(3), *const end = scalar_i64(103), *const step = scalar_i64(1), *const none = scalar_i64(0);
    CHECK_OK(RUN(aclnnArange, start, end, step, out.tensor));
    for (int64_t i = 0; i < n; ++i)
        CHECK_NEAR(operand_get(&out, i), 3 + (double)i, 0);
    CHECK_OK(RUN(aclnnLinspace, start, end, n, out.tensor));
    CHECK(operand_get(&out, 0) == 3 && operand_get(&out, n - 1) == 103, "linspace %s misses an end", dtype_name(dtype));
    CHECK_FAILS(RUN(aclnnArange, start, end, none, out.tensor), ACLNN_ERROR_PARAM, "step is 0");
    CHECK_FAILS(RUN(aclnnLinspace, start, end, n + 1, out.tensor), ACLNN_ERROR_PARAM, "steps is 101");
    aclDestroyScalar(start);
    aclDestroyScalar(end);
    aclDestroyScalar(step);
    aclDestroyScalar(none);
    operand_free(&out);
}

/* The base of a logarithm may be 0; and a range knows how many values it has. */
static void bases_and_counts(void)
{
    const int64_t three = 3;
    struct operand out = operand_make(DTYPE_F32, 1, &three, LAYOUT_PLAIN), whole = operand_make(DTYPE_I64, 1, &three, LAYOUT_PLAIN);
    aclScalar *const zero = scalar_i64(0), *const one = scalar_i64(1), *const ten = scalar_i64(10), *const half = scalar_f64(.5);
    CHECK_OK(RUN(aclnnLogSpace, zero, one, three, 0, out.tensor));
    CHECK(operand_get(&out, 0) == 1 && operand_get(&out, 1) == 0 && operand_get(&out, 2) == 0, "logspace of base 0");
    CHECK_OK(RUN(aclnnLogSpace, zero, one, three, 4, out.tensor));
    CHECK(operand_get(&out, 0) == 1 && operand_get(&out, 1) == 2 && operand_get(&out, 2) == 4, "logspace of base 4");
    CHECK_FAILS(RUN(aclnnArange, zero, ten, one, out.tensor), ACLNN_ERROR_PARAM, "there are 10 values");
    CHECK_FAILS(RUN(aclnnRange, zero, ten, one, out.tensor), ACLNN_ERROR_PARAM, "there are 11 values");
    CHECK_FAILS(RUN(aclnnArange, zero, ten, half, whole.tensor), ACLNN_ERROR_PARAM, "there are 20 values");
    aclScalar *const scalars[] = {zero, one, ten, half};
    for (int i = 0; i < 4; ++i)
        aclDestroyScalar(scalars[i]);
    operand_free(&out);
    operand_free(&whole);
}

static void matrices(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[3] = {2, 5, 7}, flat[2] = {5, 7};
    struct operand in = operand_make(dtype, 3, sizes, layout), out = operand_make(dtype, 3, sizes, (enum layout)((layout + 1) % 4));
    struct operand eye = operand_make(dtype, 2, flat, layout);
    fill(&eye);
    CHECK_OK(RUN(aclnnEye, 5, 7, eye.tensor));
    for (int64_t e = 0; e < eye.count; ++e)
        CHECK(operand_get(&eye, e) == (e / 7 == e % 7), "eye %s", dtype_name(dtype));
    for (int64_t diagonal = -8; diagonal <= 8; ++diagonal) {
        fill(&in);
        fill(&out);
        CHECK_OK(RUN(aclnnTril, in.tensor, diagonal, out.tensor));
        for (int64_t e = 0; e < in.count; ++e)
            CHECK(operand_get(&out, e) == (e % 7 - e / 7 % 5 <= diagonal ? operand_get(&in, e) : 0), "tril %s", dtype_name(dtype));
        CHECK_OK(RUN(aclnnTriu, in.tensor, diagonal, out.tensor));
        CHECK_OK(RUN(aclnnInplaceTriu, in.tensor, diagonal));
        for (int64_t e = 0; e < in.count; ++e)
            CHECK(operand_get(&out, e) == operand_get(&in, e) && (e % 7 - e / 7 % 5 >= diagonal || operand_get(&in, e) == 0),
                  "triu %s", dtype_name(dtype));
    }
    operand_free(&in);
    operand_free(&out);
    operand_free(&eye);
}

static void joining(enum dtype dtype, enum layout layout)
{
    const int64_t a_sizes[3] = {2, 3, 4}, b_sizes[3] = {2, 5, 4}, sizes[3] = {2, 8, 4}, none = 0, stacked[4] = {2, 3, 2, 4};
    struct operand a = operand_make(dtype, 3, a_sizes, layout), b = operand_make(dtype, 3, b_sizes, LAYOUT_PLAIN);
    struct operand empty = operand_make(dtype, 1, &none, LAYOUT_PLAIN),
                   out = operand_make(dtype, 3, sizes, (enum layout)((layout + 3) % 4));
    struct operand wide = operand_make(dtype, 4, stacked, layout);
    fill(&a);
    fill(&b);
    aclTensor *entries[3] = {operand_again(&a), operand_again(&empty), operand_again(&b)};
    aclTensorList *list = aclCreateTensorList(entries, 3);
    CHECK_OK(RUN(aclnnCat, list, -2, out.tensor));
    for (int64_t e = 0; e < out.count; ++e) {
        const int64_t i = e / 32, k = e / 4 % 8, m = e % 4;
        CHECK(operand_get(&out, e) == (k < 3 ? operand_get(&a, i * 12 + k * 4 + m) : operand_get(&b, i * 20 + (k - 3) * 4 + m)),
              "cat %s", dtype_name(dtype));
    }
    CHECK_FAILS(RUN(aclnnCat, list, 0, out.tensor), ACLNN_ERROR_PARAM, "an entry of tensors is");
    aclDestroyTensorList(list);
    entries[0] = operand_again(&a);
    entries[1] = operand_again(&a);
    list = aclCreateTensorList(entries, 2);
    CHECK_OK(RUN(aclnnStack, list, 2, wide.tensor));
    for (int64_t e = 0; e < wide.count; ++e)
        CHECK(operand_get(&wide, e) == operand_get(&a, e / 8 * 4 + e % 4), "stack %s", dtype_name(dtype));
    aclDestroyTensorList(list);
    operand_free(&a);
    operand_free(&b);
    operand_free(&empty);
    operand_free(&out);
    operand_free(&wide);
}

static void rearranging(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[2] = {4, 6}, dims[2] = {0, -1}, shifts[2] = {1, -2}, one = 7, repeats[3] = {2, 1, 3},
                  repeated[3] = {2, 4, 18};
    struct operand in = operand_make(dtype, 2, sizes, layout), out = operand_make(dtype, 2, sizes, (enum layout)((layout + 1) % 4));
    struct operand more = operand_make(dtype, 3, repeated, LAYOUT_PLAIN);
    aclIntArray *const both = aclCreateIntArray(dims, 2), *const by = aclCreateIntArray(shifts, 2),
                       *const flat = aclCreateIntArray(&one, 1);
    aclIntArray *const times = aclCreateIntArray(repeats, 3);
    fill(&in);
    CHECK_OK(RUN(aclnnFlip, in.tensor, both, out.tensor));
    for (int64_t e = 0; e < 24; ++e)
        CHECK(operand_get(&out, e) == operand_get(&in, 23 - e), "flip %s", dtype_name(dtype));
    CHECK_OK(RUN(aclnnRoll, in.tensor, by, both, out.tensor));
    for (int64_t e = 0; e < 24; ++e)
        CHECK(operand_get(&out, e) == operand_get(&in, (e / 6 + 3) % 4 * 6 + (e % 6 + 2) % 6), "roll %s", dtype_name(dtype));
    CHECK_OK(RUN(aclnnRoll, in.tensor, flat, NULL, out.tensor));
    for (int64_t e = 0; e < 24; ++e)
        CHECK(operand_get(&out, e) == operand_get(&in, (e + 17) % 24), "roll of all %s", dtype_name(dtype));
    CHECK_OK(RUN(aclnnRepeat, in.tensor, times, more.tensor));
    for (int64_t e = 0; e < more.count; ++e)
        CHECK(operand_get(&more, e) == operand_get(&in, e / 18 % 4 * 6 + e % 6), "repeat %s", dtype_name(dtype));
    aclDestroyIntArray(both);
    aclDestroyIntArray(by);
    aclDestroyIntArray(flat);
    aclDestroyIntArray(times);
    operand_free(&in);
    operand_free(&out);
    operand_free(&more);
}

static void one_hot(void)
{
    const int64_t n = 10, sizes[2] = {10, 4};
    struct operand in = operand_make(DTYPE_I64, 1, &n, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 2, sizes, LAYOUT_TRANSPOSED);
    struct operand on = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN), off = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    operand_set(&on, 0, 5);
    operand_set(&off, 0, -1);
    for (int64_t i = 0; i < n; ++i)
        operand_set(&in, i, (double)(i % 4));
    CHECK_OK(RUN(aclnnOneHot, in.tensor, 4, on.tensor, off.tensor, -1, out.tensor));
    for (int64_t e = 0; e < out.count; ++e)
        CHECK_NEAR(operand_get(&out, e), e / 4 % 4 == e % 4 ? 5 : -1, 0);
    operand_free(&in);
    operand_free(&out);
    operand_free(&on);
    operand_free(&off);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    bases_and_counts();
    for (int t = 0; t < TYPES; ++t)
        for (enum layout layout = 0; layout < LAYOUT_COUNT; ++layout) {
            if (types[t] != DTYPE_B8 && dtype_kind(types[t]) != KIND_COMPLEX)
                ranges(types[t], layout);
            matrices(types[t], layout);
            joining(types[t], layout);
            rearranging(types[t], layout);
        }
    one_hot();
    return check_result();
}
