"""Every operator of torch's own OpInfo list on npu through the published torch-npu wheel: which run natively, fall back, fail or differ.

Run with `make run-cann ARGS="bench/wheel_ops.py"`; --json FILE keeps the table. Operators run in child processes, which may crash: the parent
notes it and goes on behind the operator. An operator counts with the worst of its samples:

native     every operator of its samples that reaches the device has a kernel in the wheel, and the values are the CPU's
fell back  some of them ran on the CPU instead (the wheel's own fallback); the values are the CPU's
absent     the wheel asked our libraries for an operator that they lack
refused    by the wheel itself, before it asked our libraries (a type or an option that it doesn't take on any card)
error      refused by our libraries, where torch's CPU computes
wrong      other values, shapes or types than the CPU's
crash      the process died, or didn't answer in time
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import selectors
import subprocess
import sys
import time
import warnings
from typing import Any

SEVERITY = ("native", "differs as documented", "fell back", "refused", "absent", "error", "wrong", "crash")
SECONDS_FOR_ONE = 90
NO_VALUES = re.compile(r"^(new_)?empty|^empty_|resize")  # whatever was in memory
TIES = {"topk", "kthvalue", "sort", "argsort", "mode", "median", "nanmedian"}  # of equal elements any may be named: only the values are compared
# What the wheel itself does differently on every card, or CANN's documents say; with other values than torch's CPU.
CONJUGATION = "the wheel hands lazily conjugated factors on as if they weren't (cards have no complex products)"
DOCUMENTED = {
    "nn.functional.gelu": "aclnnGelu means the tanh form, whatever form is asked for",
    "native_batch_norm": "saved statistics are returned in evaluation too, as on CUDA",
    "_native_batch_norm_legit": "saved statistics are returned in evaluation too, as on CUDA",
    "nn.functional.max_pool1d": "indices are aclnnMaxPool2dWithMask's packed mask",
    "nn.functional.max_pool2d": "indices are aclnnMaxPool2dWithMask's packed mask",
    "nn.functional.max_pool3d": "the wheel's own tensor of indices is int32",
    "nn.functional.adaptive_max_pool3d": "the wheel's own tensor of indices is int32",
    "float_power": "the wheel makes float32 of float64",
    "double": "the wheel makes float32 of float64",
    "native_dropout_backward": "the wheel keeps an integer type",
    "linalg.vecdot": CONJUGATION,
    "linalg.lstsq": CONJUGATION,
    "linalg.pinv": CONJUGATION,
    "to": "the wheel makes float32 of float64",
    "native_layer_norm": "the wheel gives the statistics of an empty tensor another shape",
    **dict.fromkeys(("var", "var_mean", "std", "std_mean"), "the wheel keeps the complex type"),
}
OURS = re.compile(r"NPU function error|OPS function error|call acl")
ABSENT = re.compile(r"not in libopapi\.so|no compiler for operators of before aclnn|can not find|Failed to find function")


def op_list() -> list[Any]:
    """torch's OpInfos, the foreach ones too."""
    from torch.testing._internal import common_methods_invocations as invocations

    lists = [invocations.op_db, *(getattr(invocations, name) for name in dir(invocations) if name.startswith("foreach_") and name.endswith("_op_db"))]
    return [op for ops in lists for op in ops]


def moved(value: Any) -> Any:
    """The same arguments for npu."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.npu() if value.device.type == "cpu" else value
    if isinstance(value, (list, tuple)):
        parts = [moved(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: moved(part) for key, part in value.items()}
    if value == "cpu" or (isinstance(value, torch.device) and value.type == "cpu"):
        return torch.device("npu")
    return value


def copied(value: Any) -> Any:
    """Arguments that an operator may change."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        parts = [copied(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def tensors_of(value: Any) -> list[Any]:
    """Tensors and numbers of a result, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value.to_dense() if value.layout != torch.strided else value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors_of(part)]
    return [value] if isinstance(value, (int, float, bool, complex)) else []


def difference(name: str, got: Any, want: Any, random: bool = False) -> str:
    """What is different, "" when nothing is. Of random results only shapes and types count."""
    import torch

    ours, theirs = tensors_of(got), tensors_of(want)
    if name in TIES and len(theirs) == 2:
        ours, theirs = ours[:1], theirs[:1]
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for mine, right in zip(ours, theirs):
        if not isinstance(right, torch.Tensor):
            if mine != right and mine == mine:
                return f"{mine} instead of {right}"
            continue
        if mine.shape != right.shape or mine.dtype != right.dtype:
            return f"{mine.dtype} {list(mine.shape)} instead of {right.dtype} {list(right.shape)}"
        if random or NO_VALUES.search(name.split(".")[-1]):
            continue
        try:
            torch.testing.assert_close(mine.cpu(), right, rtol=1e-3, atol=1e-4, equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
    return ""


class Recorder:
    """Notes which operators reach the device, which of them the wheel leaves to its CPU fallback, and whether any draws random numbers."""

    def __init__(self) -> None:
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        recorder = self
        self.fell_back: set[str] = set()
        self.random = False
        self.known: dict[str, bool] = {}

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
                if recorder.is_fallback(function.name()):
                    recorder.fell_back.add(function.name())
                if torch.Tag.nondeterministic_seeded in function.tags and "scaled_dot_product" not in function.name():
                    recorder.random = True
                return function(*arguments, **(options or {}))

        self.mode = Mode
        self.dump = torch._C._dispatch_dump_table

    def is_fallback(self, name: str) -> bool:
        """Has the dispatcher only the backend's fallback for it?"""
        if name not in self.known:
            line = next((line for line in self.dump(name).splitlines() if line.startswith("PrivateUse1:")), "")
            self.known[name] = "fallback" in line
        return self.known[name]


