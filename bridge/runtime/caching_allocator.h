/* What the allocator and the streams share on the hot path: the calling thread's current stream of each device. */
#pragma once

#include <c10/core/Stream.h>

namespace npu {

constexpr int kCurrentDevices = 64;

struct CurrentStreams {
  c10::StreamId ids[kCurrentDevices];
};
/* Written by exchange_stream only. constinit: no guard, no wrapper call. */
extern constinit thread_local CurrentStreams current_ids __attribute__((tls_model("initial-exec")));

} // namespace npu
