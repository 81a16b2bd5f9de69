"""Writes docs/performance.md from the JSON files of `softnpu bench` in bench/results; --check only compares."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent
RESULTS = SOURCE / "bench/results"
LIMIT = 0.7
INTRODUCTION = """# Performance

Made by `make bench`, which runs `softnpu bench` and keeps its figures in `bench/results`; `make docs` writes this page from them again.
On another machine: `softnpu bench` after installing the package (about ten minutes), or `softnpu bench ops` and the like for one part; it prints
these tables and writes JSON files to a folder. Nothing else should run meanwhile.

Every figure is a ratio within one process, in which npu and torch's CPU take turns, because timings on shared machines move by more than what
is measured: the median over the rounds, with the quartiles in brackets. "x" is torch's time divided by npu's, so larger is better.
"""


def load(name: str) -> dict[str, Any] | None:
    """The figures of one benchmark, if it was run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def ratio_text(ratio: dict[str, float]) -> str:
    """Median and quartiles."""
    return f"{ratio['median']:.2f} ({ratio['low quartile']:.2f} - {ratio['high quartile']:.2f})"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows]) + "\n"


def machine_text(machine: dict[str, Any]) -> str:
    """One line on where a benchmark ran."""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, torch {machine['torch']} with {machine['torch threads']} threads "
        f"({machine['isa used by torch']}), {machine['torch allocator']}; load average at the end {machine['load average']:.1f}.\n"
    )


def time_text(microseconds: float) -> str:
    """With a fitting unit."""
    return f"{microseconds / 1000:.2f} ms" if microseconds >= 1000 else f"{microseconds:.1f} us"


def operators(result: dict[str, Any]) -> str:
    """bench/ops.py."""
    rows = result["rows"]
    combinations = {(row["operator"], row["shape"]) for row in rows}
    slow = [row for row in rows if row["speed-up"]["median"] < LIMIT]
    parts = [
        f"\n## Operators\n\n`bench/ops.py`: {len(combinations)} operators and shapes of ordinary networks, {len(rows)} rows with their gradients, in "
        f"{result['minutes']:.0f} minutes. Geometric mean {result['geometric mean']:.2f}x. {len(slow)} rows are below {LIMIT}x.\n\n"
    ]
    parts.append(machine_text(result["machine"]))
    if slow:
        cells = [[f"{row['operator']}, {row['shape']}, {row['direction']}", f"{row['speed-up']['median']:.2f}", row["why"]] for row in slow]
        parts.append(f"\nBelow {LIMIT}x, and what a profile showed:\n\n" + table(["row", "x", "why"], cells))
    parts.append("\n")
    cells = [
        [
            *(row["operator"], row["shape"], row["direction"]),
            *(time_text(row["microseconds"][device]["median"]) for device in ("cpu", "npu")),
            ratio_text(row["speed-up"]),
        ]
        for row in rows
    ]
    parts.append(table(["operator", "shape", "direction", "torch", "npu", "x"], cells))
    return "".join(parts)


def products(result: dict[str, Any]) -> str:
    """bench/gemm.py."""
    cells = [
        [
            name,
            *(time_text(row["microseconds"][kind]["median"]) for kind in ("cpu", "npu", "bf16", "f16")),
            ratio_text(row["npu against cpu"]),
            *(f"{row['halves against npu f32'][kind]['median']:.2f}" for kind in ("bf16", "f16")),
        ]
        for name, row in result["rows"].items()
    ]
    text = (
        "\n## Matrix products\n\n`bench/gemm.py`: float32 against torch's (MKL), half types against our own float32. Worst of 1024 cubed and the "
        f"large Linear layer: {result['worst']:.2f}x of torch; worst half type {result['worst half']:.2f}x of our float32.\n\n"
    )
    head = ["product", "torch f32", "npu f32", "npu bf16", "npu f16", "f32, x", "bf16 / f32", "f16 / f32"]
    return text + machine_text(result["machine"]) + "\n" + table(head, cells)


STEPS = {
    "cnn_step": "two threads",
    "cnn_step_one_thread": "one thread",
    "cnn_step_kept_memory": "two threads, a malloc that keeps freed memory",
    "cnn_step_fast": "two threads, NPU_FIDELITY=fast",
}


def steps(results: dict[str, dict[str, Any]]) -> str:
    """bench/cnn_step.py in its four surroundings."""
    cells = []
    for name, result in results.items():
        for variant, ratio in result["speed-up"].items():
            seconds = sorted(result["seconds"][variant])
            cells.append([STEPS[name], variant, time_text(1e6 * seconds[len(seconds) // 2]), ratio_text(ratio)])
    text = (
        "\n## A training step\n\n`bench/cnn_step.py`: the example's network at batch 128, float32, forward, backward and Adam, operator by operator. "
        "`cpu` is torch as it comes (NCHW, default Adam); the ratio is to it.\n\n"
    )
    machine = next(iter(results.values()))["machine"]
    return text + machine_text(machine) + "\n" + table(["surroundings", "variant", "step", "x"], cells)


def launches(result: dict[str, Any]) -> str:
    """bench/launch.py."""
    lines = []
    if "small" in result:
        lines.append(f"* `torch.mul` of 4 elements, 100,000 times: npu takes {ratio_text(result['small']['paired'])} of the CPU's time.")
    if "free" in result:
        kernel, free = 1000 * result["free"]["kernel seconds"], 100 * result["free"]["free"]["median"]
        lines.append(f"* While a kernel of {kernel:.1f} ms runs, Python is free for {free:.1f} %.")
    if "queue" in result:
        lines.append(f"* Host time of an operator on 64 KiB with the queue, against without it: {ratio_text(result['queue']['paired']['queue on'])}.")
    return "\n## Launches\n\n`bench/launch.py`; smaller is better here.\n\n" + machine_text(result["machine"]) + "\n" + "\n".join(lines) + "\n"


def document() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for name, section in (("ops", operators), ("gemm", products)):
        if result := load(name):
            parts.append(section(result))
    if found := {name: result for name in STEPS if (result := load(name))}:
        parts.append(steps(found))
    if result := load("launch"):
        parts.append(launches(result))
    return "".join(parts)


def main() -> None:
    """Writes or checks the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    page = SOURCE / "docs/performance.md"
    text = document()
    if arguments.check:
        if not page.exists() or page.read_text() != text:
            sys.exit("docs/performance.md isn't what bench/results gives; run make docs")
        return
    page.write_text(text)


if __name__ == "__main__":
    main()
