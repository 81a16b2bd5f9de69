"""Writes the dispatcher wrappers: the installed torch's native_functions.yaml x operators.yaml -> sharded C++.

operators.yaml has one entry a group of overloads:
  structured    functional, in-place and out forms around torch's meta function; `op` names the out overload. `run` instead of a C function
                composes the result in C++ (composed.h, matrices.h), of the C functions in `needs`
  plain         operators without a meta function: `outputs` says how to make the results
  foreach       lists of tensors: ours when the lists are uniform, else torch's own loop
An entry whose overload the installed torch lacks fails the build unless `versions` excludes that torch. The calls of the C functions are
derived from the schema (see src/op_plugin/op_plugin.h), so a wrong table entry doesn't compile.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

import torchgen
import yaml
from torchgen.api import structured
from torchgen.api.translate import translate
from torchgen.api.types import Binding, DispatcherSignature
from torchgen.context import native_function_manager
from torchgen.gen import parse_native_yaml
from torchgen.model import DispatchKey, NativeFunction, NativeFunctionsGroup, SchemaKind
from torchgen.utils import concatMap

HERE = Path(__file__).resolve().parent
SHARD_COST = 90  # about 16 CPU seconds each
COSTS = {"structured": 3, "plain": 1, "foreach": 1}


class TableError(Exception):
    """A table entry that doesn't fit the installed torch."""


@dataclass
class Piece:
    """Code of one entry: headers it needs, text at namespace level, registrations."""

    name: str
    cost: int
    includes: set[str] = field(default_factory=set)
    text: list[str] = field(default_factory=list)
    registrations: list[str] = field(default_factory=list)


class Torch:
    """The installed torch's operators, by overload name and by structured group."""

    def __init__(self) -> None:
        """Reads the yaml that ships with torchgen."""
        folder = Path(torchgen.__file__).parent / "packaged/ATen/native"
        parsed = parse_native_yaml(str(folder / "native_functions.yaml"), str(folder / "tags.yaml"))
        self.functions: dict[str, NativeFunction] = {str(f.func.name): f for f in parsed.native_functions}
        self.indices = parsed.backend_indices
        from torchgen.gen import get_grouped_native_functions

        groups = [g for g in get_grouped_native_functions(parsed.native_functions) if isinstance(g, NativeFunctionsGroup)]
        self.groups: dict[str, NativeFunctionsGroup] = {str(g.out.func.name): g for g in groups if g.structured}

    def function(self, name: str) -> NativeFunction:
        """The overload, or a TableError."""
        if name not in self.functions:
            raise TableError(f"the installed torch has no operator aten::{name}; mark the entry with `versions` if others have it")
        return self.functions[name]


def signature(f: NativeFunction) -> DispatcherSignature:
    """C++ signature that the dispatcher calls (no symbolic integers)."""
    return DispatcherSignature.from_schema(f.func, symint=False)


def parameters(f: NativeFunction) -> list[Binding]:
    """Arguments in schema order."""
    with native_function_manager(f):
        return signature(f).arguments()


def is_tensor(binding: Binding) -> bool:
    """Does the argument carry tensors, so that it can tell the device?"""
    kind = str(binding.argument.type)
    return kind.startswith("Tensor")


def device_guard(bindings: list[Binding], overridden: dict[str, str] | None = None) -> str:
    """Statement that makes the arguments' device current, or nothing for operators without tensors."""
    names = [b.name for b in bindings if is_tensor(b) and "?[]" not in str(b.argument.type)]
    return f"  const OnDevice guard(device_index_of({', '.join(names)}));\n" if names else ""


