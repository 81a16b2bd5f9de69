"""Target of the entry point torch.backends: torch calls autoload() at the end of `import torch`.

A module beside the package, since a package that cannot serve this torch must not make torch itself unusable: that is a warning here, and an
ImportError only for who imports the package by name.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from pathlib import Path

PACKAGE = "torchtitan_npu"
FOREIGN = "torchtitan-npu"


def check_distribution() -> None:
    """Refuses a package folder that another distribution has installed files into."""
    try:
        foreign = importlib.metadata.distribution(FOREIGN)
    except importlib.metadata.PackageNotFoundError:
        return
    if Path(str(foreign.locate_file(PACKAGE))).resolve() == Path(__file__).absolute().parent.resolve() / PACKAGE:
        raise ImportError(
            f"two distributions share the folder {PACKAGE}: softnpu and {FOREIGN} {foreign.version}, another project. "
            f"Uninstall both, then install the one you want (pip uninstall softnpu {FOREIGN})"
        )


def autoload() -> None:
    """Registers the device; does nothing when that has happened already."""
    try:
        check_distribution()
        importlib.import_module(f"{PACKAGE}._register").register()
    except ImportError as error:
        warnings.warn(f"the device npu isn't available: {error}", stacklevel=2)
