"""Memory of the device as its caching allocator counts it, under torch.cuda's and torch_npu's names."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from torchtitan_npu import _bridge
from torchtitan_npu._errors import with_error_line
from torchtitan_npu.npu._utils import Device, checked_index


def _is_started() -> bool:
    return _bridge.is_initialized()


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the device."""
    if _is_started():
        _bridge.empty_cache()


def host_empty_cache() -> None:
    """Gives pinned host memory that no tensor uses back to the system."""
    if _is_started():
        torch._C._accelerator_emptyHostCache()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of the device, whoever uses them."""
    index = checked_index(device)
    _bridge.init()
    return _bridge.memory_info(index)


def memory_stats(device: Device = None) -> dict[str, int]:
    """The allocator's counters by flat names, such as "allocated_bytes.all.peak"; empty before the runtime starts."""
    index = checked_index(device)
    return dict(sorted(_bridge.memory_stats(index).items())) if _is_started() else {}


def host_memory_stats() -> dict[str, int]:
    """The counters of pinned host memory by flat names, such as "active_bytes.peak"; empty before the runtime starts."""
    return dict(sorted(_bridge.host_memory_stats().items())) if _is_started() else {}


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The same counters as dictionaries in dictionaries."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        inner = nested
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return nested


def _counter(name: str, device: Device) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Device = None) -> int:
    """Bytes in tensors now."""
    return _counter("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes in tensors at a time, since the start or the last reset."""
    return _counter("allocated_bytes.all.peak", device)


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds of the device, in tensors or cached."""
    return _counter("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes held at a time, since the start or the last reset."""
    return _counter("reserved_bytes.all.peak", device)


def memory_cached(device: Device = None) -> int:
    """Old name of memory_reserved."""
    warnings.warn("torch.npu.memory_cached has been renamed to torch.npu.memory_reserved", FutureWarning, stacklevel=2)
    return memory_reserved(device)


def max_memory_cached(device: Device = None) -> int:
    """Old name of max_memory_reserved."""
    warnings.warn("torch.npu.max_memory_cached has been renamed to torch.npu.max_memory_reserved", FutureWarning, stacklevel=2)
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Starts all peak counters anew from the current values."""
    index = checked_index(device)
    if _is_started():
        _bridge.reset_peak_memory_stats(index)


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Sets the counters of all allocations and frees so far to zero."""
    index = checked_index(device)
    if _is_started():
        _bridge.reset_accumulated_memory_stats(index)


def reset_max_memory_allocated(device: Device = None) -> None:
    """Old name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Device = None) -> None:
    """Old name of reset_peak_memory_stats."""
    reset_peak_memory_stats(device)


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Caps this process's share of the device's memory; asking for more raises torch.OutOfMemoryError."""
    index = checked_index(device)
    if not isinstance(fraction, (int, float)) or isinstance(fraction, bool):
        raise TypeError(with_error_line(f"the memory fraction must be a number, but got {type(fraction).__name__}", "invalid type"))
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(with_error_line(f"Invalid fraction value: {fraction}. Allowed range: 0~1", "invalid value"))
    _bridge.init()
    _bridge.set_memory_fraction(float(fraction), index)


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The share that set_per_process_memory_fraction allows; 1.0 without a cap."""
    return _bridge.get_memory_fraction(checked_index(device))


def get_allocator_backend() -> str:
    """Name of the allocator in use."""
    return "native"


_SUMMARY_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Requested memory", "requested_bytes", True),
    ("Reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocations", "active", False),
    ("Reserved segments", "segment", False),
    ("Non-releasable blocks", "inactive_split", False),
)


def _size_text(count: int) -> str:
    value, units = float(count), iter(("B", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while abs(value) >= 1024 and unit != "TiB":
        value, unit = value / 1024, next(units)
    return f"{int(value)} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The counters as a table to print; `abbreviated` leaves out the split into large and small blocks."""
    index = checked_index(device)
    stats = memory_stats(index)
    columns = ("current", "peak", "allocated", "freed")
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    lines = [
        f"NPU memory of npu:{index} (process {os.getpid()})",
        f"out of memory: {stats.get('num_ooms', 0)}, retries after giving the cache back: {stats.get('num_alloc_retries', 0)}",
        f"{'':<34}" + "".join(f"{name:>14}" for name in columns),
    ]
    for title, name, in_bytes in _SUMMARY_ROWS:
        for pool in pools:
            values = [stats.get(f"{name}.{pool}.{column}", 0) for column in columns]
            label = title if pool == "all" else f"    {pool.replace('_', ' ')}"
            lines.append(f"{label:<34}" + "".join(f"{_size_text(value) if in_bytes else value:>14}" for value in values))
    return "\n".join(lines) + "\n"


_RECORDINGS = {None: 0, "state": 1, "all": 2}
_CONTEXTS = {None: 0, "state": 1, "alloc": 2, "all": 3}
_STACKS = ("python", "all")


def _choice(name: str, value: Any, allowed: Any) -> Any:
    if value not in allowed:
        raise ValueError(with_error_line(f"{name} must be one of {', '.join(map(repr, allowed))}, but got {value!r}", "invalid value"))
    return value


def _record_memory_history(
    enabled: str | bool | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Device = None,
    clear_history: bool = False,
    **unused: Any,
) -> None:
    """Switches the recording of allocations on all devices, with the Python stacks that asked for them; see _snapshot.

    `enabled`: None nothing, "state" the stacks of memory in use, "all" also every allocation and free. `context`: which of them carry a
    stack: None, "state", "alloc", "all". `max_entries`: events kept a device, the latest. As torch.cuda.memory's function of this name;
    C++ frames aren't recorded, and its further options are accepted without effect.
    """
    if isinstance(enabled, bool):
        enabled = "all" if enabled else None
    _choice("stacks", stacks, _STACKS)
    recording, contexts = _RECORDINGS[_choice("enabled", enabled, _RECORDINGS)], _CONTEXTS[_choice("context", context, _CONTEXTS)]
    _bridge.init()
    _bridge.record_memory_history(recording, contexts if recording else 0, max_entries, clear_history)


def _snapshot(device: Device = None) -> dict[str, Any]:
    """Segments with their blocks, and the recorded events of each device, in the form of torch.cuda.memory._snapshot, which
    pytorch.org/memory_viz and torch.cuda._memory_viz read."""
    _bridge.init()
    return _bridge.memory_snapshot()


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Writes _snapshot() to a file, pickled."""
    Path(filename).write_bytes(pickle.dumps(_snapshot()))


def memory_snapshot() -> list[dict[str, Any]]:
    """The segments of all devices with their blocks."""
    return _snapshot()["segments"]
