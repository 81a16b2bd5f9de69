/* scaled_dot_product_attention in one operator, and rms_norm: what torch decomposes unless a device says that it has them. */
#include <ATen/core/Tensor.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/log.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/triu.h>
#include <torch/library.h>

#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

/* torch's SDPBackend: the decomposition into products and softmax, and the device's own. */
enum { BACKEND_MATH = 0, BACKEND_OWN = 4 };
enum { SPARSE_MASK_ONLY = 0, SPARSE_CAUSAL = 2, CAUSAL_MASK_SIZE = 2048, LANES = 8 };

bool same_floats(const at::Tensor &a, const at::Tensor &b) {
  return on_npu(b) && b.dim() == 4 && b.scalar_type() == a.scalar_type() && b.numel() > 0;
}

/* Asked for on every scaled_dot_product_attention. Dropout and what the fused operator doesn't take go the other way. */
int64_t attention_choice(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const OptionalTensor &mask,
                         double dropout, bool causal, std::optional<double>, bool grouped) {
  static const bool has_operators = available("attention") && available("attention_backward");
  const at::Context &context = at::globalContext(); // torch.nn.attention.sdpa_kernel: ours is CANN's flash attention
  const bool allowed = context.userEnabledOverrideableSDP() || context.userEnabledFlashSDP();
  const bool fits = has_operators && allowed && dropout == 0 && query.is_floating_point() && same_floats(query, query) &&
                    same_floats(query, key) && same_floats(query, value) && !query.is_nested() && query.size(3) == key.size(3) &&
                    query.size(0) == key.size(0) && key.sizes().slice(0, 3) == value.sizes().slice(0, 3) &&
                    (grouped ? query.size(1) % key.size(1) == 0 : query.size(1) == key.size(1));
  if (!fits)
    return BACKEND_MATH;
  if (mask && mask->defined()) {
    const bool fits_mask = !causal && on_npu(*mask) && mask->dim() >= 2 && mask->dim() <= 4 && mask->numel() > 0 &&
                           (mask->scalar_type() == at::kBool || mask->scalar_type() == query.scalar_type());
    return fits_mask ? BACKEND_OWN : BACKEND_MATH;
  }
  return BACKEND_OWN;
}

/* The operator wants a mask of a fixed size when it is to look at past keys only; it goes by the mode, not by the values. */
at::Tensor causal_mask(const at::Tensor &like) {
  static std::mutex mutex;                             // guards masks; not held while anything is allocated or waited for
  static auto &masks = *new std::map<int, at::Tensor>; // never destroyed: the device may be gone at exit
  const int device = like.device().index();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto found = masks.find(device); found != masks.end())
      return found->second;
  }
  const at::Tensor mask = at::ones({CAUSAL_MASK_SIZE, CAUSAL_MASK_SIZE}, like.options().dtype(at::kBool)).triu_(1);
  check_status(cann.aclrtSynchronizeStream(stream()), "aclrtSynchronizeStream"); // other streams read it too
  const std::lock_guard<std::mutex> lock(mutex);
  return masks.emplace(device, mask).first->second;
}

/* A bias with the sizes [1 or batch, 1 or heads, queries, keys]. */
at::Tensor full_bias(const at::Tensor &bias, const at::Tensor &query, const at::Tensor &key) {
  at::Tensor wide = bias;
  while (wide.dim() < 4)
    wide = wide.unsqueeze(0);
  return wide.expand({wide.size(0), wide.size(1), query.size(2), key.size(2)});
}

double scale_of(const at::Tensor &query, std::optional<double> scale) {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(3)));
}

using Attention =
    std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, c10::SymInt, c10::SymInt, at::Tensor, at::Tensor, at::Tensor>;

/* The result lies as [batch, queries, heads, width], so that joining the heads, which follows, costs nothing. */
Attention attention(const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const OptionalTensor &bias,
                    double dropout, bool causal, bool, std::optional<double> scale) {
  const OnDevice guard(device_index_of(query));
  TORCH_CHECK(dropout == 0, "fused attention on npu has no dropout");
  const int64_t batch = query.size(0), heads = query.size(1), rows = query.size(2);
  const at::Tensor out = empty({batch, rows, heads, value.size(3)}, query.scalar_type()).transpose(1, 2);
  const at::Tensor maximum = empty({batch, heads, rows, LANES}, statistic_type(query));
  const at::Tensor sum = empty({batch, heads, rows, LANES}, statistic_type(query));
  const OptionalTensor shift = bias && bias->defined() ? OptionalTensor(full_bias(*bias, query, key)) : OptionalTensor();
  const OptionalTensor mask = causal ? OptionalTensor(causal_mask(query)) : OptionalTensor();
  check(npu_attention(argument(query), argument(key), argument(value), argument(shift), argument(mask), scale_of(query, scale),
                      causal ? SPARSE_CAUSAL : SPARSE_MASK_ONLY, heads, written(maximum), written(sum), written(out), stream()));
  const at::Tensor logsumexp = at::log(sum.select(3, 0)).add_(maximum.select(3, 0));
  return {out, logsumexp, at::Tensor(), at::Tensor(), rows, key.size(2), at::Tensor(), at::Tensor(), at::Tensor()};
}

