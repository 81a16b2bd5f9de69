/* Phase 1 and the run functions of elementwise operators. See elementwise.h. */
#include "aclnn/math/elementwise.h"

#include <stdio.h>
#include <string.h>

#include "aclnn/math/strided_loop.h"
#include "base/half.h"

enum {
    SMALL_ELEMENTS = 4096, /* up to here a cheap task may run in the caller */
    SMALL_COSTLY_ELEMENTS = 1024,
    SMALL_STRIDED_ELEMENTS = 1024
};

/* --- scalars and promotion ----------------------------------------------------------------------------------------- */

union elementwise_scalar elementwise_scalar_from(const struct aclScalar *scalar, enum dtype compute)
{
    union elementwise_scalar value = {.c128 = {0, 0}};
    const enum dtype_kind kind = dtype_kind(compute);
    if (kind == KIND_COMPLEX) {
        value.c128 = scalar_to_complex(scalar);
    } else if (kind == KIND_FLOAT) {
        value.f64 = scalar_to_double(scalar);
    } else if (kind == KIND_BOOL) {
        value.i64 = dtype_kind(scalar->dtype) >= KIND_FLOAT ? scalar_to_double(scalar) != 0 : scalar_to_int64(scalar) != 0;
    } else {
        value.i64 = scalar_to_int64(scalar);
    }
    return value;
}

/* The type in which elementwise_scalar_from leaves its value. */
static enum dtype scalar_dtype(enum dtype compute)
{
    const enum dtype_kind kind = dtype_kind(compute);
    return kind == KIND_COMPLEX ? DTYPE_C128 : kind == KIND_FLOAT ? DTYPE_F64 : DTYPE_I64;
}

static enum dtype wrapped_dtype(enum dtype scalar)
{
    switch (dtype_kind(scalar)) {
    case KIND_BOOL: return DTYPE_B8;
    case KIND_INTEGER: return DTYPE_I64;
    case KIND_FLOAT: return DTYPE_F32;
    default: return DTYPE_C64;
    }
}

static enum dtype promote_into(enum dtype a, enum dtype b)
{
    return a == DTYPE_NONE ? b : b == DTYPE_NONE ? a : dtype_promote(a, b);
}

/* A group of lower rank matters only when its kind is higher. */
static enum dtype promote_lower(enum dtype high, enum dtype low)
{
    if (high == DTYPE_NONE || low == DTYPE_NONE)
        return high == DTYPE_NONE ? low : high;
    return dtype_kind(high) >= dtype_kind(low) ? high : dtype_promote(high, low);
}

enum dtype elementwise_promote(const struct elementwise_input *inputs, int count, bool *is_default)
{
    enum dtype dimensioned = DTYPE_NONE, single = DTYPE_NONE, wrapped = DTYPE_NONE;
    for (int i = 0; i < count; ++i) {
        if (!inputs[i].tensor)
            wrapped = promote_into(wrapped, wrapped_dtype(inputs[i].scalar->dtype));
        else if (inputs[i].tensor->view.ndim > 0)
            dimensioned = promote_into(dimensioned, (enum dtype)inputs[i].tensor->view.dtype);
        else
            single = promote_into(single, (enum dtype)inputs[i].tensor->view.dtype);
    }
    const enum dtype tensors = promote_lower(dimensioned, single);
    const enum dtype all = promote_lower(tensors, wrapped);
    *is_default = all == DTYPE_F32 && wrapped == DTYPE_F32 && (tensors == DTYPE_NONE || !dtype_is_floating(tensors));
    return all;
}

/* --- checks -------------------------------------------------------------------------------------------------------- */

int elementwise_check_output(enum operator_id id, const struct view *out, const char *name)
{
    for (int i = 0; i < out->ndim; ++i)
        REQUIRE(out->strides[i] != 0 || out->sizes[i] <= 1 || out->count == 0, ACLNN_ERROR_PARAM,
                "%s: %s %s is expanded along dimension %d: several of its elements share memory, so it can't be written. "
                "Clone it first",
                operator_name(id), name, view_text(out), i);
    return 0;
}

