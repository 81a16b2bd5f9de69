"""Memory: counters that follow what is alive, peaks, pinned host memory, resizing, and what happens when the device fails meanwhile."""

import ctypes
import gc
import threading

import pytest
import torch
from support import cann_function, expect_output, run_python, stream_at_rest

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


GREEDY = {
    "resize_": "tensor.resize_(1 << 28)",
    "resize_, format": "tensor.resize_(1 << 10, 1 << 10, 16, 16, memory_format=torch.channels_last)",
    "set_, sizes": "tensor.set_(other.untyped_storage(), 0, (1 << 28,), (1,))",
    "set_, offset": "tensor.set_(other.untyped_storage(), 1 << 28, (3,), (1,))",
    "set_, strides": "tensor.set_(tensor.untyped_storage(), 0, (2, 2), (1 << 28, 1))",
    "resize_, negative": "tensor.resize_(-4)",
}


def test_out_of_memory_leaves_the_tensor_as_it_was(device):
    program = f"""
        import torch, torchtitan_npu
        for action in {list(GREEDY.values())!r}:
            tensor, other = torch.arange(4.0, device="npu"), torch.zeros(2, device="npu")
            try:
                exec(action)
            except (torch.OutOfMemoryError, RuntimeError) as error:
                assert isinstance(error, torch.OutOfMemoryError) or "-4" in action, error
            else:
                raise AssertionError(action)
            assert tensor.shape == (4,) and tensor.stride() == (1,) and tensor.storage_offset() == 0
            assert tensor.untyped_storage().nbytes() == 16 and other.untyped_storage().nbytes() == 8
            tensor += 1
            assert tensor.tolist() == [1.0, 2.0, 3.0, 4.0], action
        print("done")
    """
    assert expect_output(run_python(program, environment={"NPU_MEMORY_LIMIT": "64M"})) == ["done"]


def failed_task(device):
    """Queues work whose failure comes to light later."""
    torch.ones(5, 3, device=device).index_select(0, torch.tensor([9], device=device))


@pytest.mark.parametrize("where", ["empty_cache", "retry"])
def test_giving_memory_back_hides_no_failure(where, memory):
    cached = torch.ones(8 << 20, device="npu")
    del cached
    failed_task("npu")
    with pytest.raises(RuntimeError, match=r"(?i)index|out of (range|bounds)"):
        if where == "empty_cache":
            memory.empty_cache()
        else:
            torch.empty(memory.mem_get_info()[1] + 1, dtype=torch.uint8, device="npu")
    memory.synchronize()
    assert torch.ones(3, device="npu").sum().item() == 3.0


def test_giving_memory_back_keeps_nobody_from_allocating(memory):
    """The cache's lock is open while one thread waits for the device on its way to free segments."""
    waiting = threading.Event()

    def wait(real):
        waiting.set()
        return real()

    cached = torch.empty(8 << 20, device="npu")
    del cached
    with stream_at_rest() as go_on, cann_function("aclrtSynchronizeDevice") as calls:
        calls.append(wait)
        thread = threading.Thread(target=memory.empty_cache)
        thread.start()
        assert waiting.wait(60)
        torch.empty(1000, device="npu")
        assert thread.is_alive()
        go_on.set()
        thread.join()


def used_on_another_stream():
    tensor = torch.ones(1000, device="npu")
    tensor.record_stream(torch.npu.Stream())
    return tensor


def test_a_deleter_that_gets_no_event_waits_instead(memory):
    before = memory.memory_allocated()
    with cann_function("aclrtCreateEventWithFlag", ctypes.c_void_p, ctypes.c_uint32) as calls:
        tensor = used_on_another_stream()
        calls.append(lambda real, *arguments: 207001)
        del tensor
        assert calls == []
    assert memory.memory_allocated() == before
    first, second = torch.zeros(1000, device="npu"), torch.ones(1000, device="npu")
    assert first.data_ptr() != second.data_ptr() and first.sum().item() == 0.0


def test_an_event_that_cannot_be_queried_is_asked_again(memory):
    """A failing query must neither forget the events after it nor finish the ones before it twice."""
    destroyed = []

    def destroy(real, event):
        destroyed.append(event)
        return real(event)

    with (
        cann_function("aclrtQueryEventStatus", ctypes.c_void_p, ctypes.c_void_p) as queries,
        cann_function("aclrtDestroyEvent", ctypes.c_void_p) as destructions,
    ):
        tensors = [used_on_another_stream() for _ in range(3)]
        del tensors[:]
        memory.synchronize()
        destructions.extend([destroy] * 3)
        queries.extend([lambda real, *arguments: real(*arguments), lambda real, *arguments: 107000])
        with pytest.raises(RuntimeError, match="aclrtQueryEventStatus"):
            torch.empty(200_000, device="npu")
        assert len(destroyed) == 2
        torch.empty(200_000, device="npu")
        assert len(set(destroyed)) == len(destroyed) == 3


def test_free_parts_of_used_segments_are_counted(memory):
    """inactive_split: what can't be given back, because its segment is in use."""

    def cut_off():
        statistics = memory.memory_stats()
        return statistics["inactive_split.all.current"], statistics["inactive_split_bytes.all.current"]

    def releasable():
        reserved = memory.memory_reserved()
        memory.empty_cache()
        return reserved - memory.memory_reserved()

    releasable()
    blocks, size = cut_off()
    assert size == memory.memory_reserved() - memory.memory_allocated()
    kept = torch.empty(12 << 20, dtype=torch.uint8, device="npu"), torch.empty(3 << 20, dtype=torch.uint8, device="npu")
    assert cut_off()[1] == memory.memory_reserved() - memory.memory_allocated() >= 0
    small = [torch.empty(512 * number, dtype=torch.uint8, device="npu") for number in range(1, 50)]
    del small[::2]
    assert cut_off()[0] > blocks and cut_off()[1] == memory.memory_reserved() - memory.memory_allocated()
    assert "Non-releasable memory" in memory.memory_summary()
    del small, kept
    releasable()
    assert cut_off() == (blocks, size)
    memory.reset_peak_memory_stats()
    assert memory.memory_stats()["inactive_split_bytes.all.peak"] == size


def test_pinned_memory_keeps_one_event_a_stream(device):
    """A buffer that a loader copies from for ever."""
    made = []

    def make(real, *arguments):
        made.append(arguments)
        return real(*arguments)

    pinned, target = torch.arange(6.0).pin_memory(), torch.zeros(6, device=device)
    with cann_function("aclrtCreateEventWithFlag", ctypes.c_void_p, ctypes.c_uint32) as calls:
        calls.extend([make] * 100)
        for _ in range(100):
            target.copy_(pinned, non_blocking=True)
    assert len(made) == 1 and target.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_pinned_memory_is_counted(device):
    def counters():
        return torch.npu.host_memory_stats()

    torch.npu.host_empty_cache()
    before = counters()
    pinned = torch.empty(5000, dtype=torch.uint8, pin_memory=True)
    during = counters()
    assert during["active_requests.current"] == before["active_requests.current"] + 1
    assert during["active_bytes.current"] == before["active_bytes.current"] + 8192
    assert during["allocated_bytes.current"] == before["allocated_bytes.current"] + 8192
    assert during["num_host_alloc"] == before["num_host_alloc"] + 1
    del pinned
    assert counters()["active_bytes.current"] == before["active_bytes.current"]
    assert counters()["allocated_bytes.current"] == during["allocated_bytes.current"]
    torch.npu.host_empty_cache()
    assert counters()["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert counters()["num_host_free"] > before["num_host_free"]


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
