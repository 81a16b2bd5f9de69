/* Binary operators: the skeleton's two, for contiguous f32 of one shape. */
#include "aclnn/plan.h"
#include "aclnnop/all_operators.h"
#include "base/pool.h"
#include "kernels/elementwise.h"
#include "kernels/kernels.h"

enum { SMALL_COUNT = 4096, GRAIN = 16384 };

struct span { binary_kernel_fn kernel; char *out; const char *a, *b; size_t bytes; };

static void span_body(void *argument, int64_t begin, int64_t end)
{
    const struct span *const s = argument;
    const size_t at = (size_t)begin * s->bytes;
    s->kernel(s->out + at, s->a + at, s->b + at, (size_t)(end - begin));
}

static int run_binary(struct task *task)
{
    const binary_kernel_fn kernel = (binary_kernel_fn)task->immediate.pointer;
    if (task->count <= GRAIN) {
        kernel(task->out, task->a, task->b, (size_t)task->count);
        return 0;
    }
    struct span span = {kernel, task->out, task->a, task->b, dtype_bytes((enum dtype)task->dtype)};
    pool_for(task->count, GRAIN, span_body, &span);
    return 0;
}

static int plan_binary(enum operator_id id, enum binary_kernel_id kernel_id, const aclTensor *self, const aclTensor *other,
                       aclTensor *out, uint64_t *workspace_size, aclOpExecutor **executor)
{
    struct plan *plan;
    TRY(plan_begin(id, NULL, workspace_size, executor, &plan));
    PLAN_REQUIRE(plan, self && other && out, ACLNN_ERROR_NULLPTR, "%s: self, other or out is null", operator_name(id));
    const binary_kernel_fn kernel = kernels->elementwise->binary[kernel_id][self->view.dtype];
    PLAN_REQUIRE(plan, kernel && self->view.dtype == other->view.dtype && self->view.dtype == out->view.dtype &&
                       view_same_sizes(&self->view, &other->view) && view_same_sizes(&self->view, &out->view) &&
                       self->view.contiguous && other->view.contiguous && out->view.contiguous,
                 ACLNN_ERROR_PARAM, "%s: unsupported operands", operator_name(id));
    plan->small = 1;
    plan->task = (struct task){.run = run_binary, .class = &plan_small_class, .out = out->view.data, .a = self->view.data,
                               .b = other->view.data, .count = self->view.count, .immediate.pointer = (void *)kernel,
                               .dtype = self->view.dtype, .flags = self->view.count <= SMALL_COUNT ? TASK_SMALL : 0};
    return plan_finish(plan, 0, workspace_size, executor);
}

aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor *self, const aclTensor *other, const aclScalar *alpha, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor)
{
    return plan_binary(OPERATOR_Add, BINARY_add, self, other, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Add)

aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, uint64_t *workspaceSize,
                                     aclOpExecutor **executor)
{
    return plan_binary(OPERATOR_Mul, BINARY_mul, self, other, out, workspaceSize, executor);
}
ACLNN_PHASE_2(Mul)
