"""Rows of src/aclnn/math: functions of one, two and three operands, comparisons, copies and fills."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from cases import ALL, COMPLEX, FLOAT8, FLOATS, INTEGERS, Case, Optional, add, float_of, real, row, wide
from library import Scalar, implemented

Tensor = torch.Tensor
NUMBERS = (*FLOATS, *COMPLEX)
REAL = tuple(dtype for dtype in ALL if dtype not in COMPLEX)
INTEGRAL = (*INTEGERS, torch.bool)
HALVES = (torch.float16, torch.bfloat16)


# --- one operand ----------------------------------------------------------------------------------------------------------------


def unary(name: str, function: Callable[[Tensor], Tensor], low: float = -3, high: float = 3, result: str = "float", **how: Any) -> None:
    """The operator and its in-place form. result: float (integers give float32), same, or bool."""

    def answer(x: Tensor) -> Tensor:
        value = function(real(x) if result == "float" else wide(x))
        return value.to({"float": float_of(x.dtype), "same": x.dtype, "bool": torch.bool}[result])

    def calls(case: Case) -> Iterator[Any]:
        x = case.values(low=low, high=high)
        yield [case.put(x), case.out(answer(x), **how)]

    def in_place(case: Case) -> Iterator[Any]:
        x = case.values(low=low, high=high)
        yield [case.inout(x, answer(x).to(x.dtype), **how)]

    needs = (torch.int32,) if name == "BitwiseNot" else (torch.float32,)
    add(name, calls, needs=needs)
    if f"Inplace{name}" in implemented():
        add(f"Inplace{name}", in_place, needs=needs, dtypes=NUMBERS if result == "float" else ALL)


for entry in (
    ("Sqrt", torch.sqrt, 0, 9),
    ("Rsqrt", torch.rsqrt, 0.1, 9),
    ("Reciprocal", torch.reciprocal, 0.5, 4),
    ("Exp", torch.exp, -5, 5),
    ("Exp2", torch.exp2, -5, 5),
    ("Expm1", torch.expm1, -3, 3),
    ("Log", torch.log, 0.1, 9),
    ("Log2", torch.log2, 0.1, 9),
    ("Log10", torch.log10, 0.1, 9),
    ("Log1p", torch.log1p, -0.5, 9),
    ("Sin", torch.sin, -9, 9),
    ("Cos", torch.cos, -9, 9),
    ("Tan", torch.tan, -1.4, 1.4),
    ("Asin", torch.asin, -1, 1),
    ("Acos", torch.acos, -1, 1),
    ("Atan", torch.atan, -9, 9),
    ("Sinh", torch.sinh, -4, 4),
    ("Cosh", torch.cosh, -4, 4),
    ("Tanh", torch.tanh, -4, 4),
    ("Asinh", torch.asinh, -9, 9),
    ("Acosh", torch.acosh, 1, 9),
    ("Atanh", torch.atanh, -0.9, 0.9),
    ("Erf", torch.erf, -3, 3),
    ("Erfc", torch.erfc, -3, 3),
    ("Erfinv", torch.erfinv, -0.9, 0.9),
    ("Sinc", torch.sinc, -3, 3),
    ("Sigmoid", torch.sigmoid, -6, 6),
):
    unary(*entry)
for entry in (
    ("Neg", torch.neg),
    ("BitwiseNot", torch.bitwise_not),
    ("Floor", torch.floor),
    ("Ceil", torch.ceil),
    ("Trunc", torch.trunc),
    ("Round", torch.round),
    ("Frac", torch.frac),
):
    unary(*entry, -9, 9, "same", exact=True)
unary("Sign", torch.sgn, -9, 9, "same")


def with_specials(case: Case, kinds: tuple[torch.dtype, ...] = NUMBERS) -> Tensor:
    """Random values with zeros of both signs, infinities and NaN among them."""
    x = case.values()
    if case.dtype in kinds and x.numel() >= 6:
        x.view(-1)[:6] = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0]).to(case.dtype)
    return x


for name, function in (("IsFinite", torch.isfinite), ("IsPosInf", torch.isposinf), ("IsNegInf", torch.isneginf), ("Signbit", torch.signbit)):

    def special_calls(case: Case, function: Callable[[Tensor], Tensor] = function) -> Iterator[Any]:
        x = with_specials(case)
        yield [case.put(x), case.out(function(x))]

    add(name, special_calls)


@row("LogicalNot")
def logical_not(case: Case) -> Iterator[Any]:
    x = case.values(low=-1, high=1)
    yield [case.put(x), case.out(torch.logical_not(x))]


@row("InplaceLogicalNot")
def logical_not_in_place(case: Case) -> Iterator[Any]:
    x = case.values(low=-1, high=1)
    yield [case.inout(x, torch.logical_not(x).to(x.dtype))]


@row("Abs")
def absolute(case: Case) -> Iterator[Any]:
    x = case.values(low=-9, high=9)
    expected = wide(x).abs() if case.dtype != torch.bool else x
    yield [case.put(x), case.out(expected, dtype=x.real.dtype if x.is_complex() else x.dtype)]


@row("AngleV2")
def angle(case: Case) -> Iterator[Any]:
    x = case.values()
    yield [case.put(x), case.out(torch.angle(real(x)), dtype=x.real.dtype if x.is_complex() else float_of(x.dtype))]


@row("NanToNum")
def nan_to_num(case: Case) -> Iterator[Any]:
    x = with_specials(case, FLOATS)
    yield [case.put(x), 1.5, 100.0, -100.0, case.out(torch.nan_to_num(x, 1.5, 100.0, -100.0))]


@row("InplaceNanToNum")
def nan_to_num_in_place(case: Case) -> Iterator[Any]:
    x = with_specials(case, FLOATS)
    yield [case.inout(x, torch.nan_to_num(x, 1.5, 100.0, -100.0)), 1.5, 100.0, -100.0]


def rounded(x: Tensor, decimals: int) -> Tensor:
    return torch.round(wide(x), decimals=decimals) if decimals or x.dtype in FLOATS else torch.round(x)


@row("RoundDecimals")
def round_decimals(case: Case) -> Iterator[Any]:
    for decimals in (0,) if case.dtype in INTEGRAL else (0, 1):
        x = case.values(low=-9, high=9)
        yield [case.put(x), decimals, case.out(rounded(x, decimals).to(x.dtype), loose=20 if decimals else 1)]


@row("InplaceRoundDecimals")
def round_decimals_in_place(case: Case) -> Iterator[Any]:
    x = case.values(low=-9, high=9)
    yield [case.inout(x, rounded(x, 0)), 0]


# --- two operands ---------------------------------------------------------------------------------------------------------------

Two = Callable[[Tensor, Tensor], Tensor]
MIXED = {
    torch.float32: (torch.float16, torch.int32, torch.bool, torch.complex64),
    torch.float16: (torch.bfloat16, torch.uint8),
    torch.int32: (torch.int64, torch.float32, torch.bool),
    torch.uint8: (torch.int8,),
    torch.bool: (torch.int64,),
}


def evaluated(function: Two, x: Tensor, y: Tensor, result: str, own: bool) -> Tensor:
    """The result with the type it must have: float, same (promoted) or bool. own: in the promoted type, not in a wider one."""
    promoted = torch.result_type(x, y)
    if result == "float":
        answer, dtype = function(real(x), real(y)), float_of(promoted)
    else:
        a, b = x.to(promoted), y.to(promoted)
        answer, dtype = (function(a, b) if own else function(wide(a), wide(b))), promoted
    return answer.to(torch.bool if result == "bool" else dtype)


def known(function: Two, x: Tensor, y: Tensor, result: str, own: bool) -> bool:
    """Whether torch has a result for this pair of types."""
    try:
        evaluated(function, x, y, result, own)
    except RuntimeError:
        return False
    return True


Draw = Callable[[Case, tuple[int, ...], torch.dtype], Tensor]


def draw(low: float, high: float, apart: bool = False) -> Draw:
    """Values between low and high; apart: none nearer to zero than 0.5 (divisors)."""

    def values(case: Case, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        x = case.values(shape, dtype, low, high)
        if not apart:
            return x
        if dtype == torch.bool:
            return torch.ones_like(x)
        near = x.abs() < 0.5
        return torch.where(near, torch.ones_like(x), x)

    return values


USUAL = draw(-5, 5)


def pairs(case: Case, first: Draw, second: Draw) -> Iterator[tuple[Tensor, Tensor, bool]]:
    """Operands: the same shape, a broadcast on either side, a 0-dimensional one, other types (these may be refused)."""
    shape = case.shape
    yield first(case, shape, case.dtype), second(case, shape, case.dtype), False
    if len(shape) > 1 and shape[0]:
        yield first(case, shape, case.dtype), second(case, shape[-1:], case.dtype), False
        yield first(case, shape[1:], case.dtype), second(case, (*shape[:-1], 1), case.dtype), False
        if case.layout == "plain":
            for other in MIXED.get(case.dtype, ()):
                yield first(case, shape, case.dtype), second(case, shape, other), True
                yield first(case, shape, other), second(case, shape, case.dtype), True


def binary(
    name: str,
    function: Two,
    first: Draw = USUAL,
    second: Draw = USUAL,
    result: str = "same",
    own: bool = False,
    needs: torch.dtype = torch.float32,
    in_place: str = "",
    extra: tuple[Any, ...] = (),
    **how: Any,
) -> None:
    """An operator (self, other, *extra, out) and its in-place form (selfRef, other, *extra)."""

    def calls(case: Case) -> Iterator[Any]:
        for x, y, mixed in pairs(case, first, second):
            if mixed and not known(function, x, y, result, own):
                continue
            values = [case.put(x), case.put(y), *extra, case.out(evaluated(function, x, y, result, own), **how)]
            yield Optional(values) if mixed else values

    def calls_in_place(case: Case) -> Iterator[Any]:
        for x, y, mixed in pairs(case, first, second):
            if mixed and not known(function, x, y, result, own):
                continue
            expected = evaluated(function, x, y, result, own)
            fits = torch.can_cast(expected.dtype, x.dtype) or (result == "bool")
            if expected.shape == x.shape and fits:
                values = [case.inout(x, expected.to(x.dtype), **how), case.put(y), *extra]
                yield Optional(values) if mixed else values

    add(name, calls, needs=(needs,))
    twin = in_place or f"Inplace{name}"
    if twin in implemented():
        add(twin, calls_in_place, needs=(needs,), dtypes=NUMBERS if result == "float" else ALL)


DIVISOR = draw(-5, 5, apart=True)
SMALL = draw(0, 3)
binary("Mul", torch.mul)
binary("Div", torch.true_divide, second=DIVISOR, result="float")
binary("FloorDivide", torch.floor_divide, second=DIVISOR, own=True)
binary("RemainderTensorTensor", torch.remainder, second=DIVISOR, own=True, loose=4)
binary("FmodTensor", torch.fmod, second=DIVISOR, own=True, loose=4)
binary("Maximum", torch.maximum, exact=True)
binary("Minimum", torch.minimum, exact=True)
binary("ClampMinTensor", torch.maximum, exact=True)
binary("ClampMaxTensor", torch.minimum, exact=True)
binary("Atan2", torch.atan2, result="float")
binary("LogAddExp", torch.logaddexp, result="float")
binary("LogAddExp2", torch.logaddexp2, result="float")
binary("XLogYTensor", torch.xlogy, second=draw(0.5, 5), result="float")
binary("Gcd", torch.gcd, draw(0, 60), draw(0, 60), own=True, needs=torch.int32)
binary("BitwiseAndTensor", torch.bitwise_and, needs=torch.int32)
binary("BitwiseOrTensor", torch.bitwise_or, needs=torch.int32)
binary("BitwiseXorTensor", torch.bitwise_xor, needs=torch.int32)
binary("LeftShift", torch.bitwise_left_shift, SMALL, SMALL, needs=torch.int32)
binary("RightShift", torch.bitwise_right_shift, draw(0, 90), SMALL, needs=torch.int32)
for name, function in (("Eq", torch.eq), ("Ne", torch.ne), ("Lt", torch.lt), ("Le", torch.le), ("Gt", torch.gt), ("Ge", torch.ge)):
    binary(f"{name}Tensor", function, draw(-2, 2), draw(-2, 2), result="bool", own=True)
for name, function in (("LogicalAnd", torch.logical_and), ("LogicalOr", torch.logical_or), ("LogicalXor", torch.logical_xor)):
    binary(name, function, draw(-1, 1), draw(-1, 1), result="bool", own=True)


def register_pair(name: str, function: Two) -> None:
    def calls(case: Case) -> Iterator[Any]:
        x, y = case.values(low=0), case.values()
        result = torch.complex128 if case.dtype == torch.float64 else torch.complex64
        if case.dtype not in FLOATS:
            raise NotImplementedError("parts are floating point")
        yield [case.put(x), case.put(y), case.out(function(x.double(), y.double()), dtype=result)]

    add(name, calls)


register_pair("Complex", torch.complex)
register_pair("Polar", torch.polar)


# --- a tensor and a scalar -------------------------------------------------------------------------------------------------------


def scalars(dtype: torch.dtype, values: tuple[Any, ...]) -> Iterator[tuple[Any, bool]]:
    """Scalars that keep the tensor's kind, then (may be refused) one that lifts it."""
    first = (True,) if dtype == torch.bool and not any(value is True for value in values) else ()
    for value in (*first, *values):
        lifts = isinstance(value, float) and dtype in INTEGRAL
        lifts |= isinstance(value, int) and not isinstance(value, bool) and dtype == torch.bool
        yield value, lifts


