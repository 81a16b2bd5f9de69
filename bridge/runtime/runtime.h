/* What the operator wrappers need of the runtime half of the bridge: device, stream, memory, random state, errors.
 *
 * Invariant: the runtime starts on first use (ensure_initialized), never by asking whether a device is there. The current device is
 * a thread's own; CANN is told of it (aclrtSetDevice) only when a call needs it. */
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "op_plugin/api.h"

namespace npu {

constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 64;

/* --- device.cpp --- */
void ensure_initialized(); // throws: no library, bad fork
bool is_initialized() noexcept;
bool in_bad_fork() noexcept; // a child forked after the parent had started the runtime: nothing of ours may be freed or locked
c10::DeviceIndex device_count() noexcept;
c10::DeviceIndex current_device() noexcept;
void set_device(c10::DeviceIndex index); // throws on a bad index, leaving the state alone
c10::DeviceIndex exchange_device(c10::DeviceIndex index);
void use_device(c10::DeviceIndex index);       // tells CANN, for calls that depend on its current device
c10::DeviceIndex resolve_index(int64_t index); // -1 -> the current one; throws when there is no such device
void synchronize_device(c10::DeviceIndex index);
bool launch_blocking() noexcept; // ASCEND_LAUNCH_BLOCKING=1

/* --- errors.cpp --- */
/* Throws for a CANN code != 0: torch_npu's words, CANN's own text, and the ERR line. `call` names what was called. */
[[noreturn]] void throw_status(int code, const char *call);
inline void check_status(int code, const char *call) {
  if (C10_UNLIKELY(code != 0))
    throw_status(code, call);
}
/* The last line of every error of ours: "[ERROR] <time> (PID:.., Device:.., RankID:..) ERR00100 PTA call acl api failed". */
std::string error_line(const char *code_and_kind);

/* --- streams.cpp --- */
aclrtStream stream_handle(const c10::Stream &stream);
aclrtStream current_stream_handle(c10::DeviceIndex device); // starts the device when needed
c10::Stream current_stream(c10::DeviceIndex device);
c10::Stream default_stream(c10::DeviceIndex device);
c10::Stream new_stream(c10::DeviceIndex device, int priority);
c10::Stream exchange_stream(c10::Stream stream); // throws when the device has no such stream
void synchronize_stream(const c10::Stream &stream);
std::pair<int, int> stream_priority_range(); // least, greatest

/* --- caching_allocator.cpp --- */
struct Block; // memory handed out; context of a DataPtr
c10::DataPtr allocate(size_t bytes, c10::DeviceIndex device);
c10::Allocator *allocator() noexcept;
void set_memory_fraction(double fraction, c10::DeviceIndex device);
double memory_fraction(c10::DeviceIndex device);

/* --- generator.cpp --- */
const at::Generator &default_generator(c10::DeviceIndex device);
/* Reserves `increment` Philox outputs; the values that the kernel must use. */
std::pair<uint64_t, uint64_t> philox_state(const std::optional<at::Generator> &generator, uint64_t increment);

/* --- tensors.cpp --- */
at::Tensor empty(c10::IntArrayRef sizes, c10::ScalarType dtype, std::optional<c10::MemoryFormat> format = std::nullopt);
at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype);

/* --- bridge/fallback.cpp --- */
std::vector<std::pair<std::string, int64_t>> fallback_counts(); // "aten::name.overload" -> calls that ran on the CPU
void reset_fallback_counts();

} // namespace npu
