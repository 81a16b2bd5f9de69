/* Tensor descriptions and data buffers for the operators of before aclnn. See acl/acl_base.h.
 *
 * Both belong to who created them; nothing here is shared between threads. */
#include <stdlib.h>
#include <string.h>

#include "acl/acl_base.h"
#include "base/error.h"

enum { DIMENSIONS_MAX = 32 };

struct aclDataBuffer {
    void *data; /* the caller's */
    size_t size;
};

struct shape {
    aclFormat format;
    int count;
    int64_t dims[DIMENSIONS_MAX];
};

struct aclTensorDesc {
    aclDataType data_type;
    struct shape seen, stored; /* as the operator sees it; as it lies in memory, where told (else equal) */
    aclMemType placement;
    char *name; /* owned; NULL: none */
};

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size)
{
    aclDataBuffer *const buffer = malloc(sizeof *buffer);
    if (!buffer) {
        error_set(ERROR_BAD_ALLOC, __func__, "out of host memory");
        return NULL;
    }
    *buffer = (aclDataBuffer){data, size};
    return buffer;
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer)
{
    REQUIRE(dataBuffer, ERROR_INVALID_PARAM, "dataBuffer is null");
    free((void *)dataBuffer);
    return 0;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer) { return dataBuffer ? dataBuffer->data : NULL; }

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer) { return dataBuffer ? dataBuffer->size : 0; }

static int set_shape(const char *function, struct shape *shape, int count, const int64_t *dims)
{
    if (count < 0 || count > DIMENSIONS_MAX)
        return error_set(ERROR_INVALID_PARAM, function, "numDims is %d; 0 to %d are possible", count, DIMENSIONS_MAX);
    if (count > 0 && !dims)
        return error_set(ERROR_INVALID_PARAM, function, "dims is null, numDims %d", count);
    shape->count = count;
    if (count > 0)
        memcpy(shape->dims, dims, (size_t)count * sizeof *dims);
    return 0;
}

aclTensorDesc *aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t *dims, aclFormat format)
{
    struct shape shape = {.format = format};
    if (set_shape(__func__, &shape, numDims, dims) != 0)
        return NULL;
    aclTensorDesc *const desc = calloc(1, sizeof *desc);
    if (!desc) {
        error_set(ERROR_BAD_ALLOC, __func__, "out of host memory");
        return NULL;
    }
    *desc = (aclTensorDesc){.data_type = dataType, .seen = shape, .stored = shape};
    return desc;
}

void aclDestroyTensorDesc(const aclTensorDesc *desc)
{
    if (desc)
        free(desc->name);
    free((void *)desc);
}

aclDataType aclGetTensorDescType(const aclTensorDesc *desc) { return desc ? desc->data_type : ACL_DT_UNDEFINED; }

aclFormat aclGetTensorDescFormat(const aclTensorDesc *desc) { return desc ? desc->seen.format : ACL_FORMAT_UNDEFINED; }

size_t aclGetTensorDescNumDims(const aclTensorDesc *desc) { return desc ? (size_t)desc->seen.count : 0; }

aclError aclGetTensorDescDimV2(const aclTensorDesc *desc, size_t index, int64_t *dimSize)
{
    REQUIRE(desc && dimSize, ERROR_INVALID_PARAM, "%s is null", desc ? "dimSize" : "desc");
    REQUIRE(index < (size_t)desc->seen.count, ERROR_INVALID_PARAM, "index is %zu, but the tensor has %d dimensions", index,
            desc->seen.count);
    *dimSize = desc->seen.dims[index];
    return 0;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc *desc)
{
    size_t elements = 1;
    for (int i = 0; desc && i < desc->seen.count; ++i)
        if (desc->seen.dims[i] < 0 || __builtin_mul_overflow(elements, (size_t)desc->seen.dims[i], &elements))
            return 0;
    return desc ? elements : 0;
}

size_t aclGetTensorDescSize(const aclTensorDesc *desc)
{
    size_t bytes;
    const bool fits = desc && !__builtin_mul_overflow(aclGetTensorDescElementCount(desc), aclDataTypeSize(desc->data_type), &bytes);
    return fits ? bytes : 0;
}

void aclSetTensorDescName(aclTensorDesc *desc, const char *name)
{
    if (!desc)
        return;
    free(desc->name);
    desc->name = name ? strdup(name) : NULL;
}

const char *aclGetTensorDescName(aclTensorDesc *desc) { return desc && desc->name ? desc->name : ""; }

aclError aclSetTensorFormat(aclTensorDesc *desc, aclFormat format)
{
    REQUIRE(desc, ERROR_INVALID_PARAM, "desc is null");
    desc->stored.format = format;
    return 0;
}

aclError aclSetTensorShape(aclTensorDesc *desc, int numDims, const int64_t *dims)
{
    REQUIRE(desc, ERROR_INVALID_PARAM, "desc is null");
    return set_shape(__func__, &desc->stored, numDims, dims);
}

aclError aclSetTensorPlaceMent(aclTensorDesc *desc, aclMemType memType)
{
    REQUIRE(desc, ERROR_INVALID_PARAM, "desc is null");
    REQUIRE((int)memType >= ACL_MEMTYPE_DEVICE && memType <= ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT, ERROR_INVALID_PARAM,
            "memType is %d; 0, 1 and 2 are known", (int)memType);
    desc->placement = memType;
    return 0;
}
