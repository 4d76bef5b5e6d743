"""The plot of trained networks far from their data, beside mean and bound."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pytest
from scipy import stats

import lnkernel as lnk
from lnkernel.errors import InputError
from lnkernel.plot.far_from_data import confidence_band

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # the backend is chosen first
from matplotlib.figure import Figure

X = np.array([[-1.0], [0.5], [2.0]])
Y = np.array([1.0, -1.0, 2.0])
LINE = np.array([-9.0, 0.0, 9.0])
OUTPUTS = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
ARCH = lnk.mlp(hidden=1, norm="first")


def test_draws_what_the_library_computes() -> None:
    ax: Any = Figure().subplots()
    artists = lnk.plot.extrapolation(ARCH, X, Y, LINE, outputs=OUTPUTS[..., None], ax=ax)
    b, post = lnk.bound(ARCH, X, Y), lnk.posterior(ARCH, X, Y)
    assert np.array_equal(artists["mean"].get_ydata(), post.mean(LINE[:, None]))
    assert np.array_equal(artists["networks"].get_ydata(), [2.0, 2.0, 2.0])
    for form, value in (("rkhs", b.rkhs), ("sharp", b.sharp)):
        assert [line.get_ydata()[0] for line in artists[form]] == [value, -value]
    assert artists["band"] in ax.collections and artists["mean"] in ax.lines
    assert plt.get_fignums() == []  # nothing is drawn elsewhere


def test_without_bound_and_networks() -> None:
    ax: Any = Figure().subplots()
    arch = lnk.mlp(hidden=1)
    assert sorted(lnk.plot.extrapolation(arch, X, Y, LINE, ax=ax)) == ["data", "mean"]


def test_the_band_is_students() -> None:
    """The interval of scipy for the mean of the same numbers."""
    outputs = np.random.default_rng(0).normal(size=(5, 3))
    middle, half = confidence_band(outputs, LINE, 0.9)
    error = stats.sem(outputs, axis=0)
    low, high = stats.t.interval(0.9, 4, loc=outputs.mean(axis=0), scale=error)
    assert np.allclose(middle - half, low) and np.allclose(middle + half, high)


def test_a_band_from_the_smallest_to_the_largest() -> None:
    ax: Any = Figure().subplots()
    artists = lnk.plot.extrapolation(ARCH, X, Y, LINE, outputs=OUTPUTS, confidence=None, ax=ax)
    heights = artists["band"].get_paths()[0].vertices[:, 1]
    assert heights.min() == 1.0 and heights.max() == 3.0
    assert artists["band"].get_label() == "smallest to largest"


@pytest.mark.parametrize(
    "outputs", [OUTPUTS[:1], OUTPUTS[:, :2], 1.0], ids=["one", "few", "scalar"]
)
def test_refuses_other_outputs(outputs: Any) -> None:
    with pytest.raises(
        InputError, match=r"outputs: expected those of at least two networks .* 3\)"
    ):
        confidence_band(outputs, LINE, 0.95)


def test_refuses_a_percentage() -> None:
    with pytest.raises(InputError, match="confidence: expected a number between 0 and 1, got 95"):
        confidence_band(OUTPUTS, LINE, 95)
