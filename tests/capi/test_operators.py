"""Every implemented aclnn operator through the C API against torch's CPU: shapes, element types, a strided layout, memory around it."""

from __future__ import annotations

import pytest
from cases import ROWS
from library import implemented
from runner import check_row
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
