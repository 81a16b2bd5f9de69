/* Functions that choose between operators, and those whose output sizes are known only after the run. */
#include <stdlib.h>

#include "op_plugin/call.h"

#define TENSOR const struct npu_tensor *
#define SCALAR const struct npu_scalar *

int64_t scatter_reduce_mode(const char *reduce)
{
    static const char *const words[] = {"none", "sum", "prod", "amax", "amin", "mean"};
    for (int64_t i = 0; i < (int64_t)(sizeof words / sizeof *words); ++i)
        if (strcmp(reduce, words[i]) == 0)
            return i;
    return -1;
}

int npu_clamp(TENSOR self, SCALAR min, SCALAR max, TENSOR out, aclrtStream stream)
{
    if (min && max)
        return npu_clamp_both(self, min, max, out, stream);
    return min ? npu_clamp_min(self, min, out, stream) : npu_clamp_max(self, max, out, stream);
}

int npu_clamp_tensor(TENSOR self, TENSOR min, TENSOR max, TENSOR out, aclrtStream stream)
{
    if (min && max)
        return npu_clamp_both_tensor(self, min, max, out, stream);
    return min ? npu_clamp_min_tensor(self, min, out, stream) : npu_clamp_max_tensor(self, max, out, stream);
}

int npu_div_mode(TENSOR self, TENSOR other, const char *rounding_mode, TENSOR out, aclrtStream stream)
{
    return rounding_mode ? npu_div_mod(self, other, rounding_mode, out, stream) : npu_div(self, other, out, stream);
}

int npu_aminmax(TENSOR self, int64_t dim, bool keepdim, TENSOR min, TENSOR max, aclrtStream stream)
{
    if (dim != NPU_ALL_DIMS)
        return npu_aminmax_dim(self, dim, keepdim, min, max, stream);
    struct npu_tensor least = *min, greatest = *max; /* one element each, whatever dimensions of one were kept */
    least.ndim = greatest.ndim = 0;
    return npu_aminmax_all(self, &least, &greatest, stream);
}

/* After a call whose outputs chose their own size: waits, reads the sizes from the handles, then destroys the handles. */
static int finish_sized(struct call *call, int code, phase_2_fn phase_2, aclTensor *const *outputs, struct npu_shape *shapes,
                        int count, aclrtStream stream)
{
    code = call_launch(call, code, phase_2, stream);
    if (code == 0)
        code = cann.aclrtSynchronizeStream(stream);
    for (int i = 0; code == 0 && i < count; ++i) {
        int64_t *dims = NULL;
        uint64_t ndim = 0;
        if (!outputs[i])
            continue;
        code = cann.aclGetViewShape(outputs[i], &dims, &ndim);
        shapes[i].ndim = (int64_t)ndim;
        for (uint64_t d = 0; code == 0 && d < ndim && d < 8; ++d)
            shapes[i].sizes[d] = dims[d];
        free(dims);
    }
    return call_end(call, code);
}

/* As CALL, for outputs of unknown size; needs `stream`. Handles must be made before, in `call`. */
#define CALL_SIZED(operator, outputs, shapes, count, ...)                                                             \
    finish_sized(&call, cann.aclnn##operator##GetWorkspaceSize(__VA_ARGS__, &call.workspace_bytes, &call.executor),  \
                 cann.aclnn##operator, outputs, shapes, count, stream)
#define NEED(operator)                                                             \
    if (!cann.aclnn##operator##GetWorkspaceSize || !cann.aclnn##operator)          \
        return call_missing("aclnn" #operator);                                    \
    struct call call;                                                              \
    call_begin(&call, "aclnn" #operator)

int npu_nonzero(TENSOR self, TENSOR out, struct npu_shape *shape, aclrtStream stream)
{
    NEED(Nonzero);
    aclTensor *const result = T(out);
    return CALL_SIZED(Nonzero, &result, shape, 1, T(self), result);
}

int npu_masked_select(TENSOR self, TENSOR mask, TENSOR out, struct npu_shape *shape, aclrtStream stream)
{
    NEED(MaskedSelect);
    aclTensor *const result = T(out);
    return CALL_SIZED(MaskedSelect, &result, shape, 1, T(self), T(mask), result);
}

int npu_unique(TENSOR self, bool sorted, bool return_inverse, bool return_counts, TENSOR values, TENSOR inverse, TENSOR counts,
               struct npu_shape *shapes, aclrtStream stream)
{
    NEED(Unique2);
    aclTensor *const results[] = {T(values), T(inverse), T(counts)};
    return CALL_SIZED(Unique2, results, shapes, 3, T(self), sorted, return_inverse, return_counts, results[0], results[1],
                      results[2]);
}

int npu_unique_consecutive(TENSOR self, bool return_inverse, bool return_counts, int64_t dim, TENSOR values, TENSOR inverse,
                           TENSOR counts, struct npu_shape *shapes, aclrtStream stream)
{
    NEED(UniqueConsecutive);
    aclTensor *const results[] = {T(values), T(inverse), T(counts)};
    return CALL_SIZED(UniqueConsecutive, results, shapes, 3, T(self), return_inverse, return_counts, dim, results[0], results[1],
                      results[2]);
}

int npu_unique_dim(TENSOR self, int64_t dim, bool sorted, bool return_inverse, TENSOR values, TENSOR inverse, TENSOR counts,
                   struct npu_shape *shapes, aclrtStream stream)
{
    NEED(UniqueDim);
    aclTensor *const results[] = {T(values), T(inverse), T(counts)};
    return CALL_SIZED(UniqueDim, results, shapes, 3, T(self), sorted, return_inverse, dim, results[0], results[1], results[2]);
}
