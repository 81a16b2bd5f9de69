"""Rows of recurrent cells and networks: torch's CPU in float64 on the values of the case, the gradients by autograd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from cases import Case, add, row, wide
from rows_fused import floating, gradients

Tensor = torch.Tensor
CELLS = ((3, 5), (2, 4), (1, 7), (17, 33), (2, 130))


def gates_of(sums: Tensor) -> list[Tensor]:
    """An LSTM's gates after their functions, in torch's order."""
    i, f, g, o = sums.chunk(4, 1)
    return [i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()]


def lstm_cell(sums: Tensor, cx: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden and cell state after a step."""
    i, f, g, o = gates_of(sums)
    cy = f * cx + i * g
    return o * cy.tanh(), cy


@row("ThnnFusedLstmCell", shapes=CELLS)
def fused_cell(case: Case) -> Iterator[Any]:
    floating(case)
    n, h = case.shape
    for with_bias in (True, False):
        parts = [case.values((n, 4 * h)), case.values((n, 4 * h))]
        biases = [case.values((4 * h,)), case.values((4 * h,))] if with_bias else []
        cx = case.values()
        sums = sum(wide(part) for part in [*parts, *biases])
        assert isinstance(sums, Tensor)
        hy, cy = lstm_cell(sums, wide(cx))
        given = [case.put(b) for b in biases] if with_bias else [None, None]
        outs = [case.out(x.to(case.dtype), loose=4) for x in (hy, cy, torch.cat(gates_of(sums), 1))]
        yield [*map(case.put, parts), case.put(cx), *given, *outs]


@row("ThnnFusedLstmCellBackward", shapes=CELLS)
def fused_cell_backward(case: Case) -> Iterator[Any]:
    floating(case)
    n, h = case.shape
    for hidden, cell, with_bias in ((True, True, True), (True, False, True), (False, True, False)):
        cx, grad_hy, grad_cy = case.values(), case.values(), case.values()
        sums = case.values((n, 4 * h))
        saved = [x.to(case.dtype) for x in (lstm_cell(wide(sums), wide(cx))[1], torch.cat(gates_of(wide(sums)), 1))]

        def total(s: Tensor, c: Tensor, hidden: bool = hidden, cell: bool = cell, seeds: tuple[Tensor, Tensor] = (grad_hy, grad_cy)) -> Tensor:
            hy, cy = lstm_cell(s, c)
            return (hy * wide(seeds[0])).sum() * int(hidden) + (cy * wide(seeds[1])).sum() * int(cell)

        grad_gates, grad_cx = gradients(total, [sums, cx], torch.ones(()))
        loose = 10 if case.dtype in (torch.float64, torch.float32) else 40
        outs = [case.out(g.to(case.dtype), loose=loose) for g in (grad_gates, grad_cx)]
        bias = case.out(grad_gates.sum(0).to(case.dtype), loose=4 * loose) if with_bias else None
        seeds = [case.put(grad_hy) if hidden else None, case.put(grad_cy) if cell else None]
        yield [*seeds, case.put(cx), case.put(saved[0]), case.put(saved[1]), with_bias, *outs, bias]


# --- whole networks ---------------------------------------------------------------------------------------------------------------

NETWORKS = ((4, 3, 5), (3, 1, 2), (2, 5, 9), (1, 2, 4))
HIDDEN = 6
FORMS = ((1, False, True, False), (2, True, True, True), (2, True, False, False))  # layers, both ways, biases, batch first


