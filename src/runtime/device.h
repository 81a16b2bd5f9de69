/* Devices: the current one of each thread, and what belongs to a device.
 *
 * A thread has no device until it sets one (aclrtSetDevice); nothing here starts a thread or reserves memory before it is
 * used. Device numbers are the visible ones, 0 .. count-1 (see ASCEND_RT_VISIBLE_DEVICES). */
#ifndef RUNTIME_DEVICE_H
#define RUNTIME_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct stream;

/* The calling thread's device; ERROR_RT_CONTEXT_NULL with a text while none is set. */
int device_current(int *device);
/* Makes it the thread's device. Starts the device on its first use. */
int device_set_current(int device);
/* How many devices there are; 0 is possible (everything hidden). */
int device_count(void);
/* The stream that a NULL handle means; made on first use. */
int device_default_stream(int device, struct stream **stream);

#endif
