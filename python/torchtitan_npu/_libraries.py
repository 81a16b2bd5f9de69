"""Which C libraries the adapter runs on: CANN's own where a card and CANN are there, else the package's own, on the CPU.

Chosen once, when the device is registered. `softnpu info` prints the choice and why.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import warnings
from pathlib import Path

from torchtitan_npu import _bridge

OWN_FOLDER = Path(__file__).absolute().parent / "cann/lib64"
_reason = "not loaded yet"


def card_present() -> bool:
    """Does the kernel driver show an Ascend card?"""
    return any(node.name[7:].isdigit() for node in Path("/dev").glob("davinci*"))


def _name_lapack() -> None:
    """The libraries look for LAPACK beside this package, where pip puts it. In an environment that sees another one's packages it may be
    elsewhere; then they are told."""
    if "NPU_LAPACK" in os.environ or (OWN_FOLDER.parents[2] / "scipy_openblas32").exists():
        return
    found = importlib.util.find_spec("scipy_openblas32")
    if found and found.origin:
        os.environ["NPU_LAPACK"] = str(Path(found.origin).parent / "lib/libscipy_openblas.so")


def load() -> None:
    """Opens the libraries; raises RuntimeError with the loader's words when none can be."""
    global _reason
    _name_lapack()
    if not card_present():
        _bridge.load(str(OWN_FOLDER))
        _reason = "the software NPU, because no card is there (/dev/davinci*)"
        return
    home = os.environ.get("ASCEND_HOME_PATH")
    try:
        _bridge.load(f"{home}/lib64" if home else None)
        _reason = f"CANN, because a card is there; found by {'ASCEND_HOME_PATH' if home else 'the library path'}"
    except RuntimeError as error:
        _bridge.load(str(OWN_FOLDER))
        _reason = f"the software NPU: a card is there, but not CANN ({error}); source CANN's set_env.sh to use the card"
        warnings.warn(f"torchtitan_npu: npu is {_reason}", stacklevel=2)


def instruction_set() -> str | None:
    """Which kernels the software NPU computes with; None for CANN's own libraries, which compute on the card."""
    core = OWN_FOLDER / "libnpu_core.so"
    if not any(Path(path).parent.samefile(OWN_FOLDER) for path in _bridge.library_paths()):
        return None
    question = ctypes.CDLL(str(core)).npu_core_isa
    question.restype = ctypes.c_char_p
    _bridge.init()
    answer = question()
    return answer.decode() if answer else None


def reason() -> str:
    """Why these libraries serve the device."""
    return _reason
