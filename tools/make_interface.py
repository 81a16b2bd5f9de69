"""Writes what the build derives from the operator tables: aclnnop headers, the core's name prefixes, the soname jumps.

Inputs: src/aclnn/operators.def (implemented operators), src/aclnn/prototypes.tsv (C arguments of each, from CANN's public
operator documents), src/aclnn/headers.tsv (names of CANN's headers that don't follow from the operators'),
src/sonames/<library>.txt (one exported symbol a line; '@operators' stands for all operator pairs), src/runtime/unsupported.txt.
"""

from __future__ import annotations

import argparse
import csv
import re
import subprocess
from pathlib import Path

import make_unsupported

HEADER = """/* {title}: made by the build from src/aclnn/prototypes.tsv. Phase 1 (GetWorkspaceSize) checks and plans, phase 2 launches on
 * a stream. Returns 0, or 161001 (a parameter is null), 161002 (invalid), 561xxx (internal); aclGetRecentErrMsg has the words.
 * Serves: {serves} */
"""
PHASE_2 = "void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream"


def implemented_operators(source: Path, compiler: str) -> list[str]:
    """Names from operators.def, in order, without the aclnn prefix."""
    text = subprocess.run(
        [compiler, "-E", "-P", "-x", "c", "-DOPERATOR(name)=@name@", f"-I{source / 'src'}", str(source / "src/aclnn/operators.def")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = re.findall(r"@\s*(\w+)\s*@", text)
    duplicates = {name for name in names if names.count(name) > 1}
    if duplicates:
        raise SystemExit(f"operators.def lists twice: {sorted(duplicates)}")
    return names


def read_prototypes(path: Path) -> dict[str, tuple[str, str]]:
    """Operator name without prefix -> (arguments of phase 1, ATen schemas served)."""
    with path.open(newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {row[0].removeprefix("aclnn"): (row[1], row[2]) for row in rows if row and row[0].startswith("aclnn")}


def header_name(operator: str) -> str:
    """aclnnInplaceAdd and aclnnAdd share aclnn_add.h, as upstream's do."""
    base = operator.removeprefix("Inplace")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", base).lower()
    return f"aclnn_{snake}.h"


def read_headers(path: Path, prototypes: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    """CANN's header name -> the operators that it declares and whose names give another header."""
    rows = (line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#"))
    declared = {header: operators.split() for header, operators in rows}
    unknown = {name for names in declared.values() for name in names if not {name, f"Inplace{name}"} & prototypes.keys()}
    if unknown:
        raise SystemExit(f"headers.tsv names operators that aren't in prototypes.tsv: {sorted(unknown)}")
    return declared


def includes(operators: list[str], files: dict[str, list[str]], itself: str = "") -> list[str]:
    """Lines that include the operators' own headers, those that are here, each once."""
    names = dict.fromkeys(map(header_name, operators))
    return [f'#include "aclnnop/{name}"' for name in names if name in files and name != itself]


def write_if_changed(path: Path, text: str) -> None:
    """Keeps the time stamp of unchanged files, so that nothing compiles again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def single_functions(source: Path) -> list[str]:
    """Functions without phases, without prefix: aclnn names that opapi.txt lists beside the operators."""
    names = re.findall(r"^aclnn(\w+)", (source / "src/sonames/opapi.txt").read_text(), re.MULTILINE)
    return [str(name) for name in names]


def write_headers(
    operators: list[str], singles: list[str], prototypes: dict[str, tuple[str, str]], declared: dict[str, list[str]], folder: Path
) -> None:
    """One header for each operator, its in-place twin and the single functions whose names begin with its; CANN's other names include these."""
    files: dict[str, list[str]] = {}
    for operator in operators:
        if operator not in prototypes:
            raise SystemExit(f"operators.def: aclnn{operator} isn't in prototypes.tsv")
        files.setdefault(header_name(operator), []).append(operator)
    collections = {name: lines for name, members in declared.items() if name not in files and (lines := includes(members, files))}
    for stale in folder.glob("aclnn_*.h"):
        if stale.name not in files and stale.name not in collections:
            stale.unlink()
    for name, lines in collections.items():
        write_if_changed(
            folder / name,
            "\n".join(["/* CANN's name for the headers of these operators; made by the build from src/aclnn/headers.tsv. */", *lines, ""]),
        )
    for name, members in files.items():
        guard = "ACLNNOP_" + name.upper().replace(".", "_")
        serves = "; ".join(prototypes[member][1] for member in members) or "-"
        lines = [HEADER.format(title=name, serves=serves), f"#ifndef {guard}\n#define {guard}\n"]
        lines.append('#include "aclnn/aclnn_base.h"\n\n#ifdef __cplusplus\nextern "C" {\n#endif\n')
        for member in members:
            arguments = prototypes[member][0]
            lines.append(
                f"aclnnStatus aclnn{member}GetWorkspaceSize({arguments},\n"
                f"    uint64_t *workspaceSize, aclOpExecutor **executor);\n"
                f"aclnnStatus aclnn{member}({PHASE_2});\n"
            )
            lines += [f"aclnnStatus aclnn{single}({prototypes[single][0]});\n" for single in singles if single.startswith(member)]
        lines.append("#ifdef __cplusplus\n}\n#endif\n")
        lines += includes([*(f"{member}s" for member in members), *declared.get(name, [])], files, name)
        write_if_changed(folder / name, "\n".join([*lines, "\n#endif\n"]))
    umbrella = "/* Every operator header, for the core's own sources and for tests. */\n"
    umbrella += "".join(f'#include "aclnnop/{name}"\n' for name in sorted(files))
    write_if_changed(folder / "all_operators.h", umbrella)


def write_all_prototypes(prototypes: dict[str, tuple[str, str]], path: Path) -> None:
    """Every documented operator pair, implemented or not: what the adapter compiles against."""
    lines = ["/* Every aclnn prototype of prototypes.tsv, made by the build. */", "#ifndef ALL_PROTOTYPES_H", "#define ALL_PROTOTYPES_H"]
    lines += ['#include "aclnn/aclnn_base.h"', "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for name, (arguments, _) in prototypes.items():
        if arguments in ("-", "void"):  # unknown, or a single function without phases
            continue
        lines.append(f"aclnnStatus aclnn{name}GetWorkspaceSize({arguments}, uint64_t *workspaceSize, aclOpExecutor **executor);")
        lines.append(f"aclnnStatus aclnn{name}({PHASE_2});")
    lines += ["#ifdef __cplusplus", "}", "#endif", "#endif"]
    write_if_changed(path, "\n".join(lines) + "\n")


def libraries(source: Path) -> list[str]:
    """The sonames, without "lib" and ".so"."""
    return sorted(path.stem for path in (source / "src/sonames").glob("*.txt"))


def library_symbols(source: Path, library: str, operators: list[str]) -> list[str]:
    """The exported names of one soname."""
    symbols: list[str] = []
    for line in (source / "src/sonames" / f"{library}.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line == "@operators":
            symbols += [f"aclnn{name}{suffix}" for name in operators for suffix in ("GetWorkspaceSize", "")]
        elif line:
            symbols.append(line)
    return symbols


def jumps(symbols: list[str], architecture_comment: str) -> str:
    """Assembler that exports each name as a jump to the core's prefixed one."""
    lines = [f"/* {architecture_comment} */", ".text"]
    for symbol in symbols:
        lines += [
            f".globl {symbol}",
            f".type {symbol}, %function",
            ".p2align 4",
            f"{symbol}:",
            "#if defined(__x86_64__)",
            f"    jmp *core_{symbol}@GOTPCREL(%rip)",
            "#else",
            f"    adrp x16, :got:core_{symbol}",
            f"    ldr x16, [x16, :got_lo12:core_{symbol}]",
            "    br x16",
            "#endif",
            f".size {symbol}, . - {symbol}",
        ]
    lines.append('.section .note.GNU-stack,"",%progbits')
    return "\n".join(lines) + "\n"


def main() -> None:
    """Entry point of the build step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()

    operators = implemented_operators(options.source, options.cc)
    prototypes = read_prototypes(options.source / "src/aclnn/prototypes.tsv")
    declared = read_headers(options.source / "src/aclnn/headers.tsv", prototypes)
    write_headers(operators, single_functions(options.source), prototypes, declared, options.output / "include/aclnnop")

    write_all_prototypes(prototypes, options.output / "include/all_prototypes.h")

    everything: list[str] = []
    for library in libraries(options.source):
        symbols = library_symbols(options.source, library, operators)
        everything += symbols
        write_if_changed(options.output / f"sonames/{library}.S", jumps(symbols, f"lib{library}.so: jumps into libnpu_core.so"))
        exported = "".join(f"    {symbol};\n" for symbol in symbols)
        names = f"  global:\n{exported}" if symbols else ""
        write_if_changed(options.output / f"sonames/{library}.map", f"{{\n{names}  local: *;\n}};\n")
    write_if_changed(options.output / "unsupported.c", make_unsupported.make(options.source))
    unique = sorted(set(everything))
    defines = "".join(f"#define {symbol} core_{symbol}\n" for symbol in unique)
    write_if_changed(options.output / "public_names.h", "/* Public names carry a prefix inside the core. */\n" + defines)
    core = "".join(f"    core_{symbol};\n" for symbol in unique)
    write_if_changed(options.output / "sonames/npu_core.map", f"{{\n  global:\n{core}    npu_core_*;\n  local: *;\n}};\n")


if __name__ == "__main__":
    main()
