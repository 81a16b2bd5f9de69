/* Reductions: sums, products, extremes, norms, variances. The work is in reduce_engine.c; here is what each operator computes:
 * a map of the elements, a fold, and a finish of the results. */
#include <math.h>
#include <string.h>

#include "aclnn/math/complex_product.h"
#include "aclnn/math/operand_check.h"
#include "aclnn/math/reduce_engine.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"

enum finish { FINISH_none, FINISH_divide, FINISH_sqrt, FINISH_divide_sqrt, FINISH_power, FINISH_log };

/* What the first of two passes leaves as center of the second. */
enum center { CENTER_none, CENTER_mean, CENTER_max };

struct reduce_job {
    uint32_t mask;
    enum accumulate type;
    enum fold fold;
    enum map map;
    enum finish finish;
    enum center center;
    double map_parameter, finish_parameter;
    bool write_center;   /* operand 2 gets the center */
    bool write_opposite; /* operand 1 gets the minimum, operand 2 the maximum */
};

/* Sizes up to this fit the thread's scratch; only larger ones ask the caller for workspace. */
enum { OWN_BYTES = 1 << 16, RESULT_GRAIN = 1 << 14 };

/* --- run ------------------------------------------------------------------------------------------------------------- */

#define FINISH_FUNCTION(tag, A, sqrt_, pow_, log_)                                                            \
    static void finish_##tag(const struct reduce_job *job, A *x, const A *center, int64_t n)                  \
    {                                                                                                         \
        const A p = (A)job->finish_parameter;                                                                 \
        switch (job->finish) {                                                                                \
        case FINISH_none: break;                                                                              \
        case FINISH_divide: for (int64_t i = 0; i < n; ++i) x[i] = x[i] / p; break;                           \
        case FINISH_sqrt: for (int64_t i = 0; i < n; ++i) x[i] = sqrt_(x[i]); break;                          \
        case FINISH_divide_sqrt: for (int64_t i = 0; i < n; ++i) x[i] = sqrt_(x[i] / p); break;               \
        case FINISH_power: for (int64_t i = 0; i < n; ++i) x[i] = pow_(x[i], p); break;                       \
        case FINISH_log: for (int64_t i = 0; i < n; ++i) x[i] = log_(x[i]) + center[i]; break;                \
        }                                                                                                     \
    }
FINISH_FUNCTION(f64, double, sqrt, pow, log)
FINISH_FUNCTION(f32, float, sqrtf, powf, logf)

#define CENTER_FUNCTION(tag, A)                                                           \
    static void center_##tag(const struct reduce_job *job, A *center, int64_t count, int64_t n) \
    {                                                                                     \
        for (int64_t i = 0; i < n; ++i)                                                   \
            if (job->center == CENTER_mean)                                               \
                center[i] /= (A)count;                                                    \
            else if (center[i] == (A)INFINITY || center[i] == (A)-INFINITY)               \
                center[i] = 0;                                                            \
    }
CENTER_FUNCTION(f64, double)
CENTER_FUNCTION(f32, float)

struct finish_work {
    const struct reduce_job *job;
    char *results, *center;
    struct view out;
};

static void finish_results(void *argument, int64_t begin, int64_t end)
{
    const struct finish_work *const w = argument;
    const int64_t size = accumulate_bytes(w->job->type);
    char *const results = w->results + begin * size, *const center = w->center + begin * size;
    if (w->job->type == ACCUMULATE_F64)
        finish_f64(w->job, (double *)(void *)results, (const double *)(const void *)center, end - begin);
    else if (w->job->type == ACCUMULATE_F32)
        finish_f32(w->job, (float *)(void *)results, (const float *)(const void *)center, end - begin);
    tile_write(&w->out, begin, end - begin, results, w->job->type);
}

