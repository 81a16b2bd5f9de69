"""Rows of sampling at places, bags of embeddings, CTC, batch normalisation in pieces and other less common network operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from cases import Case, add, row, wide
from rows_fused import EPS, floating, gradients, statistics

Tensor = torch.Tensor

# --- sampling -------------------------------------------------------------------------------------------------------------------------

PLANES = ((2, 3, 5, 4), (1, 1, 3, 7), (2, 2, 6, 5))
VOLUMES = ((2, 2, 4, 3, 5), (1, 1, 2, 4, 3), (1, 3, 3, 3, 4))
MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def sample(mode: int, padding: int, corners: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """torch's function of these codes."""
    return lambda x, grid: F.grid_sample(x, grid, MODES[mode], PADDINGS[padding], corners)


def samplers(case: Case, dims: int) -> Iterator[tuple[Tensor, Tensor, list[Any]]]:
    """(input, grid, codes): every mode and padding, with places inside and outside; none near a jump of the result."""
    floating(case)
    sizes = [4, 3, 2][:dims]
    for mode in range(3 if dims == 2 else 2):
        for padding in range(3):
            for corners in (False, True):
                grid = case.values((case.shape[0], *sizes, dims), low=-1.6, high=1.6)
                if mode == 1:  # half types round a place: keep it away from the middle between two elements
                    size = torch.tensor(case.shape[:1:-1], dtype=torch.float64)
                    place = ((wide(grid) + 1) / 2 * (size - 1)) if corners else ((wide(grid) + 1) * size - 1) / 2
                    near = ((place % 1) - 0.5).abs() < 0.05
                    grid = torch.where(near, torch.zeros_like(grid), grid)
                    if not corners or any(s % 2 == 0 for s in case.shape[2:]):
                        grid = torch.where(near, torch.full_like(grid, 0.125), grid)
                yield case.values(), grid, [mode, padding, corners]


def sampling(case: Case, dims: int) -> Iterator[Any]:
    for x, grid, codes in samplers(case, dims):
        expected = sample(*codes)(wide(x), wide(grid)).to(x.dtype)
        yield [case.put(x), case.put(grid), *codes, case.out(expected, loose=20)]


def sampling_backward(case: Case, dims: int) -> Iterator[Any]:
    for x, grid, codes in samplers(case, dims):
        grad = case.values(sample(*codes)(wide(x), wide(grid)).shape)
        expected = gradients(sample(*codes), [x, grid], grad)
        for mask in ([True, True], [False, True], [True, False]):
            outs = [case.out(e.to(x.dtype), loose=60) if wanted else None for e, wanted in zip(expected, mask, strict=True)]
            yield [case.put(grad), case.put(x), case.put(grid), *codes, mask, *outs]


for _dims, _shapes in ((2, PLANES), (3, VOLUMES)):
    add(f"GridSampler{_dims}D", lambda case, dims=_dims: sampling(case, dims), shapes=_shapes)
    add(f"GridSampler{_dims}DBackward", lambda case, dims=_dims: sampling_backward(case, dims), shapes=_shapes)


@row("AffineGrid", shapes=((2, 3, 4, 5), (1, 2, 1, 6), (2, 1, 3, 4, 2)))
def affine_grid(case: Case) -> Iterator[Any]:
    floating(case)
    dims = len(case.shape) - 2
    for corners in (False, True):
        theta = case.values((case.shape[0], dims, dims + 1))
        expected = F.affine_grid(wide(theta), list(case.shape), align_corners=corners).to(theta.dtype)
        yield [case.put(theta), list(case.shape), corners, case.out(expected, loose=4)]


# --- bags -----------------------------------------------------------------------------------------------------------------------------


