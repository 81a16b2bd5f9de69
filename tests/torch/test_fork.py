"""Forked processes: loader workers live beside a started device; only using npu in the child is refused."""

import os

import pytest
import torch
from support import expect_output, run_python, run_script
from torch.utils.data import DataLoader, TensorDataset

MESSAGE = "Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing, you must use the 'spawn' start method"


def in_child(action):
    """Runs the action in a forked child; gives its result or its error as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = str(action())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, text.encode()[:4000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        text = stream.read().decode()
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status), f"the child died of signal {os.WTERMSIG(status)}"
    return text


@pytest.mark.npu_only
@pytest.mark.parametrize(
    "name, use",
    [
        ("factory", lambda t: torch.zeros(1, device="npu")),
        ("operator", lambda t: t + 1),
        ("copy", lambda t: t.cpu()),
        ("move", lambda t: torch.ones(2).to("npu")),
        ("synchronize", lambda t: torch.npu.synchronize()),
        ("stream", lambda t: torch.npu.Stream()),
        ("set_device", lambda t: torch.npu.set_device(0)),
    ],
)
def test_use_in_a_child_names_spawn(name, use, device):
    tensor = torch.ones(4, device=device)
    text = in_child(lambda: use(tensor))
    assert text.startswith("RuntimeError: ") and MESSAGE in text
    assert (tensor + 1).tolist() == [2.0] * 4


@pytest.mark.npu_only
def test_child_may_free_and_exit_with_work_queued(device):
    value, eye = torch.ones(500, 500, device=device), torch.eye(500, device=device)
    for _ in range(30):
        value = value @ eye

    def free():
        nonlocal value
        value = None
        return sum(torch.arange(5.0).tolist())

    assert in_child(free) == "10.0"
    assert (value == 1).all().item()


@pytest.mark.npu_only
def test_child_keeps_its_pinned_memory(device):
    pinned = torch.arange(8.0).pin_memory()
    assert in_child(lambda: pinned.mul_(2).sum().item()) == "56.0"
    assert pinned.sum().item() == 28.0, "the child wrote into the parent's memory"


@pytest.mark.npu_only
def test_fork_before_the_first_use_is_free():
    program = """
        import os, torch, torchtitan_npu
        assert torch.npu.device_count() >= 1
        child = os.fork()
        if child:  # one after the other, so that the lines don't mix
            assert os.waitpid(child, 0)[1] == 0
        before = torch.npu.memory_allocated()
        print(torch.ones(3, device="npu").sum().item(), torch.npu.memory_allocated() - before, flush=True)
        if child == 0:
            os._exit(0)
    """
    assert expect_output(run_python(program)) == ["3.0 0", "3.0 0"]


@pytest.mark.npu_only
def test_spawned_processes_have_a_device(tmp_path):
    script = tmp_path / "spawn.py"
    script.write_text("""
import torch, torch.multiprocessing as multiprocessing, torchtitan_npu

def work(rank, queue):
    queue.put((rank, (torch.ones(4, device="npu") * rank).sum().item()))

if __name__ == "__main__":
    torch.ones(1, device="npu")
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    multiprocessing.spawn(work, (queue,), nprocs=2)
    print(sorted(queue.get() for _ in range(2)))
""")
    assert expect_output(run_script(script)) == ["[(0, 0.0), (1, 4.0)]"]


def loader_epochs(device, epochs, workers, pin_memory, persistent=False):
    data = TensorDataset(torch.arange(64.0).view(32, 2), torch.arange(32))
    loader = DataLoader(data, batch_size=4, num_workers=workers, pin_memory=pin_memory, persistent_workers=persistent, shuffle=True)
    alive = torch.ones(1000, device=device)
    for _ in range(epochs):
        total = torch.zeros((), device=device)
        for inputs, labels in loader:
            assert inputs.is_pinned() == (pin_memory and device != "cpu")
            inputs = inputs.to(device, non_blocking=pin_memory)
            total = total + inputs.sum() + labels.to(device, non_blocking=pin_memory).sum() + alive[0]
        assert total.item() == 64 * 63 / 2 + 32 * 31 / 2 + 8


@pytest.mark.parametrize("pin_memory", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_loader(workers, pin_memory, device):
    if device == "cpu" and pin_memory:
        pytest.skip("pinning needs an accelerator")
    loader_epochs(device, 2, workers, pin_memory)


def test_persistent_workers(device):
    loader_epochs(device, 3, 2, device != "cpu", persistent=True)


def test_four_workers_for_some_epochs(device):
    loader_epochs(device, 4, 4, device != "cpu")


@pytest.mark.slow
def test_four_workers_for_fifty_epochs(device):
    loader_epochs(device, 50, 4, device != "cpu")
