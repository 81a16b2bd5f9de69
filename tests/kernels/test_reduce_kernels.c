/* Conversion, reduction, scan, index and random kernels: every instruction set that this machine runs gives the baseline's bits;
 * the baseline is checked against plain loops. Lengths go around the vector and lane sizes. */
#include "check.h"
#include "kernels/convert.h"
#include "kernels/index.h"
#include "kernels/kernels.h"
#include "kernels/random.h"
#include "kernels/reduce.h"
#include "kernels/scan.h"
#include "kernels/sort.h"

enum { MOST = 2100 };
static const int64_t lengths[] = {0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 128, 200, 1000, 2048, 2049};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static const struct kernel_set *base;
static uint64_t state = 1;

/* Numbers of the accumulate type, with a few NaN, infinities and both zeros among the floats. */
static void fill(double *tile, enum accumulate type, int64_t n, int special)
{
    for (int64_t i = 0; i < n; ++i) {
        const double x = check_random_real(&state) * 100;
        const uint64_t dice = check_random(&state) % 40;
        const double value = special && dice < 4 ? (const double[]){NAN, INFINITY, -INFINITY, -0.0}[dice] : x;
        if (type == ACCUMULATE_F64)
            tile[i] = value;
        else if (type == ACCUMULATE_F32)
            ((float *)(void *)tile)[i] = (float)value;
        else
            ((int64_t *)(void *)tile)[i] = (int64_t)x;
    }
}

static double value_of(const void *tile, enum accumulate type, int64_t i)
{
    return type == ACCUMULATE_F64   ? ((const double *)tile)[i]
           : type == ACCUMULATE_F32 ? ((const float *)tile)[i]
                                    : (double)((const int64_t *)tile)[i];
}

/* Equal bits, but for which of several NaN it is: that depends on the order of an addition's operands in the machine code. */
static int same(const void *a, const void *b, enum accumulate type, int64_t n)
{
    const int64_t bytes = accumulate_bytes(type);
    for (int64_t i = 0; i < n; ++i)
        if (memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, (size_t)bytes) != 0 &&
            !(isnan(value_of(a, type, i)) && isnan(value_of(b, type, i))))
            return 0;
    return 1;
}

static double fold(enum fold op, double a, double x)
{
    switch (op) {
    case FOLD_sum: return a + x;
    case FOLD_prod: return a * x;
    case FOLD_max: return isnan(a) ? a : isnan(x) || x > a ? x : a;
    default: return isnan(a) ? a : isnan(x) || x < a ? x : a;
    }
}

static void check_folds(const struct kernel_set *set, enum fold op, enum accumulate type)
{
    static double tile[40 * 64], other[MOST], a[MOST], b[MOST];
    const double tolerance = type == ACCUMULATE_F32 ? 1e-4 : 1e-12;
    for (int l = 0; l < LENGTHS; ++l) {
        const int64_t n = lengths[l], few = op == FOLD_prod && n > 15 ? 15 : n;
        double got = 0, expected_bits = 0;
        fill(tile, type, few, l % 2);
        base->reduce->row[op][type](&expected_bits, tile, few);
        set->reduce->row[op][type](&got, tile, few);
        CHECK(same(&got, &expected_bits, type, 1), "%s: row fold %d, type %d, n %lld", set->isa, op, type, (long long)few);
        double expected = few ? value_of(tile, type, 0) : 0;
        double size = fabs(expected);
        for (int64_t i = 1; i < few; ++i) {
            expected = fold(op, expected, value_of(tile, type, i));
            size += fabs(value_of(tile, type, i));
        }
        if (few > 0 && !(type == ACCUMULATE_I64 && op == FOLD_prod))
            CHECK_NEAR(value_of(&got, type, 0), expected, isfinite(size) ? tolerance * (1 + size) : tolerance);
        fill(tile, type, n, 1);
        fill(other, type, n, 1);
        memcpy(a, tile, sizeof a);
        memcpy(b, tile, sizeof b);
        base->reduce->pair[op][type](a, other, n);
        set->reduce->pair[op][type](b, other, n);
        CHECK(same(a, b, type, n), "%s: pair fold %d, type %d, n %lld", set->isa, op, type, (long long)n);
    }
    for (int64_t rows = 1; rows <= 40; rows += 3)
        for (int64_t columns = 1; columns <= 64; columns += 9) {
            fill(tile, type, rows * 64, 1);
            memset(a, 0, sizeof a);
            memset(b, 0, sizeof b);
            base->reduce->columns[op][type](a, tile, 64, rows, columns);
            set->reduce->columns[op][type](b, tile, 64, rows, columns);
            CHECK(same(a, b, type, columns), "%s: columns fold %d, type %d", set->isa, op, type);
            double expected = value_of(tile, type, columns - 1);
            for (int64_t r = 1; r < rows; ++r)
                expected = fold(op, expected, value_of(tile, type, r * 64 + columns - 1));
            if (type == ACCUMULATE_F64)
                CHECK_NEAR(a[columns - 1], expected, 0);
        }
}

