/* Plans: building, launching, recycling. See plan.h.
 *
 * Free lists: plans that phase 2 gives back on the launching thread go to that thread's list without a lock; large plans come
 * back from the stream's thread through one shared list (an atomic stack that is only ever emptied whole, so no ABA). */
#include "aclnn/plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "aclnn/aclnn_base.h"
#include "base/thread.h"
#include "runtime/stream.h"

/* PLAN_DESTROYED: a repeatable plan that only queued launches still need. */
enum plan_state { PLAN_FREE, PLAN_BUILDING, PLAN_READY, PLAN_LAUNCHED, PLAN_DESTROYED };
enum { FREE_PLANS = 32 }; /* a thread keeps at most this many */

/* Launches of a repeatable plan may be queued together, on several streams too, but the plan has one workspace field. */
struct plan_launches {
    pthread_mutex_t running; /* held while a launch runs: the plan's fields are its own meanwhile */
    _Atomic int holders;     /* the application until aclDestroyAclOpExecutor, and each queued launch of a large plan */
};

static void free_own_plans(void);

static _Thread_local struct {
    struct plan *first;
    int count;
    struct thread_cleanup cleanup;
} own;
static _Atomic(struct plan *) returned;

static const char *const names[OPERATOR_COUNT] = {
#define OPERATOR(name) [OPERATOR_##name] = "aclnn" #name,
#include "aclnn/operators.def"
#undef OPERATOR
};

const char *operator_name(enum operator_id id) { return id > OPERATOR_NONE && id < OPERATOR_COUNT ? names[id] : "(no operator)"; }

static void free_own_plans(void)
{
    while (own.first) {
        struct plan *const p = own.first;
        own.first = p->next;
        free(p);
    }
    own.count = 0;
}

static __attribute__((noinline)) struct plan *plan_take_slow(void)
{
    own.cleanup.run = free_own_plans;
    thread_at_exit(&own.cleanup);
    struct plan *p = atomic_exchange_explicit(&returned, NULL, memory_order_acquire);
    if (p) {
        own.first = p->next;
        for (const struct plan *q = own.first; q; q = q->next)
            ++own.count;
        return p;
    }
    return aligned_alloc(64, (sizeof *p + 63) / 64 * 64);
}

static inline struct plan *plan_take(void)
{
    struct plan *const p = own.first;
    if (__builtin_expect(p == NULL, 0))
        return plan_take_slow();
    own.first = p->next;
    --own.count;
    return p;
}

static void plan_free_extra(struct plan *plan)
{
    free(plan->extra);
    plan->extra = NULL;
}

/* On the thread that owns it: no lock. */
static inline void plan_give(struct plan *plan)
{
    if (__builtin_expect(plan->extra != NULL, 0))
        plan_free_extra(plan);
    plan->state = PLAN_FREE;
    if (__builtin_expect(own.count >= FREE_PLANS || !own.cleanup.registered, 0)) {
        free(plan);
        return;
    }
    plan->next = own.first;
    own.first = plan;
    ++own.count;
}

/* Was it the last holder? */
static bool leave_repeatable(struct plan *plan)
{
    struct plan_launches *const launches = plan->repeatable;
    if (atomic_fetch_sub(&launches->holders, 1) != 1)
        return false;
    plan->repeatable = NULL;
    pthread_mutex_destroy(&launches->running);
    free(launches);
    return true;
}

void plan_release(struct plan *plan)
{
    if (plan->repeatable && !leave_repeatable(plan))
        return;
    plan_free_extra(plan);
    plan->state = PLAN_FREE;
    struct plan *first = atomic_load_explicit(&returned, memory_order_relaxed);
    do
        plan->next = first;
    while (!atomic_compare_exchange_weak_explicit(&returned, &first, plan, memory_order_release, memory_order_relaxed));
}

int plan_begin(enum operator_id id, plan_run_fn run, const uint64_t *workspace_size, struct aclOpExecutor *const *executor,
               struct plan **plan)
{
    *plan = NULL;
    REQUIRE(workspace_size && executor, ACLNN_ERROR_NULLPTR, "%s: workspaceSize or executor is null", operator_name(id));
    struct plan *const p = plan_take();
    REQUIRE(p, ERROR_BAD_ALLOC, "%s: out of host memory", operator_name(id));
    p->run = run;
    p->operator_id = (uint16_t)id;
    p->small = 0;
    p->task.flags = 0;
    p->state = PLAN_BUILDING;
    p->repeatable = NULL;
    p->operand_count = 0;
    p->copes_with_overlap = p->copes_with_same = p->copied = 0;
    p->workspace = NULL;
    p->workspace_bytes = 0;
    p->extra = NULL;
    p->extra_views = NULL;
    p->extra_view_count = 0;
    *plan = p;
    return 0;
}

