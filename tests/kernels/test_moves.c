/* Kernels that move elements or look at them, on every ISA: gathers, scatters, strided copies, rows, fills, ranges of indices, zeros
 * and numbers that aren't finite; against plain loops. */
#include "kernel_check.h"
#include "kernels/cast.h"
#include "kernels/index.h"
#include "kernels/optimizer.h"

static char *random_bytes(int64_t n, int64_t element)
{
    char *const data = guarded(n, (size_t)element);
    for (int64_t i = 0; i < n * element; ++i)
        data[i] = (char)check_random(&test_state);
    return data;
}

static void check_bytes(const char *isa, const char *what, const char *out, const char *expected, int64_t bytes, int64_t n)
{
    CHECK(memcmp(out, expected, (size_t)bytes) == 0, "%s: %s of %lld elements", isa, what, (long long)n);
}

/* Elements that n steps of a stride span, either way. */
static int64_t span_of(int64_t n, int64_t stride) { return n > 0 ? (n - 1) * (stride < 0 ? -stride : stride) + 1 : 0; }

/* The first element of a span that is walked with the stride. */
static int64_t start_of(int64_t n, int64_t stride) { return stride < 0 && n > 0 ? -(n - 1) * stride : 0; }

static void test_move(const struct kernel_set *set, int size, int64_t n, int64_t out_stride, int64_t in_stride)
{
    const int64_t bytes = 1 << size, outs = span_of(n, out_stride), ins = in_stride == 0 ? 1 : span_of(n, in_stride);
    char *const in = random_bytes(ins, bytes), *const out = guarded(outs, (size_t)bytes),
                *const expected = guarded(outs, (size_t)bytes);
    const int64_t to = start_of(n, out_stride), from = start_of(n, in_stride);
    for (int64_t i = 0; i < n; ++i)
        memcpy(expected + (to + i * out_stride) * bytes, in + (from + i * in_stride) * bytes, (size_t)bytes);
    set->index->move[size](out + to * bytes, out_stride, in + from * bytes, in_stride, n);
    check_bytes(set->isa, "move", out, expected, outs * bytes, n);
    guarded_end(set->isa, "move");
}

/* in_stride 0 and step 1 is the plain gather; of several writes to one place the last wins. */
static void test_by_index(const struct kernel_set *set, int size, int64_t n, int64_t stride, int64_t step)
{
    enum { PLACES = 50 };
    const int64_t bytes = 1 << size, lines = span_of(n, stride) + 1, many = lines + (PLACES - 1) * step;
    char *const in = random_bytes(many > n ? many : n, bytes), *const out = guarded(n, (size_t)bytes),
                *const expected = guarded(n, (size_t)bytes);
    char *const to = random_bytes(many, bytes), *const to_expected = guarded(many, (size_t)bytes);
    int64_t *const index = guarded(n, 8);
    memcpy(to_expected, to, (size_t)(many * bytes));
    for (int64_t i = 0; i < n; ++i) {
        index[i] = (int64_t)(check_random(&test_state) % PLACES);
        const int64_t at = i * stride + index[i] * step;
        memcpy(expected + i * bytes, in + at * bytes, (size_t)bytes);
        memcpy(to_expected + at * bytes, in + i * bytes, (size_t)bytes);
    }
    set->index->gather[size](out, 1, in, stride, index, step, n);
    check_bytes(set->isa, "gather", out, expected, n * bytes, n);
    set->index->scatter[size](to, stride, in, 1, index, step, n);
    check_bytes(set->isa, "scatter", to, to_expected, many * bytes, n);
    guarded_end(set->isa, "gather and scatter");
}

