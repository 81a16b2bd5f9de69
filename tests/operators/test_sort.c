/* Sort, topk, medians, running sums, search and unique through the C API against plain code; every type and layout. */
#include "aclnnop/all_operators.h"
#include "operand.h"

static uint64_t state = 9;
static const enum dtype types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I64,
                                   DTYPE_I32, DTYPE_I16, DTYPE_I8,  DTYPE_U8,   DTYPE_B8};
enum { TYPES = sizeof types / sizeof types[0] };

/* Few different values, so that equal ones meet; some NaN and both zeros among floats. */
static void fill(const struct operand *o)
{
    for (int64_t i = 0; i < o->count; ++i) {
        const uint64_t dice = check_random(&state) % 25;
        if (dtype_is_floating(o->dtype))
            operand_set(o, i, dice == 0 ? NAN : dice == 1 ? -0.0 : (double)(int64_t)dice - 12);
        else
            operand_set(o, i,
                        o->dtype == DTYPE_B8   ? (double)(dice % 2)
                        : o->dtype == DTYPE_U8 ? (double)dice * 10
                                               : (double)dice - 12);
    }
}

/* torch's order: NaN above everything. */
static int before(double a, double b) { return isnan(b) ? !isnan(a) : a < b; }

static void sorting(enum dtype dtype, enum layout layout, int descending)
{
    enum { N = 300 };
    const int64_t sizes[3] = {3, N, 2};
    struct operand in = operand_make(dtype, 3, sizes, layout),
                   values = operand_make(dtype, 3, sizes, (enum layout)((layout + 1) % 4));
    struct operand places = operand_make(DTYPE_I64, 3, sizes, (enum layout)((layout + 2) % 4));
    fill(&in);
    CHECK_OK(RUN(aclnnSort, in.tensor, true, 1, descending, values.tensor, places.tensor));
    for (int64_t line = 0; line < 6; ++line) {
        char seen[N] = {0};
        for (int64_t i = 0; i < N; ++i) {
            const int64_t e = line / 2 * N * 2 + i * 2 + line % 2, place = (int64_t)operand_get(&places, e);
            const double x = operand_get(&values, e), source = operand_get(&in, line / 2 * N * 2 + place * 2 + line % 2);
            seen[place] = 1;
            CHECK(x == source || (isnan(x) && isnan(source)), "sort %s: the value isn't its place's", dtype_name(dtype));
            if (i == 0)
                continue;
            const double y = operand_get(&values, e - 2);
            CHECK(descending ? !before(y, x) : !before(x, y), "sort %s: %g before %g", dtype_name(dtype), y, x);
            if (!before(x, y) && !before(y, x))
                CHECK(operand_get(&places, e - 2) < (double)place, "sort %s isn't stable", dtype_name(dtype));
        }
        CHECK(!memchr(seen, 0, N), "sort %s: not a permutation", dtype_name(dtype));
    }
    const int64_t first[3] = {3, 5, 2};
    struct operand top = operand_make(dtype, 3, first, LAYOUT_PLAIN), where = operand_make(DTYPE_I64, 3, first, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnTopk, in.tensor, 5, 1, descending, true, top.tensor, where.tensor));
    for (int64_t e = 0; e < top.count; ++e) {
        const int64_t same = e / 10 * N * 2 + e % 10;
        CHECK(operand_get(&where, e) == operand_get(&places, same), "topk %s, element %lld", dtype_name(dtype), (long long)e);
    }
    CHECK_FAILS(RUN(aclnnTopk, in.tensor, N + 1, 1, true, true, top.tensor, where.tensor), ACLNN_ERROR_PARAM, "k is 301");
    operand_free(&in);
    operand_free(&values);
    operand_free(&places);
    operand_free(&top);
    operand_free(&where);
}

static void running(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[2] = {40, 37};
    const enum dtype sum_type = dtype_is_floating(dtype) ? dtype : DTYPE_I64;
    struct operand in = operand_make(dtype, 2, sizes, layout), sums = operand_make(sum_type, 2, sizes, LAYOUT_PLAIN);
    struct operand most = operand_make(dtype, 2, sizes, LAYOUT_PLAIN), where = operand_make(DTYPE_I64, 2, sizes, LAYOUT_STEPPED);
    fill(&in);
    for (int dim = 0; dim < 2; ++dim) {
        CHECK_OK(RUN(aclnnCummax, in.tensor, dim, most.tensor, where.tensor));
        CHECK_OK(RUN(aclnnCumsum, in.tensor, dim, (aclDataType)dtype_infos[sum_type].acl, sums.tensor));
        for (int64_t line = 0; line < sizes[1 - dim]; ++line) {
            double sum = 0, best = 0;
            int64_t place = 0;
            for (int64_t i = 0; i < sizes[dim]; ++i) {
                const int64_t e = dim ? line * 37 + i : i * 37 + line;
                const double x = operand_get(&in, e);
                sum += x;
                if (i == 0 || isnan(x) || (!isnan(best) && x >= best)) {
                    best = x;
                    place = i;
                }
                CHECK_NEAR(operand_get(&sums, e), operand_rounded(sum_type, sum), 1e-12);
                CHECK(operand_get(&where, e) == (double)place, "cummax %s", dtype_name(dtype));
                CHECK_NEAR(operand_get(&most, e), best, 0);
            }
        }
    }
    operand_free(&in);
    operand_free(&sums);
    operand_free(&most);
    operand_free(&where);
}

