"""Rows of fused normalisation, rotary embedding and masked softmax: each is its formula in float64, the gradients by autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from cases import FLOATS, Case, add, row, wide

Tensor = torch.Tensor
EPS = 2.0**-10
ROWS = ((4, 6), (2, 3, 8), (5, 1, 4), (33, 17))


def floating(case: Case) -> None:
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")


def statistics(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def gradients(function: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor) -> list[Tensor]:
    leaves = [wide(x).clone().requires_grad_() for x in inputs]
    function(*leaves).backward(wide(grad))
    return [leaf.grad for leaf in leaves]  # type: ignore[misc]


# --- root mean square ---------------------------------------------------------------------------------------------------------------


def rms(x: Tensor, gamma: Tensor, plus: float = 0) -> tuple[Tensor, Tensor]:
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
    return x * rstd * (gamma + plus), rstd


def rms_norm(name: str, plus: float) -> None:
    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        x, gamma = case.values(), case.values(case.shape[-1:], low=0.5)
        y, rstd = rms(wide(x), wide(gamma), plus)
        yield [case.put(x), case.put(gamma), EPS, case.out(y.to(x.dtype), loose=4), case.out(rstd.to(statistics(x.dtype)), loose=4)]

    add(name, calls, shapes=ROWS)


rms_norm("RmsNorm", 0)
rms_norm("GemmaRmsNorm", 1)


def added(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    floating(case)
    a, b, gamma = case.values(), case.values(), case.values(case.shape[-1:], low=0.5)
    total = wide(a) + wide(b)
    y, rstd = rms(total, wide(gamma))
    return a, b, gamma, y.to(a.dtype), rstd.to(statistics(a.dtype)), total.to(a.dtype)


@row("AddRmsNorm", shapes=ROWS)
def add_rms_norm(case: Case) -> Iterator[Any]:
    a, b, gamma, y, rstd, total = added(case)
    yield [case.put(a), case.put(b), case.put(gamma), EPS, case.out(y, loose=6), case.out(rstd, loose=200), case.out(total)]


@row("InplaceAddRmsNorm", shapes=ROWS)
def in_place_add_rms_norm(case: Case) -> Iterator[Any]:
    a, b, gamma, y, rstd, total = added(case)
    yield [case.inout(a, y, loose=6), case.inout(b, total), case.put(gamma), EPS, case.out(rstd, loose=200)]


@row("AddRmsNormCast", shapes=ROWS)
def add_rms_norm_cast(case: Case) -> Iterator[Any]:
    a, b, gamma, y, rstd, total = added(case)
    first = case.out(y.to(torch.float32), loose=6 if case.dtype in FLOATS[:2] else 1500)
    yield [case.put(a), case.put(b), case.put(gamma), EPS, first, case.out(y, loose=6), case.out(rstd, loose=200), case.out(total)]


@row("RmsNormGrad", shapes=ROWS)
def rms_norm_grad(case: Case) -> Iterator[Any]:
    floating(case)
    x, gamma, dy = case.values(), case.values(case.shape[-1:], low=0.5), case.values()
    dx, dgamma = gradients(lambda v, g: rms(v, g)[0], [x, gamma], dy)
    rstd = rms(wide(x), wide(gamma))[1].to(statistics(x.dtype))
    outs = [case.out(dx.to(x.dtype), loose=10), case.out(dgamma.to(statistics(x.dtype)), loose=20)]
    yield [case.put(dy), case.put(x), case.put(rstd), case.put(gamma), *outs]


# --- layer norm -----------------------------------------------------------------------------------------------------------------------


def layer(x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + EPS)
    return (x - mean) * rstd * gamma + beta, mean, rstd


def parameters(case: Case) -> tuple[Tensor, Tensor]:
    return case.values(case.shape[-1:], low=0.5), case.values(case.shape[-1:])


WIDE_ROWS = ((4, 6), (2, 3, 8), (5, 2, 4), (33, 17))


@row("FastLayerNorm", shapes=WIDE_ROWS)
def fast_layer_norm(case: Case) -> Iterator[Any]:
    floating(case)
    x, (gamma, beta), kind = case.values(), parameters(case), statistics(case.dtype)
    y, mean, rstd = layer(wide(x), wide(gamma), wide(beta))
    outs = [case.out(y.to(x.dtype), loose=6), case.out(mean.to(kind), loose=4), case.out(rstd.to(kind), loose=4)]
    yield [case.put(x), [case.shape[-1]], case.put(gamma), case.put(beta), EPS, *outs]


@row("AddLayerNorm", shapes=WIDE_ROWS)
def add_layer_norm(case: Case) -> Iterator[Any]:
    floating(case)
    for with_bias in (False, True):
        a, b, (gamma, beta), kind = case.values(), case.values(), parameters(case), statistics(case.dtype)
        bias = case.values(case.shape[-1:])
        total = wide(a) + wide(b) + (wide(bias) if with_bias else 0)
        y, mean, rstd = layer(total, wide(gamma), wide(beta))
        outs = [case.out(y.to(a.dtype), loose=10), case.out(mean.to(kind), loose=200), case.out(rstd.to(kind), loose=300)]
        inputs = [case.put(a), case.put(b), case.put(gamma), case.put(beta), case.put(bias) if with_bias else None]
        yield [*inputs, EPS, True, *outs, case.out(total.to(a.dtype))]


@row("DeepNorm", shapes=WIDE_ROWS)
def deep_norm(case: Case) -> Iterator[Any]:
    floating(case)
    x, gx, (gamma, beta), kind = case.values(), case.values(), parameters(case), statistics(case.dtype)
    y, mean, rstd = layer(0.5 * wide(x) + wide(gx), wide(gamma), wide(beta))
    outs = [case.out(mean.to(kind), loose=200), case.out(rstd.to(kind), loose=300), case.out(y.to(x.dtype), loose=10)]
    yield [case.put(x), case.put(gx), case.put(beta), case.put(gamma), 0.5, EPS, *outs]


@row("AddLayerNormGrad", shapes=WIDE_ROWS)
def add_layer_norm_grad(case: Case) -> Iterator[Any]:
    floating(case)
    for with_sum in (False, True):
        dy, a, b, (gamma, beta), kind = case.values(), case.values(), case.values(), parameters(case), statistics(case.dtype)
        extra = case.values()
        total = wide(a) + wide(b)
        dx, dgamma, dbeta = gradients(lambda v, g, s: layer(v, g, s)[0], [total, gamma, beta], dy)
        dx = dx + wide(extra) if with_sum else dx
        _, mean, rstd = layer(total, wide(gamma), wide(beta))
        saved = [case.put(rstd.to(kind)), case.put(mean.to(kind)), case.put(gamma), case.put(extra) if with_sum else None]
        outs = [case.out(dx.to(a.dtype), loose=30), case.out(dgamma.to(kind), loose=100), case.out(dbeta.to(kind), loose=30)]
        yield [case.put(dy), case.put(a), case.put(b), *saved, *outs]


# --- group norm and swish ---------------------------------------------------------------------------------------------------------------

GROUPS = ((2, 4, 5), (3, 6, 2, 4), (2, 4, 3, 2, 2))


def group(x: Tensor, gamma: Tensor, beta: Tensor, groups: int, swish: float) -> Tensor:
    y = F.group_norm(x, groups, gamma, beta, EPS)
    return y * torch.sigmoid(swish * y) if swish else y


def group_parameters(case: Case) -> tuple[Tensor, Tensor]:
    return case.values((case.shape[1],), low=0.5), case.values((case.shape[1],))


def group_statistics(x: Tensor, groups: int) -> list[Tensor]:
    flat = x.reshape(x.shape[0], groups, -1)
    return [flat.mean(-1), torch.rsqrt(flat.var(-1, correction=0) + EPS)]


def group_forward(name: str) -> None:
    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        for swish in (1.0,) if name == "GroupNormSilu" else (1.0, 0.5, 0.0):
            x, (gamma, beta) = case.values(), group_parameters(case)
            saved = [case.out(s.to(x.dtype), loose=4) for s in group_statistics(wide(x), 2)]
            middle = [2, EPS] if name == "GroupNormSilu" else [2, "NCHW", EPS, swish != 0, swish]
            y = group(wide(x), wide(gamma), wide(beta), 2, swish).to(x.dtype)
            yield [case.put(x), case.put(gamma), case.put(beta), *middle, case.out(y, loose=8), *saved]

    add(name, calls, shapes=GROUPS)


group_forward("GroupNormSilu")
group_forward("GroupNormSwish")


@row("GroupNormSwishGrad", shapes=GROUPS)
def group_swish_grad(case: Case) -> Iterator[Any]:
    floating(case)
    for swish in (1.0, 0.5):
        dy, x, (gamma, beta) = case.values(), case.values(), group_parameters(case)
        expected = gradients(lambda v, g, b, swish=swish: group(v, g, b, 2, swish), [x, gamma, beta], dy)
        saved = [case.put(s.to(statistics(x.dtype))) for s in group_statistics(wide(x), 2)]
        outs = [case.out(e.to(x.dtype), loose=40) for e in expected]
        yield [case.put(dy), *saved, case.put(x), case.put(gamma), case.put(beta), 2, "NCHW", swish, True, True, *outs]


# --- rotary embedding ---------------------------------------------------------------------------------------------------------------------

HEADS = ((2, 3, 4, 8), (1, 2, 5, 4), (2, 1, 3, 16))


def rotate(x: Tensor, cos: Tensor, sin: Tensor, mode: int) -> Tensor:
    if mode == 0:
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + turned * sin


@row("RotaryPositionEmbedding", shapes=HEADS)
def rotary(case: Case) -> Iterator[Any]:
    floating(case)
    for mode in (0, 1):
        x, cos, sin = case.values(), case.values((1, 1, *case.shape[2:])), case.values((1, 1, *case.shape[2:]))
        yield [case.put(x), case.put(cos), case.put(sin), mode, case.out(rotate(wide(x), wide(cos), wide(sin), mode).to(x.dtype), loose=4)]


@row("RotaryPositionEmbeddingGrad", shapes=HEADS)
def rotary_grad(case: Case) -> Iterator[Any]:
    floating(case)
    for mode in (0, 1):
        x, dy = case.values(), case.values()
        cos, sin = case.values((1, 1, *case.shape[2:])), case.values((1, 1, *case.shape[2:]))
        expected = gradients(lambda v, c, s, mode=mode: rotate(v, c, s, mode), [x, cos, sin], dy)
        outs = [case.out(e.to(x.dtype), loose=8) for e in expected]
        yield [case.put(dy), case.put(cos), case.put(sin), case.put(x), mode, *outs]


def apply_rotary(name: str) -> None:
    """In place on query and key, (batch, rows, heads, width) in layout 1."""

    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        batch, heads, rows, width = case.shape
        q, k = case.values((batch, rows, heads, width)), case.values((batch, rows, 1, width))
        cos, sin = case.values((batch, rows, 1, width)), case.values((batch, rows, 1, width))
        refs = [case.inout(v, rotate(wide(v), wide(cos), wide(sin), 0).to(v.dtype), loose=4) for v in (q, k)]
        yield [*refs, case.put(cos), case.put(sin), 1, *(["half"] if name.endswith("V2") else [])]

    add(name, calls, shapes=HEADS)


apply_rotary("ApplyRotaryPosEmb")
apply_rotary("ApplyRotaryPosEmbV2")


# --- masked softmax, format cast ------------------------------------------------------------------------------------------------------------

SCORES = ((2, 3, 4, 8), (1, 2, 5, 7), (2, 1, 3, 33))


def masked(case: Case) -> tuple[Tensor, Tensor]:
    floating(case)
    mask = case.values((case.shape[0], 1, *case.shape[2:]), torch.bool)
    return case.values(), mask


@row("ScaledMaskedSoftmax", shapes=SCORES)
def masked_softmax(case: Case) -> Iterator[Any]:
    x, mask = masked(case)
    y = torch.softmax((wide(x) * 0.5).masked_fill(mask, -10000.0), -1)
    yield [case.put(x), case.put(mask), 0.5, False, case.out(y.to(x.dtype), loose=4)]


@row("ScaledMaskedSoftmaxBackward", shapes=SCORES)
def masked_softmax_backward(case: Case) -> Iterator[Any]:
    x, mask = masked(case)
    dy = case.values()
    y = torch.softmax((wide(x) * 0.5).masked_fill(mask, -10000.0), -1).to(x.dtype)
    v, g = wide(y), wide(dy)
    dx = (0.5 * v * (g - (g * v).sum(-1, keepdim=True))).masked_fill(mask, 0.0)
    yield [case.put(dy), case.put(y), case.put(mask), 0.5, False, case.out(dx.to(x.dtype), loose=8)]


@row("NpuFormatCast", shapes=((7,), (3, 5), (2, 3, 4)))
def format_cast(case: Case) -> Iterator[Any]:
    x = case.values()
    yield [case.put(x), case.out(x, exact=True)]
