/* See memory_history.h. One lock guards the events of all devices; no other lock is taken under it. */
#include <torch/csrc/profiler/combined_traceback.h>

#include <array>
#include <chrono>
#include <mutex>

#include "bridge/runtime/memory_history.h"
#include "bridge/runtime/runtime.h"

namespace npu {

std::atomic<MemoryRecording> memory_recording{MemoryRecording::off};

namespace {

struct History {
  std::mutex lock; // guards events and most
  std::array<std::deque<MemoryEvent>, kMaxDevices> events;
  size_t most = SIZE_MAX; // events kept a device
  std::atomic<MemoryContexts> contexts{MemoryContexts::none};
};

/* Never destroyed: memory may be freed after every static is gone. */
History &history() {
  static auto *const instance = new History;
  return *instance;
}

} // namespace

void record_memory_history(MemoryRecording recording, MemoryContexts contexts, size_t most_events, bool clear) {
  TORCH_CHECK(most_events > 0, "max_entries must be 1 or more, but got ", most_events);
  {
    const std::lock_guard<std::mutex> guard(history().lock);
    history().most = most_events;
    for (auto &events : history().events)
      if (clear)
        events.clear();
  }
  history().contexts = contexts;
  memory_recording = recording;
}

MemoryContext gather_memory_context(MemoryContexts degree) {
  return history().contexts.load() >= degree ? torch::CapturedTraceback::gather(true, true, false) : nullptr;
}

void record_memory_event(c10::DeviceIndex device, MemoryEvent event) {
  if (memory_recording.load() != MemoryRecording::all)
    return;
  using std::chrono::system_clock;
  event.time = std::chrono::duration_cast<std::chrono::microseconds>(system_clock::now().time_since_epoch()).count();
  const std::lock_guard<std::mutex> guard(history().lock);
  std::deque<MemoryEvent> &events = history().events[device];
  events.push_back(std::move(event));
  while (events.size() > history().most)
    events.pop_front();
}

std::deque<MemoryEvent> memory_events(c10::DeviceIndex device) {
  const std::lock_guard<std::mutex> guard(history().lock);
  return history().events[device];
}

} // namespace npu
