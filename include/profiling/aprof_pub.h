/* Records for the profiler (CANN: profiling/aprof_pub.h, library libprofapi). Written from public documents of the interface; names
 * and values are upstream's. C11 and C++17 clean. No profiler runs here, so there is nothing to report to. */
#ifndef PROFILING_APROF_PUB_H
#define PROFILING_APROF_PUB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MSPROF_REPORT_DATA_MAGIC_NUM 0x5A5AU
#define MSPROF_COMPACT_INFO_DATA_LENGTH 40
#define MSPROF_ADDTIONAL_INFO_DATA_LENGTH 232
#define MSPROF_REPORT_NODE_LEVEL 10000U

typedef void *VOID_PTR;

/* One call of an API. magicNumber: MSPROF_REPORT_DATA_MAGIC_NUM; itemId: hash of the name; times: MsprofSysCycleTime. */
struct MsprofApi {
    uint16_t magicNumber;
    uint16_t level;
    uint32_t type;
    uint32_t threadId;
    uint32_t reserve;
    uint64_t beginTime;
    uint64_t endTime;
    uint64_t itemId;
};

/* type: enum MsprofCommandHandleType (start, stop ...); data: what it is about. */
typedef int32_t (*ProfCommandHandle)(uint32_t type, void *data, uint32_t len);

/* Registers who wants to know when profiling starts and stops. */
int32_t MsprofRegisterCallback(uint32_t moduleId, ProfCommandHandle handle);
int32_t MsprofReportApi(uint32_t nonPersistantFlag, const struct MsprofApi *api);
int32_t MsprofReportCompactInfo(uint32_t nonPersistantFlag, const VOID_PTR data, uint32_t length);
int32_t MsprofReportAdditionalInfo(uint32_t nonPersistantFlag, const VOID_PTR data, uint32_t length);
/* The same number for the same text in every process. */
uint64_t MsprofGetHashId(const char *hashInfo, size_t length);
/* Ticks of the clock that records are in: nanoseconds. */
uint64_t MsprofSysCycleTime(void);

#ifdef __cplusplus
}
#endif

#endif