@row("EmbeddingBag", shapes=((7, 5), (4, 3), (3, 130), (9, 1)))
def embedding_bag(case: Case) -> Iterator[Any]:
    floating(case)
    for mode, padding, last, weighted in (
        (0, -1, False, False),
        (0, 2, True, True),
        (1, -1, True, False),
        (1, 1, False, False),
        (2, -1, False, False),
        (2, 0, True, False),
    ):
        weight, offsets = case.values(), [0, 2, 2, 6]
        indices = torch.randint(0, case.shape[0], (9,), generator=case.generator)
        ends = [*offsets, 9]
        given = torch.tensor(ends if last else offsets)
        samples = case.values((9,)) if weighted else None
        out, to_bag, size, greatest = torch.ops.aten._embedding_bag(
            wide(weight), indices, given, False, mode, False, None if samples is None else wide(samples), last, padding
        )
        to_bag = torch.repeat_interleave(torch.arange(4), torch.tensor(ends).diff())
        size = torch.stack([(indices[a:b] != padding).sum() for a, b in pairwise(ends)])
        if mode == 2:
            greatest = torch.where(size[:, None] > 0, greatest.reshape(out.shape), -1)
        else:
            greatest = torch.zeros(4, dtype=torch.int64)
        outs = [case.out(out.to(weight.dtype), loose=4), case.out(to_bag), case.out(size), case.out(greatest)]
        yield [
            case.put(weight),
            case.put(indices),
            case.put(given),
            False,
            mode,
            False,
            samples if samples is None else case.put(samples),
            last,
            padding,
            *outs,
        ]


@row("EmbeddingRenorm", shapes=((7, 5), (4, 3), (3, 130)))
def embedding_renorm(case: Case) -> Iterator[Any]:
    floating(case)
    for norm in (2.0, 1.0, float("inf"), 3.0):
        weight = case.values()
        indices = torch.randint(0, case.shape[0], (3, 2), generator=case.generator)
        expected = torch.embedding_renorm_(wide(weight).clone(), indices, 1.5, norm)
        yield [case.inout(weight, expected.to(weight.dtype), loose=4), case.put(indices), 1.5, norm]


# --- CTC ------------------------------------------------------------------------------------------------------------------------------


def alignments(case: Case) -> Iterator[tuple[Tensor, Tensor, list[Any]]]:
    """(log_probs, targets, [input lengths, target lengths, blank]) with targets in rows and in one row."""
    floating(case)
    steps, batch, classes = case.shape
    for flat in (False, True):
        lengths = [[max(steps - b, 1) for b in range(batch)], [min(2, steps) if b % 2 else 1 for b in range(batch)]]
        blank = classes - 1 if flat else 0
        labels = torch.randint(0, classes - 1, (batch, 3), generator=case.generator) + (0 if flat else 1)
        if flat:
            labels = torch.cat([labels[b, : lengths[1][b]] for b in range(batch)])
        yield F.log_softmax(wide(case.values()), 2).to(case.dtype), labels, [*lengths, blank]


def ctc(log_probs: Tensor, labels: Tensor, how: list[Any]) -> tuple[Tensor, Tensor]:
    lengths = how[:2]
    loss, alpha = torch.ops.aten._ctc_loss(wide(log_probs), labels, *lengths, how[2], False)
    for b, (steps, count) in enumerate(zip(*lengths, strict=True)):  # torch leaves the rest undefined
        alpha[b, steps:] = -torch.inf
        alpha[b, :, 2 * count + 1 :] = -torch.inf
    return loss, alpha


@row("CtcLoss", shapes=((6, 3, 5), (4, 1, 3), (9, 2, 7)))
def ctc_loss(case: Case) -> Iterator[Any]:
    for log_probs, labels, how in alignments(case):
        loss, alpha = ctc(log_probs, labels, how)
        outs = [case.out(loss.to(case.dtype), loose=20), case.out(alpha.to(case.dtype), loose=20)]
        yield [case.put(log_probs), case.put(labels), *how, False, *outs]


@row("CtcLossBackward", shapes=((6, 3, 5), (4, 1, 3), (9, 2, 7)))
def ctc_loss_backward(case: Case) -> Iterator[Any]:
    for log_probs, labels, how in alignments(case):
        loss, alpha = ctc(log_probs, labels, how)
        kept = loss.to(case.dtype), alpha.to(case.dtype)
        grad = case.values(loss.shape)
        expected = torch.ops.aten._ctc_loss_backward(wide(grad), wide(log_probs), labels, *how[:2], wide(kept[0]), wide(kept[1]), how[2], True)
        given = [case.put(grad), case.put(log_probs), case.put(labels), *how[:2], case.put(kept[0]), case.put(kept[1]), how[2], True]
        yield [*given, case.out(expected.to(case.dtype), loose=100)]


