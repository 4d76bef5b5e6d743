"""The kernel over the angle between two inputs."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError

matplotlib.use("Agg")

from matplotlib import pyplot as plt  # the backend is chosen first
from matplotlib.figure import Figure


def linear(**dense: float) -> lnk.Serial:
    return lnk.serial(lnk.Dense(8, **dense), lnk.LayerNorm(), lnk.Dense(1))


def test_groups_of_two_are_linear_in_the_angle() -> None:
    ax: Any = Figure().subplots()
    arch = lnk.serial(lnk.Dense(8), lnk.GroupNorm(2), lnk.Dense(1))
    curve = lnk.plot.angle(lnk.nngp(arch), points=5, ax=ax, color="red", label="two")
    assert np.allclose(curve.get_xdata(), [0, 45, 90, 135, 180])
    assert np.allclose(curve.get_ydata(), [1, 0.5, 0, -0.5, -1])
    assert curve in ax.lines and (curve.get_color(), curve.get_label()) == ("red", "two")
    assert plt.get_fignums() == []  # nothing is drawn elsewhere


@pytest.mark.parametrize("norm", [1e-3, 1.0, 1e3])
def test_with_a_bias_the_norm_counts(norm: float) -> None:
    """ρ = (r cos + b²)/(r + b²) with r = norm²: a bias makes short inputs alike."""
    ax: Any = Figure().subplots()
    curve = lnk.plot.angle(lnk.nngp(linear(b_std=0.5)), norm=norm, points=4, ax=ax)
    cosines = np.array([1.0, 0.5, -0.5, -1.0])
    assert np.allclose(curve.get_ydata(), (norm**2 * cosines + 0.25) / (norm**2 + 0.25))


@pytest.mark.parametrize("norm", [0.0, -1.0, float("inf"), float("nan")])
def test_refuses_other_norms(norm: float) -> None:
    with pytest.raises(InputError, match="norm: expected a positive number"):
        lnk.plot.angle(lnk.nngp(linear()), norm=norm)
