/* Is the runtime up? Between aclInit and aclFinalize. */
#ifndef RUNTIME_INIT_H
#define RUNTIME_INIT_H

#include <stdint.h>

/* Changes with each start and each end; 0 while the runtime is down. What a thread remembers of a device is tagged with it. */
uint32_t runtime_epoch(void);
/* 0, or ERROR_UNINITIALIZED with a text. */
int runtime_require(const char *function);

#endif