static void write_results(struct view out, const struct reduce_job *job, char *results, char *center)
{
    view_as_real(&out);
    struct finish_work work = {job, results, center, out};
    pool_for(out.count, RESULT_GRAIN, finish_results, &work);
}

static int64_t reduce_bytes(const struct reduction *r, const struct reduce_job *job)
{
    return reduction_bytes(r) * (job->center == CENTER_none ? 1 : 2);
}

/* Memory for the results: the caller's workspace, or for small sizes the thread's own. */
static int take_memory(const struct plan *plan, int64_t bytes, char **memory)
{
    *memory = bytes <= OWN_BYTES ? pool_scratch(0, (size_t)(bytes > 0 ? bytes : 1)) : plan->workspace;
    if (!*memory)
        return error_set(ERROR_BAD_ALLOC, plan_name(plan), "no memory for %lld bytes", (long long)bytes);
    return 0;
}

/* "Is any of nothing true, are all?" have the sum's and the product's answers, not those of the extremes. */
static enum fold fold_of(const struct reduce_job *job, const struct reduction *r)
{
    if (job->map != MAP_nonzero || r->reduced_count > 0)
        return job->fold;
    return job->fold == FOLD_min ? FOLD_prod : FOLD_sum;
}

static int reduce_run(struct plan *plan)
{
    const struct reduce_job *const job = PLAN_IMMEDIATE(plan, struct reduce_job);
    struct view in = plan->operands[0];
    struct reduction r;
    char *results, *center = NULL;
    if (job->fold == FOLD_prod && dtype_kind((enum dtype)in.dtype) == KIND_COMPLEX) {
        complex_product(&plan->operands[1], &in, job->mask);
        return 0;
    }
    view_as_real(&in);
    reduction_prepare(&r, &in, job->mask, job->type);
    r.load = tile_loader((enum dtype)in.dtype, job->type, (enum dtype)plan->operands[1].dtype);
    TRY(take_memory(plan, reduce_bytes(&r, job), &results));
    if (job->center != CENTER_none) {
        center = results + reduction_bytes(&r);
        reduction_run(&r, job->center == CENTER_mean ? FOLD_sum : FOLD_max, MAP_none, 0, NULL, center);
        if (job->type == ACCUMULATE_F64)
            center_f64(job, (double *)(void *)center, r.reduced_count, r.kept_count);
        else
            center_f32(job, (float *)(void *)center, r.reduced_count, r.kept_count);
    }
    reduction_run(&r, fold_of(job, &r), job->map, job->map_parameter, center, results);
    write_results(plan->operands[1], job, results, center);
    if (job->write_center)
        write_results(plan->operands[2], &(struct reduce_job){.type = job->type}, center, center);
    if (job->write_opposite) {
        reduction_run(&r, FOLD_max, job->map, 0, NULL, results);
        write_results(plan->operands[2], job, results, NULL);
    }
    return 0;
}

/* --- phase 1 ----------------------------------------------------------------------------------------------------------- */

/* Sizes of the result: reduced dimensions become 1 or vanish. */
static int reduced_sizes(const struct view *in, uint32_t mask, bool keepdim, int64_t *sizes)
{
    int n = 0;
    for (int d = 0; d < in->ndim; ++d)
        if (!(mask >> d & 1))
            sizes[n++] = in->sizes[d];
        else if (keepdim)
            sizes[n++] = 1;
    return n;
}

static int64_t reduced_count(const struct view *in, uint32_t mask)
{
    int64_t count = 1;
    for (int d = 0; d < in->ndim; ++d)
        count *= mask >> d & 1 ? in->sizes[d] : 1;
    return count;
}

/* The arguments that all of these operators share. */
struct reduce_arguments {
    const aclTensor *self;
    const aclIntArray *dims;
    const int64_t *one_dim; /* instead of dims */
    bool keepdim;
    aclTensor *out, *second; /* second may be NULL */
    const char *out_name, *second_name;
};

