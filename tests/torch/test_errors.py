"""Bad input: one table of what a user may do wrong, the exception he gets, and the device that works on afterwards.

A row runs in this process unless it ends or limits the process; those are programs of their own below. After every row the
same stream must give a right result.
"""

import re
import threading

import pytest
import torch
import torch.nn.functional as F
from support import expect_output, run_python

BAD = torch.tensor([0, 9])


def weights(device):
    return torch.arange(15.0).view(5, 3).to(device)


def two_backwards(device):
    loss = weights(device).requires_grad_().square().sum()
    loss.backward()
    loss.backward()


# name: (what to do with the device, exception, pattern of its text). An error that the device finds while it works may come
# at the call or at the next synchronise, so every action ends with a copy to the host.
INDEX = r"(?i)index|out of (range|bounds)"
TABLE = {
    "mixed devices, add": (lambda d: weights(d) + torch.ones(5, 3), RuntimeError, "Expected all tensors to be on the same device"),
    "mixed devices, matmul": (lambda d: weights(d) @ torch.ones(3, 2), RuntimeError, "Expected all tensors to be on the same device"),
    "mixed devices, linear": (lambda d: torch.nn.Linear(3, 2)(weights(d)), RuntimeError, "Expected all tensors to be on the same device"),
    "mixed devices, cat": (lambda d: torch.cat([weights(d), torch.ones(5, 3)]), RuntimeError, "Expected all tensors to be on the same device"),
    "bad index, embedding": (lambda d: F.embedding(BAD.to(d), weights(d)).cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, index_select": (lambda d: weights(d).index_select(0, BAD.to(d)).cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, gather": (lambda d: weights(d).gather(0, BAD.to(d)[:, None].expand(2, 3)).cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, advanced": (lambda d: weights(d)[BAD.to(d)].cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, negative": (lambda d: weights(d)[-BAD.to(d)].cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, cross_entropy": (lambda d: F.cross_entropy(weights(d)[:2], BAD.to(d)).cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, scatter": (lambda d: weights(d).scatter(0, BAD.to(d)[:, None], 1.0).cpu(), (IndexError, RuntimeError), INDEX),
    "bad index, python": (lambda d: weights(d)[7], IndexError, "out of (range|bounds)"),
    "shapes, add": (lambda d: weights(d) + torch.ones(4, device=d), RuntimeError, "must match the size of tensor"),
    "shapes, matmul": (lambda d: weights(d) @ weights(d), RuntimeError, "cannot be multiplied|size mismatch"),
    "shapes, view": (lambda d: weights(d).view(4, 4), RuntimeError, "is invalid for input of size"),
    "shapes, conv2d": (lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)), RuntimeError, "(?i)channels"),
    "dtypes, matmul": (lambda d: weights(d) @ weights(d).t().double(), RuntimeError, "(?i)dtype|same type|Double|Float"),
    "dtypes, conv2d": (
        lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d).bool(), torch.ones(4, 3, 3, 3, device=d).bool()).cpu(),
        RuntimeError,
        "(?i)bool|b8",
    ),
    "dtypes, relu": (lambda d: F.relu(torch.ones(3, device=d).bool()), RuntimeError, "(?i)bool|b8"),
    "dtypes, bmm": (
        lambda d: torch.bmm(torch.ones(1, 2, 2, device=d), torch.ones(1, 2, 2, device=d).double()),
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    "dtypes, gradients of conv2d": (
        lambda d: torch.ops.aten.convolution_backward(
            torch.ones(1, 4, 6, 6, device=d).half(),
            torch.ones(1, 3, 8, 8, device=d),
            torch.ones(4, 3, 3, 3, device=d),
            *([4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True]),
        ),
        RuntimeError,
        "expected scalar type (Half but found Float|Float but found Half)",
    ),
    "nothing left, conv_transpose2d": (
        lambda d: F.conv_transpose2d(torch.ones(1, 3, 2, 2, device=d), torch.ones(3, 4, 1, 1, device=d), padding=1),
        RuntimeError,
        r"Calculated output size per channel: \(0 x 0\). Output size is too small",
    ),
    "no probability as a target, binary_cross_entropy": (
        lambda d: F.binary_cross_entropy(torch.full((3,), 0.5, device=d), torch.tensor([0, 1, -0.5], device=d)).cpu(),
        RuntimeError,
        r"target\[2\] is -0.5; 0 to 1 are allowed|all elements of target should be between 0 and 1",
    ),
    "no probability, binary_cross_entropy": (
        lambda d: F.binary_cross_entropy(torch.tensor([0.5, 1.5, float("nan")], device=d), torch.ones(3, device=d)).cpu(),
        RuntimeError,
        r"self\[1\] is 1.5; 0 to 1 are allowed|all elements of input should be between 0 and 1",
    ),
    "dtypes, conv2d mixed": (
        lambda d: F.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 3, 3, 3, device=d).double()),
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    "dtypes, in place": (lambda d: torch.ones(3, device=d, dtype=torch.int64).add_(1.5), RuntimeError, "can't be cast"),
    "dtypes, embedding": (lambda d: F.embedding(torch.ones(2, device=d), weights(d)), RuntimeError, "(?i)indices|scalar type"),
    "set_device(99)": (lambda d: torch.npu.set_device(99), RuntimeError, "(?i)device"),
    "npu:99": (lambda d: torch.ones(1, device="npu:99"), RuntimeError, "(?i)device"),
    "set_device(name)": (lambda d: torch.npu.set_device("cuda:0"), (RuntimeError, ValueError, AssertionError), "(?i)npu|cuda"),
    "too much memory": (
        lambda d: torch.empty(1 << 50, dtype=torch.uint8, device=d),
        torch.OutOfMemoryError,
        r"NPU out of memory\. Tried to allocate .*GiB \(NPU 0; .* total capacity; .* already allocated; .* free; ",
    ),
    "item of many": (lambda d: weights(d).item(), RuntimeError, "cannot be converted to Scalar|elements"),
    "numpy": (lambda d: weights(d).numpy(), TypeError, "(?i)convert npu.*cpu"),
    "pin a device tensor": (lambda d: weights(d).pin_memory(), RuntimeError, "(?i)pin"),
    "unknown memory format": (lambda d: torch.ones(2, 2, device=d).contiguous(memory_format=torch.channels_last), RuntimeError, "(?i)rank 4|dim"),
    "backward twice": (two_backwards, RuntimeError, "backward through the graph a second time"),
    "generator of the cpu": (lambda d: torch.rand(3, device=d, generator=torch.Generator("cpu")), RuntimeError, "(?i)generator"),
}
ONLY_NPU = {"set_device(99)", "npu:99", "set_device(name)", "too much memory", "numpy", "pin a device tensor", "generator of the cpu"}


