"""What several test files share: the network of the example, its data, programs run in processes of their own."""

import contextlib
import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "examples" / "data" / "cifar10" / "data_batch_1.bin"


class SimpleCNN(nn.Module):
    """The network of examples/train_npu.py; the dropout can be switched off to make runs comparable."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.features = nn.Sequential(
            *[nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2)],
            *[nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2)],
        )
        self.classifier = nn.Sequential(
            *[nn.Dropout(dropout), nn.Linear(8192, 512), nn.ReLU(inplace=True), nn.Dropout(dropout), nn.Linear(512, 10)],
        )

    def forward(self, images):
        return self.classifier(torch.flatten(self.features(images), 1))


def cifar_batches(count, size=128, dtype=torch.float32):
    """The first `count` batches of the bundled images, normalised, in file order."""
    records = torch.frombuffer(bytearray(IMAGES.read_bytes()[: count * size * 3073]), dtype=torch.uint8).view(-1, 3073)
    mean = torch.tensor([0.4914, 0.4822, 0.4465], dtype=torch.float64).view(1, 3, 1, 1)
    deviation = torch.tensor([0.2470, 0.2435, 0.2616], dtype=torch.float64).view(1, 3, 1, 1)
    images = (records[:, 1:].reshape(-1, 3, 32, 32).double() / 255 - mean) / deviation
    labels = records[:, 0].long()
    return list(zip(images.to(dtype).split(size), labels.split(size), strict=True))


def footprint(device):
    """Resident bytes, open descriptors, threads, bytes of the caching allocator."""
    gc.collect()
    allocated = 0
    if device != "cpu":
        torch.npu.synchronize()
        allocated = torch.npu.memory_allocated()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resident, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), allocated


@contextlib.contextmanager
def cann_function(name, *arguments, missing=False):
    """Lets a test stand in for a C function of CANN: gives a list to put Python functions into, one a call, in front of the real one.

    Such a function gets the real one and the arguments, and returns the code. Only for functions that Python threads call.
    `missing`: as if the loaded libraries lacked it.
    """
    from torchtitan_npu import _bridge

    plugin = ctypes.CDLL(str(Path(_bridge.__file__).parent / "lib/libop_plugin.so"))
    number = list(_bridge.functions()).index(name)  # the table holds one pointer for each function, in this order
    slot = ctypes.c_void_p.from_address(ctypes.addressof(ctypes.c_void_p.in_dll(plugin, "cann")) + 8 * number)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *arguments)
    before, real, waiting = slot.value, kind(slot.value), []
    stand_in = kind(lambda *given: waiting.pop(0)(real, *given) if waiting else real(*given))
    slot.value = None if missing else ctypes.cast(stand_in, ctypes.c_void_p).value
    try:
        yield waiting
    finally:
        slot.value = before


@contextlib.contextmanager
def stream_at_rest():
    """The current stream stands still until the event that this gives is set, or the block ends."""
    import torchtitan_npu  # noqa: F401
    from torchtitan_npu import _bridge

    torch.npu.synchronize()
    (runtime,) = (path for path in _bridge.library_paths() if "ascendcl" in path)
    go_on, in_time = threading.Event(), []
    rest = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: in_time.append(go_on.wait(60)))
    stream = ctypes.c_void_p(_bridge.stream_pointer(torch.npu.current_stream().stream_id, torch.npu.current_device()))
    assert ctypes.CDLL(runtime).aclrtLaunchHostFunc(stream, rest, None) == 0
    try:
        yield go_on
    finally:
        go_on.set()
        torch.npu.synchronize()
    assert in_time == [True], "something waited for the stream that mustn't"


def run_python(program, timeout=120, environment=None, arguments=()):
    """Runs a Python program in a new process and returns it with its output; the caller judges the exit code."""
    return run_script("-c", timeout, environment, [textwrap.dedent(program), *arguments])


def run_script(path, timeout=120, environment=None, arguments=()):
    """The same for a program in a file."""
    command = [sys.executable, str(path), *map(str, arguments)]
    variables = os.environ | (environment or {})
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=timeout, check=False)


def expect_output(process):
    """The lines that a successful program printed."""
    assert process.returncode == 0, f"exit code {process.returncode}\n{process.stdout}\n{process.stderr}"
    return process.stdout.splitlines()
