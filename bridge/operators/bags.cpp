/* Bags of embeddings, and pooling over windows whose places are random. */
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/_embedding_bag_backward_native.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding_dense_backward.h>
#include <ATen/ops/fractional_max_pool2d_meta_dispatch.h>
#include <ATen/ops/fractional_max_pool3d_meta_dispatch.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/max.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/* --- embedding bags --- */

enum Mode { SUM, MEAN, MAX };

void check_bags(const Tensor &weight, const Tensor &indices, const Tensor &offsets, int64_t mode, const OptionalTensor &samples,
                bool include_last) {
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "Expected tensor for argument #2 'indices' to have one of the following scalar types: Long, Int; but got ",
              indices.toString(), " instead (while checking arguments for embedding_bag)");
  TORCH_CHECK(offsets.scalar_type() == at::kLong || offsets.scalar_type() == at::kInt,
              "Expected tensor for argument #3 'offsets' to have one of the following scalar types: Long, Int; but got ",
              offsets.toString(), " instead (while checking arguments for embedding_bag)");
  TORCH_CHECK(indices.dim() == 1, "input has to be a 1D Tensor, but got Tensor of dimension ", indices.dim());
  TORCH_CHECK(offsets.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets.dim());
  TORCH_CHECK(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  TORCH_CHECK(!include_last || offsets.size(0) >= 1, "include_last_offset: number of offset should be at least 1");
  if (!samples || !samples->defined())
    return;
  TORCH_CHECK(mode == SUM, "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(samples->scalar_type() == weight.scalar_type(), "expected per_sample_weights to have the dtype of weight");
  TORCH_CHECK(samples->dim() == 1 && samples->numel() == indices.numel(), "expected per_sample_weights of ", indices.numel(),
              " elements, got ", samples->sizes());
}

Four embedding_bag(const Tensor &weight, const Tensor &indices, const Tensor &offsets, bool scale_grad_by_freq, int64_t mode,
                   bool sparse, const OptionalTensor &samples, bool include_last, int64_t padding) {
  check_bags(weight, indices, offsets, mode, samples, include_last);
  TORCH_CHECK(padding < weight.size(0) && padding >= -weight.size(0), "padding_idx must be within the number of embeddings");
  const OnDevice guard(device_index_of(weight, indices));
  const int64_t bags = offsets.size(0) - (include_last ? 1 : 0);
  const at::ScalarType type = indices.scalar_type() == at::kInt && offsets.scalar_type() == at::kInt ? at::kInt : at::kLong;
  const Tensor out = empty({bags, weight.size(1)}, weight.scalar_type());
  const Tensor offset2bag = empty(indices.sizes(), type), size = empty({bags}, type);
  const Tensor greatest = mode == MAX ? empty({bags, weight.size(1)}, type) : empty({bags}, type);
  check(npu_embedding_bag(argument(weight), argument(indices), argument(offsets), scale_grad_by_freq, mode, sparse,
                          argument(samples), include_last, padding < 0 && padding != -1 ? padding + weight.size(0) : padding,
                          written(out), written(offset2bag), written(size), written(greatest), stream()));
  return {out, offset2bag, size, greatest};
}

/* What each index's bag got, divided among its members when they were averaged. */
Tensor shares(const Tensor &grad, const Tensor &offset2bag, const Tensor &bag_size, int64_t mode) {
  const Tensor share = mode == MEAN ? grad / bag_size.clamp_min(1).to(grad.scalar_type()).unsqueeze(1) : grad;
  return share.index_select(0, offset2bag);
}

Tensor embedding_bag_dense_backward(const Tensor &grad, const Tensor &indices, const Tensor &offset2bag, const Tensor &bag_size,
                                    const Tensor &greatest, int64_t rows, bool scale_grad_by_freq, int64_t mode,
                                    const OptionalTensor &samples, int64_t padding) {
  const OnDevice guard(device_index_of(grad));
  if (mode == MAX) { // an empty bag has no greatest row
    const Tensor none = greatest < 0, to = greatest.clamp_min(0).to(at::kLong);
    return at::zeros({rows, grad.size(1)}, grad.options()).scatter_add_(0, to, grad.masked_fill(none, 0));
  }
  Tensor each = shares(grad, offset2bag, bag_size, mode);
  if (samples && samples->defined())
    each = each * samples->unsqueeze(1);
  return at::embedding_dense_backward(each, indices, rows, padding, scale_grad_by_freq);
}

Tensor sample_weights_backward(const Tensor &grad, const Tensor &weight, const Tensor &indices, const Tensor &offsets,
                               const Tensor &offset2bag, int64_t mode, int64_t padding) {
  TORCH_CHECK(mode == SUM, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  const OnDevice guard(device_index_of(grad));
  const Tensor products = (grad.index_select(0, offset2bag) * weight.index_select(0, indices)).sum(1);
  return padding < 0 ? products : products.masked_fill(indices == padding, 0);
}

/* --- fractional max pooling --- */

/* Where the windows along one dimension begin: [batch, channels, windows]. */
Tensor beginnings(const Tensor &samples, int64_t in, int64_t window, int64_t out) {
  const at::TensorOptions counts = samples.options().dtype(at::kLong);
  const Tensor last = at::full({samples.size(0), samples.size(1), 1}, in - window, counts);
  if (out == 1)
    return last;
  const double step = samples.scalar_type() == at::kDouble
                          ? static_cast<double>(in - window) / static_cast<double>(out - 1)
                          : static_cast<double>(static_cast<float>(in - window) / static_cast<float>(out - 1));
  const Tensor sample = samples.unsqueeze(2), each = at::arange(out - 1, samples.options());
  return at::cat({((each + sample) * step).to(at::kLong) - (sample * step).to(at::kLong), last}, 2);
}

/* Places of all elements of all windows in a plane: [batch, channels, windows, elements]. */
Tensor window_places(const Tensor &samples, at::IntArrayRef in, at::IntArrayRef window, at::IntArrayRef out, bool reversed) {
  const int64_t dims = static_cast<int64_t>(window.size()), n = samples.size(0), c = samples.size(1);
  Tensor places;
  for (int64_t d = 0; d < dims; ++d) {
    const Tensor from = beginnings(samples.select(2, reversed ? dims - 1 - d : d), in[d], window[d], out[d]);
    std::vector<int64_t> windows(static_cast<size_t>(2 * dims + 2), 1), elements = windows;
    windows[0] = n;
    windows[1] = c;
    windows[static_cast<size_t>(2 + d)] = out[d];
    elements[static_cast<size_t>(2 + dims + d)] = window[d];
    const Tensor at = from.reshape(windows) + at::arange(window[d], from.options()).reshape(elements);
    places = places.defined() ? places * in[d] + at : at;
  }
  int64_t count = 1, size = 1;
  for (int64_t d = 0; d < dims; ++d) {
    count *= out[d];
    size *= window[d];
  }
  return places.reshape({n, c, count, size});
}

Two fractional_max_pool(const Tensor &self, at::IntArrayRef window, at::IntArrayRef out_size, const Tensor &samples,
                        bool reversed) {
  const int64_t dims = static_cast<int64_t>(window.size());
  const OnDevice guard(device_index_of(self));
  const bool one = self.dim() == dims + 1;
  const Tensor x = one ? self.unsqueeze(0) : self;
  const Tensor places = window_places(samples, x.sizes().slice(2), window, out_size, reversed);
  const Tensor values = at::gather(x.flatten(2), 2, places.flatten(2)).reshape(places.sizes());
  const auto [greatest, which] = at::max(values, 3);
  std::vector<int64_t> sizes{x.size(0), x.size(1)};
  sizes.insert(sizes.end(), out_size.begin(), out_size.end());
  const Tensor out = greatest.reshape(sizes), indices = at::gather(places, 3, which.unsqueeze(3)).reshape(sizes);
  return one ? Two{out.squeeze(0), indices.squeeze(0)} : Two{out, indices};
}

Two fractional_max_pool2d(const Tensor &self, at::IntArrayRef window, at::IntArrayRef out_size, const Tensor &samples) {
  at::meta::fractional_max_pool2d(self, window, out_size, samples); // checks
  return fractional_max_pool(self, window, out_size, samples, true);
}

Two fractional_max_pool3d(const Tensor &self, at::IntArrayRef window, at::IntArrayRef out_size, const Tensor &samples) {
  at::meta::fractional_max_pool3d(self, window, out_size, samples);
  return fractional_max_pool(self, window, out_size, samples, false);
}

template <Two (*pool)(const Tensor &, at::IntArrayRef, at::IntArrayRef, const Tensor &)>
std::tuple<Tensor &, Tensor &> pool_into(const Tensor &self, at::IntArrayRef window, at::IntArrayRef out_size,
                                         const Tensor &samples, Tensor &out, Tensor &indices) {
  const auto [values, places] = pool(self, window, out_size, samples);
  write_out(out, values);
  write_out(indices, places);
  return {out, indices};
}

Tensor fractional_max_pool_backward(const Tensor &grad, const Tensor &self, at::IntArrayRef window, at::IntArrayRef out_size,
                                    const Tensor &indices) {
  const OnDevice guard(device_index_of(grad, self));
  const int64_t first = self.dim() - static_cast<int64_t>(window.size());
  TORCH_CHECK(grad.sizes() == indices.sizes(), "expected indices of the gradient's size ", grad.sizes(), ", got ", indices.sizes());
  const Tensor zeros = at::zeros_like(self, at::MemoryFormat::Contiguous);
  zeros.flatten(first).scatter_add_(first, indices.flatten(first), grad.flatten(first));
  return zeros;
}

Tensor &fractional_max_pool_backward_into(const Tensor &grad, const Tensor &self, at::IntArrayRef window, at::IntArrayRef out_size,
                                          const Tensor &indices, Tensor &out) {
  write_out(out, fractional_max_pool_backward(grad, self, window, out_size, indices));
  return out;
}

void register_bags(torch::Library &m) {
  if (available("embedding_bag")) {
    m.impl("_embedding_bag", TORCH_FN(embedding_bag));
    m.impl("_embedding_bag_forward_only", TORCH_FN(embedding_bag));
    m.impl("_embedding_bag_backward", TORCH_FN(at::native::_embedding_bag_backward_symint));
    m.impl("_embedding_bag_dense_backward", TORCH_FN(embedding_bag_dense_backward));
    m.impl("_embedding_bag_per_sample_weights_backward", TORCH_FN(sample_weights_backward));
  }
  m.impl("fractional_max_pool2d", TORCH_FN(fractional_max_pool2d));
  m.impl("fractional_max_pool2d.output", TORCH_FN(pool_into<fractional_max_pool2d>));
  m.impl("fractional_max_pool3d", TORCH_FN(fractional_max_pool3d));
  m.impl("fractional_max_pool3d.output", TORCH_FN(pool_into<fractional_max_pool3d>));
  m.impl("fractional_max_pool2d_backward", TORCH_FN(fractional_max_pool_backward));
  m.impl("fractional_max_pool2d_backward.grad_input", TORCH_FN(fractional_max_pool_backward_into));
  m.impl("fractional_max_pool3d_backward", TORCH_FN(fractional_max_pool_backward));
  m.impl("fractional_max_pool3d_backward.grad_input", TORCH_FN(fractional_max_pool_backward_into));
}
const Registrar registrar(&register_bags);

} // namespace
} // namespace npu
