"""Mixed precision under torch.npu's name: torch.amp with the device filled in."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch.amp import GradScaler as _GradScaler


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What autocast may be asked for; torch looks for this by name."""
    return [torch.float16, torch.bfloat16]


def is_autocast_enabled() -> bool:
    """Is autocast for npu on in this thread?"""
    return torch.is_autocast_enabled("npu")


def set_autocast_enabled(enabled: bool) -> None:
    """Switches autocast for npu in this thread."""
    torch.set_autocast_enabled("npu", enabled)


def get_autocast_dtype() -> torch.dtype:
    """What autocast for npu was asked for."""
    return torch.get_autocast_dtype("npu")


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Sets what autocast for npu is asked for when it is entered without a dtype."""
    torch.set_autocast_dtype("npu", dtype)


class autocast(torch.amp.autocast):
    """As torch.amp.autocast("npu", ...)."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype | None = None, cache_enabled: bool = True) -> None:
        super().__init__("npu", dtype=dtype or get_autocast_dtype(), enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """As torch.amp.GradScaler("npu", ...)."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "npu",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )


custom_fwd: Any = functools.partial(torch.amp.custom_fwd, device_type="npu")
custom_bwd: Any = functools.partial(torch.amp.custom_bwd, device_type="npu")
