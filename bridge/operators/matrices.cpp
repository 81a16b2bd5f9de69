/* Decompositions and systems of equations. See matrices.h. */
#include "bridge/operators/matrices.h"

#include <ATen/ATen.h>
#include <ATen/native/LinearAlgebraUtils.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {

using at::Tensor;

/* --- info: 1 + the first row that is marked, 0 where none is ------------------------------------------------------------- */

static Tensor first_marked(const Tensor &mask) {
  if (mask.size(-1) == 0)
    return at::zeros(mask.sizes().slice(0, mask.dim() - 1), mask.options().dtype(at::kInt));
  const Tensor numbers = mask.to(at::kInt);
  return numbers.argmax(-1).add_(1).mul_(numbers.amax(-1)).to(at::kInt);
}

/* Our decompositions leave NaN on the diagonal from where they stopped. */
static Tensor first_nan(const Tensor &result) { return first_marked(at::isnan(result.diagonal(0, -2, -1))); }

static void report(bool wanted, const Tensor &info, const char *name, const Tensor &A) {
  if (wanted)
    at::_linalg_check_errors(info, name, A.dim() == 2);
}

/* --- CANN's decompositions ------------------------------------------------------------------------------------------------ */

void invert(const Tensor &A, bool check_errors, const Two &outputs) {
  const auto &[inverse, info] = outputs;
  check(npu_inverse(argument(A), written(inverse), stream()));
  const Tensor sound = at::isfinite(A).flatten(-2).all(-1); // NaN and Inf give NaN, which isn't singular
  info.copy_(first_nan(inverse).mul_(sound));
  report(check_errors, info, "linalg.inv_ex", A);
}

void factor_positive(const Tensor &self, bool upper, bool check_errors, const Two &outputs) {
  const auto &[factor, info] = outputs;
  check(npu_cholesky(argument(self), upper, written(factor), stream()));
  info.copy_(first_nan(factor));
  report(check_errors, info, "linalg.cholesky_ex", self);
}

void factor_orthogonal(const Tensor &A, std::string_view mode, const Two &outputs) {
  const auto [has_q, reduced] = at::native::_parse_qr_mode(mode);
  const int64_t number = !has_q ? 2 : reduced ? 0 : 1;
  check(npu_qr(argument(A), number, written(has_q ? outputs[0] : Tensor()), written(outputs[1]), stream()));
}

static void decompose(const Tensor &A, bool full_matrices, bool compute_uv, const Triple &outputs) {
  const auto &[u, s, vh] = outputs;
  const Tensor v = compute_uv ? at::empty_like(vh.mT(), at::MemoryFormat::Contiguous) : Tensor();
  check(npu_svd(argument(A), full_matrices, compute_uv, written(s), written(compute_uv ? u : Tensor()), written(v), stream()));
  if (compute_uv)
    vh.copy_(v.mH());
}

Triple decomposed(const Tensor &A) {
  const int64_t least = std::min(A.size(-2), A.size(-1));
  std::vector<int64_t> sizes(A.sizes().begin(), A.sizes().end() - 2);
  const auto made = [&](std::initializer_list<int64_t> last, at::ScalarType type) {
    std::vector<int64_t> all = sizes;
    all.insert(all.end(), last);
    return at::empty(all, A.options().dtype(type));
  };
  const Triple outputs = {made({A.size(-2), least}, A.scalar_type()), made({least}, c10::toRealValueType(A.scalar_type())),
                          made({least, A.size(-1)}, A.scalar_type())};
  decompose(A, false, true, outputs);
  return outputs;
}

/* LAPACK's code for numbers that aren't finite, which torch has words for. */
constexpr int64_t kNotFinite = -4;

