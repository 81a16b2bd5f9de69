/* Indexing through the C API: gathers and their inverse against plain loops, order of duplicates, masks and their shapes,
 * indices out of range, and that a failure leaves the stream usable. */
#include "aclnnop/all_operators.h"
#include "operand.h"

static uint64_t state = 5;
static const enum dtype types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_I64, DTYPE_I32,
                                   DTYPE_I16, DTYPE_U8,  DTYPE_B8,  DTYPE_C64, DTYPE_C128};
enum { TYPES = sizeof types / sizeof types[0] };

static void fill(const struct operand *o)
{
    for (int64_t i = 0; i < o->count; ++i)
        operand_set(o, i, o->dtype == DTYPE_B8 ? (double)(check_random(&state) % 2) : (double)(check_random(&state) % 90));
}

static void fill_index(const struct operand *o, int64_t size, int negative)
{
    for (int64_t i = 0; i < o->count; ++i)
        operand_set(o, i, (double)(check_random(&state) % (uint64_t)size) - (negative && i % 2 ? (double)size : 0));
}

static int64_t at(const struct operand *o, int64_t i, int64_t k, int64_t m) { return (i * o->sizes[1] + k) * o->sizes[2] + m; }

static void selecting(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[3] = {4, 6, 5}, count = 7;
    struct operand in = operand_make(dtype, 3, sizes, layout);
    struct operand index =
        operand_make(layout % 2 ? DTYPE_I32 : DTYPE_I64, 1, &count, layout == LAYOUT_STEPPED ? layout : LAYOUT_PLAIN);
    fill(&in);
    for (int dim = 0; dim < 3; ++dim) {
        int64_t out_sizes[3] = {4, 6, 5};
        out_sizes[dim] = count;
        struct operand out = operand_make(dtype, 3, out_sizes, (enum layout)((layout + 2) % LAYOUT_COUNT));
        fill_index(&index, sizes[dim], 0);
        CHECK_OK(RUN(aclnnIndexSelect, in.tensor, dim - 3, index.tensor, out.tensor));
        for (int64_t e = 0; e < out.count; ++e) {
            int64_t c[3] = {e / (out_sizes[1] * out_sizes[2]), e / out_sizes[2] % out_sizes[1], e % out_sizes[2]};
            c[dim] = (int64_t)operand_get(&index, c[dim]);
            CHECK(operand_get(&out, e) == operand_get(&in, at(&in, c[0], c[1], c[2])), "index_select %s dim %d element %lld",
                  dtype_name(dtype), dim, (long long)e);
        }
        operand_free(&out);
    }
    operand_free(&in);
    operand_free(&index);
}

/* gather along each dim, and scatter_add back. */
static void gathering(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[3] = {4, 6, 5}, index_sizes[3] = {3, 6, 4};
    struct operand in = operand_make(dtype, 3, sizes, layout), index = operand_make(DTYPE_I64, 3, index_sizes, layout);
    struct operand out = operand_make(dtype, 3, index_sizes, LAYOUT_PLAIN), sums = operand_make(dtype, 3, sizes, layout);
    double expected[4 * 6 * 5];
    fill(&in);
    for (int dim = 0; dim < 3; ++dim) {
        fill_index(&index, sizes[dim], 0);
        CHECK_OK(RUN(aclnnGather, in.tensor, dim, index.tensor, out.tensor));
        for (int64_t e = 0; e < in.count; ++e)
            expected[e] = operand_get(&in, e);
        for (int64_t e = 0; e < out.count; ++e) {
            int64_t c[3] = {e / 24, e / 4 % 6, e % 4};
            c[dim] = (int64_t)operand_get(&index, e);
            CHECK(operand_get(&out, e) == operand_get(&in, at(&in, c[0], c[1], c[2])), "gather %s dim %d", dtype_name(dtype), dim);
            expected[at(&in, c[0], c[1], c[2])] += operand_get(&out, e);
        }
        if (dtype == DTYPE_F16 || dtype == DTYPE_U8 || dtype == DTYPE_B8)
            continue; /* sums don't fit */
        CHECK_OK(RUN(aclnnScatterAdd, in.tensor, dim, index.tensor, out.tensor, sums.tensor));
        for (int64_t e = 0; e < in.count; ++e)
            CHECK_NEAR(operand_get(&sums, e), expected[e], 0);
    }
    operand_free(&in);
    operand_free(&index);
    operand_free(&out);
    operand_free(&sums);
}

