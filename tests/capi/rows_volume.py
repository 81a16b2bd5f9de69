"""Rows of maximum pooling of volumes and its inverse, im2col, slices, splits and repeats with their gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from cases import Case, add, row, wide
from rows_vision import floating, gradient

Tensor = torch.Tensor
VOLUMES = ((2, 2, 4, 5, 6), (1, 3, 6, 4, 5), (1, 1, 5, 6, 4))
WINDOWS = (
    ([2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False),
    ([2, 3, 2], [1, 2, 1], [1, 1, 0], [1, 1, 2], False),
    ([3, 2, 2], [2, 2, 2], [1, 1, 1], [1, 1, 1], True),
)
SIZES = ([1, 1, 1], [2, 3, 2], [3, 2, 4])


def distinct(case: Case) -> Tensor:
    """Values without ties (in types that hold them), so that every window has one place of its maximum."""
    count = 1
    for size in case.shape:
        count *= size
    order = torch.randperm(count, generator=case.generator).reshape(case.shape)
    return (order.double() / 8 - 3).to(case.dtype) if case.dtype.is_floating_point else (order % 120).to(case.dtype)


def windows(case: Case, integers: bool = False) -> Iterator[tuple[Tensor, Any, Tensor, Tensor]]:
    """(x, window, maxima, their places) of every window. Where bfloat16 makes ties, the first place counts, as in torch."""
    if (integers and case.dtype in (torch.bool, torch.complex64, torch.complex128)) or not integers:
        floating(case)
    for window in WINDOWS:
        x = distinct(case)
        y, places = F.max_pool3d(wide(x), *window, return_indices=True)
        yield x, window, y.to(x.dtype), places


@row("MaxPool3dWithArgmax", shapes=VOLUMES)
def max_pool(case: Case) -> Iterator[Any]:
    for x, window, y, places in windows(case, integers=True):
        yield [case.put(x), *window, case.out(y, exact=True), case.out(places.int())]


@row("MaxPool3dWithArgmaxBackward", shapes=VOLUMES)
def max_pool_backward(case: Case) -> Iterator[Any]:
    for x, window, y, places in windows(case):
        grad = case.values(y.shape)
        expected = gradient(lambda v, window=window: F.max_pool3d(v, *window), x, grad)
        yield [case.put(grad), case.put(x), case.put(places.int()), *window, case.out(expected, loose=4)]


def adaptive(case: Case) -> Iterator[Any]:
    floating(case)
    for size in SIZES:
        x = distinct(case)
        y, places = F.adaptive_max_pool3d(wide(x), size, return_indices=True)
        yield [case.put(x), size, case.out(y.to(x.dtype), exact=True), case.out(places.int())]


def adaptive_backward(case: Case) -> Iterator[Any]:
    floating(case)
    for size in SIZES:
        x = distinct(case)
        _, places = F.adaptive_max_pool3d(wide(x), size, return_indices=True)
        grad = case.values(places.shape)
        expected = gradient(lambda v, size=size: F.adaptive_max_pool3d(v, size), x, grad)
        yield [case.put(grad), case.put(x), case.put(places.int()), case.out(expected, loose=4)]


add("AdaptiveMaxPool3d", adaptive, shapes=VOLUMES)
add("AdaptiveMaxPool3dBackward", adaptive_backward, shapes=VOLUMES)


@row("MaxUnpool2d", shapes=((2, 3, 4, 6), (1, 2, 6, 4), (3, 1, 8, 4)))
def unpool_2d(case: Case) -> Iterator[Any]:
    n, c, h, w = case.shape
    x = case.values((n, c, h // 2, w // 2))
    places = torch.arange(h * w).reshape(h, w)[::2, ::2].expand(x.shape).contiguous()
    expected = torch.zeros((n, c, h * w), dtype=case.dtype).scatter(2, places.flatten(2), x.flatten(2)).reshape(case.shape)
    yield [case.put(x), case.put(places), [h, w], case.out(expected, exact=True)]


@row("MaxUnpool3d", shapes=((2, 3, 4, 6, 2), (1, 2, 6, 4, 4), (3, 1, 2, 8, 4)))
def unpool_3d(case: Case) -> Iterator[Any]:
    n, c, d, h, w = case.shape
    x = case.values((n, c, d // 2, h // 2, w // 2))
    places = torch.arange(d * h * w).reshape(d, h, w)[::2, ::2, ::2].expand(x.shape).contiguous()
    expected = torch.zeros((n, c, d * h * w), dtype=case.dtype).scatter(2, places.flatten(2), x.flatten(2)).reshape(case.shape)
    yield [case.put(x), case.put(places), [d, h, w], [2, 2, 2], [0, 0, 0], case.out(expected, exact=True)]


IMAGES = ((2, 3, 6, 7), (1, 2, 5, 4), (1, 1, 9, 8))
PATCHES = (([2, 3], [1, 1], [0, 0], [1, 1]), ([2, 2], [2, 1], [1, 0], [2, 1]), ([1, 3], [1, 1], [0, 1], [1, 2]))


@row("Im2col", shapes=IMAGES)
def patches(case: Case) -> Iterator[Any]:
    for kernel, dilation, pad, stride in PATCHES:
        x = case.values()
        places = F.unfold(torch.arange(1, x.numel() + 1).double().reshape(x.shape), kernel, dilation, pad, stride).long()
        source = torch.cat([torch.zeros(1, dtype=x.dtype), x.flatten()])  # place 0 is the padding
        yield [case.put(x), kernel, dilation, pad, stride, case.out(source[places], exact=True)]


@row("Im2colBackward", shapes=IMAGES)
def patches_backward(case: Case) -> Iterator[Any]:
    floating(case)
    for kernel, dilation, pad, stride in PATCHES:
        size = list(case.shape[2:])
        columns = case.values(F.unfold(torch.zeros(case.shape), kernel, dilation, pad, stride).shape)
        expected = F.fold(wide(columns), size, kernel, dilation, pad, stride).to(case.dtype)
        yield [case.put(columns), size, kernel, dilation, pad, stride, case.out(expected, loose=4)]


@row("StridedSlice", shapes=((6, 5), (4, 7), (9, 3)))
def slices(case: Case) -> Iterator[Any]:
    x = case.values()
    h, w = case.shape
    yield [case.put(x), [1, 0], [h, w], [2, 1], 0, 0, 0, 0, 0, case.out(x[1:h:2], exact=True)]
    yield [case.put(x), [9, 1], [2, 9], [1, 1], 1, 2, 0, 0, 0, case.out(x[:2, 1:], exact=True)]
    yield [case.put(x), [2, 0], [3, w], [1, 2], 0, 0, 0, 0, 1, case.out(x[2, ::2], exact=True)]


@row("SplitWithSize", shapes=((6, 5), (4, 7), (9, 3)))
def splits(case: Case) -> Iterator[Any]:
    x = case.values()
    for dim in (0, 1, -1):
        sizes = [1, 2, x.shape[dim] - 3]
        yield [case.put(x), sizes, dim, [case.out(part, exact=True) for part in x.split(sizes, dim)]]


@row("RepeatInterleaveTensor", shapes=((5,), (8,), (3,)), dtypes=(torch.int64, torch.int32), needs=(torch.int64,))
def repeated_places(case: Case) -> Iterator[Any]:
    repeats = case.values(low=0, high=4).abs()
    expected = torch.repeat_interleave(repeats)
    yield [case.put(repeats), expected.numel(), case.out(expected.to(case.dtype))]


@row("RepeatInterleaveGrad", shapes=((5, 4), (3, 6), (2, 3)))
def repeats_gradient(case: Case) -> Iterator[Any]:
    floating(case)
    for axis in (0, 1, -1):
        repeats = torch.randint(0, 4, (case.shape[axis],), generator=case.generator)
        x = case.values()
        grad = case.values(x.repeat_interleave(repeats, axis).shape)
        expected = gradient(lambda v, repeats=repeats, axis=axis: v.repeat_interleave(repeats, axis), x, grad)
        yield [case.put(grad), case.put(repeats), axis, case.out(expected, loose=4)]
