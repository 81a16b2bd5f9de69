"""Compares npu with torch's CPU over torch's own OpInfos, in child processes that may crash.

A pair is (operator, dtype), counted apart for values (kind "forward": also in-place, out= and non-contiguous forms) and gradients; error
inputs count once an operator (kind "errors"). An OpInfo is judged when every overload that it calls is on the list of ops_families.txt.
As a program: `build/torch-<version>/run tests/torch/opinfo_judge.py [--full] [--only REGEX]` prints the failing pairs.

Invariant: a child judges one operator at a time and prints one line of JSON for it, so what dies costs that operator only.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS_FOR_ONE = 120  # after which a child is ended and its operator counts as crashed; ten times as long with every sample
SAMPLES = {"forward": 6, "forms": 2, "gradient": 3, "recorded": 12}  # how many of an OpInfo's samples the quick run takes
BY_HAND = "samples by hand"  # stands for an OpInfo's name
PLUMBING = re.compile(r"^(detach|alias|lift_fresh|lift|is_same_size|_local_scalar_dense|item|_to_copy|is_nonzero)$")


def family_list() -> set[str]:
    """The overloads of ops_families.txt, without the namespace."""
    lines = (line.split("#")[0].strip() for line in (HERE / "ops_families.txt").read_text().splitlines())
    return {line for line in lines if line}


def key_of(op: Any) -> str:
    """Name of an OpInfo with its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


@functools.cache
def all_operators() -> dict[str, Any]:
    """torch's OpInfos by name, those of lists of tensors too."""
    from torch.testing._internal import common_methods_invocations as invocations

    groups = [invocations.op_db, *(getattr(invocations, name) for name in dir(invocations) if re.fullmatch(r"foreach_\w+_op_db", name))]
    return {key_of(op): op for group in groups for op in group}


# --- parent ---


def run_child_on(names: queue.Queue[str], full: bool, core: int | None, verdicts: dict[str, Any], progress: bool) -> None:
    """Feeds operators to a child until none is left; starts another child when one dies."""
    command = [sys.executable, __file__, "--child", *(["--full"] if full else []), *(["--core", str(core)] if core is not None else [])]
    environment = os.environ | {"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"}
    process: subprocess.Popen[str] | None = None
    while True:
        try:
            name = names.get_nowait()
        except queue.Empty:
            break
        if process is None:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        begun = time.monotonic()
        verdict = ask(process, name, SECONDS_FOR_ONE * (10 if full else 1))
        if "crash" in verdict:
            process.kill()
            verdict["crash"] = f"{verdict['crash']} (exit code {process.wait()})"
            process = None
        verdict["seconds"] = time.monotonic() - begun
        verdicts[name] = verdict
        if progress:
            print(f"{len(verdicts)} {name} {verdict['seconds']:.1f} s", file=sys.stderr, flush=True)
    if process is not None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def ask(process: subprocess.Popen[str], name: str, seconds: int) -> dict[str, Any]:
    """One operator's verdict; its "crash" says during what the child died."""
    assert process.stdin is not None and process.stdout is not None
    doing = "start"
    try:
        process.stdin.write(name + "\n")
        process.stdin.flush()
    except OSError:
        return {"crash": doing}
    watchdog = threading.Timer(seconds, process.kill)
    watchdog.start()
    try:
        for line in process.stdout:
            if line.startswith("at "):
                doing = line[3:].strip()
            elif line.startswith("{"):
                return json.loads(line)
    finally:
        watchdog.cancel()
    return {"crash": doing}


def judge_all(keys: list[str], full: bool, progress: bool = False) -> dict[str, Any]:
    """Verdicts of all these operators, by as many children as there are cores."""
    names: queue.Queue[str] = queue.Queue()
    for name in [*keys, BY_HAND]:
        names.put(name)
    verdicts: dict[str, Any] = {}
    cores = sorted(os.sched_getaffinity(0))
    threads = [threading.Thread(target=run_child_on, args=(names, full, core, verdicts, progress)) for core in cores[: max(1, len(keys) // 4)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


def sibling_pairs(verdicts: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(kind, overload, dtype, words) of overloads that were called with a namesake's arguments; one that fails anywhere fails."""
    found: dict[tuple[str, str], str] = {}
    reached = {name for verdict in verdicts.values() for name in verdict.get("reached", ())}
    for verdict in verdicts.values():
        for name, dtype, words in verdict.get("siblings", ()):
            if name not in reached:
                found[name, dtype] = found.get((name, dtype)) or words
    return [("forward", f"aten::{name}", dtype, words) for (name, dtype), words in sorted(found.items())]


def all_pairs(verdicts: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Every pair of a run."""
    return [pair for name in sorted(verdicts) for pair in pairs_of(name, verdicts[name])] + sibling_pairs(verdicts)


def totals(verdicts: dict[str, Any]) -> dict[str, list[int]]:
    """Pairs that pass and all pairs, by kind."""
    found: dict[str, list[int]] = {}
    for kind, _, _, words in all_pairs(verdicts):
        passed, total = found.get(kind, [0, 0])
        found[kind] = [passed + (not words), total + 1]
    return found


def pairs_of(name: str, verdict: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(kind, name, dtype, words) of an operator's pairs; words are empty where the pair passes."""
    if "crash" in verdict:
        kind, _, dtype = verdict["crash"].partition(" ")
        return [(kind, name, dtype.split(" ")[0], f"crash: {verdict['crash']}")]
    return [(kind, name, dtype, words) for kind, dtype, words in verdict["pairs"]]


# --- child ---


def child(full: bool, core: int | None) -> None:
    """Judges the operators whose names come in on standard input."""
    if core is not None:
        os.sched_setaffinity(0, {core})
    import opinfo_compare

    warnings.simplefilter("ignore")
    listed = family_list()
    for line in sys.stdin:
        name = line.strip()
        verdict = opinfo_compare.judge_samples(listed) if name == BY_HAND else opinfo_compare.judge(all_operators()[name], listed, full)
        print(json.dumps(verdict), flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="regular expression for names")
    parser.add_argument("--full", action="store_true", help="every sample")
    parser.add_argument("--json", help="file for the verdicts")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--core", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.full, options.core)
        return
    begun = time.monotonic()
    verdicts = judge_all([key for key in all_operators() if re.search(options.only, key)], options.full, progress=True)
    for kind, name, dtype, words in all_pairs(verdicts):
        if words:
            print(f"{kind} | {name} | {dtype} | {words}")
    for kind, (passed, total) in totals(verdicts).items():
        print(f"# {kind}: {passed} of {total} ({100 * passed / total:.2f} %)")
    print(f"# {time.monotonic() - begun:.0f} s")
    if options.json:
        Path(options.json).write_text(json.dumps(verdicts, indent=1))


if __name__ == "__main__":
    main()
