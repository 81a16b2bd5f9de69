"""Errors that this package detects itself, in torch_npu's form: log tools and tests match the last line.

The line is left out in an interactive session and with TORCH_NPU_COMPACT_ERROR_OUTPUT=1. Checks that torch makes keep torch's words.
"""

from __future__ import annotations

import os
import sys
import time

MODULES = {"PTA": "00", "OPS": "01", "DIST": "02", "GRAPH": "03", "PROF": "04"}
KINDS = {
    "invalid parameter": "001",
    "invalid type": "002",
    "invalid value": "003",
    "invalid pointer": "004",
    "internal error": "005",
    "memory error": "006",
    "feature not supported": "007",
    "resource not found": "008",
    "resource unavailable": "009",
}


def with_error_line(text: str, kind: str, module: str = "PTA", device: int = -1) -> str:
    """The text, and below it the line with time, process, device, rank and error code."""
    if os.environ.get("TORCH_NPU_COMPACT_ERROR_OUTPUT") == "1" or hasattr(sys, "ps1"):
        return text
    when = time.strftime("%Y-%m-%d-%H:%M:%S")
    rank = os.environ.get("RANK", "-1")
    return f"{text}\n[ERROR] {when} (PID:{os.getpid()}, Device:{device}, RankID:{rank}) ERR{MODULES[module]}{KINDS[kind]} {module} {kind}"
