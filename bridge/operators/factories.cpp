/* Operators that make tensors from nothing. */
#include <ATen/core/Tensor.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tril_indices.h>
#include <ATen/ops/triu_indices.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "bridge/operators/operand.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using Type = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<at::Device>;

c10::DeviceIndex index_of(Device device) { return device ? resolve_index(device->index()) : current_device(); }

void check_factory(Layout layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "only the strided layout is supported on npu, got ", layout.value());
  TORCH_CHECK(!pin_memory.value_or(false), "Only dense CPU tensors can be pinned");
}

at::Tensor empty_memory_format(at::IntArrayRef size, Type dtype, Layout layout, Device device, std::optional<bool> pin_memory,
                               std::optional<at::MemoryFormat> format) {
  check_factory(layout, pin_memory);
  const OnDevice guard(index_of(device));
  return empty(size, c10::dtype_or_default(dtype), format);
}

at::Tensor make_empty_strided(at::IntArrayRef size, at::IntArrayRef stride, Type dtype, Layout layout, Device device,
                              std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  const OnDevice guard(index_of(device));
  return empty_strided(size, stride, c10::dtype_or_default(dtype));
}

/* Number of values in start, start + step, ... before (inclusive: up to) end. */
int64_t range_size(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, bool exact, bool inclusive) {
  TORCH_CHECK(step.toDouble() > 0 || step.toDouble() < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(start.toDouble()) && std::isfinite(end.toDouble()), "unsupported range: ", start.toDouble(), " -> ",
              end.toDouble());
  TORCH_CHECK((step.toDouble() > 0 && end.toDouble() >= start.toDouble()) ||
                  (step.toDouble() < 0 && end.toDouble() <= start.toDouble()),
              "upper bound and lower bound inconsistent with step sign");
  if (exact && !inclusive) { // integers beyond 2**53
    const int64_t first = start.toLong(), last = end.toLong(), stride = step.toLong(), sign = stride > 0 ? 1 : -1;
    TORCH_CHECK(stride != 0, "step must be nonzero");
    return (last - first + stride - sign) / stride;
  }
  const double steps = (end.toDouble() - start.toDouble()) / step.toDouble();
  TORCH_CHECK(steps >= 0 && steps < double(std::numeric_limits<int64_t>::max()), "invalid size, possible overflow?");
  return static_cast<int64_t>(inclusive ? std::floor(steps + 1) : std::ceil(steps));
}

void fit(at::Tensor &out, int64_t size) {
  if (out.numel() == size)
    return;
  if (out.numel() > 0)
    TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ", out.numel(),
               " which does not match the computed number of "
               "elements ",
               size,
               ". Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape (",
               size, ",).");
  out.resize_({size});
}

at::Tensor &arange_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out) {
  const OnDevice guard(device_index_of(out));
  const bool exact = out.scalar_type() == at::kLong && start.isIntegral(true) && end.isIntegral(true) && step.isIntegral(true);
  fit(out, range_size(start, end, step, exact, false));
  if (out.numel() > 0)
    check(npu_arange(argument(start), argument(end), argument(step), argument(out), stream()));
  return out;
}

at::Tensor &range_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out) {
  const OnDevice guard(device_index_of(out));
  fit(out, range_size(start, end, step, false, true));
  check(npu_range(argument(start), argument(end), argument(step), argument(out), stream()));
  return out;
}

/* Of a complex tensor's parts. */
at::TensorOptions real_options(const at::Tensor &tensor) {
  return tensor.options().dtype(c10::toRealValueType(tensor.scalar_type()));
}

/* torch converts the ends of a range to an integer type before it makes steps between them. */
at::Scalar end_like(const at::Tensor &out, const at::Scalar &end) {
  switch (out.scalar_type()) {
  case at::kByte: return static_cast<int64_t>(end.to<uint8_t>());
  case at::kChar: return static_cast<int64_t>(end.to<int8_t>());
  case at::kShort: return static_cast<int64_t>(end.to<int16_t>());
  case at::kInt: return static_cast<int64_t>(end.to<int32_t>());
  case at::kLong: return end.to<int64_t>();
  default: return end;
  }
}

at::Tensor &linspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps, at::Tensor &out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  const OnDevice guard(device_index_of(out));
  if (out.numel() != steps)
    out.resize_({steps});
  if (out.is_complex()) {
    const auto first = start.toComplexDouble(), last = end.toComplexDouble();
    at::real(out).copy_(at::linspace(first.real(), last.real(), steps, real_options(out)));
    at::imag(out).copy_(at::linspace(first.imag(), last.imag(), steps, real_options(out)));
  } else if (steps > 0) {
    check(npu_linspace(argument(end_like(out, start)), argument(end_like(out, end)), steps, argument(out), stream()));
  }
  return out;
}

at::Tensor &logspace_out(const at::Scalar &start, const at::Scalar &end, int64_t steps, double base, at::Tensor &out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  const OnDevice guard(device_index_of(out));
  if (out.numel() != steps)
    out.resize_({steps});
  if (out.is_complex())
    return at::pow_out(out, base, at::linspace(start, end, steps, out.options()));
  if (steps > 0)
    check(npu_logspace(argument(end_like(out, start)), argument(end_like(out, end)), steps, base, argument(out), stream()));
  return out;
}

at::Tensor &eye_m_out(int64_t n, int64_t m, at::Tensor &out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  const OnDevice guard(device_index_of(out));
  out.resize_({n, m});
  if (out.numel() > 0)
    check(npu_eye(n, m, argument(out), stream()));
  return out;
}

at::Tensor &eye_out(int64_t n, at::Tensor &out) { return eye_m_out(n, n, out); }

/* No CANN operator makes these; a few integers are made on the host. */
at::Tensor make_tril_indices(int64_t row, int64_t col, int64_t offset, Type dtype, Layout layout, Device device,
                             std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  return at::tril_indices(row, col, offset, at::TensorOptions().dtype(dtype.value_or(at::kLong)))
      .to(at::Device(kDevice, index_of(device)));
}

at::Tensor make_triu_indices(int64_t row, int64_t col, int64_t offset, Type dtype, Layout layout, Device device,
                             std::optional<bool> pin_memory) {
  check_factory(layout, pin_memory);
  return at::triu_indices(row, col, offset, at::TensorOptions().dtype(dtype.value_or(at::kLong)))
      .to(at::Device(kDevice, index_of(device)));
}

void register_factories(torch::Library &m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(make_empty_strided));
  m.impl("tril_indices", TORCH_FN(make_tril_indices));
  m.impl("triu_indices", TORCH_FN(make_triu_indices));
  if (available("arange"))
    m.impl("arange.start_out", TORCH_FN(arange_out));
  if (available("range"))
    m.impl("range.out", TORCH_FN(range_out));
  if (available("linspace"))
    m.impl("linspace.out", TORCH_FN(linspace_out));
  if (available("logspace"))
    m.impl("logspace.out", TORCH_FN(logspace_out));
  if (available("eye")) {
    m.impl("eye.out", TORCH_FN(eye_out));
    m.impl("eye.m_out", TORCH_FN(eye_m_out));
  }
}
const Registrar registrar(&register_factories);

} // namespace
} // namespace npu
