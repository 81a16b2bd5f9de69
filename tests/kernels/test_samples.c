/* Kernels that weigh elements from tables, on every ISA: resampling, grid sampling, rotary embedding, distances; values against the
 * formulas in double, the baseline's bits for all values. */
#include "kernel_check.h"
#include "kernels/distance.h"
#include "kernels/grid.h"
#include "kernels/resample.h"
#include "kernels/rotary.h"

/* --- resampling ------------------------------------------------------------------------------------------------------- */

enum { TERMS = 3 };

/* out elements of up to TERMS terms each; some have none. */
static struct resample_table random_table(int64_t in, int64_t out)
{
    int32_t *const begin = guarded(out + 1, 4), *const index = guarded(out * TERMS, 4);
    double *const weight = guarded(out * TERMS, 8);
    int32_t terms = 0;
    for (int64_t o = 0; o < out; ++o) {
        begin[o] = terms;
        for (uint64_t t = in > 0 ? check_random(&test_state) % (TERMS + 1) : 0; t > 0; --t, ++terms) {
            index[terms] = (int32_t)(check_random(&test_state) % (uint64_t)in);
            weight[terms] = check_random_real(&test_state);
        }
    }
    begin[out] = terms;
    return (struct resample_table){in, out, begin, index, weight};
}

static void test_pass(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, const int64_t *sizes,
                      enum test_values values)
{
    enum { OUTER = 2 };
    const int64_t in = sizes[0], out = sizes[1], inner = sizes[2];
    const struct resample_table t = random_table(in, out);
    const void *const x = random_values(type, OUTER * in * inner, values);
    void *const y = room_for(type, OUTER * out * inner), *const base_y = room_for(type, OUTER * out * inner);
    set->resample->pass[type](x, y, OUTER, inner, &t);
    base->resample->pass[type](x, base_y, OUTER, inner, &t);
    CHECK(same_values(type, y, base_y, OUTER * out * inner), "%s: resampling %lld -> %lld differs", set->isa, (long long)in,
          (long long)out);
    for (int64_t e = 0; values != VALUES_EXTREME && e < OUTER * out * inner; ++e) {
        const int64_t i = e % inner, o = e / inner % out, u = e / inner / out;
        double sum = 0;
        for (int32_t term = t.begin[o]; term < t.begin[o + 1]; ++term)
            sum += t.weight[term] * get_value(x, type, (u * in + t.index[term]) * inner + i);
        CHECK_ELEMENT(set->isa, "resampling", type, y, e, sum, 4 * tolerance_of(type));
    }
    guarded_end(set->isa, "resampling");
}

static void test_table_gather(const struct kernel_set *set, int size, int64_t n, int64_t out_stride, int64_t in_stride)
{
    const int64_t bytes = 1 << size, in = n + 3, outs = n > 0 ? (n - 1) * out_stride + 1 : 0, ins = (in - 1) * in_stride + 1;
    char *const to = guarded(outs, (size_t)bytes), *const expected = guarded(outs, (size_t)bytes),
                *const from = guarded(ins, (size_t)bytes);
    int32_t *const index = guarded(n, 4);
    for (int64_t i = 0; i < ins * bytes; ++i)
        from[i] = (char)check_random(&test_state);
    for (int64_t i = 0; i < n; ++i) {
        index[i] = (int32_t)(check_random(&test_state) % (uint64_t)in);
        memcpy(expected + i * out_stride * bytes, from + index[i] * in_stride * bytes, (size_t)bytes);
    }
    set->resample->gather[size](to, out_stride, from, in_stride, index, n);
    CHECK(memcmp(to, expected, (size_t)(outs * bytes)) == 0, "%s: gather of %lld x %lld bytes", set->isa, (long long)n,
          (long long)bytes);
    guarded_end(set->isa, "gather by a table");
}

static void test_resample(const struct kernel_set *set, const struct kernel_set *base)
{
    static const int64_t sizes[][3] = {{0, 3, 1},  {1, 5, 1},  {7, 16, 1}, {40, 3, 1}, {5, 7, 2},
                                       {6, 4, 15}, {3, 3, 16}, {9, 2, 33}, {2, 3, 0}};
    for (int t = 0; t < 2; ++t)
        for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
            for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; ++s)
                test_pass(set, base, float_types[t], sizes[s], values);
    for (int size = 0; size < 5; ++size)
        for (int s = 0; s < TEST_SIZES; ++s)
            for (int64_t stride = 1; stride <= 3; ++stride)
                test_table_gather(set, size, test_sizes[s], stride, 1 + stride % 2 * (stride - 1));
}

/* --- grid sampling ---------------------------------------------------------------------------------------------------- */

static struct grid_taps random_taps(int count, int64_t plane)
{
    struct grid_taps taps = {.count = count};
    for (int t = 0; t < count; ++t) {
        taps.offset[t] = (int64_t)(check_random(&test_state) % (uint64_t)plane);
        taps.weight[t] = check_random_real(&test_state);
        for (int d = 0; d < GRID_DIMS; ++d)
            taps.slope[d][t] = check_random_real(&test_state);
    }
    return taps;
}

