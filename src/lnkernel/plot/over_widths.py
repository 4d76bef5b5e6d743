"""How networks approach their limit as they get wider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lnkernel.finite import Comparison

SHOWN = {
    "ntk_error": ("before training, distance from Θ", "#0072b2", "o"),
    "drift": ("change in training", "#d55e00", "s"),
}


def widths(comparison: Comparison, *, ax: Any = None) -> dict[str, Any]:
    r"""The errors of the empirical kernels over the width, with their standard errors, log by log;
    and the slope $-\frac12$ that theory expects, through the first point.

    Args:
        comparison: what `lnkernel.finite.compare` returns.
        ax: the matplotlib axes to draw into; the current ones by default.

    Returns:
        the artists by name: "ntk_error", "drift", and "theory".

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, lnkernel as lnk
    >>> arch, X = lnk.mlp(hidden=1, norm="first", b_std=1.0), np.linspace(-1, 1, 3)[:, None]
    >>> found = lnk.finite.compare(arch, X, [1.0, 0.0, 1.0], [[3.0]], widths=[16, 64], seeds=3)
    >>> sorted(lnk.plot.widths(found))
    ['drift', 'ntk_error', 'theory']
    """
    import matplotlib.pyplot as plt

    ax = plt.gca() if ax is None else ax
    rows = comparison.rows
    width = np.array([row.width for row in rows], dtype=float)
    artists: dict[str, Any] = {
        name: ax.errorbar(
            width,
            [getattr(row, name) for row in rows],
            yerr=[getattr(row, f"{name}_se") for row in rows],
            color=colour,
            fmt=f"{marker}-",
            ms=4,
            capsize=3,
            label=label,
        )
        for name, (label, colour, marker) in SHOWN.items()
    }
    slope = rows[0].ntk_error * np.sqrt(width[0] / width)
    artists["theory"] = ax.plot(
        width, slope, color="0.5", ls="--", lw=1, label=r"$\propto 1/\sqrt{\mathrm{width}}$"
    )[0]
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(width, [f"{w:.0f}" for w in width])
    ax.set_xlabel("width")
    ax.set_ylabel("relative to the kernel")
    ax.legend(fontsize="small")
    return artists
