/* Reductions with results of two kinds, and small compositions. */
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

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
  m.impl("count_nonzero.dim_IntList", TORCH_FN(count_nonzero));
}
const Registrar registrar(&register_reductions);

} // namespace
} // namespace npu
