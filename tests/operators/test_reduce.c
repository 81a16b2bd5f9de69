/* Reductions through the C API: every type, layout, set of dims and keepdim against plain loops in double, 64-bit results where
 * integers are; accuracy on long sums; empty tensors; errors. */
#include "aclnnop/all_operators.h"
#include "kernels/kernels.h"
#include "operand.h"

enum { DIMS = 3 };
static uint64_t state = 3;
static const enum dtype real_types[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I64,
                                        DTYPE_I32, DTYPE_I16, DTYPE_I8,  DTYPE_U8,   DTYPE_B8};
enum { REAL_TYPES = sizeof real_types / sizeof real_types[0] };

static void fill(const struct operand *o)
{
    for (int64_t i = 0; i < o->count; ++i) {
        const double x = check_random_real(&state) * 6;
        operand_set(o, i,
                    dtype_is_floating(o->dtype)                    ? x
                    : o->dtype == DTYPE_U8 || o->dtype == DTYPE_B8 ? fabs(trunc(x))
                                                                   : trunc(x));
    }
}

/* A reduced problem: input, which dims go, and where each element's result is. */
struct problem {
    struct operand in;
    unsigned mask;
    int keepdim, out_ndim;
    int64_t out_sizes[DIMS], results, reduced, dims[DIMS];
    int dim_count;
};

static int64_t result_of(const struct problem *p, int64_t element)
{
    int64_t coordinates[DIMS], place = 0;
    for (int d = p->in.ndim - 1; d >= 0; --d) {
        coordinates[d] = element % p->in.sizes[d];
        element /= p->in.sizes[d];
    }
    for (int d = 0; d < p->in.ndim; ++d)
        if (!(p->mask >> d & 1))
            place = place * p->in.sizes[d] + coordinates[d];
    return place;
}

static struct problem problem_make(enum dtype dtype, const int64_t *sizes, unsigned mask, int keepdim, enum layout layout)
{
    struct problem p = {
        .in = operand_make(dtype, DIMS, sizes, layout), .mask = mask, .keepdim = keepdim, .results = 1, .reduced = 1};
    fill(&p.in);
    for (int d = 0; d < DIMS; ++d) {
        if (mask >> d & 1) {
            p.dims[p.dim_count++] = d % 2 ? d : d - DIMS;
            p.reduced *= sizes[d];
        } else
            p.results *= sizes[d];
        if (!(mask >> d & 1) || keepdim)
            p.out_sizes[p.out_ndim++] = mask >> d & 1 ? 1 : sizes[d];
    }
    return p;
}

enum what { SUM, MEAN, MAX, MIN, ANY, ALL, VARIANCE, NORM2, NORM_MOST, LOGSUMEXP };

static double reference(const struct problem *p, enum what what, int64_t result)
{
    double sum = 0, most = -INFINITY, least = INFINITY, squares = 0, mean = 0;
    int any = 0, all = 1;
    for (int pass = 0; pass < 2; ++pass, mean = sum / (double)p->reduced)
        for (int64_t i = 0; i < p->in.count; ++i) {
            if (result_of(p, i) != result)
                continue;
            const double x = operand_get(&p->in, i);
            if (pass == 0) {
                sum += x;
                most = x > most ? x : most;
                least = x < least ? x : least;
                any |= x != 0;
                all &= x != 0;
            } else
                squares += what == VARIANCE ? (x - mean) * (x - mean) : what == LOGSUMEXP ? exp(x - most) : x * x;
        }
    switch (what) {
    case SUM: return sum;
    case MEAN: return mean;
    case MAX: return most;
    case MIN: return least;
    case ANY: return any;
    case ALL: return all;
    case VARIANCE: return squares / (double)(p->reduced - 1);
    case NORM2: return sqrt(squares);
    case NORM_MOST: return fmax(fabs(most), fabs(least));
    default: return log(squares) + most;
    }
}

