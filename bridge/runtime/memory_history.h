/* The history of the caching allocator, for torch's memory viewer: what happened, when, and which Python lines asked for it.
 *
 * Off by default; then it costs one relaxed load an allocation. Contexts (stacks) are gathered before the allocator's lock is taken,
 * since gathering takes Python's. */
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

struct _object;

namespace npu {

using MemoryContext = std::shared_ptr<c10::GatheredContext>;

struct MemoryEvent {
  const char *action; // torch's word, such as "alloc" or "segment_free"
  uintptr_t address;
  size_t size; // bytes
  c10::StreamId stream;
  int64_t time;       // microseconds since 1970
  size_t device_free; // bytes; of "oom" only
  MemoryContext context;
};

struct MemoryBlock {
  uintptr_t address;
  size_t size, requested; // bytes
  const char *state;
  MemoryContext context;
};

struct MemorySegment {
  uintptr_t address;
  size_t size; // bytes
  c10::StreamId stream;
  bool small;
  std::vector<MemoryBlock> blocks;
};

/* Which events carry a context: none, those of memory in use, allocations, all. */
enum class MemoryContexts { none, state, allocations, all };
enum class MemoryRecording { off, state, all }; // nothing, contexts of memory in use, and also events

extern std::atomic<MemoryRecording> memory_recording;
inline bool records_memory() { return memory_recording.load(std::memory_order_relaxed) != MemoryRecording::off; }

void record_memory_history(MemoryRecording recording, MemoryContexts contexts, size_t most_events, bool clear);
/* The caller's stack, if contexts of this degree are wanted; takes Python's lock. */
MemoryContext gather_memory_context(MemoryContexts degree);
void record_memory_event(c10::DeviceIndex device, MemoryEvent event);
std::deque<MemoryEvent> memory_events(c10::DeviceIndex device);

/* caching_allocator.cpp: all segments of a device with their blocks. */
std::vector<MemorySegment> memory_segments(c10::DeviceIndex device);

/* memory_snapshot.cpp: all of it as a Python dictionary, a new reference. */
struct _object *memory_snapshot();

} // namespace npu
