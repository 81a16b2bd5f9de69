"""Operators through the C API alone: torch's CPU is only the reference, the npu device is not loaded."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
if openblas := importlib.util.find_spec("scipy_openblas32"):
    os.environ.setdefault("NPU_LAPACK", str(Path(str(openblas.origin)).parent / "lib/libscipy_openblas.so"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch

torch.set_num_threads(1)  # small references, on a machine whose cores the device uses