static int run(const struct problem *p, enum what what, struct operand *out)
{
    aclIntArray *const dims = p->dim_count ? aclCreateIntArray(p->dims, (uint64_t)p->dim_count) : NULL;
    aclScalar *const two = scalar_f64(2), *const infinity = scalar_f64(INFINITY);
    const aclDataType type = (aclDataType)dtype_infos[out->dtype].acl;
    int code = 0;
    switch (what) {
    case SUM: code = RUN(aclnnReduceSum, p->in.tensor, dims, p->keepdim, type, out->tensor); break;
    case MEAN: code = RUN(aclnnMean, p->in.tensor, dims, p->keepdim, type, out->tensor); break;
    case MAX: code = RUN(aclnnAmax, p->in.tensor, dims, p->keepdim, out->tensor); break;
    case MIN: code = RUN(aclnnAmin, p->in.tensor, dims, p->keepdim, out->tensor); break;
    case ANY: code = RUN(aclnnAny, p->in.tensor, dims, p->keepdim, out->tensor); break;
    case ALL: code = RUN(aclnnAll, p->in.tensor, dims, p->keepdim, out->tensor); break;
    case VARIANCE: code = RUN(aclnnVarCorrection, p->in.tensor, dims, 1, p->keepdim, out->tensor); break;
    case NORM2: code = RUN(aclnnLinalgVectorNorm, p->in.tensor, two, dims, p->keepdim, type, out->tensor); break;
    case NORM_MOST: code = RUN(aclnnNorm, p->in.tensor, infinity, dims, p->keepdim, out->tensor); break;
    case LOGSUMEXP: code = RUN(aclnnLogSumExp, p->in.tensor, dims, p->keepdim, out->tensor); break;
    }
    aclDestroyIntArray(dims);
    aclDestroyScalar(two);
    aclDestroyScalar(infinity);
    return code;
}

static void check_problem(const struct problem *p, enum what what, enum layout layout)
{
    const enum dtype in = p->in.dtype;
    const int floating = dtype_is_floating(in);
    if (!floating && what != SUM && what != MAX && what != MIN && what != ANY && what != ALL)
        return;
    const enum dtype out_type = what == ANY || what == ALL ? DTYPE_B8 : what == SUM && !floating ? DTYPE_I64 : in;
    struct operand out = operand_make(out_type, p->out_ndim, p->out_sizes, layout);
    CHECK_OK(run(p, what, &out));
    const double tolerance = in == DTYPE_F64    ? 1e-13
                             : in == DTYPE_F32  ? 1e-5
                             : in == DTYPE_F16  ? 1e-3
                             : in == DTYPE_BF16 ? 8e-3
                                                : 0;
    for (int64_t i = 0; i < out.count; ++i) {
        const double got = operand_get(&out, i), expected = reference(p, what, i);
        CHECK(check_near(got, expected, tolerance) || check_near(got, operand_rounded(out_type, expected), tolerance),
              "operation %d of %s, mask %u, element %lld: %.9g, expected %.9g", what, dtype_name(in), p->mask, (long long)i, got,
              expected);
    }
    operand_free(&out);
}

static void all_types_and_layouts(void)
{
    static const int64_t shapes[][DIMS] = {{3, 5, 4}, {1, 70, 33}, {2, 3, 130}};
    for (int t = 0; t < REAL_TYPES; ++t)
        for (int s = 0; s < 3; ++s)
            for (unsigned mask = 1; mask < 8; ++mask)
                for (enum layout layout = 0; layout < LAYOUT_COUNT; ++layout) {
                    if (s > 0 && (mask + layout) % 2)
                        continue;
                    struct problem p = problem_make(real_types[t], shapes[s], mask, (int)mask % 2, layout);
                    for (enum what what = SUM; what <= LOGSUMEXP; ++what)
                        if (s == 0 || what < VARIANCE)
                            check_problem(&p, what, (enum layout)((layout + 1) % LAYOUT_COUNT));
                    operand_free(&p.in);
                }
}

