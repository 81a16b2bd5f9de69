"""Devices: how many there are, which one is current, what they are. Asking never starts the runtime; using does."""

from __future__ import annotations

import dataclasses
import os
from types import TracebackType
from typing import Any

from torchtitan_npu import _bridge
from torchtitan_npu.npu._utils import Device, _get_device_index, checked_index


@dataclasses.dataclass(frozen=True)
class DeviceProperties:
    """What the chip is and has."""

    name: str
    total_memory: int
    cube_core_num: int
    vector_core_num: int
    multi_processor_count: int
    L2_cache_size: int
    major: int = 0
    minor: int = 0


def device_count() -> int:
    """Number of devices that this process sees."""
    return _bridge.device_count()


def is_available() -> bool:
    """Is there at least one device? Doesn't start the runtime."""
    return device_count() > 0


def init() -> None:
    """Starts the runtime; using a device does that by itself. Raises in a child forked after the start."""
    _bridge.init()


def is_initialized() -> bool:
    """Has the runtime of this process been started?"""
    return _bridge.is_initialized()


def _lazy_init() -> None:
    """torch calls this before the first tensor of the device."""
    _bridge.init()


def _is_in_bad_fork() -> bool:
    """Was this process forked off one whose runtime had been started?"""
    return _bridge.is_in_bad_fork()


def fallback_counts() -> dict[str, int]:
    """Operators that ran on the CPU instead, "aten::name.overload" -> calls so far."""
    return _bridge.fallback_counts()


def reset_fallback_counts() -> None:
    """Starts counting anew."""
    _bridge.reset_fallback_counts()


def current_device() -> int:
    """Index of this thread's current device."""
    return _bridge.current_device()


def set_device(device: Device) -> None:
    """Makes a device this thread's current one (a negative index changes nothing); RuntimeError, and no change, if there is no such device."""
    index = _get_device_index(device, optional=True)
    if _bridge.is_in_bad_fork():
        _bridge.init()  # raises, naming spawn
    if index >= 0:
        _bridge.set_device(checked_index(index))


def _exchange_device(index: int) -> int:
    """Makes the device current, unless the index is negative; returns the one before."""
    before = current_device()
    if index >= 0 and index != before:
        _bridge.set_device(checked_index(index))
    return before


_maybe_exchange_device = _exchange_device


class device:
    """Context manager: another current device inside."""

    def __init__(self, device: Any) -> None:
        self.idx = _get_device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _exchange_device(self.prev_idx)


class device_of(device):
    """Context manager: the device of a tensor or storage is current inside; one that isn't on npu changes nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "npu" else -1)


def synchronize(device: Device = None) -> None:
    """Waits for all work queued on a device (None: the current one); an error inside that work is raised here."""
    _bridge.synchronize(checked_index(device))


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Name, memory and core numbers of a device."""
    facts = _bridge.properties(checked_index(device))
    return DeviceProperties(
        name=facts["name"],
        total_memory=facts["total_memory"],
        cube_core_num=facts["cube_core_num"],
        vector_core_num=facts["vector_core_num"],
        multi_processor_count=facts["cube_core_num"],
        L2_cache_size=facts["L2_cache_size"],
    )


def get_device_name(device: Device = None) -> str:
    """SoC name, such as Ascend910B2."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int] | None:
    """What TORCH_NPU_DEVICE_CAPABILITY says ("8.0" gives (8, 0)), else None: chips of this kind have no such number."""
    checked_index(device)
    text = os.environ.get("TORCH_NPU_DEVICE_CAPABILITY")
    if not text:
        return None
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Can one device read the other's memory? Devices of one host can; a device and itself count as no peers."""
    return checked_index(device) != checked_index(peer_device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Does the chip compute in bfloat16? Those from Ascend910B1 on do; the older Ascend910A, 910ProA and their like don't."""
    name = get_device_name()
    old = ("Ascend910A", "Ascend910Pro", "Ascend910Premium", "Ascend310")
    return name != "Ascend910B" and not name.startswith(old)


def get_arch_list() -> list[str]:
    """SoC names of the devices present."""
    return sorted({get_device_name(index) for index in range(device_count())})
