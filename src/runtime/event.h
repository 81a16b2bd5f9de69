/* Events: what the rest of the runtime tells them. */
#ifndef RUNTIME_EVENT_H
#define RUNTIME_EVENT_H

#include <stdint.h>

/* How long a stream may wait for an event before that counts as a failure of the stream; nanoseconds, 0: for ever. */
void event_limit_wait(int64_t nanoseconds);

#endif
