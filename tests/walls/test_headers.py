"""The public headers: each compiles alone, and numbers and sizes are those that programs compiled for CANN carry in them.

The complete comparison with the headers of the published torch-npu wheel is in tests/wheel/test_headers.py.
"""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from walls_support import ROOT, run

sys.path.insert(0, str(ROOT / "tools"))
import make_interface
import make_unsupported

# From CANN's public documents of the interface.
VALUES = {
    "ACL_FLOAT": 0,
    "ACL_FLOAT16": 1,
    "ACL_INT8": 2,
    "ACL_INT32": 3,
    "ACL_UINT8": 4,
    "ACL_INT16": 6,
    "ACL_INT64": 9,
    "ACL_DOUBLE": 11,
    "ACL_BOOL": 12,
    "ACL_COMPLEX64": 16,
    "ACL_BF16": 27,
    "ACL_FORMAT_NCHW": 0,
    "ACL_FORMAT_ND": 2,
    "ACL_FORMAT_FRACTAL_NZ": 29,
    "ACL_FORMAT_NCDHW": 30,
    "ACL_FORMAT_NCL": 47,
    "ACL_MEMCPY_HOST_TO_DEVICE": 1,
    "ACL_MEMCPY_DEVICE_TO_DEVICE": 3,
    "ACL_EVENT_STATUS_COMPLETE": 0,
    "ACL_EVENT_RECORDED_STATUS_COMPLETE": 1,
    "ACL_MODEL_RI_CAPTURE_STATUS_NONE": 0,
    "ACL_MODEL_RI_CAPTURE_MODE_RELAXED": 2,
    "ACL_OP_JIT_COMPILE": 10,
    "ACL_ERROR_REPEAT_INITIALIZE": 100002,
    "ACL_ERROR_RT_CONTEXT_NULL": 107002,
    "ACL_ERROR_RT_FEATURE_NOT_SUPPORT": 207000,
    "ACL_ERROR_RT_MEMORY_ALLOCATION": 207001,
    "HCCL_DATA_TYPE_BFP16": 11,
    "HCCL_REDUCE_MIN": 3,
    "HCCL_E_OOM": 24,
}
SIZES = {
    "aclCANNPackageVersion": 128 + 4 * 64 + 128,
    "aclrtUuid": 16,
    "aclrtIpcEventHandle": 64,
    "HcclRootInfo": 4108,
    "aclrtMemUsageInfo": 32 + 2 * 8 + 8 * 8,
    "aclrtPtrAttributes": 28,
    "aclDataType": 4,
    "struct MsprofApi": 40,
}
LANGUAGES = {"C11": ("c", "-std=c11"), "C++17": ("c++", "-std=c++17")}


def public_headers(c_build: Path) -> list[tuple[Path, str]]:
    """(folder, name) of every header that is shipped."""
    return [(base, str(path.relative_to(base))) for base in (ROOT / "include", c_build / "include") for path in sorted(base.rglob("*.h"))]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_header_compiles_alone(language: str, c_build: Path) -> None:
    kind, standard = LANGUAGES[language]
    headers = public_headers(c_build)
    assert len(headers) > 50

    def complaints(header: tuple[Path, str]) -> str:
        flags = [standard, "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-fsyntax-only", f"-I{ROOT / 'include'}", f"-I{c_build / 'include'}"]
        done = run("cc" if kind == "c" else "c++", *flags, "-x", kind, "-", text=f'#include "{header[1]}"\ntypedef int not_empty;\n')
        return f"{header[1]}: {done.stderr}" if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        assert [text for text in pool.map(complaints, headers) if text] == []


def test_cann_s_header_names_declare_their_operators(c_build: Path) -> None:
    """A program written for CANN's headers finds the operators where CANN declares them (src/aclnn/headers.tsv)."""
    here = set(make_interface.implemented_operators(ROOT, "cc"))
    prototypes = make_interface.read_prototypes(ROOT / "src/aclnn/prototypes.tsv")
    rows = make_interface.read_headers(ROOT / "src/aclnn/headers.tsv", prototypes)
    uses = {header: [name for base in bases for name in (base, f"Inplace{base}") if name in here] for header, bases in rows.items()}

    def complaints(header: str) -> str:
        calls = " ".join(f"p = (call)aclnn{name}GetWorkspaceSize; p = (call)aclnn{name};" for name in uses[header])
        text = f'#include "aclnnop/{header}"\ntypedef void (*call)(void); call use(void) {{ call p; {calls} return p; }}\n'
        flags = ["-std=c11", "-Werror=implicit-function-declaration", "-fsyntax-only", f"-I{ROOT / 'include'}", f"-I{c_build / 'include'}"]
        done = run("cc", *flags, "-x", "c", "-", text=text)
        return f"{header}: {done.stderr}" if done.returncode else ""

    with ThreadPoolExecutor(2) as pool:
        assert [text for text in pool.map(complaints, [header for header, names in uses.items() if names]) if text] == []


def test_values_and_sizes(c_build: Path) -> None:
    headers = ("acl/acl.h", "acl/acl_op_compiler.h", "hccl/hccl.h", "profiling/aprof_pub.h")
    lines = [f'#include "{name}"' for name in headers]
    lines += [f'_Static_assert((long long){name} == {value}, "{name}");' for name, value in VALUES.items()]
    lines += [f'_Static_assert(sizeof({name}) == {size}, "{name}");' for name, size in SIZES.items()]
    done = run("cc", "-std=c11", "-fsyntax-only", f"-I{ROOT / 'include'}", "-x", "c", "-", text="\n".join(lines))
    assert done.returncode == 0, done.stderr


def test_every_exported_name_is_declared(c_build: Path) -> None:
    """What leaves the libraries, a program can call without writing a prototype of its own."""
    text = "".join((base / name).read_text() for base, name in public_headers(c_build))
    declared = set(re.findall(r"\b(\w+)\(", text))
    listed = {
        line.strip()
        for path in (ROOT / "src/sonames").glob("*.txt")
        for line in path.read_text().splitlines()
        if line and not line.startswith(("#", "@"))
    }
    assert listed - declared == set()


def test_unsupported_functions_say_so() -> None:
    """None of them is also implemented, and each is exported."""
    refused = [name for name, _ in make_unsupported.read_table(ROOT / "src/runtime/unsupported.txt")]
    exported = "\n".join(path.read_text() for path in (ROOT / "src/sonames").glob("*.txt")).split()
    assert len(refused) == len(set(refused)) and set(refused) <= set(exported)
