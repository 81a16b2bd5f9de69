/* Normalisation kernels on every ISA: values against the formulas in double, the baseline's bits for all values. */
#include "kernel_check.h"
#include "kernels/norm.h"

static const int64_t long_sizes[] = {NORM_BLOCK - 1, NORM_BLOCK, NORM_BLOCK + 1, 2 * NORM_BLOCK + 100};

/* One case: n elements of each input; k: the kernels tested, b: the baseline's. */
struct norm_case {
    const char *isa;
    enum accumulate type;
    int64_t n;
    enum test_values values;
    const struct norm_float_kernels *k, *b;
    void *x, *dy, *weight, *bias;
};

static double at(const struct norm_case *c, const void *data, int64_t i) { return get_value(data, c->type, i); }

/* A sum of n terms whose sizes add up to `size`. */
static void check_sum(const struct norm_case *c, const char *what, double value, double base, double expected, double size)
{
    CHECK(same_double(value, base), "%s: %s of %lld differs: %.17g and %.17g", c->isa, what, (long long)c->n, value, base);
    if (c->values != VALUES_EXTREME)
        CHECK(check_near(value, expected, isfinite(size) ? tolerance_of(c->type) * (1 + size) : 1e-9),
              "%s: %s of %lld is %.9g, expected %.9g", c->isa, what, (long long)c->n, value, expected);
}

static void check_line(const struct norm_case *c, const char *what, const void *out, const void *base)
{
    CHECK(same_values(c->type, out, base, c->n), "%s: %s of %lld differs", c->isa, what, (long long)c->n);
}

static void test_sums(const struct norm_case *c)
{
    double sum = 0, squares = 0, plain = 0, weighted = 0, sizes[4] = {0};
    const double mean = 0.25;
    for (int64_t i = 0; i < c->n; ++i) {
        const double x = at(c, c->x, i), dy = at(c, c->dy, i);
        sum += x;
        squares += (x - mean) * (x - mean);
        plain += dy;
        weighted += dy * (x - mean);
        sizes[0] += fabs(x);
        sizes[2] += fabs(dy);
        sizes[3] += fabs(dy * (x - mean));
    }
    check_sum(c, "sum", c->k->sum(c->x, c->n), c->b->sum(c->x, c->n), sum, sizes[0]);
    check_sum(c, "square_sum", c->k->square_sum(c->x, c->n, mean), c->b->square_sum(c->x, c->n, mean), squares, squares);
    double sums[2] = {1, 2}, base[2] = {1, 2};
    c->k->gradient_sums(c->dy, c->x, c->n, mean, sums);
    c->b->gradient_sums(c->dy, c->x, c->n, mean, base);
    check_sum(c, "gradient_sums 0", sums[0], base[0], 1 + plain, sizes[2]);
    check_sum(c, "gradient_sums 1", sums[1], base[1], 2 + weighted, sizes[3]);
}

static void test_affine(const struct norm_case *c)
{
    void *const out = room_for(c->type, c->n), *const base = room_for(c->type, c->n);
    c->k->affine(c->x, out, c->n, 1.5, -0.5);
    c->b->affine(c->x, base, c->n, 1.5, -0.5);
    check_line(c, "affine", out, base);
    for (int64_t i = 0; c->values != VALUES_EXTREME && i < c->n; ++i)
        CHECK_ELEMENT(c->isa, "affine", c->type, out, i, at(c, c->x, i) * 1.5 - 0.5, tolerance_of(c->type));
    c->k->gradient(c->dy, c->x, out, c->n, 0.5, -1.25, 0.75);
    c->b->gradient(c->dy, c->x, base, c->n, 0.5, -1.25, 0.75);
    check_line(c, "gradient", out, base);
    for (int64_t i = 0; c->values != VALUES_EXTREME && i < c->n; ++i)
        CHECK_ELEMENT(c->isa, "gradient", c->type, out, i, at(c, c->dy, i) * 0.5 - at(c, c->x, i) * 1.25 + 0.75,
                      8 * tolerance_of(c->type));
}

