/* Kernels of recurrent cells on every ISA: values against the cells' formulas in double, the baseline's bits for all values. */
#include "kernel_check.h"
#include "kernels/recurrent.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* A row's inputs, four gates wide; `with` bit 0 and 1: the biases, bit 2: what else may be absent. */
struct row {
    enum accumulate type;
    int64_t n;
    int with;
    void *input, *hidden, *input_bias, *hidden_bias, *before, *gates[4], *more[4];
};

static struct row make_row(enum accumulate type, int64_t n, int with, enum test_values values)
{
    struct row r = {.type = type, .n = n, .with = with};
    r.input = random_values(type, 4 * n, values);
    r.hidden = random_values(type, 4 * n, values);
    r.input_bias = with & 1 ? random_values(type, 4 * n, values) : NULL;
    r.hidden_bias = with & 2 ? random_values(type, 4 * n, values) : NULL;
    r.before = random_values(type, n, values);
    for (int g = 0; g < 4; ++g) {
        r.gates[g] = random_values(type, n, values);
        r.more[g] = random_values(type, n, values);
    }
    return r;
}

static struct recurrent_sums sums_of(const struct row *r)
{
    return (struct recurrent_sums){r->input, r->hidden, r->input_bias, r->hidden_bias};
}

static double at(const struct row *r, const void *data, int64_t i) { return data ? get_value(data, r->type, i) : 0; }

static double input_sum(const struct row *r, int64_t i) { return at(r, r->input, i) + at(r, r->input_bias, i); }
static double hidden_sum(const struct row *r, int64_t i) { return at(r, r->hidden, i) + at(r, r->hidden_bias, i); }

/* Results: hidden, after, four gates, tanh of after. */
enum { LSTM_RESULTS = 7 };
static void run_lstm(const struct kernel_set *set, const struct row *r, void **out)
{
    struct lstm_row row = {.sums = sums_of(r), .cell = r->before, .n = r->n};
    for (int i = 0; i < LSTM_RESULTS; ++i)
        out[i] = room_for(r->type, r->n);
    row.hidden = out[0];
    row.after = out[1];
    for (int g = 0; g < 4; ++g)
        row.gate[g] = r->with & 4 ? out[2 + g] : NULL;
    row.tanh_after = r->with & 4 ? out[6] : NULL;
    set->recurrent->real[r->type].lstm(&row);
}

static void test_lstm(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n, int with,
                      enum test_values values)
{
    const struct row r = make_row(type, n, with, values);
    const double tolerance = 4 * tolerance_of(type);
    void *out[LSTM_RESULTS], *expected[LSTM_RESULTS];
    run_lstm(set, &r, out);
    run_lstm(base, &r, expected);
    for (int i = 0; i < LSTM_RESULTS; ++i)
        CHECK(same_values(type, out[i], expected[i], n), "%s: result %d of lstm differs, n %lld", set->isa, i, (long long)n);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        double gate[4];
        for (int g = 0; g < 4; ++g) {
            const double sum = input_sum(&r, g * n + i) + hidden_sum(&r, g * n + i);
            gate[g] = g == 2 ? tanh(sum) : sigmoid(sum);
            if (with & 4)
                CHECK_ELEMENT(set->isa, "gate of lstm", type, out[2 + g], i, gate[g], tolerance);
        }
        const double after = gate[1] * at(&r, r.before, i) + gate[0] * gate[2];
        CHECK_ELEMENT(set->isa, "lstm's cell", type, out[1], i, after, tolerance);
        CHECK_ELEMENT(set->isa, "lstm's hidden", type, out[0], i, gate[3] * tanh(after), tolerance);
        if (with & 4)
            CHECK_ELEMENT(set->isa, "lstm's tanh", type, out[6], i, tanh(after), tolerance);
    }
    guarded_end(set->isa, "lstm");
}

