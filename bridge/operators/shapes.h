/* Helpers that operators.yaml uses to make and check results. */
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/BinaryOps.h>

#include <initializer_list>
#include <vector>

#include "bridge/operators/fast.h"

namespace npu {

inline at::Tensor like(const at::Tensor &self) {
  return is_dense(self) ? dense_like(self, self.scalar_type()) : empty(self.sizes(), self.scalar_type());
}
inline at::Tensor like(const at::Tensor &self, c10::ScalarType type) {
  return is_dense(self) ? dense_like(self, type) : empty(self.sizes(), type);
}
/* Of a binary operator's operands. */
at::Tensor broadcast(c10::ScalarType type, const at::Tensor &a, const at::Tensor &b);
c10::ScalarType promoted(const at::Tensor &a, const at::Tensor &b);
c10::ScalarType promoted(const at::Tensor &a, const c10::Scalar &b);
/* Result dtype of a floating function of this dtype, and of a sum. */
inline c10::ScalarType floating_type(c10::ScalarType type) {
  return c10::isIntegralType(type, true) ? c10::typeMetaToScalarType(c10::get_default_dtype()) : type;
}
inline c10::ScalarType sum_type(c10::ScalarType type) { return c10::isIntegralType(type, true) ? c10::ScalarType::Long : type; }
/* Statistics of half types are kept in float. */
inline c10::ScalarType statistic_type(const at::Tensor &input) {
  return c10::isReducedFloatingType(input.scalar_type()) ? c10::ScalarType::Float : input.scalar_type();
}
double largest(const at::Tensor &self); // finite number of its dtype
at::Tensor where_result(const at::Tensor &condition, const at::Tensor &self, const at::Tensor &other);

/* Sizes of a reduction; `dim` empty or missing means all. */
at::Tensor reduced(const at::Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, c10::ScalarType type);

/* 0-dim result of max and min, which refuse empty tensors. */
at::Tensor scalar_result(const at::Tensor &self, const char *name);
at::Tensor trace_result(const at::Tensor &self);
/* var and std. */
at::Tensor spread(const at::Tensor &self, at::OptionalIntArrayRef dim, bool keepdim);
inline int64_t correction_of(const std::optional<c10::Scalar> &correction) { return correction ? correction->toLong() : 1; }

/* Results of indexing, padding, pooling, normalisation. */
at::Tensor index_select_result(const at::Tensor &self, int64_t dim, const at::Tensor &index);
/* What cat joins: without the empty vectors that torch lets pass for any shape, in the common dtype. */
std::vector<at::Tensor> joined(const at::ITensorListRef &tensors);
at::Tensor embedding_result(const at::Tensor &weight, const at::Tensor &indices);
at::Tensor padded(const at::Tensor &self, at::IntArrayRef pad);
at::Tensor adaptive_result(const at::Tensor &self, at::IntArrayRef output_size);
at::Tensor adaptive_result_3d(const at::Tensor &self, at::IntArrayRef output_size);
at::Tensor mirrored(const at::Tensor &self, at::IntArrayRef padding); // reflection_pad2d's
void check_pad_gradient(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding);
at::Tensor max_pool3d_result(const at::Tensor &self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                             at::IntArrayRef dilation, bool ceil_mode, at::ScalarType type);
at::Tensor im2col_result(const at::Tensor &self, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                         at::IntArrayRef stride);
at::Tensor col2im_result(const at::Tensor &self, at::IntArrayRef output_size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                         at::IntArrayRef padding, at::IntArrayRef stride);
void check_sampling(const at::Tensor &input, const at::Tensor &grid, int64_t interpolation);
at::Tensor sampled(const at::Tensor &input, const at::Tensor &grid);
at::Tensor layer_norm_statistic(const at::Tensor &input, at::IntArrayRef normalized_shape);
at::Tensor nll_loss2d_result(const at::Tensor &self, const at::Tensor &target, int64_t reduction);
/* A gradient, or an undefined tensor when it isn't wanted or has nothing to belong to. */
inline at::Tensor wanted(bool mask, const at::Tensor &model) { return mask && model.defined() ? like(model) : at::Tensor(); }
inline at::Tensor wanted(bool mask, const std::optional<at::Tensor> &model) { return model ? wanted(mask, *model) : at::Tensor(); }

/* Checks with torch's texts. */
void check_dot(const at::Tensor &self, const at::Tensor &other);
/* Types that torch's meta functions don't compare; torch's own texts, of mm and of batched products and convolutions. */
void check_matrix_types(const at::Tensor &self, const at::Tensor &other);
void check_factor_types(const at::Tensor &self, const at::Tensor &other);
void check_addr(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2);
void check_fill(const at::Tensor &value);
void check_value(const at::Tensor &value);
void check_mask(const at::Tensor &self, const at::Tensor &mask, const char *name);
void check_index_select(const at::Tensor &self, int64_t dim, const at::Tensor &index);
void check_index_fill(const at::Tensor &self, int64_t dim, const at::Tensor &index);
void check_flip(const at::Tensor &self, at::IntArrayRef dims);
void check_layer_norm(const at::Tensor &input, at::IntArrayRef normalized_shape, const std::optional<at::Tensor> &weight,
                      const std::optional<at::Tensor> &bias);

at::Tensor unpooled(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size);
void check_unpool_windows(at::IntArrayRef stride, at::IntArrayRef padding);

/* complex, polar: two parts of one floating type, with torch's text. */
inline void check_parts(const at::Tensor &first, const at::Tensor &second) {
  const auto fits = [](const at::Tensor &part) {
    return part.scalar_type() == at::kFloat || part.scalar_type() == at::kDouble || part.scalar_type() == at::kHalf;
  };
  TORCH_CHECK(fits(first) && fits(second), "Expected both inputs to be Half, Float or Double tensors but got ", first.scalar_type(),
              " and ", second.scalar_type());
  TORCH_CHECK(first.scalar_type() == second.scalar_type(), "Expected object of scalar type ", first.scalar_type(),
              " but got scalar type ", second.scalar_type(), " for second argument");
}
/* Indices of a type that CANN doesn't take, as int64. */
inline at::Tensor places(const at::Tensor &index) {
  const c10::ScalarType type = index.scalar_type();
  return type == at::kLong || type == at::kInt || !c10::isIntegralType(type, false) ? index : index.to(at::kLong);
}
/* A bound for integers: without what is behind the point. */
inline c10::Scalar whole_for(const at::Tensor &self, const c10::Scalar &bound) {
  return c10::isIntegralType(self.scalar_type(), false) && bound.isFloatingPoint() ? c10::Scalar(bound.toLong()) : bound;
}
void check_roll(const at::Tensor &self, at::IntArrayRef shifts, at::IntArrayRef dims);
/* What the C functions compute as torch does; it has more types and also broadcasts. */
bool isclose_fits(const at::Tensor &self, const at::Tensor &other);
bool logits_fit(const at::Tensor &self, const at::Tensor &target, const std::optional<at::Tensor> &weight,
                const std::optional<at::Tensor> &pos_weight);

/* argmax, argmin without a dimension look at the flattened tensor. */
inline at::Tensor flat_unless(const at::Tensor &self, std::optional<int64_t> dim) { return dim ? self : self.reshape({-1}); }

/* torch's two rules for a tensor that an elementwise operator writes: no two of its elements in one place, and an input is the very
 * same memory or lies apart. */
inline void check_written(const at::Tensor &out) { at::assert_no_internal_overlap(out); }
template <typename... Inputs> void check_written(const at::Tensor &out, const Inputs &...inputs) {
  at::assert_no_internal_overlap(out);
  (at::assert_no_partial_overlap(out, inputs), ...);
}
/* And for one that is written in another order than the inputs are read. */
template <typename... Inputs> void check_apart(const at::Tensor &out, const Inputs &...inputs) {
  (at::assert_no_overlap(out, inputs), ...);
}

/* A Python number beside a tensor takes the tensor's type, with its wrap-around; anything else stays. */
at::Tensor number_like(const at::Tensor &number, const at::Tensor &model);
/* torch's refusals: of a number that overflows the type; of an integer bound or exponent that does; of a result type. */
void check_number(const at::Tensor &self, const c10::Scalar &number);
inline void check_bound(const at::Tensor &self, const std::optional<c10::Scalar> &bound) {
  if (bound && bound->isIntegral(false) && c10::isIntegralType(self.scalar_type(), false))
    check_number(self, *bound);
}
void check_castable(c10::ScalarType result, const at::Tensor &out);
/* torch's rule: parameters and statistics are of the input's type, or all of them float32 beside an input of a half type. */
void check_parameter_types(const at::Tensor &input, std::initializer_list<at::Tensor> parameters);
inline at::Tensor tensor_of(const std::optional<at::Tensor> &tensor) { return tensor ? *tensor : at::Tensor(); }

/* Filling may write a place several times: `self` with each expanded dimension as one element, and a mask of self for that. */
at::Tensor distinct(const at::Tensor &self);
at::Tensor mask_of_distinct(const at::Tensor &self, const at::Tensor &mask);

/* torch's refusal of an out tensor of another type, by operators that don't cast. */
void check_out_type(const at::Tensor &out, c10::ScalarType type, const char *name);
/* out= of an operator without meta function: resizes, casts, copies. */
void write_out(const at::Tensor &out, const at::Tensor &value);
inline void check_inplace_result(const at::Tensor &self, const at::Tensor &result) {
  TORCH_CHECK(self.sizes() == result.sizes(), "output with shape ", self.sizes(), " doesn't match the broadcast shape ",
              result.sizes());
}

/* Lists: all on the current device of the first, floating, one dtype, tensors of equal sizes at each position, none empty list. */
bool uniform_lists(std::initializer_list<at::TensorList> lists);
inline bool real_scalar(const c10::Scalar &scalar) { return !scalar.isComplex(); }
inline bool real_scalars(at::ArrayRef<c10::Scalar> scalars) {
  for (const c10::Scalar &scalar : scalars)
    if (scalar.isComplex())
      return false;
  return true;
}
bool device_number(at::TensorList list, const at::Tensor &number); // one element of the lists' dtype on their device
bool norm_fits(at::TensorList list, std::optional<c10::ScalarType> dtype);
std::vector<at::Tensor> number_each(at::TensorList list);
std::vector<at::Tensor> lists_like(at::TensorList list);

} // namespace npu
