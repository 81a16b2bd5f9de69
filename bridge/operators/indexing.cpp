/* Indexing by tensors and masks, and operators whose output size depends on the data (these wait for the device). */
#include <ATen/ExpandUtils.h>
#include <ATen/core/List.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <torch/library.h>

#include "bridge/operators/composed.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"

namespace npu {
namespace {

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

/* torch lets the CPU hold the indices of a tensor elsewhere, and nothing else. */
void check_index_devices(const at::Tensor &self, const OptionalTensors &given) {
  for (const std::optional<at::Tensor> index : given)
    TORCH_CHECK(!index || !index->defined() || index->is_cpu() || index->device() == self.device(), "indices should be either on ",
                at::kCPU, " or on the same device as the indexed tensor (", self.device(), "), but got one on ", index->device());
  if (!on_npu(self))
    refuse_device(self);
}

/* Index tensors, one a dimension of self (undefined = whole dimension): masks turned into positions, on self's device, of one shape. */
std::vector<at::Tensor> plain_indices(const at::Tensor &self, const OptionalTensors &given) {
  at::native::checkIndexTensorTypes(given, /*allow_int=*/true);
  std::vector<at::Tensor> indices = at::native::expandTensors(self, given);
  for (at::Tensor &index : indices)
    if (index.defined() && index.device() != self.device())
      index = index.to(self.device());
  try {
    indices = at::expand_outplace(indices);
  } catch (const std::exception &) {
    std::vector<at::IntArrayRef> shapes;
    std::ostringstream text;
    for (const at::Tensor &index : indices)
      if (index.defined())
        text << (text.tellp() == 0 ? "" : ", ") << index.sizes();
    TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together with shapes ", text.str());
  }
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(), "too many indices for tensor of dimension ", self.dim(),
                    " (got ", indices.size(), ")");
  return indices;
}

/* Shape of self[indices]: the indices' shape stands where the first index is, or in front when indexed dimensions aren't neighbours. */
std::vector<int64_t> indexed_sizes(const at::Tensor &self, const std::vector<at::Tensor> &indices) {
  int64_t first = -1, last = -1, count = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(indices.size()); ++d)
    if (indices[d].defined()) {
      first = first < 0 ? d : first;
      last = d;
      ++count;
    }
  const at::IntArrayRef shape = count ? indices[first].sizes() : at::IntArrayRef();
  const bool neighbours = last - first + 1 == count;
  std::vector<int64_t> sizes;
  if (count && !neighbours)
    sizes.insert(sizes.end(), shape.begin(), shape.end());
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (count && neighbours && d == first)
      sizes.insert(sizes.end(), shape.begin(), shape.end());
    if (d >= static_cast<int64_t>(indices.size()) || !indices[d].defined())
      sizes.push_back(self.size(d));
  }
  return sizes;
}

/* CANN's spelling of "whole dimension" is a tensor without elements. */
std::vector<at::Tensor> spelled(std::vector<at::Tensor> indices) {
  for (at::Tensor &index : indices)
    if (!index.defined())
      index = empty({0}, at::kLong);
  return indices;
}

at::Tensor take_indexed(const at::Tensor &self, const OptionalTensors &given) {
  check_index_devices(self, given);
  const OnDevice guard(device_index_of(self));
  const auto indices = plain_indices(self, given);
  const std::vector<int64_t> sizes = indexed_sizes(self, indices);
  const at::Tensor out = empty(sizes, self.scalar_type());
  if (self.numel() == 0)
    for (size_t d = 0; d < indices.size(); ++d)
      TORCH_CHECK_INDEX(!indices[d].defined() || self.size(static_cast<int64_t>(d)) != 0 || indices[d].numel() == 0,
                        "index is out of bounds for dimension with size 0");
  if (out.numel() == 0)
    return out;
  const auto list = spelled(indices);
  check(npu_index(argument(self), argument(at::TensorList(list)), argument(out), stream()));
  return out;
}

void check_indices_apart(const at::Tensor &written, const OptionalTensors &given) {
  for (const std::optional<at::Tensor> &index : given)
    if (index && index->defined())
      check_apart(written, *index);
}