# --- batch normalisation in pieces ------------------------------------------------------------------------------------------------------

BATCHES = ((4, 3), (2, 3, 5), (3, 2, 4, 3), (33, 17))


def over_channels(x: Tensor, values: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (x.dim() - 2))


def own_statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    dims = [d for d in range(x.dim()) if d != 1]
    return x.mean(dims), torch.rsqrt(x.var(dims, correction=0) + EPS)


@row("BatchNormStats", shapes=BATCHES)
def batch_norm_stats(case: Case) -> Iterator[Any]:
    floating(case)
    x, kind = case.values(), statistics(case.dtype)
    yield [case.put(x), EPS, *[case.out(v.to(kind), loose=6) for v in own_statistics(wide(x))]]


@row("BatchNormReduce", shapes=BATCHES)
def batch_norm_reduce(case: Case) -> Iterator[Any]:
    floating(case)
    x, kind = case.values(), statistics(case.dtype)
    dims = [d for d in range(x.dim()) if d != 1]
    yield [case.put(x), case.out(wide(x).sum(dims).to(kind), loose=10), case.out(wide(x).square().sum(dims).to(kind), loose=10)]


@row("BatchNormElemt", shapes=BATCHES)
def batch_norm_elemt(case: Case) -> Iterator[Any]:
    floating(case)
    channels, kind = case.shape[1:2], statistics(case.dtype)
    for affine in (True, False):
        x, mean, invstd = case.values(), case.values(channels, kind), case.values(channels, kind, 0.5)
        weight, bias = case.values(channels), case.values(channels)
        expected = (wide(x) - over_channels(x, mean.double())) * over_channels(x, invstd.double())
        if affine:
            expected = expected * over_channels(x, wide(weight)) + over_channels(x, wide(bias))
        parameters = [case.put(weight), case.put(bias)] if affine else [None, None]
        yield [case.put(x), *parameters, case.put(mean), case.put(invstd), EPS, case.out(expected.to(x.dtype), loose=10)]


@row("BatchNormReduceBackward", shapes=BATCHES)
def batch_norm_reduce_backward(case: Case) -> Iterator[Any]:
    floating(case)
    channels, kind = case.shape[1:2], statistics(case.dtype)
    for mask in ([True, True, True], [False, True, False], [True, False, True]):
        x, grad, mean, invstd, weight = (
            case.values(),
            case.values(),
            case.values(channels, kind),
            case.values(channels, kind, 0.5),
            case.values(channels),
        )
        dims = [d for d in range(x.dim()) if d != 1]
        total = wide(grad).sum(dims)
        product = (wide(grad) * (wide(x) - over_channels(x, mean.double()))).sum(dims)
        results = [(total, mask[0]), (product, mask[0]), (product * invstd.double(), mask[1]), (total, mask[2])]
        outs = [case.out(v.to(kind), loose=30) if wanted else None for v, wanted in results]
        yield [case.put(grad), case.put(x), case.put(mean), case.put(invstd), case.put(weight), *mask, *outs]


@row("BatchNormElemtBackward", shapes=BATCHES)
def batch_norm_elemt_backward(case: Case) -> Iterator[Any]:
    floating(case)
    channels, kind = case.shape[1:2], statistics(case.dtype)
    x, grad, weight = case.values(), case.values(), case.values(channels)
    mean, invstd, total, product = (case.values(channels, kind, low) for low in (-1, 0.5, -3, -3))
    counter = torch.tensor([4, 7], dtype=torch.int32)
    m, i, t, p = (over_channels(x, v.double()) for v in (mean, invstd, total, product))
    expected = (wide(grad) - t / 11 - (wide(x) - m) * i.square() * p / 11) * i * over_channels(x, wide(weight))
    given = [case.put(v) for v in (grad, x, mean, invstd, weight, total, product)]
    yield [*given, case.put(counter), case.out(expected.to(x.dtype), loose=20)]


