/* torch.autocast("npu"): which operators compute in the lower precision, which in float32, and which in the widest type of their inputs.
 * The lists are torch's own (ATen/autocast_mode.h), the same as for CUDA; what no list names computes in the types of its inputs. */
#include <ATen/autocast_mode.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <torch/library.h>

namespace npu {

/* Half precision can't hold a probability near 0 or 1; torch refuses it under autocast for every device. */
static at::Tensor refuse_binary_cross_entropy(const at::Tensor &, const at::Tensor &, const std::optional<at::Tensor> &, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
              "Many models use a sigmoid layer right before the binary cross entropy layer. In this case, combine the two layers "
              "using torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss. "
              "binary_cross_entropy_with_logits and BCEWithLogits are safe to autocast.");
}

#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FLOAT32_DTYPE_ARGUMENT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  using at::Tensor, at::Scalar, at::ScalarType, at::IntArrayRef; // as torch's lists name them
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
  AT_FORALL_FP32(FLOAT32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FLOAT32_DTYPE_ARGUMENT)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(WIDEST)
  m.impl("binary_cross_entropy", refuse_binary_cross_entropy);
}

} // namespace npu
