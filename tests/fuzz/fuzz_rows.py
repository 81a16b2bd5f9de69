"""Calls of tests/capi with one or two arguments changed: close to valid, so they reach deep into operators. Nothing may crash or write outside.

    fuzz_rows.py [--seconds 120] [--seed 1] [--operator Name]

CAPI_LIBRARIES chooses the libraries, for example sanitized ones under LD_PRELOAD of the sanitizer.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "capi"))

import torch
from cases import ALL, ROWS, Optional, Out, place
from library import Call, Failure
from runner import flat, unwrap
from tables import load

INTEGERS = (0, 1, -1, 2, 3, -2, 5, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**32 + 1, 1000)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324, 1e19)
TEXTS = ("", "none", "tanh", "BSH", "BNSD", "TND", "sum", "NCHW", "half", "x" * 40)


def other_shape(tensor: torch.Tensor, choose: random.Random) -> torch.Tensor:
    """A tensor of another shape or layout, of the same type."""
    sizes = list(tensor.shape)
    kind = choose.randrange(6)
    if kind == 0 and sizes:
        del sizes[choose.randrange(len(sizes))]
    elif kind == 1:
        sizes.insert(choose.randrange(len(sizes) + 1), choose.choice((1, 2, 3)))
    elif kind == 2 and sizes:
        sizes[choose.randrange(len(sizes))] = choose.choice((0, 1, 2, 7))
    elif kind == 3 and len(sizes) > 1:
        return tensor.transpose(0, -1)
    elif kind == 4 and sizes:
        return tensor[:1].expand(tensor.shape) if sizes[0] else tensor
    else:
        sizes = [choose.choice((0, 1, 2, 3, 5)) for _ in range(choose.randrange(9))]
    return place(torch.zeros(sizes, dtype=tensor.dtype), choose.choice(("plain", "strided")))


def other_tensor(tensor: torch.Tensor, choose: random.Random) -> Any:
    """None, another type, another shape, or values that aren't expected."""
    kind = choose.randrange(8)
    if kind == 0:
        return None
    if kind < 3:
        return place(torch.ones(tensor.shape, dtype=choose.choice(ALL)), "plain")
    if kind < 6:
        return other_shape(tensor, choose)
    copy = place(tensor.clone(), "plain")
    if copy.numel() and copy.dtype != torch.bool:
        value = choose.choice((0.0, -1.0, float("inf"), float("nan"), 1000.0)) if copy.is_floating_point() else choose.choice((0, 1, -1, 100))
        copy.view(-1)[choose.randrange(copy.numel())] = abs(value) if copy.dtype == torch.uint8 else value
    return copy


def other(value: Any, choose: random.Random) -> Any:
    """Another value of one argument."""
    if isinstance(value, torch.Tensor):
        return other_tensor(value, choose)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return choose.choice(INTEGERS)
    if isinstance(value, float):
        return choose.choice(NUMBERS)
    if isinstance(value, str):
        return choose.choice(TEXTS)
    if isinstance(value, list) and value:
        at = choose.randrange(len(value))
        kind = choose.randrange(4)
        if kind == 0:
            return None
        if kind == 1:
            return value[:at] + value[at + 1 :]
        if kind == 2:
            return [*value, value[at]]
        return [*value[:at], other(value[at], choose), *value[at + 1 :]]
    return value


def run(operator: str, values: list[Any]) -> str:
    """refused, failed or ran."""
    try:
        call = Call(operator, values)
    except (Failure, TypeError, OverflowError):
        return "not a call"
    try:
        if call.plan():
            call.libs.message()
            return "refused"
        if call.bytes.value > 1 << 26:
            call.libs.handles.aclDestroyAclOpExecutor(call.executor)
            return "refused"
        call.run()
        return "ran"
    except Failure:
        return "failed"
    finally:
        call.close()


def one(operator: str, choose: random.Random) -> str:
    """One changed call of an operator."""
    row = ROWS[operator]
    cases = list(row.cases(choose.choice(row.dtypes[:4] if choose.random() < 0.7 else row.dtypes)))
    try:
        calls = [values for _, values in zip(range(6), row.calls(choose.choice(cases)))]
    except (RuntimeError, NotImplementedError, TypeError, IndexError):
        return "no reference"
    if not calls:
        return "no reference"
    given = choose.choice(calls)
    given = given.values if isinstance(given, Optional) else given
    values = unwrap(given)
    for _ in range(choose.choice((1, 1, 2))):
        at = choose.randrange(len(values))
        values[at] = other(values[at], choose)
    outside = [(out, out.outside()) for out in flat(given) if isinstance(out, Out)]
    kept = [v for v in flat(values) if isinstance(v, torch.Tensor)]
    result = run(operator, values)
    for out, before in outside:
        if any(out.view is v for v in kept) and not torch.equal(out.outside(), before):
            raise SystemExit(f"aclnn{operator} wrote outside of an output: {values}")
    return result


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--operator")
    options = parser.parse_args()
    load()
    torch.set_num_threads(1)
    names = [options.operator] if options.operator else sorted(ROWS)
    counts: dict[str, int] = {}
    end, number = time.monotonic() + options.seconds, options.seed
    while time.monotonic() < end:
        name = names[number % len(names)]
        if os.environ.get("FUZZ_TALK"):
            print(number, name, file=sys.stderr, flush=True)
        result = one(name, random.Random(number))
        counts[result] = counts.get(result, 0) + 1
        number += 1
    print(f"{number - options.seed} calls: {counts}")


if __name__ == "__main__":
    main()