/* x[i, :, k] with broadcasting indices that are not neighbours: their dimensions come first. */
static void list_of_indices(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[3] = {4, 6, 5}, i_sizes[2] = {3, 1}, k_sizes[1] = {2}, out_sizes[3] = {3, 2, 6}, none = 0;
    struct operand in = operand_make(dtype, 3, sizes, layout), i = operand_make(DTYPE_I64, 2, i_sizes, LAYOUT_PLAIN);
    struct operand k = operand_make(DTYPE_I32, 1, k_sizes, LAYOUT_PLAIN), out = operand_make(dtype, 3, out_sizes, layout);
    struct operand empty = operand_make(dtype, 1, &none, LAYOUT_PLAIN);
    fill(&in);
    fill_index(&i, 4, 1);
    fill_index(&k, 5, 1);
    for (int with_null = 0; with_null < 2; ++with_null) {
        aclTensor *const entries[3] = {operand_again(&i), with_null ? NULL : operand_again(&empty), operand_again(&k)};
        aclTensorList *const list = aclCreateTensorList(entries, 3);
        CHECK_OK(RUN(aclnnIndex, in.tensor, list, out.tensor));
        for (int64_t e = 0; e < out.count; ++e) {
            const int64_t a = e / 12, b = e / 6 % 2, x = (int64_t)operand_get(&i, a), y = (int64_t)operand_get(&k, b);
            CHECK(operand_get(&out, e) == operand_get(&in, at(&in, x < 0 ? x + 4 : x, e % 6, y < 0 ? y + 5 : y)), "index %s",
                  dtype_name(dtype));
        }
        aclDestroyTensorList(list);
    }
    operand_free(&in);
    operand_free(&i);
    operand_free(&k);
    operand_free(&out);
    operand_free(&empty);
}

/* A complex factor of index_add, on a source whose dimensions lie otherwise. */
static void complex_factor(enum dtype dtype)
{
    const int64_t sizes[2] = {3, 2}, source_sizes[2] = {4, 2}, count = 4;
    struct operand self = operand_make(dtype, 2, sizes, LAYOUT_PLAIN), out = operand_make(dtype, 2, sizes, LAYOUT_PLAIN);
    struct operand source = operand_make(dtype, 2, source_sizes, LAYOUT_TRANSPOSED);
    struct operand index = operand_make(DTYPE_I64, 1, &count, LAYOUT_PLAIN);
    complex64_pair factor = {1, 2};
    aclScalar *const alpha = aclCreateScalar(&factor, ACL_COMPLEX128);
    for (int64_t i = 0; i < count; ++i)
        operand_set(&index, i, (double)(i % 3));
    for (int64_t i = 0; i < source.count; ++i)
        operand_set(&source, i, (double)(i + 1));
    CHECK_OK(RUN(aclnnIndexAdd, self.tensor, 0, index.tensor, source.tensor, alpha, out.tensor));
    for (int64_t i = 0; i < out.count; ++i) {
        const double sum = (double)(i + 1) + (i < 2 ? (double)(i + 7) : 0);
        const char *const place = out.memory + i * (int64_t)dtype_bytes(dtype);
        CHECK_NEAR(dtype == DTYPE_C64 ? ((const float *)place)[0] : ((const double *)place)[0], sum, 0);
        CHECK_NEAR(dtype == DTYPE_C64 ? ((const float *)place)[1] : ((const double *)place)[1], 2 * sum, 0);
    }
    aclDestroyScalar(alpha);
    operand_free(&self);
    operand_free(&out);
    operand_free(&source);
    operand_free(&index);
}

