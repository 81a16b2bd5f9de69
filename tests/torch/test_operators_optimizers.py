"""Optimizer steps, gradient clipping and scaling: npu against the CPU, in the for-each and the fused forms."""

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


def test_clip_grad_norm() -> None:
    """Clipping to a total norm."""
    results = []
    for device in ("cpu", DEVICE):
        chosen = parameters(device)
        for parameter in chosen:
            parameter.grad = parameter.detach() * 3
        norm = torch.nn.utils.clip_grad_norm_(chosen, 1.0)
        results.append([norm.cpu(), *[parameter.grad.cpu() for parameter in chosen]])
    for got, want in zip(results[1], results[0]):
        torch.testing.assert_close(got, want)


@pytest.mark.npu_only
@pytest.mark.parametrize("form", [{"foreach": True}, {"fused": True}], ids=["foreach", "fused"])
def test_grad_scaler_skips_bad_steps(form: dict) -> None:
    """An infinite gradient leaves the parameters alone and halves the scale."""
    parameter = torch.ones(3, device=DEVICE, requires_grad=True)
    optimizer = torch.optim.AdamW([parameter], lr=0.1, **form)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=8.0)
    scaler.scale((parameter * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [1.0, 1.0, 1.0] and scaler.get_scale() == 4.0
    optimizer.zero_grad()
    scaler.scale((parameter * 2).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all(0.85 < value < 0.95 for value in parameter.tolist())
