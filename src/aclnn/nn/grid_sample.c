/* GridSampler2D, GridSampler3D and their gradients: elements of images or volumes at places that a grid names, -1 to 1 each way.
 *
 * Places and weights are computed in double, whatever the type. One image is summed into by one item of work a block of channels,
 * in the order of the grid, so results don't depend on the number of threads.
 * Coordinates in memory are (x, y, z), dimensions of the image (z,) y, x. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/nn/staging.h"
#include "aclnnop/all_operators.h"
#include "kernels/grid.h"
#include "kernels/kernels.h"

enum interpolation { LINEAR, NEAREST, CUBIC };
enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };
enum { INPUT, GRID, OUTPUT };                                                  /* forward */
enum { GRAD_OUT, B_INPUT, B_GRID, GRAD_INPUT, GRAD_GRID, CHANNEL_BLOCKS = 4 }; /* backward */

struct sampler {
    struct staging staging;
    int dims;
    int64_t images, channels, in[GRID_DIMS], places; /* in: x, y, z */
    enum interpolation interpolation;
    enum padding padding;
    bool align_corners;
    enum accumulate type;
};

struct sampler_job {
    const struct sampler *s;
    const char *input, *grid, *grad_out;
    char *output, *grad_input, *grad_grid;
    int64_t bytes; /* of an element */
};

/* --- places ----------------------------------------------------------------------------------------------------------- */

/* A coordinate in elements, and its derivative by the grid's number. */
struct coordinate {
    double at, slope;
};

static struct coordinate clipped(struct coordinate c, int64_t size)
{
    const double most = (double)(size - 1);
    if (c.at <= 0)
        return (struct coordinate){0, 0};
    return c.at >= most ? (struct coordinate){most, 0} : c;
}

/* Mirrored between low and high, which are given doubled, until it lies there. */
static struct coordinate reflected(struct coordinate c, int64_t twice_low, int64_t twice_high)
{
    if (twice_low == twice_high)
        return (struct coordinate){0, 0};
    const double low = (double)twice_low / 2, span = (double)(twice_high - twice_low) / 2;
    double at = c.at - low, slope = c.slope;
    if (at < 0) {
        at = -at;
        slope = -slope;
    }
    const double extra = fmod(at, span), flips = floor(at / span);
    if (fmod(flips, 2) == 0)
        return (struct coordinate){extra + low, slope};
    return (struct coordinate){span - extra + low, -slope};
}

/* A place beyond int's range, or none at all, lies outside. */
static struct coordinate sane(struct coordinate c)
{
    return c.at > 2147483646.0 || c.at < -2147483648.0 || !isfinite(c.at) ? (struct coordinate){-100, c.slope} : c;
}

static struct coordinate padded(const struct sampler *s, struct coordinate c, int64_t size)
{
    if (s->padding == PAD_BORDER)
        c = clipped(c, size);
    else if (s->padding == PAD_REFLECTION)
        c = clipped(s->align_corners ? reflected(c, 0, 2 * (size - 1)) : reflected(c, -1, 2 * size - 1), size);
    return sane(c);
}

static struct coordinate scaled(const struct sampler *s, double number, int64_t size)
{
    const double n = (double)size;
    if (s->align_corners)
        return (struct coordinate){(number + 1) / 2 * (n - 1), (n - 1) / 2};
    return (struct coordinate){((number + 1) * n - 1) / 2, n / 2};
}

/* --- taps along one dimension ------------------------------------------------------------------------------------------- */

struct axis_taps {
    int count;
    int64_t index[4]; /* -1: outside */
    double weight[4], slope[4];
};

static int64_t inside(double at, int64_t size) { return at >= 0 && at < (double)size ? (int64_t)at : -1; }

