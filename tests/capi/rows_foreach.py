"""Rows of src/aclnn/nn/foreach.def: operators over lists of tensors, loss scaling, fused optimizer steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from cases import COMPLEX, FLOATS, INTEGERS, Case, add, float_of, real, row, wide

Tensor = torch.Tensor
INTEGRAL = (*INTEGERS, torch.bool)
LIST_SHAPES = ((7,), (3, 5), (2, 3, 4), (33, 17))


def shapes_of(case: Case) -> list[tuple[int, ...]]:
    """A list holds the case's shape, a vector, a 0-dimensional and an empty tensor."""
    return [case.shape, (5,), (), (0, 2)]


def draw(case: Case, low: float = -3, high: float = 3) -> list[Tensor]:
    return [case.values(shape, low=low, high=high) for shape in shapes_of(case)]


def puts(case: Case, tensors: list[Tensor]) -> list[Tensor]:
    return [case.put(t) for t in tensors]


def outs(case: Case, tensors: list[Tensor], **how: Any) -> list[Any]:
    return [case.out(t, **how) for t in tensors]


def result(dtype: torch.dtype, rule: str) -> torch.dtype:
    return float_of(dtype) if rule == "float" else dtype


def convert(x: Tensor, rule: str) -> Tensor:
    return real(x) if rule == "float" else wide(x)


def unary(name: str, function: Callable[[Tensor], Tensor], low: float = -3, high: float = 3, rule: str = "float", **how: Any) -> None:
    """(x, out)"""

    def calls(case: Case) -> Iterator[Any]:
        x = draw(case, low, high)
        yield [puts(case, x), outs(case, [function(convert(t, rule)).to(result(case.dtype, rule)) for t in x], **how)]

    add(name, calls, shapes=LIST_SHAPES)


for entry in (
    ("ForeachAcos", torch.acos, -1, 1),
    ("ForeachAsin", torch.asin, -1, 1),
    ("ForeachAtan", torch.atan, -9, 9),
    ("ForeachCos", torch.cos, -9, 9),
    ("ForeachCosh", torch.cosh, -4, 4),
    ("ForeachErf", torch.erf),
    ("ForeachErfc", torch.erfc),
    ("ForeachExp", torch.exp),
    ("ForeachExpm1", torch.expm1),
    ("ForeachLog", torch.log, 0.1, 9),
    ("ForeachLog10", torch.log10, 0.1, 9),
    ("ForeachLog1p", torch.log1p, -0.5, 9),
    ("ForeachLog2", torch.log2, 0.1, 9),
    ("ForeachReciprocal", torch.reciprocal, 0.5, 4),
    ("ForeachSigmoid", torch.sigmoid),
    ("ForeachSin", torch.sin, -9, 9),
    ("ForeachSinh", torch.sinh, -4, 4),
    ("ForeachSqrt", torch.sqrt, 0, 9),
    ("ForeachTan", torch.tan, -1.4, 1.4),
    ("ForeachTanh", torch.tanh),
):
    unary(*entry)
unary("ForeachNeg", torch.neg, rule="same", exact=True)
unary("ForeachSign", torch.sgn, rule="same")


@row("ForeachAbs", shapes=LIST_SHAPES)
def absolute(case: Case) -> Iterator[Any]:
    x = draw(case)
    real_type = torch.empty(0, dtype=case.dtype).real.dtype if case.dtype in COMPLEX else case.dtype
    yield [puts(case, x), outs(case, [t.abs().to(real_type) if case.dtype != torch.bool else t for t in x])]


def power(x: Tensor, y: Tensor) -> Tensor:
    return torch.pow(real(x), real(y))


# name of the operation -> function of wide operands, rule, range of the second operand
OPERATIONS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], str, float, float]] = {
    "Add": (torch.add, "same", -3, 3),
    "Sub": (torch.sub, "same", -3, 3),
    "Mul": (torch.mul, "same", -3, 3),
    "Div": (torch.true_divide, "float", 1, 3),
    "Maximum": (torch.maximum, "same", -3, 3),
    "Minimum": (torch.minimum, "same", -3, 3),
    "Pow": (power, "float", 1, 3),
}


def scalar_of(dtype: torch.dtype) -> Any:
    return True if dtype == torch.bool else 2 if dtype in INTEGERS else 1.5


def evaluate(operation: str, x: Tensor, y: Tensor) -> Tensor:
    function, rule, _, _ = OPERATIONS[operation]
    return function(convert(x, rule), convert(y, rule)).to(result(x.dtype, rule))


