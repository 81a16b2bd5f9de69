"""8-bit floats: conversions bit for bit as on the CPU, copies, views and moves; arithmetic that the CPU lacks is refused."""

import copy
import io

import pytest
import torch

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu]
REAL = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def codes(dtype):
    return torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)


def matrix(dtype):
    return (torch.arange(24).reshape(4, 6) / 4 - 2).to(dtype)


def same(got, want):
    """Equal in type, shape and all bits."""
    got = got.cpu()
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype in FLOAT8:
        got, want = got.contiguous().view(torch.uint8), want.contiguous().view(torch.uint8)
    return torch.equal(got, want)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("target", [*REAL, torch.bool, torch.complex64, *FLOAT8], ids=str)
def test_every_code_widens_as_on_the_cpu(dtype, target, device):
    got, want = codes(dtype).to(device).to(target).cpu(), codes(dtype).to(target)
    if target.is_complex:
        got, want = torch.view_as_real(got), torch.view_as_real(want)
    if target in REAL:
        number = ~want.isnan()  # in float16 the bits of a NaN are the machine's business
        assert torch.equal(got.isnan(), want.isnan())
        got, want = (t.view(WORDS[target.itemsize]) for t in (got, want))
        if target == torch.float16:
            got, want = got[number], want[number]
    assert same(got, want) or (target.is_complex and torch.equal(got.nan_to_num(7), want.nan_to_num(7)))


