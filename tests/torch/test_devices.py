"""Naming, choosing and asking for devices: every form a script may use, and what happens before the first use."""

import pytest
import torch
from conftest import DEVICE
from support import expect_output, run_python
from torch import nn

if DEVICE == "npu":
    from torchtitan_npu import _bridge

pytestmark = pytest.mark.npu_only


@pytest.fixture
def last():
    """The last card's index; the current device is 0 again afterwards."""
    yield torch.npu.device_count() - 1
    torch.npu.set_device(0)


@pytest.mark.parametrize("form", ["npu", "npu:0", ("npu",), ("npu", 0), 0], ids=str)
def test_all_names_of_the_first_device(form, device):
    form = torch.device(*form) if isinstance(form, tuple) else form
    assert torch.ones(2).to(form).device == torch.device("npu", 0)
    assert torch.empty(2, device=form).device == torch.device("npu", 0)
    assert nn.Linear(2, 2).to(form).weight.device == torch.device("npu", 0)


def test_methods_and_flags(device):
    tensor = torch.arange(3.0)
    moved = tensor.npu()
    assert moved.is_npu and not tensor.is_npu and not moved.is_cuda
    assert moved.device == torch.device("npu", torch.npu.current_device())
    assert nn.Linear(2, 2).npu().weight.is_npu
    assert moved.untyped_storage().is_npu and moved.untyped_storage().device.type == "npu"
    assert moved.type() == "torch.npu.FloatTensor"
    assert tensor.npu(0).is_npu


def test_set_device_takes_all_forms(last, device):
    for form in (last, f"npu:{last}", torch.device("npu", last)):
        torch.npu.set_device(0)
        torch.npu.set_device(form)
        assert torch.npu.current_device() == last
        assert torch.ones(1, device="npu").device.index == last


def test_device_context_restores(last, device):
    with torch.npu.device(last):
        assert torch.npu.current_device() == last
        other = torch.ones(2, device="npu")
    assert torch.npu.current_device() == 0
    with torch.npu.device_of(other):
        assert torch.npu.current_device() == last
    assert torch.npu.current_device() == 0


def test_tensors_on_two_devices(last, device):
    if last == 0:
        pytest.skip("one device")
    first, second = torch.arange(5.0, device="npu:0"), torch.arange(5.0, device=f"npu:{last}") * 2
    assert (second + 1).tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert torch.equal(second.to("npu:0"), first * 2)
    first.copy_(second)
    assert first.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0]


NO_DEVICE = {
    "accelerator.memory_stats": lambda index: torch.accelerator.memory_stats(index),
    "accelerator.reset_peak_memory_stats": lambda index: torch.accelerator.reset_peak_memory_stats(index),
    "accelerator.current_stream": lambda index: torch.accelerator.current_stream(index),
    "accelerator.synchronize": lambda index: torch.accelerator.synchronize(index),
    "memory_stats": lambda index: _bridge.memory_stats(index),
    "memory_info": lambda index: _bridge.memory_info(index),
    "set_device": lambda index: _bridge.set_device(index),
    "set_memory_fraction": lambda index: _bridge.set_memory_fraction(0.5, index),
    "properties": lambda index: _bridge.properties(index),
    "default_generator": lambda index: _bridge.default_generator(index),
    "stream_pointer": lambda index: _bridge.stream_pointer(0, index),
    "Stream": lambda index: torch.Stream(device=torch.device("npu", index)),
    "Generator": lambda index: torch.Generator(torch.device("npu", index)),
}


@pytest.mark.parametrize("index", [8, 63, 64, 99, 127, 256, (1 << 40) + 1, -2])
@pytest.mark.parametrize("name", NO_DEVICE)
def test_a_device_that_is_not_there_is_refused_everywhere(name, index, device):
    if index > 127 and name in ("Stream", "Generator"):
        pytest.skip("torch.device itself cuts the number down to 8 bits")
    with pytest.raises((RuntimeError, ValueError, OverflowError, TypeError)) as caught:
        NO_DEVICE[name](index)
    if index in (8, 99):
        assert f"Invalid device id: npu:{index}; this process sees 8 device(s)" in str(caught.value)


