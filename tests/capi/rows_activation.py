"""Rows of src/aclnn/nn/activation.def: activations and their gradients, which torch's autograd gives from the forward formula."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from cases import COMPLEX, FLOATS, INTEGERS, Case, add, row, wide
from library import implemented

Tensor = torch.Tensor
WITH_PAIRS = ((8,), (3, 6), (2, 6, 4), (33, 18), (0, 4))  # shapes with halves to split


def gradient(function: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Tensor:
    """What autograd gives, in float64."""
    leaf = wide(x).clone().requires_grad_()
    function(leaf).backward(wide(grad))
    assert leaf.grad is not None
    return leaf.grad.to(x.dtype)


def only_float(case: Case) -> None:
    """The references below are for floating point."""
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")


def forward(name: str, function: Callable[[Tensor], Tensor], extra: tuple[Any, ...] = (), low: float = -4, high: float = 4) -> None:
    """(self, *extra, out) and, where it exists, (selfRef, *extra)."""

    def parts(case: Case) -> tuple[Tensor, Tensor]:
        if case.dtype not in (*INTEGERS, *COMPLEX):
            only_float(case)
        x = case.values(low=low, high=high)
        return x, function(wide(x)).to(x.dtype)

    def calls(case: Case) -> Iterator[Any]:
        x, expected = parts(case)
        yield [case.put(x), *extra, case.out(expected)]

    def calls_in_place(case: Case) -> Iterator[Any]:
        x, expected = parts(case)
        yield [case.inout(x, expected), *extra]

    add(name, calls)
    if f"Inplace{name}" in implemented():
        add(f"Inplace{name}", calls_in_place)


def backward(name: str, function: Callable[[Tensor], Tensor], extra: tuple[Any, ...] = (), order: str = "gx*", of_result: bool = False) -> None:
    """Arguments in `order`: g the gradient, x the input (or with of_result the forward's output), * the extra ones; then the result."""

    def calls(case: Case) -> Iterator[Any]:
        if not (of_result and case.dtype in COMPLEX):
            only_float(case)
        x, grad = case.values(low=-4, high=4), case.values()
        expected = gradient(function, x, grad)
        saved = x
        if of_result:
            saved = function(wide(x)).to(x.dtype)
            expected = gradient_of_result(name, saved, grad)
        arguments: list[Any] = []
        for letter in order:
            arguments += {"g": [case.put(grad)], "x": [case.put(saved)], "*": list(extra)}[letter]
        yield [*arguments, case.out(expected)]

    add(name, calls)


def gradient_of_result(name: str, result: Tensor, grad: Tensor) -> Tensor:
    """Gradients that are formulas of the forward's output."""
    y, g = wide(result), wide(grad)
    return (g * (y * (1 - y) if name == "SigmoidBackward" else 1 - y * y).conj()).to(result.dtype)


def tanh_gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def fast_gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


forward("Relu", torch.relu)
forward("Silu", F.silu)
forward("Gelu", tanh_gelu)
forward("FastGelu", fast_gelu)
forward("Hardswish", F.hardswish)
forward("Hardsigmoid", F.hardsigmoid)
forward("Mish", F.mish)
forward("LogSigmoid", F.logsigmoid)
forward("LeakyRelu", lambda x: F.leaky_relu(x, 0.125), (0.125,))
forward("Softshrink", lambda x: F.softshrink(x, 0.5), (0.5,))
forward("Hardshrink", lambda x: F.hardshrink(x, 0.5), (0.5,))
forward("Softplus", lambda x: F.softplus(x, 2.0, 3.0), (2.0, 3.0))
forward("Threshold", lambda x: F.threshold(x, 1, 7), (1, 7))
forward("Elu", lambda x: 1.5 * torch.where(x > 0, x, 0.5 * torch.expm1(2.0 * x)), (0.5, 1.5, 2.0))
forward("Celu", lambda x: F.celu(x, 1.5), (1.5,))


@row("SiluBackward")
def silu_backward(case: Case) -> Iterator[Any]:
    """torch doesn't conjugate the slope of complex numbers here."""
    if case.dtype not in COMPLEX:
        only_float(case)
    grad, x = case.values(), case.values(low=-4, high=4)
    yield [case.put(grad), case.put(x), case.out(torch.ops.aten.silu_backward(wide(grad), wide(x)).to(x.dtype))]


backward("SigmoidBackward", torch.sigmoid, of_result=True)
backward("TanhBackward", torch.tanh, of_result=True)
backward("GeluBackward", tanh_gelu)
backward("FastGeluBackward", fast_gelu)
backward("HardswishBackward", F.hardswish)
backward("HardswishBackwardV2", F.hardswish)
backward("HardsigmoidBackward", lambda x: torch.clamp(x / 6 + 0.5, 0, 1))  # torch's own rounds 1/6 to float32
backward("MishBackward", F.mish)
backward("SoftshrinkBackward", lambda x: F.softshrink(x, 0.5), (0.5,))
backward("HardshrinkBackward", lambda x: F.hardshrink(x, 0.5), (0.5,))
backward("SoftplusBackward", lambda x: F.softplus(x, 2.0, 3.0), (2.0, 3.0))
backward("HardtanhBackward", lambda x: F.hardtanh(x, -1.0, 2.0), (-1.0, 2.0))


@row("ThresholdBackward")
def threshold_backward(case: Case) -> Iterator[Any]:
    grad, x = case.values(), case.values()
    yield [case.put(grad), case.put(x), 1, case.out(torch.where(x > 1, grad, torch.zeros_like(grad)))]


@row("LeakyReluBackward")
def leaky_relu_backward(case: Case) -> Iterator[Any]:
    only_float(case)
    x, grad = case.values(), case.values()
    for of_result in (False, True):
        expected = wide(grad) * torch.where(wide(x) > 0, 1.0, 0.125)
        yield [case.put(grad), case.put(x), 0.125, of_result, case.out(expected.to(x.dtype))]


@row("EluBackward")
def elu_backward(case: Case) -> Iterator[Any]:
    only_float(case)
    grad, x = case.values(), case.values()
    alpha, scale, input_scale = 0.5, 1.5, 2.0
    for of_result in (False, True):
        v = wide(x)
        below = input_scale * (v + scale * alpha) if of_result else input_scale * scale * alpha * torch.exp(input_scale * v)
        expected = wide(grad) * torch.where(v > 0, scale, below)
        yield [case.put(grad), alpha, scale, input_scale, of_result, case.put(x), case.out(expected.to(x.dtype))]


@row("GeluV2")
def gelu_v2(case: Case) -> Iterator[Any]:
    only_float(case)
    for approximate, kind in ((0, "none"), (1, "tanh")):
        x = case.values(low=-4, high=4)
        yield [case.put(x), approximate, case.out(F.gelu(wide(x), approximate=kind).to(x.dtype))]


@row("GeluBackwardV2")
def gelu_backward_v2(case: Case) -> Iterator[Any]:
    only_float(case)
    for kind in ("none", "tanh"):
        grad, x = case.values(), case.values(low=-4, high=4)
        yield [case.put(grad), case.put(x), kind, case.out(gradient(lambda v, kind=kind: F.gelu(v, approximate=kind), x, grad))]


@row("LogSigmoidForward")
def log_sigmoid_forward(case: Case) -> Iterator[Any]:
    only_float(case)
    x = case.values(low=-4, high=4)
    buffer = case.out(torch.zeros_like(x))
    buffer.check = lambda actual: None  # what the operator keeps there is its own business
    yield [case.put(x), case.out(F.logsigmoid(wide(x)).to(x.dtype)), buffer]


@row("LogSigmoidBackward")
def log_sigmoid_backward(case: Case) -> Iterator[Any]:
    only_float(case)
    grad, x = case.values(), case.values(low=-4, high=4)
    buffer = torch.exp(-wide(x).abs()).to(x.dtype)
    yield [case.put(grad), case.put(x), case.put(buffer), case.out(gradient(F.logsigmoid, x, grad), loose=4)]


@row("Logit")
def logit(case: Case) -> Iterator[Any]:
    only_float(case)
    x = case.values(low=0.05, high=0.95)
    for eps in (-1.0, 0.2):
        yield [case.put(x), eps, case.out(torch.logit(wide(x), eps if eps >= 0 else None).to(x.dtype), loose=2)]


@row("LogitGrad")
def logit_grad(case: Case) -> Iterator[Any]:
    only_float(case)
    x, grad = case.values(low=0.05, high=0.95), case.values()
    for eps in (-1.0, 0.2):
        v = wide(x)
        inside = torch.ones_like(v, dtype=torch.bool) if eps < 0 else (v >= eps) & (v <= 1 - eps)
        expected = torch.where(inside, wide(grad) / (v * (1 - v)), 0.0)
        yield [case.put(x), case.put(grad), eps, case.out(expected.to(x.dtype), loose=2)]


def halves(function: Callable[[Tensor, int], Tensor], name: str, grad_name: str = "", order: str = "gx") -> None:
    """Gated activations over the two halves of a dimension, and their gradient."""

    def calls(case: Case) -> Iterator[Any]:
        only_float(case)
        for dim in {-1, len(case.shape) - 1}:
            x = case.values()
            yield [case.put(x), dim, case.out(function(wide(x), dim).to(x.dtype))]

    def grad_calls(case: Case) -> Iterator[Any]:
        only_float(case)
        for dim in {-1, len(case.shape) - 1}:
            x = case.values()
            grad = case.values(function(x.double(), dim).shape)
            yield [case.put(grad), case.put(x), dim, case.out(gradient(lambda v, dim=dim: function(v, dim), x, grad))]

    add(name, calls, shapes=WITH_PAIRS)
    add(grad_name, grad_calls, shapes=WITH_PAIRS)


def swiglu(x: Tensor, dim: int) -> Tensor:
    a, b = x.chunk(2, dim)
    return F.silu(a) * b


halves(lambda x, dim: F.glu(x, dim), "Glu", "GluBackward")
halves(swiglu, "SwiGlu", "SwiGluGrad")


@row("GeluMul", shapes=WITH_PAIRS)
def gelu_mul(case: Case) -> Iterator[Any]:
    only_float(case)
    for kind in ("none", "tanh"):
        x = case.values()
        a, b = wide(x).chunk(2, -1)
        yield [case.put(x), kind, case.out((F.gelu(a, approximate=kind) * b).to(x.dtype))]


def geglu_parts(x: Tensor, dim: int, kind: str, left: bool) -> tuple[Tensor, Tensor]:
    first, second = x.chunk(2, dim)
    gate, value = (first, second) if left else (second, first)
    gelu = F.gelu(gate, approximate=kind)
    return gelu * value, gelu


@row("GeGluV3", shapes=WITH_PAIRS)
def geglu(case: Case) -> Iterator[Any]:
    only_float(case)
    for approximate, kind in ((0, "none"), (1, "tanh")):
        for left in (False, True):
            x = case.values()
            out, gelu = geglu_parts(wide(x), -1, kind, left)
            yield [case.put(x), -1, approximate, left, case.out(out.to(x.dtype)), case.out(gelu.to(x.dtype))]


@row("GeGluV3Backward", shapes=WITH_PAIRS)
def geglu_backward(case: Case) -> Iterator[Any]:
    only_float(case)
    for approximate, kind in ((0, "none"), (1, "tanh")):
        for left in (False, True):
            x = case.values()
            out, gelu = geglu_parts(wide(x), -1, kind, left)
            grad, saved = case.values(out.shape), gelu.to(x.dtype)
            expected = gradient(lambda v, kind=kind, left=left: geglu_parts(v, -1, kind, left)[0], x, grad)
            yield [case.put(grad), case.put(x), case.put(saved), -1, approximate, left, case.out(expected, loose=2)]


PRELU_SHAPES = ((3, 5), (4, 3, 2), (2, 3, 4, 5), (33, 17))


@row("Prelu", shapes=PRELU_SHAPES)
def prelu(case: Case) -> Iterator[Any]:
    only_float(case)
    for count in (1, case.shape[1]):
        x, weight = case.values(), case.values((count,), low=0, high=1)
        yield [case.put(x), case.put(weight), case.out(F.prelu(wide(x), wide(weight)).to(x.dtype))]


@row("PreluBackward", shapes=PRELU_SHAPES)
def prelu_backward(case: Case) -> Iterator[Any]:
    only_float(case)
    for count in (1, case.shape[1]):
        x, weight, grad = case.values(), case.values((count,), low=0, high=1), case.values()
        a, b = wide(x).clone().requires_grad_(), wide(weight).clone().requires_grad_()
        F.prelu(a, b).backward(wide(grad))
        yield [case.put(grad), case.put(x), case.put(weight), case.out(a.grad.to(x.dtype)), case.out(b.grad.to(x.dtype), loose=8)]