/* with: bit 0 the weight, bit 1 the bias */
static void test_layer(const struct norm_case *c, int with)
{
    const void *const weight = with & 1 ? c->weight : NULL, *const bias = with & 2 ? c->bias : NULL;
    const double mean = 0.5, rstd = 1.75;
    double sums[2], base_sums[2], first = 0, second = 0, sizes[2] = {0};
    void *const out = room_for(c->type, c->n), *const base = room_for(c->type, c->n);
    c->k->layer(c->x, weight, bias, out, c->n, mean, rstd);
    c->b->layer(c->x, weight, bias, base, c->n, mean, rstd);
    check_line(c, "layer", out, base);
    for (int64_t i = 0; i < c->n; ++i) {
        const double hat = (at(c, c->x, i) - mean) * rstd, w = weight ? at(c, weight, i) : 1, dy = at(c, c->dy, i);
        if (c->values != VALUES_EXTREME)
            CHECK_ELEMENT(c->isa, "layer", c->type, out, i, hat * w + (bias ? at(c, bias, i) : 0), 40 * tolerance_of(c->type));
        first += dy * w;
        second += dy * w * hat;
        sizes[0] += fabs(dy * w);
        sizes[1] += fabs(dy * w * hat);
    }
    c->k->layer_sums(c->dy, c->x, weight, c->n, mean, rstd, sums);
    c->b->layer_sums(c->dy, c->x, weight, c->n, mean, rstd, base_sums);
    check_sum(c, "layer_sums 0", sums[0], base_sums[0], first, sizes[0]);
    check_sum(c, "layer_sums 1", sums[1], base_sums[1], second, sizes[1]);
    const double given[2] = {3, -2};
    c->k->layer_gradient(c->dy, c->x, weight, out, c->n, mean, rstd, given);
    c->b->layer_gradient(c->dy, c->x, weight, base, c->n, mean, rstd, given);
    check_line(c, "layer_gradient", out, base);
    for (int64_t i = 0; c->values != VALUES_EXTREME && i < c->n; ++i) {
        const double hat = (at(c, c->x, i) - mean) * rstd, w = weight ? at(c, weight, i) : 1;
        const double d = at(c, c->dy, i) * w - given[0] / (double)c->n - hat * given[1] / (double)c->n;
        CHECK_ELEMENT(c->isa, "layer_gradient", c->type, out, i, d * rstd, 80 * tolerance_of(c->type));
    }
}

static void test_layer_parameters(const struct norm_case *c, int with)
{
    double *const sums[2] = {guarded(c->n, 8), guarded(c->n, 8)}, *const base[2] = {guarded(c->n, 8), guarded(c->n, 8)};
    for (int s = 0; s < 2; ++s)
        for (int64_t i = 0; i < c->n; ++i)
            sums[s][i] = base[s][i] = (double)i;
    c->k->layer_parameters(c->dy, c->x, c->n, 0.5, 1.75, with & 1 ? sums[0] : NULL, with & 2 ? sums[1] : NULL);
    c->b->layer_parameters(c->dy, c->x, c->n, 0.5, 1.75, with & 1 ? base[0] : NULL, with & 2 ? base[1] : NULL);
    CHECK(same_values(ACCUMULATE_F64, sums[0], base[0], c->n) && same_values(ACCUMULATE_F64, sums[1], base[1], c->n),
          "%s: layer_parameters of %lld differs", c->isa, (long long)c->n);
    for (int64_t i = 0; c->values != VALUES_EXTREME && i < c->n; ++i) {
        const double dy = at(c, c->dy, i), hat = (at(c, c->x, i) - 0.5) * 1.75;
        CHECK_NEAR(sums[0][i], with & 1 ? (double)i + dy * hat : (double)i, 20 * tolerance_of(c->type));
        CHECK_NEAR(sums[1][i], with & 2 ? (double)i + dy : (double)i, tolerance_of(c->type));
    }
}

static void test_swish(const struct norm_case *c)
{
    void *const out = copy_of(c->type, c->x, c->n), *const base = copy_of(c->type, c->x, c->n);
    c->k->swish(out, c->n, 1.5);
    c->b->swish(base, c->n, 1.5);
    check_line(c, "swish", out, base);
    for (int64_t i = 0; c->values != VALUES_EXTREME && i < c->n; ++i) {
        const double x = at(c, c->x, i);
        CHECK_ELEMENT(c->isa, "swish", c->type, out, i, x / (1 + exp(-1.5 * x)), 2 * tolerance_of(c->type));
    }
    memcpy(out, c->dy, (size_t)(c->n * accumulate_bytes(c->type)));
    memcpy(base, c->dy, (size_t)(c->n * accumulate_bytes(c->type)));
    c->k->swish_gradient(out, c->x, c->n, 0.75, 0.25, 1.5);
    c->b->swish_gradient(base, c->x, c->n, 0.75, 0.25, 1.5);
    check_line(c, "swish_gradient", out, base);
    for (int64_t i = 0; c->values != VALUES_EXTREME && i < c->n; ++i) {
        const double y = at(c, c->x, i) * 0.75 + 0.25, gate = 1 / (1 + exp(-1.5 * y));
        CHECK_ELEMENT(c->isa, "swish_gradient", c->type, out, i, at(c, c->dy, i) * gate * (1 + 1.5 * y * (1 - gate)),
                      8 * tolerance_of(c->type));
    }
}

