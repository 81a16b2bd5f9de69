"""torch's OpInfos for every overload of ops_families.txt, with the CPU fallback switched off: values, out=, in place, strides, gradients, errors.

Child processes judge (opinfo_judge.py); the tests read their verdicts. A pair that fails stands in opinfo_exceptions.txt with its reason, and
one that stands there fails: neither may surprise.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import opinfo_judge
import opinfo_samples
import pytest
import torch
from opinfo_judge import HERE

pytestmark = pytest.mark.npu_only
RATE = 0.99
LISTED = opinfo_judge.family_list()


class Allowed(NamedTuple):
    """A line of opinfo_exceptions.txt."""

    kind: str
    name: str
    dtypes: set[str]
    when: str
    reason: str


def exceptions() -> list[Allowed]:
    """kind | operator | dtypes, or * | always, full (only with every sample) or a torch version | reason."""
    lines = (line.strip() for line in (HERE / "opinfo_exceptions.txt").read_text().splitlines())
    rows = [[part.strip() for part in line.split("|", 4)] for line in lines if line and not line.startswith("#")]
    found = [Allowed(kind, name, set(dtypes.split()), when, reason) for kind, name, dtypes, when, reason in rows]
    version = ".".join(torch.__version__.split(".")[:2])
    return [row for row in found if not re.fullmatch(r"\d+\.\d+", row.when) or row.when == version]


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Every sample, or a few of each pair?"""
    return not request.config.getoption("-m")


@pytest.fixture(scope="session")
def verdicts(request: pytest.FixtureRequest, everything: bool) -> dict[str, Any]:
    """What the children found on the operators whose tests are chosen, or on all."""
    chosen = [item.callspec.params["name"] for item in request.session.items if item.name.startswith("test_operator[")]
    whole = any(item.name in ("test_rates", "test_list_is_reached") for item in request.session.items)
    return opinfo_judge.judge_all(list(opinfo_judge.all_operators()) if whole else chosen, everything)


def surprises(name: str, pairs: list[tuple[str, str, str, str]], full: bool) -> list[str]:
    """Pairs that fail without an exception, and exceptions that pass."""
    rows = [row for row in exceptions() if row.name == name]
    found = []
    for kind, _, dtype, words in pairs:
        row = next((row for row in rows if row.kind == kind and (dtype in row.dtypes or "*" in row.dtypes)), None)
        if words and row is None:
            found.append(f"{kind} {dtype}: {words}")
        elif not words and row is not None and dtype in row.dtypes and (row.when != "full" or full):
            found.append(f"{kind} {dtype} passes, but stands in opinfo_exceptions.txt")
    return found


@pytest.mark.parametrize("name", list(opinfo_judge.all_operators()))
def test_operator(name: str, verdicts: dict[str, Any], everything: bool) -> None:
    """One OpInfo: all its pairs."""
    verdict = verdicts[name]
    if "crash" not in verdict and verdict["unlisted"]:
        pytest.skip(f"calls what isn't on the list: {', '.join(verdict['unlisted'])[:200]}")
    found = surprises(name, opinfo_judge.pairs_of(name, verdict), everything)
    assert not found, "\n".join(found)


def test_overloads_without_opinfo(verdicts: dict[str, Any], everything: bool) -> None:
    """Overloads that are reached from C++ only, with arguments of their namesakes or made by hand."""
    found = []
    pairs = opinfo_judge.sibling_pairs(verdicts)
    for name in sorted({name for _, name, _, _ in pairs}):
        found += [f"{name} {words}" for words in surprises(name, [pair for pair in pairs if pair[1] == name], everything)]
    assert not found, "\n".join(found)


def test_list_is_reached(verdicts: dict[str, Any]) -> None:
    """Every overload of the list is called by an OpInfo, by a namesake's arguments or by a sample of opinfo_samples.py."""
    reached = {name for verdict in verdicts.values() for name in verdict.get("reached", ())}
    reached |= {name.removeprefix("aten::") for _, name, _, _ in opinfo_judge.sibling_pairs(verdicts)}
    missing = sorted(LISTED - reached - set(opinfo_samples.ELSEWHERE))
    assert not missing, f"{len(missing)} overloads: {' '.join(missing)}"


def test_rates(verdicts: dict[str, Any]) -> None:
    """At least 99 of 100 pairs pass, values and gradients counted apart; exceptions count as failures. Errors are all named."""
    totals = opinfo_judge.totals(verdicts)
    print("; ".join(f"{kind}: {passed} of {total} ({100 * passed / total:.2f} %)" for kind, (passed, total) in totals.items()))
    low = {kind: counts for kind, counts in totals.items() if kind in ("forward", "gradient") and counts[0] < RATE * counts[1]}
    assert not low, str(totals)


def test_exceptions_name_pairs() -> None:
    """Every exception has a reason and names an operator that is judged."""
    known = {*opinfo_judge.all_operators(), *(f"aten::{name}" for name in LISTED)}
    for row in exceptions():
        assert row.kind in ("forward", "gradient", "errors") and row.name in known and len(row.reason) > 10, row