static int add_output(struct plan *plan, const struct reduce_arguments *a, const aclTensor *tensor, const char *name,
                      const struct view *in, uint32_t mask)
{
    struct view *out;
    int64_t sizes[TENSOR_MAX_DIMS];
    TRY(plan_output(plan, tensor, name, &out));
    const int ndim = reduced_sizes(in, mask, a->keepdim, sizes);
    TRY(check_sizes(plan, out, name, sizes, ndim));
    if (in->dtype == DTYPE_C64 || in->dtype == DTYPE_C128)
        TRY(check_same_dtype(plan, in, "self", out, name));
    else
        TRY(check_not_complex(plan, out, name));
    return check_output_not_expanded(plan, out, name);
}

/* What the type of the computation is made from. */
enum type_rule { TYPE_FROM_SELF, TYPE_FROM_OUT, TYPE_FROM_OUT_FLOATING };

static int reduce_checked(struct plan *plan, const struct reduce_arguments *a, struct reduce_job *job, enum type_rule rule,
                          bool complex_allowed, uint64_t *workspace)
{
    struct view *in;
    struct reduction r;
    TRY(plan_input(plan, a->self, "self", &in));
    if (!complex_allowed)
        TRY(check_not_complex(plan, in, "self"));
    if (a->one_dim) {
        int dim;
        TRY(check_dim(plan, *a->one_dim, in, "dim", &dim));
        job->mask = in->ndim ? 1u << dim : 0;
    } else {
        TRY(check_dims(plan, a->dims, in, &job->mask));
    }
    TRY(add_output(plan, a, a->out, a->out_name ? a->out_name : "out", in, job->mask));
    if (a->second_name)
        TRY(add_output(plan, a, a->second, a->second_name, in, job->mask));
    const struct view *const out = &plan->operands[1];
    if (rule == TYPE_FROM_OUT_FLOATING && dtype_kind((enum dtype)out->dtype) != KIND_COMPLEX)
        TRY(check_floating(plan, out, a->out_name ? a->out_name : "out"));
    job->type = accumulate_of((enum dtype)(rule == TYPE_FROM_SELF ? in->dtype : out->dtype));
    struct view real = *in;
    if (!view_as_real(&real))
        return error_set(ACLNN_ERROR_PARAM, plan_name(plan), "self is complex with %d dimensions; at most %d are allowed", in->ndim,
                         TENSOR_MAX_DIMS - 1);
    reduction_prepare(&r, &real, job->mask, job->type);
    const int64_t bytes = reduce_bytes(&r, job);
    *workspace = bytes > OWN_BYTES ? (uint64_t)bytes : 0;
    return 0;
}

/* Extremes of nothing don't exist, unless there are no results either. */
static int check_not_empty(const struct plan *plan, const struct reduce_job *job)
{
    const struct view *const in = &plan->operands[0], *const out = &plan->operands[1];
    if (reduced_count(in, job->mask) > 0 || out->count == 0)
        return 0;
    return error_set(ACLNN_ERROR_PARAM, plan_name(plan),
                     "self is %s: the reduced dimensions have no elements, and this operation has no identity", view_text(in));
}

static int reduce_plan(enum operator_id id, struct reduce_arguments a, struct reduce_job job, enum type_rule rule,
                       uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    uint64_t workspace = 0;
    const bool extreme = job.fold >= FOLD_max && job.map != MAP_nonzero;
    TRY(plan_begin(id, reduce_run, workspace_size, executor, &plan));
    PLAN_TRY(plan, reduce_checked(plan, &a, &job, rule, job.fold <= FOLD_prod && job.map == MAP_none && job.center == CENTER_none,
                                  &workspace));
    if (extreme)
        PLAN_TRY(plan, check_not_empty(plan, &job));
    if (job.finish == FINISH_divide && job.center == CENTER_none)
        job.finish_parameter = (double)reduced_count(&plan->operands[0], job.mask);
    if (job.center == CENTER_mean) {
        const double divisor = (double)reduced_count(&plan->operands[0], job.mask) - job.finish_parameter;
        job.finish_parameter = divisor > 0 ? divisor : 0;
    }
    *PLAN_IMMEDIATE(plan, struct reduce_job) = job;
    return finish_by_size(plan, workspace, workspace_size, executor);
}

