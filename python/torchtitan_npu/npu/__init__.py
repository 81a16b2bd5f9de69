"""torch.npu, also as torch_npu.npu and torchtitan_npu.npu: devices, streams, events, memory, random numbers, mixed precision."""

from __future__ import annotations

from typing import Any

import torch

from torchtitan_npu.npu import _utils, amp, memory, random, typed
from torchtitan_npu.npu.amp import (
    GradScaler,
    autocast,
    get_amp_supported_dtype,
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from torchtitan_npu.npu.devices import (
    DeviceProperties,
    _exchange_device,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    fallback_counts,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    reset_fallback_counts,
    set_device,
    synchronize,
)
from torchtitan_npu.npu.memory import (
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_empty_cache,
    host_memory_stats,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torchtitan_npu.npu.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torchtitan_npu.npu.streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream

OutOfMemoryError = torch.OutOfMemoryError


def __getattr__(name: str) -> Any:
    """Names whose value is known only when asked for: torch reads _initialized and default_generators as plain attributes."""
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":
        return random.default_generators()
    if name in typed.TYPES:
        return typed.TYPES[name]
    raise AttributeError(f"module 'torch.npu' has no attribute {name!r}")


__all__ = [
    *typed.TYPES,
    "DeviceProperties",
    "Event",
    "GradScaler",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "_exchange_device",
    "_is_in_bad_fork",
    "_lazy_init",
    "_maybe_exchange_device",
    "_utils",
    "amp",
    "autocast",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "fallback_counts",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_autocast_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "host_empty_cache",
    "host_memory_stats",
    "init",
    "initial_seed",
    "is_autocast_enabled",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_snapshot",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_fallback_counts",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
