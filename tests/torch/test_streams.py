"""Streams and events: order, time, reuse of memory across streams, the generic torch.Stream and torch.Event."""

import threading

import pytest
import torch
from support import stream_at_rest

pytestmark = pytest.mark.npu_only


def long_work(size=512, rounds=20):
    """Something that keeps a stream busy for some milliseconds; its result is `rounds` everywhere."""
    value, identity = torch.zeros(size, size, device="npu"), torch.eye(size, device="npu")
    for _ in range(rounds):
        value = (value + 1) @ identity
    return value


def test_stream_context(device):
    stream = torch.npu.Stream()
    default = torch.npu.current_stream()
    assert default == torch.npu.default_stream() and stream != default
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        with torch.npu.stream(None):
            assert torch.npu.current_stream() == stream
    assert torch.npu.current_stream() == default
    torch.npu.set_stream(stream)
    assert torch.npu.current_stream() == stream
    torch.npu.set_stream(default)


def test_wait_stream_and_wait_event_order_work(device):
    stream, default = torch.npu.Stream(), torch.npu.current_stream()
    begin, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    stream.wait_stream(default)
    with torch.npu.stream(stream):
        begin.record()
        value = long_work()
        end.record()
    default.wait_event(end)
    assert (value == 20).all().item()
    end.synchronize()
    assert begin.query() and end.query() and stream.query()
    assert 0 < begin.elapsed_time(end) < 60_000


def test_event_of_a_busy_stream(device):
    event = torch.npu.Event()
    assert event.query(), "an event that was never recorded counts as done"
    value = long_work(rounds=60)
    event.record()
    event.synchronize()
    assert event.query() and (value == 60).all().item()


def test_event_needs_timing_to_measure(device):
    begin, end = torch.npu.Event(), torch.npu.Event()
    begin.record()
    end.record()
    torch.npu.synchronize()
    with pytest.raises((RuntimeError, ValueError), match=r"(?i)timing|time"):
        begin.elapsed_time(end)


def test_launch_does_not_wait(device):
    with stream_at_rest():
        value = long_work(rounds=40)
        assert not torch.npu.current_stream().query()
    assert (value == 40).all().item()


def test_generic_stream_and_event(device):
    stream = torch.Stream(device)
    assert stream.device == torch.device(device, 0)
    event = torch.Event(device)
    with stream:
        assert torch.accelerator.current_stream() == stream
        value = long_work(size=64)
        event.record(stream)
    event.synchronize()
    assert event.query() and event.device.type == device
    assert (value == 20).all().item()
    stream.synchronize()
    assert stream.query()


def test_priorities_and_many_streams(device):
    streams = [torch.npu.Stream(priority=priority) for priority in (0, -1) for _ in range(20)]
    results = []
    for number, stream in enumerate(streams):
        stream.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(stream):
            results.append(torch.full((1000,), float(number), device=device) * 2)
    torch.npu.synchronize()
    assert [result[-1].item() for result in results] == [2.0 * number for number in range(40)]


def test_record_stream_keeps_a_block_from_its_reader(device):
    stream, default = torch.npu.Stream(), torch.npu.current_stream()
    for number in range(20):
        source = torch.full((1 << 18,), float(number), device=device)
        stream.wait_stream(default)
        with torch.npu.stream(stream):
            value = source
            for _ in range(10):
                value = value + 0.0
            result = value.clone()
        source.record_stream(stream)
        del source, value
        junk = [torch.full((1 << 18,), -1.0, device=device) for _ in range(4)]
        default.wait_stream(stream)
        assert (result == number).all().item()
        del junk


def test_reuse_on_one_stream_needs_no_wait(device):
    total = torch.zeros((), device=device, dtype=torch.float64)
    for number in range(500):
        total = total + torch.full((5000,), float(number), device=device).sum(dtype=torch.float64)
    assert total.item() == 5000.0 * 499 * 500 / 2


def test_pinned_blocks_are_not_reused_while_a_copy_reads_them(device):
    stream, results = torch.npu.Stream(), []
    with torch.npu.stream(stream):
        busy = long_work(rounds=40)
        for number in range(30):
            host = torch.full((1 << 16,), float(number)).pin_memory()
            results.append(host.to(device, non_blocking=True))
            del host
    stream.synchronize()
    assert [(result == number).all().item() for number, result in enumerate(results)] == [True] * 30
    assert (busy == 40).all().item()


def test_many_threads_on_one_stream(device):
    sums = torch.zeros(8)

    def work(number):
        value = torch.zeros(100, device=device)
        for _ in range(300):
            value = value + 1
        sums[number] = value.sum().item()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sums.tolist() == [30000.0] * 8


def test_threads_have_their_own_current_stream(device):
    stream, seen = torch.npu.Stream(), []
    with torch.npu.stream(stream):
        thread = threading.Thread(target=lambda: seen.append(torch.npu.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.npu.default_stream()]


def test_backward_runs_on_the_forward_stream(device):
    stream = torch.npu.Stream()
    leaf = torch.ones(300, 300, device=device, requires_grad=True)
    stream.wait_stream(torch.npu.current_stream())
    with torch.npu.stream(stream):
        loss = (leaf @ torch.eye(300, device=device) * 3).sum()
    torch.npu.current_stream().wait_stream(stream)
    loss.backward()
    assert (leaf.grad == 3).all().item()


def test_a_completed_last_event_means_an_idle_stream(device):
    stream, event = torch.npu.Stream(), torch.npu.Event()
    for _ in range(300):
        with torch.npu.stream(stream):
            torch.ones(20_000, device=device)
            event.record()
        event.synchronize()
        assert stream.query()


def test_tensors_shared_with_a_stream_may_be_dropped_by_any_thread(device):
    stream = torch.npu.Stream()
    tensors = [torch.ones(100_000, device=device) for _ in range(3)]
    pinned = [tensor.cpu().pin_memory() for tensor in tensors]
    for tensor in tensors:
        tensor.record_stream(stream)
    thread = threading.Thread(target=lambda: (tensors.clear(), pinned.clear()))
    thread.start()
    thread.join()
    assert torch.ones(100_000, device=device).sum().item() == 100_000


def test_backward_runs_in_its_caller_and_in_other_threads():
    seen = []
    tensor = torch.ones(8, device="npu", requires_grad=True)

    def step():
        doubled = tensor * 2
        doubled.register_hook(lambda grad: seen.append(threading.get_ident()))
        doubled.sum().backward()
        return threading.get_ident()

    assert step() == seen[0]
    other = threading.Thread(target=step)
    other.start()
    other.join()
    assert len(seen) == 2
    assert torch.equal(tensor.grad.cpu(), torch.full((8,), 4.0))
