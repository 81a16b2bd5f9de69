/* Fused optimizer steps, gradient scaling, copies of lists. */
#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_copy_native.h>
#include <torch/library.h>

#include <map>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

void foreach_copy(at::TensorList self, at::TensorList source, bool non_blocking) {
  if (!uniform_lists({self, source}))
    return at::native::foreach_tensor_copy_list_kernel_slow_(self, source, non_blocking);
  const OnDevice guard(device_index_of(self));
  check(npu_foreach_copy(argument(source), argument(self), stream()));
}

bool is_set(const OptionalTensor &flag) { return flag && flag->defined() && flag->item().toDouble() != 0; }

/* Parameters of one dtype in each call: a model may hold several. */
template <typename Call> void by_dtype(at::TensorList list, Call call) {
  std::map<at::ScalarType, std::vector<size_t>> groups;
  for (size_t i = 0; i < list.size(); ++i)
    groups[list[i].scalar_type()].push_back(i);
  for (const auto &[type, places] : groups)
    call(places);
}

std::vector<at::Tensor> chosen(at::TensorList list, const std::vector<size_t> &places) {
  std::vector<at::Tensor> part;
  if (!list.empty())
    for (const size_t place : places)
      part.push_back(list[place]);
  return part;
}

struct AdamOptions {
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize;
};

struct AdamLists {
  at::TensorList self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps;
};

void adam(const AdamLists &lists, const AdamOptions &o, const OptionalTensor &grad_scale, const OptionalTensor &found_inf) {
  if (lists.self.empty())
    return;
  const OnDevice guard(device_index_of(lists.self));
  by_dtype(lists.self, [&](const std::vector<size_t> &places) {
    const auto p = chosen(lists.self, places), g = chosen(lists.grads, places), a = chosen(lists.exp_avgs, places),
               b = chosen(lists.exp_avg_sqs, places), m = chosen(lists.max_exp_avg_sqs, places), s = chosen(lists.steps, places);
    check(npu_fused_adam(argument(at::TensorList(p)), argument(at::TensorList(g)), argument(at::TensorList(a)),
                         argument(at::TensorList(b)), argument(at::TensorList(m)), argument(at::TensorList(s)),
                         argument(grad_scale), argument(found_inf), o.lr, o.beta1, o.beta2, o.weight_decay, o.eps, o.amsgrad,
                         o.maximize, stream()));
  });
}

void fused_adam(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                at::TensorList max_exp_avg_sqs, at::TensorList steps, double lr, double beta1, double beta2, double weight_decay,
                double eps, bool amsgrad, bool maximize, const OptionalTensor &grad_scale, const OptionalTensor &found_inf) {
  adam({self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps}, {lr, beta1, beta2, weight_decay, eps, amsgrad, maximize},
       grad_scale, found_inf);
}

void fused_adam_tensor(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                       at::TensorList max_exp_avg_sqs, at::TensorList steps, const at::Tensor &lr, double beta1, double beta2,
                       double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor &grad_scale,
                       const OptionalTensor &found_inf) {
  fused_adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr.item().toDouble(), beta1, beta2, weight_decay, eps,
             amsgrad, maximize, grad_scale, found_inf);
}

/* AdamW is Adam without its own weight decay after the parameters were shrunk by lr * weight_decay. */
void fused_adamw(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                 at::TensorList max_exp_avg_sqs, at::TensorList steps, double lr, double beta1, double beta2, double weight_decay,
                 double eps, bool amsgrad, bool maximize, const OptionalTensor &grad_scale, const OptionalTensor &found_inf) {
  if (self.empty())
    return;
  const OnDevice guard(device_index_of(self));
  if (weight_decay != 0) {
    if (is_set(found_inf))
      return;
    const at::Scalar kept(1 - lr * weight_decay);
    by_dtype(self, [&](const std::vector<size_t> &places) {
      const auto p = chosen(self, places);
      check(npu_foreach_mul_scalar(argument(at::TensorList(p)), argument(kept), argument(at::TensorList(p)), stream()));
    });
  }
  adam({self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps}, {lr, beta1, beta2, 0, eps, amsgrad, maximize}, grad_scale,
       found_inf);
}

void fused_adamw_tensor(at::TensorList self, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                        at::TensorList max_exp_avg_sqs, at::TensorList steps, const at::Tensor &lr, double beta1, double beta2,
                        double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor &grad_scale,
                        const OptionalTensor &found_inf) {
  fused_adamw(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr.item().toDouble(), beta1, beta2, weight_decay, eps,
              amsgrad, maximize, grad_scale, found_inf);
}

/* aclnnFusedSgd takes its numbers as floats; f64 parameters want all 53 bits of them, so they go operator by operator. */
struct SgdNumbers {
  double weight_decay, momentum, lr, dampening;
  bool nesterov, maximize, is_first_step;
};

