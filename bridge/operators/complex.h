/* Complex numbers where CANN's operators take real ones; operators.yaml calls these. */
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace npu {

/* Of a complex tensor the absolute values, or whether they aren't 0; real ones stay. */
at::Tensor magnitudes(const at::Tensor &self);
at::Tensor truths(const at::Tensor &self);

/* aclnn's variances take real numbers and an integer as correction. The variance of complex numbers is the sum of their parts'. */
bool spread_fits(const at::Tensor &self, const std::optional<at::Scalar> &correction);
at::Tensor composed_var(const at::Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction,
                        bool keepdim);
at::Tensor composed_std(const at::Tensor &self, at::OptionalIntArrayRef dim, const std::optional<at::Scalar> &correction,
                        bool keepdim);
std::tuple<at::Tensor, at::Tensor> composed_var_mean(const at::Tensor &self, at::OptionalIntArrayRef dim,
                                                     const std::optional<at::Scalar> &correction, bool keepdim);
std::tuple<at::Tensor, at::Tensor> composed_std_mean(const at::Tensor &self, at::OptionalIntArrayRef dim,
                                                     const std::optional<at::Scalar> &correction, bool keepdim);

at::Tensor complex_im2col(const at::Tensor &self, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                          at::IntArrayRef stride);
at::Tensor complex_col2im(const at::Tensor &self, at::IntArrayRef output_size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                          at::IntArrayRef padding, at::IntArrayRef stride);

} // namespace npu
