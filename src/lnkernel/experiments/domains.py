"""Regression inside and outside of the domain of the training data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

SHARE = 0.9  # of the data inside the domain that is trained on


class Examples(NamedTuple):
    """Inputs, standardised, and targets in their own unit."""

    x: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    rows: np.ndarray  # which of the data they are, (n,)


@dataclass(frozen=True, eq=False)
class Split:
    """Training data, and tests inside and outside of their domain.

    Inputs are standardised by the mean and the deviation of the training inputs; learners see
    `targets`, the training targets standardised by their own.
    """

    train: Examples
    inside: Examples
    outside: Examples

    @property
    def targets(self) -> np.ndarray:
        """The targets of training, with mean 0 and variance 1."""
        return (self.train.y - self._mean) / self._spread

    def in_units(self, outputs: Any) -> np.ndarray:
        """What a learner outputs, in the unit of the targets."""
        return np.asarray(outputs, np.float64) * self._spread + self._mean

    @property
    def _mean(self) -> float:
        return float(self.train.y.mean())

    @property
    def _spread(self) -> float:
        return float(self.train.y.std()) or 1.0


def split(
    x: np.ndarray, y: np.ndarray, outside: np.ndarray, seed: int, most: int | None = None
) -> Split:
    """A random 90 % of the points that are not `outside` to train on, the others to test.

    Args:
        x: inputs, (n, d).
        y: targets, (n,).
        outside: which points are outside of the domain, (n,).
        seed: for the choice.
        most: training points, at most.

    >>> import numpy as np
    >>> x = np.arange(100.0)[:, None]
    >>> made = split(x, x[:, 0], outside=x[:, 0] >= 80, seed=0)
    >>> len(made.train.x), len(made.inside.x), len(made.outside.x)
    (72, 8, 20)
    >>> bool(abs(made.train.x.mean()) < 1e-12), float(made.train.x.std().round(12))
    (True, 1.0)
    """
    known = np.random.default_rng(seed).permutation(np.flatnonzero(~outside))
    count = round(SHARE * len(known))
    train, test = known[:count][:most], known[count:]
    inputs = np.asarray(x, np.float64)
    middle, spread = inputs[train].mean(axis=0), inputs[train].std(axis=0)
    scaled = (inputs - middle) / np.where(spread > 0, spread, 1.0)
    targets, chosen = np.asarray(y, np.float64), (train, test, np.flatnonzero(outside))
    return Split(*(Examples(scaled[rows], targets[rows], rows) for rows in chosen))


def r_squared(y: np.ndarray, predicted: np.ndarray) -> float:
    """R² = 1 - Σ (y - f)² / Σ (y - mean y)².

    >>> import numpy as np
    >>> r_squared(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    0.0
    """
    return float(1 - np.square(y - predicted).sum() / np.square(y - y.mean()).sum())


@dataclass(frozen=True)
class Range:
    """From one value to another, where the paper says no more."""

    least: float
    largest: float


@dataclass(frozen=True)
class Published:
    """R² of the paper as (value, ±), in domain and out of it, or as a range."""

    inside: tuple[float, float | None] | Range
    outside: tuple[float, float | None] | Range

    @property
    def has_range(self) -> bool:
        """Whether one of them is a range."""
        return isinstance(self.inside, Range) or isinstance(self.outside, Range)

    def words(self, where: str) -> str:
        """The value as the paper prints it.

        >>> Published(Range(0.66, 0.68), (0.27, 0.03)).words("inside")
        '≈ .66 to .68'
        """
        given = getattr(self, where)
        if isinstance(given, Range):
            return f"≈ {in_words(given.least, None)} to {in_words(given.largest, None)}"
        return in_words(*given)


@dataclass(frozen=True, eq=False)
class Result:
    """One method: what it predicts for each seed's split, with its R²."""

    method: str
    colour: str
    splits: list[Split]
    predictions: list[Mapping[str, np.ndarray]]  # "inside" and "outside", in the targets' unit
    published: Published | None
    note: str

    def scores(self, where: str) -> np.ndarray:
        """R² of every seed, "inside" or "outside"."""
        pairs = zip(self.splits, self.predictions, strict=True)
        return np.array([r_squared(getattr(s, where).y, made[where]) for s, made in pairs])

    def row(self) -> dict[str, Any]:
        """The row of the table: mean ± standard error over the seeds, beside the paper's."""
        cells: dict[str, Any] = {"method": self.method, "seeds": len(self.splits)}
        for where, words in (("outside", "out of domain"), ("inside", "in domain")):
            mean, error = summary(self.scores(where))
            cells[f"R² {words}"] = mean
            cells[f"± ({words})"] = error
            cells[f"published R² {words}"] = self.published.words(where) if self.published else ""
        return cells | {"note": self.note}

    def row_in_words(self) -> dict[str, Any]:
        """The same for a reader, in fewer columns."""
        cells: dict[str, Any] = {"method": self.method}
        for where, words in (("outside", "out of domain"), ("inside", "in domain")):
            cells[f"R² {words}"] = in_words(*summary(self.scores(where)), digits=3)
            cells[f"published {words}"] = self.published.words(where) if self.published else ""
        return cells | {"note": self.note}


def by_seed(results: Sequence[Result], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """A table of every seed's R²."""
    return [
        {
            "method": result.method,
            "seed": seed,
            "R² out of domain": float(outside),
            "R² in domain": float(inside),
            "noise": float(made["noise"]) if "noise" in made else None,
        }
        for result in results
        for seed, outside, inside, made in zip(
            seeds,
            result.scores("outside"),
            result.scores("inside"),
            result.predictions,
            strict=True,
        )
    ]


def count_repeated(part: Split) -> int:
    """How many points of the test inside are among the training points too, target included."""
    train, inside = (np.column_stack([p.x, p.y]) for p in (part.train, part.inside))
    known = {row.tobytes() for row in train}
    return sum(row.tobytes() in known for row in inside)


def summary(values: np.ndarray) -> tuple[float, float | None]:
    """The mean, and its standard error where there is more than one value.

    >>> summary(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    many = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(many) if many > 1 else None
    return float(values.mean()), error


def in_words(value: float, error: float | None, digits: int = 2) -> str:
    """The value as text, without the zero before the point, as in the paper.

    >>> in_words(0.5, 0.02), in_words(0.67, None), in_words(-1.25, 0.1, digits=3)
    ('.50 ± .02', '.67', '−1.250 ± .100')
    """
    parts = [f"{part:.{digits}f}" for part in (abs(value), error) if part is not None]
    words = " ± ".join(part.removeprefix("0") for part in parts)
    return f"−{words}" if value < 0 else words
