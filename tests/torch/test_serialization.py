"""Files: what npu writes loads in a process that has never heard of npu, and the reverse; copies and pickles keep the device."""

import copy
import io
import pickle
import zipfile

import pytest
import torch
from support import expect_output, run_python
from torch import nn

WITHOUT_PACKAGE = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


def make_state():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(5, 6))
    return model.state_dict() | {"half": torch.randn(3).half(), "flags": torch.tensor([True, False]), "count": torch.arange(5)}


def assert_equal_states(got, want):
    assert list(got) == list(want)
    for name in want:
        assert torch.equal(got[name].cpu(), want[name].cpu()), name
        assert got[name].dtype == want[name].dtype, name


LOAD_WITHOUT_PACKAGE = """
    import sys, torch
    path, reference, *options = sys.argv[1:]
    got = torch.load(path, weights_only=True, **({"map_location": "cpu"} if "map" in options else {}))
    want = torch.load(reference, weights_only=True)
    assert "torchtitan_npu" not in sys.modules and not hasattr(torch, "npu")
    for name, tensor in want.items():
        assert got[name].device.type == "cpu", (name, got[name].device)
        assert torch.equal(got[name], tensor) and got[name].dtype == tensor.dtype, name
    print("equal", len(want))
"""


def test_saved_state_loads_without_our_package(device, tmp_path):
    state = make_state()
    torch.save(state, tmp_path / "reference.pt")
    torch.save({name: tensor.to(device) for name, tensor in state.items()}, tmp_path / "device.pt")
    arguments = [tmp_path / "device.pt", tmp_path / "reference.pt", "map"]
    assert expect_output(run_python(LOAD_WITHOUT_PACKAGE, environment=WITHOUT_PACKAGE, arguments=arguments)) == [f"equal {len(state)}"]


@pytest.mark.npu_only
def test_portable_save_loads_anywhere_without_map_location(device, tmp_path):
    import torchtitan_npu

    state = make_state()
    torch.save(state, tmp_path / "reference.pt")
    on_device = {name: tensor.to(device) for name, tensor in state.items()}
    torchtitan_npu.save(on_device, tmp_path / "device.pt")
    assert all(tensor.device.type == device for tensor in on_device.values()), "saving moved the caller's tensors"
    arguments = [tmp_path / "device.pt", tmp_path / "reference.pt"]
    assert expect_output(run_python(LOAD_WITHOUT_PACKAGE, environment=WITHOUT_PACKAGE, arguments=arguments)) == [f"equal {len(state)}"]


@pytest.mark.npu_only
def test_portable_save_keeps_shared_storage(device, tmp_path):
    import torchtitan_npu

    whole = torch.arange(6.0, device=device)
    torchtitan_npu.save({"whole": whole, "part": whole[2:4]}, tmp_path / "shared.pt")
    loaded = torch.load(tmp_path / "shared.pt", weights_only=True)
    loaded["whole"][2] = 99
    assert loaded["part"].tolist() == [99.0, 3.0]


def test_state_of_a_process_without_our_package_loads_here(device, tmp_path):
    program = """
        import sys, torch
        torch.manual_seed(4)
        assert not hasattr(torch, "npu")
        torch.save({"weight": torch.randn(4, 5), "step": torch.tensor(3)}, sys.argv[1])
    """
    expect_output(run_python(program, environment=WITHOUT_PACKAGE, arguments=[tmp_path / "cpu.pt"]))
    state = torch.load(tmp_path / "cpu.pt", map_location=device, weights_only=True)
    assert state["weight"].device.type == device
    torch.manual_seed(4)
    assert torch.equal(state["weight"].cpu(), torch.randn(4, 5))
    assert state["step"].item() == 3


