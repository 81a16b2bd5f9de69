"""LSTM, GRU and plain recurrent networks against torch's CPU: outputs, last states and all gradients, without one fallback."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from conftest import DEVICE
from torch import nn
from torch.nn.utils import rnn

Tensor = torch.Tensor
# f32 sums a little differently; half types are computed step by step in float32 and rounded at each step.
TOLERANCES = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}


@pytest.fixture(autouse=True)
def no_fallback() -> Iterator[None]:
    """Everything in these tests has an operator of its own on the device."""
    if DEVICE == "npu":
        torch.npu.reset_fallback_counts()
    yield
    assert DEVICE != "npu" or torch.npu.fallback_counts() == {}


def assert_close(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> None:
    """Equal up to the tolerance of the type."""
    tolerance = TOLERANCES[dtype]
    torch.testing.assert_close(actual.detach().cpu().double(), expected.detach().double(), rtol=tolerance, atol=tolerance)


def flat(values: Any) -> Iterator[Tensor]:
    """All tensors of nested tuples."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, rnn.PackedSequence):
        yield values.data
    else:
        for value in values:
            yield from flat(value)


def step(module: nn.Module, inputs: Tensor, states: Any, wrap: Callable[[Tensor], Any]) -> tuple[list[Tensor], list[Tensor]]:
    """Results of a forward pass, and the gradients of inputs, states and parameters for a weighted sum of the results."""
    leaves = [inputs, *(() if states is None else flat(states))]
    for leaf in leaves:
        leaf.requires_grad_()
    results = list(flat(module(wrap(inputs), states)))
    weights = [torch.linspace(-1, 1, r.numel(), dtype=torch.float64).reshape(r.shape).to(r) for r in results]
    sum((r * w).sum() for r, w in zip(results, weights, strict=True)).backward()
    return results, [leaf.grad for leaf in [*leaves, *module.parameters()]]  # type: ignore[misc]


def compare(module: nn.Module, inputs: Tensor, states: Any, wrap: Callable[[Tensor], Any] = lambda x: x) -> None:
    """The module on the device and on the CPU give the same; half types are compared with the CPU in float32."""
    dtype = inputs.dtype
    wide = dtype if dtype in (torch.float64, torch.float32) else torch.float32
    here, there = copy.deepcopy(module).to(DEVICE), copy.deepcopy(module).to(wide)

    def moved(value: Any, *where: Any) -> Any:
        return value if value is None else value.detach().to(*where) if isinstance(value, Tensor) else tuple(moved(v, *where) for v in value)

    actual = step(here, moved(inputs, DEVICE), moved(states, DEVICE), wrap)
    expected = step(there, moved(inputs, wide).clone(), moved(states, wide), wrap)
    for mine, theirs in zip([*actual[0], *actual[1]], [*expected[0], *expected[1]], strict=True):
        assert mine.dtype == dtype
        assert_close(mine, theirs, dtype)
    with torch.no_grad():  # nothing is saved then
        for mine, theirs in zip(flat(here(wrap(moved(inputs, DEVICE)), moved(states, DEVICE))), expected[0], strict=True):
            assert_close(mine, theirs, dtype)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"num_layers": 2, "bidirectional": True},
        {"batch_first": True, "bias": False},
        {"num_layers": 3, "batch_first": True, "bidirectional": True, "bias": False},
    ],
)
def test_networks(kind: type[nn.RNNBase], how: dict[str, Any], dtype: torch.dtype) -> None:
    """Layers, directions, with and without biases and given states."""
    torch.manual_seed(1)
    module = kind(5, 7, **how).to(dtype)
    inputs = torch.randn(4, 3, 5).to(dtype)
    batch = 4 if how.get("batch_first") else 3
    one = torch.randn(module.num_layers * (2 if module.bidirectional else 1), batch, 7).to(dtype)
    compare(module, inputs, None)
    compare(module, inputs, (one, one / 2) if kind is nn.LSTM else one)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_relu_network(dtype: torch.dtype) -> None:
    """The other function of the plain network."""
    torch.manual_seed(2)
    compare(nn.RNN(5, 7, 2, nonlinearity="relu", bidirectional=True).to(dtype), torch.randn(4, 3, 5, dtype=dtype), None)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_projection(bidirectional: bool, dtype: torch.dtype) -> None:
    """An LSTM whose hidden state is projected."""
    torch.manual_seed(3)
    module = nn.LSTM(5, 7, 2, proj_size=3, bidirectional=bidirectional).to(dtype)
    count = 4 if bidirectional else 2
    states = torch.randn(count, 3, 3, dtype=dtype), torch.randn(count, 3, 7, dtype=dtype)
    compare(module, torch.randn(4, 3, 5, dtype=dtype), states)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("how", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}])