/* Keys' cubic with a = -0.75: the weight of an element at this distance, and its derivative by the place. */
static double cubic_weight(double t, int tap, double *slope)
{
    const double a = -0.75, x = tap == 0 ? t + 1 : tap == 1 ? t : tap == 2 ? 1 - t : 2 - t, sign = tap < 2 ? 1 : -1;
    if (tap == 1 || tap == 2) {
        *slope = sign * (3 * (a + 2) * x - 2 * (a + 3)) * x;
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    *slope = sign * ((3 * a * x - 10 * a) * x + 8 * a);
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

static void axis_of(const struct sampler *s, double number, int64_t size, struct axis_taps *taps)
{
    const struct coordinate plain = scaled(s, number, size);
    if (s->interpolation == CUBIC) {
        const double first = floor(plain.at), t = plain.at - first;
        taps->count = 4;
        for (int i = 0; i < 4; ++i) {
            taps->weight[i] = cubic_weight(t, i, &taps->slope[i]);
            taps->slope[i] *= plain.slope;
            taps->index[i] = inside(padded(s, (struct coordinate){first - 1 + i, 1}, size).at, size);
        }
        return;
    }
    const struct coordinate c = padded(s, plain, size);
    if (s->interpolation == NEAREST) {
        taps->count = 1;
        taps->weight[0] = 1;
        taps->slope[0] = 0;
        taps->index[0] = inside(nearbyint(c.at), size);
        return;
    }
    const double first = floor(c.at);
    taps->count = 2;
    taps->weight[1] = c.at - first;
    taps->weight[0] = first + 1 - c.at;
    taps->slope[0] = -c.slope;
    taps->slope[1] = c.slope;
    taps->index[0] = inside(first, size);
    taps->index[1] = inside(first + 1, size);
}

/* All taps of a place; those outside are left out. */
static void taps_of(const struct sampler *s, const double *numbers, struct grid_taps *taps)
{
    struct axis_taps axis[GRID_DIMS] = {{0}};
    for (int d = 0; d < GRID_DIMS; ++d)
        if (d < s->dims)
            axis_of(s, numbers[d], s->in[d], &axis[d]);
        else
            axis[d] = (struct axis_taps){.count = 1, .weight = {1}};
    taps->count = 0;
    for (int z = 0; z < axis[2].count; ++z)
        for (int y = 0; y < axis[1].count; ++y)
            for (int x = 0; x < axis[0].count; ++x) {
                const int64_t ix = axis[0].index[x], iy = axis[1].index[y], iz = axis[2].index[z];
                const double wx = axis[0].weight[x], wy = axis[1].weight[y], wz = axis[2].weight[z];
                const int t = taps->count;
                if (ix < 0 || iy < 0 || iz < 0)
                    continue;
                taps->offset[t] = (iz * s->in[1] + iy) * s->in[0] + ix;
                taps->weight[t] = wx * wy * wz;
                taps->slope[0][t] = axis[0].slope[x] * wy * wz;
                taps->slope[1][t] = axis[1].slope[y] * wx * wz;
                taps->slope[2][t] = axis[2].slope[z] * wx * wy;
                ++taps->count;
            }
}

/* --- running -------------------------------------------------------------------------------------------------------------- */

static void taps_at(const struct sampler_job *j, int64_t image, int64_t place, struct grid_taps *taps)
{
    const struct sampler *const s = j->s;
    const char *const from = j->grid + (image * s->places + place) * s->dims * j->bytes;
    double numbers[GRID_DIMS] = {0};
    for (int d = 0; d < s->dims; ++d)
        numbers[d] =
            s->type == ACCUMULATE_F64 ? ((const double *)(const void *)from)[d] : (double)((const float *)(const void *)from)[d];
    taps_of(s, numbers, taps);
}

static int64_t plane_of(const struct sampler *s) { return s->in[0] * s->in[1] * s->in[2]; }

static void forward_places(void *argument, int64_t begin, int64_t end)
{
    const struct sampler_job *const j = argument;
    const struct sampler *const s = j->s;
    struct grid_taps taps;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / s->places, place = i % s->places;
        taps_at(j, image, place, &taps);
        kernels->grid->real[s->type].sample(&taps, j->input + image * s->channels * plane_of(s) * j->bytes, plane_of(s),
                                            j->output + (image * s->channels * s->places + place) * j->bytes, s->places,
                                            s->channels);
    }
}

static int run_forward(struct plan *plan)
{
    const struct sampler *const s = PLAN_IMMEDIATE(plan, struct sampler);
    struct sampler_job j = {.s = s, .bytes = accumulate_bytes(s->type)};
    j.input = stage_read(plan, &s->staging, INPUT);
    j.grid = stage_read(plan, &s->staging, GRID);
    j.output = stage_target(plan, &s->staging, OUTPUT);
    if (s->channels > 0)
        parallel_for(s->images * s->places, 32 + cost_of(8, s->channels), forward_places, &j);
    stage_write_back(plan, &s->staging, OUTPUT);
    return 0;
}

static void spread_images(void *argument, int64_t begin, int64_t end)
{
    const struct sampler_job *const j = argument;
    const struct sampler *const s = j->s;
    struct grid_taps taps;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / CHANNEL_BLOCKS, block = i % CHANNEL_BLOCKS;
        const int64_t first = s->channels * block / CHANNEL_BLOCKS, past = s->channels * (block + 1) / CHANNEL_BLOCKS;
        char *const to = j->grad_input + (image * s->channels + first) * plane_of(s) * j->bytes;
        const char *const from = j->grad_out + (image * s->channels + first) * s->places * j->bytes;
        for (int64_t place = 0; past > first && place < s->places; ++place) {
            taps_at(j, image, place, &taps);
            kernels->grid->real[s->type].spread(&taps, to, plane_of(s), from + place * j->bytes, s->places, past - first);
        }
    }
}

