"""Every change that this package makes to torch's own modules, each with its reason. Applied once, after the device is registered."""

from __future__ import annotations

import atexit
import enum
import functools
import time
from typing import Any

import torch


def apply() -> None:
    """Makes all changes."""
    _dlpack_device()
    _tensor_type()
    _sharing()
    _autograd_in_its_caller()
    atexit.register(_let_autograd_finish)


def _dlpack_device() -> None:
    """Tensor.__dlpack_device__ compares with the name `privateuse1`, which renaming has made unreachable; so from_dlpack fails."""
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def __dlpack_device__(self: torch.Tensor) -> tuple[enum.IntEnum, int]:
        if self.device.type != "npu":
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return (DLDeviceType.kDLExtDev, self.device.index or 0)

    torch.Tensor.__dlpack_device__ = __dlpack_device__


def _tensor_type() -> None:
    """Tensor.type() knows no legacy type names of an outside device, neither to tell nor to convert to; torch_npu has them."""
    original = torch.Tensor.type
    from torchtitan_npu.npu import typed

    @functools.wraps(original)
    def type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        if dtype is None and self.device.type == "npu":
            return typed.name_of(self)
        if (target := typed.dtype_of(dtype)) is not None:
            return self.to(device="npu", dtype=target, non_blocking=non_blocking)
        return original(self, dtype, non_blocking, **options) if dtype is not None else original(self)

    torch.Tensor.type = type


def _sharing() -> None:
    """torch.multiprocessing knows no outside device: a queue's thread failed where its caller couldn't see it. Memory of npu belongs to one
    process, so what is sent goes through shared memory of the CPU, and the receiver gets a copy on the same device, not the same memory."""
    from multiprocessing.reduction import ForkingPickler

    from torch.multiprocessing import reductions

    original = reductions.reduce_storage

    def reduce_storage(storage: torch.UntypedStorage) -> tuple[Any, ...]:
        if storage.device.type != "npu":
            return original(storage)
        return (_received_storage, (storage.cpu(), storage.device.index))

    ForkingPickler.register(torch.UntypedStorage, reduce_storage)


def _received_storage(storage: torch.UntypedStorage, index: int) -> torch.UntypedStorage:
    """What another process sent from npu:`index`, on the device of that number here."""
    return torch.UntypedStorage(storage.nbytes(), device=f"npu:{index}").copy_(storage, non_blocking=False)


def _autograd_in_its_caller() -> None:
    """torch's engine gives the backward nodes of a device to a thread of their own, so that several devices are fed at once. With one device
    a process this only costs: handing a graph over and back takes about 35 us, three times what the nodes of a small one take. torch's own
    switch, which belongs to a thread (this one: the importing), has them run in the caller, as those of CPU tensors always do."""
    torch.autograd.set_multithreading_enabled(False)


def _let_autograd_finish() -> None:
    """torch's autograd threads drop Python objects of a backward after its caller went on, and wait for the interpreter's lock to do so. A
    program that ends at once lets them wait into the interpreter's end, where Python unwinds such a thread and the process aborts, its exit
    code lost. Sleeping hands the lock over. A program that never used the device has no such thread."""
    if torch.npu.is_initialized():
        time.sleep(0.005)
