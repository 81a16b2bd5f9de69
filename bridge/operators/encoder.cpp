/* The fast path of torch's nn.MultiheadAttention and nn.TransformerEncoderLayer in evaluation, made of products, attention and norms.
 *
 * Invariant: masks say what is left out (true, or anything but zero), as torch's own fast path reads them. */
#include <ATen/core/Tensor.h>
#include <ATen/ops/_native_multi_head_attention.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

/* nn.MultiheadAttention's numbers for what a mask is about. */
enum { MASK_PAIRS = 0, MASK_KEYS = 1, MASK_ALL = 2 };

/* True where a key is left out, with sizes that broadcast to [batch, heads, queries, keys]. */
OptionalTensor left_out(const OptionalTensor &mask, std::optional<int64_t> kind) {
  if (!mask || !mask->defined())
    return std::nullopt;
  const Tensor truth = mask->scalar_type() == at::kBool ? *mask : mask->to(at::kBool);
  switch (kind.value_or(MASK_ALL)) {
  case MASK_PAIRS:
    TORCH_CHECK(truth.dim() == 2, "Expected a mask of type 0 to have the sizes [queries, keys], but got ", truth.sizes());
    return truth;
  case MASK_KEYS:
    TORCH_CHECK(truth.dim() == 2, "Expected a mask of type 1 to have the sizes [batch, keys], but got ", truth.sizes());
    return truth.unsqueeze(1).unsqueeze(1);
  case MASK_ALL:
    TORCH_CHECK(truth.dim() == 4, "Expected a mask of type 2 to have the sizes [batch, heads, queries, keys], but got ",
                truth.sizes());
    return truth;
  default: TORCH_CHECK(false, "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask), but got ", *kind);
  }
}

void check_attention_inputs(const Tensor &query, const Tensor &key, const Tensor &value, int64_t width, int64_t heads,
                            const Tensor &weight, const Tensor &bias) {
  TORCH_CHECK(!query.is_nested(), "NestedTensor with NPU support is not enabled");
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  TORCH_CHECK(query.size(2) == width, "passed-in embed_dim ", width, " didn't match last dim of query ", query.size(2));
  TORCH_CHECK(key.dim() == 3, "expected 3-D `key`, got ", key.dim(), "-D tensor");
  TORCH_CHECK(value.dim() == 3, "expected 3-D `value`, got ", value.dim(), "-D tensor");
  TORCH_CHECK(query.size(0) == key.size(0) && key.sizes() == value.sizes() && key.size(2) == width,
              "expected `query`/`key`/`value` shapes to match");
  TORCH_CHECK(weight.dim() == 2 && weight.size(0) == 3 * width, "expected `qkv_weight` first dim to be 3x embed_dim, got ",
              weight.sizes());
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == 3 * width, "expected `qkv_bias` to have 3x embed_dim elements, got ",
              bias.sizes());
  TORCH_CHECK(heads > 0 && width % heads == 0, "`embed_dim` must divide evenly by `num_heads`, got ", width, " and ", heads);
}

/* [batch, length, 3 or 1 x width] of one projection as [batch, heads, length, width / heads]. */
Tensor heads_of(const Tensor &projected, int64_t heads) {
  return projected.unflatten(2, {heads, projected.size(2) / heads}).transpose(1, 2);
}

/* The three projections. Self-attention, the usual case, needs one product. */
std::array<Tensor, 3> projections(const Tensor &query, const Tensor &key, const Tensor &value, int64_t heads, const Tensor &weight,
                                  const Tensor &bias) {
  const std::array<Tensor, 3> inputs{query, key, value};
  std::array<Tensor, 3> result;
  const bool itself = key.is_same(query) && value.is_same(query);
  const std::vector<Tensor> joint = itself ? at::linear(query, weight, bias).chunk(3, 2) : std::vector<Tensor>();
  const std::vector<Tensor> weights = weight.chunk(3, 0), biases = bias.chunk(3, 0);
  for (size_t i = 0; i < 3; ++i)
    result[i] = heads_of(itself ? joint[i] : at::linear(inputs[i], weights[i], biases[i]), heads);
  return result;
}

