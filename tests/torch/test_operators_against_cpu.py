"""Operators on npu against torch's CPU: values, dtype, shape and strides, with no fallback to the CPU. One table, one row a case."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from conftest import DEVICE


def make(*sizes: int) -> torch.Tensor:
    """Reproducible values around zero."""
    generator = torch.Generator().manual_seed(sum(sizes) + len(sizes))
    return torch.randn(*sizes, generator=generator)


X, Y, Z = make(4, 5), make(5, 4).t().contiguous(), make(5)
POSITIVE = X.abs() + 0.5
MASK = X > 0
INTEGERS = (X * 10).to(torch.int64)
ROWS = torch.tensor([3, 0, 2, 2, 1, 0])
IMAGES = make(2, 3, 8, 8)
CLASSES = torch.tensor([4, 0, 2, 1])

UNARY = (
    "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sinh cosh atan asinh sigmoid erf erfc floor ceil round "
    "trunc frac sign sgn relu square isnan isfinite isinf logical_not signbit"
).split()
BINARY = "add sub mul div maximum minimum pow atan2 fmod remainder floor_divide eq ne lt le gt ge logical_and logical_or logical_xor".split()
WITH_NUMBER = "add sub mul div pow fmod remainder floor_divide eq ne lt le gt ge".split()
REDUCTIONS = "sum mean amax amin prod std var argmax argmin all any logsumexp".split()
LISTS = "abs exp neg sqrt sign sigmoid tanh floor ceil reciprocal".split()


def inplace(change):
    """A function that changes a copy of its first argument and returns it."""

    def function(first, *rest):
        first = first.clone()
        change(first, *rest)
        return first

    return function


CASES: list[tuple] = []
for name in UNARY:
    CASES.append((name, getattr(torch, name), POSITIVE))
    CASES.append((f"{name} transposed", getattr(torch, name), POSITIVE.t()))
for name in BINARY:
    f = getattr(torch, name)
    CASES += [
        (f"{name}", f, POSITIVE, Y.abs() + 0.5),
        (f"{name} broadcast", f, POSITIVE, Z.abs() + 0.5),
        (f"{name} both broadcast", f, POSITIVE[:, :1], Z.abs() + 0.5),
        (f"{name} transposed", f, POSITIVE.t(), (Y.abs() + 0.5).t()),
        (f"{name} mixed dtypes", f, INTEGERS.abs() + 1, Y.abs() + 0.5),
        (f"{name} sliced", f, POSITIVE[1:, ::2], (Y.abs() + 0.5)[:-1, ::2]),
    ]
for name in WITH_NUMBER:
    f = getattr(torch, name)
    CASES += [
        (f"{name} number", lambda a, f=f: f(a, 2.5), POSITIVE),
        (f"{name} integer number", lambda a, f=f: f(a, 2), INTEGERS.abs() + 1),
        (f"{name} promoting number", lambda a, f=f: f(a, 2.5), INTEGERS.abs() + 1),
        (f"{name} half", lambda a, f=f: f(a, 0.75), POSITIVE.half()),
    ]
for name in REDUCTIONS:
    f = getattr(torch, name)
    if name != "logsumexp":
        CASES.append((f"{name} all", f, X))
    CASES += [(f"{name} dim", lambda a, f=f: f(a, 1), X), (f"{name} keepdim", lambda a, f=f: f(a, 0, keepdim=True), X)]
for name in LISTS:
    f = getattr(torch, f"_foreach_{name}")
    CASES.append((f"_foreach_{name}", lambda *a, f=f: f(list(a)), POSITIVE, Y.abs(), Z.abs()))

CASES += [
    ("number - tensor", lambda a: 1 - a, X),
    ("number / tensor", lambda a: 1 / a, X),
    ("number ** tensor", lambda a: 2**a, X),
    ("add with alpha", lambda a, b: torch.add(a, b, alpha=2.5), X, Y),
    ("0-dim tensor of the cpu", lambda a: a * torch.tensor(3.0), X),
    ("0-dim tensor of the cpu first", lambda a: torch.tensor(3.0) * a, X),
    ("maximum with 0-dim tensor", lambda a: torch.maximum(a, torch.tensor(0.1)), X),
    ("division rounding down", lambda a, b: torch.div(a, b, rounding_mode="floor"), X, Y),
    ("division rounding to zero", lambda a, b: torch.div(a, b, rounding_mode="trunc"), X, Y),
    ("where", torch.where, MASK, X, Y),
    ("where with number", lambda c, a: torch.where(c, a, 0.0), MASK, X),
    ("clamp", lambda a: a.clamp(-0.5, 0.5), X),
    ("clamp below", lambda a: a.clamp(min=0.0), X),
    ("clamp above", lambda a: a.clamp(max=0.0), X),
    ("clamp by tensors", lambda a, b: a.clamp(min=b), X, Y),
    ("lerp", lambda a, b: torch.lerp(a, b, 0.3), X, Y),
    ("addcmul", lambda a, b: torch.addcmul(a, b, b, value=0.5), X, Y),
    ("addcdiv", lambda a, b: torch.addcdiv(a, b, b.abs() + 1, value=0.5), X, Y),
    ("add_", inplace(lambda a, b: a.add_(b)), X, Y),
    ("add_ itself", inplace(lambda a: a.add_(a)), X),
    ("mul_ number", inplace(lambda a: a.mul_(1.5)), X),
    ("sub_ broadcast", inplace(lambda a, b: a.sub_(b)), X, Z),
    ("div_ transposed", inplace(lambda a, b: a.t().div_(b.t())), X, POSITIVE),
    ("fill_ slice", inplace(lambda a: a[:, 1:3].fill_(7)), X),
    ("zero_", inplace(lambda a: a.zero_()), X),
    ("masked_fill", lambda a, c: a.masked_fill(c, -1.0), X, MASK),
    ("masked_select", torch.masked_select, X, MASK),
    ("index by mask", lambda a, c: a[c], X, MASK),
    ("index by rows", lambda a, i: a[i], X, ROWS),
    ("index by two", lambda a, i: a[i, i], X, ROWS),
    ("index second dimension", lambda a, i: a[:, i], X, ROWS),
    ("index with gap", lambda a, i: a[i[:2], :, i[:2]], make(4, 3, 4), ROWS),
    ("index_put", inplace(lambda a, i: a.__setitem__(i, 1.0)), X, ROWS),
    ("index_put by mask", inplace(lambda a, c: a.__setitem__(c, 5.0)), X, MASK),
    ("index_put accumulating", inplace(lambda a, i, v: a.index_put_((i,), v, accumulate=True)), X, ROWS, make(6, 5)),
    ("index_select", lambda a, i: a.index_select(0, i), X, ROWS),
    ("nonzero", lambda a: torch.nonzero(a).contiguous(), MASK),
    ("cat", lambda a, b: torch.cat([a, b], 1), X, Y),
    ("cat with empty", lambda a, b: torch.cat([torch.empty(0, device=a.device), a, b]), X, Y),
    ("stack", lambda a, b: torch.stack([a, b]), X, Y),
    ("max of a dimension", lambda a: a.max(1), X),
    ("min of a dimension", lambda a: a.min(0, keepdim=True), X),
    ("max", torch.max, X),
    ("min", torch.min, X),
    ("sum of integers", torch.sum, INTEGERS.int()),
    ("sum of bools", torch.sum, MASK),
    ("norm", torch.norm, X),
    ("vector_norm", lambda a: torch.linalg.vector_norm(a, dim=1), X),
    ("infinity norm", lambda a: torch.linalg.vector_norm(a, ord=float("inf")), X),
    ("var_mean", lambda a: torch.var_mean(a, 1), X),
    ("softmax", lambda a: F.softmax(a, 1), X),
    ("log_softmax", lambda a: F.log_softmax(a, 0), X),
    ("mm", torch.mm, X, make(5, 3)),
    ("mm transposed", torch.mm, X.t(), X),
    ("addmm", lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), X, make(5, 3), make(3)),
    ("bmm", torch.bmm, make(2, 3, 4), make(2, 4, 5)),
    ("matmul broadcast", torch.matmul, make(2, 3, 4), make(4, 5)),
    ("mv", torch.mv, X, Z),
    ("dot", torch.dot, Z, Z),
    ("linear", F.linear, X, make(3, 5), make(3)),
    ("conv2d", lambda a, w, b: F.conv2d(a, w, b, padding=1), IMAGES, make(4, 3, 3, 3), make(4)),
    ("conv2d strided", lambda a, w: F.conv2d(a, w, stride=2, dilation=2), IMAGES, make(4, 3, 3, 3)),
    ("conv2d grouped", lambda a, w: F.conv2d(a, w, groups=3), IMAGES, make(6, 1, 3, 3)),
    ("conv1d", F.conv1d, make(2, 3, 8), make(4, 3, 3)),
    ("max_pool2d", lambda a: F.max_pool2d(a, 2, 2), IMAGES),
    ("max_pool2d indices", lambda a: F.max_pool2d(a, 3, 2, 1, return_indices=True), IMAGES),
    ("avg_pool2d", lambda a: F.avg_pool2d(a, 2), IMAGES),
    ("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, 3), IMAGES),
    ("batch_norm", lambda a: F.batch_norm(a, None, None, training=True), IMAGES),
    ("batch_norm eval", lambda a, m, v: F.batch_norm(a, m, v), IMAGES, make(3), make(3).abs() + 1),
    ("layer_norm", lambda a: F.layer_norm(a, (5,)), X),
    ("cross_entropy", F.cross_entropy, X, CLASSES),
    ("nll_loss unreduced", lambda a, t: F.nll_loss(a, t, reduction="none"), X, CLASSES),
    ("mse_loss", F.mse_loss, X, Y),
    ("l1_loss", F.l1_loss, X, Y),
    ("smooth_l1_loss", F.smooth_l1_loss, X, Y),
    ("binary_cross_entropy", F.binary_cross_entropy, X.sigmoid(), Y.sigmoid()),
    ("bce with logits", F.binary_cross_entropy_with_logits, X, Y.sigmoid()),
    ("embedding", F.embedding, CLASSES, make(9, 3)),
    ("silu", F.silu, X),
    ("hardtanh", F.hardtanh, X),
    ("to half", lambda a: a.to(torch.float16), X),
    ("to integers", lambda a: (a * 10).to(torch.int32), X),
    ("to bool", lambda a: a.bool(), MASK.float()),
    ("contiguous", lambda a: a.t().contiguous(), X),
    ("expand", lambda a: a.expand(3, 4, 5).contiguous(), X),
    ("channels_last", lambda a: a.contiguous(memory_format=torch.channels_last) + 1, IMAGES),
    ("tril", torch.tril, X),
    ("triu", torch.triu, X),
    ("flip", lambda a: a.flip(0), X),
    ("repeat", lambda a: a.repeat(2, 2), X),
    ("arange", lambda a: torch.arange(1, 2, 0.25, device=a.device), X),
    ("arange of integers", lambda a: torch.arange(5, device=a.device), X),
    ("linspace", lambda a: torch.linspace(0, 1, 7, device=a.device), X),
    ("eye", lambda a: torch.eye(3, 4, device=a.device), X),
    ("full", lambda a: torch.full((2, 3), 3, device=a.device), X),
    ("tril_indices", lambda a: torch.tril_indices(3, 3, device=a.device), X),
    ("roll", lambda a: a.roll(2, 0), X),
    ("roll backwards over several", lambda a: a.roll((-1, 7), (1, 0)), X.t()),
    ("roll of all elements", lambda a: a.roll(3), X.t()),
    ("roll of integers without elements", lambda a: a[:0].roll(1, 1), INTEGERS),
    ("roll of a number", lambda a: a[0, 0].roll(1), X),
    ("addbmm", lambda c, a, b: torch.addbmm(c, a, b, beta=0.5, alpha=2), make(3), make(2, 3, 4)[:, :2], make(2, 4, 3)),
    ("addbmm without self", lambda c, a, b: torch.addbmm(c, a, b, beta=0), make(3) / 0, make(2, 3, 4), make(2, 4, 3)),
    (
        "addbmm of integers",
        torch.addbmm,
        INTEGERS[:3, :3],
        INTEGERS.view(2, 2, 5)[:, :1].expand(2, 3, 5),
        INTEGERS.view(2, 5, 2)[:, :, :1].expand(2, 5, 3),
    ),
    ("addbmm of no batches", torch.addbmm, make(3), make(0, 2, 4), make(0, 4, 3)),
    ("addbmm complex", lambda c, a, b: torch.addbmm(c, a, b, alpha=1j), make(3, 3) + 0j, make(2, 3, 4) * 1j, make(2, 4, 3) + 0j),
    ("addbmm_", inplace(lambda c, a, b: c.addbmm_(a, b)), make(3, 3), make(2, 3, 4), make(2, 4, 3)),
    ("addbmm out", lambda c, a, b: torch.addbmm(c, a, b, out=torch.empty(0, device=c.device)), make(3), make(2, 3, 4), make(2, 4, 3)),
    ("isin", torch.isin, INTEGERS, INTEGERS[:2].flatten()),
    ("isin inverted", lambda a, b: torch.isin(a, b, invert=True), INTEGERS.int(), INTEGERS[0]),
    (
        "isin of floats",
        lambda a, b: torch.isin(a, b),
        torch.cat([X.flatten(), torch.tensor([float("nan")])]),
        torch.tensor([float("nan"), X[1, 1].item()]),
    ),
    ("isin of nan alone", lambda a: torch.isin(a, a[:1, :2] / 0 * 0), X),
    ("isin of nothing", lambda a: torch.isin(a, a[:0]), X),
    ("isin a number", lambda a: torch.isin(a, 3), INTEGERS),
    ("isin a fraction", lambda a: torch.isin(a, 1.5, invert=True), INTEGERS),
    ("a number isin", lambda a: torch.isin(INTEGERS[1, 1].item(), a), INTEGERS),
    ("a number isn't in", lambda a: torch.isin(1000, a), INTEGERS),
    ("isclose", torch.isclose, X, X * (1 + 1e-5 * Y)),
    ("isclose broadcast", lambda a, b: torch.isclose(a, b, rtol=0.5), X, Z),
    ("isclose of infinities", lambda a: torch.isclose(a / 0, a / 0), X),
    ("isclose of nan", lambda a: torch.isclose(a / 0 * 0, a / 0 * 0, equal_nan=True), X),
    ("isclose of integers", lambda a: torch.isclose(a, a + 1, rtol=0.1), INTEGERS),
    ("isclose complex", lambda a: torch.isclose(a + 1j, a + 1.00001j), X),
    ("isfinite of infinities", lambda a: torch.isfinite(torch.cat([a / 0, a * float("nan"), a])), X),
    ("isfinite of integers", torch.isfinite, INTEGERS),
    ("isfinite complex", lambda a: torch.isfinite(a / 0 + 1j), X),
    ("logsumexp of all", lambda a: torch.logsumexp(a, (0, 1)), X.t()),
    ("logsumexp of infinities", lambda a: torch.logsumexp(torch.cat([a / 0, -a.abs() / 0]), 1), X),
    ("logsumexp of integers", lambda a: torch.logsumexp(a, 0), INTEGERS),
    ("logsumexp of nothing", lambda a: torch.logsumexp(a[:0], 0), X),
    ("logsumexp out", lambda a: torch.logsumexp(a, 0, out=torch.empty(5, device=a.device)), X),
    ("aminmax", torch.aminmax, X.t()),
    ("aminmax keepdim", lambda a: torch.aminmax(a, keepdim=True), X),
    ("aminmax of a dimension", lambda a: torch.aminmax(a, dim=-1), X),
    ("aminmax of a kept dimension", lambda a: torch.aminmax(a, dim=0, keepdim=True), INTEGERS),
    ("mish", F.mish, X),
    ("bce with logits, unreduced", lambda a, b: F.binary_cross_entropy_with_logits(a, b, reduction="none"), X.t(), Y.sigmoid().t()),
    ("bce with logits, weights", lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, w, pos_weight=w + 1), X, Y.sigmoid(), POSITIVE),
    ("bce with logits, broadcast weights", lambda a, b, w: F.binary_cross_entropy_with_logits(a, b, pos_weight=w), X, Y.sigmoid(), Z.abs()),
    ("bce with logits, far out", lambda a, b: F.binary_cross_entropy_with_logits(a * 1000, b), X, Y.sigmoid()),
    ("xlogy with number", lambda a: torch.xlogy(a, 3.5), X),
    ("bitwise with numbers", lambda a: ((a & 6) | 1) ^ 3, INTEGERS),
    ("bitwise of tensors", lambda a, b: ((a & b) | a) ^ b, INTEGERS, INTEGERS.t().reshape(4, 5)),
    ("bitwise in place", inplace(lambda a, b: a.__iand__(13).__ior__(b).__ixor__(2)), INTEGERS, INTEGERS.flip(0)),
    ("bitwise promoting", lambda a: a.to(torch.int8) & a.int(), INTEGERS),
    ("bitwise of bools", lambda a, b: (a & b) | (a ^ True), MASK, MASK.flip(0)),
    ("shift with number", lambda a: torch.bitwise_left_shift(a, 2), INTEGERS),
    ("shift in place", inplace(lambda a: a.bitwise_left_shift_(3)), INTEGERS.int()),
    ("division by a number rounding down", lambda a: torch.div(a, 0.3, rounding_mode="floor"), X),
    ("division by a number rounding to zero", lambda a: torch.div(a, -0.3, rounding_mode="trunc"), X.half()),
    ("division of integers by a number rounding down", lambda a: torch.div(a, 3, rounding_mode="floor"), INTEGERS),
    ("division in place rounding down", inplace(lambda a, b: a.div_(b, rounding_mode="floor").div_(0.7, rounding_mode="trunc")), X, Y),
    ("equal", lambda a, b: torch.equal(a, b), X, X.clone()),
    ("not equal", lambda a, b: torch.equal(a, b), X, Y),
    ("allclose", lambda a, b: torch.allclose(a, b), X, X.clone()),
    ("item", lambda a: a[1, 2].item(), X),
    ("_foreach_add number", lambda *a: torch._foreach_add(list(a), 1.5), X, Y, Z),
    ("_foreach_add of integers", lambda *a: torch._foreach_add(list(a), 2), INTEGERS, INTEGERS.t()),
    ("_foreach_mul lists", lambda *a: torch._foreach_mul(list(a), list(a)), X, Y, Z),
    ("_foreach_mul tensor", lambda *a: torch._foreach_mul(list(a), torch.tensor(2.0, device=a[0].device)), X, Y, Z),
    ("_foreach_addcdiv", lambda *a: torch._foreach_addcdiv(list(a), list(a), [t.abs() + 1 for t in a], 0.5), X, Y, Z),
    ("_foreach_lerp", lambda *a: torch._foreach_lerp(list(a), [t + 1 for t in a], 0.5), X, Y, Z),
    ("_foreach_norm", lambda *a: torch._foreach_norm(list(a)), X, Y, Z),
]


def compare(got, want) -> None:
    """Values to rounding; dtype, shape and strides exactly."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want):
            compare(one, other)
    elif isinstance(want, torch.Tensor):
        assert got.device.type == DEVICE
        assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
        torch.testing.assert_close(got.cpu(), want, equal_nan=True)
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-6)
    else:
        assert got == want


