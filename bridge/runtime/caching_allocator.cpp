/* The caching device allocator: CUDA's design (segments cut into blocks, best fit, one pool of small and one of large blocks for each
 * stream) with a front of size-class lists, since a training loop asks for the same few sizes over and over.
 *
 * Stream order makes reuse safe: a freed block goes back at once to the stream it was allocated on, whose later work runs after the
 * earlier one. Other streams that used it (record_stream) hold it back by events. One lock a device guards everything of its Cache;
 * it is open while a thread gives memory back, which waits for the device. In a forked child nothing is freed and no lock is taken. The caches are never destroyed: tensors may outlive every static. */
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Logging.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "bridge/runtime/caching_allocator.h"
#include "bridge/runtime/memory_history.h"
#include "bridge/runtime/quick_lock.h"
#include "bridge/runtime/runtime.h"

namespace npu {

constexpr size_t kUnit = 512;           // blocks are cut in these
constexpr size_t kSmallLimit = 1 << 20; // requests up to here come from the small pool
constexpr size_t kSmallSegment = 2 << 20;
constexpr size_t kMediumLimit = 10 << 20; // up to here, large segments are shared
constexpr size_t kMediumSegment = 20 << 20;
constexpr size_t kLargeUnit = 2 << 20;
constexpr size_t kFrontClasses = 257; // front lists for sizes up to 128 KiB
constexpr int kFrontDepth = 64;       // blocks a front list keeps at most
constexpr int kStreams = 65;          // ids that streams.cpp hands out

struct Block {
  void *data;
  size_t size;      // bytes, a multiple of kUnit
  size_t requested; // 0 unless a tensor has it
  c10::DeviceIndex device;
  bool allocated; // handed out, or in a front list, or held back by events
  bool small;
  c10::StreamId stream;  // whose order makes its reuse safe
  Block *before, *after; // neighbours in its segment
  Block *front_next;
  int events;                      // still to complete before it is free
  std::vector<c10::Stream> *users; // other streams that used it; owned
  MemoryContext context;           // who asked for it, while memory is recorded
};

namespace {

struct BlockOrder {
  bool operator()(const Block *a, const Block *b) const {
    if (a->stream != b->stream)
      return a->stream < b->stream;
    if (a->size != b->size)
      return a->size < b->size;
    return a->data < b->data;
  }
};

using Pool = std::set<Block *, BlockOrder>;
using c10::CachingDeviceAllocator::DeviceStats;
using c10::CachingAllocator::Stat;

struct Counter {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void increase(int64_t n) {
    current += n;
    allocated += n;
    if (current > peak)
      peak = current;
  }
  void decrease(int64_t n) {
    current -= n;
    freed += n;
  }
};

/* What is counted, each as sum, small pool, large pool (torch's order). */
struct Counters {
  std::array<Counter, 3> allocation, allocated_bytes, requested_bytes, inactive_split, inactive_split_bytes, segment,
      reserved_bytes;
};

/* Inlined: six of these run in every allocation and its end. */
[[gnu::always_inline]] inline void count_up(std::array<Counter, 3> &counters, bool small, size_t n) {
  counters[0].increase(static_cast<int64_t>(n));
  counters[small ? 1 : 2].increase(static_cast<int64_t>(n));
}

[[gnu::always_inline]] inline void count_down(std::array<Counter, 3> &counters, bool small, size_t n) {
  counters[0].decrease(static_cast<int64_t>(n));
  counters[small ? 1 : 2].decrease(static_cast<int64_t>(n));
}

struct Pending {
  aclrtEvent event;
  Block *block;
};

/* Free blocks of one size of one stream. */
struct Front {
  Block *first = nullptr;
  int count = 0;
};

/* What a small launch needs of it comes first and lies close together: cache lines are what its time goes to. */
struct Cache {
  explicit Cache(c10::DeviceIndex index) : device(index) {}
  const c10::DeviceIndex device;
  QuickLock lock;
  Counters counters;
  Front fronts[kStreams][kFrontClasses];
  Pool small_blocks, large_blocks;
  std::map<void *, Block *> segments; // address -> its first block
  std::vector<Pending> pending;
  int64_t retries = 0, out_of_memories = 0;
  double fraction = 1.0;
  size_t total = 0; // device memory, read at the first allocation

