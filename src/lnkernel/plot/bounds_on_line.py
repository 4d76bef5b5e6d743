"""The bound on the output around the mean, and Θ(x, x) as a function of the norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from lnkernel.arch.text import Architecture
from lnkernel.bounds import SupDiagonal
from lnkernel.bounds import bound as bound_of
from lnkernel.check.arrays import as_array
from lnkernel.errors import InputError
from lnkernel.gp.posterior import posterior
from lnkernel.types import Line, Norms, Points, Targets


def bound(
    arch: Architecture, X: Points, y: Targets, x: Line, *, noise: float = 0.0, ax: Any = None
) -> dict[str, Any]:
    r"""The mean on a line, the data, and both sides of the bound at each point,
    $\pm\sqrt{\Theta(x,x)\,a^T\Theta a}$, and for every x, $\pm$ `rkhs`.

    Args:
        arch: the network.
        X, y: the data, (n, 1) and (n,).
        x: points on the line, (m,) or (m, 1), in the order in which they are joined.
        noise: variance of the targets' noise.
        ax: the matplotlib axes to draw into; the current ones by default.

    Returns:
        the artists by name: "mean", "data", "at", and "rkhs" if that is finite.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, lnkernel as lnk
    >>> X = np.linspace(-5, 5, 9)
    >>> artists = lnk.plot.bound(lnk.mlp(norm="first"), X[:, None], np.sin(X), np.linspace(-9, 9, 50))
    >>> sorted(artists)
    ['at', 'data', 'mean', 'rkhs']
    """
    import matplotlib.pyplot as plt

    line = on_a_line(X, x)
    post = posterior(arch, X, y, noise=noise)
    made = bound_of(post)
    mean, at = np.asarray(post.mean(line[:, None])), np.asarray(made.at(line[:, None]))
    ax = plt.gca() if ax is None else ax
    artists = {
        "at": ax.fill_between(line, -at, at, color="#0072b2", alpha=0.15, lw=0, label="bound at x"),
        "mean": ax.plot(line, mean, color="#0072b2", label="mean")[0],
        "data": ax.plot(np.ravel(X), y, "k.", label="data")[0],
    }
    if math.isfinite(made.rkhs):
        artists["rkhs"] = [
            ax.axhline(side * made.rkhs, color="#d55e00", ls="--", label=label)
            for side, label in ((1, "bound for every x"), (-1, None))
        ]
    ax.set_xlabel("$x$")
    ax.legend()
    return artists


def profile(c: SupDiagonal, norms: Norms | None = None, *, ax: Any = None) -> Any:
    r"""$\Theta(x, x)$ over the norm $|x|/\sqrt d$, with a line at C if it is finite.

    Args:
        c: what `sup_diagonal` returns.
        norms: positive numbers; 1e-6 to 1e6 by default.
        ax: the matplotlib axes to draw into; the current ones by default.

    Returns:
        the curve.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt, lnkernel as lnk
    >>> ax = plt.figure().gca()
    >>> curve = lnk.plot.profile(lnk.sup_diagonal(lnk.mlp(norm="last")), [0.1, 1.0, 10.0], ax=ax)
    >>> curve.get_ydata().round(2).tolist()
    [2.76, 3.01, 3.01]
    """
    import matplotlib.pyplot as plt

    norms = np.geomspace(1e-6, 1e6, 601) if norms is None else np.asarray(norms, dtype=float)
    ax = plt.gca() if ax is None else ax
    curve = ax.plot(norms, c.profile(norms), color="#0072b2")[0]
    ax.set_xscale("log")
    if math.isfinite(c.value):
        ax.axhline(c.value, color="#d55e00", ls="--", label=f"C = {c.value:.6g}")
        ax.legend()
    else:
        ax.set_yscale("log")
    ax.set_xlabel(r"$|x|/\sqrt{d}$")
    ax.set_ylabel(r"$\Theta(x, x)$")
    return curve


def on_a_line(X: Points, x: Line) -> Float[np.ndarray, " m"]:
    """The points x, where data and points are on a line."""
    points = np.asarray(as_array("x", x), dtype=float)
    if np.ndim(X) != 2 or np.shape(X)[1] != 1 or points.size != len(np.atleast_1d(points)):
        raise InputError(
            "X and x",
            "points on a line, (n, 1) and (m,)",
            f"shapes {np.shape(X)} and {np.shape(x)}",
            "In more dimensions plot lnkernel.bound(...).at(x) along a ray",
        )
    return points.reshape(-1)
