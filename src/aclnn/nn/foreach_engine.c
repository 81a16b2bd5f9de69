/* Plans over lists of tensors. See foreach.h. */
#include "aclnn/nn/foreach.h"

#include "base/pool.h"

static int check_lists(enum operator_id id, int lists, const struct aclTensorList *const *tensors, const char *const *names)
{
    const char *const name = operator_name(id);
    for (int k = 0; k < lists; ++k) {
        REQUIRE(tensors[k], ACLNN_ERROR_NULLPTR, "%s: %s is null", name, names[k]);
        REQUIRE(tensors[k]->count == tensors[0]->count, ACLNN_ERROR_PARAM, "%s: %s has %llu tensors and %s has %llu", name,
                names[k], (unsigned long long)tensors[k]->count, names[0], (unsigned long long)tensors[0]->count);
        for (uint64_t i = 0; i < tensors[k]->count; ++i) {
            const struct aclTensor *const t = tensors[k]->tensors[i];
            REQUIRE(t, ACLNN_ERROR_NULLPTR, "%s: %s[%llu] is null", name, names[k], (unsigned long long)i);
            if (t->view.dtype == DTYPE_NONE && plan_stored_dtype(id, t, ROLE_BOTH) == DTYPE_NONE)
                return plan_refuse_dtype(id, t, names[k]);
            REQUIRE(t->view.data || t->view.count == 0, ACLNN_ERROR_NULLPTR, "%s: %s[%llu] has elements but no memory", name,
                    names[k], (unsigned long long)i);
        }
    }
    return 0;
}

static int check_item(enum operator_id id, const struct view *views, int lists, int64_t item, const char *const *names)
{
    TRY(elementwise_check_output(id, &views[0], names[0]));
    for (int k = 1; k < lists; ++k) {
        REQUIRE(view_same_sizes(&views[0], &views[k]), ACLNN_ERROR_PARAM,
                "%s: %s[%lld] is %s and %s[%lld] is %s; shapes must agree", operator_name(id), names[k], (long long)item,
                view_text(&views[k]), names[0], (long long)item, view_text(&views[0]));
        REQUIRE(!elementwise_overlaps(&views[0], &views[k]), ACLNN_ERROR_PARAM,
                "%s: %s[%lld] partly overlaps %s[%lld]; they must be the same memory or lie apart", operator_name(id), names[k],
                (long long)item, names[0], (long long)item);
    }
    return 0;
}

int foreach_begin(struct plan *plan, int lists, const struct aclTensorList *const *tensors, const char *const *names,
                  enum foreach_shapes shapes, struct foreach_job **job_out)
{
    const enum operator_id id = (enum operator_id)plan->operator_id;
    TRY(check_lists(id, lists, tensors, names));
    const size_t count = tensors[0]->count;
    struct foreach_job *const job = foreach_job_of(plan);
    *job = (struct foreach_job){.count = (int64_t)count, .lists = lists, .operands = lists, .cost = 1};
    const size_t view_bytes = count * (size_t)lists * sizeof(struct view), item_bytes = count * sizeof(struct foreach_item);
    char *memory;
    TRY(plan_extra(plan, view_bytes + item_bytes + (count + 1) * sizeof(int64_t), (void **)&memory));
    plan->extra_views = (struct view *)(void *)memory;
    plan->extra_view_count = (int64_t)count * lists;
    job->items = (struct foreach_item *)(void *)(memory + view_bytes);
    job->starts = (int64_t *)(void *)(memory + view_bytes + item_bytes);
    for (size_t i = 0; i < count; ++i) {
        struct view *const views = plan->extra_views + i * (size_t)lists;
        for (int k = 0; k < lists; ++k) {
            views[k] = tensors[k]->tensors[i]->view;
            if (views[k].dtype == DTYPE_NONE)
                views[k].dtype = (uint8_t)plan_stored_dtype(id, tensors[k]->tensors[i], ROLE_BOTH);
        }
        if (shapes == FOREACH_SAME_SHAPES)
            TRY(check_item(id, views, lists, (int64_t)i, names));
        job->starts[i + 1] = job->starts[i] + views[0].count;
    }
    plan->task.flags = 0;
    *job_out = job;
    return 0;
}

