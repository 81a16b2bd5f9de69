/* Operators on positions and lines that CANN has no operator for, or only in part, made of others: reductions by index, runs of equal
 * slices, cumulative log-sum-exp, mantissa and exponent.
 *
 * Invariant: each reports bad input in torch's words before it makes anything. */
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_weight_norm_differentiable_backward.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/i0.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/mvlgamma.h>
#include <ATen/ops/native_channel_shuffle.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/norm_except_dim.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scatter_reduce.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "bridge/operators/composed.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {

void write_index_reduce(const at::Tensor &self, int64_t dim, const at::Tensor &index, const at::Tensor &source,
                        std::string_view reduce, bool include_self, const at::Tensor &out) {
  const at::Tensor whole = self.dim() ? self : self.reshape({1}), from = self.dim() ? source : source.reshape({1});
  dim = at::maybe_wrap_dim(dim, whole.dim());
  std::vector<int64_t> sizes(static_cast<size_t>(whole.dim()), 1);
  sizes[static_cast<size_t>(dim)] = index.numel();
  const at::Tensor places = index.to(at::kLong).reshape(sizes).expand(from.sizes());
  out.copy_(at::scatter_reduce(whole, dim, places, from, reduce, include_self).reshape(self.sizes()));
}

at::Tensor addr_of_bools(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2, const at::Scalar &beta,
                         const at::Scalar &alpha) {
  check_addr(self, vec1, vec2);
  const at::Tensor products = at::logical_and(vec1.unsqueeze(1), vec2.unsqueeze(0));
  const at::Tensor product = alpha.to<bool>() ? products : at::zeros(products.sizes(), products.options());
  return beta.to<bool>() ? at::logical_or(product, self) : product;
}

void write_norm_dtype(const at::Tensor &self, const std::optional<at::Scalar> &p, at::IntArrayRef dim, bool keepdim,
                      at::ScalarType dtype, const at::Tensor &out) {
  out.copy_(at::norm(self.to(dtype), p.value_or(at::Scalar(2)), dim, keepdim));
}

void write_addmm_activation(const at::Tensor &self, const at::Tensor &mat1, const at::Tensor &mat2, const at::Scalar &beta,
                            const at::Scalar &alpha, bool use_gelu, const at::Tensor &out) {
  const at::Tensor product = at::addmm(self, mat1, mat2, beta, alpha);
  out.copy_(use_gelu ? at::gelu(product, "tanh") : product.relu());
}

/* --- runs of equal slices --- */

std::tuple<at::Tensor, at::Tensor, at::Tensor> runs_along(const at::Tensor &self, int64_t dim, bool return_inverse,
                                                          bool return_counts) {
  const at::Tensor slices = self.movedim(dim, 0);
  const int64_t count = slices.size(0);
  const at::Tensor none = empty({0}, at::kLong);
  if (self.numel() == 0) {
    TORCH_CHECK(count == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return {self.clone(), none, none};
  }
  const at::Tensor lines = slices.reshape({count, -1});
  const at::Tensor differs = lines.slice(0, 1).ne(lines.slice(0, 0, count - 1)).any(1);
  const at::Tensor begins = at::cat({at::ones({1}, differs.options()), differs});
  const at::Tensor starts = at::nonzero(begins).reshape({-1});
  const at::Tensor values = slices.index_select(0, starts).movedim(0, dim);
  const at::Tensor ends = at::cat({starts.slice(0, 1), at::full({1}, count, starts.options())});
  return {values, return_inverse ? begins.cumsum(0).sub_(1) : none, return_counts ? ends.sub(starts) : none};
}

namespace {

using at::Scalar;
using at::Tensor;

/* --- a fixed number of positions --- */

Tensor first_positions(const Tensor &self, int64_t size, int64_t fill_value) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const Tensor found = at::nonzero(self);
  const int64_t have = std::min(size, found.size(0));
  const Tensor out = at::full({size, self.dim()}, fill_value, found.options());
  out.narrow(0, 0, have).copy_(found.narrow(0, 0, have));
  return out;
}

Tensor &first_positions_into(const Tensor &self, int64_t size, int64_t fill_value, Tensor &out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "nonzero_static: Expected out tensor to have scalar type ", at::kLong, " but got ",
              out.scalar_type());
  write_out(out, first_positions(self, size, fill_value));
  return out;
}

