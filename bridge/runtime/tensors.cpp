/* New tensors on the current device. */
#include <ATen/EmptyTensor.h>

#include <limits>

#include "bridge/runtime/host_allocator.h"
#include "bridge/runtime/runtime.h"

namespace npu {

static constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

/* The usual form is built in place: torch's generic function costs half as much again, on the way of every small operator. */
[[gnu::flatten]] static at::Tensor empty_contiguous(c10::IntArrayRef sizes, c10::ScalarType dtype) {
  const auto type = c10::scalarTypeToTypeMeta(dtype);
  uint64_t bytes = type.itemsize();
  bool overflows = false;
  for (const int64_t size : sizes) {
    TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
    overflows |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes);
  }
  TORCH_CHECK(!overflows && bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()),
              "Storage size calculation overflowed with sizes=", sizes);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       allocate(bytes, current_device()), allocator(),
                                                       /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)), kKeys, type);
  if (sizes.size() != 1 || sizes[0] != 0) // the default
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return tensor;
}

at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType dtype, std::optional<c10::MemoryFormat> format) {
  if (C10_LIKELY(!format || *format == c10::MemoryFormat::Contiguous))
    return empty_contiguous(sizes, dtype);
  return at::detail::empty_generic(sizes, allocator(), kKeys, dtype, format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  return at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys, dtype);
}

} // namespace npu