def scalar_operator(
    name: str,
    function: Callable[[Tensor, Tensor], Tensor],
    values: tuple[Any, ...] = (2, 1.5, -3),
    operand: Draw = USUAL,
    result: str = "same",
    own: bool = False,
    first: bool = False,
    needs: torch.dtype = torch.float32,
    extra: tuple[Any, ...] = (),
    in_place: str = "",
    **how: Any,
) -> None:
    """An operator (self, scalar, *extra, out), or with `first` (scalar, other, *extra, out); and its in-place form."""

    def answer(x: Tensor, value: Any) -> Tensor:
        promoted = torch.result_type(x, value)
        if result == "float":
            a, s, dtype = real(x), torch.tensor(value, dtype=torch.float64), float_of(promoted)
        else:
            a, s, dtype = x.to(promoted), torch.tensor(value, dtype=promoted), promoted
            if not own:
                a, s = wide(a), wide(s)
        return (function(s, a) if first else function(a, s)).to(torch.bool if result == "bool" else dtype)

    def usable(case: Case) -> Iterator[tuple[Any, bool]]:
        for value, lifts in scalars(case.dtype, values):
            if not (case.dtype == torch.uint8 and value < 0):
                yield value, lifts

    def calls(case: Case) -> Iterator[Any]:
        for value, lifts in usable(case):
            x = operand(case, case.shape, case.dtype)
            ordered = [value, case.put(x)] if first else [case.put(x), value]
            arguments = [*ordered, *extra, case.out(answer(x, value), **how)]
            yield Optional(arguments) if lifts else arguments

    def calls_in_place(case: Case) -> Iterator[Any]:
        for value, lifts in usable(case):
            x = operand(case, case.shape, case.dtype)
            expected = answer(x, value)
            if not lifts:
                yield [case.inout(x, expected.to(x.dtype), **how), value, *extra]

    add(name, calls, needs=(needs,))
    twin = in_place or f"Inplace{name}"
    if twin in implemented():
        add(twin, calls_in_place, needs=(needs,), dtypes=NUMBERS if result == "float" else ALL)


