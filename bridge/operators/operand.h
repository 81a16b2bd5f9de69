/* From torch's argument types to the plain structs of src/op_plugin. `argument(x)` is what generated code writes for each argument.
 *
 * Invariant: the structs point into the tensors; they live only as long as the full expression of the call. A 0-dim CPU tensor where a
 * device tensor is read is copied to the device, as torch allows; any other tensor from elsewhere is refused. What is written must be
 * on the device. torch leaves lazily conjugated factors of matrix products to the kernel; ours take stored values, so such a tensor is
 * computed here first. */
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <array>
#include <optional>
#include <string>

#include "op_plugin/op_plugin.h"
#include "bridge/runtime/runtime.h"

namespace npu {

/* aclDataType of each torch dtype; -1 for those that CANN doesn't have. */
extern const std::array<int8_t, static_cast<size_t>(c10::ScalarType::NumOptions) + 1> acl_dtypes;
[[noreturn]] void refuse_dtype(c10::ScalarType type);

/* aclDataType of a torch dtype; throws for dtypes that CANN doesn't have. */
inline int32_t acl_dtype(c10::ScalarType type) {
  const int32_t code = acl_dtypes[static_cast<size_t>(type)];
  if (C10_UNLIKELY(code < 0))
    refuse_dtype(type);
  return code;
}

/* Throws for a code of the plug-in, naming the operator that failed; with ASCEND_LAUNCH_BLOCKING=1 also waits for the work. */
[[noreturn]] void raise(int code);
void wait_if_blocking();
bool blocking_launches() noexcept;
inline void check(int code) {
  if (C10_UNLIKELY(code != 0))
    raise(code);
  if (C10_UNLIKELY(blocking_launches()))
    wait_if_blocking();
}

inline bool on_npu(const at::Tensor &tensor) { return tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::PrivateUse1); }

inline aclrtStream stream() { return current_stream_handle(current_device()); }

/* Flat, like the other steps of a small launch: calls of torch's little accessors were a tenth of its time. */
[[gnu::flatten]] inline void describe(const at::TensorImpl &impl, npu_tensor &plain) {
  const c10::Storage &storage = impl.unsafe_storage();
  plain.storage = const_cast<void *>(storage.data());
  plain.offset = impl.storage_offset();
  plain.count = impl.numel();
  plain.dtype = acl_dtype(c10::typeMetaToScalarType(impl.dtype()));
  plain.ndim = static_cast<int16_t>(impl.dim());
  plain.device = impl.device().index();
  plain.sizes = impl.sizes().data();
  plain.strides = impl.strides().data();
  plain.storage_elements =
      static_cast<int64_t>(storage.nbytes() >> __builtin_ctzll(impl.itemsize())); // a division takes longer than the rest
}

/* A tensor known to be on the current device. */
class Plain {
public:
  explicit Plain(const at::Tensor &tensor) { describe(*tensor.unsafeGetTensorImpl(), plain_); }
  operator const npu_tensor *() const { return &plain_; }

private:
  npu_tensor plain_;
};

/* On the current device, its memory holding the values themselves. */
inline bool stored_here(const at::TensorImpl &impl) {
  constexpr c10::DispatchKeySet asked{c10::DispatchKey::PrivateUse1, c10::DispatchKey::Conjugate, c10::DispatchKey::Negative};
  return (impl.key_set() & asked) == c10::DispatchKeySet(c10::DispatchKey::PrivateUse1) &&
         impl.device().index() == current_device();
}

[[noreturn]] void refuse_device(const at::Tensor &tensor); // in torch's words for tensors on different devices

/* A tensor argument that is read; undefined becomes NULL. */
class Operand {
public:
  explicit Operand(const at::Tensor &tensor) {
    defined_ = tensor.defined();
    if (!defined_)
      return;
    if (C10_LIKELY(stored_here(*tensor.unsafeGetTensorImpl())))
      describe(*tensor.unsafeGetTensorImpl(), plain_);
    else
      make_copy(tensor);
  }
  operator const npu_tensor *() const { return defined_ ? &plain_ : nullptr; }

private:
  void make_copy(const at::Tensor &tensor);
  bool defined_;
  npu_tensor plain_;
  at::Tensor copy_;
};

/* A tensor argument that is written; undefined becomes NULL. */
class Target {
public:
  explicit Target(const at::Tensor &tensor) {
    defined_ = tensor.defined();
    if (!defined_)
      return;
    if (C10_UNLIKELY(!stored_here(*tensor.unsafeGetTensorImpl())))
      refuse(tensor);
    describe(*tensor.unsafeGetTensorImpl(), plain_);
  }
  operator const npu_tensor *() const { return defined_ ? &plain_ : nullptr; }

private:
  [[noreturn]] static void refuse(const at::Tensor &tensor);
  bool defined_;
  npu_tensor plain_;
};

npu_scalar plain_scalar(const c10::Scalar &scalar);

class ScalarOperand {
public:
  explicit ScalarOperand(const c10::Scalar &scalar) : plain_(plain_scalar(scalar)), given_(true) {}
  explicit ScalarOperand(const std::optional<c10::Scalar> &scalar)
      : plain_(scalar ? plain_scalar(*scalar) : npu_scalar{}), given_(scalar.has_value()) {}
  operator const npu_scalar *() const { return given_ ? &plain_ : nullptr; }

private:
  npu_scalar plain_;
  bool given_;
};

