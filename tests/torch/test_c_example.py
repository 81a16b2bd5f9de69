"""The C program of the README: its own build line must work, and no Python takes part in running it."""

import re
import shlex
import shutil
import subprocess

import pytest
from support import ROOT


def test_the_readme_line_builds_and_runs_it(tmp_path):
    if not shutil.which("cc") or not (ROOT / "build/c/lib64/libascendcl.so").exists():
        pytest.skip("needs cc and build/c")
    line = re.search(r"^cc examples/c/add\.c .*$", (ROOT / "README.md").read_text(), re.MULTILINE).group(0)
    build = shlex.split(line.split("&&")[0].replace("$PWD", str(ROOT)))
    build[build.index("-o") + 1] = str(tmp_path / "add")
    subprocess.run(build, cwd=ROOT, check=True)
    process = subprocess.run([tmp_path / "add"], capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 0, process.stderr
    lines = process.stdout.splitlines()
    assert lines[:6] == [f"{n} + 2 * {10 * n} = {21 * n}" for n in range(1, 7)]
    assert lines[6].startswith("shapes that don't fit give code 161") and "Add" in "".join(lines[7:])
