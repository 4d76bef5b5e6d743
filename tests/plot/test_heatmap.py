"""The kernel matrix as an image: the right numbers in the right place of the right axes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # the backend is chosen first
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LINE = lnk.nngp(lnk.serial(lnk.Dense(1)))  # x x', which no flip leaves alone
X = np.array([-1.0, 0.0, 1.0, 2.0])


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


@pytest.fixture
def no_figures_left() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


@pytest.mark.parametrize("x", [X, X[:, None], X.tolist()], ids=["(n,)", "(n, 1)", "list"])
def test_draws_the_matrix_over_the_points(ax: Axes, x: Any) -> None:
    image = lnk.plot.heatmap(LINE, x, ax=ax)
    assert np.array_equal(image.get_array(), np.outer(X, X))
    assert image.origin == "lower"
    assert image.get_extent() == pytest.approx([-1.5, 2.5, -1.5, 2.5])  # pixels centred on points
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$x'$", "$x$")


def test_returns_the_image_in_the_given_axes(ax: Axes, no_figures_left: None) -> None:
    image = lnk.plot.heatmap(LINE, X, ax=ax)
    assert list(ax.images) == [image] and image.axes is ax
    assert plt.get_fignums() == []  # nothing is drawn elsewhere
    ax.figure.colorbar(image)


def test_uses_the_current_axes_by_default(no_figures_left: None) -> None:
    _, (left, right) = plt.subplots(1, 2)
    plt.sca(left)
    image = lnk.plot.heatmap(LINE, X)
    assert list(left.images) == [image] and list(right.images) == []


def test_hands_options_to_imshow(ax: Axes) -> None:
    assert lnk.plot.heatmap(LINE, X, ax=ax).get_cmap().name == "viridis"
    image = lnk.plot.heatmap(LINE, X, ax=ax, cmap="magma", vmin=-3.0, origin="upper")
    assert (image.get_cmap().name, image.norm.vmin, image.origin) == ("magma", -3.0, "upper")


@pytest.mark.parametrize(
    "x",
    [np.linspace(-25, 25, 4), np.linspace(3, -3, 4), 1e-9 * X, 1e9 * X, 5e3 + 0.1 * X],
    ids=["linspace", "downwards", "tiny", "huge", "far from 0"],
)
def test_even_points_are_accepted(ax: Axes, x: np.ndarray) -> None:
    image = lnk.plot.heatmap(LINE, x, ax=ax)
    step = (x[-1] - x[0]) / (len(x) - 1)
    edges = [x[0] - step / 2, x[-1] + step / 2]
    assert image.get_extent() == pytest.approx(edges * 2, rel=1e-9)


REFUSED: dict[str, Any] = {
    "uneven": [0.0, 1.0, 3.0],
    "tiny and uneven": [0.0, 1e-9, 5e-9],
    "uneven on a logarithmic scale": np.geomspace(1, 100, 5),
    "not sorted": [0.0, 2.0, 1.0],
    "all equal": [1.0, 1.0, 1.0],
    "one point": [1.0],
    "none": [],
    "a number": 1.0,
    "NaN": [0.0, np.nan, 2.0],
    "infinity": [0.0, 1.0, np.inf],
    "two dimensions": np.arange(8.0).reshape(4, 2),
}


@pytest.mark.parametrize("x", REFUSED.values(), ids=REFUSED)
def test_other_points_are_refused(ax: Axes, x: Any) -> None:
    message = (
        f"x: expected at least two evenly spaced points on a line, got shape {np.shape(x)}. Use "
        "e.g. np.linspace(-5, 5, 201)."
    )
    with pytest.raises(InputError, match=re.escape(message)):
        lnk.plot.heatmap(LINE, x, ax=ax)
    assert list(ax.images) == []


def test_draws_a_matrix_as_it_is(ax: Axes) -> None:
    image = lnk.plot.heatmap(np.outer(X, X), X, ax=ax)
    assert np.array_equal(image.get_array(), np.outer(X, X))
    with pytest.raises(
        InputError, match=r"kernel: expected a kernel, or a matrix of shape \(4, 4\)"
    ):
        lnk.plot.heatmap(np.zeros((4, 3)), X, ax=ax)
