"""Values at the edges of what operators take: complex factors, numbers that don't fit, ranges that aren't finite."""

import pytest
import torch

FACTORS = [(1j, 2), (1 + 2j, 1j), (2.0, 0), (0, -1j)]


@pytest.mark.parametrize("alpha, beta", FACTORS)
def test_complex_factors_of_products(alpha, beta, device):
    a, b, c = (torch.randn(shape, dtype=torch.complex64) for shape in ((4, 5), (5, 3), (4, 3)))
    want = torch.addmm(c, a, b, alpha=alpha, beta=beta)
    torch.testing.assert_close(torch.addmm(c.to(device), a.to(device), b.to(device), alpha=alpha, beta=beta).cpu(), want)
    want = torch.addmv(c[:, 0], a, b[:, 0], alpha=alpha, beta=beta)
    got = torch.addmv(c[:, 0].to(device), a.to(device), b[:, 0].to(device), alpha=alpha, beta=beta)
    torch.testing.assert_close(got.cpu(), want)
    want = torch.baddbmm(c[None], a[None], b[None], alpha=alpha, beta=beta)
    got = torch.baddbmm(c[None].to(device), a[None].to(device), b[None].to(device), alpha=alpha, beta=beta)
    torch.testing.assert_close(got.cpu(), want)


@pytest.mark.parametrize("alpha", [1j, 1 + 2j, 1, -3.5])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_factor_of_index_add(alpha, dtype, device):
    base, source, index = torch.randn(3, 4, dtype=dtype), torch.randn(5, 4, dtype=dtype), torch.tensor([0, 2, 0, 1, 2])
    want = base.index_add(0, index, source, alpha=alpha)
    got = base.to(device).index_add(0, index.to(device), source.to(device), alpha=alpha)
    torch.testing.assert_close(got.cpu(), want)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_conversion_to_integers_is_one(dtype, device):
    """What torch gives on the CPU, in copies and inside operators, for numbers that fit or not."""
    numbers = torch.tensor([3e9, -3e9, 1e20, float("inf"), float("nan"), 300.7, -1.5, 2.0**40], dtype=torch.float64)
    for source in (numbers, numbers.float()):
        assert torch.equal(source.to(device).to(dtype).cpu(), source.to(dtype))
    for number in numbers.tolist():
        x = torch.tensor([number])
        assert torch.equal(x.to(device).cumsum(0, dtype=dtype).cpu(), x.cumsum(0, dtype=dtype))
        assert torch.equal(x.to(device).cumprod(0, dtype=dtype).cpu(), x.cumprod(0, dtype=dtype))
        assert torch.equal(x.to(device).sum(dtype=dtype).cpu(), x.sum(dtype=dtype))


def test_histc_needs_a_finite_range(device):
    for number in (float("inf"), float("nan")):
        x = torch.tensor([1, 2, number], device=device)
        with pytest.raises(RuntimeError, match="is not finite"):
            torch.histc(x, 4).cpu()
        assert torch.equal(torch.histc(x, 2, 0, 2).cpu(), torch.tensor([0.0, 2.0]))
        with pytest.raises(RuntimeError, match="is not finite"):
            torch.histc(x, 4, 0, number).cpu()


def test_logspace_of_base_0(device):
    assert torch.logspace(0, 1, 3, base=0, device=device).tolist() == [1, 0, 0]
