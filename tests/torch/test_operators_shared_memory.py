"""What is written shares memory with itself or with what is read: refused where torch's CPU refuses, in its words, and right elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from conftest import DEVICE

EXPANDED = "more than one element of the written-to tensor refers to a single memory location"
PARTLY = "some elements of the input tensor and the written-to tensor refer to a single memory location"
Action = Callable[[torch.Tensor, torch.Tensor], object]


def rows(a: torch.Tensor) -> torch.Tensor:
    """Two rows of a, in the other order."""
    return torch.tensor([1, 0], device=a.device)


def rows_wide(a: torch.Tensor) -> torch.Tensor:
    """The same for each column."""
    return rows(a)[:, None].expand(2, 3)


# in-place operators: what they do to `a` with `b`, both [3, 3]
INPLACE: dict[str, Action] = {
    "abs_": lambda a, b: a.abs_(),
    "exp_": lambda a, b: a.exp_(),
    "neg_": lambda a, b: a.neg_(),
    "relu_": lambda a, b: a.relu_(),
    "sqrt_": lambda a, b: a.sqrt_(),
    "logical_not_": lambda a, b: a.logical_not_(),
    "nan_to_num_": lambda a, b: a.nan_to_num_(),
    "logit_": lambda a, b: a.logit_(0.1),
    "hardtanh_": lambda a, b: F.hardtanh(a, inplace=True),
    "hardswish_": lambda a, b: F.hardswish(a, inplace=True),
    "add_": lambda a, b: a.add_(b),
    "add_ number": lambda a, b: a.add_(2),
    "mul_": lambda a, b: a.mul_(b),
    "div_": lambda a, b: a.div_(b),
    "pow_": lambda a, b: a.pow_(b),
    "floor_divide_": lambda a, b: a.floor_divide_(b),
    "logical_and_": lambda a, b: a.logical_and_(b),
    "eq_": lambda a, b: a.eq_(b),
    "lerp_": lambda a, b: a.lerp_(b, 0.5),
    "addcmul_": lambda a, b: a.addcmul_(b, b),
    "clamp_": lambda a, b: a.clamp_(2, 5),
    "copy_": lambda a, b: a.copy_(b),
    "slice": lambda a, b: a.__setitem__(slice(0, 2), b[:2]),
    "zero_": lambda a, b: a.zero_(),
    "fill_": lambda a, b: a.fill_(3),
    "fill_ tensor": lambda a, b: a.fill_(b.flatten()[0]),
    "masked_fill_": lambda a, b: a.masked_fill_(a > 3, 9),
    "masked_fill_ wide": lambda a, b: a.masked_fill_(b > 3, 9),
    "index_fill_": lambda a, b: a.index_fill_(1, rows(a), 9) if a.stride(1) else None,
    "index_add_": lambda a, b: a.index_add_(0, rows(a), b[:2]),
    "index_copy_": lambda a, b: a.index_copy_(0, rows(a), b[:2]),
    "index_put_": lambda a, b: a.index_put_((rows(a),), b[:2]),
    "index_put_ add": lambda a, b: a.index_put_((rows(a),), b[:2], accumulate=True),
    "index_put_ mask": lambda a, b: a.index_put_((a > 3,), b.flatten()[8]),
    "index": lambda a, b: a.__setitem__(rows(a), b[:2]),
    "put_": lambda a, b: a.put_(rows(a), b.flatten()[:2]),
    "scatter_": lambda a, b: a.scatter_(0, rows_wide(a), b[:2]),
    "scatter_add_": lambda a, b: a.scatter_add_(0, rows_wide(a), b[:2]),
    "scatter_reduce_": lambda a, b: a.scatter_reduce_(0, rows_wide(a), b[:2], "amax"),
    "cumsum_": lambda a, b: a.cumsum_(0),
    "cumprod_": lambda a, b: a.cumprod_(1),
    "addmm_": lambda a, b: a.addmm_(b, torch.eye(3, device=a.device)),
    "foreach": lambda a, b: torch._foreach_add_([a], [b]),
    "normal_": lambda a, b: a.normal_().zero_(),
    "uniform_": lambda a, b: a.uniform_().zero_(),
    "random_": lambda a, b: a.random_().zero_(),
    "bernoulli_": lambda a, b: a.bernoulli_().zero_(),
    "exponential_": lambda a, b: a.exponential_().zero_(),
}
# operators with out=
OUT: dict[str, Action] = {
    "sort": lambda a, out: torch.sort(a, dim=0, descending=True, out=(out, torch.empty_like(a, dtype=torch.int64))),
    "topk": lambda a, out: torch.topk(a, 3, dim=0, out=(out, torch.empty_like(a, dtype=torch.int64))),
    "kthvalue": lambda a, out: torch.kthvalue(a, 2, 0, True, out=(out[:1], rows(a)[:1])),
    "cummax": lambda a, out: torch.cummax(a, 0, out=(out, torch.empty_like(a, dtype=torch.int64))),
    "cumsum": lambda a, out: torch.cumsum(a, 1, out=out),
    "max": lambda a, out: torch.max(a, 0, True, out=(out[:1], torch.empty_like(a[:1], dtype=torch.int64))),
    "median": lambda a, out: torch.median(a, 0, True, out=(out[:1], torch.empty_like(a[:1], dtype=torch.int64))),
    "index_select": lambda a, out: torch.index_select(a, 0, torch.tensor([2, 1, 0], device=a.device), out=out),
    "take": lambda a, out: torch.take(a, torch.arange(9, device=a.device).flip(0).view(3, 3), out=out),
    "gather": lambda a, out: torch.gather(a, 0, torch.zeros_like(a, dtype=torch.int64), out=out),
    "scatter": lambda a, out: torch.scatter(torch.zeros_like(a), 0, rows_wide(a), a[:2], out=out),
    "cat": lambda a, out: torch.cat([a[1:], a[:1]], out=out),
    "where": lambda a, out: torch.where(a > 3, a, -a, out=out),
    "softmax": lambda a, out: torch.softmax(a, 1, out=out),
    "mm": lambda a, out: torch.mm(a, a, out=out),
    "tril": lambda a, out: torch.tril(a, out=out),
    "abs": lambda a, out: torch.abs(a, out=out),
    "add": lambda a, out: torch.add(a, a, out=out),
    "pow": lambda a, out: torch.pow(2.0, a, out=out),
    "sum": lambda a, out: torch.sum(a, 0, True, out=out[:1]),
    "mse_loss_backward": lambda a, out: torch.ops.aten.mse_loss_backward.grad_input(a, a, a + 1, 0, grad_input=out),
    "masked_select": lambda a, out: torch.masked_select(a, a > 0, out=out.view(-1)),
}
BASE = [3.0, 1, 2, 9, 7, 8, 4, 6, 5, 11, 10, 12]
PLACES: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "same": lambda base: (base[:9].view(3, 3), base[:9].view(3, 3)),
    "later": lambda base: (base[:9].view(3, 3), base[3:].view(3, 3)),
    "earlier": lambda base: (base[3:].view(3, 3), base[:9].view(3, 3)),
    "transposed": lambda base: (base[:9].view(3, 3), base[:9].view(3, 3).t()),
}


def outcome(action: Action, operands: Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]], device: str, apart: bool) -> object:
    """The memory after the action, or the first line of what it raised. apart: the one that is only read is a copy."""
    base = torch.tensor(BASE, device=device)
    first, second = operands(base)
    try:
        if apart:
            first, second = (first, second.clone()) if action in INPLACE.values() else (first.clone(), second)
        action(first, second)
        return base.cpu()
    except RuntimeError as error:
        return str(error).splitlines()[0]


@pytest.mark.parametrize("name", INPLACE)
@pytest.mark.filterwarnings("ignore:Use of")
def test_expanded_self(name: str) -> None:
    """Several elements in one place: refused, or for fills as good as one element."""

    def operands(base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return base[:3].expand(3, 3), base[3:].view(3, 3).clone()

    got, want = outcome(INPLACE[name], operands, DEVICE, apart=False), outcome(INPLACE[name], operands, "cpu", apart=False)
    if isinstance(want, str):
        assert EXPANDED in want and got == want
    else:
        assert isinstance(got, torch.Tensor) and torch.allclose(got, want)


def compare(action: Action, place: str) -> None:
    """The CPU's error, or the result of operands that lie apart (what the CPU makes of shared memory that it lets pass depends on its loops)."""
    got, want = outcome(action, PLACES[place], DEVICE, apart=False), outcome(action, PLACES[place], "cpu", apart=False)
    if isinstance(want, str):
        assert PARTLY in want and got == want
    else:
        right = outcome(action, PLACES[place], "cpu", apart=True)
        assert isinstance(got, torch.Tensor) and torch.allclose(got, right, equal_nan=True), (got, right)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", INPLACE)
