"""Nothing lies about unused: every function of the plug-in has a caller, every function of CANN that it asks for is called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from walls_support import ROOT, run

PLUG_IN = ROOT / "src/op_plugin"


def text_of(*paths: Path) -> str:
    return "\n".join(path.read_text() for path in paths)


@pytest.fixture(scope="session")
def sources(packages: list[Path]) -> str:
    """Everything that may call the plug-in or CANN: hand-written, and generated for each torch that was built."""
    generated = [path for package in packages for path in sorted((package.parent.parent / "generated").glob("*.cpp"))]
    assert generated, "no generated wrappers: run `make build` first"
    written = [path for folder in (ROOT / "bridge", PLUG_IN) for path in sorted(folder.rglob("*")) if path.suffix in (".c", ".cpp", ".h")]
    return text_of(*written, *generated)


def rows(table: str, *macros: str) -> list[tuple[str, ...]]:
    """Arguments of each use of these macros in a .def file, its own helper macros expanded."""
    program = "".join(f"#define {macro}(...) @@ {macro}, __VA_ARGS__ @@\n" for macro in macros) + f'#include "op_plugin/{table}"\n'
    expanded = run("cc", "-E", "-P", "-I", ROOT / "src", "-x", "c", "-", text=program)
    assert expanded.returncode == 0, expanded.stderr
    found = re.findall(r"@@ (.*?)@@", expanded.stdout, re.DOTALL)
    assert len(found) > 20
    return [tuple(word.strip() for word in row.split(",")) for row in found]


def test_every_function_has_a_caller(sources: str) -> None:
    called = set(re.findall(r"\bnpu_(\w+)", sources))
    assert [row[1] for row in rows("functions.def", "FUNCTION") if row[1] not in called] == []


def test_every_function_of_cann_is_called(sources: str) -> None:
    called = set(re.findall(r"\bcann\.(\w+)", sources))
    assert [row[1] for row in rows("api.def", "RUNTIME", "HANDLE") if row[1] not in called] == []


def test_every_operator_belongs_to_a_function() -> None:
    used = {row[2] for row in rows("functions.def", "FUNCTION", "USES")}
    assert {row[1] for row in rows("operators.def", "ACLNN")} == used


def test_hand_written_functions_name_their_operators() -> None:
    """npu_available asks for what `USES` lists; it must list what the function calls."""
    operator_of = {row[1]: row[2] for row in rows("functions.def", "FUNCTION")}
    uses: dict[str, set[str]] = {}
    for row in rows("functions.def", "FUNCTION", "USES"):
        if row[0] == "USES":
            uses.setdefault(row[1], set()).add(row[2])
    bodies = re.findall(r"^int npu_(\w+)\((?:.|\n)*?\)\n\{\n((?:.|\n)*?)^\}", (PLUG_IN / "irregular.c").read_text(), re.MULTILINE)
    called = {
        name: {operator_of[other] for other in re.findall(r"\bnpu_(\w+)\(", body)} | set(re.findall(r"\bNEED\((\w+)\)", body))
        for name, body in bodies
    }
    assert called == uses
