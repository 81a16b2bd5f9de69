"""Tensors of different devices in one call: refused in torch's words wherever they stand; 0-dim CPU tensors and CPU indices are allowed."""

import pytest
import torch
from support import expect_output, run_python
from torch.nn import functional as F

pytestmark = pytest.mark.npu_only

REFUSAL = r"same device|should be the same|to have (npu|cpu)\S* Device"  # some checks are torch's own, with words of their own


def numbers(*sizes):
    """The same every time, no two alike, between 0 and 1."""
    count = torch.Size(sizes).numel()
    return ((torch.arange(count) * 7919 % 1009 + 1) / 1010.0).view(sizes)


def whole(most, *sizes):
    return (torch.arange(torch.Size(sizes).numel()) * 7 % most).view(sizes)


M, S, IMAGE, MASK = numbers(4, 4), numbers(4), numbers(2, 4, 6, 6), whole(2, 4, 4).bool()
# name -> operator and its tensors, each of which is on another device than the rest in turn
TABLE = {
    "add": (torch.add, M, S),
    "add in place": (lambda a, b: a.clone().add_(b), M, S),
    "sub": (torch.sub, M, M),
    "div": (torch.div, M, S),
    "pow": (torch.pow, M, M),
    "maximum": (torch.maximum, M, M),
    "equal elements": (torch.eq, M, M),
    "logical and": (torch.logical_and, MASK, M),
    "floor divide": (torch.floor_divide, M, M),
    "atan2": (torch.atan2, M, M),
    "clamp": (torch.clamp, M, S, S),
    "addcmul": (torch.addcmul, M, M, M),
    "addcdiv": (torch.addcdiv, M, M, S),
    "lerp": (torch.lerp, M, M, M),
    "where": (torch.where, MASK, M, S),
    "masked fill by mask": (lambda a, m: a.masked_fill(m, 2.0), M, MASK),
    "masked scatter": (torch.masked_scatter, M, MASK, M),
    "masked select": (torch.masked_select, M, MASK),
    "cat": (lambda a, b: torch.cat([a, b]), M, M),
    "stack": (lambda a, b: torch.stack([a, b]), M, M),
    "foreach": (lambda a, b: torch._foreach_add([a, a], [b, b])[1], M, M),
    "gather": (lambda a, i: torch.gather(a, 1, i), M, whole(4, 4, 2)),
    "index select": (lambda a, i: torch.index_select(a, 0, i), M, whole(4, 3)),
    "index add": (lambda a, i, b: torch.index_add(a, 0, i, b), M, whole(4, 4), M),
    "index copy": (lambda a, i, b: torch.index_copy(a, 0, i, b), M, torch.arange(4), M),
    "index fill": (lambda a, i: torch.index_fill(a, 0, i, 1.0), M, whole(4, 3)),
    "scatter": (lambda a, i, b: torch.scatter(a, 0, i, b), M, whole(4, 4, 4), M),
    "scatter add": (lambda a, i, b: torch.scatter_add(a, 0, i, b), M, whole(4, 4, 4), M),
    "take": (torch.take, M, whole(16, 5)),
    "take along dim": (lambda a, i: torch.take_along_dim(a, i, 1), M, whole(4, 4, 2)),
    "bucketize": (torch.bucketize, M, S.sort().values),
    "isin": (torch.isin, M, S),
    "mm": (torch.mm, M, M),
    "matmul": (torch.matmul, numbers(2, 3, 4), M),
    "bmm": (torch.bmm, numbers(2, 3, 4), numbers(2, 4, 5)),
    "addmm": (torch.addmm, M, M, M),
    "baddbmm": (torch.baddbmm, numbers(2, 3, 5), numbers(2, 3, 4), numbers(2, 4, 5)),
    "addbmm": (torch.addbmm, numbers(3, 5), numbers(2, 3, 4), numbers(2, 4, 5)),
    "mv": (torch.mv, M, S),
    "dot": (torch.dot, S, S),
    "vdot": (torch.vdot, S, S),
    "outer": (torch.outer, S, S),
    "addr": (torch.addr, M, S, S),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), M, M),
    "cross": (torch.linalg.cross, numbers(4, 3), numbers(4, 3)),
    "cdist": (torch.cdist, M, M),
    "solve": (lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), M + 1, M),
    "linear": (F.linear, M, M, S),
    "bilinear": (F.bilinear, M, M, numbers(3, 4, 4), numbers(3)),
    "embedding": (lambda i, w: F.embedding(i, w), whole(4, 3), M),
    "embedding bag": (lambda i, w, o: F.embedding_bag(i, w, o), whole(4, 4), M, torch.tensor([0, 2])),
    "conv1d": (F.conv1d, numbers(2, 4, 8), numbers(3, 4, 3), numbers(3)),
    "conv1d without batch": (F.conv1d, numbers(4, 8), numbers(3, 4, 3), numbers(3)),
    "conv2d": (F.conv2d, IMAGE, numbers(3, 4, 3, 3), numbers(3)),
    "conv2d without batch": (F.conv2d, IMAGE[0], numbers(3, 4, 3, 3), numbers(3)),
    "conv2d dilated": (lambda x, w, b: F.conv2d(x, w, b, dilation=2), IMAGE, numbers(3, 4, 3, 3), numbers(3)),
    "conv2d in groups": (lambda x, w, b: F.conv2d(x, w, b, groups=4), IMAGE, numbers(4, 1, 3, 3), numbers(4)),
    "conv3d": (F.conv3d, numbers(1, 2, 4, 4, 4), numbers(3, 2, 2, 2, 2), numbers(3)),
    "conv_transpose1d": (F.conv_transpose1d, numbers(2, 4, 5), numbers(4, 3, 3), numbers(3)),
    "conv_transpose2d": (F.conv_transpose2d, IMAGE, numbers(4, 3, 3, 3), numbers(3)),
    "conv_transpose3d": (F.conv_transpose3d, numbers(1, 2, 3, 3, 3), numbers(2, 3, 2, 2, 2), numbers(3)),
    "batch norm": (lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), IMAGE, S, S, S, S),
    "batch norm in training": (lambda x, m, v: F.batch_norm(x, m.clone(), v.clone(), training=True), IMAGE, S, S),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (4,), w, b), M, S, S),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b), IMAGE, S, S),
    "prelu": (F.prelu, IMAGE, S),
    "grid sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), IMAGE, numbers(2, 3, 3, 2)),
    "max unpool": (lambda x, i: F.max_unpool2d(x, i, 2), numbers(1, 1, 2, 2), torch.tensor([[[[0, 3], [8, 11]]]])),
    "attention": (F.scaled_dot_product_attention, numbers(2, 3, 4), numbers(2, 5, 4), numbers(2, 5, 4), numbers(3, 5)),
    "mse loss": (F.mse_loss, M, M),
    "l1 loss": (F.l1_loss, M, M),
    "smooth l1 loss": (F.smooth_l1_loss, M, M),
    "huber loss": (F.huber_loss, M, M),
    "binary cross entropy": (F.binary_cross_entropy, M, M, M),
    "cross entropy": (lambda x, t, w: F.cross_entropy(x, t, w), M, whole(4, 4), S),
    "cross entropy of images": (lambda x, t: F.cross_entropy(x, t), IMAGE, whole(4, 2, 6, 6)),
    "cross entropy of probabilities": (F.cross_entropy, M, M),
    "nll loss": (F.nll_loss, M, whole(4, 4)),
    "kl_div": (lambda x, t: F.kl_div(x, t, reduction="sum"), M, M),
    "multi margin loss": (F.multi_margin_loss, M, whole(4, 4)),
    "triplet loss": (F.triplet_margin_loss, M, M + 1, M + 2),
    "rnn": (
        lambda x, h, *w: torch.rnn_tanh(x, h, list(w), True, 1, 0.0, False, False, False)[0],
        numbers(5, 2, 4),
        numbers(1, 2, 3),
        numbers(3, 4),
        numbers(3, 3),
        numbers(3),
        numbers(3),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_mixing_is_refused_at_every_place(name, device):
    call, *tensors = TABLE[name]
    there = [tensor.to(device) for tensor in tensors]
    for place in range(len(tensors)):
        for odd, rest in ((tensors, there), (there, tensors)):
            mixed = [odd[i] if i == place else rest[i] for i in range(len(tensors))]
            with pytest.raises(RuntimeError, match=REFUSAL):
                print(f"place {place}:", call(*mixed))  # seen only when nothing was raised
    torch.testing.assert_close(call(*there).cpu(), call(*tensors), rtol=1e-4, atol=1e-5)


GATED = {
    "lstm": (
        lambda x, h, c, *w: torch.lstm(x, (h, c), list(w), True, 1, 0.0, False, False, False)[0],
        numbers(5, 2, 4),
        numbers(1, 2, 3),
        numbers(1, 2, 3),
        numbers(12, 4),
        numbers(12, 3),
        numbers(12),
        numbers(12),
    ),
    "gru": (
        lambda x, h, *w: torch.gru(x, h, list(w), True, 1, 0.0, False, False, False)[0],
        numbers(5, 2, 4),
        numbers(1, 2, 3),
        numbers(9, 4),
        numbers(9, 3),
        numbers(9),
        numbers(9),
    ),
}


@pytest.mark.parametrize("name", GATED)
def test_mixing_is_refused_by_gated_networks(name, device):
    call, *tensors = GATED[name]
    there = [tensor.to(device) for tensor in tensors]
    for place in range(3 if name == "lstm" else 2):
        for odd, rest in ((tensors, there), (there, tensors)):
            with pytest.raises(RuntimeError, match=REFUSAL):
                call(*[odd[i] if i == place else rest[i] for i in range(len(tensors))])


OUTPUTS = {
    "fast": lambda a, out: torch.add(a, a, out=out),
    "structured": lambda a, out: torch.mm(a, a, out=out),
    "fallback": lambda a, out: torch.linalg.solve_triangular(a, a, upper=True, out=out),
    "in place": lambda a, out: out.mul_(a),
    "in place, filling": lambda a, out: out.masked_fill_(a > 0.5, 1.0),
    "random": lambda a, out: out.bernoulli_(a),
    "without meta function": lambda a, out: torch.abs(a, out=out),
    "indexing": lambda a, out: torch.masked_select(a, a > 0.5, out=out),
    "pair": lambda a, out: torch.median(a, 0, out=(out, torch.empty(4, dtype=torch.long, device=out.device))),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_results_elsewhere_are_refused(name, device):
    for given, out in ((M.to(device), torch.zeros(4, 4)), (M, torch.zeros(4, 4, device=device))):
        with pytest.raises(RuntimeError, match="device"):
            OUTPUTS[name](given, out)
        assert out.sum() == 0


def test_written_0_dim_tensor_stays_where_it_is(device):
    """A 0-dim CPU tensor may be read by operators of the device; written to, a copy would swallow the result."""
    host = torch.tensor(0.0)
    with pytest.raises(RuntimeError, match="device"):
        host.add_(torch.tensor(1.0, device=device))
    with pytest.raises(RuntimeError, match="device"):
        host.masked_fill_(torch.tensor(True, device=device), 3.0)
    with pytest.raises(RuntimeError, match="device"):
        torch.median(torch.ones(3, device=device), 0, out=(host, torch.tensor(0)))
    assert host.item() == 0.0
    assert host.fill_(torch.tensor(2.0, device=device)).item() == 2.0  # torch's fill_ takes its value from anywhere
    assert torch.zeros(2, device=device).fill_(torch.tensor(2.0)).tolist() == [2.0, 2.0]


ALLOWED = {
    "add": lambda a, s: a + s,
    "reversed": lambda a, s: s - a,
    "in place": lambda a, s: a.clone().mul_(s),
    "where": lambda a, s: torch.where(a > s, a, s),
    "condition": lambda a, s: torch.where(s > 0, a, a),
    "masked fill": lambda a, s: a.masked_fill(a > 0.5, s),
    "index put": lambda a, s: a.index_put((torch.tensor([0, 2], device=a.device),), s),
    "lerp": lambda a, s: torch.lerp(a, a * 2, s),
    "comparison": lambda a, s: a < s,
    "fallback, first": lambda a, s: torch.ops.aten.huber_loss(s, a, 0),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_0_dim_cpu_tensors_are_read(name, device):
    scalar = torch.tensor(0.6)
    got = ALLOWED[name](M.to(device), scalar)
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), ALLOWED[name](M, scalar))


def test_indices_may_be_on_the_cpu(device):
    index, table = torch.tensor([3, 1]), M.to(device)
    assert torch.equal(table[index].cpu(), M[index]) and torch.equal(table[MASK].cpu(), M[MASK])
    table[index] = 5.0
    assert table[index].tolist() == [[5.0] * 4] * 2
    for use in (lambda i: M[i], lambda i: M.clone().index_put_((i,), torch.tensor(1.0)), lambda i: M.index_put((i,), M[:2])):
        for wrong in (index.to(device), torch.tensor([True, False, True, False], device=device)):
            with pytest.raises(RuntimeError, match="same device"):
                use(wrong)


def test_second_device_is_another_device():
    """Indices, operands, outputs and generators of npu:1 are refused for tensors of npu:0."""
    program = """
        import torch, torchtitan_npu
        first, second = torch.arange(6.0, device="npu:0").view(2, 3), torch.arange(6.0, device="npu:1").view(2, 3)
        index = torch.tensor([1, 0], device="npu:1")
        other = torch.Generator(device="npu:1")
        mixed = {
            "read": lambda: first[index], "mask": lambda: first[second > 2],
            "write": lambda: first.index_put_((index,), torch.tensor(1.0)), "assigned": lambda: first.index_put_((index[:1],), second[:1]),
            "select": lambda: first.index_select(0, index), "add": lambda: first + second, "mm": lambda: first @ second.T,
            "0-dim": lambda: first + second[0, 0], "out": lambda: torch.add(first, 1, out=second), "cat": lambda: torch.cat([first, second]),
            "normal": lambda: first.normal_(generator=other), "rand": lambda: torch.rand(3, device="npu:0", generator=other),
            "permutation": lambda: torch.randperm(3, device="npu:0", generator=other),
            "draw": lambda: torch.multinomial(first + 1, 1, generator=other),
            "fallback": lambda: torch.nn.functional.huber_loss(first, second),
        }
        for name, call in mixed.items():
            try:
                print(name, "gave", call())
            except RuntimeError as error:
                assert "device" in str(error), error
        assert first.tolist() == [[0, 1, 2], [3, 4, 5]] and second.tolist() == [[0, 1, 2], [3, 4, 5]]
        own = torch.Generator(device="npu:1").manual_seed(3)
        drawn = torch.rand(4, device="npu:1", generator=own)
        assert torch.equal(drawn.cpu(), torch.rand(4, device="npu:0", generator=torch.Generator(device="npu:0").manual_seed(3)).cpu())
        print("done")
    """
    assert expect_output(run_python(program, environment={"NPU_DEVICE_COUNT": "2"})) == ["done"]
