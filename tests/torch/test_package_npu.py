"""torch.npu's functions: the names that torch looks up and those that torch_npu's users call, with values and errors."""

import re
import threading

import pytest
import torch

ERROR_LINE = re.compile(r"\n\[ERROR\] \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d \(PID:\d+, Device:-?\d+, RankID:-?\d+\) ERR\d{5} \w+ .+$")
LOOKED_UP_BY_TORCH = """
    _lazy_init _is_in_bad_fork manual_seed_all get_rng_state set_rng_state device _initialized device_count is_available _utils
    get_amp_supported_dtype current_stream stream Stream Event is_initialized set_device synchronize current_device memory_summary
    memory_allocated memory_reserved memory_stats
"""
USED_WITH_TORCH_NPU = """
    init device_of get_device_name get_device_properties get_device_capability mem_get_info can_device_access_peer StreamContext set_stream
    default_stream max_memory_allocated max_memory_reserved memory_cached max_memory_cached memory_stats_as_nested_dict
    reset_peak_memory_stats reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached empty_cache host_empty_cache
    set_per_process_memory_fraction get_per_process_memory_fraction get_allocator_backend manual_seed seed seed_all initial_seed
    get_rng_state_all set_rng_state_all FloatTensor HalfTensor BFloat16Tensor LongTensor amp memory random is_bf16_supported
    is_autocast_enabled set_autocast_enabled get_autocast_dtype set_autocast_dtype
"""


@pytest.fixture(autouse=True)
def first_device():
    torch.npu.set_device(0)
    yield
    torch.npu.set_device(0)


@pytest.mark.parametrize("name", (LOOKED_UP_BY_TORCH + USED_WITH_TORCH_NPU).split())
def test_name_exists(name):
    assert hasattr(torch.npu, name)


def test_everything_public_is_listed_and_there():
    assert sorted(torch.npu.__all__) == sorted(set(torch.npu.__all__))
    assert [name for name in torch.npu.__all__ if not hasattr(torch.npu, name)] == []


@pytest.mark.parametrize("device", [99, "npu:99", torch.device("npu", 99), 127])
@pytest.mark.parametrize(
    "function", ["set_device", "synchronize", "get_device_name", "get_device_properties", "memory_allocated", "current_stream", "get_rng_state"]
)
def test_an_index_out_of_range_names_device_and_range(function, device):
    last = torch.npu.device_count() - 1
    index = device if isinstance(device, int) else torch.device(device).index
    with pytest.raises(RuntimeError, match=f"Invalid device id: npu:{index}; .*allowed are 0 to {last}") as caught:
        getattr(torch.npu, function)(device)
    assert ERROR_LINE.search(str(caught.value))
    assert torch.npu.current_device() == 0


@pytest.mark.parametrize(
    ("device", "kind"), [("cuda:0", ValueError), (torch.device("cpu"), ValueError), (1.5, TypeError), (True, TypeError), ([0], TypeError)]
)
def test_what_is_no_npu_device_is_refused(device, kind):
    with pytest.raises(kind, match=r"npu|int, a str or a torch\.device"):
        torch.npu.set_device(device)
    assert torch.npu.current_device() == 0


def test_negative_index_changes_nothing():
    torch.npu.set_device(-1)
    with torch.npu.device(-1):
        assert torch.npu.current_device() == 0


def test_contexts_nest_and_restore_after_an_error():
    last = torch.npu.device_count() - 1
    with pytest.raises(KeyError), torch.npu.device(last):
        assert torch.npu.current_device() == last
        with torch.npu.device_of(torch.ones(1)):
            assert torch.npu.current_device() == last
        with torch.npu.device_of(torch.ones(1, device="npu:0")):
            assert torch.npu.current_device() == 0
        raise KeyError
    assert torch.npu.current_device() == 0


def test_current_device_is_a_threads_own():
    last = torch.npu.device_count() - 1
    torch.npu.set_device(last)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.npu.current_device()))
    thread.start()
    thread.join()
    assert seen == [0] and torch.npu.current_device() == last


def test_capability_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv("TORCH_NPU_DEVICE_CAPABILITY", raising=False)
    assert torch.npu.get_device_capability() is None
    monkeypatch.setenv("TORCH_NPU_DEVICE_CAPABILITY", "8.0")
    assert torch.npu.get_device_capability(0) == (8, 0)


def test_error_line_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("TORCH_NPU_COMPACT_ERROR_OUTPUT", "1")
    with pytest.raises(RuntimeError) as caught:
        torch.npu.set_device(99)
    assert "ERR" not in str(caught.value)


def test_stream_forms():
    last = torch.npu.device_count() - 1
    assert torch.npu.Stream().device == torch.device("npu", 0)
    assert torch.npu.Stream(last).device.index == last
    assert torch.npu.Stream(f"npu:{last}").device.index == last
    assert torch.npu.Stream(device=torch.device("npu", last), priority=-1).device.index == last
    stream = torch.npu.Stream()
    same = torch.npu.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
    assert same == stream and hash(same) == hash(stream) and isinstance(stream, torch.Stream)
    assert stream != torch.npu.default_stream() and stream.npu_stream != 0
    assert torch.npu.current_stream() == torch.npu.default_stream() and isinstance(torch.npu.current_stream(), torch.npu.Stream)
    assert "npu" in repr(stream)