def samples_of(op: Any, dtype: Any, count: int) -> list[Any]:
    """The first samples of an OpInfo."""
    found = []
    for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
        found.append(sample)
        if len(found) == count:
            break
    return found


def judge_sample(op: Any, sample: Any) -> tuple[str, str] | None:
    """(status, words) of one sample; None when torch's CPU doesn't compute it either."""
    name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
    recorder, on_cpu = Recorder(), Recorder()
    try:
        with on_cpu.mode():
            want = op.op(copied(sample.input), *copied(sample.args), **sample.kwargs)
    except Exception:
        return None
    try:
        arguments = [moved(copied(sample.input)), *moved(copied(sample.args))]
        options = moved(sample.kwargs)
        with recorder.mode():
            got = op.op(*arguments, **options)
        words = difference(op.name, got, want, on_cpu.random)
    except Exception as error:
        text = " ".join(str(error).split())
        status = "absent" if ABSENT.search(text) else "error" if OURS.search(text) else "refused"
        return status, f"{type(error).__name__}: {text[:600]}"
    if words:
        if op.name in DOCUMENTED:
            return "differs as documented", DOCUMENTED[op.name]
        return "wrong", f"{name}: {words}"
    if recorder.fell_back:
        return "fell back", ", ".join(sorted(recorder.fell_back))
    return "native", ""


def judge(op: Any, count: int) -> tuple[str, str, int]:
    """(worst status, its words, samples that were judged)."""
    import torch

    supported = op.supported_dtypes("cpu")
    usual = (torch.float32, torch.int64, torch.bool, torch.complex64)
    preferred = [dtype for dtype in usual if dtype in supported][:2] or sorted(supported, key=str)[:1]
    worst, said, judged = "native", "", 0
    for dtype in preferred:
        try:
            samples = samples_of(op, dtype, count)
        except Exception:
            continue
        for sample in samples:
            verdict = judge_sample(op, sample)
            if verdict is None:
                continue
            judged += 1
            if SEVERITY.index(verdict[0]) > SEVERITY.index(worst):
                worst, said = verdict[0], f"{dtype}: {verdict[1]}"
    return worst, said, judged


def child(first: int, count: int, only: str) -> None:
    """Judges operators from number `first` on; one line of JSON before and after each."""
    import torch
    import torch_npu  # noqa: F401

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for number, op in enumerate(op_list()):
        if number < first or (only and not re.search(only, op.name)):
            continue
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        print(json.dumps({"number": number, "begins": name}), flush=True)
        status, words, judged = judge(op, count)
        print(json.dumps({"number": number, "name": name, "status": status, "words": words, "samples": judged}), flush=True)
    print(json.dumps({"end": True}), flush=True)


def lines_of(process: subprocess.Popen[str]) -> Any:
    """Lines of the child; ends when it dies or says nothing for too long."""
    assert process.stdout is not None
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    while selector.select(SECONDS_FOR_ONE + 60):
        line = process.stdout.readline()
        if not line:
            return
        yield line
    process.kill()


def run_children(count: int, only: str) -> list[dict[str, Any]]:
    """All rows; a child that dies costs the operator it was at."""
    rows: list[dict[str, Any]] = []
    first, ended = 0, False
    while not ended:
        words = [sys.executable, __file__, "--child", str(first), "--samples", str(count), "--only", only]
        environment = os.environ | {"TASK_QUEUE_ENABLE": "0"}  # an error ends the wheel's launch queue; without the queue it is one call's
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        current: dict[str, Any] | None = None
        for line in lines_of(process):
            if not line.startswith("{"):
                continue
            message = json.loads(line)
            if message.get("end"):
                ended = True
            elif "begins" in message:
                current = message
            else:
                rows.append(message)
                first, current = message["number"] + 1, None
        code = process.wait()
        if ended:
            break
        if current is None:
            raise SystemExit(f"the child ended with {code} between operators, at number {first}")
        rows.append({"number": current["number"], "name": current["begins"], "status": "crash", "words": f"exit code {code}", "samples": 0})
        first = current["number"] + 1
    return rows


def report(rows: list[dict[str, Any]], seconds: float) -> None:
    """The table, then the words of everything that isn't native."""
    judged = [row for row in rows if row["samples"] or row["status"] == "crash"]
    counts = collections.Counter(row["status"] for row in judged)
    print(f"{len(rows)} entries of the OpInfo list, {len(judged)} with a sample that torch's CPU computes, {seconds:.0f} s")
    for status in SEVERITY:
        print(f"  {status:<22} {counts[status]:4d}  {100 * counts[status] / max(1, len(judged)):5.1f} %")
    for status in reversed(SEVERITY[1:]):
        for row in judged:
            if row["status"] == status:
                print(f"{status}: {row['name']}: {row['words'][:260]}")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", help="file for the table")
    parser.add_argument("--samples", type=int, default=12, help="samples for each type of each operator")
    parser.add_argument("--only", default="", help="regular expression for names")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.samples, options.only)
        return
    begun = time.monotonic()
    rows = run_children(options.samples, options.only)
    report(rows, time.monotonic() - begun)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
