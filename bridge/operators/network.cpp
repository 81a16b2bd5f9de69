/* Convolution, batch normalisation and dropout: operators whose results depend on flags. */
#include <ATen/core/Tensor.h>
#include <torch/library.h>

#include "bridge/operators/random_state.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/* Sizes of a convolution's output; dim 1 of the weight counts one group's channels. */
std::vector<int64_t> convolution_sizes(const at::Tensor &input, const at::Tensor &weight, at::IntArrayRef stride,
                                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                                       at::IntArrayRef output_padding, int64_t groups) {
  const size_t spatial = static_cast<size_t>(input.dim() - 2);
  TORCH_CHECK(stride.size() == spatial && padding.size() == spatial && dilation.size() == spatial && weight.dim() == input.dim() &&
                  (!transposed || output_padding.size() == spatial),
              "convolution: stride ", stride, ", padding ", padding, ", dilation ", dilation, " and weight ", weight.sizes(),
              " must have the dimensions of the input ", input.sizes());
  for (const int64_t step : stride)
    TORCH_CHECK(step > 0, "convolution: stride is ", stride, "; at least 1 is allowed");
  std::vector<int64_t> sizes{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
  for (int64_t d = 2; d < input.dim(); ++d) {
    const size_t i = static_cast<size_t>(d - 2);
    const int64_t reach = dilation[i] * (weight.size(d) - 1) + 1, size = input.size(d);
    sizes.push_back(transposed ? (size - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i]
                               : (size + 2 * padding[i] - reach) / stride[i] + 1);
  }
  for (size_t d = 2; d < sizes.size(); ++d)
    TORCH_CHECK(sizes[d] > 0, "Given input size per channel: (", c10::Join(" x ", input.sizes().slice(2)),
                "). Calculated output size per channel: (", c10::Join(" x ", at::IntArrayRef(sizes).slice(2)),
                "). Output size is too small");
  return sizes;
}

at::Tensor convolution(const at::Tensor &input, const at::Tensor &weight, const OptionalTensor &bias, at::IntArrayRef stride,
                       at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                       int64_t groups) {
  TORCH_CHECK(input.scalar_type() != at::kBool, "convolution not implemented for 'Bool'");
  const OnDevice guard(device_index_of(input));
  check_factor_types(input, weight);
  if (bias && bias->defined())
    check_factor_types(input, *bias);
  const auto sizes = convolution_sizes(input, weight, stride, padding, dilation, transposed, output_padding, groups);
  const at::Tensor out = empty(sizes, input.scalar_type(), input.suggest_memory_format());
  check(npu_convolution(argument(input), argument(weight), argument(bias), argument(stride), argument(padding), argument(dilation),
                        transposed, argument(output_padding), groups, argument(out), stream()));
  return out;
}

Three convolution_backward(const at::Tensor &grad_output, const at::Tensor &input, const at::Tensor &weight, at::IntArrayRef stride,
                           at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                           int64_t groups, std::array<bool, 3> mask) {
  const OnDevice guard(device_index_of(grad_output));
  check_factor_types(grad_output, input);
  check_factor_types(grad_output, weight);
  const int64_t channels = grad_output.size(1);
  const at::Tensor grad_input = wanted(mask[0], input), grad_weight = wanted(mask[1], weight);
  const at::Tensor grad_bias = mask[2] ? empty({channels}, grad_output.scalar_type()) : at::Tensor();
  check(npu_convolution_backward(argument(grad_output), argument(input), argument(weight), argument(one(channels)),
                                 argument(stride), argument(padding), argument(dilation), transposed, argument(output_padding),
                                 groups, argument(mask), argument(grad_input), argument(grad_weight), argument(grad_bias),
                                 stream()));
  return {grad_input, grad_weight, grad_bias};
}

Three batch_norm(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias,
                 const OptionalTensor &running_mean, const OptionalTensor &running_var, bool training, double momentum,
                 double eps) {
  const OnDevice guard(device_index_of(input));
  check_parameter_types(input, {tensor_of(weight), tensor_of(running_mean), tensor_of(running_var), tensor_of(bias)});
  const at::Tensor out = like(input);
  const int64_t count = training ? input.size(1) : 0;
  const at::Tensor mean = empty({count}, statistic_type(input)), invstd = empty({count}, statistic_type(input));
  const at::Tensor none;
  check(npu_batch_norm(argument(input), argument(weight), argument(bias), argument(running_mean), argument(running_var), training,
                       momentum, eps, argument(out), argument(training ? mean : none), argument(training ? invstd : none),
                       stream()));
  return {out, mean, invstd};
}

Three batch_norm_legit(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias, at::Tensor &running_mean,
                       at::Tensor &running_var, bool training, double momentum, double eps) {
  return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

Three batch_norm_no_stats(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias, bool training,
                          double momentum, double eps) {
  return batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

using ThreeOut = std::tuple<at::Tensor &, at::Tensor &, at::Tensor &>;

ThreeOut batch_norm_out(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias,
                        const OptionalTensor &running_mean, const OptionalTensor &running_var, bool training, double momentum,
                        double eps, at::Tensor &out, at::Tensor &save_mean, at::Tensor &save_invstd) {
  check_out_type(out, input.scalar_type(), "native_batch_norm()");
  const auto [made, mean, invstd] = batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  write_out(out, made);
  write_out(save_mean, mean);
  write_out(save_invstd, invstd);
  return {out, save_mean, save_invstd};
}

ThreeOut batch_norm_legit_out(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias,
                              at::Tensor &running_mean, at::Tensor &running_var, bool training, double momentum, double eps,
                              at::Tensor &out, at::Tensor &save_mean, at::Tensor &save_invstd) {
  return batch_norm_out(input, weight, bias, running_mean, running_var, training, momentum, eps, out, save_mean, save_invstd);
}

ThreeOut batch_norm_no_stats_out(const at::Tensor &input, const OptionalTensor &weight, const OptionalTensor &bias, bool training,
                                 double momentum, double eps, at::Tensor &out, at::Tensor &save_mean, at::Tensor &save_invstd) {
  return batch_norm_out(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps, out, save_mean, save_invstd);
}

/* torch's newer pair of forward and backward; the reserve is for libraries that keep something. */
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_with_update(const at::Tensor &input,
                                                                                  const OptionalTensor &weight,
                                                                                  const OptionalTensor &bias,
                                                                                  at::Tensor &running_mean, at::Tensor &running_var,
                                                                                  double momentum, double eps) {
  const auto [out, mean, invstd] = batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, mean, invstd, empty({0}, at::kByte)};
}

Three batch_norm_backward(const at::Tensor &grad_out, const at::Tensor &input, const OptionalTensor &weight,
                          const OptionalTensor &running_mean, const OptionalTensor &running_var, const OptionalTensor &save_mean,
                          const OptionalTensor &save_invstd, bool train, double eps, std::array<bool, 3> mask) {
  const OnDevice guard(device_index_of(grad_out));
  const at::ScalarType type = weight && weight->defined() ? weight->scalar_type() : statistic_type(input);
  const at::Tensor grad_input = wanted(mask[0], input), none;
  const at::Tensor grad_weight = mask[1] ? empty({input.size(1)}, type) : none,
                   grad_bias = mask[2] ? empty({input.size(1)}, type) : none;
  check(npu_batch_norm_backward(argument(grad_out), argument(input), argument(weight), argument(running_mean),
                                argument(running_var), argument(train ? save_mean : OptionalTensor()),
                                argument(train ? save_invstd : OptionalTensor()), train, eps, argument(mask), argument(grad_input),
                                argument(grad_weight), argument(grad_bias), stream()));
  return {grad_input, grad_weight, grad_bias};
}

Three batch_norm_update_backward(const at::Tensor &grad_out, const at::Tensor &input, const at::Tensor &weight,
                                 const OptionalTensor &running_mean, const OptionalTensor &running_var,
                                 const OptionalTensor &save_mean, const OptionalTensor &save_var, bool update, double eps,
                                 std::array<bool, 3> mask, const at::Tensor &) {
  return batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, mask);
}

/* The mask is a bool tensor, as torch's other devices return it. */
std::tuple<at::Tensor, at::Tensor> dropout(const at::Tensor &input, double p, std::optional<bool> train) {
  const OnDevice guard(device_index_of(input));
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const at::Tensor out = like(input), mask = empty(input.sizes(), at::kBool); // CANN's mask has no gaps and one order
  if (!train.value_or(true) || input.numel() == 0 || p == 0) {
    check(npu_fill_scalar(Plain(mask), ScalarOperand(at::Scalar(true)), stream()));
    check(npu_copy(Plain(out), Plain(input), stream()));
    return {out, mask};
  }
  const auto [seed, offset] = random_state(std::nullopt, input.numel());
  check(npu_dropout(Plain(input), p, seed, offset, Plain(out), Plain(mask), stream()));
  return {out, mask};
}

at::Tensor dropout_backward(const at::Tensor &grad, const at::Tensor &mask, double scale) {
  const OnDevice guard(device_index_of(grad, mask));
  if (!c10::isFloatingType(grad.scalar_type())) // torch's own product, with its promotion
    return grad.mul(mask).mul(scale);
  const at::Tensor dense = mask.contiguous();
  const Operand given = argument(grad), kept = argument(dense);
  const at::Tensor out = like(grad);
  if (scale == 0) // p was 1
    check(npu_zero(Plain(out), stream()));
  else
    check(npu_dropout_apply(given, kept, 1 - 1 / scale, written(out), stream()));
  return out;
}

void register_network(torch::Library &m) {
  if (available("convolution"))
    m.impl("convolution_overrideable", TORCH_FN(convolution));
  if (available("convolution_backward"))
    m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  if (available("batch_norm")) {
    m.impl("native_batch_norm", TORCH_FN(batch_norm));
    m.impl("_native_batch_norm_legit", TORCH_FN(batch_norm_legit));
    m.impl("_native_batch_norm_legit.no_stats", TORCH_FN(batch_norm_no_stats));
    m.impl("native_batch_norm.out", TORCH_FN(batch_norm_out));
    m.impl("_native_batch_norm_legit.out", TORCH_FN(batch_norm_legit_out));
    m.impl("_native_batch_norm_legit.no_stats_out", TORCH_FN(batch_norm_no_stats_out));
    m.impl("_batch_norm_with_update", TORCH_FN(batch_norm_with_update));
  }
  if (available("batch_norm_backward"))
    m.impl("native_batch_norm_backward", TORCH_FN(batch_norm_backward));
  if (available("batch_norm_backward"))
    m.impl("batch_norm_backward", TORCH_FN(batch_norm_update_backward));
  if (available("dropout") && available("dropout_apply")) {
    m.impl("native_dropout", TORCH_FN(dropout));
    m.impl("native_dropout_backward", TORCH_FN(dropout_backward));
  }
}
const Registrar registrar(&register_network);

} // namespace
} // namespace npu
