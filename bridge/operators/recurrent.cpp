/* Recurrent cells: what torch's LSTM and GRU call for each step on devices that aren't the CPU. The whole networks (layers, directions,
 * packed sequences, projections) are torch's own compositions of these, of products and of dropout.
 *
 * CANN has no GRU cell without its products, so that one is made of other operators. Its workspace holds, side by side, the reset, update
 * and candidate gates, the state before, and the candidate's hidden part, as on torch's other devices. */
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

bool defined(const OptionalTensor &tensor) { return tensor && tensor->defined(); }

/* torch's checks of a fused cell: two-dimensional sums of `gates` parts, both biases or none. */
void check_cell(const Tensor &input_gates, const Tensor &hidden_gates, const Tensor &state, const OptionalTensor &input_bias,
                const OptionalTensor &hidden_bias, int64_t gates) {
  TORCH_CHECK(input_gates.dim() == 2 && input_gates.sizes() == hidden_gates.sizes(),
              "expected gates of two dimensions and one size, got ", input_gates.sizes(), " and ", hidden_gates.sizes());
  TORCH_CHECK(state.dim() == 2 && state.size(0) == input_gates.size(0) && state.size(1) * gates == input_gates.size(1),
              "expected a state of ", input_gates.size(0), " rows and ", input_gates.size(1) / gates, " columns, got ",
              state.sizes());
  TORCH_CHECK(defined(input_bias) == defined(hidden_bias), "expected both biases or none");
  check_factor_types(input_gates, hidden_gates);
  check_factor_types(input_gates, state);
}

Three lstm_cell(const Tensor &input_gates, const Tensor &hidden_gates, const Tensor &cx, const OptionalTensor &input_bias,
                const OptionalTensor &hidden_bias) {
  check_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias, 4);
  const OnDevice guard(device_index_of(input_gates, hidden_gates, cx));
  const Tensor hy = empty(cx.sizes(), cx.scalar_type()), cy = empty(cx.sizes(), cx.scalar_type());
  const Tensor storage = empty(input_gates.sizes(), cx.scalar_type());
  check(npu_lstm_cell(argument(input_gates), argument(hidden_gates), argument(cx), argument(input_bias), argument(hidden_bias),
                      written(hy), written(cy), written(storage), stream()));
  return {hy, cy, storage};
}

Three lstm_cell_backward(const OptionalTensor &grad_hy, const OptionalTensor &grad_cy, const Tensor &cx, const Tensor &cy,
                         const Tensor &storage, bool has_bias) {
  if (!defined(grad_hy) && !defined(grad_cy))
    return {};
  const OnDevice guard(device_index_of(cx, cy, storage));
  const Tensor grad_gates = empty(storage.sizes(), cx.scalar_type()), grad_cx = empty(cx.sizes(), cx.scalar_type());
  const Tensor grad_bias = has_bias ? empty({storage.size(1)}, cx.scalar_type()) : Tensor();
  check(npu_lstm_cell_backward(argument(grad_hy), argument(grad_cy), argument(cx), argument(cy), argument(storage), has_bias,
                               written(grad_gates), written(grad_cx), written(grad_bias), stream()));
  return {grad_gates, grad_cx, grad_bias};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor &input_gates, const Tensor &hidden_gates, const Tensor &hx,
                                    const OptionalTensor &input_bias, const OptionalTensor &hidden_bias) {
  check_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias, 3);
  const int64_t n = hx.size(1);
  const Tensor input = defined(input_bias) ? input_gates + *input_bias : input_gates;
  const Tensor hidden = defined(hidden_bias) ? hidden_gates + *hidden_bias : hidden_gates;
  const Tensor gates = at::sigmoid(input.narrow(1, 0, 2 * n) + hidden.narrow(1, 0, 2 * n));
  const Tensor part = hidden.narrow(1, 2 * n, n);
  const Tensor candidate = at::tanh(at::addcmul(input.narrow(1, 2 * n, n), gates.narrow(1, 0, n), part));
  return {at::lerp(candidate, hx, gates.narrow(1, n, n)), at::cat({gates, candidate, hx, part}, 1)};
}

Five gru_cell_backward(const Tensor &grad_hy, const Tensor &workspace, bool has_bias) {
  const int64_t n = workspace.size(1) / 5;
  const auto part = [&](int64_t i) { return workspace.narrow(1, i * n, n); };
  const Tensor update = part(1), candidate = part(2);
  const Tensor grad_hx = grad_hy * update;
  const Tensor grad_candidate = at::tanh_backward(grad_hy - grad_hx, candidate);
  const Tensor grad_update = at::sigmoid_backward(grad_hy * (part(3) - candidate), update);
  const Tensor grad_reset = at::sigmoid_backward(grad_candidate * part(4), part(0));
  const Tensor grad_input = at::cat({grad_reset, grad_update, grad_candidate}, 1);
  const Tensor grad_hidden = at::cat({grad_reset, grad_update, at::mul(grad_candidate, part(0))}, 1);
  if (!has_bias)
    return {grad_input, grad_hidden, grad_hx, Tensor(), Tensor()};
  return {grad_input, grad_hidden, grad_hx, grad_input.sum(0), grad_hidden.sum(0)};
}

void register_recurrent(torch::Library &m) {
  if (available("lstm_cell"))
    m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  if (available("lstm_cell_backward"))
    m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
}
const Registrar registrar(&register_recurrent);

} // namespace
} // namespace npu
