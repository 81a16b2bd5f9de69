"""What one small operator costs the host, and how free Python is while the device works.

    python bench/launch.py [--json FILE] [--parts small,free,queue] [--threads N]

small  100,000 x torch.mul of two 4-element tensors, no_grad, one synchronise, all inside the time: npu / cpu.
free   a kernel of about 5 ms runs: the share of its time that Python has after the launch call came back, and how much
       Python work really gets done in it (less where the kernel occupies all cores).
queue  host time per operator on 64 KiB tensors with the queue on (TASK_QUEUE_ENABLE=1) against off (0), each in processes of
       its own, taken in turn. The backlog stays below the length of the queue; waiting for it isn't in the time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
from _measure import finish, interleave, paired, require_npu, spread, verdict

QUEUE_MODES = {
    "queue on": {"TASK_QUEUE_ENABLE": "1"},
    "queue on, level 2": {"TASK_QUEUE_ENABLE": "2"},
    "queue off": {"TASK_QUEUE_ENABLE": "0"},
    "blocking": {"ASCEND_LAUNCH_BLOCKING": "1"},
}


@torch.no_grad()
def small(calls: int, rounds: int) -> dict[str, Any]:
    """Check 9: many tiny operators on both devices, in turn."""

    def loop(device: str) -> None:
        a, b = torch.ones(4, device=device), torch.full((4,), 2.0, device=device)
        mul = torch.mul
        for _ in range(calls):
            mul(a, b)
        if device != "cpu":
            torch.npu.synchronize()

    seconds = interleave({"cpu": lambda: loop("cpu"), "npu": lambda: loop("npu")}, rounds)
    ratio = paired(seconds, "cpu")["npu"]
    best = min(seconds["npu"]) / min(seconds["cpu"])
    print(f"\n{calls} x torch.mul, 4 elements, no_grad, one synchronise, {rounds} rounds in turn")
    for name, values in seconds.items():
        row = spread(values)
        print(f"  {name}: best {1e9 * row['min'] / calls:7.0f} ns a call, median {1e9 * row['median'] / calls:7.0f} ns")
    print(
        f"  npu / cpu: paired median {ratio['median']:.2f} ({ratio['low quartile']:.2f} - {ratio['high quartile']:.2f}), "
        f"best / best {best:.2f}: {verdict(ratio['median'], 0.7, at_most=True)}"
    )
    return {"seconds": seconds, "paired": ratio, "best / best": best}


def five_millisecond_kernel() -> tuple[Any, float]:
    """A matrix product whose kernel takes about 5 ms here, and its time."""
    size = 256
    while True:
        a, b = torch.randn(size, size, device="npu"), torch.randn(size, size, device="npu")
        out = torch.empty(size, size, device="npu")

        def job(a: torch.Tensor = a, b: torch.Tensor = b, out: torch.Tensor = out) -> None:
            torch.mm(a, b, out=out)

        times = []
        for _ in range(5):
            torch.npu.synchronize()
            begin = time.perf_counter()
            job()
            torch.npu.synchronize()
            times.append(time.perf_counter() - begin)
        if min(times) > 0.004 or size > 8192:
            return job, statistics.median(times)
        size += 64


@torch.no_grad()
def free(rounds: int) -> dict[str, Any]:
    """Check 8, first half: what Python has of the time in which a long kernel runs."""
    job, kernel = five_millisecond_kernel()

    def work() -> int:
        total = 0
        for value in range(100):
            total += value
        return total

    begin = time.perf_counter()
    for _ in range(2000):
        work()
    idle_rate = 2000 / (time.perf_counter() - begin)
    shares, work_shares = [], []
    for _ in range(rounds):
        torch.npu.synchronize()
        event = torch.npu.Event()
        begin = time.perf_counter()
        job()
        event.record()
        launched = time.perf_counter()
        pieces = 0
        while not event.query():
            work()
            pieces += 1
        end = time.perf_counter()
        shares.append((end - launched) / (end - begin))
        work_shares.append(pieces / idle_rate / (end - begin))
    row, done = spread(shares), spread(work_shares)
    print(f"\na kernel of {1000 * kernel:.1f} ms runs, {rounds} rounds")
    print(
        f"  Python is free for {100 * row['median']:.1f} % of its time ({100 * row['low quartile']:.1f} - "
        f"{100 * row['high quartile']:.1f}): {verdict(row['median'], 0.8, at_most=False)}"
    )
    print(f"  Python work done in it, against an idle machine: {100 * done['median']:.1f} %")
    return {"kernel seconds": kernel, "free": row, "work done": done}


@torch.no_grad()
def host_time(calls: int, repeats: int) -> float:
    """Seconds of host time per torch.mul on 64 KiB tensors, the median of some bursts."""
    a, b = torch.ones(16384, device="npu"), torch.ones(16384, device="npu")
    mul = torch.mul
    times = []
    for _ in range(repeats):
        torch.npu.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            mul(a, b)
        times.append(time.perf_counter() - begin)
    torch.npu.synchronize()
    return statistics.median(times[repeats // 4 :]) / calls


def queue(rounds: int) -> dict[str, Any]:
    """Check 8, second half: each mode in processes of its own, taken in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in QUEUE_MODES}
    for number in range(rounds):
        names = list(QUEUE_MODES)
        for name in names if number % 2 == 0 else reversed(names):
            environment = {key: value for key, value in os.environ.items() if key not in ("TASK_QUEUE_ENABLE", "ASCEND_LAUNCH_BLOCKING")}
            command = [sys.executable, __file__, "--host-time"]
            output = subprocess.run(command, env=environment | QUEUE_MODES[name], check=True, capture_output=True, text=True)
            seconds[name].append(json.loads(output.stdout.splitlines()[-1]))
    ratios = paired(seconds, "queue off")
    print(f"\nhost time per torch.mul at 64 KiB, {rounds} processes each, in turn")
    for name, values in seconds.items():
        print(f"  {name:18} median {1e6 * statistics.median(values):6.2f} us, {ratios[name]['median']:.2f} of queue off")
    print(f"  queue on / off: {verdict(ratios['queue on']['median'], 0.6, at_most=True)}")
    return {"seconds": seconds, "paired": ratios}


def main() -> None:
    """Parses the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="small,free,queue")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0, help="torch's threads (0: its default)")
    parser.add_argument("--json")
    parser.add_argument("--host-time", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    require_npu()
    if arguments.host_time:
        print(json.dumps(host_time(calls=400, repeats=60)))
        return
    result: dict[str, Any] = {}
    for part in arguments.parts.split(","):
        if part == "small":
            result[part] = small(arguments.calls, arguments.rounds)
        elif part == "free":
            result[part] = free(5 * arguments.rounds)
        elif part == "queue":
            result[part] = queue(arguments.rounds)
        else:
            parser.error(f"--parts takes small, free, queue; given {part!r}")
    finish(result, arguments.json)


if __name__ == "__main__":
    main()
