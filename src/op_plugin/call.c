/* Handles of a call, its two phases, and what is known about its failure. See call.h. */
#include "op_plugin/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct npu_callbacks callbacks;

/* Failure of the calling thread; pointers are to constant strings. */
static _Thread_local struct {
    const char *operator;
    const char *text;
} failure;

void npu_set_callbacks(const struct npu_callbacks *given) { callbacks = *given; }

const char *npu_failed_operator(void) { return failure.operator ? failure.operator : ""; }

const char *npu_failure_text(void)
{
    const char *const text = failure.text;
    failure.text = NULL;
    return text;
}

static int fail(int code, const char *operator, const char *text)
{
    failure.operator = operator;
    failure.text = text;
    return code;
}

int call_missing(const char *name) { return fail(200001, name, "the loaded CANN libraries don't have this function"); }

const aclScalar *call_scalar(struct call *call, const struct npu_scalar *scalar)
{
    if (!scalar)
        return NULL;
    return call_keep(call, cann.aclCreateScalar((void *)&scalar->value, (aclDataType)scalar->kind), HANDLE_SCALAR);
}

const aclIntArray *call_ints(struct call *call, struct npu_ints ints)
{
    return call_keep(call, cann.aclCreateIntArray(ints.values, (uint64_t)ints.count), HANDLE_INTS);
}

const aclBoolArray *call_bools(struct call *call, struct npu_bools bools)
{
    return call_keep(call, cann.aclCreateBoolArray(bools.values, (uint64_t)bools.count), HANDLE_BOOLS);
}

void call_refuse(struct call *call, const struct npu_tensor *t, const char *argument)
{
    static _Thread_local char text[160];
    const char *const detail = cann.aclGetRecentErrMsg ? cann.aclGetRecentErrMsg() : NULL;
    if (call->refusal)
        return; /* the first mistake is told */
    if (t->ndim > CALL_DIMS)
        snprintf(text, sizeof text, "%s has %d dimensions; at most %d are allowed", argument, t->ndim, CALL_DIMS);
    else
        snprintf(text, sizeof text, "no handle for %s: %s", argument, detail ? detail : "no further detail");
    call->refusal = text;
}

const aclTensorList *call_tensors(struct call *call, struct npu_tensors tensors, const char *argument)
{
    aclTensor *few[CALL_LIST] = {NULL};
    aclTensor **const list = tensors.count <= CALL_LIST ? few : malloc((size_t)tensors.count * sizeof *list);
    const aclTensorList *made = NULL;
    int64_t n = 0;
    if (list)
        while (n < tensors.count && (list[n] = make_tensor(&tensors.values[n])) != NULL)
            ++n;
    if (list && n < tensors.count)
        call_refuse(call, &tensors.values[n], argument);
    if (list && n == tensors.count)
        made = cann.aclCreateTensorList(list, (uint64_t)n);
    for (int64_t i = 0; list && !made && i < n; ++i)
        cann.aclDestroyTensor(list[i]);
    if (list != few)
        free(list);
    return call_keep(call, made, HANDLE_TENSORS);
}

const aclScalarList *call_scalars(struct call *call, struct npu_scalars scalars)
{
    aclScalar *few[CALL_LIST] = {NULL};
    aclScalar **const list = scalars.count <= CALL_LIST ? few : malloc((size_t)scalars.count * sizeof *list);
    const aclScalarList *made = NULL;
    int64_t n = 0;
    if (list)
        while (n < scalars.count &&
               (list[n] = cann.aclCreateScalar((void *)&scalars.values[n].value, (aclDataType)scalars.values[n].kind)) != NULL)
            ++n;
    if (list && n == scalars.count)
        made = cann.aclCreateScalarList(list, (uint64_t)n);
    for (int64_t i = 0; list && !made && i < n; ++i)
        cann.aclDestroyScalar(list[i]);
    if (list != few)
        free(list);
    return call_keep(call, made, HANDLE_SCALARS);
}

void call_destroy(const void *handle, enum handle_kind kind)
{
    if (!handle)
        return;
    switch (kind) {
    case HANDLE_TENSOR: cann.aclDestroyTensor(handle); break;
    case HANDLE_SCALAR: cann.aclDestroyScalar(handle); break;
    case HANDLE_INTS: cann.aclDestroyIntArray(handle); break;
    case HANDLE_BOOLS: cann.aclDestroyBoolArray(handle); break;
    case HANDLE_TENSORS: cann.aclDestroyTensorList(handle); break;
    case HANDLE_SCALARS: cann.aclDestroyScalarList(handle); break;
    }
}

/* A call that ends before phase 2, which would have given the executor back. */
static int abandon(const struct call *call, int code, const char *text)
{
    if (call->executor)
        cann.aclDestroyAclOpExecutor(call->executor);
    return fail(code, call->name, text);
}

/* Phase 2 with a workspace. Its memory goes back at once: whoever gets it next on this stream runs later. */
static int launch_with_workspace(const struct call *call, phase_2_fn phase_2, aclrtStream stream)
{
    void *const workspace = callbacks.allocate ? callbacks.allocate(call->workspace_bytes, stream) : NULL;
    if (!workspace)
        return abandon(call, 207001, "out of device memory for the operator's workspace");
    const int code = phase_2(workspace, call->workspace_bytes, call->executor, stream);
    callbacks.release(workspace, stream);
    return code;
}

/* Phase 1 saw NULL in the handle's place; its words on that would mislead, so they are dropped. */
static int refuse(struct call *call, int code)
{
    if (code != 0)
        call->executor = NULL; /* phase 1 kept it */
    if (cann.aclGetRecentErrMsg)
        cann.aclGetRecentErrMsg();
    return abandon(call, call->refusal ? 161002 : 161001,
                   call->refusal ? call->refusal : "a handle could not be made from an argument");
}

int call_launch(struct call *call, int code, phase_2_fn phase_2, aclrtStream stream)
{
    if (__builtin_expect(call->incomplete, 0))
        return refuse(call, code);
    if (__builtin_expect(code != 0, 0))
        return code;
    return call->workspace_bytes == 0 ? phase_2(NULL, 0, call->executor, stream) : launch_with_workspace(call, phase_2, stream);
}

int call_end(struct call *call, int code)
{
    for (uint32_t i = 0; i < call->count; ++i)
        if (__builtin_expect(call->kinds[i] == HANDLE_TENSOR, 1))
            cann.aclDestroyTensor(call->handles[i]);
        else
            call_destroy(call->handles[i], (enum handle_kind)call->kinds[i]);
    if (__builtin_expect(code != 0, 0))
        failure.operator = call->name;
    return code;
}

int call_finish(struct call *call, int code, phase_2_fn phase_2, aclrtStream stream)
{
    return call_end(call, call_launch(call, code, phase_2, stream));
}
