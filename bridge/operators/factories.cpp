/* Operators that make tensors from nothing. */
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "bridge/operators/operand.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using Type = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;

c10::DeviceIndex index_of(Device device) { return device ? resolve_index(device->index()) : current_device(); }

void check_factory(Layout layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "only the strided layout is supported on npu, got ", layout.value());
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

at::Tensor empty_memory_format(at::IntArrayRef size, Type dtype, Layout layout, Device device, std::optional<bool> pin_memory,
                               std::optional<at::MemoryFormat> format) {
  check_factory(layout, pin_memory);
  const OnDevice guard(index_of(device));
  return empty(size, c10::dtype_or_default(dtype), format);
}

at::Tensor make_empty_strided(at::IntArrayRef size, at::IntArrayRef stride, Type dtype, Layout layout, Device device,
                              std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  const OnDevice guard(index_of(device));
  return empty_strided(size, stride, c10::dtype_or_default(dtype));
}

void register_factories(torch::Library &m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(make_empty_strided));
}
const Registrar registrar(&register_factories);

} // namespace
} // namespace npu
