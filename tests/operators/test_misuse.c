/* Programs with mistakes: each gets CANN's code and words that name the parameter and what was given, and nothing crashes; then
 * everything goes on working. Below: inputs of the random calls (tests/fuzz) that once crashed or read behind their memory. */
#include <pthread.h>

#include "acl/acl.h"
#include "aclnnop/all_operators.h"
#include "operand.h"

static const int64_t sizes[] = {2, 3};
static uint64_t bytes;
static aclOpExecutor *executor;

/* --- mistakes of a caller --------------------------------------------------------------------------------------------- */

static void wrong_tensors_are_refused(void)
{
    struct operand a = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    struct operand wide = operand_make(DTYPE_F32, 2, (const int64_t[]){3, 2}, LAYOUT_PLAIN);
    aclTensor *const text = aclCreateTensor(sizes, 2, ACL_STRING, NULL, 0, ACL_FORMAT_ND, sizes, 2, a.memory);
    aclScalar *const one = scalar_f64(1);
    CHECK_FAILS(aclnnAddGetWorkspaceSize(NULL, a.tensor, one, out.tensor, &bytes, &executor), ACLNN_ERROR_NULLPTR, "self");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, NULL, one, out.tensor, &bytes, &executor), ACLNN_ERROR_NULLPTR, "other");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, a.tensor, NULL, out.tensor, &bytes, &executor), ACLNN_ERROR_NULLPTR, "alpha");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, a.tensor, one, NULL, &bytes, &executor), ACLNN_ERROR_NULLPTR, "out");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, a.tensor, one, out.tensor, NULL, &executor), ACLNN_ERROR_NULLPTR,
                "workspaceSize");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, a.tensor, one, out.tensor, &bytes, NULL), ACLNN_ERROR_NULLPTR, "executor");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, wide.tensor, one, out.tensor, &bytes, &executor), ACLNN_ERROR_PARAM, "f32[3,2]");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, a.tensor, one, wide.tensor, &bytes, &executor), ACLNN_ERROR_PARAM, "f32[3,2]");
    CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, text, one, out.tensor, &bytes, &executor), ACLNN_ERROR_PARAM, "data type 13");
    CHECK_FAILS(aclnnBitwiseNotGetWorkspaceSize(a.tensor, out.tensor, &bytes, &executor), ACLNN_ERROR_PARAM, "f32");
    CHECK_FAILS(aclnnMmGetWorkspaceSize(a.tensor, a.tensor, out.tensor, 0, &bytes, &executor), ACLNN_ERROR_PARAM, "f32[2,3]");
    CHECK_FAILS(aclnnSoftmaxGetWorkspaceSize(a.tensor, 2, out.tensor, &bytes, &executor), ACLNN_ERROR_PARAM, "dim");
    CHECK_OK(RUN(aclnnAdd, a.tensor, a.tensor, one, out.tensor));
    aclDestroyScalar(one);
    aclDestroyTensor(text);
    operand_free(&wide);
    operand_free(&out);
    operand_free(&a);
}

/* PreluBackward keeps sums in its workspace. */
static void wrong_launches_are_refused(void)
{
    struct operand grad = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    struct operand weight = operand_make(DTYPE_F32, 1, (const int64_t[]){3}, LAYOUT_PLAIN);
    struct operand sum = operand_make(DTYPE_F32, 1, (const int64_t[]){3}, LAYOUT_PLAIN);
    aclrtStream stream, freed;
    CHECK_OK(aclrtCreateStream(&stream));
    CHECK_OK(aclrtCreateStream(&freed));
    CHECK_OK(aclrtDestroyStream(freed));
    CHECK_OK(
        aclnnPreluBackwardGetWorkspaceSize(grad.tensor, grad.tensor, weight.tensor, out.tensor, sum.tensor, &bytes, &executor));
    CHECK(bytes > 0, "no workspace");
    void *const workspace = malloc(bytes);
    CHECK_FAILS(aclnnPreluBackward(workspace, bytes - 1, executor, stream), ACLNN_ERROR_PARAM, "are needed");
    CHECK_FAILS(aclnnPreluBackward(NULL, bytes, executor, stream), ACLNN_ERROR_NULLPTR, "workspace is null");
    CHECK_FAILS(aclnnPreluBackward(workspace, bytes, NULL, stream), ACLNN_ERROR_NULLPTR, "executor is null");
    CHECK_FAILS(aclnnAdd(workspace, bytes, executor, stream), ACLNN_ERROR_EXECUTOR, "aclnnPreluBackwardGetWorkspaceSize");
    CHECK_OK(aclnnPreluBackward(workspace, bytes, executor, stream));
    CHECK_OK(aclrtSynchronizeStream(stream));
    CHECK_FAILS(aclnnPreluBackward(workspace, bytes, executor, stream), ACLNN_ERROR_EXECUTOR, "used before");
    CHECK_OK(
        aclnnPreluBackwardGetWorkspaceSize(grad.tensor, grad.tensor, weight.tensor, out.tensor, sum.tensor, &bytes, &executor));
    CHECK_FAILS(aclnnPreluBackward(workspace, bytes, executor, freed), ERROR_RT_INVALID_HANDLE, "stream");
    CHECK_FAILS(aclrtSynchronizeStream(freed), ERROR_RT_INVALID_HANDLE, "stream");
    CHECK_OK(aclrtDestroyStream(stream));
    free(workspace);
    operand_free(&sum);
    operand_free(&weight);
    operand_free(&out);
    operand_free(&grad);
}

