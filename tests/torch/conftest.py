"""Fixtures of the PyTorch tests.

The tests run on npu. TEST_DEVICE=cpu runs those that make sense there on torch's own CPU device, as a control of the tests.
"""

import os

import pytest
import torch

DEVICE = os.environ.get("TEST_DEVICE", "npu")
if DEVICE == "npu":
    import torchtitan_npu  # noqa: F401


def pytest_configure(config):
    config.addinivalue_line("markers", "npu_only: has no counterpart on the CPU")
    config.addinivalue_line("markers", "slow: only in `make test-all`")


def pytest_collection_modifyitems(items):
    if DEVICE == "npu":
        return
    skip = pytest.mark.skip(reason="no counterpart on the CPU")
    for item in items:
        if item.get_closest_marker("npu_only"):
            item.add_marker(skip)


@pytest.fixture
def device():
    """The device under test; it must be usable again when the test ends."""
    yield DEVICE
    if DEVICE == "npu":
        torch.npu.synchronize()
        assert (torch.arange(4.0, device=DEVICE) + 1).tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.fixture
def no_fallback():
    """No operator of the test runs on the CPU instead."""
    if DEVICE == "cpu":
        yield
        return
    from torchtitan_npu import _bridge

    _bridge.reset_fallback_counts()
    yield
    assert _bridge.fallback_counts() == {}
