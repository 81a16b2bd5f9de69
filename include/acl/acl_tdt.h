/* Channels that carry tensors between host and device programs (CANN: acl/acl_tdt.h, library libacl_tdt_channel). Not available
 * here: creating one gives NULL. C11 and C++17 clean. */
#ifndef ACL_ACL_TDT_H
#define ACL_ACL_TDT_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct acltdtDataItem acltdtDataItem;
typedef struct acltdtDataset acltdtDataset;
typedef struct acltdtChannelHandle acltdtChannelHandle;

acltdtChannelHandle *acltdtCreateChannelWithCapacity(uint32_t deviceId, const char *name, size_t capacity);
aclError acltdtDestroyChannel(acltdtChannelHandle *handle);
aclError acltdtReceiveTensor(const acltdtChannelHandle *handle, acltdtDataset *dataset, int32_t timeout);
acltdtDataset *acltdtCreateDataset(void);
aclError acltdtDestroyDataset(acltdtDataset *dataset);
size_t acltdtGetDatasetSize(const acltdtDataset *dataset);
acltdtDataItem *acltdtGetDataItem(const acltdtDataset *dataset, size_t index);
aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem *dataItem);
void *acltdtGetDataAddrFromItem(const acltdtDataItem *dataItem);
size_t acltdtGetDataSizeFromItem(const acltdtDataItem *dataItem);
size_t acltdtGetDimNumFromItem(const acltdtDataItem *dataItem);
aclError acltdtGetDimsFromItem(const acltdtDataItem *dataItem, int64_t *dims, size_t dimNum);

#ifdef __cplusplus
}
#endif

#endif
