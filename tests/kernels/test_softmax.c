/* Softmax and attention kernels on every ISA: values against the formulas in double, rows with infinities and NaN, hidden rows,
 * the baseline's bits for all values. */
#include "kernel_check.h"
#include "kernels/attention.h"
#include "kernels/softmax.h"

/* --- softmax ---------------------------------------------------------------------------------------------------------- */

/* expected[i] of one line, elements `step` apart. */
static void softmax_line(enum accumulate type, const void *x, int64_t n, int64_t step, int logarithm, double *expected)
{
    double best = get_value(x, type, 0), sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double v = get_value(x, type, i * step);
        best = v > best || isnan(v) ? v : best;
    }
    for (int64_t i = 0; i < n; ++i)
        sum += exp(get_value(x, type, i * step) - best);
    for (int64_t i = 0; i < n; ++i) {
        const double shifted = get_value(x, type, i * step) - best;
        expected[i] = logarithm ? shifted - log(sum) : exp(shifted) / sum;
    }
}

static void softmax_gradient_line(enum accumulate type, const void *dy, const void *y, int64_t n, int64_t step, int logarithm,
                                  double *expected)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i)
        sum += logarithm ? get_value(dy, type, i * step) : get_value(dy, type, i * step) * get_value(y, type, i * step);
    for (int64_t i = 0; i < n; ++i) {
        const double d = get_value(dy, type, i * step), v = get_value(y, type, i * step);
        expected[i] = logarithm ? d - exp(v) * sum : (d - sum) * v;
    }
}

static void test_row(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n, int logarithm,
                     enum test_values values)
{
    const struct softmax_float_kernels *const k = &set->softmax->real[type], *const b = &base->softmax->real[type];
    const void *const x = random_values(type, n, values), *const dy = random_values(type, n, values);
    void *const out = room_for(type, n), *const base_out = room_for(type, n);
    double *const expected = guarded(n, 8);
    k->forward(x, out, n, logarithm);
    b->forward(x, base_out, n, logarithm);
    CHECK(same_values(type, out, base_out, n), "%s: softmax of %lld differs", set->isa, (long long)n);
    softmax_line(type, x, n, 1, logarithm, expected);
    for (int64_t i = 0; values != VALUES_EXTREME && i < n; ++i)
        CHECK_ELEMENT(set->isa, "softmax", type, out, i, expected[i], 4 * tolerance_of(type));
    k->backward(dy, x, out, n, logarithm);
    b->backward(dy, x, base_out, n, logarithm);
    CHECK(same_values(type, out, base_out, n), "%s: gradient of softmax of %lld differs", set->isa, (long long)n);
    softmax_gradient_line(type, dy, x, n, 1, logarithm, expected);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i)
        CHECK_ELEMENT(set->isa, "softmax gradient", type, out, i, expected[i], 400 * (double)(n + 1) * tolerance_of(type));
    guarded_end(set->isa, "softmax of a row");
}

static void test_columns(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t depth,
                         int width, int logarithm, enum test_values values)
{
    const struct softmax_float_kernels *const k = &set->softmax->real[type], *const b = &base->softmax->real[type];
    const int64_t stride = width + 5, n = (depth - 1) * stride + width;
    const char *const x = random_values(type, n, values), *const dy = random_values(type, n, values);
    char *const out = room_for(type, n), *const base_out = room_for(type, n);
    double *const expected = guarded(depth, 8);
    for (int backward = 0; backward < 2; ++backward) {
        if (backward) {
            k->backward_columns(dy, x, out, depth, stride, width, logarithm);
            b->backward_columns(dy, x, base_out, depth, stride, width, logarithm);
        } else {
            k->forward_columns(x, out, depth, stride, width, logarithm);
            b->forward_columns(x, base_out, depth, stride, width, logarithm);
        }
        CHECK(same_values(type, out, base_out, n), "%s: %lld columns of softmax differ", set->isa, (long long)width);
        for (int64_t j = 0; values == VALUES_ORDINARY && j < width; ++j) {
            const int64_t at = j * accumulate_bytes(type);
            if (backward)
                softmax_gradient_line(type, dy + at, x + at, depth, stride, logarithm, expected);
            else
                softmax_line(type, x + at, depth, stride, logarithm, expected);
            for (int64_t i = 0; i < depth; ++i)
                CHECK_ELEMENT(set->isa, "softmax of columns", type, out + at, i * stride, expected[i],
                              (backward ? 400 * (double)depth : 4) * tolerance_of(type));
        }
    }
    guarded_end(set->isa, "softmax of columns");
}

/* --- attention -------------------------------------------------------------------------------------------------------- */

