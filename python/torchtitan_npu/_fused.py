"""torch_npu's fused operators under their names: `torch_npu.npu_rms_norm` and its like are attributes of this package."""

from __future__ import annotations

import torch

__all__ = ["npu_add_rms_norm", "npu_dtype_cast", "npu_fast_gelu", "npu_rms_norm", "npu_rotary_mul", "npu_swiglu"]


def npu_rms_norm(self: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6) -> tuple[torch.Tensor, torch.Tensor]:
    """self / rms(self) * gamma over the dimensions that gamma has, and 1 / rms(self). Differentiable in self and gamma."""
    return torch.ops.npu.npu_rms_norm(self, gamma, epsilon)


def npu_add_rms_norm(
    x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """npu_rms_norm of x1 + x2: the result, 1 / rms, and the sum. Not differentiable, as in torch_npu."""
    return torch.ops.npu.npu_add_rms_norm(x1, x2, gamma, epsilon)


def npu_swiglu(self: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """silu(first half) * second half, along `dim`. Differentiable."""
    return torch.ops.npu.npu_swiglu(self, dim)


def npu_rotary_mul(self: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, rotary_mode: str = "half") -> torch.Tensor:
    """self * r1 + rotated(self) * r2, the rotary position embedding: r1 holds cosines, r2 sines, of sizes that broadcast to self's;
    `rotary_mode` "half" pairs element i with i + width / 2, "interleave" with its neighbour. Differentiable."""
    return torch.ops.npu.npu_rotary_mul(self, r1, r2, rotary_mode)


def npu_fast_gelu(self: torch.Tensor) -> torch.Tensor:
    """self * sigmoid(1.702 * self), with the signs kept apart. Differentiable."""
    return torch.ops.npu.npu_fast_gelu(self)


def npu_dtype_cast(self: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """self.to(dtype). Differentiable."""
    return torch.ops.npu.npu_dtype_cast(self, dtype)
