/* torch_npu's operators in the namespace npu: the fused ones that scripts call by name, with their gradients.
 *
 * Schemas are torch_npu's. A schema exists whatever CANN is loaded; an operator that the loaded one lacks says so when it is called. */
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;
using c10::string_view;

/* --- computation ----------------------------------------------------------------------------------------------------- */

std::vector<int64_t> normalized_shape(const Tensor &self, const Tensor &gamma) {
  TORCH_CHECK(gamma.dim() >= 1 && gamma.dim() <= self.dim() && self.sizes().slice(self.dim() - gamma.dim()) == gamma.sizes(),
              "npu_rms_norm: gamma must have the sizes of the last dimensions of self, but self is ", self.sizes(), " and gamma ",
              gamma.sizes());
  return gamma.sizes().vec();
}

std::tuple<Tensor, Tensor> rms_norm(const Tensor &self, const Tensor &gamma, double epsilon) {
  const OnDevice guard(device_index_of(self, gamma));
  const Tensor out = like(self), rstd = layer_norm_statistic(self, normalized_shape(self, gamma));
  check(npu_rms_norm(argument(self), argument(gamma), epsilon, written(out), written(rstd), stream()));
  return {out, rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor &grad, const Tensor &self, const Tensor &gamma, const Tensor &rstd) {
  const OnDevice guard(device_index_of(grad, self, gamma));
  const Tensor grad_self = like(self), grad_gamma = like(gamma);
  check(npu_rms_norm_backward(argument(grad), argument(self), argument(rstd), argument(gamma), written(grad_self),
                              written(grad_gamma), stream()));
  return {grad_self, grad_gamma};
}

std::tuple<Tensor, Tensor, Tensor> add_rms_norm(const Tensor &x1, const Tensor &x2, const Tensor &gamma, double epsilon) {
  const OnDevice guard(device_index_of(x1, x2, gamma));
  const Tensor out = like(x1), rstd = layer_norm_statistic(x1, normalized_shape(x1, gamma)), sum = like(x1);
  check(
      npu_add_rms_norm(argument(x1), argument(x2), argument(gamma), epsilon, written(out), written(rstd), written(sum), stream()));
  return {out, rstd, sum};
}

Tensor swiglu(const Tensor &self, int64_t dim) {
  const OnDevice guard(device_index_of(self));
  std::vector<int64_t> sizes = self.sizes().vec();
  int64_t &split = sizes[at::maybe_wrap_dim(dim, self.dim(), false)];
  TORCH_CHECK(split % 2 == 0, "npu_swiglu halves dimension ", dim, ", which has ", split, " elements");
  split /= 2;
  const Tensor out = empty(sizes, self.scalar_type());
  check(npu_swiglu(argument(self), dim, written(out), stream()));
  return out;
}

Tensor swiglu_backward(const Tensor &grad, const Tensor &self, int64_t dim) {
  const OnDevice guard(device_index_of(grad, self));
  const Tensor grad_self = like(self);
  check(npu_swiglu_backward(argument(grad), argument(self), dim, written(grad_self), stream()));
  return grad_self;
}

int64_t rotary_mode_of(string_view mode) {
  TORCH_CHECK(mode == "half" || mode == "interleave", "npu_rotary_mul: rotary_mode is '", mode, "'; 'half' or 'interleave'");
  return mode == "half" ? 0 : 1;
}

Tensor rotary_mul(const Tensor &self, const Tensor &cosine, const Tensor &sine, string_view mode) {
  const OnDevice guard(device_index_of(self, cosine, sine));
  const Tensor out = like(self);
  check(npu_rotary_mul(argument(self), argument(cosine), argument(sine), rotary_mode_of(mode), written(out), stream()));
  return out;
}

std::tuple<Tensor, Tensor, Tensor> rotary_mul_backward(const Tensor &grad, const Tensor &self, const Tensor &cosine,
                                                       const Tensor &sine, string_view mode) {
  const OnDevice guard(device_index_of(grad, self, cosine, sine));
  const Tensor grad_self = like(self), grad_cosine = like(cosine), grad_sine = like(sine);
  check(npu_rotary_mul_backward(argument(grad), argument(cosine), argument(sine), argument(self), rotary_mode_of(mode),
                                written(grad_self), written(grad_cosine), written(grad_sine), stream()));
  return {grad_self, grad_cosine, grad_sine};
}

Tensor fast_gelu(const Tensor &self) {
  const OnDevice guard(device_index_of(self));
  const Tensor out = like(self);
  check(npu_fast_gelu(argument(self), written(out), stream()));
  return out;
}

Tensor fast_gelu_backward(const Tensor &grad, const Tensor &self) {
  const OnDevice guard(device_index_of(grad, self));
  const Tensor grad_self = like(self);
  check(npu_fast_gelu_backward(argument(grad), argument(self), written(grad_self), stream()));
  return grad_self;
}

/* --- autograd --------------------------------------------------------------------------------------------------------- */

/* A gradient that is to have a gradient would be taken for a constant. */
void refuse_second_derivative(const char *name) {
  TORCH_CHECK_NOT_IMPLEMENTED(!at::GradMode::is_enabled(), name,
                              " has no second derivative: call backward without create_graph=True");
}

/* A typed call of an operator of this file through the dispatcher, below autograd. */
template <class Signature, class... Arguments> auto call(const char *name, const Arguments &...arguments) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>().call(arguments...);
}

