"""Mixed precision: half types train, the gradient scaler skips bad steps, autocast doesn't get in the way."""

import pytest
import torch
from torch import nn


def small_step(device, scaler, poison=False):
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().cpu().clone()
    loss = model(torch.ones(3, 4).to(device)).square().sum()
    scaler.scale(loss).backward()
    if poison:
        model.weight.grad[0, 0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    return before, model.weight.detach().cpu()


def test_scaler_steps_like_no_scaler(device):
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    before, scaled = small_step(device, scaler)
    _, plain = small_step("cpu", torch.amp.GradScaler("cpu", enabled=False))
    assert not torch.equal(before, scaled)
    torch.testing.assert_close(scaled, plain)
    assert scaler.get_scale() == 1024.0


def test_scaler_skips_infinities_and_halves_its_scale(device):
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    before, after = small_step(device, scaler, poison=True)
    assert torch.equal(before, after)
    assert scaler.get_scale() == 512.0


@pytest.mark.parametrize("fused", [False, True])
def test_scaler_with_adam_and_unscale(fused, device):
    scaler = torch.amp.GradScaler(device, init_scale=256.0)
    model = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    scaler.scale(model(torch.ones(3, 4).to(device)).sum()).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0)
    scaler.step(optimizer)
    scaler.update()
    assert norm.item() == pytest.approx((8 * 9 + 2 * 9) ** 0.5, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_autocast_runs(device):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        output = model(torch.ones(3, 4).to(device))
    output.float().sum().backward()
    assert model[0].weight.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_half_model_trains(dtype, device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = torch.randn(16, 1, 8, 8).to(device, dtype), torch.randint(0, 3, (16,)).to(device)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
