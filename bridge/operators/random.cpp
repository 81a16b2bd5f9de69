/* Random operators. The texts of the checks are torch's. */
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "bridge/operators/random_state.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using Gen = std::optional<at::Generator>;

/* CANN takes mean and deviation as float. Where that would change a double tensor's numbers, they are drawn with 0 and 1, which
 * are exact, then scaled and moved in double. */
bool float_spoils(const at::Tensor &out, double number) {
  return out.scalar_type() == at::kDouble && double(float(number)) != number;
}

at::Tensor &normal_(at::Tensor &self, double mean, double std, Gen generator) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  check_written(self);
  const OnDevice guard(device_index_of(self));
  if (self.is_complex()) { // the variance is shared between the parts
    at::Tensor parts = at::view_as_real(self);
    normal_(parts, 0, std / std::sqrt(2.0), generator);
    return self.add_(mean);
  }
  if (float_spoils(self, mean) || float_spoils(self, std))
    return normal_(self, 0, 1, generator).mul_(std).add_(mean);
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_normal(argument(self), mean, std, seed, offset, stream()));
  return self;
}

at::Tensor &uniform_(at::Tensor &self, double from, double to, Gen generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  check_written(self);
  if (self.is_complex()) { // both parts
    at::view_as_real(self).uniform_(from, to, generator);
    return self;
  }
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_uniform(argument(self), from, to, seed, offset, stream()));
  return self;
}

/* Largest integer of a dtype that random_ may give. */
int64_t largest_integer(at::ScalarType type) {
  switch (type) {
  case at::kBool: return 1;
  case at::kByte: return 255;
  case at::kChar: return 127;
  case at::kShort: return 32767;
  case at::kInt: return std::numeric_limits<int32_t>::max();
  case at::kHalf: return 1 << 11;
  case at::kBFloat16: return 1 << 8;
  case at::kFloat: return 1 << 24;
  case at::kDouble: return int64_t(1) << 53;
  default: return std::numeric_limits<int64_t>::max();
  }
}

at::Tensor &random_from(at::Tensor &self, int64_t from, std::optional<int64_t> to, Gen generator) {
  const int64_t most = largest_integer(self.scalar_type());
  const int64_t end = to ? *to : most == std::numeric_limits<int64_t>::max() ? most : most + 1;
  TORCH_CHECK(from < end, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", end);
  TORCH_CHECK(from <= most, "from is out of bounds for ", self.dtype());
  TORCH_CHECK(!to || end - 1 <= most || self.is_floating_point(), "to - 1 is out of bounds for ", self.dtype());
  check_written(self);
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_random_range(argument(self), from, end, seed, offset, stream()));
  return self;
}

at::Tensor &random_to(at::Tensor &self, int64_t to, Gen generator) { return random_from(self, 0, to, generator); }

at::Tensor &random_(at::Tensor &self, Gen generator) {
  check_written(self);
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_random_whole(argument(self), seed, offset, stream()));
  return self;
}

at::Tensor &bernoulli_float(at::Tensor &self, double p, Gen generator) {
  TORCH_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  check_written(self);
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_bernoulli_scalar(argument(self), ScalarOperand(at::Scalar(p)), seed, offset, stream()));
  return self;
}

at::Tensor &bernoulli_tensor(at::Tensor &self, const at::Tensor &p, Gen generator) {
  check_written(self);
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_bernoulli_tensor(written(self), argument(p.expand(self.sizes())), seed, offset, stream()));
  return self;
}

at::Tensor &bernoulli_out(const at::Tensor &self, Gen generator, at::Tensor &out) {
  at::native::resize_output(out, self.sizes());
  return bernoulli_tensor(out, self, generator);
}

at::Tensor &exponential_(at::Tensor &self, double lambd, Gen generator) {
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "Exponential distribution is a continuous probability distribution. dtype must be a floating "
              "point but you specified ",
              self.dtype());
  TORCH_CHECK(lambd > 0.0, "exponential_ expects lambda > 0.0, but found lambda=", lambd);
  check_written(self);
  const OnDevice guard(device_index_of(self));
  const auto [seed, offset] = random_state(generator, self.numel());
  check(npu_exponential(argument(self), lambd, seed, offset, stream()));
  return self;
}

at::Tensor &log_normal_(at::Tensor &self, double mean, double std, Gen generator) {
  TORCH_CHECK(std > 0.0, "log_normal_ expects std > 0.0, but found std=", std);
  normal_(self, mean, std, generator);
  return self.exp_();
}

