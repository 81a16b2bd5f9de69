/* Streams: ordered queues, each with one device thread.
 *
 * One producer lock a stream (many host threads may launch), one consumer at a time. A task runs inline in the caller when it
 * is small and the stream is idle: idle means tail == head, read under the producer lock, and head is stored only after a
 * task's work ended. See docs/threads.md. */
#ifndef RUNTIME_STREAM_H
#define RUNTIME_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/task.h"

struct stream; /* aclrtStream points at one */

int stream_create(int device, int priority, struct stream **stream);
/* Waits for queued work, then ends the thread; `force` waits for the current task only and drops what is queued behind it. The
 * handle is dead afterwards. Returns a failure that nobody synchronised for (0 when forced). */
int stream_destroy(struct stream *stream, bool force);

/* Checks a handle that came from outside (NULL = the current context's default stream; needs a current device).
 * A destroyed or foreign pointer is refused with a text, not followed. */
int stream_resolve(void *handle, struct stream **stream);

/* The hot path: copies the task into the ring, or runs it here (see above). */
int stream_launch(struct stream *stream, const struct task *task);

/* Waits until everything launched so far has run; reports and clears the first failure of the stream.
 * timeout_ms: -1 for ever, or STREAM_TIMEOUT_USUAL for what ACL_STREAM_TIMEOUT said when the stream was made. */
enum { STREAM_TIMEOUT_USUAL = -2 };
int stream_synchronize(struct stream *stream, int64_t timeout_ms);
/* Has everything launched so far run? Doesn't report failures. */
bool stream_is_idle(struct stream *stream);
int stream_device(const struct stream *stream);
int stream_priority(const struct stream *stream);
/* Its number among the streams that this process made. */
int stream_id(const struct stream *stream);

/* Limits of the stream, by aclrtDevResLimitType; 0: none set. See limits.c. */
enum { RESOURCE_KINDS = 2 };
_Atomic uint32_t *stream_resource_limits(struct stream *stream);
/* After a failure: skip everything until it is reported (true), or only what reads undefined memory. */
void stream_stop_on_failure(struct stream *stream, bool stop);
/* How long one task may run before who waits for its stream gets ERROR_RT_OPERATOR_TIMEOUT; nanoseconds, 0: for ever. */
void stream_limit_task_time(int64_t nanoseconds);

/* Called from a task's run: does the current thread execute a task of a stream? (Waiting for it then would never end.) */
struct stream *stream_current_executor(void);

/* All streams of a device (-1: of all devices), for synchronise-device and for the end of the process. */
int stream_synchronize_device(int device, int64_t timeout_ms);

#endif
