"""What the Makefile's targets do. Standard library only: every tool comes from the environments of tools/environment.py.

Each step is printed with its command before it runs and with its time after it; the first that fails ends the run with its exit code.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import environment

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SANITIZED = {"address+undefined": BUILD / "c-address", "thread": BUILD / "c-thread"}
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=0:abort_on_error=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


def run(*command: str | Path, **variables: str) -> None:
    """Runs one step in the project's folder; a failure ends the whole run."""
    words = [str(word) for word in command]
    shown = [word.replace(f"{ROOT}/", "") for word in words]
    print(f"== {shlex.join(shown)}", flush=True)
    begun = time.monotonic()
    code = subprocess.run(words, cwd=ROOT, env={**os.environ, **variables}).returncode
    print(f"== {time.monotonic() - begun:.0f} s", flush=True)
    if code != 0:
        print(f"failed with exit code {code}: {shlex.join(shown)}", file=sys.stderr)
        raise SystemExit(code if code > 0 else 1)


def tool(name: str) -> str:
    """Path of a program of the build environment."""
    return str(environment.ensure("build").parent / name)


def lapack() -> dict[str, str]:
    """The variable that names the library for decompositions, of the build environment, to programs that aren't in a package."""
    folder = environment.ensure("build").parent.parent
    (library,) = folder.glob("lib/python3*/site-packages/scipy_openblas32/lib/libscipy_openblas.so")
    return {"NPU_LAPACK": str(library)}


def public_version(version: str) -> Path:
    """The build folder of a torch version."""
    return BUILD / f"torch-{version}"