/* --- a number looked up in a sorted tensor --- */

/* torch's rule for a number beside a tensor: it takes the tensor's type unless it is of a higher kind. */
Tensor number_beside(const Scalar &number, const Tensor &tensor) {
  return at::scalar_tensor(number, tensor.options().dtype(promoted(tensor, number)));
}

Tensor place_of_number(const Tensor &sequence, const Scalar &self, bool out_int32, bool right, std::optional<std::string_view> side,
                       const std::optional<Tensor> &sorter) {
  TORCH_CHECK(sequence.dim() == 1, "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, ",
              "but we got boundaries tensor dim(", sequence.dim(), ")");
  return at::searchsorted(sequence, number_beside(self, sequence).reshape({1}), out_int32, right, side, sorter).reshape({});
}

Tensor &place_of_number_into(const Tensor &sequence, const Scalar &self, bool out_int32, bool right,
                             std::optional<std::string_view> side, const std::optional<Tensor> &sorter, Tensor &out) {
  check_out_type(out, out_int32 ? at::kInt : at::kLong, "torch.searchsorted()");
  write_out(out, place_of_number(sequence, self, out_int32, right, side, sorter));
  return out;
}

Tensor bucket_of_number(const Scalar &self, const Tensor &boundaries, bool out_int32, bool right) {
  return at::bucketize(number_beside(self, boundaries), boundaries, out_int32, right);
}

/* --- channels --- */

Tensor channel_shuffle(const Tensor &self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive.", " Value of groups:", groups);
  TORCH_CHECK(self.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ", self.size(1), " channels and ",
              groups, " groups.");
  return self.numel() == 0 ? at::empty_like(self) : at::native_channel_shuffle(self.contiguous(), groups);
}

/* --- gradient of windows --- */

Tensor unfold_backward(const Tensor &grad, at::IntArrayRef input_sizes, int64_t dim, int64_t size, int64_t step) {
  const Tensor out = at::zeros(input_sizes, grad.options());
  if (input_sizes.empty()) {
    out.add_(grad.sum());
    return out;
  }
  dim = at::maybe_wrap_dim(dim, static_cast<int64_t>(input_sizes.size()));
  const int64_t windows = grad.size(dim);
  if (step >= size) { // no two windows share an element
    out.unfold(dim, size, step).copy_(grad);
    return out;
  }
  for (int64_t place = 0; place < size; ++place)
    out.slice(dim, place, place + (windows - 1) * step + 1, step).add_(grad.select(-1, place));
  return out;
}

/* --- cumulative log-sum-exp: sums over 1, 2, 4 ... neighbours, so that no exponential leaves the range --- */

Tensor cumulative_logsumexp(const Tensor &self, int64_t dim) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  Tensor sum = self.clone(at::MemoryFormat::Contiguous);
  if (self.dim() == 0 || self.numel() == 0)
    return sum;
  for (int64_t reach = 1, size = self.size(dim); reach < size; reach *= 2) {
    const Tensor tail = at::logaddexp(sum.narrow(dim, reach, size - reach), sum.narrow(dim, 0, size - reach));
    sum = at::cat({sum.narrow(dim, 0, reach), tail}, dim);
  }
  return sum;
}

Tensor &cumulative_logsumexp_into(const Tensor &self, int64_t dim, Tensor &out) {
  check_out_type(out, self.scalar_type(), "logcumsumexp()");
  write_out(out, cumulative_logsumexp(self, dim));
  return out;
}

/* --- mantissa and exponent, from the bits of float64 --- */

