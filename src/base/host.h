/* What this process may use of the machine: cores and memory, container limits included. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdint.h>

/* Cores in the affinity mask, cut to the container's CPU quota (rounded up); >= 1. Reads the system each time. */
int host_cores(void);
/* Bytes of memory: installed RAM, cut to the container's limit. */
int64_t host_memory(void);

#endif
