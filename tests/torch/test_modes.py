"""Switches that must not change results: launch modes, instruction sets, numbers of threads; and what they do change."""

import re

import pytest
from support import expect_output, run_python

pytestmark = pytest.mark.npu_only

DIGEST = """
    import hashlib, torch, torchtitan_npu
    def digest(*tensors):
        return hashlib.sha256(b"".join(t.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() for t in tensors)).hexdigest()
    torch.manual_seed(0)
    a, b = torch.randn(300, 1001).to("npu"), torch.randn(1001).to("npu")
    half = a.half()
    print(digest(a + b, a * b, a / b, torch.relu(a), a.exp(), a.tanh(), a.sigmoid(), (a > b), torch.where(a > 0, a, b),
                 half * 2, half + b.half(), a.bfloat16()))
    print(digest(a.sum(), a.sum(0), a.sum(1), a.mean(1), a.var(0), a.amax(1), a.argmax(1), a.softmax(1), half.sum(1), a.double().sum(0), a.norm()))
    print(digest(torch.rand(10_000, device="npu"), torch.randn(10_000, device="npu"), torch.randint(0, 99, (1000,), device="npu"),
                 torch.nn.functional.dropout(a, 0.3)))
    images = torch.randn(4, 3, 16, 16).to("npu")
    print(digest(*torch.nn.functional.max_pool2d(images, 2, return_indices=True), torch.nn.functional.cross_entropy(a, torch.arange(300).to("npu"))))
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 5)).to("npu")
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()
    print(digest(*model.state_dict().values()))
"""
EXACT = 4  # lines before the one with convolutions and matrix products, where multiply and add may be contracted


@pytest.fixture(scope="module")
def plain():
    return expect_output(run_python(DIGEST))


@pytest.mark.parametrize(
    "environment",
    [
        {"TASK_QUEUE_ENABLE": "0"},
        {"TASK_QUEUE_ENABLE": "1"},
        {"TASK_QUEUE_ENABLE": "2"},
        {"ASCEND_LAUNCH_BLOCKING": "1"},
        {"NPU_POOL_THREADS": "1"},
        {"NPU_POOL_THREADS": "3"},
        {"PYTORCH_NO_NPU_MEMORY_CACHING": "1"},
    ],
    ids=lambda environment: "=".join(*environment.items()),
)
def test_launch_mode_threads_and_caching_change_no_bit(environment, plain):
    assert expect_output(run_python(DIGEST, environment=environment)) == plain


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
def test_instruction_sets_agree(isa, plain):
    process = run_python(DIGEST, environment={"NPU_ISA": isa})
    if process.returncode != 0 and re.search(rf"NPU_ISA.*{isa}|{isa}.*(CPU|instruction set)", process.stderr):
        pytest.skip(f"this CPU doesn't run {isa}")
    assert expect_output(process)[:EXACT] == plain[:EXACT]


def test_blocking_launch_raises_at_the_guilty_line():
    program = """
        import torch, torchtitan_npu
        table, wrong = torch.ones(5, 3, device="npu"), torch.tensor([9], device="npu")
        try:
            table.index_select(0, wrong)
            print("no error yet")
        except (RuntimeError, IndexError):
            print("error at the line")
    """
    assert expect_output(run_python(program, environment={"ASCEND_LAUNCH_BLOCKING": "1"})) == ["error at the line"]


@pytest.mark.parametrize("name, value", [("NPU_ISA", "mmx"), ("NPU_DEVICE_COUNT", "many"), ("NPU_MEMORY_LIMIT", "-3")])
def test_a_bad_setting_is_refused_in_words(name, value):
    process = run_python("import torch, torchtitan_npu; torch.ones(1, device='npu')", environment={name: value})
    assert process.returncode != 0 and name in process.stderr and value in process.stderr
