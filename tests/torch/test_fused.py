"""torch_npu's fused operators by name: values against the plain formulas, gradients against autograd through those."""

import pytest
import torch

pytestmark = pytest.mark.npu_only


def make(*sizes, dtype=torch.float64):
    """Reproducible values around zero."""
    return torch.randn(*sizes, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(sizes))).to(dtype)


def rms_norm(x, gamma):
    dims = tuple(range(-gamma.dim(), 0))
    return x * torch.rsqrt(x.square().mean(dims, keepdim=True) + 1e-6) * gamma


def swiglu(x, dim=-1):
    first, second = x.chunk(2, dim)
    return torch.nn.functional.silu(first) * second


def rotary(x, cosine, sine, mode):
    if mode == "half":
        first, second = x.chunk(2, -1)
        turned = torch.cat((-second, first), -1)
    else:
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cosine + turned * sine


def fast_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def operators():
    import torch_npu

    return {
        "rms_norm": (lambda x, g: torch_npu.npu_rms_norm(x, g)[0], rms_norm, make(3, 4, 8), make(8)),
        "rms_norm two dimensions": (lambda x, g: torch_npu.npu_rms_norm(x, g, 1e-6)[0], rms_norm, make(3, 4, 8), make(4, 8)),
        "swiglu": (torch_npu.npu_swiglu, swiglu, make(3, 4, 8)),
        "swiglu dim": (lambda x: torch_npu.npu_swiglu(x, dim=1), lambda x: swiglu(x, 1), make(3, 4, 8)),
        "swiglu strided": (lambda x: torch_npu.npu_swiglu(x.transpose(1, 2)), lambda x: swiglu(x.transpose(1, 2)), make(3, 4, 8)),
        "rotary half": (torch_npu.npu_rotary_mul, lambda *a: rotary(*a, "half"), make(2, 3, 4, 8), make(1, 3, 1, 8), make(1, 3, 1, 8) + 1),
        "rotary interleave": (
            lambda *a: torch_npu.npu_rotary_mul(*a, rotary_mode="interleave"),
            lambda *a: rotary(*a, "interleave"),
            *(make(2, 3, 4, 8), make(1, 3, 1, 8), make(1, 3, 1, 8) + 1),
        ),
        "fast_gelu": (torch_npu.npu_fast_gelu, fast_gelu, make(5, 7)),
        "dtype_cast": (lambda x: torch_npu.npu_dtype_cast(x, torch.float32).double(), lambda x: x.float().double(), make(5, 7)),
    }


@pytest.mark.parametrize("name", operators() if torch.utils.backend_registration._privateuse1_backend_name == "npu" else [])
def test_values_and_gradients(name, device, no_fallback):
    mine, formula, *inputs = operators()[name]
    results = []
    for function, where in ((formula, "cpu"), (mine, device)):
        leaves = [value.clone().to(where).requires_grad_() for value in inputs]
        out = function(*leaves)
        out.square().sum().backward()
        results.append([out.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)])
    for want, got in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_narrow_types(dtype, device, no_fallback):
    for name, (mine, formula, *inputs) in operators().items():
        if name == "dtype_cast":
            continue
        got = mine(*(value.to(device, dtype) for value in inputs)).cpu()
        want = formula(*(value.to(dtype).double() for value in inputs))
        assert got.dtype == dtype, name
        bound = 4 * torch.finfo(dtype).eps * max(1.0, want.abs().max().item())
        assert (got.double() - want).abs().max() <= bound, name


def test_add_rms_norm(device):
    import torch_npu

    a, b, gamma = make(3, 8), make(3, 8) * 2, make(8)
    out, rstd, total = (tensor.cpu() for tensor in torch_npu.npu_add_rms_norm(a.to(device), b.to(device), gamma.to(device)))
    torch.testing.assert_close(total, a + b)
    torch.testing.assert_close(out, rms_norm(a + b, gamma))
    torch.testing.assert_close(rstd.double(), torch.rsqrt((a + b).square().mean(-1, keepdim=True) + 1e-6), atol=1e-6, rtol=1e-6)


def test_errors_name_what_is_wrong(device):
    import torch_npu

    x = make(3, 7).to(device)
    with pytest.raises(RuntimeError, match="7 elements"):
        torch_npu.npu_swiglu(x)
    with pytest.raises(RuntimeError, match="gamma"):
        torch_npu.npu_rms_norm(x, make(3).to(device))
    with pytest.raises(RuntimeError, match="rotary_mode is 'whole'"):
        torch_npu.npu_rotary_mul(x, x, x, rotary_mode="whole")
    with pytest.raises(IndexError):
        torch_npu.npu_swiglu(x, dim=5)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch_npu.npu_swiglu(make(3, 8))


@pytest.mark.parametrize("name", ["rms_norm", "swiglu", "rotary half", "fast_gelu"])
def test_second_derivatives_are_refused(name, device):
    function, _, *inputs = operators()[name]
    leaves = [value.clone().to(device).requires_grad_() for value in inputs]
    with pytest.raises(NotImplementedError, match="has no second derivative"):
        torch.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
