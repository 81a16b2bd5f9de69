/* Binary search in sorted sequences, and one-hot vectors. */
#include <stdatomic.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/scalar_element.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/index.h"
#include "kernels/kernels.h"

enum { ITEM = 1 << 13 };

/* --- searchsorted, bucketize -------------------------------------------------------------------------------------------------- */

struct search_job {
    bool right;
    struct aclScalar scalar;
};

struct search_work {
    struct view values, out;     /* values.data NULL: the scalar stands for all */
    const void *sequences;       /* contiguous, of `type`; one for each line of values, or one for all */
    int64_t length, line, lines; /* of a sequence; values that search the same one; sequences */
    enum accumulate type;
    bool right;
    double scalar;
};

/* The first place whose element isn't below the value (or, from the right, is above it). NaN is above everything. */
#define SEARCH(tag, A)                                                                                              \
    static int64_t search_##tag(const A *sequence, int64_t n, A value, bool right)                                  \
    {                                                                                                               \
        int64_t low = 0, high = n;                                                                                  \
        while (low < high) {                                                                                        \
            const int64_t middle = low + (high - low) / 2;                                                          \
            const A x = sequence[middle];                                                                           \
            if (right ? !(x > value) : !(x >= value))                                                               \
                low = middle + 1;                                                                                   \
            else                                                                                                    \
                high = middle;                                                                                      \
        }                                                                                                           \
        return low;                                                                                                 \
    }
SEARCH(f64, double)
SEARCH(i64, int64_t)

static void search_range(void *argument, int64_t begin, int64_t end)
{
    const struct search_work *const w = argument;
    double tile[TILE];
    int64_t places[TILE];
    for (int64_t at = begin; at < end; at += TILE) {
        const int64_t n = least(TILE, end - at);
        if (w->values.data)
            tile_read(tile, w->type, &w->values, at, n);
        else
            tile[0] = w->scalar;
        for (int64_t i = 0; i < n; ++i) {
            const int64_t first = (w->lines > 1 ? (at + i) / w->line : 0) * w->length;
            if (w->type == ACCUMULATE_F64)
                places[i] = search_f64((const double *)w->sequences + first, w->length, tile[i], w->right);
            else
                places[i] = search_i64((const int64_t *)w->sequences + first, w->length, ((const int64_t *)(const void *)tile)[i],
                                       w->right);
        }
        tile_write(&w->out, at, n, places, ACCUMULATE_I64);
    }
}

/* The sequences in the order that the sorter gives them, contiguous. */
static int read_sequences(struct plan *plan, enum accumulate type, int64_t length, void **sequences)
{
    const struct view *const from = &plan->operands[0], *const sorter = &plan->operands[2];
    const int64_t count = from->count;
    int64_t *const ordered = pool_scratch(0, (size_t)(3 * count + 1) * 8), *const plain = ordered + count;
    if (!ordered)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for a sequence of %lld elements", (long long)count);
    *sequences = sorter->data ? (void *)ordered : (void *)plain;
    tile_read(plain, type, from, 0, count);
    if (!sorter->data)
        return 0;
    int64_t *const order = plain + count;
    tile_read(order, ACCUMULATE_I64, sorter, 0, count);
    for (int64_t i = 0; i < count; ++i) {
        if (order[i] < 0 || order[i] >= length)
            return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "sorter has index %lld for sequences of %lld elements",
                             (long long)order[i], (long long)length);
        ordered[i] = plain[i / length * length + order[i]];
    }
    return 0;
}

