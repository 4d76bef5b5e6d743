"""Where the LayerNorm must stand: Θ(x, x) along a ray, with the LayerNorm first and last.

    python docs/tools/saturating.py [FILE]

It writes docs/assets/saturating.png unless told otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import lnkernel as lnk

FILE = Path(__file__).parents[1] / "assets" / "saturating.png"
ACTIVATIONS = {
    "ReLU": (lnk.Relu(), "#0072b2", "-"),
    "GELU": (lnk.Gelu(), "#009e73", "--"),
    "tanh": (lnk.Tanh(), "#d55e00", "-"),
    "sine": (lnk.Sin(), "#cc79a7", "-"),
}
PLACES = {"LayerNorm before the first activation": "first", "LayerNorm before the last": "last"}


def draw(file: Path) -> None:
    norms = np.geomspace(1e-2, 1e4, 200)
    figure = Figure(figsize=(8.4, 3.3), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (title, norm) in zip(axes, PLACES.items(), strict=True):
        for label, (activation, colour, style) in ACTIVATIONS.items():
            theta = lnk.ntk(lnk.mlp(hidden=2, norm=norm, activation=activation))
            ax.loglog(norms, theta.diagonal(norms[:, None]), style, color=colour, label=label)
        ax.set(title=title, xlabel="$|x|/\\sqrt{d}$")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set(ylabel="$\\Theta(x, x)$", ylim=(1, 1e6))
    axes[1].legend(frameon=False, loc="upper left", fontsize="small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