bool elementwise_overlaps(const struct view *out, const struct view *in)
{
    if (out->data == in->data && dtype_bytes((enum dtype)out->dtype) == dtype_bytes((enum dtype)in->dtype) &&
        view_same_sizes(out, in) &&
        (out->contiguous ? in->contiguous : memcmp(out->strides, in->strides, out->ndim * sizeof out->strides[0]) == 0))
        return false;
    return view_overlaps(out, in);
}

static int fail_dtype(const struct elementwise_call *call, enum dtype given)
{
    char allowed[160] = "";
    int used = 0;
    for (int d = 0; d < DTYPE_COUNT; ++d) {
        const enum dtype compute = call->rule == RULE_RAW ? (enum dtype)d : dtype_compute((enum dtype)d);
        const bool staged = call->rule == RULE_FLOAT && dtype_kind((enum dtype)d) < KIND_FLOAT;
        if (staged || kernels->elementwise->run[call->kernel][compute])
            used += snprintf(allowed + used, sizeof allowed - (size_t)used, "%s%s", used ? " " : "", dtype_name((enum dtype)d));
    }
    const struct elementwise_input *const first = &call->inputs[(call->flags & CALL_MASK_FIRST) && call->input_count > 1];
    FAIL(ACLNN_ERROR_PARAM, "%s: %s is %s, so it would compute in %s; supported: %s", operator_name(call->id), first->name,
         first->tensor ? dtype_name((enum dtype)first->tensor->view.dtype) : "a scalar", dtype_name(given), allowed);
}

static int check_inputs(const struct elementwise_call *call)
{
    const char *const name = operator_name(call->id);
    for (int i = 0; i < call->input_count; ++i) {
        const struct elementwise_input *const in = &call->inputs[i];
        REQUIRE(in->tensor || in->scalar, ACLNN_ERROR_NULLPTR, "%s: %s is null", name, in->name);
        if (in->tensor && in->tensor->view.dtype == DTYPE_NONE)
            return plan_refuse_dtype(call->id, in->tensor, in->name);
    }
    REQUIRE(call->out.tensor, ACLNN_ERROR_NULLPTR, "%s: %s is null", name, call->out.name);
    return call->out.tensor->view.dtype == DTYPE_NONE ? plan_refuse_dtype(call->id, call->out.tensor, call->out.name) : 0;
}

static int check_shape(const struct elementwise_call *call)
{
    struct view shape = {.ndim = 0};
    const struct view *const out = &call->out.tensor->view;
    for (int i = 0; i < call->input_count; ++i) {
        const struct aclTensor *const t = call->inputs[i].tensor;
        int64_t sizes[TENSOR_MAX_DIMS];
        uint8_t ndim;
        if (!t)
            continue;
        REQUIRE(view_broadcast_sizes(&shape, &t->view, sizes, &ndim), ACLNN_ERROR_PARAM,
                "%s: %s %s doesn't broadcast with the operands before it", operator_name(call->id), call->inputs[i].name,
                view_text(&t->view));
        shape.ndim = ndim;
        memcpy(shape.sizes, sizes, sizeof sizes);
    }
    shape.dtype = out->dtype;
    REQUIRE(view_same_sizes(&shape, out), ACLNN_ERROR_PARAM, "%s: the operands broadcast to %s, but %s is %s",
            operator_name(call->id), view_text(&shape), call->out.name, view_text(out));
    return elementwise_check_output(call->id, out, call->out.name);
}

/* --- contiguous operands of one shape and type: the task is everything --------------------------------------------- */

enum small_detail { SMALL_KERNEL_MASK = 0xffff, SMALL_CONSTANT_A = 1 << 16, SMALL_CONSTANT_B = 2 << 16 };

static const char *small_name(const struct task *task) { return operator_name((enum operator_id)task->operator_id); }

static enum dtype small_result_dtype(const struct task *task)
{
    const unsigned kernel = task->detail & SMALL_KERNEL_MASK;
    return elementwise_result_dtype((enum elementwise_result)elementwise_infos[kernel].result, (enum dtype)task->dtype);
}

