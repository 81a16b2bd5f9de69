"""Copies between host and device and on the device: every pair of dtypes, strides, broadcast, overlap."""

import itertools

import pytest
import torch

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]


@pytest.mark.parametrize("route", ["to device", "on device", "to host"])
def test_converting_transposed_copies(route, device):
    torch.manual_seed(0)
    values = torch.randn(4, 6) * 3
    source_device, target_device = {"to device": ("cpu", device), "on device": (device, device), "to host": (device, "cpu")}[route]
    for source_type, target_type in itertools.product(DTYPES, DTYPES):
        # negative numbers have no defined value as uint8
        source = (values.abs() if torch.uint8 in (source_type, target_type) else values).to(source_type)
        want = torch.zeros(6, 4, dtype=target_type)
        want.t().copy_(source)
        got = torch.zeros(6, 4, dtype=target_type, device=target_device)
        got.t().copy_(source.to(source_device))
        assert torch.equal(got.cpu(), want), f"{source_type} to {target_type}"


def test_broadcast_into_a_strided_target(device):
    target = torch.zeros(3, 8, device=device)
    target[:, ::2].copy_(torch.arange(4.0))
    assert torch.equal(target.cpu()[:, ::2], torch.arange(4.0).expand(3, 4)) and not target.cpu()[:, 1::2].any()
    target[1:, 1::2] = torch.arange(4.0, device=device)
    assert torch.equal(target.cpu()[1:, 1::2], torch.arange(4.0).expand(2, 4))


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.t(),
        lambda t: t[1:, ::2],
        lambda t: t.expand(3, *t.shape),
        lambda t: t[:, 2],
        lambda t: t[1:1],
        lambda t: t[2, 3],
        lambda t: t.unfold(0, 2, 1),
        lambda t: t.as_strided((3, 3), (2, 1), 1),
    ],
)
def test_views_travel_both_ways(view, device):
    host = torch.randn(5, 6)
    on_device = host.to(device)
    assert torch.equal(view(host).to(device).cpu(), view(host))
    assert torch.equal(view(on_device).cpu(), view(host))
    assert torch.equal(view(on_device).clone().cpu(), view(host))


def test_memory_formats_are_kept(device):
    host = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    moved = host.to(device)
    assert moved.stride() == host.stride() and torch.equal(moved.cpu(), host)
    assert moved.contiguous().stride() == (60, 20, 5, 1)
    assert torch.equal(moved.contiguous(memory_format=torch.channels_last).cpu(), host)


def test_printing_and_python_values(device):
    tensor = torch.tensor([[1.5, -2.0], [float("nan"), float("inf")]], device=device)
    assert "device=" in repr(tensor) or device == "cpu"
    assert "1.5000" in repr(tensor) and "nan" in repr(tensor)
    assert tensor[0].tolist() == [1.5, -2.0] and tensor[0, 1].item() == -2.0 and float(tensor[0, 0]) == 1.5
    assert bool(torch.tensor(True, device=device)) and int(torch.tensor(7, device=device)) == 7
    assert repr(torch.empty(0, 3, device=device)).startswith("tensor([]")
    assert "1000" in repr(torch.arange(10_000, device=device)[1000])
    assert "..." in repr(torch.arange(10_000, device=device))


def test_large_copy(device):
    host = torch.randint(-100, 100, (3_000_001,), dtype=torch.int16)
    assert torch.equal(host.to(device).cpu(), host)
    assert torch.equal(host[1:].to(device)[::2].cpu(), host[1::2])
