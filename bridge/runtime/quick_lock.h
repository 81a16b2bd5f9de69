/* A lock for short sections on the launch path: one atomic instruction to take it and a plain store to give it back, where a mutex of
 * the C library takes two of the former and two calls. Whoever finds it held offers the core and, if that goes on, sleeps for a
 * moment: so nothing that waits for long may run while it is held (the allocator notes events under it, some microseconds, and asks
 * the device for memory, which takes milliseconds now and then). Meets the standard's BasicLockable. */
#pragma once

#include <c10/macros/Macros.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace npu {

class QuickLock {
public:
  void lock() {
    if (C10_UNLIKELY(held.exchange(true, std::memory_order_acquire)))
      wait();
  }
  void unlock() { held.store(false, std::memory_order_release); }

private:
  static constexpr int kYields = 200;
  static constexpr std::chrono::microseconds kNap{50};
  void wait() {
    for (int attempt = 0; held.load(std::memory_order_relaxed) || held.exchange(true, std::memory_order_acquire); ++attempt)
      if (attempt < kYields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kNap);
  }
  std::atomic<bool> held{false};
};

} // namespace npu
