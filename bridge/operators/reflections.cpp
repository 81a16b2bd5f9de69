/* What CANN lacks of decompositions, composed of those that it has and of products: Householder reflections as LAPACK stores them, least
 * squares, the exponential of a matrix.
 *
 * Reflections H_k = I - tau_k v_k v_k^H make Q = H_1 H_2 ... = I - V T V^H, with v_k's tail below the diagonal of column k and a
 * triangular T.
 * torch's own functions check arguments and lay out results; they call what is registered for their stubs. */
#include <ATen/ATen.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <ATen/ops/geqrf_native.h>
#include <ATen/ops/linalg_householder_product_native.h>
#include <ATen/ops/ormqr_native.h>
#include <torch/library.h>

#include "bridge/operators/matrices.h"
#include "bridge/operators/operand.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {

using at::Tensor;

static at::ScalarType double_of(const Tensor &x) { return x.is_complex() ? at::kComplexDouble : at::kDouble; }

/* --- reflections ------------------------------------------------------------------------------------------------------------- */

struct Reflections {
  Tensor V, T; // m x k with ones on the diagonal, k x k
};

/* Columns beyond tau's count are no reflections. T = D (I + S D)^-1, with D = diag(tau) and S what is above the diagonal of V^H V;
 * tau may have zeros. */
static Reflections reflections_of(const Tensor &stored, const Tensor &tau) {
  const int64_t k = tau.size(-1);
  Tensor V = stored.narrow(-1, 0, k).tril(-1);
  V.diagonal(0, -2, -1).fill_(1);
  const Tensor S = at::matmul(V.mH(), V).triu(1).mul(tau.unsqueeze(-2));
  const Tensor identity = at::eye(k, V.options()).expand_as(S);
  return {V, at::linalg_solve_triangular(S + identity, identity, true, true, true).mul(tau.unsqueeze(-1))};
}

/* The first columns of Q replace what stores its reflections. */
static Tensor &make_basis(Tensor &result, const Tensor &tau) {
  const auto [V, T] = reflections_of(result, tau);
  const int64_t n = result.size(-1);
  Tensor Q = at::matmul(V, at::matmul(T, V.narrow(-2, 0, n).mH())).neg_();
  Q.diagonal(0, -2, -1).add_(1);
  return result.copy_(Q);
}

/* other = Q other or other Q, with Q^H instead of Q if `adjoint`. */
static void apply_reflections(const Tensor &input, const Tensor &tau, const Tensor &other, bool left, bool adjoint) {
  const auto [V, T] = reflections_of(input, tau);
  const Tensor middle = adjoint ? T.mH() : T;
  other.sub_(left ? at::matmul(V, at::matmul(middle, at::matmul(V.mH(), other)))
                  : at::matmul(at::matmul(at::matmul(other, V), middle), V.mH()));
}

/* input becomes R, with the reflections below its diagonal. V and T come from Q - I = V (-T V^H), its LU factors: on the diagonal of
 * U are the -tau, whose real part is 1 at least, or 0 where nothing had to be reflected. */
static void find_reflections(const Tensor &input, const Tensor &tau) {
  const int64_t m = input.size(-2), k = tau.size(-1);
  const auto [Q, R] = at::linalg_qr(input.to(double_of(input)), "reduced");
  Tensor lu = Q.clone(at::MemoryFormat::Contiguous);
  lu.diagonal(0, -2, -1).sub_(1);
  for (int64_t i = 0; i < k; ++i) {
    const Tensor pivot = lu.select(-2, i).narrow(-1, i, 1), found = at::abs(pivot).gt(0.5);
    pivot.mul_(found);
    const Tensor below = lu.select(-1, i).narrow(-1, i + 1, m - i - 1);
    below.div_(at::where(found, pivot, 1)).mul_(found);
    if (i + 1 < k && i + 1 < m)
      lu.narrow(-2, i + 1, m - i - 1)
          .narrow(-1, i + 1, k - i - 1)
          .sub_(below.unsqueeze(-1) * lu.select(-2, i).narrow(-1, i + 1, k - i - 1).unsqueeze(-2));
  }
  tau.copy_(lu.diagonal(0, -2, -1).neg());
  input.zero_();
  input.narrow(-2, 0, k).copy_(R);
  input.narrow(-1, 0, k).add_(lu.tril(-1));
}

/* --- least squares ------------------------------------------------------------------------------------------------------------ */

/* The shortest x for which A x is nearest to b, by singular values; those below the threshold count as 0. */
static std::tuple<Tensor, Tensor, Tensor> nearest(const Tensor &A, const Tensor &b, double threshold) {
  const auto [U, S, Vh] = decomposed(A);
  const Tensor kept = S.gt(S.narrow(-1, 0, std::min<int64_t>(1, S.size(-1))) * threshold);
  const Tensor factors = at::where(kept, at::reciprocal(S), 0);
  return {at::matmul(Vh.mH(), factors.unsqueeze(-1) * at::matmul(U.mH(), b)), kept.sum(-1), S};
}

