"""What a row of the operator table is made of: operands in every layout, expected results, and their comparison.

A row is a generator function of a Case: each `yield` is one call, the operator's arguments in the prototype's order, outputs as
`case.out(expected)`. The case decides element type, shape and layout; the row says what follows from them. A row that lets torch
compute `wide` values (float64, complex128) and rounds the result once is an independent reference for narrow types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
ALL = (*FLOATS, *INTEGERS, torch.bool, *COMPLEX)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu)  # only stored: moved, converted, compared
TOLERANCES = {
    torch.float64: (1e-11, 1e-11),
    torch.complex128: (1e-11, 1e-11),
    torch.float32: (1e-5, 2e-6),
    torch.complex64: (1e-5, 4e-6),
    torch.float16: (1.5e-3, 1e-4),
    torch.bfloat16: (1.2e-2, 1e-3),
}
WIDE = {dtype: torch.float64 for dtype in FLOATS} | {dtype: torch.complex128 for dtype in COMPLEX}
GUARD = 32  # elements of memory around a plain operand


def wide(x: torch.Tensor) -> torch.Tensor:
    """The value in the widest type of its kind; integers stay, as their arithmetic is exact."""
    return x.to(WIDE.get(x.dtype, x.dtype))


def real(x: torch.Tensor) -> torch.Tensor:
    """The value in float64 (complex128), whatever the type."""
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def float_of(dtype: torch.dtype) -> torch.dtype:
    """The type of a function's result: the type itself, float32 for integers and bool."""
    return dtype if dtype in WIDE else torch.float32


def place(values: torch.Tensor, layout: str) -> torch.Tensor:
    """The values in memory of their own: row-major inside a guard, or (strided) column-major with gaps after an offset."""
    strided = layout == "strided"
    step, strides = 2 if strided else 1, [0] * values.dim()
    order = range(values.dim()) if strided else reversed(range(values.dim()))
    for d in order:
        strides[d] = step
        step *= max(values.shape[d], 1)
    memory = torch.empty(step + 2 * GUARD, dtype=values.dtype)
    memory.view(torch.uint8).fill_(0x5A if values.dtype != torch.bool else 1)
    view = memory.as_strided(values.shape, strides, GUARD + 3 if strided else GUARD)
    view.copy_(values)
    return view


def memory_of(view: torch.Tensor) -> torch.Tensor:
    """All bytes behind a view."""
    return torch.tensor([], dtype=torch.uint8).set_(view.untyped_storage())  # type: ignore[call-overload]


@dataclass
class Out:
    """An output: memory for it, and what must be there afterwards. `check` replaces the comparison (random numbers)."""

    view: torch.Tensor
    expected: torch.Tensor | None
    loose: float = 1.0
    exact: bool = False
    check: Callable[[torch.Tensor], str | None] | None = None
    found_shape: bool = False  # the handle's shape shows how much was found

    def outside(self) -> torch.Tensor:
        """The memory's bytes with the output's own elements blanked."""
        copy = self.view.untyped_storage().clone()
        whole = torch.tensor([], dtype=self.view.dtype).set_(copy)  # type: ignore[call-overload]
        whole.as_strided(self.view.shape, self.view.stride(), self.view.storage_offset()).zero_()
        return torch.tensor([], dtype=torch.uint8).set_(copy)  # type: ignore[call-overload]

    def difference(self) -> str | None:
        """Words on how the result differs from what was expected; None when it doesn't."""
        actual = self.view.clone()
        if self.check:
            return self.check(actual)
        assert self.expected is not None
        expected = self.expected
        if self.found_shape:
            actual = actual.flatten()[: expected.numel()].reshape(expected.shape)
        relative, absolute = TOLERANCES.get(expected.dtype, (0.0, 0.0))
        if self.exact:
            relative = absolute = 0.0
        if expected.dtype == torch.bool or expected.dtype in FLOAT8:
            actual, expected = actual.view(torch.uint8), expected.view(torch.uint8)
        close = torch.isclose(actual, expected, rtol=relative * self.loose, atol=absolute * self.loose, equal_nan=True)
        if bool(close.all()):
            return None
        where = (~close).nonzero()[0].tolist()
        bad = int((~close).sum())
        return f"{bad} of {close.numel()} differ; at {where} got {actual[tuple(where)].item()}, expected {expected[tuple(where)].item()}"