def test_inplace_with_an_input_in_the_same_memory(name: str, place: str) -> None:
    """The input is the very same memory, shares part of it, or is its transpose."""
    compare(INPLACE[name], place)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", OUT)
def test_out_in_the_memory_of_the_input(name: str, place: str) -> None:
    """The same for out=."""
    if name == "masked_select" and place == "transposed":
        pytest.skip("out is one-dimensional")
    compare(OUT[name], place)


def test_gradient_of_glu_into_its_operands() -> None:
    """Both halves of the gradient read both halves of the input."""
    values, gradient = torch.arange(24.0).view(4, 6) / 7 - 1, torch.linspace(-1, 2, 12).view(4, 3)
    right = torch.ops.aten.glu_backward(gradient, values, 1)
    into_self = values.to(DEVICE)
    torch.ops.aten.glu_backward.grad_input(gradient.to(DEVICE), into_self, 1, grad_input=into_self)
    assert torch.allclose(into_self.cpu(), right)
    into_gradient = torch.cat([gradient, gradient], 1).to(DEVICE)
    torch.ops.aten.glu_backward.grad_input(into_gradient[:, :3], values.to(DEVICE), 1, grad_input=into_gradient)
    assert torch.allclose(into_gradient.cpu(), right)


def test_index_put_of_values_in_self() -> None:
    """Rows of a tensor into other rows of it."""
    a = torch.arange(12.0, device=DEVICE).view(4, 3)
    with pytest.raises(RuntimeError, match=PARTLY):
        a.index_put_((torch.tensor([1, 2], device=DEVICE),), a[:2])
    with pytest.raises(RuntimeError, match=PARTLY):
        a.put_(rows(a), a.flatten()[3:5])