/* 2^20 values of 0.1: a running f32 sum is off by 1 percent, a tree by a few units in the last place. */
static void long_sums_are_accurate(void)
{
    const int64_t n = 1 << 20, columns[2] = {n / 64, 64};
    struct operand in = operand_make(DTYPE_F32, 1, &n, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 0, NULL, LAYOUT_PLAIN);
    for (int64_t i = 0; i < n; ++i)
        operand_set(&in, i, 0.1);
    CHECK_OK(RUN(aclnnReduceSum, in.tensor, NULL, false, ACL_FLOAT, out.tensor));
    CHECK_NEAR(operand_get(&out, 0), (double)n * (double)0.1f, 5e-7);
    struct operand matrix = operand_alias(&in, 2, columns, (const int64_t[]){64, 1}, 0);
    const int64_t width = 64, zero = 0;
    struct operand sums = operand_make(DTYPE_F32, 1, &width, LAYOUT_PLAIN);
    aclIntArray *const dims = aclCreateIntArray(&zero, 1);
    CHECK_OK(RUN(aclnnReduceSum, matrix.tensor, dims, false, ACL_FLOAT, sums.tensor));
    for (int64_t i = 0; i < width; ++i)
        CHECK_NEAR(operand_get(&sums, i), (double)(n / 64) * (double)0.1f, 5e-7);
    aclDestroyIntArray(dims);
    operand_drop(&matrix);
    operand_free(&in);
    operand_free(&out);
    operand_free(&sums);
}

static void positions_are_the_first(void)
{
    const int64_t sizes[2] = {3, 5000}, three = 3;
    for (enum layout layout = 0; layout < LAYOUT_COUNT; ++layout) {
        struct operand in = operand_make(DTYPE_F32, 2, sizes, layout), values = operand_make(DTYPE_F32, 1, &three, LAYOUT_PLAIN);
        struct operand where = operand_make(DTYPE_I64, 1, &three, LAYOUT_STEPPED);
        for (int64_t i = 0; i < in.count; ++i)
            operand_set(&in, i, (double)(i % 7));
        operand_set(&in, 5000 + 4321, NAN);
        operand_set(&in, 5000 + 4999, NAN);
        operand_set(&in, 10000 + 2500, 100);
        operand_set(&in, 10000 + 2700, 100);
        CHECK_OK(RUN(aclnnMaxDim, in.tensor, 1, false, values.tensor, where.tensor));
        CHECK_INT(operand_get(&where, 0), 6);
        CHECK_INT(operand_get(&where, 1), 4321);
        CHECK_INT(operand_get(&where, 2), 2500);
        CHECK(isnan(operand_get(&values, 1)) && operand_get(&values, 2) == 100, "values go with positions");
        CHECK_OK(RUN(aclnnArgMin, in.tensor, -1, false, where.tensor));
        CHECK_INT(operand_get(&where, 1), 4321);
        operand_free(&in);
        operand_free(&values);
        operand_free(&where);
    }
}

static void nothing_has_an_identity(void)
{
    const int64_t sizes[2] = {2, 0}, two = 2, one = 1;
    struct operand in = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 1, &two, LAYOUT_PLAIN);
    struct operand truth = operand_make(DTYPE_B8, 1, &two, LAYOUT_PLAIN);
    aclIntArray *const dims = aclCreateIntArray(&one, 1);
    operand_set(&out, 1, 7);
    CHECK_OK(RUN(aclnnReduceSum, in.tensor, dims, false, ACL_FLOAT, out.tensor));
    CHECK_NEAR(operand_get(&out, 1), 0, 0);
    CHECK_OK(RUN(aclnnProdDim, in.tensor, 1, false, ACL_FLOAT, out.tensor));
    CHECK_NEAR(operand_get(&out, 1), 1, 0);
    CHECK_OK(RUN(aclnnMean, in.tensor, dims, false, ACL_FLOAT, out.tensor));
    CHECK(isnan(operand_get(&out, 1)), "the mean of nothing");
    CHECK_OK(RUN(aclnnAll, in.tensor, dims, false, truth.tensor));
    CHECK_INT(operand_get(&truth, 0), 1);
    CHECK_OK(RUN(aclnnAny, in.tensor, dims, false, truth.tensor));
    CHECK_INT(operand_get(&truth, 0), 0);
    CHECK_FAILS(RUN(aclnnAmax, in.tensor, dims, false, out.tensor), ACLNN_ERROR_PARAM, "no identity");
    aclDestroyIntArray(dims);
    operand_free(&in);
    operand_free(&out);
    operand_free(&truth);
}