double foreach_read(const struct view *v, int64_t element)
{
    double value;
    convert_elements(&value, DTYPE_F64, v->data + element * (int64_t)dtype_bytes((enum dtype)v->dtype), (enum dtype)v->dtype, 1);
    return value;
}

/* --- running ------------------------------------------------------------------------------------------------------- */

struct foreach_work {
    const struct plan *plan;
    const struct foreach_job *job;
};

static void add_constant(struct strided_loop *loop, const struct foreach_job *job, const struct foreach_item *item)
{
    if (!job->device_constant) {
        loop_add_constant(loop, (enum dtype)item->constant_dtype, item->constant, (enum dtype)item->compute);
        return;
    }
    struct view single = *job->device_constant;
    single.ndim = 0;
    loop_add(loop, &single, (enum dtype)item->compute);
}

/* A scalar in device memory, one for all items or one for each, in the form that kernels of the type `compute` take. */
static void read_parameter(const struct view *v, int64_t item, enum dtype compute, union elementwise_scalar *scalar)
{
    const enum dtype_kind kind = dtype_kind(compute);
    const int64_t at = v->count > 1 ? item * v->strides[0] : 0;
    convert_elements(scalar,
                     kind == KIND_COMPLEX ? DTYPE_C128
                     : kind == KIND_FLOAT ? DTYPE_F64
                                          : DTYPE_I64,
                     v->data + at * (int64_t)dtype_bytes((enum dtype)v->dtype), (enum dtype)v->dtype, 1);
}

static void item_scalars(const struct foreach_work *work, int64_t i, union elementwise_scalar *scalars)
{
    const struct foreach_job *const job = work->job;
    if (job->scalars) {
        job->scalars(work->plan, job, i, scalars);
    } else if (job->device_parameter) {
        read_parameter(job->device_parameter, i, (enum dtype)job->items[i].compute, scalars);
    } else {
        scalars[0] = job->items[i].parameter;
    }
}

static void run_item(const struct foreach_work *work, int64_t i, int64_t begin, int64_t end)
{
    const struct foreach_job *const job = work->job;
    const struct foreach_item *const item = &job->items[i];
    struct strided_loop loop;
    loop_begin_with(&loop, item->run, job->cost);
    for (int k = 0; k < job->operands; ++k) {
        if (k > 0 && job->constant_at == k)
            add_constant(&loop, job, item);
        const enum dtype dtype = (enum dtype)(k == 0 ? item->result : item->compute);
        if (job->updated >> k & 1)
            loop_add_updated(&loop, foreach_view(work->plan, job, i, k), dtype);
        else
            loop_add(&loop, foreach_view(work->plan, job, i, k), dtype);
    }
    if (job->constant_at == job->operands)
        add_constant(&loop, job, item);
    if (!loop_ready(&loop))
        return; /* shapes were checked in phase 1 */
    loop.check = item->check;
    loop.checked = 0;
    loop.found = job->found;
    item_scalars(work, i, loop.scalars);
    loop_range(&loop, begin, end);
}

static void foreach_body(void *argument, int64_t begin, int64_t end)
{
    const struct foreach_work *const work = argument;
    const int64_t *const starts = work->job->starts;
    int64_t low = 0, high = work->job->count;
    while (high - low > 1) { /* the last tensor that starts at or before `begin` */
        const int64_t middle = (low + high) / 2;
        if (starts[middle] <= begin)
            low = middle;
        else
            high = middle;
    }
    for (int64_t i = low; begin < end; ++i) {
        const int64_t until = starts[i + 1] < end ? starts[i + 1] : end;
        if (begin < until) {
            run_item(work, i, begin - starts[i], until - starts[i]);
            begin = until;
        }
    }
}

int foreach_run(struct plan *plan)
{
    struct foreach_job *const job = foreach_job_of(plan);
    struct foreach_work work = {plan, job};
    const int64_t total = job->starts[job->count];
    if (total > 0)
        pool_for(total, loop_grain(job->cost), foreach_body, &work);
    return 0;
}
