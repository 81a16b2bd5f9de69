/* See shapes.h. */
#include "bridge/operators/shapes.h"

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/WrapDimUtilsMulti.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TypeProperties.h>

#include <algorithm>

namespace npu {

static bool is_expanded(const at::Tensor &self, int64_t dim) { return self.stride(dim) == 0 && self.size(dim) > 1; }

at::Tensor broadcast(c10::ScalarType type, const at::Tensor &a, const at::Tensor &b) {
  if (a.sizes() == b.sizes() && a.strides() == b.strides() && is_dense(a))
    return dense_like(a, type);
  return empty(at::infer_size(a.sizes(), b.sizes()), type);
}

c10::ScalarType promoted(const at::Tensor &a, const at::Tensor &b) { return at::native::result_type(a, b); }

c10::ScalarType promoted(const at::Tensor &a, const c10::Scalar &b) { return at::native::result_type(a, b); }

double largest(const at::Tensor &self) {
  switch (self.scalar_type()) {
  case c10::ScalarType::Half: return 65504.0;
  case c10::ScalarType::BFloat16: return 3.3895313892515355e38;
  case c10::ScalarType::Double: return std::numeric_limits<double>::max();
  default: return std::numeric_limits<float>::max();
  }
}

at::Tensor where_result(const at::Tensor &condition, const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(condition.scalar_type() == at::kBool || condition.scalar_type() == at::kByte,
              "where expected condition to be a boolean tensor, but got a "
              "tensor with dtype ",
              condition.scalar_type());
  const c10::ScalarType type = promoted(self, other);
  if (condition.sizes() == self.sizes() && self.sizes() == other.sizes())
    return empty(self.sizes(), type);
  return empty(at::infer_size(condition.sizes(), at::infer_size(self.sizes(), other.sizes())), type);
}

at::Tensor scalar_result(const at::Tensor &self, const char *name) {
  TORCH_CHECK(self.numel() > 0, name,
              "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
              "'dim' argument.");
  return empty({}, self.scalar_type());
}

at::Tensor trace_result(const at::Tensor &self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return empty({}, sum_type(self.scalar_type()));
}

at::Tensor spread(const at::Tensor &self, at::OptionalIntArrayRef dim, bool keepdim) {
  TORCH_CHECK(self.is_floating_point() || self.is_complex(), "std and var only support floating point and complex dtypes");
  return reduced(self, dim, keepdim, c10::toRealValueType(self.scalar_type()));
}

at::Tensor index_select_result(const at::Tensor &self, int64_t dim, const at::Tensor &index) {
  std::vector<int64_t> sizes = self.sizes().vec();
  if (!sizes.empty())
    sizes[at::maybe_wrap_dim(dim, self.dim())] = index.numel();
  return empty(sizes, self.scalar_type());
}

std::vector<at::Tensor> joined(const at::ITensorListRef &tensors) {
  const c10::ScalarType type = at::native::result_type(tensors);
  std::vector<at::Tensor> list;
  list.reserve(tensors.size());
  for (const at::Tensor &tensor : tensors)
    if (tensor.dim() != 1 || tensor.size(0) != 0)
      list.push_back(tensor.scalar_type() == type ? tensor : tensor.to(type));
  if (list.empty())
    list.push_back(tensors.front());
  return list;
}

at::Tensor embedding_result(const at::Tensor &weight, const at::Tensor &indices) {
  TORCH_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  TORCH_CHECK(indices.scalar_type() == at::kLong || indices.scalar_type() == at::kInt,
              "Expected tensor for argument #1 'indices' to have one of "
              "the following scalar types: Long, Int; but got ",
              indices.toString(), " instead (while checking arguments for embedding)");
  std::vector<int64_t> sizes = indices.sizes().vec();
  sizes.push_back(weight.size(1));
  return empty(sizes, weight.scalar_type());
}

at::Tensor padded(const at::Tensor &self, at::IntArrayRef pad) {
  const int64_t ndim = self.dim(), pairs = static_cast<int64_t>(pad.size()) / 2;
  TORCH_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  TORCH_CHECK(ndim >= pairs, "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ",
              pad.size(), " while the input has ", ndim, " dimensions.");
  std::vector<int64_t> sizes = self.sizes().vec();
  for (int64_t i = 0; i < pairs; ++i) {
    int64_t &size = sizes[ndim - 1 - i];
    const int64_t given = size;
    size += pad[2 * i] + pad[2 * i + 1];
    TORCH_CHECK(size >= 0, "The input size ", given, ", plus negative padding ", pad[2 * i], " and ", pad[2 * i + 1],
                " resulted in a negative output size, which is invalid. Check dimension ", ndim - 1 - i, " of your input.");
  }
  return empty(sizes, self.scalar_type(), self.suggest_memory_format());
}

at::Tensor adaptive_result(const at::Tensor &self, at::IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got ", self.sizes());
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[self.dim() - 2] = output_size[0];
  sizes[self.dim() - 1] = output_size[1];
  return empty(sizes, self.scalar_type());
}

at::Tensor adaptive_result_3d(const at::Tensor &self, at::IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 3, "adaptive_avg_pool3d: internal error: output_size.size() must be 3");
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got ", self.sizes());
  std::vector<int64_t> sizes = self.sizes().vec();
  std::copy(output_size.begin(), output_size.end(), sizes.end() - 3);
  return empty(sizes, self.scalar_type());
}