/* --- operators --------------------------------------------------------------------------------------------------------- */

/* dtype: torch computes in the output's type, which the caller allocates accordingly; the argument says the same again. */
aclnnStatus aclnnReduceSumGetWorkspaceSize(const aclTensor *self, const aclIntArray *dims, bool keepDims, aclDataType dtype,
                                           aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_ReduceSum, (struct reduce_arguments){.self = self, .dims = dims, .keepdim = keepDims, .out = out},
                       (struct reduce_job){.fold = FOLD_sum}, TYPE_FROM_OUT, workspaceSize, executor);
}

/* The sum of the diagonal, which is a view of one dimension. */
aclnnStatus aclnnTraceGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    REQUIRE(self && out, ACLNN_ERROR_NULLPTR, "aclnnTrace: %s is null", self ? "out" : "self");
    REQUIRE(self->view.ndim == 2, ACLNN_ERROR_PARAM, "aclnnTrace: self is %s; a matrix is wanted", view_text(&self->view));
    struct aclTensor diagonal = *self;
    struct view *const v = &diagonal.view;
    v->ndim = 1;
    v->sizes[0] = v->sizes[0] < v->sizes[1] ? v->sizes[0] : v->sizes[1];
    v->strides[0] += v->strides[1];
    view_refresh(v);
    return reduce_plan(OPERATOR_Trace, (struct reduce_arguments){.self = &diagonal, .out = out},
                       (struct reduce_job){.fold = FOLD_sum}, TYPE_FROM_OUT, workspaceSize, executor);
}

aclnnStatus aclnnReduceNansumGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim, aclDataType dtype,
                                              aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const bool floating = self && dtype_is_floating((enum dtype)self->view.dtype);
    REQUIRE(!self || dtype_kind((enum dtype)self->view.dtype) != KIND_COMPLEX, ACLNN_ERROR_PARAM,
            "aclnnReduceNansum: self is %s; real types are allowed", view_text(&self->view));
    return reduce_plan(OPERATOR_ReduceNansum, (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepDim, .out = out},
                       (struct reduce_job){.fold = FOLD_sum, .map = floating ? MAP_nan_to_zero : MAP_none}, TYPE_FROM_OUT,
                       workspaceSize, executor);
}

aclnnStatus aclnnMeanGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim, aclDataType dtype,
                                      aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_Mean, (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepDim, .out = out},
                       (struct reduce_job){.fold = FOLD_sum, .finish = FINISH_divide}, TYPE_FROM_OUT_FLOATING, workspaceSize,
                       executor);
}

aclnnStatus aclnnProdGetWorkspaceSize(const aclTensor *self, aclDataType dtype, aclTensor *out, uint64_t *workspaceSize,
                                      aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_Prod, (struct reduce_arguments){.self = self, .out = out}, (struct reduce_job){.fold = FOLD_prod},
                       TYPE_FROM_OUT, workspaceSize, executor);
}

aclnnStatus aclnnProdDimGetWorkspaceSize(const aclTensor *self, int64_t dim, bool keepDim, aclDataType dtype, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_ProdDim, (struct reduce_arguments){.self = self, .one_dim = &dim, .keepdim = keepDim, .out = out},
                       (struct reduce_job){.fold = FOLD_prod}, TYPE_FROM_OUT, workspaceSize, executor);
}

aclnnStatus aclnnMaxGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_Max, (struct reduce_arguments){.self = self, .out = out}, (struct reduce_job){.fold = FOLD_max},
                       TYPE_FROM_SELF, workspaceSize, executor);
}