static void run_lstm_gradient(const struct kernel_set *set, const struct row *r, void **out)
{
    struct lstm_gradient_row row = {.cell = r->before, .after = r->more[0], .n = r->n};
    row.grad_hidden = r->with & 1 ? r->more[1] : NULL;
    row.grad_after = r->with & 2 ? r->more[2] : NULL;
    for (int g = 0; g < 4; ++g)
        row.gate[g] = r->gates[g];
    row.grad_gates = out[0] = room_for(r->type, 4 * r->n);
    row.grad_cell = out[1] = room_for(r->type, r->n);
    set->recurrent->real[r->type].lstm_gradient(&row);
}

static void test_lstm_gradient(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n,
                               int with, enum test_values values)
{
    const struct row r = make_row(type, n, with, values);
    void *out[2], *expected[2];
    run_lstm_gradient(set, &r, out);
    run_lstm_gradient(base, &r, expected);
    CHECK(same_values(type, out[0], expected[0], 4 * n) && same_values(type, out[1], expected[1], n),
          "%s: lstm_gradient differs, n %lld", set->isa, (long long)n);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        const double in = at(&r, r.gates[0], i), forget = at(&r, r.gates[1], i), candidate = at(&r, r.gates[2], i);
        const double pass = at(&r, r.gates[3], i), bounded = tanh(at(&r, r.more[0], i));
        const double hidden = with & 1 ? at(&r, r.more[1], i) : 0, after = with & 2 ? at(&r, r.more[2], i) : 0;
        const double cell = after + hidden * pass * (1 - bounded * bounded);
        const double grads[] = {cell * candidate * in * (1 - in), cell * at(&r, r.before, i) * forget * (1 - forget),
                                cell * in * (1 - candidate * candidate), hidden * bounded * pass * (1 - pass)};
        /* 1 - tanh^2 loses digits, and the factors are up to 4. */
        for (int g = 0; g < 4; ++g)
            CHECK_ELEMENT(set->isa, "lstm_gradient", type, out[0], g * n + i, grads[g], 400 * tolerance_of(type));
        CHECK_ELEMENT(set->isa, "lstm_gradient of the cell", type, out[1], i, cell * forget, 100 * tolerance_of(type));
    }
    guarded_end(set->isa, "lstm_gradient");
}

/* Results: after, three gates, the hidden part. */
enum { GRU_RESULTS = 5 };
static void run_gru(const struct kernel_set *set, const struct row *r, void **out)
{
    struct gru_row row = {.sums = sums_of(r), .before = r->before, .n = r->n};
    for (int i = 0; i < GRU_RESULTS; ++i)
        out[i] = room_for(r->type, r->n);
    row.after = out[0];
    for (int g = 0; g < 3; ++g)
        row.gate[g] = r->with & 4 ? out[1 + g] : NULL;
    row.hidden_part = r->with & 4 ? out[4] : NULL;
    set->recurrent->real[r->type].gru(&row);
}

static void test_gru(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n, int with,
                     enum test_values values)
{
    const struct row r = make_row(type, n, with, values);
    const double tolerance = 8 * tolerance_of(type);
    void *out[GRU_RESULTS], *expected[GRU_RESULTS];
    run_gru(set, &r, out);
    run_gru(base, &r, expected);
    for (int i = 0; i < GRU_RESULTS; ++i)
        CHECK(same_values(type, out[i], expected[i], n), "%s: result %d of gru differs, n %lld", set->isa, i, (long long)n);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        const double reset = sigmoid(input_sum(&r, i) + hidden_sum(&r, i));
        const double update = sigmoid(input_sum(&r, n + i) + hidden_sum(&r, n + i));
        const double candidate = tanh(input_sum(&r, 2 * n + i) + reset * hidden_sum(&r, 2 * n + i));
        const double after = (1 - update) * candidate + update * at(&r, r.before, i);
        CHECK_ELEMENT(set->isa, "gru", type, out[0], i, after, tolerance);
        if (with & 4) {
            CHECK_ELEMENT(set->isa, "gru's reset", type, out[1], i, reset, tolerance);
            CHECK_ELEMENT(set->isa, "gru's update", type, out[2], i, update, tolerance);
            CHECK_ELEMENT(set->isa, "gru's candidate", type, out[3], i, candidate, tolerance);
            CHECK_ELEMENT(set->isa, "gru's hidden part", type, out[4], i, hidden_sum(&r, 2 * n + i), tolerance);
        }
    }
    guarded_end(set->isa, "gru");
}

