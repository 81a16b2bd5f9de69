"""Streams and events: torch's generic ones with the constructors and the names that torch.cuda's and torch_npu's have."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any

import torch

from torchtitan_npu import _bridge
from torchtitan_npu.npu._utils import Device, _get_device_index, checked_index
from torchtitan_npu.npu.devices import _exchange_device, current_device


class Stream(torch.Stream):
    """An ordered queue of work on one device. `priority` 0 is the usual one, negative is more urgent."""

    def __new__(cls, device: Any = None, priority: int = 0, **identity: int) -> Stream:
        """A stream of `device` (None: the current one), or the one that stream_id, device_index and device_type name."""
        if identity:
            return super().__new__(cls, **identity)
        if _bridge.is_in_bad_fork():
            _bridge.init()  # raises, naming spawn
        return super().__new__(cls, device=torch.device("npu", checked_index(device)), priority=priority)

    def wait_event(self, event: torch.Event) -> None:
        """Work queued on this stream from now on waits for the event; the caller doesn't."""
        event.wait(self)

    def wait_stream(self, stream: torch.Stream) -> None:
        """Work queued on this stream from now on waits for all that `stream` holds now; the caller doesn't."""
        self.wait_event(stream.record_event())

    def record_event(self, event: torch.Event | None = None) -> torch.Event:
        """Marks this point of the stream with the event (None: a new one) and returns it."""
        if event is None:
            event = Event()
        event.record(self)
        return event

    @property
    def npu_stream(self) -> int:
        """The aclrtStream behind this stream, as a number."""
        return int(self.native_handle)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_stream)

    def __repr__(self) -> str:
        return f"<torch.npu.Stream device={self.device} stream_id={self.stream_id}>"


class EventType(type):
    """Class of Event. Event(...) makes a torch.Event: torch's Event.elapsed_time and Stream.record_event take no subclass of it."""

    def __call__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False) -> torch.Event:
        """An event of the current device."""
        if interprocess or external:
            what = "interprocess" if interprocess else "external"
            raise NotImplementedError(f"torch.npu.Event({what}=True) is not supported yet; create the event without it")
        return torch.Event(device=torch.device("npu", current_device()), enable_timing=enable_timing, blocking=blocking)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Event) and instance.device is not None and instance.device.type == "npu"


class Event(torch.Event, metaclass=EventType):
    """A mark in a stream: to wait for, to ask about, and (with enable_timing) to measure time between."""


def _wrapped(stream: torch.Stream) -> Stream:
    if isinstance(stream, Stream):
        return stream
    return Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def current_stream(device: Device = None) -> Stream:
    """This thread's current stream of a device (None: the current device)."""
    return _wrapped(torch._C._accelerator_getStream(checked_index(device)))


def default_stream(device: Device = None) -> Stream:
    """The stream that is current where none was chosen."""
    device_type = torch._C._autograd.DeviceType.PrivateUse1.value
    return Stream(stream_id=0, device_index=checked_index(device), device_type=int(device_type))


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream, and its device, this thread's current ones; None changes nothing."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Context manager: another current stream inside; the device's own current stream is put back too. None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._device_before = -1
        self._stream_before: torch.Stream | None = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        index = _get_device_index(self.stream.device, optional=True)
        self._device_before = current_device()
        self._stream_before = torch._C._accelerator_getStream(index)
        torch._C._accelerator_setStream(self.stream)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._stream_before is not None:
            torch._C._accelerator_setStream(self._stream_before)
            _exchange_device(self._device_before)


def stream(stream: torch.Stream | None) -> StreamContext:
    """Context manager: `with torch.npu.stream(s): ...` queues the work inside on `s`."""
    return StreamContext(stream)
