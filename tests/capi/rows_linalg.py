"""Rows of matrices and points: src/aclnn/math/linalg.c, cross.c, distance.c, unique_rows.c."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from cases import COMPLEX, FLOATS, Case, Out, add, row, wide
from rows_reduce import refuse, room

Tensor = torch.Tensor
SINGLE_AND_WIDER = (torch.float32, torch.float64, *COMPLEX)
MATRICES = ((4, 4), (1, 1), (2, 5, 5), (3, 17, 17), (0, 0), (2, 0, 3, 3))
ANY_MATRICES = ((4, 4), (3, 7), (2, 6, 4), (33, 5), (0, 3), (1, 9))


def numbers(case: Case) -> None:
    """Decompositions are for these types."""
    if case.dtype not in SINGLE_AND_WIDER:
        raise NotImplementedError("f32, f64 and complex types")


def well_conditioned(case: Case) -> Tensor:
    """Far from singular."""
    x = case.values(low=-1, high=1)
    return x + 3 * torch.eye(x.shape[-1], dtype=x.dtype) if x.numel() else x


@row("Inverse", shapes=MATRICES)
def inverse(case: Case) -> Iterator[Any]:
    numbers(case)
    x = well_conditioned(case)
    yield [case.put(x), case.out(torch.linalg.inv(wide(x)).to(x.dtype), loose=4)]
    if x.numel():
        singular = torch.zeros_like(x)
        got = case.random(x.shape, x.dtype, lambda y: None if bool(torch.isnan(y.diagonal(0, -2, -1).real).all()) else f"{y} of nothing")
        yield [case.put(singular), got]


@row("LinalgCholesky", shapes=MATRICES)
def cholesky(case: Case) -> Iterator[Any]:
    numbers(case)
    x = well_conditioned(case)
    x = (wide(x) @ wide(x).mH).to(x.dtype)
    for upper in (False, True):
        mixed = x.triu() if upper else x.tril()  # the other half isn't read
        yield [case.put(mixed), upper, case.out(torch.linalg.cholesky(wide(x), upper=upper).to(x.dtype), loose=4)]
    if x.numel():
        n = x.shape[-1]
        bad = torch.eye(n, dtype=x.dtype).expand(x.shape).clone()
        bad[..., n - 1, n - 1] = -1
        yield [case.put(bad), False, case.random(x.shape, x.dtype, lambda y: None if bool(y[..., -1, -1].real.isnan().all()) else f"{y}")]


@row("LinalgQr", shapes=ANY_MATRICES)
def qr(case: Case) -> Iterator[Any]:
    numbers(case)
    x = case.values()
    for number, mode in enumerate(("reduced", "complete", "r")):
        q, r = torch.linalg.qr(wide(x), mode=mode)
        yield [case.put(x), number, case.out(q.to(x.dtype), loose=4), case.out(r.to(x.dtype), loose=4)]


def unitary(columns: Tensor) -> bool:
    """Whether the columns are orthonormal."""
    return torch.allclose(columns.mH @ columns, torch.eye(columns.shape[-1], dtype=columns.dtype), atol=1e-5)


def vectors_of(x: Tensor, left: Out, right: Out) -> Out:
    """The second of two outputs, whose check looks at both: u diag(s) v^H is x."""

    def check(v: Tensor) -> str | None:
        u, v = wide(left.view), wide(v)
        s = torch.linalg.svdvals(wide(x)).to(u.dtype)
        k = s.shape[-1]
        if not (unitary(u) and unitary(v)):
            return "vectors aren't orthonormal"
        again = u[..., :k] * s[..., None, :] @ v[..., :k].mH
        return None if torch.allclose(again, wide(x), atol=1e-4) else f"u s v^H is {again}, not {x}"

    right.check = check
    return right


@row("Svd", shapes=ANY_MATRICES)
def svd(case: Case) -> Iterator[Any]:
    numbers(case)
    x = case.values()
    for repeat in range(2 if x.numel() else 1):
        if repeat:
            x[..., -1, :] = x[..., 0, :]  # a rank less
        sigma = torch.linalg.svdvals(wide(x)).to(x.real.dtype)
        m, n = x.shape[-2:]
        for full in (False, True):
            left = case.random((*x.shape[:-2], m, m if full else min(m, n)), x.dtype, lambda u: None)
            right = case.random((*x.shape[:-2], n, n if full else min(m, n)), x.dtype, lambda v: None)
            yield [case.put(x), full, True, case.out(sigma, loose=10), left, vectors_of(x, left, right)]
        yield [case.put(x), False, False, case.out(sigma, loose=10), None, None]


@row("Slogdet", shapes=MATRICES)
def slogdet(case: Case) -> Iterator[Any]:
    numbers(case)
    for x in (well_conditioned(case), case.values(), torch.zeros(case.shape, dtype=case.dtype)):
        sign, size = torch.linalg.slogdet(wide(x))
        yield [case.put(x), case.out(sign.to(x.dtype), loose=4), case.out(size.to(x.real.dtype), loose=4)]


@row("TriangularSolve", shapes=((4, 3), (1, 1), (2, 5, 2), (17, 9), (0, 3), (3, 0)))
def triangular_solve(case: Case) -> Iterator[Any]:
    numbers(case)
    b = case.values()
    n = case.shape[-2]
    a = case.values((*case.shape[:-2], n, n), low=-1, high=1)
    if a.numel():
        a = a + 3 * torch.eye(n, dtype=a.dtype)
    for upper in (False, True):
        for transpose in (False, True):
            for unit in (False, True):
                part = (wide(a).triu() if upper else wide(a).tril()).clone()
                if unit and n:
                    part.diagonal(0, -2, -1).fill_(1)
                full = part.mT if transpose else part
                x = torch.linalg.solve(full, wide(b)) if b.numel() else wide(b)
                yield [case.put(b), case.put(a), upper, transpose, unit, case.out(x.to(b.dtype), loose=50), case.out(a, exact=True)]


@row("LinalgCross", shapes=((3,), (4, 3), (2, 3, 5), (300, 3), (0, 3)))
def cross(case: Case) -> Iterator[Any]:
    if case.dtype == torch.bool:
        raise NotImplementedError("numbers only")
    dim = case.shape.index(3)
    a, b = case.values(), case.values()
    expected = torch.linalg.cross(wide(a), wide(b), dim=dim).to(a.dtype)
    yield [case.put(a), case.put(b), dim, case.out(expected, loose=4)]
    yield [case.put(a), case.put(b), dim - len(case.shape), case.out(expected, loose=4)]


POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf"))


def floats(case: Case) -> None:
    """Distances are of real points."""
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")


@row("Cdist", shapes=((4, 3), (2, 5, 3), (2, 3, 7, 4), (40, 9), (0, 3), (5, 0)))
def cdist(case: Case) -> Iterator[Any]:
    floats(case)
    a, b = case.values(), case.values((*case.shape[:-2], 6, case.shape[-1]))
    for p in POWERS:
        expected = torch.cdist(wide(a), wide(b), p, compute_mode="donot_use_mm_for_euclid_dist")
        yield [case.put(a), case.put(b), p, 2, case.out(expected.to(a.dtype), loose=4)]


@row("CdistBackward", shapes=((4, 3), (2, 5, 3), (2, 3, 7, 4), (40, 9), (0, 3)))
def cdist_backward(case: Case) -> Iterator[Any]:
    floats(case)
    a, b = case.values(), case.values((*case.shape[:-2], 6, case.shape[-1]))
    if a.numel():
        b[..., 0, :] = a[..., 0, :]  # a distance of 0
    for p in POWERS:
        whole = torch.cdist(wide(a), wide(b), p, compute_mode="donot_use_mm_for_euclid_dist").to(a.dtype)
        grad = case.values(whole.shape, low=-1, high=1)
        exact = torch.cdist(wide(a), wide(b), p) if math.isinf(p) else wide(whole)  # the largest difference is found by its value
        expected = torch.ops.aten._cdist_backward(wide(grad), wide(a), wide(b), p, exact)
        yield [case.put(grad), case.put(a), case.put(b), case.put(whole), p, case.out(expected.to(a.dtype), loose=20)]


@row("Pdist", shapes=((4, 3), (1, 5), (30, 2), (0, 3), (5, 0)))
def pdist(case: Case) -> Iterator[Any]:
    floats(case)
    x = case.values()
    for p in POWERS:
        yield [case.put(x), p, case.out(torch.pdist(wide(x), p).to(x.dtype), loose=4)]


def renorm_row(name: str) -> None:
    def calls(case: Case) -> Iterator[Any]:
        if case.dtype not in (*FLOATS, *COMPLEX):
            raise NotImplementedError("floating and complex numbers")
        for p in (1.0, 2.0, 3.0, float("inf")):
            for dim in range(-1, len(case.shape) - 1):
                x = case.values()
                expected = torch.renorm(wide(x), p, dim, 2.5).to(x.dtype)
                if name == "Renorm":
                    yield [case.put(x), p, dim, 2.5, case.out(expected, loose=2)]
                else:
                    yield [case.inout(x, expected, loose=2), p, dim, 2.5]

    add(name, calls, shapes=((4, 3), (3, 5), (2, 3, 4), (33, 17)))


renorm_row("Renorm")
renorm_row("InplaceRenorm")


@row("UniqueDim", shapes=((7,), (9, 2), (2, 8, 3), (70, 2)))
def unique_dim(case: Case) -> Iterator[Any]:
    refuse(case, *COMPLEX)
    x = case.values(low=-1, high=1)
    if case.dtype in FLOATS:
        x = x.round() + 0  # no zeros of both signs
    for dim in range(len(case.shape)):
        found, inverse, number = torch.unique(x, True, True, True, dim)
        rows = case.shape[dim]
        yield [case.put(x), True, True, dim, room(case, found, x.numel()), case.out(inverse), room(case, number, rows)]
