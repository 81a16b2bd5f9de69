/* Distances between rows (cdist, pdist) and slices cut down to a norm (renorm). Coordinates are taken in double precision. */
#include <math.h>
#include <string.h>

#include "aclnn/math/operand_check.h"
#include "aclnn/math/strided_loop.h"
#include "aclnn/math/tile.h"
#include "aclnnop/all_operators.h"
#include "base/arithmetic.h"
#include "base/pool.h"
#include "kernels/distance.h"
#include "kernels/kernels.h"

enum { ITEM = 1 << 14 };

static int check_power(const struct plan *plan, double p)
{
    if (p >= 0)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "p is %g; a number of at least 0 is wanted", p);
}

/* --- distances ------------------------------------------------------------------------------------------------------------- */

/* The immediates of a plan. Points are rows of `size` coordinates; with other_points a batch has that many distances a point. */
struct distance_job {
    double p;
    int64_t size, points, other_points;
};

/* Rows of operands as doubles, in the workspace. */
struct distance_work {
    const struct plan *plan;
    struct distance_job job;
    const double *first, *second;
    _Atomic bool *starved; /* a thread had no memory for its sums */
};

static int64_t row_bytes(int64_t count) { return count * (int64_t)sizeof(double); }

static void read_doubles(void *argument, int64_t begin, int64_t end)
{
    const struct view *const v = ((const struct view *const *)argument)[0];
    double *const out = ((double *const *)argument)[1];
    for (int64_t at = begin; at < end; at += LOOP_TILE)
        read_elements(v, at, least(LOOP_TILE, end - at), DTYPE_F64, out + at);
}

static void take_rows(const struct view *v, double *out)
{
    const void *argument[] = {v, out};
    if (v->count > 0)
        pool_for(v->count, ITEM / LOOP_TILE * LOOP_TILE, read_doubles, argument);
}

/* The points of operands 0 and 1. */
static struct distance_work both_sets(const struct plan *plan)
{
    double *const first = plan->workspace, *const second = first + plan->operands[0].count;
    take_rows(&plan->operands[0], first);
    take_rows(&plan->operands[1], second);
    return (struct distance_work){plan, *PLAN_IMMEDIATE(plan, struct distance_job), first, second, NULL};
}

/* Item i is point i of all batches; its distances are a row of the output. */
static void measure(void *argument, int64_t begin, int64_t end)
{
    const struct distance_work *const w = argument;
    const struct distance_job *const job = &w->job;
    double row[TILE];
    for (int64_t i = begin; i < end; ++i) {
        const double *const x = w->first + i * job->size, *const others =
                                                              w->second + i / job->points * job->other_points * job->size;
        for (int64_t at = 0; at < job->other_points; at += TILE) {
            const int64_t n = least(TILE, job->other_points - at);
            for (int64_t k = 0; k < n; ++k)
                row[k] = kernels->distance->distance(x, others + (at + k) * job->size, job->size, job->p);
            tile_write(&w->plan->operands[2], i * job->other_points + at, n, row, ACCUMULATE_F64);
        }
    }
}

/* Operands: x1, x2, out. */
static int cdist_run(struct plan *plan)
{
    const struct view *const out = &plan->operands[2];
    if (out->count == 0)
        return 0;
    struct distance_work w = both_sets(plan);
    pool_for(out->count / w.job.other_points, 1 + ITEM / (1 + w.job.other_points * w.job.size), measure, &w);
    return 0;
}

/* The two sets of points, of one batch, and the sizes of all pairs' distances. */
static int add_points(struct plan *plan, const aclTensor *x1, const aclTensor *x2, int64_t *pairs)
{
    struct view *a, *b;
    TRY(plan_input(plan, x1, "x1", &a));
    TRY(plan_input(plan, x2, "x2", &b));
    TRY(check_floating(plan, a, "x1"));
    TRY(check_same_dtype(plan, a, "x1", b, "x2"));
    const int n = a->ndim;
    if (n < 2 || b->ndim != n || a->sizes[n - 1] != b->sizes[n - 1] ||
        memcmp(a->sizes, b->sizes, (size_t)(n - 2) * sizeof a->sizes[0]) != 0)
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "x1 is %s, x2 is %s; rows of one length in one batch are wanted",
                         view_text(a), view_text(b));
    memcpy(pairs, a->sizes, (size_t)n * sizeof *pairs);
    pairs[n - 1] = b->sizes[n - 2];
    struct distance_job *const job = PLAN_IMMEDIATE(plan, struct distance_job);
    job->size = a->sizes[n - 1];
    job->points = a->sizes[n - 2];
    job->other_points = b->sizes[n - 2];
    return 0;
}

