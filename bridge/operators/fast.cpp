/* The rarer halves of the fast paths. See fast.h. */
#include "bridge/operators/fast.h"

namespace npu {

bool broadcast_sizes(at::IntArrayRef a, at::IntArrayRef b, c10::SmallVectorImpl<int64_t> &sizes) {
  const size_t n = std::max(a.size(), b.size());
  sizes.resize(n);
  for (size_t i = 0; i < n; ++i) { // from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      return false;
    sizes[n - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

/* bool < integer < floating < complex: torch promotes only between these categories when one side is a number. */
static int category(c10::ScalarType type) {
  return c10::isComplexType(type) ? 3 : c10::isFloatingType(type) ? 2 : type == c10::ScalarType::Bool ? 0 : 1;
}

bool fast_scalar_value(const at::Tensor &self, const at::Tensor &other, npu_scalar &value) {
  const bool number = other.unsafeGetTensorImpl()->is_wrapped_number();
  if (other.dim() != 0 || (!number && self.dim() == 0) || self.unsafeGetTensorImpl()->is_wrapped_number() ||
      category(other.scalar_type()) > category(self.scalar_type()) || !other.unsafeGetTensorImpl()->storage_initialized())
    return false;
  const void *const data = other.const_data_ptr();
  value = {};
  switch (other.scalar_type()) {
  case c10::ScalarType::Double:
    value.kind = ACL_DOUBLE;
    value.value.f64 = *static_cast<const double *>(data);
    return true;
  case c10::ScalarType::Float:
    value.kind = ACL_DOUBLE;
    value.value.f64 = *static_cast<const float *>(data);
    return true;
  case c10::ScalarType::Long:
    value.kind = ACL_INT64;
    value.value.i64 = *static_cast<const int64_t *>(data);
    return true;
  case c10::ScalarType::Int:
    value.kind = ACL_INT64;
    value.value.i64 = *static_cast<const int32_t *>(data);
    return true;
  case c10::ScalarType::Bool:
    value.kind = ACL_BOOL;
    value.value.i64 = *static_cast<const bool *>(data);
    return true;
  default: return false;
  }
}

bool scalar_keeps_dtype(const at::Tensor &self, const c10::Scalar &scalar) {
  return category(scalar.type()) <= category(self.scalar_type());
}

bool overlaps_partly(const at::Tensor &self, const at::Tensor &other) {
  return !(self.const_data_ptr() == other.const_data_ptr() && self.sizes() == other.sizes() && self.strides() == other.strides());
}

} // namespace npu
