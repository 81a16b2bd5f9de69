/* Elementwise functions made of other operators. See composed.h.
 *
 * Methods: gamma functions shift small arguments up to 10 and sum Stirling's series there, and reflect negative ones; Bessel functions
 * integrate exp(x (cos t - 1)) over a period, which the trapezoid rule does to the last digit, and sum Hankel's series for large x. */
#include "bridge/operators/composed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/erfc.h>
#include <ATen/ops/erfinv.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gcd.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/round.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "bridge/operators/operand.h"

namespace npu {
namespace {

using at::Tensor;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
constexpr double pi = 3.14159265358979323846, root_half = 0.70710678118654752440;
constexpr int shift = 10; // from here Stirling's series is exact to the last digits

Tensor wide(const Tensor &self) { return self.to(at::kDouble); }
Tensor choose(const Tensor &condition, const Tensor &yes, const Tensor &no) { return at::where(condition, yes, no); }
Tensor choose(const Tensor &condition, double yes, const Tensor &no) { return at::where(condition, at::full_like(no, yes), no); }

/* coefficients[0] + x * (coefficients[1] + ...) */
template <size_t count> Tensor polynomial(const Tensor &x, const double (&coefficients)[count]) {
  Tensor sum = at::full_like(x, coefficients[count - 1]);
  for (size_t i = count - 1; i-- > 0;)
    sum.mul_(x).add_(coefficients[i]);
  return sum;
}

/* log Gamma of x > 0 */
Tensor lgamma_positive(const Tensor &x) {
  static constexpr double series[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  const Tensor small = x < shift;
  Tensor product = x;
  for (int k = 1; k < shift; ++k)
    product = product * (x + k);
  const Tensor z = choose(small, x + shift, x), inverse = z.reciprocal();
  const Tensor stirling = (z - 0.5) * z.log() - z + 0.5 * std::log(2 * pi) + inverse * polynomial(inverse * inverse, series);
  return choose(small, stirling - product.log(), stirling);
}

/* |sin(pi x)|, 0 at integers */
Tensor sine_of_turns(const Tensor &x) { return ((x - at::round(x)) * pi).sin().abs(); }

Tensor lgamma_wide(const Tensor &x) {
  const Tensor negative = x < 0.5, positive = lgamma_positive(choose(negative, 1 - x, x));
  const Tensor pole = at::logical_and(x <= 0, x == at::floor(x)); // -inf too
  return choose(at::logical_or(pole, at::isinf(x)), infinity,
                choose(negative, std::log(pi) - sine_of_turns(x).log() - positive, positive));
}

/* digamma of x > 0 */
Tensor digamma_positive(const Tensor &x) {
  static constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  const Tensor small = x < shift;
  Tensor sum = x.reciprocal();
  for (int k = 1; k < shift; ++k)
    sum = sum + (x + k).reciprocal();
  const Tensor z = choose(small, x + shift, x), inverse = z.reciprocal(), square = inverse * inverse;
  const Tensor limit = z.log() - 0.5 * inverse - square * polynomial(square, series);
  return choose(small, limit - sum, limit);
}

Tensor digamma_wide(const Tensor &x) {
  const Tensor negative = x < 0, positive = digamma_positive(choose(negative, 1 - x, x)), part = x - x.trunc();
  const Tensor reflected = positive - pi / (part * pi).tan();
  const Tensor pole = at::logical_and(negative, part == 0);
  return choose(x == 0, choose(at::signbit(x), infinity, at::full_like(x, -infinity)),
                choose(pole, nan, choose(negative, reflected, positive)));
}

/* Hurwitz's zeta function of q > 0, by Euler's and Maclaurin's formula from q + shift on. */
Tensor zeta_positive(const Tensor &s, const Tensor &q) {
  static constexpr double bernoulli[] = {1.0 / 12,       -1.0 / 720,     1.0 / 30240,
                                         -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0};
  Tensor sum = at::pow(q, -s);
  for (int k = 1; k < shift; ++k)
    sum = sum + at::pow(q + k, -s);
  const Tensor z = q + shift, power = at::pow(z, -s);
  sum = sum + z * power / (s - 1) + 0.5 * power;
  Tensor factor = s * power / z;
  for (int k = 0; k < 6; ++k) {
    sum = sum + bernoulli[k] * factor;
    factor = factor * (s + (2 * k + 1)) * (s + (2 * k + 2)) / (z * z);
  }
  return choose(q == infinity, 0.0, sum);
}

/* Below zero there is a value for whole s only: the terms below zero mirror those from 1 - part up to -q. */
Tensor zeta_wide(const Tensor &s, const Tensor &q) {
  const Tensor below = q <= 0, part = q - at::floor(q), odd = at::floor(s * 0.5) * 2 != s;
  const Tensor mirrored = zeta_positive(s, choose(below, 1 - part, q)) - zeta_positive(s, choose(below, 1 - q, q));
  const Tensor sum = zeta_positive(s, choose(below, part, q)) + choose(below, choose(odd, -mirrored, mirrored), at::zeros_like(q));
  const Tensor fits =
      choose(at::logical_and(below, s != at::floor(s)), nan, choose(at::logical_and(below, part == 0), infinity, sum));
  return choose(s == 1, infinity, choose(at::logical_or(s < 1, at::logical_or(at::isnan(s), at::isnan(q))), nan, fits));
}

Tensor trigamma_wide(const Tensor &x) {
  static constexpr double series[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  const Tensor negative = x < 0.5, y = choose(negative, 1 - x, x), small = y < shift;
  Tensor sum = at::zeros_like(x);
  for (int k = 0; k < shift; ++k)
    sum = sum + (y + k).pow(-2);
  const Tensor z = choose(small, y + shift, y), inverse = z.reciprocal(), square = inverse * inverse;
  const Tensor limit = inverse + 0.5 * square + inverse * square * polynomial(square, series);
  const Tensor positive = choose(small, limit + sum, limit);
  return choose(negative, pi * pi / sine_of_turns(x).square() - positive, positive);
}

/* exp(-|x|) I_order(x) for order 0 and 1 */
Tensor bessel_scaled(const Tensor &x, int order) {
  constexpr int points = 64, terms = 16;
  constexpr double middle = 30.0;
  const Tensor size = x.abs(), near = size.clamp_max(middle), far = size.clamp_min(middle);
  Tensor integral = at::zeros_like(size);
  for (int k = 0; k <= points / 2; ++k) { // the period's second half mirrors the first
    const double cosine = std::cos(2 * pi * k / points), weight = (k == 0 || k == points / 2 ? 1.0 : 2.0) / points;
    integral.add_((near * (cosine - 1)).exp(), order ? weight * cosine : weight);
  }
  Tensor hankel = at::ones_like(size), term = at::ones_like(size);
  for (int k = 1; k <= terms; ++k) {
    const double odd = 2 * k - 1;
    term = term * ((odd * odd - 4.0 * order) / (8.0 * k)) / far;
    hankel = hankel + term;
  }
  const Tensor result = choose(size > middle, hankel / (far * (2 * pi)).sqrt(), choose(at::isnan(x), nan, integral));
  return order ? choose(x < 0, -result, result) : result;
}

/* exp(x^2) erfc(x) */
Tensor erfcx_wide(const Tensor &x) {
  static constexpr double series[] = {1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0};
  const Tensor far = x > 12, large = choose(far, x, at::full_like(x, 12.0)), near = choose(far, 0.0, x);
  const Tensor limit = polynomial((2 * large * large).reciprocal(), series) / (large * std::sqrt(pi));
  return choose(far, limit, (near * near).exp() * at::erfc(near));
}

/* The normal distribution's quantile: erfinv, then two steps of Newton's method in the lower tail, where erfc loses no digits. */
Tensor ndtri_wide(const Tensor &p) {
  const Tensor tail = at::minimum(p, 1 - p);
  Tensor x = at::erfinv(2 * tail - 1) / root_half;
  x = choose(tail < 1e-12, -(-2 * tail.log()).sqrt(), x);
  for (int step = 0; step < 6; ++step) {
    const Tensor density = (-0.5 * x * x).exp() / std::sqrt(2 * pi);
    const Tensor correction = (0.5 * at::erfc(-x * root_half) - tail) / density;
    x = x - correction / (1 + 0.5 * x * correction); // Halley's: converges from the rough start of tiny tails too
  }
  x = choose(p > 0.5, -x, x);
  x = choose(p == 0, -infinity, choose(p == 1, infinity, x));
  return choose(at::logical_or(p < 0, p > 1), nan, x);
}

at::ScalarType bits_of(at::ScalarType type) { return type == at::kDouble ? at::kLong : type == at::kFloat ? at::kInt : at::kShort; }

} // namespace

void write_lgamma(const Tensor &self, const Tensor &out) { out.copy_(lgamma_wide(wide(self))); }
void write_digamma(const Tensor &self, const Tensor &out) { out.copy_(digamma_wide(wide(self))); }

void write_polygamma(int64_t n, const Tensor &self, const Tensor &out) {
  const Tensor x = wide(self);
  if (n == 0) {
    out.copy_(digamma_wide(x));
  } else if (n == 1) {
    out.copy_(trigamma_wide(x));
  } else {
    const double order = static_cast<double>(n) + 1, factor = (n % 2 ? 1 : -1) * std::exp(std::lgamma(order));
    out.copy_(factor * zeta_wide(at::full_like(x, order), x));
  }
}

void write_zeta(const Tensor &self, const Tensor &other, const Tensor &out) {
  out.copy_(zeta_wide(wide(self).to(out.device()).expand(out.sizes()), wide(other).to(out.device()).expand(out.sizes())));
}

void write_i0e(const Tensor &self, const Tensor &out) { out.copy_(bessel_scaled(wide(self), 0)); }
void write_i1e(const Tensor &self, const Tensor &out) { out.copy_(bessel_scaled(wide(self), 1)); }
void write_i0(const Tensor &self, const Tensor &out) {
  const Tensor x = wide(self);
  out.copy_(bessel_scaled(x, 0) * x.abs().exp());
}
void write_i1(const Tensor &self, const Tensor &out) {
  const Tensor x = wide(self);
  out.copy_(bessel_scaled(x, 1) * x.abs().exp());
}

void write_erfcx(const Tensor &self, const Tensor &out) { out.copy_(erfcx_wide(wide(self))); }
void write_ndtri(const Tensor &self, const Tensor &out) { out.copy_(ndtri_wide(wide(self))); }

void write_log_ndtr(const Tensor &self, const Tensor &out) {
  const Tensor x = wide(self) * root_half, low = x < -root_half;
  const Tensor tail = (erfcx_wide(choose(low, -x, at::ones_like(x))) * 0.5).log() - x * x;
  out.copy_(choose(low, tail, at::log1p(at::erfc(x) * -0.5)));
}

void write_entr(const Tensor &self, const Tensor &out) {
  const Tensor x = wide(self);
  out.copy_(choose(x < 0, -infinity, choose(x == 0, 0.0, -x * x.log())));
}

void write_xlog1py(const Tensor &self, const Tensor &other, const Tensor &out) {
  const Tensor x = wide(self), y = wide(other), product = x * at::log1p(y);
  out.copy_(choose(at::isnan(y), nan, choose(x == 0, 0.0, product)));
}

void write_copysign(const Tensor &self, const Tensor &other, const Tensor &out) {
  const Tensor size = self.to(out.scalar_type()).abs();
  out.copy_(choose(at::signbit(other), -size, size));
}

void write_fmax(const Tensor &self, const Tensor &other, const Tensor &out) {
  const at::ScalarType type = at::result_type(self, other);
  const Tensor a = self.to(type), b = other.to(type);
  out.copy_(choose(at::logical_or(a >= b, b != b), a, b));
}

void write_fmin(const Tensor &self, const Tensor &other, const Tensor &out) {
  const at::ScalarType type = at::result_type(self, other);
  const Tensor a = self.to(type), b = other.to(type);
  out.copy_(choose(at::logical_or(a <= b, b != b), a, b));
}

void write_heaviside(const Tensor &self, const Tensor &values, const Tensor &out) {
  out.copy_(choose(self == 0, values.to(self.scalar_type()), (self > 0).to(self.scalar_type())));
}

void write_hypot(const Tensor &self, const Tensor &other, const Tensor &out) {
  const Tensor a = wide(self).abs(), b = wide(other).abs(), large = at::maximum(a, b), small = at::minimum(a, b);
  const Tensor ratio = choose(large == 0, 0.0, small / large), result = large * (ratio * ratio + 1).sqrt();
  out.copy_(choose(at::logical_or(a == infinity, b == infinity), infinity, result));
}

void write_lcm(const Tensor &self, const Tensor &other, const Tensor &out) {
  const at::ScalarType type = at::result_type(self, other);
  const Tensor a = self.to(type), b = other.to(type), divisor = at::gcd(a, b), none = divisor == 0;
  const Tensor multiple = (a.div(at::where(none, at::ones_like(divisor), divisor), "trunc") * b).abs();
  out.copy_(at::where(none, at::zeros_like(multiple), multiple));
}

/* As integers, neighbouring floats of one sign are neighbours. */
void write_nextafter(const Tensor &self, const Tensor &other, const Tensor &out) {
  const at::ScalarType type = at::result_type(self, other), bits = bits_of(type);
  const Tensor x = self.to(type).expand(out.sizes()).contiguous(), y = other.to(type).expand(out.sizes()).contiguous();
  const Tensor at_x = x.view(bits), at_y = y.view(bits), up = (x < y) == (x > 0);
  const Tensor moved = at_x + (up.to(bits) * 2 - 1);
  const int64_t sign = bits == at::kLong ? INT64_MIN : bits == at::kInt ? INT32_MIN : INT16_MIN; // the smallest number of y's sign
  const Tensor least = at::where(at::signbit(y), at::full_like(at_x, sign + 1), at::ones_like(at_x));
  const Tensor from_zero = at::where(x == 0, least, moved), result = at::where(x == y, at_y, from_zero).view(type);
  out.copy_(at::where(at::logical_or(x != x, y != y), x + y, result));
}

} // namespace npu
