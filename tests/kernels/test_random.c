/* Random kernels on every ISA: each number against philox and the formula that makes it, the baseline's bits, and the ends of the
 * ranges. test_reduce_kernels.c has the words and the f32 functions. */
#include "base/half.h"
#include "base/philox.h"
#include "kernel_check.h"
#include "kernels/random.h"

/* Words with the smallest and the largest among them. */
static uint32_t *random_words(int64_t n)
{
    uint32_t *const words = guarded(n, 4);
    for (int64_t i = 0; i < n; ++i)
        words[i] = i % 7 == 2 ? 0 : i % 7 == 5 ? UINT32_MAX : (uint32_t)check_random(&test_state);
    return words;
}

static double unit_of(uint32_t low, uint32_t high) { return (double)((uint64_t)low ^ (uint64_t)high << 21) * 0x1p-53 + 0x1p-54; }

static void test_words(const struct kernel_set *set, uint64_t seed, uint64_t first, uint64_t counter, int64_t n)
{
    uint32_t *const words = guarded(4 * n, 4);
    set->random->words(words, seed, first, counter, n);
    for (int64_t i = 0; i < n; ++i) {
        const struct philox_block block = philox(seed, first + (uint64_t)i, counter);
        for (int k = 0; k < 4; ++k)
            CHECK(words[k * n + i] == block.word[k], "%s: word %d of call %lld of %lld", set->isa, k, (long long)i, (long long)n);
    }
    guarded_end(set->isa, "words");
}

static void test_doubles(const struct kernel_set *set, const struct kernel_set *base, int64_t n)
{
    const uint32_t *const words = random_words(4 * n);
    double *const a = guarded(n, 8), *const b = guarded(n, 8), *const c = guarded(n, 8), *const d = guarded(n, 8);
    set->random->uniform_f64(a, words, words + n, n);
    for (int64_t i = 0; i < n; ++i)
        CHECK(a[i] == unit_of(words[i], words[n + i]) && a[i] > 0 && a[i] <= 1, "%s: uniform %.17g", set->isa, a[i]);
    set->random->negative_log_f64(a, n);
    for (int64_t i = 0; i < n; ++i) {
        const double u = unit_of(words[i], words[n + i]);
        CHECK(a[i] > 0 && fabs(a[i] + log(u)) <= 2.3e-16 * (1 + fabs(a[i])), "%s: logarithm %.17g of %.17g", set->isa, a[i], u);
    }
    set->random->normal_f64(a, b, words, n);
    base->random->normal_f64(c, d, words, n);
    CHECK(same_values(ACCUMULATE_F64, a, c, n) && same_values(ACCUMULATE_F64, b, d, n), "%s: normal of %lld differs", set->isa,
          (long long)n);
    for (int64_t i = 0; i < n; ++i) {
        const double radius = sqrt(-2 * log(unit_of(words[i], words[n + i])));
        const double angle = 2 * acos(-1) * unit_of(words[2 * n + i], words[3 * n + i]);
        CHECK_NEAR(a[i], radius * sin(angle), 1e-13);
        CHECK_NEAR(b[i], radius * cos(angle), 1e-13);
    }
    guarded_end(set->isa, "random doubles");
}

static float rounded(float x, enum random_rounding rounding)
{
    return rounding == ROUNDING_f16    ? half_f16_to_f32(half_f16_from_f32(x))
           : rounding == ROUNDING_bf16 ? half_bf16_to_f32(half_bf16_from_f32(x))
                                       : x;
}

