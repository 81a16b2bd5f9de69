/* Operators found by name, of before aclnn: none runs here, and the refusal says what was wanted. See acl/acl_op_compiler.h. */
#include <inttypes.h>
#include <stdio.h>

#include "acl/acl_op_compiler.h"
#include "base/dtype.h"
#include "base/error.h"
#include "tensor/attributes.h"

enum { TEXT_BYTES = 512 };

static size_t describe_tensor(char *text, size_t room, const aclTensorDesc *desc)
{
    const enum dtype dtype = dtype_from_acl((int32_t)aclGetTensorDescType(desc));
    size_t used = dtype != DTYPE_NONE ? (size_t)snprintf(text, room, "%s[", dtype_name(dtype))
                                      : (size_t)snprintf(text, room, "type %d[", (int)aclGetTensorDescType(desc));
    for (size_t i = 0; i < aclGetTensorDescNumDims(desc) && used < room; ++i) {
        int64_t size = 0;
        aclGetTensorDescDimV2(desc, i, &size);
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, i ? "," : "", size);
    }
    if (used < room)
        used += (size_t)snprintf(text + used, room - used, "]");
    return used;
}

static int refuse(const char *function, const char *name, int inputs, const aclTensorDesc *const descs[], const aclopAttr *attr)
{
    char tensors[TEXT_BYTES] = "", attributes[TEXT_BYTES];
    size_t used = 0;
    for (int i = 0; descs && i < inputs && used < sizeof tensors; ++i) {
        used += i ? (size_t)snprintf(tensors + used, sizeof tensors - used, ", ") : 0;
        if (used < sizeof tensors && descs[i])
            used += describe_tensor(tensors + used, sizeof tensors - used, descs[i]);
    }
    attributes_describe(attr, attributes, sizeof attributes);
    return error_set(ACL_ERROR_OP_NOT_FOUND, function,
                     "the operator %s(%s)%s%s isn't available: the software NPU has no compiler for operators of before aclnn",
                     name ? name : "(null)", tensors, attributes[0] ? " with " : "", attributes);
}

aclError aclopCompileAndExecute(const char *opType, int numInputs, const aclTensorDesc *const inputDesc[],
                                const aclDataBuffer *const inputs[], int numOutputs, const aclTensorDesc *const outputDesc[],
                                aclDataBuffer *const outputs[], const aclopAttr *attr, aclopEngineType engineType,
                                aclopCompileType compileFlag, const char *opPath, aclrtStream stream)
{
    return refuse(__func__, opType, numInputs, inputDesc, attr);
}

aclError aclopCompileAndExecuteV2(const char *opType, int numInputs, aclTensorDesc *inputDesc[], aclDataBuffer *inputs[],
                                  int numOutputs, aclTensorDesc *outputDesc[], aclDataBuffer *outputs[], aclopAttr *attr,
                                  aclopEngineType engineType, aclopCompileType compileFlag, const char *opPath, aclrtStream stream)
{
    return refuse(__func__, opType, numInputs, (const aclTensorDesc *const *)inputDesc, attr);
}
