/* Losses that torch implements for its own devices only: CTC and multilabel margins by CANN, the others made of operators.
 *
 * Half types are computed in float32 and rounded once, as on torch's CPU. */
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/LossMulti.h>
#include <ATen/ops/_ctc_loss_backward_native.h>
#include <ATen/ops/_ctc_loss_native.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;

Tensor widened(const Tensor &tensor) {
  const bool half = tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  return half ? tensor.to(at::kFloat) : tensor;
}

Tensor reduced_loss(const Tensor &loss, int64_t reduction) {
  return reduction == at::Reduction::Mean ? loss.mean() : reduction == at::Reduction::Sum ? loss.sum() : loss;
}

/* --- Huber --- */

Tensor huber(const Tensor &self, const Tensor &target, int64_t reduction, double delta) {
  TORCH_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  const Tensor distance = (widened(self) - widened(target)).abs();
  const Tensor loss = at::where(distance < delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta);
  return reduced_loss(loss, reduction).to(promoted(self, target));
}

Tensor &huber_into(const Tensor &self, const Tensor &target, int64_t reduction, double delta, Tensor &out) {
  write_out(out, huber(self, target, reduction, delta));
  return out;
}

Tensor huber_gradient(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction, double delta) {
  const Tensor distance = widened(self) - widened(target);
  const double norm = reduction == at::Reduction::Mean ? 1.0 / static_cast<double>(distance.numel()) : 1.0;
  return (distance.clamp(-delta, delta) * widened(grad_output) * norm).to(promoted(self, target));
}

Tensor &huber_gradient_into(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction, double delta,
                            Tensor &out) {
  write_out(out, huber_gradient(grad_output, self, target, reduction, delta));
  return out;
}

/* --- margins to the one right class --- */

/* Rows of classes, the right class of each, and how far each other class comes into the margin. */
struct Margins {
  Tensor rows, labels, gaps;
  int64_t count = 0, classes = 0;
  bool one_row;
};

Margins margins_of(const Tensor &self, const Tensor &target, const Scalar &p, const Scalar &margin, const OptionalTensor &weight) {
  Margins m;
  TORCH_CHECK(p.toLong() == 1 || p.toLong() == 2, "p == 1 or p == 2 expected");
  at::native::multi_margin_loss_shape_check(m.count, m.classes, self.dim(), self, target, weight);
  TORCH_CHECK(target.scalar_type() == at::kLong || target.numel() == 0, "expected scalar type Long but found ",
              target.scalar_type());
  m.one_row = self.dim() <= 1;
  m.rows = widened(self).reshape({m.count, m.classes});
  m.labels = target.reshape({m.count, 1});
  m.gaps = at::clamp_min(m.rows - at::gather(m.rows, 1, m.labels) + margin, 0);
  return m;
}

/* Of the right class of each row; undefined: no weights. */
Tensor weights_of(const Margins &m, const OptionalTensor &weight) {
  return weight && weight->defined() ? widened(*weight).index_select(0, m.labels.reshape({-1})).reshape({m.count, 1}) : Tensor();
}

Tensor margin_loss(const Tensor &self, const Tensor &target, const Scalar &p, const Scalar &margin, const OptionalTensor &weight,
                   int64_t reduction) {
  if (self.numel() == 0 && self.dim() > 0 && self.size(0) == 0) {
    margins_of(self, target, p, margin, weight);
    return reduced_loss(empty({0}, self.scalar_type()), reduction);
  }
  const Margins m = margins_of(self, target, p, margin, weight);
  Tensor terms = p.toLong() == 1 ? m.gaps : m.gaps * m.gaps;
  const Tensor weights = weights_of(m, weight);
  if (weights.defined())
    terms = terms * weights;
  const Tensor loss = terms.scatter(1, m.labels, 0).sum(1) / static_cast<double>(m.classes);
  return reduced_loss(m.one_row ? loss.reshape({}) : loss, reduction).to(self.scalar_type());
}

Tensor &margin_loss_into(const Tensor &self, const Tensor &target, const Scalar &p, const Scalar &margin,
                         const OptionalTensor &weight, int64_t reduction, Tensor &out) {
  write_out(out, margin_loss(self, target, p, margin, weight, reduction));
  return out;
}

