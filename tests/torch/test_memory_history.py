"""The allocator's history and snapshot: what torch's memory viewer reads."""

import pickle
import threading

import pytest
import torch

pytestmark = pytest.mark.npu_only
SIZE = 3 << 20


@pytest.fixture
def recording():
    """Records everything for one test."""
    memory = torch.npu.memory
    memory._record_memory_history(max_entries=1000, clear_history=True)
    yield memory
    memory._record_memory_history(enabled=None, clear_history=True)


def events(memory, action):
    return [event for event in memory._snapshot()["device_traces"][0] if event["action"] == action]


def blocks(memory, state):
    return [block for segment in memory._snapshot()["segments"] for block in segment["blocks"] if block["state"] == state]


def test_an_allocation_and_a_free_have_sizes_and_stacks(recording, device):
    tensor = torch.zeros(SIZE, dtype=torch.uint8, device=device)
    address = tensor.untyped_storage().data_ptr()
    (block,) = [block for block in blocks(recording, "active_allocated") if block["address"] == address]
    assert block["requested_size"] == SIZE and block["size"] >= SIZE
    assert any(frame["filename"] == __file__ and "stacks" in frame["name"] for frame in block["frames"])
    del tensor
    for action in ("alloc", "free_requested", "free_completed"):
        (event,) = [event for event in events(recording, action) if event["addr"] == address]
        assert event["size"] == block["size"] and event["time_us"] > 0 and event["stream"] == 0
        assert any(frame["filename"] == __file__ for frame in event["frames"])
    assert address not in [block["address"] for block in blocks(recording, "active_allocated")]


def test_segments_add_up_to_the_counters(device):
    keep = [torch.zeros(n, device=device) for n in (10, 1000, 300_000, 5_000_000)]
    keep.pop(1)
    segments = torch.npu.memory_snapshot()
    assert sum(segment["total_size"] for segment in segments) == torch.npu.memory_reserved()
    assert sum(segment["allocated_size"] for segment in segments) == torch.npu.memory_allocated()
    for segment in segments:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        assert [block["address"] for block in segment["blocks"]] == sorted(block["address"] for block in segment["blocks"])


def test_segments_survive_cutting_and_merging(device):
    """A block that merges into its neighbour may have been the first of its segment."""
    for seed in range(3):
        torch.manual_seed(seed)
        tensors = [torch.empty(int(n), dtype=torch.uint8, device=device) for n in torch.randint(200_000, 900_000, (40,))]
        for index in torch.randperm(40).tolist():
            tensors[index] = None
            assert sum(segment["total_size"] for segment in torch.npu.memory_snapshot()) == torch.npu.memory_reserved()
        torch.npu.empty_cache()
        assert sum(segment["total_size"] for segment in torch.npu.memory_snapshot()) == torch.npu.memory_reserved()


def test_segment_events(recording, device):
    torch.npu.empty_cache()
    tensor = torch.empty(40 << 20, dtype=torch.uint8, device=device)
    address = tensor.data_ptr()
    del tensor
    torch.npu.empty_cache()
    for action in ("segment_alloc", "segment_free"):
        assert (address, 40 << 20) in [(event["addr"], event["size"]) for event in events(recording, action)]


def test_running_out_of_memory_is_an_event(recording, device):
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 50, dtype=torch.uint8, device=device)
    (event,) = events(recording, "oom")
    assert event["size"] == 1 << 50 and event["device_free"] > 0
    assert any(frame["filename"] == __file__ for frame in event["frames"])


def test_memory_that_another_stream_uses_awaits_its_free(recording, device):
    side = torch.npu.Stream()
    tensor = torch.zeros(SIZE, dtype=torch.uint8, device=device)
    tensor.record_stream(side)
    address = tensor.data_ptr()
    del tensor
    torch.npu.synchronize()
    torch.empty(20 * SIZE, dtype=torch.uint8, device=device)  # looks at the events of held blocks
    trace = [event for event in recording._snapshot()["device_traces"][0] if event.get("addr") == address]
    actions = [event["action"] for event in trace if not event["action"].startswith("segment")]
    assert actions[:3] == ["alloc", "free_requested", "free_completed"]


def test_max_entries_keeps_the_latest(device):
    memory = torch.npu.memory
    memory._record_memory_history(max_entries=5, context=None, clear_history=True)
    try:
        for _ in range(20):
            torch.zeros(10, device=device)
        trace = memory._snapshot()["device_traces"][0]
        assert len(trace) == 5 and trace[-1]["action"] == "free_completed" and trace[-1]["frames"] == []
    finally:
        memory._record_memory_history(enabled=None, clear_history=True)


def test_off_records_nothing(device):
    memory = torch.npu.memory
    memory._record_memory_history(enabled=None, clear_history=True)
    torch.zeros(10, device=device)
    assert memory._snapshot()["device_traces"][0] == []


def test_dump_and_torchs_own_tools_read_it(recording, device, tmp_path):
    from torch.cuda import _memory_viz

    keep = torch.zeros(SIZE, dtype=torch.uint8, device=device)
    recording._dump_snapshot(str(tmp_path / "memory.pickle"))
    snapshot = pickle.loads((tmp_path / "memory.pickle").read_bytes())
    assert "allocated" in _memory_viz.segsum(snapshot)
    assert "TOTAL MEM: 3.0MiB" in _memory_viz.trace(snapshot)
    assert keep.numel() == SIZE


def test_threads_record_without_blocking_each_other(recording, device):
    """Gathering a stack takes Python's lock; the allocator's isn't held meanwhile."""

    def work():
        for _ in range(200):
            torch.zeros(100, device=device)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        recording._snapshot()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("options", [{"enabled": "some"}, {"context": "free"}, {"stacks": "none"}])
def test_wrong_options_are_named(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be one of .* but got"):
        torch.npu.memory._record_memory_history(**options)


def test_max_entries_must_be_positive():
    with pytest.raises(RuntimeError, match="max_entries must be 1 or more, but got 0"):
        torch.npu.memory._record_memory_history(max_entries=0)
