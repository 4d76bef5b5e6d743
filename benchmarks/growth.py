"""The claim: the tangent kernel of finite networks grows with |x| as theory says, or stays bounded.

    python -m benchmarks.growth [--width 2048] [--seeds 8] [--json out/growth.json]

For several activations, without LayerNorm, with it in the first and in the last of two hidden
layers: Θ̂(x, x) of random networks at inputs of growing length, averaged over directions and
networks, and the power of |x| that it follows. It has to be within 0.2 of theory's: with LayerNorm
before the first activation it is 0 for every activation, and Θ(x, x) ≤ C. Behind an activation
LayerNorm bounds Θ(x, x) only where φ is not bounded itself: tanh saturates, so that its outputs no
longer depend on |x|, but one feature in |x| does not, and its slope is |x| times as large; so
Θ(x, x) ~ |x|, and for a sine, which never saturates, |x|².

The inputs are shorter than the networks are wide: beyond that, hardly a network has a feature that
is not saturated. A table and a JSON file; the exit code is 1 if a claim fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import lnkernel as lnk
from benchmarks.claims import conclude

LENGTHS = np.geomspace(10, 200, 8)  # |x|/√d
DIMENSION, DIRECTIONS = 4, 8
TOLERANCE = 0.2
PLACES: tuple[str | None, ...] = (None, "first", "last")
ACTIVATIONS: dict[str, tuple[lnk.Elementwise, tuple[float, float, float]]] = {
    "ReLU": (lnk.Relu(), (2.0, 0.0, 0.0)),
    "GELU": (lnk.Gelu(), (2.0, 0.0, 0.0)),
    "tanh": (lnk.Tanh(), (1.0, 0.0, 1.0)),
    "sin": (lnk.Sin(), (2.0, 0.0, 2.0)),
}
"""The activations, and the powers of |x| that theory says, for each place of the LayerNorm."""


@dataclass(frozen=True)
class Row:
    """One activation and one place of the LayerNorm."""

    activation: str
    norm: str | None
    theory: float
    power: float
    kernel: tuple[float, ...]  # the mean of Θ̂(x, x) at each of LENGTHS

    @property
    def holds(self) -> bool:
        return abs(self.power - self.theory) <= TOLERANCE


def measure(name: str, norm: str | None, theory: float, width: int, seeds: int) -> Row:
    """Random networks of this activation, with the LayerNorm at this place."""
    arch = lnk.mlp(2, width, norm=norm, activation=ACTIVATIONS[name][0])
    kernel = mean_diagonal(arch, seeds)
    power = float(np.polyfit(np.log(LENGTHS), np.log(kernel), 1)[0])
    return Row(name, norm, theory, power, tuple(kernel.tolist()))


def mean_diagonal(arch: lnk.Node, seeds: int) -> np.ndarray:
    """Θ̂(x, x) at inputs of each of LENGTHS, the mean over directions and networks."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(DIRECTIONS, DIMENSION))
    directions *= DIMENSION**0.5 / np.linalg.norm(directions, axis=1, keepdims=True)
    points = (LENGTHS[:, None, None] * directions).reshape(-1, DIMENSION)
    networks = (lnk.finite.network(arch, DIMENSION, rngs=seed) for seed in range(seeds))
    found = [np.asarray(lnk.finite.empirical_ntk_diagonal(f, points), float) for f in networks]
    return np.asarray(np.mean(found, axis=0).reshape(len(LENGTHS), DIRECTIONS).mean(axis=1))


def table(rows: Sequence[Row]) -> str:
    """The table: a line for each activation, theory in brackets."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.activation, []).append(row)
    head = f"{'activation':12}" + "".join(f"{place or 'none':>16}" for place in PLACES)
    return "\n".join([head, *(_line(name, each) for name, each in by_name.items())])


def _line(name: str, rows: Sequence[Row]) -> str:
    cells = [f"{round(row.power, 2) + 0.0:.2f} ({row.theory:.0f})" for row in rows]
    return f"{name:12}" + "".join(f"{cell:>16}" for cell in cells)


def claims(rows: Sequence[Row]) -> Mapping[str, bool]:
    """What is claimed of each activation, and whether it holds."""
    found: dict[str, bool] = {}
    for row in rows:
        claim = f"{row.activation}: as theory says"
        found[claim] = found.get(claim, True) and row.holds
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=2048, help="width of the hidden layers")
    parser.add_argument("--seeds", type=int, default=8, help="networks of each kind")
    parser.add_argument("--json", type=Path, default=Path("out/growth.json"))
    options = parser.parse_args(arguments)
    rows = [
        measure(name, place, power, options.width, options.seeds)
        for name, (_, powers) in ACTIVATIONS.items()
        for place, power in zip(PLACES, powers, strict=True)
    ]
    print("the power of |x| that Θ̂(x, x) follows, by the place of the LayerNorm (theory)\n")
    print(table(rows) + "\n")
    return conclude(claims(rows), options.json, rows=[asdict(row) for row in rows])


if __name__ == "__main__":
    raise SystemExit(main())