/* Where operators take types that are only stored: in what torch's CPU lets move, convert or compare float8. */
static const uint8_t stored_roles[OPERATOR_COUNT] = {
    [OPERATOR_Cast] = ROLE_BOTH,
    [OPERATOR_InplaceCopy] = ROLE_BOTH,
    [OPERATOR_ForeachCopy] = ROLE_BOTH,
    [OPERATOR_InplaceFillScalar] = ROLE_BOTH,
    [OPERATOR_InplaceFillTensor] = ROLE_BOTH,
    [OPERATOR_InplaceFillDiagonal] = ROLE_BOTH,
    [OPERATOR_InplaceZero] = ROLE_BOTH,
    [OPERATOR_ForeachZeroInplace] = ROLE_BOTH,
    [OPERATOR_InplaceOne] = ROLE_BOTH,
    [OPERATOR_Eye] = ROLE_BOTH,
    [OPERATOR_Cat] = ROLE_BOTH,
    [OPERATOR_Stack] = ROLE_BOTH,
    [OPERATOR_Flip] = ROLE_BOTH,
    [OPERATOR_Roll] = ROLE_BOTH,
    [OPERATOR_Repeat] = ROLE_BOTH,
    [OPERATOR_RepeatInterleave] = ROLE_BOTH,
    [OPERATOR_RepeatInterleaveWithDim] = ROLE_BOTH,
    [OPERATOR_RepeatInterleaveInt] = ROLE_BOTH,
    [OPERATOR_RepeatInterleaveIntWithDim] = ROLE_BOTH,
    [OPERATOR_ConstantPadNd] = ROLE_BOTH,
    [OPERATOR_StridedSlice] = ROLE_BOTH,
    [OPERATOR_Index] = ROLE_BOTH,
    [OPERATOR_IndexPutImpl] = ROLE_BOTH,
    [OPERATOR_IndexSelect] = ROLE_BOTH,
    [OPERATOR_GatherV3] = ROLE_BOTH,
    [OPERATOR_Embedding] = ROLE_BOTH,
    [OPERATOR_MaskedSelect] = ROLE_BOTH,
    [OPERATOR_SWhere] = ROLE_BOTH,
    [OPERATOR_Abs] = ROLE_BOTH,
    [OPERATOR_Mul] = ROLE_BOTH,
    [OPERATOR_InplaceMul] = ROLE_BOTH,
    [OPERATOR_Equal] = ROLE_INPUT,
    [OPERATOR_EqTensor] = ROLE_INPUT,
    [OPERATOR_EqScalar] = ROLE_INPUT,
    [OPERATOR_NeTensor] = ROLE_INPUT,
    [OPERATOR_NeScalar] = ROLE_INPUT,
    [OPERATOR_IsFinite] = ROLE_INPUT,
    [OPERATOR_Any] = ROLE_INPUT,
    [OPERATOR_All] = ROLE_INPUT,
    [OPERATOR_ReduceSum] = ROLE_INPUT,
};

enum dtype plan_stored_dtype(enum operator_id id, const struct aclTensor *tensor, enum operand_role role)
{
    const enum dtype dtype = dtype_from_acl(tensor->acl_dtype);
    return dtype_is_stored_only(dtype) && (stored_roles[id] & (int)role) == (int)role ? dtype : DTYPE_NONE;
}

int plan_refuse_dtype(enum operator_id id, const struct aclTensor *tensor, const char *parameter)
{
    const enum dtype dtype = dtype_from_acl(tensor->acl_dtype);
    if (dtype_is_stored_only(dtype))
        return error_set(ACLNN_ERROR_PARAM, operator_name(id),
                         "%s has data type %s, which this operator doesn't compute with; cast it to f32, f16 or bf16 first",
                         parameter, dtype_name(dtype));
    return error_set(ACLNN_ERROR_PARAM, operator_name(id), "%s has data type %d, which no operator here supports", parameter,
                     tensor->acl_dtype);
}

