"""Writes C functions that call phase 1 of each implemented operator with arguments taken from a fuzzer's bytes (tests/fuzz/fuzz_plans.c)."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from make_interface import implemented_operators, read_prototypes, write_if_changed


def argument(text: str) -> tuple[str, str]:
    """C type and the word after `take_` that makes a value of it: "const aclTensor *self" -> ("aclTensor *", "aclTensor")."""
    match = re.fullmatch(r"\s*(?:const\s+)?(\w+)\s*(\*?)\s*\w+\s*", text)
    if not match:
        raise SystemExit(f"no C argument: {text!r}")
    kind, star = match.groups()
    return (f"const {kind} *" if kind == "char" else f"{kind} *") if star else f"{kind} ", kind


def call(operator: str, arguments: str) -> str:
    """The function of one operator. Locals keep the order in which bytes are taken."""
    kinds = [argument(text) for text in arguments.split(",")]
    lines = [f"static int call_{operator}(struct bytes *b, uint64_t *size, aclOpExecutor **executor)", "{"]
    for i, (declared, word) in enumerate(kinds):
        cast = "(char *)(uintptr_t)" if word == "char" else ""
        declared = "char *" if word == "char" else declared
        lines.append(f"    {declared}const a{i} = {cast}take_{word}(b);" if "*" in declared else f"    const {declared}a{i} = take_{word}(b);")
    values = "".join(f"a{i}, " for i in range(len(kinds)))
    lines += [f"    return aclnn{operator}GetWorkspaceSize({values}size, executor);", "}"]
    return "\n".join(lines)


def main() -> None:
    """Entry point of the build step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    operators = implemented_operators(options.source, options.cc)
    prototypes = read_prototypes(options.source / "src/aclnn/prototypes.tsv")
    parts = ["/* Made by tools/make_fuzz_calls.py. */", *(call(name, prototypes[name][0]) for name in operators)]
    rows = "".join(f'    {{"{name}", call_{name}, aclnn{name}}},\n' for name in operators)
    parts.append(f"static const struct operator_calls operator_calls[] = {{\n{rows}}};\n")
    write_if_changed(options.output, "\n\n".join(parts))


if __name__ == "__main__":
    main()