namespace {

/* Sizes after pads of the last dimensions, the last one's first. */
std::vector<int64_t> padded_sizes(const at::Tensor &self, at::IntArrayRef padding) {
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t i = 0; i < padding.size() / 2; ++i)
    sizes[sizes.size() - 1 - i] += padding[2 * i] + padding[2 * i + 1];
  return sizes;
}

/* One value for all dimensions, or one each; none: the other list's. */
int64_t value_at(at::IntArrayRef values, at::IntArrayRef otherwise, size_t d) {
  const at::IntArrayRef used = values.empty() ? otherwise : values;
  return used.size() == 1 ? used[0] : used[d];
}

/* Windows along a dimension of `size` elements, as torch counts them. */
int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  const int64_t count = (span >= 0 ? span / stride : -((-span + stride - 1) / stride)) + 1;
  return count - (ceil_mode && (count - 1) * stride >= size + padding);
}

} // namespace

at::Tensor mirrored(const at::Tensor &self, at::IntArrayRef padding) {
  TORCH_CHECK(padding.size() == 4, "padding size is expected to be 4");
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
              "but got: ",
              self.sizes());
  for (int64_t i = 0; i < 2; ++i) {
    const int64_t size = self.size(self.dim() - 1 - i);
    TORCH_CHECK(padding[2 * i] < size && padding[2 * i + 1] < size, "Argument #", 4 + 2 * i,
                ": Padding size should be less than the corresponding input dimension, but got: padding (", padding[2 * i], ", ",
                padding[2 * i + 1], ") at dimension ", self.dim() - 1 - i, " of input ", self.sizes());
  }
  const std::vector<int64_t> sizes = padded_sizes(self, padding);
  TORCH_CHECK(sizes[sizes.size() - 1] >= 1 || sizes[sizes.size() - 2] >= 1, "input ", self.sizes(), " is too small for padding ",
              padding);
  return empty(sizes, self.scalar_type(), self.suggest_memory_format());
}

void check_pad_gradient(const at::Tensor &grad_output, const at::Tensor &self, at::IntArrayRef padding) {
  TORCH_CHECK(static_cast<int64_t>(padding.size()) / 2 <= self.dim() &&
                  grad_output.sizes() == at::IntArrayRef(padded_sizes(self, padding)),
              "grad_output of ", grad_output.sizes(), " doesn't belong to an input of ", self.sizes(), " with padding ", padding);
}

