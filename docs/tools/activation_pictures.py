"""The pictures of the page on activations: their kernels, and Θ(x, x) along a ray.

    python docs/tools/activation_pictures.py [FOLDER]

It writes activation-kernels.png and activation-rays.png into docs/assets unless told otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import lnkernel as lnk

FOLDER = Path(__file__).parents[1] / "assets"
BLUE, ORANGE, GREEN, PINK, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#777777"

# by the shape of φ: the activation, its colour, and where its label stands
FAMILIES: dict[str, dict[str, tuple[lnk.Elementwise, str, tuple[float, float]]]] = {
    "φ one-sided": {
        "ReLU": (lnk.Relu(), ORANGE, (-0.95, 0.09)),
        "GELU": (lnk.Gelu(), BLUE, (-0.985, -0.28)),
        "SiLU": (lnk.Silu(), GREEN, (-0.72, -0.49)),
        "softplus": (lnk.Softplus(), PINK, (-0.95, 0.6)),
    },
    "φ odd, up to a constant": {
        "tanh": (lnk.Tanh(), ORANGE, (0.1, -0.08)),
        "erf": (lnk.Erf(), BLUE, (0.43, -0.08)),
        "sin": (lnk.Sin(), GREEN, (0.66, -0.08)),
        "sigmoid": (lnk.Sigmoid(), PINK, (-0.95, 0.83)),
    },
    "φ even": {
        "cos": (lnk.Cos(), BLUE, (0.08, 0.5)),
        "|u|": (lnk.Abs(), ORANGE, (-0.2, 0.5)),
        "Gaussian": (lnk.Gaussian(), GREEN, (-0.27, 0.81)),
    },
}
BENT = ("tanh", "erf", "sin")  # so little that κ(ρ) - ρ is shown as well
PLACES = {
    None: "no LayerNorm",
    "first": "LayerNorm in the first layer",
    "last": "LayerNorm in the last hidden layer",
}
ON_RAYS: dict[str, tuple[lnk.Elementwise, str]] = {
    "ReLU": (lnk.Relu(), ORANGE),
    "GELU": (lnk.Gelu(), BLUE),
    "tanh": (lnk.Tanh(), GREEN),
    "sin": (lnk.Sin(), PINK),
}
POWERS: dict[str | None, dict[tuple[float, float], str]] = {  # beside the curves that grow
    None: {(8, 2e3): r"$\propto |x|^2$", (90, 12): r"$\propto |x|$"},
    "first": {},
    "last": {(8, 6e2): r"$\propto |x|^2$", (90, 8): r"$\propto |x|$"},
}
NORMS = np.geomspace(1e-2, 1e2, 81)  # |x|/√d of the curves
MEASURED = NORMS[::10]  # of the dots
WIDTH, SEEDS, DIRECTIONS = 1024, 6, 8  # of the finite networks


def draw_kernels(file: Path) -> None:
    """κ(ρ) behind a LayerNorm, a panel for each family."""
    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    panels: Any = figure.subplots(1, len(FAMILIES), sharex=True, sharey=True)
    rho = np.linspace(-1, 1, 401)
    for ax, (title, family) in zip(panels, FAMILIES.items(), strict=True):
        ax.plot(rho, rho, color=GREY, lw=0.8, ls=":")
        for name, (activation, colour, place) in family.items():
            style = (0, (5, 3)) if name == "|u|" else "-"  # on the cosine, almost
            ax.plot(rho, unit_kernel(activation, rho), color=colour, ls=style)
            ax.text(*place, name, color=colour, fontsize=9)
        ax.set(xlabel=r"$\rho$", xlim=(-1, 1), ylim=(-1.05, 1.05))
        ax.set_title(title, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(r"$\kappa(\rho)$")
    panels[0].text(-0.68, -0.9, "linear", color=GREY, fontsize=9)
    inset = panels[1].inset_axes((0.6, 0.08, 0.38, 0.25))
    for name, (activation, colour, _) in FAMILIES["φ odd, up to a constant"].items():
        if name not in BENT:
            continue
        inset.plot(rho, unit_kernel(activation, rho) - rho, color=colour, lw=1)
    inset.set_title(r"$\kappa(\rho) - \rho$", fontsize=8)
    inset.tick_params(labelsize=7)
    inset.spines[["top", "right"]].set_visible(False)
    save(figure, file)


def unit_kernel(activation: lnk.Elementwise, rho: np.ndarray) -> np.ndarray:
    """K'(ρ)/K'(1) at unit length."""
    arch = lnk.serial(lnk.Dense(1), lnk.LayerNorm(), activation, lnk.Dense(1))
    angle = np.arccos(rho)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    kernel = np.asarray(lnk.nngp(arch)([[1.0, 0.0]], circle))[0]
    return kernel / kernel[-1]


def draw_rays(file: Path) -> None:
    """Θ(x, x) along a ray, a panel for each place of the LayerNorm, with finite networks as dots."""
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    panels: Any = figure.subplots(1, len(PLACES), sharex=True, sharey=True)
    for ax, (place, title) in zip(panels, PLACES.items(), strict=True):
        ends = {}
        for name, (activation, colour) in ON_RAYS.items():
            arch = lnk.mlp(2, WIDTH, norm=place, activation=activation)
            measured = mean_of_networks(arch)
            ax.loglog(*along_ray(arch), color=colour)
            ax.loglog(MEASURED, measured, ".", color=colour, ms=6)
            ends[name] = float(measured[-1])
        for name, height in apart(ends).items():
            ax.text(150, height, name, color=ON_RAYS[name][1], fontsize=9, va="center")
        for at, power in POWERS[place].items():
            ax.text(*at, power, color=GREY, fontsize=9, ha="right")
        ax.set(xlabel=r"$|x|/\sqrt{d}$")
        ax.set_title(title, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(r"$\Theta(x, x)$")
    save(figure, file)


def apart(heights: dict[str, float], ratio: float = 2.1) -> dict[str, float]:
    """Heights of labels at these heights, on a logarithmic axis, none on another."""
    names = sorted(heights, key=heights.__getitem__)
    known = np.log([heights[name] for name in names])
    steps = np.log(ratio) * np.arange(len(names))
    placed = np.maximum.accumulate(known - steps) + steps
    placed += (known - placed).mean()
    return dict(zip(names, np.exp(placed).tolist(), strict=True))


def along_ray(arch: lnk.Node) -> tuple[np.ndarray, np.ndarray]:
    """The norms as far as the kernel is computed, and Θ(x, x) there."""
    theta, accepted, refused = lnk.ntk(arch), 0, len(NORMS) + 1
    found = np.empty(0)
    trial = len(NORMS)
    while refused - accepted > 1:
        try:
            found = np.asarray(theta.diagonal(NORMS[:trial, None] * np.ones(4)))
            accepted = trial
        except (lnk.errors.ActivationRangeError, lnk.errors.KernelOverflowError):
            refused = trial
        trial = (accepted + refused) // 2
    return NORMS[:accepted], found


def mean_of_networks(arch: lnk.Node) -> np.ndarray:
    """Θ̂(x, x) at the norms MEASURED: the mean over random networks and directions."""
    directions = np.random.default_rng(0).normal(size=(DIRECTIONS, 4))
    directions *= 2 / np.linalg.norm(directions, axis=1, keepdims=True)
    points = (MEASURED[:, None, None] * directions).reshape(-1, 4)
    networks = (lnk.finite.network(arch, 4, rngs=seed) for seed in range(SEEDS))
    found = [lnk.finite.empirical_ntk_diagonal(f, points) for f in networks]
    return np.mean(found, axis=0).reshape(len(MEASURED), DIRECTIONS).mean(axis=1)


def save(figure: Figure, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)


def draw(folder: Path) -> None:
    draw_kernels(folder / "activation-kernels.png")
    draw_rays(folder / "activation-rays.png")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
