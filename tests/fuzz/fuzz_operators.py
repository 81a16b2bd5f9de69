"""Random comparisons of npu with the CPU: shapes, strides, broadcast, dtypes, special values.

    make fuzz ARGS="--seconds 300 --seed 1"

Each case is decided by its own seed, which a failure prints: `--case SEED` repeats that one. An operator that raises on the CPU
must raise on npu, and the reverse.
"""

import argparse
import random
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGRAL = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
ALL = [*FLOATING, *INTEGRAL, torch.bool]
# largest relative error where results aren't equal: (elementwise, sums over many values)
TOLERANCE = {torch.float64: (1e-13, 1e-11), torch.float32: (2e-6, 5e-5), torch.float16: (2e-3, 8e-3), torch.bfloat16: (1.6e-2, 4e-2)}


class Maker:
    """Random tensors from one seed, on the CPU."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)

    def shape(self, low: int = 0, high: int = 4) -> list[int]:
        """A random shape of low to high dimensions, now and then an empty or long one."""
        sizes = [self.random.choice([1, 2, 3, 4, 5, 7, 8, 16, 17, 33]) for _ in range(self.random.randint(low, high))]
        if sizes and self.random.random() < 0.05:
            sizes[self.random.randrange(len(sizes))] = self.random.choice([0, 257, 1025])
        return sizes

    def values(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        """Values that suit the dtype; floats with zeros, and rarely with NaN and infinities."""
        if dtype == torch.bool:
            return torch.rand(shape, generator=self.generator) < 0.5
        if not dtype.is_floating_point:
            return torch.randint(0 if dtype == torch.uint8 else -20, 21, shape, generator=self.generator).to(dtype)
        tensor = torch.randn(shape, generator=self.generator, dtype=torch.float64) * 3
        tensor[torch.rand(shape, generator=self.generator) < 0.05] = 0
        if self.random.random() < 0.1:
            for special in (float("nan"), float("inf"), -float("inf")):
                tensor[torch.rand(shape, generator=self.generator) < 0.03] = special
        return tensor.to(dtype)

    def tensor(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor of that shape with random strides: contiguous, permuted, stepped, expanded or with an offset."""
        kind = self.random.choice(["plain", "plain", "permuted", "stepped", "offset", "expanded"])
        if not shape or kind == "plain":
            return self.values(shape, dtype)
        if kind == "permuted":
            order = self.random.sample(range(len(shape)), len(shape))
            inverse = [order.index(axis) for axis in range(len(shape))]
            return self.values([shape[axis] for axis in order], dtype).permute(inverse)
        if kind == "stepped":
            return self.values([*shape[:-1], 2 * shape[-1]], dtype)[..., ::2]
        if kind == "offset":
            return self.values([shape[0] + 2, *shape[1:]], dtype)[2:]
        return self.values([1, *shape[1:]], dtype).expand(shape)

    def broadcast(self, shape: list[int]) -> list[int]:
        """A shape that broadcasts to `shape`."""
        sizes = [1 if self.random.random() < 0.3 else size for size in shape]
        return sizes[self.random.randint(0, len(sizes)) if self.random.random() < 0.3 else 0 :]


# a case: a maker -> (function of tensors, tensors, does it sum?)
Case = tuple[Callable[..., Any], list[torch.Tensor], bool]
UNARY = [
    "neg",
    "abs",
    "relu",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sigmoid",
    "tanh",
    "floor",
    "ceil",
    "round",
    "sign",
    "isnan",
    "isfinite",
    "logical_not",
    "square",
    "sin",
    "cos",
    "clone",
    "bitwise_not",
    "erf",
    "trunc",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "pow",
    "atan2",
    "bitwise_and",
    "remainder",
    "fmod",
    "floor_divide",
]
REDUCE = ["sum", "mean", "amax", "amin", "any", "all", "argmax", "argmin", "var", "std", "logsumexp", "softmax", "log_softmax", "cumsum"]


def unary(maker: Maker) -> Case:
    """An elementwise function of one tensor."""
    name = maker.random.choice(UNARY)
    function = F.relu if name == "relu" else getattr(torch, name)
    return function, [maker.tensor(maker.shape(), maker.random.choice(ALL))], False


