"""Every implemented aclnn operator through the C API against torch's CPU: shapes, element types, a strided layout, memory around it."""

from __future__ import annotations

import pytest
import torch
from cases import FLOAT8, ROWS
from library import implemented
from runner import check_row, takes_retyped
from tables import load

load()


def test_every_operator_has_a_row() -> None:
    names = set(implemented())
    assert not names - set(ROWS), "no row in tests/capi"
    assert not set(ROWS) - names, "rows of operators that aren't implemented"


@pytest.mark.parametrize("operator", [name for name in implemented() if name in ROWS])
def test_operator(operator: str) -> None:
    report = check_row(ROWS[operator])
    if report.faults:
        pytest.fail("\n".join(report.faults[:12]), pytrace=False)
    assert report.compared >= 4


# What moves, converts or compares elements, as far as torch's CPU does it with float8; everything else refuses these types.
TAKES_FLOAT8 = set(
    """Cast InplaceCopy ForeachCopy InplaceFillScalar InplaceFillTensor InplaceFillDiagonal InplaceZero ForeachZeroInplace InplaceOne Eye
    Cat Stack Flip Roll Repeat RepeatInterleave RepeatInterleaveWithDim RepeatInterleaveInt RepeatInterleaveIntWithDim ConstantPadNd
    StridedSlice Index IndexPutImpl IndexSelect GatherV3 Embedding MaskedSelect SWhere Abs Mul InplaceMul Equal EqTensor EqScalar NeTensor
    NeScalar IsFinite Any All""".split()
)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_float8_is_moved_and_not_computed_with(dtype: torch.dtype) -> None:
    takers = {name for name, row in ROWS.items() if takes_retyped(row, row.needs[0], dtype)}
    assert takers - TAKES_FLOAT8 == set(), "took float8"
    assert TAKES_FLOAT8 - takers == set(), "refused float8"
