/* Distances between points, histograms with edges, modes: operators without a meta function that take one C function or a few others.
 *
 * Invariant: each reports bad input in torch's words before it makes anything. */
#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Tensor;

/* --- distances ------------------------------------------------------------------------------------------------------------- */

/* Both sets of points in one batch. */
std::pair<Tensor, Tensor> in_one_batch(const Tensor &x1, const Tensor &x2) {
  const auto batch = at::infer_size(x1.sizes().slice(0, x1.dim() - 2), x2.sizes().slice(0, x2.dim() - 2));
  const auto expanded = [&batch](const Tensor &x) {
    std::vector<int64_t> sizes = batch;
    sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
    return x.expand(sizes);
  };
  return {expanded(x1), expanded(x2)};
}

Tensor cdist(const Tensor &x1, const Tensor &x2, double p, std::optional<int64_t> compute_mode) {
  TORCH_CHECK(x1.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  TORCH_CHECK(x2.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  TORCH_CHECK(x1.size(-1) == x2.size(-1), "X1 and X2 must have the same number of columns. X1: ", x1.size(-1),
              " X2: ", x2.size(-1));
  TORCH_CHECK(at::isFloatingType(x1.scalar_type()), "cdist only supports floating-point dtypes, X1 got: ", x1.scalar_type());
  TORCH_CHECK(at::isFloatingType(x2.scalar_type()), "cdist only supports floating-point dtypes, X2 got: ", x2.scalar_type());
  TORCH_CHECK(p >= 0, "cdist only supports non-negative p values");
  const int64_t mode = compute_mode.value_or(0);
  TORCH_CHECK(mode >= 0 && mode <= 2, "possible modes: 0, 1, 2, but was: ", mode);
  const OnDevice guard(device_index_of(x1, x2));
  const auto [a, b] = in_one_batch(x1, x2);
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.back() = b.size(-2);
  const Tensor out = empty(sizes, a.scalar_type());
  if (out.numel() > 0)
    check(npu_cdist(argument(a), argument(b), p, mode, argument(out), stream()));
  return out;
}

Tensor cdist_backward(const Tensor &grad, const Tensor &x1, const Tensor &x2, double p, const Tensor &distances) {
  const OnDevice guard(device_index_of(x1, x2));
  const auto [a, b] = in_one_batch(x1, x2);
  const Tensor out = empty(a.sizes(), a.scalar_type());
  if (out.numel() > 0 && distances.numel() > 0)
    check(npu_cdist_backward(argument(grad.expand(distances.sizes())), argument(a), argument(b), p, argument(distances),
                             argument(out), stream()));
  else
    out.zero_();
  return at::sum_to(out, x1.sizes());
}

Tensor pdist(const Tensor &self, double p) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_forward requires contiguous input");
  const OnDevice guard(device_index_of(self));
  const int64_t n = self.size(0);
  const Tensor out = empty({n > 1 ? n * (n - 1) / 2 : 0}, self.scalar_type());
  if (out.numel() > 0)
    check(npu_pdist(argument(self), p, argument(out), stream()));
  return out;
}

/* A square matrix from the numbers of its upper triangle. */
Tensor symmetric(const Tensor &pairs, int64_t n) {
  const Tensor places = at::triu_indices(n, n, 1, pairs.options().dtype(at::kLong));
  const Tensor square = at::zeros({n, n}, pairs.options());
  square.index_put_({places.select(0, 0), places.select(0, 1)}, pairs);
  return square + square.mT();
}

Tensor pdist_backward(const Tensor &grad, const Tensor &self, double p, const Tensor &distances) {
  TORCH_CHECK(self.is_contiguous(), "_pdist_backward requires self to be contiguous");
  TORCH_CHECK(distances.is_contiguous(), "_pdist_backward requires pdist to be contiguous");
  const OnDevice guard(device_index_of(self));
  const int64_t n = self.size(0);
  return n > 1 ? cdist_backward(symmetric(grad, n), self, self, p, symmetric(distances, n)) : at::zeros_like(self);
}

/* --- histograms ------------------------------------------------------------------------------------------------------------- */

using Weight = std::optional<Tensor>;
using Range = std::optional<at::ArrayRef<double>>;
using Pair = std::tuple<Tensor, Tensor>;
using PairOut = std::tuple<Tensor &, Tensor &>;

void check_histogram(const Tensor &self, const Weight &weight) {
  if (!weight || !weight->defined())
    return;
  TORCH_CHECK(weight->scalar_type() == self.scalar_type(),
              "torch.histogram: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
              "input ",
              self.scalar_type(), ", and weight ", weight->scalar_type());
  TORCH_CHECK(weight->sizes() == self.sizes(), "torch.histogram: if weight tensor is provided it should have the same shape as the "
                                               "input tensor excluding its innermost dimension");
}

/* Each value joins the bin whose left edge is the last not above it; the right edge belongs to the last bin. */
Tensor counted(const Tensor &self, const Tensor &edges, const Weight &weight, bool density) {
  const int64_t bins = edges.numel() - 1;
  const Tensor values = self.reshape({-1}), last = edges.select(0, bins);
  const Tensor inside = values.ge(edges.select(0, 0)).logical_and_(values.le(last));
  const Tensor place = at::where(values.eq(last), bins - 1, at::searchsorted(edges, values, false, true) - 1).clamp_(0, bins - 1);
  const Tensor amount = (weight && weight->defined() ? weight->reshape({-1}) : at::ones_like(values)).masked_fill(~inside, 0);
  Tensor sums = at::zeros({bins}, self.options()).scatter_add_(0, place, amount);
  return density ? sums / (sums.sum() * (edges.narrow(0, 1, bins) - edges.narrow(0, 0, bins))) : sums;
}

Pair histogram_edges(const Tensor &self, const Tensor &bins, const Weight &weight, bool density) {
  TORCH_CHECK(bins.dim() == 1, "torch.histogram(): bins tensor should have one dimension, but got ", bins.dim(),
              " dimensions in the bins tensor for dimension 0");
  TORCH_CHECK(bins.numel() > 0, "torch.histogram(): bins tensor should have at least 1 element, but got ", bins.numel(),
              " elements in the bins tensor for dimension 0");
  TORCH_CHECK(bins.scalar_type() == self.scalar_type(),
              "torch.histogramdd(): input tensor and bins tensors should have the same "
              "dtype, but got input with dtype ",
              self.scalar_type(), " and bins for dimension 0 with dtype ", bins.scalar_type());
  check_histogram(self, weight);
  const OnDevice guard(device_index_of(self));
  const Tensor edges = bins.clone(at::MemoryFormat::Contiguous);
  if (edges.numel() == 1)
    return {at::zeros({0}, self.options()), edges};
  return {counted(self, edges, weight, density), edges};
}

Pair histogram_count(const Tensor &self, int64_t bins, Range range, const Weight &weight, bool density) {
  TORCH_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got ", bins, " for dimension 0");
  check_histogram(self, weight);
  const OnDevice guard(device_index_of(self));
  double low = 0, high = 1;
  if (range) {
    TORCH_CHECK(range->size() == 2, "torch.histogramdd: for a 1-dimensional histogram, range should have 2 elements, but got ",
                range->size());
    low = (*range)[0];
    high = (*range)[1];
  } else if (self.numel() > 0) {
    low = self.min().item<double>();
    high = self.max().item<double>();
  }
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "torch.histogramdd: dimension 0's range [", low, ", ", high,
              "] is not finite");
  TORCH_CHECK(low <= high, "torch.histogramdd: min should not exceed max, but got min ", low, " max ", high, " for dimension 0");
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  const Tensor edges = at::linspace(low, high, bins + 1, self.options());
  return {counted(self, edges, weight, density), edges};
}

