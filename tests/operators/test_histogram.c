/* bincount and histc against plain loops: small and cut into slices, weights, values out of range, ranges that aren't finite. */
#include "aclnnop/all_operators.h"
#include "operand.h"

static uint64_t state = 3;

static void counting(enum dtype dtype, enum layout layout, int64_t count, int64_t bins)
{
    struct operand self = operand_make(dtype, 1, &count, layout), out = operand_make(DTYPE_I64, 1, &bins, layout);
    struct operand weights = operand_make(DTYPE_I32, 1, &count, layout), real = operand_make(DTYPE_F64, 1, &count, LAYOUT_PLAIN);
    struct operand sums = operand_make(DTYPE_F64, 1, &bins, LAYOUT_PLAIN);
    int64_t *const expected = calloc((size_t)bins, sizeof *expected), *const weighted = calloc((size_t)bins, sizeof *weighted);
    double *const in_order = calloc((size_t)bins, sizeof *in_order);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t class = (int64_t)(check_random(&state) % (uint64_t)(bins < 100 ? bins : 100));
        operand_set(&self, i, (double)class);
        operand_set(&weights, i, (double)(i % 11) - 4);
        operand_set(&real, i, 1 / (double)(i + 1));
        ++expected[class];
        weighted[class] += i % 11 - 4;
        in_order[class] += 1 / (double)(i + 1);
    }
    CHECK_OK(RUN(aclnnBincount, self.tensor, NULL, bins, out.tensor));
    for (int64_t b = 0; b < bins; ++b)
        CHECK_INT(operand_get(&out, b), expected[b]);
    CHECK_OK(RUN(aclnnBincount, self.tensor, weights.tensor, 0, out.tensor));
    for (int64_t b = 0; b < bins; ++b)
        CHECK_INT(operand_get(&out, b), weighted[b]);
    CHECK_OK(RUN(aclnnBincount, self.tensor, real.tensor, 0, sums.tensor));
    for (int64_t b = 0; b < bins; ++b)
        CHECK_NEAR(operand_get(&sums, b), in_order[b], 0);
    operand_set(&self, count / 2, (double)bins);
    operand_set(&self, count - 1, (double)bins + 1);
    char text[64];
    snprintf(text, sizeof text, "value %lld has no bin", (long long)bins + (count == 1));
    CHECK_FAILS(RUN(aclnnBincount, self.tensor, NULL, 0, out.tensor), ERROR_RT_DEVICE_TASK, text);
    free(expected);
    free(weighted);
    free(in_order);
    struct operand *const all[] = {&self, &out, &weights, &real, &sums};
    for (int i = 0; i < 5; ++i)
        operand_free(all[i]);
}

static int histogram(const struct operand *self, int64_t bins, double low, double high, const struct operand *out)
{
    aclScalar *const min = scalar_f64(low), *const max = scalar_f64(high);
    const int code = RUN(aclnnHistc, self->tensor, bins, min, max, out->tensor);
    aclDestroyScalar(min);
    aclDestroyScalar(max);
    return code;
}

static void spread(enum dtype dtype, enum layout layout, int64_t count)
{
    const int64_t bins = 7;
    struct operand self = operand_make(dtype, 1, &count, layout), out = operand_make(dtype, 1, &bins, LAYOUT_PLAIN);
    for (int pass = 0; pass < 2; ++pass) {
        const double low = pass ? -1 : 2, high = pass ? 11 : 9;
        int64_t expected[7] = {0};
        for (int64_t i = 0; i < count; ++i) {
            const double x = i == 0 ? -1 : i == 1 ? 11 : (double)(check_random(&state) % 12);
            operand_set(&self, i, x);
            if (x >= low && x <= high)
                ++expected[x == high ? 6 : (int)((x - low) * 7 / (high - low))];
        }
        CHECK_OK(histogram(&self, bins, pass ? 0 : low, pass ? 0 : high, &out));
        for (int b = 0; b < 7; ++b)
            CHECK_NEAR(operand_get(&out, b), operand_rounded(dtype, (double)expected[b]), 0);
    }
    operand_free(&self);
    operand_free(&out);
}

/* Whatever the position of the number that spoils the range. */
static void ranges_are_finite(int64_t count)
{
    static const double spoilers[] = {INFINITY, -INFINITY, NAN};
    const int64_t bins = 4;
    struct operand self = operand_make(DTYPE_F64, 1, &count, LAYOUT_PLAIN), out = operand_make(DTYPE_F64, 1, &bins, LAYOUT_PLAIN);
    for (int64_t i = 0; i < count; ++i)
        operand_set(&self, i, (double)(i % 2));
    for (int s = 0; s < 3; ++s)
        for (int end = 0; end < 2; ++end) {
            operand_set(&self, end ? count - 1 : 0, spoilers[s]);
            CHECK_FAILS(histogram(&self, bins, 0, 0, &out), ERROR_RT_DEVICE_TASK, "is not finite");
            CHECK_OK(histogram(&self, bins, 0, 1, &out)); /* a given range: it doesn't count */
            CHECK_INT(operand_get(&out, 0) + operand_get(&out, 3), count - 1);
            operand_set(&self, end ? count - 1 : 0, 0);
            CHECK_FAILS(histogram(&self, bins, s == 1 ? -INFINITY : 0,
                                  s == 0   ? INFINITY
                                  : s == 1 ? 1
                                           : NAN,
                                  &out),
                        ACLNN_ERROR_PARAM, "is not finite");
        }
    CHECK_OK(histogram(&self, bins, -1.7e308, 1.7e308, &out));
    CHECK_INT(operand_get(&out, 2), count);
    operand_free(&self);
    operand_free(&out);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    counting(DTYPE_I64, LAYOUT_PLAIN, 1, 4);
    counting(DTYPE_I32, LAYOUT_STEPPED, 300, 90);
    counting(DTYPE_I64, LAYOUT_PLAIN, 300001, 100);
    counting(DTYPE_I32, LAYOUT_PLAIN, 200000, 70000);
    spread(DTYPE_F32, LAYOUT_PLAIN, 50);
    spread(DTYPE_F64, LAYOUT_STEPPED, 300001);
    spread(DTYPE_F32, LAYOUT_PLAIN, 200000);
    ranges_are_finite(3);
    ranges_are_finite(200000);
    return check_result();
}
