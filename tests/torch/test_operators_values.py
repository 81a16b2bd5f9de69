"""Values at the edges: reductions of nothing, eight dimensions and more, numbers that a type can't hold, mixed types of parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from conftest import DEVICE

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
REAL = [*INTEGERS, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64]
INFINITY, NAN = float("inf"), float("nan")


def outcome(action: Callable[..., object], device: str, *arguments: object) -> list[torch.Tensor] | str:
    """Results on the CPU, or the first line of the error."""
    try:
        result = action(device, *arguments)
        return [part.detach().cpu() for part in (result if isinstance(result, list | tuple) else [result])]
    except (RuntimeError, IndexError) as error:
        return str(error).splitlines()[0]


def check(action: Callable[..., object], *arguments: object, text: bool = True) -> None:
    """The device gives what the CPU gives: values, dtypes, shapes, or the error (with its text unless text is False)."""
    got, want = outcome(action, DEVICE, *arguments), outcome(action, "cpu", *arguments)
    if isinstance(want, str):
        assert isinstance(got, str) and (got == want or not text), (got, want)
        return
    assert not isinstance(got, str), (got, want)
    for mine, right in zip(got, want, strict=True):
        assert mine.dtype == right.dtype and mine.shape == right.shape
        assert torch.allclose(mine.double(), right.double(), equal_nan=True, rtol=1e-2 if right.dtype.itemsize == 2 else 1e-5, atol=1e-5), (
            mine,
            right,
        )


REDUCTIONS = ["all", "any", "sum", "prod", "mean", "amax", "amin", "max", "min", "argmax", "nansum", "count_nonzero", "var"]


def reduce(device: str, name: str, values: torch.Tensor, options: dict[str, int]) -> object:
    """One reduction."""
    return getattr(torch, name)(values.to(device), **options)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_nothing(name: str, dtype: torch.dtype) -> None:
    """Each operation's identity, or its refusal."""
    for shape in ((0,), (2, 0), (0, 3), (2, 0, 3)):
        check(reduce, name, torch.ones(shape, dtype=dtype), {}, text=False)
        for dim in range(len(shape)):
            check(reduce, name, torch.ones(shape, dtype=dtype), {"dim": dim}, text=False)


EIGHT = [2, 1, 3, 1, 2, 2, 1, 2]
MANY = {
    "nonzero": lambda a, device: torch.nonzero(a),
    "mask": lambda a, device: a[a != 0],
    "masked_select": lambda a, device: torch.masked_select(a, a != 0),
    "index": lambda a, device: a[torch.tensor([1, 0], device=device)],
    "index_select": lambda a, device: a.index_select(2, torch.tensor([2, 0], device=device)),
    "index_put": lambda a, device: a.index_put((torch.tensor([1], device=device),), (a[:1] * 2).to(a.dtype)),
    "gather": lambda a, device: a.gather(2, torch.zeros_like(a, dtype=torch.int64)),
    "scatter": lambda a, device: a.scatter(4, torch.zeros_like(a, dtype=torch.int64)[..., :1, :, :, :], a),
    "take": lambda a, device: a.take(torch.tensor([5, 0], device=device)),
    "cat": lambda a, device: torch.cat([a, a], 5),
    "flip": lambda a, device: a.flip(0, 7),
    "transposed": lambda a, device: a.permute(7, 6, 5, 4, 3, 2, 1, 0).contiguous(),
    "index_add": lambda a, device: a.index_add(2, torch.tensor([0], device=device), a[:, :, :1]),
}
SORTS = {
    "sort": lambda a, device: torch.sort(a, dim=2, stable=True),
    "topk": lambda a, device: torch.topk(a, 1, dim=7),
    "max": lambda a, device: torch.max(a, 4),
    "cumsum": lambda a, device: a.cumsum(2),
    "sum": lambda a, device: a.sum((0, 4, 7)),
}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool])
def test_eight_dimensions(dtype: torch.dtype) -> None:
    """As many as there may be; complex numbers have no room for a ninth of their parts."""
    values = ((torch.arange(48) * 7) % 5 - 1).reshape(EIGHT).to(dtype)
    for name, action in (MANY if dtype.is_complex or dtype == torch.bool else MANY | SORTS).items():
        got, want = action(values.to(DEVICE), DEVICE), action(values, "cpu")
        for mine, right in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, want)), strict=True):
            if not (name in ("topk", "max") and mine.dtype == torch.int64 and dtype != torch.int64):  # ties
                assert torch.equal(mine.cpu(), right), name


