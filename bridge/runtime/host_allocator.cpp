/* Pinned host memory, cached by size: a freed block is handed out again once the non-blocking copies that used it are done.
 *
 * One lock guards the tables. In a forked child the inherited blocks are private copies: frees do nothing. */
#include <ATen/core/CachingHostAllocator.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/runtime/host_allocator.h"
#include "bridge/runtime/runtime.h"

namespace npu {
namespace {

struct Use {
  c10::Stream stream;
  aclrtEvent event; // behind the stream's last copy
};

struct HostBlock {
  void *data;
  size_t size;
  std::vector<Use> uses; // streams whose copies may still run, each once
};

size_t round_up_size(size_t bytes) {
  size_t size = 4096;
  while (size < bytes)
    size *= 2;
  return size;
}

class PinnedAllocator final : public at::HostAllocator {
public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0)
      return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    ensure_initialized();
    std::lock_guard<std::mutex> guard(lock_);
    HostBlock *block = reuse(round_up_size(bytes));
    if (!block)
      block = create(round_up_size(bytes));
    in_use_[block->data] = block;
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(block->size);
    return {block->data, block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void *to, const void *from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  bool record_event(void *data, void *, c10::Stream stream) override { return record(data, stream); }
  void empty_cache() override {
    if (in_bad_fork())
      return;
    std::lock_guard<std::mutex> guard(lock_);
    for (auto &entry : free_)
      destroy(entry.second);
    free_.clear();
  }
  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> guard(lock_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> guard(lock_);
    for (auto *stat : counted())
      stat->reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> guard(lock_);
    for (auto *stat : counted())
      stat->reset_peak();
  }

  /* A pointer anywhere inside a pinned block. */
  HostBlock *find(const void *data) {
    auto at = in_use_.upper_bound(const_cast<void *>(data));
    if (at == in_use_.begin())
      return nullptr;
    HostBlock *block = (--at)->second;
    return static_cast<const char *>(data) < static_cast<char *>(block->data) + block->size ? block : nullptr;
  }
  bool contains(const void *data) {
    std::lock_guard<std::mutex> guard(lock_);
    return find(data) != nullptr;
  }
  bool record(const void *data, const c10::Stream &stream) {
    std::lock_guard<std::mutex> guard(lock_);
    HostBlock *block = find(data);
    if (!block)
      return false;
    use_device(resolve_index(stream.device_index()));
    const auto known = std::find_if(block->uses.begin(), block->uses.end(), [&](const Use &use) { return use.stream == stream; });
    if (known != block->uses.end()) { // recorded anew, the event stands for all earlier copies of its stream
      check_status(cann.aclrtRecordEvent(known->event, stream_handle(stream)), "aclrtRecordEvent");
      return true;
    }
    aclrtEvent event = nullptr;
    check_status(cann.aclrtCreateEventWithFlag(&event, 0x1), "aclrtCreateEventWithFlag");
    const int code = cann.aclrtRecordEvent(event, stream_handle(stream));
    if (code != 0)
      cann.aclrtDestroyEvent(event);
    check_status(code, "aclrtRecordEvent");
    block->uses.push_back({stream, event});
    return true;
  }

private:
  static void release(void *context);

  std::array<c10::CachingAllocator::Stat *, 4> counted() {
    return {&stats_.allocations, &stats_.allocated_bytes, &stats_.active_requests, &stats_.active_bytes};
  }
  static bool idle(HostBlock *block) {
    while (!block->uses.empty()) {
      aclrtEventRecordedStatus status;
      check_status(cann.aclrtQueryEventStatus(block->uses.back().event, &status), "aclrtQueryEventStatus");
      if (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
        return false;
      cann.aclrtDestroyEvent(block->uses.back().event);
      block->uses.pop_back();
    }
    return true;
  }
  HostBlock *reuse(size_t size) {
    const auto range = free_.equal_range(size);
    for (auto at = range.first; at != range.second; ++at)
      if (idle(at->second)) {
        HostBlock *block = at->second;
        free_.erase(at);
        return block;
      }
    return nullptr;
  }
  HostBlock *create(size_t size) {
    void *data = nullptr;
    use_device(current_device());
    const int code = cann.aclrtMallocHost(&data, size);
    if (code == ACL_ERROR_RT_MEMORY_ALLOCATION) {
      cann.aclGetRecentErrMsg(); // said here in torch's way; the next error must not repeat it
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no pinned host memory: tried to allocate ", size, " bytes");
    }
    check_status(code, "aclrtMallocHost");
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(size);
    ++stats_.num_host_alloc;
    return new HostBlock{data, size, {}};
  }
  void destroy(HostBlock *block) {
    for (const Use &use : block->uses) {
      cann.aclrtSynchronizeEvent(use.event);
      cann.aclrtDestroyEvent(use.event);
    }
    cann.aclrtFreeHost(block->data);
    stats_.allocations.decrease(1);
    stats_.allocated_bytes.decrease(block->size);
    ++stats_.num_host_free;
    delete block;
  }

  std::mutex lock_;
  std::map<void *, HostBlock *> in_use_;
  std::multimap<size_t, HostBlock *> free_;
  at::HostStats stats_;
};

PinnedAllocator &pinned() {
  static auto *allocator = new PinnedAllocator; // tensors may outlive every static
  return *allocator;
}

void PinnedAllocator::release(void *context) {
  auto *block = static_cast<HostBlock *>(context);
  if (!block || in_bad_fork())
    return;
  std::lock_guard<std::mutex> guard(pinned().lock_);
  pinned().in_use_.erase(block->data);
  pinned().free_.emplace(block->size, block);
  pinned().stats_.active_requests.decrease(1);
  pinned().stats_.active_bytes.decrease(block->size);
}

REGISTER_HOST_ALLOCATOR(kDevice, &pinned())

} // namespace

c10::Allocator *host_allocator() noexcept { return &pinned(); }

bool is_pinned(const void *data) { return !in_bad_fork() && pinned().contains(data); }

bool host_record_stream(const void *data, const c10::Stream &stream) { return pinned().record(data, stream); }

c10::DeviceIndex device_of_pointer(const void *data) {
  ensure_initialized();
  aclrtPtrAttributes attributes;
  check_status(cann.aclrtPointerGetAttributes(data, &attributes), "aclrtPointerGetAttributes");
  TORCH_CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE, "The pointer ", data, " isn't device memory of an NPU");
  return static_cast<c10::DeviceIndex>(attributes.location.id);
}

} // namespace npu