void singular_values(const Tensor &A, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver,
                     const Triple &outputs) {
  TORCH_CHECK(!driver, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
  decompose(A, full_matrices, compute_uv, outputs);
  report(true, at::isnan(outputs[1]).any(-1).to(at::kInt).mul_(kNotFinite), "linalg.svd", A);
}

/* A Hermitian matrix moved by its norm has no negative eigenvalues, and so its singular values are them. */
void hermitian_eigenvalues(const Tensor &A, std::string_view uplo, bool compute_v, const Two &outputs) {
  const bool lower = uplo == "L" || uplo == "l";
  const Tensor half = lower ? A.tril(-1) : A.triu(1),
               diagonal = A.is_complex() ? at::real(A.diagonal(0, -2, -1)) : A.diagonal(0, -2, -1);
  const auto wide = A.is_complex() ? at::kComplexDouble : at::kDouble;
  Tensor whole = half.to(wide) + half.mH().to(wide) + at::diag_embed(diagonal.to(wide));
  const Tensor norm = at::linalg_vector_norm(whole, 2, at::IntArrayRef{-2, -1}, true);
  report(true, at::isfinite(norm).logical_not_().squeeze(-1).squeeze(-1).to(at::kInt), "linalg.eigh", A);
  whole.diagonal(0, -2, -1).add_(norm.squeeze(-1));
  const auto [u, s, vh] = at::_linalg_svd(whole, false, compute_v);
  outputs[0].copy_(at::flip(s - norm.squeeze(-1), -1));
  if (compute_v)
    outputs[1].copy_(at::flip(u, -1));
}

/* --- triangular systems ----------------------------------------------------------------------------------------------------- */

/* x with a x = b, in one batch. */
static Tensor solved(const Tensor &a, const Tensor &b, bool upper, bool unit) {
  const auto [right, left] = at::native::_linalg_broadcast_batch_dims(b, a, nullptr);
  const Tensor x = empty(right.sizes(), b.scalar_type()), copy = empty(left.sizes(), a.scalar_type());
  if (x.numel() > 0)
    check(npu_triangular_solve(argument(right), argument(left), upper, false, unit, argument(x), argument(copy), stream()));
  return x;
}

void solve_triangular(const Tensor &self, const Tensor &A, bool upper, bool transpose, bool unitriangular, const Two &outputs) {
  const auto [right, left] = at::native::_linalg_broadcast_batch_dims(self, A, nullptr);
  if (outputs[0].numel() > 0)
    check(npu_triangular_solve(argument(right), argument(left), upper, transpose, unitriangular, written(outputs[0]),
                               written(outputs[1]), stream()));
  else
    outputs[1].copy_(left);
}

static Tensor triangular_solved(const Tensor &A, const Tensor &B, bool upper, bool left, bool unitriangular) {
  at::native::checkInputsSolver(A, B, left, "linalg.solve_triangular");
  const OnDevice guard(device_index_of(A));
  const auto [right, matrix] = at::native::_linalg_broadcast_batch_dims(B, A, nullptr);
  return left ? solved(matrix, right, upper, unitriangular) : solved(matrix.mT(), right.mT(), !upper, unitriangular).mT();
}

static Tensor &triangular_solved_into(const Tensor &A, const Tensor &B, bool upper, bool left, bool unitriangular, Tensor &out) {
  TORCH_CHECK(out.scalar_type() == B.scalar_type(), "expected scalar type ", B.scalar_type(), " but found ", out.scalar_type());
  write_out(out, triangular_solved(A, B, upper, left, unitriangular));
  return out;
}

static Tensor solved_by_cholesky(const Tensor &self, const Tensor &A, bool upper) {
  const OnDevice guard(device_index_of(self));
  return upper ? solved(A, solved(A.mH(), self, false, false), true, false)
               : solved(A.mH(), solved(A, self, false, false), true, false);
}

static Tensor inverse_by_cholesky(const Tensor &self, bool upper) {
  at::native::squareCheckInputs(self, "cholesky_inverse");
  const OnDevice guard(device_index_of(self));
  return solved_by_cholesky(at::eye(self.size(-1), self.options()).expand_as(self), self, upper);
}

static Tensor &inverse_by_cholesky_into(const Tensor &self, bool upper, Tensor &out) {
  write_out(out, inverse_by_cholesky(self, upper));
  return out;
}

/* --- LU ----------------------------------------------------------------------------------------------------------------------- */

/* What LAPACK compares candidates by. */
static Tensor sizes_of(const Tensor &x) { return x.is_complex() ? at::abs(at::real(x)).add_(at::abs(at::imag(x))) : at::abs(x); }

/* Swaps row k with the row of the largest number at or below it in column k. */
static void take_pivot(const Tensor &lu, int64_t k, const Tensor &pivot) {
  const Tensor column = lu.select(-1, k).narrow(-1, k, lu.size(-2) - k);
  const Tensor place = sizes_of(column).argmax(-1).add_(k);
  pivot.copy_(place + 1);
  std::vector<int64_t> row = lu.sizes().vec();
  row[row.size() - 2] = 1;
  const Tensor index = place.unsqueeze(-1).unsqueeze(-1).expand(row);
  const Tensor chosen = lu.gather(-2, index), kept = lu.narrow(-2, k, 1).clone();
  lu.scatter_(-2, index, kept);
  lu.narrow(-2, k, 1).copy_(chosen);
}

static void lu_in_place(const Tensor &lu, const Tensor &pivots, bool pivot) {
  const int64_t m = lu.size(-2), n = lu.size(-1);
  for (int64_t k = 0; k < std::min(m, n) && lu.numel() > 0; ++k) {
    if (pivot)
      take_pivot(lu, k, pivots.select(-1, k));
    else
      pivots.select(-1, k).fill_(k + 1);
    if (k + 1 == m)
      continue;
    const Tensor top = lu.select(-2, k).narrow(-1, k, 1), below = lu.select(-1, k).narrow(-1, k + 1, m - k - 1);
    below.copy_(at::where(top.eq(0), below, below / top));
    if (k + 1 < n)
      lu.narrow(-2, k + 1, m - k - 1)
          .narrow(-1, k + 1, n - k - 1)
          .sub_(below.unsqueeze(-1) * lu.select(-2, k).narrow(-1, k + 1, n - k - 1).unsqueeze(-2));
  }
}

void factor_lu(const Tensor &A, bool pivot, bool check_errors, const Triple &outputs) {
  const auto &[lu, pivots, info] = outputs;
  const Tensor work = A.clone(at::MemoryFormat::Contiguous);
  lu_in_place(work, pivots, pivot);
  lu.copy_(work);
  info.copy_(first_marked(work.diagonal(0, -2, -1).eq(0)));
  report(check_errors, info, "torch.linalg.lu_factor_ex", A);
}

/* Which row of the matrix stands in each row of L U: the swaps, in their order. */
static Tensor order_of(const Tensor &pivots, int64_t rows) {
  std::vector<int64_t> sizes = pivots.sizes().vec();
  sizes.back() = rows;
  const Tensor order = at::arange(rows, pivots.options().dtype(at::kLong)).expand(sizes).clone(at::MemoryFormat::Contiguous);
  const Tensor partners = pivots.to(at::kLong).sub_(1);
  for (int64_t k = 0; k < partners.size(-1) && order.numel() > 0; ++k) {
    const Tensor here = order.narrow(-1, k, 1), index = partners.narrow(-1, k, 1);
    const Tensor chosen = order.gather(-1, index), kept = here.clone();
    order.scatter_(-1, index, kept);
    here.copy_(chosen);
  }
  return order;
}

void unpack_lu(const Tensor &LU, const Tensor &pivots, bool unpack_data, bool unpack_pivots, const Triple &outputs) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  if (unpack_data) {
    outputs[1].copy_(LU.narrow(-1, 0, k).tril(-1));
    outputs[1].diagonal(0, -2, -1).fill_(1);
    outputs[2].copy_(LU.narrow(-2, 0, k).triu());
  }
  if (unpack_pivots)
    outputs[0].zero_().scatter_(-2, order_of(pivots, m).unsqueeze(-2), 1);
}