static void run_gru_gradient(const struct kernel_set *set, const struct row *r, void **out)
{
    struct gru_gradient_row row = {.grad_after = r->more[0], .before = r->before, .hidden_part = r->more[1], .n = r->n};
    for (int g = 0; g < 3; ++g)
        row.gate[g] = r->gates[g];
    row.grad_input = out[0] = room_for(r->type, 3 * r->n);
    row.grad_hidden = out[1] = room_for(r->type, 3 * r->n);
    row.grad_before = out[2] = room_for(r->type, r->n);
    set->recurrent->real[r->type].gru_gradient(&row);
}

static void test_gru_gradient(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n,
                              enum test_values values)
{
    const struct row r = make_row(type, n, 0, values);
    const double tolerance = 400 * tolerance_of(type);
    void *out[3], *expected[3];
    run_gru_gradient(set, &r, out);
    run_gru_gradient(base, &r, expected);
    for (int i = 0; i < 3; ++i)
        CHECK(same_values(type, out[i], expected[i], i < 2 ? 3 * n : n), "%s: result %d of gru_gradient differs, n %lld", set->isa,
              i, (long long)n);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        const double d = at(&r, r.more[0], i), part = at(&r, r.more[1], i), before = at(&r, r.before, i);
        const double reset = at(&r, r.gates[0], i), update = at(&r, r.gates[1], i), candidate = at(&r, r.gates[2], i);
        const double c = d * (1 - update) * (1 - candidate * candidate), back = c * part * reset * (1 - reset);
        const double u = d * (before - candidate) * update * (1 - update);
        const double grads[] = {back, u, c};
        for (int g = 0; g < 3; ++g) {
            CHECK_ELEMENT(set->isa, "gru_gradient, input", type, out[0], g * n + i, grads[g], tolerance);
            CHECK_ELEMENT(set->isa, "gru_gradient, hidden", type, out[1], g * n + i, g < 2 ? grads[g] : c * reset, tolerance);
        }
        CHECK_ELEMENT(set->isa, "gru_gradient, before", type, out[2], i, d * update, tolerance);
    }
    guarded_end(set->isa, "gru_gradient");
}

/* A gate that is far out is exactly 0 or 1, and never NaN. */
static void test_saturation(const struct kernel_set *set, enum accumulate type)
{
    enum { N = 20 };
    static const double sums[] = {1e30, INFINITY, -1e30, -INFINITY};
    for (int s = 0; s < 4; ++s) {
        struct row r = make_row(type, N, 4, VALUES_ORDINARY);
        void *out[LSTM_RESULTS];
        for (int64_t i = 0; i < 4 * N; ++i)
            put_value(r.input, type, i, sums[s]);
        run_lstm(set, &r, out);
        for (int64_t i = 0; i < N; ++i)
            for (int g = 0; g < 4; ++g)
                CHECK_ELEMENT(set->isa, "gate far out", type, out[2 + g], i, sums[s] > 0 ? 1 : g == 2 ? -1 : 0, 1e-30);
        guarded_end(set->isa, "lstm far out");
    }
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    for (int t = 0; t < 2; ++t) {
        const enum accumulate type = float_types[t];
        for (int s = 0; s < TEST_SIZES; ++s)
            for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values) {
                for (int with = 0; with < 8; ++with) {
                    test_lstm(set, base, type, test_sizes[s], with, values);
                    test_gru(set, base, type, test_sizes[s], with, values);
                }
                for (int with = 0; with < 4; ++with)
                    test_lstm_gradient(set, base, type, test_sizes[s], with, values);
                test_gru_gradient(set, base, type, test_sizes[s], values);
            }
        test_saturation(set, type);
    }
}

int main(void) { return for_each_kernel_set(test_set); }
