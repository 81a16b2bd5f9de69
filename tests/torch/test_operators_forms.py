"""In-place and out forms, gradients through the wrappers, and errors that carry torch's own texts."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from conftest import DEVICE
from support import cann_function


def here(*sizes: int) -> torch.Tensor:
    """Values of this shape on the device."""
    return torch.arange(float(torch.Size(sizes).numel())).reshape(sizes).to(DEVICE)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_out_is_resized() -> None:
    """An out tensor of another size takes the result's."""
    out = torch.empty(7, device=DEVICE)
    result = torch.add(here(2, 3), here(2, 3), out=out)
    assert result is out and out.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_out_keeps_strides() -> None:
    """An out tensor of the right size keeps its own strides."""
    out = torch.empty(3, 2, device=DEVICE).t()
    torch.mul(here(2, 3), 2, out=out)
    assert out.stride() == (1, 2) and out.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_out_casts() -> None:
    """A wider out dtype gets the converted result; a narrower kind is refused."""
    out = torch.empty(2, 3, device=DEVICE, dtype=torch.float64)
    torch.add(here(2, 3), 1, out=out)
    assert out.tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.add(here(2, 3), 1, out=torch.empty(2, 3, device=DEVICE, dtype=torch.int64))


def test_inplace_refuses_other_shapes() -> None:
    """The result of an in-place form has self's shape."""
    with pytest.raises(RuntimeError, match="output with shape \\[3\\] doesn't match the broadcast shape \\[2, 3\\]"):
        here(3).add_(here(2, 3))


def test_inplace_refuses_promotion() -> None:
    """The result of an in-place form has self's dtype."""
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.ones(3, dtype=torch.int64, device=DEVICE).add_(1.5)


def test_partial_overlap_is_refused() -> None:
    """Input and output that share some memory have no defined result."""
    a = here(6)
    with pytest.raises(
        RuntimeError, match="unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory"
    ):
        a[1:].add_(a[:-1])


def test_expanded_output_is_refused() -> None:
    """Several elements of an output in one place."""
    with pytest.raises(
        RuntimeError, match="unsupported operation: more than one element of the written-to tensor refers to a single memory location"
    ):
        here(3).expand(2, 3).add_(1)


@pytest.mark.npu_only
def test_mixed_devices_are_refused() -> None:
    """A tensor of the cpu with dimensions is no operand."""
    for function in (
        lambda: here(3) + torch.ones(3),
        lambda: torch.mm(here(2, 2), torch.ones(2, 2)),
        lambda: torch.where(torch.ones(3) > 0, here(3), here(3)),
    ):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            function()


@pytest.mark.parametrize(
    "function",
    [
        lambda a: (a * a + 2 * a).sum(),
        lambda a: (a.exp() / (1 + a.exp())).sum(),
        lambda a: F.softmax(a, 1)[:, 0].sum(),
        lambda a: F.cross_entropy(a, torch.tensor([0, 1, 2, 0], device=a.device)),
        lambda a: F.layer_norm(a, (3,)).pow(2).sum() + a.norm(),
        lambda a: F.relu(a)[torch.tensor([0, 0, 2], device=a.device)].sum(),
        lambda a: a.clamp(-0.5, 0.5).sum() + a.max() + a.mean(0).prod(),
        lambda a: F.conv2d(a.reshape(1, 1, 4, 3), torch.ones(2, 1, 2, 2, device=a.device)).pow(2).sum(),
        lambda a: F.max_pool2d(a.reshape(1, 1, 4, 3), 2).sum() + torch.cat([a, a]).std(),
        lambda a: F.batch_norm(a, None, None, training=True).pow(3).sum(),
        lambda a: (a @ a.t()).tanh().sum() + F.silu(a).sum(),
        lambda a: F.mish(a).sum() + a.logsumexp(1).sum() + a.logsumexp((0, 1)),
        lambda a: F.binary_cross_entropy_with_logits(a, a.detach().sigmoid(), pos_weight=torch.ones(3, device=a.device) * 2),
        lambda a: (a.roll(1, 0) * a.roll((1, 2), (1, 0))).sum() + sum(torch.aminmax(a)),
        lambda a: torch.addbmm(a[:3], a.view(2, 3, 2), a.view(2, 2, 3), beta=3).pow(2).sum(),
    ],
)
def test_gradients(function) -> None:
    """Gradients of compositions against the CPU."""
    values = torch.randn(4, 3, generator=torch.Generator().manual_seed(3))
    want, got = values.clone().requires_grad_(), values.to(DEVICE).requires_grad_()
    function(want).backward()
    function(got).backward()
    torch.testing.assert_close(got.grad.cpu(), want.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function, error, text",
    [
        (lambda: here(2, 3).roll((1, 2), 0), RuntimeError, "shifts and dimensions must align"),
        (lambda: here(2, 3).roll(1, 2), IndexError, "Dimension out of range"),
        (lambda: torch.addbmm(here(2), here(2, 3), here(2, 3)), RuntimeError, "batch1 must be a 3D tensor"),
        (
            lambda: torch.addbmm(here(2), here(2, 3, 4), here(3, 4, 2)),
            RuntimeError,
            "batch1 and batch2 must have same number of batches, got 2 and 3",
        ),
        (lambda: torch.addbmm(here(2), here(2, 3, 4), here(2, 3, 2)), RuntimeError, "Incompatible matrix sizes"),
        (lambda: torch.isin(here(2) > 0, here(2) > 0), RuntimeError, r"Unsupported input type encountered for isin\(\): Bool"),
        (lambda: torch.isclose(here(2), here(2).double()), RuntimeError, "did not match"),
        (lambda: torch.isclose(here(2), here(2), rtol=-1.0), RuntimeError, "rtol must be greater than or equal to zero"),
        (lambda: here(2) & 1, (RuntimeError, NotImplementedError), "(?i)bitwise|and"),
        (lambda: torch.div(here(2), 2, rounding_mode="up"), RuntimeError, "div expected rounding_mode to be one of"),
    ],
)
def test_errors_in_torchs_words(function, error, text) -> None:
    """What torch's CPU says of the same call."""
    with pytest.raises(error, match=text):
        function()


@pytest.mark.npu_only
def test_an_operator_needs_all_that_it_may_call() -> None:
    """A CANN that lacks one of several operators behind a wrapper makes it fall back instead of failing."""
    from torchtitan_npu import _bridge

    plugin = ctypes.CDLL(str(Path(_bridge.__file__).parent / "lib/libop_plugin.so"))
    plugin.npu_available.restype = ctypes.c_bool
    needs = {b"clamp": "ClampMin", b"clamp_tensor": "ClampMaxTensor", b"div_mode": "Div", b"aminmax": "AminmaxAll", b"add": "Add"}
    for function, operator in needs.items():
        assert plugin.npu_available(function)
        with cann_function(f"aclnn{operator}GetWorkspaceSize", missing=True):
            assert not plugin.npu_available(function)
        assert plugin.npu_available(function)
    assert not plugin.npu_available(b"no such function")
