"""Rows of reductions, extremes with indices, running sums, sorting and searching (src/aclnn/math/reduce.def)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from cases import COMPLEX, FLOATS, INTEGERS, Case, Optional, Out, add, float_of, place, real, row, wide

Tensor = torch.Tensor
INTEGRAL = (*INTEGERS, torch.bool)
FULL = ((7,), (3, 5), (2, 3, 4), (33, 17), ())  # shapes with elements
ORDERED = ((7,), (3, 5), (2, 3, 4), (33, 17), (3, 300), ())


def dims_of(shape: tuple[int, ...]) -> list[tuple[list[int], bool]]:
    """Dimensions to reduce and keepdim."""
    if len(shape) == 0:
        return [([], False), ([-1], False)]
    choices = [([0], False), ([-1], True), (list(range(len(shape))), False)]
    return choices + ([([0, -1], True)] if len(shape) > 2 else [])


def refuse(case: Case, *dtypes: torch.dtype) -> None:
    if case.dtype in dtypes:
        raise NotImplementedError("torch has no such reduction")


def floating(case: Case) -> None:
    refuse(case, *INTEGRAL, *COMPLEX)


# --- sums and products --------------------------------------------------------------------------------------------------------------


def sum_like(name: str, function: Callable[..., Tensor], specials: bool = False) -> None:
    """(self, dims, keepDim, dtype, out)"""

    def calls(case: Case) -> Iterator[Any]:
        if specials:
            refuse(case, *COMPLEX)
        for dims, keep in dims_of(case.shape):
            x = case.values()
            if specials and x.numel() > 3 and case.dtype not in INTEGRAL:
                x.view(-1)[1] = math.nan
            result = torch.int64 if case.dtype in INTEGRAL else case.dtype
            expected = function(wide(x).to(torch.int64) if case.dtype in INTEGRAL else wide(x), dims, keep).to(result)
            yield [case.put(x), dims, keep, result, case.out(expected, loose=4)]
            if case.dtype in (torch.float16, torch.int32):
                expected = function(x.double(), dims, keep).float()
                yield [case.put(x), dims, keep, torch.float32, case.out(expected, loose=4)]

    add(name, calls, shapes=(*FULL, (0, 3)))


sum_like("ReduceSum", lambda x, dims, keep: torch.sum(x, dims, keep))
sum_like("ReduceNansum", lambda x, dims, keep: torch.sum(torch.where(x.isnan(), 0, x), dims, keep), specials=True)


@row("Mean", shapes=FULL)
def mean(case: Case) -> Iterator[Any]:
    for dims, keep in dims_of(case.shape):
        x = case.values()
        if case.dtype in INTEGRAL:
            yield [case.put(x), dims, keep, torch.float32, case.out(torch.mean(x.double(), dims, keep).float())]
        else:
            yield [case.put(x), dims, keep, case.dtype, case.out(torch.mean(wide(x), dims, keep).to(case.dtype), loose=4)]


def product_type(case: Case) -> torch.dtype:
    return torch.int64 if case.dtype in INTEGRAL else case.dtype


@row("Prod", shapes=((7,), (3, 5), (2, 3, 4), ()))
def prod(case: Case) -> Iterator[Any]:
    x = case.values(low=1, high=2)
    yield [case.put(x), product_type(case), case.out(torch.prod(wide(x)).to(product_type(case)), loose=4)]


@row("ProdDim", shapes=((7,), (3, 5), (2, 3, 4), (17, 13)))
def prod_dim(case: Case) -> Iterator[Any]:
    for dim, keep in ((0, False), (-1, True)):
        x = case.values(low=1, high=2)
        expected = torch.prod(wide(x), dim, keep).to(product_type(case))
        yield [case.put(x), dim, keep, product_type(case), case.out(expected, loose=4)]


# --- extremes -----------------------------------------------------------------------------------------------------------------------


def extreme(name: str, function: Callable[[Tensor], Tensor]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        x = case.values()
        yield [case.put(x), case.out(function(x), exact=True)]

    add(name, calls, shapes=FULL)


extreme("Max", torch.max)
extreme("Min", torch.min)


def extreme_dims(name: str, function: Callable[..., Tensor]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dims, keep in dims_of(case.shape):
            x = case.values()
            yield [case.put(x), dims, keep, case.out(function(x, dims, keep), exact=True)]

    add(name, calls, shapes=FULL)


extreme_dims("Amax", torch.amax)
extreme_dims("Amin", torch.amin)


def truth(name: str, function: Callable[..., Tensor]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dims, keep in dims_of(case.shape):
            x = case.values(low=-1, high=1)
            if case.dtype not in INTEGRAL:
                x = torch.round(wide(x).real).to(case.dtype)
            expected = function(x != 0, tuple(dims), keep) if dims else function(x != 0)
            yield [case.put(x), dims, keep, case.out(expected)]

    add(name, calls, shapes=(*FULL, (0, 3)))


truth("Any", lambda x, *how: torch.any(x, *how))
truth("All", lambda x, *how: torch.all(x, *how))


@row("Aminmax", shapes=FULL)
def aminmax(case: Case) -> Iterator[Any]:
    for dims, keep in dims_of(case.shape):
        x = case.values()
        yield [case.put(x), dims, keep, case.out(torch.amin(x, dims, keep), exact=True), case.out(torch.amax(x, dims, keep), exact=True)]


@row("AminmaxDim", shapes=FULL)
def aminmax_dim(case: Case) -> Iterator[Any]:
    for dim, keep in ((0, False), (-1, True)):
        x = case.values()
        low, high = torch.aminmax(x, dim=dim, keepdim=keep)
        yield [case.put(x), dim, keep, case.out(low, exact=True), case.out(high, exact=True)]


@row("AminmaxAll", shapes=FULL)
def aminmax_all(case: Case) -> Iterator[Any]:
    x = case.values()
    low, high = torch.aminmax(x)
    yield [case.put(x), case.out(low, exact=True), case.out(high, exact=True)]


def distinct(case: Case) -> Tensor:
    """Values of which no two are equal, where the type has enough of them, so that indices are unique."""
    count = math.prod(case.shape)
    order = torch.randperm(count, generator=case.generator)
    if case.dtype == torch.bool:
        return (order < count // 2).reshape(case.shape)
    return (order % 120 if case.dtype in (torch.int8, torch.uint8) else order).reshape(case.shape).to(case.dtype)


def ranked(x: Tensor) -> Tensor:
    """Bool as numbers: torch sorts those."""
    return x.to(torch.uint8) if x.dtype == torch.bool else x


def places(case: Case, x: Tensor, values: Tensor, indices: Tensor, dim: int = -1, keep: bool = True) -> Any:
    """The output of places: the ones given, or where values repeat any places that hold the values."""
    out = case.out(indices)
    if case.dtype in (torch.int8, torch.uint8, torch.bfloat16, torch.bool) and x.dim():

        def check(actual: Tensor) -> str | None:
            at = actual if keep else actual.unsqueeze(dim)
            held = torch.gather(x, dim, at.clamp(0, x.shape[dim] - 1))
            return None if torch.equal(held if keep else held.squeeze(dim), values.to(x.dtype)) else "the places don't hold the values"

        out.check = check
    return out


def first_index(x: Tensor, values: Tensor, dim: int, keep: bool) -> Tensor:
    """The first place of the extreme."""
    values = values if keep or x.dim() == 0 else values.unsqueeze(dim)
    return (x == values).to(torch.int8).argmax(dim, keepdim=keep) if x.dim() else torch.tensor(0)


def extreme_index(name: str, function: Callable[..., Tensor], values: bool) -> None:
    """(self, dim, keepdim, [out,] indices)"""

    def calls(case: Case) -> Iterator[Any]:
        for dim, keep in ((0, False), (-1, True)):
            x = distinct(case)
            value = function(x, dim, keep)
            index = first_index(x, value, dim, keep)
            outs = [case.out(value, exact=True)] if values else []
            yield [case.put(x), dim, keep, *outs, case.out(index)]
            yield Optional([case.put(x), dim, keep, *([case.out(value, exact=True)] if values else []), case.out(index.to(torch.int32))])

    add(name, calls, shapes=ORDERED)


extreme_index("MaxDim", torch.amax, True)
extreme_index("MinDim", torch.amin, True)
extreme_index("ArgMax", torch.amax, False)
extreme_index("ArgMin", torch.amin, False)


# --- moments and norms --------------------------------------------------------------------------------------------------------------


def moments(name: str, function: Callable[..., Any], outputs: int) -> None:
    """(self, dim, correction, keepdim, out, ...)"""

    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        for dims, keep in dims_of(case.shape):
            for correction in (0, 1):
                x = case.values()
                results = function(wide(x), dims or None, correction=correction, keepdim=keep)
                results = results if outputs > 1 else (results,)
                yield [case.put(x), dims, correction, keep, *(case.out(r.to(case.dtype), loose=4) for r in results)]

    add(name, calls, shapes=((7,), (3, 5), (2, 3, 4), (33, 17)))


moments("VarCorrection", torch.var, 1)
moments("Std", torch.std, 1)
moments("VarMean", torch.var_mean, 2)
moments("StdMeanCorrection", torch.std_mean, 2)


@row("LogSumExp", shapes=FULL)
def log_sum_exp(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX)
    for dims, keep in dims_of(case.shape):
        x = case.values()
        every = dims or list(range(x.dim()))
        yield [case.put(x), dims, keep, case.out(torch.logsumexp(real(x), every, keep).to(float_of(case.dtype)), loose=2)]


@row("Norm", shapes=FULL)
def norm(case: Case) -> Iterator[Any]:
    refuse(case, *INTEGRAL)
    for order in (2.0, 1.0, 0.0, 3.0, math.inf, -math.inf):
        for dims, keep in dims_of(case.shape):
            x = case.values()
            expected = torch.linalg.vector_norm(wide(x), order, dims or None, keep)
            yield [case.put(x), order, dims, keep, case.out(expected.to(x.real.dtype if x.is_complex() else x.dtype), loose=4)]


@row("LinalgVectorNorm", shapes=FULL)
def vector_norm(case: Case) -> Iterator[Any]:
    refuse(case, *INTEGRAL)
    for order in (2.0, 1.0, 0.0, 3.0, math.inf, -math.inf):
        for dims, keep in dims_of(case.shape):
            x = case.values()
            result = x.real.dtype if x.is_complex() else x.dtype
            expected = torch.linalg.vector_norm(wide(x), order, dims or None, keep)
            yield [case.put(x), order, dims, keep, case.dtype, case.out(expected.to(result), loose=4)]


# --- running ------------------------------------------------------------------------------------------------------------------------


@row("Cumsum", shapes=(*FULL, (0, 3)))
def cumsum(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        x = case.values()
        result = product_type(case)
        yield [case.put(x), dim, result, case.out(torch.cumsum(wide(x), dim).to(result), loose=8)]


@row("Cumprod", shapes=((7,), (3, 5), (2, 3, 4), (11, 6), (), (0, 3)))
def cumprod(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        x = case.values(low=1, high=2)
        result = product_type(case)
        yield [case.put(x), dim, result, case.out(torch.cumprod(wide(x), dim).to(result), loose=8)]


def running_extreme(name: str, function: Callable[..., Any]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dim in (0, -1):
            x = distinct(case) if case.dtype in FLOATS else case.values()
            values, indices = function(x, dim)
            yield [case.put(x), dim, case.out(values, exact=True), case.out(indices)]

    add(name, calls, shapes=(*FULL, (0, 3)))


running_extreme("Cummax", torch.cummax)
running_extreme("Cummin", torch.cummin)


# --- sorting ------------------------------------------------------------------------------------------------------------------------


@row("Sort", shapes=(*ORDERED, (0, 3)))
def sort(case: Case) -> Iterator[Any]:
    for dim in (0, -1):
        for descending in (False, True):
            x = case.values()
            values, indices = torch.sort(x, stable=True, dim=dim, descending=descending)
            yield [case.put(x), True, dim, descending, case.out(values, exact=True), case.out(indices)]


def top_k(name: str, extra: tuple[Any, ...]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for largest in (False, True):
            x = distinct(case)
            k = min(3, x.shape[-1]) if x.dim() else 1
            values, indices = torch.topk(ranked(x), k, -1, largest, True)
            where = places(case, x, values, indices)
            yield [case.put(x), k, -1, largest, True, *extra, case.out(values.to(x.dtype), exact=True), where]

    add(name, calls, shapes=ORDERED)


top_k("Topk", ())
top_k("TopkV2", (0,))


@row("Kthvalue", shapes=ORDERED)
def kth_value(case: Case) -> Iterator[Any]:
    for keep in (False, True):
        x = distinct(case)
        k = (x.shape[-1] + 1) // 2 if x.dim() else 1
        values, indices = torch.kthvalue(ranked(x), k, -1, keep)
        yield [case.put(x), k, -1, keep, case.out(values.to(x.dtype), exact=True), places(case, x, values, indices, -1, keep)]


def median_dim(name: str, function: Callable[..., Any], with_nan: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for dim, keep in ((0, False), (-1, True)):
            x = distinct(case)
            if with_nan and case.dtype in FLOATS and x.numel() > 8:
                x.view(-1)[3] = math.nan
            values, indices = function(ranked(x), dim, keep)
            where = places(case, x, values, indices, dim, keep)
            yield [case.put(x), dim, keep, case.out(values.to(x.dtype), exact=True), where]

    add(name, calls, shapes=ORDERED)


median_dim("MedianDim", torch.median, False)
median_dim("NanMedianDim", torch.nanmedian, True)


def median(name: str, function: Callable[[Tensor], Tensor]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        x = distinct(case)
        yield [case.put(x), case.out(function(ranked(x)).to(x.dtype), exact=True)]

    add(name, calls, shapes=ORDERED)


median("Median", torch.median)
median("NanMedian", torch.nanmedian)


# --- searching ----------------------------------------------------------------------------------------------------------------------


def ladder(case: Case, shape: tuple[int, ...]) -> Tensor:
    return torch.sort(case.values(shape, low=-9, high=9), -1).values


@row("SearchSorted", shapes=((7,), (3, 5), (2, 3, 4), (9, 33)))
def search_sorted(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX)
    for right in (False, True):
        for result in (torch.int64, torch.int32):
            steps, x = ladder(case, case.shape), case.values((*case.shape[:-1], 6), low=-10, high=10)
            expected = torch.searchsorted(ranked(steps), ranked(x), right=right).to(result)
            yield [case.put(steps), case.put(x), result == torch.int32, right, None, case.out(expected)]
    mixed = case.values(low=-9, high=9)
    order = torch.argsort(ranked(mixed), -1)
    x = case.values((*case.shape[:-1], 6), low=-10, high=10)
    yield [case.put(mixed), case.put(x), False, False, case.put(order), case.out(torch.searchsorted(ranked(mixed), ranked(x), sorter=order))]


@row("SearchSorteds", shapes=((7,), (33,), (1,)))
def search_sorted_scalar(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX)
    for right in (False, True):
        steps, value = ladder(case, case.shape), True if case.dtype == torch.bool else 2
        expected = torch.searchsorted(ranked(steps), torch.tensor(value, dtype=ranked(steps).dtype), right=right)
        yield [case.put(steps), value, False, right, None, case.out(expected)]


@row("Bucketize", shapes=((7,), (3, 5), (2, 3, 4), (), (0, 3)))
def bucketize(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX)
    for right in (False, True):
        for result in (torch.int64, torch.int32):
            steps, x = ladder(case, (8,)), case.values(low=-10, high=10)
            expected = torch.bucketize(ranked(x), ranked(steps), right=right).to(result)
            yield [case.put(x), case.put(steps), result == torch.int32, right, case.out(expected)]


@row("OneHot", shapes=((7,), (3, 5), (2, 3, 4), ()), dtypes=INTEGERS, needs=(torch.int64,))
def one_hot(case: Case) -> Iterator[Any]:
    for result in (torch.int64, torch.float32):
        x = case.values(low=0, high=4)
        on, off = torch.ones(1, dtype=result), torch.zeros(1, dtype=result)
        expected = torch.nn.functional.one_hot(x.long(), 6).to(result)
        values = [case.put(x), 6, case.put(on), case.put(off), -1, case.out(expected)]
        yield values if result == torch.int64 else Optional(values)


@row("Bincount", shapes=((7,), (33,), (1,), (300,)), needs=(torch.int64,))
def bincount(case: Case) -> Iterator[Any]:
    refuse(case, *FLOATS, *COMPLEX, torch.bool)
    x = case.values(low=0, high=9)
    x[0] = 9
    yield [case.put(x), None, 12, case.out(torch.bincount(x, minlength=12))]
    weights = case.values(dtype=torch.float32)
    yield [case.put(x), case.put(weights), 12, case.out(torch.bincount(x, weights.double(), 12).float())]
    weights = case.values(dtype=torch.float64)
    yield [case.put(x), case.put(weights), 12, case.out(torch.bincount(x, weights, 12))]


@row("Histc", shapes=((7,), (3, 5), (2, 3, 4), (33, 17)))
def histc(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX, torch.bool)
    for low, high in ((-2, 2), (0, 0)):
        x = case.values()
        if case.dtype in FLOATS:
            x = (x * 4).round() / 4  # exact bin borders in every type
        expected = torch.histc(x.double(), 8, low, high).to(case.dtype)
        yield [case.put(x), 8, low, high, case.out(expected)]


def positions(x: Tensor, values: Tensor) -> Tensor:
    return (x.unsqueeze(-1) == values).to(torch.int8).argmax(-1)


def room(case: Case, found: Tensor, size: int) -> Any:
    """An output with room for `size` elements, of which `found` ones are there."""
    return Out(place(torch.zeros(size, dtype=found.dtype), "plain"), found.contiguous(), found_shape=True)


def unique_rows(name: str, counts: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        refuse(case, *COMPLEX)
        x = case.values(low=-4, high=4)
        if case.dtype in FLOATS:
            x = x.round()
        found, inverse, number = torch.unique(x.double() if case.dtype in FLOATS else x, True, True, True)
        values = [case.put(x), True, True, *([True] if counts else []), room(case, found.to(case.dtype), x.numel()), case.out(inverse)]
        yield [*values, *([room(case, number, x.numel())] if counts else [])]

    add(name, calls, shapes=((7,), (3, 5), (2, 3, 4), (33, 17)))


unique_rows("Unique", False)
unique_rows("Unique2", True)


@row("UniqueConsecutive", shapes=((7,), (3, 5), (2, 3, 4), (33, 17)))
def unique_consecutive(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX)
    x = case.values(low=-1, high=1)
    if case.dtype in FLOATS:
        x = x.round()
    found, inverse, number = torch.unique_consecutive(x, True, True)
    yield [case.put(x), True, True, 1000, room(case, found, x.numel()), case.out(inverse), room(case, number, x.numel())]
    for dim in range(1, len(case.shape)):
        found, inverse, number = torch.unique_consecutive(x, True, True, dim)
        yield [case.put(x), True, True, dim, room(case, found, x.numel()), case.out(inverse), room(case, number, case.shape[dim])]
