"""Rows of indexing, gathering, scattering, joining and creating (src/aclnn/math/reduce.def)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from cases import COMPLEX, FLOATS, INTEGERS, Case, Out, add, place, real, row, wide

Tensor = torch.Tensor
INTEGRAL = (*INTEGERS, torch.bool)
FULL = ((7,), (3, 5), (2, 3, 4), (33, 17))
INDEX_TYPES = (torch.int64, torch.int32)


def indices(case: Case, shape: tuple[int, ...], limit: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(0, limit, shape, generator=case.generator).to(dtype)


def number(case: Case, value: int = 2) -> Any:
    return True if case.dtype == torch.bool else value


# --- selecting ------------------------------------------------------------------------------------------------------------------------


def select(name: str, extra: tuple[Any, ...] = ()) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dim in (0, -1):
            for dtype in INDEX_TYPES:
                x = case.values()
                index = indices(case, (4,), x.shape[dim] if x.dim() else 1, dtype)
                expected = torch.index_select(x, dim, index)
                yield [case.put(x), dim, case.put(index), *extra, case.out(expected, exact=True)]

    add(name, calls, shapes=FULL)


select("IndexSelect")
select("GatherV3", (0, 0))


@row("Embedding", shapes=((7, 4), (3, 5), (33, 17), (5, 1)))
def embedding(case: Case) -> Iterator[Any]:
    for dtype in INDEX_TYPES:
        for shape in ((6,), (2, 3), ()):
            weight, index = case.values(), indices(case, shape, case.shape[0], dtype)
            yield [case.put(weight), case.put(index), case.out(weight[index.long()], exact=True)]


@row("EmbeddingDenseBackward", shapes=((7, 4), (3, 5), (33, 17)))
def embedding_backward(case: Case) -> Iterator[Any]:
    if case.dtype not in FLOATS:
        raise NotImplementedError("gradients are floating point")
    for padding, by_frequency in ((2**64 - 1, False), (1, False), (1, True)):
        index = indices(case, (4, 5), case.shape[0])
        grad = case.values((4, 5, case.shape[1]))
        skipped = -1 if padding > 1000 else padding
        expected = torch.ops.aten.embedding_dense_backward(wide(grad), index, case.shape[0], skipped, by_frequency)
        yield [case.put(grad), case.put(index), case.shape[0], padding, by_frequency, case.out(expected.to(case.dtype), loose=4)]


def index_lists(case: Case) -> Iterator[list[Tensor | None]]:
    """One index for each leading dimension; None stands for a whole dimension."""
    shape = case.shape
    yield [indices(case, (4,), shape[0])]
    if len(shape) > 1:
        yield [indices(case, (2, 3), shape[0]), indices(case, (3,), shape[1])]
        yield [None, indices(case, (4,), shape[1])]
        yield [indices(case, (4,), shape[0], torch.int32)]
    if len(shape) > 2:
        yield [indices(case, (4,), shape[0]), None, indices(case, (4,), shape[2])]
    yield [case.values((shape[0],), torch.bool)]


def as_arguments(case: Case, given: list[Tensor | None]) -> list[Tensor]:
    return [case.put(torch.empty(0, dtype=torch.int64) if i is None else i) for i in given]


def given_tensors(given: list[Tensor | None]) -> Iterator[Tensor | None]:
    """The list as torch's index_put takes it."""
    for i in given:
        yield i if i is None or i.dtype == torch.bool else i.long()


def as_key(given: list[Tensor | None]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i if i.dtype == torch.bool else i.long() for i in given)


@row("Index", shapes=FULL)
def index(case: Case) -> Iterator[Any]:
    for given in index_lists(case):
        x = case.values()
        yield [case.put(x), as_arguments(case, given), case.out(x[as_key(given)], exact=True)]


