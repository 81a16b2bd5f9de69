/* Decompositions and systems of equations; operators.yaml calls these behind torch's meta functions, which made `outputs`.
 *
 * CANN has inverse, Cholesky, QR, singular values, determinants and triangular systems. LU, which torch's gradients want, and what
 * follows from it are composed of other operators, one column a step. */
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string_view>

namespace npu {

using Two = std::array<at::Tensor, 2>;
using Triple = std::array<at::Tensor, 3>;
using Four = std::array<at::Tensor, 4>;

void invert(const at::Tensor &A, bool check_errors, const Two &outputs);
void factor_positive(const at::Tensor &self, bool upper, bool check_errors, const Two &outputs);
void factor_orthogonal(const at::Tensor &A, std::string_view mode, const Two &outputs);
void singular_values(const at::Tensor &A, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver,
                     const Triple &outputs);
/* u, s and vh of the smaller form, NaN where the matrix has numbers that aren't finite. */
Triple decomposed(const at::Tensor &A);
void hermitian_eigenvalues(const at::Tensor &A, std::string_view uplo, bool compute_v, const Two &outputs);
void factor_lu(const at::Tensor &A, bool pivot, bool check_errors, const Triple &outputs);
void factors_of_lu(const at::Tensor &A, bool pivot, const Triple &outputs);
void unpack_lu(const at::Tensor &LU, const at::Tensor &pivots, bool unpack_data, bool unpack_pivots, const Triple &outputs);
at::Tensor solved_by_lu(const at::Tensor &LU, const at::Tensor &pivots, const at::Tensor &B, bool left, bool adjoint);
void solve(const at::Tensor &A, const at::Tensor &B, bool left, bool check_errors, const Four &outputs);
void determinant(const at::Tensor &A, const Triple &outputs);
void log_determinant(const at::Tensor &A, const Four &outputs);
void solve_triangular(const at::Tensor &self, const at::Tensor &A, bool upper, bool transpose, bool unitriangular,
                      const Two &outputs);

} // namespace npu
