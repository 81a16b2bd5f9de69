/* Dumps of operator arguments (CANN: acl/acl_dump.h, library libascend_dump). Not available here. C11 and C++17 clean. */
#ifndef ACL_ACL_DUMP_H
#define ACL_ACL_DUMP_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_OP_DUMP_OP_AICORE_ARGS 0x00000001U

aclError aclopStartDumpArgs(uint32_t dumpType, const char *path);
aclError aclopStopDumpArgs(uint32_t dumpType);

#ifdef __cplusplus
}
#endif

#endif
