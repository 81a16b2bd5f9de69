"""What several test files share: the network of the example, its data, programs run in processes of their own."""

import os
import subprocess
import sys
import textwrap
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
