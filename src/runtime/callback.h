/* Host callbacks: what streams must tell them. */
#ifndef RUNTIME_CALLBACK_H
#define RUNTIME_CALLBACK_H

#include <stdint.h>

struct stream;

/* The stream ends: `thread` (pthread_self; 0: any) isn't subscribed to it any more, callbacks that it had to run are dropped. */
void callback_forget_stream(const struct stream *stream, uint64_t thread);

#endif