static void small_ranges(const struct task *task, void (*visit)(void *, const char *, const char *, bool), void *context)
{
    const int64_t bytes = task->count * (int64_t)dtype_bytes((enum dtype)task->dtype);
    if (task->count == 0)
        return;
    if (task->a)
        visit(context, task->a, (const char *)task->a + bytes, false);
    if (task->b)
        visit(context, task->b, (const char *)task->b + bytes, false);
    visit(context, task->out, (const char *)task->out + task->count * (int64_t)dtype_bytes(small_result_dtype(task)), true);
}

static const struct task_class small_class = {.name = small_name, .ranges = small_ranges};

static void small_add(struct strided_loop *loop, const struct task *task, const void *data, bool constant)
{
    const enum dtype dtype = (enum dtype)task->dtype, compute = dtype_compute(dtype);
    if (constant) {
        loop_add_constant(loop, scalar_dtype(dtype), (union elementwise_scalar){.i64 = task->immediate.i64}, compute);
        return;
    }
    const struct view v = {.data = (char *)(uintptr_t)data,
                           .count = task->count,
                           .dtype = (uint8_t)dtype,
                           .ndim = 1,
                           .contiguous = true,
                           .sizes = {task->count},
                           .strides = {1}};
    loop_add(loop, &v, compute);
}

static __attribute__((noinline)) int run_small_loop(const struct task *task)
{
    const enum elementwise_id kernel = (enum elementwise_id)(task->detail & SMALL_KERNEL_MASK);
    const enum dtype compute = dtype_compute((enum dtype)task->dtype);
    const enum elementwise_result result = (enum elementwise_result)elementwise_infos[kernel].result;
    struct strided_loop loop;
    loop_begin(&loop, kernel, compute);
    loop.scalars[0].i64 = task->immediate.i64;
    const struct view out = {.data = task->out,
                             .count = task->count,
                             .dtype = (uint8_t)small_result_dtype(task),
                             .ndim = 1,
                             .contiguous = true,
                             .sizes = {task->count},
                             .strides = {1}};
    loop_add(&loop, &out, elementwise_result_dtype(result, compute));
    small_add(&loop, task, task->a, task->detail & SMALL_CONSTANT_A);
    if (elementwise_infos[kernel].inputs > 1)
        small_add(&loop, task, task->b, task->detail & SMALL_CONSTANT_B);
    loop_ready(&loop);
    loop_run(&loop);
    return 0;
}

/* A scalar operand, few elements of a type that kernels take as it is: fills a tile with the scalar. */
static int run_small_constant(const struct task *task, elementwise_fn run)
{
    const enum dtype dtype = (enum dtype)task->dtype;
    _Alignas(64) char tile[LOOP_TILE * sizeof(double)];
    double element; /* of any type up to 8 bytes */
    convert_elements(&element, dtype, &task->immediate, scalar_dtype(dtype), 1);
    kernels->cast->fill[__builtin_ctzll(dtype_bytes(dtype))](tile, &element, (size_t)task->count);
    void *const operands[] = {task->out, task->detail & SMALL_CONSTANT_A ? tile : (void *)(uintptr_t)task->a,
                              task->detail & SMALL_CONSTANT_B ? tile : (void *)(uintptr_t)task->b};
    const union elementwise_scalar scalars[ELEMENTWISE_SCALARS] = {{.i64 = 0}};
    run(operands, (size_t)task->count, scalars);
    return 0;
}

static int run_small(struct task *task)
{
    const unsigned kernel = task->detail & SMALL_KERNEL_MASK;
    const elementwise_fn run = kernels->elementwise->run[kernel][task->dtype];
    if (__builtin_expect(task->count > SMALL_ELEMENTS || !run || task->detail > SMALL_KERNEL_MASK, 0))
        return run && task->count <= LOOP_TILE ? run_small_constant(task, run) : run_small_loop(task);
    void *const operands[] = {task->out, (void *)(uintptr_t)task->a, (void *)(uintptr_t)task->b};
    union elementwise_scalar scalars[ELEMENTWISE_SCALARS];
    scalars[0].i64 = task->immediate.i64;
    run(operands, (size_t)task->count, scalars);
    return 0;
}