def low_of(operation: str) -> float:
    return 0.5 if operation == "Pow" else -3


def list_form(name: str, operation: str) -> None:
    """(x1, x2, out)"""

    def calls(case: Case) -> Iterator[Any]:
        _, _, low, high = OPERATIONS[operation]
        x, y = draw(case, low_of(operation)), draw(case, low, high)
        if case.dtype == torch.bool and operation == "Div":
            y = [torch.ones_like(t) for t in y]
        yield [puts(case, x), puts(case, y), outs(case, [evaluate(operation, a, b) for a, b in zip(x, y)], loose=2)]

    add(name, calls, shapes=LIST_SHAPES)


def scalar_form(name: str, operation: str, kind: str) -> None:
    """(x, scalar, out): kind is handle, device (a one-element tensor), list (a handle for each tensor) or first (scalar, x, out)."""

    def calls(case: Case) -> Iterator[Any]:
        x, value = draw(case, low_of(operation)), scalar_of(case.dtype)
        values = [value + i if not isinstance(value, bool) else value for i in range(len(x))] if kind == "list" else [value] * len(x)
        number = [torch.tensor(v, dtype=case.dtype) for v in values]
        expected = [evaluate(operation, b, a) if kind == "first" else evaluate(operation, a, b) for a, b in zip(x, number)]
        expected = [e.expand(t.shape) for e, t in zip(expected, x)]
        argument: Any = {"handle": value, "first": value, "list": values, "device": case.put(number[0].reshape(1))}[kind]
        lists = [puts(case, x)]
        yield [*([argument, *lists] if kind == "first" else [*lists, argument]), outs(case, expected, loose=2)]

    add(name, calls, shapes=LIST_SHAPES)


for op in ("Div", "Mul", "Maximum", "Minimum", "Pow"):
    list_form(f"Foreach{op}List", op)
for op in OPERATIONS:
    scalar_form(f"Foreach{op}Scalar", op, "device")
    scalar_form(f"Foreach{op}ScalarV2", op, "handle")
    scalar_form(f"Foreach{op}ScalarList", op, "list")
scalar_form("ForeachPowScalarAndTensor", "Pow", "first")


def alpha_form(name: str, sign: int, device: bool) -> None:
    """(x1, x2, alpha, out)"""

    def calls(case: Case) -> Iterator[Any]:
        if sign < 0 and case.dtype == torch.bool:
            raise NotImplementedError("torch doesn't subtract bool")
        x, y, alpha = draw(case), draw(case), scalar_of(case.dtype)
        if case.dtype == torch.bool:
            expected = [a | b for a, b in zip(x, y)]
        else:
            expected = [(wide(a) + sign * alpha * wide(b)).to(case.dtype) for a, b in zip(x, y)]
        argument = case.put(torch.tensor([alpha], dtype=case.dtype)) if device else alpha
        yield [puts(case, x), puts(case, y), argument, outs(case, expected)]

    add(name, calls, shapes=LIST_SHAPES)


for suffix, device in (("", True), ("V2", False)):
    alpha_form(f"ForeachAddList{suffix}", 1, device)
    alpha_form(f"ForeachSubList{suffix}", -1, device)


def three_form(name: str, function: Callable[..., Tensor], low: float, kind: str) -> None:
    """(x1, x2, x3, scalar, out)"""

    def calls(case: Case) -> Iterator[Any]:
        if case.dtype == torch.bool:
            raise NotImplementedError("torch has no bool here")
        x, y, z = draw(case), draw(case), draw(case, low, 3)
        value = scalar_of(case.dtype)
        values = [value + i for i in range(len(x))] if kind == "list" else [value] * len(x)
        expected = [function(wide(a), wide(b), wide(c), value=v).to(case.dtype) for a, b, c, v in zip(x, y, z, values)]
        argument = value if kind == "handle" else case.put(torch.tensor(values if kind == "list" else [value], dtype=case.dtype))
        yield [puts(case, x), puts(case, y), puts(case, z), argument, outs(case, expected, loose=2)]

    add(name, calls, shapes=LIST_SHAPES)


for suffix, kind in (("Scalar", "device"), ("ScalarV2", "handle"), ("ScalarList", "list")):
    three_form(f"ForeachAddcdiv{suffix}", torch.addcdiv, 1, kind)
    three_form(f"ForeachAddcmul{suffix}", torch.addcmul, -3, kind)