/* Handles that don't fit their memory. */
static void wrong_handles_are_refused(void)
{
    float memory[8] = {0};
    const int64_t huge[] = {INT64_MAX, 4}, negative[] = {2, -3}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, two[] = {2, 2};
    const int64_t far[] = {INT64_MAX, 1}, back[] = {-4, 1};
#define CREATE(dims, count, strides, offset) \
    aclCreateTensor(dims, count, ACL_FLOAT, strides, offset, ACL_FORMAT_ND, two, 2, memory)
#define NO_TENSOR(part, ...)                                                                                          \
    do {                                                                                                              \
        (void)error_take_text();                                                                                      \
        CHECK(CREATE(__VA_ARGS__) == NULL, "a tensor");                                                               \
        const char *const words = error_take_text();                                                                  \
        CHECK(words && strstr(words, part), "\"%s\" lacks \"%s\"", words ? words : "", part);                         \
    } while (0)
    NO_TENSOR("exceeds", huge, 2, NULL, 0);
    NO_TENSOR("viewDims[1] is -3", negative, 2, NULL, 0);
    NO_TENSOR("at most 8", nine, 9, NULL, 0);
    NO_TENSOR("viewDims or storageDims is null", NULL, 2, NULL, 0);
    NO_TENSOR("stride[0]", two, 2, far, 0);
    NO_TENSOR("begins 4 elements before", two, 2, back, 0);
    NO_TENSOR("offset is -1", two, 2, NULL, -1);
    NO_TENSOR("offset is", two, 2, NULL, INT64_MAX);
    aclTensor *const backwards = CREATE(two, 2, back, 4);
    CHECK(backwards, "a negative stride that stays inside");
    CHECK_OK(aclDestroyTensor(backwards));
    CHECK_OK(aclDestroyTensor(NULL));
    CHECK_OK(aclDestroyScalar(NULL));
    CHECK(aclCreateScalar(NULL, ACL_FLOAT) == NULL, "a scalar of nothing");
    CHECK(aclCreateScalar(memory, ACL_STRING) == NULL, "a scalar of text");
    (void)error_take_text();
    (void)error_take_last();
}

static void *on_device(void *argument)
{
    const int32_t device = *(const int32_t *)argument;
    aclrtStream stream;
    struct operand a = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    aclScalar *const one = scalar_f64(1);
    uint64_t need;
    aclOpExecutor *plan;
    CHECK_OK(aclrtSetDevice(device));
    CHECK_OK(aclrtCreateStream(&stream));
    for (int64_t e = 0; e < a.count; ++e)
        operand_set(&a, e, device + 1);
    for (int i = 0; i < 300; ++i) {
        CHECK_FAILS(aclnnAddGetWorkspaceSize(a.tensor, NULL, one, out.tensor, &need, &plan), ACLNN_ERROR_NULLPTR, "other");
        CHECK_OK(aclnnAddGetWorkspaceSize(a.tensor, a.tensor, one, out.tensor, &need, &plan));
        CHECK_OK(aclnnAdd(NULL, 0, plan, stream));
        CHECK_OK(aclrtSynchronizeStream(stream));
        CHECK(operand_get(&out, 5) == 2 * (device + 1), "%g", operand_get(&out, 5));
    }
    CHECK_OK(aclrtDestroyStream(stream));
    aclDestroyScalar(one);
    operand_free(&out);
    operand_free(&a);
    return NULL;
}

