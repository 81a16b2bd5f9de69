/* Loss scaling: the check and unscaling of gradients, and the update of the scale. */
#include <math.h>

#include "aclnn/nn/foreach.h"
#include "aclnnop/all_operators.h"
#include "kernels/optimizer.h"

static void unscale_scalars(const struct plan *plan, const struct foreach_job *job, int64_t item, union elementwise_scalar *s)
{
    (void)plan;
    (void)item;
    s[0].f64 = job->numbers[0];
}

/* One pass: each tile is looked at, then multiplied. foundInf is set, never cleared. */
static int run_unscale(struct plan *plan)
{
    struct foreach_job *const job = foreach_job_of(plan);
    const struct view *const found_inf = &plan->operands[0];
    _Atomic bool found = false;
    job->numbers[0] = foreach_read(&plan->operands[1], 0);
    job->found = &found;
    TRY(foreach_run(plan));
    if (found) {
        const double one = 1;
        convert_elements(found_inf->data, (enum dtype)found_inf->dtype, &one, DTYPE_F64, 1);
    }
    return 0;
}

static int check_single(enum operator_id id, const struct aclTensor *tensor, const char *name)
{
    REQUIRE(tensor->view.count == 1, ACLNN_ERROR_PARAM, "%s: %s is %s; it must have one element", operator_name(id), name,
            view_text(&tensor->view));
    return 0;
}

aclnnStatus aclnnForeachNonFiniteCheckAndUnscaleGetWorkspaceSize(const aclTensorList *scaledGrads, const aclTensor *foundInf,
                                                                 const aclTensor *invScale, uint64_t *workspaceSize,
                                                                 aclOpExecutor **executor)
{
    const enum operator_id id = OPERATOR_ForeachNonFiniteCheckAndUnscale;
    static const char *const names[] = {"scaledGrads"};
    struct plan *plan;
    struct foreach_job *job;
    TRY(plan_begin(id, run_unscale, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_inout(plan, foundInf, "foundInf", NULL));
    PLAN_TRY(plan, plan_input(plan, invScale, "invScale", NULL));
    PLAN_TRY(plan, check_single(id, foundInf, "foundInf"));
    PLAN_TRY(plan, check_single(id, invScale, "invScale"));
    PLAN_TRY(plan, foreach_begin(plan, 1, &scaledGrads, names, FOREACH_SAME_SHAPES, &job));
    for (int64_t i = 0; i < job->count; ++i) {
        const enum dtype dtype = (enum dtype)foreach_view(plan, job, i, 0)->dtype;
        PLAN_REQUIRE(plan, dtype_is_floating(dtype), ACLNN_ERROR_PARAM, "%s: scaledGrads[%lld] is %s; supported: f64 f32 f16 bf16",
                     operator_name(id), (long long)i, dtype_name(dtype));
        job->items[i].compute = job->items[i].result = (uint8_t)dtype_compute(dtype);
        job->items[i].run = kernels->optimizer->unscale[dtype_compute(dtype)];
        job->items[i].check = kernels->optimizer->has_non_finite[dtype_compute(dtype)];
    }
    job->updated = 1;
    job->cost = 2;
    job->scalars = unscale_scalars;
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ForeachNonFiniteCheckAndUnscale)

/* --- the scale ----------------------------------------------------------------------------------------------------- */

struct scale_rule {
    double growth, backoff;
    int64_t interval;
};

static void write_number(const struct view *v, double value)
{
    convert_elements(v->data, (enum dtype)v->dtype, &value, DTYPE_F64, 1);
}

/* An infinity shrinks the scale; `interval` steps in a row without one make it grow, unless it would become infinite. */
static int run_update(struct plan *plan)
{
    const struct scale_rule *const rule = PLAN_IMMEDIATE(plan, struct scale_rule);
    const double scale = foreach_read(&plan->operands[0], 0), tracker = foreach_read(&plan->operands[1], 0);
    const bool found = foreach_read(&plan->operands[2], 0) != 0;
    const struct view *const new_scale = &plan->operands[3], *const new_tracker = &plan->operands[4];
    if (found) {
        write_number(new_scale, (double)((float)scale * (float)rule->backoff));
        write_number(new_tracker, 0);
        return 0;
    }
    const bool grows = (int64_t)tracker + 1 == rule->interval;
    const double grown = (double)((float)scale * (float)rule->growth);
    write_number(new_scale, grows && isfinite(grown) ? grown : scale);
    write_number(new_tracker, grows ? 0 : tracker + 1);
    return 0;
}

aclnnStatus aclnnAmpUpdateScaleGetWorkspaceSize(const aclTensor *currentScale, const aclTensor *growthTracker,
                                                const aclTensor *foundInf, double growthFactor, double backoffFactor,
                                                int64_t growthInterval, const aclTensor *updatedScale,
                                                const aclTensor *updatedGrowthTracker, uint64_t *workspaceSize,
                                                aclOpExecutor **executor)
{
    const enum operator_id id = OPERATOR_AmpUpdateScale;
    const aclTensor *const tensors[] = {currentScale, growthTracker, foundInf, updatedScale, updatedGrowthTracker};
    static const char *const names[] = {"currentScale", "growthTracker", "foundInf", "updatedScale", "updatedGrowthTracker"};
    struct plan *plan;
    TRY(plan_begin(id, run_update, workspaceSize, executor, &plan));
    for (int i = 0; i < 5; ++i) {
        const enum dtype allowed = tensors[i] == growthTracker || tensors[i] == updatedGrowthTracker ? DTYPE_I32 : DTYPE_F32;
        PLAN_TRY(plan, i < 3 ? plan_input(plan, tensors[i], names[i], NULL) : plan_output(plan, tensors[i], names[i], NULL));
        PLAN_TRY(plan, check_single(id, tensors[i], names[i]));
        PLAN_REQUIRE(plan, tensors[i]->view.dtype == allowed, ACLNN_ERROR_PARAM, "aclnnAmpUpdateScale: %s is %s; it must be %s",
                     names[i], dtype_name((enum dtype)tensors[i]->view.dtype), dtype_name(allowed));
    }
    *PLAN_IMMEDIATE(plan, struct scale_rule) = (struct scale_rule){growthFactor, backoffFactor, growthInterval};
    plan->task.flags = 0;
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(AmpUpdateScale)