at::Tensor &index_out(const at::Tensor &self, const OptionalTensors &given, at::Tensor &out) {
  check_apart(out, self);
  check_indices_apart(out, given);
  write_out(out, take_indexed(self, given));
  return out;
}

bool only_masks(const OptionalTensors &given) {
  for (const std::optional<at::Tensor> &index : given)
    if (!index || !index->defined() || (index->scalar_type() != at::kBool && index->scalar_type() != at::kByte))
      return false;
  return true;
}

at::Tensor &index_put(at::Tensor &self, const OptionalTensors &given, const at::Tensor &values, bool accumulate, bool unsafe) {
  check_index_devices(self, given);
  TORCH_CHECK_INDEX(static_cast<int64_t>(given.size()) <= self.dim(), "too many indices for tensor of dimension ", self.dim(),
                    " (got ", given.size(), ")");
  TORCH_CHECK(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ",
              self.scalar_type(), " for the destination and ", values.scalar_type(), " for the source.");
  if (!accumulate) {
    const auto [fits, mask] = at::native::canDispatchToMaskedFill(self, given, values);
    if (fits)
      return self.masked_fill_(mask, values.device() == self.device() ? values.reshape({}) : values.reshape({}).to(self.device()));
  }
  if (accumulate || values.numel() != 1 || !only_masks(given)) { // torch's CPU fills by mask then, which takes any value
    check_apart(self, values);
    check_indices_apart(self, given);
  }
  const OnDevice guard(device_index_of(self));
  const auto indices = plain_indices(self, given);
  const std::vector<int64_t> sizes = indexed_sizes(self, indices);
  at::Tensor source = values;
  if (values.device() != self.device() && values.numel() == 1 && values.dim() == 0)
    source = values.to(self.device());
  TORCH_CHECK(source.device() == self.device(), "expected self and values to be on the same device, but got ", self.device(),
              " and ", source.device());
  TORCH_CHECK(at::is_expandable_to(source.sizes(), sizes), "shape mismatch: value tensor of shape ", source.sizes(),
              " cannot be broadcast to indexing result of shape ", at::IntArrayRef(sizes));
  source = source.expand(sizes);
  if (source.numel() == 0)
    return self;
  const auto list = spelled(indices);
  check(npu_index_put(argument(self), argument(at::TensorList(list)), argument(source), accumulate, unsafe, stream()));
  return self;
}

/* The first `count` rows of a tensor that was made for the largest possible number, in memory of their own size. */
at::Tensor shrunk(const at::Tensor &bound, const npu_shape &shape) {
  const at::Tensor part = bound.narrow(0, 0, shape.sizes[0]);
  return part.numel() == bound.numel() ? part : part.clone();
}

at::Tensor find_nonzero(const at::Tensor &self) {
  const OnDevice guard(device_index_of(self));
  const at::Tensor out = empty({self.numel(), self.dim()}, at::kLong);
  if (self.numel() == 0)
    return out;
  if (self.dim() == 0) // (1, 0) or (0, 0): nothing to write
    return self.ne(0).item().toBool() ? empty({1, 0}, at::kLong) : empty({0, 0}, at::kLong);
  npu_shape shape{};
  check(npu_nonzero(argument(self), argument(out), &shape, stream()));
  return shrunk(out, shape);
}

at::Tensor &nonzero_out(const at::Tensor &self, at::Tensor &out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, "Expected object of scalar type ", at::kLong, " as out, but got ", out.scalar_type());
  write_out(out, find_nonzero(self));
  return out;
}

at::Tensor select_masked(const at::Tensor &self, const at::Tensor &mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  const OnDevice guard(device_index_of(self, mask));
  const auto sizes = at::infer_size(self.sizes(), mask.sizes());
  const at::Tensor source = self.expand(sizes), chosen = mask.expand(sizes);
  const at::Tensor out = empty({source.numel()}, self.scalar_type());
  if (out.numel() == 0)
    return out;
  npu_shape shape{};
  check(npu_masked_select(argument(source), argument(chosen), argument(out), &shape, stream()));
  return shrunk(out, shape);
}