static void errors_name_what_is_wrong(void)
{
    const int64_t sizes[2] = {2, 3}, two = 2, bad[2] = {0, 5}, twice[2] = {1, -1};
    struct operand in = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), out = operand_make(DTYPE_F32, 1, &two, LAYOUT_PLAIN);
    struct operand integer = operand_make(DTYPE_I64, 1, &two, LAYOUT_PLAIN),
                   complex = operand_make(DTYPE_C64, 2, sizes, LAYOUT_PLAIN);
    aclIntArray *const outside = aclCreateIntArray(bad, 2), *const repeated = aclCreateIntArray(twice, 2);
    aclIntArray *const last = aclCreateIntArray(&twice[0], 1);
    CHECK_FAILS(RUN(aclnnAmax, in.tensor, outside, false, out.tensor), ACLNN_ERROR_PARAM, "dim is 5");
    CHECK_FAILS(RUN(aclnnAmax, in.tensor, repeated, false, out.tensor), ACLNN_ERROR_PARAM, "appears twice");
    CHECK_FAILS(RUN(aclnnAmax, in.tensor, last, true, out.tensor), ACLNN_ERROR_PARAM, "expected f32[2,1]");
    CHECK_FAILS(RUN(aclnnAmax, NULL, last, true, out.tensor), ACLNN_ERROR_NULLPTR, "self is null");
    CHECK_FAILS(RUN(aclnnMean, in.tensor, last, false, ACL_INT64, integer.tensor), ACLNN_ERROR_PARAM, "i64");
    CHECK_FAILS(RUN(aclnnAmax, complex.tensor, last, false, out.tensor), ACLNN_ERROR_PARAM, "c64");
    aclDestroyIntArray(outside);
    aclDestroyIntArray(repeated);
    aclDestroyIntArray(last);
    operand_free(&in);
    operand_free(&out);
    operand_free(&integer);
    operand_free(&complex);
}

static void equal_compares_values(void)
{
    const int64_t sizes[2] = {40, 100};
    struct operand a = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN), b = operand_make(DTYPE_F32, 2, sizes, LAYOUT_TRANSPOSED);
    struct operand same = operand_make(DTYPE_B8, 0, NULL, LAYOUT_PLAIN);
    fill(&a);
    for (int64_t i = 0; i < a.count; ++i)
        operand_set(&b, i, operand_get(&a, i));
    CHECK_OK(RUN(aclnnEqual, a.tensor, b.tensor, same.tensor));
    CHECK_INT(operand_get(&same, 0), 1);
    operand_set(&b, 3999, 99);
    CHECK_OK(RUN(aclnnEqual, a.tensor, b.tensor, same.tensor));
    CHECK_INT(operand_get(&same, 0), 0);
    operand_free(&a);
    operand_free(&b);
    operand_free(&same);
}

/* Complex numbers in a view of 8 dimensions that don't merge: every other element along each. */
static void equal_takes_all_dimensions(void)
{
    enum { ELEMENTS = 1 << 16 };
    static complex32_pair memory[2][ELEMENTS];
    int64_t sizes[8], strides[8], reach = ELEMENTS;
    aclTensor *sides[2];
    bool same = false;
    const int64_t one = 1;
    for (int d = 0; d < 8; ++d) {
        sizes[d] = 2;
        strides[d] = 1ll << (2 * (7 - d));
    }
    for (int k = 0; k < 2; ++k)
        sides[k] = aclCreateTensor(sizes, 8, ACL_COMPLEX64, strides, 0, ACL_FORMAT_ND, &reach, 1, memory[k]);
    aclTensor *const out = aclCreateTensor(&one, 1, ACL_BOOL, NULL, 0, ACL_FORMAT_ND, &one, 1, &same);
    CHECK_OK(RUN(aclnnEqual, sides[0], sides[1], out));
    CHECK(same, "equal tensors of 8 dimensions");
    memory[1][2].im = 1; /* between the elements */
    CHECK_OK(RUN(aclnnEqual, sides[0], sides[1], out));
    CHECK(same, "what lies between the elements doesn't count");
    memory[1][strides[0] + strides[4] + strides[7]].im = 1;
    CHECK_OK(RUN(aclnnEqual, sides[0], sides[1], out));
    CHECK(!same, "one imaginary part differs");
    aclDestroyTensor(sides[0]);
    aclDestroyTensor(sides[1]);
    aclDestroyTensor(out);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    all_types_and_layouts();
    long_sums_are_accurate();
    positions_are_the_first();
    nothing_has_an_identity();
    errors_name_what_is_wrong();
    equal_compares_values();
    equal_takes_all_dimensions();
    return check_result();
}