aclnnStatus aclnnMinGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_Min, (struct reduce_arguments){.self = self, .out = out}, (struct reduce_job){.fold = FOLD_min},
                       TYPE_FROM_SELF, workspaceSize, executor);
}

/* Operators of (self, dims, keepdim, out) that compute in self's type. */
#define EXTREME(Name, fold_, map_)                                                                                         \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out, \
                                              uint64_t *workspaceSize, aclOpExecutor **executor)                           \
    {                                                                                                                      \
        return reduce_plan(OPERATOR_##Name,                                                                                \
                           (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepDim, .out = out},           \
                           (struct reduce_job){.fold = FOLD_##fold_, .map = MAP_##map_}, TYPE_FROM_SELF, workspaceSize,    \
                           executor);                                                                                      \
    }
EXTREME(Amax, max, none)
EXTREME(Amin, min, none)
EXTREME(Any, max, nonzero)
EXTREME(All, min, nonzero)

static int aminmax_plan(enum operator_id id, struct reduce_arguments arguments, uint64_t *workspace_size, aclOpExecutor **executor)
{
    arguments.out_name = "minOut";
    arguments.second_name = "maxOut";
    return reduce_plan(id, arguments, (struct reduce_job){.fold = FOLD_min, .write_opposite = true}, TYPE_FROM_SELF, workspace_size,
                       executor);
}

aclnnStatus aclnnAminmaxGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *minOut,
                                         aclTensor *maxOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return aminmax_plan(OPERATOR_Aminmax,
                        (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepDim, .out = minOut, .second = maxOut},
                        workspaceSize, executor);
}

aclnnStatus aclnnAminmaxDimGetWorkspaceSize(const aclTensor *self, int64_t dim, bool keepDim, aclTensor *minOut, aclTensor *maxOut,
                                            uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return aminmax_plan(
        OPERATOR_AminmaxDim,
        (struct reduce_arguments){.self = self, .one_dim = &dim, .keepdim = keepDim, .out = minOut, .second = maxOut},
        workspaceSize, executor);
}

aclnnStatus aclnnAminmaxAllGetWorkspaceSize(const aclTensor *self, aclTensor *minOut, aclTensor *maxOut, uint64_t *workspaceSize,
                                            aclOpExecutor **executor)
{
    return aminmax_plan(OPERATOR_AminmaxAll, (struct reduce_arguments){.self = self, .out = minOut, .second = maxOut},
                        workspaceSize, executor);
}

/* --- variance ---------------------------------------------------------------------------------------------------------- */

/* finish_parameter carries the correction until the count is known. */
static struct reduce_job deviation_job(int64_t correction, bool root, bool write_mean)
{
    return (struct reduce_job){.fold = FOLD_sum,
                               .map = MAP_deviation,
                               .center = CENTER_mean,
                               .write_center = write_mean,
                               .finish = root ? FINISH_divide_sqrt : FINISH_divide,
                               .finish_parameter = (double)correction};
}

#define DEVIATION(Name, root)                                                                                               \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, int64_t correction, bool keepdim, \
                                              aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)            \
    {                                                                                                                       \
        return reduce_plan(OPERATOR_##Name,                                                                                 \
                           (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepdim, .out = out},            \
                           deviation_job(correction, root, false), TYPE_FROM_OUT_FLOATING, workspaceSize, executor);        \
    }
DEVIATION(VarCorrection, false)
DEVIATION(Std, true)

