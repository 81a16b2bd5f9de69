"""Overloads that no OpInfo calls itself, fed with the arguments that an OpInfo gave to an overload of the same name.

torch reaches `add.Scalar`, `sigmoid_backward.grad_input` or `lerp_.Tensor` from C++ only; their arguments are those of `add.Tensor` and so
on, with a number for a tensor, with the first tensor written, or with outputs. Invariant: recorded arguments are on the CPU and unshared.
"""

from __future__ import annotations

from typing import Any

import torch

KEPT = 2  # recorded calls of an overload
# Other names of what an OpInfo calls, which it doesn't list itself.
OTHER_NAMES = {
    "bitwise_and": "__and__ __iand__",
    "bitwise_or": "__or__ __ior__",
    "bitwise_xor": "__xor__ __ixor__",
    "bitwise_left_shift": "__lshift__ __ilshift__",
    "bitwise_right_shift": "__rshift__ __irshift__",
    "clamp": "clip clip_",
    "eq": "not_equal not_equal_",
    "lt": "less less_ less_equal less_equal_",
    "gt": "greater greater_ greater_equal greater_equal_",
    "mul": "multiply multiply_",
    "cat": "concat concatenate",
    "vstack": "row_stack",
    "stack": "_stack",
    "matmul": "linalg_matmul",
    "outer": "ger",
    "transpose": "swapaxes swapaxes_ swapdims swapdims_",
    "movedim": "moveaxis",
    "xlogy": "special_xlogy",
    "softmax": "special_softmax",
    "log_softmax": "special_log_softmax",
    "logsumexp": "special_logsumexp",
    "linalg_matrix_power": "matrix_power",
    "unsafe_split": "unsafe_split_with_sizes",
}


class Calls:
    """Arguments of functional overloads, as recorded."""

    def __init__(self, listed: set[str], op: Any) -> None:
        self.listed = listed
        self.aliases = {op.aten_name: [alias.name.replace(".", "_").lstrip("_") for alias in op.aliases]}
        self.kept: dict[str, list[tuple[Any, tuple[Any, ...], dict[str, Any]]]] = {}

    def keep(self, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Remembers the first calls of an overload that writes none of its arguments."""
        name = function.name().removeprefix("aten::")
        if name not in self.listed or function._schema.is_mutable or len(self.kept.get(name, [])) >= KEPT:
            return

        def plain(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.detach().clone()
            if isinstance(value, (list, tuple)):
                return [plain(part) for part in value]
            return value

        with torch.no_grad():
            kept = plain(arguments), {key: plain(part) for key, part in options.items()}
        self.kept.setdefault(name, []).append((function, tuple(kept[0]), kept[1]))


def overloads_like(name: str, calls: Calls) -> list[str]:
    """Listed overloads with the same base name or an alias of it, in-place ones too, other than this."""
    base = name.split(".")[0]
    bases = {base, *calls.aliases.get(base, [])}
    bases |= {f"{one}_" for one in bases} | set(OTHER_NAMES.get(base, "").split())
    return sorted(other for other in calls.listed if other.split(".")[0] in bases and other != name)


def overload(name: str) -> Any:
    """The callable of torch.ops.aten, None when this torch lacks it."""
    base, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, base, None), rest or "default", None)


def fitted(value: Any, kind: str) -> Any:
    """An argument for a parameter of another type; raises ValueError where there is no way."""
    is_tensor = isinstance(value, torch.Tensor)
    if kind == "number" and is_tensor:
        if value.numel() == 0:
            raise ValueError
        return value.flatten()[0].item()
    if kind == "Tensor" and isinstance(value, (bool, int, float, complex)):
        return torch.tensor(value)
    if (kind == "Tensor" and not is_tensor) or (kind == "number" and not isinstance(value, (bool, int, float, complex))):
        raise ValueError
    return value


def call_for(function: Any, source: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Any], dict[str, Any], list[str]]:
    """Arguments for `function` from a call of `source`: by position, by name, names of outputs. Raises ValueError when they don't fit."""
    given = {parameter.name: value for parameter, value in zip(source._schema.arguments, arguments)} | options
    positional, named, outputs, used = [], {}, [], set()
    for parameter in function._schema.arguments:
        if parameter.is_out:
            outputs.append(parameter.name)
        elif parameter.name in given:
            used.add(parameter.name)
            kind = {"Tensor": "Tensor", "number": "number", "Scalar": "number"}.get(str(parameter.type), "")
            value = fitted(given[parameter.name], kind)
            if parameter.kwarg_only:
                named[parameter.name] = value
            else:
                positional.append(value)
        elif not parameter.has_default_value():
            raise ValueError
        elif not parameter.kwarg_only:
            positional.append(parameter.default_value)
    if set(given) - used - {"dtype", "layout", "device", "pin_memory", "memory_format"}:
        raise ValueError
    return positional, named, outputs
