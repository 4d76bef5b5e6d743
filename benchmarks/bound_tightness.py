"""The claim: each bound holds, and this is how far each is from the truth.

    python -m benchmarks.bound_tightness [--out out]

For a sinusoid, a line and a parabola at 100 points of [-5, 5], and LayerNorm in the first, the
last, all or no hidden layers: the smallest eigenvalue, C, the true sup |mean(x)| (over both
directions and a grid of norms from 0 to 1e8, refined, and the limit at infinity), the four
bounds, and their ratios to the truth. A table, `out/bound_tightness.png` and `.json`. The exit
code is 1 if a bound is below the truth, or the bounds are not in order.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lnkernel as lnk
from lnkernel.bounds import FORMS
from lnkernel.experiments.toy import POINTS, TARGETS
from lnkernel.tables import plain

OUT = Path("out")
PLACES = ("first", "last", "all", None)
FARTHEST = 1e8
INFINITELY_FAR = 1e140  # a norm beside which biases vanish from every digit of float64
HUGE = 1e100
COLOURS = {"rkhs": "#0072b2", "sharp": "#009e73", "paper": "#e69f00", "norms": "#cc79a7"}


@dataclass(frozen=True)
class Row:
    """One data set and one network."""

    data: str
    norm: str
    lambda_min: float
    C: float
    sup_mean: float
    attained_at: float
    limits: tuple[float, float]  # the mean at x = -1e140 and 1e140
    bounds: dict[str, float]
    ratios: dict[str, float | None]  # None where the mean is not bounded: infinity by infinity

    @property
    def holds(self) -> bool:
        """Whether the bounds are in order, the truth first."""
        chain = [self.sup_mean, *(self.bounds[form] for form in FORMS)]
        return all(low <= high * (1 + 1e-9) for low, high in pairwise(chain))


def measure(data: str, place: str | None) -> Row:
    arch = lnk.mlp(hidden=2, norm=place)
    X, y = POINTS[:, None], TARGETS[data](POINTS)
    b = lnk.bound(arch, X, y)
    posterior = lnk.posterior(arch, X, y)

    def mean(x: np.ndarray) -> np.ndarray:
        return np.asarray(posterior.mean(x[:, None]))

    place_of_sup, sup, limits = true_supremum(mean)
    if math.isinf(b.C) and lnk.diverging_witness(arch, X, y, above=HUGE).is_given_data:
        place_of_sup = sup = math.inf  # with these data the mean exceeds HUGE: taken as unbounded
    bounds = {form: float(getattr(b, form)) for form in FORMS}
    return Row(
        data=data,
        norm=place or "none",
        lambda_min=b.lambda_min,
        C=b.C,
        sup_mean=sup,
        attained_at=place_of_sup,
        limits=limits,
        bounds=bounds,
        ratios={
            form: value / sup if math.isfinite(sup) else None for form, value in bounds.items()
        },
    )


Function = Callable[[np.ndarray], np.ndarray]


def true_supremum(mean: Function) -> tuple[float, float, tuple[float, float]]:
    """Where |mean| is largest, how large, and the limits at both infinities.

    A fine grid over the data and around, a logarithmic one to 1e8, a closer look at the best
    point; and the mean so far out that it is its limit.
    """
    near = np.linspace(-8, 8, 3201)
    far = np.geomspace(1e-8, FARTHEST, 1601)
    x = np.unique(np.concatenate([near, far, -far, [0.0]]))
    values = np.abs(mean(x))
    best = int(np.argmax(values))
    look = np.linspace(x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], len(x))
    closer = np.abs(mean(look))
    place, sup = float(look[closer.argmax()]), float(max(closer.max(), values[best]))
    ends = mean(np.resize([-INFINITELY_FAR, INFINITELY_FAR], len(x)))[:2]
    if np.abs(ends).max() > sup:
        place, sup = math.inf, float(np.abs(ends).max())
    return place, sup, (float(ends[0]), float(ends[1]))


def table(rows: list[Row]) -> str:
    head = f"{'data':9} {'norm':6} {'λ_min':>10} {'C':>8} {'sup|mean|':>10} {'at x =':>10}"
    head += "".join(f" {form:>10} {'ratio':>9}" for form in FORMS)
    lines = [head]
    for row in rows:
        line = f"{row.data:9} {row.norm:6} {row.lambda_min:10.3e} {row.C:8.5g} "
        line += f"{row.sup_mean:10.5g} {row.attained_at:10.4g}"
        for form in FORMS:
            line += f" {row.bounds[form]:10.4g} {_ratio(row.ratios[form]):>9}"
        lines.append(line)
    return "\n".join(lines)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.4g}"


def draw(rows: list[Row], path: Path) -> None:
    """The bounds as multiples of the truth, one group per data set and network."""
    from matplotlib.figure import Figure

    finite = [row for row in rows if math.isfinite(row.sup_mean)]
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    ax = figure.subplots()
    width = 0.8 / len(FORMS)
    for number, form in enumerate(FORMS):
        places = np.arange(len(finite)) + (number - 1.5) * width
        above = [
            (row.ratios[form] or 1.0) - 1 for row in finite
        ]  # the bars stand on the truth, at 1
        bars = ax.bar(places, above, width, bottom=1.0, label=form, color=COLOURS[form])
        if form == "rkhs":
            labels = [f"{row.ratios[form]:.0f}×" for row in finite]
            ax.bar_label(bars, labels, fontsize=8, padding=2)
    ax.set_yscale("log")
    ax.set_ylim(1.0, None)
    ax.set_xticks(range(len(finite)), [f"{row.data}\n{row.norm}" for row in finite])
    ax.set_ylabel("bound / sup |mean(x)|   (1 is exact)")
    ax.set_xlabel("data, and where the LayerNorm is (without one both are infinite)")
    figure.legend(ncols=4, loc="outside upper center", frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    figure.savefig(path, dpi=150)


def as_json(rows: list[Row], seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "rows": [plain(asdict(row)) for row in rows]}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    out = parser.parse_args(arguments).out
    start = time.perf_counter()
    rows = [measure(data, place) for place in PLACES for data in TARGETS]
    seconds = time.perf_counter() - start
    print(table(rows))
    out.mkdir(parents=True, exist_ok=True)
    picture, results = out / "bound_tightness.png", out / "bound_tightness.json"
    draw(rows, picture)
    results.write_text(json.dumps(as_json(rows, seconds), indent=1) + "\n")
    print(f"\n{seconds:.0f} s; {picture}, {results}")
    wrong = [row for row in rows if not row.holds]
    for row in wrong:
        print(f"VIOLATED: {row.data}, LayerNorm {row.norm}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
