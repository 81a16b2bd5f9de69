"""Target of the entry point torch.backends: torch calls autoload() at the end of `import torch`.

A package that cannot serve this torch must not make torch itself unusable: it warns here and refuses only when imported by name.
"""

from __future__ import annotations

import warnings


def autoload() -> None:
    """Registers the device; does nothing when that has happened already."""
    try:
        from torchtitan_npu import _register

        _register.register()
    except ImportError as error:
        warnings.warn(f"the device npu isn't available: {error}", stacklevel=2)
