/* Batch normalisation in pieces (torch.nn.SyncBatchNorm), and random slopes. */
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/var_mean.h>
#include <torch/library.h>

#include "bridge/operators/random_state.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Two own_stats(const Tensor &input, double eps) {
  const OnDevice guard(device_index_of(input));
  const Tensor mean = empty({input.size(1)}, statistic_type(input)), invstd = empty({input.size(1)}, statistic_type(input));
  check(npu_batch_norm_stats(argument(input), eps, written(mean), written(invstd), stream()));
  return {mean, invstd};
}

Tensor scaled(const Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias, const Tensor &mean,
              const Tensor &invstd, double eps) {
  const OnDevice guard(device_index_of(input));
  const Tensor out = like(input);
  check(npu_batch_norm_elemt(argument(input), argument(weight), argument(bias), argument(mean), argument(invstd), eps, written(out),
                             stream()));
  return out;
}

Tensor &scaled_into(const Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias, const Tensor &mean,
                    const Tensor &invstd, double eps, Tensor &out) {
  write_out(out, scaled(input, weight, bias, mean, invstd, eps));
  return out;
}

Two combined_stats(const Tensor &input, const Tensor &mean, const Tensor &invstd, const OptionalTensor &running_mean,
                   const OptionalTensor &running_var, double momentum, double eps, const Tensor &counts) {
  const OnDevice guard(device_index_of(input, mean));
  const Tensor mean_all = empty({mean.size(1)}, statistic_type(mean)), invstd_all = empty({mean.size(1)}, statistic_type(mean));
  check(npu_batch_norm_gather_stats(argument(input), argument(mean), argument(invstd), argument(running_mean),
                                    argument(running_var), momentum, eps, argument(counts), written(mean_all), written(invstd_all),
                                    stream()));
  return {mean_all, invstd_all};
}

Two combined_equal_stats(const Tensor &input, const Tensor &mean, const Tensor &invstd, const OptionalTensor &running_mean,
                         const OptionalTensor &running_var, double momentum, double eps, int64_t count) {
  const Tensor counts = at::full({mean.size(0)}, count, mean.options());
  return combined_stats(input, mean, invstd, running_mean, running_var, momentum, eps, counts);
}

Four gradient_sums(const Tensor &grad_out, const Tensor &input, const Tensor &mean, const Tensor &invstd,
                   const OptionalTensor &weight, bool input_g, bool weight_g, bool bias_g) {
  const OnDevice guard(device_index_of(grad_out, input));
  const at::ScalarType type = weight && weight->defined() ? weight->scalar_type() : statistic_type(input);
  const auto made = [&](bool is_wanted, at::ScalarType of) { return is_wanted ? empty({input.size(1)}, of) : Tensor(); };
  const Tensor sum_dy = made(input_g, mean.scalar_type()), sum_dy_xmu = made(input_g, mean.scalar_type());
  const Tensor grad_weight = made(weight_g, type), grad_bias = made(bias_g, type);
  check(npu_batch_norm_backward_reduce(argument(grad_out), argument(input), argument(mean), argument(invstd), argument(weight),
                                       input_g, weight_g, bias_g, written(sum_dy), written(sum_dy_xmu), written(grad_weight),
                                       written(grad_bias), stream()));
  return {sum_dy, sum_dy_xmu, grad_weight, grad_bias};
}

Tensor scaled_gradient(const Tensor &grad_out, const Tensor &input, const Tensor &mean, const Tensor &invstd,
                       const OptionalTensor &weight, const Tensor &sum_dy, const Tensor &sum_dy_xmu, const Tensor &count) {
  const OnDevice guard(device_index_of(grad_out, input));
  const Tensor out = like(input);
  check(npu_batch_norm_backward_elemt(argument(grad_out), argument(input), argument(mean), argument(invstd), argument(weight),
                                      argument(sum_dy), argument(sum_dy_xmu), argument(count), written(out), stream()));
  return out;
}

