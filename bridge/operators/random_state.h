/* How much of a generator an operator uses. */
#pragma once

#include <ATen/core/Generator.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bridge/runtime/runtime.h"

namespace npu {

/* Philox seed and offset for an operator that draws `count` values, with the rule of torch's CUDA kernels: values are dealt to a virtual
 * grid, and the offset grows by four for each call of a thread. */
inline std::pair<uint64_t, uint64_t> random_state(const std::optional<at::Generator> &generator, int64_t count) {
  constexpr int64_t block = 256, most_blocks = 864, values_a_call = 2;
  const int64_t threads = std::min((count + block - 1) / block, most_blocks) * block;
  const uint64_t increment = count <= 0 ? 0 : static_cast<uint64_t>((count - 1) / (threads * values_a_call) + 1) * 4;
  return philox_state(generator, increment);
}

} // namespace npu
