"""Memory: counters that follow what is alive, peaks, pinned host memory, resizing."""

import gc

import pytest
import torch

pytestmark = pytest.mark.npu_only


@pytest.fixture
def memory(device):
    gc.collect()
    torch.npu.synchronize()
    torch.npu.empty_cache()
    return torch.npu


@pytest.mark.parametrize("module", ["npu", "accelerator"])
def test_counters_follow_the_tensors(module, memory):
    counters = getattr(torch, module)
    before = counters.memory_allocated()
    tensor = torch.zeros(1 << 20, device="npu")
    assert 4 << 20 <= counters.memory_allocated() - before < 5 << 20
    assert counters.memory_reserved() >= counters.memory_allocated()
    peak = counters.max_memory_allocated()
    del tensor
    assert counters.memory_allocated() == before
    assert counters.max_memory_allocated() == peak
    counters.reset_peak_memory_stats()
    assert counters.max_memory_allocated() < peak


def test_empty_cache_returns_memory(memory):
    free_before = memory.mem_get_info()[0]
    tensor = torch.ones(64 << 20, device="npu")
    assert memory.mem_get_info()[0] <= free_before - (256 << 20)
    del tensor
    memory.empty_cache()
    assert memory.mem_get_info()[0] >= free_before - (32 << 20)


def test_a_view_keeps_the_block(memory):
    before = memory.memory_allocated()
    whole = torch.arange(1 << 20, device="npu", dtype=torch.float32)
    part = whole[-4:]
    del whole
    assert memory.memory_allocated() - before >= 4 << 20
    assert part.tolist() == [float((1 << 20) - number) for number in (4, 3, 2, 1)]


def test_statistics_and_summary(memory):
    tensor = torch.ones(1000, device="npu")
    statistics = memory.memory_stats()
    assert statistics["allocated_bytes.all.current"] == memory.memory_allocated() >= 4000
    assert statistics["allocation.all.allocated"] >= statistics["allocation.all.freed"]
    assert "npu" in memory.memory_summary().lower()
    del tensor


def test_storage_resize_and_set(memory):
    tensor = torch.arange(6.0, device="npu")
    tensor.untyped_storage().resize_(0)
    assert tensor.untyped_storage().nbytes() == 0
    tensor.untyped_storage().resize_(24)
    tensor.copy_(torch.arange(6.0))
    assert tensor.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    grown = torch.arange(3.0, device="npu").resize_(5)
    assert grown.shape == (5,) and grown[:3].tolist() == [0.0, 1.0, 2.0]


def test_pinned_memory(device):
    plain = torch.arange(6.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned() and not plain.is_pinned() and torch.equal(pinned, plain)
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert pinned[2:5].is_pinned()
    back = torch.ones(4, device=device).to("cpu", non_blocking=True)
    torch.npu.synchronize()
    assert back.sum().item() == 4.0
    target = torch.empty(6, pin_memory=True)
    target.copy_(pinned.to(device, non_blocking=True) * 2, non_blocking=True)
    torch.npu.synchronize()
    assert target.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_empty_tensors_take_nothing(memory):
    before = memory.memory_allocated()
    empty = torch.empty(0, 5, device="npu")
    assert memory.memory_allocated() == before
    assert (empty + 1).shape == (0, 5) and empty.sum().item() == 0 and empty.cpu().shape == (0, 5)
    assert torch.cat([empty, torch.ones(1, 5, device="npu")]).shape == (1, 5)
