"""What a child of opinfo_judge.py does with one OpInfo: records the overloads that it reaches, then compares npu with torch's CPU.

Invariant: what torch's CPU computes decides. A sample that it refuses isn't counted; a form (in place, out=) that it refuses must be
refused on npu too. Sample inputs are made on the CPU and carried over with their strides.
"""

from __future__ import annotations

import random
import re
from typing import Any

import opinfo_judge
import opinfo_samples
import opinfo_siblings
import torch
from torch.utils._python_dispatch import TorchDispatchMode

DTYPES = {
    **{torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32"},
    **{torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128"},
}
WIDER = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}
NO_VALUES = re.compile(r"^(new_)?empty|^empty_|resize|^_?empty_permuted")  # whatever was in memory
TIES = {"topk", "kthvalue", "sort", "argsort", "mode", "median", "nanmedian"}  # of equal elements any may be named
FACTORIES = {"arange", "linspace", "logspace"}  # their OpInfos name no device
STAYS_ON_CPU = {  # positions of numbers in tensors that torch wants there
    **dict.fromkeys(("_foreach_addcdiv.Tensor", "_foreach_addcdiv_.Tensor", "_foreach_addcmul.Tensor", "_foreach_addcmul_.Tensor"), 3),
    "randint_like.Tensor": 1,
}
CPU_ARGUMENTS = {"tensor_split"}  # torch wants these tensors on the CPU


class NotStrided(Exception):
    """A sample with tensors that aren't plain memory."""


# --- recording ---


class Recorder(TorchDispatchMode):
    """Notes the overloads that calls reach, composite ones and what they are made of."""

    def __init__(self, calls: opinfo_siblings.Calls) -> None:
        super().__init__()
        self.calls = calls
        self.outermost: set[str] = set()
        self.reached: set[str] = set()
        self.random = False
        self.depth = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        name = function.name().removeprefix("aten::")
        self.reached.add(name)
        self.calls.keep(function, arguments, options or {})
        if self.depth == 0:
            self.outermost.add(name)
        if torch.Tag.nondeterministic_seeded in function.tags and "scaled_dot_product" not in name and "attention" not in name:
            self.random = True
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd")
        if composite:
            self.depth += 1
            try:
                with self:
                    result = function.decompose(*arguments, **(options or {}))
            finally:
                self.depth -= 1
            if result is not NotImplemented:
                return result
        return function(*arguments, **(options or {}))


def record(op: Any, dtype: torch.dtype, calls: opinfo_siblings.Calls) -> Recorder:
    """What the samples of one dtype reach: by value, in place, with out= and backwards."""
    recorder = Recorder(calls)
    for sample in chosen(op, dtype, opinfo_judge.SAMPLES["recorded"]):
        attempt(lambda s=sample: recorded_forward(recorder, op, s))
        outermost = set(recorder.outermost)
        if op.get_inplace() is not None:
            attempt(lambda s=sample: recorded_inplace(recorder, op, s))
        if op.supports_out:
            attempt(lambda s=sample: recorded_out(recorder, op, s))
        recorder.outermost = outermost
    if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"):
        outermost = set(recorder.outermost)
        for sample in chosen(op, dtype, 4, requires_grad=True):
            attempt(lambda s=sample: recorded_gradient(recorder, op, s))
        recorder.outermost = outermost
    return recorder


def recorded_forward(recorder: Recorder, op: Any, sample: Any) -> None:
    with torch.inference_mode():
        sample = mapped(sample, torch.Tensor.clone)
        with recorder:
            call(op.op, sample)


def recorded_inplace(recorder: Recorder, op: Any, sample: Any) -> None:
    with torch.inference_mode():
        sample = mapped(sample, torch.Tensor.clone)
        with recorder:
            call(op.get_inplace(), sample)


def recorded_out(recorder: Recorder, op: Any, sample: Any) -> None:
    with torch.inference_mode():
        sample = mapped(sample, torch.Tensor.clone)
        out = mapped(call(op.op, sample), torch.empty_like)
        with recorder:
            call(op.op, sample, out=out)


def recorded_gradient(recorder: Recorder, op: Any, sample: Any) -> None:
    with recorder:
        gradients(op, sample)


def attempt(function: Any) -> BaseException | None:
    """Runs it; what it raised."""
    try:
        function()
    except Exception as error:
        return error
    return None


# --- samples ---


def seed() -> None:
    """The same numbers in every run."""
    torch.manual_seed(0)
    random.seed(0)


def chosen(op: Any, dtype: torch.dtype, count: int | None, requires_grad: bool = False) -> list[Any]:
    """`count` of the samples of an OpInfo, evenly picked, all when None."""
    seed()
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    except Exception:
        return []
    samples = [sample for sample in samples if all(tensor.layout == torch.strided for tensor in tensors_of(sample_parts(sample)))]
    if count is None or len(samples) <= count:
        return samples
    return [samples[i * (len(samples) - 1) // (count - 1)] for i in range(count)]


def sample_parts(sample: Any) -> tuple[Any, Any, Any]:
    """The arguments of a sample."""
    return sample.input, tuple(sample.args), dict(sample.kwargs)


def mapped(value: Any, function: Any) -> Any:
    """The same structure with each tensor replaced; a sample becomes (input, args, kwargs)."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        parts = [mapped(part, function) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {key: mapped(part, function) for key, part in value.items()}
    if hasattr(value, "output_process_fn_grad"):
        return mapped(sample_parts(value), function)
    return value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """Tensors of a structure, in order."""
    found: list[torch.Tensor] = []
    mapped(value, found.append)
    return found


def to_npu(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on npu with the same strides, conjugation and need of a gradient."""
    if tensor.layout != torch.strided:
        raise NotStrided
    if tensor.is_conj():
        return to_npu(tensor.detach().conj()).conj()
    if tensor.is_neg():
        return torch._neg_view(to_npu(torch._neg_view(tensor.detach())))
    plain = tensor.detach()
    held = plain.untyped_storage().nbytes() // plain.element_size()
    if (plain.is_contiguous() and held == plain.numel()) or plain.numel() == 0:
        there = plain.to("npu")
    else:
        whole = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage(), 0, (held,), (1,))
        there = whole.to("npu").as_strided(plain.shape, plain.stride(), plain.storage_offset())
    return there.requires_grad_(tensor.requires_grad)


def on_npu(value: Any, name: str = "") -> Any:
    """Arguments of an operator for npu; devices named in them too."""
    if name in CPU_ARGUMENTS:
        value, args, kwargs = value if isinstance(value, tuple) else sample_parts(value)
        return mapped(value, to_npu), args, kwargs
    value = with_device(mapped(value, to_npu))
    if name in FACTORIES:
        value[2]["device"] = "npu"
    return value


def with_device(value: Any) -> Any:
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(with_device(part) for part in value)
    if isinstance(value, list):
        return [with_device(part) for part in value]
    if isinstance(value, dict):
        return {key: with_device(part) for key, part in value.items()}
    if (isinstance(value, str) and value == "cpu") or (isinstance(value, torch.device) and value.type == "cpu"):
        return torch.device("npu")
    return value


def call(function: Any, sample: Any, **more: Any) -> Any:
    """Calls with a sample or with its parts."""
    value, args, kwargs = sample if isinstance(sample, tuple) else sample_parts(sample)
    return function(value, *args, **kwargs, **more)


def copied(value: Any) -> Any:
    """A copy with strides kept, so that in-place forms see what the sample had."""

    def copy(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.numel() == 0 or tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            return tensor.detach().clone()
        plain = tensor.detach()
        span = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride()))
        return plain.as_strided((span,), (1,)).clone().as_strided(plain.shape, plain.stride())

    return mapped(value, copy)


# --- comparing ---


def flat(value: Any) -> list[Any]:
    """Tensors and numbers of a result, in order."""
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in flat(item)]
    return [value]


