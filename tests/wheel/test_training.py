"""Checks 2 and 3: the example's network trains through the wheel, in every mode of its launch queue and on every chip."""

import json

import pytest
import torch
import train_cnn
from support import ROOT, run_script

PROGRAM = ROOT / "tests/wheel/train_cnn.py"
FEW = ["--steps", "6"]


def losses(*words, **variables):
    return json.loads(run_script(PROGRAM, *words, **variables).stdout.splitlines()[-1])


def distance(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


# Each side meets near ties of its own (values of a pooling window, signs before ReLU, between which its rounding decides). They move the losses
# by up to 1e-4 with SGD at 1e-3, and by up to 1e-1 with the other optimizers: hence medians.
SEEDS = range(5)


def test_sgd_gives_the_losses_of_the_cpu(npu):
    torch.set_num_threads(2)
    off = []
    for seed in SEEDS:
        got, want = (train_cnn.train(device, "sgd", 20, torch.float32, seed) for device in ("npu", "cpu"))
        off.append(distance(got, want))
    assert sorted(off)[len(SEEDS) // 2] <= 1e-5 and max(off) <= 1e-3, off


@pytest.mark.parametrize(("optimizer", "steps"), [("sgd", 40), ("adam", 20), ("momentum", 20)])
def test_no_farther_from_float64_than_torch(npu, optimizer, steps):
    torch.set_num_threads(2)
    ratios = []
    for seed in SEEDS:
        exact = train_cnn.train("cpu", optimizer, steps, torch.float64, seed)
        got, torchs = (distance(train_cnn.train(device, optimizer, steps, torch.float32, seed), exact) for device in ("npu", "cpu"))
        ratios.append(got / torchs)
    assert sorted(ratios)[len(SEEDS) // 2] <= 3, ratios


@pytest.fixture(scope="module")
def usual():
    return losses(*FEW)


@pytest.mark.parametrize(
    "variables",
    [
        {"TASK_QUEUE_ENABLE": "0"},
        {"TASK_QUEUE_ENABLE": "2"},
        {"ASCEND_LAUNCH_BLOCKING": "1"},
        *({"ASCEND_SOC": name} for name in ("Ascend910B1", "Ascend910B3", "Ascend910B4", "Ascend910_9391", "Ascend950PR_9599")),
        {"PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"},
    ],
    ids=lambda variables: "-".join(variables.values()),
)
def test_the_same_losses_in_every_mode_and_on_every_chip(usual, variables):
    assert losses(*FEW, **variables) == usual
