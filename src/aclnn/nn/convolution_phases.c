/* Correlations of sources with zeros between their elements. See convolution_phases.h. */
#include "aclnn/nn/convolution_phases.h"

#include "aclnn/nn/staging.h"
#include "base/arithmetic.h"
#include "base/error.h"

enum { MOST_APART = 8 };

/* Where a phase's pixels and taps are, a dimension: first + k * step. */
struct phase {
    struct conv_pass pass;
    int64_t first_pixel[3];
    int64_t first_tap[3], tap_step[3];
};

static int64_t round_64(int64_t bytes) { return divide_up(bytes, 64) * 64; }

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One dimension of a phase: pixel o = residue + insert * j meets tap t where (o + t * dilation - pad) is a multiple of insert. */
static void set_dimension(const struct conv_geometry *whole, int d, int64_t residue, struct phase *phase)
{
    struct conv_geometry *const g = &phase->pass.geometry;
    const int64_t insert = whole->insert[d], dilation = whole->dilation[d], step = insert / common_divisor(insert, dilation);
    int64_t tap = 0;
    while (tap < step && (residue + tap * dilation - whole->pad[d]) % insert != 0)
        ++tap;
    const bool met = tap < step && tap < whole->taps[d];
    phase->first_pixel[d] = residue;
    phase->first_tap[d] = tap;
    phase->tap_step[d] = step;
    g->insert[d] = 1;
    g->taps[d] = met ? (whole->taps[d] - tap + step - 1) / step : 0;
    g->pad[d] = met ? -((residue + tap * dilation - whole->pad[d]) / insert) : 0;
    g->dilation[d] = step * dilation / insert;
    g->out[d] = whole->out[d] > residue ? divide_up(whole->out[d] - residue, insert) : 0;
    g->padded[d] = g->out[d] - 1 + (g->taps[d] - 1) * g->dilation[d] + 1;
}

static int64_t phase_count(const struct conv_pass *pass) { return conv_volume(pass->geometry.insert); }

static struct phase phase_of(const struct conv_pass *pass, int64_t number)
{
    struct phase phase = {.pass = *pass};
    for (int d = 2; d >= 0; --d) {
        set_dimension(&pass->geometry, d, number % pass->geometry.insert[d], &phase);
        number /= pass->geometry.insert[d];
    }
    return phase;
}

static int64_t phase_elements(const struct conv_pass *pass)
{
    return pass->images * pass->groups * pass->geometry.rows * conv_volume(pass->geometry.out);
}

static int64_t phase_weights(const struct conv_pass *pass)
{
    return pass->groups * pass->geometry.rows * pass->geometry.channels * conv_volume(pass->geometry.taps);
}

bool conv_has_phases(const struct conv_pass *pass)
{
    const int64_t *const insert = pass->geometry.insert;
    for (int d = 0; d < 3; ++d)
        if (insert[d] > MOST_APART)
            return false; /* phases of a few pixels each, and any number of them: zeros in place are good enough */
    return phase_count(pass) > 1;
}

/* Room: a phase's weights, its result, the correlation's own. The first phase is the largest, but for taps. */
struct room {
    int64_t weights, result, work;
};

static struct room room_of(const struct conv_pass *pass)
{
    struct room room = {0, 0, 0};
    const int64_t bytes = accumulate_bytes(pass->type);
    for (int64_t i = 0; i < phase_count(pass); ++i) {
        const struct phase phase = phase_of(pass, i);
        if (conv_volume(phase.pass.geometry.taps) == 0)
            continue;
        const int64_t weights = round_64(phase_weights(&phase.pass) * bytes),
                      result = round_64(phase_elements(&phase.pass) * bytes);
        const int64_t work = (int64_t)conv_correlate_bytes(&phase.pass);
        room.weights = room.weights > weights ? room.weights : weights;
        room.result = room.result > result ? room.result : result;
        room.work = room.work > work ? room.work : work;
    }
    return room;
}

uint64_t conv_phases_bytes(const struct conv_pass *pass)
{
    const struct room room = room_of(pass);
    return (uint64_t)(room.weights + room.result + room.work);
}

