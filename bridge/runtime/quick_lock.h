/* A lock for short sections on the launch path: one atomic instruction to take it and one to give it back, where a mutex of the C library
 * takes a call and some bookkeeping each time. Whoever finds it held sleeps in the kernel. Meets the standard's BasicLockable. */
#pragma once

#include <c10/macros/Macros.h>

#include <atomic>

namespace npu {

class QuickLock {
public:
  void lock() {
    int expected = FREE;
    if (C10_UNLIKELY(!state.compare_exchange_strong(expected, HELD, std::memory_order_acquire)))
      wait();
  }
  void unlock() {
    if (C10_UNLIKELY(state.exchange(FREE, std::memory_order_release) == AWAITED))
      state.notify_one();
  }

private:
  enum : int { FREE, HELD, AWAITED };
  void wait() {
    while (state.exchange(AWAITED, std::memory_order_acquire) != FREE)
      state.wait(AWAITED, std::memory_order_relaxed);
  }
  std::atomic<int> state{FREE};
};

} // namespace npu