def binary(maker: Maker) -> Case:
    """An elementwise function of two tensors or a tensor and a number, broadcast and promoted, sometimes in place."""
    name, shape = maker.random.choice(BINARY), maker.shape()
    left = maker.tensor(shape, maker.random.choice(ALL))
    if maker.random.random() < 0.25:
        number = maker.random.choice([2, -1, 0.5, True, 3.25])
        return lambda a: getattr(torch, name)(a, number), [left], False
    same = maker.random.random() < 0.6
    right = maker.tensor(maker.broadcast(shape), left.dtype if same else maker.random.choice(ALL))
    if name in ("add", "sub", "mul") and maker.random.random() < 0.3:
        return lambda a, b: getattr(a.clone(), name + "_")(b), [left, right], False
    return getattr(torch, name), [left, right], False


def reduction(maker: Maker) -> Case:
    """A reduction, scan or softmax over one dimension."""
    name, shape = maker.random.choice(REDUCE), maker.shape(1)
    dimension = maker.random.randrange(-len(shape), len(shape))
    keep = {} if name in ("softmax", "log_softmax", "cumsum") else {"keepdim": maker.random.random() < 0.5}
    tensor = maker.tensor(shape, maker.random.choice(ALL))
    return lambda a: getattr(torch, name)(a, dim=dimension, **keep), [tensor], True


def matrix(maker: Maker) -> Case:
    """Matrix products, with transposed operands."""
    dtype = maker.random.choice(FLOATING)
    m, k, n, batch = (maker.random.choice([1, 2, 3, 8, 17, 40, 65]) for _ in range(4))
    kind = maker.random.choice(["mm", "addmm", "bmm", "linear", "mv", "matmul"])
    make = maker.tensor
    if kind == "bmm":
        return torch.bmm, [make([batch, m, k], dtype), make([batch, k, n], dtype)], True
    if kind == "mv":
        return torch.mv, [make([m, k], dtype), make([k], dtype)], True
    if kind == "linear":
        return F.linear, [make([batch, m, k], dtype), make([n, k], dtype), make([n], dtype)], True
    if kind == "addmm":
        return torch.addmm, [make(maker.broadcast([m, n]), dtype), make([m, k], dtype), make([k, n], dtype)], True
    return getattr(torch, kind), [make([m, k], dtype), make([k, n], dtype)], True


def convolution(maker: Maker) -> Case:
    """A 2-d convolution with its gradients, or a pooling."""
    dtype = maker.random.choice([torch.float32, torch.float64])
    n, c, o, size = maker.random.choice([1, 3]), maker.random.choice([1, 3, 8]), maker.random.choice([1, 4, 9]), maker.random.choice([5, 8, 13])
    images = maker.values([n, c, size, size], dtype).nan_to_num(0, 1, -1)
    if maker.random.random() < 0.3:
        kernel, stride = maker.random.choice([(2, 2), (3, 1), (3, 2)])
        pool = maker.random.choice([F.max_pool2d, F.avg_pool2d])
        return lambda x: pool(x, kernel, stride), [images], True
    side = maker.random.choice([1, 3, 5])
    weight, bias = maker.values([o, c, side, side], dtype).nan_to_num(0, 1, -1), maker.values([o], dtype).nan_to_num(0, 1, -1)
    options = {"stride": maker.random.choice([1, 2]), "padding": maker.random.choice([0, 1, 2])}

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        output = F.conv2d(*leaves, **options)
        output.square().sum().backward()
        return [output.detach(), *(leaf.grad for leaf in leaves)]

    return run, [images, weight, bias], True


