/* Correlations of integers, widened to 64 bits; sums that don't fit wrap. Plain sums, as there are no integer kernels and networks
 * have no integer convolutions. One line of pixels of one row of the result is one item of work. See convolution.h. */
#include "aclnn/nn/convolution.h"

#include "aclnn/nn/staging.h"

struct integer_job {
    const struct conv_pass *pass;
    const uint64_t *source, *matrix, *bias;
    uint64_t *out;
};

/* Where in the source, along one axis, pixel `out` finds tap `tap`; -1: at a zero around or between its elements. */
static int64_t source_place(const struct conv_geometry *g, int axis, int64_t out, int64_t tap)
{
    const int64_t way = out * g->stride[axis] + tap * g->dilation[axis] - g->pad[axis];
    return way >= 0 && way % g->insert[axis] == 0 && way / g->insert[axis] < g->in[axis] ? way / g->insert[axis] : -1;
}

/* line[x] += the products of one tap with a line of the source. */
static void add_tap(const struct conv_geometry *g, const uint64_t *source, uint64_t weight, int64_t tap, uint64_t *line)
{
    for (int64_t x = 0; x < g->out[2]; ++x) {
        const int64_t from = source_place(g, 2, x, tap);
        if (from >= 0)
            line[x] += weight * source[from];
    }
}

static void integer_lines(void *argument, int64_t begin, int64_t end)
{
    const struct integer_job *const j = argument;
    const struct conv_geometry *const g = &j->pass->geometry;
    const int64_t lines = g->out[0] * g->out[1], taps = conv_volume(g->taps);
    for (int64_t item = begin; item < end; ++item) {
        const int64_t line = item % lines, row = item / lines % g->rows, image_group = item / lines / g->rows;
        const int64_t group_row = image_group % j->pass->groups * g->rows + row, y = line % g->out[1], z = line / g->out[1];
        const uint64_t *source = j->source + image_group * g->channels * conv_volume(g->in);
        const uint64_t *weight = j->matrix + group_row * g->channels * taps;
        uint64_t *const to = j->out + item * g->out[2];
        for (int64_t x = 0; x < g->out[2]; ++x)
            to[x] = j->bias ? j->bias[group_row] : 0;
        for (int64_t c = 0; c < g->channels; ++c, source += conv_volume(g->in), weight += taps)
            for (int64_t tap = 0; tap < taps; ++tap) {
                const int64_t from_z = source_place(g, 0, z, tap / (g->taps[1] * g->taps[2]));
                const int64_t from_y = source_place(g, 1, y, tap / g->taps[2] % g->taps[1]);
                if (from_z >= 0 && from_y >= 0)
                    add_tap(g, source + (from_z * g->in[1] + from_y) * g->in[2], weight[tap], tap % g->taps[2], to);
            }
    }
}

void conv_correlate_integer(const struct conv_pass *pass, const struct conv_operands *o)
{
    const struct conv_geometry *const g = &pass->geometry;
    struct integer_job j = {pass, o->source, o->matrix, o->bias, o->out};
    parallel_for(pass->images * pass->groups * g->rows * g->out[0] * g->out[1],
                 cost_of(g->channels * conv_volume(g->taps), g->out[2]), integer_lines, &j);
}
