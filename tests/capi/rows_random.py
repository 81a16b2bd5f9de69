"""Rows of random numbers (src/aclnn/math/random.c): their distribution is what can be compared, and that a seed repeats them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from cases import COMPLEX, FLOATS, Case, Out, add, row
from library import Call

Tensor = torch.Tensor
Check = Callable[[Tensor], str | None]
SIZES = ((40, 50), (7, 11, 30), (3000,), (1500, 1), (0, 3))
SEED, OFFSET = 1234, 8


def moments(low: float, high: float, mean: float, deviation: float, closed: bool = False) -> Check:
    """Values lie in [low, high) (closed: the end too, which rounding to a narrow type reaches); mean and deviation in 5 errors."""

    def check(actual: Tensor) -> str | None:
        values = actual.double()
        if not values.numel():
            return None
        inside = (values >= low) & ((values <= high) if closed else (values < high))
        if not bool(inside.all()):
            return f"{values[~inside][0].item()} lies outside of [{low}, {high})"
        error = 5 * deviation / math.sqrt(values.numel())
        if abs(values.mean().item() - mean) > error + 0.01 * abs(mean):
            return f"mean {values.mean().item()}, expected {mean}"
        if deviation and abs(values.std().item() / deviation - 1) > 0.15:
            return f"deviation {values.std().item()}, expected {deviation}"
        return None

    return check


def floating(case: Case) -> None:
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")


def state(case: Case, in_tensors: bool) -> list[Any]:
    """Seed and offset as numbers, or in tensors with an offset to add."""
    if in_tensors:
        return [case.put(torch.tensor([SEED])), case.put(torch.tensor([OFFSET])), 0]
    return [SEED, OFFSET]


def drawn(name: str, arguments: list[Any], at: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """What the operator draws into plain memory: the values must not depend on the layout."""
    plain = torch.zeros(shape, dtype=dtype)
    call = Call(name, [*arguments[:at], plain, *arguments[at:]])
    assert call.plan() == 0, call.libs.message()
    call.run()
    return plain


def random_row(name: str, before: list[Any], in_tensors: bool, check: Callable[[Case], Check], at: int = 0, dtypes: Any = None) -> None:
    """Arguments: the output at place `at`, `before`, seed and offset."""

    def calls(case: Case) -> Iterator[Any]:
        allowed = dtypes or FLOATS
        if case.dtype not in allowed:
            raise NotImplementedError("no such numbers")
        arguments = [*before, *state(case, in_tensors)]
        if name == "StatelessExponentialTensor":
            arguments = [*arguments[1:], before[0]]
        place = at if at >= 0 else len(arguments)
        yield [*arguments[:place], case.random(case.shape, case.dtype, check(case)), *arguments[place:]]
        if case.layout == "strided":
            twin = drawn(name, arguments, place, case.shape, case.dtype)
            same = case.random(case.shape, case.dtype, lambda actual: None if torch.equal(actual, twin) else "another layout, other numbers")
            yield [*arguments[:place], same, *arguments[place:]]

    add(name, calls, shapes=SIZES)


def uniform_check(case: Case) -> Check:
    return moments(-1, 3, 1, 4 / math.sqrt(12))


def normal_check(case: Case) -> Check:
    return moments(-20, 20, 1, 2)


def exponential_check(case: Case) -> Check:
    return moments(0, 100, 0.5, 0.5, closed=True)


for suffix, in_tensors in (("", False), ("Tensor", True)):
    random_row(f"InplaceUniform{suffix}", [-1.0, 3.0], in_tensors, uniform_check)
    random_row(f"InplaceNormal{suffix}", [1.0, 2.0], in_tensors, normal_check)
random_row("NormalFloatFloat", [1.0, 2.0], False, normal_check, at=-1)
random_row("StatelessExponentialTensor", [2.0], True, exponential_check)


@row("SimThreadExponential", shapes=SIZES)
def exponential(case: Case) -> Iterator[Any]:
    floating(case)
    yield [case.random(case.shape, case.dtype, exponential_check(case)), math.prod(case.shape), 2.0, SEED, OFFSET]


def normal_of_tensors(name: str, mean: bool, deviation: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        first = case.put(torch.full(case.shape, 1.0, dtype=case.dtype)) if mean else 1.0
        second = case.put(torch.full(case.shape, 2.0, dtype=case.dtype)) if deviation else 2.0
        yield [first, second, SEED, OFFSET, case.random(case.shape, case.dtype, normal_check(case))]

    add(name, calls, shapes=SIZES)


normal_of_tensors("NormalTensorFloat", True, False)
normal_of_tensors("NormalFloatTensor", False, True)
normal_of_tensors("NormalTensorTensor", True, True)


@row("InplaceBernoulli", shapes=SIZES)
def bernoulli(case: Case) -> Iterator[Any]:
    if case.dtype in COMPLEX:
        raise NotImplementedError("ones and zeros are real")
    for share in (0.25, 0.0, 1.0):
        check = moments(0, 1, share, math.sqrt(share * (1 - share)), closed=True)
        yield [case.random(case.shape, case.dtype, check), share, SEED, OFFSET]


@row("InplaceBernoulliTensor", shapes=SIZES)
def bernoulli_tensor(case: Case) -> Iterator[Any]:
    if case.dtype in COMPLEX:
        raise NotImplementedError("ones and zeros are real")
    share = case.put(torch.full(case.shape, 0.25))
    yield [case.random(case.shape, case.dtype, moments(0, 1, 0.25, math.sqrt(0.1875), closed=True)), share, SEED, OFFSET]


def integer_rows(suffix: str, in_tensors: bool) -> None:
    def from_to(case: Case) -> Iterator[Any]:
        if case.dtype in COMPLEX:
            raise NotImplementedError("integers")
        low, high = (0, 2) if case.dtype == torch.bool else (3, 100)
        check = moments(low, high, (low + high - 1) / 2, math.sqrt(((high - low) ** 2 - 1) / 12))

        def whole_numbers(actual: Tensor) -> str | None:
            return check(actual) or (None if bool((actual == actual.double().floor()).all()) else "not an integer")

        yield [case.random(case.shape, case.dtype, whole_numbers), low, high, *state(case, in_tensors)]

    def whole(case: Case) -> Iterator[Any]:
        if case.dtype in COMPLEX:
            raise NotImplementedError("integers")
        tops = {torch.float64: 2**53, torch.float32: 2**24, torch.float16: 2**11, torch.bfloat16: 2**8, torch.bool: 1}
        top = tops.get(case.dtype) or torch.iinfo(case.dtype).max
        mean, deviation = top / 2, 0.5 if case.dtype == torch.bool else top / math.sqrt(12)
        yield [case.random(case.shape, case.dtype, moments(0, top, mean, deviation, closed=True)), *state(case, in_tensors)]

    add(f"InplaceRandom{suffix}", from_to, shapes=SIZES)
    add(f"InplaceRandomWithoutFromTo{suffix}", whole, shapes=SIZES)


integer_rows("", False)
integer_rows("Tensor", True)


@row("Randperm", shapes=((1,), (7,), (100,), (0,)), needs=(torch.int64,))
def randperm(case: Case) -> Iterator[Any]:
    if case.dtype in COMPLEX or case.dtype == torch.bool:
        raise NotImplementedError("integers")
    count = case.shape[0]
    wanted = torch.arange(count, dtype=torch.float64)

    def check(actual: Tensor) -> str | None:
        return None if torch.equal(actual.double().sort().values, wanted) else "not a permutation"

    yield [count, SEED, OFFSET, case.random(case.shape, case.dtype, check)]


def multinomial_row(name: str, in_tensors: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0]).expand(*case.shape, 5).to(case.dtype)
        share = torch.tensor([0, 1, 3, 0, 4]) / 8

        def replaced(actual: Tensor) -> str | None:
            found = torch.bincount(actual.flatten(), minlength=5) / actual.numel()
            allowed = 5 * torch.sqrt(share * (1 - share) / actual.numel()) + 1e-9
            return None if bool((abs(found - share) <= allowed).all()) else f"shares {found.tolist()}, expected {share.tolist()}"

        def distinct(actual: Tensor) -> str | None:
            return None if torch.equal(actual.sort(-1).values, torch.tensor([1, 2, 4]).expand(actual.shape)) else "repeated, or of weight 0"

        for count, replacement, check in ((400, True, replaced), (3, False, distinct)):
            out = Out(torch.zeros((*case.shape, count), dtype=torch.int64), None, check=check)
            yield [case.put(weights), count, replacement, *state(case, in_tensors), out]

    add(name, calls, shapes=((3,), (), (8,)))


multinomial_row("Multinomial", False)
multinomial_row("MultinomialTensor", True)