@pytest.mark.npu_only
@pytest.mark.parametrize(
    ("action", "operator"),
    [
        (lambda a: a + a, "aclnnAdd"),
        (lambda a: a.exp(), "aclnnExp"),
        (lambda a: a.sum(), "aclnnReduceSum"),
        (lambda a: torch.cat([a, a]), "aclnnCat"),
        (lambda a: a.nonzero(), "aclnnNonzero"),
        (lambda a: a.fill_(1), "aclnnInplaceFillScalar"),
    ],
)
def test_too_many_dimensions(action: Callable[[torch.Tensor], object], operator: str) -> None:
    """The error names the operator, the number of dimensions and the limit, and leaves no words for the next one."""
    with pytest.raises(RuntimeError, match=f"{operator}: .* has 9 dimensions; at most 8 are allowed") as caught:
        action(torch.empty([2] * 9, device=DEVICE))
    assert "null" not in str(caught.value)
    with pytest.raises(RuntimeError) as caught:
        torch.ones(3, device=DEVICE).index_select(0, torch.tensor([9], device=DEVICE)).cpu()
    assert "dimensions" not in str(caught.value)


def replace_special(a: torch.Tensor, form: int, options: dict[str, float]) -> torch.Tensor:
    """nan_to_num: functional, in place, with out."""
    if form == 0:
        return torch.nan_to_num(a, **options)
    return a.nan_to_num_(**options) if form == 1 else torch.nan_to_num(a, out=torch.empty_like(a), **options)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int32, torch.complex128])
def test_nan_to_num(dtype: torch.dtype) -> None:
    """All bits of float64 replacements, in each form."""
    values = torch.tensor([NAN, INFINITY, -INFINITY, 1.5, -2.0]) if dtype != torch.int32 else torch.tensor([1, 0])
    options: list[dict[str, float]] = [{}, {"nan": 0.1}, {"posinf": 1e300 if dtype == torch.float64 else 1e3}, {"nan": INFINITY, "neginf": -0.3}]
    for given, form in itertools.product(options, range(3)):
        got, right = (replace_special(values.to(dtype).clone().to(device), form, given).cpu() for device in (DEVICE, "cpu"))
        assert torch.equal(got, right), (given, form)


NUMBERS = [-1, -3, 255, 256, 300, -129, -200, 2**15, 2**31, -(2**40) - 3, 7]


def with_number(device: str, name: str, values: torch.Tensor, number: int) -> torch.Tensor:
    """An operator of a tensor and a number; reading the result brings the error of a division by zero."""
    return getattr(torch, name)(values.to(device), number).cpu()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "bitwise_left_shift", "add", "mul", "lt", "bitwise_and"])
def test_numbers_outside_of_the_type(name: str, dtype: torch.dtype) -> None:
    """A Python number takes the tensor's type before the operator sees it."""
    for shape, number in itertools.product([(), (1,), (2, 3)], NUMBERS):
        values = (torch.arange(torch.Size(shape).numel()) * 37 % 100 + 3).to(dtype).reshape(shape)
        check(with_number, name, values, number, text=False)


OVERFLOWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fill_": lambda a: a.fill_(300),
    "full_like": lambda a: torch.full_like(a, -300),
    "masked_fill": lambda a: a.masked_fill(a > 3, 300),
    "where": lambda a: torch.where(a > 3, a, 300),
    "clamp": lambda a: a.clamp(0, 300),
    "clamp_min": lambda a: a.clamp_min(300),
    "pow": lambda a: a.pow(300),
    "scatter": lambda a: a.scatter(0, torch.zeros_like(a, dtype=torch.int64), 300),
    "index_fill": lambda a: a.index_fill(0, torch.zeros_like(a, dtype=torch.int64), 300),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_numbers_that_overflow_are_refused(name: str) -> None:
    """Where torch converts the number itself, it refuses one that doesn't fit."""
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        OVERFLOWS[name](torch.tensor([1, 5], dtype=torch.uint8, device=DEVICE))


def test_subtraction_of_truth_values_is_refused() -> None:
    """In torch's words, for tensors and numbers."""
    for action in (lambda a: a - True, lambda a: torch.rsub(a, True), lambda a: 3 - (a > 0)):
        with pytest.raises(RuntimeError, match=r"Subtraction, the `-` operator, with (a|two) bool tensor"):
            action(torch.ones(3, dtype=torch.int64, device=DEVICE))


def normalise(device: str, function: Callable[..., torch.Tensor], dtype: torch.dtype, kinds: list[torch.dtype | None]) -> torch.Tensor:
    """A normalisation whose parameters are ones of these types."""
    values = torch.arange(24.0, dtype=torch.float64).view(2, 3, 4).to(dtype).to(device)
    parameters = [None if kind is None else torch.ones(3, dtype=kind, device=device) for kind in kinds]
    if function is F.layer_norm:
        return function(values.transpose(1, 2), (3,), *parameters)
    return function(values, 3, *parameters) if function is F.group_norm else function(values, *parameters)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_types_of_parameters(dtype: torch.dtype) -> None:
    """Parameters of normalisation have the input's type, or are float32 beside a half type."""
    given = [torch.float32, torch.float64, torch.float16, None]
    for weight, bias in itertools.product(given, given):
        check(normalise, F.layer_norm, dtype, [weight, bias])
        check(normalise, F.group_norm, dtype, [weight, bias])
        for statistics in given[:3]:
            check(normalise, F.batch_norm, dtype, [statistics, statistics, weight, bias], text=False)