def test_a_stream_that_is_not_there_cannot_become_current(device):
    unknown = torch.Stream(stream_id=1000, device_index=0, device_type=torch.npu.current_stream().device_type)
    with pytest.raises(RuntimeError, match="no stream with id 1000"):
        torch.accelerator.set_stream(unknown)
    assert torch.npu.current_stream().stream_id == 0


def test_properties_agree(device):
    properties = torch.npu.get_device_properties(0)
    free, total = torch.npu.mem_get_info(0)
    assert properties.name == torch.npu.get_device_name(0) != ""
    assert 0 < free <= total and abs(total - properties.total_memory) <= 0.1 * total


def test_accelerator_interface(device):
    accelerator = torch.accelerator
    assert accelerator.current_accelerator().type == "npu"
    assert accelerator.is_available() and accelerator.device_count() == torch.npu.device_count()
    accelerator.set_device_index(0)
    assert accelerator.current_device_index() == 0
    accelerator.synchronize()
    assert accelerator.current_stream().device.type == "npu"


def test_default_device_reaches_all_factories(device):
    with torch.device("npu"):
        made = [
            torch.arange(4),
            torch.linspace(0, 1, 5),
            torch.eye(3),
            torch.tensor([1.5]),
            torch.full((2,), 7),
            torch.randperm(5),
            torch.tril_indices(3, 3),
            torch.zeros(2).new_ones(2),
            torch.hann_window(4),
            torch.rand(3),
            torch.empty_strided((2, 2), (1, 2)),
        ]
        layers = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    assert {tensor.device.type for tensor in [*made, *layers.parameters(), *layers.buffers()]} == {"npu"}
    wanted = [torch.arange(4), torch.linspace(0, 1, 5), torch.eye(3), torch.tensor([1.5]), torch.full((2,), 7)]
    for tensor, want in zip(made[:5], wanted, strict=True):
        torch.testing.assert_close(tensor.cpu(), want)
    torch.testing.assert_close(made[6].cpu(), torch.tril_indices(3, 3))
    torch.testing.assert_close(made[8].cpu(), torch.hann_window(4))


def test_set_default_device_and_back(device):
    program = """
        import torch, torchtitan_npu
        torch.set_default_device("npu")
        print(torch.ones(1).device.type)
        torch.set_default_device("cpu")
        print(torch.ones(1).device.type)
    """
    assert expect_output(run_python(program)) == ["npu", "cpu"]


def test_questions_do_not_start_the_runtime():
    program = """
        import threading, torch, torchtitan_npu
        assert torch.npu.is_available() and torch.npu.device_count() >= 1
        assert torch.accelerator.is_available() and torch.accelerator.device_count() >= 1
        torch.manual_seed(1)
        print(torch.npu.is_initialized())
        torch.zeros(1, device="npu")
        print(torch.npu.is_initialized())
    """
    assert expect_output(run_python(program)) == ["False", "True"]


@pytest.mark.parametrize("autoload, present", [("1", "True"), ("0", "False")])
def test_autoload_follows_its_switch(autoload, present):
    program = "import torch; print(hasattr(torch, 'npu') and torch.npu.is_available())"
    assert expect_output(run_python(program, environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload})) == [present]


def test_number_of_devices_follows_the_environment():
    program = "import torch, torchtitan_npu; print(torch.npu.device_count()); torch.ones(1, device='npu:1')"
    assert expect_output(run_python(program, environment={"NPU_DEVICE_COUNT": "3"})) == ["3"]
    assert expect_output(run_python(program, environment={"ASCEND_RT_VISIBLE_DEVICES": "0,2"})) == ["2"]