static inline void small_fill(struct plan *plan, unsigned detail, const struct view *out, const void *a, const void *b,
                              enum dtype dtype)
{
    struct task *const task = &plan->task;
    const int cost = elementwise_infos[detail & SMALL_KERNEL_MASK].cost;
    plan->small = 1;
    task->run = run_small;
    task->class = &small_class;
    task->out = out->data;
    task->a = a;
    task->b = b;
    task->count = out->count;
    task->immediate.i64 = 0;
    task->dtype = (uint8_t)dtype;
    task->flags = out->count <= (cost >= 4 ? SMALL_COSTLY_ELEMENTS : SMALL_ELEMENTS) ? TASK_SMALL : 0;
    task->detail = detail;
}

/* No other overlap than being the same memory. Both contiguous, of one element size. */
static inline bool apart_or_same(const struct view *out, const struct view *in)
{
    const int64_t bytes = out->count * (int64_t)dtype_infos[in->dtype].bytes, distance = in->data - out->data;
    return distance == 0 || distance >= bytes || -distance >= bytes;
}

static inline bool fits_small(const struct view *out, const struct view *in, unsigned dtype)
{
    if (in->dtype != dtype || !in->contiguous || in->ndim != out->ndim || !in->data || !out->data || !apart_or_same(out, in))
        return false;
    for (int i = 0; i < out->ndim; ++i)
        if (in->sizes[i] != out->sizes[i])
            return false;
    return true;
}

bool elementwise_plan_small(enum operator_id id, enum elementwise_id kernel, const struct aclTensor *a, const struct aclTensor *b,
                            const struct aclTensor *out, uint64_t *workspace_size, struct aclOpExecutor **executor)
{
    if (!a || !out || out->view.dtype == DTYPE_NONE || !out->view.contiguous || !out->view.data)
        return false;
    const unsigned dtype = out->view.dtype;
    if (!fits_small(&out->view, &a->view, dtype) || (b && !fits_small(&out->view, &b->view, dtype)) ||
        !kernels->elementwise->run[kernel][dtype_compute((enum dtype)dtype)])
        return false;
    struct plan *plan;
    if (plan_begin(id, NULL, workspace_size, executor, &plan) != 0)
        return false;
    small_fill(plan, kernel, &out->view, a->view.data, b ? b->view.data : NULL, (enum dtype)dtype);
    plan_finish(plan, 0, workspace_size, executor);
    return true;
}

static bool is_half(enum dtype d) { return d == DTYPE_F16 || d == DTYPE_BF16; }

bool elementwise_plan_small_scalar(enum operator_id id, enum elementwise_id kernel, unsigned flags, const struct aclTensor *tensor,
                                   const struct aclScalar *scalar, bool scalar_first, const struct aclTensor *out,
                                   uint64_t *workspace_size, struct aclOpExecutor **executor)
{
    if (!tensor || !scalar || !out || tensor->view.dtype == DTYPE_NONE || !out->view.contiguous)
        return false;
    const enum dtype dtype = (enum dtype)tensor->view.dtype;
    const enum dtype result = elementwise_result_dtype((enum elementwise_result)elementwise_infos[kernel].result, dtype);
    const enum dtype_kind kind = dtype_kind(dtype);
    if (out->view.dtype != result || kind == KIND_COMPLEX || dtype_kind(scalar->dtype) > kind ||
        (is_half(dtype) && !(flags & CALL_EXACT_SCALARS)) || ((flags & CALL_REFUSE_ZERO) && kind == KIND_INTEGER) ||
        !kernels->elementwise->run[kernel][dtype_compute(dtype)] || !fits_small(&out->view, &tensor->view, dtype) ||
        (out->view.data == tensor->view.data && result != dtype))
        return false;
    struct plan *plan;
    if (plan_begin(id, NULL, workspace_size, executor, &plan) != 0)
        return false;
    const void *const data = tensor->view.data;
    small_fill(plan, kernel | (scalar_first ? SMALL_CONSTANT_A : SMALL_CONSTANT_B), &out->view, scalar_first ? NULL : data,
               scalar_first ? data : NULL, dtype);
    plan->task.immediate.i64 = elementwise_scalar_from(scalar, dtype).i64;
    plan_finish(plan, 0, workspace_size, executor);
    return true;
}