def movement(maker: Maker) -> Case:
    """Indexing, joining, filling, casting."""
    shape = maker.shape(1)
    tensor = maker.tensor(shape, maker.random.choice(ALL))
    rows = torch.randint(-shape[0], max(shape[0], 1), (4,), generator=maker.generator) if shape[0] else torch.empty(0, dtype=torch.int64)
    mask = torch.rand(shape, generator=maker.generator) < 0.5
    other = maker.random.choice(ALL)
    return maker.random.choice(
        [
            lambda: (lambda a, i: a[i], [tensor, rows], False),
            lambda: (lambda a, i: a.index_select(0, i.abs() % max(a.shape[0], 1)), [tensor, rows], False),
            lambda: (lambda a, m: a.masked_fill(m, 1), [tensor, mask], False),
            lambda: (lambda a, m: torch.where(m, a, a * 2), [tensor, mask], False),
            lambda: (lambda a: torch.cat([a, a], 0), [tensor], False),
            lambda: (lambda a: torch.stack([a, a], -1), [tensor], False),
            lambda: (lambda a: a.to(torch.float32).nan_to_num(0, 1, -1).abs().to(other), [tensor], False),
            lambda: (lambda a: a.flip(0), [tensor], False),
            lambda: (lambda a: torch.nonzero(a), [tensor], False),
            lambda: (lambda a, m: a[m], [tensor, mask], False),
            lambda: (lambda a: a.contiguous(), [tensor], False),
        ]
    )()


FAMILIES = [unary, binary, reduction, matrix, convolution, movement]


def outcome(function: Callable[..., Any], tensors: list[torch.Tensor]) -> tuple[str, Any]:
    """What a call gives: ("value", tensors on the CPU) or ("error", exception)."""
    try:
        result = function(*tensors)
        return "value", [part.detach().cpu() for part in (result if isinstance(result, list | tuple) else [result])]
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        return "error", error


def difference(got: list[torch.Tensor], want: list[torch.Tensor], sums: bool) -> str | None:
    """Words on what differs, or None."""
    for mine, right in zip(got, want, strict=True):
        if mine.dtype != right.dtype or mine.shape != right.shape:
            return f"{mine.dtype} {tuple(mine.shape)} instead of {right.dtype} {tuple(right.shape)}"
        if right.dtype not in TOLERANCE:
            if not torch.equal(mine, right):
                return "values differ"
            continue
        limit = TOLERANCE[right.dtype][int(sums)]
        finite = right[right.isfinite()].double().abs()
        scale = float(finite.max()) if sums and finite.numel() else 1.0
        if not torch.allclose(mine.double(), right.double(), rtol=limit, atol=limit * scale, equal_nan=True):
            wrong = (mine.double() - right.double()).abs().nan_to_num(float("inf"))
            return f"largest difference {float(wrong.max()):.3g}, limit {limit:.1g}"
    return None


def run_case(seed: int, device: str) -> str | None:
    """Runs one case; words on what is wrong, or None."""
    maker = Maker(seed)
    family = maker.random.choice(FAMILIES)
    function, tensors, sums = family(maker)
    moved = [tensor.to(device) for tensor in tensors]
    (kind, got), (want_kind, want) = outcome(function, moved), outcome(function, tensors)
    operands = ", ".join(f"{tensor.dtype} {tuple(tensor.shape)}" for tensor in tensors)
    where = f"{family.__name__} {getattr(function, '__name__', '')}({operands})"
    if kind != want_kind:
        return f"{where}: gives {kind} instead of {want_kind}: {str(got if kind == 'error' else want).splitlines()[0]}"
    words = difference(got, want, sums) if kind == "value" else None
    return f"{where}: {words}" if words else None


def main() -> None:
    """Runs cases until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--case", type=int)
    parser.add_argument("--device", default="npu")
    arguments = parser.parse_args()
    if arguments.device == "npu":
        import torchtitan_npu  # noqa: F401
    if arguments.case is not None:
        sys.exit(run_case(arguments.case, arguments.device))
    warnings.simplefilter("ignore")
    print(f"seed {arguments.seed}", flush=True)
    end, count, failures = time.monotonic() + arguments.seconds, 0, 0
    while time.monotonic() < end and failures < 50:
        seed = arguments.seed * 1_000_000 + count
        count += 1
        words = run_case(seed, arguments.device)
        if words:
            failures += 1
            print(f"--case {seed}: {words}", flush=True)
    print(f"{count} cases, {failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
