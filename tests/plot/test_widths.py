"""The plot of finite networks on the way to their limit."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np

import lnkernel as lnk
from lnkernel.finite import Comparison, Row

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # the backend is chosen first
from matplotlib.figure import Figure

ONE = np.ones((1, 1))


def row(width: int, error: float, drift: float) -> Row:
    return Row(width, error, 0.01, drift, 0.001, ONE, ONE, ONE, ONE, 3.0, 0.5, 0.4, 0.1, 20, True)


FOUND = Comparison(
    [row(64, 0.2, 0.03), row(256, 0.09, 0.01)],
    *(None, None, np.inf, np.inf, ONE, ONE, ONE, [0, 1], 5, "mlp()"),
)


def test_draws_the_rows() -> None:
    ax: Any = Figure().subplots()
    open_before = plt.get_fignums()
    artists = lnk.plot.widths(FOUND, ax=ax)
    for name, heights in (("ntk_error", [0.2, 0.09]), ("drift", [0.03, 0.01])):
        points, _, (bars,) = artists[name]
        assert points.get_xdata().tolist() == [64, 256] and points.get_ydata().tolist() == heights
        half = 0.01 if name == "ntk_error" else 0.001
        assert np.allclose(
            [ends[:, 1] for ends in bars.get_segments()], [[h - half, h + half] for h in heights]
        )
    assert np.allclose(artists["theory"].get_ydata(), [0.2, 0.1])  # four times the width, half
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["64", "256"]
    assert plt.get_fignums() == open_before  # nothing is drawn elsewhere
