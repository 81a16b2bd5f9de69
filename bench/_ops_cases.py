"""The operators and shapes of ops.py: what ordinary networks use, from 1 Ki to 16 Mi elements, whoever is faster."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

Maker = Callable[[], Any]
HALVES = {"bf16": torch.bfloat16, "f16": torch.float16}


@dataclass(frozen=True, eq=False)
class Case:
    """One operator at one shape; `make` gives its inputs on the CPU, which are then moved."""

    family: str
    name: str
    shape: str
    make: Maker
    run: Callable[..., Any]
    backward: bool = False

    def inputs(self, device: str) -> list[Any]:
        """The same values on every call and device."""
        torch.manual_seed(0)
        return [moved(value, device) for value in self.make()]

    def elements(self) -> int:
        """Of the largest input; the members of a list count together."""
        torch.manual_seed(0)
        return max(sum(part.numel() for part in (value if isinstance(value, list) else [value])) for value in self.make())


def moved(value: Any, device: str) -> Any:
    """A tensor (with its strides), list of tensors or number, on the device; modules and parameters too."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.preserve_format) if device == "cpu" else value.detach().to(device)
    if isinstance(value, list):
        return [moved(part, device) for part in value]
    return value


def normal(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normally distributed values."""
    return torch.randn(*sizes).to(dtype)


def text(*sizes: int) -> str:
    """Sizes as a table shows them."""
    return "x".join(str(size) for size in sizes)


CASES: list[Case] = []


def case(family: str, name: str, shape: str, make: Maker, run: Callable[..., Any], backward: bool = False) -> None:
    """Notes one case."""
    CASES.append(Case(family, name, shape, make, run, backward))


def unary(name: str, sizes: tuple[int, ...], run: Callable[..., Any], backward: bool = False, kind: str = "f32") -> None:
    """An elementwise function of one tensor."""
    dtype = HALVES.get(kind, torch.float32)
    shape = text(*sizes) + ("" if kind == "f32" else " " + kind)
    case("elementwise", name, shape, lambda: [normal(*sizes, dtype=dtype)], run, backward)


def binary(
    name: str, sizes: tuple[int, ...], run: Callable[..., Any], other: tuple[int, ...] = (), backward: bool = False, kind: str = "f32"
) -> None:
    """An elementwise function of two tensors, the second of size `other` where given."""
    dtype = HALVES.get(kind, torch.float32)
    shape = text(*sizes) + (", " + text(*other) if other else "") + ("" if kind == "f32" else " " + kind)
    case("elementwise", name, shape, lambda: [normal(*sizes, dtype=dtype), normal(*(other or sizes), dtype=dtype)], run, backward)


def elementwise() -> None:
    """Contiguous, strided, broadcast, in place."""
    binary("add", (1024,), torch.add, backward=True)
    binary("add", (256, 256), torch.add, backward=True)
    binary("add", (1024, 1024), torch.add)
    binary("add", (4096, 4096), torch.add)
    binary("add", (1024, 1024), torch.add, kind="bf16")
    binary("mul", (64, 256), torch.mul, backward=True)
    binary("mul", (1024, 1024), torch.mul, backward=True, kind="f16")
    binary("add bias", (2048, 1024), torch.add, other=(1024,), backward=True)
    binary("mul channels", (16, 64, 56, 56), torch.mul, other=(1, 64, 1, 1), backward=True)
    binary("add transposed", (1024, 1024), lambda a, b: a + b.t())
    binary("add_ in place", (1024, 1024), lambda a, b: a.add_(b, alpha=0.5))
    unary("mul_ number in place", (2048, 2048), lambda a: a.mul_(0.999))
    binary("lerp_ in place", (1024, 1024), lambda a, b: a.lerp_(b, 0.01))
    binary("where", (1024, 1024), lambda a, b: torch.where(a > 0, a, b))
    unary("masked_fill", (1024, 1024), lambda a: a.masked_fill(a > 0, -1.0))
    unary("relu", (64, 64, 32, 32), torch.relu, backward=True)
    unary("gelu", (1024, 3072), functional.gelu, backward=True)
    unary("gelu", (512, 3072), functional.gelu, backward=True, kind="bf16")
    unary("silu", (1024, 1024), functional.silu, backward=True)
    unary("sigmoid", (256, 256), torch.sigmoid, backward=True)
    unary("tanh", (1024, 1024), torch.tanh, backward=True)
    unary("exp", (1024, 1024), torch.exp)
    unary("pow 2", (1024, 1024), lambda a: a.pow(2), backward=True)
    unary("clamp", (1024, 1024), lambda a: a.clamp(-1, 1))


def reductions() -> None:
    """All, inner, outer, several dimensions; cumulative sums."""
    case("reduction", "sum all", "1024x1024", lambda: [normal(1024, 1024)], torch.sum, True)
    case("reduction", "sum all", "4096x4096", lambda: [normal(4096, 4096)], torch.sum)
    case("reduction", "sum inner", "4096x1024", lambda: [normal(4096, 1024)], lambda a: a.sum(-1))
    case("reduction", "sum outer", "4096x1024", lambda: [normal(4096, 1024)], lambda a: a.sum(0))
    case("reduction", "mean of planes", "32x512x7x7", lambda: [normal(32, 512, 7, 7)], lambda a: a.mean((2, 3)), True)
    case("reduction", "amax inner", "2048x1024", lambda: [normal(2048, 1024)], lambda a: a.amax(-1))
    case("reduction", "argmax inner", "512x1000", lambda: [normal(512, 1000)], lambda a: a.argmax(-1))
    case("reduction", "var inner", "2048x1024", lambda: [normal(2048, 1024)], lambda a: a.var(-1))
    case("reduction", "norm all", "2048x2048", lambda: [normal(2048, 2048)], lambda a: a.norm())
    case("reduction", "cumsum inner", "1024x1024", lambda: [normal(1024, 1024)], lambda a: a.cumsum(-1))


def softmax_and_norms() -> None:
    """Softmax, normalisation, losses."""
    case("softmax", "softmax", "8x12x256x256", lambda: [normal(8, 12, 256, 256)], lambda a: a.softmax(-1), True)
    case("softmax", "log_softmax", "128x10", lambda: [normal(128, 10)], lambda a: a.log_softmax(-1), True)
    case("softmax", "log_softmax", "512x32768", lambda: [normal(512, 32768)], lambda a: a.log_softmax(-1), True)
    case(
        *("norm", "layer_norm", "2048x768", lambda: [normal(2048, 768), normal(768), normal(768)]),
        *(lambda a, w, b: functional.layer_norm(a, (768,), w, b), True),
    )
    case(
        *("norm", "layer_norm", "64x256", lambda: [normal(64, 256), normal(256), normal(256)]),
        *(lambda a, w, b: functional.layer_norm(a, (256,), w, b), True),
    )
    for sizes in ((128, 64, 32, 32), (16, 256, 14, 14)):
        case(
            *("norm", "batch_norm", text(*sizes), lambda sizes=sizes: [normal(*sizes), normal(sizes[1]), normal(sizes[1])]),
            *(lambda a, w, b: functional.batch_norm(a, None, None, w, b, training=True), True),
        )
    case(
        *("norm", "group_norm", "16x128x32x32", lambda: [normal(16, 128, 32, 32), normal(128), normal(128)]),
        *(lambda a, w, b: functional.group_norm(a, 32, w, b), True),
    )
    case("norm", "rms_norm", "2048x1024", lambda: [normal(2048, 1024), normal(1024)], lambda a, w: functional.rms_norm(a, (1024,), w), True)
    for sizes in ((128, 10), (1024, 8192)):
        case(
            *("loss", "cross_entropy", text(*sizes), lambda sizes=sizes: [normal(*sizes), torch.randint(sizes[1], (sizes[0],))]),
            *(functional.cross_entropy, True),
        )
    case("loss", "mse_loss", "1024x1024", lambda: [normal(1024, 1024), normal(1024, 1024)], functional.mse_loss, True)
    case("random", "dropout", "1024x1024", lambda: [normal(1024, 1024)], lambda a: functional.dropout(a, 0.5), True)


def products() -> None:
    """Matrix products and attention."""
    for size in (64, 256, 1024):
        case("product", "mm", f"{size} cubed", lambda size=size: [normal(size, size), normal(size, size)], torch.mm, size == 256)
    for kind, dtype in HALVES.items():
        case("product", "mm", f"512 cubed {kind}", lambda dtype=dtype: [normal(512, 512, dtype=dtype) for _ in range(2)], torch.mm)
    for rows, inside, outside in ((128, 8192, 512), (128, 512, 10), (1024, 768, 3072), (1, 4096, 4096)):
        case(
            *("product", "linear", f"{rows}x{inside} to {outside}"),
            lambda rows=rows, inside=inside, outside=outside: [normal(rows, inside), normal(outside, inside), normal(outside)],
            *(functional.linear, rows > 1),
        )
    case("product", "bmm", "96x256x64x256", lambda: [normal(96, 256, 64), normal(96, 64, 256)], torch.bmm, True)
    for causal, sizes in ((False, (4, 12, 256, 64)), (True, (1, 16, 1024, 64))):
        case(
            *("attention", "attention causal" if causal else "attention", text(*sizes)),
            lambda sizes=sizes: [normal(*sizes) for _ in range(3)],
            lambda q, k, v, causal=causal: functional.scaled_dot_product_attention(q, k, v, is_causal=causal),
            True,
        )


# Name, images, channels in and out, size of the square image, kernel, stride, padding, groups, type.
CONVOLUTIONS = (
    ("conv 3x3", 8, 64, 64, 56, 3, 1, 1, 1, "f32"),
    ("conv 3x3 of colours", 64, 3, 64, 32, 3, 1, 1, 1, "f32"),
    ("conv 3x3 small image", 8, 512, 512, 7, 3, 1, 1, 1, "f32"),
    ("conv 3x3 stride 2", 8, 64, 128, 56, 3, 2, 1, 1, "f32"),
    ("conv 1x1", 8, 256, 64, 56, 1, 1, 0, 1, "f32"),
    ("conv depthwise", 8, 144, 144, 56, 3, 1, 1, 144, "f32"),
    ("conv 7x7 stride 2", 4, 3, 64, 224, 7, 2, 3, 1, "f32"),
    ("conv 3x3", 8, 64, 64, 28, 3, 1, 1, 1, "bf16"),
)


def convolutions() -> None:
    """Ordinary layers of image networks; one for sequences, one transposed."""
    for name, images, channels, rows, size, kernel, stride, pad, groups, kind in CONVOLUTIONS:
        dtype = HALVES.get(kind, torch.float32)
        case(
            *("convolution", name, f"{images}x{channels}x{size}x{size} to {rows}" + ("" if kind == "f32" else " " + kind)),
            lambda images=images, channels=channels, rows=rows, size=size, kernel=kernel, groups=groups, dtype=dtype: [
                normal(images, channels, size, size, dtype=dtype),
                normal(rows, channels // groups, kernel, kernel, dtype=dtype),
            ],
            lambda x, w, stride=stride, pad=pad, groups=groups: functional.conv2d(x, w, stride=stride, padding=pad, groups=groups),
            True,
        )
    case(
        *("convolution", "conv1d 3", "8x256x512 to 256", lambda: [normal(8, 256, 512), normal(256, 256, 3)]),
        *(lambda x, w: functional.conv1d(x, w, padding=1), True),
    )
    case(
        *("convolution", "conv transposed 4x4 stride 2", "8x128x16x16 to 64", lambda: [normal(8, 128, 16, 16), normal(128, 64, 4, 4)]),
        *(lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1), True),
    )


def pooling() -> None:
    """Pooling and upsampling."""
    case("pooling", "max_pool 2x2", "128x64x32x32", lambda: [normal(128, 64, 32, 32)], lambda a: functional.max_pool2d(a, 2), True)
    case("pooling", "max_pool 3x3 stride 2", "8x64x112x112", lambda: [normal(8, 64, 112, 112)], lambda a: functional.max_pool2d(a, 3, 2, 1), True)
    case("pooling", "avg_pool 2x2", "32x128x28x28", lambda: [normal(32, 128, 28, 28)], lambda a: functional.avg_pool2d(a, 2), True)
    case("pooling", "adaptive_avg_pool 1", "32x512x7x7", lambda: [normal(32, 512, 7, 7)], lambda a: functional.adaptive_avg_pool2d(a, 1), True)
    case(
        *("pooling", "upsample bilinear 2", "4x64x64x64", lambda: [normal(4, 64, 64, 64)]),
        *(lambda a: functional.interpolate(a, scale_factor=2, mode="bilinear"), True),
    )


def moves() -> None:
    """Copies, casts, joins, indices, order."""
    case("copy", "transpose", "2048x2048", lambda: [normal(2048, 2048)], lambda a: a.t().contiguous())
    case("copy", "heads", "8x256x12x64", lambda: [normal(8, 256, 12, 64)], lambda a: a.transpose(1, 2).contiguous())
    case("copy", "channels last", "16x64x56x56", lambda: [normal(16, 64, 56, 56)], lambda a: a.permute(0, 2, 3, 1).contiguous())
    case("copy", "cast to bf16", "2048x2048", lambda: [normal(2048, 2048)], lambda a: a.to(torch.bfloat16))
    case("copy", "cast to f32", "2048x2048 bf16", lambda: [normal(2048, 2048, dtype=torch.bfloat16)], lambda a: a.to(torch.float32))
    case("copy", "cat channels", "2 of 16x64x56x56", lambda: [normal(16, 64, 56, 56) for _ in range(2)], lambda a, b: torch.cat([a, b], 1), True)
    case("copy", "stack", "8 of 256x256", lambda: [normal(256, 256) for _ in range(8)], lambda *parts: torch.stack(parts))
    case(
        *("index", "index_select", "4096x512 by 2048", lambda: [normal(4096, 512), torch.randint(4096, (2048,))]),
        *(lambda a, index: a.index_select(0, index), True),
    )
    case(
        "index", "gather", "1024x1024 by 1024x256", lambda: [normal(1024, 1024), torch.randint(1024, (1024, 256))], lambda a, i: a.gather(1, i), True
    )
    case(
        *("index", "scatter_add", "1024x256 into 1024x1024"),
        lambda: [normal(1024, 1024), torch.randint(1024, (1024, 256)), normal(1024, 256)],
        lambda a, index, source: a.scatter_add(1, index, source),
    )
    case(
        *("index", "embedding", "32000x512 by 2048", lambda: [torch.randint(32000, (2048,)), normal(32000, 512)]),
        *(functional.embedding, True),
    )
    case("order", "sort", "512x1024", lambda: [normal(512, 1024)], lambda a: a.sort(-1))
    case("order", "topk 50", "64x32000", lambda: [normal(64, 32000)], lambda a: a.topk(50))


def list_of_parameters() -> list[Any]:
    """The parameters of a small network: some matrices and many vectors, 4 Mi elements in all."""
    sizes = [(1024, 1024)] * 3 + [(512, 1024)] * 2 + [(1024,)] * 20
    return [torch.randn(size) for size in sizes]


def optimizer_step(make: Callable[[list[torch.Tensor]], torch.optim.Optimizer]) -> Callable[..., Any]:
    """A step of the optimizer that belongs to these parameters, made at their first step."""
    made: dict[int, torch.optim.Optimizer] = {}

    def run(parameters: list[torch.Tensor], gradients: list[torch.Tensor]) -> None:
        key = id(parameters[0])
        if key not in made:
            made.clear()
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.requires_grad_().grad = gradient
            made[key] = make(parameters)
        made[key].step()

    return run


def clip(parameters: list[torch.Tensor]) -> None:
    """The norm of all, and every gradient scaled, as clip_grad_norm_ does."""
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(parameters)))
    torch._foreach_mul_(parameters, torch.clamp(1.0 / (norm + 1e-6), max=1.0))


def optimizers() -> None:
    """Whole steps on many tensors."""
    both = "25 tensors, 4 Mi"
    for name, make in {
        "Adam": lambda p: torch.optim.Adam(p, lr=1e-3),
        "AdamW fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
        "SGD momentum": lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9),
    }.items():
        case("optimizer", name, both, lambda: [list_of_parameters(), list_of_parameters()], optimizer_step(make))
    case("optimizer", "clip gradients", both, lambda: [list_of_parameters()], clip)


elementwise()
reductions()
softmax_and_norms()
products()
convolutions()
pooling()
moves()
optimizers()