scalar_operator("Muls", torch.mul)
scalar_operator("Divs", torch.true_divide, result="float")
scalar_operator("FloorDivides", torch.floor_divide, own=True)
scalar_operator("RemainderTensorScalar", torch.remainder, own=True, loose=4)
scalar_operator("RemainderScalarTensor", torch.remainder, (7, 7.5), DIVISOR, own=True, first=True, loose=4)
scalar_operator("FmodScalar", torch.fmod, own=True, loose=4)
scalar_operator("ClampMin", torch.maximum, (1, 0.5), exact=True)
scalar_operator("ClampMax", torch.minimum, (1, 0.5), exact=True)
scalar_operator("XLogYScalarOther", torch.xlogy, (2, 1.5), result="float")
scalar_operator("XLogYScalarSelf", torch.xlogy, (2, 1.5), draw(0.5, 5), result="float", first=True)
scalar_operator("BitwiseAndScalar", torch.bitwise_and, (3, True), needs=torch.int32)
scalar_operator("BitwiseOrScalar", torch.bitwise_or, (3, True), needs=torch.int32)
scalar_operator("BitwiseXorScalar", torch.bitwise_xor, (3, True), needs=torch.int32)
scalar_operator("LeftShifts", torch.bitwise_left_shift, (2,), SMALL, needs=torch.int32)
for name, function in (("Eq", torch.eq), ("Ne", torch.ne), ("Lt", torch.lt), ("Le", torch.le), ("Gt", torch.gt), ("Ge", torch.ge)):
    scalar_operator(f"{name}Scalar", function, (1, 0.5, -1), draw(-2, 2), result="bool", own=True)
