"""What trained networks output far from their data, beside the theory: its mean and its bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from lnkernel.arch.text import Architecture
from lnkernel.bounds import bound as bound_of
from lnkernel.errors import InputError
from lnkernel.gp.posterior import posterior
from lnkernel.plot.bounds_on_line import on_a_line
from lnkernel.types import Array, Line, Points, Targets

NetworkOutputs = Float[Array, "networks m"] | Float[Array, "networks m 1"] | ArrayLike
BLUE, AMBER = "#0072b2", "#e69f00"
FORMS = {"rkhs": "-", "sharp": ":"}


def extrapolation(
    arch: Architecture,
    X: Points,
    y: Targets,
    x: Line,
    *,
    outputs: NetworkOutputs | None = None,
    noise: float = 0.0,
    confidence: float | None = 0.95,
    color: Any = BLUE,
    ax: Any = None,
) -> dict[str, Any]:
    r"""The data, the mean of the infinitely wide network on a line, $\pm B(D)$ if that is finite, and
    the mean of trained networks with its confidence band.

    The band is $\bar f \pm t\,s/\sqrt m$ of m networks with standard deviation s and Student's t.
    For points far out set the axes' scale yourself, for example `ax.set_xscale("symlog")`.

    Args:
        arch: the network.
        X, y: the data, (n, 1) and (n,).
        x: points on the line, (m,) or (m, 1), in the order in which they are joined.
        outputs: of trained networks at x, (networks, m) or (networks, m, 1), as an `Ensemble`
            returns them; a band takes at least two networks.
        noise: variance of the targets' noise.
        confidence: of the band. None is a band from the smallest to the largest output instead: of three
            networks no more is known, and their 95 % band is 2.5 standard deviations to each side.
        color: of the trained networks.
        ax: the matplotlib axes to draw into; the current ones by default.

    Returns:
        the artists by name: "data", "mean", with outputs "networks" and "band", and where they are
        finite "rkhs" and "sharp".

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, lnkernel as lnk
    >>> arch, X = lnk.mlp(hidden=1, norm="first"), np.linspace(-5, 5, 9)[:, None]
    >>> x = np.linspace(-50, 50, 101)
    >>> outputs = [np.tanh(x), np.tanh(2 * x)]  # or train_ensemble(arch, X, y)(x[:, None])
    >>> sorted(lnk.plot.extrapolation(arch, X, np.tanh(X[:, 0]), x, outputs=outputs))
    ['band', 'data', 'mean', 'networks', 'rkhs', 'sharp']
    """
    import matplotlib.pyplot as plt

    line = on_a_line(X, x)
    post = posterior(arch, X, y, noise=noise)
    made, mean = bound_of(post), np.asarray(post.mean(line[:, None]))
    bounds = {form: float(getattr(made, form)) for form in FORMS}
    ax = plt.gca() if ax is None else ax
    artists = draw_extrapolation(
        ax, line, mean, bounds, (X, y), outputs=outputs, confidence=confidence, color=color
    )
    ax.legend()
    return artists


def draw_extrapolation(
    ax: Any,
    x: Float[np.ndarray, " m"],
    mean: Float[np.ndarray, " m"],
    bounds: Mapping[str, float],
    data: tuple[ArrayLike, ArrayLike],
    *,
    outputs: NetworkOutputs | None = None,
    confidence: float | None = 0.95,
    color: Any = BLUE,
) -> dict[str, Any]:
    """The same from values that are known already: the mean at x, the bounds by name, (X, y)."""
    artists: dict[str, Any] = {}
    if outputs is not None:
        middle, low, high = _band(outputs, x, confidence)
        label = "smallest to largest" if confidence is None else f"{confidence:.0%}"
        artists["band"] = ax.fill_between(x, low, high, color=color, alpha=0.25, lw=0, label=label)
        artists["networks"] = ax.plot(x, middle, color=color, label="trained networks")[0]
    artists["mean"] = ax.plot(
        x, mean, color="black", lw=0.9, ls=(0, (4, 2)), label="infinite width"
    )[0]
    artists["data"] = ax.plot(
        np.ravel(data[0]), np.ravel(data[1]), "k.", ms=2, zorder=1, label="data"
    )[0]
    for form, value in bounds.items():
        if math.isfinite(value):
            artists[form] = [
                ax.axhline(side * value, color=AMBER, ls=FORMS[form], lw=1.2, label=label)
                for side, label in ((1, f"±B(D), {form}"), (-1, None))
            ]
    ax.set_xlabel("$x$")
    return artists


def _band(
    outputs: NetworkOutputs, x: Float[np.ndarray, " m"], confidence: float | None
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """The mean over networks, and the lower and the upper edge of the band."""
    middle, half = confidence_band(outputs, x, 0.95 if confidence is None else confidence)
    if confidence is not None:
        return middle, middle - half, middle + half
    values = np.asarray(outputs, dtype=float).reshape(-1, len(x))
    return middle, values.min(axis=0), values.max(axis=0)


def confidence_band(
    outputs: NetworkOutputs, x: Line, confidence: float
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """The mean over networks and half the width of its confidence interval.

    >>> middle, half = confidence_band([[0.0], [2.0]], [0.0], 0.95)
    >>> float(middle[0]), round(float(half[0]), 3)
    (1.0, 12.706)
    """
    from scipy import stats

    values = np.asarray(outputs, dtype=float)
    many = len(values) if values.ndim else 0
    if many < 2 or values.size != many * np.size(x):
        raise InputError(
            "outputs",
            f"those of at least two networks at each point, shape (networks, {np.size(x)})",
            f"shape {values.shape}",
            "Give what an ensemble returns at x: outputs=ensemble(x[:, None])",
        )
    if not 0 < confidence < 1:
        raise InputError("confidence", "a number between 0 and 1", repr(confidence), "Try 0.95")
    values = values.reshape(many, -1)
    t = float(stats.t.ppf((1 + confidence) / 2, many - 1))
    return values.mean(axis=0), t * values.std(axis=0, ddof=1) / math.sqrt(many)