/* e^(score - logsumexp) is the probability: the statistics are logsumexp as the maximum and 1 as the sum. */
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> attention_backward(
    const at::Tensor &grad_out, const at::Tensor &query, const at::Tensor &key, const at::Tensor &value, const at::Tensor &bias,
    std::array<bool, 4> wanted_gradients, const at::Tensor &out, const at::Tensor &logsumexp, const at::Tensor &,
    const at::Tensor &, c10::SymInt, c10::SymInt, double, bool causal, const at::Tensor &, const at::Tensor &,
    std::optional<double> scale) {
  const OnDevice guard(device_index_of(grad_out));
  const std::vector<int64_t> lanes{query.size(0), query.size(1), query.size(2), LANES};
  const at::Tensor maximum = logsumexp.unsqueeze(3).expand(lanes);
  const at::Tensor sum = at::ones({1}, logsumexp.options()).expand(lanes);
  const at::Tensor grad_query = like(query), grad_key = like(key), grad_value = like(value);
  OptionalTensor shift, grad_shift;
  if (bias.defined()) {
    shift = full_bias(bias, query, key);
    if (wanted_gradients[3])
      grad_shift = empty(shift->sizes(), bias.scalar_type());
  }
  const OptionalTensor mask = causal ? OptionalTensor(causal_mask(query)) : OptionalTensor();
  check(npu_attention_backward(argument(query), argument(key), argument(value), argument(grad_out), argument(shift), argument(mask),
                               argument(maximum), argument(sum), argument(out), scale_of(query, scale),
                               causal ? SPARSE_CAUSAL : SPARSE_MASK_ONLY, query.size(1), written(grad_query), written(grad_key),
                               written(grad_value), grad_shift ? written(*grad_shift) : written(at::Tensor()), stream()));
  const at::Tensor grad_bias = grad_shift ? grad_shift->sum_to_size(bias.sizes()) : at::Tensor();
  return {grad_query, grad_key, grad_value, grad_bias};
}

/* --- rms_norm -------------------------------------------------------------------------------------------------------- */

double epsilon_of(const at::Tensor &input) {
  switch (input.scalar_type()) {
  case at::kDouble: return std::numeric_limits<double>::epsilon();
  case at::kHalf: return std::numeric_limits<at::Half>::epsilon();
  case at::kBFloat16: return std::numeric_limits<at::BFloat16>::epsilon();
  default: return std::numeric_limits<float>::epsilon();
  }
}

at::Tensor weight_or_ones(const OptionalTensor &weight, const at::Tensor &input, at::IntArrayRef shape) {
  return weight && weight->defined() ? *weight : at::ones(shape, input.options());
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor &input, at::IntArrayRef shape, const OptionalTensor &weight,
                                            std::optional<double> eps) {
  const OnDevice guard(device_index_of(input));
  check_layer_norm(input, shape, weight, std::nullopt);
  const at::Tensor used = weight_or_ones(weight, input, shape), out = like(input), rstd = layer_norm_statistic(input, shape);
  check(npu_rms_norm(argument(input), argument(used), eps.value_or(epsilon_of(input)), written(out), written(rstd), stream()));
  return {out, rstd};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor &grad_out, const at::Tensor &input, at::IntArrayRef shape,
                                                     const at::Tensor &rstd, const OptionalTensor &weight,
                                                     std::array<bool, 2> mask) {
  const OnDevice guard(device_index_of(grad_out));
  const at::Tensor used = weight_or_ones(weight, input, shape), grad_input = like(input), grad_weight = like(used);
  check(npu_rms_norm_backward(argument(grad_out), argument(input), argument(rstd), argument(used), written(grad_input),
                              written(grad_weight), stream()));
  return {mask[0] ? grad_input : at::Tensor(), mask[1] && weight && weight->defined() ? grad_weight : at::Tensor()};
}

void register_attention(torch::Library &m) {
  m.impl("_fused_sdp_choice", TORCH_FN(attention_choice));
  if (available("attention") && available("attention_backward")) {
    m.impl("_scaled_dot_product_fused_attention_overrideable", TORCH_FN(attention));
    m.impl("_scaled_dot_product_fused_attention_overrideable_backward", TORCH_FN(attention_backward));
  }
  if (available("rms_norm") && available("rms_norm_backward")) {
    m.impl("_fused_rms_norm", TORCH_FN(rms_norm));
    m.impl("_fused_rms_norm_backward", TORCH_FN(rms_norm_backward));
  }
}
const Registrar registrar(&register_attention);

} // namespace
} // namespace npu

/* scaled_dot_product_attention asks this table, and not the operator _fused_sdp_choice. */
namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &npu::attention_choice)
} // namespace at::native
