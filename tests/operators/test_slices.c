/* Constant pads, strided slices, splits, channel shuffles, repeats and their gradient against index arithmetic. */
#include "tensors.h"

static uint64_t seed = 17;

static void test_pad(enum dtype dtype, enum layout layout, const int64_t *sizes, const int64_t *pads, int count)
{
    int64_t padded[3];
    for (int d = 0; d < 3; ++d)
        padded[d] = sizes[d] + (2 * (2 - d) < count ? pads[2 * (2 - d)] + pads[2 * (2 - d) + 1] : 0);
    struct tensor x = tensor_random(dtype, layout, &seed, 3, sizes), y = tensor_new(dtype, layout, 3, padded);
    const double filler = 2;
    aclScalar *const value = aclCreateScalar((void *)(uintptr_t)&filler, ACL_DOUBLE);
    aclIntArray *const pad = aclCreateIntArray(pads, (uint64_t)count);
    RUN(ConstantPadNd, x.handle, pad, value, y.handle);
    for (int64_t i = 0; i < y.count; ++i) {
        int64_t left = i, at = 0, step = 1;
        bool inside = true;
        for (int d = 2; d >= 0; --d) {
            const int64_t place = left % padded[d] - (2 * (2 - d) < count ? pads[2 * (2 - d)] : 0);
            left /= padded[d];
            inside &= place >= 0 && place < sizes[d];
            at += place * step;
            step *= sizes[d];
        }
        CHECK_NEAR(tensor_get(&y, i), inside ? tensor_get(&x, at) : dtype == DTYPE_B8 ? 1 : 2, 0);
    }
    aclDestroyScalar(value);
    aclDestroyIntArray(pad);
    tensor_free(&x);
    tensor_free(&y);
}

static void test_slice(enum dtype dtype, enum layout layout)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(6, 7, 3)), y = tensor_new(dtype, layout, SIZES(2, 4, 3)),
                  z = tensor_new(dtype, layout, SIZES(4, 3));
    const int64_t from[] = {1, -1}, to[] = {5, -8}, by[] = {2, -2};
    aclIntArray *const begin = aclCreateIntArray(from, 2), *const end = aclCreateIntArray(to, 2),
                       *const strides = aclCreateIntArray(by, 2);
    RUN(StridedSlice, x.handle, begin, end, strides, 0, 0, 0, 0, 0, y.handle);
    for (int64_t i = 0; i < y.count; ++i)
        CHECK_NEAR(tensor_get(&y, i), tensor_get(&x, ((1 + i / 12 * 2) * 7 + 6 - i / 3 % 4 * 2) * 3 + i % 3), 0);
    RUN(StridedSlice, x.handle, begin, end, strides, 2, 2, 0, 0, 1, z.handle); /* row 1; columns backwards from the end */
    for (int64_t i = 0; i < z.count; ++i)
        CHECK_NEAR(tensor_get(&z, i), tensor_get(&x, (7 + 6 - i / 3 * 2) * 3 + i % 3), 0);
    REFUSE(StridedSlice, ACLNN_ERROR_PARAM, "ellipsisMask", x.handle, begin, end, strides, 0, 0, 1, 0, 0, y.handle);
    REFUSE(StridedSlice, ACLNN_ERROR_PARAM, "out", x.handle, begin, end, strides, 0, 0, 0, 0, 0, z.handle);
    aclDestroyIntArray(begin);
    aclDestroyIntArray(end);
    aclDestroyIntArray(strides);
    tensor_free(&x);
    tensor_free(&y);
    tensor_free(&z);
}

static void test_split(enum dtype dtype, enum layout layout)
{
    static const int64_t sizes[] = {1, 0, 4};
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(3, 5, 2)), parts[3];
    aclTensor *handles[3];
    for (int i = 0; i < 3; ++i) {
        parts[i] = tensor_new(dtype, layout, SIZES(3, sizes[i], 2));
        handles[i] = parts[i].handle;
    }
    aclIntArray *const split = aclCreateIntArray(sizes, 3);
    aclTensorList *const list = aclCreateTensorList(handles, 3);
    RUN(SplitWithSize, x.handle, split, -2, list);
    REFUSE(SplitWithSize, ACLNN_ERROR_PARAM, "an entry of out", x.handle, split, 0, list);
    const int64_t whole[] = {3, 5, 2};
    aclIntArray *const once = aclCreateIntArray(&whole[1], 1);
    aclTensor *const nowhere =
        aclCreateTensor(whole, 3, (aclDataType)dtype_infos[dtype].acl, NULL, 0, ACL_FORMAT_ND, whole, 3, NULL);
    aclTensorList *const lost = aclCreateTensorList(&nowhere, 1);
    REFUSE(SplitWithSize, ACLNN_ERROR_NULLPTR, "no memory", x.handle, once, 1, lost);
    aclDestroyTensorList(lost);
    aclDestroyIntArray(once);
    for (int i = 0; i < 3; ++i)
        for (int64_t k = 0; k < parts[i].count; ++k) {
            const int64_t row = k / (sizes[i] * 2), at = k / 2 % sizes[i] + (i == 2);
            CHECK_NEAR(tensor_get(&parts[i], k), tensor_get(&x, (row * 5 + at) * 2 + k % 2), 0);
        }
    aclDestroyIntArray(split);
    aclDestroyTensorList(list); /* with its tensors */
    for (int i = 0; i < 3; ++i)
        free(parts[i].memory);
    tensor_free(&x);
}

