"""The main job in one minute: what one LayerNorm does to the kernel far from the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lnkernel.arch import mlp
from lnkernel.gram.kernel import Kernel, ntk

NORMS = (0.0, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)


def run(out: Path) -> Path:
    """Print both diagonals out to |x| = 1e6 and write the two heatmaps; the picture's path."""
    without, with_norm = ntk(mlp(hidden=2)), ntk(mlp(hidden=2, norm="first"))
    print("Θ(x, x) of an infinitely wide ReLU network with two hidden layers\n")
    print(f"{'|x|':>9}  {'no LayerNorm':>16}  {'one LayerNorm':>16}")
    x = np.asarray(NORMS)[:, None]
    rows = zip(NORMS, without.diagonal(x), with_norm.diagonal(x), strict=True)
    for norm, unbounded, bounded in rows:
        print(f"{norm:9.0e}  {unbounded:16.10g}  {bounded:16.10g}")
    print(
        "\nWithout LayerNorm it grows like |x|²; with one LayerNorm it never exceeds the value above."
    )
    path = out / "heatmaps.png"
    out.mkdir(parents=True, exist_ok=True)
    draw(without, with_norm, path)
    print(f"\nKernel heatmaps: {path}")
    return path


def draw(without: Kernel, with_norm: Kernel, path: Path) -> None:
    """Θ(x, x') on [-25, 25]², both networks side by side."""
    from matplotlib.figure import Figure

    from lnkernel.plot import heatmap

    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    titles = {"no LayerNorm": without, "LayerNorm in the first layer": with_norm}
    for ax, (title, kernel) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        image = heatmap(kernel, np.linspace(-25, 25, 301), ax=ax)
        figure.colorbar(image, ax=ax, shrink=0.85, label=r"$\Theta(x, x')$")
        ax.set_title(title)
    figure.savefig(path, dpi=150)
