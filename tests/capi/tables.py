"""The tables of rows, by family."""

from __future__ import annotations

import importlib

MODULES = (
    "rows_elementwise",
    "rows_activation",
    "rows_foreach",
    "rows_reduce",
    "rows_linalg",
    "rows_index",
    "rows_network",
    "rows_random",
    "rows_attention",
    "rows_vision",
    "rows_volume",
    "rows_fused",
    "rows_recurrent",
    "rows_rare",
)


def load() -> None:
    """Imports every table, which enters its rows."""
    for module in MODULES:
        importlib.import_module(module)