struct spread_job {
    const struct conv_pass *whole;
    const struct phase *phase;
    const char *from, *bias; /* from NULL: no tap meets these pixels */
    char *to;
};

/* The phase's taps of [group][row][channel][taps]. */
static void gather_weights(const struct conv_pass *whole, const struct phase *phase, const char *from, char *to)
{
    const int64_t *const taps = phase->pass.geometry.taps, *const all = whole->geometry.taps;
    const int64_t bytes = accumulate_bytes(whole->type), filters = phase_weights(&phase->pass) / conv_volume(taps);
    for (int64_t filter = 0; filter < filters; ++filter)
        for (int64_t z = 0; z < taps[0]; ++z)
            for (int64_t y = 0; y < taps[1]; ++y)
                for (int64_t x = 0; x < taps[2]; ++x, to += bytes) {
                    const int64_t at_z = phase->first_tap[0] + z * phase->tap_step[0];
                    const int64_t at_y = phase->first_tap[1] + y * phase->tap_step[1];
                    const int64_t at_x = phase->first_tap[2] + x * phase->tap_step[2];
                    const char *const tap = from + (((filter * all[0] + at_z) * all[1] + at_y) * all[2] + at_x) * bytes;
                    if (bytes == 8)
                        *(double *)(void *)to = *(const double *)(const void *)tap;
                    else
                        *(float *)(void *)to = *(const float *)(const void *)tap;
                }
}

/* Planes (image, row of a group) to their places among the other phases' pixels. */
static void spread_planes(void *argument, int64_t begin, int64_t end)
{
    const struct spread_job *const j = argument;
    const struct conv_geometry *const g = &j->whole->geometry, *const part = &j->phase->pass.geometry;
    const int64_t rows = j->whole->groups * g->rows, step = g->insert[2], width = part->out[2];
    for (int64_t plane = begin; plane < end; ++plane)
        for (int64_t line = 0; line < part->out[0] * part->out[1]; ++line) {
            const int64_t z = j->phase->first_pixel[0] + line / part->out[1] * g->insert[0];
            const int64_t y = j->phase->first_pixel[1] + line % part->out[1] * g->insert[1];
            const int64_t to = ((plane * g->out[0] + z) * g->out[1] + y) * g->out[2] + j->phase->first_pixel[2];
            const int64_t from = plane * conv_volume(part->out) + line * width;
#define SPREAD(T)                                                                   \
    do {                                                                            \
        T *const out = (T *)(void *)j->to + to;                                     \
        const T *const in = (const T *)(const void *)j->from + from;                \
        const T value = j->bias ? ((const T *)(const void *)j->bias)[plane % rows] : 0; \
        for (int64_t x = 0; x < width; ++x)                                         \
            out[x * step] = j->from ? in[x] : value;                                \
    } while (0)
            if (j->whole->type == ACCUMULATE_F64)
                SPREAD(double);
            else
                SPREAD(float);
#undef SPREAD
        }
}

int conv_correlate_phases(const struct conv_pass *pass, const struct conv_operands *operands, void *workspace)
{
    const struct room room = room_of(pass);
    char *const weights = workspace, *const result = weights + room.weights, *const work = result + room.result;
    for (int64_t i = 0; i < phase_count(pass); ++i) {
        const struct phase phase = phase_of(pass, i);
        const int64_t pixels = conv_volume(phase.pass.geometry.out);
        struct spread_job j = {.whole = pass, .phase = &phase, .bias = operands->bias, .to = operands->out};
        if (pixels == 0)
            continue;
        if (conv_volume(phase.pass.geometry.taps) > 0) {
            const struct conv_operands o = {operands->source, weights, operands->bias, result};
            gather_weights(pass, &phase, operands->matrix, weights);
            TRY(conv_correlate(&phase.pass, &o, work));
            j.from = result;
        }
        parallel_for(pass->images * pass->groups * pass->geometry.rows, 2 * pixels, spread_planes, &j);
    }
    return 0;
}
