"""The package beside others: torch_npu installed or not, CANN there or not, a foreign distribution, another torch, any import order."""

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torchtitan_npu
from support import expect_output, run_python

PACKAGE = Path(torchtitan_npu.__file__).absolute().parent
DUMMY_TORCH_NPU = """
raise ImportError("libhccl.so: cannot open shared object file: No such file or directory")
"""
WORKING_TORCH_NPU = """
import torch
def _autoload():
    torch.npu_is_theirs = True
name = "the real one"
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of the package folder and its dist-info, to be changed and put first on the path."""
    shutil.copytree(PACKAGE.parent, tmp_path / "site", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "site"


def install_torch_npu(site, text):
    """Puts something that looks like an installed torch_npu into the folder."""
    (site / "torch_npu").mkdir()
    (site / "torch_npu/__init__.py").write_text(text)
    information = site / "torch_npu-2.14.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-npu\nVersion: 2.14.0\n")
    (information / "entry_points.txt").write_text("[torch.backends]\ntorch_npu = torch_npu:_autoload\n")


def run_in(site, program, **environment):
    """Runs a program with `site` first and without this process's own package folder."""
    paths = [str(site), *(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path and Path(path) != PACKAGE.parent)]
    return run_python(program, environment={"PYTHONPATH": os.pathsep.join(paths), **environment})


def test_alias_gives_the_very_same_modules():
    program = """
        import importlib.util, sys
        import torch
        assert importlib.util.find_spec("torch_npu") is not None
        import torch_npu, torchtitan_npu
        import torch_npu.npu.streams
        from torch_npu.npu import Event, memory_allocated
        from torch_npu.npu.amp import GradScaler
        import torchtitan_npu.npu.streams
        assert torch_npu is torchtitan_npu and torch_npu.npu is torch.npu
        assert sys.modules["torch_npu.npu.streams"] is sys.modules["torchtitan_npu.npu.streams"]
        assert torch_npu.npu.__spec__.name == "torchtitan_npu.npu" and torch_npu.__spec__.name == "torchtitan_npu"
        assert Event is torch.npu.Event and GradScaler is torch.npu.amp.GradScaler
        try:
            import torch_npu.no_such_module
        except ModuleNotFoundError as error:
            assert "no_such_module" in str(error)
        print("ok")
    """
    assert expect_output(run_python(program))[-1] == "ok"


@pytest.mark.parametrize(
    "order",
    ["torchtitan_npu torch", "torch torchtitan_npu", "torchtitan_npu torchtitan_npu", "torch torch_npu", "torch.nn torchtitan_npu.npu.memory"],
)
@pytest.mark.parametrize("autoload", ["0", "1"])
def test_any_import_order(order, autoload):
    if order.endswith("torch_npu") and autoload == "0":
        pytest.skip("without autoload nothing of this package has run, so there is no alias yet")
    lines = [f"import {name}" for name in order.split()]
    program = "\n".join(
        [
            *lines,
            "import importlib, torch, torchtitan_npu",
            "importlib.import_module('torchtitan_npu._register').register()",
            "print(torch.npu.device_count() > 0)",
        ]
    )
    assert expect_output(run_python(program, environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload}))[-1] == "True"


def test_torch_npu_without_cann_leaves_the_device_to_us(copied):
    install_torch_npu(copied, DUMMY_TORCH_NPU)
    program = """
        import torchtitan_npu, os, torch
        print(torch.npu.is_available(), torch.npu.__name__, os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD"))
        try:
            import torch_npu
        except ImportError as error:
            print(error)
    """
    done = run_in(copied, program)
    lines = expect_output(done)
    assert lines[0] == "True torchtitan_npu.npu None"
    assert lines[1].startswith("libhccl.so")
    assert done.stderr.count("torch_npu is installed, but CANN's libraries are not to be found") == 1


def fake_cann(folder):
    """Empty libraries by CANN's names."""
    folder.mkdir()
    for name in ("libascendcl.so", "libhccl.so"):
        subprocess.run(["cc", "-shared", "-x", "c", "-", "-o", str(folder / name)], input=b"int softnpu_test_dummy;\n", check=True)
    return {"LD_LIBRARY_PATH": f"{folder}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}"}


def test_a_card_without_cann_is_said_aloud():
    """The software NPU serves then, and nobody must take its numbers for the card's."""
    program = """
        import pathlib, warnings
        listing = pathlib.Path.glob
        pathlib.Path.glob = lambda self, pattern: [pathlib.Path("/dev/davinci0")] if pattern == "davinci*" else listing(self, pattern)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torch, torchtitan_npu
            torchtitan_npu._register.register()
        print([str(warning.message) for warning in caught if "torchtitan_npu" in str(warning.message)])
        print((torch.ones(2, device="npu") + 1).tolist())
    """
    text, values = expect_output(run_python(program, environment={"ASCEND_HOME_PATH": "/no/such/folder", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}))
    assert text.count("npu is the software NPU: a card is there, but not CANN") == 1 and "/no/such/folder/lib64/libascendcl.so" in text
    assert values == "[2.0, 2.0]"


def test_torch_npu_with_cann_keeps_the_device(copied, tmp_path):
    install_torch_npu(copied, WORKING_TORCH_NPU)
    program = """
        import torch
        assert torch.npu_is_theirs
        import torchtitan_npu, torch_npu
        print(hasattr(torch, "npu"), torch._C._get_privateuse1_backend_name(), torch_npu.name, torchtitan_npu.name)
    """
    done = run_in(copied, program, **fake_cann(tmp_path / "cann"))
    assert expect_output(done)[-1] == "False privateuseone the real one the real one"
    assert done.stderr.count("this package stays passive") == 1