void factors_of_lu(const Tensor &A, bool pivot, const Triple &outputs) {
  const auto [lu, pivots, info] = at::linalg_lu_factor_ex(A, pivot);
  unpack_lu(lu, pivots, true, pivot, outputs);
}

/* With P^T A = L U, rows taken in `order`: A x = b is L U x = P^T b, and A^H x = b is U^H L^H (P^T x) = b. */
Tensor solved_by_lu(const Tensor &LU, const Tensor &pivots, const Tensor &B, bool left, bool adjoint) {
  if (!left)
    return solved_by_lu(LU, pivots, B.mH(), true, !adjoint).mH();
  const auto [right, matrix] = at::native::_linalg_broadcast_batch_dims(B, LU, nullptr);
  if (right.numel() == 0)
    return at::zeros_like(right, at::MemoryFormat::Contiguous);
  const Tensor index = order_of(pivots, LU.size(-1)).unsqueeze(-1).expand(right.sizes());
  if (!adjoint)
    return solved(matrix, solved(matrix, right.gather(-2, index), false, true), true, false);
  const Tensor turned = matrix.mH(), value = solved(turned, solved(turned, right, false, false), true, true);
  return at::zeros_like(value).scatter_(-2, index, value);
}

/* torch's gradients know which of the two was factored: the transpose of a real row-major matrix, else the matrix. */
static bool factors_transpose(const Tensor &A) { return A.is_contiguous() && !A.is_complex(); }

