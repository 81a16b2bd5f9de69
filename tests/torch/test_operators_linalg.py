"""Decompositions, systems of equations, distances and composed functions against torch's CPU, without the fallback."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from conftest import DEVICE

pytestmark = pytest.mark.usefixtures("no_fallback")
NUMBERS = [torch.float32, torch.float64, torch.complex64, torch.complex128]
Action = Callable[..., object]


def numbers(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Random numbers around 0."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(dtype)


def outcome(action: Action, device: str, *values: torch.Tensor) -> list[torch.Tensor] | str:
    """Results on the CPU, or the error's first line."""
    try:
        result = action(*(v.to(device) for v in values))
        return [part.detach().cpu() for part in (result if isinstance(result, list | tuple) else [result])]
    except (RuntimeError, IndexError) as error:
        return str(error).splitlines()[0]


def check(action: Action, *values: torch.Tensor, loose: float = 1) -> None:
    """The device gives what the CPU gives: values, or the error."""
    got, want = outcome(action, DEVICE, *values), outcome(action, "cpu", *values)
    if isinstance(want, str) or isinstance(got, str):
        assert got == want
        return
    for mine, right in zip(got, want, strict=True):
        assert mine.dtype == right.dtype and mine.shape == right.shape
        tolerance = {torch.float64: 1e-9, torch.complex128: 1e-9, torch.float16: 2e-3, torch.bfloat16: 1e-2}.get(right.dtype, 2e-5)
        torch.testing.assert_close(mine, right, rtol=tolerance * loose, atol=tolerance * loose, equal_nan=True)


def gradients(function: Action) -> Action:
    """The gradients of a weighted sum of the results."""

    def run(*values: torch.Tensor) -> list[torch.Tensor]:
        leaves = [v.detach().requires_grad_() for v in values]
        result = function(*leaves)
        parts = result if isinstance(result, list | tuple) else [result]
        sum(((p.abs() if p.is_complex() else p) * torch.linspace(1, 2, p.numel(), device=p.device).view(p.shape)).sum() for p in parts).backward()
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    return run