scalar_operator("LessScalar", torch.le, (1, 0.5, -1), draw(-2, 2), result="bool", own=True)


# --- powers ---------------------------------------------------------------------------------------------------------------------

POWERS = draw(0.2, 3)
binary("PowTensorTensor", lambda x, y: x | ~y if x.dtype == torch.bool else torch.pow(x, y), POWERS, draw(0, 3), own=True, loose=4)
scalar_operator("PowTensorScalar", torch.pow, (2, 3, 0.5, -1.0), POWERS, own=True, loose=4)
scalar_operator("PowScalarTensor", torch.pow, (2, 1.5), draw(0, 3), own=True, first=True, loose=4)


# --- alpha ----------------------------------------------------------------------------------------------------------------------


def alpha_operator(name: str, sign: int, swap: bool = False, scalar: bool = False, first: bool = False, finish: Any = None) -> None:
    """self + sign * alpha * other (swap: other + sign * alpha * self), with tensor or scalar operands."""

    def answer(a: Tensor, b: Tensor, alpha: float, promoted: torch.dtype) -> Tensor:
        if promoted == torch.bool:
            value = (a.to(torch.int64) + sign * alpha * b.to(torch.int64)) != 0
        else:
            a, b = wide(a.to(promoted)), wide(b.to(promoted))
            value = b + sign * alpha * a if swap else a + sign * alpha * b
        value = value.to(promoted)
        return finish(value) if finish else value

    def alphas(dtype: torch.dtype) -> tuple[Any, ...]:
        if dtype == torch.bool:
            return (True,)
        return (1, 2) if dtype in INTEGRAL else (1, 2, 0.5)

    def operands(case: Case) -> Iterator[tuple[Tensor, Any, bool]]:
        if scalar:
            for value, lifts in scalars(case.dtype, (True,) if case.dtype == torch.bool else (2, 1.5)):
                yield case.values(), value, lifts
        else:
            yield from pairs(case, draw(-5, 5), draw(-5, 5))

    def calls(case: Case) -> Iterator[Any]:
        for x, y, mixed in operands(case):
            promoted = torch.result_type(x, y)
            for alpha in alphas(promoted):
                if sign < 0 and promoted == torch.bool:
                    raise NotImplementedError("torch doesn't subtract bool")
                other = torch.tensor(y) if scalar else y
                a, b = (other, x) if first else (x, other)
                ordered = [y, case.put(x)] if first else [case.put(x), y if scalar else case.put(y)]
                values = [*ordered, alpha, case.out(answer(a, b, alpha, promoted))]
                yield Optional(values) if mixed else values

    def calls_in_place(case: Case) -> Iterator[Any]:
        for x, y, mixed in operands(case):
            promoted = torch.result_type(x, y)
            for alpha in alphas(promoted):
                if sign < 0 and promoted == torch.bool:
                    raise NotImplementedError("torch doesn't subtract bool")
                other = torch.tensor(y) if scalar else y
                expected = answer(x, other, alpha, promoted)
                if expected.shape == x.shape and torch.can_cast(promoted, x.dtype):
                    values = [case.inout(x, expected), y if scalar else case.put(y), alpha]
                    yield Optional(values) if mixed else values

    add(name, calls)
    if f"Inplace{name}" in implemented():
        add(f"Inplace{name}", calls_in_place)


