"""PyTorch device `npu`, written to CANN's public C API, with a software NPU in place of a card.

`import torchtitan_npu` (or `import torch`, through the entry point torch.backends) makes `torch.device("npu")` and `torch.npu` work.
Import order doesn't matter and importing twice is harmless. What happens when the real torch_npu is installed too: _surroundings.py.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version
from typing import Any

import softnpu_autoload as _softnpu_autoload

from torchtitan_npu import _surroundings

_softnpu_autoload.check_distribution()
with _surroundings.autoload_of_unusable_torch_npu_off():
    import torch as _torch  # noqa: F401  (the first `import torch` of a process calls softnpu_autoload.autoload, which may finish all the rest)

from torchtitan_npu import _register  # noqa: E402

try:
    __version__: str = _version("softnpu")
except _PackageNotFoundError:  # the package folder on sys.path without its dist-info
    __version__ = "unknown"

_register.register()


def __getattr__(name: str) -> Any:
    """Names that exist only once the device is registered, and those of the real torch_npu when that one serves the device."""
    return _register.attribute(name)