std::tuple<Tensor &, Tensor &> mantissa_and_exponent(const Tensor &self, Tensor &mantissa, Tensor &exponent) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()), "torch.frexp() only supports floating-point dtypes");
  TORCH_CHECK(mantissa.scalar_type() == self.scalar_type(), "torch.frexp() expects mantissa to have dtype ", self.scalar_type(),
              " but got ", mantissa.scalar_type());
  TORCH_CHECK(exponent.scalar_type() == at::kInt, "torch.frexp() expects exponent to have int dtype but got ",
              exponent.scalar_type());
  constexpr int64_t exponent_bits = 0x7ff, place = 52, half = 1022; // of 0.5 <= x < 1
  const Tensor x = self.to(at::kDouble).contiguous(), small = x.abs().lt(0x1p-1000);
  const Tensor bits = at::where(small, x.mul(0x1p200), x).view(at::kLong);
  const Tensor raised = bits.bitwise_right_shift(Scalar(place)).bitwise_and(Scalar(exponent_bits));
  const Tensor plain = at::logical_and(raised.ne(exponent_bits), x.ne(0)), zero = at::zeros({}, raised.options());
  const Tensor part = bits.bitwise_and(Scalar(~(exponent_bits << place))).bitwise_or(Scalar(half << place)).view(at::kDouble);
  const Tensor power = at::where(plain, raised.sub(half).sub(small.to(at::kLong).mul(200)), zero);
  write_out(mantissa, at::where(plain, part, x).to(self.scalar_type()));
  write_out(exponent, power.to(at::kInt));
  return {mantissa, exponent};
}

/* --- copies, extremes, weights --- */

Tensor narrowed_copy(const Tensor &self, int64_t dim, int64_t start, int64_t length) {
  return self.narrow(dim, start, length).clone(at::MemoryFormat::Contiguous);
}

Tensor &narrowed_copy_into(const Tensor &self, int64_t dim, int64_t start, int64_t length, Tensor &out) {
  check_out_type(out, self.scalar_type(), "narrow_copy()");
  write_out(out, self.narrow(dim, start, length));
  return out;
}

std::tuple<Tensor, Tensor> extremes(const Tensor &self) { return at::aminmax(self); }
std::tuple<Tensor, Tensor> extremes_along(const Tensor &self, int64_t dim, bool keepdim) { return at::aminmax(self, dim, keepdim); }

std::tuple<Tensor, Tensor, Tensor> equal_slices(const Tensor &self, int64_t dim, bool return_inverse, bool return_counts) {
  return runs_along(self, at::maybe_wrap_dim(dim, self.dim()), return_inverse, return_counts);
}

std::tuple<Tensor, Tensor> weight_norm(const Tensor &v, const Tensor &g, int64_t dim) {
  const Tensor norms = at::norm_except_dim(v, 2, dim);
  return {v.mul(g.div(norms)), norms};
}

std::tuple<Tensor, Tensor> weight_norm_backward(const Tensor &grad, const Tensor &v, const Tensor &g, const Tensor &norms,
                                                int64_t dim) {
  return at::_weight_norm_differentiable_backward(grad, v, g, norms, dim);
}

Tensor &mvlgamma_into(const Tensor &self, int64_t p, Tensor &out) {
  write_out(out, at::mvlgamma(self, p));
  return out;
}

/* --- C's shifts, of floats too: times a power of two --- */

template <bool left, typename Other> Tensor shifted(const Tensor &self, const Other &other) {
  if (c10::isIntegralType(self.scalar_type(), true))
    return left ? at::bitwise_left_shift(self, other) : at::bitwise_right_shift(self, other);
  const Tensor power = at::pow(at::full({}, 2, self.options()), other);
  return left ? self.mul(power) : self.div(power);
}
template <bool left, typename Other> Tensor &shifted_inplace(Tensor &self, const Other &other) {
  return self.copy_(shifted<left>(self, other));
}

/* --- Kaiser's window --- */