static __attribute__((noinline, cold)) int add_stored(struct plan *plan, const struct aclTensor *tensor, enum operand_role role,
                                                      const char *parameter, struct view **view);

static int plan_add(struct plan *plan, const struct aclTensor *tensor, enum operand_role role, const char *parameter,
                    struct view **view)
{
    const char *const name = plan_name(plan);
    REQUIRE(tensor, ACLNN_ERROR_NULLPTR, "%s: %s is null", name, parameter);
    if (__builtin_expect(tensor->view.dtype == DTYPE_NONE, 0))
        return add_stored(plan, tensor, role, parameter, view);
    REQUIRE(tensor->view.data || tensor->view.count == 0, ACLNN_ERROR_NULLPTR, "%s: %s has elements but no memory", name,
            parameter);
    REQUIRE(plan->operand_count < PLAN_OPERANDS, ACLNN_ERROR_INNER, "%s: more than %d operands", name, PLAN_OPERANDS);
    const int i = plan->operand_count++;
    plan->operands[i] = tensor->view;
    plan->roles[i] = (uint8_t)role;
    if (view)
        *view = &plan->operands[i];
    return 0;
}

static int add_stored(struct plan *plan, const struct aclTensor *tensor, enum operand_role role, const char *parameter,
                      struct view **view)
{
    const enum operator_id id = (enum operator_id)plan->operator_id;
    const enum dtype dtype = plan_stored_dtype(id, tensor, role);
    if (dtype == DTYPE_NONE)
        return plan_refuse_dtype(id, tensor, parameter);
    struct aclTensor typed = *tensor;
    typed.view.dtype = (uint8_t)dtype;
    return plan_add(plan, &typed, role, parameter, view);
}

int plan_input(struct plan *plan, const struct aclTensor *tensor, const char *parameter, struct view **view)
{
    return plan_add(plan, tensor, ROLE_INPUT, parameter, view);
}

int plan_output(struct plan *plan, const struct aclTensor *tensor, const char *parameter, struct view **view)
{
    return plan_add(plan, tensor, ROLE_OUTPUT, parameter, view);
}

int plan_inout(struct plan *plan, const struct aclTensor *tensor, const char *parameter, struct view **view)
{
    return plan_add(plan, tensor, ROLE_BOTH, parameter, view);
}

int plan_optional(struct plan *plan, const struct aclTensor *tensor, enum operand_role role, const char *parameter,
                  struct view **view)
{
    if (tensor)
        return plan_add(plan, tensor, role, parameter, view);
    REQUIRE(plan->operand_count < PLAN_OPERANDS, ACLNN_ERROR_INNER, "%s: more than %d operands", plan_name(plan), PLAN_OPERANDS);
    const int i = plan->operand_count++;
    plan->operands[i] = (struct view){.dtype = DTYPE_NONE};
    plan->roles[i] = (uint8_t)role;
    if (view)
        *view = &plan->operands[i];
    return 0;
}

int plan_extra(struct plan *plan, size_t bytes, void **memory)
{
    const char *const name = plan_name(plan);
    REQUIRE(!plan->extra, ACLNN_ERROR_INNER, "%s: a plan has one extra block", name);
    plan->extra = calloc(1, bytes ? bytes : 1);
    REQUIRE(plan->extra, ERROR_BAD_ALLOC, "%s: out of host memory", name);
    *memory = plan->extra;
    return 0;
}

/* --- inputs that share memory with an output ------------------------------------------------------------------------ */

static bool same_place(const struct view *a, const struct view *b)
{
    return a->data == b->data && a->dtype == b->dtype && view_same_sizes(a, b) &&
           memcmp(a->strides, b->strides, a->ndim * sizeof a->strides[0]) == 0;
}

static bool must_copy(const struct plan *plan, int input)
{
    const struct view *const in = &plan->operands[input];
    for (int i = 0; i < plan->operand_count; ++i) {
        const struct view *const out = &plan->operands[i];
        if (i == input || !(plan->roles[i] & ROLE_OUTPUT) || !out->data || !view_overlaps(in, out))
            continue;
        if (!(plan->copes_with_same >> input & 1 && same_place(in, out)))
            return true;
    }
    return false;
}

