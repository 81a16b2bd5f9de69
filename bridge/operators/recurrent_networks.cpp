/* Whole LSTM and GRU networks by one operator of CANN each way, where it computes what torch asks for; the rest (packed sequences,
 * projections, dropout between layers, autocast) stays torch's composition of cells.
 *
 * torch composes these networks before autograd, so they are registered with autograd and have a gradient of their own here. A gradient that
 * must itself have a gradient comes from torch's composition, run once more. */
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

struct Form {
  bool gru, has_biases, bidirectional, batch_first;
  int64_t layers;
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t count() const { return layers * directions(); }
};

/* What training saves: LSTM i, g, f, o, h, c, tanh c; GRU r, z, n, the candidate's hidden part, h. One tensor each, [count, steps, ...]. */
constexpr size_t lstm_saved = 7, gru_saved = 5;

std::vector<Tensor> parts(const Tensor &whole, const Form &form) {
  return whole.defined() ? whole.unbind(0) : std::vector<Tensor>(); // of no tensor: nothing is saved
}

/* Output, last states, and what training saves. */
variable_list run(const Tensor &input, const Tensor &hidden, const Tensor &cell, at::TensorList params, const Form &form,
                  bool train) {
  const OnDevice guard(device_index_of(input));
  const int64_t steps = input.size(form.batch_first ? 1 : 0), batch = input.size(form.batch_first ? 0 : 1), width = hidden.size(2);
  const at::ScalarType type = input.scalar_type();
  const int64_t outer = form.batch_first ? batch : steps, inner = form.batch_first ? steps : batch;
  variable_list out{empty({outer, inner, form.directions() * width}, type), empty(hidden.sizes(), type)};
  if (!form.gru)
    out.push_back(empty(hidden.sizes(), type));
  const size_t first = out.size();
  for (size_t k = 0; train && k < (form.gru ? gru_saved : lstm_saved); ++k)
    out.push_back(empty({form.count(), steps, batch, width}, type));
  std::vector<std::vector<Tensor>> lists;
  for (size_t k = 0; k < lstm_saved; ++k)
    lists.push_back(first + k < out.size() ? parts(out[first + k], form) : std::vector<Tensor>());
  const auto list = [&](size_t k) { return argument(at::TensorList(lists[k])); };
  const Tensor none;
  if (form.gru)
    check(npu_gru(argument(input), argument(params), argument(hidden), argument(none), form.has_biases, form.layers, 0.0, train,
                  form.bidirectional, form.batch_first, written(out[0]), written(out[1]), list(0), list(1), list(2), list(3),
                  list(4), stream()));
  else
    check(npu_lstm(argument(input), argument(params), argument(at::TensorList({hidden, cell})), argument(none), form.has_biases,
                   form.layers, 0.0, train, form.bidirectional, form.batch_first, written(out[0]), written(out[1]), written(out[2]),
                   list(0), list(1), list(2), list(3), list(4), list(5), list(6), stream()));
  return out;
}

/* Gradients of the input, the states and the parameters. */
variable_list run_backward(const variable_list &grads, const variable_list &saved, const Form &form) {
  const Tensor &input = saved[0], &hidden = saved[1], &cell = saved[2];
  const size_t param_count = static_cast<size_t>(form.count() * (form.has_biases ? 4 : 2));
  const at::TensorList params(saved.data() + 3, param_count);
  const OnDevice guard(device_index_of(input));
  std::vector<std::vector<Tensor>> lists;
  for (size_t k = 3 + param_count; k < saved.size(); ++k)
    lists.push_back(parts(saved[k], form));
  const auto list = [&](size_t k) { return argument(at::TensorList(lists[k])); };
  variable_list out{empty(input.sizes(), input.scalar_type()), empty(hidden.sizes(), input.scalar_type()),
                    form.gru ? Tensor() : empty(cell.sizes(), input.scalar_type())};
  for (const Tensor &param : params)
    out.push_back(empty(param.sizes(), param.scalar_type()));
  const at::TensorList grad_params(out.data() + 3, param_count);
  const Tensor none;
  if (form.gru)
    check(npu_gru_backward(argument(input), argument(params), argument(hidden), argument(grads[0]), argument(grads[1]), list(0),
                           list(1), list(2), list(3), list(4), argument(none), form.has_biases, form.layers, form.bidirectional,
                           form.batch_first, written(out[0]), written(out[1]), written(grad_params), stream()));
  else
    check(npu_lstm_backward(argument(input), argument(at::TensorList({hidden, cell})), argument(params), argument(grads[0]),
                            argument(grads[1]), argument(grads[2]), list(0), list(1), list(2), list(3), list(4), list(5), list(6),
                            argument(none), form.has_biases, form.layers, 0.0, true, form.bidirectional, form.batch_first,
                            argument(std::array<bool, 4>{true, true, true, true}), written(out[0]), written(out[1]),
                            written(out[2]), written(grad_params), stream()));
  return out;
}