static void check_searches(const struct kernel_set *set, enum accumulate type)
{
    static double tile[MOST], a[MOST], b[MOST];
    static int64_t where_a[MOST], where_b[MOST];
    for (int l = 1; l < LENGTHS; ++l) {
        const int64_t n = lengths[l];
        fill(tile, type, n, 1);
        const char *const last = (const char *)tile + (n - 1) * accumulate_bytes(type);
        CHECK_INT(set->reduce->find[type](tile, n, last), base->reduce->find[type](tile, n, last));
        CHECK(set->reduce->find[type](tile, n, last) < n, "the last element is found");
        for (enum fold op = FOLD_max; op <= FOLD_min; ++op) {
            fill(a, type, n, 1);
            memcpy(b, a, sizeof b);
            memset(where_a, 0, sizeof where_a);
            memset(where_b, 0, sizeof where_b);
            base->reduce->arg_columns[op][type](a, where_a, tile, 7, n);
            set->reduce->arg_columns[op][type](b, where_b, tile, 7, n);
            CHECK(memcmp(a, b, sizeof a) == 0 && memcmp(where_a, where_b, sizeof where_a) == 0, "%s: arg_columns %d %d", set->isa,
                  op, type);
        }
        for (int m = 1; m < MAP_COUNT; ++m) {
            if (!base->reduce->map[m][type])
                continue;
            for (int step = 0; step < 2; ++step) {
                fill(a, type, n, 0);
                memcpy(b, a, sizeof b);
                base->reduce->map[m][type](a, n, 3, tile, step);
                set->reduce->map[m][type](b, n, 3, tile, step);
                for (int64_t i = 0; i < n; ++i)
                    CHECK(check_near(value_of(b, type, i), value_of(a, type, i), 0), "%s: map %d, type %d", set->isa, m, type);
            }
        }
    }
}

static void check_conversions(const struct kernel_set *set)
{
    static char memory[MOST * 16], other[MOST * 16];
    static double a[MOST], b[MOST];
    for (int d = 0; d < DTYPE_COUNT; ++d)
        for (enum accumulate type = 0; type < ACCUMULATE_COUNT; ++type) {
            if (!base->convert->load[d][type])
                continue;
            for (int64_t stride = 1; stride <= 2; ++stride) {
                const int64_t n = MOST / 2 - 5;
                fill(a, type, MOST, 0);
                memset(memory, 0, sizeof memory);
                memset(other, 0, sizeof other);
                base->convert->store[d][type](memory, stride, a, n);
                set->convert->store[d][type](other, stride, a, n);
                CHECK(memcmp(memory, other, sizeof memory) == 0, "%s: store %s from %d", set->isa, dtype_name((enum dtype)d), type);
                base->convert->load[d][type](a, memory, stride, n);
                set->convert->load[d][type](b, memory, stride, n);
                CHECK(memcmp(a, b, (size_t)(n * accumulate_bytes(type))) == 0, "%s: load %s to %d", set->isa,
                      dtype_name((enum dtype)d), type);
                set->convert->store[d][type](other, stride, b, n);
                CHECK(memcmp(memory, other, sizeof memory) == 0, "%s: %s doesn't survive %d", set->isa, dtype_name((enum dtype)d),
                      type);
            }
        }
}

static void check_scans(const struct kernel_set *set)
{
    static double tile[MOST], a[MOST];
    double carry = 1;
    fill(tile, ACCUMULATE_F64, MOST, 0);
    memcpy(a, tile, sizeof a);
    set->scan->row[SCAN_sum][ACCUMULATE_F64](a, MOST, &carry);
    double running = 1;
    for (int i = 0; i < MOST; ++i)
        CHECK(a[i] == (running += tile[i]), "%s: running sum at %d", set->isa, i);
    CHECK(carry == running, "the carry is the last sum");
}