alpha_operator("Add", 1)
alpha_operator("Adds", 1, scalar=True)
alpha_operator("AddV3", 1, scalar=True, first=True)
alpha_operator("Sub", -1)
alpha_operator("Subs", -1, scalar=True)
alpha_operator("Rsub", -1, swap=True)
alpha_operator("Rsubs", -1, swap=True, scalar=True)
alpha_operator("AddRelu", 1, finish=lambda value: torch.relu(value) if not value.is_complex() else torch.relu(value.abs()))


def div_mod(name: str, scalar: bool) -> None:
    modes = {0: None, 1: "trunc", 2: "floor"}

    def answer(x: Tensor, y: Any, mode: int) -> Tensor:
        if mode == 0:
            return torch.true_divide(real(x), real(y) if isinstance(y, Tensor) else y).to(float_of(torch.result_type(x, y)))
        return torch.div(x, y, rounding_mode=modes[mode])

    def calls(case: Case) -> Iterator[Any]:
        for mode in modes if case.dtype != torch.bool and case.dtype not in COMPLEX else (0,):
            x, y = case.values(), 2 if scalar else DIVISOR(case, case.shape, case.dtype)
            yield [case.put(x), y if scalar else case.put(y), mode, case.out(answer(x, y, mode))]

    def calls_in_place(case: Case) -> Iterator[Any]:
        for mode in modes if case.dtype != torch.bool and case.dtype not in COMPLEX else (0,):
            x, y = case.values(), 2 if scalar else DIVISOR(case, case.shape, case.dtype)
            if mode == 0 and case.dtype in INTEGRAL:
                continue
            yield [case.inout(x, answer(x, y, mode)), y if scalar else case.put(y), mode]

    add(name, calls)
    add(f"Inplace{name}", calls_in_place)


