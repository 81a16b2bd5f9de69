/* Convolution passes over a batch. See convolution.h. */
#include "aclnn/nn/convolution.h"

#include <stdatomic.h>

#include "aclnn/nn/convolution_phases.h"
#include "aclnn/nn/convolution_winograd.h"
#include "aclnn/nn/staging.h"
#include "base/arithmetic.h"
#include "base/error.h"
#include "kernels/kernels.h"

enum { IMAGE_BLOCKS = 8, PARTIAL_LIMIT = 64 << 20 };

struct pass_job {
    const struct conv_pass *pass;
    const struct conv_float_kernels *k;
    const char *source, *small, *bias, *matrix;
    const uint8_t *only; /* images (and groups) to do; NULL: all */
    char *out, *packed, *partials;
    bool thin;
    int64_t bytes;
    int64_t splits, split_pixels;                             /* correlate: parts of an image */
    int64_t blocks, block_images, column_tiles, tile_columns; /* weight gradient */
    _Atomic int failed;
};

/* Scratch 0: the kernel's; scratch 1: padded images. */
static bool take_scratch(struct pass_job *j, int64_t images, void **scratch, void **padded)
{
    const struct conv_geometry *const g = &j->pass->geometry;
    *scratch = pool_scratch(0, kernels->conv->scratch_bytes);
    *padded = pool_scratch(1, (size_t)(images * g->channels * conv_volume(g->padded) * j->bytes) + 64);
    if (*scratch && *padded)
        return true;
    j->failed = 1;
    return false;
}

static int finish(const struct pass_job *j)
{
    REQUIRE(!j->failed, ERROR_RT_MEMORY_ALLOCATION, "no memory for a padded image of %lld elements",
            (long long)(j->pass->geometry.channels * conv_volume(j->pass->geometry.padded)));
    return 0;
}

/* --- correlate ------------------------------------------------------------------------------------------------------ */

static int64_t matrix_elements(const struct conv_geometry *g) { return g->rows * g->channels * conv_volume(g->taps); }

static uint64_t direct_bytes(const struct conv_pass *pass)
{
    const uint64_t bytes = (uint64_t)(pass->groups * matrix_elements(&pass->geometry) * accumulate_bytes(pass->type));
    return (bytes + 63) / 64 * 64;
}

uint64_t conv_correlate_bytes(const struct conv_pass *pass)
{
    if (pass->type == ACCUMULATE_I64)
        return 0;
    if (conv_has_phases(pass))
        return conv_phases_bytes(pass);
    return direct_bytes(pass) + (winograd_applies(pass) ? winograd_correlate_bytes(pass) : 0);
}

static void pack_groups(void *argument, int64_t begin, int64_t end)
{
    const struct pass_job *const j = argument;
    const struct conv_geometry *const g = &j->pass->geometry;
    const int64_t step = matrix_elements(g) * j->bytes;
    for (int64_t group = begin; group < end; ++group)
        j->k->pack_matrix(j->matrix + group * step, g->rows, g->channels * conv_volume(g->taps), j->packed + group * step);
}

static void correlate_items(void *argument, int64_t begin, int64_t end)
{
    struct pass_job *const j = argument;
    const struct conv_geometry *const g = &j->pass->geometry;
    const int64_t out = conv_volume(g->out);
    void *scratch, *padded;
    if (!take_scratch(j, 1, &scratch, &padded))
        return;
    int64_t padded_item = -1;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t split = item % j->splits, image_group = item / j->splits, group = image_group % j->pass->groups;
        if (j->only && !j->only[image_group])
            continue;
        if (padded_item != image_group)
            j->k->pad(g, j->source + image_group * g->channels * conv_volume(g->in) * j->bytes, padded);
        padded_item = image_group;
        const int64_t first = split * j->split_pixels, matrix = group * matrix_elements(g) * j->bytes;
        const char *const bias = j->bias ? j->bias + group * g->rows * j->bytes : NULL;
        char *const to = j->out + image_group * g->rows * out * j->bytes;
        if (j->thin)
            j->k->thin_correlate(g, padded, j->matrix + matrix, bias, to);
        else
            j->k->correlate(g, padded, j->packed + matrix, bias, to, first, least(j->split_pixels, out - first), scratch);
    }
}