def test_cann_without_torch_npu_changes_nothing(tmp_path):
    program = "import torch; print(torch.npu.is_available(), (torch.ones(2, device='npu') + 1).tolist())"
    assert expect_output(run_python(program, environment=fake_cann(tmp_path / "cann")))[-1] == "True [2.0, 2.0]"


def test_a_distribution_in_the_same_folder_is_refused(copied):
    information = copied / "torchtitan_npu-0.2.2.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torchtitan-npu\nVersion: 0.2.2\n")
    done = run_in(copied, "import torchtitan_npu", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode != 0
    assert "two distributions share the folder torchtitan_npu" in done.stderr and "torchtitan-npu 0.2.2" in done.stderr
    assert "pip uninstall" in done.stderr
    warned = run_in(copied, "import torch; print(hasattr(torch, 'npu'))")
    assert expect_output(warned)[-1] == "False"
    assert "two distributions share the folder" in warned.stderr


def test_a_distribution_elsewhere_is_left_alone(copied, tmp_path):
    other = tmp_path / "other"
    (other / "torchtitan_npu-0.2.2.dist-info").mkdir(parents=True)
    (other / "torchtitan_npu-0.2.2.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torchtitan-npu\nVersion: 0.2.2\n")
    program = "import torch; print(torch.npu.is_available())"
    paths = os.pathsep.join([str(PACKAGE.parent), str(other)])
    assert expect_output(run_python(program, environment={"PYTHONPATH": paths}))[-1] == "True"


def test_another_torch_is_refused_in_words(copied):
    facts = copied / "torchtitan_npu/_build.py"
    facts.unlink()
    facts.write_text('TORCH_VERSION = "2.12.1+cpu"\n')
    done = run_in(copied, "import torchtitan_npu", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode != 0
    assert "ImportError: this softnpu was built for torch 2.12 (with 2.12.1+cpu), but torch 2." in done.stderr
    assert "pip install --no-build-isolation" in done.stderr
    warned = run_in(copied, "import torch; print(torch.ones(1).item())")
    assert expect_output(warned)[-1] == "1.0"
    assert "the device npu isn't available: this softnpu was built for torch 2.12" in warned.stderr


def test_entry_points_and_command():
    backends = {entry.name: entry.value for entry in metadata.entry_points(group="torch.backends")}
    assert backends["torchtitan_npu"] == "softnpu_autoload:autoload"
    done = subprocess.run([sys.executable, "-m", "softnpu_command", "info"], capture_output=True, text=True, timeout=120)
    text = "\n".join(expect_output(done))
    for word in (
        "softnpu ",
        "built for torch",
        "libascendcl.so",
        "no card is there",
        "they speak CANN ",
        "instruction set",
        "devices: ",
        "cube cores",
        "GiB",
    ):
        assert word in text, f"{word!r} is missing in\n{text}"


@pytest.mark.npu_only
@pytest.mark.parametrize("variable, status, word", [("NPU_FIDELITY=fast", 0, "environment: NPU_FIDELITY=fast"), ("NPU_ISA=none", 1, "compiled in: ")])
def test_information_names_the_environment(variable, status, word):
    name, value = variable.split("=")
    command = [sys.executable, "-m", "softnpu_command", "info"]
    ours = {key: text for key, text in os.environ.items() if not key.startswith("NPU_")}
    done = subprocess.run(command, env={**ours, name: value}, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert word in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_a_c_program_compiles_with_the_flags_of_the_command(tmp_path):
    flags = subprocess.run([sys.executable, "-m", "softnpu_command", "cann-flags"], capture_output=True, text=True, check=True).stdout.split()
    source = tmp_path / "count.c"
    source.write_text(
        '#include "acl/acl.h"\n#include <stdio.h>\n'
        'int main(void) { uint32_t n = 0; int code = aclrtGetDeviceCount(&n); printf("%d %u\\n", code, n); }\n'
    )
    subprocess.run(["cc", str(source), *flags, "-o", str(tmp_path / "count")], check=True)
    assert subprocess.run([str(tmp_path / "count")], capture_output=True, text=True, check=True).stdout == "0 8\n"


@pytest.mark.slow
def test_the_wheel_carries_everything(tmp_path):
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(root)], check=True, cwd=root
    )
    (wheel,) = tmp_path.glob("softnpu-*.whl")
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    names = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*")}
    for name in (
        "cann/lib64/libascendcl.so",
        "cann/lib64/libnpu_core.so",
        "cann/include/acl/acl.h",
        "cann/include/aclnnop/aclnn_add.h",
        "lib/libop_plugin.so",
        "_build.py",
    ):
        assert f"torchtitan_npu/{name}" in names, name
    done = run_in(
        tmp_path / "site", "import torch, torchtitan_npu; print(torchtitan_npu.__file__); print((torch.ones(3, device='npu') + 1).tolist())"
    )
    lines = expect_output(done)
    assert lines[-2].startswith(str(tmp_path)) and lines[-1] == "[2.0, 2.0, 2.0]"


def test_lapack_is_found_in_another_folder_of_the_path(monkeypatch, tmp_path):
    """An environment that sees another one's packages has it elsewhere than beside ours; a name that is set is kept."""
    from torchtitan_npu import _libraries

    package = tmp_path / "scipy_openblas32"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.setattr(_libraries, "OWN_FOLDER", tmp_path / "elsewhere/torchtitan_npu/cann/lib64")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("NPU_LAPACK", "named")
    _libraries._name_lapack()
    assert os.environ["NPU_LAPACK"] == "named"
    monkeypatch.delenv("NPU_LAPACK")
    _libraries._name_lapack()
    assert os.environ["NPU_LAPACK"] == str(package / "lib/libscipy_openblas.so")