at::Tensor max_pool3d_result(const at::Tensor &self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                             at::IntArrayRef dilation, bool ceil_mode, at::ScalarType type) {
  const auto fits = [](at::IntArrayRef values) { return values.size() == 1 || values.size() == 3; };
  TORCH_CHECK(fits(kernel), "max_pool3d: kernel_size must either be a single int, or a tuple of three ints");
  TORCH_CHECK(stride.empty() || fits(stride), "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints");
  TORCH_CHECK(fits(padding), "max_pool3d: padding must either be a single int, or a tuple of three ints");
  TORCH_CHECK(fits(dilation), "max_pool3d: dilation must be either a single int, or a tuple of three ints");
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5, "non-empty 4D or 5D (batch mode) tensor expected for input");
  for (int64_t d = self.dim() - 4; d < self.dim(); ++d)
    TORCH_CHECK(self.size(d) > 0,
                "max_pool3d: Expected input's non-batch dimensions to have positive length, but input has a shape of ",
                self.sizes(), " and non-batch dimension ", d, " has length zero!");
  std::vector<int64_t> sizes = self.sizes().vec();
  for (size_t d = 0; d < 3; ++d) {
    int64_t &size = sizes[sizes.size() - 3 + d];
    const int64_t given = size, step = value_at(stride, kernel, d), reach = value_at(kernel, kernel, d);
    TORCH_CHECK(step > 0, "stride should not be zero");
    TORCH_CHECK(value_at(padding, padding, d) <= reach / 2, "pad should be at most half of effective kernel size");
    size = window_count(given, reach, step, value_at(padding, padding, d), value_at(dilation, dilation, d), ceil_mode);
    TORCH_CHECK(size >= 1, "Given input size ", given, " the output size ", size, " is too small");
  }
  return empty(sizes, type);
}

at::Tensor im2col_result(const at::Tensor &self, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
                         at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 3 || self.dim() == 4,
              "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
              "non-zero dimensions for input, but got: ",
              self.sizes());
  std::vector<int64_t> sizes = self.sizes().vec();
  int64_t windows = 1;
  for (size_t d = 0; d < 2; ++d) {
    TORCH_CHECK(value_at(stride, stride, d) > 0 && value_at(kernel, kernel, d) > 0 && value_at(dilation, dilation, d) > 0,
                "kernel size, dilation and stride should be greater than zero");
    const int64_t count = window_count(sizes[sizes.size() - 2 + d], value_at(kernel, kernel, d), value_at(stride, stride, d),
                                       value_at(padding, padding, d), value_at(dilation, dilation, d), false);
    TORCH_CHECK(count >= 1, "Given input with spatial size ", self.sizes(), ", calculated shape of the array of sliding blocks as ",
                count, " along dimension ", d, ", but its components must be at least one.");
    windows *= count;
  }
  sizes.pop_back();
  sizes.back() = windows;
  sizes[sizes.size() - 2] *= value_at(kernel, kernel, 0) * value_at(kernel, kernel, 1);
  return empty(sizes, self.scalar_type());
}

at::Tensor col2im_result(const at::Tensor &self, at::IntArrayRef output_size, at::IntArrayRef kernel, at::IntArrayRef dilation,
                         at::IntArrayRef padding, at::IntArrayRef stride) {
  TORCH_CHECK(self.dim() == 2 || self.dim() == 3,
              "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
              "non-zero dimensions for input, but got: ",
              self.sizes());
  const int64_t taps = value_at(kernel, kernel, 0) * value_at(kernel, kernel, 1);
  std::vector<int64_t> sizes = self.sizes().vec();
  TORCH_CHECK(taps > 0 && sizes[sizes.size() - 2] % taps == 0,
              "Expected size of input's dimension 1 to be divisible by the product "
              "of kernel_size, but got input.size(1)=",
              sizes[sizes.size() - 2], " and kernel_size=", kernel, ".");
  int64_t windows = 1;
  for (size_t d = 0; d < 2; ++d)
    windows *= window_count(value_at(output_size, output_size, d), value_at(kernel, kernel, d), value_at(stride, stride, d),
                            value_at(padding, padding, d), value_at(dilation, dilation, d), false);
  TORCH_CHECK(sizes.back() == windows, "Given output_size=", output_size, ", kernel_size=", kernel, ", dilation=", dilation,
              ", padding=", padding, ", stride=", stride,
              ", expected size of input's dimension 2 to match the calculated number of "
              "sliding blocks ",
              windows, ", but got input.size(2)=", sizes.back(), ".");
  sizes[sizes.size() - 2] /= taps;
  sizes.back() = value_at(output_size, output_size, 0);
  sizes.push_back(value_at(output_size, output_size, 1));
  return empty(sizes, self.scalar_type());
}

at::Tensor layer_norm_statistic(const at::Tensor &input, at::IntArrayRef normalized_shape) {
  std::vector<int64_t> sizes = input.sizes().vec();
  std::fill(sizes.end() - static_cast<int64_t>(normalized_shape.size()), sizes.end(), 1);
  const c10::ScalarType type = input.scalar_type();
  return empty(sizes, type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type);
}

