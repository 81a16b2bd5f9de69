"""Check 4: a small Transformer encoder trains through the wheel, in float32 and with automatic mixed precision."""

import copy
import itertools
import math

import pytest
import torch
from torch import nn

WORDS, WIDTH, LENGTH, CLASSES = 40, 32, 12, 5


class Encoder(nn.Module):
    """Embedding, two encoder layers (LayerNorm, scaled dot-product attention, GELU, dropout), a classifier over the mean. The wheel calls
    aclnnGelu, which means the tanh form, whatever form is asked for; so that form is asked for."""

    def __init__(self, dropout):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(WIDTH),
                    "qkv": nn.Linear(WIDTH, 3 * WIDTH),
                    "out": nn.Linear(WIDTH, WIDTH),
                    "norm2": nn.LayerNorm(WIDTH),
                    "up": nn.Linear(WIDTH, 4 * WIDTH),
                    "down": nn.Linear(4 * WIDTH, WIDTH),
                }
            )
            for _ in range(2)
        )
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm1"](x)).view(*x.shape[:2], 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
            attention = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.dropout(layer["out"](attention.transpose(1, 2).reshape(x.shape)))
            x = x + self.dropout(layer["down"](nn.functional.gelu(layer["up"](layer["norm2"](x)), approximate="tanh")))
        return self.head(x.mean(1))


def examples(batches=6, size=24):
    """Sentences whose label is a word's number, which attention has to look for."""
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(CLASSES, WORDS, (batches, size, LENGTH), generator=generator)
    labels = torch.randint(0, CLASSES, (batches, size), generator=generator)
    places = torch.randint(0, LENGTH, (batches, size, 1), generator=generator)
    return list(zip(tokens.scatter(2, places, labels.unsqueeze(2)), labels))


def model_of(dropout=0.1):
    torch.manual_seed(5)
    torch.npu.manual_seed(5)
    return Encoder(dropout)


def train(model, device, steps=30, dtype=None, scaler=None, spoil=()):
    """Losses; `spoil`: steps whose loss is made infinite."""
    model.to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step, (tokens, labels) in zip(range(steps), itertools.cycle(examples())):
        with torch.autocast(device, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(tokens.to(device)).float(), labels.to(device))
        if step in spoil:
            loss = loss * math.inf
        optimizer.zero_grad()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.item())
    return losses


def mean(values):
    return sum(values) / len(values)


def test_float32_follows_the_cpu(npu):
    got, want = (train(model_of(dropout=0.0), device) for device in ("npu", "cpu"))
    assert max(abs(a - b) for a, b in zip(got, want)) <= 1e-4 and mean(got[-6:]) < mean(got[:6])


def test_dropout_trains_and_evaluation_equals_the_cpu(npu):
    model = model_of()
    losses = train(model, "npu")
    assert all(map(math.isfinite, losses)) and mean(losses[-6:]) < mean(losses[:6])
    assert losses == train(model_of(), "npu"), "the same seed gives the same dropout"
    tokens, _ = examples()[0]
    model.eval()
    with torch.no_grad():
        got = model(tokens.npu()).cpu()
        want = copy.deepcopy(model).cpu()(tokens)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_automatic_mixed_precision(npu, dtype):
    model = model_of()
    scaler = torch.npu.amp.GradScaler(init_scale=1024.0) if dtype == torch.float16 else None
    losses = train(model, "npu", dtype=dtype, scaler=scaler)
    assert all(map(math.isfinite, losses)) and mean(losses[-6:]) < mean(losses[:6])
    tokens, _ = examples()[0]
    model.eval()
    with torch.no_grad(), torch.autocast("npu", dtype=dtype):
        got = model(tokens.npu()).float().cpu()
    with torch.no_grad():
        want = copy.deepcopy(model).cpu()(tokens)
    torch.testing.assert_close(got, want, rtol=5e-2, atol=5e-2)


def test_grad_scaler_skips_an_infinite_step(npu):
    model = model_of(dropout=0.0)
    scaler = torch.npu.amp.GradScaler(init_scale=512.0)
    train(model, "npu", steps=3, dtype=torch.float16, scaler=scaler)
    before = [parameter.detach().cpu().clone() for parameter in model.parameters()]
    assert scaler.get_scale() == 512.0
    train(model, "npu", steps=1, dtype=torch.float16, scaler=scaler, spoil=[0])
    assert all(torch.equal(a, b.detach().cpu()) for a, b in zip(before, model.parameters()))
    assert scaler.get_scale() == 256.0
    losses = train(model, "npu", steps=6, dtype=torch.float16, scaler=scaler)
    assert all(map(math.isfinite, losses))
    assert not all(torch.equal(a, b.detach().cpu()) for a, b in zip(before, model.parameters()))