/* A row of scores in pieces: the pieces' factors applied, the whole is softmax. `hidden`: of 4 elements so many are -Inf. */
static void test_steps(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n, int hidden,
                       enum test_values values)
{
    const struct attention_float_kernels *const k = &set->attention->real[type], *const b = &base->attention->real[type];
    char *const scores = random_values(type, 2 * n, values);
    for (int64_t i = 0; i < 2 * n; ++i)
        if (i % 4 < hidden)
            put_value(scores, type, i, -INFINITY);
    char *const out = copy_of(type, scores, 2 * n), *const base_out = copy_of(type, scores, 2 * n);
    double maximum = -INFINITY, sum = 0, base_maximum = -INFINITY, base_sum = 0, factor = 0, best = -INFINITY, total = 0;
    for (int part = 0; part < 2; ++part) {
        const int64_t at = part * n * accumulate_bytes(type);
        factor = k->step(out + at, n, &maximum, &sum);
        const double base_factor = b->step(base_out + at, n, &base_maximum, &base_sum);
        CHECK(same_double(factor, base_factor) && same_double(maximum, base_maximum) && same_double(sum, base_sum),
              "%s: attention's step of %lld differs", set->isa, (long long)n);
    }
    CHECK(same_values(type, out, base_out, 2 * n), "%s: attention's scores differ", set->isa);
    for (int64_t i = 0; i < 2 * n; ++i)
        best = fmax(best, get_value(scores, type, i));
    const double shift = best == -INFINITY ? 0 : best;
    for (int64_t i = 0; i < 2 * n; ++i)
        total += exp(get_value(scores, type, i) - shift);
    const double tolerance = 4 * tolerance_of(type);
    if (values == VALUES_ORDINARY) {
        CHECK(maximum == best, "%s: the largest score is %g, not %g", set->isa, maximum, best);
        CHECK(check_near(sum, total, tolerance * 4), "%s: sum %.9g, expected %.9g", set->isa, sum, total);
        for (int64_t i = 0; i < 2 * n; ++i)
            CHECK_ELEMENT(set->isa, "power", type, out, i,
                          exp(get_value(scores, type, i) - shift) / (i < n && factor > 0 ? factor : 1), tolerance * 64);
    }
    k->probability(scores, 2 * n, maximum, sum);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < 2 * n; ++i) {
        const double power = get_value(out, type, i) * (i < n ? factor : 1);
        CHECK_ELEMENT(set->isa, "probability", type, scores, i, sum == 0 ? 0 : power / sum, tolerance * 4);
    }
    guarded_end(set->isa, "attention's step");
}

enum { LINES = 8 };
static void run_lines(const struct attention_float_kernels *k, enum accumulate type, int64_t n, const void *x, const void *y,
                      const uint8_t *mask, void **out)
{
    for (int i = 0; i < LINES; ++i)
        out[i] = copy_of(type, x, n);
    k->gradient(y, out[0], n, 0.75);
    k->scale(out[1], n, -1.5);
    k->add(out[2], y, n, 0.375);
    k->hide(out[3], mask, 1, n);
    k->hide(out[4], mask, 3, n);
    k->hide(out[5], mask, 0, n);
    k->drop(out[6], mask, 3, n, 1.25);
    k->probability(out[7], n, 1.5, 2.5);
}

static void test_lines(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n,
                       enum test_values values)
{
    const void *const x = random_values(type, n, values), *const y = random_values(type, n, values);
    uint8_t *const mask = guarded(n > 0 ? 3 * n : 1, 1);
    for (int64_t i = 0; i < (n > 0 ? 3 * n : 1); ++i)
        mask[i] = (uint8_t)(check_random(&test_state) % 3 ? check_random(&test_state) : 0);
    void *out[LINES], *expected[LINES];
    run_lines(&set->attention->real[type], type, n, x, y, mask, out);
    run_lines(&base->attention->real[type], type, n, x, y, mask, expected);
    for (int l = 0; l < LINES; ++l)
        CHECK(same_values(type, out[l], expected[l], n), "%s: attention's line kernel %d differs", set->isa, l);
    double sum = 0, size = 0;
    for (int64_t i = 0; values != VALUES_EXTREME && i < n; ++i) {
        const double a = get_value(x, type, i), b = get_value(y, type, i);
        const int bit = mask[(3 + i) / 8] >> (3 + i) % 8 & 1;
        const double lines[LINES] = {
            b * (a - 0.75),          a * -1.5,           a + b * 0.375,     mask[i] ? -INFINITY : a, mask[3 * i] ? -INFINITY : a,
            mask[0] ? -INFINITY : a, bit ? a * 1.25 : 0, exp(a - 1.5) / 2.5};
        for (int l = 0; l < LINES; ++l)
            CHECK_ELEMENT(set->isa, "attention's line", type, out[l], i, lines[l], 16 * tolerance_of(type));
        sum += a * b;
        size += fabs(a * b);
    }
    const double dot = set->attention->real[type].dot(x, y, n);
    CHECK(same_double(dot, base->attention->real[type].dot(x, y, n)), "%s: dot of %lld differs", set->isa, (long long)n);
    if (values == VALUES_ORDINARY)
        CHECK_NEAR(dot, sum, tolerance_of(type) * (1 + size));
    guarded_end(set->isa, "attention's lines");
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    for (int t = 0; t < 2; ++t)
        for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
            for (int s = 0; s < TEST_SIZES; ++s) {
                const int64_t n = test_sizes[s];
                for (int logarithm = 0; logarithm < 2 && n > 0; ++logarithm) {
                    test_row(set, base, float_types[t], n, logarithm, values);
                    for (int64_t depth = 1; depth <= 10 && n <= SOFTMAX_COLUMNS; depth += 3)
                        test_columns(set, base, float_types[t], depth, (int)n, logarithm, values);
                }
                for (int hidden = 0; hidden <= 4; ++hidden)
                    test_steps(set, base, float_types[t], n, hidden, values);
                test_lines(set, base, float_types[t], n, values);
            }
}

int main(void) { return for_each_kernel_set(test_set); }
