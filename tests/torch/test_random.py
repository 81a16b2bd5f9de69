"""Random numbers: seeds reach the device, states travel, numbers follow their distribution."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

DRAWS = {
    "rand": lambda d: torch.rand(1000, device=d),
    "randn": lambda d: torch.randn(1000, device=d),
    "randint": lambda d: torch.randint(0, 1000, (1000,), device=d),
    "randperm": lambda d: torch.randperm(1000, device=d),
    "dropout": lambda d: nn.functional.dropout(torch.ones(1000, device=d), 0.5),
    "bernoulli": lambda d: torch.bernoulli(torch.full((1000,), 0.5, device=d)),
    "bernoulli_": lambda d: torch.empty(1000, device=d).bernoulli_(0.3),
    "uniform_": lambda d: torch.empty(1000, device=d).uniform_(-1, 1),
    "normal_": lambda d: torch.empty(1000, device=d).normal_(2, 3),
    "exponential_": lambda d: torch.empty(1000, device=d).exponential_(),
    "random_": lambda d: torch.empty(1000, device=d, dtype=torch.int64).random_(5, 50),
    "normal tensor": lambda d: torch.normal(torch.zeros(1000, device=d), 1.0),
}


@pytest.mark.parametrize("name", DRAWS)
def test_seed_decides(name, device):
    draws = []
    for seed in (11, 11, 12):
        torch.manual_seed(seed)
        draws.append(DRAWS[name](device))
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    assert not torch.equal(DRAWS[name](device), draws[2]), "the state does not advance"


@pytest.mark.parametrize(
    "name, mean, deviation, low, high",
    [
        ("rand", 0.5, 0.289, 0, 1),
        ("randn", 0, 1, -6, 6),
        ("uniform_", 0, 0.577, -1, 1),
        ("normal_", 2, 3, -16, 20),
        ("exponential_", 1, 1, 0, 30),
        ("bernoulli", 0.5, 0.5, 0, 1),
        ("bernoulli_", 0.3, 0.458, 0, 1),
        ("dropout", 1, 1, 0, 2),
        ("randint", 499.5, 288.7, 0, 999),
        ("random_", 27, 12.98, 5, 49),
        ("randperm", 499.5, 288.8, 0, 999),
    ],
)
def test_distributions(name, mean, deviation, low, high, device):
    torch.manual_seed(7)
    sample = torch.cat([DRAWS[name](device).cpu().double() for _ in range(40)])
    tolerance = 5 * deviation / sample.numel() ** 0.5
    assert abs(sample.mean().item() - mean) <= tolerance
    assert abs(sample.std().item() - deviation) <= max(0.04 * deviation, tolerance)
    assert low <= sample.min().item() and sample.max().item() <= high


def test_normal_of_doubles_is_exact(device):
    """CANN's mean and deviation are floats, which hold neither 0.1 nor 1e-9 + 1."""
    zeros = torch.zeros(5, dtype=torch.float64, device=device)
    for number in (0.1, 1 + 1e-9):
        assert (torch.empty_like(zeros).normal_(number, 0).cpu() == number).all()
        assert (torch.normal(number, zeros).cpu() == number).all()
    torch.manual_seed(3)
    plain = torch.empty_like(zeros).normal_(0, 1)
    torch.manual_seed(3)
    assert torch.equal(torch.empty_like(zeros).normal_(0, 0.1), plain * 0.1)
    torch.manual_seed(3)
    assert torch.equal(torch.normal(zeros, 0.1), plain * 0.1)


def test_randperm_is_a_permutation(device):
    for size in (0, 1, 2, 1000, 70_000):
        assert torch.equal(torch.randperm(size, device=device).sort().values.cpu(), torch.arange(size))