def call_arguments(f: NativeFunction, entry: dict, outputs: list[str]) -> str:
    """Arguments of the C function: converted inputs, outputs, stream."""
    replaced = entry.get("arguments", {})
    out_names = {a.name for a in f.func.arguments.out}
    names = [b.name for b in parameters(f) if b.name not in out_names]
    unknown = set(replaced) - set(names)
    if unknown:
        raise TableError(f"{f.func.name}: `arguments` names {sorted(unknown)}, which the schema lacks")
    written = {b.name for b in parameters(f) if b.argument.annotation is not None and b.argument.annotation.is_write}
    spelled = {name: f"{'written' if name in written else 'argument'}({replaced.get(name, name)})" for name in names}
    inputs = [spelled[name] for name in names if replaced.get(name, name) is not None]
    return ", ".join([*inputs, *entry.get("extra_arguments", []), *[f"written({output})" for output in outputs], "stream()"])


def declare(f: NativeFunction, name: str) -> str:
    """Head of a wrapper."""
    with native_function_manager(f):
        arguments = ", ".join(f"{b.nctype.cpp_type()} {b.name}" for b in parameters(f))
        return f"static {signature(f).returns_type().cpp_type()} {name}({arguments})"


def meta_call(group: NativeFunctionsGroup, f: NativeFunction) -> str:
    """Arguments for the meta function, from the wrapper's own."""
    with native_function_manager(group):
        return ", ".join(e.expr for e in translate(list(signature(f).arguments()), structured.meta_arguments(group), method=False))


def register(piece: Piece, f: NativeFunction, name: str, entry: dict) -> None:
    """Registers a wrapper, unless the loaded CANN lacks what it calls."""
    functions = [entry[key] for key in ("call", "scalar_call") if key in entry] + entry.get("needs", [])
    if not functions:
        piece.registrations.append(f'm.impl("{f.func.name}", TORCH_FN({name}));')
        return
    condition = " && ".join(f'available("{function}")' for function in functions)
    piece.registrations.append(f'if ({condition})\n    m.impl("{f.func.name}", TORCH_FN({name}));')


# --- fast paths: (family) -> code before the slow path, by form ---

RULES = {"same": "Rule::same", "floating": "Rule::floating", "boolean": "Rule::boolean"}


def fast_path(entry: dict, kind: SchemaKind, names: list[str]) -> str:
    """Code that serves the usual calls without torch's meta function."""
    if "fast" not in entry or kind == SchemaKind.out:
        return ""
    family, rule_name = entry["fast"].split()
    if kind == SchemaKind.inplace and rule_name == "boolean":
        return ""
    maker = fast_binary if family == "binary" else fast_unary
    return maker(entry, kind == SchemaKind.inplace, names)


def fast_call(condition: str, made: str, function: str, inputs: str, result: str) -> str:
    """One attempt of the fast path: when the condition holds, make the result, call, return. In place, nothing is made."""
    return f"""  if ({condition}) {{
    {made}
    check({function}({inputs}, stream()));
    return {result};
  }}
"""


def conditional(entry: dict, test: str) -> str:
    """The test behind the entry's own condition."""
    return f"{entry['fast_when']} && {test}" if "fast_when" in entry else test


def result_if(entry: dict, made: str) -> str:
    """Declares `fast`, which stays undefined where the entry's own condition doesn't hold."""
    made = f"({entry['fast_when']}) ? {made} : at::Tensor()" if "fast_when" in entry else made
    return f"at::Tensor fast = {made}; fast.defined()"


def fast_unary(entry: dict, inplace: bool, names: list[str]) -> str:
    """A tensor alone, or with a Scalar as second argument."""
    family, rule_name = entry["fast"].split()
    rule, function = RULES[rule_name], f"npu_{entry['call']}"
    rest = "".join(f"argument({name}), " for name in names[1:])
    fits = f"fast_with_scalar(self, {names[1]}, {rule})" if family == "scalar" else f"fast_unary_inplace(self, {rule})"
    if inplace:
        return fast_call(conditional(entry, fits), "const Plain plain(self);", function, f"plain, {rest}plain", "self")
    if family == "scalar":
        dtype = "at::kBool" if rule_name == "boolean" else "self.scalar_type()"
        made = f"at::Tensor fast = dense_like(self, {dtype});"
        return fast_call(conditional(entry, fits), made, function, f"Plain(self), {rest}Plain(fast)", "fast")
    return fast_call(result_if(entry, f"fast_unary(self, {rule})"), "", function, f"Plain(self), {rest}Plain(fast)", "fast")