Two updated_stats(const Tensor &input, const OptionalTensor &running_mean, const OptionalTensor &running_var, double momentum) {
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < input.dim(); ++d)
    dims.push_back(d);
  const auto [variance, mean] = at::var_mean(input.to(statistic_type(input)), dims, Scalar(0));
  const double count = static_cast<double>(input.numel()) / static_cast<double>(std::max<int64_t>(input.size(1), 1));
  if (running_mean && running_mean->defined())
    running_mean->mul_(1 - momentum).add_(mean, momentum);
  if (running_var && running_var->defined())
    running_var->mul_(1 - momentum).add_(variance, momentum * count / (count - 1));
  return {mean, variance};
}

/* --- random slopes --- */

void check_rrelu(const Tensor &self, const Tensor &noise, const Scalar &lower, const Scalar &upper) {
  TORCH_CHECK(noise.sizes() == self.sizes(), "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
              " noise.shape = ", noise.sizes());
  TORCH_CHECK(lower.toDouble() <= upper.toDouble(), "Lower bound should be less than or equal to the upper bound");
}

void rrelu_between(const Tensor &self, const Tensor &noise, const Scalar &lower, const Scalar &upper,
                   const std::optional<at::Generator> &generator, const Tensor &out) {
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_rrelu(argument(self), written(noise), argument(lower), argument(upper), true, static_cast<int64_t>(seed),
                  static_cast<int64_t>(offset), written(out), stream()));
}

Scalar middle(const Scalar &lower, const Scalar &upper) { return (lower.toDouble() + upper.toDouble()) / 2; }

Tensor random_slopes(const Tensor &self, Tensor &noise, const Scalar &lower, const Scalar &upper, bool training,
                     std::optional<at::Generator> generator) {
  check_rrelu(self, noise, lower, upper);
  if (!training)
    return at::leaky_relu(self, middle(lower, upper));
  const Tensor out = like(self);
  rrelu_between(self, noise, lower, upper, generator, out);
  return out;
}

Tensor &random_slopes_into(const Tensor &self, Tensor &noise, const Scalar &lower, const Scalar &upper, bool training,
                           std::optional<at::Generator> generator, Tensor &out) {
  write_out(out, random_slopes(self, noise, lower, upper, training, generator));
  return out;
}

Tensor &random_slopes_inplace(Tensor &self, Tensor &noise, const Scalar &lower, const Scalar &upper, bool training,
                              std::optional<at::Generator> generator) {
  check_rrelu(self, noise, lower, upper);
  if (!training)
    return at::leaky_relu_(self, middle(lower, upper));
  check_written(self);
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_rrelu_inplace(written(self), written(noise), argument(lower), argument(upper), true, static_cast<int64_t>(seed),
                          static_cast<int64_t>(offset), stream()));
  return self;
}

void register_pieces(torch::Library &m) {
  if (available("batch_norm_stats"))
    m.impl("batch_norm_stats", TORCH_FN(own_stats));
  if (available("batch_norm_elemt")) {
    m.impl("batch_norm_elemt", TORCH_FN(scaled));
    m.impl("batch_norm_elemt.out", TORCH_FN(scaled_into));
  }
  if (available("batch_norm_gather_stats")) {
    m.impl("batch_norm_gather_stats", TORCH_FN(combined_equal_stats));
    m.impl("batch_norm_gather_stats_with_counts", TORCH_FN(combined_stats));
  }
  if (available("batch_norm_backward_reduce"))
    m.impl("batch_norm_backward_reduce", TORCH_FN(gradient_sums));
  if (available("batch_norm_backward_elemt"))
    m.impl("batch_norm_backward_elemt", TORCH_FN(scaled_gradient));
  m.impl("batch_norm_update_stats", TORCH_FN(updated_stats));
  if (available("rrelu") && available("rrelu_inplace")) {
    m.impl("rrelu_with_noise", TORCH_FN(random_slopes));
    m.impl("rrelu_with_noise.out", TORCH_FN(random_slopes_into));
    m.impl("rrelu_with_noise_", TORCH_FN(random_slopes_inplace));
  }
}
const Registrar registrar(&register_pieces);

} // namespace
} // namespace npu
