/* Operators that torch implements for its own devices only and that one C function doesn't cover: made of others where it doesn't.
 *
 * Invariant: each reports bad input in torch's words before it makes anything. */
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/take.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using at::Scalar;
using at::Tensor;

/* --- addbmm: beta * self + alpha * (the sum of all products) --- */

void check_addbmm(const Tensor &self, const Tensor &batch1, const Tensor &batch2) {
  TORCH_CHECK(batch1.dim() == 3, "batch1 must be a 3D tensor");
  TORCH_CHECK(batch2.dim() == 3, "batch2 must be a 3D tensor");
  TORCH_CHECK(batch1.size(0) == batch2.size(0), "batch1 and batch2 must have same number of batches, got ", batch1.size(0), " and ",
              batch2.size(0));
  TORCH_CHECK(batch1.size(2) == batch2.size(1), "Incompatible matrix sizes for bmm (", batch1.size(1), "x", batch1.size(2), " and ",
              batch2.size(1), "x", batch2.size(2), ")");
  check_factor_types(batch1, batch2);
  check_factor_types(self, batch1);
}

Tensor summed_products(const Tensor &self, const Tensor &batch1, const Tensor &batch2, const Scalar &beta, const Scalar &alpha) {
  check_addbmm(self, batch1, batch2);
  const OnDevice guard(device_index_of(self, batch1, batch2));
  const std::array<int64_t, 2> sizes{batch1.size(1), batch2.size(2)};
  const c10::ScalarType type = self.scalar_type();
  if (c10::isFloatingType(type) && real_scalar(alpha) && real_scalar(beta) && batch1.numel() > 0 && batch2.numel() > 0) {
    Tensor result = empty(sizes, type);
    check(npu_addbmm(argument(self), argument(batch1), argument(batch2), argument(beta), argument(alpha), argument(result),
                     stream()));
    return result;
  }
  const Tensor product = at::mul(at::sum(at::bmm(batch1, batch2), {0}, false, type), alpha).to(type);
  if (beta.toComplexDouble() == 0.0) // whatever self holds, NaN too
    return product;
  return at::add(at::mul(self.expand(sizes), beta).to(type), product);
}

Tensor &summed_products_into(const Tensor &self, const Tensor &batch1, const Tensor &batch2, const Scalar &beta,
                             const Scalar &alpha, Tensor &out) {
  check_out_type(out, self.scalar_type(), "addbmm");
  write_out(out, summed_products(self, batch1, batch2, beta, alpha));
  return out;
}

Tensor &summed_products_inplace(Tensor &self, const Tensor &batch1, const Tensor &batch2, const Scalar &beta, const Scalar &alpha) {
  const Tensor result = summed_products(self, batch1, batch2, beta, alpha);
  check_inplace_result(self, result);
  return self.copy_(result);
}

/* --- isin: what is looked for is sorted once --- */

void check_membership_type(const Tensor &tensor) {
  const c10::ScalarType type = tensor.scalar_type();
  TORCH_CHECK(type != at::kBool && !c10::isComplexType(type), "Unsupported input type encountered for isin(): ", type);
}

/* NaN equals nothing, and among sorted numbers it would lead the search astray: the least number stands in for it. */
Tensor sorted_numbers(const Tensor &list) {
  const Tensor sorted = std::get<0>(at::sort(list));
  return c10::isFloatingType(list.scalar_type()) ? std::get<0>(at::sort(at::where(at::eq(sorted, sorted), sorted, sorted[0])))
                                                 : sorted;
}

Tensor membership(const Tensor &elements, const Tensor &wanted, bool, bool invert) {
  check_membership_type(elements);
  check_membership_type(wanted);
  if (wanted.numel() == 0 || elements.numel() == 0)
    return at::full_like(elements, invert, elements.options().dtype(at::kBool), at::MemoryFormat::Contiguous);
  const c10::ScalarType type = at::result_type(elements, wanted);
  const Tensor sorted = sorted_numbers(wanted.reshape({-1}).to(type)), values = elements.to(type).contiguous();
  const Tensor places = at::searchsorted(sorted, values).clamp_max_(sorted.numel() - 1);
  const Tensor nearest = at::take(sorted, places);
  return invert ? at::ne(nearest, values) : at::eq(nearest, values);
}

Tensor &membership_into(const Tensor &elements, const Tensor &wanted, bool assume_unique, bool invert, Tensor &out) {
  check_out_type(out, at::kBool, "isin");
  write_out(out, membership(elements, wanted, assume_unique, invert));
  return out;
}

Tensor number_membership(const Scalar &element, const Tensor &wanted, bool assume_unique, bool invert) {
  check_membership_type(wanted);
  const OnDevice guard(device_index_of(wanted));
  Tensor result = empty({}, at::kBool);
  check(npu_isin_scalar_tensor(argument(element), argument(wanted), assume_unique, invert, written(result), stream()));
  return result;
}

Tensor &number_membership_into(const Scalar &element, const Tensor &wanted, bool assume_unique, bool invert, Tensor &out) {
  check_out_type(out, at::kBool, "isin");
  write_out(out, number_membership(element, wanted, assume_unique, invert));
  return out;
}

void register_composed(torch::Library &m) {
  if (available("addbmm")) {
    m.impl("addbmm", TORCH_FN(summed_products));
    m.impl("addbmm_", TORCH_FN(summed_products_inplace));
    m.impl("addbmm.out", TORCH_FN(summed_products_into));
  }
  if (available("searchsorted") && available("sort") && available("take")) {
    m.impl("isin.Tensor_Tensor", TORCH_FN(membership));
    m.impl("isin.Tensor_Tensor_out", TORCH_FN(membership_into));
  }
  if (available("isin_scalar_tensor")) {
    m.impl("isin.Scalar_Tensor", TORCH_FN(number_membership));
    m.impl("isin.Scalar_Tensor_out", TORCH_FN(number_membership_into));
  }
}
const Registrar registrar(&register_composed);

} // namespace
} // namespace npu
