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


@pytest.mark.npu_only
def test_product_of_marked_is_refused(device):
    x = torch.ones(2, 2, dtype=torch.complex64, device=device)
    with pytest.raises(RuntimeError, match="resolve_conj"):
        x.conj() @ x
