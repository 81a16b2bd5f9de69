"""Legacy tensor types, torch.npu.FloatTensor and its like: to make a tensor, to ask with isinstance, and as names for Tensor.type()."""

from __future__ import annotations

from typing import Any

import torch

DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
    "ComplexFloatTensor": torch.complex64,
    "ComplexDoubleTensor": torch.complex128,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class TensorType(type):
    """The class of torch.npu.FloatTensor ...: calling one makes a tensor, isinstance asks for device and dtype."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch.Tensor) and instance.device.type == "npu" and instance.dtype == cls.dtype

    def __call__(cls, *arguments: Any) -> torch.Tensor:
        """From sizes, from a sequence, or empty."""
        if len(arguments) == 1 and not isinstance(arguments[0], int):
            if isinstance(arguments[0], torch.Size):
                return torch.empty(arguments[0], dtype=cls.dtype, device="npu")
            return torch.as_tensor(arguments[0], dtype=cls.dtype).to("npu")
        return torch.empty(arguments or (0,), dtype=cls.dtype, device="npu")

    def __repr__(cls) -> str:
        return f"<class 'torch.npu.{cls.__name__}'>"


TYPES = {
    name: TensorType(name, (), {"dtype": dtype, "__module__": "torch.npu", "__doc__": f"Tensors of {dtype} on npu."})
    for name, dtype in DTYPES.items()
}


def name_of(tensor: torch.Tensor) -> str:
    """What Tensor.type() says of a tensor on npu."""
    return f"torch.npu.{_NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix('torch.') + 'Tensor')}"


def dtype_of(target: Any) -> torch.dtype | None:
    """The dtype that a legacy type of npu, or its name, stands for; None for anything else."""
    if isinstance(target, TensorType):
        return target.dtype
    if isinstance(target, str) and target.startswith("torch.npu."):
        return DTYPES.get(target.removeprefix("torch.npu."))
    return None
