"""Measurements in pictures: a panel for every measure, against the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lnkernel.errors import InputError

COLOUR, COLUMNS = "#2b6cb0", 3
LOGARITHMIC = ("loss", "lambda_max", "sharpness", "eigenvalues", "gradient_variance", "drift")


def draw(steps: np.ndarray, values: Mapping[str, np.ndarray], axes: Any = None) -> Any:
    """Every network is a thin line, their mean a thick one; of a vector the mean of each entry.

    The step has a logarithmic scale that begins with 0.
    """
    if axes is None:
        import matplotlib.pyplot as plt

        rows, columns = -(-len(values) // COLUMNS), min(len(values), COLUMNS)
        size = (3.0 * columns, 2.2 * rows)
        _, made = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
        axes = made.ravel()[: len(values)]
        for rest in made.ravel()[len(values) :]:
            rest.set_visible(False)
    given = np.atleast_1d(np.asarray(axes, object)).ravel()
    if len(given) != len(values):
        raise InputError(
            "axes", f"{len(values)} axes, one for every measure", str(len(given)), "Or leave it out"
        )
    for ax, (name, whole) in zip(given, values.items(), strict=True):
        if whole.ndim == 2:
            ax.plot(steps, whole.T, color=COLOUR, lw=0.6, alpha=0.5)
            ax.plot(steps, whole.mean(0), color=COLOUR, lw=1.6)
        else:
            shades = np.linspace(1.0, 0.25, whole.shape[2])
            for entry, shade in zip(whole.mean(0).T, shades, strict=True):
                ax.plot(steps, entry, color=COLOUR, lw=1.0, alpha=shade)
        ax.set_xscale("symlog", linthresh=1)
        ax.set_xlim(left=0)
        if name in LOGARITHMIC and (whole[:, steps > 0] > 0).all():
            ax.set_yscale("log")
        ax.set(xlabel="step", ylabel=name.replace("_", " "))
    return given
