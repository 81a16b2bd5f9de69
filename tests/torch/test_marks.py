"""Lazily conjugated and negated tensors: torch marks them instead of computing; copies, reads and operators must see the values."""

from __future__ import annotations

import pytest
import torch

USES = {
    "to the host": lambda x: x.conj().cpu(),
    "clone": lambda x: x.conj().clone(),
    "resolve": lambda x: x.conj().resolve_conj(),
    "arithmetic": lambda x: x.conj() + 1,
    "other type": lambda x: x.conj().to(torch.complex128),
    "imaginary part": lambda x: x.conj().imag,
    "written": lambda x: torch.zeros_like(x).conj().copy_(x),
    "negated": lambda x: torch._neg_view(x.real.contiguous()),
    "negated sum": lambda x: torch._neg_view(x.real.contiguous()) + 1,
    "item": lambda x: torch.tensor(x[0, 1].conj().item()),
    "computed": lambda x: torch.conj_physical(x),
    "product of resolved": lambda x: x.conj().resolve_conj() @ x,
}


@pytest.mark.parametrize("use", USES)
def test_marks_are_seen(use, device):
    x = torch.complex(torch.arange(4.0).view(2, 2) + 1, torch.arange(4.0).view(2, 2) - 2)
    assert torch.equal(USES[use](x.to(device)).resolve_conj().resolve_neg().cpu(), USES[use](x).resolve_conj().resolve_neg())


def test_host_copy_of_marked(device):
    x = torch.tensor([1 + 2j, 3 - 1j])
    host = torch.empty(2, dtype=torch.complex64)
    host.copy_(x.to(device).conj())
    assert torch.equal(host, x.conj().resolve_conj()) and "1.-2.j" in repr(x.to(device).conj()).replace(" ", "").replace("0000", "")


def test_gradient_of_complex(device):
    x = torch.tensor([1 + 1j, 2j], device=device, requires_grad=True)
    (x * x).real.sum().backward()
    assert torch.equal(x.grad.resolve_conj().cpu(), torch.tensor([2 - 2j, -4j]))


def grid(*sizes, dtype=torch.complex128):
    """Complex numbers, no two alike."""
    count = torch.Size(sizes).numel()
    return (
        torch.complex((torch.arange(count) * 7919 % 1009 + 1.0) / 500 - 1, (torch.arange(count) * 104729 % 1013 + 1.0) / 500 - 1)
        .view(sizes)
        .to(dtype)
    )


A, B, V = grid(3, 3), grid(3, 3) * 0.5 + 0.25j, grid(3)
BATCH, OTHER_BATCH = grid(2, 3, 4), grid(2, 4, 3) - 0.5

PRODUCTS = {
    "mm, left": lambda a, b, v, s, t: a.conj() @ b,
    "mm, right": lambda a, b, v, s, t: a @ b.conj(),
    "mm, both": lambda a, b, v, s, t: a.conj() @ b.conj(),
    "mm, adjoint": lambda a, b, v, s, t: a.mH @ b,
    "mm, transposed": lambda a, b, v, s, t: a.T @ b.mH,
    "out": lambda a, b, v, s, t: torch.mm(a.conj(), b, out=torch.empty_like(a)),
    "addmm": lambda a, b, v, s, t: torch.addmm(b.conj(), a.conj(), b, beta=2, alpha=0.5),
    "addmm_": lambda a, b, v, s, t: b.clone().addmm_(a.conj(), b),
    "bmm": lambda a, b, v, s, t: s.conj() @ t,
    "bmm, adjoint": lambda a, b, v, s, t: s.mH.bmm(t.mH),
    "baddbmm": lambda a, b, v, s, t: torch.baddbmm(a.conj().expand(2, 3, 3), s.conj(), t),
    "matmul": lambda a, b, v, s, t: torch.matmul(s.conj(), t[0]),
    "mv": lambda a, b, v, s, t: a.conj().mv(v),
    "mv, adjoint": lambda a, b, v, s, t: a.mH @ v.conj(),
    "addmv": lambda a, b, v, s, t: torch.addmv(v.conj(), a.mH, v),
    "dot": lambda a, b, v, s, t: torch.dot(v.conj(), v),
    "vdot": lambda a, b, v, s, t: torch.vdot(v, v.conj()),
    "outer": lambda a, b, v, s, t: torch.outer(v.conj(), v),
    "linear": lambda a, b, v, s, t: torch.nn.functional.linear(a.conj(), b.conj(), v.conj()),
    "einsum": lambda a, b, v, s, t: torch.einsum("bij,bjk->bik", s.conj(), t),
    "negative": lambda a, b, v, s, t: a.conj().imag @ b.imag,
    "negative, batched": lambda a, b, v, s, t: torch.bmm(s.conj().imag, t.conj().imag),
    "negative, dot": lambda a, b, v, s, t: torch.dot(v.conj().imag, v.imag),
    "negative, added": lambda a, b, v, s, t: torch.addmm(a.conj().imag, b.real, b.conj().imag),
    "convolution": lambda a, b, v, s, t: torch.nn.functional.conv1d(s.conj(), t[:, :3].conj().resolve_conj()),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_marked(name, dtype, device):
    tensors = [tensor.to(dtype) for tensor in (A, B, V, BATCH, OTHER_BATCH)]
    got = PRODUCTS[name](*[tensor.to(device) for tensor in tensors])
    torch.testing.assert_close(got.cpu().resolve_conj(), PRODUCTS[name](*tensors).resolve_conj())


@pytest.mark.parametrize("name", [name for name in PRODUCTS if name not in ("out", "vdot", "convolution")])
def test_gradients_of_complex_products(name, device):
    tensors = [tensor.to(device).requires_grad_() for tensor in (A, B, V, BATCH, OTHER_BATCH)]
    assert torch.autograd.gradcheck(lambda *given: PRODUCTS[name](*given), tensors)


@pytest.mark.npu_only
def test_results_are_not_written_through_marks(device):
    a, out = A.to(device), torch.zeros(3, 3, dtype=torch.complex128, device=device)
    with pytest.raises(RuntimeError, match="conjugated"):
        torch.mm(a, a, out=out.conj())
    assert torch.equal(out.cpu(), torch.zeros_like(A))
