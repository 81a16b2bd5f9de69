"""Walls between the parts, checked on what `make test` has built: build/c and build/torch-<version>."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from walls_support import C_BUILD, ROOT


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def c_build() -> Path:
    assert (C_BUILD / "build.ninja").exists(), "build/c is missing: run `make build` first"
    return C_BUILD


@pytest.fixture(scope="session")
def packages() -> list[Path]:
    """The package folders built so far, one for each torch version."""
    found = sorted(ROOT.glob("build/torch-*/python/torchtitan_npu"))
    assert found, "no build/torch-<version>: run `make build` first"
    return found


@pytest.fixture(scope="session")
def package(packages: list[Path]) -> Path:
    """The package folder of the running torch."""
    return next((path for path in packages if str(path.parent) in sys.path), packages[0])
