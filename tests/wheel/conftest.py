"""Fixtures of the tests of the published torch-npu wheel, which runs here on our C libraries (softnpu run-cann -m pytest tests/wheel)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: only in `make test-all`")
    if "ASCEND_HOME_PATH" not in os.environ:
        raise pytest.UsageError("run this through `softnpu run-cann -m pytest tests/wheel` (make test does)")


@pytest.fixture(scope="session")
def torch_npu():
    """The wheel, and proof that it is the published one."""
    module = pytest.importorskip("torch_npu")
    assert module.__version__ == "2.13.0" and "site-packages" in module.__file__
    ours = (Path(os.environ["ASCEND_HOME_PATH"]) / "lib64/libascendcl.so").resolve()
    assert str(ours) in Path("/proc/self/maps").read_text()
    return module


@pytest.fixture
def npu(torch_npu):
    """The device; it must be usable again when the test ends."""
    import torch

    yield "npu"
    torch.npu.synchronize()
    assert (torch.arange(4.0, device="npu") + 1).tolist() == [1.0, 2.0, 3.0, 4.0]
