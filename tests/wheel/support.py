"""Helpers of the wheel tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_script(path, *words, timeout=180, **variables):
    """Runs a Python program in a new process and returns what it printed; the environment changes by `variables` (None removes one)."""
    environment = os.environ | {name: value for name, value in variables.items() if value is not None}
    for name in (name for name, value in variables.items() if value is None):
        environment.pop(name, None)
    done = subprocess.run([sys.executable, str(path), *words], env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def run_program(program, **variables):
    """The same for a program given as text."""
    return run_script("-c", textwrap.dedent(program), **variables)