def fast_binary(entry: dict, inplace: bool, names: list[str]) -> str:
    """Two tensors, or a tensor and a wrapped number when the entry names the C function for that."""
    rule_name = entry["fast"].split()[1]
    rule, function, scalar_function = RULES[rule_name], f"npu_{entry['call']}", f"npu_{entry.get('scalar_call')}"
    a, b = names[:2]
    rest = "".join(f"argument({name}), " for name in names[2:])
    if inplace:
        made, result, written = f"const Plain plain({a});", a, "plain"
        text = fast_call(conditional(entry, f"fast_binary_inplace({a}, {b}, {rule})"), made, function, f"plain, Plain({b}), {rest}plain", a)
        test = f"npu_scalar value; {conditional(entry, f'fast_scalar_inplace({a}, {b}, {rule}, value)')}"
    else:
        text = fast_call(result_if(entry, f"fast_binary({a}, {b}, {rule})"), "", function, f"Plain({a}), Plain({b}), {rest}Plain(fast)", "fast")
        dtype = "at::kBool" if rule_name == "boolean" else f"{a}.scalar_type()"
        made, result, written = f"at::Tensor fast = dense_like({a}, {dtype});", "fast", "Plain(fast)"
        test = f"npu_scalar value; {conditional(entry, f'fast_scalar({a}, {b}, {rule}, value)')}"
    if "scalar_call" in entry:
        text += fast_call(test, made, scalar_function, f"Plain({a}), &value, {rest}{written}", result)
    return text


def structured_piece(torch: Torch, entry: dict) -> Piece:
    """Functional, in-place and out wrappers of a structured group."""
    group = torch.groups.get(entry["op"])
    if group is None:
        torch.function(entry["op"])
        raise TableError(f"aten::{entry['op']} isn't the out overload of a structured group in the installed torch")
    base = str(group.out.func.name.name)
    meta_name = f"at::meta::structured_{structured_name(group)}"
    space = f"structured_{re.sub(r'[^0-9a-zA-Z]', '_', str(group.out.func.name))}"
    piece = Piece(entry["op"], COSTS["structured"], {f"<ATen/ops/{base}_meta.h>"})
    count = len(group.out.func.returns)
    outputs = [f"kernel.outputs[{i}]" for i in range(count)]
    piece.text.append(f"namespace {space} {{\nusing Kernel = Structured<{meta_name}, {count}>;\n")
    for f in (group.functional, group.inplace, group.out):
        if f is None:
            continue
        kind = f.func.kind()
        name = {SchemaKind.functional: "functional", SchemaKind.inplace: "inplace", SchemaKind.out: "out"}[kind]
        out_names = [a.name for a in f.func.arguments.out]
        names = [b.name for b in parameters(f) if b.name not in out_names]
        given = {SchemaKind.functional: [], SchemaKind.inplace: ["self"], SchemaKind.out: out_names}[kind]
        made = f"Kernel kernel(Form::{', '.join([name, *given])});"
        if kind == SchemaKind.functional:
            result = "std::move(kernel.outputs[0])" if count == 1 else f"std::make_tuple({', '.join(f'std::move({o})' for o in outputs)})"
        elif kind == SchemaKind.inplace:
            result = "self"
        else:
            result = out_names[0] if count == 1 else f"std::forward_as_tuple({', '.join(out_names)})"
        piece.text.append(
            f"{declare(f, name)} {{\n{fast_path(entry, kind, names)}{device_guard(parameters(f))}{before(entry)}"
            f"{out_check(f, entry) if kind == SchemaKind.out else ''}  {made}\n"
            f"  kernel.meta({meta_call(group, f)});\n  {kernel_call(f, entry, outputs)}\n"
            f"  return {result};\n}}\n"
        )
        register(piece, f, f"{space}::{name}", entry)
    piece.text.append(f"}} // namespace {space}\n")
    return piece


