"""The command `softnpu`: what is installed and in use, benchmarks, flags for C programs, and the surroundings for the published torch-npu wheel.

A module beside the package: `cann-env`, `run-cann` and `cann-flags` must neither import torch nor register a device.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

LIBRARIES = "-lascendcl -lacl_op_compiler -lnnopbase -lopapi"
OUR_VARIABLES = ("NPU_", "ASCEND_", "ACL_", "TORCH_NPU_", "TASK_QUEUE_ENABLE", "LOCAL_WORLD_SIZE")  # how most names in docs/environment.md start


def cann_folder() -> Path:
    """The package's C libraries and headers, laid out as CANN's folder."""
    return Path(__file__).absolute().parent / "torchtitan_npu/cann"


def cann_flags() -> str:
    """Compiler and linker flags for a C program that uses acl/ and aclnnop/ headers and these libraries."""
    folder = cann_folder()
    return f"-I{folder / 'include'} -L{folder / 'lib64'} -Wl,-rpath,{folder / 'lib64'} {LIBRARIES}"


def cann_environment() -> dict[str, str]:
    """Variables by which programs written for CANN, torch-npu among them, find these libraries."""
    folder = cann_folder()
    lib64 = str(folder / "lib64")
    others = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path and path != lib64]
    return {
        "ASCEND_HOME_PATH": str(folder),
        "ASCEND_OPP_PATH": str(folder / "opp"),
        "LD_LIBRARY_PATH": os.pathsep.join([lib64, *others]),
    }


def cuda_of_torch() -> str | None:
    """The CUDA version of the installed torch, None for a CPU build; read from its files, without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    version = Path(spec.origin).parent / "version.py"
    found = re.search(r"^cuda\b[^=]*= *['\"]([^'\"]+)['\"]", version.read_text(), re.MULTILINE) if version.exists() else None
    return found.group(1) if found else None


def obstacles() -> list[str]:
    """Why the published torch-npu could not run in this Python, in words; empty when it can."""
    spec = importlib.util.find_spec("torch_npu")
    if spec is None or spec.origin is None:
        return ["torch-npu isn't installed in this Python: pip install torch==2.13.0 torch-npu==2.13.0 (with a CPU build of torch)"]
    if cuda := cuda_of_torch():
        return [
            f"the installed torch is a CUDA build (CUDA {cuda}); torch-npu aborts beside it while loading, since both register the same allocator "
            "settings. Install a CPU build of torch 2.13.0 (PyTorch's own package index has one)"
        ]
    return []


def print_environment() -> None:
    """`softnpu cann-env`: lines for the shell on standard output, what hinders torch-npu on standard error."""
    for name, value in cann_environment().items():
        print(f"export {name}={shlex.quote(value)}")
    for line in obstacles():
        print(f"softnpu: {line}", file=sys.stderr)


def run_cann(words: list[str]) -> None:
    """`softnpu run-cann script.py ...`: this Python with that environment; gives way to it."""
    if lines := obstacles():
        raise SystemExit("\n".join(f"softnpu: {line}" for line in lines))
    os.execve(sys.executable, [sys.executable, *words], os.environ | cann_environment())


KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296", "MALLOC_TOP_PAD_": "1073741824"}
# Name of a benchmark (and of its JSON file) -> script, options, environment.
BENCHMARKS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "ops": ("ops.py", [], {}),
    "gemm": ("gemm.py", [], {}),
    "cnn_step": ("cnn_step.py", [], {}),
    "cnn_step_one_thread": ("cnn_step.py", ["--threads", "1", "--no-profile"], {"NPU_POOL_THREADS": "1"}),
    "cnn_step_kept_memory": ("cnn_step.py", ["--no-profile"], KEPT_MEMORY),
    "cnn_step_fast": ("cnn_step.py", ["--no-profile"], {"NPU_FIDELITY": "fast"}),
    "launch": ("launch.py", [], {}),
}