at::Tensor nll_loss2d_result(const at::Tensor &self, const at::Tensor &target, int64_t reduction) {
  TORCH_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
  TORCH_CHECK(self.dim() == 4, "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
  return reduction == 0 ? empty(target.sizes(), self.scalar_type()) : empty({}, self.scalar_type());
}

void check_dot(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(), "D tensors");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
              other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
              " elements respectively");
}

void check_matrix_types(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "expected m1 and m2 to have the same dtype, but got: ", self.dtype(),
              " != ", other.dtype());
}

void check_factor_types(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
              other.scalar_type());
}

void check_addr(const at::Tensor &self, const at::Tensor &vec1, const at::Tensor &vec2) {
  TORCH_CHECK(vec1.dim() == 1 && vec2.dim() == 1, "addr: Expected 1-D argument vec1 and vec2, but got ", vec1.dim(), "-D and ",
              vec2.dim(), "-D");
  TORCH_CHECK(self.dim() <= 2, "2D tensor expected, got ", self.dim(), "D tensor for input");
}

void check_fill(const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ", value.dim(), " dimensions.");
}

void check_value(const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
              " dimension(s).");
}

void check_mask(const at::Tensor &self, const at::Tensor &mask, const char *name) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, name, " only supports boolean masks, but got mask with dtype ", mask.scalar_type());
  TORCH_CHECK(at::infer_size(self.sizes(), mask.sizes()) == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(at::infer_size(self.sizes(), mask.sizes())));
}

void check_index_select(const at::Tensor &self, int64_t dim, const at::Tensor &index) {
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but got dim: ", index.dim(),
                    " with type: ", index.scalar_type(), " and size: ", index.sizes());
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index but got: ", index.scalar_type());
  TORCH_CHECK(dim == 0 || dim == -1 || dim < self.dim(), "index_select(): Indexing dim ", dim, " is out of bounds of tensor");
}

void check_index_fill(const at::Tensor &self, int64_t dim, const at::Tensor &index) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
                    "index_fill_(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  const int64_t along = at::maybe_wrap_dim(dim, self.dim());
  if (self.dim() > 0 && is_expanded(self, along))
    check_written(self);
}

void check_flip(const at::Tensor &self, at::IntArrayRef dims) { at::dim_list_to_bitset(dims, self.dim()); }

void check_roll(const at::Tensor &self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  TORCH_CHECK(!shifts.empty(), "`shifts` required");
  TORCH_CHECK(shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
              "shifts and dimensions must align. shifts: ", shifts.size(), ", dims:", dims.size());
  for (const int64_t dim : dims)
    at::maybe_wrap_dim(dim, self.dim(), /*wrap_scalar=*/false);
}

bool isclose_fits(const at::Tensor &self, const at::Tensor &other) {
  const c10::ScalarType type = self.scalar_type();
  return (type == at::kFloat || type == at::kDouble) && other.scalar_type() == type && on_npu(self) && on_npu(other);
}

bool logits_fit(const at::Tensor &self, const at::Tensor &target, const std::optional<at::Tensor> &weight,
                const std::optional<at::Tensor> &pos_weight) {
  for (const at::Tensor *given : {&target, weight ? &*weight : nullptr, pos_weight ? &*pos_weight : nullptr})
    if (given && given->defined() &&
        (given->scalar_type() != self.scalar_type() || given->sizes() != self.sizes() || !on_npu(*given)))
      return false;
  return c10::isFloatingType(self.scalar_type()) && on_npu(self);
}

void check_layer_norm(const at::Tensor &input, at::IntArrayRef normalized_shape, const std::optional<at::Tensor> &weight,
                      const std::optional<at::Tensor> &bias) {
  TORCH_CHECK(!normalized_shape.empty(),
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
              "normalized_shape = ",
              normalized_shape);
  check_parameter_types(input, {tensor_of(weight), tensor_of(bias)});
  for (const auto *parameter : {&weight, &bias})
    TORCH_CHECK(!*parameter || !(*parameter)->defined() || (*parameter)->sizes() == normalized_shape, "Expected ",
                parameter == &weight ? "weight" : "bias", " to be of same shape as normalized_shape, but got a parameter of shape ",
                *parameter ? (*parameter)->sizes() : at::IntArrayRef(), " and normalized_shape = ", normalized_shape);
  const size_t n = normalized_shape.size();
  TORCH_CHECK(static_cast<size_t>(input.dim()) >= n &&
                  input.sizes().slice(static_cast<size_t>(input.dim()) - n) == normalized_shape,
              "Given normalized_shape=", normalized_shape, ", expected input with shape [*", normalized_shape,
              "], but got input of size", input.sizes());
}

