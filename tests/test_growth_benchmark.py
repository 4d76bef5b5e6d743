"""The benchmark of the tangent kernel's growth: wrong powers are caught, and tanh grows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmarks import growth

ROW = growth.Row("tanh", "last", 1.0, 0.9, (1.0,) * len(growth.LENGTHS))


def test_what_is_claimed() -> None:
    wrong = dataclasses.replace(ROW, power=0.5)
    assert growth.claims([ROW]) == {"tanh: as theory says": True}
    assert growth.claims([wrong, ROW]) == {"tanh: as theory says": False}
    assert growth.table([ROW, wrong]).splitlines()[1].split() == [
        "tanh",
        "0.90",
        "(1)",
        "0.50",
        "(1)",
    ]


def test_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind tanh a LayerNorm leaves Θ̂(x, x) growing, also in a few narrow networks."""
    monkeypatch.setattr(growth, "LENGTHS", np.geomspace(10, 60, 3))
    row = growth.measure("tanh", "last", 1.0, width=512, seeds=2)
    assert len(row.kernel) == 3 and 0.5 < row.power < 1.5, row