/* torch's composition, without dropout. */
variable_list composed(const Tensor &input, const Tensor &hidden, const Tensor &cell, at::TensorList params, const Form &form) {
  if (form.gru) {
    const auto [y, h] =
        at::native::gru(input, hidden, params, form.has_biases, form.layers, 0.0, false, form.bidirectional, form.batch_first);
    return {y, h};
  }
  const auto [y, h, c] = at::native::lstm(input, {hidden, cell}, params, form.has_biases, form.layers, 0.0, false,
                                          form.bidirectional, form.batch_first);
  return {y, h, c};
}

class Network : public torch::autograd::Function<Network> {
public:
  static variable_list forward(AutogradContext *context, const Tensor &input, const Tensor &hidden, const Tensor &cell,
                               at::TensorList params, bool gru, bool has_biases, int64_t layers, bool bidirectional,
                               bool batch_first) {
    const Form form{gru, has_biases, bidirectional, batch_first, layers};
    at::AutoDispatchBelowADInplaceOrView below;
    variable_list out = run(input, hidden, cell, params, form, true);
    variable_list saved{input, hidden, cell};
    saved.insert(saved.end(), params.begin(), params.end());
    saved.insert(saved.end(), out.begin() + (gru ? 2 : 3), out.end());
    out.resize(gru ? 2 : 3);
    context->save_for_backward(std::move(saved));
    context->saved_data["form"] = std::vector<int64_t>{gru, has_biases, bidirectional, batch_first, layers};
    return out;
  }

  static variable_list backward(AutogradContext *context, const variable_list &grads) {
    const std::vector<int64_t> form_data = context->saved_data["form"].toIntVector();
    const Form form{form_data[0] != 0, form_data[1] != 0, form_data[2] != 0, form_data[3] != 0, form_data[4]};
    const variable_list saved = context->get_saved_variables();
    const size_t param_count = static_cast<size_t>(form.count() * (form.has_biases ? 4 : 2));
    variable_list result;
    if (at::GradMode::is_enabled()) {
      const at::TensorList params(saved.data() + 3, param_count);
      result = gradients_with_gradients(grads, saved, params, form);
    } else {
      result = run_backward(grads, saved, form);
    }
    result.resize(3 + param_count + 5); // the form has none
    return result;
  }

private:
  static variable_list gradients_with_gradients(const variable_list &grads, const variable_list &saved, at::TensorList params,
                                                const Form &form) {
    const variable_list out = composed(saved[0], saved[1], saved[2], params, form);
    variable_list outs, given, wanted, result(3 + params.size());
    std::vector<size_t> places;
    for (size_t i = 0; i < out.size(); ++i)
      if (grads[i].defined() && out[i].requires_grad()) {
        outs.push_back(out[i]);
        given.push_back(grads[i]);
      }
    for (size_t i = 0; i < 3 + params.size(); ++i)
      if (saved[i].requires_grad() && !(form.gru && i == 2)) {
        wanted.push_back(saved[i]);
        places.push_back(i);
      }
    const variable_list found = torch::autograd::grad(outs, wanted, given, true, true, true);
    for (size_t i = 0; i < places.size(); ++i)
      result[places[i]] = found[i];
    return result;
  }
};