/* --- everything else ----------------------------------------------------------------------------------------------- */

/* One pass of a plan. */
struct elementwise_job {
    uint16_t kernel;
    uint8_t compute;
    uint8_t result; /* type of the kernel's result */
    uint8_t input_count;
    uint8_t refuse_zero;
    uint8_t out;                                    /* index in the plan */
    uint8_t half;                                   /* the promoted type when it is a half type, else DTYPE_NONE */
    uint8_t input_dtypes[ELEMENTWISE_OPERANDS - 1]; /* as the kernel takes them */
    uint8_t constant_dtypes[ELEMENTWISE_OPERANDS - 1];
    uint8_t copied[ELEMENTWISE_OPERANDS - 1];  /* overlaps this pass's output or an earlier one's: goes through the workspace */
    int8_t operands[ELEMENTWISE_OPERANDS - 1]; /* index in the plan; -1: a constant */
    union elementwise_scalar constants[ELEMENTWISE_OPERANDS - 1];
    union elementwise_scalar scalars[ELEMENTWISE_SCALARS];
};

/* The immediates of a plan. */
struct elementwise_jobs {
    int count;
    struct elementwise_job jobs[ELEMENTWISE_PASSES];
};

static uint64_t view_bytes(const struct view *v) { return ((uint64_t)v->count * dtype_bytes((enum dtype)v->dtype) + 63) / 64 * 64; }

/* The tensors that a pass reads. Copies go to *workspace, which moves past them, before any pass writes. */
static void take_inputs(const struct plan *plan, const struct elementwise_job *job, struct view *inputs, char **workspace)
{
    for (int i = 0; i < job->input_count; ++i) {
        if (job->operands[i] < 0)
            continue;
        const struct view *const original = &plan->operands[job->operands[i]];
        inputs[i] = *original;
        if (!job->copied[i])
            continue;
        inputs[i].data = *workspace;
        view_make_contiguous(&inputs[i]);
        copy_view(&inputs[i], original);
        *workspace += view_bytes(&inputs[i]);
    }
}

/* inputs: as operands of the plan, or copies of them. */
static int run_job(const struct plan *plan, const struct elementwise_job *job, const struct view *inputs)
{
    struct strided_loop loop;
    loop_begin(&loop, (enum elementwise_id)job->kernel, (enum dtype)job->compute);
    memcpy(loop.scalars, job->scalars, sizeof job->scalars);
    loop_add(&loop, &plan->operands[job->out], (enum dtype)job->result);
    for (int i = 0; i < job->input_count; ++i) {
        const enum dtype dtype = (enum dtype)job->input_dtypes[i];
        if (job->operands[i] < 0) {
            loop_add_constant(&loop, (enum dtype)job->constant_dtypes[i], job->constants[i], dtype);
            continue;
        }
        const struct view *const in = &inputs[i];
        loop_add(&loop, in, dtype);
        if (job->half != DTYPE_NONE && dtype_kind((enum dtype)in->dtype) == KIND_INTEGER && in->count > 1)
            loop_round_through(&loop, (enum dtype)job->half);
    }
    _Atomic bool zero_found = false;
    if (job->refuse_zero) {
        loop.check = kernels->cast->has_zero[job->compute];
        loop.checked = job->input_count;
        loop.found = &zero_found;
    }
    REQUIRE(loop_ready(&loop), ACLNN_ERROR_INNER, "%s: the operands don't fit each other", plan_name(plan));
    loop_run(&loop);
    if (zero_found)
        return error_set(ERROR_RT_DEVICE_TASK, plan_name(plan), "ZeroDivisionError: an integer was divided by zero");
    return 0;
}