MATRIX: dict[str, Action] = {
    "inv": torch.linalg.inv,
    "cholesky": lambda a: torch.linalg.cholesky(a @ a.mH),
    "cholesky upper": lambda a: torch.linalg.cholesky(a @ a.mH, upper=True),
    "qr": lambda a: torch.linalg.qr(a),
    "qr complete": lambda a: torch.linalg.qr(a[..., :3], mode="complete"),
    "qr r": lambda a: torch.linalg.qr(a[..., :2, :], mode="r")[1],
    "det": torch.linalg.det,
    "slogdet": lambda a: tuple(torch.linalg.slogdet(a)),
    "svdvals": torch.linalg.svdvals,
    "pinv": torch.linalg.pinv,
    "matrix_rank": torch.linalg.matrix_rank,
    "eigvalsh": lambda a: torch.linalg.eigvalsh(a + a.mH),
    "lu": lambda a: tuple(torch.linalg.lu(a)),
    "lu wide": lambda a: tuple(torch.linalg.lu(a[..., :2, :])),
    "lu_factor": lambda a: tuple(torch.linalg.lu_factor(a[..., :3])),
    "matrix_power": lambda a: torch.linalg.matrix_power(a, -2),
    "cond": torch.linalg.cond,
    "nuc": lambda a: torch.linalg.matrix_norm(a, "nuc"),
    "solve own": lambda a: torch.linalg.solve(a, a[..., :2]),
    "solve right": lambda a: torch.linalg.solve(a, a[..., :2, :], left=False),
    "solve vector": lambda a: torch.linalg.solve(a, a[..., 0]),
    "lu_solve": lambda a: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a[..., :2], adjoint=True),
    "triangular": lambda a: torch.linalg.solve_triangular(a, a[..., :2], upper=True),
    "triangular right": lambda a: torch.linalg.solve_triangular(a.mT, a[..., :2, :], upper=False, left=False, unitriangular=True),
    "triangular_solve": lambda a: torch.triangular_solve(a[..., :2], a, transpose=True)[0],
    "cholesky_solve": lambda a: torch.cholesky_solve(a[..., :2], a.tril()),
    "cholesky_inverse": lambda a: torch.cholesky_inverse(torch.linalg.cholesky(a @ a.mH, upper=True), upper=True),
    "geqrf": lambda a: tuple(torch.geqrf(a)),
    "geqrf tall": lambda a: tuple(torch.geqrf(a[..., :3])),
    "geqrf wide": lambda a: tuple(torch.geqrf(a[..., :2, :])),
    "geqrf triangle": lambda a: tuple(torch.geqrf(a.triu())),
    "householder_product": lambda a: torch.linalg.householder_product(a[..., :3].tril(-1), a[..., 0, :2]),
    "householder_product zero": lambda a: torch.linalg.householder_product(a[..., :3].tril(-1), a[..., 0, :2] * 0),
    "ormqr": lambda a: torch.ormqr(a[..., :3], a[..., 0, :2], a[..., :2]),
    "ormqr adjoint right": lambda a: torch.ormqr(a[..., :3], a[..., 0, :3], a[..., :2, :], left=False, transpose=True),
    "lstsq": lambda a: tuple(torch.linalg.lstsq(a[..., :2], a[..., 1:])),
    "lstsq wide": lambda a: tuple(torch.linalg.lstsq(a[..., :2, :], a[..., :2, 1:])),
    "lstsq vector": lambda a: tuple(torch.linalg.lstsq(a[..., :2], a[..., 3])),
    "lstsq gels": lambda a: tuple(torch.linalg.lstsq(a[..., :2], a[..., 1:], driver="gels")),
    "lstsq gelsd": lambda a: tuple(torch.linalg.lstsq(a[..., :2], a[..., 1:], driver="gelsd")),
    "lstsq rank": lambda a: tuple(torch.linalg.lstsq(a[..., :1].expand_as(a), a[..., 1:])),
    "matrix_exp": torch.linalg.matrix_exp,
    "matrix_exp small": lambda a: torch.linalg.matrix_exp(a * 1e-3),
    "matrix_exp large": lambda a: torch.linalg.matrix_exp(a * -6).abs().log(),
    "cross": lambda a: torch.linalg.cross(a[..., :3], a[..., :1, :3]),
    "logdet": lambda a: torch.logdet(a.real @ a.real.mT),
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", MATRIX)
def test_matrices(name: str, dtype: torch.dtype) -> None:
    """One matrix, a batch, a batch by columns."""
    one, batch = numbers(4, 4, dtype=dtype) + 3 * torch.eye(4), numbers(2, 3, 4, 4, dtype=dtype) + 3 * torch.eye(4)
    for values in (one, batch.to(dtype), batch.to(dtype).mT.contiguous().mT):
        check(MATRIX[name], values.to(dtype), loose=20)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "name",
    [
        "inv",
        "cholesky",
        "qr",
        "det",
        "slogdet",
        "solve own",
        "triangular",
        "lu",
        "svdvals",
        "pinv",
        "cross",
        "ormqr",
        "householder_product",
        "lstsq",
        "matrix_exp",
    ],
)
def test_matrix_gradients(name: str, dtype: torch.dtype) -> None:
    """torch's formulas over these operators."""
    values = numbers(4, 4, dtype=dtype) + 3 * torch.eye(4, dtype=dtype)
    check(gradients(MATRIX[name]), values, loose=100)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_singular_values(dtype: torch.dtype) -> None:
    """Vectors have a free phase: their product is compared."""
    for shape, full in (((5, 3), False), ((3, 5), True), ((2, 4, 4), True), ((6, 2), True), ((0, 3), True)):
        a = numbers(*shape, dtype=dtype)
        u, s, vh = torch.linalg.svd(a.to(DEVICE), full_matrices=full)
        k = s.shape[-1]
        again = (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]
        torch.testing.assert_close(again.cpu(), a, rtol=1e-4, atol=1e-5)
        eye = torch.eye(u.shape[-1], dtype=dtype).expand(*u.shape[:-2], -1, -1)
        torch.testing.assert_close((u.mH @ u).cpu(), eye, rtol=1e-4, atol=1e-5)
    h = numbers(4, 4, dtype=dtype)
    h = h + h.mH
    values, vectors = torch.linalg.eigh(h.to(DEVICE))
    torch.testing.assert_close(((vectors * values) @ vectors.mH).cpu(), h, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (2, 0, 0), (0, 3, 3), (2, 3, 4), (4, 3)])
def test_lu_of_any_shape(shape: tuple[int, ...]) -> None:
    check(lambda a: torch.linalg.lu(a), numbers(*shape))
    check(lambda a: torch.lu_unpack(*torch.linalg.lu_factor(a)), numbers(*shape))


@pytest.mark.parametrize("pivot", [0, -1, 4])
def test_pivots_out_of_range_touch_nothing(pivot: int, device: str) -> None:
    """The fixture looks whether the device still works."""
    factors, pivots = torch.linalg.lu_factor(numbers(3, 3).to(device))
    pivots[1] = pivot
    with pytest.raises(RuntimeError):
        torch.lu_unpack(factors, pivots)
        torch.npu.synchronize()


