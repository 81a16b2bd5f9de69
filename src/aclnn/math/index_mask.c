/* Operators that pick elements by a mask: masked_select, masked_scatter, nonzero.
 *
 * How many elements there are is known only when they run: the caller allocates the most that there could be, waits, and reads
 * the real shape from the output's handle, which the run sets (tensor/awaited.h). */
#include "aclnn/math/index_mask.h"

#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"
#include "tensor/awaited.h"

enum { CHUNK = 1 << 14 }; /* elements whose set ones are counted together */

static int64_t chunks_of(int64_t count) { return (count + CHUNK - 1) / CHUNK; }

/* Of complex numbers, which have no accumulate type: n at most STEP, so that they fit a tile. */
static void read_complex_mask(uint8_t *set, const struct view *mask, int64_t first, int64_t n)
{
    double tile[TILE];
    tile_gather(tile, mask, first, n);
    for (int64_t i = 0; i < n; ++i)
        if (mask->dtype == DTYPE_C128) {
            set[i] = tile[2 * i] != 0 || tile[2 * i + 1] != 0;
        } else {
            const float *const pair = (const float *)(const void *)tile + 2 * i;
            set[i] = pair[0] != 0 || pair[1] != 0;
        }
}

/* Whether each of n elements is set, as bytes of 0 and 1. */
static void read_mask(uint8_t *set, const struct view *mask, int64_t first, int64_t n)
{
    double tile[TILE];
    if (dtype_kind((enum dtype)mask->dtype) == KIND_COMPLEX) {
        read_complex_mask(set, mask, first, n);
        return;
    }
    if (mask->dtype == DTYPE_B8 || mask->dtype == DTYPE_U8 || mask->dtype == DTYPE_I8) {
        tile_gather(set, mask, first, n);
        for (int64_t i = 0; i < n; ++i)
            set[i] = set[i] != 0;
        return;
    }
    const enum accumulate type = accumulate_of((enum dtype)mask->dtype);
    tile_read(tile, type, mask, first, n);
    for (int64_t i = 0; i < n; ++i)
        set[i] = type == ACCUMULATE_F64   ? tile[i] != 0
                 : type == ACCUMULATE_F32 ? ((const float *)(const void *)tile)[i] != 0
                                          : ((const int64_t *)(const void *)tile)[i] != 0;
}

struct mask_work {
    const struct view *mask;
    int64_t *starts; /* of each chunk among the set elements; one more than chunks */
    int64_t limit;
    /* mask_positions */
    int64_t *positions;
    int dim_major;
    /* masked_select (self to out) and masked_scatter (source to self); broadcast to the mask */
    const struct view *each, *packed;
    bool scatters;
};

enum { STEP = TILE / 2 };

static void count_chunks(void *argument, int64_t begin, int64_t end)
{
    const struct mask_work *const w = argument;
    uint8_t set[STEP];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        int64_t count = 0;
        const int64_t past = (chunk + 1) * CHUNK < w->mask->count ? (chunk + 1) * CHUNK : w->mask->count;
        for (int64_t i = chunk * CHUNK; i < past; i += STEP) {
            const int64_t n = past - i < STEP ? past - i : STEP;
            int32_t some = 0;
            read_mask(set, w->mask, i, n);
            for (int64_t k = 0; k < n; ++k)
                some += set[k];
            count += some;
        }
        w->starts[chunk + 1] = count;
    }
}

/* Fills starts; returns how many are set. */
static int64_t count_set(struct mask_work *w)
{
    const int64_t chunks = chunks_of(w->mask->count);
    pool_for(chunks, 1, count_chunks, w);
    w->starts[0] = 0;
    for (int64_t i = 0; i < chunks; ++i)
        w->starts[i + 1] += w->starts[i];
    return w->starts[chunks];
}

static bool mask_work_begin(struct mask_work *w, const struct view *mask)
{
    *w = (struct mask_work){.mask = mask};
    w->starts = pool_scratch(2, (size_t)(chunks_of(mask->count) + 1) * sizeof *w->starts);
    return w->starts != NULL;
}

bool mask_count(const struct view *mask, int64_t *count)
{
    struct mask_work w;
    *count = 0;
    if (mask->count == 0)
        return true;
    if (!mask_work_begin(&w, mask))
        return false;
    *count = count_set(&w);
    return true;
}

/* Positions within [i, i + n) of the set elements; returns how many. Branch-free: masks are unpredictable. */
static int64_t list_set(const struct view *mask, int64_t i, int64_t n, int64_t *list)
{
    uint8_t set[STEP];
    int64_t count = 0;
    read_mask(set, mask, i, n);
    for (int64_t k = 0; k < n; ++k) {
        list[count] = i + k;
        count += set[k];
    }
    return count;
}

