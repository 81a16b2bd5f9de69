"""Matrix products against torch's on the CPU (MKL, where torch has it), and half types against our own float32, in turn.

    python bench/gemm.py [--json FILE] [--rounds 21] [--threads 2] [--milliseconds 60]

Shapes: 1024 cubed, and the Linear layers of cnn_step.py's network at batch 128 with the layouts that a training step has
(forward x w', gradient of the input dy w, gradient of the weights dy' x). Outputs exist before; figures are medians of pairs.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from _measure import SETTLE, Repeated, cpu_name, finish, interleave, paired, require_npu, spread, verdict

BATCH = 128
F32_LIMIT, HALF_LIMIT = 0.95, 0.9
HALVES = {"bf16": torch.bfloat16, "f16": torch.float16}
# Name, whether the checks count it, the factors.
SHAPES: list[tuple[str, bool, Callable[[], tuple[torch.Tensor, torch.Tensor]]]] = [
    ("1024 cubed", True, lambda: (torch.randn(1024, 1024), torch.randn(1024, 1024)))
]
for inside, outside, checked in ((8192, 512, True), (512, 10, False)):
    label = f"{inside} to {outside}"
    SHAPES += [
        (f"linear {label}", checked, lambda i=inside, o=outside: (torch.randn(BATCH, i), torch.randn(o, i).t())),
        (f"linear {label}, dx", checked, lambda i=inside, o=outside: (torch.randn(BATCH, o), torch.randn(o, i))),
        (f"linear {label}, dw", checked, lambda i=inside, o=outside: (torch.randn(BATCH, o).t(), torch.randn(BATCH, i))),
    ]


def product(factors: tuple[torch.Tensor, torch.Tensor], device: str, dtype: torch.dtype, repeats: int) -> Callable[[], None]:
    """A timing's work."""
    a, b = (factor.to(device=device, dtype=dtype) for factor in factors)
    out = torch.empty(a.size(0), b.size(1), device=device, dtype=dtype)
    wait = torch.npu.synchronize if device == "npu" else lambda: None
    return Repeated(lambda: torch.mm(a, b, out=out), repeats, wait)


def measure(factors: tuple[torch.Tensor, torch.Tensor], rounds: int, seconds: float) -> dict[str, Any]:
    """Microseconds and ratios of one shape."""
    once = product(factors, "npu", torch.float32, 1)
    once()
    begin = time.perf_counter()
    once()
    repeats = max(1, min(2000, round(seconds / (time.perf_counter() - begin))))
    work = {"cpu": product(factors, "cpu", torch.float32, repeats), "npu": product(factors, "npu", torch.float32, repeats)}
    work |= {name: product(factors, "npu", dtype, repeats) for name, dtype in HALVES.items()}
    timings = interleave(work, rounds, settle=SETTLE)
    return {
        "microseconds": {name: {key: 1e6 * value / repeats for key, value in spread(values).items()} for name, values in timings.items()},
        "npu against cpu": paired(timings, "cpu", faster_is_larger=True)["npu"],
        "halves against npu f32": {name: paired(timings, "npu", faster_is_larger=True)[name] for name in HALVES},
    }


def main() -> None:
    """Parses the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--milliseconds", type=float, default=60, help="length of one timing")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    require_npu()
    torch.manual_seed(0)
    print(f"{cpu_name()}, {arguments.threads} threads; MKL is {'' if torch.backends.mkl.is_available() else 'not '}in this torch")
    print(f"{'product':24}{'cpu, us':>10}{'npu, us':>10}{'bf16':>10}{'f16':>10}   npu against cpu, halves against npu f32")
    rows = {}
    with torch.no_grad():
        for name, checked, make in SHAPES:
            row = rows[name] = measure(make(), arguments.rounds, arguments.milliseconds / 1000) | {"checked": checked}
            ratio, halves = row["npu against cpu"], row["halves against npu f32"]
            print(
                f"{name:24}" + "".join(f"{row['microseconds'][kind]['median']:10.0f}" for kind in ("cpu", "npu", *HALVES)) + f"   "
                f"{ratio['median']:.2f} ({ratio['low quartile']:.2f} - {ratio['high quartile']:.2f}), "
                + ", ".join(f"{kind} {half['median']:.2f}" for kind, half in halves.items()),
                flush=True,
            )
    counted = [row for row in rows.values() if row["checked"]]
    worst = min(row["npu against cpu"]["median"] for row in counted)
    worst_half = min(half["median"] for row in counted for half in row["halves against npu f32"].values())
    print(f"worst of the checked shapes against the CPU {worst:.2f}: {verdict(worst, F32_LIMIT, at_most=False)}")
    print(f"worst half type against float32 {worst_half:.2f}: {verdict(worst_half, HALF_LIMIT, at_most=False)}")
    finish({"rows": rows, "worst": worst, "worst half": worst_half}, arguments.json)


if __name__ == "__main__":
    main()