@row("IndexPutImpl", shapes=FULL)
def index_put(case: Case) -> Iterator[Any]:
    for given in index_lists(case):
        for accumulate in (False, True):
            x, key = case.values(), as_key(given)
            values = case.values(x[key].shape)
            if not accumulate:  # repeated places: the last one wins or not, so all get the same
                values = values.flatten()[:1].expand(values.shape) if values.numel() else values
            expected = x.clone()
            if accumulate:
                expected = torch.zeros_like(wide(x))
                expected = torch.ops.aten.index_put(expected, list(given_tensors(given)), wide(values), True)
                expected = (wide(x) + expected).to(x.dtype)
            else:
                expected[key] = values
            if case.dtype == torch.bool and accumulate:
                continue
            yield [case.inout(x, expected, loose=4 if not accumulate else 40), as_arguments(case, given), case.put(values), accumulate, False]


def found(expected: Tensor, *room: int) -> Out:
    """An output with more room than needed; the handle's shape tells how much there is."""
    return Out(place(torch.zeros(room, dtype=expected.dtype), "plain"), expected.contiguous(), found_shape=True)


@row("MaskedSelect", shapes=(*FULL, ()))
def masked_select(case: Case) -> Iterator[Any]:
    for shape in {case.shape, case.shape[-1:]}:
        x, mask = case.values(), case.values(shape, torch.bool)
        yield [case.put(x), case.put(mask), found(torch.masked_select(x, mask), x.numel())]


@row("InplaceMaskedScatter", shapes=(*FULL, (0, 3)))
def masked_scatter(case: Case) -> Iterator[Any]:
    x, mask, source = case.values(), case.values(dtype=torch.bool), case.values()
    yield [case.inout(x, x.masked_scatter(mask, source), exact=True), case.put(mask), case.put(source)]


