"""Registers the device with torch, once a process.

Order matters: name, library, module, methods. torch looks for `torch.npu` as soon as a tensor asks for the device, and the library's
static initialisers register guard, hooks and allocators, which torch accepts once only.
"""

from __future__ import annotations

import importlib
import sys
import threading
import types
from typing import Any

from torchtitan_npu import _surroundings

_lock = threading.RLock()
_done = False
_passive = False


def register() -> None:
    """Makes `npu` a device of torch, unless torch_npu serves it; later calls do nothing."""
    global _done, _passive
    with _lock:
        if _done:
            return
        if _surroundings.torch_npu_serves():
            _passive = _done = True
            print("torchtitan_npu: torch_npu and CANN serve the device npu; this package stays passive", file=sys.stderr)
            return
        _register_device()
        _done = True
        if _surroundings.real_torch_npu_installed():
            print(
                "torchtitan_npu: torch_npu is installed, but CANN's libraries are not to be found; the software NPU serves the device npu",
                file=sys.stderr,
            )
        else:
            _surroundings.add_alias()


def _register_device() -> None:
    import torch

    from torchtitan_npu import _build

    _surroundings.check_torch(_build.TORCH_VERSION, torch.__version__)
    name = torch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", "npu"):
        raise ImportError(f"torch's slot for an outside device is taken by {name!r}; two accelerators cannot be used at the same time")
    if name != "npu":
        torch.utils.rename_privateuse1_backend("npu")
    importlib.import_module("torchtitan_npu._libraries").load()
    module = importlib.import_module("torchtitan_npu.npu")
    if not hasattr(torch, "npu"):
        torch._register_device_module("npu", module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    from torchtitan_npu import _patches

    _patches.apply()


def attribute(name: str) -> Any:
    """What `torchtitan_npu.<name>` means when the package itself holds no such name."""
    if _passive:
        return getattr(importlib.import_module(_surroundings.ALIAS), name)
    if name == "save":
        return importlib.import_module("torchtitan_npu._serialization").save
    if name in (fused := importlib.import_module("torchtitan_npu._fused")).__all__:
        return getattr(fused, name)
    raise AttributeError(f"module 'torchtitan_npu' has no attribute {name!r}")


def is_passive() -> bool:
    """Does torch_npu serve the device?"""
    return _passive


def bridge() -> types.ModuleType:
    """The compiled half of the package."""
    return importlib.import_module("torchtitan_npu._bridge")
