"""Rows of flash attention (src/aclnn/transformer): the plain formula in float64, with whole rows of scores, is the reference.

tests/operators/test_attention.c goes through masks, bands, shifts and dropout; here are types, layouts and packed sequences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from cases import FLOATS, Case, place, row, wide
from library import implemented, prototypes

Tensor = torch.Tensor
UNLIMITED = 2147483647
# The saved statistics are float32 whatever the type, and a half's attentionIn is rounded: the gradient sees both.
GRADIENT_LOOSE = {torch.float64: 1e5, torch.float32: 20, torch.float16: 60, torch.bfloat16: 60}
# batch, heads, heads of the keys, queries, keys, width
PROBLEMS = ((1, 2, 2, 5, 5, 8), (2, 4, 2, 7, 9, 16), (1, 1, 1, 33, 40, 24))
SCORES = [name for name in ("FlashAttentionScore", "FlashAttentionScoreV2") if name in implemented()]
GRADIENTS = [name for name in ("FlashAttentionScoreGrad", "FlashAttentionScoreGradV2") if name in implemented()]
PACKED = [name for name in implemented() if name.startswith("FlashAttentionVarLenScore") and name[-1] in "e24"]
PACKED_GRADIENTS = [name for name in implemented() if name.startswith("FlashAttentionUnpaddingScoreGrad") and name[-1] in "d24"]


def named(operator: str, given: dict[str, Any]) -> list[Any]:
    """All arguments in the prototype's order; those not given are NULL, 0 or "same"."""
    values, names = [], [name for _, name in prototypes()[operator][0]]
    unknown = set(given) - set(names)
    assert not unknown, f"{operator} has no {unknown}"
    for kind, name in prototypes()[operator][0]:
        values.append(given.get(name, "" if kind == "char*" else None if kind.endswith("*") else 1 if name == "pseType" else 0))
    return values


def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
    """(batch, heads, rows, width): output, and each row's maximum and sum."""
    repeat = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(repeat, 1).transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    top = scores.max(-1, keepdim=True).values
    weights = (scores - top).exp()
    total = weights.sum(-1, keepdim=True)
    return weights / total @ v.repeat_interleave(repeat, 1), top, total


def lay(x: Tensor, layout: str) -> Tensor:
    """From BNSD to another layout."""
    if layout == "BNSD":
        return x
    x = x.transpose(1, 2)
    return x if layout == "BSND" else x.flatten(2) if layout == "BSH" else x.flatten(2).transpose(0, 1)


def plain(x: Tensor) -> Tensor:
    return place(x.contiguous(), "plain")


def common(heads: int, width: int, layout: str, causal: bool) -> dict[str, Any]:
    return {
        "scaleValue": 1 / math.sqrt(width),
        "keepProb": 1.0,
        "preTokens": UNLIMITED,
        "nextTokens": UNLIMITED,
        "headNum": heads,
        "inputLayout": layout,
        "sparseMode": 2 if causal else 0,
    }


def problems(case: Case) -> Iterator[tuple[list[Tensor], str, bool]]:
    """Query, key, value, the output's gradient (BNSD), layout, causal."""
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")
    batch, heads, key_heads, queries, keys, width = case.shape
    for layout, causal in (("BNSD", False), ("BSH", True), ("SBH", False), ("BSND", True)):
        shapes = ((heads, queries), (key_heads, keys), (key_heads, keys), (heads, queries))
        yield [case.values((batch, *shape, width), low=-1, high=1) for shape in shapes], layout, causal


def mask_of(q: Tensor, k: Tensor, causal: bool) -> Tensor | None:
    return plain(torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)) if causal else None


def statistics(x: Tensor) -> Tensor:
    return x.expand(*x.shape[:-1], 8).float()


def empty() -> Tensor:
    return torch.empty(0)


def score_calls(operator: str, case: Case) -> Iterator[Any]:
    for (q, k, v, _), layout, causal in problems(case):
        result, top, total = attend(wide(q), wide(k), wide(v), causal)
        given = common(q.shape[1], q.shape[-1], layout, causal)
        given |= {"query": case.put(lay(q, layout)), "key": case.put(lay(k, layout)), "value": case.put(lay(v, layout))}
        given |= {"attenMaskOptional": mask_of(q, k, causal)}
        given |= {"softmaxMaxOut": case.out(statistics(top), loose=8), "softmaxSumOut": case.out(statistics(total), loose=8)}
        yield named(operator, given | {"attentionOutOut": case.out(lay(result.to(case.dtype), layout), loose=8)})