at::Tensor &masked_select_out(const at::Tensor &self, const at::Tensor &mask, at::Tensor &out) {
  check_apart(out, self, mask);
  check_out_type(out, self.scalar_type(), "masked_select()");
  write_out(out, select_masked(self, mask));
  return out;
}

at::Tensor &index_fill_tensor(at::Tensor &self, int64_t dim, const at::Tensor &index, const at::Tensor &value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
              " dimension(s).");
  return self.index_fill_(dim, index, value.item());
}

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three unique2(const at::Tensor &self, bool sorted, bool return_inverse, bool return_counts) {
  const OnDevice guard(device_index_of(self));
  const at::Tensor values = empty({self.numel()}, self.scalar_type());
  const at::Tensor inverse = empty(return_inverse ? self.sizes() : at::IntArrayRef{0}, at::kLong);
  const at::Tensor counts = empty({return_counts ? self.numel() : 0}, at::kLong);
  if (self.numel() == 0)
    return {values, inverse, counts};
  npu_shape shapes[3]{};
  check(npu_unique(argument(self), sorted, return_inverse, return_counts, argument(values), argument(inverse), argument(counts),
                   shapes, stream()));
  return {shrunk(values, shapes[0]), inverse, return_counts ? shrunk(counts, shapes[0]) : counts};
}

std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor &self, bool sorted, bool return_inverse) {
  auto [values, inverse, counts] = unique2(self, sorted, return_inverse, false);
  return {values, inverse};
}

Three unique_consecutive(const at::Tensor &self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  const OnDevice guard(device_index_of(self));
  constexpr int64_t flat = 1000; // CANN's spelling of "no dimension", the only case that cards take
  if (dim && self.dim() > 0)
    return runs_along(self, *dim, return_inverse, return_counts);
  const int64_t count = self.numel();
  const at::Tensor values = empty({count}, self.scalar_type());
  const at::Tensor inverse = empty(return_inverse ? self.sizes() : at::IntArrayRef{0}, at::kLong);
  const at::Tensor counts = empty({return_counts ? count : 0}, at::kLong);
  if (self.numel() == 0)
    return {values, inverse, counts};
  npu_shape shapes[3]{};
  check(npu_unique_consecutive(argument(self), return_inverse, return_counts, flat, argument(values), argument(inverse),
                               argument(counts), shapes, stream()));
  return {shrunk(values, shapes[0]), inverse, return_counts ? shrunk(counts, shapes[0]) : counts};
}

