/* Comparisons, logic and tests: the rows of compare.def, and is-close and is-in. */
#include <string.h>

#include "aclnn/math/elementwise_export.h"
#include "aclnn/math/strided_loop.h"
#include "base/pool.h"

#include "aclnn/math/compare.def"

aclnnStatus aclnnIsCloseGetWorkspaceSize(const aclTensor *self, const aclTensor *other, double rtol, double atol, bool equalNan,
                                         aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct elementwise_call call = {.id = OPERATOR_IsClose,
                                          .kernel = ELEMENTWISE_is_close,
                                          .rule = RULE_PROMOTE,
                                          .input_count = 2,
                                          .inputs = {INPUT_TENSOR(self), INPUT_TENSOR(other)},
                                          .out = INPUT_TENSOR(out),
                                          .parameter_count = 3,
                                          .numbers = {rtol, atol, equalNan}};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(IsClose)

/* Against one value, "is in" is "equals". */
aclnnStatus aclnnIsInTensorScalarGetWorkspaceSize(const aclTensor *element, const aclScalar *testElement, bool assumeUnique,
                                                  bool invert, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const struct elementwise_call call = {.id = OPERATOR_IsInTensorScalar,
                                          .kernel = invert ? ELEMENTWISE_ne : ELEMENTWISE_eq,
                                          .rule = RULE_PROMOTE,
                                          .input_count = 2,
                                          .inputs = {INPUT_TENSOR(element), INPUT_SCALAR(testElement)},
                                          .out = INPUT_TENSOR(out)};
    return elementwise_plan(&call, workspaceSize, executor);
}
ACLNN_PHASE_2(IsInTensorScalar)

/* --- is a scalar among the elements of a tensor? ---------------------------------------------------------------------------- */

struct membership {
    const struct strided_loop *loop;
    _Atomic bool found;
};

/* Compares tile by tile; the kernel's bools stay on the stack. */
static void membership_body(void *argument, int64_t begin, int64_t end)
{
    struct membership *const m = argument;
    for (int64_t at = begin; at < end && !m->found; at += LOOP_TILE) {
        const int64_t n = end - at < LOOP_TILE ? end - at : LOOP_TILE;
        _Alignas(64) char values[LOOP_TILE * sizeof(complex64_pair)];
        _Alignas(64) char wanted[LOOP_TILE * sizeof(complex64_pair)];
        uint8_t equal[LOOP_TILE];
        const enum dtype compute = (enum dtype)m->loop->operands[0].kernel_dtype;
        read_elements(&m->loop->views[0], at, n, compute, values);
        convert_elements(wanted, compute, &m->loop->constants[1], (enum dtype)m->loop->operands[1].dtype, 1);
        kernels->cast->fill[__builtin_ctzll(dtype_bytes(compute))](wanted, wanted, (size_t)n);
        void *const operands[] = {equal, values, wanted};
        m->loop->run(operands, (size_t)n, m->loop->scalars);
        if (memchr(equal, 1, (size_t)n))
            m->found = true;
    }
}

struct membership_job {
    enum dtype compute, value_dtype;
    union elementwise_scalar value;
    bool invert;
};

static int run_membership(struct plan *plan)
{
    const struct membership_job *const job = PLAN_IMMEDIATE(plan, struct membership_job);
    const struct view *const elements = &plan->operands[1];
    struct strided_loop loop;
    loop_begin(&loop, ELEMENTWISE_eq, job->compute);
    loop_add(&loop, elements, job->compute);
    loop_add_constant(&loop, job->value_dtype, job->value, job->compute);
    struct membership m = {.loop = &loop};
    pool_for(elements->count, loop_grain(1), membership_body, &m);
    const double result = m.found != job->invert;
    convert_elements(plan->operands[0].data, (enum dtype)plan->operands[0].dtype, &result, DTYPE_F64, 1);
    return 0;
}

aclnnStatus aclnnIsInScalarTensorGetWorkspaceSize(const aclScalar *element, const aclTensor *testElements, bool assumeUnique,
                                                  bool invert, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    struct plan *plan;
    struct view *to, *elements;
    REQUIRE(element, ACLNN_ERROR_NULLPTR, "aclnnIsInScalarTensor: element is null");
    TRY(plan_begin(OPERATOR_IsInScalarTensor, run_membership, workspaceSize, executor, &plan));
    PLAN_TRY(plan, plan_output(plan, out, "out", &to));
    PLAN_TRY(plan, plan_input(plan, testElements, "testElements", &elements));
    PLAN_REQUIRE(plan, to->count == 1, ACLNN_ERROR_PARAM, "aclnnIsInScalarTensor: out is %s; it must have one element",
                 view_text(to));
    const struct elementwise_input inputs[] = {INPUT_SCALAR(element), INPUT_TENSOR(testElements)};
    bool is_default;
    const enum dtype promoted = elementwise_promote(inputs, 2, &is_default);
    const enum dtype_kind kind = dtype_kind(promoted);
    *PLAN_IMMEDIATE(plan, struct membership_job) = (struct membership_job){.compute = dtype_compute(promoted),
                                                                           .value = elementwise_scalar_from(element, promoted),
                                                                           .invert = invert,
                                                                           .value_dtype = kind == KIND_COMPLEX ? DTYPE_C128
                                                                                          : kind == KIND_FLOAT ? DTYPE_F64
                                                                                                               : DTYPE_I64};
    plan->task.flags = 0;
    return plan_finish(plan, 0, workspaceSize, executor);
}
ACLNN_PHASE_2(IsInScalarTensor)