void check_hist(const Tensor &self, const Tensor &hist) {
  TORCH_CHECK(self.dtype() == hist.dtype(),
              "torch.histogram: input tensor and hist tensor should have the same dtype, but got input ", self.dtype(),
              " and hist ", hist.dtype());
}

PairOut histogram_edges_into(const Tensor &self, const Tensor &bins, const Weight &weight, bool density, Tensor &hist,
                             Tensor &edges) {
  check_hist(self, hist);
  const auto [made, made_edges] = histogram_edges(self, bins, weight, density);
  write_out(hist, made);
  write_out(edges, made_edges);
  return {hist, edges};
}

PairOut histogram_count_into(const Tensor &self, int64_t bins, Range range, const Weight &weight, bool density, Tensor &hist,
                             Tensor &edges) {
  check_hist(self, hist);
  const auto [made, made_edges] = histogram_count(self, bins, range, weight, density);
  write_out(hist, made);
  write_out(edges, made_edges);
  return {hist, edges};
}

/* --- the most frequent value ------------------------------------------------------------------------------------------ */

/* The value with the longest run when sorted, the smallest of such; its last place. */
std::tuple<Tensor, Tensor> most_frequent(const Tensor &self, int64_t dim, bool keepdim) {
  const OnDevice guard(device_index_of(self));
  TORCH_CHECK(!self.is_complex(), "mode does not support complex input");
  if (self.dim() == 0)
    return {self.clone(), at::zeros({}, self.options().dtype(at::kLong))};
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(self.size(dim) != 0 || self.numel() != 0, "mode(): Expected reduction dim ", dim, " to have non-zero size.");
  const auto [sorted, places] = at::sort(self.transpose(dim, -1), true, -1, false);
  const int64_t n = sorted.size(-1);
  const Tensor position = at::arange(n, self.options().dtype(at::kLong)).expand(sorted.sizes());
  const Tensor begins = at::ones(sorted.sizes(), self.options().dtype(at::kBool));
  if (n > 1)
    begins.narrow(-1, 1, n - 1).copy_(sorted.narrow(-1, 1, n - 1).ne(sorted.narrow(-1, 0, n - 1)));
  const Tensor start = std::get<0>(at::cummax(position.mul(begins), -1));
  const Tensor best = position.sub(start).argmax(-1, true);
  Tensor values = sorted.gather(-1, best), indices = places.gather(-1, best);
  values = values.transpose(dim, -1);
  indices = indices.transpose(dim, -1);
  return {keepdim ? values.contiguous() : values.squeeze(dim), keepdim ? indices.contiguous() : indices.squeeze(dim)};
}

