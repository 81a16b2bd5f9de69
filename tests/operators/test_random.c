/* Random tensors: the numbers are CUDA's (known values), depend on (seed, offset) only, follow their distributions, and respect
 * layouts and limits. */
#include "aclnnop/all_operators.h"
#include "base/philox.h"
#include "operand.h"

enum { MANY = 400000 };

static void known_values(void)
{
    /* torch.rand(4) and torch.randn(4) on a CUDA device after torch.manual_seed(0). */
    static const double uniform[4] = {0.3990, 0.5167, 0.0249, 0.9401}, normal[4] = {-0.9247, -0.4253, -2.6438, 0.1452};
    const int64_t four = 4;
    struct operand x = operand_make(DTYPE_F32, 1, &four, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnInplaceUniform, x.tensor, 0, 1, 0, 0));
    for (int i = 0; i < 4; ++i)
        CHECK_NEAR(operand_get(&x, i), uniform[i], 5.1e-5);
    CHECK_OK(RUN(aclnnInplaceNormal, x.tensor, 0, 1, 0, 0));
    for (int i = 0; i < 4; ++i)
        CHECK_NEAR(operand_get(&x, i), normal[i], 5.1e-5);
    operand_free(&x);
}

/* Element t + k * T of a call is the k-th word of thread t: written out for a size that takes two calls. */
static void the_counter_rule(void)
{
    const int64_t n = 1000003, threads = philox_threads(n);
    struct operand x = operand_make(DTYPE_I64, 1, &n, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnInplaceRandom, x.tensor, 0, 1 << 20, 77, 8));
    for (int64_t i = 0; i < n; i += 997) {
        const int64_t k = i / threads;
        const struct philox_block block = philox(77, (uint64_t)(i % threads), 8 / 4 + (uint64_t)(k / 4));
        CHECK_INT(operand_get(&x, i), block.word[k % 4] & ((1 << 20) - 1));
    }
    CHECK(random_offset_increment(n) == 12 && random_offset_increment(1) == 4 && random_offset_increment(0) == 0, "increments");
    operand_free(&x);
}

struct moments {
    double mean, variance, low, high;
};

static struct moments moments_of(const struct operand *x)
{
    struct moments m = {0, 0, INFINITY, -INFINITY};
    for (int64_t i = 0; i < x->count; ++i) {
        const double v = operand_get(x, i);
        m.mean += v / (double)x->count;
        m.low = fmin(m.low, v);
        m.high = fmax(m.high, v);
    }
    for (int64_t i = 0; i < x->count; ++i)
        m.variance += (operand_get(x, i) - m.mean) * (operand_get(x, i) - m.mean) / (double)x->count;
    return m;
}

static void distributions(enum dtype dtype, enum layout layout)
{
    const int64_t sizes[2] = {400, MANY / 400};
    struct operand x = operand_make(dtype, 2, sizes, layout), plain = operand_make(dtype, 2, sizes, LAYOUT_PLAIN);
    CHECK_OK(RUN(aclnnInplaceUniform, x.tensor, -1, 3, 11, 4));
    CHECK_OK(RUN(aclnnInplaceUniform, plain.tensor, -1, 3, 11, 4));
    for (int64_t i = 0; i < x.count; i += 111)
        CHECK(operand_get(&x, i) == operand_get(&plain, i), "the layout changes numbers");
    struct moments m = moments_of(&x);
    CHECK(fabs(m.mean - 1) < 0.01 && fabs(m.variance - 16.0 / 12) < 0.01 && m.low >= -1 && m.high < 3, "uniform %s: %g %g %g %g",
          dtype_name(dtype), m.mean, m.variance, m.low, m.high);
    CHECK_OK(RUN(aclnnInplaceNormal, x.tensor, 2, 0.5, 11, 4));
    m = moments_of(&x);
    CHECK(fabs(m.mean - 2) < 0.005 && fabs(m.variance - 0.25) < 0.005 && m.low < 0 && m.high > 4, "normal %s: %g %g",
          dtype_name(dtype), m.mean, m.variance);
    CHECK_OK(RUN(aclnnSimThreadExponential, x.tensor, x.count, 4, 11, 4));
    m = moments_of(&x);
    CHECK(fabs(m.mean - 0.25) < 0.003 && fabs(m.variance - 0.0625) < 0.002 && m.low >= 0, "exponential %s: %g %g",
          dtype_name(dtype), m.mean, m.variance);
    operand_free(&x);
    operand_free(&plain);
}