@row("ForeachLerpList", shapes=LIST_SHAPES)
def lerp_list(case: Case) -> Iterator[Any]:
    x, y, w = draw(case), draw(case), draw(case, 0, 1)
    expected = [torch.lerp(wide(a), wide(b), wide(c)).to(case.dtype) for a, b, c in zip(x, y, w)]
    yield [puts(case, x), puts(case, y), puts(case, w), outs(case, expected)]


@row("ForeachLerpScalar", shapes=LIST_SHAPES)
def lerp_scalar(case: Case) -> Iterator[Any]:
    x, y = draw(case), draw(case)
    yield [puts(case, x), puts(case, y), 0.25, outs(case, [torch.lerp(wide(a), wide(b), 0.25).to(case.dtype) for a, b in zip(x, y)])]


ROUNDINGS: dict[int, Callable[[Tensor], Tensor]] = {
    1: torch.round,
    2: torch.floor,
    3: torch.ceil,
    4: lambda x: torch.sign(x) * torch.floor(x.abs() + 0.5),
    5: torch.trunc,
    7: torch.frac,
}


def rounding(name: str, device: bool) -> None:
    def calls(case: Case) -> Iterator[Any]:
        for mode, function in ROUNDINGS.items():
            if case.dtype not in FLOATS and mode == 7:
                continue
            x = draw(case, -9, 9)
            expected = [(function(t) if case.dtype in FLOATS else t.clone()) for t in x]
            if case.dtype in COMPLEX or case.dtype == torch.bool:
                raise NotImplementedError("rounding is for real numbers")
            argument: Any = case.put(torch.tensor([mode], dtype=torch.int8)) if device else mode
            yield [puts(case, x), argument, outs(case, expected)]

    add(name, calls, shapes=LIST_SHAPES)


rounding("ForeachRoundOffNumber", True)
rounding("ForeachRoundOffNumberV2", False)


@row("ForeachCopy", shapes=LIST_SHAPES)
def copy(case: Case) -> Iterator[Any]:
    x = draw(case)
    yield [puts(case, x), outs(case, x, exact=True)]


@row("ForeachZeroInplace", shapes=LIST_SHAPES)
def zero(case: Case) -> Iterator[Any]:
    yield [[case.inout(t, torch.zeros_like(t)) for t in draw(case)]]


@row("ForeachNorm", shapes=LIST_SHAPES)
def norm(case: Case) -> Iterator[Any]:
    for order in (2.0, 1.0, math.inf):
        x = draw(case)[:3]
        yield [puts(case, x), order, outs(case, [torch.linalg.vector_norm(wide(t), order).to(case.dtype) for t in x])]


@row("ForeachNonFiniteCheckAndUnscale", shapes=LIST_SHAPES)
def unscale(case: Case) -> Iterator[Any]:
    if case.dtype not in FLOATS:
        raise NotImplementedError("gradients are floating point")
    for bad in (None, math.inf, math.nan):
        grads = draw(case)
        if bad is not None:
            grads[1][2] = bad
        scaled = [(wide(g) * 0.25).to(case.dtype) for g in grads]
        found = torch.tensor([0.0])
        yield [
            [case.inout(g, s) for g, s in zip(grads, scaled)],
            case.inout(found, torch.tensor([0.0 if bad is None else 1.0])),
            case.put(torch.tensor([0.25])),
        ]


@row("AmpUpdateScale", shapes=((1,), (1, 1), ()), dtypes=(torch.float32,))
def amp_update_scale(case: Case) -> Iterator[Any]:
    for found, tracker in ((0.0, 0), (0.0, 2), (1.0, 2)):
        scale, growth = torch.full(case.shape, 8.0), torch.full(case.shape, tracker, dtype=torch.int32)
        new_scale, new_growth = scale.clone(), growth.clone()
        torch._amp_update_scale_(new_scale.reshape(1), new_growth.reshape(1), torch.tensor([found]), 2.0, 0.5, 3)
        flag = case.put(torch.full(case.shape, found))
        yield [case.put(scale), case.put(growth), flag, 2.0, 0.5, 3, case.out(new_scale), case.out(new_growth)]


# --- optimizers: torch.optim in float64 is the reference ---------------------------------------------------------------------------------

SETTINGS = {"lr": 0.0625, "weight_decay": 0.125, "eps": 2**-20}
BETAS = (0.875, 0.9375)


