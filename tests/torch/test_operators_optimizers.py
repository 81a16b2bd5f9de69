"""Optimizer steps of float parameters: npu against the CPU, in the for-each and the fused forms (clipping: test_parity; scaling: test_amp)."""

from __future__ import annotations

import pytest
import torch
from conftest import DEVICE

OPTIMIZERS = [
    (torch.optim.SGD, {"lr": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    (torch.optim.Adam, {"lr": 0.01}),
    (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
]


def parameters(device: str) -> list[torch.Tensor]:
    """Three parameters with fixed values."""
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(*sizes, generator=generator).to(device).requires_grad_() for sizes in ((4, 5), (7,), (2, 3, 2))]


def train(device: str, kind: type, options: dict, steps: int = 4) -> list[torch.Tensor]:
    """Parameters after some steps with made-up gradients."""
    chosen = parameters(device)
    optimizer = kind(chosen, **options)
    generator = torch.Generator().manual_seed(8)
    for _ in range(steps):
        for parameter in chosen:
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(device)
        optimizer.step()
    return [parameter.detach().cpu() for parameter in chosen]


@pytest.mark.parametrize("form", [{"foreach": True}, {"foreach": False}, {"fused": True}], ids=["foreach", "single", "fused"])
@pytest.mark.parametrize("kind,options", OPTIMIZERS)
def test_steps(kind: type, options: dict, form: dict) -> None:
    """Every form ends where the CPU's plain loop ends."""
    want = train("cpu", kind, {**options, "foreach": False})
    got = train(DEVICE, kind, {**options, **form})
    for one, other in zip(got, want):
        torch.testing.assert_close(one, other, rtol=2e-5, atol=2e-6)
