"""Complex numbers: every function and reduction that torch's CPU has for them, without the fallback, with edge values and gradients."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import pytest
import torch
from conftest import DEVICE

COMPLEX = [torch.complex64, torch.complex128]
PARTS = [0.0, -0.0, 0.5, -2.0, float("inf"), -float("inf"), float("nan")]
UNARY = """
acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 neg reciprocal rsqrt sgn sigmoid sin sinc sinh sqrt
square tan tanh angle abs isnan isinf isfinite logical_not conj_physical nan_to_num
""".split()
BINARY = ["add", "sub", "mul", "div", "pow", "eq", "ne", "logaddexp", "logical_and", "logical_or"]
Action = Callable[..., object]


@pytest.fixture(autouse=True)
def no_fallback() -> object:
    """A fallback is a failure."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="CAUTION: The operator")
        yield


def numbers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Random complex numbers around 0."""
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.view_as_complex(torch.randn(*shape, 2, generator=generator, dtype=torch.float64) * 2).to(dtype)


def check(action: Action, *values: torch.Tensor, equal_nan: bool = True) -> None:
    """The device gives what the CPU gives."""
    got, want = action(*(v.to(DEVICE) for v in values)), action(*values)
    pairs = zip(got, want, strict=True) if isinstance(want, list | tuple) else [(got, want)]
    for mine, right in pairs:
        torch.testing.assert_close(mine.cpu(), right, equal_nan=equal_nan, rtol=2e-5 if values[0].dtype == torch.complex64 else 1e-9, atol=1e-5)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY)
def test_functions(name: str, dtype: torch.dtype) -> None:
    """Contiguous, strided, 0-dimensional and empty operands; in place where torch has it."""
    function = getattr(torch, name)
    for values in (numbers(dtype, 5, 7), numbers(dtype, 4, 6).t()[::2], numbers(dtype), numbers(dtype, 0, 3)):
        check(function, values)
    if hasattr(torch.Tensor, f"{name}_") and function(numbers(dtype, 2)).is_complex():
        check(lambda x: getattr(x.clone(), f"{name}_")(), numbers(dtype, 3, 3))


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "abs", "angle", "isnan", "isinf", "isfinite", "nan_to_num"])
def test_edge_values(name: str) -> None:
    """Zeros of both signs, infinities and NaN in each part, against torch's scalar code (its vector code differs in some)."""
    edges = torch.tensor([complex(re, im) for re, im in itertools.product(PARTS, PARTS)], dtype=torch.complex128)
    mine = getattr(torch, name)(edges.to(DEVICE)).cpu()
    right = torch.stack([getattr(torch, name)(edges[i]) for i in range(edges.numel())])
    if mine.is_complex():
        mine, right = torch.view_as_real(mine), torch.view_as_real(right)
    torch.testing.assert_close(mine, right, equal_nan=True)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, dtype: torch.dtype) -> None:
    """Same shapes, broadcast, real beside complex, numbers."""
    function = getattr(torch, name)
    a, b = numbers(dtype, 4, 5), numbers(dtype, 5)
    check(function, a, numbers(dtype, 4, 5))
    check(function, a, b)
    if name != "logaddexp":
        check(function, a, b.real.contiguous())
        check(function, b.real.contiguous(), a)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 1.7, 2 + 1j, -1j])
def test_powers(exponent: complex, dtype: torch.dtype) -> None:
    """Exponents with loops of their own and others; 0 to the power of each."""
    values = numbers(dtype, 9)
    values[3] = 0
    check(lambda x: x**exponent, values)
    check(lambda x: exponent**x, values[:3])


@pytest.mark.parametrize("dtype", COMPLEX)
def test_three_operands(dtype: torch.dtype) -> None:
    """addcmul, addcdiv with real and complex factors, lerp, where."""
    a, b, c = numbers(dtype, 3, 4), numbers(dtype, 4), numbers(dtype, 3, 1)
    for value in (1, 0.5, 1 - 2j):
        check(lambda x, y, z, value=value: torch.addcmul(x, y, z, value=value), a, b, c)
        check(lambda x, y, z, value=value: torch.addcdiv(x, y, z, value=value), a, b, c)
    for weight in (0.25, 0.75, 0.1 + 0.3j, 2j):
        check(lambda x, y, weight=weight: torch.lerp(x, y, weight), a, numbers(dtype, 3, 4) + 1)
    check(torch.lerp, a, numbers(dtype, 3, 4) + 1, numbers(dtype, 3, 4) * 0.2)
    check(lambda x, y: torch.where(x.real > 0, x, y), a, b)


