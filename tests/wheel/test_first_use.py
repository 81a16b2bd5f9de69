"""Check 1: what everybody does first with torch_npu, and the values that it gives."""

import pytest
import torch
from support import run_program, run_script


def test_the_wheel_loads_our_libraries(npu, torch_npu):
    assert torch.npu.is_available() and torch.npu.device_count() == 8
    assert torch.npu.get_device_name(0).startswith("Ascend")
    assert torch.ones(2).npu().device == torch.device("npu:0")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8, torch.bool])
def test_arithmetic(npu, dtype):
    a, b = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype), torch.tensor([1, 1, 0]).to(dtype)
    x, y = a.npu(), b.npu()
    assert torch.equal((x * y).cpu(), a * b)
    assert torch.equal((x == y).cpu(), a == b)
    assert torch.equal(x.t().contiguous().cpu(), a.t())
    if dtype != torch.bool:
        assert torch.equal((x + y).cpu(), a + b) and torch.equal((x + 2 * y).cpu(), a + 2 * b) and torch.equal((x - 1).cpu(), a - 1)
        assert torch.equal(x.sum(1).cpu(), a.sum(1)) and torch.equal(x.max(0).values.cpu(), a.max(0).values)
    if dtype.is_floating_point:
        assert torch.equal((x / 4).cpu(), a / 4) and torch.allclose(x.exp().cpu(), a.exp(), rtol=1e-2 if dtype != torch.float32 else 1e-6)
        torch.testing.assert_close((x @ x.t()).cpu(), a @ a.t())


def test_print_and_items(npu):
    assert repr(torch.tensor([1.5, -2.0, 3.0]).npu()) == "tensor([ 1.5000, -2.0000,  3.0000], device='npu:0')"
    assert repr(torch.tensor([[1, 2], [3, 4]]).npu()) == "tensor([[1, 2],\n        [3, 4]], device='npu:0')"
    assert "nan" in repr(torch.tensor([float("nan"), 1.0]).npu())
    assert torch.tensor(2.5).npu().item() == 2.5 and torch.tensor([7]).npu().item() == 7 and torch.tensor([True]).npu().item() is True
    assert torch.arange(6).npu().view(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_indexing(npu):
    a = torch.arange(24.0).view(4, 6)
    x = a.npu()
    assert torch.equal(x[1:3, ::2].cpu(), a[1:3, ::2]) and torch.equal(x[x > 10].cpu(), a[a > 10])
    assert torch.equal(x[torch.tensor([3, 0]).npu()].cpu(), a[[3, 0]])
    x[0] = -1.0
    x[x > 20] = 0.0
    a[0] = -1.0
    a[a > 20] = 0.0
    assert torch.equal(x.cpu(), a) and torch.equal(x.nonzero().cpu(), a.nonzero())


def test_save_and_load(npu, tmp_path):
    state = {"weight": torch.randn(3, 4).npu(), "steps": torch.tensor(5).npu(), "view": torch.arange(10.0).npu()[2:5]}
    torch.save(state, tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt", weights_only=True)
    for name, tensor in state.items():
        assert loaded[name].device.type == "npu" and torch.equal(loaded[name].cpu(), tensor.cpu())
    on_cpu = torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True)
    assert torch.equal(on_cpu["weight"], state["weight"].cpu()) and on_cpu["weight"].device.type == "cpu"


def test_streams_and_events(npu):
    stream, begin, end = torch.npu.Stream(), torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    x = torch.arange(1000.0).npu()
    begin.record()
    with torch.npu.stream(stream):
        stream.wait_event(begin)
        y = x * 2
        end.record()
    torch.npu.current_stream().wait_stream(stream)
    z = y + 1
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) > 0
    torch.npu.synchronize()
    assert stream.query() and torch.equal(z.cpu(), torch.arange(1000.0) * 2 + 1)