div_mod("DivMod", False)
div_mod("DivMods", True)


# --- comparisons with arguments of their own -----------------------------------------------------------------------------------------


@row("IsClose")
def is_close(case: Case) -> Iterator[Any]:
    for equal_nan in (False, True):
        x = with_specials(case)
        y = x.clone()
        if case.dtype in NUMBERS:
            y = (real(x) * (1 + 1e-2 * real(case.values(low=0, high=1)))).to(x.dtype)
        yield [case.put(x), case.put(y), 5e-3, 1e-3, equal_nan, case.out(torch.isclose(real(x), real(y), 5e-3, 1e-3, equal_nan))]


@row("IsInTensorScalar")
def is_in_tensor_scalar(case: Case) -> Iterator[Any]:
    for invert in (False, True):
        x = case.values(low=-2, high=2)
        yield [case.put(x), 1, False, invert, case.out((x == 1) != invert)]


@row("IsInScalarTensor")
def is_in_scalar_tensor(case: Case) -> Iterator[Any]:
    for invert in (False, True):
        x = case.values(low=-2, high=2)
        yield [1, case.put(x), False, invert, case.out((x == 1).any() != invert)]


@row("Equal")
def equal(case: Case) -> Iterator[Any]:
    x = case.values()
    other = x.clone()
    yield [case.put(x), case.put(other), case.out(torch.tensor(True))]
    if x.numel():
        other.view(-1)[-1] = 0 if case.dtype != torch.bool else ~other.view(-1)[-1]
        x.view(-1)[-1] = 1 if case.dtype != torch.bool else x.view(-1)[-1]
        yield [case.put(x), case.put(other), case.out(torch.tensor(False))]


