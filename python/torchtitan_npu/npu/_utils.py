"""Device arguments: None, an index, "npu", "npu:1", torch.device. torch.load looks for _get_device_index by this module's name."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from torchtitan_npu._errors import with_error_line

Device: TypeAlias = int | str | torch.device | None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index that `device` stands for; the current device's where it names none and `optional` allows that; -1 for an allowed cpu."""
    from torchtitan_npu.npu.devices import current_device

    if isinstance(device, bool):
        raise TypeError(with_error_line(f"expected an npu device, but got the bool {device}", "invalid type"))
    if isinstance(device, int):
        return device
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if device.type == "cpu" and allow_cpu:
            return -1
        if device.type != "npu":
            raise ValueError(with_error_line(f"expected an npu device, but got {device}", "invalid value"))
        if device.index is not None:
            return device.index
        device = None
    if device is None:
        if not optional:
            raise ValueError(with_error_line('expected an npu device with an index, such as 0 or "npu:0"', "invalid value"))
        return current_device()
    raise TypeError(with_error_line(f"expected an int, a str or a torch.device, but got {type(device).__name__}", "invalid type"))


def checked_index(device: Device) -> int:
    """As _get_device_index with None for the current device, but the device must exist."""
    from torchtitan_npu.npu.devices import device_count

    index = _get_device_index(device, optional=True)
    count = device_count()
    if not 0 <= index < count:
        allowed = f"allowed are 0 to {count - 1}" if count else "there is none"
        raise RuntimeError(with_error_line(f"Invalid device id: npu:{index}; this process sees {count} device(s), {allowed}", "invalid value"))
    return index
