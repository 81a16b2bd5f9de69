/* Operators of complex numbers whose CANN counterpart takes real ones: made of the parts or magnitudes, as torch's CPU makes them.
 *
 * Invariant: declared in complex.h and called where the argument is known to be complex; torch's checks have been made. */
#include "bridge/operators/complex.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/col2im.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/real.h>
#include <ATen/ops/var.h>
#include <torch/library.h>

#include <algorithm>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {

using at::Tensor;

Tensor magnitudes(const Tensor &self) { return self.is_complex() ? at::abs(self) : self; }

Tensor truths(const Tensor &self) { return self.is_complex() ? at::ne(self, 0) : self; }

bool spread_fits(const Tensor &self, const std::optional<at::Scalar> &correction) {
  return !self.is_complex() && (!correction || correction->toDouble() == double(correction->toLong()));
}

/* Elements that go into one result. */
static int64_t reduced_count(const Tensor &self, at::OptionalIntArrayRef dim) {
  if (!dim || dim->empty())
    return self.numel();
  int64_t count = 1;
  for (const int64_t d : *dim)
    count *= self.dim() > 0 ? self.size(d) : 1;
  return count;
}

Tensor composed_var(const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim) {
  if (self.is_complex())
    return at::var(at::real(self), dim, correction, keepdim).add_(at::var(at::imag(self), dim, correction, keepdim));
  const double count = double(reduced_count(self, dim)), divisor = std::max(0.0, count - correction->toDouble());
  return at::var(self, dim, at::Scalar(0), keepdim).mul_(count / divisor);
}

Tensor composed_std(const Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction, bool keepdim) {
  return composed_var(self, dim, correction, keepdim).sqrt_();
}

std::tuple<Tensor, Tensor> composed_var_mean(const Tensor &self, at::OptionalIntArrayRef dim,
                                             const std::optional<at::Scalar> &correction, bool keepdim) {
  return {composed_var(self, dim, correction, keepdim), at::mean(self, dim, keepdim)};
}

std::tuple<Tensor, Tensor> composed_std_mean(const Tensor &self, at::OptionalIntArrayRef dim,
                                             const std::optional<at::Scalar> &correction, bool keepdim) {
  return {composed_std(self, dim, correction, keepdim), at::mean(self, dim, keepdim)};
}

Tensor complex_im2col(const Tensor &self, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                      at::IntArrayRef stride) {
  return at::complex(at::im2col(at::real(self), kernel, dilation, padding, stride),
                     at::im2col(at::imag(self), kernel, dilation, padding, stride));
}

Tensor complex_col2im(const Tensor &self, at::IntArrayRef output_size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                      at::IntArrayRef padding, at::IntArrayRef stride) {
  return at::complex(at::col2im(at::real(self), output_size, kernel, dilation, padding, stride),
                     at::col2im(at::imag(self), output_size, kernel, dilation, padding, stride));
}

namespace {

/* The first factor conjugated, then as dot. */
Tensor vdot(const Tensor &self, const Tensor &other) { return at::dot(self.is_complex() ? self.conj() : self, other); }

Tensor &vdot_into(const Tensor &self, const Tensor &other, Tensor &out) {
  check_out_type(out, self.scalar_type(), "vdot()");
  write_out(out, vdot(self, other));
  return out;
}

void register_complex(torch::Library &m) {
  if (available("dot")) {
    m.impl("vdot", TORCH_FN(vdot));
    m.impl("vdot.out", TORCH_FN(vdot_into));
  }
}
const Registrar registrar(&register_complex);

} // namespace
} // namespace npu