def kernel_call(f: NativeFunction, entry: dict, outputs: list[str]) -> str:
    """Statement that computes: a C function of op_plugin, or `run`, the adapter's own composition of other operators."""
    if "run" not in entry:
        return f"check(npu_{entry['call']}({call_arguments(f, entry, outputs)}));"
    return f"{entry['run']};" if "kernel.outputs" in entry["run"] else f"kernel.outputs[0].copy_({entry['run']});"


def structured_name(group: NativeFunctionsGroup) -> str:
    """Name of the meta struct: torch names it after the functional overload."""
    from torchgen.api import meta

    return meta.name(group)


def written(f: NativeFunction, output: str) -> str:
    """Statement that checks an elementwise operator's written tensor against torch's rules on shared memory."""
    inputs = [b.name for b in parameters(f) if str(b.argument.type) == "Tensor" and b.name not in {output, *(a.name for a in f.func.arguments.out)}]
    return f"check_written({', '.join([output, *inputs])});"


def out_check(f: NativeFunction, entry: dict) -> str:
    """Line of an out form that checks its outputs' memory, or nothing."""
    statement = entry.get("out_check", "written" if "inplace" in entry else "")
    if statement == "written":
        statement = written(f, f.func.arguments.out[0].name)
    return f"  {statement}\n" if statement else ""


def plain_piece(torch: Torch, entry: dict) -> Piece:
    """Wrappers of an operator whose results `outputs` makes; also its in-place and out forms when asked for (`inplace`, `out`)."""
    f = torch.function(entry["op"])
    space = f"plain_{re.sub(r'[^0-9a-zA-Z]', '_', entry['op'])}"
    piece = Piece(entry["op"], COSTS["plain"])
    if f.func.kind() == SchemaKind.inplace:
        forms = [(f, "run", plain_inplace_only(f, entry))]
    else:
        forms = [(f, "functional", plain_functional(torch, f, entry, piece))]
        if "inplace" in entry:
            g = torch.function(entry["inplace"])
            forms.append((g, "inplace", plain_inplace(g, entry)))
        if "out" in entry:
            g = torch.function(entry["out"])
            forms.append((g, "out_form", plain_out(f, g, entry)))
    text = "".join(f"{declare(g, name)} {{\n{body}}}\n" for g, name, body in forms)
    piece.text.append(f"namespace {space} {{\n{text}}} // namespace {space}\n")
    for g, name, _ in forms:
        register(piece, g, f"{space}::{name}", entry)
    return piece


def before(entry: dict) -> str:
    """The entry's own statement."""
    return f"  {entry['before']}\n" if "before" in entry else ""


def made_results(entry: dict) -> list[str]:
    """Expressions that make the results."""
    return entry["outputs"] if isinstance(entry["outputs"], list) else [entry["outputs"]]


def plain_inplace_only(f: NativeFunction, entry: dict) -> str:
    """Body for an operator that torch has in place only: the C function writes self."""
    outputs = ["self"] if entry.get("writes_result") else []
    return f"{device_guard(parameters(f))}{before(entry)}  check(npu_{entry['call']}({call_arguments(f, entry, outputs)}));\n  return self;\n"


def plain_functional(torch: Torch, f: NativeFunction, entry: dict, piece: Piece) -> str:
    """Body that makes the results; with `when`, torch's own composition or `otherwise` serves what the C function doesn't cover."""
    names = [b.name for b in parameters(f)]
    results = [f"result{i}" for i in range(len(made_results(entry)))]
    made = "".join(f"  at::Tensor {r} = {e};\n" for r, e in zip(results, made_results(entry)))
    returned = results[0] if len(results) == 1 else f"std::make_tuple({', '.join(results)})"
    composed = ""
    if "otherwise" in entry:
        composed = f"  if (!({entry['when']}))\n    return {entry['otherwise']};\n"
    elif "when" in entry:
        piece.includes.add(f"<ATen/ops/{f.func.name.name}_native.h>")
        composed = f"  if (!({entry['when']}))\n    return at::native::{composite_kernel(torch, f)}({', '.join(names)});\n"
    return (
        f"{fast_path(entry, SchemaKind.functional, names)}{device_guard(parameters(f))}{composed}{before(entry)}{made}"
        f"  check(npu_{entry['call']}({call_arguments(f, entry, results)}));\n  return {returned};\n"
    )


