/* The operator plug-in: one C function per ATen operator, on plain structs, in terms of CANN's public C API.
 *
 * Invariant: nothing here knows torch or a version of it, so one binary serves all of them. CANN is reached only through the
 * table of pointers in api.h. Parameters follow the ATen schema mechanically (bridge/codegen/generate.py makes the calls):
 *   Tensor -> const struct npu_tensor * (Tensor? may be NULL)      Scalar -> const struct npu_scalar * (Scalar? may be NULL)
 *   int -> int64_t, bool -> bool, float -> double, str -> const char * (NULL when not given)
 *   int[] -> struct npu_ints, bool[n] -> struct npu_bools, Tensor[] -> struct npu_tensors, Scalar[] -> struct npu_scalars
 *   ScalarType -> int32_t (aclDataType; -1 = not given)            Generator? -> uint64_t seed, uint64_t offset
 * then the outputs, then the stream. Returns 0 or CANN's code; npu_failed_operator() then names the call that failed. */
#ifndef OP_PLUGIN_OP_PLUGIN_H
#define OP_PLUGIN_OP_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

struct npu_tensor {
    void *storage;         /* start of the memory block; the view starts `offset` elements behind it */
    int64_t offset, count; /* in elements */
    int32_t dtype;         /* aclDataType */
    int16_t ndim, device;
    const int64_t *sizes, *strides; /* ndim values each, in elements; the caller's */
    int64_t storage_elements;
};

struct npu_scalar {
    int32_t kind; /* ACL_DOUBLE, ACL_INT64, ACL_BOOL or ACL_COMPLEX128 */
    union {
        double f64;
        int64_t i64;
        double c128[2];
    } value;
};

struct npu_ints {
    const int64_t *values;
    int64_t count;
};
struct npu_bools {
    const bool *values;
    int64_t count;
};
struct npu_tensors {
    const struct npu_tensor *values;
    int64_t count;
};
struct npu_scalars {
    const struct npu_scalar *values;
    int64_t count;
};

/* What the plug-in needs from its caller. */
struct npu_callbacks {
    void *(*allocate)(uint64_t bytes, aclrtStream stream); /* workspace; NULL = out of memory */
    void (*release)(void *memory, aclrtStream stream);     /* reusable for work launched later on this stream */
};
void npu_set_callbacks(const struct npu_callbacks *callbacks);

/* Name of the CANN function that failed last on this thread ("aclnnAdd"); never NULL. */
const char *npu_failed_operator(void);
/* Why a call failed, when the plug-in itself found it (else NULL: ask aclGetRecentErrMsg). Cleared by reading. */
const char *npu_failure_text(void);
/* Does the loaded CANN have everything that npu_<function> calls? False for unknown names. */
bool npu_available(const char *function);

#define TENSOR const struct npu_tensor *
#define SCALAR const struct npu_scalar *
#define PARAMETERS(...) __VA_ARGS__
#define FUNCTION(name, operator, parameters, arguments) int npu_##name(PARAMETERS parameters, aclrtStream stream);
#include "op_plugin/functions.def"
#undef FUNCTION
#undef PARAMETERS

/* Functions that aren't one call of one operator. */
int npu_clamp(TENSOR self, SCALAR min, SCALAR max, TENSOR out, aclrtStream stream);
int npu_clamp_tensor(TENSOR self, TENSOR min, TENSOR max, TENSOR out, aclrtStream stream);
int npu_div_mode(TENSOR self, TENSOR other, const char *rounding_mode, TENSOR out, aclrtStream stream);
#define NPU_ALL_DIMS INT64_MIN /* no dimension: over all of them */
int npu_aminmax(TENSOR self, int64_t dim, bool keepdim, TENSOR min, TENSOR max, aclrtStream stream);
/* Outputs whose shape depends on the data: `out` is as large as it may get; waits for the result and writes the real sizes of each
 * output, at most 8, into sizes[0..ndim). */
struct npu_shape {
    int64_t ndim, sizes[8];
};
int npu_nonzero(TENSOR self, TENSOR out, struct npu_shape *shape, aclrtStream stream);
int npu_masked_select(TENSOR self, TENSOR mask, TENSOR out, struct npu_shape *shape, aclrtStream stream);
/* shapes: values, inverse, counts */
int npu_unique(TENSOR self, bool sorted, bool return_inverse, bool return_counts, TENSOR values, TENSOR inverse, TENSOR counts,
               struct npu_shape *shapes, aclrtStream stream);
int npu_unique_consecutive(TENSOR self, bool return_inverse, bool return_counts, int64_t dim, TENSOR values, TENSOR inverse,
                           TENSOR counts, struct npu_shape *shapes, aclrtStream stream);
int npu_unique_dim(TENSOR self, int64_t dim, bool sorted, bool return_inverse, TENSOR values, TENSOR inverse, TENSOR counts,
                   struct npu_shape *shapes, aclrtStream stream);

#undef TENSOR
#undef SCALAR

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