void sgd_in_double(at::Tensor &parameter, at::Tensor gradient, at::Tensor *buffer, const OptionalTensor &grad_scale,
                   const SgdNumbers &n) {
  if (grad_scale && grad_scale->defined())
    gradient.div_(*grad_scale);
  if (n.maximize)
    gradient = gradient.neg();
  if (n.weight_decay != 0)
    gradient = gradient.add(parameter, n.weight_decay);
  if (buffer && n.is_first_step)
    buffer->copy_(gradient);
  else if (buffer)
    buffer->mul_(n.momentum).add_(gradient, 1 - n.dampening);
  if (buffer)
    gradient = n.nesterov ? gradient.add(*buffer, n.momentum) : *buffer;
  parameter.add_(gradient, -n.lr);
}

void fused_sgd(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffers, double weight_decay, double momentum,
               double lr, double dampening, bool nesterov, bool maximize, bool is_first_step, const OptionalTensor &grad_scale,
               const OptionalTensor &found_inf) {
  if (self.empty() || is_set(found_inf))
    return;
  const OnDevice guard(device_index_of(self));
  by_dtype(self, [&](const std::vector<size_t> &places) {
    auto p = chosen(self, places), g = chosen(grads, places), b = chosen(momentum_buffers, places);
    if (p.front().scalar_type() == at::kDouble) {
      for (size_t i = 0; i < p.size(); ++i)
        sgd_in_double(p[i], g[i], b.empty() ? nullptr : &b[i], grad_scale,
                      {weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step});
      return;
    }
    check(npu_fused_sgd(argument(at::TensorList(p)), argument(at::TensorList(g)), argument(at::TensorList(b)), argument(grad_scale),
                        weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, stream()));
  });
}

void fused_sgd_tensor(at::TensorList self, at::TensorList grads, at::TensorList momentum_buffers, double weight_decay,
                      double momentum, const at::Tensor &lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                      const OptionalTensor &grad_scale, const OptionalTensor &found_inf) {
  fused_sgd(self, grads, momentum_buffers, weight_decay, momentum, lr.item().toDouble(), dampening, nesterov, maximize,
            is_first_step, grad_scale, found_inf);
}

void check_and_unscale(at::TensorList self, at::Tensor &found_inf, const at::Tensor &inv_scale) {
  TORCH_CHECK(inv_scale.device().type() == kDevice, "inv_scale must be a npu tensor.");
  TORCH_CHECK(found_inf.device().type() == kDevice, "found_inf must be a npu tensor.");
  TORCH_CHECK(inv_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(inv_scale.scalar_type() == at::kFloat, "inv_scale must be a float tensor.");
  TORCH_CHECK(found_inf.scalar_type() == at::kFloat, "found_inf must be a float tensor.");
  if (self.empty())
    return;
  const OnDevice guard(device_index_of(self));
  by_dtype(self, [&](const std::vector<size_t> &places) {
    const auto part = chosen(self, places);
    check(npu_amp_check_and_unscale(argument(at::TensorList(part)), argument(found_inf), argument(inv_scale), stream()));
  });
}

at::Tensor &update_scale(at::Tensor &self, at::Tensor &growth_tracker, const at::Tensor &found_inf, double growth_factor,
                         double backoff_factor, int64_t growth_interval) {
  TORCH_CHECK(growth_tracker.numel() == 1 && growth_tracker.scalar_type() == at::kInt,
              "growth_tracker must be a 1-element int tensor.");
  TORCH_CHECK(self.numel() == 1 && self.scalar_type() == at::kFloat, "current_scale must be a 1-element float tensor.");
  TORCH_CHECK(found_inf.numel() == 1 && found_inf.scalar_type() == at::kFloat, "found_inf must be a 1-element float tensor.");
  const OnDevice guard(device_index_of(self));
  const at::Tensor scale = like(self), tracker = like(growth_tracker);
  check(npu_amp_update_scale(argument(self), argument(growth_tracker), argument(found_inf), growth_factor, backoff_factor,
                             growth_interval, argument(scale), argument(tracker), stream()));
  check(npu_copy(written(self), argument(scale), stream()));
  check(npu_copy(written(growth_tracker), argument(tracker), stream()));
  return self;
}

void register_lists(torch::Library &m) {
  if (available("foreach_copy"))
    m.impl("_foreach_copy_", TORCH_FN(foreach_copy));
  if (available("fused_adam")) {
    m.impl("_fused_adam_", TORCH_FN(fused_adam));
    m.impl("_fused_adam_.tensor_lr", TORCH_FN(fused_adam_tensor));
    m.impl("_fused_adamw_", TORCH_FN(fused_adamw));
    m.impl("_fused_adamw_.tensor_lr", TORCH_FN(fused_adamw_tensor));
  }
  if (available("fused_sgd")) {
    m.impl("_fused_sgd_", TORCH_FN(fused_sgd));
    m.impl("_fused_sgd_.tensor_lr", TORCH_FN(fused_sgd_tensor));
  }
  if (available("amp_check_and_unscale"))
    m.impl("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(check_and_unscale));
  if (available("amp_update_scale"))
    m.impl("_amp_update_scale_", TORCH_FN(update_scale));
}
const Registrar registrar(&register_lists);

} // namespace
} // namespace npu