/* only: one flag an image and group, or NULL for all. */
static int correlate_direct(const struct conv_pass *pass, const struct conv_operands *o, const uint8_t *only, void *workspace)
{
    const struct conv_geometry *const g = &pass->geometry;
    const int64_t items = pass->images * pass->groups, pixels = conv_volume(g->out), unit = kernels->conv->pixel_block;
    struct pass_job j = {.pass = pass,
                         .k = &kernels->conv->real[pass->type],
                         .source = o->source,
                         .bias = o->bias,
                         .matrix = o->matrix,
                         .only = only,
                         .out = o->out,
                         .packed = workspace,
                         .bytes = accumulate_bytes(pass->type)};
    if (items == 0 || pixels == 0 || g->rows == 0)
        return 0;
    j.thin = conv_is_thin(g);
    if (!j.thin)
        parallel_for(pass->groups, matrix_elements(g), pack_groups, &j);
    /* A few images only: cut them, so that every thread has work. */
    const int64_t wanted =
        !j.thin && pool_threads() > 1 && items < 4 * pool_threads() ? divide_up(4 * (int64_t)pool_threads(), items) : 1;
    j.split_pixels = divide_up(divide_up(pixels, wanted), unit) * unit;
    j.splits = divide_up(pixels, j.split_pixels);
    parallel_for(items * j.splits, matrix_elements(g) * j.split_pixels / 16 + g->channels * conv_volume(g->padded), correlate_items,
                 &j);
    return finish(&j);
}

int conv_correlate(const struct conv_pass *pass, const struct conv_operands *o, void *workspace)
{
    const uint8_t *refused = NULL;
    if (pass->type == ACCUMULATE_I64) {
        conv_correlate_integer(pass, o);
        return 0;
    }
    if (conv_has_phases(pass))
        return conv_correlate_phases(pass, o, workspace);
    if (winograd_applies(pass)) {
        bool complete;
        TRY(winograd_correlate(pass, o, (char *)workspace + direct_bytes(pass), &refused, &complete));
        if (complete)
            return 0;
    }
    return correlate_direct(pass, o, refused, workspace);
}

/* --- weight gradient ------------------------------------------------------------------------------------------------ */

/* Images are summed in blocks; as many as memory for the partial sums allows, and not smaller than what a call takes. */
static int64_t image_blocks(const struct conv_pass *pass)
{
    const int64_t one = pass->groups * matrix_elements(&pass->geometry) * accumulate_bytes(pass->type);
    int64_t blocks = IMAGE_BLOCKS;
    while (blocks > 1 && blocks * one > PARTIAL_LIMIT)
        blocks /= 2;
    return least(blocks, divide_up(pass->images, conv_images_together(&pass->geometry)));
}

uint64_t conv_weight_gradient_bytes(const struct conv_pass *pass)
{
    const uint64_t direct =
        (uint64_t)(image_blocks(pass) * pass->groups * matrix_elements(&pass->geometry) * accumulate_bytes(pass->type));
    const uint64_t winograd = winograd_applies(pass) ? winograd_gradient_bytes(pass) : 0;
    return direct > winograd ? direct : winograd;
}

/* Item = (block of images, group, tile of columns); its partial sums are [rows][columns of the tile]. */
static void gradient_items(void *argument, int64_t begin, int64_t end)
{
    struct pass_job *const j = argument;
    const struct conv_pass *const pass = j->pass;
    const struct conv_geometry *const g = &pass->geometry;
    const int64_t depth = g->channels * conv_volume(g->taps), elements = matrix_elements(g);
    const int64_t together = j->thin ? 1 : conv_images_together(g), padded_bytes = g->channels * conv_volume(g->padded) * j->bytes;
    void *scratch, *padded;
    if (!take_scratch(j, together, &scratch, &padded))
        return;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t tile = item % j->column_tiles, group = item / j->column_tiles % pass->groups;
        const int64_t block = item / (j->column_tiles * pass->groups), first = tile * j->tile_columns;
        char *const partial = j->partials + ((block * pass->groups + group) * elements + g->rows * first) * j->bytes;
        const int64_t begin_image = block * pass->images / j->blocks, end_image = (block + 1) * pass->images / j->blocks;
        for (int64_t image = begin_image; image < end_image; image += together) {
            const int64_t at = image * pass->groups + group, result = g->rows * conv_volume(g->out);
            const struct conv_images images = {padded, j->small + at * result * j->bytes, least(together, end_image - image),
                                               pass->groups * result};
            for (int64_t i = 0; i < images.count; ++i)
                j->k->pad(g, j->source + (at + i * pass->groups) * g->channels * conv_volume(g->in) * j->bytes,
                          (char *)padded + i * padded_bytes);
            if (j->thin)
                j->k->thin_gradient(g, padded, images.small, partial, image > begin_image);
            else
                j->k->weight_gradient(g, &images, partial, first, least(j->tile_columns, depth - first), image > begin_image,
                                      scratch);
        }
    }
}

enum { ADD_COLUMNS = 256 };