at::Tensor number_like(const at::Tensor &number, const at::Tensor &model) {
  const bool keeps = number.unsafeGetTensorImpl()->is_wrapped_number() && c10::isIntegralType(number.scalar_type(), true) &&
                     c10::isIntegralType(model.scalar_type(), false);
  return keeps ? number.to(model.scalar_type()) : number;
}

void check_number(const at::Tensor &self, const c10::Scalar &number) {
  AT_DISPATCH_V2(self.scalar_type(), "fill", AT_WRAP([&] { number.to<scalar_t>(); }), AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX),
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), AT_EXPAND(AT_FLOAT8_TYPES), at::kComplexHalf, at::kHalf, at::kBFloat16,
                 at::kBool);
}

void check_castable(c10::ScalarType result, const at::Tensor &out) {
  TORCH_CHECK(c10::canCast(result, out.scalar_type()), "result type ", result, " can't be cast to the desired output type ",
              out.scalar_type());
}

void check_parameter_types(const at::Tensor &input, std::initializer_list<at::Tensor> parameters) {
  const auto first = std::find_if(parameters.begin(), parameters.end(), [](const at::Tensor &t) { return t.defined(); });
  const c10::ScalarType type = input.scalar_type();
  if (first == parameters.end())
    return;
  const bool mixed = first->scalar_type() != type;
  for (const at::Tensor &parameter : parameters)
    if (parameter.defined() && mixed)
      TORCH_CHECK(parameter.scalar_type() == at::kFloat, "mixed dtype (CPU): expect parameter to have scalar type of Float");
  TORCH_CHECK(!mixed || c10::isReducedFloatingType(type), "mixed dtype (CPU): all inputs must share same datatype.");
  for (const at::Tensor &parameter : parameters)
    TORCH_CHECK(mixed || !parameter.defined() || parameter.scalar_type() == type, "expected scalar type ", type, " but found ",
                parameter.defined() ? parameter.scalar_type() : type);
}

at::Tensor distinct(const at::Tensor &self) {
  if (self.is_non_overlapping_and_dense())
    return self;
  at::Tensor part = self;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (is_expanded(self, d))
      part = part.narrow(d, 0, 1);
  return part;
}

at::Tensor mask_of_distinct(const at::Tensor &self, const at::Tensor &mask) {
  c10::SmallVector<int64_t, 8> dims;
  if (!self.is_non_overlapping_and_dense())
    for (int64_t d = 0; d < self.dim(); ++d)
      if (is_expanded(self, d))
        dims.push_back(d);
  if (dims.empty())
    return mask;
  TORCH_WARN("Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
             "This also applies to advanced indexing e.g. tensor[mask] = scalar");
  return mask.expand(self.sizes()).any(dims, /*keepdim=*/true);
}

bool device_number(at::TensorList list, const at::Tensor &number) {
  return number.numel() == 1 && number.device() == list[0].device() && number.scalar_type() == list[0].scalar_type() &&
         number.dim() == 0;
}

bool norm_fits(at::TensorList list, std::optional<c10::ScalarType> dtype) {
  if (dtype && *dtype != list[0].scalar_type())
    return false;
  for (const at::Tensor &tensor : list)
    if (tensor.numel() == 0)
      return false;
  return true;
}

std::vector<at::Tensor> number_each(at::TensorList list) {
  std::vector<at::Tensor> made;
  made.reserve(list.size());
  for (const at::Tensor &tensor : list)
    made.push_back(empty({}, tensor.scalar_type()));
  return made;
}

at::Tensor reduced(const at::Tensor &self, at::OptionalIntArrayRef dim, bool keepdim, c10::ScalarType type) {
  const int64_t ndim = self.dim();
  const auto mask = at::native::make_dim_mask(dim, ndim);
  return empty(at::native::shape_from_dim_mask(self, mask, keepdim), type);
}

void check_out_type(const at::Tensor &out, c10::ScalarType type, const char *name) {
  TORCH_CHECK(out.scalar_type() == type, name, ": expected out of type ", type, ", but got ", out.scalar_type());
}