@pytest.mark.parametrize("location", ["string", "device", "function", "none"])
def test_map_location(location, device, tmp_path):
    torch.save(torch.arange(4.0, device=device), tmp_path / "tensor.pt")
    target = {"string": device, "device": torch.device(device), "function": lambda storage, tag: storage, "none": None}[location]
    loaded = torch.load(tmp_path / "tensor.pt", map_location=target, weights_only=True)
    assert loaded.device.type == ("cpu" if location == "function" else device)
    assert loaded.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_safetensors_both_ways(device, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    state = make_state()
    safetensors.save_file({name: tensor.to(device) for name, tensor in state.items()}, tmp_path / "device.safetensors")
    assert_equal_states(dict(sorted(safetensors.load_file(tmp_path / "device.safetensors").items())), dict(sorted(state.items())))
    safetensors.save_file(state, tmp_path / "cpu.safetensors")
    loaded = safetensors.load_file(tmp_path / "cpu.safetensors", device=device)
    assert {tensor.device.type for tensor in loaded.values()} == {device}
    assert_equal_states(dict(sorted(loaded.items())), dict(sorted(state.items())))


def test_optimizer_state_travels(device, tmp_path):
    def step(where, state=None):
        torch.manual_seed(5)
        model = nn.Linear(3, 2).to(where)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        if state is not None:
            optimizer.load_state_dict(copy.deepcopy(state))  # on the CPU it would be used in place
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 3).to(where)).square().sum().backward()
            optimizer.step()
        return model, optimizer

    _, optimizer = step(device)
    torch.save(optimizer.state_dict(), tmp_path / "optimizer.pt")
    state = torch.load(tmp_path / "optimizer.pt", map_location="cpu", weights_only=True)
    on_cpu, _ = step("cpu", state)
    on_device, continued = step(device, state)
    assert continued.state_dict()["state"][0]["exp_avg"].device.type == device
    torch.testing.assert_close(on_device.weight.cpu(), on_cpu.weight)


def with_location(data, location):
    """A saved file whose tensors claim to come from another device."""
    source, result = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_STORED) as target:
        for entry in source.infolist():
            content = source.read(entry.filename)
            if entry.filename.endswith("data.pkl"):
                old, new = b"X\x03\x00\x00\x00cpu", b"X" + len(location).to_bytes(4, "little") + location.encode()
                assert old in content
                content = content.replace(old, new)
            target.writestr(entry.filename, content)
    result.seek(0)
    return result


@pytest.mark.parametrize("location", ["cuda:7", pytest.param("npu:77", marks=pytest.mark.npu_only)])
def test_foreign_location_needs_map_location(location, device):
    buffer = io.BytesIO()
    torch.save(torch.arange(3.0), buffer)
    loaded = torch.load(with_location(buffer.getvalue(), location), map_location=device, weights_only=True)
    assert loaded.device.type == device and loaded.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(with_location(buffer.getvalue(), location), weights_only=True)


def test_copies_and_pickles(device):
    leaf = torch.randn(3, 4, device=device, requires_grad=True)
    for twin in (copy.copy(leaf), copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf))):
        assert twin.device == leaf.device and twin.requires_grad and torch.equal(twin, leaf)
    view = leaf.detach().t()[1:]
    assert torch.equal(copy.deepcopy(view), view) and copy.deepcopy(view).stride() == view.stride()
    assert torch.equal(pickle.loads(pickle.dumps(view)), view)


def test_deepcopy_keeps_tied_weights_and_flags(device):
    model = nn.ModuleDict({"inner": nn.Embedding(5, 3), "outer": nn.Linear(3, 5, bias=False)}).to(device)
    model["outer"].weight = model["inner"].weight
    model["inner"].weight.requires_grad_(False)
    twin = copy.deepcopy(model)
    assert twin["outer"].weight is twin["inner"].weight
    assert twin["inner"].weight.device.type == device and not twin["inner"].weight.requires_grad
    before = model["inner"].weight.cpu().clone()
    with torch.no_grad():
        twin["inner"].weight.add_(1)
    assert torch.equal(model["inner"].weight.cpu(), before), "the copy shares memory with the original"
