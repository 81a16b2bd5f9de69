/* Devices: lazy start, per-thread current device, fork. See runtime.h. */
#include "bridge/runtime/runtime.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "bridge/runtime/environment.h"

namespace npu {
namespace {

std::atomic<bool> started{false};
std::atomic<bool> forked_after_start{false};
std::mutex start_lock;
/* Asked for on every launch: reached without a call. */
#define ON_LAUNCH_PATH __attribute__((tls_model("initial-exec")))
constinit thread_local c10::DeviceIndex current ON_LAUNCH_PATH = 0;
constinit thread_local c10::DeviceIndex told ON_LAUNCH_PATH = -1; // what CANN was told on this thread

void child_after_fork() {
  if (started) // a child forked earlier starts a runtime of its own and is an ordinary process
    forked_after_start = true;
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, child_after_fork);

} // namespace

bool is_initialized() noexcept { return started.load(std::memory_order_acquire) && !forked_after_start; }
bool in_bad_fork() noexcept { return forked_after_start.load(std::memory_order_relaxed); }

static void start() {
  std::lock_guard<std::mutex> guard(start_lock);
  if (started)
    return;
  const int code = cann.aclInit(nullptr);
  if (code != ACL_ERROR_REPEAT_INITIALIZE)
    check_status(code, "aclInit");
  else
    cann.aclGetRecentErrMsg();
  started.store(true, std::memory_order_release);
}

void ensure_initialized() {
  if (C10_LIKELY(started.load(std::memory_order_acquire) && !forked_after_start.load(std::memory_order_relaxed)))
    return;
  TORCH_CHECK(!forked_after_start,
              "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the "
              "'spawn' start method",
              error_line("ERR00003 PTA invalid value"));
  TORCH_CHECK(cann.aclInit, "The NPU libraries aren't loaded: ", cann_load_error());
  start();
}

c10::DeviceIndex device_count() noexcept {
  if (!cann.aclrtGetDeviceCount)
    return 0;
  uint32_t count = 0;
  if (cann.aclrtGetDeviceCount(&count) != 0) {
    cann.aclGetRecentErrMsg();
    return 0;
  }
  return static_cast<c10::DeviceIndex>(std::min<uint32_t>(count, kMaxDevices));
}

c10::DeviceIndex current_device() noexcept { return current; }

static void check_index(int64_t index) {
  static const c10::DeviceIndex count = device_count();
  TORCH_CHECK(index >= 0 && index < count, "Invalid device id: npu:", index, "; this process sees ", static_cast<int>(count),
              " device(s), allowed are 0 to ", static_cast<int>(count) - 1, error_line("ERR00003 PTA invalid value"));
}

c10::DeviceIndex resolve_index(int64_t index) {
  if (index == -1 || index == current)
    return current;
  check_index(index);
  return static_cast<c10::DeviceIndex>(index);
}

void set_device(c10::DeviceIndex index) {
  if (index != current)
    check_index(index);
  current = index;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) {
  const c10::DeviceIndex before = current;
  if (index >= 0 && index != before)
    set_device(index);
  return before;
}

void use_device(c10::DeviceIndex index) {
  if (C10_LIKELY(told == index))
    return;
  ensure_initialized();
  check_index(index);
  check_status(cann.aclrtSetDevice(index), "aclrtSetDevice");
  told = index;
}

void synchronize_device(c10::DeviceIndex index) {
  use_device(resolve_index(index));
  check_status(cann.aclrtSynchronizeDevice(), "aclrtSynchronizeDevice");
}

bool launch_blocking() noexcept {
  static const bool blocking = environment_flag("ASCEND_LAUNCH_BLOCKING");
  return blocking;
}

} // namespace npu