Tensor margin_gradient(const Tensor &grad_output, const Tensor &self, const Tensor &target, const Scalar &p, const Scalar &margin,
                       const OptionalTensor &weight, int64_t reduction) {
  const Margins m = margins_of(self, target, p, margin, weight);
  if (self.numel() == 0)
    return at::zeros_like(self);
  const double norm = 1.0 / static_cast<double>(m.classes * (reduction == at::Reduction::Mean ? m.count : 1));
  Tensor slopes = p.toLong() == 1 ? (m.gaps > 0).to(m.rows.scalar_type()) : m.gaps * 2;
  const Tensor weights = weights_of(m, weight);
  if (weights.defined())
    slopes = slopes * weights;
  slopes = slopes.scatter(1, m.labels, 0) * norm;
  slopes = slopes.scatter(1, m.labels, slopes.sum(1, true).neg());
  return (slopes * widened(grad_output).reshape({-1, 1})).reshape(self.sizes()).to(self.scalar_type());
}

Tensor &margin_gradient_into(const Tensor &grad_output, const Tensor &self, const Tensor &target, const Scalar &p,
                             const Scalar &margin, const OptionalTensor &weight, int64_t reduction, Tensor &out) {
  write_out(out, margin_gradient(grad_output, self, target, p, margin, weight, reduction));
  return out;
}

/* --- margins to several right classes --- */

Two labels_loss(const Tensor &self, const Tensor &target, int64_t reduction) {
  int64_t rows, classes;
  at::native::multilabel_margin_loss_shape_check(rows, classes, self.dim(), self, target);
  const OnDevice guard(device_index_of(self));
  const bool each = reduction == at::Reduction::None && self.dim() > 1;
  const Tensor out = each ? empty({rows}, self.scalar_type()) : empty({}, self.scalar_type());
  const Tensor is_target = empty(target.sizes(), self.scalar_type());
  if (self.numel() == 0) {
    out.zero_();
    return {out, is_target};
  }
  check(npu_multilabel_margin_loss(argument(self), argument(target), reduction, written(out), written(is_target), stream()));
  return {out, is_target};
}

std::tuple<Tensor &, Tensor &> labels_loss_into(const Tensor &self, const Tensor &target, int64_t reduction, Tensor &out,
                                                Tensor &is_target) {
  const auto [loss, mask] = labels_loss(self, target, reduction);
  write_out(out, loss);
  write_out(is_target, mask);
  return {out, is_target};
}

Tensor labels_gradient(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction,
                       const Tensor &is_target) {
  int64_t count, classes;
  at::native::multilabel_margin_loss_shape_check(count, classes, self.dim(), self, target);
  if (self.numel() == 0)
    return at::zeros_like(self);
  const Tensor x = widened(self).reshape({count, classes}), given = target.reshape({count, classes});
  const Tensor labels = at::clamp_min(given, 0); // those behind the first negative one don't count
  const Tensor counts = (given >= 0).to(at::kLong).cumprod(1).to(x.scalar_type()),
               others = is_target.reshape({count, 1, classes}) == 0;
  const Tensor gaps = 1 - at::gather(x, 1, labels).unsqueeze(2) + x.unsqueeze(1);
  const double norm = 1.0 / static_cast<double>(classes * (reduction == at::Reduction::Mean ? count : 1));
  const Tensor terms = ((gaps > 0).logical_and(others)).to(x.scalar_type()) * counts.unsqueeze(2) * norm;
  const Tensor slopes = terms.sum(1).scatter_add(1, labels, terms.sum(2).neg());
  return (slopes * widened(grad_output).reshape({-1, 1})).reshape(self.sizes()).to(self.scalar_type());
}

Tensor &labels_gradient_into(const Tensor &grad_output, const Tensor &self, const Tensor &target, int64_t reduction,
                             const Tensor &is_target, Tensor &out) {
  write_out(out, labels_gradient(grad_output, self, target, reduction, is_target));
  return out;
}

/* --- CTC --- */

