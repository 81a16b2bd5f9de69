/* Contiguous operands for network operators. See staging.h. */
#include "aclnn/nn/staging.h"

#include "base/pool.h"
#include "kernels/kernels.h"

enum { ALIGNMENT = 64, PIECE_COST = 16384 };

void stage_begin(struct staging *s)
{
    for (int i = 0; i < PLAN_OPERANDS; ++i)
        s->offset[i] = -1;
    s->bytes = 0;
}

int64_t stage_reserve(struct staging *s, uint64_t bytes)
{
    const int64_t offset = (int64_t)s->bytes;
    s->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return offset;
}

void stage_operand(struct plan *plan, struct staging *s, const struct view *view, enum accumulate type)
{
    const int index = (int)(view - plan->operands);
    s->type[index] = (uint8_t)type;
    if (!view->data || view->count == 0)
        return;
    if (view->contiguous && accumulate_is_native((enum dtype)view->dtype, type))
        return;
    s->offset[index] = stage_reserve(s, (uint64_t)view->count * (uint64_t)accumulate_bytes(type));
}

int stage_values(struct plan *plan, struct staging *s, int operand, int64_t count, const char *parameter, enum accumulate type)
{
    const struct view *const v = &plan->operands[operand];
    if (v->dtype == DTYPE_NONE)
        return 0;
    REQUIRE(v->count == count && dtype_is_floating((enum dtype)v->dtype), ACLNN_ERROR_PARAM,
            "%s: %s is %s; it must hold %lld floating values", plan_name(plan), parameter, view_text(v), (long long)count);
    stage_operand(plan, s, v, type);
    return 0;
}

struct copy_job {
    struct view view; /* coalesced; at least one dimension */
    char *memory;
    int64_t element; /* bytes in memory */
    convert_load_fn load;
    convert_store_fn store;
    int64_t inner, inner_stride;
};

/* Address of row `row` (all dimensions but the last). */
static char *row_address(const struct view *v, int64_t row)
{
    int64_t offset = 0;
    for (int d = v->ndim - 2; d >= 0; --d) {
        offset += row % v->sizes[d] * v->strides[d];
        row /= v->sizes[d];
    }
    return v->data + offset * (int64_t)dtype_bytes((enum dtype)v->dtype);
}

static void copy_rows(void *argument, int64_t begin, int64_t end)
{
    const struct copy_job *const job = argument;
    for (int64_t row = begin; row < end; ++row) {
        char *const home = row_address(&job->view, row), *const tile = job->memory + row * job->inner * job->element;
        if (job->load)
            job->load(tile, home, job->inner_stride, job->inner);
        else
            job->store(home, job->inner_stride, tile, job->inner);
    }
}

/* One long row: cut it, so that threads share it. */
static void split_long_row(struct view *v)
{
    enum { ROW = 4096 };
    if (v->ndim != 1 || v->sizes[0] < 2 * ROW || v->sizes[0] % ROW != 0)
        return;
    v->ndim = 2;
    v->sizes[1] = ROW;
    v->strides[1] = v->strides[0];
    v->sizes[0] /= ROW;
    v->strides[0] *= ROW;
}

static void copy_view(const struct view *view, enum accumulate type, void *memory, bool load)
{
    if (view->count == 0)
        return;
    struct copy_job job = {.view = *view, .memory = memory, .element = accumulate_bytes(type)};
    if (load)
        job.load = kernels->convert->load[view->dtype][type];
    else
        job.store = kernels->convert->store[view->dtype][type];
    views_coalesce(&job.view, 1);
    split_long_row(&job.view);
    job.inner = job.view.sizes[job.view.ndim - 1];
    job.inner_stride = job.view.strides[job.view.ndim - 1];
    parallel_for(view->count / job.inner, job.inner, copy_rows, &job);
}

void stage_load(const struct view *view, enum accumulate type, void *memory) { copy_view(view, type, memory, true); }

void stage_store(const struct view *view, enum accumulate type, const void *memory)
{
    copy_view(view, type, (void *)(uintptr_t)memory, false);
}

const void *stage_read(struct plan *plan, const struct staging *s, int operand)
{
    const struct view *const view = &plan->operands[operand];
    if (!view->data)
        return NULL;
    if (s->offset[operand] < 0)
        return view->data;
    void *const memory = stage_room(plan, s->offset[operand]);
    stage_load(view, (enum accumulate)s->type[operand], memory);
    return memory;
}

void *stage_target(struct plan *plan, const struct staging *s, int operand)
{
    struct view *const view = &plan->operands[operand];
    return s->offset[operand] < 0 ? view->data : stage_room(plan, s->offset[operand]);
}

void stage_write_back(struct plan *plan, const struct staging *s, int operand)
{
    const struct view *const view = &plan->operands[operand];
    if (view->data && s->offset[operand] >= 0)
        stage_store(view, (enum accumulate)s->type[operand], stage_room(plan, s->offset[operand]));
}

void parallel_for(int64_t count, int64_t cost, pool_body_fn body, void *argument)
{
    const int64_t least = cost >= PIECE_COST ? 1 : PIECE_COST / (cost > 0 ? cost : 1);
    const int64_t shared = count / (8 * (int64_t)pool_threads());
    pool_for(count, shared > least ? shared : least, body, argument);
}
