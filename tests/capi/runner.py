"""Runs rows: which element types phase 1 accepts, and whether the values of all that it accepts are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from cases import ALL, Optional, Out, Row, memory_of
from library import REFUSED, Call, Failure


@dataclass
class Report:
    """What came out for one operator."""

    accepted: list[torch.dtype] = field(default_factory=list)
    compared: int = 0  # calls
    faults: list[str] = field(default_factory=list)
    words: dict[torch.dtype, str] = field(default_factory=dict)  # of the refusals


def flat(values: Sequence[Any]) -> Iterator[Any]:
    """All arguments, those inside lists too."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from flat(value)
        else:
            yield value


def unwrap(value: Any) -> Any:
    """Outputs as their tensors."""
    if isinstance(value, (list, tuple)):
        return [unwrap(v) for v in value]
    return value.view if isinstance(value, Out) else value


@dataclass
class Outcome:
    """Of one call."""

    accepted: bool
    fault: str | None = None  # what is wrong
    words: str = ""  # of a refusal


def refusal(operator: str, call: Call, code: int) -> Outcome:
    """A refusal is sound when the code and the words are those of a refused parameter."""
    words = call.libs.message()
    if code != REFUSED:
        return Outcome(False, f"phase 1 returned {code}, not {REFUSED}: {words}", words)
    return Outcome(False, None if f"aclnn{operator}" in words else f"the refusal doesn't name the operator: {words!r}", words)


def wrong(call: Call, outs: list[Out], outside: list[torch.Tensor]) -> str | None:
    """What is wrong with the outputs of a call that ran."""
    for i, out in enumerate(outs):
        if out.found_shape and out.expected is not None and call.shape_of(out.view) != tuple(out.expected.shape):
            return f"output {i}: the handle says {call.shape_of(out.view)}, expected {tuple(out.expected.shape)}"
        if words := out.difference():
            return f"output {i}: {words}"
        if not torch.equal(out.outside(), outside[i]):
            return f"output {i}: memory outside the view was written"
    return None


def compare(operator: str, values: Sequence[Any]) -> Outcome:
    """Runs one call and judges outputs, the memory around them, and inputs, which must be as they were."""
    outs = [v for v in flat(values) if isinstance(v, Out)]
    inputs = [v for v in flat(values) if isinstance(v, torch.Tensor)]
    before = [memory_of(v).clone() for v in inputs]
    outside = [out.outside() for out in outs]
    call = Call(operator, unwrap(values))
    try:
        code = call.plan()
        if code:
            return refusal(operator, call, code)
        call.run(keep_handles=any(out.found_shape for out in outs))
        fault = wrong(call, outs, outside)
        for i, tensor in enumerate(inputs):
            if not torch.equal(memory_of(tensor), before[i]):
                fault = fault or f"tensor argument {i} was written"
        return Outcome(True, fault)
    except Failure as failure:
        return Outcome(True, str(failure))
    finally:
        call.close()


def check_dtype(row: Row, dtype: torch.dtype, report: Report) -> bool:
    """All cases of one type. False when torch has no reference for it."""
    accepted: bool | None = None
    for case in row.cases(dtype):
        calls = row.calls(case)
        for number in range(1000):
            where = f"{str(dtype)[6:]} {list(case.shape)} {case.layout} call {number}"
            try:
                values = next(calls)
            except StopIteration:
                break
            except (RuntimeError, NotImplementedError, TypeError, IndexError) as error:
                if number == 0 and accepted is None and dtype not in row.needs:
                    return False
                report.faults.append(f"{where}: no reference: {error}")
                break
            optional = isinstance(values, Optional)
            outcome = compare(row.operator, values.values if optional else values)
            report.compared += outcome.accepted
            if outcome.words:
                report.words[dtype] = outcome.words
            if outcome.fault:
                report.faults.append(f"{where}: {outcome.fault}")
            elif optional:
                continue
            elif accepted is None:
                accepted = outcome.accepted
            elif outcome.accepted != accepted:
                report.faults.append(f"{where}: {'accepted' if outcome.accepted else 'refused'}, unlike the calls before: {outcome.words}")
            if not accepted:
                break
        if accepted is False or len(report.faults) > 5:
            break
    if accepted:
        report.accepted.append(dtype)
    return True


def retyped(value: Any, donor: torch.dtype, dtype: torch.dtype) -> Any:
    """An argument of the donor's type as one of the type asked for."""
    if isinstance(value, (list, tuple)):
        return [retyped(v, donor, dtype) for v in value]
    if isinstance(value, torch.Tensor) and value.dtype == donor:
        return torch.zeros(value.shape, dtype=dtype)
    return dtype if value is donor else value


def takes(operator: str, values: Sequence[Any]) -> bool:
    """Whether phase 1 accepts the arguments."""
    call = Call(operator, values)
    code = call.plan()
    if code:
        call.libs.message()  # reading clears it
    else:
        call.libs.handles.aclDestroyAclOpExecutor(call.executor)
    call.close()
    return code == 0


def takes_retyped(row: Row, donor: torch.dtype, dtype: torch.dtype) -> bool:
    """Whether phase 1 accepts a type for which torch has no reference: tried with the arguments of one that has one."""
    values = next(row.calls(next(row.cases(donor))))
    return takes(row.operator, retyped(unwrap(values), donor, dtype))


def check_row(row: Row) -> Report:
    """All types; one without a reference must be refused."""
    report = Report()
    unknown = [dtype for dtype in ALL if dtype not in row.dtypes]
    unknown += [dtype for dtype in row.dtypes if not check_dtype(row, dtype, report)]
    for dtype in unknown:
        if report.accepted and takes_retyped(row, report.accepted[0], dtype):
            report.faults.append(f"{str(dtype)[6:]} is accepted, and the row has no reference for it")
    for dtype in row.needs:
        if dtype not in report.accepted:
            report.faults.append(f"{str(dtype)[6:]} is not accepted: {report.words.get(dtype)}")
    return report


def accepted_types(row: Row) -> list[torch.dtype]:
    """The types that phase 1 accepts, in the order of ALL."""
    accepted: list[torch.dtype] = []
    for dtype in row.dtypes:
        try:
            values = next((values for values in row.calls(next(row.cases(dtype))) if not isinstance(values, Optional)), None)
        except (RuntimeError, NotImplementedError, TypeError, IndexError):
            continue
        if values is not None and takes(row.operator, unwrap(values)):
            accepted.append(dtype)
    return accepted
