"""Writes docs/aclnn.md: which of CANN's documented operators are here, and with which element types; --check only compares.

The types come from asking: phase 1 of the built libraries, with the arguments of the table in tests/capi. Run it with a Python that has torch.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tests/capi"))
INTRODUCTION = """# aclnn operators

Made by `make docs` from `src/aclnn/prototypes.tsv` (all operators that CANN documents, by family), `src/aclnn/operators.def` (those that are here)
and the answers of phase 1. An operator that isn't listed as here is absent: its symbols don't exist. Every one that is here is compared with torch's
CPU in each of its element types (`tests/capi`).

"Types" are those of the operand that gives the operation its type; indices, masks and saved statistics have their own. `f` floating point, `bf16`
bfloat16, `i` integers, `u8` unsigned bytes, `b8` bool, `c` complex, with their bits; *all* are these: {all}.
The 8-bit floats `f8_e4m3fn`, `f8_e5m2` and `f8_e8m0` are only stored: operators that move, convert or compare elements take them
(`stored_roles` in `src/aclnn/plan.c`), all others refuse them.
"""
# Documented, but not among the pairs that the torch-npu wheel looks up: the page counts the wheel's.
EXTRA = frozenset(
    "FusedInferAttentionScore KvQuantSparseFlashAttentionV2 LSTMCell MoeDistributeCombineSetup MoeDistributeCombineTeardown "
    "MoeDistributeDispatchSetup MoeDistributeDispatchTeardown NpuFormatCastCalculateSizeAndFormat ReselectStaticKernel "
    "ReselectStaticKernelWithPath SetPytorchRandom".split()
)


def short_names() -> dict[Any, str]:
    """torch dtype -> the name used in messages and on the page."""
    import torch

    return {
        torch.float64: "f64",
        torch.float32: "f32",
        torch.float16: "f16",
        torch.bfloat16: "bf16",
        torch.int64: "i64",
        torch.int32: "i32",
        torch.int16: "i16",
        torch.int8: "i8",
        torch.uint8: "u8",
        torch.bool: "b8",
        torch.complex64: "c64",
        torch.complex128: "c128",
    }


def group_words(types: list[str]) -> str:
    """A list of types, groups by one name."""
    groups = {"*all*": list(short_names().values()), "floats": ["f64", "f32", "f16", "bf16"], "integers": ["i64", "i32", "i16", "i8", "u8"]}
    words, left = [], list(types)
    for name, members in (*groups.items(), ("complex", ["c64", "c128"])):
        if all(member in left for member in members):
            words.append(name)
            left = [each for each in left if each not in members]
    return ", ".join(words + left)


def family_table(names: list[str], types: dict[str, list[str]]) -> str:
    """Operators with equal types share a line."""
    lines: dict[str, list[str]] = {}
    for name in names:
        lines.setdefault(group_words(types[name]), []).append(name)
    rows = [f"| {', '.join(f'`{name}`' for name in members)} | {words} |" for words, members in lines.items()]
    return "\n".join(["| operators | types |", "| --- | --- |", *rows])


def document() -> str:
    """The whole page."""
    from cases import ROWS
    from library import implemented, prototypes
    from runner import accepted_types
    from tables import load

    load()
    short = short_names()
    here = implemented()
    types = {name: [short[dtype] for dtype in accepted_types(ROWS[name])] for name in here}
    families: dict[str, list[str]] = {}
    for name, (_, family) in prototypes().items():
        families.setdefault(family, []).append(name)
    counted = [name for name in here if name not in EXTRA]
    total = len([name for name in prototypes() if name not in EXTRA])
    parts = [INTRODUCTION.replace("{all}", ", ".join(short.values()))]
    parts.append(f"\n**{len(counted)} of {total}** pairs that the torch-npu wheel looks up are here")
    parts.append(f" (and {len(here) - len(counted)} that it doesn't).\n" if len(here) > len(counted) else ".\n")
    parts.append("\n| family | here | documented |\n| --- | --- | --- |\n")
    parts += [f"| {family} | {len(set(names) & set(here))} | {len(names)} |\n" for family, names in sorted(families.items())]
    for family, names in sorted(families.items()):
        present, absent = [n for n in names if n in here], [n for n in names if n not in here]
        parts.append(f"\n## {family}: {len(present)} of {len(names)}\n")
        if present:
            parts.append("\n" + family_table(present, types) + "\n")
        if absent:
            parts.append(f"\nAbsent: {', '.join(absent)}.\n")
    return "".join(parts)


def main() -> int:
    """Entry point."""
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when the page isn't what the libraries answer")
    options = parser.parse_args()
    page, text = SOURCE / "docs/aclnn.md", document()
    if not options.check:
        page.write_text(text)
    elif not page.exists() or page.read_text() != text:
        print(f"{page} is out of date: run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