def nonzero_row(name: str, across: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        x = case.values(low=-1, high=1)
        x = torch.round(real(x).real).to(case.dtype)
        expected = torch.nonzero(x)
        room = (x.dim(), x.numel()) if across else (x.numel(), x.dim())
        yield [case.put(x), found(expected.t() if across else expected, *room)]

    add(name, calls, shapes=FULL)


nonzero_row("Nonzero", False)
nonzero_row("NonzeroV2", True)


# --- gathering and scattering -----------------------------------------------------------------------------------------------------------


@row("Gather", shapes=(*FULL, ()))
def gather(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        for dtype in INDEX_TYPES:
            x = case.values()
            places = indices(case, case.shape, x.shape[dim] if x.dim() else 1, dtype)
            yield [case.put(x), dim, case.put(places), case.out(torch.gather(x, dim, places.long()), exact=True)]


def permuted(case: Case, dim: int) -> Tensor:
    """An index that meets every place once along dim."""
    if not case.shape:
        return torch.zeros((), dtype=torch.int64)
    return torch.argsort(torch.rand(case.shape, generator=case.generator), dim)


REDUCE = {0: None, 1: "add", 2: "multiply"}


def scatter_operator(name: str, in_place: bool, value: bool) -> None:
    """Scatter, ScatterValue and in-place; reduce 0 replace, 1 add, 2 multiply."""

    def calls(case: Case) -> Iterator[Any]:
        for dim in (0, -1):
            for code, kind in REDUCE.items():
                if (kind and case.dtype == torch.bool) or (kind == "multiply" and case.dtype in COMPLEX):
                    continue
                x, src = case.values(), number(case) if value else case.values()
                places = permuted(case, dim) if kind is None else indices(case, case.shape, x.shape[dim] if x.dim() else 1)
                source = torch.full(case.shape, src, dtype=case.dtype) if value else src
                if kind:
                    expected = torch.scatter_reduce(wide(x), dim, places, wide(source), "sum" if kind == "add" else "prod").to(x.dtype)
                else:
                    expected = torch.scatter(x, dim, places, source)
                arguments = [dim, case.put(places), src if value else case.put(src), code]
                if in_place:
                    yield [case.inout(x, expected, loose=8), *arguments]
                else:
                    yield [case.put(x), *arguments, case.out(expected, loose=8)]

    add(name, calls, shapes=(*FULL, ()))


scatter_operator("Scatter", False, False)
scatter_operator("InplaceScatter", True, False)
scatter_operator("ScatterValue", False, True)
scatter_operator("InplaceScatterValue", True, True)


@row("ScatterAdd", shapes=(*FULL, ()))
def scatter_add(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        x, src = case.values(), case.values()
        places = indices(case, case.shape, x.shape[dim] if x.dim() else 1)
        expected = torch.scatter_add(wide(x), dim, places, wide(src)).to(x.dtype)
        yield [case.put(x), dim, case.put(places), case.put(src), case.out(expected, loose=8)]


REDUCTIONS = {1: "sum", 2: "prod", 3: "amax", 4: "amin", 5: "mean"}


def scatter_reduce_operator(name: str, in_place: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for code, kind in REDUCTIONS.items():
            for include in (True, False):
                if (kind == "mean" and case.dtype in INTEGRAL) or (kind != "sum" and case.dtype in COMPLEX):
                    continue
                x, src = case.values(), case.values()
                dim = -1 if include else 0
                places = indices(case, case.shape, x.shape[dim] if x.dim() else 1)
                expected = torch.scatter_reduce(wide(x), dim, places, wide(src), kind, include_self=include).to(x.dtype)
                arguments = [dim, case.put(places), case.put(src), code, include]
                if in_place:
                    yield [case.inout(x, expected, loose=16), *arguments]
                else:
                    yield [case.put(x), *arguments, case.out(expected, loose=16)]

    add(name, calls, shapes=(*FULL, ()))


scatter_reduce_operator("ScatterReduce", False)
scatter_reduce_operator("InplaceScatterReduce", True)


@row("Take", shapes=(*FULL, ()))
def take(case: Case) -> Iterator[Any]:
    for dtype in INDEX_TYPES:
        x = case.values()
        places = indices(case, (2, 3), x.numel(), dtype)
        yield [case.put(x), case.put(places), case.out(torch.take(x, places.long()), exact=True)]


@row("InplacePut", shapes=FULL)
def put(case: Case) -> Iterator[Any]:
    for accumulate in (False, True):
        if accumulate and case.dtype == torch.bool:
            continue
        x, source = case.values(), case.values((3,))
        places = torch.randperm(x.numel(), generator=case.generator)[:3] if not accumulate else indices(case, (3,), x.numel())
        expected = wide(x).put(places, wide(source), accumulate).to(x.dtype)
        yield [case.inout(x, expected), case.put(places), case.put(source), accumulate]


# --- updating along a dimension -----------------------------------------------------------------------------------------------------------


def fill_operator(name: str, in_place: bool, array: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dim in (0, -1):
            x, where = case.values(), indices(case, (3,), case.shape[dim])
            expected = x.index_fill(dim, where, number(case))
            argument: Any = where.tolist() if array else case.put(where)
            if in_place:
                yield [case.inout(x, expected), dim, argument, number(case)]
            else:
                yield [case.put(x), dim, argument, number(case), case.out(expected)]

    add(name, calls, shapes=FULL)


fill_operator("IndexFill", False, False)
fill_operator("InplaceIndexFill", True, False)
fill_operator("IndexFillTensor", False, True)
fill_operator("InplaceIndexFillTensor", True, True)


def index_add_operator(name: str, extra: tuple[Any, ...]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dim in (0, -1):
            x = case.values()
            where = indices(case, (3,), case.shape[dim])
            shape = list(case.shape)
            shape[dim] = 3
            source = case.values(tuple(shape))
            alpha = number(case)
            expected = torch.index_add(wide(x), dim, where, wide(source), alpha=alpha).to(x.dtype)
            yield [case.put(x), dim, case.put(where), case.put(source), alpha, *extra, case.out(expected, loose=4)]

    add(name, calls, shapes=FULL)


index_add_operator("IndexAdd", ())
index_add_operator("IndexAddV2", (0,))


def index_copy_operator(name: str, in_place: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dim in (0, -1):
            x = case.values()
            count = min(3, case.shape[dim])
            where = torch.randperm(case.shape[dim], generator=case.generator)[:count]
            shape = list(case.shape)
            shape[dim] = count
            source = case.values(tuple(shape))
            expected = x.index_copy(dim, where, source)
            if in_place:
                yield [case.inout(x, expected, exact=True), dim, case.put(where), case.put(source)]
            else:
                yield [case.put(x), dim, case.put(where), case.put(source), case.out(expected, exact=True)]

    add(name, calls, shapes=FULL)


index_copy_operator("IndexCopy", False)
index_copy_operator("InplaceIndexCopy", True)


# --- joining and rearranging --------------------------------------------------------------------------------------------------------------


@row("Cat", shapes=(*FULL, (0, 3)))
def cat(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        shapes = [list(case.shape) for _ in range(3)]
        shapes[1][dim] += 2
        parts = [case.values(tuple(shape)) for shape in shapes]
        yield [[case.put(p) for p in parts], dim, case.out(torch.cat(parts, dim), exact=True)]


@row("Stack", shapes=(*FULL, ()))
def stack(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        parts = [case.values() for _ in range(3)]
        yield [[case.put(p) for p in parts], dim, case.out(torch.stack(parts, dim), exact=True)]


@row("Flip", shapes=(*FULL, ()))
def flip(case: Case) -> Iterator[Any]:
    for dims in ([0], [-1], list(range(len(case.shape)))) if case.shape else ([],):
        x = case.values()
        yield [case.put(x), dims, case.out(torch.flip(x, dims), exact=True)]


@row("Roll", shapes=FULL)
def roll(case: Case) -> Iterator[Any]:
    for shifts, dims in (([2], [0]), ([-1], [-1]), ([1, 2], [0, -1]), ([3], [])):
        x = case.values()
        if len(case.shape) > 1 or len(dims) < 2:
            yield [case.put(x), shifts, dims, case.out(torch.roll(x, shifts, dims), exact=True)]


@row("ConstantPadNd", shapes=FULL)
def constant_pad(case: Case) -> Iterator[Any]:
    for widths in ([1, 2], [-1, 3], [0, 0], [2, 0] * len(case.shape), [-1, -1] * (len(case.shape) - 1) + [1, 1]):
        x = case.values()
        if all(size + a + b >= 0 for size, a, b in zip(reversed(case.shape), widths[::2], widths[1::2])):
            expected = torch.nn.functional.pad(x, widths, value=float(number(case, 3)))
            yield [case.put(x), widths, number(case, 3), case.out(expected, exact=True)]


@row("RepeatInterleaveInt", shapes=(*FULL, ()))
def repeat_interleave_int(case: Case) -> Iterator[Any]:
    for times in (3, 1, 0):
        x = case.values()
        yield [case.put(x), times, times * x.numel(), case.out(torch.repeat_interleave(x, times), exact=True)]


@row("RepeatInterleaveIntWithDim", shapes=FULL)
def repeat_interleave_int_with_dim(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        x = case.values()
        yield [case.put(x), 3, dim, 3 * x.shape[dim], case.out(torch.repeat_interleave(x, 3, dim), exact=True)]


def times_of(case: Case, count: int, dtype: torch.dtype) -> Tensor:
    times = indices(case, (count,), 4, dtype)
    times[0] = 2
    return times


@row("RepeatInterleave", shapes=FULL)
def repeat_interleave(case: Case) -> Iterator[Any]:
    for dtype in INDEX_TYPES:
        x = case.values()
        for times in (times_of(case, x.numel(), dtype), torch.tensor([2], dtype=dtype)):
            expected = torch.repeat_interleave(x.flatten(), times)
            yield [case.put(x), case.put(times), expected.numel(), case.out(expected, exact=True)]


@row("RepeatInterleaveWithDim", shapes=FULL)
def repeat_interleave_with_dim(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        x = case.values()
        for times in (times_of(case, x.shape[dim], torch.int64), torch.tensor([2])):
            expected = torch.repeat_interleave(x, times, dim)
            yield [case.put(x), case.put(times), dim, expected.shape[dim], case.out(expected, exact=True)]


@row("ChannelShuffle", shapes=((2, 6, 5), (1, 4, 3, 2), (3, 2, 2, 2, 2)))
def channel_shuffle(case: Case) -> Iterator[Any]:
    for groups in (1, 2):
        x = case.values()
        split = x.unflatten(1, (groups, -1)).transpose(1, 2)
        yield [case.put(x), groups, case.out(split.flatten(1, 2), exact=True)]


@row("Trace", shapes=((3, 5), (33, 17), (4, 4)))
def trace(case: Case) -> Iterator[Any]:
    x = case.values()
    dtype = torch.int64 if x.dtype in INTEGRAL else x.dtype
    yield [case.put(x), case.out(wide(x).to(torch.int64 if x.dtype in INTEGRAL else wide(x).dtype).diagonal().sum(), dtype)]


@row("Repeat", shapes=(*FULL, ()))
def repeat(case: Case) -> Iterator[Any]:
    for times in ([2] * max(len(case.shape), 1), [3, *([1] * len(case.shape))]):
        x = case.values()
        yield [case.put(x), times, case.out(x.repeat(times), exact=True)]


def triangle(name: str, function: Callable[[Tensor, int], Tensor]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for diagonal in (0, 1, -1):
            x = case.values()
            yield [case.put(x), diagonal, case.out(function(x, diagonal), exact=True)]

    def in_place(case: Case) -> Iterator[Any]:
        for diagonal in (0, 1, -1):
            x = case.values()
            yield [case.inout(x, function(x, diagonal), exact=True), diagonal]

    shapes = ((3, 5), (5, 3), (2, 3, 4), (33, 17), (0, 3))
    add(name, calls, shapes=shapes)
    add(f"Inplace{name}", in_place, shapes=shapes)


triangle("Tril", torch.tril)
triangle("Triu", torch.triu)


# --- creating -----------------------------------------------------------------------------------------------------------------------------

LENGTHS = ((1,), (7,), (33,), (1000,))


def sequence(name: str, inclusive: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        if case.dtype in COMPLEX:
            raise NotImplementedError("sequences are of real numbers")
        count = min(case.shape[0], 100) if case.dtype in (torch.int8, torch.uint8) else case.shape[0]
        if case.dtype in (torch.float16, torch.bfloat16):
            count = min(count, 200)
        for start, step in ((1, 1), (0, 1)) if case.dtype in INTEGRAL else ((1, 1), (0.5, 0.25)):
            values = start + step * torch.arange(count, dtype=torch.float64)
            end = start + step * (count - 1 if inclusive else count)
            yield [start, end, step, case.out(values.to(case.dtype))]

    add(name, calls, shapes=LENGTHS)


sequence("Arange", False)
sequence("Range", True)


@row("Linspace", shapes=LENGTHS)
def linspace(case: Case) -> Iterator[Any]:
    if case.dtype in COMPLEX:
        raise NotImplementedError("sequences are of real numbers")
    steps = case.shape[0]
    for start, end in ((0, 100), (3, 3)) if case.dtype in INTEGERS else ((-1.5, 2.5), (3.0, 3.0)):
        expected = torch.linspace(start, end, steps, dtype=case.dtype if case.dtype in INTEGERS else torch.float64)
        yield [start, end, steps, case.out(expected, dtype=case.dtype, loose=2)]


@row("LogSpace", shapes=((1,), (7,), (33,)))
def log_space(case: Case) -> Iterator[Any]:
    if case.dtype in COMPLEX:
        raise NotImplementedError("sequences are of real numbers")
    if case.dtype in INTEGRAL:
        yield [0, 6, 7, 2.0, case.out(2.0 ** torch.arange(7), dtype=case.dtype)]
        return
    steps = case.shape[0]
    yield [-1.5, 2.5, steps, 2.0, case.out(torch.logspace(-1.5, 2.5, steps, 2.0, dtype=torch.float64), dtype=case.dtype, loose=4)]


@row("Eye", shapes=((3, 5), (5, 3), (1, 1), (33, 17)))
def eye(case: Case) -> Iterator[Any]:
    yield [*case.shape, case.out(torch.eye(*case.shape, dtype=case.dtype))]
