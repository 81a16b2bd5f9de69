/* The random generator of a device: Philox (seed, offset), with CUDA's rules for state and offsets.
 *
 * State: 16 bytes, seed then offset, as torch's CUDA generator saves it. Offsets grow in multiples of 4 (one Philox call gives four
 * numbers). */
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/Utils.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>

#include <array>
#include <deque>
#include <mutex>

#include "bridge/runtime/runtime.h"

namespace npu {
namespace {

constexpr uint64_t kDefaultSeed = c10::default_rng_seed_val;

struct PhiloxGenerator final : c10::GeneratorImpl {
  explicit PhiloxGenerator(c10::DeviceIndex device)
      : GeneratorImpl(c10::Device(kDevice, device), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {}

  void set_current_seed(uint64_t value) override {
    seed_ = value;
    offset_ = 0;
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset % 4 == 0, "offset must be a multiple of 4, got ", offset);
    offset_ = offset;
  }
  uint64_t get_offset() const override { return offset_; }

  void set_state(const c10::TensorImpl &state) override {
    at::detail::check_rng_state(state);
    const auto bytes = state.numel();
    TORCH_CHECK(bytes == 16 || bytes == 8, "RNG state is wrong size: ", bytes, " bytes, expected 16 (seed, offset) or 8 (seed)");
    const auto *values = state.data_dtype_initialized<uint8_t>();
    std::memcpy(&seed_, values, 8);
    offset_ = 0;
    if (bytes == 16)
      std::memcpy(&offset_, values + 8, 8);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    at::Tensor state = at::empty({16}, at::TensorOptions().device(at::kCPU).dtype(at::kByte));
    std::memcpy(state.mutable_data_ptr(), &seed_, 8);
    std::memcpy(static_cast<char *>(state.mutable_data_ptr()) + 8, &offset_, 8);
    return state.getIntrusivePtr();
  }
  uint64_t take(uint64_t increment) {
    const uint64_t before = offset_;
    offset_ += (increment + 3) / 4 * 4;
    return before;
  }
  PhiloxGenerator *clone_impl() const override {
    auto *copy = new PhiloxGenerator(device().index());
    copy->seed_ = seed_;
    copy->offset_ = offset_;
    return copy;
  }

private:
  uint64_t seed_ = kDefaultSeed;
  uint64_t offset_ = 0;
};

} // namespace

const at::Generator &default_generator(c10::DeviceIndex device) {
  static std::array<std::once_flag, kMaxDevices> made;
  static std::array<at::Generator, kMaxDevices> generators;
  const c10::DeviceIndex index = resolve_index(device);
  std::call_once(made[index], [&] { generators[index] = at::make_generator<PhiloxGenerator>(index); });
  return generators[index];
}

at::Generator new_generator(c10::DeviceIndex device) { return at::make_generator<PhiloxGenerator>(resolve_index(device)); }

std::pair<uint64_t, uint64_t> philox_state(const std::optional<at::Generator> &generator, uint64_t increment) {
  at::Generator chosen = generator.has_value() && generator->defined() ? *generator : default_generator(current_device());
  TORCH_CHECK(chosen.device().type() == kDevice, "Expected a 'npu' device type for generator but found '", chosen.device().type(),
              "'");
  TORCH_CHECK(chosen.device().index() == current_device(), "Expected a 'npu:", int(current_device()),
              "' generator device but found '", chosen.device(), "'");
  std::lock_guard<std::mutex> guard(chosen.mutex());
  auto *philox = static_cast<PhiloxGenerator *>(chosen.unsafeGetGeneratorImpl());
  return {philox->current_seed(), philox->take(increment)};
}

} // namespace npu