def adam_reference(kind: Any, tensors: dict[str, Tensor], step: int, amsgrad: bool, maximize: bool) -> dict[str, Tensor]:
    """One step from a given state."""
    leaf = wide(tensors["param"]).clone().requires_grad_()
    leaf.grad = wide(tensors["grad"]).clone()
    optimizer = kind([leaf], betas=BETAS, amsgrad=amsgrad, maximize=maximize, foreach=False, **SETTINGS)
    state = optimizer.state[leaf]
    state["step"] = torch.tensor(float(step))
    state["exp_avg"], state["exp_avg_sq"] = wide(tensors["m"]).clone(), wide(tensors["v"]).clone()
    if amsgrad:
        state["max_exp_avg_sq"] = wide(tensors["top"]).clone()
    optimizer.step()
    after = {"param": leaf.detach(), "m": state["exp_avg"], "v": state["exp_avg_sq"], "top": state.get("max_exp_avg_sq", tensors["top"])}
    return {name: value.to(tensors[name].dtype) for name, value in after.items()}


def adam_state(case: Case, shape: tuple[int, ...]) -> dict[str, Tensor]:
    names = {"param": -3.0, "grad": -3.0, "m": -1.0, "v": 0.5, "top": 0.5}
    return {name: case.values(shape, low=low, high=3) for name, low in names.items()}


@row("ApplyAdamWV2", shapes=LIST_SHAPES)
def adam_w(case: Case) -> Iterator[Any]:
    if case.dtype not in FLOATS:
        raise NotImplementedError("parameters are floating point")
    for amsgrad, maximize, step_type in ((False, False, torch.float32), (True, True, torch.int64)):
        before = adam_state(case, case.shape)
        after = adam_reference(torch.optim.AdamW, before, 3, amsgrad, maximize)
        refs = [case.inout(before[name], after[name], loose=4) for name in ("param", "m", "v")]
        top = case.inout(before["top"], after["top"], loose=4) if amsgrad else None
        hyper = [SETTINGS["lr"], *BETAS, SETTINGS["weight_decay"], SETTINGS["eps"], amsgrad, maximize]
        yield [*refs, top, case.put(before["grad"]), case.put(torch.tensor([3], dtype=step_type)), *hyper]


@row("FusedAdam", shapes=LIST_SHAPES)
def fused_adam(case: Case) -> Iterator[Any]:
    if case.dtype not in FLOATS:
        raise NotImplementedError("parameters are floating point")
    for amsgrad, maximize, found in ((False, False, None), (True, True, None), (False, False, 1.0)):
        states = [adam_state(case, shape) for shape in (case.shape, (5,), ())]
        after = [s if found else adam_reference(torch.optim.Adam, s, 2, amsgrad, maximize) for s in states]
        lists: dict[str, Any] = {name: [case.inout(s[name], a[name], loose=4) for s, a in zip(states, after)] for name in ("param", "m", "v", "top")}
        grads = [case.put(s["grad"]) for s in states]
        steps = [case.put(torch.tensor(3.0)) for _ in states]
        flag = None if found is None else case.put(torch.tensor([found]))
        hyper = [SETTINGS["lr"], *BETAS, SETTINGS["weight_decay"], SETTINGS["eps"], amsgrad, maximize]
        top = lists["top"] if amsgrad else []
        yield [lists["param"], grads, lists["m"], lists["v"], top, steps, None, flag, *hyper]


@row("FusedSgd", shapes=LIST_SHAPES)
def fused_sgd(case: Case) -> Iterator[Any]:
    if case.dtype not in FLOATS:
        raise NotImplementedError("parameters are floating point")
    for momentum, nesterov, first in ((0.0, False, False), (0.875, False, False), (0.875, True, True)):
        shapes = (case.shape, (5,), ())
        params, grads, buffers = ([case.values(shape) for shape in shapes] for _ in range(3))
        dampening = 0.0 if nesterov else 0.25
        leaves = [wide(p).clone().requires_grad_() for p in params]
        for leaf, grad in zip(leaves, grads):
            leaf.grad = wide(grad).clone()
        rule = {"lr": 0.0625, "momentum": momentum, "dampening": dampening, "weight_decay": 0.125, "nesterov": nesterov}
        optimizer = torch.optim.SGD(leaves, foreach=False, **rule)
        for leaf, buffer in zip(leaves, buffers):
            optimizer.state[leaf]["momentum_buffer"] = None if first else wide(buffer).clone()
        optimizer.step()
        refs = [case.inout(p, leaf.detach(), loose=4) for p, leaf in zip(params, leaves)]
        kept: Any = []
        if momentum:
            kept = [case.inout(b, optimizer.state[leaf]["momentum_buffer"], loose=4) for b, leaf in zip(buffers, leaves)]
        yield [refs, puts(case, grads), kept, None, 0.125, momentum, 0.0625, dampening, nesterov, False, first]
