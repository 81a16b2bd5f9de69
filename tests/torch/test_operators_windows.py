"""Upsampling, pads, pooling of volumes, columns, attention and rms_norm on npu against torch's CPU, values and gradients, native."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from conftest import DEVICE
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode


def make(*sizes: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Reproducible values around zero."""
    generator = torch.Generator().manual_seed(sum(sizes) + len(sizes))
    return torch.randn(*sizes, generator=generator, dtype=torch.float64).to(dtype)


LINES, PLANES, VOLUMES = make(2, 3, 7), make(2, 3, 6, 5), make(2, 2, 5, 6, 4)

CASES: list[tuple] = []
for x, mode in [(LINES, "linear"), (PLANES, "bilinear"), (VOLUMES, "trilinear"), (PLANES, "bicubic")]:
    for align in (False, True):
        CASES.append((f"{mode} by size {align}", lambda a, m=mode, c=align: F.interpolate(a, size=9, mode=m, align_corners=c), x))
        CASES.append((f"{mode} by factor {align}", lambda a, m=mode, c=align: F.interpolate(a, scale_factor=1.7, mode=m, align_corners=c), x))
for x, mode in itertools.product((LINES, PLANES, VOLUMES), ("nearest", "nearest-exact")):
    CASES.append((f"{mode} {x.dim()} twice", lambda a, m=mode: F.interpolate(a, scale_factor=2, mode=m), x))
    CASES.append((f"{mode} {x.dim()} shrunk", lambda a, m=mode: F.interpolate(a, size=3, mode=m), x))
for mode in ("bilinear", "bicubic"):
    CASES.append((f"{mode} antialiased", lambda a, m=mode: F.interpolate(a, size=(3, 8), mode=m, antialias=True), PLANES))
for x, mode in itertools.product((LINES, PLANES, VOLUMES), ("reflect", "replicate", "constant", "circular")):
    CASES.append((f"{mode} {x.dim()}", lambda a, m=mode: F.pad(a, (1, 2) * (a.dim() - 2), mode=m), x))
    CASES.append((f"{mode} {x.dim()} cut", lambda a, m=mode: F.pad(a, (-1, 1) * (a.dim() - 2), mode=m), x))
CASES += [
    ("avg_pool3d", lambda a: F.avg_pool3d(a, 2, 1, 1), VOLUMES),
    ("avg_pool3d outside not counted", lambda a: F.avg_pool3d(a, (3, 2, 2), 2, 1, ceil_mode=True, count_include_pad=False), VOLUMES),
    ("avg_pool3d divisor", lambda a: F.avg_pool3d(a, 2, divisor_override=3), VOLUMES),
    ("adaptive_avg_pool3d", lambda a: F.adaptive_avg_pool3d(a, (2, 4, 3)), VOLUMES),
    ("adaptive_max_pool3d", lambda a: F.adaptive_max_pool3d(a, (2, 4, 3)), VOLUMES),
    ("max_pool3d", lambda a: F.max_pool3d(a, 2, 1, 1), VOLUMES),
    ("max_pool3d ceil", lambda a: F.max_pool3d(a, (3, 2, 2), 2, 1, ceil_mode=True), VOLUMES),
    ("unfold", lambda a: F.unfold(a, (3, 2), 1, 1, 2), PLANES),
    ("unfold one", lambda a: F.unfold(a[0], 2), PLANES),
    ("fold", lambda a: F.fold(a, (5, 6), (2, 3), 1, 0, 1), make(2, 12, 16)),
    ("channels last upsampling", lambda a: F.interpolate(a.to(memory_format=torch.channels_last), scale_factor=2, mode="bilinear"), PLANES),
    ("rms_norm", lambda a: F.rms_norm(a, (5,)), PLANES),
    ("rms_norm two dimensions", lambda a: F.rms_norm(a, (6, 5), make(6, 5).to(a), 1e-3), PLANES),
    ("pad with a number", lambda a: F.pad(a, (1, 0, 2, 1), value=1.5), PLANES),
]


