"""The fast path of torch's attention and encoder layers in evaluation, against the CPU's, and that nothing runs on the CPU."""

import copy

import pytest
import torch
from torch import nn

INPUTS = torch.randn(3, 6, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
PADDING = torch.tensor([[0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]], dtype=torch.bool)
CAUSAL = torch.ones(6, 6, dtype=torch.bool).triu(1)


def on(device, value):
    return value.to(device) if isinstance(value, torch.Tensor) else value


def compare(module, device, *inputs, **options):
    """The module's results on the CPU and on the device."""
    with torch.no_grad():
        want = module.eval()(*inputs, **options)
        got = copy.deepcopy(module).to(device)(*(on(device, i) for i in inputs), **{k: on(device, v) for k, v in options.items()})
    return want, got


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize(
    "masks", [{}, {"src_mask": CAUSAL}, {"src_key_padding_mask": PADDING}, {"src_mask": CAUSAL, "src_key_padding_mask": PADDING}]
)
def test_encoder_layer(norm_first, activation, masks, device, no_fallback):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24, activation=activation, norm_first=norm_first, batch_first=True, dtype=torch.float64)
    want, got = compare(layer, device, INPUTS, **masks)
    torch.testing.assert_close(got.cpu(), want)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("masks", [{}, {"attn_mask": CAUSAL}, {"key_padding_mask": PADDING}, {"attn_mask": CAUSAL, "key_padding_mask": PADDING}])
def test_multi_head_attention(average, need_weights, masks, device, no_fallback):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(16, 4, batch_first=True, dtype=torch.float64)
    options = {"need_weights": need_weights, "average_attn_weights": average} | masks
    want, got = compare(attention, device, INPUTS, INPUTS, INPUTS, **options)
    torch.testing.assert_close(got[0].cpu(), want[0])
    if need_weights:
        torch.testing.assert_close(got[1].cpu(), want[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_encoder_layer_in_other_dtypes(dtype, device, no_fallback):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, dtype=dtype)
    want, got = compare(layer, device, INPUTS.to(dtype))
    torch.testing.assert_close(got.cpu(), want, atol=1e-6 if dtype == torch.float32 else 0.05, rtol=0)


def test_encoder_with_padding_takes_the_dense_way(device, no_fallback):
    """torch's CPU leaves zeros where padding was; rows that count are equal."""
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, dtype=torch.float64), 2)
    want, got = compare(encoder, device, INPUTS, src_key_padding_mask=PADDING)
    torch.testing.assert_close(got.cpu()[~PADDING], want[~PADDING])


@pytest.mark.npu_only
def test_attention_inputs_are_checked(device):
    attention = nn.MultiheadAttention(16, 4, batch_first=True, device=device).eval()
    inputs = torch.randn(3, 6, 16, device=device)
    weights = (attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias)
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"type 1 .* \[batch, keys\]"):
        torch._native_multi_head_attention(inputs, inputs, inputs, 16, 4, *weights, PADDING.to(device)[0], False, True, 1)
    with torch.no_grad(), pytest.raises(RuntimeError, match="embed_dim"):
        torch._native_multi_head_attention(inputs, inputs, inputs, 12, 4, *weights)