static void uniform_fills_its_bins(void)
{
    const int64_t n = 1000000;
    struct operand x = operand_make(DTYPE_F32, 1, &n, LAYOUT_PLAIN);
    double bins[100] = {0}, chi_square = 0, product = 0;
    CHECK_OK(RUN(aclnnInplaceUniform, x.tensor, 0, 1, 2026, 0));
    for (int64_t i = 0; i < n; ++i) {
        ++bins[(int)(operand_get(&x, i) * 100)];
        product += i ? (operand_get(&x, i) - 0.5) * (operand_get(&x, i - 1) - 0.5) : 0;
    }
    for (int b = 0; b < 100; ++b)
        chi_square += (bins[b] - 1e4) * (bins[b] - 1e4) / 1e4;
    CHECK(chi_square > 55 && chi_square < 155, "chi square of 99 degrees of freedom: %g", chi_square);
    CHECK(fabs(product / (double)n * 12) < 0.005, "neighbours correlate: %g", product / (double)n * 12);
    operand_free(&x);
}

static void bernoulli_and_integers(void)
{
    const int64_t n = MANY;
    aclScalar *const never = scalar_f64(0), *const always = scalar_f64(1), *const often = scalar_f64(0.7),
                     *const wrong = scalar_f64(1.5);
    for (enum dtype d = 0; d < DTYPE_COUNT; ++d) {
        if (dtype_kind(d) == KIND_COMPLEX)
            continue;
        struct operand x = operand_make(d, 1, &n, LAYOUT_PLAIN);
        CHECK_OK(RUN(aclnnInplaceBernoulli, x.tensor, never, 1, 0));
        CHECK(moments_of(&x).high == 0, "probability 0");
        CHECK_OK(RUN(aclnnInplaceBernoulli, x.tensor, always, 1, 0));
        CHECK(moments_of(&x).low == 1, "probability 1");
        CHECK_OK(RUN(aclnnInplaceBernoulli, x.tensor, often, 1, 0));
        CHECK_NEAR(moments_of(&x).mean, 0.7, 0.005);
        if (d == DTYPE_B8) {
            operand_free(&x);
            continue;
        }
        double counts[7] = {0}, chi_square = 0;
        CHECK_OK(RUN(aclnnInplaceRandom, x.tensor, 3, 10, 5, 0));
        for (int64_t i = 0; i < n; ++i)
            if (operand_get(&x, i) >= 3 && operand_get(&x, i) < 10)
                ++counts[(int)operand_get(&x, i) - 3];
        for (int b = 0; b < 7; ++b)
            chi_square += (counts[b] - n / 7.0) * (counts[b] - n / 7.0) / (n / 7.0);
        CHECK(chi_square < 23, "%s: chi square of 6 degrees of freedom: %g", dtype_name(d), chi_square);
        CHECK_OK(RUN(aclnnInplaceRandomWithoutFromTo, x.tensor, 5, 0));
        CHECK(moments_of(&x).low >= 0, "no negative numbers");
        CHECK_FAILS(RUN(aclnnInplaceRandom, x.tensor, 3, 3, 5, 0), ACLNN_ERROR_PARAM, "from < to");
        CHECK_FAILS(RUN(aclnnInplaceBernoulli, x.tensor, wrong, 5, 0), ACLNN_ERROR_PARAM, "[0, 1]");
        operand_free(&x);
    }
    aclDestroyScalar(never);
    aclDestroyScalar(always);
    aclDestroyScalar(often);
    aclDestroyScalar(wrong);
}

