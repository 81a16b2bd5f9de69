/* Handles that operators take: tensors, scalars, arrays, lists (CANN: aclnn/acl_meta.h, library libnnopbase).
 * Written from public documents of the interface. All create functions copy what they are given except the tensor's memory;
 * they return NULL on bad input (aclGetRecentErrMsg tells why). Destroy functions take NULL and return 0. */
#ifndef ACLNN_ACL_META_H
#define ACLNN_ACL_META_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclnnStatus;

typedef struct aclOpExecutor aclOpExecutor;
typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;

/* viewDims, stride: viewDimsNum values, in elements; stride NULL = row-major. offset: elements from tensorDataAddr to the
 * first element of the view. storageDims: the shape of the memory behind the view. At most 8 dimensions. */
aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride,
                           int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum,
                           void *tensorDataAddr);
/* value: one element of dataType, read now. */
aclScalar *aclCreateScalar(void *value, aclDataType dataType);
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size);
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size);
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size);
/* The list owns what it lists: destroying it destroys them. */
aclTensorList *aclCreateTensorList(aclTensor *const *value, uint64_t size);
aclScalarList *aclCreateScalarList(aclScalar *const *value, uint64_t size);

aclnnStatus aclDestroyTensor(const aclTensor *tensor);
aclnnStatus aclDestroyScalar(const aclScalar *scalar);
aclnnStatus aclDestroyIntArray(const aclIntArray *array);
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array);
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array);
aclnnStatus aclDestroyTensorList(const aclTensorList *array);
aclnnStatus aclDestroyScalarList(const aclScalarList *array);

/* Shape of a tensor; after phase 2 and a synchronise the real one of data-dependent outputs. *viewDims is an array of
 * *viewDimsNum values that the caller frees with delete[] (C++) or free (C). */
aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum);
aclnnStatus aclGetDataType(const aclTensor *tensor, aclDataType *dataType);

/* A repeatable executor may be launched many times, and is freed by aclDestroyAclOpExecutor. */
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor);

#ifdef __cplusplus
}
#endif

#endif