REDUCTIONS: list[Action] = [
    lambda x: x.sum(),
    lambda x: x.prod(),
    lambda x: x.prod(1),
    lambda x: x.prod(0, keepdim=True),
    lambda x: x.cumsum(1),
    lambda x: x.cumprod(0),
    lambda x: x.cumprod(2),
    lambda x: x.mean((0, 2)),
    lambda x: x.var(),
    lambda x: x.std(1, correction=0, keepdim=True),
    lambda x: torch.var_mean(x, (0, 1)),
    lambda x: torch.std_mean(x, 2, correction=1.5),
    lambda x: x.norm(),
    lambda x: torch.linalg.vector_norm(x, 3, (1, 2)),
    lambda x: torch.linalg.vector_norm(x, float("inf")),
    lambda x: torch.linalg.vector_norm(x, 0, 1),
    lambda x: torch.logsumexp(x, 1),
    lambda x: x.any(),
    lambda x: x.all(1),
    lambda x: torch.count_nonzero(x),
]


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("number", range(len(REDUCTIONS)))
def test_reductions(number: int, dtype: torch.dtype) -> None:
    """Contiguous and strided, long enough for several tiles, empty."""
    for values in (numbers(dtype, 3, 4, 5), numbers(dtype, 5, 4, 3).transpose(0, 2), numbers(dtype, 2, 3, 700) * 0.7):
        check(REDUCTIONS[number], values)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_products(dtype: torch.dtype) -> None:
    """Matrix products of lazily conjugated factors, and their gradients, need no resolve_conj."""
    a, b, c = numbers(dtype, 3, 4), numbers(dtype, 5, 4), numbers(dtype, 2, 4, 5)
    check(lambda x, y: x @ y.mH, a, b)
    check(lambda x, y: x @ y, a.expand(2, 3, 4), c)
    check(lambda x, y: torch.addmm(x[:, :1] @ y[:, :1].mH, x, y.mH, beta=1j, alpha=2 - 1j), a, b)
    check(torch.dot, a[0], b[0])
    check(torch.vdot, a[0], b[0])
    check(torch.mv, a, b[0])
    check(torch.linalg.vecdot, a, b[:3])

    def gradients(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
        (torch.tanh(x @ y.mH).abs().sum() + torch.bmm(x[None], y.T[None].conj()).real.sum()).backward()
        assert x.grad is not None and y.grad is not None
        return [x.grad, y.grad]

    check(gradients, a, b)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_indexing(dtype: torch.dtype) -> None:
    """Sums into chosen places with complex factors, masks."""
    x, source, index = numbers(dtype, 5, 3), numbers(dtype, 4, 3), torch.tensor([0, 2, 2, 4])
    check(lambda a, b, i: a.index_add(0, i, b, alpha=1 - 2j), x, source, index)
    check(lambda a, b, i: a.scatter_add(0, i[:, None].expand(4, 3), b), x, source, index)
    check(lambda a, b: a.masked_fill(a.real > 0, 1 + 1j) + a.masked_scatter(a.imag > 0, b.repeat(2, 2)).sum(), x, source)
    check(lambda a: a[a.real > 0], x)


def test_made() -> None:
    """linspace and logspace; normal_ shares the variance between the parts."""
    for dtype in COMPLEX:
        for make in (torch.linspace, torch.logspace):
            mine, right = (make(1 - 1j, 2 + 3j, 9, dtype=dtype, device=device) for device in (DEVICE, "cpu"))
            torch.testing.assert_close(mine.cpu(), right, rtol=1e-4, atol=1e-5)
    drawn = torch.empty(40000, dtype=torch.complex64, device=DEVICE).normal_(1, 2)
    assert abs(drawn.mean().item() - 1) < 0.05 and abs(drawn.var().item() - 4) < 0.1


@pytest.mark.parametrize("dtype", COMPLEX)
def test_lists(dtype: torch.dtype) -> None:
    """Lists of complex tensors."""
    a, b = numbers(dtype, 3), numbers(dtype, 2, 2)
    for name in ("exp", "sqrt", "tanh", "abs", "sign", "reciprocal", "sigmoid"):
        if name != "sign":
            check(lambda x, y, name=name: getattr(torch, f"_foreach_{name}")([x, y]), a, b)
    check(lambda x, y: torch._foreach_addcmul([x, y], [x, y], [y[0, 0], x[0]], value=2j), a, b)
    check(lambda x, y: torch._foreach_norm([x, y]), a, b)
    check(lambda x, y: torch._foreach_pow([x, y], 2), a, b)
