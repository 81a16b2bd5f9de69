"""Makes the virtual environments that the project is built and tested in, once per user, shared by all clones.

`environment.py 2.14.1` prints the path of that environment's Python, after making the environment if need be. Kinds: a torch version
(tools/pins/torch-<version>.txt), `build` (CMake, Ninja, formatters; no torch) or `wheel` (the published torch-npu wheel with its torch).
An environment lies under <user cache>/softnpu/<kind>-<key of its pins and Python>. Invariants: the project itself is never installed into
one; a folder without the file `complete` is unfinished and gets made again; only the holder of `<folder>.lock` writes to it. Needs the
standard library only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).resolve().parent / "pins"
DEFAULT_TORCH = "2.14.1"
ALL_TORCH = ("2.14.1", "2.13.0")
OTHERS = ("build", "wheel")


def cache_folder() -> Path:
    """Where environments are kept: $XDG_CACHE_HOME/softnpu, else ~/.cache/softnpu."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "softnpu"


def torch_versions(choice: str) -> list[str]:
    """The pinned torch versions that `choice` (a version or `all`) stands for."""
    if choice == "all":
        return list(ALL_TORCH)
    if choice not in ALL_TORCH:
        raise SystemExit(f"TORCH={choice}: pinned are {', '.join(ALL_TORCH)}, and `all` for each of them")
    return [choice]


def name_of(kind: str) -> str:
    """What an environment's requirements file and folder are called."""
    return kind if kind in OTHERS else f"torch-{kind}"


def pin_file(kind: str) -> Path:
    """The requirements file of an environment."""
    return PINS / f"{name_of(kind)}.txt"


def pins_of(path: Path) -> list[str]:
    """Requirement lines of a file and of the files that it names with -r, without comments."""
    pins: list[str] = []
    for line in path.read_text().splitlines():
        line = line.split("#", 1)[0].strip()
        if included := re.fullmatch(r"-r\s+(\S+)", line):
            pins += pins_of(path.parent / included.group(1))
        elif line:
            pins.append(line)
    return pins


def folder_of(kind: str) -> Path:
    """The folder of an environment; its name changes with the pins and with the Python that makes it."""
    facts = [*pins_of(pin_file(kind)), platform.python_version(), platform.machine(), sys.base_prefix]
    key = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:10]
    return cache_folder() / f"{name_of(kind)}-{key}"


def fill(folder: Path, kind: str) -> None:
    """Makes the virtual environment and installs the pins; the caller holds the lock."""
    if folder.exists():
        shutil.rmtree(folder)
    print(f"making the {kind} environment in {folder} (once; later runs and other clones share it)", file=sys.stderr, flush=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, stdout=sys.stderr)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"python3 -m venv failed ({error.returncode}); on Debian and Ubuntu install python3-venv") from None
    install = [str(folder / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(pin_file(kind))]
    if subprocess.run(install, stdout=sys.stderr).returncode != 0:
        raise SystemExit(f"pip could not install {pin_file(kind)}; its words are above. The next run starts this environment anew")
    (folder / "complete").touch()


def ensure(kind: str) -> Path:
    """Path of the environment's Python; makes the environment when it is missing or unfinished."""
    if not pin_file(kind).is_file():
        raise SystemExit(f"no environment {kind!r}: there are {', '.join(OTHERS + ALL_TORCH)}")
    folder = folder_of(kind)
    if not (folder / "complete").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "complete").exists():
                fill(folder, kind)
    return folder / "bin/python"


def main() -> None:
    """Command line: prints one path of a Python for each environment asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kind", nargs="?", default=DEFAULT_TORCH, help="a pinned torch version, `all`, `build` or `wheel`")
    parser.add_argument("--where", action="store_true", help="print the path only, make nothing")
    arguments = parser.parse_args()
    kinds = [arguments.kind] if arguments.kind in OTHERS else torch_versions(arguments.kind)
    for kind in kinds:
        print(folder_of(kind) / "bin/python" if arguments.where else ensure(kind))


if __name__ == "__main__":
    main()
