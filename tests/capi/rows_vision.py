"""Rows of resampling, padding and pooling of volumes; gradients come from torch's autograd in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from cases import FLOATS, Case, add, wide

Tensor = torch.Tensor
SHAPES = {
    1: ((2, 3, 7), (1, 2, 5), (3, 1, 12)),
    2: ((2, 3, 6, 7), (1, 2, 5, 4), (1, 3, 9, 12)),
    3: ((2, 2, 4, 5, 3), (1, 2, 3, 4, 5), (1, 1, 6, 5, 4)),
}
SIZES = {1: ([9], [4]), 2: ([9, 5], [4, 11]), 3: ([5, 7, 4], [3, 3, 6])}


def floating(case: Case) -> None:
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")


def gradient(function: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Tensor:
    leaf = wide(x).clone().requires_grad_()
    function(leaf).backward(wide(grad))
    assert leaf.grad is not None
    return leaf.grad.to(x.dtype)


def resampling(name: str, backward: tuple[str, ...], mode: str, dims: int, align: tuple[bool, ...] = (), antialias: bool = False) -> None:
    """(self, outputSize, [alignCorners,] scales..., out) and (grad, outputSize, inputSize, [alignCorners,] scales..., gradInput)"""

    def resample(x: Tensor, size: list[int], corners: bool | None) -> Tensor:
        return F.interpolate(x, size, mode=mode, align_corners=corners, antialias=antialias)

    def choices() -> Iterator[tuple[list[int], bool | None, list[Any]]]:
        for size in SIZES[dims]:
            for corners in align or (None,):
                yield size, corners, [] if corners is None else [corners]

    scales = [] if name in ("UpsampleNearest1d", "UpsampleNearest2d") else [0.0] * dims

    def forward(x: Tensor, size: list[int], corners: bool | None) -> Tensor:
        if mode.startswith("nearest"):  # takes any type: resample the places, then fetch the values
            places = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape)
            return x.flatten()[resample(places, size, corners).long()]
        return resample(wide(x), size, corners).to(x.dtype)

    def calls(case: Case) -> Iterator[Any]:
        if not mode.startswith("nearest"):
            floating(case)
        for size, corners, flags in choices():
            x = case.values()
            yield [case.put(x), size, *flags, *scales, case.out(forward(x, size, corners), loose=8)]

    def backward_calls(case: Case) -> Iterator[Any]:
        floating(case)
        for size, corners, flags in choices():
            x = case.values()
            grad = case.values((*x.shape[:2], *size))
            expected = gradient(lambda v, size=size, corners=corners: resample(v, size, corners), x, grad)
            yield [case.put(grad), size, list(x.shape), *flags, *([0.0] * dims), case.out(expected, loose=16)]

    add(name, calls, shapes=SHAPES[dims])
    for twin in backward:
        add(twin, backward_calls, shapes=SHAPES[dims])


BOTH = (False, True)
for dims in (1, 2, 3):
    resampling(f"UpsampleNearest{dims}d", (f"UpsampleNearest{dims}dBackward",), "nearest", dims)
    resampling(f"UpsampleNearestExact{dims}d", (f"UpsampleNearestExact{dims}dBackward",), "nearest-exact", dims)
resampling("UpsampleNearest1dV2", (), "nearest", 1)
resampling("UpsampleNearest2dV2", (), "nearest", 2)
resampling("UpsampleLinear1d", ("UpsampleLinear1dBackward",), "linear", 1, BOTH)
resampling("UpsampleBilinear2d", ("UpsampleBilinear2dBackward", "UpsampleBilinear2dBackwardV2"), "bilinear", 2, BOTH)
resampling("UpsampleTrilinear3d", ("UpsampleTrilinear3dBackward",), "trilinear", 3, BOTH)
resampling("UpsampleBicubic2d", ("UpsampleBicubic2dBackward",), "bicubic", 2, BOTH)
resampling("UpsampleBilinear2dAA", ("UpsampleBilinear2dAABackward",), "bilinear", 2, BOTH, antialias=True)
resampling("UpsampleBicubic2dAA", ("UpsampleBicubic2dAAGrad",), "bicubic", 2, BOTH, antialias=True)

PADS = {1: ([2, 1], [0, 3]), 2: ([2, 1, 0, 3], [1, 1, 2, 2]), 3: ([1, 2, 0, 1, 2, 1], [1, 1, 1, 1, 1, 1])}


def padding(name: str, mode: str, dims: int) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for pad in PADS[dims]:
            x = case.values()
            source = x.to(torch.uint8) if case.dtype == torch.bool else x
            expected = F.pad(source, pad, mode=mode).to(case.dtype)
            yield [case.put(x), pad, case.out(expected, exact=True)]

    def backward_calls(case: Case) -> Iterator[Any]:
        floating(case)
        for pad in PADS[dims]:
            x = case.values()
            grad = case.values(F.pad(x.double(), pad, mode=mode).shape)
            expected = gradient(lambda v, pad=pad: F.pad(v, pad, mode=mode), x, grad)
            yield [case.put(grad), case.put(x), pad, case.out(expected, loose=4)]

    add(name, calls, shapes=SHAPES[dims])
    add(f"{name}Backward", backward_calls, shapes=SHAPES[dims])


for dims in (1, 2, 3):
    padding(f"ReflectionPad{dims}d", "reflect", dims)
    padding(f"ReplicationPad{dims}d", "replicate", dims)

WINDOWS = (
    ([2, 2, 2], [2, 2, 2], [0, 0, 0], False, True, 0),
    ([2, 3, 2], [1, 2, 1], [1, 1, 0], False, False, 0),
    ([3, 2, 2], [2, 2, 2], [1, 1, 1], True, True, 5),
)


def volume_pool(x: Tensor, window: Any) -> Tensor:
    return F.avg_pool3d(x, *window[:5], window[5] or None)


def avg_pool(case: Case) -> Iterator[Any]:
    floating(case)
    for window in WINDOWS:
        x = case.values()
        yield [case.put(x), *window, case.out(volume_pool(wide(x), window).to(x.dtype), loose=4)]


def avg_pool_backward(case: Case) -> Iterator[Any]:
    floating(case)
    for window in WINDOWS:
        x = case.values()
        grad = case.values(volume_pool(x.double(), window).shape)
        yield [case.put(grad), case.put(x), *window, case.out(gradient(lambda v, window=window: volume_pool(v, window), x, grad), loose=4)]


def adaptive(case: Case) -> Iterator[Any]:
    floating(case)
    for size in ([1, 1, 1], [2, 3, 2], [3, 2, 4]):
        x = case.values()
        yield [case.put(x), size, case.out(F.adaptive_avg_pool3d(wide(x), size).to(x.dtype), loose=4)]


def adaptive_backward(case: Case) -> Iterator[Any]:
    floating(case)
    for size in ([1, 1, 1], [2, 3, 2], [3, 2, 4]):
        x = case.values()
        grad = case.values((*x.shape[:2], *size))
        yield [case.put(grad), case.put(x), case.out(gradient(lambda v, size=size: F.adaptive_avg_pool3d(v, size), x, grad), loose=4)]


add("AvgPool3d", avg_pool, shapes=SHAPES[3])
add("AvgPool3dBackward", avg_pool_backward, shapes=SHAPES[3])
add("AdaptiveAvgPool3d", adaptive, shapes=SHAPES[3])
add("AdaptiveAvgPool3dBackward", adaptive_backward, shapes=SHAPES[3])
