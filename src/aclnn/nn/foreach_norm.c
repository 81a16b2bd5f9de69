/* Norms of a list of tensors, one number each. Pieces are summed in a fixed order: the result doesn't depend on threads. */
#include <math.h>

#include "aclnn/nn/foreach.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/optimizer.h"

enum { NORM_PIECE = 16384 };

/* What a piece of a tensor adds up to; pieces lie in the plan's workspace, tensor by tensor. */
struct norm_work {
    const struct plan *plan;
    const struct foreach_job *job;
    enum norm_kind kind;
    double power;
    double *pieces;
};

static int64_t pieces_of(int64_t count) { return (count + NORM_PIECE - 1) / NORM_PIECE; }

static enum norm_kind kind_of(double power)
{
    return power == 0                   ? NORM_COUNT
           : power == 1                 ? NORM_ABS
           : power == 2                 ? NORM_SQUARE
           : power == (double)INFINITY  ? NORM_MAX
           : power == -(double)INFINITY ? NORM_MIN
                                        : NORM_POWER;
}

static double join(enum norm_kind kind, double a, double b)
{
    if (kind == NORM_MAX)
        return a > b || isnan(a) ? a : b;
    if (kind == NORM_MIN)
        return a < b || isnan(a) ? a : b;
    return a + b;
}

/* One piece; strided or narrow elements come through tiles. */
static double norm_piece(const struct norm_work *work, const struct view *v, int64_t begin, int64_t end)
{
    const enum dtype compute = dtype_compute((enum dtype)v->dtype);
    double (*const kernel)(const void *, size_t, double) = kernels->optimizer->norm[work->kind][compute];
    const int64_t bytes = (int64_t)dtype_bytes((enum dtype)v->dtype);
    if (v->contiguous && compute == (enum dtype)v->dtype)
        return kernel(v->data + begin * bytes, (size_t)(end - begin), work->power);
    double total = work->kind == NORM_MIN ? (double)INFINITY : 0;
    _Alignas(64) char tile[LOOP_TILE * sizeof(double)];
    for (int64_t at = begin; at < end; at += LOOP_TILE) {
        const int64_t n = end - at < LOOP_TILE ? end - at : LOOP_TILE;
        read_elements(v, at, n, compute, tile);
        total = join(work->kind, total, kernel(tile, (size_t)n, work->power));
    }
    return total;
}

static void norm_body(void *argument, int64_t begin, int64_t end)
{
    const struct norm_work *const work = argument;
    int64_t item = 0, first = 0;
    for (int64_t p = begin; p < end; ++p) {
        const struct view *v = foreach_view(work->plan, work->job, item, 1);
        while (p - first >= pieces_of(v->count)) {
            first += pieces_of(v->count);
            v = foreach_view(work->plan, work->job, ++item, 1);
        }
        const int64_t from = (p - first) * NORM_PIECE, left = v->count - from;
        work->pieces[p] = norm_piece(work, v, from, from + (left < NORM_PIECE ? left : NORM_PIECE));
    }
}

static int run_norm(struct plan *plan)
{
    const struct foreach_job *const job = foreach_job_of(plan);
    struct norm_work work = {plan, job, kind_of(job->numbers[0]), job->numbers[0], plan->workspace};
    pool_for((int64_t)(plan->workspace_bytes / sizeof(double)), 1, norm_body, &work);
    const double *piece = work.pieces;
    for (int64_t i = 0; i < job->count; ++i) {
        const struct view *const out = foreach_view(plan, job, i, 0);
        const int64_t pieces = pieces_of(foreach_view(plan, job, i, 1)->count);
        double total = work.kind == NORM_MIN && pieces > 0 ? (double)INFINITY : 0;
        for (int64_t p = 0; p < pieces; ++p)
            total = join(work.kind, total, *piece++);
        if (work.kind == NORM_SQUARE)
            total = sqrt(total);
        else if (work.kind == NORM_POWER)
            total = pow(total, 1 / work.power);
        convert_elements(out->data, (enum dtype)out->dtype, &total, DTYPE_F64, 1);
    }
    return 0;
}

aclnnStatus aclnnForeachNormGetWorkspaceSize(const aclTensorList *x, const aclScalar *scalar, const aclTensorList *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const aclTensorList *const lists[] = {out, x};
    static const char *const names[] = {"out", "x"};
    struct plan *plan;
    struct foreach_job *job;
    REQUIRE(scalar, ACLNN_ERROR_NULLPTR, "aclnnForeachNorm: scalar is null");
    TRY(plan_begin(OPERATOR_ForeachNorm, run_norm, workspaceSize, executor, &plan));
    PLAN_TRY(plan, foreach_begin(plan, 2, lists, names, FOREACH_ANY_SHAPE, &job));
    uint64_t pieces = 0;
    for (int64_t i = 0; i < job->count; ++i) {
        const struct view *const to = foreach_view(plan, job, i, 0), *const from = foreach_view(plan, job, i, 1);
        PLAN_REQUIRE(plan, to->count == 1, ACLNN_ERROR_PARAM, "aclnnForeachNorm: out[%lld] is %s; it must have one element",
                     (long long)i, view_text(to));
        PLAN_REQUIRE(plan, dtype_is_floating((enum dtype)from->dtype) && dtype_is_floating((enum dtype)to->dtype),
                     ACLNN_ERROR_PARAM, "aclnnForeachNorm: x[%lld] is %s and out[%lld] %s; floats are needed", (long long)i,
                     dtype_name((enum dtype)from->dtype), (long long)i, dtype_name((enum dtype)to->dtype));
        pieces += (uint64_t)pieces_of(from->count);
    }
    job->numbers[0] = scalar_to_double(scalar);
    return plan_finish(plan, pieces * sizeof(double), workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachNorm)
