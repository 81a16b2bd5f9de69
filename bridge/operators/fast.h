/* Shape and dtype inference of ours for the usual calls of hot elementwise operators: torch's meta functions alone would cost more than
 * the whole rest of a small launch. What doesn't fit here goes to the meta functions, which also own all error texts.
 *
 * Covered: operands on the current device, of one dtype, dense with equal strides or contiguous and broadcast; a wrapped number or 0-dim
 * CPU tensor as the second operand. The results equal TensorIterator's in dtype, shape and strides. */
#pragma once

#include "bridge/operators/operand.h"

namespace npu {

/* dtype of the output: that of the operands, which may be anything but bool; the same, but only floating; bool. */
enum class Rule { same, floating, boolean };

inline bool rule_allows(Rule rule, c10::ScalarType type) {
  if (rule == Rule::floating)
    return c10::isFloatingType(type) || type == c10::ScalarType::ComplexFloat || type == c10::ScalarType::ComplexDouble;
  return rule == Rule::boolean || type != c10::ScalarType::Bool;
}

inline bool is_here(const at::TensorImpl &impl) {
  return impl.key_set().has(c10::DispatchKey::PrivateUse1) && impl.device().index() == current_device();
}

inline at::Tensor dense_like(const at::Tensor &model, c10::ScalarType type) {
  return model.is_contiguous() ? empty(model.sizes(), type) : empty_strided(model.sizes(), model.strides(), type);
}

inline bool is_dense(const at::Tensor &tensor) {
  return tensor.is_contiguous() || tensor.unsafeGetTensorImpl()->is_non_overlapping_and_dense();
}

/* Output of a unary operator, or undefined when the case isn't covered. */
inline at::Tensor fast_unary(const at::Tensor &self, Rule rule) {
  if (!is_here(*self.unsafeGetTensorImpl()) || !rule_allows(rule, self.scalar_type()) || !is_dense(self))
    return {};
  return dense_like(self, rule == Rule::boolean ? c10::ScalarType::Bool : self.scalar_type());
}

inline bool fast_unary_inplace(const at::Tensor &self, Rule rule) {
  return is_here(*self.unsafeGetTensorImpl()) && rule != Rule::boolean && rule_allows(rule, self.scalar_type()) && is_dense(self);
}

/* Sizes of a broadcast, or false when they don't fit. */
bool broadcast_sizes(at::IntArrayRef a, at::IntArrayRef b, c10::SmallVectorImpl<int64_t> &sizes);

[[gnu::flatten]] inline at::Tensor fast_binary(const at::Tensor &self, const at::Tensor &other, Rule rule) {
  const at::TensorImpl &a = *self.unsafeGetTensorImpl(), &b = *other.unsafeGetTensorImpl();
  if (!is_here(a) || !is_here(b) || a.dtype() != b.dtype() || !rule_allows(rule, self.scalar_type()))
    return {};
  const c10::ScalarType type = rule == Rule::boolean ? c10::ScalarType::Bool : self.scalar_type();
  const bool contiguous = a.is_contiguous() && b.is_contiguous();
  if (C10_LIKELY(a.sizes() == b.sizes()))
    return contiguous                                                       ? empty(a.sizes(), type)
           : a.strides() == b.strides() && a.is_non_overlapping_and_dense() ? empty_strided(a.sizes(), a.strides(), type)
                                                                            : at::Tensor();
  c10::SmallVector<int64_t, 8> sizes;
  if (!contiguous || !broadcast_sizes(a.sizes(), b.sizes(), sizes))
    return {};
  return empty(sizes, type);
}

/* Value of a wrapped number or a 0-dim CPU tensor, when it doesn't change the dtype of `self`. */
bool fast_scalar_value(const at::Tensor &self, const at::Tensor &other, npu_scalar &value);

inline bool fast_scalar(const at::Tensor &self, const at::Tensor &other, Rule rule, npu_scalar &value) {
  return other.is_cpu() && is_here(*self.unsafeGetTensorImpl()) && rule_allows(rule, self.scalar_type()) && is_dense(self) &&
         fast_scalar_value(self, other, value);
}

inline bool fast_scalar_inplace(const at::Tensor &self, const at::Tensor &other, Rule rule, npu_scalar &value) {
  return rule != Rule::boolean && fast_scalar(self, other, rule, value);
}

/* Same for operators whose second operand is a Scalar. */
bool scalar_keeps_dtype(const at::Tensor &self, const c10::Scalar &scalar);
inline bool fast_with_scalar(const at::Tensor &self, const c10::Scalar &scalar, Rule rule) {
  return is_here(*self.unsafeGetTensorImpl()) && rule_allows(rule, self.scalar_type()) && is_dense(self) &&
         scalar_keeps_dtype(self, scalar);
}

bool overlaps_partly(const at::Tensor &self, const at::Tensor &other);
inline bool fast_binary_inplace(const at::Tensor &self, const at::Tensor &other, Rule rule) {
  const at::TensorImpl &a = *self.unsafeGetTensorImpl(), &b = *other.unsafeGetTensorImpl();
  if (!is_here(a) || !is_here(b) || a.dtype() != b.dtype() || rule == Rule::boolean || !rule_allows(rule, self.scalar_type()) ||
      !is_dense(self))
    return false;
  if (C10_UNLIKELY(a.sizes() != b.sizes())) {
    c10::SmallVector<int64_t, 8> sizes;
    if (!broadcast_sizes(a.sizes(), b.sizes(), sizes) || at::IntArrayRef(sizes) != a.sizes())
      return false;
  }
  return !a.unsafe_storage().is_alias_of(b.unsafe_storage()) || !overlaps_partly(self, other);
}

/* add, sub: torch refuses a fractional alpha for integers, a boolean one for anything else than bool. */
inline bool alpha_fits(const at::Tensor &self, const c10::Scalar &alpha) {
  return !alpha.isBoolean() && !alpha.isComplex() && (alpha.isIntegral(false) || c10::isFloatingType(self.scalar_type()));
}

/* Bitwise operators: torch refuses what has no bits; bool has rules of its own. */
inline bool is_integer(const at::Tensor &self) { return c10::isIntegralType(self.scalar_type(), false); }

/* gelu: torch refuses other words; true, so that it can stand in a condition. */
inline bool check_approximation(std::string_view approximate) {
  TORCH_CHECK(approximate == "none" || approximate == "tanh", "approximate argument must be either none or tanh.");
  return true;
}

/* div: torch refuses other words. */
inline bool is_rounding(std::optional<std::string_view> mode) { return mode && (*mode == "trunc" || *mode == "floor"); }

} // namespace npu