def parts(case: Case) -> tuple[list[Tensor], Tensor, Tensor]:
    """Parts of a batch, how long they are, the batch."""
    lengths = torch.tensor([5, 1, 8])
    values = case.values((14, case.shape[1]), statistics(case.dtype))
    return list(values.double().split(lengths.tolist())), lengths, values.double()


@row("BatchNormGatherStatsWithCounts", shapes=((1, 3), (1, 5), (1, 1)))
def gather_stats(case: Case) -> Iterator[Any]:
    floating(case)
    kind = statistics(case.dtype)
    split, lengths, values = parts(case)
    means = torch.stack([p.mean(0) for p in split]).to(kind)
    invstds = torch.stack([torch.rsqrt(p.var(0, correction=0) + EPS) for p in split]).to(kind)
    running = [case.values(case.shape[1:], kind), case.values(case.shape[1:], kind, 0.5)]
    after = [(r.double() * 0.75 + 0.25 * v) for r, v in zip(running, (values.mean(0), values.var(0)), strict=True)]
    outs = [values.mean(0), torch.rsqrt(values.var(0, correction=0) + EPS)]
    loose = 2000 if kind == torch.float32 else 1e5  # a part of one element has only eps in its deviation, which cancels
    yield [
        *[case.values((2, case.shape[1])), case.put(means), case.put(invstds)],
        *[case.inout(r, a.to(kind), loose=loose) for r, a in zip(running, after, strict=True)],
        *[0.25, EPS, case.put(lengths.to(kind)), *[case.out(v.to(kind), loose=loose) for v in outs]],
    ]


@row("SyncBatchNormGatherStats", shapes=((1, 3), (1, 5), (1, 1)))
def sync_gather_stats(case: Case) -> Iterator[Any]:
    floating(case)
    kind = statistics(case.dtype)
    split, lengths, values = parts(case)
    sums, squares = (torch.stack([f(p).sum(0) for p in split]).to(kind) for f in (lambda p: p, torch.square))
    running = [case.values(case.shape[1:], kind), case.values(case.shape[1:], kind, 0.5)]
    after = [(r.double() * 0.75 + 0.25 * v) for r, v in zip(running, (values.mean(0), values.var(0)), strict=True)]
    outs = [values.mean(0), torch.rsqrt(values.var(0, correction=0) + EPS)]
    yield [
        *[case.put(sums), case.put(squares), case.put(lengths.int())],
        *[case.inout(r, a.to(kind), loose=50) for r, a in zip(running, after, strict=True)],
        *[0.25, EPS, *[case.out(v.to(kind), loose=50) for v in outs]],
    ]


# --- others ---------------------------------------------------------------------------------------------------------------------------


def rrelu(name: str) -> None:
    inplace = name.startswith("Inplace")

    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        x = case.values()
        expected = torch.where(wide(x) > 0, wide(x), wide(x) * 0.25).to(x.dtype)
        noise = case.values()
        target = [case.inout(x, expected, loose=2)] if inplace else [case.put(x)]
        yield [*target, case.put(noise), 0.125, 0.375, False, 1, 8, *[case.out(expected, loose=2)] * (not inplace)]
        # In training a slope of one value isn't random, and the noise shows it.
        slopes = torch.where(wide(x) > 0, 1.0, 0.25).to(x.dtype)
        target = [case.inout(x, expected, loose=2)] if inplace else [case.put(x)]
        yield [*target, case.out(slopes), 0.25, 0.25, True, 1, 8, *[case.out(expected, loose=2)] * (not inplace)]

        def between(actual: Tensor, x: Tensor = x) -> str | None:
            inside = torch.where(wide(x) > 0, actual == 1, (actual >= 0.125) & (actual <= 0.375))
            return None if bool(inside.all()) else "a slope lies outside of its range"

        def product(actual: Tensor, x: Tensor = x) -> str | None:
            ratio = wide(actual) / wide(x)
            good = torch.where(wide(x) > 0, ratio == 1, (x == 0) | ((ratio > 0.12) & (ratio < 0.38)))
            return None if bool(good.all()) else "a result isn't the element times a slope"

        noise_out = case.random(x.shape, x.dtype, between)
        if not inplace:
            yield [case.put(x), noise_out, 0.125, 0.375, True, 5, 8, case.random(x.shape, x.dtype, product)]

    add(name, calls)