struct RmsNorm : Function<RmsNorm> {
  static variable_list forward(AutogradContext *context, const Tensor &self, const Tensor &gamma, double epsilon) {
    const auto [out, rstd] = call<decltype(rms_norm)>("npu::npu_rms_norm", self, gamma, epsilon);
    context->save_for_backward({self, gamma, rstd});
    context->mark_non_differentiable({rstd});
    return {out, rstd};
  }
  static variable_list backward(AutogradContext *context, const variable_list &grads) {
    refuse_second_derivative("npu_rms_norm");
    const variable_list saved = context->get_saved_variables();
    const auto [grad_self, grad_gamma] =
        call<decltype(rms_norm_backward)>("npu::npu_rms_norm_backward", grads[0].contiguous(), saved[0], saved[1], saved[2]);
    return {grad_self, grad_gamma, Tensor()};
  }
};

struct SwiGlu : Function<SwiGlu> {
  static Tensor forward(AutogradContext *context, const Tensor &self, int64_t dim) {
    context->save_for_backward({self});
    context->saved_data["dim"] = dim;
    return call<decltype(swiglu)>("npu::npu_swiglu", self, dim);
  }
  static variable_list backward(AutogradContext *context, const variable_list &grads) {
    refuse_second_derivative("npu_swiglu");
    const int64_t dim = context->saved_data["dim"].toInt();
    return {call<decltype(swiglu_backward)>("npu::npu_swiglu_backward", grads[0], context->get_saved_variables()[0], dim),
            Tensor()};
  }
};

struct RotaryMul : Function<RotaryMul> {
  static Tensor forward(AutogradContext *context, const Tensor &self, const Tensor &cosine, const Tensor &sine, string_view mode) {
    context->save_for_backward({self, cosine, sine});
    context->saved_data["mode"] = std::string(mode);
    return call<decltype(rotary_mul)>("npu::npu_rotary_mul", self, cosine, sine, mode);
  }
  static variable_list backward(AutogradContext *context, const variable_list &grads) {
    refuse_second_derivative("npu_rotary_mul");
    const variable_list saved = context->get_saved_variables();
    const std::string mode = context->saved_data["mode"].toStringRef();
    const auto [grad_self, grad_cosine, grad_sine] = call<decltype(rotary_mul_backward)>(
        "npu::npu_rotary_mul_backward", grads[0], saved[0], saved[1], saved[2], string_view(mode));
    return {grad_self, grad_cosine, grad_sine, Tensor()};
  }
};