static void slope_places(void *argument, int64_t begin, int64_t end)
{
    const struct sampler_job *const j = argument;
    const struct sampler *const s = j->s;
    struct grid_taps taps;
    double sums[GRID_DIMS];
    for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / s->places, place = i % s->places;
        taps_at(j, image, place, &taps);
        kernels->grid->real[s->type].slopes(&taps, j->input + image * s->channels * plane_of(s) * j->bytes, plane_of(s),
                                            j->grad_out + (image * s->channels * s->places + place) * j->bytes, s->places,
                                            s->channels, sums);
        for (int d = 0; d < s->dims; ++d)
            if (s->type == ACCUMULATE_F64)
                ((double *)(void *)j->grad_grid)[i * s->dims + d] = sums[d];
            else
                ((float *)(void *)j->grad_grid)[i * s->dims + d] = (float)sums[d];
    }
}

static int run_backward(struct plan *plan)
{
    const struct sampler *const s = PLAN_IMMEDIATE(plan, struct sampler);
    struct sampler_job j = {.s = s, .bytes = accumulate_bytes(s->type)};
    j.grad_out = stage_read(plan, &s->staging, GRAD_OUT);
    j.input = stage_read(plan, &s->staging, B_INPUT);
    j.grid = stage_read(plan, &s->staging, B_GRID);
    if (plan->operands[GRAD_INPUT].dtype != DTYPE_NONE) {
        j.grad_input = stage_target(plan, &s->staging, GRAD_INPUT);
        if (plan->operands[GRAD_INPUT].count > 0)
            memset(j.grad_input, 0, (size_t)(s->images * s->channels * plane_of(s) * j.bytes));
        parallel_for(s->images * CHANNEL_BLOCKS, cost_of(s->places, 32 + cost_of(2, s->channels)), spread_images, &j);
        stage_write_back(plan, &s->staging, GRAD_INPUT);
    }
    if (plan->operands[GRAD_GRID].dtype != DTYPE_NONE) {
        j.grad_grid = stage_target(plan, &s->staging, GRAD_GRID);
        parallel_for(s->images * s->places, 32 + cost_of(16, s->channels), slope_places, &j);
        stage_write_back(plan, &s->staging, GRAD_GRID);
    }
    return 0;
}

/* --- phase 1 -------------------------------------------------------------------------------------------------------------- */

struct sampler_request {
    enum operator_id id;
    int dims;
    int64_t interpolation, padding;
    bool align_corners;
};

