"""Errors of float32 convolutions against float64, beside those of torch's CPU: the direct form and Winograd's F(2x2, 3x3).

Which form runs depends on sizes alone: fewer than four images are convolved directly, as are other kernels and strides.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

# Height and width: whole tiles of 2 x 2 (16, 32, 48 and 64 of them), then odd sizes.
SIZES = [(8, 8), (8, 16), (12, 16), (16, 16), (9, 9), (7, 15), (13, 17), (15, 16)]
CHANNELS = [(16, 32), (64, 64), (33, 40)]
FORMS = {"direct": 3, "F(2x2)": 5}  # images
# Errors may be twice torch's, in the root mean square and where only a thousandth is larger; the largest of all is a matter of luck.
FACTOR, LUCK, LEAST = 2.0, 4.0, 5e-8
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
    for kind, factor in (("mean", FACTOR), ("large", FACTOR), ("largest", LUCK)):
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
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
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
    ],
)
def test_other_kernels(kernel: int, stride: int, padding: int, groups: int, channels: int, rows: int, size: tuple[int, int]) -> None:
    """Kernels, strides and groups that other code paths serve."""
    check(operands(5, channels, rows, size, kernel, stride, padding, groups), stride, padding, groups)


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 3e38])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [(8, 8), (9, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
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
