"""Operators of ordinary networks, forward and backward: npu against torch eager on the CPU, in turn in one process.

    python bench/ops.py [--json FILE] [--only REGEX] [--rounds 15] [--threads 2] [--milliseconds 12] [--cpu-time] [--list]

One row is one operator at one shape in one direction. `forward` runs without autograd; `backward` runs the gradient of all
inputs alone, from a graph that is kept. A timing repeats the call for about --milliseconds, with one synchronise at its end, and
the figure is the speed-up within a round (torch's time / npu's time), its median and quartiles over the rounds. Rows below
LIMIT carry the reason that a profile showed, from the table of _ops_reasons.py.
"""

import argparse
import math
import re
import time
from collections.abc import Callable
from typing import Any

import torch
from _measure import SETTLE, Repeated, cpu_name, finish, interleave, paired, require_npu, spread, verdict
from _ops_cases import CASES, Case
from _ops_reasons import REASONS

LIMIT = 0.7
GOAL = 1.2


def wait_for(device: str) -> Callable[[], None]:
    """A function that waits for the device."""
    return torch.npu.synchronize if device == "npu" else lambda: None


def forward_call(case: Case, device: str) -> Callable[[], Any]:
    """The operator on its inputs, without autograd."""
    inputs = case.inputs(device)

    @torch.no_grad()
    def call() -> Any:
        return case.run(*inputs)

    return call


def backward_call(case: Case, device: str) -> Callable[[], Any]:
    """The gradients of all floating point inputs, from one graph that is kept."""
    inputs = case.inputs(device)
    leaves = [value.requires_grad_() for value in inputs if isinstance(value, torch.Tensor) and value.is_floating_point()]
    out = case.run(*inputs)
    torch.manual_seed(1)
    gradient = torch.randn(out.shape).to(device=device, dtype=out.dtype)

    def call() -> Any:
        return torch.autograd.grad(out, leaves, gradient, retain_graph=True)

    return call


DIRECTIONS = {"forward": forward_call, "backward": backward_call}


def repeats_for(call: Callable[[], Any], wait: Callable[[], None], seconds: float) -> int:
    """How many calls take about that long, by the faster of two trials; the first call warms up."""
    repeats = 1
    call()
    wait()
    while True:
        trials = []
        for _ in range(2):
            begin = time.perf_counter()
            Repeated(call, repeats, wait)()
            trials.append(time.perf_counter() - begin)
        spent = min(trials)
        if spent > seconds / 4 or repeats >= 4096:
            return max(1, min(4096, round(repeats * seconds / spent)))
        repeats *= 4


def measure(case: Case, direction: str, rounds: int, seconds: float, clock: Callable[[], float]) -> dict[str, Any]:
    """One row."""
    work, repeats = {}, {}
    for device in ("cpu", "npu"):
        call, wait = DIRECTIONS[direction](case, device), wait_for(device)
        repeats[device] = repeats_for(call, wait, seconds)
        work[device] = Repeated(call, repeats[device], wait)
    timings = interleave(work, rounds, settle=SETTLE, clock=clock)
    timings = {device: [value / repeats[device] for value in values] for device, values in timings.items()}
    return {
        "family": case.family,
        "operator": case.name,
        "shape": case.shape,
        "elements": case.elements(),
        "direction": direction,
        "microseconds": {device: {key: 1e6 * value for key, value in spread(values).items()} for device, values in timings.items()},
        "speed-up": paired(timings, "cpu", faster_is_larger=True)["npu"],
    }


def reason_for(row: dict[str, Any]) -> str:
    """What a profile of a slow row showed."""
    if row["speed-up"]["median"] >= LIMIT:
        return ""
    return REASONS.get((row["operator"], row["shape"], row["direction"]), "not profiled yet")


def geometric_mean(rows: list[dict[str, Any]]) -> float:
    """Of the median speed-ups."""
    return math.exp(sum(math.log(row["speed-up"]["median"]) for row in rows) / len(rows)) if rows else math.nan


def print_row(row: dict[str, Any]) -> None:
    """One line of the table."""
    ratio, micro = row["speed-up"], row["microseconds"]
    print(
        f"{row['operator']:30}{row['shape']:26}{row['direction']:9}{micro['cpu']['median']:11.1f}{micro['npu']['median']:11.1f}"
        f"{ratio['median']:8.2f}  ({ratio['low quartile']:.2f} - {ratio['high quartile']:.2f})  {row['why']}",
        flush=True,
    )


def main() -> None:
    """Parses the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression on 'operator shape direction'")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--milliseconds", type=float, default=12, help="length of one timing")
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of all threads instead of the clock's, on a machine that others use")
    parser.add_argument("--list", action="store_true", help="only say what would be measured")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    chosen = [
        (case, direction)
        for case in CASES
        for direction in (("forward", "backward") if case.backward else ("forward",))
        if re.search(arguments.only, f"{case.name} {case.shape} {direction}")
    ]
    if arguments.list:
        for case, direction in chosen:
            print(f"{case.family:12}{case.name:24}{case.shape:32}{direction}")
        return
    torch.set_num_threads(arguments.threads)
    require_npu()
    begin, clock = time.perf_counter(), time.process_time if arguments.cpu_time else time.perf_counter
    print(f"{cpu_name()}, {arguments.threads} threads, {len({case for case, _ in chosen})} combinations, {len(chosen)} rows")
    print(f"{'operator':30}{'shape':26}{'':9}{'cpu, us':>11}{'npu, us':>11}{'x':>8}  (quartiles)")
    rows = []
    for case, direction in chosen:
        row = measure(case, direction, arguments.rounds, arguments.milliseconds / 1000, clock)
        rows.append(row | {"why": reason_for(row)})
        print_row(rows[-1])
    mean, slow = geometric_mean(rows), [row for row in rows if row["why"]]
    for direction in DIRECTIONS:
        print(f"geometric mean, {direction}: {geometric_mean([row for row in rows if row['direction'] == direction]):.2f}x")
    print(f"geometric mean of {len(rows)} rows: {mean:.2f}x, {verdict(mean, GOAL, at_most=False)}; {len(slow)} rows under {LIMIT}x")
    finish({"rows": rows, "geometric mean": mean, "minutes": (time.perf_counter() - begin) / 60}, arguments.json)


if __name__ == "__main__":
    main()
