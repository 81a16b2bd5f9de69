/* Fused optimizer steps: parameters, moments and gradients in one pass over memory. See kernels/optimizer.h. */
#include <math.h>

#include "aclnn/nn/foreach.h"
#include "aclnnop/all_operators.h"
#include "kernels/optimizer.h"

static const char *const adam_names[] = {"paramsRef", "expAvgsRef", "expAvgSqsRef", "gradsRef", "maxExpAvgSqsRef"};

/* --- what all of them share ---------------------------------------------------------------------------------------- */

/* Every list's tensors compute in the type that the parameter's staging gives; all of them must be floats. */
static int choose_kernels(struct plan *plan, const struct foreach_job *job, int operands, const elementwise_fn *by_type)
{
    const char *const name = plan_name(plan);
    for (int64_t i = 0; i < job->count; ++i) {
        enum dtype compute = DTYPE_F32;
        for (int k = 0; k < operands; ++k) {
            const enum dtype dtype = (enum dtype)foreach_view(plan, job, i, k)->dtype;
            REQUIRE(dtype_is_floating(dtype), ACLNN_ERROR_PARAM, "%s: tensor %lld of list %d is %s; supported: f64 f32 f16 bf16",
                    name, (long long)i, k, dtype_name(dtype));
            compute = dtype == DTYPE_F64 ? DTYPE_F64 : compute;
        }
        job->items[i].compute = job->items[i].result = (uint8_t)compute;
        job->items[i].run = by_type[compute];
    }
    return 0;
}

/* Several plans' steps are one list of one tensor: a list on the stack, as the engine takes it. */
struct list_of_one {
    uint64_t count;
    const aclTensor *tensor;
};
_Static_assert(offsetof(struct list_of_one, tensor) == offsetof(struct aclTensorList, tensors), "laid out as aclTensorList");

enum adam_number {
    NUMBER_LR,
    NUMBER_BETA1,
    NUMBER_BETA2,
    NUMBER_DECAY,
    NUMBER_EPS,
    NUMBER_SIGN,
    NUMBER_DECOUPLED, /* != 0: weight decay shrinks the parameter (AdamW) instead of joining the gradient (Adam) */
    NUMBER_STEP_ADD   /* added to the step tensor: CANN's single-tensor form counts steps from 0 */
};

/* Which of the plan's own operands are set, for fused forms. */
enum { OPERAND_GRAD_SCALE, OPERAND_FOUND_INF, OPERAND_STEPS };

static void adam_scalars_at(const struct foreach_job *job, double step, union elementwise_scalar *s)
{
    const double *const v = job->numbers;
    const double correction1 = 1 - pow(v[NUMBER_BETA1], step), correction2 = 1 - pow(v[NUMBER_BETA2], step);
    s[ADAM_SHRINK].f64 = v[NUMBER_DECOUPLED] != 0 ? 1 - v[NUMBER_LR] * v[NUMBER_DECAY] : 1;
    s[ADAM_PENALTY].f64 = v[NUMBER_DECOUPLED] != 0 ? 0 : v[NUMBER_DECAY];
    s[ADAM_BETA1_REST].f64 = 1 - v[NUMBER_BETA1];
    s[ADAM_BETA2].f64 = v[NUMBER_BETA2];
    s[ADAM_BETA2_REST].f64 = 1 - v[NUMBER_BETA2];
    s[ADAM_STEP_SIZE].f64 = v[NUMBER_LR] / correction1;
    s[ADAM_CORRECTION2].f64 = sqrt(correction2);
    s[ADAM_EPS].f64 = v[NUMBER_EPS];
    s[ADAM_GRADIENT_SIGN].f64 = v[NUMBER_SIGN];
    s[ADAM_GRADIENT_SCALE].f64 = 1;
}

static double grad_scale_of(const struct plan *plan)
{
    const struct view *const scale = &plan->operands[OPERAND_GRAD_SCALE];
    return scale->data ? foreach_read(scale, 0) : 1;
}

static void adam_scalars(const struct plan *plan, const struct foreach_job *job, int64_t item, union elementwise_scalar *s)
{
    const double step = foreach_read(&plan->operands[OPERAND_STEPS + item], 0);
    adam_scalars_at(job, step + job->numbers[NUMBER_STEP_ADD], s);
    s[ADAM_GRADIENT_SCALE].f64 = grad_scale_of(plan);
}

static int run_unless_inf(struct plan *plan)
{
    const struct view *const found = &plan->operands[OPERAND_FOUND_INF];
    if (found->data && foreach_read(found, 0) != 0)
        return 0; /* the gradients are useless: no step */
    return foreach_run(plan);
}

/* A NULL tensor is for others to refuse. */
static int check_single(enum operator_id id, const struct aclTensor *tensor, const char *name)
{
    REQUIRE(!tensor || tensor->view.count == 1, ACLNN_ERROR_PARAM, "%s: %s is %s; it must have one element", operator_name(id),
            name, view_text(&tensor->view));
    return 0;
}

