/* Reductions with results of two kinds, and small compositions. */
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include <limits>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using Pair = std::tuple<at::Tensor &, at::Tensor &>;

/* Sizes of values and indices along one dimension. */
void fit_pair(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  std::vector<int64_t> sizes = self.sizes().vec();
  dim = at::maybe_wrap_dim(dim, self.dim());
  if (!sizes.empty()) {
    if (keepdim)
      sizes[dim] = 1;
    else
      sizes.erase(sizes.begin() + dim);
  }
  at::native::resize_output(values, sizes);
  at::native::resize_output(indices, sizes);
}

Pair kthvalue_values(const at::Tensor &self, int64_t k, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  const OnDevice guard(device_index_of(self));
  const int64_t size = self.dim() > 0 ? self.size(dim) : 1;
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", dim);
  check_apart(values, self);
  fit_pair(self, dim, keepdim, values, indices);
  check(npu_kthvalue(argument(self), k, dim, keepdim, written(values), written(indices), stream()));
  return {values, indices};
}

Pair median_values(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  const OnDevice guard(device_index_of(self));
  fit_pair(self, dim, keepdim, values, indices);
  check(npu_median_dim(argument(self), dim, keepdim, written(values), written(indices), stream()));
  return {values, indices};
}

Pair nanmedian_values(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values, at::Tensor &indices) {
  const OnDevice guard(device_index_of(self));
  fit_pair(self, dim, keepdim, values, indices);
  check(npu_nanmedian_dim(argument(self), dim, keepdim, written(values), written(indices), stream()));
  return {values, indices};
}

void cummax_helper(const at::Tensor &self, at::Tensor &values, at::Tensor &indices, int64_t dim) {
  const OnDevice guard(device_index_of(self));
  check(npu_cummax(argument(self), written(values), written(indices), dim, stream()));
}

void cummin_helper(const at::Tensor &self, at::Tensor &values, at::Tensor &indices, int64_t dim) {
  const OnDevice guard(device_index_of(self));
  check(npu_cummin(argument(self), written(values), written(indices), dim, stream()));
}

at::Tensor count_nonzero(const at::Tensor &self, at::IntArrayRef dim) { return self.ne(0).sum(dim); }

using Number = std::optional<double>;

/* aclnnNanToNum takes its numbers as floats, so float64 goes operator by operator, and complex numbers as their parts. */
void replace_special(const at::Tensor &out, const at::Tensor &self, Number nan, Number posinf, Number neginf) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double to_nan = nan.value_or(0.0), to_posinf = posinf.value_or(largest(self)), to_neginf = neginf.value_or(-largest(self));
  if (self.is_complex())
    return replace_special(at::view_as_real(out), at::view_as_real(self), nan, posinf, neginf);
  if (self.scalar_type() != at::kDouble)
    return check(npu_nan_to_num(argument(self), to_nan, to_posinf, to_neginf, argument(out), stream()));
  const at::Tensor is_nan = self.ne(self), is_posinf = self.eq(infinity), is_neginf = self.eq(-infinity);
  if (!out.is_same(self))
    out.copy_(self);
  out.masked_fill_(is_nan, to_nan).masked_fill_(is_posinf, to_posinf).masked_fill_(is_neginf, to_neginf);
}

at::Tensor special_replaced(const at::Tensor &self, Number nan, Number posinf, Number neginf) {
  const OnDevice guard(device_index_of(self));
  const at::Tensor out = like(self);
  replace_special(out, self, nan, posinf, neginf);
  return out;
}

at::Tensor &nan_to_num_inplace(at::Tensor &self, Number nan, Number posinf, Number neginf) {
  check_written(self);
  const OnDevice guard(device_index_of(self));
  replace_special(self, self, nan, posinf, neginf);
  return self;
}

at::Tensor &nan_to_num_out(const at::Tensor &self, Number nan, Number posinf, Number neginf, at::Tensor &out) {
  check_written(out, self);
  TORCH_CHECK(self.scalar_type() == out.scalar_type(), "nan_to_num: dtype of out: ", out.scalar_type(),
              " should be same as input: ", self.scalar_type());
  write_out(out, special_replaced(self, nan, posinf, neginf));
  return out;
}

void register_reductions(torch::Library &m) {
  if (available("kthvalue"))
    m.impl("kthvalue.values", TORCH_FN(kthvalue_values));
  if (available("median_dim"))
    m.impl("median.dim_values", TORCH_FN(median_values));
  if (available("nanmedian_dim"))
    m.impl("nanmedian.dim_values", TORCH_FN(nanmedian_values));
  if (available("cummax"))
    m.impl("_cummax_helper", TORCH_FN(cummax_helper));
  if (available("cummin"))
    m.impl("_cummin_helper", TORCH_FN(cummin_helper));
  if (available("nan_to_num")) {
    m.impl("nan_to_num", TORCH_FN(special_replaced));
    m.impl("nan_to_num_", TORCH_FN(nan_to_num_inplace));
    m.impl("nan_to_num.out", TORCH_FN(nan_to_num_out));
  }
  m.impl("count_nonzero.dim_IntList", TORCH_FN(count_nonzero));
}
const Registrar registrar(&register_reductions);

} // namespace
} // namespace npu
