"""Errors of float32 convolutions against float64, beside those of torch's CPU: the direct form, Winograd's F(2x2, 3x3) and F(4x4, 3x3).

Which form runs depends on sizes and NPU_FIDELITY: fewer than four images are convolved directly, as are other kernels and
strides; with NPU_FIDELITY=fast sixteen tiles of 4 x 4 are enough for F(4x4). One test runs the others again with that.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional

FAST = os.environ.get("NPU_FIDELITY") == "fast"
# Height and width: whole tiles of 2 x 2 (16, 32, 48 and 64 of them) or of 4 x 4, then odd sizes.
SIZES = [(8, 8), (8, 16), (12, 16), (16, 16), (9, 9), (7, 15), (13, 17), (15, 16)]
LARGE_SIZES = [(16, 16), (16, 32), (24, 32), (32, 32), (17, 17), (15, 31), (29, 18)]
CHANNELS = [(16, 32), (64, 64), (33, 40)]
FORMS = {"direct": 3, "F(4x4)" if FAST else "F(2x2)": 5}  # images
# Errors against torch's, or LEAST: of F(4x4) up to four times in the root mean square, and six times in the largest of all elements.
FACTOR, LARGEST, LEAST = (4.0, 6.0, 2e-7) if FAST else (2.0, 2.0, 5e-8)
NAMES = ("result", "gradient of the input", "gradient of the weights")


def all_three(x: torch.Tensor, w: torch.Tensor, dy: torch.Tensor, stride: int, padding: int, groups: int) -> list[torch.Tensor]:
    """The result and both gradients, on the CPU in float64."""
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = functional.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    return [y.detach().cpu().double(), *(value.cpu().double() for value in torch.autograd.grad(y, (x, w), dy))]


def operands(images: int, channels: int, rows: int, size: tuple[int, int], kernel: int, stride: int, padding: int, groups: int) -> list[torch.Tensor]:
    """Input, weights and the result's gradient."""
    generator = torch.Generator().manual_seed(images * channels + rows + size[0] * size[1])
    x = torch.randn(images, channels, *size, generator=generator)
    w = torch.randn(rows, channels // groups, kernel, kernel, generator=generator)
    y = functional.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    return [x, w, torch.randn(y.shape, generator=generator)]


def errors(values: torch.Tensor, exact: torch.Tensor) -> dict[str, float]:
    """Relative to the exact values' root mean square, or to the largest of them."""
    off, scale = (values - exact).abs().flatten(), exact.abs().max()
    sizes = off.sort().values / scale
    return {"mean": float(off.norm() / exact.norm()), "large": float(sizes[int(0.999 * (len(sizes) - 1))]), "largest": float(sizes[-1])}


def compare(name: str, values: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor) -> None:
    """npu's errors against torch's."""
    ours, yardstick = errors(values, exact), errors(theirs, exact)
    for kind, factor in (("mean", FACTOR), ("large", FACTOR), ("largest", LARGEST)):
        limit = factor * max(yardstick[kind], LEAST)
        assert ours[kind] <= limit, f"{name}: {kind} error {ours[kind]:.2e}, torch's {yardstick[kind]:.2e}"


def check(problem: list[torch.Tensor], stride: int = 1, padding: int = 1, groups: int = 1) -> None:
    """The result and both gradients."""
    exact = all_three(*(value.double() for value in problem), stride, padding, groups)
    theirs = all_three(*problem, stride, padding, groups)
    ours = all_three(*(value.npu() for value in problem), stride, padding, groups)
    for name, mine, plain, right in zip(NAMES, ours, theirs, exact, strict=True):
        compare(name, mine, plain, right)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", LARGE_SIZES if FAST else SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("channels", CHANNELS, ids=lambda channels: f"{channels[0]} to {channels[1]}")
def test_three_by_three(form: str, size: tuple[int, int], channels: tuple[int, int]) -> None:
    """Both forms at whole and odd numbers of tiles."""
    check(operands(FORMS[form], *channels, size, 3, 1, 1, 1))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "groups", "channels", "rows", "size"),
    [
        (1, 1, 0, 1, 64, 48, (14, 14)),
        (3, 2, 1, 1, 32, 64, (28, 28)),
        (5, 1, 2, 1, 16, 32, (13, 13)),
        (7, 2, 3, 1, 3, 64, (32, 32)),
        (5, 2, 2, 1, 16, 32, (33, 31)),
        (3, 1, 1, 32, 32, 32, (28, 28)),
        (3, 2, 1, 32, 32, 32, (27, 29)),
        (3, 1, 0, 2, 64, 64, (14, 18)),
        (3, 1, 1, 2, 34, 34, (16, 16)),
        (3, 1, 1, 3, 51, 51, (30, 15)),
        (1, 1, 0, 1, 512, 64, (14, 14)),
    ],
)
def test_other_kernels(kernel: int, stride: int, padding: int, groups: int, channels: int, rows: int, size: tuple[int, int]) -> None:
    """Kernels, strides and groups that other code paths serve."""
    check(operands(5, channels, rows, size, kernel, stride, padding, groups), stride, padding, groups)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "groups", "images", "channels", "rows", "size"),
    [
        (3, 2, 4, 1, 2, 8, 4, (32, 3)),
        (3, 1, 4, 1, 2, 32, 8, (17, 13)),
        (3, 1, 2, 4, 3, 16, 16, (27, 8)),
        (5, 2, 2, 4, 8, 16, 16, (17, 5)),
        (5, 1, 1, 2, 8, 6, 64, (3, 9)),
        (3, 2, 0, 4, 2, 64, 16, (5, 27)),
        (1, 2, 2, 1, 3, 32, 1, (7, 16)),
    ],
)
def test_narrow_images(kernel: int, stride: int, padding: int, groups: int, images: int, channels: int, rows: int, size: tuple[int, int]) -> None:
    """Whose weight gradients torch gets more exactly than those of whole images: chains of 256 products were up to five times as far off."""
    check(operands(images, channels, rows, size, kernel, stride, padding, groups), stride, padding, groups)


