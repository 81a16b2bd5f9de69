"""Less common network operators against torch's CPU: results and gradients, without one fallback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from conftest import DEVICE
from torch import nn

Tensor = torch.Tensor
FLOATS = (torch.float64, torch.float32)


@pytest.fixture(autouse=True)
def no_fallback() -> Iterator[None]:
    """Everything in these tests has an operator of its own on the device."""
    if DEVICE == "npu":
        torch.npu.reset_fallback_counts()
    yield
    assert DEVICE != "npu" or torch.npu.fallback_counts() == {}


def moved(value: Any) -> Any:
    """On the device, as a leaf of its own."""
    return value.detach().to(DEVICE).requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value


def compare(function: Callable[..., Any], *inputs: Any, loose: float = 1) -> None:
    """The results and the gradients of all inputs that want one, here and on the CPU."""
    there = [v.detach().clone().requires_grad_(v.requires_grad) if isinstance(v, Tensor) else v for v in inputs]
    here = [moved(v) for v in inputs]
    results = []
    for given in (here, there):
        out = function(*given)
        outs = out if isinstance(out, tuple) else (out,)
        floats = [o for o in outs if o.requires_grad]
        if floats:
            weights = [torch.linspace(-1, 1, o.numel(), dtype=torch.float64).reshape(o.shape).to(o) for o in floats]
            sum((o * w).sum() for o, w in zip(floats, weights, strict=True)).backward()
        results.append([*outs, *[v.grad for v in given if isinstance(v, Tensor) and v.requires_grad]])
    for mine, theirs in zip(*results, strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        tolerance = loose * {torch.float64: 1e-10, torch.float32: 2e-5}.get(mine.dtype, 0)
        torch.testing.assert_close(mine.detach().cpu(), theirs.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)


def leaf(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    """Random values that want a gradient."""
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(mode: str, padding: str, corners: bool, dtype: torch.dtype) -> None:
    """Images, and volumes where the mode has them."""
    compare(lambda x, g: F.grid_sample(x, g, mode, padding, corners), leaf(2, 3, 5, 4, dtype=dtype), leaf(2, 6, 3, 2, dtype=dtype, seed=2))
    if mode != "bicubic":
        grid = leaf(2, 3, 2, 4, 3, dtype=dtype, seed=2)
        compare(lambda x, g: F.grid_sample(x, g, mode, padding, corners), leaf(2, 2, 3, 5, 4, dtype=dtype), grid)


@pytest.mark.parametrize("dtype", FLOATS)
def test_spatial_transformer(dtype: torch.dtype) -> None:
    """An affine map of an image, as far as its parameters."""

    def transform(x: Tensor, theta: Tensor) -> Tensor:
        return F.grid_sample(x, F.affine_grid(theta, [2, 3, 6, 6], align_corners=False), align_corners=False)

    compare(transform, leaf(2, 3, 5, 5, dtype=dtype), leaf(2, 2, 3, dtype=dtype, seed=3))


def scaled_by_frequency(weight: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
    """Bags whose gradient is divided by how often a row is used; on the CPU bag by bag, as torch 2.13 divides by other rows' counts."""
    if weight.device.type == "cpu":
        return torch.stack([p.sum(0) for p in F.embedding(indices, weight, scale_grad_by_freq=True).tensor_split(offsets[1:])])
    return F.embedding_bag(indices, weight, offsets, mode="sum", scale_grad_by_freq=True)


@pytest.mark.npu_only
def test_indices_behind_the_last_offset_are_in_no_bag() -> None:
    """torch's CPU adds them to the last bag in some of its ways and not in others."""
    weight, indices = leaf(9, 5, dtype=torch.float64).detach(), torch.tensor([1, 3, 3, 0, 8, 2, 1, 7])
    bags = torch.embedding_bag(weight.npu(), indices.npu(), torch.tensor([0, 3, 5]).npu(), False, 0, False, None, True)
    torch.testing.assert_close(bags[0].cpu(), torch.stack([weight[indices[:3]].sum(0), weight[indices[3:5]].sum(0)]))
    assert bags[1].tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode: str, dtype: torch.dtype) -> None:
    """Bags of any length, an empty one too, with and without the last offset, padding and weights of members."""
    weight, indices = leaf(9, 5, dtype=dtype), torch.tensor([1, 3, 3, 0, 8, 2, 1, 7])
    for offsets, last in ((torch.tensor([0, 2, 2, 5]), False), (torch.tensor([0, 3, 5, 8]), True)):
        compare(lambda w, i, o, last=last: F.embedding_bag(i, w, o, mode=mode, include_last_offset=last), weight, indices, offsets)
        compare(lambda w, i, o, last=last: F.embedding_bag(i, w, o, mode=mode, include_last_offset=last, padding_idx=3), weight, indices, offsets)
    compare(lambda w, i: F.embedding_bag(i, w, mode=mode), weight, indices.reshape(2, 4))
    if mode == "sum":
        samples, offsets = leaf(8, dtype=dtype, seed=4), torch.tensor([0, 2, 2, 5])
        compare(lambda w, i, o, s: F.embedding_bag(i, w, o, mode=mode, per_sample_weights=s), weight, indices, offsets, samples)
        compare(scaled_by_frequency, weight, indices, offsets)
    with torch.no_grad():
        compare(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode), weight.detach(), indices.int(), torch.tensor([0, 4]).int())


