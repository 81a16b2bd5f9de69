"""What the libraries export and ask for: the sonames exactly CANN's names, the adapter nothing of torch and only CANN's public functions."""

from __future__ import annotations

import ctypes
import hashlib
import re
import sys
from pathlib import Path

import pytest
from walls_support import ROOT, run

sys.path.insert(0, str(ROOT / "tools"))
import make_interface

LIBRARIES = make_interface.libraries(ROOT)
TORCH_SYMBOL = re.compile(r"^(_ZN?K?(2at|3c10|5torch|4c10d)|aoti_torch|torch_|THP|Py[A-Z_])")
CANN_SYMBOL = re.compile(r"^(acl[a-z]*[A-Z]|Hccl|ge[A-Z]|rt[A-Z])")


def symbols(library: Path, *which: str) -> set[str]:
    listed = run("nm", "-D", "--format=posix", *which, library)
    assert listed.returncode == 0, listed.stderr
    return {line.split()[0].split("@")[0] for line in listed.stdout.splitlines()}


def needed(library: Path) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-dW", library).stdout))


def public_names() -> set[str]:
    names = {line for line in Path(__file__).with_name("cann_public_names.txt").read_text().splitlines() if not line.startswith("#")}
    return names | {f"{name}GetWorkspaceSize" for name in names if name.startswith("aclnn")}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_soname_exports_exactly_its_list(name: str, c_build: Path) -> None:
    expected: set[str] = set()
    for line in (ROOT / f"src/sonames/{name}.txt").read_text().splitlines():
        line = line.split("#", 1)[0].strip()
        if line == "@operators":
            for operator in make_interface.implemented_operators(ROOT, "cc"):
                expected |= {f"aclnn{operator}", f"aclnn{operator}GetWorkspaceSize"}
        elif line:
            expected.add(line)
    assert symbols(c_build / f"lib64/lib{name}.so", "--defined-only") == expected


def test_the_libraries_are_there_under_cann_s_names(c_build: Path) -> None:
    for name in LIBRARIES:
        assert re.search(r"\(SONAME\).*\[(.+)\]", run("readelf", "-dW", c_build / f"lib64/lib{name}.so").stdout).group(1) == f"lib{name}.so"
    assert {"libprofapi.so", "libruntime.so", "libc_sec.so"} <= needed(c_build / "lib64/libascendcl.so")  # looked up through it
    for name in ("opapi", "opapi_math", "opapi_nn", "opapi_cv", "opapi_transformer"):  # the parts of newer CANN: -lopapi_math -lopapi_nn
        assert "libnnopbase.so" in needed(c_build / f"lib64/lib{name}.so")


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_soname_asks_for_nothing_but_the_core(name: str, c_build: Path) -> None:
    foreign = {symbol for symbol in symbols(c_build / f"lib64/lib{name}.so", "--undefined-only") if not symbol.startswith(("core_", "_", "__"))}
    assert foreign == set()


def test_the_core_needs_the_c_library_only(c_build: Path) -> None:
    assert needed(c_build / "lib64/libnpu_core.so") <= {
        "libc.so.6",
        "libm.so.6",
        "libpthread.so.0",
        "libdl.so.2",
        "librt.so.1",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
    }


def test_the_core_exports_no_plain_public_name(c_build: Path) -> None:
    """They would shadow the sonames': two libraries that define aclrtMalloc in one process."""
    assert {name for name in symbols(c_build / "lib64/libnpu_core.so", "--defined-only") if CANN_SYMBOL.match(name)} == set()


def test_the_plug_in_holds_no_torch_symbol(package: Path) -> None:
    library = package / "lib/libop_plugin.so"
    assert {name for name in symbols(library) if TORCH_SYMBOL.match(name)} == set()
    assert {name for name in needed(library) if "torch" in name or "c10" in name or "python" in name} == set()


def test_the_adapter_links_to_no_cann_function(package: Path) -> None:
    """It reaches CANN through the table of pointers alone."""
    (bridge,) = package.glob("_bridge*.so")
    for library in (package / "lib/libop_plugin.so", bridge):
        assert {name for name in symbols(library, "--undefined-only") if CANN_SYMBOL.match(name)} == set()
        assert {name for name in needed(library) if "ascend" in name or "opapi" in name or "nnopbase" in name} == set()


def test_the_table_holds_public_functions_only(package: Path) -> None:
    plugin = ctypes.CDLL(str(package / "lib/libop_plugin.so"))
    plugin.cann_function_name.restype = ctypes.c_char_p
    plugin.cann_function_name.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_bool)]
    found, names = ctypes.c_bool(), set()
    while (name := plugin.cann_function_name(len(names), ctypes.byref(found))) is not None:
        names.add(name.decode())
    assert len(names) > 40
    assert names - public_names() == set()


def test_all_torch_versions_use_the_same_plug_in(packages: list[Path]) -> None:
    hashes = {path.parent.parent.name: hashlib.sha256((path / "lib/libop_plugin.so").read_bytes()).hexdigest() for path in packages}
    if len(hashes) < 2:
        pytest.skip(f"only {', '.join(hashes)} is built; TORCH=all builds both")
    assert len(set(hashes.values())) == 1, hashes
