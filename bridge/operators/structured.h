/* Wrapper around torch's structured meta functions, which give shape, dtype and promotion for the functional, in-place and out forms. */
#pragma once

#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <type_traits>

namespace npu {

enum class Form { functional, inplace, out };

/* Makes (functional), checks (in-place) or resizes (out) the tensor that the meta function asks for. */
void prepare_output(Form form, at::Tensor &output, at::IntArrayRef sizes, at::IntArrayRef strides,
                    const at::TensorOptions &options);

template <typename Meta, int count> struct Structured final : Meta {
  explicit Structured(Form form_) : form(form_) {}
  template <typename... Given> Structured(Form form_, const Given &...given) : form(form_), outputs{given...} {}

  void set_output_raw_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) override {
    if constexpr (!std::is_base_of_v<at::TensorIteratorBase, Meta>) // which checks it itself, where torch does
      if (form != Form::functional)
        at::assert_no_internal_overlap(outputs[index]);
    prepare_output(form, outputs[index], sizes, strides, options);
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Meta>)
      Meta::set_output_raw_strided(index, sizes, strides, options);
  }
  /* Our operators take any strides, so what the meta function wants exactly is treated like what it proposes. */
  void set_output_strided(int64_t index, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options) override {
    set_output_raw_strided(index, sizes, strides, options);
  }
  const at::Tensor &maybe_get_output(int64_t index) override { return outputs[index]; }

  Form form;
  std::array<at::Tensor, count> outputs;
};

} // namespace npu