/* The last of several writes wins, sums take all of them, both in the order of positions. */
static void duplicates_have_an_order(void)
{
    enum { ROWS = 50, WIDTH = 700, WRITES = 3000 };
    const int64_t sizes[2] = {ROWS, WIDTH}, source_sizes[2] = {WRITES, WIDTH}, writes = WRITES;
    struct operand to = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN),
                   from = operand_make(DTYPE_F32, 2, source_sizes, LAYOUT_PLAIN);
    struct operand index = operand_make(DTYPE_I64, 1, &writes, LAYOUT_PLAIN);
    float *const sums = calloc(ROWS * WIDTH, sizeof *sums);
    int64_t last[ROWS] = {0};
    for (int64_t i = 0; i < from.count; ++i)
        operand_set(&from, i, check_random_real(&state));
    fill_index(&index, ROWS, 0);
    for (int64_t w = 0; w < WRITES; ++w) {
        const int64_t row = (int64_t)operand_get(&index, w);
        last[row] = w;
        for (int64_t c = 0; c < WIDTH; ++c)
            sums[row * WIDTH + c] += (float)operand_get(&from, w * WIDTH + c);
    }
    aclTensor *const entries[1] = {operand_again(&index)};
    aclTensorList *const list = aclCreateTensorList(entries, 1);
    CHECK_OK(RUN(aclnnIndexPutImpl, to.tensor, list, from.tensor, true, false));
    CHECK(memcmp(to.memory, sums, ROWS * WIDTH * sizeof *sums) == 0, "sums don't grow in the order of positions");
    CHECK_OK(RUN(aclnnIndexPutImpl, to.tensor, list, from.tensor, false, false));
    for (int64_t r = 0; r < ROWS; ++r)
        CHECK(operand_get(&to, r * WIDTH + 699) == operand_get(&from, last[r] * WIDTH + 699), "row %lld: not the last write",
              (long long)r);
    aclDestroyTensorList(list);
    free(sums);
    operand_free(&to);
    operand_free(&from);
    operand_free(&index);
}

static void masks(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[2] = {130, 300}, room = 130 * 300, pairs[2] = {2, 130 * 300};
    struct operand in = operand_make(dtype, 2, sizes, layout),
                   mask = operand_make(DTYPE_B8, 2, sizes, (enum layout)((layout + 1) % 2));
    struct operand out = operand_make(dtype, 1, &room, LAYOUT_PLAIN), places = operand_make(DTYPE_I64, 2, pairs, LAYOUT_PLAIN);
    int64_t count = 0, *dims;
    uint64_t ndim;
    fill(&in);
    fill(&mask);
    CHECK_OK(RUN(aclnnMaskedSelect, in.tensor, mask.tensor, out.tensor));
    CHECK_OK(RUN(aclnnNonzeroV2, mask.tensor, places.tensor));
    for (int64_t e = 0; e < mask.count; ++e)
        if (operand_get(&mask, e) != 0) {
            CHECK(operand_get(&out, count) == operand_get(&in, e), "masked_select %s", dtype_name(dtype));
            CHECK(((int64_t *)(void *)places.memory)[count] == e / 300, "row of nonzero");
            ++count;
        }
    CHECK_OK(aclGetViewShape(out.tensor, &dims, &ndim));
    CHECK(ndim == 1 && dims[0] == count, "masked_select's shape: %lld, expected %lld", (long long)dims[0], (long long)count);
    free(dims);
    CHECK_OK(aclGetViewShape(places.tensor, &dims, &ndim));
    CHECK(ndim == 2 && dims[0] == 2 && dims[1] == count, "nonzero's shape: %lld", (long long)dims[1]);
    free(dims);
    operand_free(&in);
    operand_free(&mask);
    operand_free(&out);
    operand_free(&places);
}

