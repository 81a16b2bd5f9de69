"""Calls any aclnn operator of the built C libraries through ctypes; argument types come from src/aclnn/prototypes.tsv.

Nothing here knows an operator. Tensors are torch CPU tensors: a software device reads host memory. Every handle lives only from phase 1
to the launch, as the interface allows, so an operator that keeps a handle is found.
"""

from __future__ import annotations

import csv
import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
CODES = {
    torch.float64: 11,
    torch.float32: 0,
    torch.float16: 1,
    torch.bfloat16: 27,
    torch.int64: 9,
    torch.int32: 3,
    torch.int16: 6,
    torch.int8: 2,
    torch.uint8: 4,
    torch.bool: 12,
    torch.complex64: 16,
    torch.complex128: 17,
    torch.float8_e4m3fn: 36,
    torch.float8_e5m2: 35,
    torch.float8_e8m0fnu: 37,
}
REFUSED = 161002  # a parameter is invalid
FORMAT_ND = 2


@dataclass
class Scalar:
    """A scalar handle with a type of its own; plain numbers become double, int64, bool or complex128."""

    value: complex
    dtype: torch.dtype


@cache
def prototypes() -> dict[str, tuple[list[tuple[str, str]], str]]:
    """Operator without prefix -> ([(type, parameter name)], family)."""
    found = {}
    with (ROOT / "src/aclnn/prototypes.tsv").open(newline="") as file:
        for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row and row[0].startswith("aclnn"):
                arguments = []
                for text in row[1].split(",") if row[1] not in ("-", "void") else []:
                    kind, name = re.fullmatch(r"\s*(?:const\s+)?(.*?)\s*(\w+)\s*", text).groups()  # type: ignore[union-attr]
                    arguments.append((kind.replace(" ", ""), name))
                found[row[0].removeprefix("aclnn")] = (arguments, row[5])
    return found


@cache
def implemented() -> list[str]:
    """The operators of src/aclnn/operators.def, in its order."""
    command = ["cc", "-E", "-P", "-x", "c", "-DOPERATOR(name)=@name@", f"-I{ROOT / 'src'}", str(ROOT / "src/aclnn/operators.def")]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.findall(r"@\s*(\w+)\s*@", text)


class Failure(Exception):
    """A C function returned a code."""

    def __init__(self, function: str, code: int, text: str):
        super().__init__(f"{function}: code {code}: {text}")
        self.code, self.text = code, text


class Libraries:
    """The three public libraries, opened once, with a device set and a stream made."""

    def __init__(self, folder: Path):
        self.runtime = ctypes.CDLL(str(folder / "libascendcl.so"))
        self.handles = ctypes.CDLL(str(folder / "libnnopbase.so"))
        self.operators = ctypes.CDLL(str(folder / "libopapi.so"))
        self.runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p
        for name in ("Tensor", "Scalar", "IntArray", "BoolArray", "FloatArray", "TensorList", "ScalarList"):
            getattr(self.handles, f"aclCreate{name}").restype = ctypes.c_void_p
            getattr(self.handles, f"aclDestroy{name}").argtypes = [ctypes.c_void_p]
        self.stream = ctypes.c_void_p()
        self.check("aclInit", self.runtime.aclInit(None))
        self.check("aclrtSetDevice", self.runtime.aclrtSetDevice(0))
        self.check("aclrtCreateStream", self.runtime.aclrtCreateStream(ctypes.byref(self.stream)))

    def message(self) -> str:
        """The words of the latest error of this thread."""
        return (self.runtime.aclGetRecentErrMsg() or b"").decode()

    def check(self, function: str, code: int) -> None:
        """Raises Failure with the library's words unless the code is 0."""
        if code:
            raise Failure(function, code, self.message())

    def view_shape(self, handle: int) -> tuple[int, ...]:
        """The shape that a handle has now."""
        dims, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
        self.check("aclGetViewShape", self.handles.aclGetViewShape(ctypes.c_void_p(handle), ctypes.byref(dims), ctypes.byref(count)))
        shape = tuple(dims[: count.value])
        ctypes.CDLL(None).free(dims)
        return shape


@cache
def libraries() -> Libraries:
    """The libraries of build/c, or of CAPI_LIBRARIES."""
    return Libraries(Path(os.environ.get("CAPI_LIBRARIES", ROOT / "build/c/lib64")))