static void two_threads_two_devices(void)
{
    static const int32_t devices[] = {0, 1};
    pthread_t threads[2];
    uint32_t count = 0;
    CHECK_OK(aclrtGetDeviceCount(&count));
    CHECK(count >= 2, "%u devices", count);
    for (int i = 0; i < 2; ++i)
        pthread_create(&threads[i], NULL, on_device, (void *)(uintptr_t)&devices[i]);
    for (int i = 0; i < 2; ++i)
        pthread_join(threads[i], NULL);
    CHECK_FAILS(aclrtSetDevice((int32_t)count), ERROR_RT_INVALID_DEVICE, "device");
}

/* --- what the random calls and the table of tests/capi found --------------------------------------------------------------------------------------- */

static aclTensor *at_nothing(int ndim, const int64_t *dims)
{
    return aclCreateTensor(dims, (uint64_t)ndim, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, (uint64_t)ndim, NULL);
}

static void small_plans_need_memory(void)
{
    struct operand a = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    aclTensor *const nothing = at_nothing(2, sizes);
    aclScalar *const two = scalar_f64(2);
    CHECK_FAILS(aclnnLogGetWorkspaceSize(a.tensor, nothing, &bytes, &executor), ACLNN_ERROR_NULLPTR, "out");
    CHECK_FAILS(aclnnMulsGetWorkspaceSize(a.tensor, two, nothing, &bytes, &executor), ACLNN_ERROR_NULLPTR, "out");
    CHECK_FAILS(aclnnMulGetWorkspaceSize(a.tensor, a.tensor, nothing, &bytes, &executor), ACLNN_ERROR_NULLPTR, "out");
    aclTensor *const empty = at_nothing(2, (const int64_t[]){0, 3}), *const other = at_nothing(2, (const int64_t[]){0, 3});
    CHECK_OK(RUN(aclnnInplaceCopy, empty, other));
    aclDestroyTensor(empty);
    aclDestroyTensor(other);
    aclDestroyTensor(nothing);
    aclDestroyScalar(two);
    operand_free(&a);
}

static void vectors_need_a_result_of_the_right_rank(void)
{
    const int64_t three[] = {3};
    struct operand vector = operand_make(DTYPE_F32, 1, three, LAYOUT_PLAIN),
                   single = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    struct operand matrix = operand_make(DTYPE_F32, 2, (const int64_t[]){3, 2}, LAYOUT_PLAIN);
    CHECK_FAILS(aclnnMatmulGetWorkspaceSize(vector.tensor, matrix.tensor, single.tensor, 0, &bytes, &executor), ACLNN_ERROR_PARAM,
                "out f32[]");
    operand_free(&matrix);
    operand_free(&single);
    operand_free(&vector);
}

static void optimizer_numbers_have_one_element(void)
{
    struct operand p = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), g = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    struct operand none = operand_make(DTYPE_F32, 1, (const int64_t[]){0}, LAYOUT_PLAIN);
    aclTensorList *const params = aclCreateTensorList(&p.tensor, 1), *const grads = aclCreateTensorList(&g.tensor, 1);
    CHECK_FAILS(aclnnFusedSgdGetWorkspaceSize(params, grads, NULL, none.tensor, 0, 0, 1, 0, false, false, false, &bytes, &executor),
                ACLNN_ERROR_PARAM, "gradScaleOptional is f32[0]");
    aclDestroyTensorList(params);
    aclDestroyTensorList(grads);
    free(p.memory);
    free(g.memory);
    operand_free(&none);
}

/* Empty statistics are as good as none, wherever they point. */
static void empty_statistics_are_absent(void)
{
    struct operand x = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), y = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    struct operand none = operand_make(DTYPE_F32, 1, (const int64_t[]){0}, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnBatchNorm, x.tensor, none.tensor, NULL, none.tensor, none.tensor, true, 0.1, 1e-5, y.tensor, none.tensor,
                 none.tensor));
    CHECK_FAILS(aclnnBatchNormGetWorkspaceSize(x.tensor, NULL, NULL, none.tensor, none.tensor, false, 0.1, 1e-5, y.tensor, NULL,
                                               NULL, &bytes, &executor),
                ACLNN_ERROR_NULLPTR, "runningMean");
    operand_free(&none);
    operand_free(&y);
    operand_free(&x);
}

