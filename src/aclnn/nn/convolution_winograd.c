/* Winograd passes over a batch. See convolution_winograd.h.
 *
 * The gradient's partial sums belong to blocks of images that depend on sizes alone; they are added in order. */
#include "aclnn/nn/convolution_winograd.h"

#include <stdatomic.h>
#include <string.h>

#include "aclnn/nn/staging.h"
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/fidelity.h"
#include "kernels/conv_winograd.h"
#include "kernels/kernels.h"

enum { LEAST_IMAGES = 4, LEAST_TILES = 16, LEAST_CHANNELS = 16, IMAGE_BLOCKS = 8, PARTIAL_LIMIT = 64 << 20 };
#define LEAST_GAIN 1.4

static struct winograd_shape shape_of(const struct conv_pass *pass, int64_t tile)
{
    const struct conv_geometry *const g = &pass->geometry;
    return (struct winograd_shape){tile, g->channels, g->rows, g->in[1], g->in[2], g->out[1], g->out[2], g->pad[1], g->pad[2]};
}

static bool is_three_by_three(const struct conv_geometry *g)
{
    if (g->taps[0] != 1 || g->in[0] != 1 || g->out[0] != 1 || g->pad[0] != 0)
        return false;
    for (int d = 1; d < 3; ++d)
        if (g->taps[d] != 3 || g->stride[d] != 1 || g->dilation[d] != 1 || g->insert[d] != 1 || g->pad[d] < 0)
            return false;
    return true;
}

/* How many times faster than the direct kernel tiles of a size are expected to be: 9 tile^2 products become (tile + 2)^2, less
 * what rounding up wastes and, of large tiles, what the transforms cost. 0: too few tiles. */
static double gain(const struct conv_geometry *g, int64_t tile)
{
    const int64_t tiles = divide_up(g->out[1], tile) * divide_up(g->out[2], tile), unit = kernels->conv_winograd->row_unit;
    const double used = (double)(g->rows * g->channels * g->out[1] * g->out[2]);
    const double done =
        (double)(divide_up(g->rows, unit) * unit * divide_up(g->channels, unit / 2) * (unit / 2) * tiles * tile * tile);
    if (tiles < LEAST_TILES)
        return 0;
    return (tile == 2 ? 2.25 : 2.7) * used / done;
}

/* The size of tiles, or 0: the direct kernel is better. */
static int64_t tile_for(const struct conv_pass *pass)
{
    const struct conv_geometry *const g = &pass->geometry;
    if (pass->type != ACCUMULATE_F32 || !is_three_by_three(g) || pass->images * pass->groups < LEAST_IMAGES ||
        g->channels < LEAST_CHANNELS || g->rows < LEAST_CHANNELS)
        return 0;
    const double small = gain(g, 2), large = fidelity() == FIDELITY_FAST ? gain(g, 4) : 0;
    return small <= LEAST_GAIN && large <= LEAST_GAIN ? 0 : large > small ? 4 : 2;
}

bool winograd_applies(const struct conv_pass *pass) { return tile_for(pass) != 0; }

struct winograd_job {
    const struct conv_pass *pass;
    struct winograd_shape shape;
    const struct conv_operands *operands;
    const char *source, *small;
    float *filters, *partials, *gradient;
    uint8_t *refused;
    int64_t elements, blocks, panels, parts, part_panels;
    _Atomic int bad_filters, bad_images, failed;
};

static struct winograd_job job_of(const struct conv_pass *pass)
{
    struct winograd_job j = {.pass = pass, .shape = shape_of(pass, tile_for(pass))};
    j.elements = kernels->conv_winograd->filter_elements(&j.shape);
    j.panels = divide_up(j.shape.rows, kernels->conv_winograd->row_unit);
    return j;
}

static void *take_scratch(struct winograd_job *j)
{
    void *const scratch = pool_scratch(1, kernels->conv_winograd->scratch_bytes(&j->shape));
    if (!scratch)
        j->failed = 1;
    return scratch;
}

static int finish(const struct winograd_job *j)
{
    REQUIRE(!j->failed, ERROR_RT_MEMORY_ALLOCATION, "no memory for %zu bytes of scratch",
            kernels->conv_winograd->scratch_bytes(&j->shape));
    return 0;
}

static int64_t image_elements(const struct winograd_job *j) { return j->shape.channels * j->shape.height * j->shape.width; }
static int64_t out_elements(const struct winograd_job *j) { return j->shape.rows * j->shape.out_height * j->shape.out_width; }

/* --- correlate ------------------------------------------------------------------------------------------------------ */

uint64_t winograd_correlate_bytes(const struct conv_pass *pass)
{
    const struct winograd_job j = job_of(pass);
    return (uint64_t)(pass->groups * j.elements) * sizeof(float) + (uint64_t)(pass->images * pass->groups);
}

static void filter_panels(void *argument, int64_t begin, int64_t end)
{
    struct winograd_job *const j = argument;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t group = item / j->panels;
        const float *const matrix = (const float *)j->operands->matrix + group * j->shape.rows * j->shape.channels * 9;
        if (!kernels->conv_winograd->filters(&j->shape, matrix, item % j->panels, j->filters + group * j->elements))
            j->bad_filters = 1;
    }
}

/* How the images of a block are cut into calls. */
static int64_t calls_for(const struct winograd_job *j, int64_t images)
{
    return divide_up(images, kernels->conv_winograd->images_together(&j->shape));
}

