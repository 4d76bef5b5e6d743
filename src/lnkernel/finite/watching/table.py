"""Measurements as tidy rows, and as the text of CSV and JSON files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lnkernel.tables import format_csv, format_json

Row = dict[str, Any]


class Table(list[Row]):
    """Rows, each a dict with the same keys. A cell without a value is None.

    >>> t = Table([{"seed": 0, "step": 1, "loss": 0.5}])
    >>> t.csv()
    'seed,step,loss\\n0,1,0.5\\n'
    """

    def csv(self) -> str:
        """The text of a CSV file."""
        return format_csv(self)

    def json(self) -> str:
        """The text of a JSON file, a list of objects."""
        return format_json(self)

    def save(self, path: str | Path) -> None:
        """Write a file, JSON if its name ends so, and CSV otherwise."""
        text = self.json() if Path(path).suffix == ".json" else self.csv()
        Path(path).write_text(text, encoding="utf-8")


def tidy_rows(seeds: list[int], steps: np.ndarray, values: Mapping[str, np.ndarray]) -> Table:
    """A row for each network and step. A vector has a column for each entry, numbered from 1.

    >>> tidy_rows([7], np.array([0]), {"loss": np.array([[2.0]]), "e": np.array([[[3.0, np.nan]]])})
    [{'seed': 7, 'step': 0, 'loss': 2.0, 'e_1': 3.0, 'e_2': None}]
    """
    columns = {
        (name if whole.ndim == 2 else f"{name}_{i + 1}"): whole
        if whole.ndim == 2
        else whole[..., i]
        for name, whole in values.items()
        for i in range(1 if whole.ndim == 2 else whole.shape[2])
    }
    return Table(
        {"seed": seed, "step": int(step), **{c: _cell(v[a, b]) for c, v in columns.items()}}
        for a, seed in enumerate(seeds)
        for b, step in enumerate(steps)
    )


def _cell(value: Any) -> float | None:
    """The shortest decimal that the precision of the network tells from others."""
    made = float(str(value))
    return None if math.isnan(made) else made