  Pool &pool(bool small) { return small ? small_blocks : large_blocks; }
};

std::atomic<Cache *> caches[kMaxDevices]; // all null in a child forked after the start: a launch asks for nothing else
std::mutex caches_lock;

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
  for (auto &cache : caches)
    cache.store(nullptr, std::memory_order_relaxed);
});

__attribute__((noinline)) Cache &make_cache(c10::DeviceIndex device) {
  std::lock_guard<std::mutex> guard(caches_lock);
  if (!caches[device].load()) {
    use_device(device);
    auto cache = std::make_unique<Cache>(device);
    size_t free_bytes = 0;
    check_status(cann.aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &cache->total), "aclrtGetMemInfo");
    caches[device].store(cache.release(), std::memory_order_release);
  }
  return *caches[device].load();
}

Cache &cache_of(c10::DeviceIndex device) {
  TORCH_CHECK(device >= 0 && device < kMaxDevices, "Invalid device id: npu:", static_cast<int>(device));
  Cache *cache = caches[device].load(std::memory_order_acquire);
  return C10_LIKELY(cache != nullptr) ? *cache : (ensure_initialized(), make_cache(device));
}

size_t segment_size(size_t size) {
  if (size <= kSmallLimit)
    return kSmallSegment;
  if (size < kMediumLimit)
    return kMediumSegment;
  return (size + kLargeUnit - 1) / kLargeUnit * kLargeUnit;
}

/* Blocks that are free but part of a segment that isn't: nobody can give them back. A block's being cut off doesn't change while it is
 * free, so what is counted here is taken off again when the block leaves. */
bool is_cut_off(const Block *block) { return block->before || block->after; }

void count_free(Cache &cache, const Block *block) {
  if (!is_cut_off(block))
    return;
  count_up(cache.counters.inactive_split, block->small, 1);
  count_up(cache.counters.inactive_split_bytes, block->small, block->size);
}

void count_not_free(Cache &cache, const Block *block) {
  if (!is_cut_off(block))
    return;
  count_down(cache.counters.inactive_split, block->small, 1);
  count_down(cache.counters.inactive_split_bytes, block->small, block->size);
}

void put(Cache &cache, Block *block) {
  cache.pool(block->small).insert(block);
  count_free(cache, block);
}

void take_out(Cache &cache, Block *block) {
  cache.pool(block->small).erase(block);
  count_not_free(cache, block);
}

/* Merges a free neighbour into `block`; the neighbour dies. */
void absorb(Cache &cache, Block *block, Block *neighbour) {
  if (!neighbour || neighbour->allocated)
    return;
  take_out(cache, neighbour);
  if (block->before == neighbour) {
    block->data = neighbour->data;
    block->before = neighbour->before;
    if (block->before)
      block->before->after = block;
    else
      cache.segments[block->data] = block;
  } else {
    block->after = neighbour->after;
    if (block->after)
      block->after->before = block;
  }
  block->size += neighbour->size;
  delete neighbour;
}

void give_to_pool(Cache &cache, Block *block) {
  block->allocated = false;
  absorb(cache, block, block->before);
  absorb(cache, block, block->after);
  put(cache, block);
}

void flush_front(Cache &cache) {
  for (int stream = 0; stream < kStreams; ++stream)
    for (size_t size_class = 0; size_class < kFrontClasses; ++size_class) {
      Front &front = cache.fronts[stream][size_class];
      while (Block *block = front.first) {
        front.first = block->front_next;
        count_not_free(cache, block);
        give_to_pool(cache, block);
      }
      front.count = 0;
    }
}

/* Runs `action` and keeps what it throws, unless something was thrown before: bookkeeping has to be finished first. */
template <class Action> void keep_failure(std::exception_ptr &failure, Action action) {
  try {
    action();
  } catch (...) {
    if (!failure)
      failure = std::current_exception();
  }
}