rrelu("RReluWithNoise")
rrelu("InplaceRReluWithNoise")


@row("MultilabelMarginLoss", shapes=((3, 5), (1, 4), (17, 6), (4,)))
def multilabel_margin_loss(case: Case) -> Iterator[Any]:
    floating(case)
    for reduction in range(3):
        x = case.values()
        rows = case.shape[0] if len(case.shape) == 2 else 1
        labels = torch.stack([torch.randperm(case.shape[-1], generator=case.generator) for _ in range(rows)]).reshape(case.shape)
        labels[..., 2:] = -1
        out, is_target = torch.ops.aten.multilabel_margin_loss_forward(wide(x), labels, reduction)
        yield [case.put(x), case.put(labels), reduction, case.out(out.to(x.dtype), loose=8), case.out(is_target.to(x.dtype))]


@row("UnfoldGrad", shapes=((7,), (3, 8), (3, 6, 4)))
def unfold_grad(case: Case) -> Iterator[Any]:
    floating(case)
    for dim in range(-1, len(case.shape) - 1):
        for size, step in ((2, 1), (3, 2), (1, 1)):
            grad = case.values(torch.empty(case.shape).unfold(dim, size, step).shape)
            expected = torch.ops.aten.unfold_backward(wide(grad), list(case.shape), dim, size, step)
            yield [case.put(grad), list(case.shape), dim, size, step, case.out(expected.to(case.dtype), loose=6)]


# --- fused losses, gates and norms ------------------------------------------------------------------------------------------------------


def entropies(case: Case) -> Iterator[tuple[Tensor, Tensor, Tensor | None, str, int, float]]:
    """(scores, target, weight, reduction, ignored, smoothing)"""
    floating(case)
    rows, classes = case.shape
    for reduction in ("mean", "sum", "none"):
        for weighted, ignored, smoothing in ((False, -100, 0.0), (True, 1, 0.25)):
            target = torch.randint(0, classes, (rows,), generator=case.generator)
            target[0] = 0
            yield case.values(), target, case.values((classes,), low=0.5) if weighted else None, reduction, ignored, smoothing


def entropy(x: Tensor, target: Tensor, weight: Tensor | None, how: tuple[str, int, float]) -> Tensor:
    return F.cross_entropy(x, target, None if weight is None else wide(weight), ignore_index=how[1], reduction=how[0], label_smoothing=how[2])


@row("CrossEntropyLoss", shapes=((4, 5), (1, 3), (17, 33)))
def cross_entropy(case: Case) -> Iterator[Any]:
    for x, target, weight, *how in entropies(case):
        given = None if weight is None else case.put(weight)
        loss = entropy(wide(x), target, weight, tuple(how)).to(x.dtype)  # type: ignore[arg-type]
        outs = [case.out(loss, loose=20), case.out(wide(x).log_softmax(1).to(x.dtype), loose=6)]
        zeros = [case.out(torch.zeros_like(loss)), case.out(torch.zeros(case.shape[0], dtype=x.dtype))]
        yield [case.put(x), case.put(target), given, *how, 0.0, False, *outs, *zeros]


