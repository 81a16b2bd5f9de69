/* Records for a profiler: the clock and the names that they use. See profiling/aprof_pub.h. Reports themselves are refused
 * (unsupported.txt): no profiling ever starts, so no registered callback is told of a start. */
#include "profiling/aprof_pub.h"

#include "acl/acl_base.h"
#include "base/error.h"
#include "base/futex.h"

int32_t MsprofRegisterCallback(uint32_t moduleId, ProfCommandHandle handle)
{
    REQUIRE(handle, ERROR_INVALID_PARAM, "handle is null");
    return 0; /* what it waits for never happens */
}

/* FNV-1a. */
uint64_t MsprofGetHashId(const char *hashInfo, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; hashInfo && i < length; ++i)
        hash = (hash ^ (unsigned char)hashInfo[i]) * 0x100000001b3u;
    return hash;
}

uint64_t MsprofSysCycleTime(void) { return (uint64_t)clock_nanoseconds(); }