/* bad: where an index is out of range (bad_value), or -1. */
static void test_ranges(const struct kernel_set *set, int64_t n, int64_t bad, int64_t bad_value)
{
    enum { SIZE = 9, STRIDE = -5 };
    int64_t *const index = guarded(n, 8), *const plain = guarded(n, 8), *const offsets = guarded(n, 8);
    for (int wrap = 0; wrap < 2; ++wrap)
        for (int adds = 0; adds < 2; ++adds) {
            for (int64_t i = 0; i < n; ++i) {
                index[i] = (int64_t)(check_random(&test_state) % SIZE);
                offsets[i] = 1000 + i;
                plain[i] = index[i];
                index[i] -= wrap && i % 2 ? SIZE : 0;
            }
            if (bad >= 0)
                index[bad] = plain[bad] = bad_value;
            const int found = set->index->offsets(offsets, index, n, SIZE, STRIDE, wrap, adds);
            CHECK(found == (bad >= 0 && (bad_value < (wrap ? -SIZE : 0) || bad_value >= SIZE)), "%s: offsets of %lld, index %lld",
                  set->isa, (long long)n, (long long)bad_value);
            for (int64_t i = 0; i < n; ++i)
                CHECK(i == bad || offsets[i] == (adds ? 1000 + i : 0) + plain[i] * STRIDE, "%s: offset %lld", set->isa,
                      (long long)i);
            CHECK(set->index->outside(plain, n, SIZE) == (bad >= 0), "%s: outside of %lld, index %lld", set->isa, (long long)n,
                  (long long)bad_value);
        }
    guarded_end(set->isa, "ranges of indices");
}

static void test_fill(const struct kernel_set *set, int size, int64_t n)
{
    const int64_t bytes = 1 << size;
    char *const element = random_bytes(1, bytes), *const out = guarded(n, (size_t)bytes),
                *const expected = guarded(n, (size_t)bytes);
    for (int64_t i = 0; i < n; ++i)
        memcpy(expected + i * bytes, element, (size_t)bytes);
    set->cast->fill[size](out, element, (size_t)n);
    check_bytes(set->isa, "fill", out, expected, n * bytes, n);
    guarded_end(set->isa, "fill");
}

static void test_rows(const struct kernel_set *set, int64_t row_bytes, int64_t rows)
{
    const int64_t step = row_bytes + 7, ins = rows > 0 ? (rows - 1) * step + row_bytes : 0;
    char *const in = random_bytes(ins, 1), *const out = guarded(rows * row_bytes, 1),
                *const expected = guarded(rows * row_bytes, 1);
    for (int64_t r = 0; r < rows; ++r)
        memcpy(expected + r * row_bytes, in + r * step, (size_t)row_bytes);
    set->cast->copy_rows(out, in, step, (size_t)row_bytes, (size_t)rows);
    check_bytes(set->isa, "copy_rows", out, expected, rows * row_bytes, row_bytes);
    guarded_end(set->isa, "copy_rows");
}

/* Blocks around the 16 x 16 elements that one step turns. */
static void test_transpose(const struct kernel_set *set, int size, int64_t rows, int64_t columns)
{
    const int64_t bytes = 1 << size, out_stride = columns + 2, in_stride = rows + 3;
    const int64_t outs = rows > 0 ? (rows - 1) * out_stride + columns : 0, ins = columns > 0 ? (columns - 1) * in_stride + rows : 0;
    char *const in = random_bytes(ins, bytes), *const out = guarded(outs, (size_t)bytes),
                *const expected = guarded(outs, (size_t)bytes);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
            memcpy(expected + (r * out_stride + c) * bytes, in + (c * in_stride + r) * bytes, (size_t)bytes);
    set->cast->transpose[size](out, out_stride, in, in_stride, (size_t)rows, (size_t)columns);
    check_bytes(set->isa, "transpose", out, expected, outs * bytes, rows * columns);
    guarded_end(set->isa, "transpose");
}