PairOut most_frequent_into(const Tensor &self, int64_t dim, bool keepdim, Tensor &values, Tensor &indices) {
  TORCH_CHECK(self.scalar_type() == values.scalar_type(), "expected scalar type '", self.scalar_type(), "' but found '",
              values.scalar_type(), "'");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "expected scalar type '", at::kLong, "' but found '", indices.scalar_type(), "'");
  const auto [made, made_indices] = most_frequent(self, dim, keepdim);
  write_out(values, made);
  write_out(indices, made_indices);
  return {values, indices};
}

void register_points(torch::Library &m) {
  if (available("cdist"))
    m.impl("_cdist_forward", TORCH_FN(cdist));
  if (available("cdist_backward")) {
    m.impl("_cdist_backward", TORCH_FN(cdist_backward));
    m.impl("_pdist_backward", TORCH_FN(pdist_backward));
  }
  if (available("pdist"))
    m.impl("_pdist_forward", TORCH_FN(pdist));
  if (available("sort") && available("cummax")) {
    m.impl("mode", TORCH_FN(most_frequent));
    m.impl("mode.values", TORCH_FN(most_frequent_into));
  }
  m.impl("histogram.bins_tensor", TORCH_FN(histogram_edges));
  m.impl("histogram.bins_tensor_out", TORCH_FN(histogram_edges_into));
  m.impl("histogram.bin_ct", TORCH_FN(histogram_count));
  m.impl("histogram.bin_ct_out", TORCH_FN(histogram_count_into));
}
const Registrar registrar(&register_points);

} // namespace
} // namespace npu
