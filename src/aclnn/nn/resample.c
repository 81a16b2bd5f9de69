/* The engine of separable operators. See resample.h. */
#include "aclnn/nn/resample.h"

#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnn/nn/staging.h"
#include "kernels/kernels.h"
#include "kernels/resample.h"

enum { FROM, TO };

struct resample {
    struct staging staging;
    int axes, order[RESAMPLE_AXES]; /* order: of the passes, those that shrink come first */
    int64_t planes, most;           /* most: elements of any intermediate */
    enum accumulate type;
    struct resample_table tables[RESAMPLE_AXES];
};

/* --- tables ----------------------------------------------------------------------------------------------------------- */

struct table_room {
    int32_t *begin, *index;
    double *weight;
};

static void fill_forward(const struct resample_axis *axis, const struct table_room *room)
{
    int32_t count = 0;
    for (int64_t o = 0; o < axis->out; ++o) {
        room->begin[o] = count;
        count += (int32_t)axis->terms(axis, o, room->index + count, room->weight + count);
    }
    room->begin[axis->out] = count;
}

/* Element i of the input receives from the elements of the output that read it, in their order. */
static void turn_round(const struct resample_axis *axis, const struct table_room *from, const struct table_room *to)
{
    const int32_t count = from->begin[axis->out];
    memset(to->begin, 0, (size_t)(axis->in + 2) * sizeof *to->begin);
    for (int32_t e = 0; e < count; ++e)
        ++to->begin[from->index[e] + 2];
    for (int64_t i = 0; i < axis->in; ++i)
        to->begin[i + 2] += to->begin[i + 1];
    for (int64_t o = 0; o < axis->out; ++o)
        for (int32_t e = from->begin[o]; e < from->begin[o + 1]; ++e) {
            const int32_t at = to->begin[from->index[e] + 1]++;
            to->index[at] = (int32_t)o;
            to->weight[at] = from->weight[e];
        }
}

static size_t table_bytes(const struct resample_axis *axis)
{
    const int64_t terms = axis->out * axis->most, ends = axis->in > axis->out ? axis->in : axis->out;
    return (size_t)(terms * (int64_t)(sizeof(double) + sizeof(int32_t)) + (ends + 2 + 2) / 2 * 8 + 8);
}

/* Takes a table's room from *memory. */
static struct table_room take_room(const struct resample_axis *axis, char **memory)
{
    const int64_t terms = axis->out * axis->most;
    struct table_room room;
    room.weight = (double *)(void *)*memory;
    room.index = (int32_t *)(void *)(room.weight + terms);
    room.begin = room.index + terms;
    *memory += table_bytes(axis) / 8 * 8;
    return room;
}

static int make_tables(struct plan *plan, const struct resample_request *q, const struct resample_axis *axes, struct resample *r)
{
    size_t bytes = 0;
    void *memory;
    for (int a = 0; a < q->axes; ++a) {
        REQUIRE(axes[a].out < INT32_MAX / axes[a].most && axes[a].in < INT32_MAX, ACLNN_ERROR_PARAM,
                "%s: a dimension of %lld elements, made of %lld each, is too long", operator_name(q->id), (long long)axes[a].out,
                (long long)axes[a].most);
        bytes += 2 * table_bytes(&axes[a]);
    }
    TRY(plan_extra(plan, bytes, &memory));
    char *at = memory;
    for (int a = 0; a < q->axes; ++a) {
        const struct table_room forward = take_room(&axes[a], &at), turned = take_room(&axes[a], &at);
        fill_forward(&axes[a], &forward);
        if (q->backward)
            turn_round(&axes[a], &forward, &turned);
        const struct table_room *const used = q->backward ? &turned : &forward;
        r->tables[a] = (struct resample_table){.in = q->backward ? axes[a].out : axes[a].in,
                                               .out = q->backward ? axes[a].in : axes[a].out,
                                               .begin = used->begin,
                                               .index = used->index,
                                               .weight = used->weight};
    }
    return 0;
}

/* --- weighted sums ---------------------------------------------------------------------------------------------------- */

struct resample_job {
    const struct resample *r;
    const char *from;
    char *to;
    _Atomic int failed;
};

static void run_plane(const struct resample *r, const char *from, char *to, char *const room[2])
{
    int64_t sizes[RESAMPLE_AXES];
    for (int a = 0; a < r->axes; ++a)
        sizes[a] = r->tables[a].in;
    for (int step = 0; step < r->axes; ++step) {
        const int a = r->order[step];
        char *const target = step == r->axes - 1 ? to : room[step % 2];
        int64_t outer = 1, inner = 1;
        for (int k = 0; k < r->axes; ++k)
            if (k != a)
                *(k < a ? &outer : &inner) *= sizes[k];
        kernels->resample->pass[r->type](from, target, outer, inner, &r->tables[a]);
        sizes[a] = r->tables[a].out;
        from = target;
    }
}

static void run_planes(void *argument, int64_t begin, int64_t end)
{
    struct resample_job *const j = argument;
    const struct resample *const r = j->r;
    const int64_t bytes = accumulate_bytes(r->type);
    char *const room[] = {pool_scratch(0, (size_t)(r->most * bytes)), pool_scratch(1, (size_t)(r->most * bytes))};
    int64_t in = bytes, out = bytes;
    if (!room[0] || !room[1]) {
        j->failed = 1;
        return;
    }
    for (int a = 0; a < r->axes; ++a) {
        in *= r->tables[a].in;
        out *= r->tables[a].out;
    }
    for (int64_t plane = begin; plane < end; ++plane)
        run_plane(r, j->from + plane * in, j->to + plane * out, room);
}