/* Bytes of everything between the first and the last element: a copy of them keeps the strides, which plans rely on. */
static uint64_t copy_bytes(const struct view *v)
{
    const char *first, *last;
    view_range(v, &first, &last);
    return ((uint64_t)(last - first) + 63) / 64 * 64;
}

/* Marks the inputs to copy; returns the workspace with room for them. */
static uint64_t add_copies(struct plan *plan, uint64_t workspace)
{
    for (int i = 0; i < plan->operand_count; ++i) {
        if (plan->roles[i] != ROLE_INPUT || plan->copes_with_overlap >> i & 1 || !plan->operands[i].data || !must_copy(plan, i))
            continue;
        if (!plan->copied)
            workspace = plan->copies_at = (workspace + 63) / 64 * 64;
        plan->copied |= (uint16_t)(1u << i);
        workspace += copy_bytes(&plan->operands[i]);
    }
    return workspace;
}

static __attribute__((noinline)) int run_with_copies(struct plan *plan)
{
    char *originals[PLAN_OPERANDS], *room = (char *)plan->workspace + plan->copies_at;
    for (int i = 0; i < plan->operand_count; ++i) {
        struct view *const v = &plan->operands[i];
        const char *first, *last;
        if (!(plan->copied >> i & 1))
            continue;
        view_range(v, &first, &last);
        memcpy(room, first, (size_t)(last - first));
        originals[i] = v->data;
        v->data = room + (v->data - first);
        room += ((uint64_t)(last - first) + 63) / 64 * 64;
    }
    const int code = plan->run(plan);
    for (int i = 0; i < plan->operand_count; ++i) /* a repeatable plan runs again */
        if (plan->copied >> i & 1)
            plan->operands[i].data = originals[i];
    return code;
}

int plan_finish(struct plan *plan, uint64_t workspace, uint64_t *workspace_size, struct aclOpExecutor **executor)
{
    if (!plan->small && plan->copes_with_overlap != PLAN_ALL_OPERANDS)
        workspace = add_copies(plan, workspace);
    plan->state = PLAN_READY;
    plan->workspace_bytes = workspace;
    *workspace_size = workspace;
    *executor = (struct aclOpExecutor *)plan;
    return 0;
}

void plan_abandon(struct plan *plan)
{
    if (plan)
        plan_give(plan);
}

/* --- the class of large plans ------------------------------------------------------------------------------------- */

static const char *plan_task_name(const struct task *task) { return operator_name((enum operator_id)task->operator_id); }

static void visit_view(const struct view *v, enum operand_role role, void (*visit)(void *, const char *, const char *, bool),
                       void *context)
{
    const char *first, *last;
    if (!v->data || v->count == 0)
        return;
    view_range(v, &first, &last);
    if (role & ROLE_INPUT)
        visit(context, first, last, false);
    if (role & ROLE_OUTPUT)
        visit(context, first, last, true);
}

static void plan_task_ranges(const struct task *task, void (*visit)(void *, const char *, const char *, bool), void *context)
{
    const struct plan *const p = task->immediate.pointer;
    for (int i = 0; i < p->operand_count; ++i)
        visit_view(&p->operands[i], (enum operand_role)p->roles[i], visit, context);
    for (int64_t i = 0; i < p->extra_view_count; ++i)
        visit_view(&p->extra_views[i], ROLE_BOTH, visit, context);
}

static void plan_task_drop(struct task *task) { plan_release(task->immediate.pointer); }

static const struct task_class plan_class = {.name = plan_task_name, .ranges = plan_task_ranges, .drop = plan_task_drop};

static int plan_task_run(struct task *task)
{
    struct plan *const p = task->immediate.pointer;
    struct plan_launches *const launches = p->repeatable;
    if (launches) {
        pthread_mutex_lock(&launches->running);
        p->workspace = task->out;
    }
    const int code = __builtin_expect(p->copied != 0, 0) ? run_with_copies(p) : p->run(p);
    if (launches)
        pthread_mutex_unlock(&launches->running);
    if (code == 0)
        plan_release(p); /* after a failure the stream still asks for the ranges, then drops */
    return code;
}

/* --- the class of small plans: three contiguous operands of one element type ---------------------------------------- */