def composite_kernel(torch: Torch, f: NativeFunction) -> str:
    """Name of torch's implementation in terms of other operators."""
    for key in (DispatchKey.CompositeExplicitAutograd, DispatchKey.CompositeImplicitAutograd):
        if torch.indices[key].has_kernel(f):
            return torch.indices[key].get_kernel(f).kernel
    if f.has_composite_implicit_autograd_kernel:
        return str(f.func.name.name)
    raise TableError(f"aten::{f.func.name} has no composite kernel in the installed torch")


def plain_inplace(f: NativeFunction, entry: dict) -> str:
    """Body of the in-place form."""
    checked = made_results(entry)[0] if entry.get("inplace_checks") else "self"
    return (
        f"{fast_path(entry, SchemaKind.inplace, [b.name for b in parameters(f)])}{device_guard(parameters(f))}{before(entry)}"
        f"  {written(f, 'self')} {entry.get('inplace_check', '')}\n  check_inplace_result(self, {checked});\n"
        f"  check(npu_{entry['call']}({call_arguments(f, entry, ['self'])}));\n  return self;\n"
    )


def plain_out(functional: NativeFunction, f: NativeFunction, entry: dict) -> str:
    """Body of the out form: the functional one, copied."""
    out_names = [a.name for a in f.func.arguments.out]
    values = ["made"] if len(out_names) == 1 else [f"std::get<{i}>(made)" for i in range(len(out_names))]
    copies = "".join(f"  write_out({o}, {v});\n" for o, v in zip(out_names, values))
    names = ", ".join(b.name for b in parameters(functional))
    return f"{out_check(f, entry)}  auto made = functional({names});\n{copies}  return {returned_name(out_names)};\n"


def returned_name(out_names: list[str]) -> str:
    """What an out form returns."""
    return out_names[0] if len(out_names) == 1 else f"std::forward_as_tuple({', '.join(out_names)})"


def foreach_piece(torch: Torch, entry: dict) -> Piece:
    """Functional and in-place wrappers over lists; lists that aren't uniform go to torch's own loop."""
    base, _, overload = entry["op"].partition(".")
    piece = Piece(entry["op"], COSTS["foreach"])
    piece.includes.add(f"<ATen/ops/{base}_native.h>")
    space = f"lists_{re.sub(r'[^0-9a-zA-Z]', '_', entry['op'])}"
    text = ""
    for name, form in ((entry["op"], "functional"), (f"{base}_" + (f".{overload}" if overload else ""), "inplace")):
        if name not in torch.functions:
            if form == "functional" and not entry.get("inplace_only"):
                torch.function(name)
            continue
        f = torch.functions[name]
        if form == "functional" and entry.get("inplace_only"):
            continue
        names = [b.name for b in parameters(f)]
        lists = [b.name for b in parameters(f) if "[]" in str(b.argument.type) and str(b.argument.type).startswith("Tensor")]
        slow = torch.indices[DispatchKey.CompositeExplicitAutograd].get_kernel(f)
        if slow is None:
            raise TableError(f"aten::{name} has no composite kernel in the installed torch")
        condition = entry.get("when", f"uniform_lists({{{', '.join(lists)}}})")
        if "and_when" in entry:
            condition += f" && {entry['and_when']}"
        text += (
            f"{declare(f, form)} {{\n  if (!({condition}))\n    return at::native::{slow.kernel}({', '.join(names)});\n{device_guard(parameters(f))}"
        )
        model = entry.get("model", "self")
        if form == "functional":
            text += f"  std::vector<at::Tensor> result = {entry.get('outputs', f'lists_like({model})')};\n"
            outputs = "at::TensorList(result)"
        else:
            outputs = "self"
        if entry.get("no_output"):
            text += f"  check(npu_{entry['call']}({call_arguments(f, entry, [])}));\n"
        else:
            text += f"  check(npu_{entry['call']}({call_arguments(f, entry, [outputs])}));\n"
        text += "  return result;\n}\n" if form == "functional" else "}\n"
        register(piece, f, f"{space}::{form}", entry)
    piece.text.append(f"namespace {space} {{\n{text}}} // namespace {space}\n")
    return piece