def test_packed_sequences(kind: type[nn.RNNBase], how: dict[str, Any], dtype: torch.dtype) -> None:
    """Sequences of different lengths, sorted or not."""
    torch.manual_seed(4)
    module = kind(5, 7, **how).to(dtype)
    first = bool(how.get("batch_first"))
    for lengths, is_sorted in (([4, 3, 1], True), ([2, 4, 3], False)):
        inputs = torch.randn(3, 4, 5, dtype=dtype) if first else torch.randn(4, 3, 5, dtype=dtype)

        def wrap(x: Tensor, lengths: list[int] = lengths, is_sorted: bool = is_sorted) -> rnn.PackedSequence:
            return rnn.pack_padded_sequence(x, torch.tensor(lengths), batch_first=first, enforce_sorted=is_sorted)

        compare(module, inputs, None, wrap)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(kind: type[nn.RNNCellBase], bias: bool, dtype: torch.dtype) -> None:
    """Single cells, with and without biases."""
    torch.manual_seed(5)
    module = kind(5, 7, bias=bias).to(dtype)
    state = torch.randn(3, 7).to(dtype)
    compare(module, torch.randn(3, 5).to(dtype), (state, state / 2) if kind is nn.LSTMCell else state)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_second_gradient(kind: type[nn.RNNBase]) -> None:
    """The gradient of a gradient."""
    torch.manual_seed(6)
    module = kind(2, 3).double()
    values = []
    for where in ("cpu", DEVICE):
        here, x = copy.deepcopy(module).to(where), torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 2, 2).to(where).requires_grad_()
        (grad,) = torch.autograd.grad(here(x)[0].pow(2).sum(), x, create_graph=True)
        values.append(torch.autograd.grad(grad.pow(2).sum(), x)[0].cpu())
    assert_close(values[1], values[0], torch.float64)


@pytest.mark.npu_only
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_dropout_between_layers(kind: type[nn.RNNBase]) -> None:
    """Dropout acts between layers in training only, and repeats with the seed."""
    torch.manual_seed(7)
    module = kind(5, 64, 2, dropout=0.5).to(DEVICE)
    x = torch.randn(4, 3, 5, device=DEVICE)
    runs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        runs.append(module(x)[0].cpu())
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])
    module.eval()
    assert torch.equal(module(x)[0].cpu(), module(x)[0].cpu())


class Classifier(nn.Module):
    """Words, two LSTM layers both ways, a decision."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True)
        self.decision = nn.Linear(48, 5)

    def forward(self, words: Tensor) -> Tensor:
        """Scores of the five classes."""
        return self.decision(self.lstm(self.words(words))[0].mean(1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_classifier(dtype: torch.dtype) -> None:
    """Scores in evaluation, and the parameters after three steps of Adam: float64 to 1e-9, float32 as near to it as torch's."""
    torch.manual_seed(8)
    model, words, labels = Classifier().double(), torch.randint(0, 50, (8, 12)), torch.randint(0, 5, (8,))

    def train(where: str, dtype: torch.dtype) -> list[Tensor]:
        network = copy.deepcopy(model).to(where, dtype)
        results = [network.eval()(words.to(where)).detach().cpu().double()]
        optimizer = torch.optim.SGD(network.train().parameters(), lr=0.5, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(words.to(where)), labels.to(where)).backward()
            optimizer.step()
        return results + [p.detach().cpu().double() for p in network.parameters()]

    exact = train("cpu", torch.float64)
    mine = train(DEVICE, dtype)
    if dtype == torch.float64:
        for a, b in zip(mine, exact, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
        return
    theirs = train("cpu", dtype)
    for a, b, c in zip(mine, theirs, exact, strict=True):
        assert (a - c).abs().max() <= 3 * (b - c).abs().max() + 1e-7


@pytest.mark.npu_only
def test_fake_tensors() -> None:
    """Tensors without memory get shapes, not a run of the network."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        module = nn.LSTM(5, 7, 2, device=DEVICE)
        assert module(torch.empty(4, 3, 5, device=DEVICE))[0].shape == (4, 3, 7)


def test_gradient_of_last_states_only() -> None:
    """Outputs whose gradient isn't defined."""
    torch.manual_seed(9)
    module, x = nn.LSTM(5, 7, 2, bidirectional=True).double(), torch.randn(4, 3, 5, dtype=torch.float64)
    grads = []
    for where in ("cpu", DEVICE):
        here, leaf = copy.deepcopy(module).to(where), x.clone().to(where).requires_grad_()
        here(leaf)[1][1].pow(2).sum().backward()
        grads.append([leaf.grad, *[p.grad for p in here.parameters()]])
    for mine, theirs in zip(*reversed(grads), strict=True):
        assert_close(mine, theirs, torch.float64)
