/* Outputs in the memory of inputs, through the C API: results are those of operands that lie apart. Also tensors of eight dimensions
 * and reductions of nothing. */
#include "aclnnop/all_operators.h"
#include "operand.h"

static struct operand numbers(enum dtype dtype, int64_t count)
{
    struct operand o = operand_make(dtype, 1, &count, LAYOUT_PLAIN);
    for (int64_t i = 0; i < count; ++i)
        operand_set(&o, i, (double)(i * 37 % 11));
    return o;
}

/* A line sorted into itself, into its second half and backwards; each must be ordered and hold the same sum. */
static void sorting(void)
{
    enum { N = 500 };
    static const int64_t size[1] = {N}, forward[1] = {1};
    for (int64_t shift = 0; shift <= N; shift += N / 2) {
        struct operand memory = numbers(DTYPE_F32, 2 * N), places = operand_make(DTYPE_I64, 1, size, LAYOUT_PLAIN);
        struct operand in = operand_alias(&memory, 1, size, forward, 0), out = operand_alias(&memory, 1, size, forward, shift);
        double before = 0, after = 0;
        for (int64_t i = 0; i < N; ++i)
            before += operand_get(&in, i);
        CHECK_OK(RUN(aclnnSort, in.tensor, true, 0, false, out.tensor, places.tensor));
        for (int64_t i = 0; i < N; ++i) {
            after += operand_get(&out, i);
            CHECK(i == 0 || operand_get(&out, i - 1) <= operand_get(&out, i), "shift %lld: not sorted", (long long)shift);
        }
        CHECK_NEAR(after, before, 0);
        operand_drop(&in);
        operand_drop(&out);
        operand_free(&memory);
        operand_free(&places);
    }
}

/* Rows 0 and 1 into rows 1 and 2, from the matrix itself. An addition of unscaled rows asks for no workspace of its own. */
static void rows_of_the_same_matrix(void)
{
    static const int64_t all[2] = {4, 3}, part[2] = {2, 3}, strides[2] = {3, 1}, two[1] = {2};
    for (int adds = 0; adds < 2; ++adds) {
        struct operand matrix = operand_make(DTYPE_F64, 2, all, LAYOUT_PLAIN),
                       index = operand_make(DTYPE_I64, 1, two, LAYOUT_PLAIN);
        struct operand rows = operand_alias(&matrix, 2, part, strides, 0);
        for (int64_t i = 0; i < 12; ++i)
            operand_set(&matrix, i, (double)i);
        operand_set(&index, 0, 1);
        operand_set(&index, 1, 2);
        aclTensor *entries[1] = {index.tensor};
        aclTensorList *const list = aclCreateTensorList(entries, 1);
        if (adds)
            CHECK_OK(RUN(aclnnIndexAdd, matrix.tensor, 0, index.tensor, rows.tensor, NULL, matrix.tensor));
        else
            CHECK_OK(RUN(aclnnIndexPutImpl, matrix.tensor, list, rows.tensor, false, false));
        for (int64_t i = 3; i < 9; ++i)
            CHECK_NEAR(operand_get(&matrix, i), (double)(i - 3) + (adds ? (double)i : 0), 0);
        aclDestroyTensorList(list); /* with the index */
        free(index.memory);
        operand_drop(&rows);
        operand_free(&matrix);
    }
}

/* A plan that runs twice copies what its input holds each time. */
static void repeated_plan(void)
{
    static const int64_t turned[2] = {3, 2}, turned_strides[2] = {1, 3};
    struct operand memory = numbers(DTYPE_F32, 6), places = operand_make(DTYPE_I64, 2, turned, LAYOUT_PLAIN);
    struct operand in = operand_alias(&memory, 2, turned, turned_strides, 0),
                   out = operand_alias(&memory, 2, turned, (int64_t[]){2, 1}, 0);
    uint64_t bytes = 0;
    aclOpExecutor *executor = NULL;
    CHECK_OK(aclnnSortGetWorkspaceSize(in.tensor, true, 0, false, out.tensor, places.tensor, &bytes, &executor));
    CHECK(bytes > 0, "the input shares memory with the output: it needs room for a copy");
    CHECK_OK(aclSetAclOpExecutorRepeatable(executor));
    void *const workspace = malloc(bytes);
    for (int time = 0; time < 2; ++time) {
        double column[2][3];
        for (int64_t i = 0; i < 6; ++i)
            operand_store(DTYPE_F32, memory.memory + i * 4, (double)((i + time) * 7 % 5));
        for (int64_t i = 0; i < 6; ++i)
            column[i % 2][i / 2] = operand_get(&in, i);
        CHECK_OK(aclnnSort(workspace, bytes, executor, NULL));
        CHECK_OK(aclrtSynchronizeStream(NULL));
        for (int c = 0; c < 2; ++c) {
            double low = column[c][0], high = column[c][0];
            for (int r = 1; r < 3; ++r) {
                low = column[c][r] < low ? column[c][r] : low;
                high = column[c][r] > high ? column[c][r] : high;
            }
            CHECK_NEAR(operand_get(&out, c), low, 0);
            CHECK_NEAR(operand_get(&out, 4 + c), high, 0);
        }
    }
    CHECK_OK(aclDestroyAclOpExecutor(executor));
    free(workspace);
    operand_drop(&in);
    operand_drop(&out);
    operand_free(&memory);
    operand_free(&places);
}