/* Columns of a matrix whose rows are 3 elements apart more than they are wide. */
static void test_columns(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t rows,
                         int64_t width, enum test_values values)
{
    const struct norm_float_kernels *const k = &set->norm->real[type], *const b = &base->norm->real[type];
    const int64_t stride = width + 3, n = rows > 0 ? (rows - 1) * stride + width : 0;
    const void *const x = random_values(type, n, values);
    void *const out = room_for(type, n), *const base_out = room_for(type, n);
    double *const all[] = {guarded(width, 8), guarded(width, 8), guarded(width, 8), guarded(width, 8)};
    const double *const mean = random_values(ACCUMULATE_F64, width, VALUES_ORDINARY);
    for (int64_t j = 0; j < width; ++j)
        all[0][j] = all[1][j] = all[2][j] = all[3][j] = 1;
    k->column_sums(x, rows, width, stride, all[0]);
    b->column_sums(x, rows, width, stride, all[1]);
    k->column_squares(x, rows, width, stride, mean, all[2]);
    b->column_squares(x, rows, width, stride, mean, all[3]);
    CHECK(same_values(ACCUMULATE_F64, all[0], all[1], width) && same_values(ACCUMULATE_F64, all[2], all[3], width),
          "%s: sums of columns differ", set->isa);
    k->column_affine(x, out, rows, width, stride, mean, all[0]);
    b->column_affine(x, base_out, rows, width, stride, mean, all[0]);
    CHECK(same_values(type, out, base_out, n), "%s: column_affine differs", set->isa);
    for (int64_t j = 0; values != VALUES_EXTREME && j < width; ++j) {
        double sum = 1, squares = 1;
        for (int64_t i = 0; i < rows; ++i) {
            const double v = get_value(x, type, i * stride + j);
            sum += v;
            squares += (v - mean[j]) * (v - mean[j]);
            CHECK_ELEMENT(set->isa, "column_affine", type, out, i * stride + j, v * mean[j] + all[0][j], 20 * tolerance_of(type));
        }
        CHECK_NEAR(all[0][j], sum, 1e-13);
        CHECK_NEAR(all[2][j], squares, 1e-13);
    }
    for (int64_t i = 0; i + 1 < rows; ++i)
        for (int64_t j = width; j < stride; ++j)
            CHECK(isnan(get_value(out, type, i * stride + j)), "%s: column_affine wrote between rows", set->isa);
    guarded_end(set->isa, "columns");
}

static void test_size(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n,
                      enum test_values values)
{
    struct norm_case c = {set->isa, type, n, values, &set->norm->real[type], &base->norm->real[type], 0, 0, 0, 0};
    c.x = random_values(type, n, values);
    c.dy = random_values(type, n, values);
    c.weight = random_values(type, n, values);
    c.bias = random_values(type, n, values);
    test_sums(&c);
    test_affine(&c);
    test_swish(&c);
    for (int with = 0; with < 4; ++with) {
        test_layer(&c, with);
        test_layer_parameters(&c, with);
    }
    guarded_end(set->isa, "a normalisation kernel");
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    for (int t = 0; t < 2; ++t)
        for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values) {
            for (int s = 0; s < TEST_SIZES; ++s)
                test_size(set, base, float_types[t], test_sizes[s], values);
            for (int s = 0; s < 4; ++s)
                test_size(set, base, float_types[t], long_sizes[s], values);
            for (int s = 0; s < TEST_SIZES; s += 2)
                for (int64_t rows = 0; rows < 4; ++rows)
                    test_columns(set, base, float_types[t], rows, test_sizes[s], values);
        }
}

int main(void) { return for_each_kernel_set(test_set); }