@pytest.mark.parametrize("scale", [1e-160, 1e-30, 1e30, 1e150])
def test_decompositions_of_any_size_of_number(scale: float) -> None:
    matrix = numbers(5, 4) * scale
    for name, action in {
        "svdvals": torch.linalg.svdvals,
        "qr": lambda a: torch.linalg.qr(a)[1].abs(),
        "eigvalsh": lambda a: torch.linalg.eigvalsh(a[:4] + a[:4].mT),
    }.items():
        got, want = action(matrix.to(DEVICE)).cpu() / scale, action(matrix) / scale
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")


def test_refusals() -> None:
    """Singular and indefinite matrices are named as LAPACK names them."""
    singular = torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])
    indefinite = torch.diag(torch.tensor([2.0, 1, -1, 3]))
    for action in (torch.linalg.inv, lambda a: torch.linalg.solve(a, a), torch.linalg.cholesky, torch.linalg.lu_factor):
        for matrix in (singular, torch.zeros(3, 3), torch.zeros(2, 3), indefinite):
            check(action, matrix)
    check(lambda a: torch.linalg.cholesky_ex(a).info, indefinite.expand(2, 4, 4))
    check(lambda a: torch.linalg.inv_ex(a).info, torch.stack([singular, torch.eye(3)]))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.5, float("inf")])
def test_distances(p: float) -> None:
    """cdist with batches that broadcast, pdist, their gradients, renorm."""
    a, b = numbers(2, 5, 3), numbers(4, 3)
    check(lambda x, y: torch.cdist(x, y, p), a, b)
    check(torch.nn.functional.pdist, a[0], loose=1)
    check(lambda x: torch.nn.functional.pdist(x, p), a[1])
    if p > 0:
        check(gradients(lambda x, y: torch.cdist(x, y, p)), a, b)
        check(gradients(lambda x: torch.nn.functional.pdist(x, p)), a[1])
        for dtype in (*NUMBERS, torch.float16):
            check(lambda x: torch.renorm(x, p, 1, 1.5), numbers(3, 4, 2, dtype=dtype))
            check(lambda x: x.clone().renorm_(p, 0, 1.5), numbers(3, 4, dtype=dtype))
    check(lambda x, y: torch.cdist(x[:, :0], y, p), a, b)
    check(lambda x, y: torch.cdist(x, y[:, :2], p), a, b)


SPECIAL: dict[str, Action] = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "polygamma1": lambda x: torch.polygamma(1, x.abs() + 0.1),
    "polygamma3": lambda x: torch.polygamma(3, x),
    "zeta": lambda x: torch.special.zeta(x.abs() + 1.5, x.abs() + 0.3),
    "i0": torch.special.i0,
    "i0e": torch.special.i0e,
    "i1": torch.special.i1,
    "i1e": torch.special.i1e,
    "entr": torch.special.entr,
    "log_ndtr": torch.special.log_ndtr,
    "mvlgamma": lambda x: torch.mvlgamma(x.abs() + 3, 2),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special(name: str, dtype: torch.dtype) -> None:
    """Over the line, beside zeros and poles, large and infinite."""
    line = torch.cat([torch.linspace(-30, 30, 241, dtype=torch.float64) + 0.013, numbers(50) * 2, 1 + numbers(20) * 1e-3, 2 + numbers(20) * 1e-3])
    if isinstance(outcome(SPECIAL[name], "cpu", line.to(dtype)), str):
        return  # not on the CPU in this type
    check(SPECIAL[name], line.to(dtype), loose=3)
    if dtype.is_floating_point and name not in ("polygamma1", "polygamma3", "zeta", "mvlgamma"):
        check(SPECIAL[name], torch.tensor([0.0, -0.0, 1, 2, float("inf"), -float("inf"), float("nan"), 0.5, 100], dtype=dtype))


TWO: dict[str, Action] = {
    "copysign": torch.copysign,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "hypot": torch.hypot,
    "heaviside": torch.heaviside,
    "lcm": torch.lcm,
    "nextafter": torch.nextafter,
    "xlog1py": torch.special.xlog1py,
    "lshift": lambda x, y: x << y,
    "rshift": lambda x, y: x >> y,
    "ilshift": lambda x, y: x.clone().__ilshift__(1),
    "irshift": lambda x, y: x.clone().__irshift__(2),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int32])
