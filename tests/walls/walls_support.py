"""Helpers of the wall tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
C_BUILD = ROOT / "build/c"


def run(*command: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True)