def gradient_calls(operator: str, case: Case) -> Iterator[Any]:
    for (q, k, v, dy), layout, causal in problems(case):
        leaves = [wide(x).clone().requires_grad_() for x in (q, k, v)]
        result, top, total = attend(*leaves, causal)
        result.backward(wide(dy))
        given = common(q.shape[1], q.shape[-1], layout, causal)
        given |= {"query": case.put(lay(q, layout)), "keyIn": case.put(lay(k, layout)), "value": case.put(lay(v, layout))}
        given |= {"dy": case.put(lay(dy, layout)), "attentionInOptional": case.put(lay(result.detach().to(case.dtype), layout))}
        given |= {"softmaxMaxOptional": case.put(statistics(top.detach())), "softmaxSumOptional": case.put(statistics(total.detach()))}
        given |= {"attenMaskOptional": mask_of(q, k, causal)}
        for name, leaf in zip(("dqOut", "dkOut", "dvOut"), leaves):
            assert leaf.grad is not None
            given[name] = case.out(lay(leaf.grad.to(case.dtype), layout), loose=GRADIENT_LOOSE[case.dtype])
        yield named(operator, given)


def packed(case: Case) -> tuple[list[list[Tensor]], list[list[int]]]:
    """Two sequences: for each query, key, value and gradient (heads, rows, width); the cumulative ends of both sides."""
    if case.dtype not in FLOATS:
        raise NotImplementedError("floating point only")
    _, heads, key_heads, queries, keys, width = case.shape
    lengths = [(queries, keys), (queries + 3, keys + 1)]
    shapes = [[(heads, n), (key_heads, m), (key_heads, m), (heads, n)] for n, m in lengths]
    tensors = [[case.values((1, *shape, width), low=-1, high=1) for shape in each] for each in shapes]
    return tensors, [[queries, 2 * queries + 3], [keys, 2 * keys + 1]]


def pack(parts: list[Tensor]) -> Tensor:
    """(1, heads, rows, width) each -> TND."""
    return torch.cat([part[0].transpose(0, 1) for part in parts])


def packed_calls(operator: str, case: Case) -> Iterator[Any]:
    sequences, (query_ends, key_ends) = packed(case)
    results = [attend(wide(q), wide(k), wide(v), False) for q, k, v, _ in sequences]
    heads, width = sequences[0][0].shape[1], sequences[0][0].shape[-1]
    given = common(heads, width, "TND", False) | {"actualSeqQLenOptional": query_ends, "actualSeqKvLenOptional": key_ends}
    for i, name in enumerate(("query", "key", "value")):
        given[name] = case.put(pack([each[i] for each in sequences]))
    given["softmaxMaxOut"] = case.out(statistics(pack([top for _, top, _ in results])), loose=8)
    given["softmaxSumOut"] = case.out(statistics(pack([total for _, _, total in results])), loose=8)
    yield named(operator, given | {"attentionOutOut": case.out(pack([r for r, _, _ in results]).to(case.dtype), loose=8)})


def packed_gradient_calls(operator: str, case: Case) -> Iterator[Any]:
    sequences, (query_ends, key_ends) = packed(case)
    leaves = [[wide(x).clone().requires_grad_() for x in each[:3]] for each in sequences]
    results = [attend(q, k, v, False) for q, k, v in leaves]
    for (result, _, _), each in zip(results, sequences):
        result.backward(wide(each[3]))
    heads, width = sequences[0][0].shape[1], sequences[0][0].shape[-1]
    given = common(heads, width, "TND", False) | {"actualSeqQLenOptional": query_ends, "actualSeqKvLenOptional": key_ends}
    for i, name in enumerate(("query", "keyIn", "value", "dy")):
        given[name] = case.put(pack([each[i] for each in sequences]))
    given["softmaxMaxOptional"] = case.put(statistics(pack([top.detach() for _, top, _ in results])))
    given["softmaxSumOptional"] = case.put(statistics(pack([total.detach() for _, _, total in results])))
    given["attentionInOptional"] = case.put(pack([r.detach() for r, _, _ in results]).to(case.dtype))
    for i, name in enumerate(("dqOut", "dkOut", "dvOut")):
        expected = pack([each[i].grad for each in leaves])  # type: ignore[misc]
        given[name] = case.out(expected.to(case.dtype), loose=GRADIENT_LOOSE[case.dtype])
    yield named(operator, given)


def enter(operators: list[str], calls: Any) -> None:
    for operator in operators:
        row(operator, shapes=PROBLEMS)(lambda case, operator=operator: calls(operator, case))


enter(SCORES, score_calls)
enter(GRADIENTS, gradient_calls)
enter(PACKED, packed_calls)
enter(PACKED_GRADIENTS, packed_gradient_calls)