def test_pinned_memory_and_copies_that_dont_wait(npu):
    host = torch.arange(1 << 18, dtype=torch.float32).pin_memory()
    assert host.is_pinned()
    device = host.to("npu", non_blocking=True)
    back = torch.empty_like(host).pin_memory()
    back.copy_(device * 3, non_blocking=True)
    torch.npu.current_stream().synchronize()
    assert torch.equal(back, host * 3)
    assert torch.equal(device.to("npu:1").cpu(), host)


def test_memory_statistics(npu):
    torch.npu.empty_cache()
    torch.npu.reset_peak_memory_stats()
    before = torch.npu.memory_allocated()
    block = torch.empty(1 << 20, dtype=torch.float32, device="npu")
    grown = torch.npu.memory_allocated() - before
    assert 4 << 20 <= grown < (4 << 20) + 4096  # the wheel adds 32 bytes and rounds up
    del block
    assert torch.npu.memory_allocated() == before and torch.npu.max_memory_allocated() == before + grown
    assert torch.npu.memory_reserved() >= 4 << 20 and "PyTorch NPU memory summary" in torch.npu.memory_summary()
    free, total = torch.npu.mem_get_info()
    assert 0 < free <= total


def test_out_of_memory_is_an_error_that_leaves_the_device_usable(npu):
    with pytest.raises(RuntimeError, match="out of memory"):
        torch.empty(1 << 50, dtype=torch.uint8, device="npu")


def test_random_numbers_repeat(npu):
    def draw():
        torch.npu.manual_seed(7)
        return [torch.randn(1000, device="npu").cpu(), torch.rand(1000, device="npu").cpu(), torch.randint(0, 9, (1000,), device="npu").cpu()]

    first, second = draw(), draw()
    for a, b in zip(first, second):
        assert torch.equal(a, b)
    assert abs(first[0].mean()) < 0.2 and abs(first[0].std() - 1) < 0.2 and first[1].min() >= 0 and first[1].max() < 1
    assert first[2].min() == 0 and first[2].max() == 8


def test_a_tensor_shared_with_another_process(tmp_path):
    """torch.multiprocessing hands over memory by its key and an event: the other process adds to the very same memory."""
    script = tmp_path / "share.py"
    script.write_text(
        "import torch, torch_npu, torch.multiprocessing as processes\n"
        "def add_one(given, done):\n"
        "    x = given.get()\n"
        "    x += 1\n"
        "    torch.npu.synchronize()\n"
        "    done.put(x.cpu().tolist())\n"
        "if __name__ == '__main__':\n"
        "    context = processes.get_context('spawn')\n"
        "    given, done = context.Queue(), context.Queue()\n"
        "    process = context.Process(target=add_one, args=(given, done))\n"
        "    process.start()\n"
        "    x = torch.arange(5.0).npu()\n"
        "    given.put(x)\n"
        "    print(done.get(timeout=100))\n"
        "    process.join()\n"
        "    print(x.tolist(), process.exitcode)\n"
    )
    assert run_script(script).stdout.splitlines()[-2:] == ["[1.0, 2.0, 3.0, 4.0, 5.0]", "[1.0, 2.0, 3.0, 4.0, 5.0] 0"]


def test_an_operator_that_we_lack_is_named():
    """Operators of before aclnn go through aclopCompileAndExecute, which must not pretend. A process of its own: the wheel's launch
    queue takes nothing more after an error, as on a card."""
    program = """
        import torch, torch_npu
        try:
            torch_npu.npu_rotated_iou(torch.rand(1, 2, 5).npu(), torch.rand(1, 3, 5).npu())
        except RuntimeError as error:
            print(error)
        print((torch.arange(4.0, device="npu") + 1).tolist())
    """
    text = run_program(program, TASK_QUEUE_ENABLE="0").stdout
    assert "the operator RotatedIou(f32[" in text and "compiler for operators of before aclnn" in text
    assert text.splitlines()[-1] == "[1.0, 2.0, 3.0, 4.0]"