@pytest.mark.parametrize(
    ("groups", "channels", "rows", "size", "padding"), [(4, 68, 280, (12, 20), 0), (1, 32, 48, (16, 17), 1), (3, 48, 99, (9, 38), 1)]
)
def test_transposed(groups: int, channels: int, rows: int, size: tuple[int, int], padding: int) -> None:
    """Whose result is the gradient of a convolution's input."""
    generator = torch.Generator().manual_seed(1)
    x, w = torch.randn(5, channels, *size, generator=generator), torch.randn(channels, rows // groups, 3, 3, generator=generator)
    exact, theirs, ours = (
        functional.conv_transpose2d(a, b, padding=padding, groups=groups).cpu().double()
        for a, b in ((x.double(), w.double()), (x, w), (x.npu(), w.npu()))
    )
    compare("result", ours, theirs, exact)


@pytest.mark.parametrize("value", [1e2, 1e5, 1e8, 1e13])
def test_large_pixels(value: float) -> None:
    """F(2x2) and the direct form keep a pixel out of results it has no product in; F(4x4) lets its rounding error in."""
    size = (16, 16)
    problem = operands(5, 32, 32, size, 3, 1, 1, 1)
    without = all_three(*(each.double() for each in problem), 1, 1, 1)[0]
    problem[0][2, 5, 3, 4] += value
    exact = all_three(*(each.double() for each in problem), 1, 1, 1)[0]
    ours, theirs = (all_three(*(each.to(device) for each in problem), 1, 1, 1)[0] for device in ("npu", "cpu"))
    far = exact == without
    assert bool(far.any()) and bool((~far).any())
    if FAST:
        assert float((ours - exact)[far].abs().max()) <= 1e-5 + 4e-6 * value
    else:
        compare("result", ours[far], theirs[far], exact[far])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(dtype: torch.dtype) -> None:
    """Sums are float32's: errors are those of the last rounding."""
    x, w, _ = operands(5, 64, 64, (16, 16), 3, 1, 1, 1)
    x, w = x.to(dtype), w.to(dtype)
    exact = functional.conv2d(x.double(), w.double(), padding=1)
    ours = functional.conv2d(x.npu(), w.npu(), padding=1).cpu().double()
    assert float(((ours - exact).abs() / (exact.abs() + 1)).max()) <= torch.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("form", ["plain", "grouped", "transposed"])
def test_integers(dtype: torch.dtype, form: str) -> None:
    """Exact, and sums that don't fit wrap as torch's do."""
    limits, groups = torch.iinfo(dtype), 2 if form == "grouped" else 1
    shapes = (2, 4, 9, 7), ((4, 6, 3, 2) if form == "transposed" else (6, 4 // groups, 3, 2)), (6,)
    x, w, b = (torch.randint(max(limits.min, -(2**40)), min(limits.max, 2**40), shape) for shape in shapes)
    function = functional.conv_transpose2d if form == "transposed" else functional.conv2d
    expected = function(x, w, b, stride=2, padding=1, groups=groups).to(dtype)
    values = function(x.to(dtype).npu(), w.to(dtype).npu(), b.to(dtype).npu(), stride=2, padding=1, groups=groups)
    assert values.dtype == dtype and torch.equal(values.cpu(), expected)


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 3e38])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [(16, 16), (17, 15)] if FAST else [(8, 8), (9, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
def test_pixels_that_are_not_finite(form: str, size: tuple[int, int], value: float) -> None:
    """Such a pixel, or a huge one, touches exactly what its products go into; the rest has ordinary errors."""
    problem = operands(FORMS[form], 32, 32, size, 3, 1, 1, 1)
    problem[0][2, 5, 3, 4] = value
    plain = all_three(*problem, 1, 1, 1)
    exact = all_three(*(each.double() for each in problem), 1, 1, 1)
    for name, mine, theirs, right in zip(NAMES, all_three(*(each.npu() for each in problem), 1, 1, 1), plain, exact, strict=True):
        ordinary = right.abs() < 1e30
        assert torch.equal(mine.isnan()[~ordinary], theirs.isnan()[~ordinary]), name
        assert torch.equal(mine.isfinite() & ordinary, ordinary), f"{name}: {int((~mine.isfinite() & ordinary).sum())} elements were spoilt"
        compare(name, mine[ordinary], theirs[ordinary], right[ordinary])


@pytest.mark.skipif(FAST, reason="runs all other tests once more")
def test_fast_fidelity() -> None:
    """All of this with F(4x4): errors within bounds of its own."""
    environment = {**os.environ, "NPU_FIDELITY": "fast"}
    again = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", __file__], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert again.returncode == 0, again.stdout[-4000:]


@pytest.mark.skipif(not FAST, reason="of the run that test_fast_fidelity starts")
def test_large_tiles_are_taken() -> None:
    """Their error gives them away."""
    problem = operands(5, 64, 64, (16, 16), 3, 1, 1, 1)
    exact = all_three(*(value.double() for value in problem), 1, 1, 1)[0]
    theirs, ours = all_three(*problem, 1, 1, 1)[0], all_three(*(value.npu() for value in problem), 1, 1, 1)[0]
    assert errors(ours, exact)["mean"] > 1.5 * errors(theirs, exact)["mean"]
