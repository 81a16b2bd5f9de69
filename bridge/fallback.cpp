/* The CPU fallback: a safety net for operators without a wrapper. Counted, named once, and refusable (TORCH_NPU_FALLBACK_CPU_DISABLE=1),
 * so that nobody takes it for coverage. */
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

/* Defined tensors of one argument. */
static std::vector<at::Tensor> tensors_of(const c10::IValue &value) {
  std::vector<at::Tensor> found;
  if (value.isTensor())
    found.push_back(value.toTensor());
  else if (value.isTensorList())
    found = value.toTensorVector();
  else if (value.isOptionalTensorList())
    for (const std::optional<at::Tensor> &tensor : value.toOptionalTensorVector())
      found.push_back(tensor.value_or(at::Tensor()));
  std::erase_if(found, [](const at::Tensor &tensor) { return !tensor.defined(); });
  return found;
}

static std::optional<c10::Device> first_npu(c10::ArrayRef<c10::IValue> arguments) {
  for (const c10::IValue &value : arguments)
    for (const at::Tensor &tensor : tensors_of(value))
      if (tensor.device().type() == kDevice)
        return tensor.device();
  return std::nullopt;
}

/* torch's rule, which its cpu_fallback doesn't keep: all tensors on one device, except that a 0-dim CPU tensor may be read. The latter is
 * moved here, since cpu_fallback leaves the results where the first tensor is. A CPU convolution with an npu weight, say, comes here too:
 * torch chooses the CPU's operator by the input, and the dispatcher sends that operator to us by the weight. */
static void require_one_device(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const auto &declared = op.schema().arguments();
  const std::optional<c10::Device> device = first_npu(torch::jit::last(*stack, declared.size()));
  if (!device)
    return;
  for (size_t i = 0; i < declared.size(); ++i) {
    c10::IValue &value = torch::jit::peek(*stack, i, declared.size());
    const bool is_written = declared[i].alias_info() && declared[i].alias_info()->isWrite();
    if (!is_written && value.isTensor() && value.toTensor().defined() && value.toTensor().is_cpu() && value.toTensor().dim() == 0)
      value = value.toTensor().to(*device);
    for (const at::Tensor &tensor : tensors_of(value))
      TORCH_CHECK(tensor.device() == *device, "Expected all tensors to be on the same device, but found at least two devices, ",
                  *device, " and ", tensor.device(), "! (operator ", op.operator_name(), ")");
  }
}

static void cpu_fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const c10::OperatorName &operator_name = op.operator_name();
  const std::string name =
      operator_name.overload_name.empty() ? operator_name.name : operator_name.name + "." + operator_name.overload_name;
  require_one_device(op, stack);
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

} // namespace npu
