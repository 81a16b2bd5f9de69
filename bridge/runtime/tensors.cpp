/* New tensors on the current device. */
#include <ATen/EmptyTensor.h>

#include "bridge/runtime/host_allocator.h"
#include "bridge/runtime/runtime.h"

namespace npu {

static constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType dtype, std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, allocator(), kKeys, dtype, format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  return at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys, dtype);
}

} // namespace npu