@row("CrossEntropyLossGrad", shapes=((4, 5), (1, 3), (17, 33)))
def cross_entropy_grad(case: Case) -> Iterator[Any]:
    for x, target, weight, *how in entropies(case):
        log_prob = wide(x).log_softmax(1).to(x.dtype)
        leaf = wide(log_prob).clone().requires_grad_()
        loss = entropy(leaf, target, weight, tuple(how))  # type: ignore[arg-type]
        grad = case.values(loss.shape)
        # log_prob is rounded: its softmax is exp(log_prob), whose sum needn't be 1 any more.
        probability, classes = wide(log_prob).exp(), case.shape[1]
        weights = torch.ones(classes, dtype=torch.float64) if weight is None else wide(weight)
        counts = (target != how[1]).double()
        each = wide(grad) / (weights[target] * counts).sum() if how[0] == "mean" else wide(grad)
        right = (each * (1 - how[2]) * weights[target] * counts).unsqueeze(1)
        smooth = (each * how[2] / classes * counts).unsqueeze(1)
        expected = probability * (right + smooth * weights.sum()) - F.one_hot(target, classes) * right - smooth * weights
        given = None if weight is None else case.put(weight)
        yield [case.put(grad), case.put(log_prob), case.put(target), given, None, None, *how, 0.0, case.out(expected.to(x.dtype), loose=20)]


@row("ClippedSwiglu", shapes=((3, 8), (2, 4, 3), (5, 6)))
def clipped_swiglu(case: Case) -> Iterator[Any]:
    floating(case)
    for dim, interleaved, groups in ((1, False, None), (1, True, [1, 1]), (-len(case.shape) + 1, True, None)):
        x = case.values()
        rows = wide(x).reshape(case.shape[0], -1)
        a, b = (rows[:, ::2], rows[:, 1::2]) if interleaved else rows.chunk(2, 1)
        a, b = a.clamp(max=1.5), b.clamp(-1.5, 1.5)
        y = a * (1.702 * a).sigmoid() * (b + 0.5)
        if groups:
            y[sum(groups) :] = 0
        size = [case.shape[0], case.shape[1] // 2, *case.shape[2:]]
        given = None if groups is None else case.put(torch.tensor(groups))
        yield [case.put(x), given, dim, 1.702, 1.5, 0.5, interleaved, case.out(y.reshape(size).to(x.dtype), loose=6)]


@row("DeepNormGrad", shapes=((4, 6), (2, 3, 8), (5, 2, 4)))
def deep_norm_grad(case: Case) -> Iterator[Any]:
    floating(case)
    kind, alpha, width = statistics(case.dtype), 0.25, case.shape[-1:]
    x, gx, gamma, dy = case.values(), case.values(), case.values(width, low=0.5), case.values()

    def function(a: Tensor, b: Tensor, g: Tensor, beta: Tensor) -> Tensor:
        total = alpha * a + b
        return F.layer_norm(total, list(width), g, beta, EPS)

    expected = gradients(function, [x, gx, gamma, torch.zeros(width, dtype=case.dtype)], dy)
    total = alpha * wide(x) + wide(gx)
    mean, rstd = total.mean(-1, keepdim=True).to(kind), torch.rsqrt(total.var(-1, correction=0, keepdim=True) + EPS).to(kind)
    outs = [case.out(expected[0].to(x.dtype), loose=20), case.out(expected[1].to(x.dtype), loose=20)]
    outs += [case.out(expected[3].to(kind), loose=60), case.out(expected[2].to(kind), loose=60)]
    yield [case.put(dy), case.put(x), case.put(gx), case.put(gamma), case.put(mean), case.put(rstd), alpha, *outs]


@row("KlDivTargetBackward", shapes=((7,), (3, 5), (33, 17)))
def kl_div_target(case: Case) -> Iterator[Any]:
    floating(case)
    for code, kind in enumerate(("none", "mean", "sum")):
        for log_target in (False, True):
            x, y = case.values(low=-3, high=0), case.values(low=-2 if log_target else 0.0625, high=0 if log_target else 1)
            grad = case.values(case.shape if kind == "none" else ())
            leaf = wide(y).clone().requires_grad_()
            F.kl_div(wide(x), leaf, reduction=kind, log_target=log_target).backward(wide(grad))
            assert leaf.grad is not None
            yield [case.put(grad), case.put(x), case.put(y), code, log_target, case.out(leaf.grad.to(x.dtype), loose=10)]
