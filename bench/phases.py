"""What one small operator costs the host through the C API, step by step, without Python or torch: handles, phase 1, phase 2.

    python bench/phases.py [--json FILE]

Builds bench/phases.c against the libraries in build/c. The first row is the least that moving phase 1 to another thread would
add (TASK_QUEUE_ENABLE=2): the tensors' descriptions would have to be made once more over there.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from _measure import finish

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/c"


def main() -> None:
    """Command line: builds, runs, prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", help="write the result to this file too")
    arguments = parser.parse_args()
    include = [f"-I{ROOT / 'include'}", f"-I{BUILD / 'include'}"]
    libraries = [f"-L{BUILD / 'lib64'}", "-lascendcl", "-lnnopbase", "-lopapi", f"-Wl,-rpath,{BUILD / 'lib64'}"]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "phases"
        subprocess.run(["cc", "-O2", str(ROOT / "bench/phases.c"), *include, *libraries, "-o", str(program)], check=True)
        printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows = [line.split(";") for line in printed.splitlines()]
    print("aclnnAdd, 4 floats, through the C API: nanoseconds per operator")
    for name, best, median in rows:
        print(f"  {name:<42} best {float(best):6.1f}   median {float(median):6.1f}")
    finish({"rows": [{"step": name, "best": float(best), "median": float(median)} for name, best, median in rows]}, arguments.json)


if __name__ == "__main__":
    main()