def no_values(name: str) -> bool:
    """Does this OpInfo, or this overload, leave what was in memory?"""
    return bool(NO_VALUES.search(name) or NO_VALUES.search(name.split(".")[-1]))


def difference(name: str, got: Any, want: Any, is_random: bool, wider: Any = None) -> str:
    """What is different, "" when nothing is. `wider` computes torch's result in a wider type, when the plain comparison isn't enough."""
    ours, theirs = flat(got), flat(want)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for number, (mine, right) in enumerate(zip(ours, theirs)):
        words = one_difference(mine, right, is_random or no_values(name) or is_place(name, number))
        if words.startswith("values:") and wider is not None and right.dtype in WIDER and not_farther(mine, right, number, wider):
            continue
        if words:
            return words
    return ""


def is_place(name: str, number: int) -> bool:
    """Is this result a place of an element that has equals?"""
    return name in TIES and number == (0 if name == "argsort" else 1)


def one_difference(mine: Any, right: Any, shape_only: bool) -> str:
    """The same for one result."""
    if not isinstance(right, torch.Tensor):
        same = mine == right or (mine != mine and right != right) or shape_only
        if isinstance(right, float) and isinstance(mine, float) and not same:
            same = abs(mine - right) <= 1e-5 + 1e-5 * abs(right)
        return "" if same else f"{mine!r} instead of {right!r}"[:200]
    if not isinstance(mine, torch.Tensor):
        return f"{type(mine).__name__} instead of a tensor"
    if mine.device.type != "npu":
        return f"result on {mine.device}"
    if mine.shape != right.shape or mine.dtype != right.dtype:
        return f"{mine.dtype} {list(mine.shape)} instead of {right.dtype} {list(right.shape)}"
    here = mine.detach().cpu()
    if shape_only:
        return ""
    try:
        torch.testing.assert_close(here, right.detach(), equal_nan=True)
    except AssertionError as error:
        return "values: " + " ".join(str(error).split())[:220]
    return ""


