"""The command `softnpu`: what is installed and in use, and the flags to compile C programs against the same libraries."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def _cann_folder() -> Path:
    return Path(__file__).absolute().parent / "cann"


def cann_flags() -> str:
    """Compiler and linker flags for a C program that uses acl/ and aclnnop/ headers and these libraries."""
    folder = _cann_folder()
    libraries = "-lascendcl -lnnopbase -lopapi"
    return f"-I{folder / 'include'} -L{folder / 'lib64'} -Wl,-rpath,{folder / 'lib64'} {libraries}"


def _memory_text(free: int, total: int) -> str:
    return f"{free / 2**30:.1f} GiB free of {total / 2**30:.1f} GiB"


def information() -> list[str]:
    """Lines of `softnpu info`."""
    import torch

    import torchtitan_npu
    from torchtitan_npu import _build, _libraries, _register

    lines = [f"softnpu {torchtitan_npu.__version__}, built for torch {_build.TORCH_VERSION}, running torch {torch.__version__}"]
    lines.append(f"python {sys.version.split()[0]}, package folder {_cann_folder().parent}")
    if _register.is_passive():
        return [*lines, "the device npu is served by torch_npu; this package is passive"]
    bridge = _register.bridge()
    lines.append(f"libraries: {_libraries.reason()}; they speak CANN {bridge.cann_version()}")
    lines += [f"  {path}" for path in bridge.library_paths()]
    operators = {name.removesuffix("GetWorkspaceSize"): found for name, found in bridge.functions().items() if name.startswith("aclnn")}
    missing = [name for name, found in operators.items() if not found]
    lines.append(f"operators of them that the adapter can use: {len(operators) - len(missing)}; it knows {len(missing)} more, which they lack")
    lines.append(f"instruction set of the kernels: {_libraries.instruction_set() or 'the card'}")
    count = torch.npu.device_count()
    lines.append(f"devices: {count}")
    for index in range(count):
        facts = torch.npu.get_device_properties(index)
        lines.append(f"  npu:{index} {facts.name}, {facts.cube_core_num} cube cores, {facts.vector_core_num} vector cores, {_device_memory(index)}")
    return lines


def _device_memory(index: int) -> str:
    import torch

    return _memory_text(*torch.npu.mem_get_info(index))


def main() -> None:
    """Entry point of the console script."""
    parser = argparse.ArgumentParser(prog="softnpu", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="devices, chip, memory, instruction set in use, versions, which libraries were loaded and why")
    commands.add_parser("cann-flags", help="flags for cc: cc program.c $(softnpu cann-flags)")
    arguments = parser.parse_args()
    if arguments.command == "cann-flags":
        print(cann_flags())
    else:
        print("\n".join(information()))


if __name__ == "__main__":
    main()
