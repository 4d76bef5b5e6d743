"""The figures of the experiment on the nonlinearity of LayerNorm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lnkernel.experiments.figures import figure_path, new_figure
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.nonlinearity_plan import LNKind, NonlinearityPlan
from lnkernel.nonlinearity import LNNet, ln_net, lssr
from lnkernel.nonlinearity.modules import E1, E2

BLUE, AMBER, GREY = "#2b6cb0", "#c97b12", "#888888"
XOR, XOR_LABELS = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), np.array([0, 0, 1, 1])
DOTS = {"s": 22, "edgecolors": "white", "linewidths": 0.6, "zorder": 3}
Found = dict[str, Any]


def draw_xor(folder: Folder) -> Path:
    """The four points of XOR, what one LayerNorm makes of them, and twelve points with random labels."""
    net = ln_net(XOR, XOR_LABELS)
    assert isinstance(net, LNNet)
    draw = np.random.default_rng(0)
    points, labels = draw.uniform(size=(12, 2)), draw.integers(0, 2, 12)
    with new_figure(folder, "xor", height=2.7) as figure:
        left, middle, right = figure.subplots(1, 3)
        _draw_signs(left, net, XOR, XOR_LABELS)
        left.set_title("XOR: four points, one LayerNorm")
        _draw_fold(middle, net)
        larger = ln_net(points, labels)
        _draw_signs(right, larger, points, labels)
        right.set_title(f"{len(points)} points, {larger.norms} LayerNorms")
    return figure_path(folder, "xor")


def layer_values(net: LNNet, x: np.ndarray, layers: int) -> np.ndarray:
    """What the first layers of a network make of the points."""
    with jax.enable_x64(True):
        values = jax.numpy.asarray(x)
        for layer in net.layers[:layers]:
            values = layer(values)
        return np.asarray(values)


def _draw_signs(ax: Any, net: Any, points: np.ndarray, labels: np.ndarray) -> None:
    """Where the score is positive, and the points."""
    ticks = np.linspace(-0.2, 1.2, 401)
    plane = np.stack(np.meshgrid(ticks, ticks), -1).reshape(-1, 2)
    scores = np.sign(net(plane)).reshape(len(ticks), -1)
    ax.pcolormesh(ticks, ticks, scores, cmap="RdBu", vmin=-3, vmax=3, rasterized=True)
    _scatter(ax, points, labels)
    ax.set(aspect="equal", xlabel="x₁", ylabel="x₂")


def _draw_fold(ax: Any, net: LNNet) -> None:
    """The plane of three neurons orthogonal to (1, 1, 1): the line before LayerNorm, the arc behind it."""
    basis = np.stack([E1, E2], axis=1)
    before, after = (layer_values(net, XOR, layers) @ basis for layers in (1, 2))
    after = after / np.sqrt(3)  # LayerNorm's vectors have the length √3
    circle = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(circle), np.sin(circle), color=GREY, lw=0.6)
    ax.axline(before[0], before[np.argmax(np.abs(before - before[0]).sum(1))], color=GREY, lw=0.6)
    for start, end in zip(before, after, strict=True):
        ax.plot(*zip(start, end, strict=True), color=GREY, lw=0.5, ls=":")
    _scatter(ax, before, XOR_LABELS, marker="s")
    _scatter(ax, after, XOR_LABELS)
    hidden = layer_values(net, XOR, 2)
    told = [lssr(h[XOR_LABELS == 0], h[XOR_LABELS == 1]) for h in (XOR, hidden)]
    ax.set(aspect="equal", xlim=(-1.3, 1.3), ylim=(-0.4, 1.3), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(f"before (□), behind it (○):\nLSSR {told[0]:.2g} → {told[1]:.1g}")


def _scatter(ax: Any, points: np.ndarray, labels: np.ndarray, marker: str = "o") -> None:
    for value, colour in ((0, "#9b2c2c"), (1, "#2c5282")):
        ax.scatter(*points[labels == value].T, color=colour, marker=marker, **DOTS)


def draw_accuracy(
    folder: Folder, plan: NonlinearityPlan, found: Found, data: Sequence[str]
) -> Path:
    """Training accuracy on random labels: by depth, by groups, and of the kernels by noise."""
    with new_figure(folder, "accuracy", height=2.3 * len(data) + 0.3) as figure:
        axes = figure.subplots(len(data), 3, squeeze=False, sharey=True)
        for row, name in zip(axes, data, strict=True):
            bound = float(found[f"linear {name}"]["accuracy"].mean())
            deep = [LNKind(norms, None) for norms in plan.depths]
            groups = [LNKind(1, None), *(LNKind(1, plan.width // g) for g in plan.groups)]
            _curve(row[0], plan.depths, [found[f"network {name} {k}"] for k in deep])
            numbers = (1, *plan.groups)
            _curve(row[1], numbers, [found[f"network {name} {k}"] for k in groups])
            row[0].set(title=f"{name}: LN-Net", xlabel="LayerNorms", ylabel="training accuracy")
            row[1].set(title=f"{name}: one norm in groups", xlabel="groups")
            for ax, ticks in ((row[0], plan.depths), (row[1], numbers)):
                ax.set_xscale("log", base=2)
                ax.set_xticks(ticks, [str(tick) for tick in ticks])
            colours = _shades(len(plan.kernel_sizes))
            for colour, size in zip(colours, plan.kernel_sizes, strict=True):
                one = found[f"kernel {name} {LNKind(plan.kernel_depths[0], size)}"]
                label = "LayerNorm" if size is None else f"groups of {size}"
                row[2].plot(plan.noises, one["accuracy"].mean(1), ".-", color=colour, label=label)
            row[2].set(title=f"{name}: infinite width", xlabel="noise/mean Θ(x, x)", xscale="log")
            for ax in row:
                ax.axhline(bound, color=GREY, ls="--", lw=0.8, label="linear bound")
                ax.set_ylim(0, 1.03)
        handles, labels = axes[0, 2].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure_path(folder, "accuracy")


def draw_spectra(folder: Folder, plan: NonlinearityPlan, found: Found, data: Sequence[str]) -> Path:
    """Eigenvalues of the infinitely wide networks' tangent kernels on the pictures, by group size and depth."""
    with new_figure(folder, "spectra", height=2.3 * len(data) + 0.3) as figure:
        axes = figure.subplots(len(data), len(plan.kernel_depths), squeeze=False, sharey=True)
        for row, name in zip(axes, data, strict=True):
            for ax, depth in zip(row, plan.kernel_depths, strict=True):
                colours = _shades(len(plan.kernel_sizes))
                for colour, size in zip(colours, plan.kernel_sizes, strict=True):
                    values = found[f"kernel {name} {LNKind(depth, size)}"]["values"]
                    kept = values[values > 1e-12 * values[0]]
                    label = "LayerNorm" if size is None else f"groups of {size}"
                    ax.plot(1 + np.arange(len(kept)), kept, color=colour, lw=1, label=label)
                norms = "1 norm" if depth == 1 else f"{depth} norms"
                ax.set(title=f"{name}, {norms}", xscale="log", yscale="log")
            row[0].set_ylabel("eigenvalue/mean Θ(x, x)")
        for ax in axes[-1]:
            ax.set_xlabel("number")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure_path(folder, "spectra")


def _curve(ax: Any, x: Sequence[int], pieces: Sequence[dict[str, np.ndarray]]) -> None:
    """Mean over the seeds at the better rate, with a band from the least to the largest."""
    best = [one["accuracy"][one["accuracy"].mean(1).argmax()] for one in pieces]
    ax.plot(x, [b.mean() for b in best], "o-", ms=3, color=BLUE)
    ax.fill_between(
        x, [b.min() for b in best], [b.max() for b in best], color=BLUE, alpha=0.2, lw=0
    )


def _shades(count: int) -> list[Any]:
    """Colours from light, small groups, to black, LayerNorm."""
    import matplotlib

    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.1, 1.0, max(count - 1, 1)))
    return [*shades[: count - 1], "black"]