@pytest.mark.npu_only
def test_state_is_saved_and_restored(device):
    torch.npu.manual_seed(5)
    assert torch.npu.initial_seed() == 5
    torch.rand(100, device=device)
    state = torch.npu.get_rng_state()
    want = torch.randn(50, device=device)
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.randn(50, device=device), want)
    with torch.random.fork_rng(devices=[0], device_type="npu"):
        torch.rand(10, device=device)
        inside = torch.npu.get_rng_state()
    assert not torch.equal(inside, torch.npu.get_rng_state())


def test_own_generator(device):
    def draw(seed):
        generator = torch.Generator(device).manual_seed(seed)
        return torch.rand(20, device=device, generator=generator), torch.empty(20, device=device).normal_(generator=generator)

    torch.manual_seed(0)
    default = torch.rand(5, device=device)
    torch.manual_seed(0)
    first = draw(3)
    assert torch.equal(torch.rand(5, device=device), default), "a generator of one's own moved the default one"
    assert all(torch.equal(a, b) for a, b in zip(first, draw(3), strict=True))
    assert not torch.equal(first[0], draw(4)[0])


@pytest.mark.npu_only
def test_philox_values_follow_the_counter_rules(device):
    """Equal seed and offset give equal numbers whatever was drawn in between, and the offset advances in fours."""
    generator = torch.Generator(device).manual_seed(9)
    first = torch.rand(8, device=device, generator=generator)
    assert generator.get_offset() % 4 == 0 and generator.get_offset() > 0
    generator.set_offset(0)
    assert torch.equal(torch.rand(8, device=device, generator=generator), first)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_replays_dropout(reentrant, device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 8)).to(device)
    inputs = torch.randn(16, 8).to(device)

    def gradients(run):
        torch.manual_seed(123)
        model.zero_grad()
        run(inputs.detach().requires_grad_()).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    plain = gradients(model)
    replayed = gradients(lambda x: checkpoint(model, x, use_reentrant=reentrant))
    torch.testing.assert_close(replayed, plain)


def test_dropout_scales_and_its_gradient_has_the_same_mask(device):
    torch.manual_seed(1)
    inputs = torch.ones(50_000, device=device, requires_grad=True)
    output = nn.functional.dropout(inputs, 0.25)
    output.sum().backward()
    assert torch.equal(inputs.grad, output.detach())
    assert sorted(set(output.tolist())) == pytest.approx([0, 4 / 3])
    assert abs((output == 0).float().mean().item() - 0.25) < 0.01


@pytest.mark.parametrize("layout", ["transposed", "channels last", "every other", "expanded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_dropout_of_any_layout(layout, dtype, device):
    """What is kept is scaled, about the right share of it, and the gradient has the same mask."""
    make = {  # of numbers from 1 to 2, so that zeros are dropout's
        "transposed": lambda ones: ones(48, 64).t(),
        "channels last": lambda ones: ones(4, 8, 12, 8).to(memory_format=torch.channels_last),
        "every other": lambda ones: ones(64, 96)[:, ::2],
        "expanded": lambda ones: ones(64, 1).expand(64, 48),
    }
    inputs = make[layout](lambda *sizes: torch.rand(*sizes, dtype=dtype, device=device) + 1).requires_grad_()
    output = nn.functional.dropout(inputs, 0.25)
    kept = output.detach() != 0
    assert 0.65 < kept.float().mean().item() < 0.85
    wide = inputs.detach().double()
    assert torch.allclose(output.detach().double()[kept], (wide / 0.75)[kept], rtol=1e-2 if dtype.itemsize == 2 else 1e-6)
    (gradient,) = torch.autograd.grad(output, inputs, torch.ones_like(output))
    assert torch.equal(gradient != 0, kept)


@pytest.mark.parametrize("batch_first", [False, True])
def test_encoder_trains_with_its_default_dropout(batch_first, device):
    """Attention hands transposed tensors to dropout."""
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=batch_first), 2, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    inputs = torch.randn(6, 5, 32, device=device)
    losses = []
    for _ in range(30):
        loss = (encoder(inputs) - inputs.flip(0)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
