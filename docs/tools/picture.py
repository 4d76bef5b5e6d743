"""The picture of the first page and the README: what one LayerNorm does far from the data.

    python docs/tools/picture.py [FILE]

It writes docs/assets/one-layernorm.png unless told otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import lnkernel as lnk

FILE = Path(__file__).parents[1] / "assets" / "one-layernorm.png"
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#555555"


def draw(file: Path) -> None:
    X = np.linspace(-5, 5, 100)[:, None]
    y = np.sin(X[:, 0])
    networks = {
        "no LayerNorm": (lnk.mlp(hidden=2), ORANGE),
        "one LayerNorm": (lnk.mlp(hidden=2, norm="first"), BLUE),
    }
    bound = lnk.bound(lnk.mlp(hidden=2, norm="first"), X, y).rkhs
    near, far = np.linspace(-20, 20, 401), np.geomspace(5, 1e6, 300)

    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, (arch, colour) in networks.items():
        mean = lnk.posterior(arch, X, y).mean
        left.plot(near, mean(near[:, None]), color=colour, label=label)
        right.loglog(far, np.abs(mean(far[:, None])), color=colour, label=label)
    left.plot(X[:, 0], y, ".", color="black", ms=3, label="training data")
    left.set(title="near the data", xlabel="$x$", ylabel="mean output")
    left.legend(frameon=False, loc="upper center", fontsize="small")
    right.axhline(bound, color=GREY, ls="--", lw=1, label=f"bound for every x: {bound:.4g}")
    right.set(title="far from the data", xlabel="$x$", ylabel="|mean output|")
    right.legend(frameon=False, loc="upper left", fontsize="small")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