/* Operands: sequence, values (or absent), sorter (or absent), out. */
static int search_run(struct plan *plan)
{
    struct search_job *const job = PLAN_IMMEDIATE(plan, struct search_job);
    const struct view *const sequence = &plan->operands[0], *const values = &plan->operands[1];
    struct search_work w = {.values = *values, .out = plan->operands[3], .right = job->right};
    void *sequences = NULL;
    if (w.out.count == 0)
        return 0;
    const bool integers =
        accumulate_of((enum dtype)sequence->dtype) == ACCUMULATE_I64 &&
        (values->data ? accumulate_of((enum dtype)values->dtype) == ACCUMULATE_I64 : dtype_kind(job->scalar.dtype) <= KIND_INTEGER);
    w.type = integers ? ACCUMULATE_I64 : ACCUMULATE_F64;
    w.length = sequence->ndim ? sequence->sizes[sequence->ndim - 1] : 1;
    w.lines = w.length ? sequence->count / w.length : 0;
    w.line = w.out.ndim ? w.out.sizes[w.out.ndim - 1] : 1;
    if (integers)
        memcpy(&w.scalar, &(int64_t){values->data ? 0 : scalar_to_int64(&job->scalar)}, sizeof w.scalar);
    else
        w.scalar = values->data ? 0 : scalar_to_double(&job->scalar);
    TRY(read_sequences(plan, w.type, w.length, &sequences));
    w.sequences = sequences;
    pool_for(w.out.count, ITEM, search_range, &w);
    return 0;
}

static int search_checked(struct plan *plan, const aclTensor *sequence, const aclTensor *values, const aclScalar *scalar,
                          const aclTensor *sorter, bool out_int32, aclTensor *out)
{
    struct view *from, *wanted, *order, *to;
    TRY(plan_input(plan, sequence, "sortedSequence", &from));
    TRY(scalar ? plan_optional(plan, NULL, ROLE_INPUT, "self", &wanted) : plan_input(plan, values, "self", &wanted));
    TRY(plan_optional(plan, sorter, ROLE_INPUT, "sorter", &order));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_not_complex(plan, from, "sortedSequence"));
    TRY(check_output_not_expanded(plan, to, "out"));
    if (to->dtype != (out_int32 ? DTYPE_I32 : DTYPE_I64))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "out has data type %s; outInt32 is %s",
                         dtype_name((enum dtype)to->dtype), out_int32 ? "true" : "false");
    if (scalar) {
        TRY(check_sizes(plan, to, "out", NULL, 0));
    } else {
        TRY(check_not_complex(plan, wanted, "self"));
        TRY(check_sizes(plan, to, "out", wanted->sizes, wanted->ndim));
    }
    if (order->data && (order->dtype != DTYPE_I64 || !view_same_sizes(order, from)))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "sorter is %s; it is i64 with the sizes of sortedSequence %s",
                         view_text(order), view_text(from));
    const bool one = from->ndim <= 1;
    if (!one && (scalar || from->ndim != wanted->ndim || memcmp(from->sizes, wanted->sizes, (from->ndim - 1u) * 8) != 0))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                         "sortedSequence is %s and self is %s; all but the last sizes must be equal", view_text(from),
                         view_text(wanted));
    return 0;
}

struct search_request {
    enum operator_id id;
    const aclTensor *sequence, *values; /* values NULL: scalar instead */
    const aclScalar *scalar;
    const aclTensor *sorter;
    bool out_int32, right;
    aclTensor *out;
};

