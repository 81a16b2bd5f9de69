/* Dropout: masks are reproducible, kept shares are right, padding is zero, values are scaled. */
#include "base/philox.h"
#include "operators/tensors.h"

static uint64_t seed = 9;

static int packed_bit(const struct tensor *mask, int64_t i) { return (int)tensor_get(mask, i / 8) >> (i % 8) & 1; }

static void test_masks(int64_t count, double prob)
{
    aclIntArray *const shape = aclCreateIntArray(&count, 1);
    struct tensor bits = tensor_new(DTYPE_U8, PLAIN, SIZES((count + 127) / 128 * 16)),
                  bytes = tensor_new(DTYPE_B8, PLAIN, SIZES(count));
    RUN(DropoutGenMaskV2, shape, prob, 1234, 40, ACL_FLOAT, bits.handle);
    RUN(DropoutGenMask, shape, prob, 1234, 40, bytes.handle);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
        const struct philox_block block = philox(1234, (uint64_t)i / 4, 10);
        const int expected = prob == 0 ? 1 : prob == 1 ? 0 : block.word[i % 4] >= (uint32_t)(prob * 4294967296.0);
        CHECK_INT(packed_bit(&bits, i), expected);
        CHECK_INT(tensor_get(&bytes, i), expected);
        kept += expected;
    }
    for (int64_t i = count; i < bits.count * 8 && prob > 0; ++i)
        CHECK_INT(packed_bit(&bits, i), 0);
    if (count > 10000)
        CHECK(fabs((double)kept / (double)count - (1 - prob)) < .02, "%lld of %lld kept", (long long)kept, (long long)count);
    aclDestroyIntArray(shape);
    tensor_free(&bits);
    tensor_free(&bytes);
}

static void test_apply(enum dtype dtype, enum layout layout, int64_t rows, int64_t columns, double prob, bool packed)
{
    const int64_t count = rows * columns;
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(rows, columns)),
                  y = tensor_new(dtype, layout, SIZES(rows, columns));
    struct tensor mask =
        packed ? tensor_new(DTYPE_U8, PLAIN, SIZES((count + 127) / 128 * 16)) : tensor_new(DTYPE_B8, PLAIN, SIZES(rows, columns));
    tensor_fill(&mask, 0);
    RUN(DropoutV3, x.handle, NULL, prob, 77, 4, y.handle, mask.handle);
    for (int pass = 0; pass < 2; ++pass) {
        for (int64_t i = 0; i < count; ++i) {
            const int kept = prob == 0 ? 1 : prob == 1 ? 0 : packed ? packed_bit(&mask, i) : (int)tensor_get(&mask, i);
            CHECK_NEAR(tensor_get(&y, i), kept ? tensor_get(&x, i) / (prob < 1 ? 1 - prob : 1) : 0, tensor_tolerance(dtype));
        }
        tensor_fill(&y, 9);
        RUN(DropoutDoMask, x.handle, mask.handle, prob, y.handle);
    }
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&mask);
}

static void test_masked_scale(enum dtype dtype, enum dtype mask_type, enum layout layout)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(33, 40)), y = tensor_new(dtype, layout, SIZES(33, 40));
    struct tensor mask = tensor_new(mask_type, layout, SIZES(33, 40));
    for (int64_t i = 0; i < mask.count; ++i)
        tensor_set(&mask, i, (double)(check_random(&seed) & 1));
    RUN(MaskedScale, x.handle, mask.handle, 1.25, y.handle);
    for (int64_t i = 0; i < x.count; ++i)
        CHECK_NEAR(tensor_get(&y, i), tensor_get(&x, i) * tensor_get(&mask, i) * 1.25, tensor_tolerance(dtype));
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&mask);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16};
    static const int64_t counts[] = {1, 8, 129, 1024, 1025, 20011};
    for (int i = 0; i < 6; ++i)
        for (int p = 0; p < 4; ++p)
            test_masks(counts[i], (double[]){0, .5, .1, 1}[p]);
    for (int t = 0; t < 4; ++t)
        for (int m = 0; m < 3; ++m)
            test_masked_scale(types[t], (enum dtype[]){DTYPE_B8, DTYPE_U8, DTYPE_F32}[m], (enum layout)((t + m) % LAYOUTS));
    for (int t = 0; t < 4; ++t)
        for (int p = 0; p < 4; ++p)
            for (int packed = 0; packed < 2; ++packed)
                test_apply(types[t], (enum layout)(t % LAYOUTS), 37, 61, (double[]){0, .5, .3, 1}[p], packed);
}

/* A product of sizes that is negative or wraps must not pass for a mask that is large enough. */
static void test_shapes_are_checked(void)
{
    static const int64_t shapes[][3] = {
        {-100, 1, 1}, {1, -1, -128}, {1ll << 32, 1ll << 32, 1}, {1ll << 62, 4, 1}, {INT64_MAX, 1, 1}};
    struct tensor mask = tensor_new(DTYPE_U8, PLAIN, SIZES(16));
    tensor_fill(&mask, 0);
    for (int i = 0; i < 5; ++i) {
        aclIntArray *const shape = aclCreateIntArray(shapes[i], 3);
        REFUSE(DropoutGenMask, ACLNN_ERROR_PARAM, i == 4 ? "mask" : "shape[", shape, .5, 1, 0, mask.handle);
        REFUSE(DropoutGenMaskV2, ACLNN_ERROR_PARAM, i == 4 ? "mask" : "shape[", shape, .5, 1, 0, ACL_FLOAT, mask.handle);
        aclDestroyIntArray(shape);
    }
    tensor_free(&mask);
}

int main(void)
{
    tensors_begin();
    test_shapes_are_checked();
    FOR_EACH_ISA(test_all())
    return check_result();
}
