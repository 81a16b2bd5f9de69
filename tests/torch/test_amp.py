"""Mixed precision: half types train, the gradient scaler skips bad steps, autocast casts by torch's lists."""

import copy
import functools

import pytest
import torch
from torch import nn
from torch.testing._internal.autocast_test_lists import AutocastTestLists


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


def autocast_cases(device):
    """(kind, name, function, arguments) of every operator that torch's own autocast lists name for a CUDA-like device."""
    lists = AutocastTestLists(torch.device(device))
    for kind in ("fp16", "fp32", "need_autocast_promote", "expect_builtin_promote"):
        for where, prefix in ((torch, "torch"), (torch.nn.functional, "nn"), (torch.Tensor, "methods")):
            for name, arguments, *rest in getattr(lists, f"{prefix}_{kind}", ()):
                if hasattr(where, name):
                    keywords = next((item for item in rest if isinstance(item, dict)), {})
                    yield kind, f"{prefix}.{name}", functools.partial(getattr(where, name), *arguments, **keywords)


@pytest.mark.npu_only
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_follows_torch_lists(dtype, device):
    """The dtypes that results have under autocast, for every operator of torch's lists."""
    wanted = {"fp16": dtype, "fp32": torch.float32}
    if dtype == torch.float16:  # the lists' half inputs are of this type, and torch promotes no two half types
        wanted["need_autocast_promote"] = torch.float32
    seen = 0
    for kind, name, function in autocast_cases(device):
        if kind not in wanted or any(word in name for word in ("cudnn", "einsum")):  # of another device; listed in a form that needs unpacking
            continue
        with torch.autocast(device, dtype=dtype):
            result = function()
        tensors = [item for item in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(item, torch.Tensor)]
        assert all(item.dtype == wanted[kind] for item in tensors if item.is_floating_point()), (name, [item.dtype for item in tensors])
        seen += 1
    assert seen > 50


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_trains_with_float32_weights(dtype, device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    exact = copy.deepcopy(model).cpu()
    inputs, labels = torch.randn(12, 8), torch.randint(0, 3, (12,))
    with torch.autocast(device, dtype=dtype):
        output = model(inputs.to(device))
        loss = nn.functional.cross_entropy(output, labels.to(device))
    assert output.dtype == dtype and loss.dtype == torch.float32
    loss.backward()
    nn.functional.cross_entropy(exact(inputs), labels).backward()
    for mine, want in zip(model.parameters(), exact.parameters(), strict=True):
        assert mine.grad.dtype == torch.float32
        torch.testing.assert_close(mine.grad.cpu(), want.grad, atol=0.02, rtol=0.05)


def test_autocast_regions_nest_and_restore(device):
    a = torch.randn(4, 4, device=device)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
        with torch.autocast(device, enabled=False):
            assert (a @ a).dtype == torch.float32
        assert (a @ a).dtype == torch.bfloat16
    assert (a @ a).dtype == torch.float32
    with pytest.warns(UserWarning, match="autocast"), torch.autocast(device, dtype=torch.float64):
        assert (a @ a).dtype == torch.float32


@pytest.mark.npu_only
def test_autocast_refuses_binary_cross_entropy(device):
    a = torch.rand(4, device=device)
    with torch.autocast(device, dtype=torch.float16), pytest.raises(RuntimeError, match="unsafe to autocast"):
        nn.functional.binary_cross_entropy(a, a)
    nn.functional.binary_cross_entropy(a, a)


def test_autocast_casts_a_weight_once(device):
    """The cast of a parameter is kept for the region, so that a shared layer gets one gradient through one cast."""
    weight = torch.randn(4, 4, device=device, requires_grad=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        first, second = torch.mm(weight, weight), torch.mm(weight, weight)
    casts = {id(node[0]) for output in (first, second) for node in output.grad_fn.next_functions}
    assert len(casts) == 1


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