/* Planes or volumes of max_unpool2d and 3d; output_size says which. */
at::Tensor unpooled(const at::Tensor &self, const at::Tensor &indices, at::IntArrayRef output_size) {
  const int64_t axes = static_cast<int64_t>(output_size.size()), first = self.dim() - axes;
  TORCH_CHECK(indices.scalar_type() == at::kLong, "elements in indices should be type int64 but got: ", indices.scalar_type());
  TORCH_CHECK(first == 1 || first == 2, "Input to max_unpooling", axes, "d should be a ", axes + 1, "d or ", axes + 2,
              "d Tensor, but got a tensor with ", self.dim(), " dimensions");
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be: ", self.sizes(), " but got: ", indices.sizes());
  for (int64_t d = 1; d < self.dim(); ++d)
    TORCH_CHECK(self.size(d) > 0, "max_unpooling", axes,
                "d(): Expected input to have non-zero size for non-batch dimensions, but got ", self.sizes(), " with dimension ", d,
                " being empty.");
  std::vector<int64_t> sizes(self.sizes().begin(), self.sizes().begin() + first);
  sizes.insert(sizes.end(), output_size.begin(), output_size.end());
  return empty(sizes, self.scalar_type());
}

void check_unpool_windows(at::IntArrayRef stride, at::IntArrayRef padding) {
  TORCH_CHECK(stride.size() == 3,
              "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(), " elements.");
  TORCH_CHECK(padding.size() == 3,
              "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(), " elements.");
  TORCH_CHECK(stride[0] > 0 && stride[1] > 0 && stride[2] > 0, "strides should be greater than zero, but got stride: ", stride);
}

void write_out(const at::Tensor &out, const at::Tensor &value) {
  TORCH_CHECK(value.device() == out.device(), "Expected all tensors to be on the same device, but found at least two devices, ",
              value.device(), " and ", out.device(), "!");
  TORCH_CHECK(c10::canCast(value.scalar_type(), out.scalar_type()), "result type ", value.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  check_written(out);
  at::native::resize_output(out, value.sizes());
  out.copy_(value);
}

bool uniform_lists(std::initializer_list<at::TensorList> lists) {
  const at::TensorList first = *lists.begin();
  if (first.empty())
    return false;
  const c10::ScalarType type = first[0].scalar_type();
  const c10::DeviceIndex device = index_on_npu(first[0]);
  if (device < 0 || !c10::isFloatingType(type))
    return false;
  for (const at::TensorList list : lists) {
    if (list.size() != first.size())
      return false; // torch's loop says it in torch's words
    for (size_t i = 0; i < list.size(); ++i) {
      const at::TensorImpl &impl = *list[i].unsafeGetTensorImpl();
      if (!impl.key_set().has(c10::DispatchKey::PrivateUse1) || impl.device().index() != device || list[i].scalar_type() != type ||
          list[i].sizes() != first[i].sizes() || !is_dense(list[i]) ||
          (impl.unsafe_storage().is_alias_of(first[i].storage()) && overlaps_partly(list[i], first[i])))
        return false; // memory that is shared in part: torch's loop refuses it
    }
  }
  return true;
}

std::vector<at::Tensor> lists_like(at::TensorList list) {
  std::vector<at::Tensor> made;
  made.reserve(list.size());
  for (const at::Tensor &tensor : list)
    made.push_back(like(tensor));
  return made;
}

void check_sampling(const at::Tensor &input, const at::Tensor &grid, int64_t interpolation) {
  at::native::check_grid_sampler_common(input, grid);
  TORCH_CHECK(input.dim() == grid.dim(),
              "grid_sampler(): expected input and grid to have same number of dimensions, but got input with sizes ", input.sizes(),
              " and grid with sizes ", grid.sizes());
  TORCH_CHECK(input.dim() == 4 || interpolation != 2, "grid_sampler(): bicubic interpolation only supports 4D input");
  check_factor_types(input, grid);
}

at::Tensor sampled(const at::Tensor &input, const at::Tensor &grid) {
  c10::SmallVector<int64_t, 8> sizes{input.size(0), input.size(1)};
  sizes.append(grid.sizes().begin() + 1, grid.sizes().end() - 1);
  return empty(sizes, input.scalar_type());
}

} // namespace npu
