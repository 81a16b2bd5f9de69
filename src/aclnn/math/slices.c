/* Operators that are a few strided copies: StridedSlice, SplitWithSize. */
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"

/* The part [begin, begin + size) of a dimension. */
static void narrow(struct view *v, int d, int64_t begin, int64_t size)
{
    v->data += begin * v->strides[d] * (int64_t)dtype_bytes((enum dtype)v->dtype);
    v->sizes[d] = size;
    view_refresh(v);
}

/* --- copies of views ----------------------------------------------------------------------------------------------------- */

/* The immediate is the view of operand 0, without its address, that operand 1 becomes. */
struct rearranged {
    struct view in, out; /* data: bytes from the operands' own addresses */
};

static int run_rearranged(struct plan *plan)
{
    struct rearranged r = *PLAN_IMMEDIATE(plan, struct rearranged);
    r.in.data = plan->operands[0].data + (intptr_t)r.in.data;
    r.out.data = plan->operands[1].data + (intptr_t)r.out.data;
    if (r.out.count > 0)
        view_copy(&r.out, &r.in);
    return 0;
}

/* Begins a plan of two operands; both views start as these. */
static int begin_rearranged(enum operator_id id, const aclTensor *self, const aclTensor *out, uint64_t *workspace_size,
                            aclOpExecutor **executor, struct plan **plan)
{
    TRY(plan_begin(id, run_rearranged, workspace_size, executor, plan));
    PLAN_TRY(*plan, plan_input(*plan, self, "self", NULL));
    PLAN_TRY(*plan, plan_output(*plan, out, "out", NULL));
    const struct view *const in = &(*plan)->operands[0], *const to = &(*plan)->operands[1];
    PLAN_TRY(*plan, check_same_dtype(*plan, in, "self", to, "out"));
    struct rearranged *const r = PLAN_IMMEDIATE(*plan, struct rearranged);
    r->in = *in;
    r->out = *to;
    r->in.data = r->out.data = NULL;
    return 0;
}

/* --- strided slices ------------------------------------------------------------------------------------------------------ */

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* One dimension from begin to end (beyond it) by a stride; negative ones count from the end. */
static int slice_dimension(const struct plan *plan, struct view *v, int d, int64_t begin, int64_t end, int64_t stride)
{
    const int64_t size = v->sizes[d], bytes = (int64_t)dtype_bytes((enum dtype)v->dtype);
    REQUIRE(stride != 0, ACLNN_ERROR_PARAM, "%s: strides[%d] is 0", plan_name(plan), d);
    const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
    begin = clamp(begin < 0 && begin != INT64_MIN ? begin + size : begin, low, high);
    end = clamp(end < 0 && end != INT64_MIN ? end + size : end, low, high);
    const int64_t span = stride > 0 ? end - begin : begin - end, step = stride > 0 ? stride : -stride;
    v->sizes[d] = span > 0 ? (span + step - 1) / step : 0;
    if (v->sizes[d] > 0)
        v->data += begin * v->strides[d] * bytes;
    v->strides[d] *= stride;
    return 0;
}

static void remove_dimension(struct view *v, int d)
{
    --v->ndim;
    for (int k = d; k < v->ndim; ++k) {
        v->sizes[k] = v->sizes[k + 1];
        v->strides[k] = v->strides[k + 1];
    }
}

struct slice {
    const aclIntArray *begin, *end, *strides;
    int64_t begin_mask, end_mask, shrink_mask;
};

static int slice_view(const struct plan *plan, const struct slice *s, struct view *v)
{
    const int count = (int)s->begin->count, all = v->ndim;
    for (int d = 0; d < count; ++d) {
        const int64_t stride = s->strides ? s->strides->values[d] : 1;
        const int64_t begin = s->begin_mask >> d & 1 ? (stride > 0 ? 0 : v->sizes[d] - 1) : s->begin->values[d];
        if (s->shrink_mask >> d & 1) {
            const int64_t at = begin < 0 ? begin + v->sizes[d] : begin;
            REQUIRE(at >= 0 && at < v->sizes[d], ACLNN_ERROR_PARAM, "%s: begin[%d] is %lld, but the dimension has %lld elements",
                    plan_name(plan), d, (long long)begin, (long long)v->sizes[d]);
            TRY(slice_dimension(plan, v, d, at, at + 1, 1));
            continue;
        }
        const int64_t end = s->end_mask >> d & 1 ? (stride > 0 ? v->sizes[d] : INT64_MIN) : s->end->values[d];
        TRY(slice_dimension(plan, v, d, begin, end, stride));
    }
    for (int d = all - 1; d >= 0; --d)
        if (d < count && (s->shrink_mask >> d & 1))
            remove_dimension(v, d);
    view_refresh(v);
    return 0;
}