static void test_shuffle(enum dtype dtype, enum layout layout)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(2, 6, 3, 2)), y = tensor_new(dtype, layout, SIZES(2, 6, 3, 2));
    RUN(ChannelShuffle, x.handle, 3, y.handle);
    for (int64_t i = 0; i < y.count; ++i) {
        const int64_t channel = i / 6 % 6;
        CHECK_NEAR(tensor_get(&y, i), tensor_get(&x, (i / 36 * 6 + channel % 3 * 2 + channel / 3) * 6 + i % 6), 0);
    }
    REFUSE(ChannelShuffle, ACLNN_ERROR_PARAM, "groups 4", x.handle, 4, y.handle);
    tensor_free(&x);
    tensor_free(&y);
}

static void test_repeats_of_number(enum dtype dtype, enum layout layout)
{
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(3, 4, 2)), flat = tensor_new(dtype, layout, SIZES(72)),
                  y = tensor_new(dtype, layout, SIZES(3, 12, 2));
    RUN(RepeatInterleaveInt, x.handle, 3, 72, flat.handle);
    RUN(RepeatInterleaveIntWithDim, x.handle, 3, -2, 12, y.handle);
    for (int64_t i = 0; i < 72; ++i) {
        CHECK_NEAR(tensor_get(&flat, i), tensor_get(&x, i / 3), 0);
        CHECK_NEAR(tensor_get(&y, i), tensor_get(&x, (i / 24 * 4 + i / 2 % 12 / 3) * 2 + i % 2), 0);
    }
    tensor_free(&x);
    tensor_free(&flat);
    tensor_free(&y);
}

static void test_repeats_of_tensor(enum dtype dtype, enum dtype index, enum layout layout)
{
    static const int64_t repeats[] = {2, 0, 3, 1}, source[] = {0, 0, 2, 2, 2, 3};
    struct tensor x = tensor_random(dtype, layout, &seed, SIZES(3, 4, 2)), y = tensor_new(dtype, layout, SIZES(3, 6, 2));
    struct tensor line = tensor_random(dtype, layout, &seed, SIZES(2, 2)), flat = tensor_new(dtype, layout, SIZES(6));
    struct tensor counts = tensor_new(index, layout, SIZES(4)), list = tensor_new(index, layout, SIZES(6));
    for (int i = 0; i < 4; ++i)
        tensor_set(&counts, i, (double)repeats[i]);
    RUN(RepeatInterleaveWithDim, x.handle, counts.handle, 1, 6, y.handle);
    RUN(RepeatInterleave, line.handle, counts.handle, 6, flat.handle);
    RUN(RepeatInterleaveTensor, counts.handle, 6, list.handle);
    for (int64_t i = 0; i < y.count; ++i)
        CHECK_NEAR(tensor_get(&y, i), tensor_get(&x, (i / 12 * 4 + source[i / 2 % 6]) * 2 + i % 2), 0);
    for (int64_t i = 0; i < 6; ++i) {
        CHECK_NEAR(tensor_get(&flat, i), tensor_get(&line, source[i]), 0);
        CHECK_INT(tensor_get(&list, i), source[i]);
    }
    if (dtype_is_floating(dtype)) {
        RUN(RepeatInterleaveGrad, y.handle, counts.handle, 1, x.handle);
        for (int64_t i = 0; i < x.count; ++i) {
            double sum = 0;
            for (int64_t k = 0; k < 6; ++k)
                sum += source[k] == i / 2 % 4 ? tensor_get(&y, (i / 8 * 6 + k) * 2 + i % 2) : 0;
            CHECK_NEAR(tensor_get(&x, i), sum, 2 * tensor_tolerance(dtype));
        }
    }
    tensor_set(&counts, 0, 3); /* one more than out has room for: found when it runs */
    uint64_t bytes;
    aclOpExecutor *executor;
    CHECK_OK(aclnnRepeatInterleaveGetWorkspaceSize(line.handle, counts.handle, 6, flat.handle, &bytes, &executor));
    void *const workspace = malloc(bytes + 1);
    const int code = aclnnRepeatInterleave(workspace, bytes, executor, NULL), later = tensors_synchronize();
    CHECK((code ? code : later) == ERROR_RT_DEVICE_TASK, "code %d, then %d", code, later);
    (void)error_take_text();
    (void)error_take_last();
    free(workspace);
    struct tensor *const all[] = {&x, &y, &line, &flat, &counts, &list};
    for (int i = 0; i < 6; ++i)
        tensor_free(all[i]);
}

static void test_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_F16, DTYPE_BF16, DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8};
    static const int64_t sizes[][3] = {{3, 4, 5}, {1, 6, 2}, {4, 4, 4}},
                         pads[][6] = {{1, 2, 0, 3, 1, 0}, {-1, 2, 2, -1, 0, 1}, {-2, -1, 0, 0, 0, 0}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; ++t)
        for (int layout = 0; layout < LAYOUTS; ++layout) {
            for (int i = 0; i < 3; ++i) {
                test_pad(types[t], (enum layout)layout, sizes[i], pads[i == 1 ? 0 : i], 6 - 2 * i);
                test_pad(types[t], (enum layout)layout, sizes[i], pads[1], 4);
            }
            test_slice(types[t], (enum layout)layout);
            test_split(types[t], (enum layout)layout);
            test_shuffle(types[t], (enum layout)layout);
            test_repeats_of_number(types[t], (enum layout)layout);
            test_repeats_of_tensor(types[t], t % 2 ? DTYPE_I32 : DTYPE_I64, (enum layout)layout);
        }
}

int main(void)
{
    tensors_begin();
    FOR_EACH_ISA(test_all())
    return check_result();
}