class Arguments:
    """The handles of one call; `destroy` gives them back."""

    def __init__(self, libs: Libraries):
        self.libs = libs
        self.made: list[tuple[str, ctypes.c_void_p]] = []
        self.tensor_handles: dict[int, int] = {}  # id of a torch tensor -> its handle

    def create(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        """Makes a handle; NULL is a failure."""
        handle = getattr(self.libs.handles, f"aclCreate{kind}")(*arguments)
        if not handle:
            raise Failure(f"aclCreate{kind}", -1, self.libs.message())
        return ctypes.c_void_p(handle)

    def keep(self, kind: str, *arguments: Any) -> ctypes.c_void_p:
        """Makes a handle that `destroy` destroys."""
        handle = self.create(kind, *arguments)
        self.made.append((kind, handle))
        return handle

    def tensor(self, t: torch.Tensor, own: bool = True) -> ctypes.c_void_p:
        """A handle of the view that a torch tensor is: base address, offset and strides, as torch_npu gives them."""
        count = t.dim()
        sizes, strides = (ctypes.c_int64 * count)(*t.shape), (ctypes.c_int64 * count)(*t.stride())
        storage = t.untyped_storage()
        room = (ctypes.c_int64 * 1)(storage.nbytes() // t.element_size())
        offset, base = t.storage_offset(), storage.data_ptr()
        make = self.keep if own else self.create
        handle = make(
            "Tensor",
            sizes,
            ctypes.c_uint64(count),
            CODES[t.dtype],
            strides,
            ctypes.c_int64(offset),
            FORMAT_ND,
            room,
            ctypes.c_uint64(1),
            ctypes.c_void_p(base),
        )
        self.tensor_handles[id(t)] = handle.value or 0
        return handle

    def scalar(self, value: Any, own: bool = True) -> ctypes.c_void_p:
        """A scalar handle."""
        if not isinstance(value, Scalar):
            natural = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
            value = Scalar(value, natural[type(value)])
        place = torch.tensor(value.value, dtype=value.dtype)
        make = self.keep if own else self.create
        return make("Scalar", ctypes.c_void_p(place.data_ptr()), CODES[value.dtype])

    def collection(self, kind: str, values: Sequence[Any]) -> ctypes.c_void_p:
        """A list handle, which owns its members."""
        member = self.tensor if kind == "TensorList" else self.scalar
        members = [None if value is None else member(value, own=False).value for value in values]
        return self.keep(kind, (ctypes.c_void_p * len(members))(*members), ctypes.c_uint64(len(members)))

    def convert(self, kind: str, value: Any) -> Any:
        """The C form of one argument."""
        if kind.endswith("*") and value is None:
            return ctypes.c_void_p()
        if kind == "aclTensor*":
            return self.tensor(value)
        if kind == "aclScalar*":
            return self.scalar(value)
        if kind in ("aclTensorList*", "aclScalarList*"):
            return self.collection(kind[3:-1], value)
        arrays = {"aclIntArray*": ctypes.c_int64, "aclBoolArray*": ctypes.c_bool, "aclFloatArray*": ctypes.c_float}
        if kind in arrays:
            return self.keep(kind[3:-1], (arrays[kind] * len(value))(*value), ctypes.c_uint64(len(value)))
        if kind == "aclDataType":
            return ctypes.c_int(CODES[value] if isinstance(value, torch.dtype) else value)
        if kind == "char*":
            return ctypes.c_char_p(value.encode())
        return getattr(ctypes, "c_" + kind.removesuffix("_t"))(value)

    def destroy(self) -> None:
        """Gives every handle back."""
        for kind, handle in self.made:
            getattr(self.libs.handles, f"aclDestroy{kind}")(handle)
        self.made.clear()


class Call:
    """One operator call: `plan` is phase 1, `run` phase 2 and a synchronise."""

    def __init__(self, operator: str, values: Sequence[Any]):
        self.libs = libraries()
        self.operator = operator
        kinds = prototypes()[operator][0]
        if len(kinds) != len(values):
            raise TypeError(f"aclnn{operator} takes {[name for _, name in kinds]}, {len(values)} values were given")
        self.arguments = Arguments(self.libs)
        self.executor, self.bytes = ctypes.c_void_p(), ctypes.c_uint64()
        self.converted = [self.arguments.convert(kind, value) for (kind, _), value in zip(kinds, values)]

    def plan(self) -> int:
        """Phase 1: its code."""
        phase_1 = getattr(self.libs.operators, f"aclnn{self.operator}GetWorkspaceSize")
        return phase_1(*self.converted, ctypes.byref(self.bytes), ctypes.byref(self.executor))

    def run(self, keep_handles: bool = False) -> None:
        """Phase 2; the handles die before the work is awaited unless they are asked for later."""
        libs = self.libs
        workspace = (ctypes.c_char * self.bytes.value)() if self.bytes.value else None
        phase_2 = getattr(libs.operators, f"aclnn{self.operator}")
        code = phase_2(workspace, self.bytes, self.executor, libs.stream)
        if not keep_handles:
            self.arguments.destroy()
        libs.check(f"aclnn{self.operator}", code)
        libs.check("aclrtSynchronizeStream", libs.runtime.aclrtSynchronizeStream(libs.stream))

    def shape_of(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """The shape that the tensor's handle has now."""
        return self.libs.view_shape(self.arguments.tensor_handles[id(tensor)])

    def close(self) -> None:
        """Gives the handles back."""
        self.arguments.destroy()