static int add_floats(struct plan *plan, const aclTensor *tensor, const char *name, bool output, const int64_t *sizes, int ndim)
{
    struct view *v;
    TRY(output ? plan_output(plan, tensor, name, &v) : plan_input(plan, tensor, name, &v));
    TRY(check_same_dtype(plan, &plan->operands[0], "x1", v, name));
    TRY(check_sizes(plan, v, name, sizes, ndim));
    return output ? check_output_not_expanded(plan, v, name) : 0;
}

/* computeMode chooses between ways to compute that agree within rounding; there is one here. */
aclnnStatus aclnnCdistGetWorkspaceSize(const aclTensor *x1, const aclTensor *x2, float p, int64_t compute_mode, aclTensor *out,
                                       uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    int64_t pairs[TENSOR_MAX_DIMS];
    TRY(plan_begin(OPERATOR_Cdist, cdist_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_points(plan, x1, x2, pairs));
    PLAN_TRY(plan, check_power(plan, (double)p));
    PLAN_REQUIRE(plan, compute_mode >= 0 && compute_mode <= 2, ACLNN_ERROR_PARAM,
                 "aclnnCdist: compute_mode is %lld; 0, 1 and 2 are allowed", (long long)compute_mode);
    PLAN_TRY(plan, add_floats(plan, out, "out", true, pairs, plan->operands[0].ndim));
    PLAN_IMMEDIATE(plan, struct distance_job)->p = (double)p;
    return plan_finish(plan, (uint64_t)row_bytes(plan->operands[0].count + plan->operands[1].count), workspaceSize, executor);
}
ACLNN_PHASE_2(Cdist)

/* --- gradient of cdist ------------------------------------------------------------------------------------------------------ */

/* Operands: x1, x2, grad, cdist, out. Item i is point i of all batches. */
static void add_slopes(void *argument, int64_t begin, int64_t end)
{
    const struct distance_work *const w = argument;
    const struct distance_job *const job = &w->job;
    double *const sums = pool_scratch(0, (size_t)row_bytes(most(1, job->size)));
    if (!sums) {
        *w->starved = true;
        return;
    }
    double scales[TILE], distances[TILE];
    for (int64_t i = begin; i < end; ++i) {
        const double *const x = w->first + i * job->size, *const others =
                                                              w->second + i / job->points * job->other_points * job->size;
        memset(sums, 0, (size_t)row_bytes(job->size));
        for (int64_t at = 0; at < job->other_points; at += TILE) {
            const int64_t n = least(TILE, job->other_points - at), first = i * job->other_points + at;
            tile_read(scales, ACCUMULATE_F64, &w->plan->operands[2], first, n);
            tile_read(distances, ACCUMULATE_F64, &w->plan->operands[3], first, n);
            for (int64_t k = 0; k < n; ++k) {
                const double *const y = others + (at + k) * job->size;
                /* The largest difference is looked for by its value, which the stored distance has been rounded away from. */
                const double whole =
                    job->p == (double)INFINITY ? kernels->distance->distance(x, y, job->size, job->p) : distances[k];
                kernels->distance->add_gradient(sums, x, y, job->size, job->p, whole, scales[k]);
            }
        }
        tile_write(&w->plan->operands[4], i * job->size, job->size, sums, ACCUMULATE_F64);
    }
}

static int cdist_backward_run(struct plan *plan)
{
    const struct view *const out = &plan->operands[4];
    if (out->count == 0)
        return 0;
    _Atomic bool starved = false;
    struct distance_work w = both_sets(plan);
    w.starved = &starved;
    pool_for(out->count / w.job.size, 1 + ITEM / (1 + w.job.other_points * w.job.size), add_slopes, &w);
    REQUIRE(!starved, ERROR_BAD_ALLOC, "aclnnCdistBackward: no memory for a row of %lld numbers", (long long)w.job.size);
    return 0;
}

aclnnStatus aclnnCdistBackwardGetWorkspaceSize(const aclTensor *grad, const aclTensor *x1, const aclTensor *x2,
                                               const aclTensor *cdist, float p, aclTensor *out, uint64_t *workspaceSize,
                                               aclOpExecutor **executor)
{
    struct plan *plan;
    int64_t pairs[TENSOR_MAX_DIMS];
    TRY(plan_begin(OPERATOR_CdistBackward, cdist_backward_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, add_points(plan, x1, x2, pairs));
    PLAN_TRY(plan, check_power(plan, (double)p));
    const int ndim = plan->operands[0].ndim;
    PLAN_TRY(plan, add_floats(plan, grad, "grad", false, pairs, ndim));
    PLAN_TRY(plan, add_floats(plan, cdist, "cdist", false, pairs, ndim));
    PLAN_TRY(plan, add_floats(plan, out, "out", true, plan->operands[0].sizes, ndim));
    PLAN_IMMEDIATE(plan, struct distance_job)->p = (double)p;
    return plan_finish(plan, (uint64_t)row_bytes(plan->operands[0].count + plan->operands[1].count), workspaceSize, executor);
}
ACLNN_PHASE_2(CdistBackward)

/* --- distances within one set ------------------------------------------------------------------------------------------------ */

/* Item i is point i: its distances to the later ones. Operands: self, out. */
static void measure_within(void *argument, int64_t begin, int64_t end)
{
    const struct distance_work *const w = argument;
    const struct distance_job *const job = &w->job;
    double row[TILE];
    for (int64_t i = begin; i < end; ++i) {
        const int64_t place = i * (2 * job->points - i - 1) / 2, later = job->points - 1 - i;
        for (int64_t at = 0; at < later; at += TILE) {
            const int64_t n = least(TILE, later - at);
            for (int64_t k = 0; k < n; ++k)
                row[k] = kernels->distance->distance(w->first + i * job->size, w->first + (i + 1 + at + k) * job->size, job->size,
                                                     job->p);
            tile_write(&w->plan->operands[1], place + at, n, row, ACCUMULATE_F64);
        }
    }
}

static int pdist_run(struct plan *plan)
{
    struct distance_work w = {.plan = plan, .job = *PLAN_IMMEDIATE(plan, struct distance_job), .first = plan->workspace};
    take_rows(&plan->operands[0], plan->workspace);
    if (plan->operands[1].count > 0)
        pool_for(w.job.points, 1 + ITEM / (1 + w.job.points * w.job.size), measure_within, &w);
    return 0;
}

aclnnStatus aclnnPdistGetWorkspaceSize(const aclTensor *self, float p, aclTensor *out, uint64_t *workspaceSize,
                                       aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *to;
    TRY(plan_begin(OPERATOR_Pdist, pdist_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_input(plan, self, "self", &in));
    PLAN_TRY(plan, check_floating(plan, in, "self"));
    PLAN_TRY(plan, check_power(plan, (double)p));
    PLAN_REQUIRE(plan, in->ndim == 2, ACLNN_ERROR_PARAM, "aclnnPdist: self is %s; a matrix of points is wanted", view_text(in));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    const int64_t points = in->sizes[0];
    PLAN_REQUIRE(plan, points < (int64_t)1 << 31, ACLNN_ERROR_PARAM, "aclnnPdist: self is %s; so many pairs can't be counted",
                 view_text(in));
    const int64_t pairs = points * (points - 1) / 2;
    PLAN_TRY(plan, check_sizes(plan, to, "out", &pairs, 1));
    PLAN_TRY(plan, check_same_dtype(plan, in, "self", to, "out"));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    *PLAN_IMMEDIATE(plan, struct distance_job) = (struct distance_job){.p = (double)p, .size = in->sizes[1], .points = points};
    return plan_finish(plan, (uint64_t)row_bytes(in->count), workspaceSize, executor);
}
ACLNN_PHASE_2(Pdist)

/* --- slices of at most a norm ------------------------------------------------------------------------------------------------ */

struct renorm_job {
    double p, most;
    int dim;
};

struct renorm_work {
    const struct plan *plan;
    struct renorm_job job;
};

static struct view slice_of(const struct view *v, int dim, int64_t index)
{
    struct view slice = *v;
    slice.data += index * v->strides[dim] * (int64_t)dtype_bytes((enum dtype)v->dtype);
    for (int d = dim; d + 1 < v->ndim; ++d) {
        slice.sizes[d] = v->sizes[d + 1];
        slice.strides[d] = v->strides[d + 1];
    }
    --slice.ndim;
    view_refresh(&slice);
    return slice;
}

static double norm_of(const struct view *slice, double p)
{
    complex64_pair tile[LOOP_TILE];
    double sizes[LOOP_TILE], sum = 0;
    const double zeros[LOOP_TILE] = {0};
    for (int64_t at = 0; at < slice->count; at += LOOP_TILE) {
        const int64_t n = least(LOOP_TILE, slice->count - at);
        read_elements(slice, at, n, DTYPE_C128, tile);
        for (int64_t i = 0; i < n; ++i)
            sizes[i] = hypot(tile[i].re, tile[i].im);
        const double part = kernels->distance->distance(sizes, zeros, n, p);
        if (p == (double)INFINITY)
            sum = part > sum || part != part ? part : sum;
        else
            sum += p == 0 ? part : pow(part, p);
    }
    return p == 0 || p == (double)INFINITY ? sum : pow(sum, 1 / p);
}

static void shrink_slices(void *argument, int64_t begin, int64_t end)
{
    const struct renorm_work *const w = argument;
    complex64_pair tile[LOOP_TILE];
    char narrow[LOOP_TILE * sizeof(complex64_pair)];
    for (int64_t index = begin; index < end; ++index) {
        const struct view in = slice_of(&w->plan->operands[0], w->job.dim, index);
        const struct view out = slice_of(&w->plan->operands[w->plan->operand_count - 1], w->job.dim, index);
        const double norm = norm_of(&in, w->job.p), factor = norm > w->job.most ? w->job.most / (norm + 1e-7) : 1;
        for (int64_t at = 0; at < in.count; at += LOOP_TILE) {
            const int64_t n = least(LOOP_TILE, in.count - at);
            read_elements(&in, at, n, DTYPE_C128, tile);
            for (int64_t i = 0; i < n; ++i)
                tile[i] = (complex64_pair){tile[i].re * factor, tile[i].im * factor};
            convert_elements(narrow, (enum dtype)out.dtype, tile, DTYPE_C128, n);
            tile_scatter(&out, at, n, narrow);
        }
    }
}

static int renorm_run(struct plan *plan)
{
    struct renorm_work w = {plan, *PLAN_IMMEDIATE(plan, struct renorm_job)};
    const struct view *const in = &plan->operands[0];
    if (in->count > 0)
        pool_for(in->sizes[w.job.dim], 1 + ITEM / (in->count / in->sizes[w.job.dim]), shrink_slices, &w);
    return 0;
}

static int renorm_plan(enum operator_id id, const aclTensor *self, const aclScalar *p, int64_t dim, const aclScalar *max_norm,
                       const aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *in, *to;
    TRY(plan_begin(id, renorm_run, workspace_size, executor, &plan));
    struct renorm_job *const job = PLAN_IMMEDIATE(plan, struct renorm_job);
    if (out) {
        PLAN_TRY(plan, plan_input(plan, self, "self", &in));
        PLAN_TRY(plan, plan_output(plan, out, "out", &to));
        PLAN_TRY(plan, check_sizes(plan, to, "out", in->sizes, in->ndim));
        PLAN_TRY(plan, check_same_dtype(plan, in, "self", to, "out"));
        plan->copes_with_same = 1;
    } else {
        PLAN_TRY(plan, plan_inout(plan, self, "selfRef", &in));
        to = in;
    }
    if (dtype_kind((enum dtype)in->dtype) != KIND_COMPLEX)
        PLAN_TRY(plan, check_floating(plan, in, "self"));
    PLAN_TRY(plan, check_output_not_expanded(plan, to, "out"));
    PLAN_TRY(plan, check_not_null(plan, p, "p"));
    PLAN_TRY(plan, check_not_null(plan, max_norm, "maxNorm"));
    PLAN_TRY(plan, check_dim(plan, dim, in, "dim", &job->dim));
    PLAN_REQUIRE(plan, in->ndim > 1, ACLNN_ERROR_PARAM, "%s: self is %s; at least 2 dimensions are wanted", operator_name(id),
                 view_text(in));
    job->p = scalar_to_double(p);
    job->most = scalar_to_double(max_norm);
    PLAN_REQUIRE(plan, job->p > 0 && job->most >= 0, ACLNN_ERROR_PARAM,
                 "%s: p is %g, maxNorm is %g; p > 0 and maxNorm >= 0 are wanted", operator_name(id), job->p, job->most);
    return finish_by_size(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnRenormGetWorkspaceSize(const aclTensor *self, const aclScalar *p, int64_t dim, const aclScalar *maxNorm,
                                        aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(out, ACLNN_ERROR_NULLPTR, "aclnnRenorm: out is null");
    return renorm_plan(OPERATOR_Renorm, self, p, dim, maxNorm, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Renorm)

aclnnStatus aclnnInplaceRenormGetWorkspaceSize(aclTensor *selfRef, const aclScalar *p, int64_t dim, const aclScalar *maxNorm,
                                               uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return renorm_plan(OPERATOR_InplaceRenorm, selfRef, p, dim, maxNorm, NULL, workspaceSize, executor);
}
ACLNN_PHASE_2(InplaceRenorm)