/* The probabilities are wanted too: no fused operator gives them. */
std::tuple<Tensor, Tensor> weighted(const std::array<Tensor, 3> &parts, const OptionalTensor &mask) {
  Tensor scores = at::matmul(parts[0].div(std::sqrt(static_cast<double>(parts[0].size(3)))), parts[1].transpose(2, 3));
  if (mask)
    scores.masked_fill_(*mask, -std::numeric_limits<double>::infinity());
  const Tensor probabilities = at::softmax(scores, 3);
  return {at::matmul(probabilities, parts[2]), probabilities};
}

std::tuple<Tensor, Tensor> multi_head_attention(const Tensor &query, const Tensor &key, const Tensor &value, int64_t width,
                                                int64_t heads, const Tensor &qkv_weight, const Tensor &qkv_bias,
                                                const Tensor &projection_weight, const Tensor &projection_bias,
                                                const OptionalTensor &mask, bool need_weights, bool average_weights,
                                                std::optional<int64_t> mask_kind) {
  check_attention_inputs(query, key, value, width, heads, qkv_weight, qkv_bias);
  const OnDevice guard(device_index_of(query));
  const OptionalTensor dropped = left_out(mask, mask_kind);
  const std::array<Tensor, 3> parts = projections(query, key, value, heads, qkv_weight, qkv_bias);
  Tensor joined, probabilities;
  if (need_weights)
    std::tie(joined, probabilities) = weighted(parts, dropped);
  else
    joined = at::scaled_dot_product_attention(parts[0], parts[1], parts[2],
                                              dropped ? OptionalTensor(at::logical_not(*dropped)) : std::nullopt);
  const Tensor out = at::linear(joined.transpose(1, 2).flatten(2), projection_weight, projection_bias);
  return {out, need_weights && average_weights ? probabilities.mean(1) : probabilities};
}

Tensor encoder_layer(const Tensor &source, int64_t width, int64_t heads, const Tensor &qkv_weight, const Tensor &qkv_bias,
                     const Tensor &projection_weight, const Tensor &projection_bias, bool use_gelu, bool norm_first, double eps,
                     const Tensor &norm_weight_1, const Tensor &norm_bias_1, const Tensor &norm_weight_2, const Tensor &norm_bias_2,
                     const Tensor &inner_weight, const Tensor &inner_bias, const Tensor &outer_weight, const Tensor &outer_bias,
                     const OptionalTensor &mask, std::optional<int64_t> mask_kind) {
  TORCH_CHECK(!source.is_nested(), "NestedTensor with NPU support is not enabled");
  const OnDevice guard(device_index_of(source));
  const auto normalized = [&](const Tensor &x, const Tensor &weight, const Tensor &bias) {
    return at::layer_norm(x, {width}, weight, bias, eps);
  };
  const auto attended = [&](const Tensor &x) {
    return std::get<0>(at::_native_multi_head_attention(x, x, x, width, heads, qkv_weight, qkv_bias, projection_weight,
                                                        projection_bias, mask, false, true, mask_kind));
  };
  const auto fed_forward = [&](const Tensor &x) {
    const Tensor inner = at::linear(x, inner_weight, inner_bias);
    return at::linear(use_gelu ? at::gelu(inner) : at::relu(inner), outer_weight, outer_bias);
  };
  if (norm_first) {
    const Tensor x = attended(normalized(source, norm_weight_1, norm_bias_1)).add_(source);
    return fed_forward(normalized(x, norm_weight_2, norm_bias_2)).add_(x);
  }
  const Tensor x = normalized(attended(source).add_(source), norm_weight_1, norm_bias_1);
  return normalized(fed_forward(x).add_(x), norm_weight_2, norm_bias_2);
}

/* Tensors of ragged rows aren't there for npu: nn.TransformerEncoder asks this before it makes one, and takes the dense way instead. */
bool left_aligned(const Tensor &, const Tensor &) { return false; }

void register_encoder(torch::Library &m) {
  m.impl("_native_multi_head_attention", TORCH_FN(multi_head_attention));
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(encoder_layer));
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(left_aligned));
}
const Registrar registrar(&register_encoder);

} // namespace
} // namespace npu