Tensor kaiser_window_of(int64_t length, bool periodic, double beta, std::optional<at::ScalarType> dtype,
                        std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(length >= 0, "kaiser_window requires non-negative window_length, got window_length=", length);
  const at::ScalarType type = dtype.value_or(c10::typeMetaToScalarType(c10::get_default_dtype()));
  TORCH_CHECK(c10::isFloatingType(type) || c10::isComplexType(type), "kaiser_window expects floating point dtypes, got: ", type);
  if (length < 2)
    return at::ones({length}, type, layout, device, pin_memory);
  const int64_t points = length + (periodic ? 1 : 0);
  const Tensor place =
      at::arange(points, at::kDouble, layout, device, pin_memory).mul_(2.0 / static_cast<double>(points - 1)).sub_(1);
  const Tensor height = at::i0(place.square().neg_().add_(1).clamp_min_(0).sqrt_().mul_(beta));
  return height.div_(at::i0(at::full({}, beta, height.options()))).narrow(0, 0, length).to(type);
}

Tensor kaiser_window(int64_t length, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                     std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return kaiser_window_of(length, true, 12.0, dtype, layout, device, pin_memory);
}

Tensor kaiser_window_periodic(int64_t length, bool periodic, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                              std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return kaiser_window_of(length, periodic, 12.0, dtype, layout, device, pin_memory);
}

/* torch's promise of zeros without memory; ours have memory. */
Tensor efficient_zeros(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                       std::optional<at::Device> device, std::optional<bool> pin_memory) {
  return at::zeros(sizes, dtype, layout, device, pin_memory);
}

void register_composed(torch::Library &m) {
  m.impl("nonzero_static", TORCH_FN(first_positions));
  m.impl("nonzero_static.out", TORCH_FN(first_positions_into));
  m.impl("searchsorted.Scalar", TORCH_FN(place_of_number));
  m.impl("searchsorted.Scalar_out", TORCH_FN(place_of_number_into));
  m.impl("bucketize.Scalar", TORCH_FN(bucket_of_number));
  m.impl("channel_shuffle", TORCH_FN(channel_shuffle));
  m.impl("unfold_backward", TORCH_FN(unfold_backward));
  m.impl("_logcumsumexp", TORCH_FN(cumulative_logsumexp));
  m.impl("_logcumsumexp.out", TORCH_FN(cumulative_logsumexp_into));
  m.impl("frexp.Tensor_out", TORCH_FN(mantissa_and_exponent));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("mvlgamma.out", TORCH_FN(mvlgamma_into));
  m.impl("__lshift__.Scalar", TORCH_FN((shifted<true, Scalar>)));
  m.impl("__lshift__.Tensor", TORCH_FN((shifted<true, Tensor>)));
  m.impl("__rshift__.Scalar", TORCH_FN((shifted<false, Scalar>)));
  m.impl("__rshift__.Tensor", TORCH_FN((shifted<false, Tensor>)));
  m.impl("__ilshift__.Scalar", TORCH_FN((shifted_inplace<true, Scalar>)));
  m.impl("__ilshift__.Tensor", TORCH_FN((shifted_inplace<true, Tensor>)));
  m.impl("__irshift__.Scalar", TORCH_FN((shifted_inplace<false, Scalar>)));
  m.impl("__irshift__.Tensor", TORCH_FN((shifted_inplace<false, Tensor>)));
  m.impl("narrow_copy", TORCH_FN(narrowed_copy));
  m.impl("narrow_copy.out", TORCH_FN(narrowed_copy_into));
  m.impl("_aminmax", TORCH_FN(extremes));
  m.impl("_aminmax.dim", TORCH_FN(extremes_along));
  m.impl("unique_dim_consecutive", TORCH_FN(equal_slices));
  m.impl("_weight_norm_interface", TORCH_FN(weight_norm));
  m.impl("_weight_norm_interface_backward", TORCH_FN(weight_norm_backward));
  m.impl("kaiser_window", TORCH_FN(kaiser_window));
  m.impl("kaiser_window.periodic", TORCH_FN(kaiser_window_periodic));
  m.impl("kaiser_window.beta", TORCH_FN(kaiser_window_of));
}
const Registrar registrar(&register_composed);

} // namespace

} // namespace npu