static int run_jobs(struct plan *plan)
{
    const struct elementwise_jobs *const all = PLAN_IMMEDIATE(plan, struct elementwise_jobs);
    struct view inputs[ELEMENTWISE_PASSES][ELEMENTWISE_OPERANDS - 1];
    char *workspace = plan->workspace;
    for (int i = 0; i < all->count; ++i)
        take_inputs(plan, &all->jobs[i], inputs[i], &workspace);
    for (int i = 0; i < all->count; ++i)
        TRY(run_job(plan, &all->jobs[i], inputs[i]));
    return 0;
}

static double round_to_half(double value, enum dtype half)
{
    return half == DTYPE_F16 ? (double)half_f16_to_f32(half_f16_from_f32((float)value))
                             : (double)half_bf16_to_f32(half_bf16_from_f32((float)value));
}

static double round_to_stored(double value, enum dtype stored)
{
    uint8_t rounded;
    convert_elements(&rounded, stored, &value, DTYPE_F64, 1);
    convert_elements(&value, DTYPE_F64, &rounded, stored, 1);
    return value;
}

static union elementwise_scalar constant_of(const struct elementwise_call *call, const struct aclScalar *scalar,
                                            enum dtype promoted)
{
    union elementwise_scalar value = elementwise_scalar_from(scalar, promoted);
    if (is_half(promoted) && !(call->flags & CALL_EXACT_SCALARS))
        value.f64 = round_to_half(value.f64, promoted);
    else if (dtype_is_stored_only(promoted))
        value.f64 = round_to_stored(value.f64, promoted);
    return value;
}

static union elementwise_scalar parameter_of(const struct elementwise_call *call, int i, enum dtype promoted)
{
    if (call->parameters[i])
        return constant_of(call, call->parameters[i], promoted);
    return (union elementwise_scalar){.f64 = call->numbers[i]};
}

/* A plan that fits a task: fills it and returns true. */
static bool plan_as_small(const struct elementwise_call *call, enum dtype promoted, struct plan *plan)
{
    const struct elementwise_info *const info = &elementwise_infos[call->kernel];
    const struct view *const out = &call->out.tensor->view;
    const void *data[2] = {NULL, NULL};
    unsigned detail = call->kernel;
    int64_t immediate = 0;
    int immediates = call->parameter_count;
    if (call->input_count > 2 || call->rule == RULE_RAW || dtype_kind(promoted) == KIND_COMPLEX || !out->contiguous ||
        out->dtype != elementwise_result_dtype((enum elementwise_result)info->result, promoted))
        return false;
    if (call->parameter_count == 1)
        immediate = parameter_of(call, 0, promoted).i64;
    for (int i = 0; i < call->input_count; ++i) {
        if (call->inputs[i].scalar) {
            detail |= i == 0 ? SMALL_CONSTANT_A : SMALL_CONSTANT_B;
            immediate = constant_of(call, call->inputs[i].scalar, promoted).i64;
            ++immediates;
        } else {
            const struct view *const in = &call->inputs[i].tensor->view;
            if (!fits_small(out, in, promoted) || (in->data == out->data && in->dtype != out->dtype && out->count > 0))
                return false;
            data[i] = in->data;
        }
    }
    if (immediates > 1 || ((call->flags & CALL_REFUSE_ZERO) && dtype_kind(promoted) == KIND_INTEGER))
        return false;
    small_fill(plan, detail, out, data[0], data[1], promoted);
    plan->task.immediate.i64 = immediate;
    return true;
}

/* Does a pass before this one write what it reads? */
static bool written_before(struct plan *plan, const struct elementwise_job *job, const struct view *in)
{
    const struct elementwise_jobs *const all = PLAN_IMMEDIATE(plan, struct elementwise_jobs);
    for (const struct elementwise_job *earlier = all->jobs; earlier < job; ++earlier)
        if (view_overlaps(&plan->operands[earlier->out], in))
            return true;
    return false;
}

