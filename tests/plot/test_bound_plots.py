"""Pictures of bounds show the numbers of the bounds."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import lnkernel as lnk
from lnkernel.errors import InputError

matplotlib.use("Agg")
X = np.linspace(-3, 3, 5)[:, None]
Y = np.sin(X[:, 0])
LINE = np.linspace(-9, 9, 5)


@pytest.mark.parametrize("norm", ["first", None])
def test_bound(norm: str | None) -> None:
    arch, ax = lnk.mlp(hidden=1, norm=norm), Figure().subplots()
    artists = lnk.plot.bound(arch, X, Y, LINE, ax=ax)
    b = lnk.bound(arch, X, Y)
    edges = artists["at"].get_paths()[0].vertices
    for point, height in zip(LINE, b.at(LINE[:, None]), strict=True):
        drawn = edges[edges[:, 0] == point, 1]
        assert drawn.max() == pytest.approx(height) and drawn.min() == pytest.approx(-height)
    assert ("rkhs" in artists) == (norm is not None)
    if norm is not None:
        assert artists["rkhs"][0].get_ydata()[0] == b.rkhs
    assert artists["mean"].get_ydata() == pytest.approx(
        np.asarray(lnk.posterior(arch, X, Y).mean(LINE[:, None]))
    )
    assert artists["data"].get_ydata() == pytest.approx(Y)


def test_bound_needs_a_line() -> None:
    with pytest.raises(InputError, match="points on a line"):
        lnk.plot.bound(lnk.mlp(), np.ones((3, 2)), Y[:3], LINE)


def test_profile() -> None:
    ax = Figure().subplots()
    c = lnk.sup_diagonal(lnk.mlp(hidden=2, norm="last"))
    curve = lnk.plot.profile(c, np.array([0.5, 2.0]), ax=ax)
    assert curve.get_ydata() == pytest.approx(c.profile([0.5, 2.0]))
    assert ax.lines[1].get_ydata()[0] == c.value
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


def test_profile_without_a_limit() -> None:
    ax = Figure().subplots()
    lnk.plot.profile(lnk.sup_diagonal(lnk.mlp(hidden=1)), np.array([0.5, 2.0]), ax=ax)
    assert len(ax.lines) == 1 and ax.get_yscale() == "log"
