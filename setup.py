"""Builds the C libraries (CMake and Ninja, no torch) and the bridge (setuptools and torch's BuildExtension), for a wheel or in the tree.

Folders: build/c holds the C libraries and is shared by all torch versions; build/torch-<version> holds everything that depends on one.
`setup.py in_tree` fills build/torch-<version>/python, which goes on PYTHONPATH: the package's sources as links, so that an edit needs no
build, beside the compiled bridge, the C libraries and the dist-info folder through which `import torch` finds the package.
"""

from __future__ import annotations

import filecmp
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # an older build of ours must not load while the next is made

import torch
from setuptools import Command, setup
from setuptools.dist import Distribution
from torch.utils.cpp_extension import BuildExtension, CppExtension

ROOT = Path(__file__).resolve().parent
PACKAGE = "torchtitan_npu"
PUBLIC_TORCH = torch.__version__.split("+", 1)[0]
TORCH_MINOR = tuple(int(part) for part in PUBLIC_TORCH.split(".")[:2])
C_BUILD = ROOT / "build/c"
TORCH_BUILD = ROOT / f"build/torch-{PUBLIC_TORCH}"
GENERATED = TORCH_BUILD / "generated"
CANN_PARTS = ("runtime", "compiler", "opp")  # torch-npu looks for these folders of CANN's before it looks for libraries


def check_surroundings() -> None:
    """Refuses a torch that the bridge isn't written for, and an environment where another distribution owns our import folder."""
    if TORCH_MINOR not in ((2, 13), (2, 14)):
        raise SystemExit(
            f"softnpu is written for torch 2.13 and 2.14; this Python has torch {torch.__version__}. Install one of those, then "
            "`pip install --no-build-isolation .` (with isolation, pip builds against a torch of its own choice)"
        )
    try:
        foreign = importlib.metadata.version("torchtitan-npu")
    except importlib.metadata.PackageNotFoundError:
        return
    raise SystemExit(
        f"torchtitan-npu {foreign} is installed here and owns the import folder {PACKAGE}; softnpu, another project, needs the same folder. "
        "Uninstall it first (pip uninstall torchtitan-npu) or use another environment"
    )