# --- three operands -----------------------------------------------------------------------------------------------------------------


def clamp_row(*names: str) -> None:
    for name in names:

        def calls(case: Case, in_place: bool = name.startswith("Inplace")) -> Iterator[Any]:
            x = case.values()
            expected = torch.clamp(x, -1 if case.dtype != torch.uint8 else 1, 2)
            ends = [-1 if case.dtype != torch.uint8 else 1, 2]
            yield [case.inout(x, expected), *ends] if in_place else [case.put(x), *ends, case.out(expected)]

        add(name, calls)


clamp_row("Clamp", "Hardtanh", "InplaceHardtanh")


@row("ClampTensor")
def clamp_tensor(case: Case) -> Iterator[Any]:
    x, low, high = case.values(), case.values(low=-1, high=0), case.values(case.shape[-1:], low=1, high=2)
    expected = (x | low) & high if case.dtype == torch.bool else torch.clamp(x, low, high)
    yield [case.put(x), case.put(low), case.put(high), case.out(expected)]


@row("SWhere")
def where(case: Case) -> Iterator[Any]:
    condition, x, y = case.values(dtype=torch.bool), case.values(), case.values()
    yield [case.put(condition), case.put(x), case.put(y), case.out(torch.where(condition, x, y), exact=True)]
    y = case.values(case.shape[-1:])
    yield [case.put(condition), case.put(x), case.put(y), case.out(torch.where(condition, x, y), exact=True)]


@row("InplaceMaskedFillScalar")
def masked_fill(case: Case) -> Iterator[Any]:
    for shape in {case.shape, case.shape[-1:]}:
        x, mask = case.values(), case.values(shape, torch.bool)
        yield [case.inout(x, x.masked_fill(mask, 1)), case.put(mask), 1]


@row("InplaceMaskedFillTensor")
def masked_fill_tensor(case: Case) -> Iterator[Any]:
    x, mask, value = case.values(), case.values(dtype=torch.bool), case.values(())
    yield [case.inout(x, x.masked_fill(mask, value)), case.put(mask), case.put(value)]


def three(name: str, function: Callable[..., Tensor], apart: bool = False) -> None:
    """self + value * f(tensor1, tensor2)."""

    def parts(case: Case) -> Iterator[tuple[Tensor, Tensor, Tensor, Any, Tensor]]:
        for value in (1, 2) if case.dtype in INTEGRAL else (1, 0.5):
            for shape in (case.shape, case.shape[-1:]):
                x, a, b = case.values(), case.values(shape), draw(-5, 5, apart)(case, case.shape, case.dtype)
                yield x, a, b, value, function(wide(x), wide(a), wide(b), value=value).to(x.dtype)

    def calls(case: Case) -> Iterator[Any]:
        for x, a, b, value, expected in parts(case):
            yield [case.put(x), case.put(a), case.put(b), value, case.out(expected)]

    def calls_in_place(case: Case) -> Iterator[Any]:
        for x, a, b, value, expected in parts(case):
            yield [case.inout(x, expected), case.put(a), case.put(b), value]

    add(name, calls)
    add(f"Inplace{name}", calls_in_place)