static void check_random_kernels(const struct kernel_set *set)
{
    enum { N = 1003 };
    static uint32_t words[4 * N], expected[4 * N];
    static float a[N], b[N], c[N], d[N];
    const uint64_t seed = 0x0123456789abcdef, first = 0xfffffff0u, counter = 5;
    set->random->words(words, seed, first, counter, N);
    base->random->words(expected, seed, first, counter, N);
    CHECK(memcmp(words, expected, sizeof words) == 0, "%s: philox words", set->isa);
    base->random->normal_f32(a, b, words, words + N, N);
    set->random->normal_f32(c, d, words, words + N, N);
    CHECK(memcmp(a, c, sizeof a) == 0 && memcmp(b, d, sizeof b) == 0, "%s: normal", set->isa);
    for (int i = 0; i < N; ++i) {
        const double u = words[i] * 0x1p-32 + 0x1p-33, angle = 6.283185307179586 * (words[N + i] * 0x1p-32 + 0x1p-33);
        CHECK_NEAR(a[i], sqrt(-2 * log(u)) * sin(angle), 2e-6);
        CHECK_NEAR(b[i], sqrt(-2 * log(u)) * cos(angle), 2e-6);
    }
    base->random->uniform_f32(a, words, N);
    set->random->uniform_f32(c, words, N);
    CHECK(memcmp(a, c, sizeof a) == 0, "%s: uniform", set->isa);
    base->random->negative_log_f32(a, N);
    set->random->negative_log_f32(c, N);
    CHECK(memcmp(a, c, sizeof a) == 0, "%s: logarithm", set->isa);
    for (int i = 0; i < N; ++i)
        CHECK_NEAR(a[i], -log(words[i] * 0x1p-32 + 0x1p-33), 2e-7);
}

static void check_updates(const struct kernel_set *set)
{
    static char a[MOST * 16], b[MOST * 16], in[MOST * 16];
    static int64_t index[MOST];
    static double tile[MOST];
    for (int64_t i = 0; i < MOST; ++i)
        index[i] = (int64_t)(check_random(&state) % 50);
    for (int op = 0; op < UPDATE_COUNT; ++op)
        for (int d = 0; d < DTYPE_COUNT; ++d) {
            if (!base->index->update[op][d] || dtype_kind((enum dtype)d) == KIND_COMPLEX)
                continue;
            fill(tile, ACCUMULATE_F64, MOST, 0);
            base->convert->store[d][ACCUMULATE_F64](in, 1, tile, MOST);
            fill(tile, ACCUMULATE_F64, MOST, 0);
            base->convert->store[d][ACCUMULATE_F64](a, 1, tile, MOST);
            memcpy(b, a, sizeof b);
            base->index->update[op][d](a, 1, in, 1, MOST);
            set->index->update[op][d](b, 1, in, 1, MOST);
            CHECK(memcmp(a, b, sizeof a) == 0, "%s: update %d of %s", set->isa, op, dtype_name((enum dtype)d));
            base->index->scatter_update[op][d](a, 0, in, 1, index, 1, 500);
            set->index->scatter_update[op][d](b, 0, in, 1, index, 1, 500);
            CHECK(memcmp(a, b, sizeof a) == 0, "%s: scatter %d of %s", set->isa, op, dtype_name((enum dtype)d));
        }
}

static void check_sorts(const struct kernel_set *set)
{
    static double tile[MOST];
    static uint64_t narrow[MOST], spare[MOST];
    static struct sort_item wide[MOST], wide_spare[MOST];
    for (int l = 1; l < LENGTHS; ++l)
        for (int descending = 0; descending < 2; ++descending) {
            const int64_t n = lengths[l];
            fill(tile, ACCUMULATE_F32, n, 1);
            const float *const values = (const float *)(const void *)tile;
            set->sort->keys_f32(narrow, values, 0, n, descending);
            set->sort->sort_narrow(narrow, spare, n);
            for (int64_t i = 1; i < n; ++i) {
                const float x = values[narrow[i - 1] & UINT32_MAX], y = values[narrow[i] & UINT32_MAX];
                const int ordered = descending ? isnan(x) || y <= x : isnan(y) || x <= y;
                CHECK(ordered && ((x != y && !(isnan(x) && isnan(y))) || (uint32_t)narrow[i - 1] < (uint32_t)narrow[i]),
                      "%s: %g before %g", set->isa, (double)x, (double)y);
            }
            fill(tile, ACCUMULATE_I64, n, 0);
            const int64_t *const integers = (const int64_t *)(const void *)tile;
            set->sort->keys_i64(wide, integers, 0, n, descending);
            set->sort->select_wide(wide, wide_spare, n, (n + 1) / 2);
            const struct sort_item middle = wide[(n + 1) / 2 - 1];
            for (int64_t i = 0; i < n; ++i)
                CHECK(i < (n + 1) / 2 ? wide[i].key <= middle.key : wide[i].key >= middle.key, "%s: selection", set->isa);
        }
}

int main(void)
{
    base = kernel_set_find("baseline") ? kernel_set_find("baseline") : kernel_set_at(0);
    for (int i = 0; kernel_set_at(i); ++i) {
        const struct kernel_set *const set = kernel_set_at(i);
        if (!kernel_set_runnable(set->isa))
            continue;
        for (enum accumulate type = 0; type < ACCUMULATE_COUNT; ++type) {
            for (enum fold op = 0; op < FOLD_COUNT; ++op)
                check_folds(set, op, type);
            check_searches(set, type);
        }
        check_conversions(set);
        check_scans(set);
        check_random_kernels(set);
        check_updates(set);
        check_sorts(set);
    }
    return check_result();
}