void check_ctc(const Tensor &log_probs, const Tensor &targets, at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
               int64_t blank) {
  TORCH_CHECK(log_probs.dim() == 3, "log_probs must be of 3 dimensions, got ", log_probs.dim());
  TORCH_CHECK(targets.dim() == 1 || targets.dim() == 2, "targets must be of 1 or 2 dimensions, got ", targets.dim());
  const auto batch = static_cast<size_t>(log_probs.size(1));
  TORCH_CHECK(blank >= 0 && blank < log_probs.size(2), "blank must be in label range");
  TORCH_CHECK(input_lengths.size() == batch, "input_lengths must be of size batch_size");
  TORCH_CHECK(target_lengths.size() == batch, "target_lengths must be of size batch_size");
  for (size_t b = 0; b < batch; ++b) {
    TORCH_CHECK(input_lengths[b] >= 0, "Expected input_lengths to have value at least 0, but got value ", input_lengths[b]);
    TORCH_CHECK(input_lengths[b] <= log_probs.size(0), "Expected input_lengths to have value at most ", log_probs.size(0),
                ", but got value ", input_lengths[b], " (while checking arguments for ctc_loss)");
    TORCH_CHECK(target_lengths[b] >= 0, "Expected target_lengths to have value at least 0, but got value ", target_lengths[b]);
  }
}

Two alignment_loss(const Tensor &log_probs, const Tensor &targets, at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                   int64_t blank, bool zero_infinity) {
  check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
  const OnDevice guard(device_index_of(log_probs));
  int64_t longest = targets.dim() == 2 ? targets.size(1) : 0;
  for (const int64_t length : target_lengths)
    longest = std::max(longest, length);
  const int64_t batch = log_probs.size(1);
  const Tensor loss = empty({batch}, log_probs.scalar_type());
  const Tensor alpha = empty({batch, log_probs.size(0), 2 * longest + 1}, log_probs.scalar_type());
  check(npu_ctc_loss(argument(log_probs), argument(targets.to(log_probs.device())), argument(input_lengths),
                     argument(target_lengths), blank, zero_infinity, written(loss), written(alpha), stream()));
  return {loss, alpha};
}

Tensor alignment_gradient(const Tensor &grad, const Tensor &log_probs, const Tensor &targets, at::IntArrayRef input_lengths,
                          at::IntArrayRef target_lengths, const Tensor &loss, const Tensor &alpha, int64_t blank,
                          bool zero_infinity) {
  const OnDevice guard(device_index_of(log_probs));
  const Tensor out = empty(log_probs.sizes(), log_probs.scalar_type());
  check(npu_ctc_loss_backward(argument(grad), argument(log_probs), argument(targets.to(log_probs.device())),
                              argument(input_lengths), argument(target_lengths), argument(loss), argument(alpha), blank,
                              zero_infinity, written(out), stream()));
  return out;
}

void register_losses(torch::Library &m) {
  m.impl("huber_loss", TORCH_FN(huber));
  m.impl("huber_loss.out", TORCH_FN(huber_into));
  m.impl("huber_loss_backward", TORCH_FN(huber_gradient));
  m.impl("huber_loss_backward.out", TORCH_FN(huber_gradient_into));
  m.impl("multi_margin_loss", TORCH_FN(margin_loss));
  m.impl("multi_margin_loss.out", TORCH_FN(margin_loss_into));
  m.impl("multi_margin_loss_backward", TORCH_FN(margin_gradient));
  m.impl("multi_margin_loss_backward.grad_input", TORCH_FN(margin_gradient_into));
  if (available("multilabel_margin_loss")) {
    m.impl("multilabel_margin_loss_forward", TORCH_FN(labels_loss));
    m.impl("multilabel_margin_loss_forward.output", TORCH_FN(labels_loss_into));
    m.impl("multilabel_margin_loss_backward", TORCH_FN(labels_gradient));
    m.impl("multilabel_margin_loss_backward.grad_input", TORCH_FN(labels_gradient_into));
  }
  if (available("ctc_loss") && available("ctc_loss_backward")) {
    m.impl("_ctc_loss", TORCH_FN(alignment_loss));
    m.impl("_ctc_loss.Tensor", TORCH_FN(at::native::ctc_loss_tensor));
    m.impl("_ctc_loss_backward", TORCH_FN(alignment_gradient));
    m.impl("_ctc_loss_backward.Tensor", TORCH_FN(at::native::ctc_loss_backward_tensor));
  }
}
const Registrar registrar(&register_losses);

} // namespace
} // namespace npu