static int set_sampler(struct plan *plan, const struct sampler_request *q, const struct view *input, const struct view *grid)
{
    struct sampler *const s = PLAN_IMMEDIATE(plan, struct sampler);
    const char *const name = operator_name(q->id);
    stage_begin(&s->staging);
    REQUIRE(q->interpolation >= LINEAR && q->interpolation <= (q->dims == 2 ? CUBIC : NEAREST), ACLNN_ERROR_PARAM,
            "%s: interpolationMode is %lld; 0 (linear), 1 (nearest)%s are allowed", name, (long long)q->interpolation,
            q->dims == 2 ? ", 2 (cubic)" : "");
    REQUIRE(q->padding >= PAD_ZEROS && q->padding <= PAD_REFLECTION, ACLNN_ERROR_PARAM,
            "%s: paddingMode is %lld; 0 (zeros), 1 (border), 2 (reflection) are allowed", name, (long long)q->padding);
    TRY(check_floating(plan, input, "input"));
    TRY(check_same_dtype(plan, grid, "grid", input, "input"));
    REQUIRE(input->ndim == q->dims + 2 && grid->ndim == q->dims + 2 && grid->sizes[0] == input->sizes[0] &&
                grid->sizes[q->dims + 1] == q->dims,
            ACLNN_ERROR_PARAM, "%s: input is %s and grid %s; %d dimensions, one batch size and %d numbers a place are needed", name,
            view_text(input), view_text(grid), q->dims + 2, q->dims);
    s->dims = q->dims;
    s->interpolation = (enum interpolation)q->interpolation;
    s->padding = (enum padding)q->padding;
    s->align_corners = q->align_corners;
    s->type = accumulate_of((enum dtype)input->dtype);
    s->images = input->sizes[0];
    s->channels = input->sizes[1];
    s->places = 1;
    for (int d = 0; d < GRID_DIMS; ++d) {
        s->in[d] = d < q->dims ? input->sizes[q->dims + 1 - d] : 1;
        REQUIRE(s->in[d] > 0, ACLNN_ERROR_PARAM, "%s: input %s has no elements to sample", name, view_text(input));
        if (d < q->dims && __builtin_mul_overflow(s->places, grid->sizes[d + 1], &s->places))
            FAIL(ACLNN_ERROR_PARAM, "%s: grid %s is too large", name, view_text(grid));
    }
    int64_t plane;
    REQUIRE(multiply_sizes(input, 2, input->ndim, &plane), ACLNN_ERROR_PARAM, "%s: input %s is too large", name, view_text(input));
    return 0;
}

/* The samples: batch, channels, and the grid's own dimensions. */
static int check_samples(struct plan *plan, const struct view *input, const struct view *grid, const struct view *v,
                         const char *name)
{
    int64_t sizes[TENSOR_MAX_DIMS] = {input->sizes[0], input->sizes[1]};
    for (int d = 2; d < input->ndim; ++d)
        sizes[d] = grid->sizes[d - 1];
    TRY(check_same_dtype(plan, v, name, input, "input"));
    return check_sizes(plan, v, name, sizes, input->ndim);
}

static int finish(struct plan *plan, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct sampler *const s = PLAN_IMMEDIATE(plan, struct sampler);
    for (int i = 0; i < plan->operand_count; ++i) {
        if (plan->operands[i].dtype == DTYPE_NONE)
            continue;
        if (plan->roles[i] == ROLE_OUTPUT)
            PLAN_TRY(plan, check_output_not_expanded(plan, &plan->operands[i], "an output"));
        stage_operand(plan, &s->staging, &plan->operands[i], s->type);
    }
    return plan_finish(plan, s->staging.bytes, workspace_size, executor);
}

static int plan_forward(const struct sampler_request *q, const aclTensor *input, const aclTensor *grid, aclTensor *out,
                        uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *where, *to;
    TRY(plan_begin(q->id, run_forward, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, input, "input", &in));
    PLAN_TRY(plan, plan_input(plan, grid, "grid", &where));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, set_sampler(plan, q, in, where));
    PLAN_TRY(plan, check_samples(plan, in, where, to, "out"));
    return finish(plan, workspace_size, executor);
}

