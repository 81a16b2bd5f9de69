/* Devices: the current one of each thread, and what belongs to a device.
 *
 * A thread has no device until it sets one (aclrtSetDevice); nothing here starts a thread or reserves memory before it is
 * used. Device numbers are the visible ones, 0 .. count-1 (see ASCEND_RT_VISIBLE_DEVICES). */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

enum { DEVICES_MAX = 64 };

struct stream;

/* The calling thread's device; ERROR_RT_CONTEXT_NULL with a text while none is set, or after a fork. */
int device_current(int *device);
/* Makes it the thread's device. */
int device_set_current(int device);
/* How many devices there are; 0 is possible (everything hidden). */
int device_count(void);
/* 0, or ERROR_RT_INVALID_DEVICE with a text that gives the range. */
int device_require(int64_t device);
/* Number of the device among all of the machine. */
int device_physical(int device);
/* The stream that a NULL handle means: of the current context if it is on this device, else of the device's own context. Made
 * on first use. */
int device_default_stream(int device, struct stream **stream);
/* Switches of the calling thread's context (aclrtCtxSetSysParamOpt); who guards them: options.c. */
enum { CONTEXT_OPTIONS = 4 };
int device_context_options(int64_t **options);
/* Bytes that each device has: the chip's, cut to this machine's share, or NPU_MEMORY_LIMIT. */
int64_t device_memory_capacity(void);
/* aclFinalize: ends the default streams. No work is queued any more. */
void devices_release(void);

#endif
