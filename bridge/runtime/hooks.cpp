/* torch's hooks for a device outside its tree: generators, pinned memory, contexts, storage resizing. */
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Storage.h>

#include "bridge/runtime/host_allocator.h"
#include "bridge/runtime/runtime.h"

namespace npu {

at::Generator new_generator(c10::DeviceIndex device);

namespace {

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override { ensure_initialized(); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return is_initialized(); }
  c10::DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(c10::DeviceIndex device) const override { set_device(device); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override { return exchange_device(device); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override { return exchange_device(device); }
  bool isPinnedPtr(const void *data) const override { return is_pinned(data); }
  c10::Allocator *getPinnedMemoryAllocator() const override { return host_allocator(); }
  c10::Device getDeviceFromPtr(void *data) const override { return {kDevice, device_of_pointer(data)}; }
  const at::Generator &getDefaultGenerator(c10::DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(c10::DeviceIndex device) const override { return new_generator(device); }

  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override {
    c10::StorageImpl *impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    const c10::DeviceIndex device = storage.device().index();
    c10::DataPtr grown = allocate(bytes, device);
    const size_t kept = std::min(bytes, impl->nbytes());
    if (kept > 0)
      check_status(
          cann.aclrtMemcpyAsync(grown.get(), bytes, impl->data(), kept, ACL_MEMCPY_DEVICE_TO_DEVICE, current_stream_handle(device)),
          "aclrtMemcpyAsync");
    impl->set_data_ptr_noswap(std::move(grown));
    impl->set_nbytes(bytes);
  }
};

[[maybe_unused]] const bool registered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

} // namespace
} // namespace npu
