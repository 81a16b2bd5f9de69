"""Our public headers against those that the wheel itself ships: every number, size and function type that both declare."""

import re
import subprocess
from pathlib import Path

import pytest
from support import ROOT

OURS = ROOT / "include"
HEADERS = ["acl/acl.h", "acl/acl_op_compiler.h", "acl/acl_prof.h", "acl/acl_dump.h", "acl/acl_tdt.h", "hccl/hccl.h", "profiling/aprof_pub.h"]
SKIPPED = {"ACL_APP_LOG"}  # a macro with arguments


def without_comments(text):
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def text_of(folders, names):
    found = [folder / name for folder in folders for name in names if (folder / name).exists()]
    extra = [path for folder in folders for path in sorted((folder / "acl").glob("*.h"))] + [
        path for folder in folders for path in sorted((folder / "hccl").glob("*_types.h"))
    ]
    return without_comments("\n".join(path.read_text() for path in dict.fromkeys(found + extra)))


def names_in(text):
    """(constants, struct types, functions) that a text declares."""
    enumerators = [name for body in re.findall(r"enum[^{;]*\{([^}]*)\}", text) for name in re.findall(r"\b([A-Z][A-Z0-9_]+\w*)\s*(?=[,=\n]|$)", body)]
    macros = re.findall(r"^#define[ \t]+(\w+)[ \t]+[(0-9]", text, re.MULTILINE)
    types = re.findall(r"^\}\s*(\w+);", text, re.MULTILINE)
    functions = re.findall(r"^[A-Za-z][\w \*]*?[ \*](\w+)\([^;{}]*\);", text, re.MULTILINE)
    return set(enumerators) | set(macros), set(types), set(functions)


def answers(folders, constants, types, functions, tmp_path, name):
    """What a C++ program compiled against these headers says of the names."""
    lines = [f'#include "{header}"' for header in HEADERS] + ["#include <cstdio>", "#include <typeinfo>", "int main() {"]
    lines += [f'std::printf("{item} %lld\\n", (long long)({item}));' for item in constants]
    lines += [f'std::printf("{item} %zu\\n", sizeof({item}));' for item in types]
    lines += [f'std::printf("{item} %s\\n", typeid(decltype(&{item})).name());' for item in functions]
    source = tmp_path / f"{name}.cpp"
    source.write_text("\n".join([*lines, "}"]))
    flags = [f"-I{folder}" for folder in folders]
    subprocess.run(["c++", "-std=c++17", "-w", *flags, str(source), "-o", str(tmp_path / name)], check=True)
    return dict(line.split(" ", 1) for line in subprocess.run([tmp_path / name], capture_output=True, text=True, check=True).stdout.splitlines())


@pytest.fixture
def theirs(torch_npu):
    include = Path(torch_npu.__file__).parent / "include"
    return [include, include / "third_party/acl/inc", include / "third_party/hccl/inc"]


def test_numbers_sizes_and_functions(theirs, tmp_path):
    their_text = text_of(theirs, HEADERS)
    known = set(re.findall(r"\w+", their_text))
    constants, types, functions = (
        sorted(name for name in names if name in known and name not in SKIPPED) for names in names_in(text_of([OURS], HEADERS))
    )
    assert len(constants) > 250 and len(types) > 40 and len(functions) > 200
    ours = answers([OURS], constants, types, functions, tmp_path, "ours")
    wheels = answers(theirs, constants, types, functions, tmp_path, "theirs")
    assert ours == wheels