Three unique_dim(const at::Tensor &self, int64_t dim, bool sorted, bool return_inverse, bool return_counts) {
  const OnDevice guard(device_index_of(self));
  dim = at::maybe_wrap_dim(dim, self.dim());
  const int64_t count = self.dim() > 0 ? self.size(dim) : 1;
  if (self.numel() == 0) {
    for (int64_t d = 0; d < self.dim(); ++d)
      TORCH_CHECK(d == dim || self.size(d) > 0 || count == 0,
                  "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return {self.clone(), empty({0}, at::kLong), empty({0}, at::kLong)};
  }
  const at::Tensor whole = self.dim() > 0 ? self : self.reshape({1});
  const at::Tensor values = empty(whole.sizes(), self.scalar_type()), inverse = empty({return_inverse ? count : 0}, at::kLong),
                   counts = empty({count}, at::kLong);
  npu_shape shapes[3]{};
  check(npu_unique_dim(argument(whole), dim, sorted, return_inverse, argument(values), argument(inverse), argument(counts), shapes,
                       stream()));
  const at::IntArrayRef sizes(shapes[0].sizes, static_cast<size_t>(shapes[0].ndim)); // at the start of the memory, row by row
  const at::Tensor found = values.view({-1}).narrow(0, 0, c10::multiply_integers(sizes)).view(sizes);
  return {found.numel() == values.numel() ? found : found.clone(), inverse, shrunk(counts, shapes[2])};
}

at::Tensor bincount(const at::Tensor &self, const std::optional<at::Tensor> &weights, int64_t minlength) {
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(self.dim() == 1, "bincount only supports 1-d non-negative integral inputs.");
  const OnDevice guard(device_index_of(self));
  const int64_t most = self.numel() ? self.max().item().toLong() : -1;
  TORCH_CHECK(self.numel() == 0 || self.min().item().toLong() >= 0, "bincount only supports 1-d non-negative integral inputs.");
  const bool weighted = weights && weights->defined();
  const at::Tensor out = empty({std::max(most + 1, minlength)}, !weighted                              ? at::kLong
                                                                : weights->scalar_type() == at::kFloat ? at::kFloat
                                                                                                       : at::kDouble);
  if (self.numel() == 0)
    return out.zero_();
  check(npu_bincount(argument(self), argument(weights), minlength, argument(out), stream()));
  return out;
}

at::Tensor repeat_interleave(const at::Tensor &repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  const OnDevice guard(device_index_of(repeats));
  const int64_t size = output_size ? *output_size : repeats.numel() ? repeats.sum().item().toLong() : 0;
  const at::Tensor out = empty({size}, repeats.scalar_type());
  if (size > 0)
    check(npu_repeat_interleave(argument(repeats), size, argument(out), stream()));
  return out;
}

at::Tensor search_sorted(const at::Tensor &sequence, const at::Tensor &self, bool out_int32, bool right,
                         std::optional<std::string_view> side, const std::optional<at::Tensor> &sorter) {
  TORCH_CHECK(!side || *side == "left" || *side == "right", "side can only be 'left' or 'right' but got ", side.value_or(""));
  const OnDevice guard(device_index_of(sequence));
  const at::Tensor out = empty(self.sizes(), out_int32 ? at::kInt : at::kLong);
  check(npu_searchsorted(argument(sequence), argument(self), out_int32, right || (side && *side == "right"), argument(sorter),
                         argument(out), stream()));
  return out;
}

at::Tensor &searchsorted_out(const at::Tensor &sequence, const at::Tensor &self, bool out_int32, bool right,
                             std::optional<std::string_view> side, const std::optional<at::Tensor> &sorter, at::Tensor &out) {
  check_out_type(out, out_int32 ? at::kInt : at::kLong, "torch.searchsorted()");
  write_out(out, search_sorted(sequence, self, out_int32, right, side, sorter));
  return out;
}

void register_indexing(torch::Library &m) {
  if (available("index")) {
    m.impl("index.Tensor", TORCH_FN(take_indexed));
    m.impl("index.Tensor_out", TORCH_FN(index_out));
  }
  if (available("index_put"))
    m.impl("_index_put_impl_", TORCH_FN(index_put));
  if (available("nonzero")) {
    m.impl("nonzero", TORCH_FN(find_nonzero));
    m.impl("nonzero.out", TORCH_FN(nonzero_out));
  }
  if (available("masked_select")) {
    m.impl("masked_select", TORCH_FN(select_masked));
    m.impl("masked_select.out", TORCH_FN(masked_select_out));
  }
  if (available("index_fill"))
    m.impl("index_fill_.int_Tensor", TORCH_FN(index_fill_tensor));
  if (available("unique")) {
    m.impl("_unique2", TORCH_FN(unique2));
    m.impl("_unique", TORCH_FN(unique));
  }
  if (available("unique_consecutive"))
    m.impl("unique_consecutive", TORCH_FN(unique_consecutive));
  if (available("unique_dim"))
    m.impl("unique_dim", TORCH_FN(unique_dim));
  if (available("bincount"))
    m.impl("bincount", TORCH_FN(bincount));
  if (available("repeat_interleave"))
    m.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
  if (available("searchsorted")) {
    m.impl("searchsorted.Tensor", TORCH_FN(search_sorted));
    m.impl("searchsorted.Tensor_out", TORCH_FN(searchsorted_out));
  }
}
const Registrar registrar(&register_indexing);

} // namespace
} // namespace npu