/* Adds one pass to the plan. *workspace grows by what copies of overlapping inputs need. */
static int plan_job(const struct elementwise_call *call, enum dtype promoted, struct plan *plan, struct elementwise_job *job,
                    uint64_t *workspace)
{
    const enum dtype compute = call->rule == RULE_RAW ? promoted : dtype_compute(promoted);
    struct view *out;
    job->out = plan->operand_count;
    TRY(call->flags & CALL_INPLACE ? plan_inout(plan, call->out.tensor, call->out.name, &out)
                                   : plan_output(plan, call->out.tensor, call->out.name, &out));
    job->kernel = (uint16_t)call->kernel;
    job->compute = (uint8_t)compute;
    job->half = (uint8_t)(is_half(promoted) ? promoted : DTYPE_NONE);
    job->result = (uint8_t)elementwise_result_dtype((enum elementwise_result)elementwise_infos[call->kernel].result, compute);
    job->input_count = (uint8_t)call->input_count;
    job->refuse_zero = (call->flags & CALL_REFUSE_ZERO) && dtype_kind(compute) == KIND_INTEGER;
    for (int i = 0; i < call->parameter_count; ++i)
        job->scalars[i] = parameter_of(call, i, promoted);
    for (int i = 0; i < call->input_count; ++i) {
        const bool mask = i == 0 && (call->flags & CALL_MASK_FIRST);
        job->input_dtypes[i] = (uint8_t)(mask ? DTYPE_B8 : compute);
        job->copied[i] = 0;
        if (call->inputs[i].scalar) {
            job->operands[i] = -1;
            job->constant_dtypes[i] = (uint8_t)scalar_dtype(promoted);
            job->constants[i] = constant_of(call, call->inputs[i].scalar, promoted);
            continue;
        }
        job->operands[i] = (int8_t)plan->operand_count;
        TRY(plan_input(plan, call->inputs[i].tensor, call->inputs[i].name, NULL));
        const struct view *const in = &plan->operands[plan->operand_count - 1];
        if (elementwise_overlaps(out, in) || written_before(plan, job, in)) {
            job->copied[i] = 1;
            *workspace += view_bytes(in);
        }
    }
    return 0;
}

/* The type that the call computes in, before halves are staged. */
static enum dtype call_dtype(const struct elementwise_call *call)
{
    const int first = call->flags & CALL_MASK_FIRST ? 1 : 0;
    const enum dtype out = (enum dtype)call->out.tensor->view.dtype;
    bool is_default;
    enum dtype promoted = elementwise_promote(call->inputs + first, call->input_count - first, &is_default);
    if (call->rule == RULE_LOGICAL)
        return DTYPE_B8;
    if (call->rule == RULE_FLOAT && dtype_kind(promoted) < KIND_FLOAT) {
        promoted = DTYPE_F32;
        is_default = true;
    }
    return is_default && out == DTYPE_F64 ? DTYPE_F64 : promoted;
}

/* Everything that can be wrong with a call, and the type that it computes in. */
static int check_call(const struct elementwise_call *call, enum dtype *promoted)
{
    TRY(check_inputs(call));
    *promoted = call_dtype(call);
    const enum dtype compute = call->rule == RULE_RAW ? *promoted : dtype_compute(*promoted);
    if (!kernels->elementwise->run[call->kernel][compute])
        return fail_dtype(call, *promoted);
    const enum dtype out = (enum dtype)call->out.tensor->view.dtype;
    const enum dtype result = elementwise_result_dtype((enum elementwise_result)elementwise_infos[call->kernel].result, *promoted);
    REQUIRE(dtype_kind(result) <= dtype_kind(out), ACLNN_ERROR_PARAM, "%s: result type %s can't be cast to the type of %s, %s",
            operator_name(call->id), dtype_name(result), call->out.name, dtype_name(out));
    return check_shape(call);
}

/* --- operands of types that are only stored ------------------------------------------------------------------------ */

static bool is_stored(enum operator_id id, const struct aclTensor *tensor, enum operand_role role)
{
    return tensor && tensor->view.dtype == DTYPE_NONE && plan_stored_dtype(id, tensor, role) != DTYPE_NONE;
}