def right_result(device):
    a = torch.arange(12.0).view(3, 4).to(device)
    return torch.equal((a @ a.t() + 1).cpu(), torch.arange(12.0).view(3, 4) @ torch.arange(12.0).view(3, 4).t() + 1)


@pytest.mark.parametrize("name", TABLE)
def test_bad_input(name, device):
    if device == "cpu" and (name in ONLY_NPU or name.startswith("mixed")):
        pytest.skip("no counterpart on the CPU")
    action, exception, pattern = TABLE[name]
    with pytest.raises(exception, match=pattern):
        action(device)
    assert right_result(device)


@pytest.mark.npu_only
def test_parked_error_comes_once_and_spoils_only_its_readers(device):
    untouched = weights(device)
    wrong = untouched.index_select(0, BAD.to(device))
    follower = wrong + 1
    bystander = untouched * 2
    with pytest.raises((IndexError, RuntimeError), match=INDEX):
        torch.npu.synchronize()
    torch.npu.synchronize()
    assert torch.equal(bystander.cpu(), weights("cpu") * 2)
    del wrong, follower
    assert right_result(device)


@pytest.mark.npu_only
def test_error_text_names_the_operator(device):
    with pytest.raises((IndexError, RuntimeError)) as caught:
        weights(device).index_select(0, BAD.to(device)).cpu()
    assert "9" in str(caught.value) and ("IndexSelect" in str(caught.value) or "index_select" in str(caught.value))


@pytest.mark.npu_only
def test_error_line_of_torch_npu():
    program = """
        import torch, torchtitan_npu
        try:
            torch.arange(5., device="npu").index_select(0, torch.tensor([9], device="npu")).cpu()
        except (RuntimeError, IndexError) as error:
            print(str(error).splitlines()[-1])
    """
    pattern = r"\[ERROR\] \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d \(PID:\d+, Device:-?\d+, RankID:-1\) ERR\d{5} .+"
    line = expect_output(run_python(program))[-1]
    assert re.fullmatch(pattern, line), line
    compact = expect_output(run_python(program, environment={"TORCH_NPU_COMPACT_ERROR_OUTPUT": "1"}))[-1]
    assert "ERR0" not in compact, compact


@pytest.mark.npu_only
def test_memory_exhausted_block_by_block():
    program = """
        import torch, torchtitan_npu
        blocks = []
        try:
            while len(blocks) < 64:
                blocks.append(torch.ones(64 << 20, device="npu"))  # touched: 256 MiB each
        except torch.OutOfMemoryError as error:
            text = str(error)
        print(len(blocks), text.splitlines()[0])
        print(all(block[-1].item() == 1 for block in blocks))
        del blocks
        print(torch.ones(64 << 20, device="npu").sum(dtype=torch.float64).item())
    """
    first, intact, after = expect_output(run_python(program, environment={"NPU_MEMORY_LIMIT": str(1200 << 20)}))
    assert first.startswith("4 NPU out of memory. Tried to allocate 256.00 MiB (NPU 0; 1.17 GiB total capacity; ")
    assert intact == "True" and after == str(float(64 << 20))


@pytest.mark.npu_only
def test_memory_fraction_is_kept():
    program = """
        import torch, torchtitan_npu
        torch.npu.set_per_process_memory_fraction(0.5)
        try:
            torch.empty(700 << 20, dtype=torch.uint8, device="npu")
        except torch.OutOfMemoryError as error:
            print("refused")
        torch.npu.set_per_process_memory_fraction(1.0)
        torch.empty(700 << 20, dtype=torch.uint8, device="npu")
        print("granted")
    """
    assert expect_output(run_python(program, environment={"NPU_MEMORY_LIMIT": str(1 << 30)})) == ["refused", "granted"]