/* Does CANN's operator compute this? Its states are there, all of one floating type, and nothing random happens between layers. */
bool fits(const Tensor &input, at::TensorList states, at::TensorList params, const Form &form, double dropout, bool train) {
  if (!on_npu(input) || input.unsafeGetTensorImpl()->is_python_dispatch() || input.dim() != 3 ||
      !c10::isFloatingType(input.scalar_type()) || input.numel() == 0 || form.layers < 1 ||
      static_cast<int64_t>(params.size()) != form.count() * (form.has_biases ? 4 : 2) ||
      (dropout != 0 && train && form.layers > 1) || at::autocast::is_autocast_enabled(kDevice))
    return false;
  const auto same = [&](const Tensor &t) {
    return t.defined() && on_npu(t) && t.scalar_type() == input.scalar_type() && t.device() == input.device() && !t.is_neg() &&
           !t.unsafeGetTensorImpl()->is_python_dispatch(); // fake tensors and other subclasses see the operators of the composition
  };
  const int64_t batch = input.size(form.batch_first ? 0 : 1), gates = form.gru ? 3 : 4;
  for (const Tensor &state : states)
    if (!same(state) || state.dim() != 3 || state.size(0) != form.count() || state.size(1) != batch)
      return false;
  for (size_t i = 0; i < params.size(); ++i)
    if (!same(params[i]) || params[i].size(0) != gates * states[0].size(2))
      return false;
  return params[0].size(1) == input.size(2);
}

bool any_gradient(const Tensor &input, at::TensorList states, at::TensorList params) {
  if (!at::GradMode::is_enabled())
    return false;
  bool any = input.requires_grad();
  for (const at::TensorList list : {states, params})
    for (const Tensor &tensor : list)
      any = any || tensor.requires_grad();
  return any;
}

variable_list network(const Tensor &input, at::TensorList states, at::TensorList params, const Form &form) {
  const Tensor &cell = states[form.gru ? 0 : 1]; // autograd wants a tensor; a GRU's stands for nothing
  if (any_gradient(input, states, params))
    return Network::apply(input, states[0], cell, params, form.gru, form.has_biases, form.layers, form.bidirectional,
                          form.batch_first);
  at::AutoDispatchBelowADInplaceOrView below;
  return run(input, states[0], cell, params, form, false);
}

Three lstm(const Tensor &input, at::TensorList hx, at::TensorList params, bool has_biases, int64_t layers, double dropout,
           bool train, bool bidirectional, bool batch_first) {
  const Form form{false, has_biases, bidirectional, batch_first, layers};
  if (hx.size() != 2 || !fits(input, hx, params, form, dropout, train))
    return at::native::lstm(input, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first);
  const variable_list out = network(input, hx, params, form);
  return {out[0], out[1], out[2]};
}

Two gru(const Tensor &input, const Tensor &hx, at::TensorList params, bool has_biases, int64_t layers, double dropout, bool train,
        bool bidirectional, bool batch_first) {
  const Form form{true, has_biases, bidirectional, batch_first, layers};
  if (!fits(input, {hx}, params, form, dropout, train))
    return at::native::gru(input, hx, params, has_biases, layers, dropout, train, bidirectional, batch_first);
  const variable_list out = network(input, {hx}, params, form);
  return {out[0], out[1]};
}

void register_networks(torch::Library &m) {
  static torch::Library with_gradients(torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  if (available("lstm") && available("lstm_backward"))
    for (torch::Library *library : {&m, &with_gradients})
      library->impl("lstm.input", TORCH_FN(lstm));
  if (available("gru") && available("gru_backward"))
    for (torch::Library *library : {&m, &with_gradients})
      library->impl("gru.input", TORCH_FN(gru));
}
const Registrar registrar(&register_networks);

} // namespace
} // namespace npu