def tool(name: str) -> str:
    """Path of cmake or ninja: beside this Python (PyPI has both), else on PATH."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise SystemExit(f"{name} is missing: pip install {name}")
    return found


def build_c_libraries() -> None:
    """Configures and builds the C libraries in build/c; Ninja finds out that nothing changed."""
    ninja = tool("ninja")
    cache = C_BUILD / "CMakeCache.txt"
    kept = (
        re.findall(r"^(?:CMAKE_COMMAND|CMAKE_MAKE_PROGRAM|Python3_EXECUTABLE|_Python3_EXECUTABLE):\w+=(.+)$", cache.read_text(), re.M)
        if cache.exists()
        else []
    )
    if not (C_BUILD / "build.ninja").exists() or not all(Path(program).exists() for program in kept):  # an environment may have been replaced
        shutil.rmtree(C_BUILD, ignore_errors=True)
        options = [f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython3_EXECUTABLE={sys.executable}", "-DSOFTNPU_TESTS=OFF"]
        subprocess.run([tool("cmake"), "-G", "Ninja", "-B", str(C_BUILD), "-S", str(ROOT), *options], check=True)
    subprocess.run([ninja, "-C", str(C_BUILD), *(["-j", os.environ["MAX_JOBS"]] if "MAX_JOBS" in os.environ else [])], check=True)


def generate_wrappers() -> None:
    """Runs the bridge's generator; files whose text stays the same keep their date, so that their objects stay valid."""
    fresh = TORCH_BUILD / "generated.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    subprocess.run([sys.executable, str(ROOT / "bridge/codegen/generate.py"), "--output", str(fresh)], check=True, cwd=ROOT)
    GENERATED.mkdir(exist_ok=True)
    made = {path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file()}
    for old in [path for path in GENERATED.rglob("*") if path.is_file() and path.relative_to(GENERATED) not in made]:
        old.unlink()
    for name in made:
        if not (GENERATED / name).exists() or not filecmp.cmp(fresh / name, GENERATED / name, shallow=False):
            (GENERATED / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(fresh / name, GENERATED / name)
    shutil.rmtree(fresh)


def link(target: Path, name: Path) -> None:
    """Makes `name` a symbolic link to `target`, replacing what is there."""
    name.parent.mkdir(parents=True, exist_ok=True)
    if name.is_symlink() or name.exists():
        if name.is_symlink() and name.readlink() == target:
            return
        name.unlink()
    name.symlink_to(target)


def write_if_changed(name: Path, text: str) -> None:
    """Keeps the date of a file whose text stays the same."""
    if not name.exists() or name.read_text() != text:
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_text(text)


def cann_version() -> str:
    """The version that the C libraries answer."""
    numbers = re.search(r"CANN_MAJOR = (\d+), CANN_MINOR = (\d+), CANN_RELEASE = (\d+)", (ROOT / "src/runtime/inquiry.c").read_text())
    assert numbers, "src/runtime/inquiry.c names no version"
    return ".".join(numbers.groups())


def wall() -> Path:
    """The folder through which the bridge sees itself and src/op_plugin, and nothing else of src/."""
    folder = TORCH_BUILD / "walls"
    link(ROOT / "bridge", folder / "bridge")
    link(ROOT / "src/op_plugin", folder / "op_plugin")
    return folder


def c_libraries() -> dict[str, Path]:
    """Path inside the package -> built library."""
    libraries = {f"cann/lib64/{path.name}": path for path in sorted((C_BUILD / "lib64").glob("*.so*"))}
    libraries["lib/libop_plugin.so"] = next(path for path in (C_BUILD / "lib/libop_plugin.so", C_BUILD / "libop_plugin.so") if path.exists())
    return libraries


def c_headers() -> dict[str, Path]:
    """Path inside the package -> public header: the checked-in ones and the operators' generated ones."""
    folders = (ROOT / "include", C_BUILD / "include")
    return {f"cann/include/{path.relative_to(base)}": path for base in folders for path in sorted(base.rglob("*.h"))}


def benchmarks() -> dict[str, Path]:
    """Path inside the package -> script that `softnpu bench` runs, or what these import."""
    names = ("_measure", "_ops_cases", "_ops_reasons", "ops", "gemm", "cnn_step", "launch")
    return {f"bench/{name}.py": ROOT / f"bench/{name}.py" for name in names}


def link_lapack(destination: Path) -> None:
    """Puts the package with LAPACK beside ours, where an installation has both: there the C libraries look for it."""
    spec = importlib.util.find_spec("scipy_openblas32")
    if spec and spec.origin:
        link(Path(spec.origin).parent.resolve(), destination / "scipy_openblas32")
    else:
        print("decompositions of matrices won't work: pip install scipy-openblas32, and build again", file=sys.stderr)


class BridgeBuild(BuildExtension):
    """build_ext: C libraries, generated wrappers, then the extension module torchtitan_npu._bridge."""

    def __init__(self, *arguments: object, **options: object) -> None:
        """Calls always go through to Ninja, which alone knows the headers that an object depends on."""
        super().__init__(*arguments, **options)
        self.force = True

    def finalize_options(self) -> None:
        """Keeps the objects of each torch version apart."""
        super().finalize_options()
        self.build_temp = str(TORCH_BUILD / "objects")
        self.force = True

    def run(self) -> None:
        """Builds everything compiled and puts it into the package folder."""
        check_surroundings()
        os.environ["PATH"] = f"{Path(tool('ninja')).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # BuildExtension looks there
        build_c_libraries()
        generate_wrappers()
        package = Path(self.build_lib) / PACKAGE
        for name, path in c_libraries().items():
            self.place(path, package / name, strip=True)
        (extension,) = self.extensions
        sources = [*(ROOT / "bridge").rglob("*.cpp"), *GENERATED.rglob("*.cpp")]
        extension.sources = sorted(os.path.relpath(path, ROOT) for path in sources)
        extension.include_dirs = [
            str(wall()),
            str(ROOT / "bridge"),
            str(GENERATED),
            str(ROOT / "include"),
            str(C_BUILD / "include"),
            *extension.include_dirs,
        ]
        extension.library_dirs.append(str((package / "lib").absolute()))
        super().run()
        for name, path in (c_headers() | benchmarks()).items():
            self.place(path, package / name, strip=False)
        for part in CANN_PARTS:
            write_if_changed(package / f"cann/{part}/version.info", f"Version={cann_version()}\n")
        text = f'"""Facts of this build, written by setup.py."""\n\nTORCH_VERSION = "{torch.__version__}"\n'
        write_if_changed(package / "_build.py", text)

    def place(self, path: Path, name: Path, strip: bool) -> None:
        """Puts one file into the package: a link in the tree, a copy (without debug sections, where it has some) for a wheel."""
        if getattr(self.distribution, "in_tree", False):
            link(path, name)
            return
        name.parent.mkdir(parents=True, exist_ok=True)
        if name.is_symlink():
            name.unlink()
        shutil.copyfile(path, name)
        if strip and (stripper := shutil.which("strip")):
            subprocess.run([stripper, "--strip-debug", str(name)], check=True)


class InTree(Command):
    """Builds the package folder for development; nothing gets installed."""

    description = "build into build/torch-<version>/python, to be put on PYTHONPATH"
    user_options: list[tuple[str, str | None, str]] = []

    def initialize_options(self) -> None:
        """No options."""

    def finalize_options(self) -> None:
        """No options."""

    def run(self) -> None:
        """Links the sources, compiles, writes dist-info and the launcher build/torch-<version>/run."""
        destination = TORCH_BUILD / "python"
        sources = {
            path.relative_to(ROOT / "python") for path in (ROOT / "python").rglob("*") if path.is_file() and path.suffix in (".py", ".pyi", ".typed")
        }
        for stale in [path for path in destination.rglob("*") if path.is_symlink() and not path.exists()]:
            stale.unlink()
        for name in sources:
            link(ROOT / "python" / name, destination / name)
        link_lapack(destination)
        self.distribution.in_tree = True
        build = self.distribution.get_command_obj("build_ext")
        build.build_lib = str(destination)
        self.run_command("build_ext")
        information = self.distribution.get_command_obj("dist_info")
        information.output_dir = str(destination)
        self.run_command("dist_info")
        for command, words, what in (
            ("run", "", "Python with the package of this tree: run script.py ..."),
            ("softnpu", "-m softnpu_command ", "The command"),
        ):
            launcher = TORCH_BUILD / command
            launcher.write_text(
                f'#!/bin/sh\n# {what}\nexport PYTHONPATH="{destination}${{PYTHONPATH:+:$PYTHONPATH}}"\nexec "{sys.executable}" {words}"$@"\n'
            )
            launcher.chmod(0o755)


def extension() -> CppExtension:
    """The bridge; its sources are known only after the generator ran. It finds libop_plugin.so beside itself, torch's libraries loaded."""
    return CppExtension(
        f"{PACKAGE}._bridge",
        sources=[],
        libraries=["op_plugin"],
        extra_compile_args=["-O2", "-g0", "-std=c++20", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-Wall", "-Wno-unused-parameter"],
        extra_link_args=["-Wl,-rpath,$ORIGIN/lib", "-Wl,-z,nodelete"],
    )


Distribution.in_tree = False
setup(
    package_dir={"": "python"},
    packages=[PACKAGE, f"{PACKAGE}.npu"],
    py_modules=["softnpu_autoload", "softnpu_command"],
    package_data={PACKAGE: ["py.typed", "*.pyi"]},
    ext_modules=[extension()],
    install_requires=[f"torch=={TORCH_MINOR[0]}.{TORCH_MINOR[1]}.*", "scipy-openblas32>=0.3.30"],
    cmdclass={"build_ext": BridgeBuild, "in_tree": InTree},
    options={"build": {"build_base": str(TORCH_BUILD / "wheel")}, "egg_info": {"egg_base": str(TORCH_BUILD)}},
)