@pytest.mark.parametrize("dtype", FLOAT8[:2], ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_codes_become_integers(dtype, target, device):
    source = codes(dtype)
    source = source[(source.float() >= (0 if target == torch.uint8 else -100)) & (source.float() <= 100)]
    assert same(source.to(device).to(target), source.to(target))


def float_bits(low):
    """Floats of every sign, exponent and upper mantissa; the lower bits as given."""
    return ((torch.arange(65536, dtype=torch.int64) << 16) + low).to(torch.int32).view(torch.float32)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_floats_narrow_as_on_the_cpu(dtype, device):
    for low in (0, 1, 0x7FFF, 0x8000, 0xFFFF):
        values = float_bits(low)
        assert same(values.to(device).to(dtype), values.to(dtype)), f"lower bits {low:#x}"
        assert same(values.double().to(device).to(dtype), values.double().to(dtype))
    for half in (torch.float16, torch.bfloat16):
        values = torch.arange(-32768, 32768).to(torch.int16).view(half)
        assert same(values.to(device).to(dtype), values.to(dtype))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_doubles_round_twice(dtype, device):
    """Through float32, as torch's do: a double just above the middle between two codes may become the middle first."""
    exact = codes(dtype).double()
    exact = exact[exact.isfinite()].sort().values
    middles = (exact[1:] + exact[:-1]) / 2
    values = torch.cat([middles, *(middles * (1 + sign * 2.0**-power) for power in (23, 24, 25, 30, 50) for sign in (1, -1))])
    assert same(values.to(device).to(dtype), values.to(dtype))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("source", [*INTEGERS, torch.bool, torch.complex64], ids=str)
def test_other_types_narrow(dtype, source, device):
    values = torch.arange(-600, 600).to(source)
    want = values.real.to(dtype) if source.is_complex else values.to(dtype)
    assert same(values.to(device).to(dtype), want)


VIEWS = {
    "whole": lambda t: t,
    "transposed": lambda t: t.t(),
    "stepped": lambda t: t[1:, ::2],
    "column": lambda t: t[:, 2],
    "element": lambda t: t[2, 3],
    "empty": lambda t: t[1:1],
    "expanded": lambda t: t[:1].expand(4, 6),
}


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_travel_and_convert(dtype, view, device):
    host = matrix(dtype)
    there = host.to(device)
    assert same(view(there), view(host)) and same(view(host).to(device), view(host))
    assert same(view(there).clone(), view(host)) and same(view(there).contiguous(), view(host).contiguous())
    assert same(view(there).float(), view(host).float())
    assert same(view(there.float()).to(dtype), view(host.float()).to(dtype))
    target = torch.zeros(*view(host).shape, 2, dtype=dtype, device=device)[..., 1]
    assert same(target.copy_(view(there).bfloat16()), view(host))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_bytes_are_seen_through(dtype, device):
    there = codes(dtype).to(device)
    assert same(there.view(torch.uint8), torch.arange(256).to(torch.uint8))
    assert same(there.view(torch.uint8).flip(0).view(dtype), codes(dtype).view(torch.uint8).flip(0).view(dtype))
    assert same(there.view(torch.int32), codes(dtype).view(torch.int32))


INDEX, MASK = torch.tensor([2, 0, 3]), torch.tensor([True, False, True, True])
MOVES = {
    "zeros": lambda t: torch.zeros(3, dtype=t.dtype, device=t.device),
    "ones": lambda t: torch.ones(2, 3, dtype=t.dtype, device=t.device),
    "full": lambda t: torch.full((3,), 1.3, dtype=t.dtype, device=t.device),
    "tensor": lambda t: torch.tensor([0.3, -7.1], dtype=t.dtype, device=t.device),
    "eye": lambda t: torch.eye(3, dtype=t.dtype, device=t.device),
    "empty like": lambda t: torch.empty_like(t).copy_(t),
    "fill": lambda t: t.clone().fill_(2.3),
    "fill strided": lambda t: t.clone().t()[::2].fill_(-2.3),
    "fill tensor": lambda t: t.clone().fill_(torch.tensor(-3.3)),
    "zero": lambda t: t.clone().zero_(),
    "fill diagonal": lambda t: t.clone().fill_diagonal_(1.0),
    "cat": lambda t: torch.cat([t, t[:1]]),
    "cat columns": lambda t: torch.cat([t.t(), t.t()], 1),
    "cat with nothing": lambda t: torch.cat([t, torch.empty(0, dtype=t.dtype, device=t.device)]),
    "cat into floats": lambda t: torch.cat([t, t], out=torch.empty(8, 6, device=t.device)),
    "stack": lambda t: torch.stack([t, t], 1),
    "index": lambda t: t[INDEX.to(t.device)],
    "index columns": lambda t: t[:, INDEX.to(t.device)],
    "index pairs": lambda t: t[INDEX.to(t.device), INDEX.to(t.device)],
    "mask": lambda t: t[MASK.to(t.device)],
    "masked select": lambda t: t.masked_select(MASK.to(t.device)[:, None]),
    "index select": lambda t: t.index_select(1, INDEX.to(t.device)),
    "embedding": lambda t: torch.nn.functional.embedding(INDEX.to(t.device), t),
    "index put": lambda t: t.index_put((INDEX.to(t.device),), t[1]),
    "assign": lambda t: t.clone().index_put_((INDEX.to(t.device),), torch.tensor(1.0, device=t.device).to(t.dtype)),
    "where": lambda t: torch.where(MASK.to(t.device)[:, None], t, t.flip(0)),
    "where number": lambda t: torch.where(MASK.to(t.device)[:, None], t, 2.3),
    "flip": lambda t: t.flip(0),
    "roll": lambda t: t.roll((1, 2), (0, 1)),
    "repeat": lambda t: t.repeat(2, 1, 3),
    "repeat interleave": lambda t: t.repeat_interleave(2, 1),
    "pad": lambda t: torch.nn.functional.pad(t, (1, 2), value=0.7),
    "diagonal": lambda t: t[0].diag(),
    "select scatter": lambda t: t.select_scatter(t[0], 0, 1),
    "unfold": lambda t: t.unfold(1, 2, 2).contiguous(),
    "copied lists": lambda t: copied_list(t)[0],
    "deepcopy": copy.deepcopy,
    "saved": lambda t: saved(t),
    "equal elements": lambda t: t == t.flip(0),
    "equal number": lambda t: t == 1.3,
    "different elements": lambda t: t != t,
    "nan": lambda t: t.isnan(),
    "any": lambda t: t.any(),
    "all": lambda t: t.all(1),
    "sum in float32": lambda t: t.sum(dtype=torch.float32),
    "abs": lambda t: t.abs(),
    "product": lambda t: t * t.flip(0),
}


def copied_list(t):
    """_foreach_copy_ from floats, _foreach_zero_ behind it."""
    lists = [t.clone(), t.clone()]
    torch._foreach_copy_(lists, [t.float(), t.float() * 2])
    torch._foreach_zero_(lists[1:])
    assert not lists[1].view(torch.uint8).any()
    return lists


def saved(t):
    """Through torch.save."""
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    return torch.load(file, map_location=t.device)


@pytest.mark.parametrize("dtype", FLOAT8[:2], ids=str)
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_moves_and_comparisons(dtype, move, device):
    host = matrix(dtype)
    assert same(move(host.to(device)), move(host))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_python_values(dtype, device):
    host = matrix(dtype)
    there = host.to(device)
    assert there[1, 5].item() == host[1, 5].item() and there.tolist() == host.tolist()
    assert bool(there[3, 3]) and int(there[3, 3]) == int(host[3, 3]) and float(there[0, 1]) == float(host[0, 1])
    assert f"device='{there.device}'" in repr(there) and repr(there.cpu()) == repr(host)
    assert repr(there).split("]]")[0] == repr(host).split("]]")[0]
    assert torch.equal(there, there.clone()) and not torch.equal(there, there.flip(0))
    assert there.element_size() == 1 and there.new_empty(3, 5).numel() == 15


REFUSED = {
    "add": lambda t: t + t,
    "scale": lambda t: t * 2.0,
    "divide": lambda t: t / t,
    "negate": lambda t: -t,
    "exp": lambda t: t.exp(),
    "relu": lambda t: t.relu(),
    "clamp": lambda t: t.clamp(0, 1),
    "sum": lambda t: t.sum(),
    "mean": lambda t: t.mean(),
    "maximum": lambda t: t.max(),
    "less": lambda t: t < t,
    "at least": lambda t: t >= 1.0,
    "softmax": lambda t: t.softmax(0),
    "sort": lambda t: t.sort(),
    "cumsum": lambda t: t.cumsum(0),
    "gather": lambda t: t.gather(0, torch.zeros(1, 3, dtype=torch.long, device=t.device)),
    "scatter add": lambda t: t.scatter_add(0, torch.zeros(1, 3, dtype=torch.long, device=t.device), t),
    "masked fill": lambda t: t.masked_fill(MASK.to(t.device)[:, None], 1.0),
    "uniform": lambda t: t.uniform_(),
    "add lists": lambda t: torch._foreach_add_([t], 1.0),
    "triangle": lambda t: t.tril(),
    "mixed sum": lambda t: t + t.float(),
    "mixed comparison": lambda t: t == t.float(),
    "mixed cat": lambda t: torch.cat([t, t.float()]),
}


@pytest.mark.parametrize("dtype", FLOAT8[:2], ids=str)
@pytest.mark.parametrize("operation", REFUSED.values(), ids=REFUSED)
def test_arithmetic_is_refused(dtype, operation, device):
    for place in ("cpu", device):
        with pytest.raises((RuntimeError, NotImplementedError), match=r"(?i)float8|f8_e"):
            operation(matrix(dtype).to(place))


@pytest.mark.parametrize("operation", [lambda t: t @ t.t(), lambda t: t.index_put((INDEX.to(t.device),), t[0], accumulate=True)])
def test_what_only_the_cpu_computes_says_so(operation, device):
    with pytest.raises(RuntimeError, match="f8_e4m3fn"):
        operation(matrix(torch.float8_e4m3fn).to(device))


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz], ids=str)
def test_formats_without_a_type_in_cann_name_those_that_are_there(dtype, device):
    for make in (lambda: torch.zeros(3, dtype=dtype, device=device), lambda: torch.ones(3, device=device).to(dtype)):
        with pytest.raises(TypeError, match=r"not supported on npu.*Float8_e4m3fn, Float8_e5m2"):
            make()