/* Something happened to memory at `data`; a recording keeps it. */
C10_ALWAYS_INLINE void tell(const Cache &cache, const char *action, const void *data, size_t size, c10::StreamId stream,
                            const MemoryContext &context = nullptr, size_t device_free = 0) {
  if (C10_UNLIKELY(records_memory()))
    record_memory_event(cache.device, {.action = action,
                                       .address = reinterpret_cast<uintptr_t>(data),
                                       .size = size,
                                       .stream = stream,
                                       .time = 0,
                                       .device_free = device_free,
                                       .context = context});
}

void finish_event(Cache &cache, const Pending &entry) {
  cann.aclrtDestroyEvent(entry.event);
  if (--entry.block->events == 0) {
    tell(cache, "free_completed", entry.block->data, entry.block->size, entry.block->stream);
    give_to_pool(cache, entry.block);
  }
}

/* Blocks whose other users are done become free. An event that CANN can't tell about stays; the first such failure is thrown at the
 * end. */
void process_events(Cache &cache) {
  std::exception_ptr failure;
  size_t left = 0;
  for (size_t i = 0; i < cache.pending.size(); ++i) {
    const Pending entry = cache.pending[i];
    aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
    keep_failure(failure, [&] { check_status(cann.aclrtQueryEventStatus(entry.event, &status), "aclrtQueryEventStatus"); });
    if (status == ACL_EVENT_RECORDED_STATUS_COMPLETE)
      finish_event(cache, entry);
    else
      cache.pending[left++] = entry;
  }
  cache.pending.resize(left);
  if (failure)
    std::rethrow_exception(failure);
}

/* Takes the segments that are wholly free out of the pools; they are the caller's. */
std::vector<Block *> take_segments(Cache &cache) {
  std::vector<Block *> segments;
  for (Pool *pool : {&cache.small_blocks, &cache.large_blocks})
    for (auto at = pool->begin(); at != pool->end();)
      if (is_cut_off(*at)) {
        ++at;
      } else {
        segments.push_back(*at);
        cache.segments.erase((*at)->data);
        at = pool->erase(at);
      }
  return segments;
}

/* Gives cached segments back to the device. Queued work may still use them, since freeing isn't in stream order; so the device is waited
 * for, with the lock open: the blocks belong to this thread meanwhile. Returns the failure that the waiting met: an earlier task's, which
 * nobody else will hear of. */
