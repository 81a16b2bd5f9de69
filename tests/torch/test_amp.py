"""Mixed precision: half types train, the gradient scaler skips bad steps, autocast says that it casts nothing."""

import pytest
import torch
from support import expect_output, run_python
from torch import nn


def small_step(device, scaler, poison=False, kind=torch.optim.SGD, **form):
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to(device)
    optimizer = kind(model.parameters(), lr=0.1, **form)
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


@pytest.mark.parametrize(
    "form", [{}, {"kind": torch.optim.AdamW, "foreach": True}, {"kind": torch.optim.AdamW, "fused": True}], ids=["SGD", "foreach", "fused"]
)
def test_scaler_skips_infinities_and_halves_its_scale(form, device):
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    before, after = small_step(device, scaler, poison=True, **form)
    assert torch.equal(before, after)
    assert scaler.get_scale() == 512.0
    before, after = small_step(device, scaler, **form)
    assert not torch.equal(before, after) and after.isfinite().all()
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


AUTOCAST = """
import warnings
import torch, torchtitan_npu
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).npu()
inputs = torch.ones(3, 4, device="npu")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch.autocast("npu", enabled=False):
        model(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pass
    assert not caught, caught[0]
    for enter in (lambda: torch.autocast("npu", dtype=torch.bfloat16), lambda: torch.npu.amp.autocast(dtype=torch.float16)):
        with enter():
            output = model(inputs)
            product = inputs @ inputs.t()
        print(output.dtype, product.dtype, torch.equal(output, model(inputs)))
print(*[warning.filename for warning in caught], sep="; ")
print(caught[0].message)
"""


@pytest.mark.npu_only
def test_autocast_casts_nothing_and_says_so_once():
    """When it casts, this test has to ask for bfloat16, and the README's limits for one line less."""
    *lines, last, message = expect_output(run_python(AUTOCAST))
    assert lines == ["torch.float32 torch.float32 True"] * 2
    assert last == "<string>"
    assert "autocast casts nothing on npu" in message and "model.to(torch.bfloat16)" in message


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
