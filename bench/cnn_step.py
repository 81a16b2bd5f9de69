"""Time of a full training step (batch 128, float32) of the example's network: npu against torch eager on the CPU.

    python bench/cnn_step.py [--json FILE] [--pairs 15] [--threads 2] [--variants cpu,npu] [--no-profile]

All variants run in one process, in turn, each step with a final synchronise. The number to read is the paired speed-up over
`cpu` (NCHW, default Adam). The profile times every ATen operator of one step by itself, waiting before and after.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from _measure import finish, interleave, paired, require_npu, spread, verdict
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


def simple_cnn() -> nn.Module:
    """The network of examples/train_npu.py."""
    return nn.Sequential(
        *[nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2)],
        *[nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2)],
        *[nn.Flatten(), nn.Dropout(0.5), nn.Linear(8192, 512), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(512, 10)],
    )


def synchronizer(device: str) -> Callable[[], None]:
    """A function that waits for the device."""
    return torch.npu.synchronize if device.startswith("npu") else lambda: None


# name -> device, memory format, fused optimizer
VARIANTS = {
    "cpu": ("cpu", torch.contiguous_format, False),
    "cpu-channels-last-fused": ("cpu", torch.channels_last, True),
    "npu": ("npu", torch.contiguous_format, False),
    "npu-fused": ("npu", torch.contiguous_format, True),
}


def make_step(device: str, memory_format: torch.memory_format, fused: bool, batch: int) -> Callable[[], None]:
    """One training step on its own model, optimizer and batch."""
    torch.manual_seed(0)
    model = simple_cnn().to(device=device, memory_format=memory_format)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=fused or None)
    criterion = nn.CrossEntropyLoss()
    images = torch.randn(batch, 3, 32, 32).to(device=device, memory_format=memory_format)
    labels = torch.randint(0, 10, (batch,)).to(device)
    synchronize = synchronizer(device)

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        synchronize()

    return step


class OperatorTimer(TorchDispatchMode):
    """Adds up the time of every operator, from an idle device to an idle device."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        super().__init__()
        self.synchronize = synchronize
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs the operator and notes its time."""
        self.synchronize()
        begin = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        self.synchronize()
        self.seconds[func.name()] += time.perf_counter() - begin
        self.calls[func.name()] += 1
        return result


def profile(step: Callable[[], None], device: str, steps: int) -> dict[str, dict[str, float]]:
    """Milliseconds and calls of each operator, per step."""
    with OperatorTimer(synchronizer(device)) as timer:
        for _ in range(steps):
            step()
    order = sorted(timer.seconds, key=lambda name: -timer.seconds[name])
    return {name: {"ms": 1000 * timer.seconds[name] / steps, "calls": timer.calls[name] / steps} for name in order}


def print_profiles(profiles: dict[str, dict[str, dict[str, float]]], rows: int) -> None:
    """The operators of all variants side by side, the dearest first."""
    names = {name: max(p.get(name, {"ms": 0})["ms"] for p in profiles.values()) for p in profiles.values() for name in p}
    print("\nmilliseconds per step and operator\n" + " " * 46 + "".join(f"{variant[:18]:>20}" for variant in profiles))
    for name in sorted(names, key=lambda name: -names[name])[:rows]:
        cells = [f"{p[name]['ms']:13.2f} x{p[name]['calls']:<5.0f}" if name in p else f"{'-':>20}" for p in profiles.values()]
        print(f"{name:46}" + "".join(cells))
    print(f"{'all':46}" + "".join(f"{sum(row['ms'] for row in p.values()):13.2f}       " for p in profiles.values()))


def main() -> None:
    """Parses the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--variants", default=",".join(VARIANTS), help="comma-separated")
    parser.add_argument("--no-profile", action="store_true")
    parser.add_argument("--rows", type=int, default=40, help="operators listed in the profile")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    chosen = arguments.variants.split(",")
    if not set(chosen) <= set(VARIANTS):
        parser.error(f"--variants takes {', '.join(VARIANTS)}")
    if any(name.startswith("npu") for name in chosen):
        require_npu()
    steps = {name: make_step(*VARIANTS[name], arguments.batch) for name in chosen}
    seconds = interleave(steps, arguments.pairs, warm_up=2)
    ratios = paired(seconds, chosen[0], faster_is_larger=True)
    print(f"{'step, ms':32}{'median':>9}{'quartiles':>19}{'min':>9}   speed-up over {chosen[0]}: median (quartiles)")
    for name, values in seconds.items():
        row, ratio = spread(values), ratios[name]
        quartiles = f"{1000 * row['low quartile']:.1f} - {1000 * row['high quartile']:.1f}"
        print(
            f"{name:32}{1000 * row['median']:9.1f}{quartiles:>19}{1000 * row['min']:9.1f}   "
            f"{ratio['median']:.2f}x ({ratio['low quartile']:.2f} - {ratio['high quartile']:.2f})"
        )
    if "npu" in ratios and chosen[0] == "cpu":
        print(f"npu against cpu: {verdict(ratios['npu']['median'], 1.5, at_most=False)}")
    result: dict[str, Any] = {"seconds": seconds, "speed-up": ratios}
    if not arguments.no_profile:
        result["profile"] = {name: profile(steps[name], VARIANTS[name][0], 3) for name in chosen}
        print_profiles(result["profile"], arguments.rows)
    finish(result, arguments.json)


if __name__ == "__main__":
    main()