std::exception_ptr release_cached(Cache &cache, std::unique_lock<QuickLock> &guard) {
  std::exception_ptr failure;
  std::vector<Pending> awaited;
  awaited.swap(cache.pending);
  guard.unlock();
  const auto failed = std::stable_partition(awaited.begin(), awaited.end(), [&](const Pending &entry) {
    const int code = cann.aclrtSynchronizeEvent(entry.event);
    keep_failure(failure, [&] { check_status(code, "aclrtSynchronizeEvent"); });
    return code == 0;
  });
  guard.lock();
  std::for_each(awaited.begin(), failed, [&](const Pending &entry) { finish_event(cache, entry); });
  cache.pending.insert(cache.pending.end(), failed, awaited.end());
  flush_front(cache);
  const std::vector<Block *> segments = take_segments(cache);
  if (segments.empty())
    return failure;
  guard.unlock();
  keep_failure(failure, [&] {
    use_device(cache.device);
    check_status(cann.aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
  });
  for (const Block *block : segments)
    cann.aclrtFree(block->data);
  guard.lock();
  for (Block *block : segments) {
    count_down(cache.counters.segment, block->small, 1);
    count_down(cache.counters.reserved_bytes, block->small, block->size);
    tell(cache, "segment_free", block->data, block->size, block->stream);
    delete block;
  }
  return failure;
}

Block *find_free(Cache &cache, size_t size, bool small, c10::StreamId stream) {
  Pool &pool = cache.pool(small);
  Block key{};
  key.stream = stream;
  key.size = size;
  const auto found = pool.lower_bound(&key);
  if (found == pool.end() || (*found)->stream != stream)
    return nullptr;
  Block *block = *found;
  take_out(cache, block);
  return block;
}

/* The tail of a block that is too large goes back to the pool. */
void cut(Cache &cache, Block *block, size_t size) {
  const size_t rest = block->size - size;
  if (block->small ? rest < kUnit : rest <= kSmallLimit)
    return;
  auto *tail = new Block{};
  tail->data = static_cast<char *>(block->data) + size;
  tail->size = rest;
  tail->device = block->device;
  tail->small = block->small;
  tail->stream = block->stream;
  tail->before = block;
  tail->after = block->after;
  if (tail->after)
    tail->after->before = tail;
  block->after = tail;
  block->size = size;
  put(cache, tail);
}

bool within_fraction(const Cache &cache, size_t bytes) {
  const auto allowed = static_cast<size_t>(cache.fraction * static_cast<double>(cache.total));
  return static_cast<size_t>(cache.counters.reserved_bytes[0].current) + bytes <= allowed;
}

Block *new_segment(Cache &cache, size_t size, bool small, c10::StreamId stream) {
  const size_t bytes = segment_size(size);
  if (!within_fraction(cache, bytes))
    return nullptr;
  void *data = nullptr;
  use_device(cache.device);
  const int code = cann.aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (code == ACL_ERROR_RT_MEMORY_ALLOCATION) {
    cann.aclGetRecentErrMsg();
    return nullptr;
  }
  check_status(code, "aclrtMalloc");
  auto *block = new Block{};
  block->data = data;
  block->size = bytes;
  block->device = cache.device;
  block->small = small;
  block->stream = stream;
  cache.segments[data] = block;
  count_up(cache.counters.segment, small, 1);
  count_up(cache.counters.reserved_bytes, small, bytes);
  tell(cache, "segment_alloc", data, bytes, stream);
  return block;
}

std::string in_units(size_t bytes) {
  std::ostringstream text;
  text.precision(2);
  text << std::fixed;
  if (bytes <= 1024)
    text << bytes << " bytes";
  else if (bytes <= 1048576)
    text << static_cast<double>(bytes) / 1024.0 << " KiB";
  else if (bytes <= 1073741824ULL)
    text << static_cast<double>(bytes) / 1048576.0 << " MiB";
  else
    text << static_cast<double>(bytes) / 1073741824.0 << " GiB";
  return text.str();
}

[[noreturn]] void throw_out_of_memory(Cache &cache, size_t bytes) {
  size_t free_bytes = 0, total = 0;
  cann.aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total);
  const auto allocated = static_cast<size_t>(cache.counters.allocated_bytes[0].current);
  const auto reserved = static_cast<size_t>(cache.counters.reserved_bytes[0].current);
  std::string allowed;
  if (cache.fraction < 1.0)
    allowed = in_units(static_cast<size_t>(cache.fraction * static_cast<double>(cache.total))) + " allowed; ";
  ++cache.out_of_memories;
  cache.lock.unlock();
  tell(cache, "oom", nullptr, bytes, current_ids.ids[cache.device], gather_memory_context(MemoryContexts::allocations), free_bytes);
  TORCH_CHECK_WITH(OutOfMemoryError, false, "NPU out of memory. Tried to allocate ", in_units(bytes), " (NPU ",
                   static_cast<int>(cache.device), "; ", in_units(total), " total capacity; ", in_units(allocated),
                   " already allocated; ", in_units(allocated), " current active; ", in_units(free_bytes), " free; ", allowed,
                   in_units(reserved),
                   " reserved in total by PyTorch). If reserved memory is >> allocated memory try setting "
                   "max_split_size_mb to avoid fragmentation.");
}

/* Under the lock, which is left on an exception and open while old memory is given back. */
Block *take_block(Cache &cache, std::unique_lock<QuickLock> &guard, size_t size, c10::StreamId stream) {
  const bool small = size <= kSmallLimit;
  if (C10_UNLIKELY(!cache.pending.empty()))
    process_events(cache);
  Block *block = find_free(cache, size, small, stream);
  if (!block)
    block = new_segment(cache, size, small, stream);
  if (!block) {
    ++cache.retries;
    if (const std::exception_ptr failure = release_cached(cache, guard))
      std::rethrow_exception(failure);
    block = new_segment(cache, size, small, stream);
  }
  if (!block)
    return nullptr;
  cut(cache, block, size);
  block->allocated = true;
  return block;
}

