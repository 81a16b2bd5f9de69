"""A folder of src/ compiles with the include paths of its wall only: a header from beyond it isn't found."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path

import pytest
from walls_support import ROOT, run

# folder -> the folders of src/ that it may include. The build's own list is in CMakeLists.txt; this one is the design.
MAY_SEE = {
    "base": {"base"},
    "tensor": {"base", "tensor"},
    "kernels": {"base", "kernels"},
    "runtime": {"base", "tensor", "kernels", "runtime"},
    "aclnn": {"base", "tensor", "kernels", "runtime", "aclnn"},
    "op_plugin": {"op_plugin"},
}


def headers_of(folder: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT / "src")) for path in (ROOT / "src" / folder).rglob("*.h"))


@pytest.fixture(scope="session")
def commands(c_build: Path) -> dict[str, list[str]]:
    """Folder of src/ -> compiler and include flags that the build really uses for it."""
    ninja = next(line.split("=", 1)[1] for line in (c_build / "CMakeCache.txt").read_text().splitlines() if line.startswith("CMAKE_MAKE_PROGRAM"))
    found: dict[str, list[str]] = {}
    for entry in json.loads(run(ninja, "-C", c_build, "-t", "compdb").stdout):
        match = re.match(rf"{re.escape(str(ROOT))}/src/(\w+)/.*\.c$", entry["file"])
        if match and match.group(1) not in found:
            words = shlex.split(entry["command"])
            includes = [word for word in words if word.startswith("-I")]
            pairs = [pair for pair in itertools.pairwise(words) if pair[0] in ("-isystem", "-include")]
            found[match.group(1)] = [words[0], *includes, *(word for pair in pairs for word in pair)]
    return found


def compiles(command: list[str], header: str, build: Path) -> bool:
    source = f'#include "{header}"\n'
    words = [word if not word.startswith("-I") or word[2] == "/" else f"-I{build / word[2:]}" for word in command]
    return run(*words, "-std=gnu11", "-D_GNU_SOURCE", "-DISA=baseline", "-fsyntax-only", "-x", "c", "-", text=source).returncode == 0


@pytest.mark.parametrize("folder", MAY_SEE)
def test_a_wrong_include_does_not_compile(folder: str, commands: dict[str, list[str]], c_build: Path) -> None:
    assert folder in commands, f"the build compiles nothing of src/{folder}"
    for other in MAY_SEE:
        for header in headers_of(other)[:3]:
            if other not in MAY_SEE[folder]:
                assert not compiles(commands[folder], header, c_build), f"src/{folder} can include {header}"


@pytest.mark.parametrize("folder", MAY_SEE)
def test_an_allowed_include_compiles(folder: str, commands: dict[str, list[str]], c_build: Path) -> None:
    for other in sorted(MAY_SEE[folder]):
        header = headers_of(other)[0]
        assert compiles(commands[folder], header, c_build), f"src/{folder} cannot include {header}"


@pytest.mark.parametrize("folder", MAY_SEE)
@pytest.mark.parametrize("header", ["torch/csrc/stable/c/shim.h", "torch/library.h", "ATen/ATen.h", "Python.h"])
def test_no_folder_of_src_sees_torch_or_python(folder: str, header: str, commands: dict[str, list[str]], c_build: Path) -> None:
    assert not compiles(commands[folder], header, c_build)


def test_nobody_climbs_over_a_wall() -> None:
    """Relative includes would reach around the include paths."""
    sources = [path for pattern in ("*.[ch]", "*.cpp", "*.def") for base in ("src", "bridge") for path in (ROOT / base).rglob(pattern)]
    climbing = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in sources
        for line in path.read_text().splitlines()
        if re.match(r'\s*#\s*include\s+"\.\./', line)
    ]
    assert climbing == []


def test_only_the_environment_table_reads_the_environment() -> None:
    """src/ but op_plugin's callers: getenv stands in src/base/env.c alone."""
    readers = [str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.c") if re.search(r"\b(secure_)?getenv\s*\(", path.read_text())]
    assert readers == ["src/base/env.c"]


def test_no_torch_name_in_the_core() -> None:
    """The word may stand in comments; code of src/ names nothing of torch."""
    names = re.compile(r"\b(at::|c10::|torch::|aoti_torch_|THP|Py[A-Z]\w+\()")
    offenders = [str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.[ch]") if names.search(path.read_text())]
    assert offenders == []