static void write_coordinates(const struct mask_work *w, const int64_t *list, int64_t count, int64_t at)
{
    const int ndim = w->mask->ndim;
    const int64_t along = w->dim_major ? 1 : ndim, across = w->dim_major ? w->limit : 1;
    if (ndim == 1) {
        memcpy(w->positions + at, list, (size_t)count * sizeof *list);
        return;
    }
    for (int64_t k = 0; k < count; ++k) {
        int64_t position = list[k];
        for (int d = ndim - 1; d >= 0; --d) {
            w->positions[(at + k) * along + d * across] = position % w->mask->sizes[d];
            position /= w->mask->sizes[d];
        }
    }
}

static void place_chunks(void *argument, int64_t begin, int64_t end)
{
    const struct mask_work *const w = argument;
    int64_t list[STEP + 1];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        int64_t at = w->starts[chunk];
        const int64_t past = (chunk + 1) * CHUNK < w->mask->count ? (chunk + 1) * CHUNK : w->mask->count;
        for (int64_t i = chunk * CHUNK; i < past && at < w->limit; i += STEP) {
            int64_t count = list_set(w->mask, i, past - i < STEP ? past - i : STEP, list);
            count = count < w->limit - at ? count : w->limit - at;
            write_coordinates(w, list, count, at);
            at += count;
        }
    }
}

static void place_set(struct mask_work *w, int64_t *out, int dim_major, int64_t limit)
{
    w->positions = out;
    w->dim_major = dim_major;
    w->limit = limit;
    pool_for(chunks_of(w->mask->count), 1, place_chunks, w);
}

bool mask_positions(const struct view *mask, int64_t *out, int dim_major, int64_t limit)
{
    struct mask_work w;
    if (mask->count == 0 || limit == 0)
        return true;
    if (!mask_work_begin(&w, mask))
        return false;
    count_set(&w);
    place_set(&w, out, dim_major, limit);
    return true;
}

/* --- masked_select, masked_scatter ------------------------------------------------------------------------------------------ */

/* Between elements of a strided view (by position) and consecutive ones of a one-dimensional view. */
static void move_chunks(void *argument, int64_t begin, int64_t end)
{
    const struct mask_work *const w = argument;
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)w->each->dtype);
    const int size = move_size((enum dtype)w->each->dtype);
    const int64_t stride = w->packed->strides[0];
    int64_t list[STEP + 1];
    for (int64_t chunk = begin; chunk < end; ++chunk) {
        int64_t at = w->starts[chunk];
        const int64_t past = (chunk + 1) * CHUNK < w->mask->count ? (chunk + 1) * CHUNK : w->mask->count;
        for (int64_t i = chunk * CHUNK; i < past; i += STEP) {
            const int64_t count = list_set(w->mask, i, past - i < STEP ? past - i : STEP, list);
            for (int64_t k = 0; k < count && !w->each->contiguous; ++k)
                list[k] = walk_offset(list[k], w->each->ndim, w->each->sizes, w->each->strides);
            char *const packed = w->packed->data + at * stride * bytes;
            if (w->scatters)
                kernels->index->scatter[size](w->each->data, 0, packed, stride, list, 1, count);
            else
                kernels->index->gather[size](packed, stride, w->each->data, 0, list, 1, count);
            at += count;
        }
    }
}

/* The handle whose shape the run sets. */
struct mask_job {
    struct awaited_shape shape;
};

static int no_memory(const struct plan *plan)
{
    return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory to work through the mask");
}

/* Operands: self, mask, out. */
static int masked_select_run(struct plan *plan)
{
    struct view self = plan->operands[0], mask = plan->operands[1], out = plan->operands[2];
    struct mask_work w;
    int64_t sizes[TENSOR_MAX_DIMS], count = 0;
    uint8_t ndim;
    view_broadcast_sizes(&self, &mask, sizes, &ndim);
    view_expand(&self, sizes, ndim);
    view_expand(&mask, sizes, ndim);
    if (mask.count > 0) {
        if (!mask_work_begin(&w, &mask))
            return no_memory(plan);
        count = count_set(&w);
        if (count > out.count)
            return error_set(ACLNN_ERROR_PARAM, "aclnnMaskedSelect", "out has room for %lld elements, the mask selects %lld",
                             (long long)out.count, (long long)count);
        w.each = &self;
        w.packed = &out;
        pool_for(chunks_of(mask.count), 1, move_chunks, &w);
    }
    awaited_answer(&PLAN_IMMEDIATE(plan, struct mask_job)->shape, 1, &count);
    return 0;
}

static int masked_select_checked(struct plan *plan, const aclTensor *self, const aclTensor *mask, aclTensor *out)
{
    struct view *from, *which, *to;
    int64_t sizes[TENSOR_MAX_DIMS];
    uint8_t ndim;
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_input(plan, mask, "mask", &which));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_same_dtype(plan, from, "self", to, "out"));
    if (which->dtype != DTYPE_B8 && which->dtype != DTYPE_U8)
        return error_set(ACLNN_ERROR_PARAM, "aclnnMaskedSelect", "mask has data type %s; b8 and u8 are allowed",
                         dtype_name((enum dtype)which->dtype));
    if (!view_broadcast_sizes(from, which, sizes, &ndim))
        return error_set(ACLNN_ERROR_PARAM, "aclnnMaskedSelect", "self is %s and mask is %s; they don't broadcast", view_text(from),
                         view_text(which));
    if (to->ndim != 1 || !to->contiguous)
        return error_set(ACLNN_ERROR_PARAM, "aclnnMaskedSelect", "out is %s; it is contiguous and has one dimension",
                         view_text(to));
    return 0;
}

