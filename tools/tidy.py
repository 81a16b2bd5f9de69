"""Runs clang-tidy, two files at a time, over the C sources of the core and the plug-in.

Not over src/kernels, whose macro bodies it is slow on and silent about, nor over bridge/, where torch's headers take it minutes a file; both
are compiled with warnings, and the kernels tested under sanitizers."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = tuple(f"{ROOT}/src/{folder}/" for folder in ("base", "runtime", "tensor", "aclnn", "op_plugin"))


def check(program: str, build: Path, source: str) -> tuple[str, int, str]:
    """Result of clang-tidy for one file: its name, exit code and words."""
    done = subprocess.run([program, "-p", str(build), "--quiet", "--extra-arg=-Wno-unknown-warning-option", source], capture_output=True, text=True)
    return source, done.returncode, done.stdout + (done.stderr if done.returncode and not done.stdout else "")


def main() -> None:
    """Exits with 1 when any file has a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang-tidy", required=True)
    parser.add_argument("--build", required=True, type=Path, help="folder with compile_commands.json")
    arguments = parser.parse_args()
    commands = json.loads((arguments.build / "compile_commands.json").read_text())
    sources = sorted({command["file"] for command in commands if command["file"].startswith(FOLDERS)})
    failed = 0
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        for source, code, words in threads.map(lambda name: check(arguments.clang_tidy, arguments.build, name), sources):
            if code:
                failed += 1
                print(f"{os.path.relpath(source, ROOT)}:\n{words}")
    print(f"clang-tidy: {len(sources)} files, {failed} with findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