static void test_grid(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int count,
                      int64_t channels, enum test_values values)
{
    enum { PLANE = 35, STRIDE = 3 };
    const struct grid_float_kernels *const k = &set->grid->real[type], *const b = &base->grid->real[type];
    const struct grid_taps taps = random_taps(count, PLANE);
    const int64_t outs = channels > 0 ? (channels - 1) * STRIDE + 1 : 0;
    const void *const in = random_values(type, channels * PLANE, values), *const grad = random_values(type, outs, values);
    void *const out = room_for(type, outs), *const base_out = room_for(type, outs);
    void *const spread = copy_of(type, in, channels * PLANE), *const base_spread = copy_of(type, in, channels * PLANE);
    double sums[GRID_DIMS], base_sums[GRID_DIMS], expected_sums[GRID_DIMS] = {0};
    k->sample(&taps, in, PLANE, out, STRIDE, channels);
    b->sample(&taps, in, PLANE, base_out, STRIDE, channels);
    k->spread(&taps, spread, PLANE, grad, STRIDE, channels);
    b->spread(&taps, base_spread, PLANE, grad, STRIDE, channels);
    k->slopes(&taps, in, PLANE, grad, STRIDE, channels, sums);
    b->slopes(&taps, in, PLANE, grad, STRIDE, channels, base_sums);
    CHECK(same_values(type, out, base_out, outs) && same_values(type, spread, base_spread, channels * PLANE) &&
              same_values(ACCUMULATE_F64, sums, base_sums, GRID_DIMS),
          "%s: grid sampling differs", set->isa);
    double *const expected = guarded(channels * PLANE, 8);
    for (int64_t i = 0; i < channels * PLANE; ++i)
        expected[i] = get_value(in, type, i);
    for (int64_t c = 0; values != VALUES_EXTREME && c < channels; ++c) {
        const double g = get_value(grad, type, c * STRIDE);
        double sum = 0;
        for (int t = 0; t < count; ++t) {
            const double x = get_value(in, type, c * PLANE + taps.offset[t]);
            sum += taps.weight[t] * x;
            expected[c * PLANE + taps.offset[t]] += taps.weight[t] * g;
            for (int d = 0; d < GRID_DIMS; ++d)
                expected_sums[d] += g * taps.slope[d][t] * x;
        }
        CHECK_ELEMENT(set->isa, "sample", type, out, c * STRIDE, sum, 16 * tolerance_of(type));
    }
    for (int64_t i = 0; values != VALUES_EXTREME && i < channels * PLANE; ++i)
        CHECK_ELEMENT(set->isa, "spread", type, spread, i, expected[i], 16 * tolerance_of(type));
    for (int d = 0; values == VALUES_ORDINARY && d < GRID_DIMS; ++d)
        CHECK_NEAR(sums[d], expected_sums[d], 1e-12 * (1 + 16 * (double)channels));
    guarded_end(set->isa, "grid sampling");
}

/* --- rotary embedding ------------------------------------------------------------------------------------------------- */

/* interleaved: pairs are neighbours, else half a row apart. */
static struct rotary_table rotary_table_of(int64_t width, int interleaved)
{
    int32_t *const source = guarded(width, 4), *const partner = guarded(width, 4);
    float *const sign = guarded(width, 4);
    for (int64_t j = 0; j < width; ++j) {
        const int64_t half = width / 2, other = interleaved ? j ^ 1 : (j + half) % width;
        source[j] = (int32_t)(interleaved ? j : (j + 1) % width);
        partner[j] = (int32_t)other;
        sign[j] = (interleaved ? j % 2 == 0 : j < half) ? -1 : 1;
    }
    return (struct rotary_table){width, source, partner, sign};
}

static void test_rotary(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t width,
                        int interleaved, enum test_values values)
{
    const struct rotary_float_kernels *const k = &set->rotary->real[type], *const b = &base->rotary->real[type];
    const struct rotary_table t = rotary_table_of(width, interleaved);
    const void *const x = random_values(type, width, values), *const dy = random_values(type, width, values);
    const void *const cosine = random_values(type, width, values), *const sine = random_values(type, width, values);
    void *out[4];
    double *angles[4], *const expected = guarded(width, 8);
    for (int i = 0; i < 4; ++i) {
        out[i] = room_for(type, width);
        angles[i] = guarded(width, 8);
        for (int64_t j = 0; j < width; ++j)
            angles[i][j] = 1;
    }
    k->turn(&t, x, cosine, sine, out[0]);
    b->turn(&t, x, cosine, sine, out[1]);
    k->turn_back(&t, dy, cosine, sine, out[2]);
    b->turn_back(&t, dy, cosine, sine, out[3]);
    k->angles(&t, dy, x, angles[0], angles[1]);
    b->angles(&t, dy, x, angles[2], angles[3]);
    CHECK(same_values(type, out[0], out[1], width) && same_values(type, out[2], out[3], width) &&
              same_values(ACCUMULATE_F64, angles[0], angles[2], width) && same_values(ACCUMULATE_F64, angles[1], angles[3], width),
          "%s: rotary embedding of %lld differs", set->isa, (long long)width);
    for (int64_t j = 0; j < width; ++j)
        expected[j] = 0;
    for (int64_t j = 0; values != VALUES_EXTREME && j < width; ++j) {
        const double c = get_value(cosine, type, j), s = get_value(sine, type, j), d = get_value(dy, type, j),
                     sign = (double)t.sign[j];
        const double own = get_value(x, type, t.source[j]), other = get_value(x, type, t.partner[j]);
        CHECK_ELEMENT(set->isa, "turn", type, out[0], j, own * c + sign * other * s, 32 * tolerance_of(type));
        CHECK_NEAR(angles[0][j], 1 + d * own, 32 * tolerance_of(type));
        CHECK_NEAR(angles[1][j], 1 + d * sign * other, 32 * tolerance_of(type));
        expected[t.source[j]] += d * c;
        expected[t.partner[j]] += sign * d * s;
    }
    for (int64_t j = 0; values != VALUES_EXTREME && j < width; ++j)
        CHECK_ELEMENT(set->isa, "turn_back", type, out[2], j, expected[j], 32 * tolerance_of(type));
    guarded_end(set->isa, "rotary embedding");
}

