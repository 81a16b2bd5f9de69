"""Elementwise functions that are made of others, where series meet and types end: npu against the CPU."""

from __future__ import annotations

import math

import pytest
import torch
from conftest import DEVICE

special = torch.special
NUMBERS = [0.0, -0.0, 1.0, 2.0, 0.5, -0.5, -1.5, -2.5, 1e-300, 9.999, 10.0, 11.5, 29.9, 30.0, 30.1, 170.0, 700.0, -12.1, 1e8, 0.999999, 1.0000001]
ENDS = [math.inf, -math.inf, math.nan]
UNARY = {
    **{"lgamma": torch.lgamma, "digamma": torch.digamma, "i0": special.i0, "i0e": special.i0e, "i1": special.i1, "i1e": special.i1e},
    **{"erfcx": special.erfcx, "log_ndtr": special.log_ndtr, "entr": special.entr},
}
BINARY = {
    **{"copysign": torch.copysign, "fmax": torch.fmax, "fmin": torch.fmin, "heaviside": torch.heaviside, "hypot": torch.hypot},
    **{"nextafter": torch.nextafter, "xlog1py": special.xlog1py},
}
TOLERANCES = {torch.float64: {"rtol": 1e-9, "atol": 1e-12}, torch.float32: {"rtol": 1e-5, "atol": 1e-6}}


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(NUMBERS + ENDS, dtype=torch.float64).to(dtype)
    torch.testing.assert_close(UNARY[name](x.to(DEVICE)).cpu(), UNARY[name](x), equal_nan=True, **TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(NUMBERS + ENDS, dtype=torch.float64).to(dtype)
    for shift in (0, 1, 5, 23):
        y = x.roll(shift)
        got = BINARY[name](x.to(DEVICE), y.to(DEVICE)).cpu()
        torch.testing.assert_close(got, BINARY[name](x, y), equal_nan=True, **TOLERANCES[dtype])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_polygamma(n: int) -> None:
    x = torch.tensor([0.3, 1.0, 4.5, 25.0, -0.5, -3.3, -40.7], dtype=torch.float64)
    torch.testing.assert_close(torch.polygamma(n, x.to(DEVICE)).cpu(), torch.polygamma(n, x), rtol=1e-9, atol=1e-12)


def test_zeta_far_below_zero() -> None:
    """As many terms as the argument is below zero; -5000.5 has a term of 0.5^-4, twice."""
    s, q = torch.tensor([4.0, 3.0], dtype=torch.float64), torch.tensor([-5000.5, -20.25], dtype=torch.float64)
    torch.testing.assert_close(special.zeta(s.to(DEVICE), q.to(DEVICE)).cpu(), special.zeta(s, q), rtol=1e-9, atol=0)


def test_quantiles_of_tails() -> None:
    p = torch.tensor([0, 1e-300, 1e-20, 1e-10, 1e-3, 0.02, 0.3, 0.5, 0.7, 0.98, 1 - 1e-10, 1], dtype=torch.float64)
    torch.testing.assert_close(special.ndtri(p.to(DEVICE)).cpu(), special.ndtri(p), rtol=1e-9, atol=1e-12)


def test_mantissa_and_exponent() -> None:
    x = torch.tensor([0.0, -0.0, 1.0, -3.5, 5e-324, -1e-310, 1.7e308, math.inf, math.nan], dtype=torch.float64)
    got, want = torch.frexp(x.to(DEVICE)), torch.frexp(x)
    torch.testing.assert_close(got.mantissa.cpu(), want.mantissa, rtol=0, atol=0, equal_nan=True)
    assert got.exponent.cpu()[:7].equal(want.exponent[:7])  # C leaves those of infinity and NaN open


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8], ids=str)
def test_lcm(dtype: torch.dtype) -> None:
    x, y = torch.tensor([0, 0, 5, -4, 6, -7, 127], dtype=dtype), torch.tensor([0, 3, 0, 6, -9, 21, -128], dtype=dtype)
    assert torch.lcm(x.to(DEVICE), y.to(DEVICE)).cpu().equal(torch.lcm(x, y))


def test_cumulative_logsumexp_of_far_apart_numbers() -> None:
    """No sum of exponentials over the whole line would hold these."""
    x = torch.tensor([-900.0, 900.0, 900.0, -900.0, 1000.0, math.inf], dtype=torch.float64)
    torch.testing.assert_close(torch.logcumsumexp(x.to(DEVICE), 0).cpu(), torch.logcumsumexp(x, 0))


def test_runs_of_slices() -> None:
    x = torch.tensor([[1, 2], [1, 2], [3, 4], [1, 2]])
    for got, want in zip(*(torch.unique_consecutive(t, True, True, 0) for t in (x.to(DEVICE), x))):
        assert got.cpu().equal(want)


def test_integer_windows() -> None:
    x = torch.tensor([[[2**53, 2**53 + 1, -7], [5, 6, 7], [-8, 2, 1]]])  # numbers that float64 can't tell apart
    got, want = (torch.nn.functional.max_pool2d(t, 2, 1, return_indices=True) for t in (x.to(DEVICE), x))
    assert got[0].cpu().equal(want[0]) and got[1].cpu().equal(want[1])
    assert torch.nn.functional.avg_pool2d(x.to(DEVICE) % 9, 2, 1).cpu().equal(torch.nn.functional.avg_pool2d(x % 9, 2, 1))
