/* Outputs of structured operators. See structured.h. */
#include "bridge/operators/structured.h"

#include <ATen/native/Resize.h>

#include "bridge/runtime/runtime.h"

namespace npu {

static at::Tensor make_output(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options) {
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  return strides.empty() ? empty(sizes, dtype, options.memory_format_opt()) : empty_strided(sizes, strides, dtype);
}

/* Matters for operators without TensorIterator (addmm) or with their own dtype rules (cumsum). */
static void check_inplace(const at::Tensor &self, at::IntArrayRef sizes, const at::TensorOptions &options) {
  TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: input tensor dtype ", self.dtype(), " and output tensor dtype ",
              options.dtype(), " should match");
  TORCH_CHECK(options.device() == self.device(), "Bad in-place call: input tensor device ", self.device(),
              " and output tensor device ", options.device(), " should match");
  TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: input tensor size ", self.sizes(), " and output tensor size ", sizes,
              " should match");
}

static void resize_out(const at::Tensor &out, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions &options) {
  TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ", out.dtype(),
              " instead");
  TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ", options.device(), ", but got ", out.device(),
              " instead");
  if (!at::native::resize_output(out, sizes))
    return;
  if (!strides.empty())
    out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  else if (options.memory_format_opt().has_value())
    out.unsafeGetTensorImpl()->empty_tensor_restride(*options.memory_format_opt());
}

void prepare_output(Form form, at::Tensor &output, at::IntArrayRef sizes, at::IntArrayRef strides,
                    const at::TensorOptions &options) {
  switch (form) {
  case Form::functional: output = make_output(sizes, strides, options); break;
  case Form::inplace: check_inplace(output, sizes, options); break;
  case Form::out: resize_out(output, sizes, strides, options); break;
  }
}

} // namespace npu