static void absurd_scales_are_refused(void)
{
    struct operand small = operand_make(DTYPE_F32, 4, (const int64_t[]){1, 1, 2, 2}, LAYOUT_PLAIN);
    struct operand large = operand_make(DTYPE_F32, 4, (const int64_t[]){1, 1, 3, 3}, LAYOUT_PLAIN);
    aclIntArray *const out = aclCreateIntArray((const int64_t[]){3, 3}, 2), *const in =
                                                                                aclCreateIntArray((const int64_t[]){1, 1, 2, 2}, 4);
    CHECK_FAILS(
        aclnnUpsampleBilinear2dAAGetWorkspaceSize(small.tensor, out, false, 5e-324, 5e-324, large.tensor, &bytes, &executor),
        ACLNN_ERROR_PARAM, "scale");
    CHECK_OK(
        RUN(aclnnUpsampleBilinear2dAABackward, large.tensor, out, in, false, 1e-5, 1e-5, small.tensor)); /* far behind the input */
    const int64_t long_sizes[] = {0, 1, 2, (int64_t)1 << 46};
    aclTensor *const empty = at_nothing(4, (const int64_t[]){0, 1, 2, 2}), *const wide = at_nothing(4, long_sizes);
    CHECK_FAILS(aclnnUpsampleBilinear2dGetWorkspaceSize(empty, out, false, 0, 0, wide, &bytes, &executor), ACLNN_ERROR_PARAM, "");
    aclDestroyTensor(empty);
    aclDestroyTensor(wide);
    aclDestroyIntArray(in);
    aclDestroyIntArray(out);
    operand_free(&large);
    operand_free(&small);
}

/* Plans are recycled: the window of an earlier pooling must not count for one that has none. */
static void adaptive_pooling_has_no_window(void)
{
    const int64_t plane[] = {1, 1, 4, 4}, half[] = {1, 1, 2, 2}, one[] = {1, 1, 1, 1}, two[] = {2, 2}, zero[] = {0, 0},
                  ones[] = {1, 1};
    struct operand x = operand_make(DTYPE_F32, 4, plane, LAYOUT_PLAIN), dx = operand_make(DTYPE_F32, 4, plane, LAYOUT_PLAIN);
    struct operand y = operand_make(DTYPE_F32, 4, half, LAYOUT_PLAIN), places = operand_make(DTYPE_I32, 4, half, LAYOUT_PLAIN);
    struct operand dy = operand_make(DTYPE_F32, 4, one, LAYOUT_PLAIN), place = operand_make(DTYPE_I64, 4, one, LAYOUT_PLAIN);
    aclIntArray *const k = aclCreateIntArray(two, 2), *const p = aclCreateIntArray(zero, 2), *const d = aclCreateIntArray(ones, 2);
    operand_set(&dy, 0, 5);
    operand_set(&place, 0, 10);
    for (int i = 0; i < 4; ++i) {
        CHECK_OK(RUN(aclnnMaxPool2dWithIndices, x.tensor, k, k, p, d, false, y.tensor, places.tensor));
        CHECK_OK(RUN(aclnnAdaptiveMaxPool2dBackward, dy.tensor, x.tensor, place.tensor, dx.tensor));
        CHECK(operand_get(&dx, 10) == 5, "%g", operand_get(&dx, 10));
    }
    aclDestroyIntArray(k);
    aclDestroyIntArray(p);
    aclDestroyIntArray(d);
    struct operand *const all[] = {&x, &dx, &y, &places, &dy, &place};
    for (int i = 0; i < 6; ++i)
        operand_free(all[i]);
}

/* An index of no dimension counts as one of one element. */
static void scatter_needs_its_elements(void)
{
    struct operand self = operand_make(DTYPE_I64, 1, (const int64_t[]){3}, LAYOUT_PLAIN),
                   index = operand_make(DTYPE_I64, 0, NULL, LAYOUT_PLAIN);
    struct operand none = operand_make(DTYPE_I64, 1, (const int64_t[]){0}, LAYOUT_PLAIN);
    CHECK_FAILS(aclnnScatterAddGetWorkspaceSize(self.tensor, 0, index.tensor, none.tensor, self.tensor, &bytes, &executor),
                ACLNN_ERROR_PARAM, "src must be at least as large");
    operand_free(&none);
    operand_free(&index);
    operand_free(&self);
}