def not_farther(mine: torch.Tensor, right: torch.Tensor, number: int, wider: Any) -> bool:
    """Is our result no farther from the wider type's than three times torch's own and a few units in the last place?"""
    try:
        exact = flat(wider())[number].detach()
    except Exception:
        return False
    wide = WIDER[right.dtype]
    if exact.dtype != wide or exact.shape != right.shape:
        return False
    here, there = mine.detach().cpu().to(wide), right.detach().to(wide)
    special = ~(torch.isfinite(here) & torch.isfinite(there) & torch.isfinite(exact))
    try:
        torch.testing.assert_close(here[special], there[special], equal_nan=True)
    except AssertionError:
        return False
    here, there, exact = here[~special], there[~special], exact[~special]
    if exact.numel() == 0:
        return True
    ours, theirs, scale = (here - exact).abs().max(), (there - exact).abs().max(), exact.abs().max()
    return bool(ours <= 3 * theirs + 4 * torch.finfo(right.dtype).eps * scale)


def widened(value: Any) -> Any:
    """Arguments with their floating tensors and dtypes in the wider type."""

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(WIDER.get(tensor.dtype, tensor.dtype)).requires_grad_(tensor.requires_grad)

    value, args, kwargs = mapped(value, widen)
    return value, args, {key: WIDER.get(part, part) if isinstance(part, torch.dtype) else part for key, part in kwargs.items()}


def words_of(error: BaseException) -> str:
    """One line, without what the adapter puts around the detail of a refusal."""
    words = " ".join(str(error).split())
    words = re.sub(r" \[ERROR\] .*", "", re.sub(r"call \w+ failed, error code is \d+, detail: \w+: ", "", words))
    return f"{type(error).__name__}: {words[:240]}"


def joined(words: dict[str, str]) -> str:
    """One line for what went wrong in several forms."""
    forms: dict[str, list[str]] = {}
    for form, said in words.items():
        forms.setdefault(said, []).append(form)
    return "; ".join(f"{', '.join(names)}: {said}" for said, names in forms.items())


def both(on_cpu: Any, on_device: Any, compare: Any) -> str:
    """Runs a form on both; they must refuse it alike, or give what `compare` finds equal."""
    want_error = got_error = want = got = None
    try:
        want = on_cpu()
    except Exception as error:
        want_error = error
    try:
        got = on_device()
        torch.npu.synchronize()
    except Exception as error:
        got_error = error
    if want_error is None and got_error is None:
        return compare(got, want)
    if got_error is None:
        return f"not refused; torch: {words_of(want_error)}"
    if want_error is None:
        return words_of(got_error)
    related = isinstance(got_error, type(want_error)) or isinstance(want_error, type(got_error))
    return "" if related else f"{words_of(got_error)} instead of {words_of(want_error)}"


# --- judging ---