SHARD = """// Made by bridge/codegen/generate.py. Wrappers of: {names}
#include <torch/library.h>

#include "bridge/operators/complex.h"
#include "bridge/operators/composed.h"
#include "bridge/operators/fast.h"
#include "bridge/operators/matrices.h"
#include "bridge/operators/registry.h"
#include "bridge/operators/shapes.h"
#include "bridge/operators/structured.h"
{includes}

namespace npu {{
namespace {{
{text}
void register_wrappers(torch::Library &m) {{
  {registrations}
}}
const Registrar registrar(&register_wrappers);
}} // namespace
}} // namespace npu
"""


def write_shards(pieces: list[Piece], output: Path) -> None:
    """Spreads the pieces evenly over files of about SHARD_COST."""
    count = max(1, -(-sum(p.cost for p in pieces) // SHARD_COST))
    shards: list[list[Piece]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=lambda p: (-p.cost, p.name)):
        min(shards, key=lambda shard: sum(p.cost for p in shard)).append(piece)
    for number, shard in enumerate(shards):
        shard.sort(key=lambda p: p.name)
        text = SHARD.format(
            names=" ".join(p.name for p in shard),
            includes="".join(f"#include {name}\n" for name in sorted(set(concatMap(lambda p: p.includes, shard)))),
            text="".join("".join(p.text) for p in shard),
            registrations="\n  ".join(concatMap(lambda p: p.registrations, shard)),
        )
        (output / f"wrappers_{number:02}.cpp").write_text(text)


def installed_minor() -> str:
    """Minor version of the installed torch, as 2.13."""
    import importlib.metadata

    return ".".join(importlib.metadata.version("torch").split(".")[:2])


def check_handwritten(torch: Torch, folder: Path) -> list[str]:
    """Names that hand-written files register but the installed torch lacks (torch itself would accept them silently)."""
    wrong = []
    for path in sorted(folder.glob("**/*.cpp")):
        for name in re.findall(r'\bm\.impl\(\s*"([\w.]+)"', path.read_text()):
            if name not in torch.functions:
                wrong.append(f"{path.name}: aten::{name}")
    return wrong


def main() -> None:
    """Entry point of the build step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    torch = Torch()
    table = yaml.safe_load((HERE / "operators.yaml").read_text())
    makers = {"structured": structured_piece, "plain": plain_piece, "foreach": foreach_piece}
    pieces, errors = [], []
    for kind, maker in makers.items():
        for entry in table.get(kind) or []:
            if "versions" in entry and installed_minor() not in entry["versions"]:
                continue
            if "run" not in entry:
                entry.setdefault("call", default_call(entry["op"]))
            try:
                pieces.append(maker(torch, entry))
            except TableError as error:
                errors.append(f"operators.yaml: {error}")
    errors += [f"{name}: the installed torch has no such operator" for name in check_handwritten(torch, HERE.parent)]
    if errors:
        raise SystemExit("\n".join(errors))
    write_shards(pieces, options.output)


def default_call(op: str) -> str:
    """C function when the entry names none: the operator without out suffix."""
    return op.partition(".")[0].strip("_")


if __name__ == "__main__":
    main()