class TextOperand {
public:
  explicit TextOperand(std::string_view text) : text_(text), given_(true) {}
  explicit TextOperand(std::optional<std::string_view> text) : text_(text.value_or("")), given_(text.has_value()) {}
  operator const char *() const { return given_ ? text_.c_str() : nullptr; }

private:
  std::string text_;
  bool given_;
};

class ListOperand {
public:
  explicit ListOperand(at::TensorList list);
  explicit ListOperand(const at::ITensorListRef &list);
  operator npu_tensors() const { return {plain_.data(), static_cast<int64_t>(plain_.size())}; }

private:
  void add(const at::Tensor &tensor);
  c10::SmallVector<npu_tensor, 16> plain_;
};

class ScalarListOperand {
public:
  explicit ScalarListOperand(at::ArrayRef<c10::Scalar> list) {
    for (const c10::Scalar &scalar : list)
      plain_.push_back(plain_scalar(scalar));
  }
  operator npu_scalars() const { return {plain_.data(), static_cast<int64_t>(plain_.size())}; }

private:
  c10::SmallVector<npu_scalar, 16> plain_;
};

inline Operand argument(const at::Tensor &tensor) { return Operand(tensor); }
inline Operand argument(const std::optional<at::Tensor> &tensor) { return Operand(tensor ? *tensor : at::Tensor()); }
inline ScalarOperand argument(const c10::Scalar &scalar) { return ScalarOperand(scalar); }
inline ScalarOperand argument(const std::optional<c10::Scalar> &scalar) { return ScalarOperand(scalar); }
inline TextOperand argument(std::string_view text) { return TextOperand(text); }
inline TextOperand argument(std::optional<std::string_view> text) { return TextOperand(text); }
inline ListOperand argument(at::TensorList list) { return ListOperand(list); }
inline ListOperand argument(const at::ITensorListRef &list) { return ListOperand(list); }
inline ScalarListOperand argument(at::ArrayRef<c10::Scalar> list) { return ScalarListOperand(list); }
inline npu_ints argument(at::IntArrayRef ints) { return {ints.data(), static_cast<int64_t>(ints.size())}; }
inline npu_ints argument(const at::OptionalIntArrayRef &ints) { return ints ? argument(*ints) : npu_ints{nullptr, 0}; }
template <size_t N> npu_bools argument(const std::array<bool, N> &bools) { return {bools.data(), static_cast<int64_t>(N)}; }
inline int64_t argument(int64_t number) { return number; }
inline double argument(double number) { return number; }
inline bool argument(bool flag) { return flag; }
inline double argument(std::optional<double> number) { return number.value_or(0.0); } // what CANN takes for "not given"
inline bool argument(std::optional<bool> flag) { return flag.value_or(false); }
inline int32_t argument(c10::ScalarType type) { return acl_dtype(type); }
inline int32_t argument(std::optional<c10::ScalarType> type) { return type ? acl_dtype(*type) : -1; }
inline Target written(const at::Tensor &tensor) { return Target(tensor); }
inline ListOperand written(at::TensorList list) { return ListOperand(list); }
struct Integers {
  c10::SmallVector<int64_t, 8> values;
  operator npu_ints() const { return {values.data(), static_cast<int64_t>(values.size())}; }
};
inline Integers argument(Integers values) { return values; }
inline Integers one(int64_t value) { return {{value}}; }

/* Makes the device of the first device tensor among the arguments current for the scope. */
class OnDevice {
public:
  explicit OnDevice(c10::DeviceIndex index) {
    if (C10_UNLIKELY(index >= 0 && index != current_device()))
      previous_ = exchange_device(index);
  }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;
  ~OnDevice() {
    if (C10_UNLIKELY(previous_ >= 0))
      exchange_device(previous_);
  }

private:
  c10::DeviceIndex previous_ = -1;
};

inline c10::DeviceIndex index_on_npu(const at::Tensor &tensor) {
  return tensor.defined() && tensor.device().type() == kDevice ? tensor.device().index() : c10::DeviceIndex(-1);
}
inline c10::DeviceIndex index_on_npu(const std::optional<at::Tensor> &tensor) {
  return tensor ? index_on_npu(*tensor) : c10::DeviceIndex(-1);
}
inline c10::DeviceIndex index_on_npu(at::TensorList list) {
  for (const at::Tensor &tensor : list)
    if (index_on_npu(tensor) >= 0)
      return index_on_npu(tensor);
  return -1;
}
inline c10::DeviceIndex index_on_npu(const at::ITensorListRef &list) {
  for (const at::Tensor &tensor : list)
    if (index_on_npu(tensor) >= 0)
      return index_on_npu(tensor);
  return -1;
}
template <typename First, typename... Rest> c10::DeviceIndex device_index_of(const First &first, const Rest &...rest) {
  const c10::DeviceIndex index = index_on_npu(first);
  if constexpr (sizeof...(rest) == 0)
    return index;
  else
    return index >= 0 ? index : device_index_of(rest...);
}

} // namespace npu