static void embedding_and_its_gradient(void)
{
    const int64_t table[2] = {9, 5}, list[2] = {4, 3}, result[3] = {4, 3, 5};
    struct operand weight = operand_make(DTYPE_F32, 2, table, LAYOUT_PLAIN),
                   index = operand_make(DTYPE_I64, 2, list, LAYOUT_TRANSPOSED);
    struct operand out = operand_make(DTYPE_F32, 3, result, LAYOUT_PLAIN), grad = operand_make(DTYPE_F32, 2, table, LAYOUT_OFFSET);
    double expected[45] = {0}, uses[9] = {0};
    fill(&weight);
    fill_index(&index, 9, 0);
    CHECK_OK(RUN(aclnnEmbedding, weight.tensor, index.tensor, out.tensor));
    for (int64_t e = 0; e < out.count; ++e) {
        const int64_t row = (int64_t)operand_get(&index, e / 5);
        CHECK(operand_get(&out, e) == operand_get(&weight, row * 5 + e % 5), "embedding");
        expected[row * 5 + e % 5] += operand_get(&out, e);
        uses[row] += e % 5 == 0;
    }
    CHECK_OK(RUN(aclnnEmbeddingDenseBackward, out.tensor, index.tensor, 9, 2, true, grad.tensor));
    for (int64_t e = 0; e < grad.count; ++e)
        CHECK_NEAR(operand_get(&grad, e), e / 5 == 2 || uses[e / 5] == 0 ? 0 : expected[e] / uses[e / 5], 1e-6);
    operand_free(&weight);
    operand_free(&index);
    operand_free(&out);
    operand_free(&grad);
}

static void bad_indices_are_reported(void)
{
    const int64_t sizes[2] = {3, 4}, two = 2, out_sizes[2] = {2, 4};
    struct operand in = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), index = operand_make(DTYPE_I64, 1, &two, LAYOUT_PLAIN);
    struct operand out = operand_make(DTYPE_F32, 2, out_sizes, LAYOUT_PLAIN),
                   grid = operand_make(DTYPE_I64, 2, out_sizes, LAYOUT_PLAIN);
    operand_set(&index, 1, 3);
    CHECK_FAILS(RUN(aclnnIndexSelect, in.tensor, 0, index.tensor, out.tensor), ERROR_RT_DEVICE_TASK,
                "index 3 is out of bounds for dimension 0 with size 3");
    operand_set(&index, 1, -1);
    CHECK_FAILS(RUN(aclnnEmbedding, in.tensor, index.tensor, out.tensor), ERROR_RT_DEVICE_TASK, "index -1");
    operand_set(&grid, 5, 9);
    CHECK_FAILS(RUN(aclnnGather, in.tensor, 0, grid.tensor, out.tensor), ERROR_RT_DEVICE_TASK, "index 9");
    CHECK_FAILS(RUN(aclnnScatterAdd, in.tensor, 0, grid.tensor, out.tensor, in.tensor), ERROR_RT_DEVICE_TASK, "index 9");
    CHECK_FAILS(RUN(aclnnIndexSelect, in.tensor, 0, out.tensor, out.tensor), ACLNN_ERROR_PARAM, "i64 and i32 are allowed");
    CHECK_FAILS(RUN(aclnnIndexSelect, in.tensor, 2, index.tensor, out.tensor), ACLNN_ERROR_PARAM, "[-2, 1]");
    operand_set(&index, 1, 2);
    CHECK_OK(RUN(aclnnIndexSelect, in.tensor, 0, index.tensor, out.tensor));
    operand_free(&in);
    operand_free(&index);
    operand_free(&out);
    operand_free(&grid);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int t = 0; t < TYPES; ++t)
        for (enum layout layout = 0; layout < LAYOUT_COUNT; ++layout) {
            selecting(types[t], layout);
            gathering(types[t], layout);
            list_of_indices(types[t], layout);
            masks(types[t], layout);
        }
    complex_factor(DTYPE_C64);
    complex_factor(DTYPE_C128);
    duplicates_have_an_order();
    embedding_and_its_gradient();
    bad_indices_are_reported();
    return check_result();
}