static int search_plan(const struct search_request *q, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(q->id, search_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, search_checked(plan, q->sequence, q->values, q->scalar, q->sorter, q->out_int32, q->out));
    struct search_job *const job = PLAN_IMMEDIATE(plan, struct search_job);
    job->right = q->right;
    if (q->scalar)
        job->scalar = *q->scalar;
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnSearchSortedGetWorkspaceSize(const aclTensor *sortedSequence, const aclTensor *self, bool outInt32, bool right,
                                              const aclTensor *sorter, aclTensor *out, uint64_t *workspaceSize,
                                              aclOpExecutor **executor)
{
    const struct search_request q = {OPERATOR_SearchSorted, sortedSequence, self, NULL, sorter, outInt32, right, out};
    return search_plan(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(SearchSorted)

aclnnStatus aclnnSearchSortedsGetWorkspaceSize(const aclTensor *sortedSequence, const aclScalar *self, bool outInt32, bool right,
                                               const aclTensor *sorter, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    REQUIRE(self, ACLNN_ERROR_NULLPTR, "self is null");
    const struct search_request q = {OPERATOR_SearchSorteds, sortedSequence, NULL, self, sorter, outInt32, right, out};
    return search_plan(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(SearchSorteds)

aclnnStatus aclnnBucketizeGetWorkspaceSize(const aclTensor *self, const aclTensor *boundaries, bool outInt32, bool right,
                                           aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct search_request q = {OPERATOR_Bucketize, boundaries, self, NULL, NULL, outInt32, right, out};
    return search_plan(&q, workspaceSize, executor);
}
ACLNN_PHASE_2(Bucketize)

/* --- one_hot: operands self, onValue, offValue, out ------------------------------------------------------------------------------- */

struct one_hot_job {
    int64_t classes;
    int axis;
};

/* Classes out of range leave their vector "off", as upstream's operator does. */
static int one_hot_run(struct plan *plan)
{
    const struct one_hot_job *const job = PLAN_IMMEDIATE(plan, struct one_hot_job);
    const struct view *const self = &plan->operands[0], *const out = &plan->operands[3];
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)out->dtype);
    int64_t others[TENSOR_MAX_DIMS], sizes[TENSOR_MAX_DIMS], classes[TILE];
    int n = 0;
    struct view off = plan->operands[2];
    view_expand(&off, out->sizes, out->ndim);
    if (out->count == 0)
        return 0;
    view_copy(out, &off);
    for (int d = 0; d < out->ndim; ++d)
        if (d != job->axis) {
            sizes[n] = out->sizes[d];
            others[n++] = out->strides[d];
        }
    for (int64_t at = 0; at < self->count; at += TILE) {
        const int64_t count = least(TILE, self->count - at);
        tile_read(classes, ACCUMULATE_I64, self, at, count);
        for (int64_t i = 0; i < count; ++i)
            if (classes[i] >= 0 && classes[i] < job->classes)
                kernels->index->move[move_size((enum dtype)out->dtype)](
                    out->data + (walk_offset(at + i, n, sizes, others) + classes[i] * out->strides[job->axis]) * bytes, 1,
                    plan->operands[1].data, 1, 1);
    }
    return 0;
}

static int one_hot_checked(struct plan *plan, const aclTensor *self, int64_t classes, const aclTensor *on, const aclTensor *off,
                           int64_t axis, aclTensor *out)
{
    struct one_hot_job *const job = PLAN_IMMEDIATE(plan, struct one_hot_job);
    struct view *from, *set, *unset, *to;
    TRY(plan_input(plan, self, "self", &from));
    TRY(plan_input(plan, on, "onValue", &set));
    TRY(plan_input(plan, off, "offValue", &unset));
    TRY(plan_output(plan, out, "out", &to));
    TRY(check_same_dtype(plan, set, "onValue", to, "out"));
    TRY(check_same_dtype(plan, unset, "offValue", to, "out"));
    if (dtype_kind((enum dtype)from->dtype) != KIND_INTEGER)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "self is %s; it has integers, the classes", view_text(from));
    TRY(check_output_not_expanded(plan, to, "out"));
    if (set->count != 1 || unset->count != 1)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "onValue is %s and offValue is %s; they hold one value each",
                         view_text(set), view_text(unset));
    if (from->ndim >= TENSOR_MAX_DIMS)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "self has %d dimensions; at most %d are allowed", from->ndim,
                         TENSOR_MAX_DIMS - 1);
    TRY(check_dim(plan, axis, to, "axis", &job->axis));
    job->classes = classes;
    int64_t sizes[TENSOR_MAX_DIMS];
    for (int d = 0; d <= from->ndim; ++d)
        sizes[d] = d < job->axis ? from->sizes[d] : d == job->axis ? classes : from->sizes[d - 1];
    return check_sizes(plan, to, "out", sizes, from->ndim + 1);
}

aclnnStatus aclnnOneHotGetWorkspaceSize(const aclTensor *self, int numClasses, const aclTensor *onValue, const aclTensor *offValue,
                                        int64_t axis, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(OPERATOR_OneHot, one_hot_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, one_hot_checked(plan, self, numClasses, onValue, offValue, axis, out));
    return finish_by_size(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(OneHot)
