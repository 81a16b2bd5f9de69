/* What this process may use of the machine: cores and memory, container limits included. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdint.h>

/* Cores in the affinity mask, cut to the container's CPU quota (rounded up); >= 1. Reads the system each time. */
int host_cores(void);
/* Bytes of memory: installed RAM, cut to the container's limit. */
int64_t host_memory(void);

/* What control groups allow, 0: no limit. The least of a process's group and all groups above it. */
struct host_limits {
    int64_t cores; /* rounded up */
    int64_t memory;
};
/* root: where groups are mounted ("/sys/fs/cgroup"); self: the process's groups ("/proc/self/cgroup"). */
struct host_limits host_group_limits(const char *root, const char *self);

#endif