def run_benchmarks(names: list[str], folder: Path) -> None:
    """`softnpu bench`: each benchmark in a process of its own, its figures to folder/<name>.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or BENCHMARKS:
        script, options, environment = BENCHMARKS[name]
        print(f"\n== {name}", flush=True)
        words = [str(cann_folder().parent / "bench" / script), "--json", str(folder / f"{name}.json"), *options]
        subprocess.run([sys.executable, *words], env=os.environ | environment, check=True)


def _memory_text(free: int, total: int) -> str:
    return f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f} GiB"


def _device_memory(index: int) -> str:
    import torch

    return _memory_text(*torch.npu.mem_get_info(index))


def information() -> list[str]:
    """Lines of `softnpu info`."""
    import torch
    import torchtitan_npu
    from torchtitan_npu import _build, _libraries, _register

    lines = [f"softnpu {torchtitan_npu.__version__}, built for torch {_build.TORCH_VERSION}, running torch {torch.__version__}"]
    lines.append(f"python {sys.version.split()[0]}, package folder {cann_folder().parent}")
    if _register.is_passive():
        return [*lines, "the device npu is served by torch_npu; this package is passive"]
    bridge = _register.bridge()
    lines.append(f"libraries: {_libraries.reason()}; they speak CANN {bridge.cann_version()}")
    lines += [f"  {path}" for path in bridge.library_paths()]
    operators = {name.removesuffix("GetWorkspaceSize"): found for name, found in bridge.functions().items() if name.startswith("aclnn")}
    missing = [name for name, found in operators.items() if not found]
    lines.append(f"operators of them that the adapter can use: {len(operators) - len(missing)}; it knows {len(missing)} more, which they lack")
    lines.append(f"instruction set of the kernels: {_libraries.instruction_set() or 'the card'}")
    chosen = sorted(name for name in os.environ if name.startswith(OUR_VARIABLES))
    lines.append(f"environment: {' '.join(f'{name}={os.environ[name]}' for name in chosen) or 'nothing set'}")
    count = torch.npu.device_count()
    lines.append(f"devices: {count}")
    for index in range(count):
        facts = torch.npu.get_device_properties(index)
        lines.append(f"  npu:{index} {facts.name}, {facts.cube_core_num} cube cores, {facts.vector_core_num} vector cores, {_device_memory(index)}")
    return lines


def main() -> None:
    """Entry point of the console script."""
    parser = argparse.ArgumentParser(prog="softnpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="devices, chip, memory, instruction set in use, versions, which libraries were loaded and why")
    bench = commands.add_parser("bench", help="speed against torch on this CPU: operators, matrix products, a training step, launches")
    bench.add_argument("names", nargs="*", choices=[[], *BENCHMARKS], metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (all)")
    bench.add_argument("--output", type=Path, default=Path("softnpu-bench"), metavar="FOLDER", help="for the JSON files (softnpu-bench)")
    commands.add_parser("cann-flags", help="flags for cc: cc program.c $(softnpu cann-flags)")
    commands.add_parser("cann-env", help='for torch-npu as it is published: eval "$(softnpu cann-env)"')
    commands.add_parser("run-cann", help="python ... with torch-npu as it is published: softnpu run-cann script.py ...")
    if sys.argv[1:2] == ["run-cann"] and len(sys.argv) > 2 and sys.argv[2] not in ("-h", "--help"):
        run_cann(sys.argv[2:])  # what follows is Python's, `-m pytest` too: argparse would look for options of its own
    arguments = parser.parse_args()
    if arguments.command == "cann-flags":
        print(cann_flags())
    elif arguments.command == "cann-env":
        print_environment()
    elif arguments.command == "bench":
        run_benchmarks(arguments.names, arguments.output)
    elif arguments.command == "run-cann":
        parser.error("run-cann needs what follows `python`: softnpu run-cann script.py ...")
    else:
        try:
            print("\n".join(information()))
        except RuntimeError as error:  # the libraries refuse a variable of the environment, say
            parser.exit(1, f"softnpu info: {error}\n")


if __name__ == "__main__":
    main()