/* An event behind the stream's work on the block. */
void record_user(Cache &cache, Block *block, const c10::Stream &user) {
  aclrtEvent event = nullptr;
  use_device(user.device_index()); // the thread that drops a tensor may never have used a device
  check_status(cann.aclrtCreateEventWithFlag(&event, 0x1), "aclrtCreateEventWithFlag");
  try {
    check_status(cann.aclrtRecordEvent(event, stream_handle(user)), "aclrtRecordEvent");
    cache.pending.push_back({event, block});
    ++block->events;
  } catch (...) {
    cann.aclrtDestroyEvent(event);
    throw;
  }
}

/* Holds the block back until its other users are done. It runs in a deleter, where a throw ends the process: a stream that can't be
 * given an event is waited for instead, and the log says so. */
void record_users(Cache &cache, Block *block) noexcept {
  for (const c10::Stream &user : *block->users)
    try {
      record_user(cache, block, user);
    } catch (const std::exception &error) {
      LOG(ERROR) << "memory used on " << user << " is freed only after waiting for that stream: " << error.what();
      try {
        synchronize_stream(user);
      } catch (const std::exception &failure) {
        LOG(ERROR) << "while waiting for " << user << ": " << failure.what();
      }
    }
  delete block->users;
  block->users = nullptr;
  if (block->events > 0)
    return;
  tell(cache, "free_completed", block->data, block->size, block->stream);
  give_to_pool(cache, block);
}

/* Whether `block` went to its front list, which has room for a few. */
[[gnu::always_inline]] inline bool give_to_front(Cache &cache, Block *block) {
  const size_t size_class = block->size / kUnit;
  if (C10_UNLIKELY(size_class >= kFrontClasses))
    return false;
  Front &front = cache.fronts[block->stream][size_class];
  if (C10_UNLIKELY(front.count >= kFrontDepth))
    return false;
  block->front_next = front.first;
  front.first = block;
  ++front.count;
  count_free(cache, block);
  return true;
}

[[gnu::always_inline]] inline void count_end(Cache &cache, Block *block) {
  count_down(cache.counters.allocation, block->small, 1);
  count_down(cache.counters.allocated_bytes, block->small, block->size);
  count_down(cache.counters.requested_bytes, block->small, block->requested);
  block->requested = 0;
}

[[gnu::noinline]] void release_otherwise(Cache &cache, Block *block) {
  const MemoryContext freed_by = records_memory() ? gather_memory_context(MemoryContexts::all) : nullptr;
  std::lock_guard<QuickLock> guard(cache.lock);
  count_end(cache, block);
  block->context.reset();
  tell(cache, "free_requested", block->data, block->size, block->stream, freed_by);
  if (block->users != nullptr) {
    record_users(cache, block);
    return;
  }
  tell(cache, "free_completed", block->data, block->size, block->stream, freed_by);
  if (!give_to_front(cache, block))
    give_to_pool(cache, block);
}

/* The usual end of a block, of which every launch has one, needs few registers and no memory of its own; the rest lies beside it. */
void release_block(void *context) {
  auto *block = static_cast<Block *>(context);
  Cache *const cache = block ? caches[block->device].load(std::memory_order_acquire) : nullptr;
  if (!cache)
    return;
  if (C10_UNLIKELY(records_memory() || block->context || block->users))
    return release_otherwise(*cache, block);
  std::lock_guard<QuickLock> guard(cache->lock);
  count_end(*cache, block);
  if (C10_UNLIKELY(!give_to_front(*cache, block)))
    give_to_pool(*cache, block);
}

Stat to_stat(const Counter &counter) {
  Stat stat;
  stat.current = counter.current;
  stat.peak = counter.peak;
  stat.allocated = counter.allocated;
  stat.freed = counter.freed;
  return stat;
}

void copy_stats(const std::array<Counter, 3> &from, c10::CachingAllocator::StatArray &to) {
  for (size_t i = 0; i < from.size(); ++i)
    to[i] = to_stat(from[i]);
}