struct FastGelu : Function<FastGelu> {
  static Tensor forward(AutogradContext *context, const Tensor &self) {
    context->save_for_backward({self});
    return call<decltype(fast_gelu)>("npu::npu_fast_gelu", self);
  }
  static variable_list backward(AutogradContext *context, const variable_list &grads) {
    refuse_second_derivative("npu_fast_gelu");
    return {call<decltype(fast_gelu_backward)>("npu::npu_fast_gelu_backward", grads[0], context->get_saved_variables()[0])};
  }
};

std::tuple<Tensor, Tensor> rms_norm_with_gradient(const Tensor &self, const Tensor &gamma, double epsilon) {
  const variable_list results = RmsNorm::apply(self, gamma, epsilon);
  return {results[0], results[1]};
}
Tensor swiglu_with_gradient(const Tensor &self, int64_t dim) { return SwiGlu::apply(self, dim); }
Tensor rotary_mul_with_gradient(const Tensor &self, const Tensor &cosine, const Tensor &sine, string_view mode) {
  return RotaryMul::apply(self, cosine, sine, mode);
}
Tensor fast_gelu_with_gradient(const Tensor &self) { return FastGelu::apply(self); }

Tensor dtype_cast(const Tensor &self, at::ScalarType dtype) { return self.to(dtype); }

/* --- registration ------------------------------------------------------------------------------------------------------ */

void define_schemas(torch::Library &m) {
  m.def("npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)");
  m.def("npu_rms_norm_backward(Tensor dy, Tensor self, Tensor gamma, Tensor rstd) -> (Tensor, Tensor)");
  m.def("npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor)");
  m.def("npu_swiglu(Tensor self, int dim=-1) -> Tensor");
  m.def("npu_swiglu_backward(Tensor grad_output, Tensor self, int dim=-1) -> Tensor");
  m.def("npu_rotary_mul(Tensor self, Tensor r1, Tensor r2, str rotary_mode='half') -> Tensor");
  m.def(
      "npu_rotary_mul_backward(Tensor grad, Tensor self, Tensor r1, Tensor r2, str rotary_mode='half') -> (Tensor, Tensor, Tensor)");
  m.def("npu_fast_gelu(Tensor self) -> Tensor");
  m.def("npu_fast_gelu_backward(Tensor grad, Tensor self) -> Tensor");
  m.def("npu_dtype_cast(Tensor self, ScalarType dtype) -> Tensor", TORCH_FN(dtype_cast));
}

void register_fused(torch::Library &) {
  static torch::Library schemas(torch::Library::FRAGMENT, "npu", std::nullopt, __FILE__, __LINE__);
  define_schemas(schemas);
  static torch::Library device(torch::Library::IMPL, "npu", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  device.impl("npu_rms_norm", TORCH_FN(rms_norm));
  device.impl("npu_rms_norm_backward", TORCH_FN(rms_norm_backward));
  device.impl("npu_add_rms_norm", TORCH_FN(add_rms_norm));
  device.impl("npu_swiglu", TORCH_FN(swiglu));
  device.impl("npu_swiglu_backward", TORCH_FN(swiglu_backward));
  device.impl("npu_rotary_mul", TORCH_FN(rotary_mul));
  device.impl("npu_rotary_mul_backward", TORCH_FN(rotary_mul_backward));
  device.impl("npu_fast_gelu", TORCH_FN(fast_gelu));
  device.impl("npu_fast_gelu_backward", TORCH_FN(fast_gelu_backward));
  static torch::Library gradients(torch::Library::IMPL, "npu", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  gradients.impl("npu_rms_norm", TORCH_FN(rms_norm_with_gradient));
  gradients.impl("npu_swiglu", TORCH_FN(swiglu_with_gradient));
  gradients.impl("npu_rotary_mul", TORCH_FN(rotary_mul_with_gradient));
  gradients.impl("npu_fast_gelu", TORCH_FN(fast_gelu_with_gradient));
}
const Registrar registrar(&register_fused);

} // namespace
} // namespace npu