class Pair:
    """One operator with one dtype: its verdict of values."""

    def __init__(self, op: Any, dtype: torch.dtype, is_random: bool) -> None:
        self.op, self.dtype, self.random = op, dtype, is_random
        self.judged = 0
        self.words: dict[str, str] = {}

    def note(self, form: str, words: str) -> None:
        """Keeps the first words of each form."""
        if words:
            self.words.setdefault(form, words)

    def compare(self, got: Any, want: Any, sample: Any = None) -> str:
        """See difference()."""
        wider = (lambda: call(self.op.op, widened(sample))) if sample is not None else None
        return difference(self.op.name, got, want, self.random, wider)

    def value(self, form: str, sample: Any) -> Any:
        """The plain call; torch's result, None where torch refuses."""
        try:
            parts = copied(sample)
            seed()
            want = call(self.op.op, parts)
        except Exception:
            return None
        self.judged += 1
        try:
            self.check_places(sample)
            got = call(self.op.op, on_npu(sample, self.op.name))
            torch.npu.synchronize()
            self.note(form, self.compare(got, want, sample))
        except NotStrided:
            pass
        except Exception as error:
            self.note(form, words_of(error))
        return want

    def check_places(self, sample: Any) -> None:
        """Sorting, whose places aren't compared: the elements that they name must be those of torch."""
        if self.op.name not in ("sort", "argsort", "topk"):
            return
        places = flat(call(self.op.op, on_npu(sample)))[-1].cpu()
        want = flat(call(self.op.op, copied(sample)))[-1]
        dim = sample.kwargs.get("dim", sample.args[1 if self.op.name == "topk" else 0] if len(sample.args) > (self.op.name == "topk") else -1)
        if sample.input.dim() > 0 and not isinstance(dim, bool):
            found, expected = (torch.take_along_dim(sample.input.detach(), index, dim) for index in (places, want))
            if not torch.equal(torch.nan_to_num(found), torch.nan_to_num(expected)):
                self.note("places", "name other elements than torch's")

    def in_place(self, sample: Any) -> None:
        """The in-place form."""
        function = self.op.get_inplace()
        if function is None or getattr(sample, "broadcasts_input", False):
            return
        mine, theirs = on_npu(copied(sample), self.op.name), copied(sample)

        def run(parts: Any) -> Any:
            result = call(function, parts)
            return parts[0] if isinstance(parts[0], (list, tuple)) else result

        self.note("in place", both(lambda: run(theirs), lambda: run(mine), lambda got, want: self.compare(got, want)))

    def with_out(self, sample: Any, want: Any) -> None:
        """out= of the right size, empty, strided, of another dtype."""
        if not self.op.supports_out or not tensors_of(want):
            return
        makers = {"out": garbage, "out resized": lambda t: t.new_empty(0), "out strided": strided, "out of other type": other_type}
        for form, make in makers.items():
            theirs = mapped(want, make)
            theirs = tuple(theirs) if isinstance(theirs, tuple) else theirs
            mine = mapped(theirs, to_npu)
            before = [tensor.data_ptr() for tensor in tensors_of(mine)]

            def run(parts: Any, out: Any) -> Any:
                call(self.op.op, parts, out=out)
                return out

            words = both(
                lambda t=theirs: run(copied(sample), t),
                lambda m=mine: run(on_npu(sample, self.op.name), m),
                lambda got, expected, f=form: self.compare(got, expected, sample if f != "out of other type" else None),
            )
            if not words and form in ("out", "out strided") and before != [tensor.data_ptr() for tensor in tensors_of(mine)]:
                words = "out was given other memory"
            self.note(form, words)


