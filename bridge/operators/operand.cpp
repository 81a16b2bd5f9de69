/* Conversions off the hot path, and errors of the plug-in. See operand.h. */
#include "bridge/operators/operand.h"

#include <exception>
#include <utility>

#include "bridge/operators/registry.h"

namespace npu {

static constexpr int8_t code_of(c10::ScalarType type) {
  switch (type) {
  case c10::ScalarType::Float: return ACL_FLOAT;
  case c10::ScalarType::Double: return ACL_DOUBLE;
  case c10::ScalarType::Half: return ACL_FLOAT16;
  case c10::ScalarType::BFloat16: return ACL_BF16;
  case c10::ScalarType::Byte: return ACL_UINT8;
  case c10::ScalarType::Char: return ACL_INT8;
  case c10::ScalarType::Short: return ACL_INT16;
  case c10::ScalarType::Int: return ACL_INT32;
  case c10::ScalarType::Long: return ACL_INT64;
  case c10::ScalarType::Bool: return ACL_BOOL;
  case c10::ScalarType::UInt16: return ACL_UINT16;
  case c10::ScalarType::UInt32: return ACL_UINT32;
  case c10::ScalarType::UInt64: return ACL_UINT64;
  case c10::ScalarType::ComplexHalf: return ACL_COMPLEX32;
  case c10::ScalarType::ComplexFloat: return ACL_COMPLEX64;
  case c10::ScalarType::ComplexDouble: return ACL_COMPLEX128;
  case c10::ScalarType::Float8_e5m2: return ACL_FLOAT8_E5M2;
  case c10::ScalarType::Float8_e4m3fn: return ACL_FLOAT8_E4M3FN;
  case c10::ScalarType::Float8_e8m0fnu: return ACL_FLOAT8_E8M0;
  default: return -1;
  }
}

static constexpr auto all_codes() {
  std::remove_const_t<decltype(acl_dtypes)> codes{};
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = code_of(static_cast<c10::ScalarType>(i));
  return codes;
}

constexpr decltype(acl_dtypes) acl_dtypes = all_codes();

void refuse_dtype(c10::ScalarType type) {
  TORCH_CHECK_TYPE(type != c10::ScalarType::Float8_e4m3fnuz && type != c10::ScalarType::Float8_e5m2fnuz, "dtype ", toString(type),
                   " is not supported on npu; of the 8-bit floats, Float8_e4m3fn, Float8_e5m2 and Float8_e8m0fnu are");
  TORCH_CHECK_TYPE(false, "dtype ", toString(type), " is not supported on npu");
}

static thread_local std::exception_ptr kept_exception;

void keep_exception() noexcept { kept_exception = std::current_exception(); }

void raise(int code) {
  if (kept_exception) {
    npu_failure_text();
    std::rethrow_exception(std::exchange(kept_exception, nullptr));
  }
  const char *const name = npu_failed_operator();
  const char *const text = npu_failure_text();
  TORCH_CHECK(text == nullptr, name, ": ", text, ", error code is ", code);
  throw_status(code, name);
}

bool blocking_launches() noexcept {
  static const bool blocking = launch_blocking();
  return blocking;
}

void wait_if_blocking() { synchronize_stream(current_stream(current_device())); }

void refuse_device(const at::Tensor &tensor) {
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but found at least two devices, npu:", int(current_device()),
              " and ", tensor.device(), "!");
}

void Operand::make_copy(const at::Tensor &tensor) {
  if (on_npu(tensor) && tensor.device().index() == current_device()) { // marked as conjugate or negative
    copy_ = tensor.resolve_conj().resolve_neg();
  } else {
    if (!tensor.is_cpu() || tensor.dim() != 0)
      refuse_device(tensor);
    copy_ = empty({}, tensor.scalar_type());
    check(npu_fill_scalar(Plain(copy_), ScalarOperand(tensor.item()), stream()));
  }
  describe(*copy_.unsafeGetTensorImpl(), plain_);
}

void Target::refuse(const at::Tensor &tensor) {
  if (!on_npu(tensor) || tensor.device().index() != current_device())
    refuse_device(tensor);
  TORCH_CHECK(false, "this operator can't write to a lazily conjugated or negated tensor on npu; write to a plain one and copy it");
}

npu_scalar plain_scalar(const c10::Scalar &scalar) {
  npu_scalar plain{};
  if (scalar.isFloatingPoint()) {
    plain.kind = ACL_DOUBLE;
    plain.value.f64 = scalar.toDouble();
  } else if (scalar.isBoolean()) {
    plain.kind = ACL_BOOL;
    plain.value.i64 = scalar.toBool();
  } else if (scalar.isComplex()) {
    const auto number = scalar.toComplexDouble();
    plain.kind = ACL_COMPLEX128;
    plain.value.c128[0] = number.real();
    plain.value.c128[1] = number.imag();
  } else if (scalar.type() == c10::ScalarType::UInt64 && scalar.toUInt64() > uint64_t(INT64_MAX)) {
    plain.kind = ACL_DOUBLE; // torch_npu has no unsigned scalar either; the plain struct would wrap it
    plain.value.f64 = double(scalar.toUInt64());
  } else {
    plain.kind = ACL_INT64;
    plain.value.i64 = scalar.toLong();
  }
  return plain;
}

void ListOperand::add(const at::Tensor &tensor) {
  if (!stored_here(*tensor.unsafeGetTensorImpl()))
    refuse_device(tensor);
  describe(*tensor.unsafeGetTensorImpl(), plain_.emplace_back());
}

ListOperand::ListOperand(at::TensorList list) {
  plain_.reserve(list.size());
  for (const at::Tensor &tensor : list)
    add(tensor);
}

ListOperand::ListOperand(const at::ITensorListRef &list) {
  plain_.reserve(list.size());
  for (const at::Tensor &tensor : list)
    add(tensor);
}

} // namespace npu
