/* torch's device guard for npu: devices, streams and events behind c10's generic classes (torch.Stream, torch.Event). */
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "bridge/runtime/runtime.h"

namespace npu {
namespace {

constexpr uint32_t kEventSync = 0x1, kEventTiming = 0x8; // ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kDevice;
  Guard() = default;
  explicit Guard(c10::DeviceType type) { TORCH_INTERNAL_ASSERT(type == kDevice); }

  c10::DeviceType type() const override { return kDevice; }
  c10::Device exchangeDevice(c10::Device device) const override { return {kDevice, exchange_device(device.index())}; }
  c10::Device getDevice() const override { return {kDevice, current_device()}; }
  void setDevice(c10::Device device) const override { set_device(resolve_index(device.index())); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < device_count())
      set_device(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count(); }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return {}; }

  c10::Stream getStream(c10::Device device) const override { return current_stream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override { return default_stream(device.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high) const override {
    return new_stream(device.index(), high ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device device, int priority) const override { return new_stream(device.index(), priority); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return exchange_stream(stream); }
  void *getStreamNativeHandle(const c10::Stream stream) const override { return stream_handle(stream); }

  bool queryStream(const c10::Stream &stream) const override {
    aclrtStreamStatus status;
    check_status(cann.aclrtStreamQuery(stream_handle(stream), &status), "aclrtStreamQuery");
    return status == ACL_STREAM_STATUS_COMPLETE;
  }
  void synchronizeStream(const c10::Stream &stream) const override { synchronize_stream(stream); }
  void synchronizeDevice(const c10::DeviceIndex device) const override { synchronize_device(device); }

  void record(void **event, const c10::Stream &stream, const c10::DeviceIndex device, const c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device ", static_cast<int>(device),
                " does not match recording stream's device ", static_cast<int>(stream.device_index()));
    const aclrtStream handle = stream_handle(stream);
    if (!*event) {
      const uint32_t flags = flag == c10::EventFlag::PYTORCH_DEFAULT ? kEventSync : kEventSync | kEventTiming;
      use_device(resolve_index(stream.device_index())); // autograd's threads have told CANN of no device yet
      check_status(cann.aclrtCreateEventWithFlag(event, flags), "aclrtCreateEventWithFlag");
    }
    check_status(cann.aclrtRecordEvent(*event, handle), "aclrtRecordEvent");
  }
  void block(void *event, const c10::Stream &stream) const override {
    if (event)
      check_status(cann.aclrtStreamWaitEvent(stream_handle(stream), event), "aclrtStreamWaitEvent");
  }
  bool queryEvent(void *event) const override {
    if (!event)
      return true;
    aclrtEventRecordedStatus status;
    check_status(cann.aclrtQueryEventStatus(event, &status), "aclrtQueryEventStatus");
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }
  void synchronizeEvent(void *event) const override {
    if (event)
      check_status(cann.aclrtSynchronizeEvent(event), "aclrtSynchronizeEvent");
  }
  void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
    if (event && !in_bad_fork())
      cann.aclrtDestroyEvent(event);
  }
  double elapsedTime(void *start, void *end, const c10::DeviceIndex) const override {
    TORCH_CHECK(start && end, "Both events must be recorded before calculating elapsed time.");
    float milliseconds = 0;
    check_status(cann.aclrtEventElapsedTime(&milliseconds, start, end), "aclrtEventElapsedTime");
    return static_cast<double>(milliseconds);
  }
  void recordDataPtrOnStream(const c10::DataPtr &data, const c10::Stream &stream) const override {
    static_cast<c10::DeviceAllocator *>(allocator())->recordStream(data, stream);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

} // namespace
} // namespace npu
