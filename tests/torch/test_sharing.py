"""Tensors of the device sent between processes: copies through the CPU's shared memory, and an error where the sender sees it."""

import pytest
from support import expect_output, run_script

pytestmark = pytest.mark.npu_only

PROGRAM = """
import torch, torchtitan_npu
import torch.multiprocessing as multiprocessing

def work(given, back):
    tensor, part, layer, empty = given.get(timeout=100)
    assert tensor.device == torch.device("npu", 0) and part.device == tensor.device and layer.weight.requires_grad
    tensor.add_(1)  # `part` is a view of the same memory here as well
    back.put((part, layer(part).detach().cpu().tolist(), tuple(empty.shape), tensor.dtype, torch.ones(1, device="npu:1")))
    back.close()
    given.get(timeout=100)  # until the other side has taken what it was sent

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    given, back = context.Queue(), context.Queue()
    process = context.Process(target=work, args=(given, back))
    process.start()
    tensor = torch.arange(6.0, device="npu").view(2, 3).T
    layer = torch.nn.Linear(2, 1, bias=False).to("npu")
    torch.nn.init.ones_(layer.weight)
    given.put((tensor, tensor[1:], layer, torch.empty(0, 3, device="npu")))
    part, sums, shape, dtype, other = back.get(timeout=100)
    print(part.device, part.tolist(), sums, shape, dtype, other.device)
    print(tensor.tolist())
    given.put("done")
    process.join(100)
    print(process.exitcode)
    from multiprocessing.reduction import ForkingPickler
    try:
        ForkingPickler.dumps((tensor * torch.ones(1, device="npu", requires_grad=True)))
    except RuntimeError as error:
        print("leaf" in str(error))
"""


def test_queue_of_a_spawned_process(tmp_path, device):
    path = tmp_path / "sender.py"
    path.write_text(PROGRAM)
    process = run_script(path, timeout=300, environment={"NPU_DEVICE_COUNT": "2"})
    assert expect_output(process) == [
        "npu:0 [[2.0, 5.0], [3.0, 6.0]] [[7.0], [9.0]] (0, 3) torch.float32 npu:1",
        "[[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]",
        "0",
        "True",
    ]
    assert "Traceback" not in process.stderr