/* Item = (call, group). Images that are refused are left out. */
static void correlate_images(void *argument, int64_t begin, int64_t end)
{
    struct winograd_job *const j = argument;
    const int64_t calls = calls_for(j, j->pass->images);
    void *const scratch = take_scratch(j);
    for (int64_t item = begin; scratch && item < end; ++item) {
        const int64_t group = item % j->pass->groups, call = item / j->pass->groups;
        const float *const bias = j->operands->bias ? (const float *)j->operands->bias + group * j->shape.rows : NULL;
        const float *images[WINOGRAD_MOST_IMAGES];
        float *outs[WINOGRAD_MOST_IMAGES];
        struct winograd_batch batch = {.images = images, .outs = outs};
        for (int64_t i = call * j->pass->images / calls; i < (call + 1) * j->pass->images / calls; ++i) {
            const int64_t at = i * j->pass->groups + group;
            images[batch.count] = (const float *)j->operands->source + at * image_elements(j);
            outs[batch.count] = (float *)j->operands->out + at * out_elements(j);
            j->refused[at] = !kernels->conv_winograd->moderate(images[batch.count], image_elements(j));
            if (j->refused[at])
                j->bad_images = 1;
            else
                ++batch.count;
        }
        if (batch.count > 0)
            kernels->conv_winograd->correlate(&j->shape, &batch, j->filters + group * j->elements, bias, scratch);
    }
}

int winograd_correlate(const struct conv_pass *pass, const struct conv_operands *operands, void *workspace, const uint8_t **refused,
                       bool *complete)
{
    struct winograd_job j = job_of(pass);
    j.operands = operands;
    j.filters = workspace;
    j.refused = (uint8_t *)(j.filters + pass->groups * j.elements);
    parallel_for(pass->groups * j.panels, j.elements / j.panels, filter_panels, &j);
    *complete = false;
    *refused = NULL;
    if (j.bad_filters)
        return 0;
    const int64_t calls = calls_for(&j, pass->images);
    parallel_for(calls * pass->groups, divide_up(pass->images, calls) * out_elements(&j) * j.shape.channels / 4, correlate_images,
                 &j);
    TRY(finish(&j));
    *complete = !j.bad_images;
    *refused = j.refused;
    return 0;
}

/* --- weight gradient ------------------------------------------------------------------------------------------------ */

static int64_t image_blocks(const struct winograd_job *j)
{
    int64_t blocks = IMAGE_BLOCKS;
    while (blocks > 1 && blocks * j->pass->groups * j->elements * (int64_t)sizeof(float) > PARTIAL_LIMIT)
        blocks /= 2;
    const int64_t calls = calls_for(j, j->pass->images);
    return blocks < calls ? blocks : calls;
}

uint64_t winograd_gradient_bytes(const struct conv_pass *pass)
{
    const struct winograd_job j = job_of(pass);
    return (uint64_t)(image_blocks(&j) * pass->groups * j.elements) * sizeof(float);
}

/* Item = (group, block of images, part of the rows). */
static void gradient_blocks(void *argument, int64_t begin, int64_t end)
{
    struct winograd_job *const j = argument;
    const struct conv_pass *const pass = j->pass;
    const int64_t together = kernels->conv_winograd->images_together(&j->shape);
    void *const scratch = take_scratch(j);
    for (int64_t item = begin; scratch && item < end; ++item) {
        const int64_t part = item % j->parts, block = item / j->parts % j->blocks, group = item / (j->parts * j->blocks);
        const int64_t panel = part * j->part_panels, left = j->panels - panel;
        const int64_t first = block * pass->images / j->blocks, last = (block + 1) * pass->images / j->blocks;
        for (int64_t image = first; image < last && !j->bad_images; image += together) {
            const float *images[WINOGRAD_MOST_IMAGES], *smalls[WINOGRAD_MOST_IMAGES];
            const struct winograd_batch batch = {last - image < together ? last - image : together, images, smalls, NULL};
            for (int64_t i = 0; i < batch.count; ++i) {
                const int64_t at = (image + i) * pass->groups + group;
                images[i] = (const float *)(const void *)j->source + at * image_elements(j);
                smalls[i] = (const float *)(const void *)j->small + at * out_elements(j);
            }
            if (!kernels->conv_winograd->gradient(&j->shape, &batch, panel, left < j->part_panels ? left : j->part_panels,
                                                  j->partials + (group * j->blocks + block) * j->elements, image > first, scratch))
                j->bad_images = 1;
        }
    }
}

static void finish_panels(void *argument, int64_t begin, int64_t end)
{
    const struct winograd_job *const j = argument;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t group = item / j->panels;
        kernels->conv_winograd->finish(&j->shape, j->partials + group * j->blocks * j->elements, j->blocks, item % j->panels,
                                       j->gradient + group * j->shape.rows * j->shape.channels * 9);
    }
}

int winograd_gradient(const struct conv_pass *pass, const void *source, const void *small, void *gradient, void *workspace,
                      bool *complete)
{
    struct winograd_job j = job_of(pass);
    j.source = source;
    j.small = small;
    j.gradient = gradient;
    j.partials = workspace;
    j.blocks = image_blocks(&j);
    j.part_panels = kernels->conv_winograd->gradient_panels(&j.shape);
    j.parts = divide_up(j.panels, j.part_panels);
    pool_for(pass->groups * j.blocks * j.parts, 1, gradient_blocks, &j);
    TRY(finish(&j));
    *complete = !j.bad_images;
    if (*complete)
        parallel_for(pass->groups * j.panels, j.elements / j.panels * j.blocks, finish_panels, &j);
    return 0;
}
