/* Functions that CANN has no operator for, made of others. operators.yaml calls the write_ functions under `run`.
 *
 * Invariant: the output has the shape and type that torch's meta function wants and may be an input's memory; it is written last. Float
 * types up to f32 are computed in f64, so the compositions lose nothing that shows. */
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace npu {

void write_lgamma(const at::Tensor &self, const at::Tensor &out);
void write_digamma(const at::Tensor &self, const at::Tensor &out);
void write_polygamma(int64_t n, const at::Tensor &self, const at::Tensor &out);
void write_zeta(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_i0(const at::Tensor &self, const at::Tensor &out);
void write_i0e(const at::Tensor &self, const at::Tensor &out);
void write_i1(const at::Tensor &self, const at::Tensor &out);
void write_i1e(const at::Tensor &self, const at::Tensor &out);
void write_erfcx(const at::Tensor &self, const at::Tensor &out);
void write_ndtri(const at::Tensor &self, const at::Tensor &out);
void write_log_ndtr(const at::Tensor &self, const at::Tensor &out);
void write_entr(const at::Tensor &self, const at::Tensor &out);
void write_xlog1py(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_copysign(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_fmax(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_fmin(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_heaviside(const at::Tensor &self, const at::Tensor &values, const at::Tensor &out);
void write_hypot(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_lcm(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);
void write_nextafter(const at::Tensor &self, const at::Tensor &other, const at::Tensor &out);

void write_index_reduce(const at::Tensor &self, int64_t dim, const at::Tensor &index, const at::Tensor &source,
                        std::string_view reduce, bool include_self, const at::Tensor &out);

at::Tensor addr_of_bools(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2, const at::Scalar &beta,
                         const at::Scalar &alpha);
void write_norm_dtype(const at::Tensor &self, const std::optional<at::Scalar> &p, at::IntArrayRef dim, bool keepdim,
                      at::ScalarType dtype, const at::Tensor &out);
void write_addmm_activation(const at::Tensor &self, const at::Tensor &mat1, const at::Tensor &mat2, const at::Scalar &beta,
                            const at::Scalar &alpha, bool use_gelu, const at::Tensor &out);

/* Values, inverse and counts of runs of equal slices along a dimension. */
std::tuple<at::Tensor, at::Tensor, at::Tensor> runs_along(const at::Tensor &self, int64_t dim, bool return_inverse,
                                                          bool return_counts);

} // namespace npu
