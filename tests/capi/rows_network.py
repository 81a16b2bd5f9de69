"""Rows of src/aclnn/nn/nn.def: products, convolution, pooling, normalisation, losses, softmax, dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from cases import FLOATS, INTEGERS, Case, Out, add, place, row, wide

Tensor = torch.Tensor


def floating(case: Case) -> None:
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")


def gradients(function: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor) -> list[Tensor]:
    """What autograd gives for each input, computed in float64."""
    leaves = [wide(x).clone().requires_grad_() for x in inputs]
    function(*leaves).backward(wide(grad))
    return [leaf.grad.to(x.dtype) if leaf.grad is not None else torch.zeros_like(x) for leaf, x in zip(leaves, inputs)]


def statistics_type(dtype: torch.dtype) -> torch.dtype:
    """Saved means and deviations: float32 (float64 for float64)."""
    return torch.float64 if dtype == torch.float64 else torch.float32


# --- products: the case's shape is (m, k, n) ------------------------------------------------------------------------------------------

PRODUCTS = ((2, 3, 4), (5, 1, 7), (17, 33, 9), (3, 5, 1), (64, 80, 48))
LOOSE = 6.0


def exact_product(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    return function(*(wide(t) for t in tensors)).to(tensors[0].dtype)


def no_bool(case: Case) -> None:
    if case.dtype == torch.bool:
        raise NotImplementedError("torch multiplies no bool matrices")


@row("Mm", shapes=PRODUCTS)
def mm(case: Case) -> Iterator[Any]:
    no_bool(case)
    m, k, n = case.shape
    a, b = case.values((m, k)), case.values((k, n))
    yield [case.put(a), case.put(b), case.out(exact_product(torch.mm, a, b), loose=LOOSE), 0]
    a, b = case.values((k, m)), case.values((n, k))  # transposed views
    yield [case.put(a).t(), case.put(b).t(), case.out(exact_product(torch.mm, a.t(), b.t()), loose=LOOSE), 1]


@row("Matmul", shapes=PRODUCTS)
def matmul(case: Case) -> Iterator[Any]:
    no_bool(case)
    m, k, n = case.shape
    for left, right in (((m, k), (k, n)), ((k,), (k,)), ((m, k), (k,)), ((k,), (k, n)), ((2, m, k), (k, n)), ((2, 1, m, k), (3, k, n))):
        a, b = case.values(left), case.values(right)
        yield [case.put(a), case.put(b), case.out(exact_product(torch.matmul, a, b), loose=LOOSE), 0]


@row("BatchMatMul", shapes=PRODUCTS)
def batch_matmul(case: Case) -> Iterator[Any]:
    no_bool(case)
    m, k, n = case.shape
    a, b = case.values((3, m, k)), case.values((3, k, n))
    yield [case.put(a), case.put(b), case.out(exact_product(torch.bmm, a, b), loose=LOOSE), 0]


@row("Mv", shapes=PRODUCTS)
def mv(case: Case) -> Iterator[Any]:
    no_bool(case)
    m, k, _ = case.shape
    a, b = case.values((m, k)), case.values((k,))
    yield [case.put(a), case.put(b), case.out(exact_product(torch.mv, a, b), loose=LOOSE), 0]


@row("Dot", shapes=PRODUCTS)
def dot(case: Case) -> Iterator[Any]:
    no_bool(case)
    a, b = case.values((case.shape[1],)), case.values((case.shape[1],))
    yield [case.put(a), case.put(b), case.out(exact_product(torch.dot, a, b), loose=LOOSE)]


def factors(case: Case) -> Iterator[tuple[Any, Any]]:
    """beta, alpha"""
    yield 1, 1
    yield from ((2, 3),) if case.dtype in INTEGERS else ((0.5, 1.5),)


def adding(name: str, function: Callable[..., Tensor], shapes: Callable[[int, int, int], list[tuple[int, ...]]], alpha_first: bool = False) -> None:
    """(self, a, b, beta, alpha, out, cubeMathType) and in place (selfRef, a, b, beta, alpha, cubeMathType)"""

    def parts(case: Case) -> Iterator[tuple[list[Tensor], list[Any], Tensor]]:
        no_bool(case)
        for beta, alpha in factors(case):
            tensors = [case.values(shape) for shape in shapes(*case.shape)]
            expected = function(*(wide(t) for t in tensors), beta=beta, alpha=alpha).to(case.dtype)
            yield tensors, [alpha, beta] if alpha_first else [beta, alpha], expected

    def calls(case: Case) -> Iterator[Any]:
        for tensors, scalars, expected in parts(case):
            tail = [] if name == "Addr" else [0]
            yield [*(case.put(t) for t in tensors), *scalars, case.out(expected, loose=LOOSE * 2), *tail]

    def in_place(case: Case) -> Iterator[Any]:
        for tensors, scalars, expected in parts(case):
            if tensors[0].shape == expected.shape:
                tail = [] if name == "Addr" else [0]
                yield [case.inout(tensors[0], expected, loose=LOOSE * 2), *(case.put(t) for t in tensors[1:]), *scalars, *tail]

    add(name, calls, shapes=PRODUCTS)
    if name in ("Addmm", "Addr"):
        add(f"Inplace{name}", in_place, shapes=PRODUCTS)


adding("Addmm", torch.addmm, lambda m, k, n: [(m, n), (m, k), (k, n)])
adding("Baddbmm", torch.baddbmm, lambda m, k, n: [(2, m, n), (2, m, k), (2, k, n)])
adding("Addbmm", torch.addbmm, lambda m, k, n: [(m, n), (2, m, k), (2, k, n)])
adding("Addmv", torch.addmv, lambda m, k, n: [(m,), (m, k), (k,)], alpha_first=True)
adding("Addr", torch.addr, lambda m, k, n: [(m, n), (m,), (n,)])


# --- convolution ---------------------------------------------------------------------------------------------------------------------------

CONVOLUTIONS: dict[tuple[int, ...], dict[str, Any]] = {
    # input shape -> the rest
    (2, 3, 9, 8): {"weight": (4, 3, 3, 3), "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 1},
    (1, 4, 7, 7): {"weight": (6, 2, 3, 2), "stride": [2, 1], "padding": [0, 1], "dilation": [1, 2], "groups": 2},
    (2, 4, 5, 5): {"weight": (4, 1, 3, 3), "stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 4},
    (2, 3, 11): {"weight": (5, 3, 4), "stride": [2], "padding": [1], "dilation": [1], "groups": 1},
    (1, 2, 4, 5, 6): {"weight": (3, 2, 2, 2, 2), "stride": [1, 1, 1], "padding": [0, 1, 0], "dilation": [1, 1, 1], "groups": 1},
}
TRANSPOSED = {(2, 4, 5, 6): {"weight": (4, 3, 3, 3), "stride": [2, 2], "padding": [1, 1], "dilation": [1, 1], "groups": 1, "extra": [1, 0]}}


def convolution_of(case: Case) -> tuple[dict[str, Any], bool, list[int], Callable[..., Tensor], int]:
    transposed = case.shape in TRANSPOSED
    how = (TRANSPOSED if transposed else CONVOLUTIONS)[case.shape]
    extra = how.get("extra", [0] * len(how["stride"]))

    def function(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
        return torch.convolution(x, w, b, how["stride"], how["padding"], how["dilation"], transposed, extra, how["groups"])

    channels = how["weight"][1] * how["groups"] if transposed else how["weight"][0]
    return how, transposed, extra, function, channels


CONVOLUTION_SHAPES = (*CONVOLUTIONS, *TRANSPOSED)


@row("Convolution", shapes=CONVOLUTION_SHAPES)
def convolution(case: Case) -> Iterator[Any]:
    if not whole(case):
        floating(case)
    how, transposed, extra, function, channels = convolution_of(case)
    widened = Tensor.long if whole(case) else wide  # torch convolves few narrow integers
    for with_bias in (True, False):
        x, w, b = case.values(low=-1, high=1), case.values(how["weight"], low=-1, high=1), case.values((channels,))
        expected = function(widened(x), widened(w), widened(b) if with_bias else None).to(case.dtype)
        bias = case.put(b) if with_bias else None
        lists = [how["stride"], how["padding"], how["dilation"], transposed, extra, how["groups"]]
        yield [case.put(x), case.put(w), bias, *lists, case.out(expected, loose=LOOSE), 0]


@row("ConvolutionBackward", shapes=CONVOLUTION_SHAPES)
def convolution_backward(case: Case) -> Iterator[Any]:
    floating(case)
    how, transposed, extra, function, channels = convolution_of(case)
    for mask in ([True, True, True], [False, True, False], [True, False, False]):
        x, w, b = case.values(low=-1, high=1), case.values(how["weight"], low=-1, high=1), case.values((channels,))
        grad = case.values(function(x.double(), w.double()).shape, low=-1, high=1)
        expected = gradients(function, [x, w, b], grad)
        outs = [case.out(e, loose=LOOSE * 2) if wanted else None for e, wanted in zip(expected, mask)]
        lists = [[channels], how["stride"], how["padding"], how["dilation"], transposed, extra, how["groups"], mask, 0]
        yield [case.put(grad), case.put(x), case.put(w), *lists, *outs]


# --- pooling: the case's shape is the input's ------------------------------------------------------------------------------------------------

PLANES = ((2, 3, 8, 8), (3, 7, 9), (1, 2, 11, 6), (2, 4, 32, 30))
WINDOWS = (([2, 2], [2, 2], [0, 0], False), ([3, 2], [2, 1], [1, 1], False), ([3, 3], [2, 2], [1, 1], True))


def whole(case: Case) -> bool:
    """Is it an integer type (bool isn't)?"""
    return not case.dtype.is_floating_point and not case.dtype.is_complex and case.dtype != torch.bool


def plane_values(case: Case, integers: bool = False) -> Tensor:
    """Every value once in a plane, so that the place of a maximum is unique; of narrow integers some are equal."""
    if not (integers and whole(case)):
        floating(case)
    height, width = case.shape[-2:]
    order = torch.stack([torch.randperm(height * width, generator=case.generator) for _ in range(case.values().numel() // (height * width))])
    return (order.reshape(case.shape) % 120).to(case.dtype) if whole(case) else (order.reshape(case.shape).double() % 250 - 100).to(case.dtype)


def max_pool(x: Tensor, window: Any) -> tuple[Tensor, Tensor]:
    kernel, stride, padding, ceil = window
    return F.max_pool2d(x, kernel, stride, padding, 1, ceil, return_indices=True)


@row("MaxPool2dWithIndices", shapes=PLANES)
def max_pool_indices(case: Case) -> Iterator[Any]:
    for window in WINDOWS:
        x = plane_values(case, integers=True)
        values, indices = max_pool(x.float(), window)
        arrays = [*window[:3], [1, 1], window[3]]
        places = case.out(indices.to(torch.int32))
        places.check = lambda actual, x=x, values=values: (
            None if torch.equal(x.flatten(-2).gather(-1, actual.flatten(-2).long()).reshape(values.shape), values.to(x.dtype)) else "wrong places"
        )
        yield [case.put(x), *arrays, case.out(values.to(x.dtype), exact=True), places]


def spread(x: Tensor, grad: Tensor, window: Any) -> Tensor:
    leaf = x.double().requires_grad_()
    max_pool(leaf, window)[0].backward(grad.double())
    assert leaf.grad is not None
    return leaf.grad.to(x.dtype)


@row("MaxPool2dWithIndicesBackward", shapes=((2, 3, 8, 8), (3, 7, 9), (1, 2, 11, 6)))
def max_pool_indices_backward(case: Case) -> Iterator[Any]:
    for window in WINDOWS:
        x = plane_values(case)
        values, indices = max_pool(x.float(), window)
        grad = case.values(values.shape)
        arrays = [*window[:3], [1, 1], window[3]]
        yield [case.put(grad), case.put(x), case.put(indices.to(torch.int32)), *arrays, case.out(spread(x, grad, window), loose=2)]


def mask_shape(values: Tensor, kernel: list[int]) -> tuple[int, ...]:
    """CANN's opaque mask: (N, C, kh*kw, (ceil(oh*ow/16) + 1) * 32) bytes."""
    blocks = -(-values.shape[-1] * values.shape[-2] // 16) + 1
    return (*values.shape[:-2], kernel[0] * kernel[1], blocks * 32)


@row("MaxPool2dWithMask", shapes=PLANES)
def max_pool_mask(case: Case) -> Iterator[Any]:
    for window in WINDOWS:
        x = plane_values(case)
        values, _ = max_pool(x.float(), window)
        mask = Out(place(torch.zeros(mask_shape(values, window[0]), dtype=torch.int8), "plain"), None, check=lambda actual: None)
        yield [case.put(x), *window[:3], [1, 1], window[3], case.out(values.to(x.dtype), exact=True), mask]


@row("MaxPool2dWithMaskBackward", shapes=((2, 3, 8, 8), (3, 7, 9), (1, 2, 11, 6)))
def max_pool_mask_backward(case: Case) -> Iterator[Any]:
    from library import Call

    for window in WINDOWS:
        x = plane_values(case)
        values, _ = max_pool(x.float(), window)
        grad = case.values(values.shape)
        arrays = [*window[:3], [1, 1], window[3]]
        mask, result = torch.zeros(mask_shape(values, window[0]), dtype=torch.int8), torch.empty(values.shape, dtype=x.dtype)
        forward = Call("MaxPool2dWithMask", [x, *arrays, result, mask])  # only the operator itself knows what the mask means
        assert forward.plan() == 0, forward.libs.message()
        forward.run()
        yield [case.put(grad), case.put(x), case_mask(mask), *arrays, case.out(spread(x, grad, window), loose=2)]


def case_mask(mask: Tensor) -> Tensor:
    return place(mask, "plain")


AVERAGES = (([2, 2], [2, 2], [0, 0], False, True, 0), ([3, 2], [2, 1], [1, 1], False, False, 0), ([3, 3], [2, 2], [1, 1], True, True, 5))


@row("AvgPool2d", shapes=PLANES)
def avg_pool(case: Case) -> Iterator[Any]:
    if case.dtype != torch.int64:
        floating(case)
    for kernel, stride, padding, ceil, include, divisor in AVERAGES:
        x = case.values()
        expected = F.avg_pool2d(wide(x), kernel, stride, padding, ceil, include, divisor or None).to(x.dtype)
        yield [case.put(x), kernel, stride, padding, ceil, include, divisor, 0, case.out(expected, loose=2)]


@row("AvgPool2dBackward", shapes=PLANES)
def avg_pool_backward(case: Case) -> Iterator[Any]:
    floating(case)
    for kernel, stride, padding, ceil, include, divisor in AVERAGES:
        x = case.values()

        def function(v: Tensor, how: Any = (kernel, stride, padding, ceil, include, divisor or None)) -> Tensor:
            return F.avg_pool2d(v, *how)

        grad = case.values(function(x.double()).shape)
        expected = gradients(function, [x], grad)[0]
        yield [case.put(grad), case.put(x), kernel, stride, padding, ceil, include, divisor, 0, case.out(expected, loose=2)]


OUTPUTS = ([1, 1], [3, 2], [4, 5])


@row("AdaptiveAvgPool2d", shapes=PLANES)
def adaptive_avg(case: Case) -> Iterator[Any]:
    floating(case)
    for size in OUTPUTS:
        x = case.values()
        yield [case.put(x), size, case.out(F.adaptive_avg_pool2d(wide(x), size).to(x.dtype), loose=2)]


@row("AdaptiveAvgPool2dBackward", shapes=PLANES)
def adaptive_avg_backward(case: Case) -> Iterator[Any]:
    floating(case)
    for size in OUTPUTS:
        x = case.values()
        grad = case.values((*x.shape[:-2], *size))
        expected = gradients(lambda v, size=size: F.adaptive_avg_pool2d(v, size), [x], grad)[0]
        yield [case.put(grad), case.put(x), case.out(expected, loose=2)]


@row("AdaptiveMaxPool2d", shapes=((2, 3, 8, 8), (3, 7, 9), (1, 2, 11, 6)))
def adaptive_max(case: Case) -> Iterator[Any]:
    for size in OUTPUTS:
        x = plane_values(case)
        values, indices = F.adaptive_max_pool2d(x.float(), size, return_indices=True)
        yield [case.put(x), size, case.out(values.to(x.dtype), exact=True), case.out(indices)]


@row("AdaptiveMaxPool2dBackward", shapes=((2, 3, 8, 8), (3, 7, 9), (1, 2, 11, 6)))
def adaptive_max_backward(case: Case) -> Iterator[Any]:
    for size in OUTPUTS:
        x = plane_values(case)
        values, indices = F.adaptive_max_pool2d(x.float(), size, return_indices=True)
        grad = case.values(values.shape)
        expected = gradients(lambda v, size=size: F.adaptive_max_pool2d(v, size), [x], grad)[0]
        yield [case.put(grad), case.put(x), case.put(indices), case.out(expected, loose=2)]


# --- normalisation -----------------------------------------------------------------------------------------------------------------------------

BATCHES = ((4, 3, 5, 5), (6, 4), (3, 2, 7), (2, 3, 2, 3, 4))


def normalised(x: Tensor, dims: list[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    mean, variance = x.mean(dims, keepdim=True), x.var(dims, correction=0, keepdim=True)
    invstd = torch.rsqrt(variance + eps)
    return (x - mean) * invstd, mean, invstd


@row("BatchNorm", shapes=BATCHES)
def batch_norm(case: Case) -> Iterator[Any]:
    floating(case)
    kind, channels, eps, momentum = statistics_type(case.dtype), case.shape[1], 2.0**-10, 0.25
    for training in (True, False):
        x = case.values()
        weight, bias = case.values((channels,), low=0.5), case.values((channels,))
        mean, variance = case.values((channels,), kind), case.values((channels,), kind, 0.5)
        after_mean, after_variance = mean.double().clone(), variance.double().clone()
        expected = F.batch_norm(wide(x), after_mean, after_variance, wide(weight), wide(bias), training, momentum, eps).to(x.dtype)
        dims = [d for d in range(x.dim()) if d != 1]
        _, batch_mean, invstd = normalised(wide(x), dims, eps)
        saved = [case.out(batch_mean.flatten().to(kind), loose=4), case.out(invstd.flatten().to(kind), loose=4)]
        if not training:
            saved = [Out(place(torch.zeros(channels, dtype=kind), "plain"), None, check=lambda actual: None) for _ in range(2)]
        running = [case.inout(mean, after_mean.to(kind), loose=4), case.inout(variance, after_variance.to(kind), loose=4)]
        yield [
            case.put(x),
            case.put(weight),
            case.put(bias),
            *running,
            training,
            momentum,
            eps,
            case.out(expected, loose=6),
            *saved,
        ]


@row("BatchNormBackward", shapes=BATCHES)
def batch_norm_backward(case: Case) -> Iterator[Any]:
    floating(case)
    kind, channels, eps = statistics_type(case.dtype), case.shape[1], 2.0**-10
    for training, mask in ((True, [True, True, True]), (False, [True, True, True]), (True, [True, False, False])):
        x, grad = case.values(), case.values()
        weight, bias = case.values((channels,), low=0.5), case.values((channels,))
        mean, variance = case.values((channels,), kind), case.values((channels,), kind, 0.5)

        def function(v: Tensor, w: Tensor, b: Tensor, m: Tensor = mean, s: Tensor = variance, training: bool = training) -> Tensor:
            return F.batch_norm(v, m.double().clone(), s.double().clone(), w, b, training, 0.25, eps)

        expected = gradients(function, [x, weight, bias], grad)
        dims = [d for d in range(x.dim()) if d != 1]
        _, batch_mean, invstd = normalised(wide(x), dims, eps)
        saved = [case.put(batch_mean.flatten().to(kind)), case.put(invstd.flatten().to(kind))]
        running = [case.put(mean), case.put(variance)]
        outs = [case.out(e, loose=30) if wanted else None for e, wanted in zip(expected, mask)]
        yield [case.put(grad), case.put(x), case.put(weight), *running, *saved, training, eps, mask, *outs]


LAYERS = ((4, 6), (2, 3, 5), (2, 2, 3, 4), (33, 17))


@row("LayerNorm", shapes=LAYERS)
def layer_norm(case: Case) -> Iterator[Any]:
    floating(case)
    kind, eps = statistics_type(case.dtype), 2.0**-10
    for count in (1, len(case.shape) - 1):
        inner = case.shape[-count:]
        x, weight, bias = case.values(), case.values(inner, low=0.5), case.values(inner)
        expected = F.layer_norm(wide(x), inner, wide(weight), wide(bias), eps).to(x.dtype)
        _, mean, invstd = normalised(wide(x), list(range(-count, 0)), eps)
        saved = [case.out(mean.to(kind), loose=4), case.out(invstd.to(kind), loose=4)]
        yield [case.put(x), list(inner), case.put(weight), case.put(bias), eps, case.out(expected, loose=6), *saved]
    plain = F.layer_norm(wide(x), inner, None, None, eps).to(x.dtype)
    yield [case.put(x), list(inner), None, None, eps, case.out(plain, loose=6), None, None]


@row("LayerNormBackward", shapes=LAYERS)
def layer_norm_backward(case: Case) -> Iterator[Any]:
    floating(case)
    kind, eps = statistics_type(case.dtype), 2.0**-10
    for count, mask in ((1, [True, True, True]), (len(case.shape) - 1, [True, True, False])):
        inner = case.shape[-count:]
        x, grad = case.values(), case.values()
        weight, bias = case.values(inner, low=0.5), case.values(inner)
        expected = gradients(lambda v, w, b, inner=inner: F.layer_norm(v, inner, w, b, eps), [x, weight, bias], grad)
        _, mean, invstd = normalised(wide(x), list(range(-count, 0)), eps)
        saved = [case.put(mean.to(kind)), case.put(invstd.to(kind))]
        outs = [case.out(e, loose=30) if wanted else None for e, wanted in zip(expected, mask)]
        yield [case.put(grad), case.put(x), list(inner), *saved, case.put(weight), case.put(bias), mask, *outs]


GROUPS = ((2, 4, 5), (3, 6, 2, 4), (2, 4, 3, 2, 2))


def group_statistics(x: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor]:
    _, mean, invstd = normalised(x.reshape(x.shape[0], groups, -1), [-1], eps)
    return mean.squeeze(-1), invstd.squeeze(-1)


def group_sizes(case: Case, groups: int) -> list[int]:
    return [case.shape[0], case.shape[1], int(torch.tensor(case.shape[2:]).prod()), groups]


@row("GroupNorm", shapes=GROUPS)
def group_norm(case: Case) -> Iterator[Any]:
    floating(case)
    eps = 2.0**-10
    for groups in (1, 2):
        x, weight, bias = case.values(), case.values((case.shape[1],), low=0.5), case.values((case.shape[1],))
        expected = F.group_norm(wide(x), groups, wide(weight), wide(bias), eps).to(x.dtype)
        saved = [case.out(s.to(x.dtype), loose=4) for s in group_statistics(wide(x), groups, eps)]
        yield [case.put(x), case.put(weight), case.put(bias), *group_sizes(case, groups), eps, case.out(expected, loose=6), *saved]


@row("GroupNormBackward", shapes=GROUPS)
def group_norm_backward(case: Case) -> Iterator[Any]:
    floating(case)
    eps = 2.0**-10
    kind = statistics_type(case.dtype)
    for groups in (1, 2):
        x, grad, weight, bias = case.values(), case.values(), case.values((case.shape[1],), low=0.5), case.values((case.shape[1],))
        expected = gradients(lambda v, w, b, groups=groups: F.group_norm(v, groups, w, b, eps), [x, weight, bias], grad)
        saved = [case.put(s.to(kind)) for s in group_statistics(wide(x), groups, eps)]
        outs = [case.out(e, loose=30) for e in expected]
        yield [case.put(grad), case.put(x), *saved, case.put(weight), *group_sizes(case, groups), [True, True, True], *outs]


# --- softmax -------------------------------------------------------------------------------------------------------------------------------------


def softmax_pair(name: str, function: Callable[[Tensor, int], Tensor]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        floating(case)
        for dim in (0, -1):
            x = case.values()
            yield [case.put(x), dim, case.out(function(wide(x), dim).to(x.dtype), loose=2)]
        if case.dtype in (torch.float16, torch.bfloat16):
            yield [case.put(x), dim, case.out(function(x.double(), dim).float(), loose=2)]

    def backward(case: Case) -> Iterator[Any]:
        floating(case)
        for dim in (0, -1):
            grad, y = case.values(), function(wide(case.values()), dim).to(case.dtype)
            g, v = wide(grad), wide(y)
            if name == "Softmax":
                expected = v * (g - (g * v).sum(dim, keepdim=True))
            else:
                expected = g - v.exp() * g.sum(dim, keepdim=True)
            yield [case.put(grad), case.put(y), dim, case.out(expected.to(case.dtype), loose=4)]

    shapes = ((7,), (3, 5), (2, 3, 4), (33, 17), (4, 300), ())
    add(name, calls, shapes=shapes)
    add(f"{name}Backward", backward, shapes=shapes)


softmax_pair("Softmax", lambda x, dim: torch.softmax(x, dim))
softmax_pair("LogSoftmax", lambda x, dim: torch.log_softmax(x, dim))


# --- losses --------------------------------------------------------------------------------------------------------------------------------------

LOSSES = ((7,), (3, 5), (2, 3, 4), (33, 17))
REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}


def loss_pair(
    name: str, function: Callable[..., Tensor], extra: tuple[Any, ...] = (), low: float = -3, high: float = 3, target: Any = None, optional: int = 0
) -> None:
    """(self, target, [weights,] reduction, *extra, out) and (gradOutput, self, target, [weights,] reduction, *extra, gradInput)"""

    def draw(case: Case) -> tuple[Tensor, Tensor, list[Tensor]]:
        floating(case)
        x = case.values(low=low, high=high)
        return x, target(case) if target else case.values(low=low, high=high), [case.values(low=0.5) for _ in range(optional)]

    def calls(case: Case) -> Iterator[Any]:
        for code, kind in REDUCTIONS.items():
            for weighted in (True, False) if optional else (False,):
                x, y, weights = draw(case)
                given = [wide(w) for w in weights] if weighted else [None] * optional
                expected = function(wide(x), wide(y), *given, reduction=kind).to(x.dtype)
                handles = [case.put(w) if weighted else None for w in weights]
                yield [case.put(x), case.put(y), *handles, code, *extra, case.out(expected, loose=4)]

    def backward(case: Case) -> Iterator[Any]:
        for code, kind in REDUCTIONS.items():
            for weighted in (True, False) if optional else (False,):
                x, y, weights = draw(case)
                given = [wide(w) for w in weights] if weighted else [None] * optional
                grad = case.values(case.shape if kind == "none" else ())
                leaf = wide(x).clone().requires_grad_()
                function(leaf, wide(y), *given, reduction=kind).backward(wide(grad))
                assert leaf.grad is not None
                handles = [case.put(w) if weighted else None for w in weights]
                expected = case.out(leaf.grad.to(x.dtype), loose=4)
                yield [case.put(grad), case.put(x), case.put(y), *handles, code, *extra, expected]

    add(name, calls, shapes=LOSSES)
    add(f"{name}Backward", backward, shapes=LOSSES)


def signs(case: Case) -> Tensor:
    return torch.where(case.values(dtype=torch.bool), 1.0, -1.0).to(case.dtype)


def probabilities(case: Case) -> Tensor:
    return case.values(low=0.1, high=0.9)


loss_pair("MseLoss", F.mse_loss)
loss_pair("L1Loss", F.l1_loss)
loss_pair("SmoothL1Loss", lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.5), (0.5,))
loss_pair("SoftMarginLoss", F.soft_margin_loss, target=signs)
loss_pair("BinaryCrossEntropy", lambda x, y, w, reduction: F.binary_cross_entropy(x, y, w, reduction=reduction), (), 0.1, 0.9, probabilities, 1)
loss_pair(
    "BinaryCrossEntropyWithLogits",
    lambda x, y, w, p, reduction: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p, reduction=reduction),
    target=probabilities,
    optional=2,
)


def kl_div(case: Case, log_target: bool) -> tuple[Tensor, Tensor]:
    floating(case)
    return case.values(low=-3, high=-0.1), case.values(low=-3, high=-0.1) if log_target else case.values(low=0.1, high=0.9)


def kl_div_loss(x: Tensor, y: Tensor, kind: str, log_target: bool) -> Tensor:
    each = y.exp() * (y - x) if log_target else y * (y.log() - x)
    return {"none": each, "mean": each.mean(), "sum": each.sum(), "batchmean": each.sum() / x.shape[0]}[kind]


@row("KlDiv", shapes=LOSSES)
def kl_div_forward(case: Case) -> Iterator[Any]:
    for code, kind in {**REDUCTIONS, 3: "batchmean"}.items():
        for log_target in (False, True):
            x, y = kl_div(case, log_target)
            expected = kl_div_loss(wide(x), wide(y), kind, log_target).to(x.dtype)
            yield [case.put(x), case.put(y), code, log_target, case.out(expected, loose=4)]


@row("KlDivBackward", shapes=LOSSES)
def kl_div_backward(case: Case) -> Iterator[Any]:
    for code, kind in REDUCTIONS.items():
        for log_target in (False, True):
            x, y = kl_div(case, log_target)
            grad = case.values(case.shape if kind == "none" else ())
            leaf = wide(x).clone().requires_grad_()
            kl_div_loss(leaf, wide(y), kind, log_target).backward(wide(grad))
            assert leaf.grad is not None
            yield [case.put(grad), case.put(x), case.put(y), code, log_target, case.out(leaf.grad.to(x.dtype), loose=4)]


def nll_rows(name: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """(self, target, weight, reduction, ignoreIndex, out, totalWeight) and the gradient; the case's shape is (N, C, ...)."""

    def draw(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        floating(case)
        x, classes = case.values(low=-3, high=0), case.shape[1]
        target = torch.randint(0, classes, (case.shape[0], *case.shape[2:]), generator=case.generator)
        weight = case.values((classes,), low=0.5)
        total = wide(weight)[target[target != 1]].sum().to(case.dtype)
        return x, target, weight, total

    def calls(case: Case) -> Iterator[Any]:
        for code, kind in REDUCTIONS.items():
            x, target, weight, total = draw(case)
            expected = F.nll_loss(wide(x), target, wide(weight), ignore_index=1, reduction=kind).to(x.dtype)
            sum_out = case.out(total, loose=4)
            if kind == "none":
                sum_out.check = lambda actual: None
            yield [case.put(x), case.put(target), case.put(weight), code, 1, case.out(expected, loose=4), sum_out]

    def backward(case: Case) -> Iterator[Any]:
        for code, kind in REDUCTIONS.items():
            x, target, weight, total = draw(case)
            grad = case.values(target.shape if kind == "none" else ())
            leaf = wide(x).clone().requires_grad_()
            F.nll_loss(leaf, target, wide(weight), ignore_index=1, reduction=kind).backward(wide(grad))
            assert leaf.grad is not None
            inputs = [case.put(grad), case.put(x), case.put(target), case.put(weight)]
            yield [*inputs, code, 1, case.put(total), case.out(leaf.grad.to(x.dtype), loose=4)]

    add(name, calls, shapes=shapes)
    add(f"{name}Backward", backward, shapes=shapes)


nll_rows("NLLLoss", ((7, 3), (3, 5), (1, 4), (33, 17)))
nll_rows("NLLLoss2d", ((2, 3, 4, 5), (1, 4, 3, 3), (3, 5, 7, 2)))


# --- dropout -------------------------------------------------------------------------------------------------------------------------------------

DROPS = ((7,), (3, 5), (2, 3, 4), (33, 17), (128, 40))


def packed_bytes(count: int) -> int:
    return -(-count // 128) * 16


def bits(mask: Tensor, count: int) -> Tensor:
    """Bit i of the flat tensor: bit i % 8 of byte i / 8."""
    each = torch.arange(8, dtype=torch.uint8)
    return ((mask.reshape(-1, 1) >> each) & 1).flatten()[:count].bool()


def share_check(count: int, share: float) -> Callable[[Tensor], str | None]:
    def check(actual: Tensor) -> str | None:
        kept = bits(actual, count).double().mean().item()
        allowed = 5 * (share * (1 - share) / count) ** 0.5
        return None if abs(kept - share) <= allowed else f"{kept} are kept, expected {share} within {allowed}"

    return check


def generated(name: str, extra: tuple[Any, ...]) -> None:
    def calls(case: Case) -> Iterator[Any]:
        if case.dtype != torch.uint8:
            raise NotImplementedError("masks are bytes")
        for share in (0.0, 0.25, 1.0):
            count = int(torch.tensor(case.shape).prod())
            mask = Out(place(torch.zeros(packed_bytes(count), dtype=torch.uint8), "plain"), None, check=share_check(count, 1 - share))
            yield [list(case.shape), share, 5, 8, *extra, mask]

    add(name, calls, shapes=DROPS, dtypes=(torch.uint8,), needs=(torch.uint8,))


generated("DropoutGenMask", ())
generated("DropoutGenMaskV2", (torch.float32,))


@row("DropoutDoMask", shapes=DROPS)
def do_mask(case: Case) -> Iterator[Any]:
    floating(case)
    for share in (0.0, 0.25, 1.0):
        x = case.values()
        mask = torch.randint(0, 256, (packed_bytes(x.numel()),), generator=case.generator).to(torch.uint8)
        keep = bits(mask, x.numel()).reshape(x.shape)
        expected = wide(x) if share == 0 else torch.where(keep, wide(x) / (1 - share), 0.0) if share < 1 else torch.zeros_like(wide(x))
        yield [case.put(x), place(mask, "plain"), share, case.out(expected.to(x.dtype))]


@row("DropoutV3", shapes=DROPS)
def dropout_v3(case: Case) -> Iterator[Any]:
    floating(case)
    x = case.values(low=1, high=3)
    mask = Out(place(torch.zeros(packed_bytes(x.numel()), dtype=torch.uint8), "plain"), None, check=share_check(x.numel(), 0.75))
    out = case.out(x)

    def check(actual: Tensor) -> str | None:
        expected = torch.where(bits(mask.view, x.numel()).reshape(x.shape), wide(x) / 0.75, 0.0).to(x.dtype)
        return None if torch.allclose(actual.double(), expected.double(), rtol=1e-2) else "the result isn't what the mask says"

    out.check = check
    yield [case.put(x), None, 0.25, 5, 8, out, mask]


@row("MaskedScale", shapes=DROPS)
def masked_scale(case: Case) -> Iterator[Any]:
    floating(case)
    for kind in (torch.bool, torch.uint8, case.dtype):
        x, mask = case.values(), case.values(dtype=torch.bool).to(kind)
        yield [case.put(x), case.put(mask), 1.25, case.out((wide(x) * mask.double() * 1.25).to(x.dtype))]