/* to[c] = sum over blocks of from[block * step + c], in order, n <= ADD_COLUMNS. */
static void add_columns(enum accumulate type, const char *from, int64_t blocks, int64_t step, int64_t n, char *to)
{
    double sum[ADD_COLUMNS] = {0};
    for (int64_t block = 0; block < blocks; ++block) {
        if (type == ACCUMULATE_F64)
            for (int64_t c = 0; c < n; ++c)
                sum[c] += ((const double *)(const void *)from)[block * step + c];
        else
            for (int64_t c = 0; c < n; ++c)
                sum[c] += (double)((const float *)(const void *)from)[block * step + c];
    }
    if (type == ACCUMULATE_F64)
        for (int64_t c = 0; c < n; ++c)
            ((double *)(void *)to)[c] = sum[c];
    else
        for (int64_t c = 0; c < n; ++c)
            ((float *)(void *)to)[c] = (float)sum[c];
}

/* Adds the blocks in order; item = (group, row). */
static void add_partials(void *argument, int64_t begin, int64_t end)
{
    const struct pass_job *const j = argument;
    const struct conv_geometry *const g = &j->pass->geometry;
    const int64_t depth = g->channels * conv_volume(g->taps), elements = matrix_elements(g);
    for (int64_t item = begin; item < end; ++item) {
        const int64_t group = item / g->rows, row = item % g->rows;
        for (int64_t first = 0; first < depth; first += j->tile_columns) {
            const int64_t columns = least(j->tile_columns, depth - first);
            for (int64_t c = 0; c < columns; c += ADD_COLUMNS)
                add_columns(j->pass->type, j->partials + (group * elements + g->rows * first + row * columns + c) * j->bytes,
                            j->blocks, j->pass->groups * elements, least(ADD_COLUMNS, columns - c),
                            j->out + (item * depth + first + c) * j->bytes);
        }
    }
}

int conv_weight_gradient(const struct conv_pass *pass, const void *source, const void *small, void *gradient, void *workspace)
{
    const struct conv_geometry *const g = &pass->geometry;
    const struct conv_kernels *const k = kernels->conv;
    const int64_t depth = g->channels * conv_volume(g->taps);
    struct pass_job j = {.pass = pass,
                         .k = &k->real[pass->type],
                         .source = source,
                         .small = small,
                         .out = gradient,
                         .partials = workspace,
                         .bytes = accumulate_bytes(pass->type)};
    if (depth == 0 || g->rows == 0)
        return 0;
    if (winograd_applies(pass)) {
        bool complete;
        TRY(winograd_gradient(pass, source, small, gradient, workspace, &complete));
        if (complete)
            return 0;
    }
    j.blocks = image_blocks(pass);
    j.thin = conv_is_thin(g);
    j.column_tiles = divide_up(depth, k->column_block);
    if (!j.thin && j.blocks > 0 && j.blocks * pass->groups * j.column_tiles < 4)
        j.column_tiles = least(divide_up(depth, k->column_unit), 4);
    j.tile_columns = j.thin ? depth : divide_up(divide_up(depth, j.column_tiles), k->column_unit) * k->column_unit;
    j.column_tiles = divide_up(depth, j.tile_columns);
    const int64_t items = j.blocks * pass->groups * j.column_tiles;
    const int64_t cost = divide_up(pass->images, j.blocks ? j.blocks : 1) * conv_volume(g->out) * g->rows * j.tile_columns / 16;
    parallel_for(items, cost, gradient_items, &j);
    TRY(finish(&j));
    parallel_for(pass->groups * g->rows, depth * (j.blocks + 1), add_partials, &j);
    return 0;
}

/* --- weights -------------------------------------------------------------------------------------------------------- */

struct rotate_job {
    enum accumulate type;
    const void *matrix;
    void *rotated;
    int64_t outer, inner, taps;
};

/* Item = (group, inner). */
static void rotate_rows(void *argument, int64_t begin, int64_t end)
{
    const struct rotate_job *const j = argument;
    for (int64_t item = begin; item < end; ++item)
        for (int64_t o = 0; o < j->outer; ++o)
            for (int64_t t = 0; t < j->taps; ++t) {
                const int64_t from = ((item / j->inner * j->outer + o) * j->inner + item % j->inner) * j->taps + j->taps - 1 - t;
                const int64_t to = (item * j->outer + o) * j->taps + t;
                if (accumulate_bytes(j->type) == 8)
                    ((uint64_t *)j->rotated)[to] = ((const uint64_t *)j->matrix)[from];
                else
                    ((uint32_t *)j->rotated)[to] = ((const uint32_t *)j->matrix)[from];
            }
}

void conv_rotate(enum accumulate type, const void *matrix, int64_t groups, int64_t outer, int64_t inner, int64_t taps,
                 void *rotated)
{
    struct rotate_job j = {type, matrix, rotated, outer, inner, taps};
    parallel_for(groups * inner, outer * taps, rotate_rows, &j);
}
