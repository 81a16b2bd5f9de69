/* Views and storages: operators that share or replace memory, and so can't go through any copy. */
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "bridge/operators/operand.h"
#include "bridge/operators/registry.h"

namespace npu {
namespace {

/* Makes the tensor's storage large enough for a view, keeping its content. Call it before the tensor becomes that view: out of memory
 * then leaves a tensor that still fits its storage. Sizes that no storage can have throw here, too. */
void fit_storage(const at::TensorImpl &impl, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
  const auto start = static_cast<size_t>(offset);
  const size_t needed = strides.data() ? at::detail::computeStorageNbytes(sizes, strides, impl.itemsize(), start)
                                       : at::detail::computeStorageNbytesContiguous(sizes, impl.itemsize(), start);
  if (c10::multiply_integers(sizes) == 0)
    return;
  const c10::Storage &storage = impl.unsafe_storage();
  TORCH_CHECK(storage, "Tensor: invalid null storage");
  if (needed > storage.nbytes())
    at::native::resize_bytes_nocuda(storage, c10::SymInt(static_cast<int64_t>(needed)));
}

const at::Tensor &resize(const at::Tensor &self, at::IntArrayRef sizes, std::optional<c10::MemoryFormat> format) {
  const OnDevice guard(device_index_of(self));
  TORCH_CHECK(!format || *format != c10::MemoryFormat::Preserve, "Unsupported memory format", *format);
  at::TensorImpl &impl = *self.unsafeGetTensorImpl();
  if (impl.sizes() != sizes) {
    fit_storage(impl, sizes, {}, impl.storage_offset());
    impl.set_sizes_contiguous(sizes);
  }
  if (format)
    impl.empty_tensor_restride(*format);
  return self;
}

at::Tensor &set_storage(at::Tensor &self, at::Storage source, int64_t offset, at::IntArrayRef sizes, at::IntArrayRef strides) {
  const OnDevice guard(device_index_of(self));
  at::TensorImpl &impl = *self.unsafeGetTensorImpl();
  const c10::Storage before = impl.unsafe_storage();
  at::native::checkSetStorage(self, std::move(source), offset, sizes, strides); // takes the storage, too
  try {
    fit_storage(impl, sizes, strides, offset);
  } catch (...) {
    impl.set_storage_keep_dtype(before);
    throw;
  }
  impl.set_storage_offset(offset);
  if (strides.data())
    impl.set_sizes_and_strides(sizes, strides);
  else
    impl.set_sizes_contiguous(sizes);
  return self;
}

at::Tensor &set_whole_storage(at::Tensor &self, at::Storage source) {
  const int64_t count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, {count}, {});
}

at::Tensor &set_tensor(at::Tensor &self, const at::Tensor &source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl())
    return self;
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

at::Tensor &set_empty(at::Tensor &self) {
  const OnDevice guard(device_index_of(self));
  return set_storage(self, empty({0}, self.scalar_type()).storage(), 0, {0}, {});
}

at::Tensor as_strided(const at::Tensor &self, at::IntArrayRef size, at::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

/* Memory used on `stream` as well: the allocator must not hand it out before that work is done. */
void record_stream(at::Tensor &self, c10::Stream stream) {
  static_cast<c10::DeviceAllocator *>(allocator())->recordStream(self.storage().data_ptr(), stream);
}

void register_views(torch::Library &m) {
  m.impl("as_strided", TORCH_FN(as_strided));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("record_stream", TORCH_FN(record_stream));
}
const Registrar registrar(&register_views);

} // namespace
} // namespace npu