@dataclass
class Optional:
    """A call that the operator may refuse (mixed types and the like); accepted means compared."""

    values: list[Any]


@dataclass
class Case:
    """Element type, shape and layout of one run of a row."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    layout: str
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(7))

    def values(self, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None, low: float = -3, high: float = 3) -> torch.Tensor:
        """Random values in [low, high): any multiple of an element for floats, integers for integers."""
        shape, dtype = self.shape if shape is None else tuple(shape), dtype or self.dtype
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self.generator).bool()
        if dtype in INTEGERS:
            first = max(int(low), 0) if dtype == torch.uint8 else int(low)
            return torch.randint(first, max(int(high), first) + 1, shape, generator=self.generator).to(dtype)
        if dtype in COMPLEX:
            parts = torch.rand((*shape, 2), generator=self.generator, dtype=torch.float64) * (high - low) + low
            return torch.view_as_complex(parts).to(dtype)
        return (torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low).to(dtype)

    def put(self, values: torch.Tensor) -> torch.Tensor:
        """Given values as an input in this case's layout."""
        return place(values, self.layout)

    def tensor(self, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None, low: float = -3, high: float = 3) -> torch.Tensor:
        """Random values as an input in this case's layout."""
        return self.put(self.values(shape, dtype, low, high))

    def integers(self, shape: Sequence[int], low: int, high: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Random integers in [low, high), as an input."""
        return self.put(torch.randint(low, max(high, low + 1), tuple(shape), generator=self.generator).to(dtype))

    def out(self, expected: torch.Tensor, dtype: torch.dtype | None = None, **how: Any) -> Out:
        """An output in this case's layout, filled with garbage."""
        expected = expected.detach().to(dtype or expected.dtype)
        garbage = torch.zeros_like(expected) if expected.dtype == torch.bool else torch.full_like(expected, 77)
        return Out(place(garbage, self.layout), expected.contiguous(), **how)

    def inout(self, before: torch.Tensor, expected: torch.Tensor, **how: Any) -> Out:
        """An output that is read as well."""
        return Out(place(before, self.layout), expected.detach().to(before.dtype).contiguous(), **how)

    def random(self, shape: Sequence[int], dtype: torch.dtype, check: Callable[[torch.Tensor], str | None]) -> Out:
        """An output that a predicate judges."""
        return Out(place(torch.zeros(tuple(shape), dtype=dtype), self.layout), None, check=check)


SHAPES = ((7,), (3, 5), (2, 3, 4), (33, 17), (), (0, 3))


@dataclass
class Row:
    """One operator of the table."""

    operator: str
    calls: Callable[[Case], Iterator[Any]]
    shapes: tuple[tuple[int, ...], ...] = SHAPES
    dtypes: tuple[torch.dtype, ...] = ALL
    needs: tuple[torch.dtype, ...] = (torch.float32,)  # at least these are accepted

    def cases(self, dtype: torch.dtype) -> Iterator[Case]:
        """Every shape plain, the second and third strided too."""
        for i, shape in enumerate(self.shapes):
            yield Case(dtype, shape, "plain")
            if i in (1, 2):
                yield Case(dtype, shape, "strided")


ROWS: dict[str, Row] = {}


def add(operator: str, calls: Callable[[Case], Iterator[Any]], **how: Any) -> None:
    """Enters a row; a second one of the same operator is a mistake."""
    assert operator not in ROWS, f"two rows of {operator}"
    ROWS[operator] = Row(operator, calls, **how)


def row(*operators: str, **how: Any) -> Callable[[Callable[[Case], Iterator[Any]]], Callable[[Case], Iterator[Any]]]:
    """Decorator: the function below is the row of these operators."""

    def enter(calls: Callable[[Case], Iterator[Any]]) -> Callable[[Case], Iterator[Any]]:
        for operator in operators:
            add(operator, calls, **how)
        return calls

    return enter
