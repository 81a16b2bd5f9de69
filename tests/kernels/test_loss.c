/* Loss and dropout kernels on every ISA: values against the formulas in double and against philox, the baseline's bits. */
#include "base/philox.h"
#include "kernel_check.h"
#include "kernels/dropout.h"
#include "kernels/loss.h"

/* --- losses ----------------------------------------------------------------------------------------------------------- */

static double clamped_log(double x) { return fmax(log(x), -100); }
static double softplus_negative(double x) { return log1p(exp(-fabs(x))) + fmax(-x, 0); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double entropy_part(double t) { return t == 0 ? 0 : t * log(t); }

static double loss_value(enum loss_id id, double x, double t, double p, double beta)
{
    const double d = x - t, size = fabs(d);
    switch (id) {
    case LOSS_SQUARE: return d * d;
    case LOSS_ABSOLUTE: return size;
    case LOSS_SMOOTH: return size < beta ? 0.5 * d * d / beta : size - 0.5 * beta;
    case LOSS_CROSS_ENTROPY: return (t - 1) * clamped_log(1 - x) - t * clamped_log(x);
    case LOSS_LOGITS: return (1 - t) * x + (1 + (p - 1) * t) * softplus_negative(x);
    case LOSS_DIVERGENCE:
    case LOSS_DIVERGENCE_TARGET: return entropy_part(t) - t * x;
    case LOSS_DIVERGENCE_LOG:
    case LOSS_DIVERGENCE_LOG_TARGET: return exp(t) * (t - x);
    default: return softplus_negative(t * x);
    }
}

static double loss_slope(enum loss_id id, double x, double t, double p, double beta)
{
    const double d = x - t;
    switch (id) {
    case LOSS_SQUARE: return 2 * d;
    case LOSS_ABSOLUTE: return (d > 0) - (d < 0);
    case LOSS_SMOOTH: return d <= -beta ? -1 : d >= beta ? 1 : d / beta;
    case LOSS_CROSS_ENTROPY: return d / fmax((1 - x) * x, 1e-12);
    case LOSS_LOGITS: return (p * t + 1 - t) * sigmoid(x) - p * t;
    case LOSS_DIVERGENCE: return -t;
    case LOSS_DIVERGENCE_LOG: return -exp(t);
    case LOSS_DIVERGENCE_TARGET: return t == 0 ? 0 : log(t) + 1 - x;
    case LOSS_DIVERGENCE_LOG_TARGET: return exp(t) * (t + 1 - x);
    default: return -t * sigmoid(-t * x);
    }
}

/* with: bit 0 a weight, bit 1 a positive weight, bit 2 one gradient for all. x and t are probabilities for VALUES_ORDINARY. */
static void test_loss(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, enum loss_id id, int64_t n,
                      int with, enum test_values values)
{
    const struct loss_float_kernels *const k = &set->loss->real[type], *const b = &base->loss->real[type];
    void *const x = random_values(type, n, values), *const t = random_values(type, n, values);
    void *const weight = random_values(type, n, values), *const positive = random_values(type, n, values);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        put_value(x, type, i, i % 5 == 0 ? (double)(i / 5 % 2) : 0.5 + 0.49 * check_random_real(&test_state));
        put_value(t, type, i, i % 3 == 0 ? (double)(i / 3 % 2) : 0.5 + 0.49 * check_random_real(&test_state));
    }
    const int64_t g_step = with & 4 ? 0 : 1;
    const void *const g = random_values(type, g_step ? n : 1, values);
    const struct loss_operands o = {x, t, with & 1 ? weight : NULL, with & 2 ? positive : NULL, 0.5};
    void *const out = room_for(type, n), *const base_out = room_for(type, n);
    k->forward[id](&o, out, n);
    b->forward[id](&o, base_out, n);
    CHECK(same_values(type, out, base_out, n), "%s: loss %d of %lld differs", set->isa, id, (long long)n);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        const double p = with & 2 ? get_value(positive, type, i) : 1, w = with & 1 ? get_value(weight, type, i) : 1;
        CHECK_ELEMENT(set->isa, "loss", type, out, i, loss_value(id, get_value(x, type, i), get_value(t, type, i), p, 0.5) * w,
                      32 * tolerance_of(type));
    }
    k->backward[id](&o, g, g_step, 0.75, out, n);
    b->backward[id](&o, g, g_step, 0.75, base_out, n);
    CHECK(same_values(type, out, base_out, n), "%s: gradient of loss %d of %lld differs", set->isa, id, (long long)n);
    for (int64_t i = 0; values == VALUES_ORDINARY && i < n; ++i) {
        const double p = with & 2 ? get_value(positive, type, i) : 1, w = with & 1 ? get_value(weight, type, i) : 1;
        CHECK_ELEMENT(set->isa, "gradient of a loss", type, out, i,
                      loss_slope(id, get_value(x, type, i), get_value(t, type, i), p, 0.5) * w * get_value(g, type, i * g_step) *
                          0.75,
                      64 * tolerance_of(type));
    }
    guarded_end(set->isa, "a loss");
}

