/* The CPU fallback: a safety net for operators without a wrapper. Counted, named once, and refusable (TORCH_NPU_FALLBACK_CPU_DISABLE=1),
 * so that nobody takes it for coverage. Autocast falls through: it runs, without casting. */
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <map>
#include <mutex>

#include "bridge/runtime/environment.h"
#include "bridge/runtime/runtime.h"

namespace npu {

static std::mutex lock; // guards counts
static std::map<std::string, int64_t> &counts() {
  static auto *const map =
      new std::map<std::string, int64_t>; // lives until the process ends: autograd's threads may outlast statics
  return *map;
}

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
  const std::lock_guard<std::mutex> guard(lock);
  return {counts().begin(), counts().end()};
}

void reset_fallback_counts() {
  const std::lock_guard<std::mutex> guard(lock);
  counts().clear();
}

/* True for the first call of an operator in this process. */
static bool count_call(const std::string &name) {
  static auto *const warned = new std::map<std::string, bool>;
  const std::lock_guard<std::mutex> guard(lock);
  ++counts()[name];
  return warned->emplace(name, true).second;
}

static void cpu_fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const c10::OperatorName &operator_name = op.operator_name();
  const std::string name =
      operator_name.overload_name.empty() ? operator_name.name : operator_name.name + "." + operator_name.overload_name;
  static const bool disabled = environment_flag("TORCH_NPU_FALLBACK_CPU_DISABLE");
  TORCH_CHECK(!disabled, "operator ", name,
              " is not implemented for NPU, and the fallback to the CPU is switched off. "
              "Unset TORCH_NPU_FALLBACK_CPU_DISABLE to let it run on the CPU, or move its inputs there yourself.");
  if (count_call(name))
    TORCH_WARN("CAUTION: The operator '", name,
               "' is not currently supported on the NPU backend and will fall back to run on the CPU. "
               "This may have performance implications. (function npu_cpu_fallback)");
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>()); }
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

} // namespace npu