@pytest.mark.parametrize("norm", [1.0, 2.0, float("inf")])
def test_embedding_renorm(norm: float) -> None:
    """Rows that are used are cut to the greatest norm, once."""

    def renormed(w: Tensor, i: Tensor) -> Tensor:
        table = w.clone()
        F.embedding(i, table, max_norm=1.0, norm_type=norm)
        return table

    compare(renormed, leaf(7, 5).detach(), torch.tensor([[1, 1, 4], [0, 6, 4]]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_ctc_loss(reduction: str, dtype: torch.dtype) -> None:
    """Labels in rows and in one row; a sequence that is too short for its labels, whose loss is infinite."""
    scores, labels = leaf(7, 3, 6, dtype=dtype), torch.tensor([[1, 2, 2], [5, 3, 1], [4, 4, 4]])
    flat = torch.tensor([1, 2, 2, 5, 3, 4])

    def loss(x: Tensor, t: Tensor, i: Any, n: Any, blank: int = 0, zero: bool = False) -> Tensor:
        return F.ctc_loss(x.log_softmax(2), t, i, n, blank, reduction, zero)

    compare(loss, scores, labels, (7, 6, 5), (3, 2, 1))
    compare(loss, scores, flat, torch.tensor([7, 7, 4]), torch.tensor([3, 2, 1]))
    compare(loss, scores, labels - 1, (7, 6, 5), (3, 0, 1), 5)
    compare(loss, scores, labels, (3, 7, 2), (3, 2, 3), 0, True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_margin_losses(reduction: str, dtype: torch.dtype) -> None:
    """Huber, one and several right classes."""
    x, y = leaf(4, 5, dtype=dtype), leaf(4, 5, dtype=dtype, seed=2)
    compare(lambda a, b: F.huber_loss(a, b, reduction=reduction, delta=0.7), x, y)
    target, weight = torch.tensor([1, 0, 4, 2]), torch.rand(5).to(dtype)
    for p in (1, 2):
        compare(lambda a, t, p=p: F.multi_margin_loss(a, t, p, 0.9, reduction=reduction), x, target)
        compare(lambda a, t, w, p=p: F.multi_margin_loss(a, t, p, 0.9, w, reduction=reduction), x, target, weight)
    compare(lambda a, t: F.multi_margin_loss(a, t, reduction=reduction), leaf(5, dtype=dtype), torch.tensor(3))
    labels = torch.tensor([[3, 0, -1, 1, 2], [-1, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, -1, 0, -1, 1]])
    compare(lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction), x, labels)
    compare(lambda a, t: F.multilabel_margin_loss(a, t, reduction=reduction), leaf(5, dtype=dtype), labels[0])


def test_second_gradient_of_huber() -> None:
    """Of the gradient through itself."""
    results = []
    for where in ("cpu", DEVICE):
        x = torch.linspace(-2, 2, 9, dtype=torch.float64).to(where).requires_grad_()
        (grad,) = torch.autograd.grad(F.huber_loss(x.sin() * 2, x.cos()), x, create_graph=True)
        results.append(torch.autograd.grad(grad.pow(2).sum(), x)[0].cpu())
    torch.testing.assert_close(results[1], results[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", FLOATS)
def test_rrelu(dtype: torch.dtype) -> None:
    """Evaluation takes the middle slope; training random ones, which the gradient repeats."""
    compare(lambda x: F.rrelu(x, 0.1, 0.5), leaf(4, 5, dtype=dtype))
    x = leaf(1000, dtype=dtype).detach().to(DEVICE).requires_grad_()
    torch.manual_seed(3)
    y = F.rrelu(x, 0.1, 0.5, training=True)
    y.sum().backward()
    negative = x < 0
    slopes = (y / x)[negative]
    assert slopes.min() >= 0.1 and slopes.max() <= 0.5 and slopes.std() > 0.08
    torch.testing.assert_close(x.grad[negative], slopes, rtol=1e-5, atol=1e-5)
    assert bool((x.grad[~negative] == 1).all())
    torch.manual_seed(3)
    z = x.detach().clone()
    assert torch.equal(F.rrelu_(z, 0.1, 0.5, training=True), y)
    assert not torch.equal(F.rrelu(x, 0.1, 0.5, training=True), y)


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling(dims: int) -> None:
    """Windows at given random places, with and without a batch."""
    pool = F.fractional_max_pool2d if dims == 2 else F.fractional_max_pool3d
    for batch in ((2,), ()):
        samples = torch.rand(*(batch or (1,)), 3, dims, dtype=torch.float64)
        for size in (3, 1):
            x = leaf(*batch, 3, *[7, 8, 6][:dims])
            compare(lambda v, s, size=size: pool(v, 2, size, return_indices=True, _random_samples=s), x, samples)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling(dims: int) -> None:
    """The inverse of maximum pooling."""
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
    unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[dims - 1]
    compare(lambda x: unpool(*pool(x, 2, return_indices=True), 2), leaf(2, 3, *[6, 4, 8][:dims]))
    with pytest.raises(RuntimeError, match="Expected shape of indices to be"):
        unpool(torch.ones(1, 1, *[2] * dims, device=DEVICE), torch.zeros(1, 1, *[3] * dims, dtype=torch.int64, device=DEVICE), 2)


def test_gradient_of_windows() -> None:
    """Windows that overlap, along any dimension."""
    for dim, size, step in ((0, 2, 1), (1, 3, 2), (-1, 2, 2)):
        compare(lambda x, d=dim, s=size, t=step: x.unfold(d, s, t), leaf(4, 7, 5))


def test_channel_shuffle() -> None:
    """Groups of channels dealt round."""
    compare(lambda x: F.channel_shuffle(x, 3), leaf(2, 6, 3, 4))
    with pytest.raises(RuntimeError, match="divisible by groups"):
        F.channel_shuffle(torch.ones(1, 5, 2, 2, device=DEVICE), 2)


def test_integer_convolution() -> None:
    """Integers as on the CPU."""
    x, w, b = torch.arange(-40, 35).reshape(1, 3, 5, 5), torch.arange(-9, 45).reshape(2, 3, 3, 3), torch.tensor([5, -7])
    compare(lambda x, w, b: F.conv2d(x, w, b, padding=1), x, w, b)
    large = x * ((1 << 58) + 3)
    compare(lambda x, w, b: F.conv2d(x, w, b, stride=2), large, w, b)
    compare(lambda x, w: F.conv_transpose2d(x, w, stride=2), large[:, :2], w)


@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm_in_pieces(dtype: torch.dtype) -> None:
    """Two halves of a batch, each with its own statistics, give what the whole gives; forward and backward."""
    x, grad = leaf(6, 4, 3, dtype=dtype).detach(), leaf(6, 4, 3, dtype=dtype, seed=5).detach()
    weight, bias, eps = leaf(4, dtype=dtype, seed=6), leaf(4, dtype=dtype, seed=7), 1e-5
    running = [torch.zeros(4, dtype=dtype), torch.ones(4, dtype=dtype)]
    whole = x.clone().requires_grad_()
    expected = F.batch_norm(whole, *running, weight, bias, True, 0.1, eps)
    expected.backward(grad)
    here = [v.detach().to(DEVICE) for v in (x, grad, weight, bias)]
    after = [torch.zeros(4, dtype=dtype, device=DEVICE), torch.ones(4, dtype=dtype, device=DEVICE)]
    parts = [here[0][:2], here[0][2:]]
    stats = [torch.batch_norm_stats(p, eps) for p in parts]
    counts = torch.tensor([6, 12], dtype=dtype, device=DEVICE)
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        here[0], torch.stack([s[0] for s in stats]), torch.stack([s[1] for s in stats]), *after, 0.1, eps, counts
    )
    out = torch.cat([torch.batch_norm_elemt(p, here[2], here[3], mean, invstd, eps) for p in parts])
    reduced = [
        torch.batch_norm_backward_reduce(g, p, mean, invstd, here[2], True, True, True) for g, p in zip(here[1].split([2, 4]), parts, strict=True)
    ]
    sum_dy, sum_dy_xmu, grad_weight, grad_bias = (sum(values) for values in zip(*reduced, strict=True))
    grads = [
        torch.batch_norm_backward_elemt(g, p, mean, invstd, here[2], sum_dy, sum_dy_xmu, counts.int())
        for g, p in zip(here[1].split([2, 4]), parts, strict=True)
    ]
    tolerance = 1e-9 if dtype == torch.float64 else 1e-4
    for mine, theirs in (
        (out, expected),
        (torch.cat(grads), whole.grad),
        (grad_weight, weight.grad),
        (grad_bias, bias.grad),
        (after[0], running[0]),
        (after[1], running[1]),
    ):
        torch.testing.assert_close(mine.detach().cpu(), theirs.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
def test_other_batch_norms(dtype: torch.dtype) -> None:
    """The forms that torch exports and the statistics alone."""
    compare(lambda x: torch.batch_norm_update_stats(x, None, None, 0.1), leaf(4, 3, 5, dtype=dtype).detach())
    weight, bias = leaf(3, dtype=dtype), leaf(3, dtype=dtype, seed=2)

    def updated(x: Tensor, w: Tensor, b: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        return (*torch.ops.aten._batch_norm_with_update(x, w, b, m, v, 0.1, 1e-5)[:3], m, v)

    running = torch.zeros(3, dtype=dtype), torch.ones(3, dtype=dtype)
    compare(updated, leaf(4, 3, 5, dtype=dtype).detach(), weight.detach(), bias.detach(), *running)


def test_synchronised_module() -> None:
    """SyncBatchNorm of one process is BatchNorm."""
    module = nn.SyncBatchNorm(3).double()
    plain = nn.BatchNorm2d(3).double()
    x = leaf(2, 3, 4, 4).detach()
    torch.testing.assert_close(module.to(DEVICE)(x.to(DEVICE)).cpu(), plain(x), rtol=1e-10, atol=1e-10)