static void distinct_values(enum dtype dtype)
{
    const int64_t n = 500;
    struct operand in = operand_make(dtype, 1, &n, LAYOUT_STEPPED), values = operand_make(dtype, 1, &n, LAYOUT_PLAIN);
    struct operand inverse = operand_make(DTYPE_I64, 1, &n, LAYOUT_PLAIN), counts = operand_make(DTYPE_I64, 1, &n, LAYOUT_PLAIN);
    int64_t *dims;
    uint64_t ndim;
    double total = 0;
    for (int64_t i = 0; i < n; ++i)
        operand_set(&in, i, (double)(check_random(&state) % 30));
    CHECK_OK(RUN(aclnnUnique2, in.tensor, true, true, true, values.tensor, inverse.tensor, counts.tensor));
    CHECK_OK(aclGetViewShape(values.tensor, &dims, &ndim));
    for (int64_t i = 0; i < dims[0]; ++i) {
        total += operand_get(&counts, i);
        CHECK(i == 0 || operand_get(&values, i - 1) < operand_get(&values, i), "unique %s isn't sorted", dtype_name(dtype));
    }
    CHECK_INT(total, n);
    for (int64_t i = 0; i < n; ++i)
        CHECK(operand_get(&values, (int64_t)operand_get(&inverse, i)) == operand_get(&in, i), "unique %s: inverse",
              dtype_name(dtype));
    free(dims);
    operand_free(&in);
    operand_free(&values);
    operand_free(&inverse);
    operand_free(&counts);
}

static void searching(enum dtype dtype)
{
    const int64_t n = 20, m = 60;
    struct operand edges = operand_make(dtype, 1, &n, LAYOUT_STEPPED), in = operand_make(DTYPE_F32, 1, &m, LAYOUT_PLAIN);
    struct operand out = operand_make(DTYPE_I64, 1, &m, LAYOUT_PLAIN);
    for (int64_t i = 0; i < n; ++i)
        operand_set(&edges, i, (double)(i / 2 * 2));
    for (int64_t i = 0; i < m; ++i)
        operand_set(&in, i, (double)i * 0.5 - 2);
    for (int right = 0; right < 2; ++right) {
        CHECK_OK(RUN(aclnnBucketize, in.tensor, edges.tensor, false, right, out.tensor));
        for (int64_t i = 0; i < m; ++i) {
            int64_t expected = 0;
            while (expected < n && (right ? operand_get(&edges, expected) <= operand_get(&in, i)
                                          : operand_get(&edges, expected) < operand_get(&in, i)))
                ++expected;
            CHECK_INT(operand_get(&out, i), expected);
        }
    }
    operand_free(&edges);
    operand_free(&in);
    operand_free(&out);
}

static void medians(void)
{
    const int64_t sizes[2] = {2, 5}, two = 2;
    struct operand in = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 1, &two, LAYOUT_PLAIN);
    struct operand where = operand_make(DTYPE_I64, 1, &two, LAYOUT_PLAIN);
    static const double values[10] = {5, 1, 4, 2, 3, 5, NAN, 4, 1, 9};
    for (int i = 0; i < 10; ++i)
        operand_set(&in, i, values[i]);
    CHECK_OK(RUN(aclnnMedianDim, in.tensor, 1, false, out.tensor, where.tensor));
    CHECK(operand_get(&out, 0) == 3 && isnan(operand_get(&out, 1)) && operand_get(&where, 1) == 1, "median");
    CHECK_OK(RUN(aclnnNanMedianDim, in.tensor, 1, false, out.tensor, where.tensor));
    CHECK(operand_get(&out, 0) == 3 && operand_get(&out, 1) == 4 && operand_get(&where, 1) == 2, "nanmedian");
    operand_free(&in);
    operand_free(&out);
    operand_free(&where);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    for (int t = 0; t < TYPES; ++t) {
        for (enum layout layout = 0; layout < LAYOUT_COUNT; ++layout) {
            sorting(types[t], layout, 0);
            sorting(types[t], layout, 1);
            running(types[t], layout);
        }
        if (types[t] == DTYPE_B8)
            continue;
        distinct_values(types[t]);
        searching(types[t]);
    }
    medians();
    return check_result();
}
