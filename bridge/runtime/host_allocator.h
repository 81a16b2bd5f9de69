/* Pinned host memory. */
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

namespace npu {

c10::Allocator *host_allocator() noexcept;
bool is_pinned(const void *data);
/* A non-blocking copy on `stream` uses this memory: don't hand it out again before the copy is done. False: not our memory. */
bool host_record_stream(const void *data, const c10::Stream &stream);
/* The device that a device pointer belongs to; throws when it is none. */
c10::DeviceIndex device_of_pointer(const void *data);

} // namespace npu
