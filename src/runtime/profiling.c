/* Records for a profiler: the clock and the names that they use. See profiling/aprof_pub.h. Reports themselves, and who wants to be
 * told when profiling starts, are refused (unsupported.txt): it never does. */
#include "profiling/aprof_pub.h"

#include "base/futex.h"

/* FNV-1a. */
uint64_t MsprofGetHashId(const char *hashInfo, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; hashInfo && i < length; ++i)
        hash = (hash ^ (unsigned char)hashInfo[i]) * 0x100000001b3u;
    return hash;
}

uint64_t MsprofSysCycleTime(void) { return (uint64_t)clock_nanoseconds(); }
