"""Trains the example's network (dropout off) for some steps and prints the losses as JSON: a program for torch_npu as it is published.

Every run starts from the same weights and images, so that runs on npu and on the CPU, in float32 and in float64, can be compared.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import nn

IMAGES = Path(__file__).resolve().parents[2] / "examples/data/cifar10/data_batch_1.bin"
BATCH = 16
SEED = 1


def network() -> nn.Module:
    """The network of examples/train_npu.py without its dropout."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(64, 128, 3, padding=1),
        nn.BatchNorm2d(128),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Linear(128 * 8 * 8, 512),
        nn.ReLU(inplace=True),
        nn.Linear(512, 10),
    )


def batches(steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Images in [-1, 1] and labels."""
    records = torch.frombuffer(bytearray(IMAGES.read_bytes()), dtype=torch.uint8).view(-1, 3073)[: steps * BATCH]
    images = records[:, 1:].reshape(-1, 3, 32, 32).float() / 127.5 - 1
    labels = records[:, 0].long()
    return list(zip(images.split(BATCH), labels.split(BATCH)))


def optimizer_of(name: str, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizers of the checks."""
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=1e-3)
    if name == "momentum":
        return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    return torch.optim.Adam(parameters, lr=1e-3)


def train(device: str, optimizer_name: str, steps: int, dtype: torch.dtype, seed: int = SEED) -> list[float]:
    """Losses of all steps."""
    torch.manual_seed(seed)
    model = network().to(dtype).to(device)
    optimizer = optimizer_of(optimizer_name, list(model.parameters()))
    losses = []
    for images, labels in batches(steps):
        loss = nn.functional.cross_entropy(model(images.to(dtype).to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="npu")
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "momentum", "adam"])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--double", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(2)
    print(json.dumps(train(options.device, options.optimizer, options.steps, torch.float64 if options.double else torch.float32)))


if __name__ == "__main__":
    main()