/* The difference of equal infinities is NaN, of others infinite; logarithms of cross entropy end at -100, a NaN stays. */
static void test_loss_edges(const struct kernel_set *set, enum accumulate type)
{
    static const struct {
        enum loss_id id;
        double x, t, value, slope;
    } edges[] = {
        {LOSS_SQUARE, INFINITY, INFINITY, NAN, NAN},
        {LOSS_SQUARE, -INFINITY, 1, INFINITY, -INFINITY},
        {LOSS_ABSOLUTE, INFINITY, 1, INFINITY, 1},
        {LOSS_ABSOLUTE, NAN, 1, NAN, NAN},
        {LOSS_SMOOTH, -INFINITY, 1, INFINITY, -1},
        {LOSS_SMOOTH, NAN, 1, NAN, NAN},
        {LOSS_CROSS_ENTROPY, 0, 1, 100, -1e12},
        {LOSS_CROSS_ENTROPY, 1, 0, 100, 1e12},
        {LOSS_CROSS_ENTROPY, NAN, 1, NAN, NAN},
        {LOSS_LOGITS, -500, 1, 500, -1},
        {LOSS_LOGITS, 500, 1, 0, 0},
        {LOSS_DIVERGENCE, 3, 0, 0, -0.0},
        {LOSS_MARGIN, 500, -1, 500, 1},
    };
    for (size_t e = 0; e < sizeof edges / sizeof edges[0]; ++e) {
        void *const x = room_for(type, 1), *const t = room_for(type, 1), *const g = room_for(type, 1),
                    *const out = room_for(type, 1);
        const struct loss_operands o = {x, t, NULL, NULL, 0.5};
        put_value(x, type, 0, edges[e].x);
        put_value(t, type, 0, edges[e].t);
        put_value(g, type, 0, 1);
        set->loss->real[type].forward[edges[e].id](&o, out, 1);
        CHECK_ELEMENT(set->isa, "loss of an edge", type, out, e * 0, edges[e].value, 1e-6);
        set->loss->real[type].backward[edges[e].id](&o, g, 1, 1, out, 1);
        CHECK_ELEMENT(set->isa, "slope at an edge", type, out, e * 0, edges[e].slope, 1e-6);
        guarded_end(set->isa, "a loss");
    }
}

/* --- negative log likelihood ------------------------------------------------------------------------------------------ */

/* turned: positions vary fastest. bad: a position whose target is no class, or -1. */
static void test_likelihood(const struct kernel_set *set, enum accumulate type, int64_t positions, int turned, int with_weight,
                            int64_t bad)
{
    enum { CLASSES = 5, IGNORED = 3 };
    const struct loss_float_kernels *const k = &set->loss->real[type];
    const void *const x = random_values(type, CLASSES * positions, VALUES_ORDINARY);
    const void *const weight = random_values(type, CLASSES, VALUES_ORDINARY), *const g =
                                                                                  random_values(type, positions, VALUES_ORDINARY);
    int64_t *const target = guarded(positions, 8);
    void *const losses = room_for(type, positions), *const dx = room_for(type, CLASSES * positions);
    for (int64_t i = 0; i < positions; ++i)
        target[i] = i == bad ? (i % 2 ? -1 : CLASSES) : (int64_t)(check_random(&test_state) % CLASSES);
    const struct likelihood l = {x,         with_weight ? weight : NULL, target, CLASSES, turned ? positions : 1,
                                 positions, turned ? 1 : CLASSES,        IGNORED};
    double sum = 1, weights = 2, expected_sum = 1, expected_weights = 2;
    CHECK_INT(k->likelihood(&l, losses, &sum, &weights), bad);
    memset(dx, 0, (size_t)(CLASSES * positions * accumulate_bytes(type)));
    CHECK_INT(k->likelihood_backward(&l, g, 1, 0.5, dx), bad);
    for (int64_t i = 0; i < positions && bad < 0; ++i) {
        const double w = with_weight ? get_value(weight, type, target[i]) : 1;
        const int64_t own = target[i] * l.class_stride + i * l.position_stride;
        const double loss = target[i] == IGNORED ? 0 : -get_value(x, type, own) * w;
        expected_sum += loss;
        expected_weights += target[i] == IGNORED ? 0 : w;
        CHECK_ELEMENT(set->isa, "likelihood", type, losses, i, loss, 8 * tolerance_of(type));
        for (int64_t c = 0; c < CLASSES; ++c)
            CHECK_ELEMENT(set->isa, "gradient of likelihood", type, dx, c * l.class_stride + i * l.position_stride,
                          c == target[i] && c != IGNORED ? -w * get_value(g, type, i) * 0.5 : 0, 8 * tolerance_of(type));
    }
    if (bad < 0) {
        CHECK_NEAR(sum, expected_sum, 4 * (double)(positions + 1) * tolerance_of(type));
        CHECK_NEAR(weights, expected_weights, 1e-12);
        double again = 1, weights_again = 2;
        k->likelihood(&l, NULL, &again, &weights_again);
        CHECK(again == sum && weights_again == weights, "%s: likelihood without single losses differs", set->isa);
    }
    guarded_end(set->isa, "likelihood");
}