aclnnStatus aclnnStridedSliceGetWorkspaceSize(const aclTensor *self, const aclIntArray *begin, const aclIntArray *end,
                                              const aclIntArray *strides, int64_t beginMask, int64_t endMask, int64_t ellipsisMask,
                                              int64_t newAxisMask, int64_t shrinkAxisMask, aclTensor *out, uint64_t *workspaceSize,
                                              aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(begin_rearranged(OPERATOR_StridedSlice, self, out, workspaceSize, executor, &plan));
    struct rearranged *const r = PLAN_IMMEDIATE(plan, struct rearranged);
    PLAN_TRY(plan, check_not_null(plan, begin, "begin"));
    PLAN_TRY(plan, check_not_null(plan, end, "end"));
    PLAN_REQUIRE(plan, ellipsisMask == 0 && newAxisMask == 0, ACLNN_ERROR_PARAM,
                 "aclnnStridedSlice: ellipsisMask is %lld and newAxisMask %lld; only 0 is supported", (long long)ellipsisMask,
                 (long long)newAxisMask);
    PLAN_REQUIRE(plan, begin->count == end->count && (!strides || strides->count == begin->count) && begin->count <= r->in.ndim,
                 ACLNN_ERROR_PARAM, "aclnnStridedSlice: begin has %llu values, end %llu; at most one a dimension of %s",
                 (unsigned long long)begin->count, (unsigned long long)end->count, view_text(&plan->operands[0]));
    const struct slice s = {begin, end, strides, beginMask, endMask, shrinkAxisMask};
    PLAN_TRY(plan, slice_view(plan, &s, &r->in));
    PLAN_TRY(plan, check_sizes(plan, &plan->operands[1], "out", r->in.sizes, r->in.ndim));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(StridedSlice)

/* --- split ---------------------------------------------------------------------------------------------------------------- */

/* Operand: self; extra views: the parts. */
static int run_split(struct plan *plan)
{
    const int d = (int)plan->immediate.i[0];
    int64_t begin = 0;
    for (int64_t i = 0; i < plan->extra_view_count; ++i) {
        const struct view *const part = &plan->extra_views[i];
        struct view from = plan->operands[0];
        narrow(&from, d, begin, part->sizes[d]);
        if (part->count > 0)
            view_copy(part, &from);
        begin += part->sizes[d];
    }
    return 0;
}

static int take_parts(struct plan *plan, const aclIntArray *sizes, const aclTensorList *out, int d)
{
    const struct view *const self = &plan->operands[0];
    void *memory;
    int64_t total = 0;
    REQUIRE(sizes->count == out->count, ACLNN_ERROR_PARAM, "%s: %llu sizes for %llu tensors", plan_name(plan),
            (unsigned long long)sizes->count, (unsigned long long)out->count);
    TRY(plan_extra(plan, out->count * sizeof(struct view), &memory));
    plan->extra_views = memory;
    for (uint64_t i = 0; i < out->count; ++i) {
        int64_t wanted[TENSOR_MAX_DIMS];
        TRY(check_not_null(plan, out->tensors[i], "an entry of out"));
        const struct view *const part = &out->tensors[i]->view;
        memcpy(wanted, self->sizes, sizeof wanted);
        wanted[d] = sizes->values[i];
        TRY(check_sizes(plan, part, "an entry of out", wanted, self->ndim));
        TRY(check_same_dtype(plan, self, "self", part, "an entry of out"));
        REQUIRE(part->data || part->count == 0, ACLNN_ERROR_NULLPTR, "%s: out[%llu] has elements but no memory", plan_name(plan),
                (unsigned long long)i);
        plan->extra_views[plan->extra_view_count++] = *part;
        total += part->sizes[d];
    }
    REQUIRE(total == self->sizes[d], ACLNN_ERROR_PARAM, "%s: the sizes add up to %lld, but dimension %d of %s has %lld",
            plan_name(plan), (long long)total, d, view_text(self), (long long)self->sizes[d]);
    return 0;
}

aclnnStatus aclnnSplitWithSizeGetWorkspaceSize(const aclTensor *self, const aclIntArray *splitSize, int64_t dim, aclTensorList *out,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in;
    int d;
    TRY(plan_begin(OPERATOR_SplitWithSize, run_split, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, check_not_null(plan, splitSize, "splitSize"));
    PLAN_TRY(plan, check_not_null(plan, out, "out"));
    PLAN_REQUIRE(plan, in->ndim > 0, ACLNN_ERROR_PARAM, "aclnnSplitWithSize: self has no dimension to split");
    PLAN_TRY(plan, check_dim(plan, dim, in, "dim", &d));
    plan->immediate.i[0] = d;
    PLAN_TRY(plan, take_parts(plan, splitSize, out, d));
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(SplitWithSize)