#define DEVIATION_AND_MEAN(Name, root, first)                                                                               \
    aclnnStatus aclnn##Name##GetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, int64_t correction, bool keepdim, \
                                              aclTensor *first, aclTensor *meanOut, uint64_t *workspaceSize,                \
                                              aclOpExecutor **executor)                                                     \
    {                                                                                                                       \
        return reduce_plan(OPERATOR_##Name,                                                                                 \
                           (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepdim, .out = first,           \
                                                     .out_name = #first, .second = meanOut, .second_name = "meanOut"},      \
                           deviation_job(correction, root, true), TYPE_FROM_OUT_FLOATING, workspaceSize, executor);         \
    }
DEVIATION_AND_MEAN(VarMean, false, varOut)
DEVIATION_AND_MEAN(StdMeanCorrection, true, stdOut)

aclnnStatus aclnnLogSumExpGetWorkspaceSize(const aclTensor *self, const aclIntArray *dim, bool keepDim, aclTensor *out,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_LogSumExp, (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepDim, .out = out},
                       (struct reduce_job){.fold = FOLD_sum, .map = MAP_exp, .center = CENTER_max, .finish = FINISH_log},
                       TYPE_FROM_OUT_FLOATING, workspaceSize, executor);
}

/* --- norms ------------------------------------------------------------------------------------------------------------- */

static struct reduce_job norm_job(double p)
{
    if (p == INFINITY)
        return (struct reduce_job){.fold = FOLD_max, .map = MAP_abs};
    if (p == -INFINITY)
        return (struct reduce_job){.fold = FOLD_min, .map = MAP_abs};
    if (p == 0)
        return (struct reduce_job){.fold = FOLD_sum, .map = MAP_nonzero};
    if (p == 1)
        return (struct reduce_job){.fold = FOLD_sum, .map = MAP_abs};
    if (p == 2)
        return (struct reduce_job){.fold = FOLD_sum, .map = MAP_square, .finish = FINISH_sqrt};
    return (struct reduce_job){
        .fold = FOLD_sum, .map = MAP_power, .map_parameter = p, .finish = FINISH_power, .finish_parameter = 1 / p};
}

aclnnStatus aclnnNormGetWorkspaceSize(const aclTensor *self, const aclScalar *pScalar, const aclIntArray *dim, bool keepdim,
                                      aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_Norm, (struct reduce_arguments){.self = self, .dims = dim, .keepdim = keepdim, .out = out},
                       norm_job(pScalar ? scalar_to_double(pScalar) : 2), TYPE_FROM_OUT_FLOATING, workspaceSize, executor);
}

aclnnStatus aclnnLinalgVectorNormGetWorkspaceSize(const aclTensor *self, const aclScalar *ord, const aclIntArray *dims,
                                                  bool keepDims, aclDataType dtype, aclTensor *out, uint64_t *workspaceSize,
                                                  aclOpExecutor **executor)
{
    return reduce_plan(OPERATOR_LinalgVectorNorm,
                       (struct reduce_arguments){.self = self, .dims = dims, .keepdim = keepDims, .out = out},
                       norm_job(ord ? scalar_to_double(ord) : 2), TYPE_FROM_OUT_FLOATING, workspaceSize, executor);
}

ACLNN_PHASE_2(ReduceSum)
ACLNN_PHASE_2(Trace)
ACLNN_PHASE_2(ReduceNansum)
ACLNN_PHASE_2(Mean)
ACLNN_PHASE_2(Prod)
ACLNN_PHASE_2(ProdDim)
ACLNN_PHASE_2(Max)
ACLNN_PHASE_2(Min)
ACLNN_PHASE_2(Amax)
ACLNN_PHASE_2(Amin)
ACLNN_PHASE_2(Any)
ACLNN_PHASE_2(All)
ACLNN_PHASE_2(Aminmax)
ACLNN_PHASE_2(AminmaxDim)
ACLNN_PHASE_2(AminmaxAll)
ACLNN_PHASE_2(VarCorrection)
ACLNN_PHASE_2(Std)
ACLNN_PHASE_2(VarMean)
ACLNN_PHASE_2(StdMeanCorrection)
ACLNN_PHASE_2(LogSumExp)
ACLNN_PHASE_2(Norm)
ACLNN_PHASE_2(LinalgVectorNorm)