template <class Function> void each_counter(Counters &counters, Function function) {
  for (auto *group : {&counters.allocation, &counters.segment, &counters.allocated_bytes, &counters.requested_bytes,
                      &counters.reserved_bytes, &counters.inactive_split, &counters.inactive_split_bytes})
    for (Counter &counter : *group)
      function(counter);
}

struct CachingAllocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override { return npu::allocate(bytes, current_device()); }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; } // the context isn't the data pointer
  void copy_data(void *to, const void *from, size_t bytes) const override {
    check_status(
        cann.aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, current_stream_handle(current_device())),
        "aclrtMemcpyAsync");
  }
  bool initialized() override { return is_initialized(); }
  void emptyCache(c10::MempoolId_t) override {
    std::exception_ptr failure;
    for (auto &slot : caches)
      if (Cache *cache = slot.load()) {
        std::unique_lock<QuickLock> guard(cache->lock);
        const std::exception_ptr met = release_cached(*cache, guard);
        failure = failure ? failure : met;
      }
    if (failure)
      std::rethrow_exception(failure);
  }
  void recordStream(const c10::DataPtr &data, c10::Stream stream) override {
    auto *block = static_cast<Block *>(data.get_context());
    if (!block || data.get_deleter() != &release_block)
      return; // empty, or memory that isn't ours
    Cache &cache = cache_of(block->device);
    std::lock_guard<QuickLock> guard(cache.lock);
    if (stream.id() == block->stream && stream.device_index() == block->device)
      return;
    if (!block->users)
      block->users = new std::vector<c10::Stream>;
    for (const c10::Stream &known : *block->users)
      if (known == stream)
        return;
    block->users->push_back(stream);
  }
  DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    DeviceStats stats;
    Cache *cache = caches[resolve_index(device)].load();
    if (!cache)
      return stats;
    std::lock_guard<QuickLock> guard(cache->lock);
    copy_stats(cache->counters.allocation, stats.allocation);
    copy_stats(cache->counters.allocation, stats.active);
    copy_stats(cache->counters.segment, stats.segment);
    copy_stats(cache->counters.allocated_bytes, stats.allocated_bytes);
    copy_stats(cache->counters.allocated_bytes, stats.active_bytes);
    copy_stats(cache->counters.requested_bytes, stats.requested_bytes);
    copy_stats(cache->counters.reserved_bytes, stats.reserved_bytes);
    copy_stats(cache->counters.inactive_split, stats.inactive_split);
    copy_stats(cache->counters.inactive_split_bytes, stats.inactive_split_bytes);
    stats.num_alloc_retries = cache->retries;
    stats.num_ooms = cache->out_of_memories;
    stats.num_device_alloc = cache->counters.segment[0].allocated;
    stats.num_device_free = cache->counters.segment[0].freed;
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex device) override {
    if (Cache *cache = caches[resolve_index(device)].load()) {
      std::lock_guard<QuickLock> guard(cache->lock);
      each_counter(cache->counters, [](Counter &counter) { counter.allocated = counter.freed = 0; });
      cache->retries = cache->out_of_memories = 0;
    }
  }
  void resetPeakStats(c10::DeviceIndex device) override {
    if (Cache *cache = caches[resolve_index(device)].load()) {
      std::lock_guard<QuickLock> guard(cache->lock);
      each_counter(cache->counters, [](Counter &counter) { counter.peak = counter.current; });
    }
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override {
    size_t free_bytes = 0, total = 0;
    const c10::DeviceIndex before = current_device();
    use_device(resolve_index(device));
    const int code = cann.aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total);
    use_device(before);
    check_status(code, "aclrtGetMemInfo");
    return {free_bytes, total};
  }
};

CachingAllocator &the_allocator() {
  static auto *allocator = new CachingAllocator;
  return *allocator;
}

REGISTER_ALLOCATOR(kDevice, &the_allocator())

} // namespace

c10::Allocator *allocator() noexcept { return &the_allocator(); }