/* --- dropout ---------------------------------------------------------------------------------------------------------- */

static void test_masks(const struct kernel_set *set, uint32_t threshold, int64_t first, int64_t n)
{
    const struct dropout_mask m = {0x123456789abcdef0u, 77, threshold};
    uint8_t *const bits = guarded((n + 7) / 8, 1), *const bytes = guarded(n, 1);
    set->dropout->bits(&m, first, n, bits);
    set->dropout->bytes(&m, first, n, bytes);
    for (int64_t i = 0; i < n; ++i) {
        const struct philox_block words = philox(m.seed, (uint64_t)(first + i) / 4, m.counter);
        const int kept = words.word[(first + i) % 4] >= threshold;
        CHECK(bytes[i] == kept && (bits[i / 8] >> i % 8 & 1) == kept, "%s: keep mask of element %lld of %lld", set->isa,
              (long long)(first + i), (long long)n);
    }
    for (int64_t i = n; i < (n + 7) / 8 * 8; ++i)
        CHECK((bits[i / 8] >> i % 8 & 1) == 0, "%s: a bit beyond the mask is set", set->isa);
    guarded_end(set->isa, "a keep mask");
}

static void test_dropping(const struct kernel_set *set, const struct kernel_set *base, enum accumulate type, int64_t n,
                          enum test_values values)
{
    const void *const x = random_values(type, n, values);
    uint8_t *const bits = guarded((n + 7) / 8, 1), *const bytes = guarded(n, 1);
    void *const out[2] = {room_for(type, n), room_for(type, n)}, *const base_out = room_for(type, n);
    for (int64_t i = 0; i < (n + 7) / 8; ++i)
        bits[i] = (uint8_t)check_random(&test_state);
    for (int64_t i = 0; i < n; ++i)
        bytes[i] = bits[i / 8] >> i % 8 & 1 ? (uint8_t)(1 + i % 200) : 0;
    set->dropout->apply_bits[type](x, bits, 1.25, out[0], n);
    set->dropout->apply_bytes[type](x, bytes, 1.25, out[1], n);
    base->dropout->apply_bits[type](x, bits, 1.25, base_out, n);
    for (int l = 0; l < 2; ++l) {
        CHECK(same_values(type, out[l], base_out, n), "%s: dropping of %lld differs", set->isa, (long long)n);
        for (int64_t i = 0; values != VALUES_EXTREME && i < n; ++i)
            CHECK_ELEMENT(set->isa, "dropping", type, out[l], i, get_value(x, type, i) * (bytes[i] ? 1.25 : 0), tolerance_of(type));
    }
    guarded_end(set->isa, "dropping");
}

static void test_dropouts(const struct kernel_set *set, const struct kernel_set *base)
{
    static const uint32_t thresholds[] = {0, 1, 0x40000000, 0xffffffff};
    static const int64_t sizes[] = {DROPOUT_BLOCK - 1, DROPOUT_BLOCK, DROPOUT_BLOCK + 1, 3 * DROPOUT_BLOCK + 13};
    for (int h = 0; h < 4; ++h)
        for (int s = 0; s < TEST_SIZES + 4; ++s) {
            const int64_t n = s < TEST_SIZES ? test_sizes[s] : sizes[s - TEST_SIZES];
            test_masks(set, thresholds[h], 0, n);
            test_masks(set, thresholds[h], DROPOUT_BLOCK * (int64_t)5000000000, n);
        }
    for (int t = 0; t < 2; ++t)
        for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
            for (int s = 0; s < TEST_SIZES; ++s)
                test_dropping(set, base, float_types[t], test_sizes[s], values);
}

static void test_set(const struct kernel_set *set, const struct kernel_set *base)
{
    for (int t = 0; t < 2; ++t) {
        const enum accumulate type = float_types[t];
        for (int s = 0; s < TEST_SIZES; ++s) {
            const int64_t n = test_sizes[s];
            for (int with = 0; with < 8; ++with)
                for (enum loss_id id = 0; id < LOSS_COUNT; ++id)
                    for (enum test_values values = VALUES_ORDINARY; values <= VALUES_EXTREME; ++values)
                        test_loss(set, base, type, id, n, with, values);
            for (int with = 0; with < 4; ++with)
                for (int64_t bad = -1; bad < n; bad += (n + 2) / 2)
                    test_likelihood(set, type, n, with & 1, with >> 1, bad);
        }
        test_loss_edges(set, type);
    }
    test_dropouts(set, base);
}

int main(void) { return for_each_kernel_set(test_set); }
