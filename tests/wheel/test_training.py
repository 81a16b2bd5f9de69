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


def test_sgd_gives_the_losses_of_the_cpu(npu):
    torch.set_num_threads(2)
    got, want = (train_cnn.train(device, "sgd", 40, torch.float32) for device in ("npu", "cpu"))
    assert distance(got, want) <= 1e-5


@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
def test_no_farther_from_float64_than_torch(npu, optimizer):
    # Each side meets its own near ties (values of a pooling window, signs before ReLU), which move it by up to 1e-1: hence a median.
    torch.set_num_threads(2)
    ratios = []
    for seed in range(5):
        exact = train_cnn.train("cpu", optimizer, 20, torch.float64, seed)
        got, torchs = (distance(train_cnn.train(device, optimizer, 20, torch.float32, seed), exact) for device in ("npu", "cpu"))
        ratios.append(got / torchs)
    assert sorted(ratios)[2] <= 3, ratios


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