def build_c(folder: Path, *options: str, targets: tuple[str, ...] = ()) -> None:
    """Configures (once) and builds the C project in a folder of its own."""
    if not (folder / "build.ninja").exists():
        run(tool("cmake"), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-B", folder, "-S", ROOT, *options)
    run(tool("ninja"), "-C", folder, "--quiet", *targets)


def c_tests(folder: str, pattern: str) -> list[str]:
    """Names of the C test programs in tests/<folder> whose file name matches; the build's targets are called so too."""
    return sorted(f"{path.parent.name}_{path.stem[5:]}" for path in ROOT.glob(f"tests/{folder}/test_*.c") if re.search(pattern, path.stem))


def test_arm() -> None:
    """Kernel tests of the 64-bit Arm build under qemu, where a cross compiler and qemu are installed."""
    missing = [program for program in ("aarch64-linux-gnu-gcc", "qemu-aarch64") if not shutil.which(program)]
    if missing:
        print(f"not run: kernels for 64-bit Arm ({' and '.join(missing)} missing; on Debian gcc-aarch64-linux-gnu and qemu-user)", flush=True)
        return
    names = c_tests("kernels", "")
    if not names:
        return
    folder = BUILD / "c-aarch64"
    build_c(folder, f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake/aarch64.cmake'}", targets=tuple(names))
    run(tool("ctest"), "--test-dir", folder, "--output-on-failure", "--no-tests=error", "-L", "^kernels$", "-LE", "slow")


def test_c(everything: bool) -> None:
    """C tests: all under address and undefined-behaviour sanitizers, those of streams, events and threads under the thread sanitizer."""
    slow = [] if everything else ["-LE", "slow"]
    names = c_tests("*", "stream|event|pool|thread")
    for sanitizer, folder in SANITIZED.items():
        only = tuple(names) if sanitizer == "thread" else ()
        build_c(folder, f"-DSOFTNPU_SANITIZE={sanitizer}", targets=only)
        chosen = ["-R", f"^({'|'.join(only)})$"] if only else []
        run(tool("ctest"), "--test-dir", folder, "--output-on-failure", "--no-tests=error", *chosen, *slow, **SANITIZER_OPTIONS, **lapack())
    test_arm()


def test_capi(version: str) -> None:
    """Every operator through the C API; torch's CPU is only the reference, so one version is enough."""
    build_c(BUILD / "c")
    run(environment.ensure(version), "-m", "pytest", "tests/capi")


def build_bridge(version: str) -> Path:
    """Builds C libraries, bridge and package folder for one torch version; returns the launcher that runs Python with it."""
    python = environment.ensure(version)
    run(python, "setup.py", "--quiet", "in_tree")
    return public_version(version) / "run"


def python_folders(everything: bool) -> list[str]:
    """Arguments of pytest that choose tests."""
    return [] if everything else ["-m", "not slow"]


def link(target: Path, name: Path) -> None:
    """Makes `name` a symbolic link to `target`, replacing one that is there."""
    name.parent.mkdir(parents=True, exist_ok=True)
    name.unlink(missing_ok=True)
    name.symlink_to(target)


def build_cann() -> Path:
    """Builds the C libraries, laid out as the package has them but without torch; returns the launcher that runs Python with the
    published torch-npu wheel on them."""
    folder = BUILD / "cann"
    home = folder / "torchtitan_npu/cann"
    build_c(BUILD / "c", "-DSOFTNPU_TESTS=OFF")
    for part in ("runtime", "compiler", "opp"):
        (home / part).mkdir(parents=True, exist_ok=True)
    if (home / "lib64").is_symlink():
        (home / "lib64").unlink()
    for path in (BUILD / "c/lib64").iterdir():
        link(path, home / "lib64" / path.name)
    for path in [*(ROOT / "include").iterdir(), BUILD / "c/include/aclnnop"]:
        link(path, home / "include" / path.name)
    link(ROOT / "python/softnpu_command.py", folder / "softnpu_command.py")
    link(Path(lapack()["NPU_LAPACK"]).parent.parent, folder / "scipy_openblas32")
    launcher = folder / "run"
    command = shlex.join([str(environment.ensure("wheel")), str(folder / "softnpu_command.py"), "run-cann"])
    launcher.write_text(
        f'#!/bin/sh\n# Python with the published torch-npu wheel on the C libraries of this tree: run script.py ...\nexec {command} "$@"\n'
    )
    launcher.chmod(0o755)
    return launcher


def command_build(arguments: argparse.Namespace) -> None:
    """Build everything; build/torch-<version>/run is then Python with the package."""
    for version in environment.torch_versions(arguments.torch):
        print(f"built: {build_bridge(version)}")


def command_train(arguments: argparse.Namespace) -> None:
    """Train the CIFAR-10 network on npu (ARGS go to examples/train_npu.py)."""
    for version in environment.torch_versions(arguments.torch):
        run(build_bridge(version), "examples/train_npu.py", *arguments.rest)


def command_run_cann(arguments: argparse.Namespace) -> None:
    """Run a script with torch-npu 2.13.0 as it is published, on our C libraries (ARGS="script.py ...")."""
    run(build_cann(), *arguments.rest)


def test(arguments: argparse.Namespace, everything: bool) -> None:
    """C tests, operators through the C API, for each torch version the Python tests, then those of the torch-npu wheel and of the walls."""
    test_c(everything)
    versions = environment.torch_versions(arguments.torch)
    test_capi(versions[0])
    for version in versions:
        run(build_bridge(version), "-m", "pytest", "tests/torch", *python_folders(everything), *arguments.rest)
    run(build_cann(), "-m", "pytest", "tests/wheel", *python_folders(everything))
    run(public_version(versions[0]) / "run", "-m", "pytest", "tests/walls", *python_folders(everything))


def command_test(arguments: argparse.Namespace) -> None:
    """What CI runs, in a fixed time."""
    test(arguments, everything=False)


def command_test_all(arguments: argparse.Namespace) -> None:
    """Every test, the slow ones too."""
    test(arguments, everything=True)


def run_scripts(arguments: argparse.Namespace, folder: str, pattern: str) -> None:
    """Runs each script of a folder with the package of each chosen torch version."""
    scripts = sorted((ROOT / folder).glob(pattern))
    if not scripts:
        raise SystemExit(f"{folder}/{pattern}: no script there")
    for version in environment.torch_versions(arguments.torch):
        launcher = build_bridge(version)
        for script in scripts:
            run(launcher, script, *arguments.rest)


def command_bench(arguments: argparse.Namespace) -> None:
    """Run the benchmarks of `softnpu bench` (ARGS: some of their names) and write docs/performance.md from their figures."""
    launcher = build_bridge(environment.torch_versions(arguments.torch)[0])
    run(launcher, "-m", "softnpu_command", "bench", "--output", "bench/results", *arguments.rest)
    run(sys.executable, "tools/make_performance_doc.py")


FUZZ_SECONDS = 600


def fuzz_c() -> None:
    """Random calls of every operator pair under the sanitizers: by libFuzzer where clang has it, else by the program's own loop."""
    if shutil.which("clang"):
        folder, corpus = BUILD / "c-fuzz", BUILD / "fuzz-corpus"
        if not (folder / "build.ninja").exists():
            os.environ["CC"] = "clang"
        build_c(folder, "-DSOFTNPU_SANITIZE=fuzz", targets=("fuzz_plans",))
        os.environ.pop("CC", None)
        corpus.mkdir(parents=True, exist_ok=True)
        words = [
            f"-max_total_time={FUZZ_SECONDS}",
            "-max_len=400",
            "-len_control=0",
            "-rss_limit_mb=8192",
            "-timeout=60",
            f"-artifact_prefix={BUILD}/",
        ]
        run(folder / "tests/fuzz_plans", *words, corpus, **SANITIZER_OPTIONS, **lapack())
        return
    print("no clang (on Debian: apt-get install clang): random bytes instead of libFuzzer's", flush=True)
    folder = SANITIZED["address+undefined"]
    build_c(folder, "-DSOFTNPU_SANITIZE=address+undefined", targets=("fuzz_plans",))
    run(folder / "tests/fuzz_plans", str(FUZZ_SECONDS), str(int(time.time())), **SANITIZER_OPTIONS, **lapack())


def command_fuzz(arguments: argparse.Namespace) -> None:
    """Run random calls of the C API for ten minutes, then random comparisons against the CPU (tests/fuzz)."""
    fuzz_c()
    run_scripts(arguments, "tests/fuzz", "fuzz_*.py")


def command_docs(arguments: argparse.Namespace) -> None:
    """Write the pages that are made from tables: docs/environment.md, docs/aclnn.md, docs/performance.md."""
    build_c(BUILD / "c")
    run(sys.executable, "tools/make_environment_doc.py")
    run(environment.ensure(environment.torch_versions(arguments.torch)[0]), "tools/make_aclnn_doc.py")
    run(sys.executable, "tools/make_performance_doc.py")


def command_soak(arguments: argparse.Namespace) -> None:
    """Run the long leak and endurance checks (tests/soak)."""
    run_scripts(arguments, "tests/soak", "soak_*.py")


def tracked(*patterns: str) -> list[str]:
    """Files under version control that match git patterns."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def command_format(arguments: argparse.Namespace) -> None:
    """Format C, C++ and Python sources in place."""
    run(tool("clang-format"), "-i", *tracked("*.c", "*.h", "*.cpp"))
    run(tool("ruff"), "format", "--quiet", *tracked("*.py"))
    run(tool("ruff"), "check", "--quiet", "--fix", ".")


def command_lint(arguments: argparse.Namespace) -> None:
    """clang-format, ruff, mypy; clang-tidy over src/ without kernels."""
    run(tool("clang-format"), "--dry-run", "--Werror", *tracked("*.c", "*.h", "*.cpp"))
    run(tool("ruff"), "check", ".")
    run(tool("ruff"), "format", "--check", "--quiet", *tracked("*.py"))
    run(tool("mypy"), "--cache-dir", "/dev/null")
    folder = BUILD / "c-lint"
    run(tool("cmake"), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-B", folder, "-S", ROOT)
    run(tool("ninja"), "-C", folder, "--quiet", "public_interface")
    run(sys.executable, "tools/tidy.py", "--clang-tidy", tool("clang-tidy"), "--build", folder)
    print("lint: 0 findings")


def command_clean(arguments: argparse.Namespace) -> None:
    """Remove build folders; environments stay in the user's cache."""
    for folder in [BUILD, *ROOT.glob("build-*"), ROOT / "dist"]:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Command line: one target."""
    commands = {name[8:].replace("_", "-"): function for name, function in globals().items() if name.startswith("command_")}
    lines = [f"  make {name:<9} {(function.__doc__ or '').splitlines()[0]}" for name, function in commands.items()]
    parser = argparse.ArgumentParser(
        prog="make",
        usage='make TARGET [TORCH=2.14.1|2.13.0|all] [ARGS="..."]',
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n".join(lines),
    )
    parser.add_argument("target", choices=commands, help=argparse.SUPPRESS)
    parser.add_argument("--torch", default=environment.DEFAULT_TORCH, help=argparse.SUPPRESS)
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:cut])
    arguments.rest = words[cut + 1 :]
    commands[arguments.target](arguments)


if __name__ == "__main__":
    main()