aclnnStatus aclnnMaskedSelectGetWorkspaceSize(const aclTensor *self, const aclTensor *mask, aclTensor *out, uint64_t *workspaceSize,
                                              aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_MaskedSelect, masked_select_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, masked_select_checked(plan, self, mask, out));
    PLAN_IMMEDIATE(plan, struct mask_job)->shape = awaited_begin(out);
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(MaskedSelect)

/* Operands: selfRef, mask, source. */
static int masked_scatter_run(struct plan *plan)
{
    const struct view *const self = &plan->operands[0];
    struct view mask = plan->operands[1], source = plan->operands[2], flat = source;
    struct mask_work w;
    view_expand(&mask, self->sizes, self->ndim);
    if (mask.count == 0)
        return 0;
    if (!mask_work_begin(&w, &mask))
        return no_memory(plan);
    const int64_t count = count_set(&w);
    if (count > source.count)
        return error_set(ERROR_RT_DEVICE_TASK, "aclnnInplaceMaskedScatter", "the mask selects %lld elements, source has %lld",
                         (long long)count, (long long)source.count);
    if (!source.contiguous) {
        flat.data = pool_scratch(0, (size_t)source.count * dtype_bytes((enum dtype)source.dtype));
        if (!flat.data)
            return no_memory(plan);
        tile_gather(flat.data, &source, 0, count);
    }
    flat.strides[0] = 1;
    w.each = self;
    w.packed = &flat;
    w.scatters = true;
    pool_for(chunks_of(mask.count), 1, move_chunks, &w);
    return 0;
}

static int masked_scatter_checked(struct plan *plan, aclTensor *self, const aclTensor *mask, const aclTensor *source)
{
    struct view *to, *which, *from;
    TRY(plan_inout(plan, self, "selfRef", &to));
    TRY(plan_input(plan, mask, "mask", &which));
    TRY(plan_input(plan, source, "source", &from));
    TRY(check_same_dtype(plan, to, "selfRef", from, "source"));
    struct view wide = *which;
    if (which->dtype != DTYPE_B8 && which->dtype != DTYPE_U8)
        return error_set(ACLNN_ERROR_PARAM, "aclnnInplaceMaskedScatter", "mask has data type %s; b8 and u8 are allowed",
                         dtype_name((enum dtype)which->dtype));
    if (!view_expand(&wide, to->sizes, to->ndim))
        return error_set(ACLNN_ERROR_PARAM, "aclnnInplaceMaskedScatter", "mask is %s and doesn't broadcast to selfRef %s",
                         view_text(which), view_text(to));
    return check_output_not_expanded(plan, to, "selfRef");
}

aclnnStatus aclnnInplaceMaskedScatterGetWorkspaceSize(aclTensor *selfRef, const aclTensor *mask, const aclTensor *source,
                                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_InplaceMaskedScatter, masked_scatter_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, masked_scatter_checked(plan, selfRef, mask, source));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceMaskedScatter)

/* --- nonzero ------------------------------------------------------------------------------------------------------------------- */

/* Operands: self, out. */
static int nonzero_run(struct plan *plan)
{
    const struct view *const self = &plan->operands[0], *const out = &plan->operands[1];
    const bool dim_major = plan->operator_id == OPERATOR_NonzeroV2;
    const int64_t rank = self->ndim;
    struct mask_work w;
    int64_t count = 0;
    if (self->count > 0) {
        if (!mask_work_begin(&w, self))
            return no_memory(plan);
        count = count_set(&w);
    }
    if (count * rank > out->count)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "out has room for %lld numbers, %lld are needed",
                         (long long)out->count, (long long)(count * rank));
    if (count > 0)
        place_set(&w, (int64_t *)(void *)out->data, dim_major, count);
    const int64_t sizes[2] = {dim_major ? rank : count, dim_major ? count : rank};
    awaited_answer(&PLAN_IMMEDIATE(plan, struct mask_job)->shape, 2, sizes);
    return 0;
}

static int nonzero_plan(enum operator_id id, const aclTensor *self, aclTensor *out, uint64_t *workspace_size,
                        aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    TRY(plan_begin(id, nonzero_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &from));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_REQUIRE(plan, to->dtype == DTYPE_I64 && to->ndim == 2 && to->contiguous, ACLNN_ERROR_PARAM,
                 "%s: out is %s; it is contiguous i64 with two dimensions", operator_name(id), view_text(to));
    PLAN_IMMEDIATE(plan, struct mask_job)->shape = awaited_begin(out);
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnNonzeroGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return nonzero_plan(OPERATOR_Nonzero, self, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Nonzero)

aclnnStatus aclnnNonzeroV2GetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return nonzero_plan(OPERATOR_NonzeroV2, self, out, workspaceSize, executor);
}
ACLNN_PHASE_2(NonzeroV2)