@pytest.mark.npu_only
def test_use_from_new_threads(device):
    results = {}

    def work(number):
        torch.manual_seed(0)
        tensor = torch.full((100, 100), float(number), device=device, requires_grad=True)
        (tensor @ torch.eye(100, device=device)).sum().backward()
        results[number] = (tensor.detach().sum().item(), tensor.grad.sum().item(), torch.npu.current_device())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: (number * 1e4, 1e4, 0) for number in range(4)}
    assert right_result(device)


@pytest.mark.npu_only
@pytest.mark.parametrize("ending", ["", "import os; os.environ['X'] = '1'", "raise SystemExit(0)", "import sys; sys.exit(0)"])
def test_exit_while_work_is_queued(ending):
    program = f"""
import torch, torchtitan_npu
side = torch.npu.Stream()
a = torch.ones(700, 700, device="npu")
for _ in range(50):
    a = a @ a * 1e-3
with torch.npu.stream(side):
    b = torch.ones(1000, 1000, device="npu") * 2
pinned = torch.ones(1 << 20).pin_memory()
c = pinned.to("npu", non_blocking=True)
print("queued", flush=True)
{ending}
"""
    process = run_python(program, timeout=60)
    assert expect_output(process) == ["queued"]
    assert process.stderr == ""


@pytest.mark.npu_only
def test_exit_right_after_a_backward():
    """torch's autograd threads once met the interpreter's end, and two of three such programs were aborted."""
    program = """
import torch
x = torch.randn(4, 10, device="npu", requires_grad=True)
(x * 2).sum().backward()
raise SystemExit(3)
"""
    for _ in range(6):
        process = run_python(program, timeout=60)
        assert (process.returncode, process.stderr) == (3, "")


@pytest.mark.npu_only
def test_exit_with_a_parked_error_says_nothing_false():
    program = """
        import torch, torchtitan_npu
        torch.arange(5., device="npu").index_select(0, torch.tensor([9], device="npu"))
    """
    process = run_python(program, timeout=60)
    assert process.returncode in (0, 1) and "terminate called" not in process.stderr and "Aborted" not in process.stderr


@pytest.mark.npu_only
def test_fallback_is_counted_warned_about_once_and_can_be_switched_off():
    program = """
        import warnings, torch, torchtitan_npu
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            a = torch.tensor([[4.0, 1.0], [1.0, 3.0]], device="npu")
            first, second = torch.linalg.eig(a)[0], torch.linalg.eig(a)[0]
        print(first.device.type, torch.allclose(first.cpu(), torch.linalg.eig(a.cpu())[0]))
        counts = torchtitan_npu.npu.fallback_counts()
        print(sum(count for name, count in counts.items() if "linalg_eig" in name))
        told = "CAUTION: The operator 'aten::linalg_eig' is not currently supported on the NPU backend"
        print(sum(told in str(w.message) for w in caught), sum("CPU" in str(w.message) for w in caught))
    """
    assert expect_output(run_python(program)) == ["npu True", "2", "1 1"]
    refused = run_python(program, environment={"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"})
    assert refused.returncode != 0
    assert "RuntimeError: operator aten::linalg_eig" in refused.stderr and "is not implemented for NPU" in refused.stderr


@pytest.mark.npu_only
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_convolutions_with_huge_padding_are_refused_at_once(dtype):
    """Their padded images would overflow, or take all of the machine's memory; the device stays usable."""
    x, w = torch.randn(1, 1, 9).to(dtype), torch.randn(1, 1, 3).to(dtype)
    for sizes in ({"padding": 2**61, "stride": 2**59}, {"padding": 2**40, "dilation": 2**40}):
        with pytest.raises(RuntimeError, match=r"[01] to 2147483647 are allowed"):
            F.conv1d(x.npu(), w.npu(), **sizes)
    for sizes in ({"padding": (2**31 - 1, 2**31 - 1), "stride": 2**20}, {"padding": 2**25, "dilation": 2**25}):
        with pytest.raises(torch.OutOfMemoryError, match="an image with its padding takes"):
            F.conv2d(x.unsqueeze(2).npu(), w.unsqueeze(2).expand(1, 1, 3, 3).npu(), **sizes)
    for sizes in ({"padding": 2**16, "stride": 2**10}, {"padding": 2**10, "dilation": 2**10}):
        expected = F.conv1d(x.double(), w.double(), **sizes).to(dtype)
        torch.testing.assert_close(F.conv1d(x.npu(), w.npu(), **sizes).cpu(), expected)


@pytest.mark.npu_only
def test_output_padding_of_a_whole_stride_is_refused():
    x, w = torch.randn(1, 8, 7, 7), torch.randn(8, 2, 3, 3)
    for device in ("cpu", "npu"):
        with pytest.raises(RuntimeError, match=r"(?i)output.?padding"):
            F.conv_transpose2d(x.to(device), w.to(device), output_padding=1)