/* The first block of the front list for a size, or null. */
[[gnu::always_inline]] static inline Block *take_from_front(Cache &cache, size_t size_class, c10::StreamId stream) {
  if (C10_UNLIKELY(size_class >= kFrontClasses))
    return nullptr;
  Front &front = cache.fronts[stream][size_class];
  Block *const block = front.first;
  if (C10_UNLIKELY(!block))
    return nullptr;
  front.first = block->front_next;
  --front.count;
  count_not_free(cache, block);
  return block;
}

[[gnu::always_inline]] static inline void count_begin(Cache &cache, Block *block, size_t bytes) {
  block->requested = bytes;
  count_up(cache.counters.allocation, block->small, 1);
  count_up(cache.counters.allocated_bytes, block->small, block->size);
  count_up(cache.counters.requested_bytes, block->small, bytes);
}

[[gnu::noinline]] static c10::DataPtr allocate_otherwise(size_t bytes, c10::DeviceIndex device) {
  const c10::Device where(kDevice, device);
  Cache &cache = cache_of(device);
  if (bytes == 0)
    return {nullptr, nullptr, &release_block, where};
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < (size_t{1} << 60), "NPU out of memory. Tried to allocate ", in_units(bytes));
  const size_t size = (bytes + kUnit - 1) / kUnit * kUnit;
  const c10::StreamId stream = current_ids.ids[device];
  MemoryContext context = records_memory() ? gather_memory_context(MemoryContexts::state) : nullptr;
  std::unique_lock<QuickLock> guard(cache.lock);
  Block *block = take_from_front(cache, size / kUnit, stream);
  if (!block && !(block = take_block(cache, guard, size, stream))) {
    guard.release(); // throw_out_of_memory unlocks
    throw_out_of_memory(cache, bytes);
  }
  count_begin(cache, block, bytes);
  tell(cache, "alloc", block->data, block->size, stream, context);
  block->context = std::move(context);
  return {block->data, block, &release_block, where};
}

c10::DataPtr allocate(size_t bytes, c10::DeviceIndex device) {
  Cache *const cache = static_cast<size_t>(device) < kMaxDevices ? caches[device].load(std::memory_order_acquire) : nullptr;
  const size_t size_class = (bytes + kUnit - 1) / kUnit;
  if (C10_LIKELY(cache && size_class - 1 < kFrontClasses - 1 && !records_memory())) { // class 0: nothing was asked for
    std::lock_guard<QuickLock> guard(cache->lock);
    if (Block *const block = take_from_front(*cache, size_class, current_ids.ids[device]); C10_LIKELY(block)) {
      count_begin(*cache, block, bytes);
      return {block->data, block, &release_block, c10::Device(kDevice, device)};
    }
  }
  return allocate_otherwise(bytes, device);
}

static const char *state_of(const Block *block) {
  if (block->events > 0)
    return "active_awaiting_free";
  return block->allocated && block->requested > 0 ? "active_allocated" : "inactive";
}

std::vector<MemorySegment> memory_segments(c10::DeviceIndex device) {
  std::vector<MemorySegment> found;
  Cache *cache = caches[device].load();
  if (!cache)
    return found;
  const std::lock_guard<QuickLock> guard(cache->lock);
  for (const auto &[data, first] : cache->segments) {
    MemorySegment &segment = found.emplace_back();
    segment = {reinterpret_cast<uintptr_t>(data), 0, first->stream, first->small, {}};
    for (const Block *block = first; block; block = block->after) {
      segment.blocks.push_back(
          {reinterpret_cast<uintptr_t>(block->data), block->size, block->requested, state_of(block), block->context});
      segment.size += block->size;
    }
  }
  return found;
}

void set_memory_fraction(double fraction, c10::DeviceIndex device) {
  TORCH_CHECK(fraction >= 0 && fraction <= 1, "invalid fraction: ", fraction, ". Please set within [0, 1].");
  Cache &cache = cache_of(resolve_index(device));
  std::lock_guard<QuickLock> guard(cache.lock);
  cache.fraction = fraction;
}

double memory_fraction(c10::DeviceIndex device) { return cache_of(resolve_index(device)).fraction; }

} // namespace npu