class Network:
    """One network of the case, computed step by step in float64."""

    def __init__(self, case: Case, gru: bool, form: tuple[int, bool, bool, bool], packed: bool) -> None:
        self.case, self.gru, (self.layers, both, self.bias, self.first) = case, gru, form
        self.directions, self.gates = 1 + both, 3 if gru else 4
        self.steps, self.batch, width = case.shape
        self.sizes = [max(1, self.batch - t) for t in range(self.steps)] if packed else [self.batch] * self.steps
        self.packed = packed
        self.x = case.values(low=-1, high=1)
        self.parameters: list[Tensor] = []
        for layer in range(self.layers):
            for _ in range(self.directions):
                inputs = width if layer == 0 else self.directions * HIDDEN
                shapes = [(self.gates * HIDDEN, inputs), (self.gates * HIDDEN, HIDDEN), *[(self.gates * HIDDEN,)] * (2 * self.bias)]
                self.parameters += [case.values(s, low=-0.5, high=0.5) for s in shapes]
        count = self.layers * self.directions
        self.states = [case.values((count, self.batch, HIDDEN), low=-1, high=1) for _ in range(1 if gru else 2)]

    def step(self, sums: tuple[Tensor, Tensor], state: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The states after a step, and what training saves, in the order of the lists."""
        if not self.gru:
            i, f, g, o = gates_of(sums[0] + sums[1])
            cell = f * state[1] + i * g
            hidden = o * cell.tanh()
            return [hidden, cell], [i, g, f, o, hidden, cell, cell.tanh()]
        (ir, iz, i_n), (hr, hz, hn) = sums[0].chunk(3, 1), sums[1].chunk(3, 1)
        r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
        n = (i_n + r * hn).tanh()
        hidden = (1 - z) * n + z * state[0]
        return [hidden], [r, z, n, hn, hidden]

    def run(self, x: Tensor, states: list[Tensor], parameters: list[Tensor]) -> tuple[Tensor, list[Tensor], list[list[Tensor]]]:
        """Output, last states, saved tensors by list and direction."""
        each, last, saved = 4 if self.bias else 2, [], []
        for layer in range(self.layers):
            outputs = []
            for direction in range(self.directions):
                index = layer * self.directions + direction
                p = parameters[index * each : (index + 1) * each]
                state = [s[index] for s in states]
                kept: list[list[Tensor]] = [[]] * self.steps
                for t in reversed(range(self.steps)) if direction else range(self.steps):
                    n = self.sizes[t]
                    sums = x[t, :n] @ p[0].t(), state[0][:n] @ p[1].t()
                    if self.bias:
                        sums = sums[0] + p[2], sums[1] + p[3]
                    new, kept[t] = self.step(sums, [s[:n] for s in state])
                    state = [torch.cat([a, b[n:]]) for a, b in zip(new, state, strict=True)]
                rows = [[torch.nn.functional.pad(v, (0, 0, 0, self.batch - v.shape[0])) for v in step] for step in kept]
                stacked = [torch.stack(values) for values in zip(*rows, strict=True)]
                saved.append(stacked)
                last.append(state)
                outputs.append(stacked[4])
            x = torch.cat(outputs, 2)
        return x, [torch.stack(values) for values in zip(*last, strict=True)], [list(values) for values in zip(*saved, strict=True)]

    def rows(self, x: Tensor) -> Tensor:
        """In the order of dimensions that the call says."""
        return x.transpose(0, 1).contiguous() if self.first and not self.packed else x

    def given_sizes(self) -> Tensor | None:
        return self.case.put(torch.tensor(self.sizes)) if self.packed else None

    def narrow(self, x: Tensor) -> Tensor:
        return x.detach().to(self.case.dtype)


def networks(case: Case, gru: bool) -> Iterator[Network]:
    floating(case)
    for form in FORMS:
        yield Network(case, gru, form, False)
    yield Network(case, gru, FORMS[1], True)


def forward(case: Case, gru: bool) -> Iterator[Any]:
    loose = 20 if case.dtype in (torch.float64, torch.float32) else 6
    for net in networks(case, gru):
        y, last, saved = net.run(wide(net.x), [wide(s) for s in net.states], [wide(p) for p in net.parameters])
        for train in (True, False):
            outs = [case.out(net.narrow(net.rows(y)), loose=loose), *[case.out(net.narrow(s), loose=loose) for s in last]]
            lists = [[case.out(net.narrow(v), loose=loose) for v in values] if train else [] for values in saved]
            states = case.put(net.states[0]) if gru else [case.put(s) for s in net.states]
            how = [net.bias, net.layers, 0.0, train, net.directions == 2, net.first]
            yield [case.put(net.rows(net.x)), [case.put(p) for p in net.parameters], states, net.given_sizes(), *how, *outs, *lists]


def backward(case: Case, gru: bool) -> Iterator[Any]:
    loose = 50 if case.dtype in (torch.float64, torch.float32) else 30
    for net in networks(case, gru):
        leaves = [wide(v).clone().requires_grad_() for v in [net.x, *net.states, *net.parameters]]
        count = len(net.states)
        y, last, saved = net.run(leaves[0], leaves[1 : 1 + count], leaves[1 + count :])
        grads = [case.values(v.shape, low=-1, high=1) for v in [y, *last]]
        sum((v * wide(g)).sum() for v, g in zip([y, *last], grads, strict=True)).backward()
        expected = [net.narrow(leaf.grad) for leaf in leaves]  # type: ignore[arg-type]
        outs = [case.out(net.rows(expected[0]), loose=loose), *[case.out(g, loose=loose) for g in expected[1 : 1 + count]]]
        outs.append([case.out(g, loose=4 * loose) for g in expected[1 + count :]])  # type: ignore[arg-type]
        parameters, x = [case.put(p) for p in net.parameters], case.put(net.rows(net.x))
        seeds = [case.put(net.rows(grads[0])), *map(case.put, grads[1:])]
        lists = [[case.put(net.narrow(v)) for v in values] for values in saved]
        if gru:
            how = [net.given_sizes(), net.bias, net.layers, net.directions == 2, net.first]
            yield [x, parameters, case.put(net.states[0]), *seeds, *lists, *how, *outs]
        else:
            how = [net.given_sizes(), net.bias, net.layers, 0.0, True, net.directions == 2, net.first, None]
            yield [x, [case.put(s) for s in net.states], parameters, *seeds, *lists, *how, *outs]


for _name, _calls, _gru in (("LSTM", forward, False), ("LstmBackward", backward, False), ("GRU", forward, True), ("GRUBackward", backward, True)):
    add(_name, lambda case, calls=_calls, gru=_gru: calls(case, gru), shapes=NETWORKS)
