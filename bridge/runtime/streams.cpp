/* Streams: c10's ids <-> CANN's handles, and each thread's current stream.
 *
 * Id 0 is the default stream. Others are 1 + an index into the device's table; the first 2 x 32 entries are the pools that
 * getNewStream hands out in turn, as CUDA's are: a stream object costs nothing and never dies, its thread starts on first use. */
#include <atomic>
#include <mutex>

#include "bridge/runtime/caching_allocator.h"
#include "bridge/runtime/runtime.h"

namespace npu {

constinit thread_local CurrentStreams current_ids{};

namespace {

constexpr int kPoolStreams = 32;
constexpr int kPools = 2; // normal, high priority

struct DeviceStreams {
  std::atomic<aclrtStream> handles[1 + kPools * kPoolStreams]{};
  std::atomic<unsigned> turn[kPools]{};
  std::mutex lock; // creation
};

DeviceStreams streams[kMaxDevices];

aclrtStream create(c10::DeviceIndex device, c10::StreamId id) {
  DeviceStreams &own = streams[device];
  std::lock_guard<std::mutex> guard(own.lock);
  aclrtStream handle = own.handles[id].load();
  if (handle)
    return handle;
  ensure_initialized();
  const c10::DeviceIndex before = current_device();
  use_device(device);
  const uint32_t priority = id > kPoolStreams ? 0 : 1; // CANN's scale: 0 is the most urgent
  const int code = cann.aclrtCreateStreamWithConfig(&handle, priority, 0x3 /* fast launch, fast sync */);
  use_device(before);
  check_status(code, "aclrtCreateStreamWithConfig");
  own.handles[id].store(handle, std::memory_order_release);
  return handle;
}

void check_id(c10::StreamId id) {
  constexpr int kIds = 1 + kPools * kPoolStreams;
  TORCH_CHECK(id >= 0 && id < kIds, "There is no stream with id ", id, " on npu; ids are 0 to ", kIds - 1);
}

/* `device` is one that exists: resolve_index gave it. */
aclrtStream handle_of(c10::DeviceIndex device, c10::StreamId id) {
  check_id(id);
  aclrtStream handle = streams[device].handles[id].load(std::memory_order_acquire);
  return C10_LIKELY(handle != nullptr) ? handle : create(device, id);
}

} // namespace

aclrtStream stream_handle(const c10::Stream &stream) { return handle_of(resolve_index(stream.device_index()), stream.id()); }

aclrtStream current_stream_handle(c10::DeviceIndex device) { return handle_of(device, current_ids.ids[device]); }

c10::Stream current_stream(c10::DeviceIndex device) {
  const c10::DeviceIndex index = resolve_index(device);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, index), current_ids.ids[index]);
}

c10::Stream default_stream(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, resolve_index(device)), 0);
}

c10::Stream new_stream(c10::DeviceIndex device, int priority) {
  const c10::DeviceIndex index = resolve_index(device);
  const int pool = priority < 0 ? 1 : 0;
  const unsigned turn = streams[index].turn[pool].fetch_add(1) % kPoolStreams;
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDevice, index), 1 + pool * kPoolStreams + static_cast<int>(turn));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const c10::DeviceIndex index = resolve_index(stream.device_index());
  check_id(stream.id()); // the allocator's tables are indexed by it
  const c10::Stream before = current_stream(index);
  current_ids.ids[index] = stream.id();
  return before;
}

void synchronize_stream(const c10::Stream &stream) {
  check_status(cann.aclrtSynchronizeStream(stream_handle(stream)), "aclrtSynchronizeStream");
}

std::pair<int, int> stream_priority_range() { return {0, -1}; } // torch's convention: 0 least urgent, negative more urgent

} // namespace npu