static std::tuple<Tensor &, Tensor &, Tensor &, Tensor &> least_squares(const Tensor &self, const Tensor &b,
                                                                        std::optional<double> rcond,
                                                                        std::optional<std::string_view> driver, Tensor &solution,
                                                                        Tensor &residuals, Tensor &rank, Tensor &singular_values) {
  const OnDevice guard(device_index_of(self));
  TORCH_CHECK(self.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  TORCH_CHECK(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
  TORCH_CHECK(self.scalar_type() == b.scalar_type(),
              "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype ", self.scalar_type(),
              " and other's dtype ", b.scalar_type());
  const std::string_view method = driver.value_or("gelsy");
  TORCH_CHECK(method == "gels" || method == "gelsy" || method == "gelsd" || method == "gelss",
              "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  const bool is_vector = at::native::linalg_solve_is_vector_rhs(self, b);
  const Tensor right = is_vector ? b.unsqueeze(-1) : b;
  TORCH_CHECK(right.dim() >= 2 && self.size(-2) == right.size(-2), "torch.linalg.lstsq: input.size(-2) should match other.size(-",
              is_vector ? 1 : 2, ")");
  const int64_t m = self.size(-2), n = self.size(-1);
  const at::ScalarType real = c10::toRealValueType(self.scalar_type());
  const double epsilon = real == at::kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const Tensor A = self.to(double_of(self)), B = right.to(double_of(self));
  const auto [x, count, S] = nearest(A, B, method == "gels" ? 0 : rcond.value_or(epsilon * static_cast<double>(std::max(m, n))));
  write_out(solution, (is_vector ? x.squeeze(-1) : x).to(self.scalar_type()));
  const auto nothing = self.options().dtype(real);
  const bool over = m > n && method != "gelsy" && (method == "gels" || count.eq(n).all().item<bool>());
  write_out(residuals, over ? at::abs(at::matmul(A, x) - B).square_().sum(-2).to(real) : at::empty({0}, nothing));
  write_out(rank, method == "gels" ? at::empty({0}, self.options().dtype(at::kLong)) : count);
  write_out(singular_values, method == "gelsd" || method == "gelss" ? S.to(real) : at::empty({0}, nothing));
  return {solution, residuals, rank, singular_values};
}

/* --- exponential ---------------------------------------------------------------------------------------------------------------- */

/* exp(A) = exp(A / 2^s)^(2^s), with an s for each matrix, so that neighbours in a batch don't matter; the inner one by its series, in
 * double precision. */
static Tensor exponential(const Tensor &self) {
  const OnDevice guard(device_index_of(self));
  TORCH_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2),
              "linalg.matrix_exp: A must be batches of square matrices, but they are ", self.dim() < 2 ? 0 : self.size(-2), " by ",
              self.dim() < 1 ? 0 : self.size(-1), " matrices");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  if (self.numel() == 0)
    return at::empty_like(self, at::MemoryFormat::Contiguous);
  const Tensor wide = self.to(double_of(self));
  const Tensor norm = at::abs(wide).sum(-2).amax(-1);
  const Tensor large = at::isfinite(norm).logical_and_(norm > 0.25);
  const Tensor squarings = at::where(large, norm.log2().ceil_().add_(2), at::zeros_like(norm)).unsqueeze(-1).unsqueeze(-1);
  const Tensor small = wide * at::pow(2.0, -squarings), identity = at::eye(self.size(-1), wide.options());
  Tensor sum = identity + small / 12;
  for (int order = 11; order > 0; --order) // 0.25^13 / 13! is below the last bit
    sum = identity + at::matmul(small, sum) / order;
  const int most = static_cast<int>(squarings.max().item<double>());
  for (int i = 0; i < most; ++i)
    sum = at::where(squarings > i, at::matmul(sum, sum), sum);
  return sum.to(self.scalar_type());
}

static void register_reflections(torch::Library &m) {
  m.impl("linalg_matrix_exp", TORCH_FN(exponential));
  if (available("svd"))
    m.impl("linalg_lstsq.out", TORCH_FN(least_squares));
  if (available("triangular_solve")) {
    m.impl("linalg_householder_product", TORCH_FN(at::native::linalg_householder_product));
    m.impl("linalg_householder_product.out", TORCH_FN(at::native::linalg_householder_product_out));
    m.impl("ormqr", TORCH_FN(at::native::ormqr));
    m.impl("ormqr.out", TORCH_FN(at::native::ormqr_out));
  }
  if (available("qr")) {
    m.impl("geqrf", TORCH_FN(at::native::geqrf));
    m.impl("geqrf.a", TORCH_FN(at::native::geqrf_out));
  }
}
static const Registrar registrar(&register_reflections);

} // namespace npu

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(geqrf_stub, &npu::find_reflections)
REGISTER_PRIVATEUSE1_DISPATCH(orgqr_stub, &npu::make_basis)
REGISTER_PRIVATEUSE1_DISPATCH(ormqr_stub, &npu::apply_reflections)
} // namespace at::native