static void small_task_ranges(const struct task *task, void (*visit)(void *, const char *, const char *, bool), void *context)
{
    const int64_t bytes = task->count * (int64_t)dtype_bytes((enum dtype)task->dtype);
    if (task->a)
        visit(context, task->a, (const char *)task->a + bytes, false);
    if (task->b)
        visit(context, task->b, (const char *)task->b + bytes, false);
    if (task->out)
        visit(context, task->out, (const char *)task->out + bytes, true);
}

const struct task_class plan_small_class = {.name = plan_task_name, .ranges = small_task_ranges};

/* --- phase 2 -------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) int refuse_executor(enum operator_id id, const struct plan *p, const void *workspace,
                                                           uint64_t workspace_size)
{
    const char *const name = operator_name(id);
    REQUIRE(p, ACLNN_ERROR_NULLPTR, "%s: executor is null", name);
    REQUIRE(p->state == PLAN_READY, ACLNN_ERROR_EXECUTOR,
            "%s: the executor was used before; an executor serves one launch "
            "unless aclSetAclOpExecutorRepeatable was called",
            name);
    REQUIRE(p->operator_id == id, ACLNN_ERROR_EXECUTOR, "%s: the executor was made by %sGetWorkspaceSize", name,
            operator_name((enum operator_id)p->operator_id));
    REQUIRE(workspace || p->workspace_bytes == 0, ACLNN_ERROR_NULLPTR, "%s: workspace is null, %llu bytes are needed", name,
            (unsigned long long)p->workspace_bytes);
    FAIL(ACLNN_ERROR_PARAM, "%s: workspace has %llu bytes, %llu are needed", name, (unsigned long long)workspace_size,
         (unsigned long long)p->workspace_bytes);
}

static int launch_large(enum operator_id id, struct plan *p, void *workspace, struct stream *target)
{
    struct task task = {.run = plan_task_run,
                        .class = &plan_class,
                        .operator_id = (uint16_t)id,
                        .out = workspace,
                        .immediate.pointer = p,
                        .flags = p->task.flags};
    if (p->repeatable) {
        ++p->repeatable->holders;
    } else {
        p->state = PLAN_LAUNCHED;
        p->workspace = workspace;
    }
    const int code = stream_launch(target, &task);
    if (__builtin_expect(code != 0, 0)) {
        if (p->repeatable)
            plan_release(p);
        else
            plan_give(p);
    }
    return code;
}

int plan_launch(enum operator_id id, void *workspace, uint64_t workspace_size, struct aclOpExecutor *executor, void *stream)
{
    struct plan *const p = (struct plan *)executor;
    if (__builtin_expect(!p || p->state != PLAN_READY || p->operator_id != id || workspace_size < p->workspace_bytes ||
                             (!workspace && p->workspace_bytes),
                         0))
        return refuse_executor(id, p, workspace, workspace_size);
    struct stream *target;
    int code = stream_resolve(stream, &target);
    if (__builtin_expect(code == 0, 1)) {
        if (!p->small)
            return launch_large(id, p, workspace, target);
        p->task.operator_id = (uint16_t)id;
        code = stream_launch(target, &p->task);
    }
    if (!p->repeatable)
        plan_give(p);
    return code;
}

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
{
    struct plan *const p = (struct plan *)executor;
    REQUIRE(p, ACLNN_ERROR_NULLPTR, "executor is null");
    REQUIRE(p->state == PLAN_READY, ACLNN_ERROR_EXECUTOR, "the executor was launched already");
    if (p->repeatable)
        return 0;
    struct plan_launches *const launches = malloc(sizeof *launches);
    REQUIRE(launches, ERROR_BAD_ALLOC, "out of host memory");
    *launches = (struct plan_launches){.running = PTHREAD_MUTEX_INITIALIZER, .holders = 1};
    p->repeatable = launches;
    return 0;
}

aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
{
    struct plan *const p = (struct plan *)executor;
    REQUIRE(p, ACLNN_ERROR_NULLPTR, "executor is null");
    REQUIRE(p->state == PLAN_READY, ACLNN_ERROR_EXECUTOR, "the executor was launched and gave itself back");
    p->state = PLAN_DESTROYED;
    if (p->repeatable)
        plan_release(p); /* launches that are still queued keep it */
    else
        plan_give(p);
    return 0;
}

aclnnStatus aclnnInit(const char *configPath)
{
    (void)configPath; /* upstream: a path or NULL; nothing in it concerns a software device */
    return 0;
}

aclnnStatus aclnnFinalize(void) { return 0; }
