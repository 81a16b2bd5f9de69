"""Nothing grows: memory, descriptors, threads and allocator bytes after many steps and after many failing calls.

`make test` takes a tenth of the steps, `make test-all` all of them.
"""

import gc
import threading

import pytest
import torch
from support import footprint
from torch import nn

MEBIBYTE = 1 << 20


def assert_no_growth(action, device, early, late):
    for _ in range(early):
        action()
    before = footprint(device)
    for _ in range(late - early):
        action()
    after = footprint(device)
    assert after[1:] == before[1:], f"descriptors, threads, allocator bytes: {before[1:]}, then {after[1:]}"
    assert after[0] - before[0] <= MEBIBYTE, f"resident memory grew by {(after[0] - before[0]) / MEBIBYTE:.2f} MiB"


def training_step(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    inputs, labels = torch.randn(8, 10), torch.randint(0, 3, (8,))

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def failing_call(device):
    wrong, right = torch.tensor([0, 9]).to(device), torch.ones(5, 3).to(device)
    calls = [
        lambda: right + torch.ones(4, 4, device=device),
        lambda: right @ right,
        lambda: right.index_select(0, wrong).cpu(),
        lambda: nn.functional.embedding(wrong, right).cpu(),
        lambda: torch.empty(1 << 50, device=device),
    ]
    number = 0

    def fail():
        nonlocal number
        number += 1
        with pytest.raises((RuntimeError, IndexError)):
            calls[number % len(calls)]()

    return fail


@pytest.mark.npu_only
def test_a_missing_workspace_leaks_no_executor(device):
    """Out of memory between the two phases of an operator: phase 2, which gives the executor back, isn't reached."""
    gc.collect()
    torch.npu.empty_cache()  # a large block that an earlier test left would hold the tensors, and room for the workspace
    out, index = torch.zeros(1 << 20, device=device), torch.zeros(1 << 20, dtype=torch.int64, device=device)
    source = torch.ones(1 << 20, device=device)
    torch.npu.empty_cache()

    def fail():
        with pytest.raises(torch.OutOfMemoryError):
            torch.scatter_reduce(out, 0, index, source, "mean", out=out)

    torch.npu.set_per_process_memory_fraction(0.0)
    try:
        assert_no_growth(fail, device, 500, 2500)
    finally:
        torch.npu.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("kind", ["training", "failing"])
def test_nothing_grows(kind, device):
    assert_no_growth((training_step if kind == "training" else failing_call)(device), device, 500, 1500)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["training", "failing"])
def test_nothing_grows_in_ten_thousand_steps(kind, device):
    assert_no_growth((training_step if kind == "training" else failing_call)(device), device, 1000, 10_000)


@pytest.mark.npu_only
def test_streams_events_and_threads_come_and_go(device):
    def use():
        stream, event = torch.npu.Stream(), torch.npu.Event(enable_timing=True)
        with torch.npu.stream(stream):
            value = torch.ones(100, device=device) * 2
            event.record()
        event.synchronize()
        pinned = value.cpu().pin_memory()
        thread = threading.Thread(target=lambda: pinned.to(device, non_blocking=True).sum().item())
        thread.start()
        thread.join()

    assert_no_growth(use, device, 200, 600)