static void fused_operators_check_what_they_read(void)
{
    const int64_t x_sizes[] = {1, 1, 2, 4};
    struct operand x = operand_make(DTYPE_F32, 4, x_sizes, LAYOUT_PLAIN), y = operand_make(DTYPE_F32, 4, x_sizes, LAYOUT_PLAIN);
    struct operand mask = operand_make(DTYPE_B8, 4, x_sizes, LAYOUT_PLAIN),
                   pair = operand_make(DTYPE_C64, 4, x_sizes, LAYOUT_PLAIN);
    CHECK_FAILS(aclnnRotaryPositionEmbeddingGradGetWorkspaceSize(x.tensor, x.tensor, x.tensor, pair.tensor, 0, y.tensor, y.tensor,
                                                                 y.tensor, &bytes, &executor),
                ACLNN_ERROR_PARAM, "xOptional");
    CHECK_OK(RUN(aclnnScaledMaskedSoftmax, x.tensor, mask.tensor, 1.0, true, y.tensor)); /* the triangle replaces the mask */
    CHECK(operand_get(&y, 0) == 1 && operand_get(&y, 4) == .5, "%g %g", operand_get(&y, 0), operand_get(&y, 4));
    const int64_t row_sizes[] = {5, 1, 16}, turned_sizes[] = {1, 2, 5, 8};
    struct operand rows = operand_make(DTYPE_F32, 3, row_sizes, LAYOUT_PLAIN),
                   none = operand_make(DTYPE_F32, 1, (const int64_t[]){0}, LAYOUT_PLAIN);
    struct operand out = operand_make(DTYPE_F32, 3, row_sizes, LAYOUT_PLAIN),
                   sums = operand_make(DTYPE_F32, 4, turned_sizes, LAYOUT_PLAIN);
    struct operand gamma = operand_make(DTYPE_F32, 1, (const int64_t[]){16}, LAYOUT_PLAIN);
    struct operand five = operand_make(DTYPE_F32, 1, (const int64_t[]){5}, LAYOUT_PLAIN);
    char layout[] = "BSH";
    CHECK_FAILS(aclnnFlashAttentionScoreGetWorkspaceSize(rows.tensor, rows.tensor, rows.tensor, NULL, NULL, NULL, NULL, NULL, 1, 1,
                                                         9, 9, 2, layout, 0, 0, sums.tensor, sums.tensor, NULL, out.tensor, &bytes,
                                                         &executor),
                ACLNN_ERROR_PARAM, "softmaxMax is f32[1,2,5,8]");
    CHECK_FAILS(aclnnRmsNormGradGetWorkspaceSize(none.tensor, rows.tensor, five.tensor, gamma.tensor, out.tensor, gamma.tensor,
                                                 &bytes, &executor),
                ACLNN_ERROR_PARAM, "f32[0]");
    struct operand key = operand_make(DTYPE_F64, 4, x_sizes, LAYOUT_PLAIN);
    CHECK_FAILS(aclnnApplyRotaryPosEmbGetWorkspaceSize(x.tensor, key.tensor, y.tensor, y.tensor, 1, &bytes, &executor),
                ACLNN_ERROR_PARAM, "f64");
    operand_free(&key);
    aclTensor *const empty = at_nothing(4, (const int64_t[]){0, 0, 0, 0});
    CHECK_OK(RUN(aclnnRotaryPositionEmbeddingGrad, empty, empty, empty, empty, 0, empty, empty, empty));
    aclDestroyTensor(empty);
    aclBoolArray *const all = aclCreateBoolArray((const bool[]){true, true, true}, 3);
    CHECK_FAILS(aclnnBatchNormBackwardGetWorkspaceSize(x.tensor, x.tensor, NULL, NULL, NULL, mask.tensor, mask.tensor, true, 1e-5,
                                                       all, pair.tensor, pair.tensor, pair.tensor, &bytes, &executor),
                ACLNN_ERROR_PARAM, "c64[1,1,2,4]");
    aclDestroyBoolArray(all);
    operand_free(&five);
    operand_free(&gamma);
    operand_free(&sums);
    operand_free(&out);
    operand_free(&none);
    operand_free(&rows);
    operand_free(&pair);
    operand_free(&mask);
    operand_free(&y);
    operand_free(&x);
}

int main(void)
{
    setenv("NPU_DEVICE_COUNT", "2", 1);
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    wrong_tensors_are_refused();
    wrong_launches_are_refused();
    wrong_handles_are_refused();
    two_threads_two_devices();
    small_plans_need_memory();
    vectors_need_a_result_of_the_right_rank();
    optimizer_numbers_have_one_element();
    empty_statistics_are_absent();
    absurd_scales_are_refused();
    adaptive_pooling_has_no_window();
    fused_operators_check_what_they_read();
    scatter_needs_its_elements();
    return check_result();
}
