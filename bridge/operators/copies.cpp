/* Copies between devices, the host and dtypes, and everything that reads a value back.
 *
 * Invariant: a copy is one task of the current stream of the device that it touches. Host memory is touched asynchronously only when it is
 * pinned and the caller said non_blocking; everything else waits, so that pageable memory may be reused when the call returns. */
#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include "bridge/operators/operand.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"
#include "bridge/runtime/host_allocator.h"

namespace npu {
namespace {

void wait() { synchronize_stream(current_stream(current_device())); }

/* Two dense tensors with one layout: their memory can be copied as it lies. */
bool same_layout(const at::Tensor &a, const at::Tensor &b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         ((a.is_contiguous() && b.is_contiguous()) || (a.strides() == b.strides() && is_dense(a)));
}

void move_bytes(const at::Tensor &to, const at::Tensor &from, aclrtMemcpyKind kind) {
  const size_t bytes = from.nbytes();
  check_status(cann.aclrtMemcpyAsync(to.mutable_data_ptr(), bytes, from.const_data_ptr(), bytes, kind, stream()),
               "aclrtMemcpyAsync");
}

void copy_on_device(const at::Tensor &to, const at::Tensor &from) { check(npu_copy(Plain(to), Plain(from), stream())); }

void copy_to_device(const at::Tensor &source, const at::Tensor &to, bool non_blocking) {
  if (same_layout(source, to)) {
    move_bytes(to, source, ACL_MEMCPY_HOST_TO_DEVICE);
    if (!non_blocking || !host_record_stream(source.const_data_ptr(), current_stream(current_device())))
      wait();
    return;
  }
  const bool narrower = source.element_size() < to.element_size() || source.sizes() != to.sizes(); // move the smaller form
  at::Tensor staged = narrower ? source.contiguous() : source.to(to.scalar_type()).contiguous();
  if (same_layout(staged, to)) {
    move_bytes(to, staged, ACL_MEMCPY_HOST_TO_DEVICE);
  } else {
    const at::Tensor here = empty(staged.sizes(), staged.scalar_type());
    move_bytes(here, staged, ACL_MEMCPY_HOST_TO_DEVICE);
    copy_on_device(to, here);
  }
  wait(); // `staged` is pageable
}

void copy_to_host(const at::Tensor &source, const at::Tensor &to, bool non_blocking) {
  if (same_layout(source, to)) {
    move_bytes(to, source, ACL_MEMCPY_DEVICE_TO_HOST);
    if (!non_blocking || !host_record_stream(to.const_data_ptr(), current_stream(current_device())))
      wait();
    return;
  }
  at::Tensor dense = source;
  if (!is_dense(source)) {
    dense = empty(source.sizes(), source.scalar_type());
    copy_on_device(dense, source);
  }
  at::Tensor staged = at::empty_strided(dense.sizes(), dense.strides(), dense.options().device(at::kCPU));
  move_bytes(staged, dense, ACL_MEMCPY_DEVICE_TO_HOST);
  wait();
  to.copy_(staged);
}

void copy_between_devices(const at::Tensor &source, const at::Tensor &to) {
  at::Tensor dense = source;
  {
    const OnDevice there(source.device().index());
    if (!source.is_contiguous()) {
      dense = empty(source.sizes(), source.scalar_type());
      copy_on_device(dense, source);
    }
    wait();
  }
  const OnDevice here(to.device().index());
  if (same_layout(dense, to)) {
    move_bytes(to, dense, ACL_MEMCPY_DEVICE_TO_DEVICE);
  } else {
    const at::Tensor landed = empty(dense.sizes(), dense.scalar_type());
    move_bytes(landed, dense, ACL_MEMCPY_DEVICE_TO_DEVICE);
    copy_on_device(to, landed);
  }
  wait(); // the source may be written as soon as this returns
}

/* The stored values: the same memory without torch's "conjugate" and "negative" marks. */
at::Tensor stored(at::Tensor tensor) {
  if (tensor.is_conj())
    tensor = tensor.conj();
  return tensor.is_neg() ? tensor._neg_view() : tensor;
}

/* Changes the stored values; `tensor` carries no mark. */
at::Tensor &conjugate(at::Tensor &tensor) {
  if (tensor.is_complex())
    at::view_as_real(tensor).select(-1, 1).neg_();
  return tensor;
}

at::Tensor &conjugate_out(const at::Tensor &self, at::Tensor &out) {
  check_out_type(out, self.scalar_type(), "conj_physical");
  out.resize_(self.sizes());
  out.copy_(self);
  return conjugate(out);
}

at::Tensor copy_from(const at::Tensor &self, const at::Tensor &dst, bool non_blocking) {
  if (dst.numel() == 0)
    return dst;
  if (C10_UNLIKELY(self.is_conj() || self.is_neg() || dst.is_conj() || dst.is_neg())) {
    at::Tensor plain = stored(dst);
    copy_from(stored(self), plain, false);
    if (self.is_conj() != dst.is_conj())
      conjugate(plain);
    if (self.is_neg() != dst.is_neg())
      plain.neg_();
    return dst;
  }
  const OnDevice guard(device_index_of(dst, self));
  const at::Tensor source = self.dim() == 0 || self.sizes() == dst.sizes() ? self : self.expand(dst.sizes());
  const bool from_here = source.device().type() == kDevice, to_here = dst.device().type() == kDevice;
  if (from_here && to_here) {
    if (source.device() == dst.device()) {
      check_written(dst, self);
      copy_on_device(dst, source);
    } else {
      copy_between_devices(source.expand(dst.sizes()), dst);
    }
  } else if (to_here) {
    TORCH_CHECK(source.is_cpu(), "copying from ", source.device(), " to ", dst.device(), " isn't supported; copy to the cpu first");
    check_written(dst);
    copy_to_device(source, dst, non_blocking);
  } else {
    TORCH_CHECK(dst.is_cpu(), "copying from ", source.device(), " to ", dst.device(), " isn't supported; copy to the cpu first");
    copy_to_host(source.expand(dst.sizes()), dst, non_blocking);
  }
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &dst) {
  dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar_dense(const at::Tensor &self) {
  TORCH_CHECK(self.numel() > 0, "_local_scalar_dense: Empty tensor not supported");
  const OnDevice guard(device_index_of(self));
  alignas(16) char value[16];
  const size_t bytes = self.element_size();
  check_status(cann.aclrtMemcpyAsync(value, bytes, self.const_data_ptr(), bytes, ACL_MEMCPY_DEVICE_TO_HOST, stream()),
               "aclrtMemcpyAsync");
  wait();
  at::Scalar result;
  AT_DISPATCH_V2(self.scalar_type(), "_local_scalar_dense",
                 AT_WRAP([&] { result = at::Scalar(*reinterpret_cast<scalar_t *>(value)); }), AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
                 at::kComplexHalf, at::kHalf, at::kBool, at::kBFloat16, AT_EXPAND(AT_FLOAT8_TYPES),
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES));
  return result;
}

bool equal(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(), " and ",
              other.device());
  TORCH_CHECK(self.dtype() == other.dtype(), "Expected all tensors to have the same dtype, but found ", self.dtype(), " and ",
              other.dtype());
  if (self.sizes() != other.sizes())
    return false;
  if (self.numel() == 0)
    return true;
  const OnDevice guard(device_index_of(self));
  const at::Tensor result = empty({}, at::kBool);
  check(npu_equal(argument(self), argument(other), argument(result), stream()));
  return local_scalar_dense(result).toBool();
}

void register_copies(torch::Library &m) {
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("conj_physical_", TORCH_FN(conjugate));
  m.impl("conj_physical.out", TORCH_FN(conjugate_out));
  if (available("equal"))
    m.impl("equal", TORCH_FN(equal));
}
const Registrar registrar(&register_copies);

/* torch resolves the marks of an operator's inputs by a copy, so the copy itself must get them unresolved. */
void let_copies_through(torch::Library &m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { let_copies_through(m); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { let_copies_through(m); }

} // namespace
} // namespace npu