/* The gradient of a gated unit over its own input: the second half reads what the first half overwrote. */
static void gradient_of_glu_in_place(void)
{
    static const int64_t whole[2] = {3, 8}, half[2] = {3, 4};
    struct operand x = operand_make(DTYPE_F32, 2, whole, LAYOUT_PLAIN), apart = operand_make(DTYPE_F32, 2, whole, LAYOUT_PLAIN);
    struct operand gradient = operand_make(DTYPE_F32, 2, half, LAYOUT_PLAIN);
    for (int64_t i = 0; i < 24; ++i)
        operand_set(&x, i, (double)(i % 7) / 3 - 1);
    for (int64_t i = 0; i < 12; ++i)
        operand_set(&gradient, i, (double)i / 5 - 1);
    CHECK_OK(RUN(aclnnGluBackward, gradient.tensor, x.tensor, 1, apart.tensor));
    CHECK_OK(RUN(aclnnGluBackward, gradient.tensor, x.tensor, 1, x.tensor));
    for (int64_t i = 0; i < 24; ++i)
        CHECK_NEAR(operand_get(&x, i), operand_get(&apart, i), 0);
    operand_free(&x);
    operand_free(&apart);
    operand_free(&gradient);
}

/* Complex numbers of eight dimensions have no room for a ninth, of their parts. */
static void eight_dimensions(enum dtype dtype)
{
    static const int64_t sizes[8] = {2, 1, 3, 1, 2, 2, 1, 2}, strides[8] = {1, 1, 2, 1, 6, 12, 1, 24}, room = 48;
    const int64_t bytes = (int64_t)dtype_bytes(dtype);
    char *const memory = calloc((size_t)room, (size_t)bytes);
    for (int64_t i = 0; i < room; i += 5)
        operand_store(dtype, memory + i * bytes, 3);
    aclTensor *const self =
        aclCreateTensor(sizes, 8, (aclDataType)dtype_infos[dtype].acl, strides, 0, ACL_FORMAT_ND, &room, 1, memory);
    const int64_t most[2] = {48, 8};
    struct operand out = operand_make(DTYPE_I64, 2, most, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnNonzero, self, out.tensor));
    int64_t *dims = NULL;
    uint64_t ndim = 0;
    CHECK_OK(aclGetViewShape(out.tensor, &dims, &ndim));
    CHECK(ndim == 2 && dims[0] == 10 && dims[1] == 8, "%s: %lld are set", dtype_name(dtype), (long long)dims[0]);
    for (int64_t k = 0; k < 10; ++k) {
        int64_t place = 0;
        for (int d = 0; d < 8; ++d)
            place += ((const int64_t *)(const void *)out.memory)[k * 8 + d] * strides[d];
        CHECK(place % 5 == 0, "%s: element %lld isn't set", dtype_name(dtype), (long long)place);
    }
    free(dims);
    aclDestroyTensor(self);
    free(memory);
    operand_free(&out);
}

/* All of nothing are true and none is: as ones and zeros, whatever the type. */
static void reductions_of_nothing(enum dtype dtype)
{
    static const int64_t none[2] = {2, 0}, two[1] = {2}, last[1] = {1};
    struct operand in = operand_make(dtype, 2, none, LAYOUT_PLAIN), out = operand_make(dtype, 1, two, LAYOUT_PLAIN);
    aclIntArray *const dims = aclCreateIntArray(last, 1);
    CHECK_OK(RUN(aclnnAll, in.tensor, dims, false, out.tensor));
    CHECK_NEAR(operand_get(&out, 1), 1, 0);
    CHECK_OK(RUN(aclnnAny, in.tensor, dims, false, out.tensor));
    CHECK_NEAR(operand_get(&out, 1), 0, 0);
    aclDestroyIntArray(dims);
    operand_free(&in);
    operand_free(&out);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    sorting();
    rows_of_the_same_matrix();
    repeated_plan();
    gradient_of_glu_in_place();
    for (enum dtype dtype = 0; dtype < DTYPE_COUNT; ++dtype)
        eight_dimensions(dtype);
    static const enum dtype truth[] = {DTYPE_U8, DTYPE_B8};
    for (int i = 0; i < 2; ++i)
        reductions_of_nothing(truth[i]);
    return check_result();
}