void solve(const Tensor &A, const Tensor &B, bool left, bool check_errors, const Four &outputs) {
  const auto &[result, lu, pivots, info] = outputs;
  const bool transpose = factors_transpose(A), is_vector = at::native::linalg_solve_is_vector_rhs(A, B);
  factor_lu(transpose ? A.mT() : A, true, false, {lu, pivots, info});
  report(check_errors, info, "torch.linalg.solve_ex", A);
  const Tensor x = solved_by_lu(lu, pivots, is_vector ? B.unsqueeze(-1) : B, left, transpose);
  result.copy_(is_vector ? x.squeeze(-1) : x);
}

/* -1 to the number of rows that were swapped. */
static Tensor parity(const Tensor &pivots) {
  const Tensor own = at::arange(1, pivots.size(-1) + 1, pivots.options());
  return pivots.ne(own).sum(-1).remainder(2).mul(-2).add(1);
}

void determinant(const Tensor &A, const Triple &outputs) {
  const auto &[result, lu, pivots] = outputs;
  lu.copy_(factors_transpose(A) ? A.mT() : A);
  lu_in_place(lu, pivots, true);
  result.copy_(at::prod(lu.diagonal(0, -2, -1), -1).mul_(parity(pivots)));
}

void log_determinant(const Tensor &A, const Four &outputs) {
  const auto &[sign, logarithm, lu, pivots] = outputs;
  check(npu_slogdet(argument(A), written(sign), written(logarithm), stream()));
  lu.copy_(factors_transpose(A) ? A.mT() : A);
  lu_in_place(lu, pivots, true);
}

static void register_matrices(torch::Library &m) {
  if (available("triangular_solve")) {
    m.impl("linalg_solve_triangular", TORCH_FN(triangular_solved));
    m.impl("linalg_solve_triangular.out", TORCH_FN(triangular_solved_into));
    m.impl("_cholesky_solve_helper", TORCH_FN(solved_by_cholesky));
    m.impl("cholesky_inverse", TORCH_FN(inverse_by_cholesky));
    m.impl("cholesky_inverse.out", TORCH_FN(inverse_by_cholesky_into));
  }
}
static const Registrar registrar(&register_matrices);

} // namespace npu