static void permutations_and_samples(void)
{
    const int64_t n = 5000, sizes[2] = {2, 4}, draws[2] = {2, 20000};
    struct operand p = operand_make(DTYPE_I32, 1, &n, LAYOUT_STEPPED), weights = operand_make(DTYPE_F32, 2, sizes, LAYOUT_PLAIN);
    struct operand samples = operand_make(DTYPE_I64, 2, draws, LAYOUT_PLAIN);
    char seen[5000] = {0};
    int64_t kept = 0;
    CHECK_OK(RUN(aclnnRandperm, n, 1, 0, p.tensor));
    for (int64_t i = 0; i < n; ++i) {
        seen[(int64_t)operand_get(&p, i)] = 1;
        kept += (int64_t)operand_get(&p, i) == i;
    }
    CHECK(!memchr(seen, 0, sizeof seen) && kept < 12, "not a random permutation; %lld stayed", (long long)kept);
    for (int i = 0; i < 4; ++i) {
        operand_set(&weights, i, i);
        operand_set(&weights, 4 + i, i == 2);
    }
    CHECK_OK(RUN(aclnnMultinomial, weights.tensor, draws[1], true, 3, 0, samples.tensor));
    double counts[4] = {0};
    for (int64_t i = 0; i < draws[1]; ++i) {
        ++counts[(int)operand_get(&samples, i)];
        CHECK_INT(operand_get(&samples, draws[1] + i), 2);
    }
    for (int i = 0; i < 4; ++i)
        CHECK_NEAR(counts[i] / (double)draws[1], i / 6.0, 0.015);
    const int64_t two[2] = {2, 2};
    struct operand few = operand_make(DTYPE_I64, 2, two, LAYOUT_PLAIN);
    CHECK_FAILS(RUN(aclnnMultinomial, weights.tensor, 2, false, 3, 0, few.tensor), ERROR_RT_DEVICE_TASK, "fewer than 2");
    operand_free(&few);
    operand_free(&p);
    operand_free(&weights);
    operand_free(&samples);
}

static void state_in_tensors(void)
{
    const int64_t n = 1000, one = 1;
    struct operand a = operand_make(DTYPE_F32, 1, &n, LAYOUT_PLAIN), b = operand_make(DTYPE_F32, 1, &n, LAYOUT_PLAIN);
    struct operand seed = operand_make(DTYPE_I64, 1, &one, LAYOUT_PLAIN), offset = operand_make(DTYPE_I64, 1, &one, LAYOUT_PLAIN);
    operand_set(&seed, 0, 99);
    operand_set(&offset, 0, 4);
    CHECK_OK(RUN(aclnnInplaceNormalTensor, a.tensor, 0, 1, seed.tensor, offset.tensor, 8));
    CHECK_OK(RUN(aclnnInplaceNormal, b.tensor, 0, 1, 99, 12));
    CHECK(memcmp(a.memory, b.memory, (size_t)n * 4) == 0, "state in tensors gives other numbers");
    CHECK_OK(RUN(aclnnInplaceNormal, b.tensor, 0, 1, 99, 16));
    CHECK(memcmp(a.memory, b.memory, (size_t)n * 4) != 0, "the offset doesn't matter");
    operand_free(&a);
    operand_free(&b);
    operand_free(&seed);
    operand_free(&offset);
}

int main(void)
{
    CHECK_OK(aclInit(NULL));
    CHECK_OK(aclrtSetDevice(0));
    known_values();
    the_counter_rule();
    distributions(DTYPE_F32, LAYOUT_PLAIN);
    distributions(DTYPE_F32, LAYOUT_TRANSPOSED);
    distributions(DTYPE_F64, LAYOUT_STEPPED);
    distributions(DTYPE_F16, LAYOUT_PLAIN);
    distributions(DTYPE_BF16, LAYOUT_OFFSET);
    uniform_fills_its_bins();
    bernoulli_and_integers();
    permutations_and_samples();
    state_in_tensors();
    return check_result();
}
