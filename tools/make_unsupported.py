"""Writes the bodies of the public functions that only refuse, from src/runtime/unsupported.txt and the prototypes in include/.

One table instead of a hundred copies: the text names the function and gives the reason of its section.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDERS = ("acl", "hccl", "profiling", "runtime")
PROTOTYPE = re.compile(r"^([A-Za-z][\w \*]*?[ \*])(\w+)\(([^;{}()]*(?:\([^)]*\)[^;{}()]*)*)\);", re.MULTILINE)
# What a refused function answers, by its return type; pointers give NULL.
ANSWERS = {
    "aclError": "ERROR_RT_FEATURE_UNSUPPORTED",
    "rtError_t": "ERROR_RT_FEATURE_UNSUPPORTED",
    "int32_t": "ERROR_RT_FEATURE_UNSUPPORTED",
    "HcclResult": "HCCL_E_NOT_SUPPORT",
    "aclDataType": "ACL_DT_UNDEFINED",
    "size_t": "0",
    "uint32_t": "0",
    "void": "",
}


def read_prototypes(include: Path) -> dict[str, tuple[str, str, str]]:
    """Function name -> (header, return type, arguments) of every public header written by hand."""
    found: dict[str, tuple[str, str, str]] = {}
    for folder in FOLDERS:
        for header in sorted((include / folder).rglob("*.h")):
            text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
            for match in PROTOTYPE.finditer(text):
                result, name, arguments = match.groups()
                if not result.startswith("typedef"):
                    found[name] = (str(header.relative_to(include)), result.strip(), " ".join(arguments.split()))
    return found


def read_table(path: Path) -> list[tuple[str, str]]:
    """(function, reason) in the order of the table."""
    rows: list[tuple[str, str]] = []
    reason = ""
    for line in path.read_text().splitlines():
        line = line.split("#", 1)[0].strip()
        if line.startswith("["):
            reason = line.strip("[]")
        elif line:
            rows.append((line, reason))
    return rows


def bodies(rows: list[tuple[str, str]], prototypes: dict[str, tuple[str, str, str]]) -> str:
    """The C file."""
    headers = sorted({prototypes[name][0] for name, _ in rows})
    lines = ["/* Public functions that refuse: made by the build from src/runtime/unsupported.txt. */"]
    lines += [f'#include "{header}"' for header in headers]
    lines += ['#include "base/error.h"', ""]
    for name, reason in rows:
        _, result, arguments = prototypes[name]
        answer = "NULL" if result.endswith("*") else ANSWERS[result]
        lines += [
            f"{result} {name}({arguments})",
            "{",
            f'    error_set(ERROR_RT_FEATURE_UNSUPPORTED, "{name}", "not available on the software NPU: {reason}");',
            *([f"    return {answer};"] if answer else []),
            "}",
        ]
    return "\n".join(lines) + "\n"


def make(source: Path) -> str:
    """The C file for a source tree."""
    rows = read_table(source / "src/runtime/unsupported.txt")
    prototypes = read_prototypes(source / "include")
    unknown = [name for name, _ in rows if name not in prototypes]
    if unknown:
        raise SystemExit(f"unsupported.txt: no header declares {', '.join(unknown)}")
    return bodies(rows, prototypes)