def compare(function, inputs: list[torch.Tensor], tolerance: float = 1e-9) -> None:
    """Values and gradients of function on both devices."""
    results = []
    for device in ("cpu", DEVICE):
        leaves = [a.detach().to(device).requires_grad_(a.is_floating_point()) for a in inputs]
        out = function(*leaves)
        weight = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(out.dtype).reshape(out.shape).to(device)
        gradients = torch.autograd.grad((out * weight).sum(), [a for a in leaves if a.requires_grad])
        results.append([out, *gradients])
    for expected, given in zip(*results, strict=True):
        assert given.dtype == expected.dtype and given.device.type == "npu"
        torch.testing.assert_close(given.cpu(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("function", "argument"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_windows(function, argument, no_fallback) -> None:
    """f64 with gradients, then f32 and a non-contiguous input."""
    compare(function, [argument])
    compare(function, [argument.float()], 1e-4)
    compare(function, [argument.transpose(0, 1).contiguous().transpose(0, 1)])


class Operators(TorchDispatchMode):
    """Notes what reaches the device."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


SHAPES = [(2, 3, 3, 5, 7, 4, 4), (1, 2, 2, 130, 300, 16, 8), (2, 4, 4, 1, 9, 8, 8)]


@pytest.mark.parametrize(("batch", "heads", "key_heads", "rows", "keys", "width", "value_width"), SHAPES)
@pytest.mark.parametrize("kind", ["plain", "causal", "bool", "float", "row"])
def test_attention(batch, heads, key_heads, rows, keys, width, value_width, kind, no_fallback) -> None:
    """The fused operator against the CPU, with every kind of mask."""
    q, k, v = make(batch, heads, rows, width), make(batch, key_heads, keys, width), make(batch, key_heads, keys, value_width)
    if kind == "plain":
        compare(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, scale=0.3), [q, k, v])
    elif kind == "causal":
        compare(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, is_causal=True), [q, k, v])
    elif kind == "bool":
        mask = make(rows, keys) > 0
        mask[:, 0] = True
        compare(lambda a, b, c: F.scaled_dot_product_attention(a, b, c, attn_mask=mask.to(a.device)), [q, k, v])
    else:
        bias = make(1, heads, rows, keys) if kind == "float" else make(rows, keys)
        compare(lambda a, b, c, d: F.scaled_dot_product_attention(a, b, c, attn_mask=d), [q, k, v, bias])


@pytest.mark.parametrize(("backend", "fused"), [("MATH", False), ("FLASH_ATTENTION", True), ("OVERRIDEABLE", True)])
def test_attention_goes_the_way_that_was_asked_for(backend: str, fused: bool) -> None:
    q = make(1, 2, 5, 8, dtype=torch.float32).to(DEVICE)
    with sdpa_kernel(getattr(SDPBackend, backend)), Operators() as operators:
        F.scaled_dot_product_attention(q, q, q)
    assert any("fused_attention" in name for name in operators.names) == fused


def test_attention_is_one_operator() -> None:
    """torch asks a table of the device for the way to go; without an entry it would decompose."""
    q = make(1, 2, 5, 8, dtype=torch.float32).to(DEVICE).requires_grad_()
    with Operators() as operators:
        F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    assert not any("softmax" in name or "bmm" in name for name in operators.names)
    assert any("fused_attention" in name and name.endswith("backward") for name in operators.names)


def test_attention_grouped_and_transposed(no_fallback) -> None:
    """Fewer heads of keys; heads beside the sequence in memory, as projections give them."""
    q, k, v = make(2, 10, 4, 8), make(2, 12, 2, 8), make(2, 12, 2, 8)

    def function(a, b, c):
        return F.scaled_dot_product_attention(a.transpose(1, 2), b.transpose(1, 2), c.transpose(1, 2), enable_gqa=True)

    compare(function, [q, k, v])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_attention_narrow_types(dtype, no_fallback) -> None:
    """No farther from f64 than a few roundings."""
    inputs = [make(2, 2, 40, 16, dtype=dtype) for _ in range(3)]
    wide = F.scaled_dot_product_attention(*(a.double() for a in inputs), is_causal=True)
    out = F.scaled_dot_product_attention(*(a.to(DEVICE) for a in inputs), is_causal=True)
    assert out.dtype == dtype
    torch.testing.assert_close(out.cpu().double(), wide, rtol=4 * torch.finfo(dtype).eps, atol=4 * torch.finfo(dtype).eps)


def test_attention_with_dropout_decomposes() -> None:
    """Dropout isn't the fused operator's; the result is still an average of values."""
    q = make(1, 1, 4, 8, dtype=torch.float32).to(DEVICE)
    out = F.scaled_dot_product_attention(q, q, torch.ones_like(q), dropout_p=0.5)
    assert out.shape == q.shape and torch.isfinite(out).all()


def test_encoder_layer_trains_as_on_cpu() -> None:
    """Self-attention with a padding mask inside torch's own module."""
    torch.manual_seed(3)
    model = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).double()
    x, padding = make(3, 6, 16), torch.arange(6).expand(3, 6) >= torch.tensor([[6], [4], [5]])
    twin = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).double()
    twin.load_state_dict(model.state_dict())
    twin = twin.to(DEVICE)
    for module, device in ((model, "cpu"), (twin, DEVICE)):
        module(x.to(device), src_key_padding_mask=padding.to(device)).square().sum().backward()
    for ours, theirs in zip(twin.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-9, atol=1e-9)
