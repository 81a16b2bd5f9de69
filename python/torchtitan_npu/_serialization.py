"""torchtitan_npu.save: files that load anywhere, without map_location.

torch.save tags each storage with its device, here `npu:0`; such a file needs map_location where there is no npu. Within save() storages of
npu are tagged `cpu`, as torch.save would have done had the tensors been moved first: sharing between tensors is kept, nothing is copied twice.
"""

from __future__ import annotations

import threading
from typing import Any

import torch

_saving = threading.local()


def _tag(storage: Any) -> str | None:
    return "cpu" if getattr(_saving, "depth", 0) and storage.device.type == "npu" else None


def _restore(storage: Any, location: str) -> Any:
    return None


torch.serialization.register_package(9, _tag, _restore)  # 10 is torch's own for cpu; the first that answers wins


def save(obj: object, f: Any, **options: Any) -> None:
    """As torch.save, but what lies on npu is written as if it lay on the CPU."""
    _saving.depth = getattr(_saving, "depth", 0) + 1
    try:
        torch.save(obj, f, **options)
    finally:
        _saving.depth -= 1
