"""What the benchmarks share: interleaved timing, paired ratios, a description of the machine, JSON output.

Other work on a machine moves single timings by a factor of two. So variants always run in turn, round after round, and the
figure to read is the ratio within a round (its median over the rounds, with quartiles), not the ratio of two best times.
"""

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Clock = Callable[[], float]
Timings = dict[str, list[float]]


def cpu_name() -> str:
    """The processor's name as the operating system gives it."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith(("model name", "Hardware", "CPU part")):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def allocator() -> str:
    """The malloc that torch's CPU tensors come from, with the settings that change its speed."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    preload = os.environ.get("LD_PRELOAD", "")
    return f"{preload or ' '.join(platform.libc_ver()) + ' malloc'}, settings {settings or 'default'}"


def machine() -> dict[str, Any]:
    """Everything a reader needs to judge a figure."""
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "isa used by torch": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "torch threads": torch.get_num_threads(),
        "torch allocator": allocator(),
        "load average": os.getloadavg()[0],
        "python": platform.python_version(),
    }


SETTLE = 0.015  # seconds; the OpenMP threads of torch's CPU spin for up to 10 ms after their work
AWAKE = 0.001  # seconds of untimed work after that, as threads and cores that sleep take up to 0.1 ms to wake


class Repeated:
    """A timing's work: `repeats` calls and one wait."""

    def __init__(self, call: Callable[[], Any], repeats: int, wait: Callable[[], None]) -> None:
        self.call, self.repeats, self.wait = call, repeats, wait

    def __call__(self) -> None:
        for _ in range(self.repeats):
            self.call()
        self.wait()

    def wake(self) -> None:
        """A moment of the same work, so that threads and cores are awake."""
        end = time.perf_counter() + AWAKE
        while time.perf_counter() < end:
            self.call()
            self.wait()


def interleave(variants: dict[str, Callable[[], Any]], rounds: int, warm_up: int = 1, settle: float = 0, clock: Clock = time.perf_counter) -> Timings:
    """Times every variant once a round, the order reversed in every other round. A variant must wait for its own work.

    settle: seconds to sleep before each timing, so that the other variant's threads have stopped spinning for more work; see
    SETTLE. A variant with an attribute `wake` has that called after the sleep, untimed.
    clock: time.process_time instead where others use the machine.
    """
    for function in variants.values():
        for _ in range(warm_up):
            function()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        names = list(variants)
        for name in names if number % 2 == 0 else reversed(names):
            time.sleep(settle)
            getattr(variants[name], "wake", lambda: None)()
            begin = clock()
            variants[name]()
            seconds[name].append(clock() - begin)
    return seconds


def spread(values: list[float]) -> dict[str, float]:
    """Median, quartiles and extremes."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return {"median": middle, "low quartile": low, "high quartile": high, "min": min(values), "max": max(values)}


def paired(seconds: dict[str, list[float]], baseline: str, faster_is_larger: bool = False) -> dict[str, dict[str, float]]:
    """Ratios to the baseline of the same round: variant / baseline, or the reverse (a speed-up)."""
    ratios = {}
    for name, values in seconds.items():
        pairs = zip(values, seconds[baseline], strict=True)
        ratios[name] = spread([base / value if faster_is_larger else value / base for value, base in pairs])
    return ratios


def verdict(value: float, limit: float, at_most: bool) -> str:
    """One word for a table: is the figure inside its limit?"""
    inside = value <= limit if at_most else value >= limit
    return f"{'holds' if inside else 'MISSED'} (limit {'<=' if at_most else '>='} {limit:g})"


def finish(result: dict[str, Any], path: str | None) -> None:
    """Prints the machine and writes the result as JSON where asked."""
    result["machine"] = machine()
    print("\n" + "\n".join(f"{name}: {value}" for name, value in result["machine"].items()))
    if path:
        Path(path).write_text(json.dumps(result, indent=2) + "\n")
        print(f"written to {path}")


def require_npu() -> None:
    """Loads the device, or ends with a sentence."""
    try:
        import torchtitan_npu  # noqa: F401
    except ImportError as error:
        sys.exit(f"the npu device is not installed in {sys.executable}: {error}")
