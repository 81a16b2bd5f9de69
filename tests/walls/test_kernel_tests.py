"""Each kernel has a test in tests/kernels, where every instruction set runs it: operators reach one instruction set only."""

from __future__ import annotations

import re

import pytest
from walls_support import ROOT

KERNELS = ROOT / "src/kernels"
TESTS = [path.read_text() for path in sorted((ROOT / "tests/kernels").glob("test_*.c"))]
FAMILIES = re.findall(r"^FAMILY\((\w+)\)", (KERNELS / "families.def").read_text(), re.MULTILINE)


def entries(family: str) -> list[str]:
    """The function pointers of struct <family>_kernels and of the structs in it: those that the family's header declares."""
    header = re.sub(r"/\*.*?\*/", "", (KERNELS / f"{family}.h").read_text(), flags=re.DOTALL)
    names: list[str] = []
    for body in re.findall(r"struct \w+_kernels \{(.*?)\n\}", header, re.DOTALL):
        names += re.findall(r"\(\*(\w+)[^)]*\)\(", body)
        for declared in re.findall(r"\w+_fn (\w[^;]*);", body):
            names += [re.split(r"\W", name.strip())[0] for name in declared.split(",")]
    return names


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kernel_of_a_family_is_tested(family: str) -> None:
    texts = [text for text in TESTS if f"->{family}" in text]
    assert texts, f"no test in tests/kernels takes the kernels of {family}"
    names = entries(family)
    assert names, f"kernels/{family}.h declares no kernel"
    called = "".join(texts)
    missing = [name for name in names if not re.search(rf"->{name}\b|\.{name}\s*[\[(]", called)]
    assert not missing, f"no test in tests/kernels calls {', '.join(missing)} of {family}"
