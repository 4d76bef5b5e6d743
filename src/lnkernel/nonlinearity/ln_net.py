"""Any two classes of points told apart by a network of width 3 whose only nonlinearity is LayerNorm."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from lnkernel.check.arrays import as_points
from lnkernel.check.numbers import positive_integer
from lnkernel.errors import InputError, SeparationError
from lnkernel.evaluate.balls.numbers import working_precision
from lnkernel.nonlinearity.construction import Spot, find_folds
from lnkernel.nonlinearity.directions import choose_direction
from lnkernel.nonlinearity.folds import Chain, Evaluator
from lnkernel.nonlinearity.modules import (
    FLOAT64_BITS,
    FLOAT64_DIGITS,
    MOST_BITS,
    LNNet,
    PreciseLNNet,
)
from lnkernel.precision import demand_plain_numbers
from lnkernel.types import Points

SLACK = 16  # units of rounding, of a layer of width 3 in float64: twice those that its operations add up to
SIZES = 1e-150, 1e150  # of the data, whose squares float64 holds


def ln_net(X: Points, labels: ArrayLike, *, digits: int | None = None) -> LNNet | PreciseLNNet:
    r"""A network affine, LayerNorm, affine, ..., affine of width 3 that gives all of m points their labels, with at
    most m - 2 LayerNorms.

    The result is a Flax module: `net(X)` are scores, (m,), positive for the second class, `net.classify(X)` the
    labels. Every sign is proved at every point of X before it is returned. Where float64 is proved to be enough,
    rounding included, it is an `LNNet`, otherwise a `PreciseLNNet`, in exact numbers with more digits.

    Args:
        X: different points, (n, d).
        labels: one of two values for each, (n,); the second class is the larger. If all are the same they
            are the second class where they are positive.
        digits: None takes as many as are needed. A number is the most that is allowed: 15 is float64. What needs
            more is refused (`SeparationError`), and the message says how many.

    >>> import lnkernel as lnk
    >>> X, labels = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [0, 0, 1, 1]                    # XOR
    >>> net = lnk.nonlinearity.ln_net(X, labels)
    >>> net.classify(X).tolist(), net.norms
    ([0, 0, 1, 1], 1)
    >>> (net(X) > 0).tolist()
    [False, False, True, True]
    """
    demand_plain_numbers("ln_net", X, labels)
    points = np.asarray(as_points("X", X))
    classes, second = _as_classes(labels, len(points))
    _check_points(points, second)
    most = None if digits is None else positive_integer("digits", digits)
    if most is not None and most < FLOAT64_DIGITS:
        remedy = "float64 has 15"
        raise InputError("digits", f"at least {FLOAT64_DIGITS}, or None", repr(digits), remedy)
    direction = choose_direction(points, second)
    bits = FLOAT64_BITS
    while bits <= MOST_BITS:
        chain = _find_chain(points, second, direction, bits)
        if chain is not None:
            needed = FLOAT64_DIGITS if bits == FLOAT64_BITS else math.ceil(bits * math.log10(2))
            if most is not None and needed > most:
                raise SeparationError(len(points), needed, most)
            if bits == FLOAT64_BITS:
                return LNNet(chain, classes)
            return PreciseLNNet(chain, classes, bits)
        bits += bits // 2
    raise SeparationError(len(points), None, math.floor(MOST_BITS * math.log10(2)))


def _find_chain(
    points: np.ndarray, second: np.ndarray, direction: tuple[np.ndarray, float], bits: int
) -> Chain | None:
    """The chain with parameters of so many bits, if all its signs are proved; with 53 bits in float64."""
    w, offset = direction
    plain = Chain(tuple(w.tolist()), Fraction(offset), (), Fraction(0), 1)
    rows = points.tolist()
    with working_precision(bits):
        line = Evaluator(plain)
        spots = [
            Spot(line.project(row, arb(0)).mid(), bool(label))
            for row, label in zip(rows, second, strict=True)
        ]
        found = find_folds(spots)
    if found is None:
        return None
    folds, threshold, sign = found
    constant = second.all() or not second.any()
    if constant:  # a score that is ±1 everywhere
        chain = Chain((0.0,) * len(w), Fraction(1), (), Fraction(0), sign)
    else:
        chain = Chain(plain.w, plain.offset, tuple(folds), threshold, sign)
    slack = SLACK if bits == FLOAT64_BITS else 0
    with working_precision(2 * bits):
        unit = arb(2) ** -bits
        exactly = Evaluator(chain)
        balls = (exactly.score(row, unit, slack) for row in rows)
        right = all(b > 0 if label else b < 0 for b, label in zip(balls, second, strict=True))
    return chain if right else None


def _as_classes(labels: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The two classes, and for each point whether it is in the second."""
    given = np.asarray(labels)
    values = np.unique(given) if given.dtype.kind in "biufUS" else given
    missing = given.dtype.kind == "f" and bool(np.isnan(given).any())
    if given.shape != (n,) or given.dtype.kind not in "biufUS" or len(values) > 2 or missing:
        came = f"shape {given.shape}, dtype {given.dtype}"
        if given.shape == (n,) and given.dtype.kind in "biufUS":
            came = "NaN" if missing else f"{len(values)} different values"
        raise InputError(
            "labels",
            f"one of two values for each of the {n} points, shape ({n},)",
            came,
            "Write e.g. labels = y > 0",
        )
    if len(values) == 1:
        is_second = given.dtype.kind not in "US" and bool(values[0] > 0)
        return np.repeat(values, 2), np.full(n, is_second)
    return values, given == values[1]


def _check_points(points: np.ndarray, second: np.ndarray) -> None:
    size = float(np.abs(points).max())
    if size and not SIZES[0] < size < SIZES[1]:
        remedy = "Rescale the data"
        raise InputError(
            "X", f"numbers whose largest is {SIZES[0]} to {SIZES[1]}", f"{size}", remedy
        )
    seen: dict[tuple[float, ...], int] = {}
    for place, row in enumerate((points + 0.0).tolist()):
        other = seen.setdefault(tuple(row), place)
        if second[other] != second[place]:
            raise InputError(
                "X",
                "different points wherever labels differ",
                f"the same point {other} and {place} with both labels",
                "No function has both values there: drop one of them",
            )