/* Values that reach the upper limit, by rounding at least, become the lower one. */
static void test_scales(const struct kernel_set *set, int64_t n)
{
    const uint32_t *const words = random_words(2 * n);
    float *const unit = guarded(n, 4), *const tile = guarded(n, 4);
    double *const wide = guarded(n, 8);
    set->random->uniform_f32(unit, words, n);
    for (enum random_rounding rounding = ROUNDING_none; rounding <= ROUNDING_bf16; ++rounding) {
        memcpy(tile, unit, (size_t)n * 4);
        set->random->scale_f32(tile, n, -2, 5, 3, rounding);
        for (int64_t i = 0; i < n; ++i) {
            const float value = rounded(unit[i] * 5 - 2, rounding);
            CHECK(tile[i] == (value >= 3 ? -2 : value), "%s: scaled %.9g from %.9g", set->isa, (double)tile[i], (double)unit[i]);
        }
    }
    set->random->uniform_f64(wide, words, words + n, n);
    set->random->scale_f64(wide, n, -2, 5, 3);
    for (int64_t i = 0; i < n; ++i) {
        const double value = unit_of(words[i], words[n + i]) * 5 - 2;
        CHECK(wide[i] == (value >= 3 ? -2 : value), "%s: scaled %.17g", set->isa, wide[i]);
    }
    set->random->uniform_f32(tile, words, n);
    set->random->divide_f32(tile, n, 3);
    for (int64_t i = 0; i < n; ++i)
        CHECK(tile[i] == unit[i] / 3, "%s: divided", set->isa);
    guarded_end(set->isa, "scaling");
}

/* steps: bit 0 of the mean (and probability), bit 1 of the deviation. */
static void test_operands(const struct kernel_set *set, enum accumulate type, int64_t n, int steps, enum test_values values)
{
    const int mean_step = steps & 1, deviation_step = steps >> 1;
    const void *const x = random_values(type, n, values), *const mean = random_values(type, mean_step ? n : 1, values);
    const void *const deviation = random_values(type, deviation_step ? n : 1, values);
    void *const tile = copy_of(type, x, n), *const below = copy_of(type, x, n);
    if (type == ACCUMULATE_F32) {
        set->random->affine_f32(tile, n, mean, mean_step, deviation, deviation_step);
        set->random->below_f32(below, n, mean, mean_step);
    } else {
        set->random->affine_f64(tile, n, mean, mean_step, deviation, deviation_step);
        set->random->below_f64(below, n, mean, mean_step);
    }
    for (int64_t i = 0; i < n; ++i) {
        const double value = get_value(x, type, i), m = get_value(mean, type, i * mean_step);
        const double exact = value * get_value(deviation, type, i * deviation_step) + m;
        if (values != VALUES_EXTREME)
            CHECK_ELEMENT(set->isa, "affine", type, tile, i, exact, 32 * tolerance_of(type));
        CHECK_ELEMENT(set->isa, "below", type, below, i, value <= m, 0);
    }
    guarded_end(set->isa, "random numbers with operands");
}

static void test_integers(const struct kernel_set *set, int64_t n)
{
    static const uint64_t ranges[] = {1, 2, 3, 100, 1u << 31, UINT32_MAX, (uint64_t)1 << 40, 0x123456789abcdefu, UINT64_MAX, 0};
    const uint32_t *const words = random_words(2 * n);
    int64_t *const tile = guarded(n, 8);
    for (int r = 0; r < 10; ++r)
        for (int64_t base = -5; base < 10; base += 10) {
            if (ranges[r] && ranges[r] <= UINT32_MAX) {
                set->random->integer_32(tile, words, (uint32_t)ranges[r], base, n);
                for (int64_t i = 0; i < n; ++i)
                    CHECK_INT(tile[i], (int64_t)(words[i] % ranges[r]) + base);
            }
            set->random->integer_64(tile, words, words + n, ranges[r], base, n);
            for (int64_t i = 0; i < n; ++i) {
                const uint64_t word = (uint64_t)words[i] << 32 | words[n + i];
                CHECK_INT(tile[i], (int64_t)((ranges[r] ? word % ranges[r] : word) + (uint64_t)base));
            }
        }
    guarded_end(set->isa, "random integers");
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    for (int s = 0; s < TEST_SIZES; ++s) {
        const int64_t n = test_sizes[s];
        test_words(set, 0x0123456789abcdef, 0, 5, n);
        test_words(set, UINT64_MAX, 0xffffffffu, (uint64_t)1 << 40, n);
        test_doubles(set, base, n);
        test_scales(set, n);
        test_integers(set, n);
        for (int steps = 0; steps < 4; ++steps)
            for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values) {
                test_operands(set, ACCUMULATE_F32, n, steps, values);
                test_operands(set, ACCUMULATE_F64, n, steps, values);
            }
    }
}

int main(void) { return for_each_kernel_set(test_set); }
