/* One call of an aclnn operator: handles made from plain structs, both phases, handles destroyed.
 *
 * Invariant: no malloc on the way for calls without lists; everything a call owns is in `struct call`, on the stack. */
#ifndef OP_PLUGIN_CALL_H
#define OP_PLUGIN_CALL_H

#include <string.h>

#include "op_plugin/api.h"
#include "op_plugin/op_plugin.h"

enum { CALL_HANDLES = 28, CALL_LIST = 64, CALL_DIMS = 8 /* of a tensor, CANN's limit */ };

enum handle_kind { HANDLE_TENSOR, HANDLE_SCALAR, HANDLE_INTS, HANDLE_BOOLS, HANDLE_TENSORS, HANDLE_SCALARS };

struct call {
    const char *name;
    uint64_t workspace_bytes;
    aclOpExecutor *executor;
    uint32_t count;      /* of handles */
    bool incomplete;     /* a handle couldn't be made: don't call */
    const char *refusal; /* why, if it is known; of this thread */
    uint8_t kinds[CALL_HANDLES];
    const void *handles[CALL_HANDLES];
};

typedef int (*phase_2_fn)(void *workspace, uint64_t workspace_bytes, aclOpExecutor *executor, aclrtStream stream);

const aclScalar *call_scalar(struct call *call, const struct npu_scalar *scalar);
const aclIntArray *call_ints(struct call *call, struct npu_ints ints);
const aclBoolArray *call_bools(struct call *call, struct npu_bools bools);
const aclTensorList *call_tensors(struct call *call, struct npu_tensors tensors, const char *argument);
const aclScalarList *call_scalars(struct call *call, struct npu_scalars scalars);
/* Runs phase 2 if phase 1 gave 0, destroys the handles, notes the name on failure. */
int call_finish(struct call *call, int phase_1_code, phase_2_fn phase_2, aclrtStream stream);
/* The two halves of call_finish. */
int call_launch(struct call *call, int phase_1_code, phase_2_fn phase_2, aclrtStream stream);
int call_end(struct call *call, int code);
int call_missing(const char *name);
/* Notes why CANN made no handle for a tensor. */
void call_refuse(struct call *call, const struct npu_tensor *t, const char *argument);
void call_destroy(const void *handle, enum handle_kind kind);

/* The lists of handles stay unwritten: clearing them took half of a small call's time here. */
static inline void call_begin(struct call *call, const char *name)
{
    call->name = name;
    call->workspace_bytes = 0;
    call->executor = NULL;
    call->count = 0;
    call->incomplete = false;
    call->refusal = NULL;
}

static inline const void *call_keep(struct call *call, const void *handle, enum handle_kind kind)
{
    if (__builtin_expect(handle == NULL || call->count == CALL_HANDLES, 0)) {
        call->incomplete = true;
        call_destroy(handle, kind);
        return NULL;
    }
    call->kinds[call->count] = (uint8_t)kind;
    call->handles[call->count++] = handle;
    return handle;
}

static inline aclFormat format_of_rank(int ndim)
{
    return ndim == 4 ? ACL_FORMAT_NCHW : ndim == 3 ? ACL_FORMAT_NCL : ndim == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_ND;
}

static inline aclTensor *make_tensor(const struct npu_tensor *t)
{
    return cann.aclCreateTensor(t->sizes, (uint64_t)t->ndim, (aclDataType)t->dtype, t->strides, t->offset, format_of_rank(t->ndim),
                                &t->storage_elements, 1, t->storage);
}

/* CANN's declarations aren't consistent about const on tensors, so this is a mutable handle. */
static inline aclTensor *call_tensor(struct call *call, const struct npu_tensor *t, const char *argument)
{
    if (!t)
        return NULL;
    aclTensor *const handle = make_tensor(t);
    if (__builtin_expect(handle == NULL, 0))
        call_refuse(call, t, argument);
    return (aclTensor *)call_keep(call, handle, HANDLE_TENSOR);
}

/* An empty list of dimensions means all of them, in words that every operator understands. */
static inline struct npu_ints every_dim(const struct npu_tensor *self, struct npu_ints dim)
{
    static const int64_t all[CALL_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    return dim.count ? dim : (struct npu_ints){all, self->ndim <= CALL_DIMS ? self->ndim : CALL_DIMS};
}

/* Codes for ATen's words; the bridge has checked the words. */
static inline int64_t is_tanh(const char *approximate) { return approximate && strcmp(approximate, "tanh") == 0; }
static inline int division_mode(const char *mode) { return !mode ? 0 : strcmp(mode, "trunc") == 0 ? 1 : 2; }
static inline int64_t scatter_mode(const char *reduce) { return strcmp(reduce, "add") == 0 ? 1 : 2; }
/* -1, which CANN refuses, for a word that it doesn't know. */
int64_t scatter_reduce_mode(const char *reduce);

#define INT_SCALAR(number) ((struct npu_scalar){ACL_INT64, {.i64 = (number)}})

/* Argument spellings of functions.def. */
#define T(tensor) call_tensor(&call, tensor, #tensor)
#define S(scalar) (aclScalar *)call_scalar(&call, scalar)
#define I(ints) (aclIntArray *)call_ints(&call, ints)
#define B(bools) (aclBoolArray *)call_bools(&call, bools)
#define TL(tensors) (aclTensorList *)call_tensors(&call, tensors, #tensors)
#define SL(scalars) (aclScalarList *)call_scalars(&call, scalars)
#define CUBE_KEEP 0 /* cubeMathType: keep the dtype */

/* Body of a function that is one call; needs `stream`. Braces belong to the caller. */
#define CALL(operator, ...)                                                                                           \
    if (__builtin_expect(!cann.aclnn##operator##GetWorkspaceSize || !cann.aclnn##operator, 0))                          \
        return call_missing("aclnn" #operator);                                                                       \
    struct call call;                                                                                                 \
    call_begin(&call, "aclnn" #operator);                                                                             \
    return call_finish(&call, cann.aclnn##operator##GetWorkspaceSize(__VA_ARGS__, &call.workspace_bytes, &call.executor), \
                       cann.aclnn##operator, stream)

#endif