@pytest.mark.parametrize("case", CASES, ids=[case[0].replace(" ", "-") for case in CASES])
def test_like_cpu(case: tuple) -> None:
    """The case gives what torch's CPU gives, natively."""
    _, function, *arguments = case
    want = function(*arguments)
    there = [argument.to(DEVICE) for argument in arguments]
    if DEVICE == "npu":
        from torchtitan_npu import _bridge

        _bridge.reset_fallback_counts()
        got = function(*there)
        assert _bridge.fallback_counts() == {}
    else:
        got = function(*there)
    compare(got, want)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "eq", "lt"])
def test_binary_dtypes(name: str, dtype: torch.dtype) -> None:
    """Usual binary operators in every common dtype."""
    a, b = (X * 10).abs().to(dtype), (Y * 10).abs().to(dtype)
    compare(getattr(torch, name)(a.to(DEVICE), b.to(DEVICE)), getattr(torch, name)(a, b))


@pytest.mark.parametrize("sizes", [(), (0,), (3, 0, 2), (1,), (7,), (2, 1, 3)])
def test_odd_shapes(sizes: tuple[int, ...]) -> None:
    """No elements, no dimensions, dimensions of one."""
    a = torch.full(sizes, 1.5)
    for function in (
        torch.exp,
        lambda t: t + t,
        lambda t: t * 2,
        lambda t: t.sum(),
        lambda t: t > 1,
        lambda t: t.clone(),
        lambda t: t.to(torch.float64),
    ):
        compare(function(a.to(DEVICE)), function(a))