static int run_sums(struct plan *plan)
{
    const struct resample *const r = PLAN_IMMEDIATE(plan, struct resample);
    if (plan->operands[TO].count == 0)
        return 0;
    struct resample_job j = {.r = r};
    j.from = stage_read(plan, &r->staging, FROM);
    j.to = stage_target(plan, &r->staging, TO);
    if (plan->operands[FROM].count == 0)
        memset(j.to, 0, (size_t)(plan->operands[TO].count * accumulate_bytes(r->type)));
    else
        parallel_for(r->planes, 4 * r->most, run_planes, &j);
    stage_write_back(plan, &r->staging, TO);
    REQUIRE(!j.failed, ERROR_RT_MEMORY_ALLOCATION, "%s: no memory for %lld elements of a plane", plan_name(plan),
            (long long)r->most);
    return 0;
}

/* --- copies ----------------------------------------------------------------------------------------------------------- */

/* Rows of the last dimension, in the tensors' own memory and type. */
static void copy_rows(void *argument, int64_t begin, int64_t end)
{
    const struct plan *const plan = argument;
    const struct resample *const r = PLAN_IMMEDIATE(plan, struct resample);
    const struct view *const from = &plan->operands[FROM], *const to = &plan->operands[TO];
    const struct resample_table *const last = &r->tables[r->axes - 1];
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)to->dtype);
    const int d = to->ndim - 1;
    for (int64_t row = begin; row < end; ++row) {
        int64_t left = row, in = 0, out = 0;
        for (int k = d - 1; k >= 0; --k) {
            const int64_t at = left % to->sizes[k];
            const int axis = k - (to->ndim - r->axes);
            left /= to->sizes[k];
            out += at * to->strides[k];
            in += (axis >= 0 ? r->tables[axis].index[at] : at) * from->strides[k];
        }
        kernels->resample->gather[__builtin_ctz((unsigned)bytes)](to->data + out * bytes, to->strides[d], from->data + in * bytes,
                                                                  from->strides[d], last->index, last->out);
    }
}

static int run_copies(struct plan *plan)
{
    const struct view *const to = &plan->operands[TO];
    const int64_t width = to->sizes[to->ndim - 1];
    if (to->count > 0)
        parallel_for(to->count / width, width, copy_rows, plan);
    return 0;
}

/* --- phase 1 ---------------------------------------------------------------------------------------------------------- */

static int set_axes(const struct plan *plan, const struct resample_request *q, struct resample *r, struct resample_axis *axes)
{
    const struct view *const from = &plan->operands[FROM], *const to = &plan->operands[TO];
    const int leading = from->ndim - q->axes;
    REQUIRE(from->ndim == to->ndim && (leading == 1 || leading == 2), ACLNN_ERROR_PARAM,
            "%s: %s is %s and %s %s; both must have %d or %d dimensions", operator_name(q->id), q->from_name, view_text(from),
            q->to_name, view_text(to), q->axes + 1, q->axes + 2);
    r->axes = q->axes;
    r->planes = 1;
    for (int d = 0; d < leading; ++d) {
        REQUIRE(from->sizes[d] == to->sizes[d], ACLNN_ERROR_PARAM, "%s: %s %s and %s %s differ in batch or channels",
                operator_name(q->id), q->from_name, view_text(from), q->to_name, view_text(to));
        r->planes *= from->sizes[d];
    }
    for (int a = 0; a < q->axes; ++a) {
        axes[a] = q->axis[a];
        axes[a].in = (q->backward ? to : from)->sizes[leading + a];
        axes[a].out = (q->backward ? from : to)->sizes[leading + a];
        axes[a].narrow = from->dtype != DTYPE_F64;
        REQUIRE(axes[a].in > 0 || axes[a].out == 0, ACLNN_ERROR_PARAM, "%s: dimension %d of the input is empty",
                operator_name(q->id), leading + a);
        if (q->ready)
            TRY(q->ready(q, a, &axes[a]));
    }
    return 0;
}

/* Shrinking passes first; `most` is what the intermediates need. */
static void set_order(struct resample *r)
{
    int count = 0;
    for (int growing = 0; growing < 2; ++growing)
        for (int a = r->axes - 1; a >= 0; --a)
            if ((r->tables[a].out > r->tables[a].in) == growing)
                r->order[count++] = a;
    int64_t elements = 1;
    for (int a = 0; a < r->axes; ++a)
        elements *= r->tables[a].in > 0 ? r->tables[a].in : 1;
    r->most = elements;
    for (int step = 0; step < r->axes; ++step) {
        const struct resample_table *const t = &r->tables[r->order[step]];
        elements = elements / (t->in > 0 ? t->in : 1) * t->out;
        r->most = elements > r->most ? elements : r->most;
    }
}

int resample_plan(const struct resample_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *from, *to;
    struct resample_axis axes[RESAMPLE_AXES];
    const bool copies = q->copies && !q->backward;
    TRY(plan_begin(q->id, copies ? run_copies : run_sums, workspace_size, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, q->from, q->from_name, &from));
    PLAN_TRY(plan, plan_output(plan, q->to, q->to_name, &to));
    struct resample *const r = PLAN_IMMEDIATE(plan, struct resample);
    stage_begin(&r->staging);
    PLAN_TRY(plan, check_same_dtype(plan, from, q->from_name, to, q->to_name));
    if (!copies)
        PLAN_TRY(plan, check_floating(plan, from, q->from_name));
    PLAN_TRY(plan, set_axes(plan, q, r, axes));
    PLAN_TRY(plan, make_tables(plan, q, axes, r));
    if (!copies) {
        r->type = accumulate_of((enum dtype)from->dtype);
        set_order(r);
        stage_operand(plan, &r->staging, from, r->type);
        stage_operand(plan, &r->staging, to, r->type);
    }
    return plan_finish(plan, r->staging.bytes, workspace_size, executor);
}
