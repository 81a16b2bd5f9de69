"""Check 10: who serves the device npu, with the real torch-npu installed or not, with CANN's environment or not; and the command.

The state without torch-npu is the usual one; tests/torch has it. Here torch-npu is installed for real.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, run_program

OURS = ROOT / "build/torch-2.13.0/python"  # the adapter for the wheel's torch, where it is built
COMMAND = Path(os.environ["ASCEND_HOME_PATH"]).parents[1] / "softnpu_command.py"
NO_CANN = {"ASCEND_HOME_PATH": None, "ASCEND_OPP_PATH": None, "LD_LIBRARY_PATH": None}


@pytest.fixture(scope="module")
def adapter():
    if not list(OURS.glob("torchtitan_npu/_bridge*.so")):
        pytest.skip("the adapter for torch 2.13 isn't built; TORCH=all builds it")
    environment = {name: value for name, value in os.environ.items() if name not in NO_CANN} | {"PYTHONPATH": str(OURS)}
    done = subprocess.run([sys.executable, "-c", "import torchtitan_npu"], env=environment, capture_output=True, text=True)
    if "are of different builds" in done.stderr:
        pytest.skip("the adapter for torch 2.13 is of an older build; TORCH=all builds it again")
    return str(OURS)


def test_with_cann_the_wheel_serves_and_we_stay_passive(adapter):
    program = """
        import torch, torch_npu, torchtitan_npu
        assert "site-packages" in torch_npu.__file__ and torch.npu is torch_npu.npu
        assert torchtitan_npu.npu_fusion_attention is torch_npu.npu_fusion_attention
        print((torch.ones(2).npu() + 1).tolist())
    """
    for order in ("", "import torchtitan_npu\n"):
        done = run_program(order + program.replace("\n        ", "\n"), PYTHONPATH=adapter)
        assert done.stdout.splitlines()[-1] == "[2.0, 2.0]"
        assert done.stderr.count("this package stays passive") == 1


def test_without_cann_the_device_is_ours(adapter):
    program = """
        import torchtitan_npu, torch
        assert torch.npu is torchtitan_npu.npu
        print((torch.ones(2, device="npu") + 1).tolist())
    """
    done = run_program(program, PYTHONPATH=adapter, **NO_CANN)
    assert done.stdout.splitlines()[-1] == "[2.0, 2.0]"
    assert done.stderr.count("torch_npu is installed, but CANN's libraries are not to be found") == 1


def command(*words, **variables):
    environment = os.environ | variables
    return subprocess.run([sys.executable, str(COMMAND), *words], env=environment, capture_output=True, text=True, timeout=120)


def test_cann_env_gives_lines_for_the_shell():
    lines = f'eval "$({sys.executable} {COMMAND} cann-env)"; {sys.executable} -c "import torch, torch_npu; print(torch.ones(2).npu().sum().item())"'
    environment = {name: value for name, value in os.environ.items() if name not in NO_CANN}
    done = subprocess.run(["sh", "-c", lines], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().endswith("2.0"), done.stderr


def test_run_cann_passes_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(sys.argv[1:], torch.ones(3).npu().sum().item())\n")
    done = command("run-cann", str(script), "--epochs", "2")
    assert done.stdout.strip().endswith("['--epochs', '2'] 3.0"), done.stderr


def stand_in(folder, name, **files):
    """Something that looks like an installed package."""
    (folder / name).mkdir()
    for file, text in {"__init__": "", **files}.items():
        (folder / name / f"{file}.py").write_text(text)


@pytest.mark.parametrize("kind", ["a CUDA build", "no torch-npu"])
def test_obstacles_are_said_in_words(tmp_path, kind):
    """A copy of the command beside stand-ins for the packages: they come first on the path."""
    shutil.copyfile(COMMAND, tmp_path / "softnpu_command.py")
    stand_in(tmp_path, "torch", version="cuda: str | None = '13.0'\n")
    if kind == "a CUDA build":
        stand_in(tmp_path, "torch_npu")
    words = [sys.executable, *(["-S"] if kind == "no torch-npu" else []), str(tmp_path / "softnpu_command.py")]
    expected = "is a CUDA build (CUDA 13.0)" if kind == "a CUDA build" else "torch-npu isn't installed"
    refused = subprocess.run([*words, "run-cann", "-c", "print('ran')"], capture_output=True, text=True)
    assert refused.returncode == 1 and expected in refused.stderr and "ran" not in refused.stdout
    told = subprocess.run([*words, "cann-env"], capture_output=True, text=True)
    assert told.returncode == 0 and expected in told.stderr and f"export ASCEND_HOME_PATH={tmp_path}/torchtitan_npu/cann" in told.stdout


def test_a_c_program_compiles_with_the_flags(tmp_path):
    source = tmp_path / "add.c"
    shutil.copyfile(ROOT / "examples/c/add.c", source)
    flags = command("cann-flags").stdout.split()
    subprocess.run(["cc", str(source), *flags, "-o", str(tmp_path / "add")], check=True)
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([str(tmp_path / "add")], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "1 + 2 * 10 = 21", done.stderr
