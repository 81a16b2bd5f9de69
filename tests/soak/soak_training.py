"""Long run of everything that could leak or get stuck: training, failing calls, streams, forked loader workers, pinned memory.

    make soak ARGS="--minutes 60"

Prints resident memory, descriptors, threads and allocator bytes after each round, and fails when they grew after the second.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "torch"))
from support import footprint

GROWTH_ALLOWED = 4 << 20  # bytes of resident memory; everything else must not grow at all


def train(device: str, steps: int) -> None:
    """Steps of a small network."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(), nn.Linear(288, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(8, 3, 8, 8).to(device)), torch.randint(0, 10, (8,)).to(device))
        loss.backward()
        optimizer.step()
        assert loss.item() == loss.item(), "the loss is not a number"


def fail(device: str, calls: int) -> None:
    """Calls that must raise, found by the caller or by the device."""
    table, wrong = torch.ones(5, 3, device=device), torch.tensor([0, 9], device=device)
    for number in range(calls):
        try:
            if number % 2:
                table.index_select(0, wrong).cpu()
            else:
                table @ table
        except (RuntimeError, IndexError):
            continue
        raise AssertionError("a bad call was accepted")


def use_streams(device: str, rounds: int) -> None:
    """Work that crosses streams, and pinned memory."""
    for number in range(rounds):
        stream = torch.Stream(device)
        pinned = torch.full((10_000,), float(number)).pin_memory()
        with stream:
            moved = pinned.to(device, non_blocking=True) * 2
        stream.synchronize()
        assert moved[-1].item() == 2.0 * number


def load(device: str) -> None:
    """An epoch with forked workers."""
    data = TensorDataset(torch.arange(256.0).view(64, 4))
    total = sum(batch.to(device).sum().item() for (batch,) in DataLoader(data, batch_size=8, num_workers=4, pin_memory=device != "cpu"))
    assert total == 256 * 255 / 2


def main() -> None:
    """Rounds until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--device", default="npu")
    arguments = parser.parse_args()
    if arguments.device == "npu":
        import torchtitan_npu  # noqa: F401
    end, early, number = time.monotonic() + 60 * arguments.minutes, None, 0
    while time.monotonic() < end or number < 3:
        number += 1
        train(arguments.device, 200)
        fail(arguments.device, 200)
        if arguments.device != "cpu":
            use_streams(arguments.device, 50)
        load(arguments.device)
        now = footprint(arguments.device)
        print(f"round {number}: {now[0] / 2**20:.1f} MiB resident, {now[1]} descriptors, {now[2]} threads, {now[3]} bytes allocated", flush=True)
        if number == 2:
            early = now
        elif early and (now[0] - early[0] > GROWTH_ALLOWED or now[1:] != early[1:]):
            sys.exit(f"grew since round 2: {early} -> {now}")
    print("nothing grew")


if __name__ == "__main__":
    main()