def garbage(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same kind that holds something else."""
    return torch.full_like(tensor, 1, memory_format=torch.contiguous_format)


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same with gaps in memory."""
    return tensor.new_ones([*tensor.shape, 2])[..., 0]


def turned(value: Any) -> Any:
    """The same tensor with its dimensions in the opposite order in memory: without gaps, yet not contiguous. Other values stay."""
    if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.layout != torch.strided:
        return value
    order = tuple(reversed(range(value.dim())))
    return value.detach().permute(order).clone(memory_format=torch.contiguous_format).permute(order).requires_grad_(value.requires_grad)


def other_type(tensor: torch.Tensor) -> torch.Tensor:
    """The same in a type that torch may or may not cast to."""
    other = {torch.float32: torch.float64, torch.int32: torch.int64, torch.bool: torch.uint8, torch.int64: torch.float32}
    return torch.ones(tensor.shape, dtype=other.get(tensor.dtype, torch.int32))


def judge_forward(op: Any, dtype: torch.dtype, is_random: bool, full: bool) -> Pair:
    """Values in all forms."""
    pair = Pair(op, dtype, is_random)
    counts = opinfo_judge.SAMPLES
    samples = chosen(op, dtype, None if full else counts["forward"])
    few = len(samples) if full else counts["forms"]
    for number, sample in enumerate(samples):
        want = pair.value("values", sample)
        if want is None:
            continue
        if number < few:
            pair.in_place(sample)
            pair.with_out(sample, want)
            if not op.name.startswith("_foreach"):
                for form, change in {"non-contiguous": lambda s: s.noncontiguous(), "turned": lambda s: s.transform(turned)}.items():
                    try:
                        changed = change(sample)
                    except Exception:
                        continue
                    pair.value(form, changed)
    return pair


def gradients(op: Any, sample: Any) -> list[Any]:
    """Gradients of all inputs with respect to fixed weights of the results."""
    inputs = [tensor for tensor in tensors_of(sample if isinstance(sample, tuple) else sample_parts(sample)) if tensor.requires_grad]
    result = call(op.op, sample)
    outputs = [part for part in flat(result) if isinstance(part, torch.Tensor) and part.requires_grad]
    seed()
    weights = [torch.randn(output.shape, dtype=output.dtype).to(output.device) for output in outputs]
    return [gradient for gradient in torch.autograd.grad(outputs, inputs, weights, allow_unused=True)]


def judge_gradient(op: Any, dtype: torch.dtype, is_random: bool, full: bool) -> tuple[int, str]:
    """(samples judged, words)."""
    judged, said = 0, ""
    samples = chosen(op, dtype, None if full else opinfo_judge.SAMPLES["gradient"], requires_grad=True)
    if not op.name.startswith("_foreach"):
        samples = [*samples, *(sample.transform(turned) for sample in samples[:2])]
    for sample in samples:
        try:
            want = gradients(op, sample)
        except Exception:
            continue
        judged += 1
        try:
            got = gradients(op, on_npu(sample, op.name))
            torch.npu.synchronize()
            words = difference("gradient", got, want, is_random, lambda s=sample: gradients(op, widened(s)))
        except Exception as error:
            words = words_of(error)
        said = said or words
    return judged, said


def judge_errors(op: Any) -> tuple[int, str]:
    """What the OpInfo says must be refused, with which exception."""
    if op.error_inputs_func is None:
        return 0, ""
    try:
        theirs = list(op.error_inputs("cpu"))
    except Exception:
        return 0, ""
    try:
        mine = list(op.error_inputs("npu"))
    except Exception as error:
        return 1, f"making the inputs: {words_of(error)}"
    judged, said = 0, ""
    for number, ours in enumerate(mine):
        if len(theirs) == len(mine):
            error = attempt(lambda n=number: call(op.op, theirs[n].sample_input))
            if error is None or not isinstance(error, ours.error_type):
                continue
        judged += 1

        def run(sample: Any = ours.sample_input) -> None:
            call(op.op, sample)
            torch.npu.synchronize()

        error = attempt(run)
        if error is None:
            said = said or f"input {number} is not refused: {ours.error_regex}"[:250]
        elif not isinstance(error, ours.error_type):
            said = said or f"input {number}: {words_of(error)} instead of {ours.error_type}"[:300]
    return judged, said


def judge_siblings(calls: opinfo_siblings.Calls, reached: set[str]) -> list[tuple[str, str, str]]:
    """(overload, dtype, words) of overloads that the OpInfo itself doesn't call but has arguments for."""
    found: dict[tuple[str, str], str] = {}
    for name, kept in calls.kept.items():
        for other in opinfo_siblings.overloads_like(name, calls):
            function = opinfo_siblings.overload(other)
            if other in reached or function is None:
                continue
            for source, arguments, options in kept:
                try:
                    positional, named, outputs = opinfo_siblings.call_for(function, source, arguments, options)
                    words = judge_overload(function, positional, named, outputs)
                except (ValueError, NotStrided):
                    continue
                if words is not None:
                    dtype = next((DTYPES.get(tensor.dtype, "-") for tensor in tensors_of(positional)), "-")
                    found[other, dtype] = found.get((other, dtype)) or words
    return [(other, dtype, words) for (other, dtype), words in found.items()]


def judge_overload(function: Any, positional: list[Any], named: dict[str, Any], outputs: list[str], like: Any = None) -> str | None:
    """Words on one overload with these arguments, with empty outputs where it has some; None when torch's CPU refuses."""
    is_random = torch.Tag.nondeterministic_seeded in function.tags

    def moved(parts: tuple[list[Any], dict[str, Any]]) -> Any:
        there = on_npu(copied(parts))
        for name, stays in STAYS_ON_CPU.items():
            if function.name() == f"aten::{name}":
                there[0][stays] = parts[0][stays]
        return there

    def run(parts: tuple[Any, dict[str, Any]], out: dict[str, Any]) -> Any:
        result = function(*parts[0], **parts[1], **out)
        return result if result is not None else parts[0][0]

    def made(device: str) -> dict[str, Any]:
        return {name: torch.empty(0, dtype=kind, device=device) for name, kind in zip(outputs, kinds)}

    parts = (positional, named)
    kinds: list[torch.dtype] = []
    if outputs:
        kinds = output_kinds(function, parts, outputs) if like is None else [like.dtype]
    try:
        want = run(copied(parts), made("cpu"))
    except Exception:
        return None
    try:
        got = run(moved(parts), made("npu"))
        torch.npu.synchronize()
        wide = (lambda: run(mapped(copied(parts), lambda t: t.to(WIDER.get(t.dtype, t.dtype))), {})) if not outputs else None
        return difference(function.name().removeprefix("aten::"), got, want, is_random, wide)
    except NotStrided:
        raise
    except Exception as error:
        return words_of(error)


def judge_samples(listed: set[str]) -> dict[str, Any]:
    """The verdict on the samples of opinfo_samples.py, in the shape of an OpInfo's."""
    found: dict[tuple[str, str], str] = {}
    for name, arguments, options in opinfo_samples.samples():
        function = opinfo_siblings.overload(name)
        if function is None or name not in listed:
            continue
        outputs = [parameter.name for parameter in function._schema.arguments if parameter.is_out]
        like = options.pop("like", None)
        words = judge_overload(function, list(arguments), options, outputs, like)
        dtype = next((DTYPES.get(tensor.dtype, "-") for tensor in tensors_of(arguments)), "-")
        found[name, dtype] = found.get((name, dtype)) or ("torch's CPU refuses the sample" if words is None else words)
    return {"reached": [], "unlisted": [], "pairs": [], "siblings": [(name, dtype, words) for (name, dtype), words in found.items()]}


def output_kinds(function: Any, parts: Any, outputs: list[str]) -> list[torch.dtype]:
    """Dtypes of outputs that torch's CPU takes: the first input's, else the first of the others that works for all."""
    first = next((tensor.dtype for tensor in tensors_of(parts[0])), torch.float32)
    for last in (first, torch.int64):
        for kind in (first, *(other for other in DTYPES if other != first)):
            kinds = [kind] * (len(outputs) - 1) + [last if len(outputs) > 1 else kind]
            out = {name: torch.empty(0, dtype=dtype) for name, dtype in zip(outputs, kinds)}
            if attempt(lambda o=out: function(*copied(parts)[0], **copied(parts)[1], **o)) is None:
                return kinds
    return [first] * len(outputs)


def judge(op: Any, listed: set[str], full: bool) -> dict[str, Any]:
    """The verdict of one OpInfo."""
    supported = [dtype for dtype in DTYPES if dtype in op.supported_dtypes("cpu")]
    preferred = [dtype for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64) if dtype in supported] or supported
    print("at recording", flush=True)
    calls = opinfo_siblings.Calls(listed, op)
    recorders = [record(op, dtype, calls) for dtype in preferred[:2]]
    outermost = set().union(*(recorder.outermost for recorder in recorders))
    reached = set().union(*(recorder.reached for recorder in recorders))
    is_random = any(recorder.random for recorder in recorders)
    unlisted = sorted(name for name in outermost - listed if not opinfo_judge.PLUMBING.match(name.split(".")[0]))
    verdict: dict[str, Any] = {"reached": sorted(reached & listed), "unlisted": unlisted, "pairs": []}
    if unlisted or not outermost:
        return verdict
    for dtype in supported:
        print(f"at forward {DTYPES[dtype]}", flush=True)
        pair = judge_forward(op, dtype, is_random, full)
        if pair.judged:
            verdict["pairs"].append(("forward", DTYPES[dtype], joined(pair.words)))
    for dtype in (torch.float64, torch.float32):
        if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"):
            print(f"at gradient {DTYPES[dtype]}", flush=True)
            judged, words = judge_gradient(op, dtype, is_random, full)
            if judged:
                verdict["pairs"].append(("gradient", DTYPES[dtype], words))
    print("at siblings", flush=True)
    verdict["siblings"] = judge_siblings(calls, reached)
    print("at errors -", flush=True)
    judged, words = judge_errors(op)
    if judged:
        verdict["pairs"].append(("errors", "-", words))
    return verdict