@pytest.mark.parametrize("name", TWO)
def test_two_operands(name: str, dtype: torch.dtype) -> None:
    """Edge values in all pairs, broadcast. What the CPU lacks for a type is refused in any words."""
    edges = [0.0, -0.0, 1, -1, 2.5, float("inf"), -float("inf"), float("nan")] if dtype.is_floating_point else [0, 1, 2, 3, 12, 18]
    x = torch.tensor(edges, dtype=dtype)
    if not isinstance(outcome(TWO[name], "cpu", x, x), str):
        check(TWO[name], x[:, None], x)
        check(TWO[name], x, x[1])


def test_picks() -> None:
    """mode, logcumsumexp, index_reduce, unique along a dimension, histogram, shuffled channels, one number among sorted ones."""
    x = torch.randint(0, 4, (5, 9), generator=torch.Generator().manual_seed(1))
    for dim in (0, 1):
        check(lambda v, dim=dim: torch.mode(v, dim)[0], x)
        check(lambda v, dim=dim: v.gather(dim, torch.mode(v, dim, True)[1]), x)
        check(lambda v, dim=dim: torch.logcumsumexp(v, dim), numbers(6, 17) * 3)
        check(lambda v, dim=dim: torch.unique(v % 2, dim=dim, return_inverse=True, return_counts=True), x[:, :3])
        check(lambda v, dim=dim: torch.unique_consecutive(v, dim=dim, return_inverse=True, return_counts=True), x.sort(dim)[0] // 2)
        for reduce in ("prod", "mean", "amax", "amin"):
            index = torch.tensor([0, 3, 0, 2])
            check(lambda v, i, s, dim=dim, r=reduce: v.index_reduce(dim, i, s, r), numbers(5, 5), index, numbers(5, 5).narrow(dim, 0, 4))
    values = numbers(200)
    check(lambda v: torch.histogram(v, 7), values)
    check(lambda v: torch.histogram(v, 5, range=(-1.0, 1.5), density=True), values)
    check(lambda v, w: torch.histogram(v, torch.tensor([-1.0, 0, 0.5, 3], dtype=v.dtype, device=v.device), weight=w), values, values.abs())
    check(lambda v: torch.channel_shuffle(v, 3), numbers(2, 6, 4))
    check(lambda v: torch.searchsorted(v, 0.3), values.sort()[0])


def test_matrix_exp_of_each_matrix_alone() -> None:
    """Neighbours in a batch change nothing: small beside huge, NaN and Inf."""
    inf, nan = float("inf"), float("nan")
    items = [torch.eye(2) * 20, torch.eye(2), torch.tensor([[0, 1e20], [0, 0]]), torch.full((2, 2), nan), torch.eye(2) * -20, torch.full((2, 2), inf)]
    batch = torch.stack(items).double()
    ours = torch.linalg.matrix_exp(batch.to(DEVICE)).cpu()
    for index in (0, 1, 2, 4):
        torch.testing.assert_close(ours[index], torch.linalg.matrix_exp(batch[index]), rtol=1e-12, atol=1e-15)
    assert ours[3].isnan().all()


def test_numbers_that_are_not_finite() -> None:
    """NaN fills an inverse; the determinant's sign is that of infinite pivots too; an infinite matrix isn't called singular."""
    matrix = numbers(3, 3)
    matrix[0, 0] = float("nan")
    assert torch.linalg.inv(matrix.to(DEVICE)).isnan().all()
    for size in (float("inf"), -float("inf")):
        diagonal = torch.diag(torch.tensor([size, 2.0], dtype=torch.float64))
        for ours, theirs in zip(torch.linalg.slogdet(diagonal.to(DEVICE)), torch.linalg.slogdet(diagonal), strict=True):
            assert torch.equal(ours.cpu(), theirs)
    assert torch.linalg.inv_ex(torch.full((2, 2), float("inf"), device=DEVICE)).info.item() == 0


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "pinv"])
def test_matrices_with_nan_are_refused(name: str) -> None:
    """As on the CPU: of a batch, too; and the device stays usable."""
    matrix = numbers(3, 4, 4)
    matrix[1, 2, 2] = float("nan")
    for case in (matrix, matrix[1]):
        ours, theirs = (outcome(getattr(torch.linalg, name), device, case) for device in (DEVICE, "cpu"))
        assert isinstance(ours, str) and isinstance(theirs, str), (ours, theirs)
        assert ours.split("(error code")[0] == theirs.split("(error code")[0]
        with pytest.raises(torch.linalg.LinAlgError):
            getattr(torch.linalg, name)(case.to(DEVICE))
    torch.testing.assert_close(torch.linalg.svdvals(matrix[0].to(DEVICE)).cpu(), torch.linalg.svdvals(matrix[0]))