at::Tensor &cauchy_(at::Tensor &self, double median, double sigma, Gen generator) {
  TORCH_CHECK(sigma > 0.0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  uniform_(self, -0.5, 0.5, generator);
  return self.mul_(M_PI).tan_().mul_(sigma).add_(median);
}

at::Tensor &geometric_(at::Tensor &self, double p, Gen generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  const OnDevice guard(device_index_of(self));
  at::Tensor uniform = empty(self.sizes(), self.is_floating_point() ? self.scalar_type() : at::kFloat);
  exponential_(uniform, -std::log1p(-p), generator); // -log(u) / -log(1 - p), as torch's log(u) / log(1 - p)
  return self.copy_(uniform.ceil_());
}

at::Tensor &randperm_out(int64_t n, Gen generator, at::Tensor &out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  const OnDevice guard(device_index_of(out));
  out.resize_({n});
  if (n == 0)
    return out;
  const auto [seed, offset] = random_state(generator, n);
  check(npu_randperm(n, seed, offset, argument(out), stream()));
  return out;
}

at::Tensor draw(const at::Tensor &self, int64_t samples, bool replacement, Gen generator) {
  TORCH_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(self.scalar_type()),
              "multinomial only supports floating-point dtypes for input, got: ", self.scalar_type());
  TORCH_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || samples <= self.size(-1), "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const OnDevice guard(device_index_of(self));
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes.back() = samples;
  const at::Tensor out = empty(sizes, at::kLong);
  const auto [seed, offset] = random_state(generator, replacement ? out.numel() : self.numel());
  check(npu_multinomial(argument(self), samples, replacement, seed, offset, argument(out), stream()));
  return out;
}

at::Tensor &multinomial_out(const at::Tensor &self, int64_t samples, bool replacement, Gen generator, at::Tensor &out) {
  check_out_type(out, at::kLong, "multinomial");
  write_out(out, draw(self, samples, replacement, generator));
  return out;
}

at::Tensor normal_tensor_float(const at::Tensor &mean, double std, Gen generator) {
  TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  const OnDevice guard(device_index_of(mean));
  at::Tensor out = like(mean);
  if (float_spoils(out, std))
    return normal_(out, 0, 1, generator).mul_(std).add_(mean);
  const auto [seed, offset] = random_state(generator, out.numel());
  check(npu_normal_tensor_float(argument(mean), std, seed, offset, argument(out), stream()));
  return out;
}

at::Tensor normal_float_tensor(double mean, const at::Tensor &std, Gen generator) {
  const OnDevice guard(device_index_of(std));
  at::Tensor out = like(std);
  if (float_spoils(out, mean))
    return normal_(out, 0, 1, generator).mul_(std).add_(mean);
  const auto [seed, offset] = random_state(generator, out.numel());
  check(npu_normal_float_tensor(mean, argument(std), seed, offset, argument(out), stream()));
  return out;
}

at::Tensor normal_tensor_tensor(const at::Tensor &mean, const at::Tensor &std, Gen generator) {
  const OnDevice guard(device_index_of(mean, std));
  const at::Tensor out = broadcast(promoted(mean, std), mean, std);
  const auto [seed, offset] = random_state(generator, out.numel());
  check(npu_normal_tensor_tensor(argument(mean), argument(std), seed, offset, argument(out), stream()));
  return out;
}

at::Tensor &normal_tensor_float_out(const at::Tensor &mean, double std, Gen generator, at::Tensor &out) {
  write_out(out, normal_tensor_float(mean, std, generator));
  return out;
}
at::Tensor &normal_float_tensor_out(double mean, const at::Tensor &std, Gen generator, at::Tensor &out) {
  write_out(out, normal_float_tensor(mean, std, generator));
  return out;
}
at::Tensor &normal_tensor_tensor_out(const at::Tensor &mean, const at::Tensor &std, Gen generator, at::Tensor &out) {
  write_out(out, normal_tensor_tensor(mean, std, generator));
  return out;
}

void register_random(torch::Library &m) {
  if (available("normal")) {
    m.impl("normal_", TORCH_FN(normal_));
    m.impl("log_normal_", TORCH_FN(log_normal_));
  }
  if (available("uniform")) {
    m.impl("uniform_", TORCH_FN(uniform_));
    m.impl("cauchy_", TORCH_FN(cauchy_));
  }
  if (available("random_range")) {
    m.impl("random_.from", TORCH_FN(random_from));
    m.impl("random_.to", TORCH_FN(random_to));
  }
  if (available("random_whole"))
    m.impl("random_", TORCH_FN(random_));
  if (available("bernoulli_scalar"))
    m.impl("bernoulli_.float", TORCH_FN(bernoulli_float));
  if (available("bernoulli_tensor")) {
    m.impl("bernoulli_.Tensor", TORCH_FN(bernoulli_tensor));
    m.impl("bernoulli.out", TORCH_FN(bernoulli_out));
  }
  if (available("exponential")) {
    m.impl("exponential_", TORCH_FN(exponential_));
    m.impl("geometric_", TORCH_FN(geometric_));
  }
  if (available("randperm"))
    m.impl("randperm.generator_out", TORCH_FN(randperm_out));
  if (available("multinomial")) {
    m.impl("multinomial", TORCH_FN(draw));
    m.impl("multinomial.out", TORCH_FN(multinomial_out));
  }
  if (available("normal_tensor_float")) {
    m.impl("normal.Tensor_float", TORCH_FN(normal_tensor_float));
    m.impl("normal.Tensor_float_out", TORCH_FN(normal_tensor_float_out));
  }
  if (available("normal_float_tensor")) {
    m.impl("normal.float_Tensor", TORCH_FN(normal_float_tensor));
    m.impl("normal.float_Tensor_out", TORCH_FN(normal_float_tensor_out));
  }
  if (available("normal_tensor_tensor")) {
    m.impl("normal.Tensor_Tensor", TORCH_FN(normal_tensor_tensor));
    m.impl("normal.Tensor_Tensor_out", TORCH_FN(normal_tensor_tensor_out));
  }
}
const Registrar registrar(&register_random);

} // namespace
} // namespace npu
