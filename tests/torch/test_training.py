"""The examples as a user runs them: from the command line, in processes of their own."""

import difflib
import hashlib
import re

import pytest
import torch
from support import ROOT, expect_output, run_script

EXAMPLES = ROOT / "examples"


def train(device, output, *options, environment=None, timeout=300):
    """Runs the example; gives its printed lines as one text."""
    arguments = ["--device", device, "--output", output, "--no-progress", *options]
    script = "train_npu.py" if device == "npu" else "train_gpu.py"
    return "\n".join(expect_output(run_script(EXAMPLES / script, timeout, environment, arguments)))


@pytest.fixture
def training(device):
    pytest.importorskip("torchvision")
    return device


def test_the_two_versions_differ_in_three_lines():
    mine, cuda = ((EXAMPLES / name).read_text().splitlines() for name in ("train_npu.py", "train_gpu.py"))
    changes = [line for line in difflib.ndiff(mine, cuda) if line[0] in "+-"]
    assert len([line for line in changes if line[0] == "-"]) == len([line for line in changes if line[0] == "+"]) == 3


def test_bundled_images_are_whole():
    folder = EXAMPLES / "data" / "cifar10"
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name.lstrip("*")).read_bytes()).hexdigest() == digest


def test_short_training_reports_and_saves(training, tmp_path):
    text = train(training, tmp_path, "--epochs", "1", "--max-steps", "4")
    assert re.search(r"epoch 1: loss \d\.\d+, test accuracy 0\.\d+", text)
    assert re.search(r"step time +median \d+\.\d ms", text)
    assert "aten::convolution" in text and re.search(r"ran natively +[2-9]\d operators", text)
    assert re.search(r"fell back +0 operators", text)
    state = torch.load(tmp_path / "simple_cnn.pt", map_location="cpu", weights_only=True)
    assert state["features.0.weight"].shape == (64, 3, 3, 3) and state["classifier.4.bias"].isfinite().all()
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_an_output_that_cannot_be_made_is_refused_before_the_training(training, tmp_path):
    (tmp_path / "file").touch()
    script = "train_npu.py" if training == "npu" else "train_gpu.py"
    process = run_script(EXAMPLES / script, 300, None, ["--device", training, "--output", tmp_path / "file", "--no-progress"])
    assert process.returncode != 0 and "FileExistsError" in process.stderr and "epoch" not in process.stdout


@pytest.mark.npu_only
def test_training_with_the_fallback_switched_off(training, tmp_path):
    train(training, tmp_path, "--epochs", "1", "--max-steps", "2", environment={"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"})


@pytest.mark.parametrize(
    "options",
    [
        ("--workers", "2", "--pin-memory"),
        ("--optimizer", "sgd"),
        ("--optimizer", "adamw", "--fused"),
        ("--fused",),
        ("--batch-size", "7"),
    ],
    ids=" ".join,
)
def test_options(options, training, tmp_path):
    if training == "cpu" and "--pin-memory" in options:
        pytest.skip("pinning needs an accelerator")
    text = train(training, tmp_path, "--epochs", "1", "--max-steps", "2", *options)
    assert re.search(r"fell back +0 operators", text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ten_epochs_learn(seed, training, tmp_path):
    text = train(training, tmp_path, "--epochs", "10", "--seed", str(seed), timeout=3000)
    assert float(re.search(r"test accuracy +(0\.\d+)", text.split("epoch 10")[1].split("\n", 1)[1]).group(1)) >= 0.45
    assert re.search(r"fell back +0 operators", text)