static void test_zeros(const struct kernel_set *set, enum dtype dtype, int64_t n)
{
    const int64_t bytes = (int64_t)dtype_bytes(dtype);
    char *const in = random_bytes(n, bytes);
    for (int64_t i = 0; i < n; ++i)
        in[i * bytes + i % bytes] = (char)(1 + i % 255);
    CHECK(!set->cast->has_zero[dtype](in, (size_t)n), "%s: a zero among %lld of %s", set->isa, (long long)n, dtype_name(dtype));
    for (int64_t i = 0; i < n; i += 1 + n / 9) {
        char saved[8];
        memcpy(saved, in + i * bytes, (size_t)bytes);
        memset(in + i * bytes, 0, (size_t)bytes);
        CHECK(set->cast->has_zero[dtype](in, (size_t)n), "%s: no zero among %lld of %s", set->isa, (long long)n, dtype_name(dtype));
        memcpy(in + i * bytes, saved, (size_t)bytes);
    }
    guarded_end(set->isa, "has_zero");
}

static void test_non_finite(const struct kernel_set *set, enum accumulate type, int64_t n)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN}, large[] = {3.4028234e38, -1.7976931348623157e308};
    static const enum dtype types[] = {[ACCUMULATE_F64] = DTYPE_F64, [ACCUMULATE_F32] = DTYPE_F32};
    void *const in = random_values(type, n, VALUES_ORDINARY);
    for (int64_t i = 0; i < n; i += 5)
        put_value(in, type, i, type == ACCUMULATE_F32 ? large[0] : large[1]);
    CHECK(!set->optimizer->has_non_finite[types[type]](in, (size_t)n), "%s: %lld finite numbers", set->isa, (long long)n);
    for (int64_t i = 0; i < n; i += 1 + n / 9) {
        const double saved = get_value(in, type, i);
        put_value(in, type, i, bad[i % 3]);
        CHECK(set->optimizer->has_non_finite[types[type]](in, (size_t)n), "%s: %g among %lld", set->isa, bad[i % 3], (long long)n);
        put_value(in, type, i, saved);
    }
    guarded_end(set->isa, "has_non_finite");
}

static void test_size(const struct kernel_set *set, int64_t n)
{
    static const int64_t strides[] = {1, -1, 0, 2, -3}, bad_values[] = {-1, 9, -10, INT64_MIN, INT64_MAX};
    static const enum dtype integers[] = {DTYPE_I64, DTYPE_I32, DTYPE_I16, DTYPE_I8, DTYPE_U8};
    for (int size = 0; size < MOVE_SIZES; ++size) {
        for (int i = 0; i < 5; ++i)
            for (int o = 0; o < 5; ++o)
                if (strides[o] != 0)
                    test_move(set, size, n, strides[o], strides[i]);
        for (int64_t stride = 0; stride < 3; ++stride)
            for (int64_t step = 1; step < 4; step += 2)
                test_by_index(set, size, n, stride, step);
        test_fill(set, size, n);
    }
    test_ranges(set, n, -1, 0);
    for (int64_t bad = 0; bad < n; bad += 1 + n / 5)
        for (int v = 0; v < 5; ++v)
            test_ranges(set, n, bad, bad_values[v]);
    for (int64_t rows = 0; rows < 4; ++rows)
        test_rows(set, n, rows);
    test_rows(set, 16 * n, 2);
    for (int i = 0; i < 5; ++i)
        test_zeros(set, integers[i], n);
    for (int t = 0; t < 2; ++t)
        test_non_finite(set, float_types[t], n);
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    static const int64_t sides[] = {0, 1, 3, 4, 15, 16, 17, 31, 33};
    (void)base; /* moves are exact: plain loops say what comes out */
    for (int s = 0; s < TEST_SIZES; ++s)
        test_size(set, test_sizes[s]);
    for (int size = 0; size < CAST_SIZES; ++size)
        for (int r = 0; r < 9; ++r)
            for (int c = 0; c < 9; ++c)
                test_transpose(set, size, sides[r], sides[c]);
}

int main(void) { return for_each_kernel_set(test_set); }