three("Addcmul", torch.addcmul)
three("Addcdiv", torch.addcdiv, apart=True)


def lerp_rows(name: str, scalar: bool) -> None:
    def parts(case: Case) -> tuple[Tensor, Tensor, Any, Tensor]:
        x, end = case.values(), case.values()
        weight: Any = 0.25 if scalar else case.values(low=0, high=1)
        expected = torch.lerp(wide(x), wide(end), weight if scalar else wide(weight)).to(x.dtype)
        return x, end, weight, expected

    def calls(case: Case) -> Iterator[Any]:
        x, end, weight, expected = parts(case)
        yield [case.put(x), case.put(end), weight if scalar else case.put(weight), case.out(expected)]

    def calls_in_place(case: Case) -> Iterator[Any]:
        x, end, weight, expected = parts(case)
        yield [case.inout(x, expected), case.put(end), weight if scalar else case.put(weight)]

    add(name, calls)
    add(f"Inplace{name}", calls_in_place)


lerp_rows("Lerp", False)
lerp_rows("Lerps", True)


# --- copies and fills ------------------------------------------------------------------------------------------------------------------


def castable(x: Tensor, dtype: torch.dtype) -> bool:
    """Conversions that C and torch define: no negative float into uint8, no complex into real."""
    return not (x.is_complex() and dtype not in COMPLEX)


@row("Cast")
def cast(case: Case) -> Iterator[Any]:
    for dtype in ALL:
        x = case.values(low=0, high=9)
        if castable(x, dtype):
            yield [case.put(x), dtype, case.out(x.to(dtype), exact=True)]
    for dtype in FLOAT8:
        x = case.values(dtype=torch.float32, low=0, high=120).to(dtype)
        yield [case.put(x), case.dtype, case.out(x.to(torch.float32).to(case.dtype), exact=True)]
        x = case.values(low=-70000, high=70000) if case.dtype in FLOATS[:2] else case.values(low=-120, high=120)
        yield [case.put(x), dtype, case.out(x.to(dtype), exact=True)]


@row("InplaceCopy")
def copy(case: Case) -> Iterator[Any]:
    for dtype in ALL:
        x = case.values(dtype=dtype, low=0, high=9)
        if castable(x, case.dtype):
            yield [case.inout(case.values(), x.to(case.dtype), exact=True), case.put(x)]
    for dtype in FLOAT8:
        x = case.values(dtype=torch.float32, low=0, high=120).to(dtype)
        yield [case.inout(torch.zeros_like(x), x, exact=True), case.put(x)]
    if case.shape and case.shape[0]:
        x = case.values(case.shape[-1:])
        yield [case.inout(case.values(), x.expand(case.shape), exact=True), case.put(x)]


@row("InplaceFillScalar")
def fill(case: Case) -> Iterator[Any]:
    for value in (True,) if case.dtype == torch.bool else (3, 2.0, Scalar(1, torch.float32)):
        number = value.value if isinstance(value, Scalar) else value
        yield [case.inout(case.values(), torch.full(case.shape, number, dtype=case.dtype)), value]


@row("InplaceFillTensor")
def fill_tensor(case: Case) -> Iterator[Any]:
    value = case.values(())
    yield [case.inout(case.values(), value.expand(case.shape)), case.put(value)]


@row("InplaceZero")
def zero(case: Case) -> Iterator[Any]:
    yield [case.inout(case.values(), torch.zeros(case.shape, dtype=case.dtype))]


@row("InplaceOne")
def one(case: Case) -> Iterator[Any]:
    yield [case.inout(case.values(), torch.ones(case.shape, dtype=case.dtype))]


@row("InplaceFillDiagonal", shapes=((5, 5), (3, 5), (9, 4), (4, 4, 4), (0, 3)))
def fill_diagonal(case: Case) -> Iterator[Any]:
    for wrap in (False, True):
        x = case.values()
        yield [case.inout(x, x.clone().fill_diagonal_(1, wrap)), 1, wrap]