static bool has_stored(const struct elementwise_call *call)
{
    bool found = is_stored(call->id, call->out.tensor, ROLE_OUTPUT);
    for (int i = 0; i < call->input_count; ++i)
        found |= is_stored(call->id, call->inputs[i].tensor, ROLE_INPUT);
    return found;
}

/* Gives *operand a handle that tells the type; where elements only move, any type of their size does. */
static void type_stored(const struct elementwise_call *call, struct elementwise_input *operand, enum operand_role role,
                        struct aclTensor *handle)
{
    if (!is_stored(call->id, operand->tensor, role))
        return;
    *handle = *operand->tensor;
    handle->view.dtype = (uint8_t)(call->rule == RULE_RAW ? DTYPE_U8 : plan_stored_dtype(call->id, handle, role));
    operand->tensor = handle;
}

/* Nothing promotes with such a type, so all tensors are of it, but for a mask and a result of truth values. */
static __attribute__((noinline, cold)) int plan_stored(const struct elementwise_call *call, uint64_t *workspace_size,
                                                       struct aclOpExecutor **executor)
{
    struct aclTensor handles[ELEMENTWISE_OPERANDS];
    struct elementwise_call typed = *call;
    const int first = call->flags & CALL_MASK_FIRST ? 1 : 0;
    const bool same_out = elementwise_infos[call->kernel].result != RESULT_BOOL;
    const struct aclTensor *model = same_out ? call->out.tensor : NULL;
    for (int i = first; i < call->input_count; ++i) {
        const struct aclTensor *const t = call->inputs[i].tensor;
        REQUIRE(!model || !t || t->acl_dtype == model->acl_dtype, ACLNN_ERROR_PARAM,
                "%s: %s has data type %d and another operand %d; with float8 all must be of one type", operator_name(call->id),
                call->inputs[i].name, t->acl_dtype, model->acl_dtype);
        REQUIRE(!call->inputs[i].scalar || dtype_kind(call->inputs[i].scalar->dtype) != KIND_COMPLEX, ACLNN_ERROR_PARAM,
                "%s: %s is complex; with float8 real numbers are allowed", operator_name(call->id), call->inputs[i].name);
        model = t ? t : model;
        type_stored(call, &typed.inputs[i], ROLE_INPUT, &handles[i]);
    }
    if (same_out)
        type_stored(call, &typed.out, ROLE_OUTPUT, &handles[ELEMENTWISE_OPERANDS - 1]);
    return elementwise_plan_passes(&typed, 1, workspace_size, executor);
}

int elementwise_plan(const struct elementwise_call *call, uint64_t *workspace_size, struct aclOpExecutor **executor)
{
    if (__builtin_expect(has_stored(call), 0))
        return plan_stored(call, workspace_size, executor);
    return elementwise_plan_passes(call, 1, workspace_size, executor);
}

int elementwise_plan_passes(const struct elementwise_call *calls, int count, uint64_t *workspace_size,
                            struct aclOpExecutor **executor)
{
    enum dtype promoted[ELEMENTWISE_PASSES];
    struct plan *plan;
    for (int i = 0; i < count; ++i)
        TRY(check_call(&calls[i], &promoted[i]));
    TRY(plan_begin(calls[0].id, run_jobs, workspace_size, executor, &plan));
    uint64_t workspace = 0;
    if (count > 1 || !plan_as_small(&calls[0], promoted[0], plan)) {
        struct elementwise_jobs *const all = PLAN_IMMEDIATE(plan, struct elementwise_jobs);
        all->count = count;
        for (int i = 0; i < count; ++i)
            PLAN_TRY(plan, plan_job(&calls[i], promoted[i], plan, &all->jobs[i], &workspace));
        plan->task.flags = calls[0].out.tensor->view.count <= SMALL_STRIDED_ELEMENTS ? TASK_SMALL : 0;
        plan->copes_with_overlap = PLAN_ALL_OPERANDS;
    }
    return plan_finish(plan, workspace, workspace_size, executor);
}