def test_stream_context_of_another_device_restores_both():
    last = torch.npu.device_count() - 1
    side, before = torch.npu.Stream(last), torch.npu.current_stream(last)
    with torch.npu.stream(side):
        assert torch.npu.current_device() == last and torch.npu.current_stream() == side
        assert torch.npu.current_stream(0) == torch.npu.default_stream(0)
        with torch.npu.stream(None):
            assert torch.npu.current_stream() == side
    assert torch.npu.current_device() == 0 and torch.npu.current_stream(last) == before
    torch.npu.set_stream(side)
    assert torch.npu.current_device() == last
    torch.npu.set_stream(torch.npu.default_stream(last))


def test_event_forms():
    first, last = torch.npu.Event(enable_timing=True), torch.npu.Event(True)
    assert isinstance(first, torch.Event) and isinstance(first, torch.npu.Event) and first.device.type == "npu"
    assert issubclass(torch.npu.Event, torch.Event) and not isinstance(torch.npu.Stream(), torch.npu.Event)
    assert first.query()
    first.record()
    torch.accelerator.current_stream().record_event(last)
    last.synchronize()
    assert first.elapsed_time(last) >= 0
    assert torch.npu.current_stream().record_event().device.index == 0
    last.wait(torch.npu.Stream())
    with pytest.raises(NotImplementedError, match="interprocess"):
        torch.npu.Event(interprocess=True)


def test_statistics_nest_as_their_names_say():
    keep = torch.ones(1000, device="npu")
    flat, nested = torch.npu.memory_stats(), torch.npu.memory_stats_as_nested_dict()
    assert list(flat) == sorted(flat)
    assert nested["allocated_bytes"]["all"]["current"] == flat["allocated_bytes.all.current"] >= keep.nbytes
    assert isinstance(nested["num_ooms"], int)
    summary = torch.npu.memory_summary()
    assert "Allocated memory" in summary and "large pool" in summary and "large pool" not in torch.npu.memory_summary(abbreviated=True)


@pytest.mark.parametrize(("fraction", "kind"), [(1.5, ValueError), (-0.1, ValueError), ("half", TypeError), (True, TypeError)])
def test_bad_memory_fraction_is_refused(fraction, kind):
    with pytest.raises(kind, match="fraction"):
        torch.npu.set_per_process_memory_fraction(fraction)
    assert torch.npu.get_per_process_memory_fraction() == 1.0


def test_old_names_of_memory_functions_warn():
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert torch.npu.memory_cached() == torch.npu.memory_reserved()


def test_seeds_of_all_devices():
    torch.npu.manual_seed_all(7)
    states = torch.npu.get_rng_state_all()
    assert len(states) == torch.npu.device_count() and all(state.device.type == "cpu" and state.dtype == torch.uint8 for state in states)
    assert {generator.initial_seed() for generator in torch.npu.default_generators} == {7}
    torch.npu.manual_seed(8)
    assert torch.npu.initial_seed() == 8 and torch.equal(torch.npu.get_rng_state("npu:1"), states[1])
    torch.npu.set_rng_state_all(states)
    assert torch.npu.initial_seed() == 7
    torch.npu.seed_all()
    assert len({generator.initial_seed() for generator in torch.npu.default_generators}) == 1
    torch.manual_seed(5)
    assert torch.npu.initial_seed() == 5


def test_fork_rng_reaches_the_device():
    torch.manual_seed(3)
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        inside = torch.rand(4, device="npu")
    assert torch.equal(torch.rand(4, device="npu"), inside)


def test_legacy_types():
    tensor = torch.npu.FloatTensor([1, 2])
    assert tensor.tolist() == [1.0, 2.0] and tensor.type() == "torch.npu.FloatTensor"
    assert (
        isinstance(tensor, torch.npu.FloatTensor)
        and not isinstance(tensor, torch.npu.HalfTensor)
        and not isinstance(torch.ones(1), torch.npu.FloatTensor)
    )
    assert torch.npu.LongTensor(2, 3).shape == (2, 3)
    assert tensor.type(torch.float16).type() == "torch.npu.HalfTensor"
    assert torch.ones(2).type("torch.npu.IntTensor").type() == "torch.npu.IntTensor"
    assert torch.ones(2).type(torch.npu.DoubleTensor).dtype == torch.float64
    assert tensor.type("torch.DoubleTensor").device.type == "cpu"
    assert torch.ones(2).type() == "torch.FloatTensor" and torch.ones(2).type(torch.int32).dtype == torch.int32


def test_dlpack_between_npu_tensors():
    tensor = torch.arange(4.0, device="npu")
    assert tensor.__dlpack_device__()[1] == 0
    other = torch.from_dlpack(tensor)
    other.add_(1)
    assert tensor.tolist() == [1.0, 2.0, 3.0, 4.0] and other.data_ptr() == tensor.data_ptr()


def test_autocast_state_and_scaler():
    assert torch.npu.get_amp_supported_dtype() == [torch.float16, torch.bfloat16]
    assert not torch.npu.is_autocast_enabled()
    with torch.npu.amp.autocast(dtype=torch.bfloat16):
        assert torch.npu.is_autocast_enabled() and torch.npu.get_autocast_dtype() == torch.bfloat16
    with torch.autocast("npu", enabled=False):
        assert not torch.npu.is_autocast_enabled()
    weight = torch.nn.Parameter(torch.ones(3, device="npu"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.npu.amp.GradScaler(init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    assert weight.grad.tolist() == [4.0, 4.0, 4.0]
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [0.0, 0.0, 0.0]


def test_autocast_functions_of_an_own_operator():
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.npu.amp.custom_fwd
        def forward(context, values):
            return values * 2

        @staticmethod
        @torch.npu.amp.custom_bwd
        def backward(context, gradient):
            return gradient * 2

    values = torch.ones(2, device="npu", requires_grad=True)
    Double.apply(values).sum().backward()
    assert values.grad.tolist() == [2.0, 2.0]