/* --- AdamW of one parameter ---------------------------------------------------------------------------------------- */

aclnnStatus aclnnApplyAdamWV2GetWorkspaceSize(aclTensor *varRef, aclTensor *mRef, aclTensor *vRef,
                                              aclTensor *maxGradNormOptionalRef, const aclTensor *grad, const aclTensor *step,
                                              float lr, float beta1, float beta2, float weightDecay, float eps, bool amsgrad,
                                              bool maximize, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const aclTensor *const tensors[] = {varRef, mRef, vRef, grad, maxGradNormOptionalRef};
    static const char *const names[] = {"varRef", "mRef", "vRef", "grad", "maxGradNormOptionalRef"};
    struct list_of_one ones[FOREACH_LISTS];
    const aclTensorList *lists[FOREACH_LISTS];
    struct plan *plan;
    struct foreach_job *job;
    const int count = amsgrad ? 5 : 4;
    for (int k = 0; k < count; ++k) {
        ones[k] = (struct list_of_one){1, tensors[k]};
        lists[k] = (const aclTensorList *)(const void *)&ones[k];
        REQUIRE(tensors[k], ACLNN_ERROR_NULLPTR, "aclnnApplyAdamWV2: %s is null", names[k]);
    }
    TRY(plan_begin(OPERATOR_ApplyAdamWV2, run_unless_inf, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_optional(plan, NULL, ROLE_INPUT, "gradScale", NULL));
    PLAN_TRY(plan, plan_optional(plan, NULL, ROLE_INPUT, "foundInf", NULL));
    PLAN_TRY(plan, plan_input(plan, step, "step", NULL));
    PLAN_TRY(plan, check_single(OPERATOR_ApplyAdamWV2, step, "step"));
    PLAN_TRY(plan, foreach_begin(plan, count, lists, names, FOREACH_SAME_SHAPES, &job));
    PLAN_TRY(plan, choose_kernels(plan, job, count, amsgrad ? kernels->optimizer->adam_amsgrad : kernels->optimizer->adam));
    job->updated = amsgrad ? 0x17 : 0x07;
    job->cost = 4;
    job->scalars = adam_scalars;
    const double numbers[] = {(double)lr, (double)beta1, (double)beta2, (double)weightDecay, (double)eps, maximize ? -1 : 1, 1, 1};
    for (int i = 0; i < 8; ++i)
        job->numbers[i] = numbers[i];
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(ApplyAdamWV2)

/* --- Adam of lists of parameters ----------------------------------------------------------------------------------- */

/* The step tensors follow the operands of the lists in extra_views, so that any number of them fits. */
static void fused_adam_scalars(const struct plan *plan, const struct foreach_job *job, int64_t item, union elementwise_scalar *s)
{
    const struct view *const step = foreach_view(plan, job, item, job->lists - 1);
    adam_scalars_at(job, foreach_read(step, 0), s);
    s[ADAM_GRADIENT_SCALE].f64 = grad_scale_of(plan);
}

static const elementwise_fn *adam_kernels(bool amsgrad, bool scaled)
{
    if (amsgrad)
        return scaled ? kernels->optimizer->adam_amsgrad_scaled : kernels->optimizer->adam_amsgrad;
    return scaled ? kernels->optimizer->adam_scaled : kernels->optimizer->adam;
}

static int check_fused_lists(struct plan *plan, const struct foreach_job *job, int same_shape, const char *const *names)
{
    const char *const name = plan_name(plan);
    for (int64_t i = 0; i < job->count; ++i)
        for (int k = 1; k < same_shape; ++k) {
            const struct view *const first = foreach_view(plan, job, i, 0), *const other = foreach_view(plan, job, i, k);
            REQUIRE(view_same_sizes(first, other), ACLNN_ERROR_PARAM, "%s: %s[%lld] is %s and %s[%lld] is %s; shapes must agree",
                    name, names[k], (long long)i, view_text(other), names[0], (long long)i, view_text(first));
            REQUIRE(!view_overlaps(first, other), ACLNN_ERROR_PARAM, "%s: %s[%lld] and %s[%lld] share memory", name, names[0],
                    (long long)i, names[k], (long long)i);
        }
    return 0;
}

aclnnStatus aclnnFusedAdamGetWorkspaceSize(const aclTensorList *paramsRef, const aclTensorList *gradsRef,
                                           const aclTensorList *expAvgsRef, const aclTensorList *expAvgSqsRef,
                                           const aclTensorList *maxExpAvgSqsRef, const aclTensorList *stateSteps,
                                           const aclTensor *gradScaleOptional, const aclTensor *foundInfOptional, double lr,
                                           double beta1, double beta2, double weightDecay, double eps, bool amsgrad, bool maximize,
                                           uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const aclTensorList *lists[FOREACH_LISTS + 1] = {paramsRef, expAvgsRef, expAvgSqsRef, gradsRef, maxExpAvgSqsRef};
    const char *names[FOREACH_LISTS + 1];
    struct plan *plan;
    struct foreach_job *job;
    const int updated = amsgrad ? 5 : 4;
    for (int k = 0; k < updated; ++k)
        names[k] = adam_names[k];
    lists[updated] = stateSteps;
    names[updated] = "stateSteps";
    TRY(plan_begin(OPERATOR_FusedAdam, run_unless_inf, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_optional(plan, gradScaleOptional, ROLE_INPUT, "gradScaleOptional", NULL));
    PLAN_TRY(plan, plan_optional(plan, foundInfOptional, ROLE_INPUT, "foundInfOptional", NULL));
    PLAN_TRY(plan, foreach_begin(plan, updated + 1, lists, names, FOREACH_ANY_SHAPE, &job));
    PLAN_TRY(plan, check_fused_lists(plan, job, updated, names));
    PLAN_TRY(plan, check_single(OPERATOR_FusedAdam, gradScaleOptional, "gradScaleOptional"));
    PLAN_TRY(plan, check_single(OPERATOR_FusedAdam, foundInfOptional, "foundInfOptional"));
    for (int64_t i = 0; i < job->count; ++i)
        PLAN_TRY(plan, check_single(OPERATOR_FusedAdam, stateSteps->tensors[i], "a tensor of stateSteps"));
    PLAN_TRY(plan, choose_kernels(plan, job, updated, adam_kernels(amsgrad, gradScaleOptional != NULL)));
    job->updated = gradScaleOptional ? 0x1f : amsgrad ? 0x17 : 0x07;
    job->operands = updated;
    job->cost = 4;
    job->scalars = fused_adam_scalars;
    const double numbers[] = {lr, beta1, beta2, weightDecay, eps, maximize ? -1 : 1, 0, 0};
    for (int i = 0; i < 8; ++i)
        job->numbers[i] = numbers[i];
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(FusedAdam)

/* --- SGD ----------------------------------------------------------------------------------------------------------- */

static void sgd_scalars(const struct plan *plan, const struct foreach_job *job, int64_t item, union elementwise_scalar *s)
{
    (void)item;
    for (int i = 0; i < SGD_GRADIENT_SCALE; ++i)
        s[i].f64 = job->numbers[i];
    s[SGD_GRADIENT_SCALE].f64 = grad_scale_of(plan);
}

aclnnStatus aclnnFusedSgdGetWorkspaceSize(const aclTensorList *paramsRef, const aclTensorList *gradsRef,
                                          const aclTensorList *momentumBufferListOptionalRef, const aclTensor *gradScaleOptional,
                                          float weightDecay, float momentum, float lr, float dampening, bool nesterov,
                                          bool maximize, bool isFirstStep, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const aclTensorList *const lists[] = {paramsRef, gradsRef, momentumBufferListOptionalRef};
    static const char *const names[] = {"paramsRef", "gradsRef", "momentumBufferListOptionalRef"};
    struct plan *plan;
    struct foreach_job *job;
    const bool buffers = momentum != 0 && momentumBufferListOptionalRef && momentumBufferListOptionalRef->count > 0;
    REQUIRE(momentum == 0 || buffers || !paramsRef || paramsRef->count == 0, ACLNN_ERROR_PARAM,
            "aclnnFusedSgd: momentum is %g, but momentumBufferListOptionalRef is empty", (double)momentum);
    TRY(plan_begin(OPERATOR_FusedSgd, foreach_run, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_optional(plan, gradScaleOptional, ROLE_INPUT, "gradScaleOptional", NULL));
    PLAN_TRY(plan, foreach_begin(plan, buffers ? 3 : 2, lists, names, FOREACH_ANY_SHAPE, &job));
    PLAN_TRY(plan, check_fused_lists(plan, job, job->lists, names));
    PLAN_TRY(plan, check_single(OPERATOR_FusedSgd, gradScaleOptional, "gradScaleOptional"));
    const struct optimizer_kernels *const k = kernels->optimizer;
    PLAN_TRY(plan, choose_kernels(plan, job, job->lists,
                                  buffers ? (gradScaleOptional ? k->sgd_momentum_scaled : k->sgd_momentum)
                                          : (gradScaleOptional ? k->sgd_scaled : k->sgd)));
    job->updated = (gradScaleOptional ? 0x3u : 0x1u) | (buffers ? 0x4u : 0);
    job->cost = 2;
    job->scalars = sgd_scalars;
    const double numbers[] = {(double)lr, (double)weightDecay, (double)momentum, 1 - (double)dampening,
                              nesterov,   isFirstStep,         maximize ? -1 : 1};
    for (int i = 0; i < 7; ++i)
        job->numbers[i] = numbers[i];
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(FusedSgd)