/* --- distances -------------------------------------------------------------------------------------------------------- */

static double norm_of(const double *x, const double *y, int64_t n, double p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double gap = fabs(x[i] - y[i]);
        if (p == INFINITY)
            sum = isnan(sum) ? sum : isnan(gap) || gap > sum ? gap : sum;
        else
            sum += p == 0 && !isnan(gap) ? gap != 0 : pow(gap, p == 0 ? 1 : p);
    }
    return p == 0 || p == INFINITY ? sum : pow(sum, 1 / p);
}

static void test_distance(const struct kernel_set *set, const struct kernel_set *base, int64_t n, double p, enum test_values values)
{
    double *const x = random_values(ACCUMULATE_F64, n, values), *const y = random_values(ACCUMULATE_F64, n, values);
    double *const gradient = guarded(n, 8), *const base_gradient = guarded(n, 8);
    for (int64_t i = 0; i < n; ++i) {
        y[i] = i % 4 == 1 ? x[i] : y[i];
        gradient[i] = base_gradient[i] = 1;
    }
    const double whole = set->distance->distance(x, y, n, p), expected = norm_of(x, y, n, p);
    CHECK(same_double(whole, base->distance->distance(x, y, n, p)), "%s: distance differs", set->isa);
    if (values != VALUES_EXTREME)
        CHECK(check_near(whole, expected, 1e-12), "%s: distance, p %g of %lld: %.17g, expected %.17g", set->isa, p, (long long)n,
              whole, expected);
    set->distance->add_gradient(gradient, x, y, n, p, whole, 1.5);
    base->distance->add_gradient(base_gradient, x, y, n, p, whole, 1.5);
    CHECK(same_values(ACCUMULATE_F64, gradient, base_gradient, n), "%s: gradient of a distance differs", set->isa);
    for (int64_t i = 0; values == VALUES_ORDINARY && whole > 0 && i < n; ++i) {
        /* d (sum gap^p)^(1/p) / dx = (gap / whole)^(p - 1), with the gap's sign */
        const double gap = x[i] - y[i], sign = (gap > 0) - (gap < 0), share = fabs(gap) / whole;
        const double slope = p == 0 || gap == 0 ? 0 : p == INFINITY ? sign * (share == 1) : sign * pow(share, p - 1);
        CHECK(check_near(gradient[i], 1 + 1.5 * slope, 1e-11), "%s: gradient of distance, p %g: %.17g, expected %.17g", set->isa, p,
              gradient[i], 1 + 1.5 * slope);
    }
    guarded_end(set->isa, "a distance");
}

/* The same points: the distance is 0 and nothing changes it. */
static void test_no_distance(const struct kernel_set *set, double p)
{
    const double x[] = {1, -2, 3};
    double gradient[] = {5, 6, 7};
    CHECK(set->distance->distance(x, x, 3, p) == 0, "%s: a point's distance from itself", set->isa);
    set->distance->add_gradient(gradient, x, x, 3, p, 0, 2);
    CHECK(gradient[0] == 5 && gradient[1] == 6 && gradient[2] == 7, "%s: gradient of no distance, p %g", set->isa, p);
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    static const double powers[] = {0, 0.5, 1, 1.5, 2, 3, 7, INFINITY};
    test_resample(set, base);
    for (int s = 0; s < TEST_SIZES; ++s)
        for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
            for (int t = 0; t < 2; ++t) {
                for (int count = 0; count <= GRID_TAPS; count += 4)
                    test_grid(set, base, float_types[t], count, test_sizes[s] % 40, values);
                test_rotary(set, base, float_types[t], test_sizes[s], 0, values);
                test_rotary(set, base, float_types[t], test_sizes[s] / 2 * 2, 1, values);
            }
    for (int p = 0; p < 8; ++p) {
        for (int s = 0; s < TEST_SIZES; ++s)
            for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
                test_distance(set, base, test_sizes[s], powers[p], values);
        test_no_distance(set, powers[p]);
    }
}

int main(void) { return for_each_kernel_set(test_set); }