struct sampler_gradients {
    const aclTensor *grad_out, *input, *grid;
    const aclBoolArray *mask;
    aclTensor *grad_input, *grad_grid;
};

static int plan_backward(const struct sampler_request *q, const struct sampler_gradients *g, uint64_t *workspace_size,
                         aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *dy, *in, *where;
    aclTensor *const wanted[] = {g->grad_input, g->grad_grid};
    static const char *const names[] = {"inputGrad", "gridGrad"};
    TRY(plan_begin(q->id, run_backward, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, g->grad_out, "gradOutput", &dy));
    PLAN_TRY(plan, plan_input(plan, g->input, "input", &in));
    PLAN_TRY(plan, plan_input(plan, g->grid, "grid", &where));
    PLAN_REQUIRE(plan, g->mask && g->mask->count == 2, ACLNN_ERROR_PARAM, "%s: outputMask must hold 2 values (inputGrad, gridGrad)",
                 operator_name(q->id));
    for (int i = 0; i < 2; ++i) {
        PLAN_REQUIRE(plan, !g->mask->values[i] || wanted[i], ACLNN_ERROR_NULLPTR, "%s: %s is null, but outputMask asks for it",
                     operator_name(q->id), names[i]);
        PLAN_TRY(plan, plan_optional(plan, g->mask->values[i] ? wanted[i] : NULL, ROLE_OUTPUT, names[i], NULL));
    }
    PLAN_TRY(plan, set_sampler(plan, q, in, where));
    PLAN_TRY(plan, check_samples(plan, in, where, dy, "gradOutput"));
    for (int i = 0; i < 2; ++i) {
        const struct view *const v = &plan->operands[GRAD_INPUT + i], *const model = i == 0 ? in : where;
        if (v->dtype == DTYPE_NONE)
            continue;
        PLAN_TRY(plan, check_same_dtype(plan, v, names[i], in, "input"));
        PLAN_TRY(plan, check_sizes(plan, v, names[i], model->sizes, model->ndim));
    }
    return finish(plan, workspace_size, executor);
}

#define GRID_SAMPLERS(n)                                                                                                          \
    aclnnStatus aclnnGridSampler##n##DGetWorkspaceSize(const aclTensor *input, const aclTensor *grid, int64_t interpolationMode,  \
                                                       int64_t paddingMode, bool alignCorners, aclTensor *out,                    \
                                                       uint64_t *workspaceSize, aclOpExecutor **executor)                         \
    {                                                                                                                             \
        const struct sampler_request q = {OPERATOR_GridSampler##n##D, n, interpolationMode, paddingMode, alignCorners};           \
        return plan_forward(&q, input, grid, out, workspaceSize, executor);                                                       \
    }                                                                                                                             \
    ACLNN_PHASE_2(GridSampler##n##D)                                                                                              \
    aclnnStatus aclnnGridSampler##n##DBackwardGetWorkspaceSize(                                                                   \
        const aclTensor *gradOutput, const aclTensor *input, const aclTensor *grid, int64_t interpolationMode,                    \
        int64_t paddingMode, bool alignCorners, const aclBoolArray *outputMask, aclTensor *inputGrad, aclTensor *gridGrad,        \
        uint64_t *workspaceSize, aclOpExecutor **executor)                                                                        \
    {                                                                                                                             \
        const struct sampler_request q = {OPERATOR_GridSampler##n##DBackward, n, interpolationMode, paddingMode, alignCorners};   \
        const struct sampler_gradients g = {gradOutput, input, grid, outputMask, inputGrad, gridGrad};                            \
        return plan_backward(&q, &g, workspaceSize, executor);                                                                    \
    }                                                                                                                             \
    ACLNN_PHASE_2(GridSampler##n##DBackward)
GRID_SAMPLERS(2)
GRID_SAMPLERS(3)
