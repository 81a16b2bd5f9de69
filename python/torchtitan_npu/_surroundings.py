"""What else is installed: the real torch_npu, CANN, a torch that the bridge wasn't built for.

| torch_npu installed | its libraries (CANN) can be loaded | who registers `npu`                                                       |
| no                  | -                                  | this package; `import torch_npu` finds it too (AliasFinder)               |
| yes                 | no                                 | this package, under its own name only; one line says that CANN is missing |
| yes                 | yes                                | torch_npu; this package stays passive and says so when imported           |

No torch is needed here: these checks run before it is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterator, Sequence

PACKAGE = "torchtitan_npu"
ALIAS = "torch_npu"


def check_torch(built: str, running: str) -> None:
    """Refuses a torch of another minor version than the one the bridge was compiled with: C++ classes differ without any link error."""
    if built.split(".")[:2] != running.split(".")[:2]:
        raise ImportError(
            f"this softnpu was built for torch {'.'.join(built.split('.')[:2])} (with {built}), but torch {running} is installed. "
            "Build it again with this torch: pip install --no-build-isolation --force-reinstall --no-deps softnpu's source folder"
        )


@functools.cache
def real_torch_npu_installed() -> bool:
    """Is there a torch_npu beside us on sys.path, apart from our alias?"""
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_spec") and not isinstance(finder, AliasFinder)]
    specs = [finder.find_spec(ALIAS, None) for finder in finders]
    return any(spec is not None and spec.origin is not None for spec in specs)  # without origin: a mere folder of that name


@functools.cache
def cann_environment_active() -> bool:
    """Would torch_npu find CANN's libraries by their bare names, as it looks for them?"""
    try:
        ctypes.CDLL("libascendcl.so")
        ctypes.CDLL("libhccl.so")
    except OSError:
        return False
    return True


def torch_npu_serves() -> bool:
    """Is the device torch_npu's in this process?"""
    return real_torch_npu_installed() and cann_environment_active()


@contextlib.contextmanager
def autoload_of_unusable_torch_npu_off() -> Iterator[None]:
    """Around our `import torch`: keeps a torch_npu without CANN from failing it. Child processes get the variable as it was."""
    name = "TORCH_DEVICE_BACKEND_AUTOLOAD"
    before = os.environ.get(name)
    if "torch" in sys.modules or not real_torch_npu_installed() or cann_environment_active():
        yield
        return
    os.environ[name] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class AliasLoader(importlib.abc.Loader):
    """Hands out the module that already goes by our name."""

    def __init__(self, target: str) -> None:
        self.target = target

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The very module object, remembered with the spec that importing under the alias overwrites."""
        module = importlib.import_module(self.target)
        self.own_spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """The module has run under its own name."""
        module.__spec__ = self.own_spec


class AliasFinder(importlib.abc.MetaPathFinder):
    """Maps `torch_npu` and `torch_npu.x.y` to torchtitan_npu's modules, so that programs written for torch_npu find them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        """A spec for names under the alias whose counterpart exists."""
        if name != ALIAS and not name.startswith(f"{ALIAS}."):
            return None
        counterpart = PACKAGE + name[len(ALIAS) :]
        found = importlib.util.find_spec(counterpart)
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, AliasLoader(counterpart), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec


def add_alias() -> None:
    """Makes `import torch_npu` find this package; only where none is installed. In front of the other finders: through the package's
    __path__ they would load `torch_npu.npu` as a second module."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())
