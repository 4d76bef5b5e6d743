"""Arrays of balls, and truths that may be undecided.

A ball (python-flint's `arb`) is an interval with a midpoint of any precision; every operation
rounds outwards. An array of balls is a NumPy array of objects, so the lengths of n inputs
are (n, 1) or (1, n) and computed once, while the angles of their pairs are (n, n).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import arb, ctx, fmpq

Ball = Any  # a ball or an array of balls

BITS = 128
GUARD = 24  # bits more, inside of functions

# Balls are rounded to so many bits inside `with working_precision(bits)`; flint's own setting comes
# back behind it.
working_precision = ctx.workprec


def exact(number: Fraction | float | int) -> arb:
    """A ball of radius 0, or as small as the working precision allows."""
    ratio = Fraction(number)
    return arb(fmpq(ratio.numerator, ratio.denominator))


def lower_end(m: arb) -> arb:
    """The lower end of a ball, as an exact one."""
    return m.lower().mid() if m.is_exact() else (m.mid() - m.rad()).lower().mid()


def upper_end(m: arb) -> arb:
    """The upper end of a ball, as an exact one."""
    return m.upper().mid() if m.is_exact() else (m.mid() + m.rad()).upper().mid()


class Truth(NamedTuple):
    """The answer of a comparison: certainly yes, certainly no, or (neither) undecided."""

    yes: Any
    no: Any


class BallArray(np.ndarray):
    """A NumPy array of balls, whose comparisons tell what is certain.

    The overrides are silenced for the type checker: NumPy's comparisons give arrays of bool.
    """

    def __lt__(self, other: Any) -> Truth:  # type: ignore[override]
        return _truth_of(np.less, np.greater_equal, self, other)

    def __le__(self, other: Any) -> Truth:  # type: ignore[override]
        return _truth_of(np.less_equal, np.greater, self, other)

    def __gt__(self, other: Any) -> Truth:  # type: ignore[override]
        return _truth_of(np.greater, np.less_equal, self, other)

    def __ge__(self, other: Any) -> Truth:  # type: ignore[override]
        return _truth_of(np.greater_equal, np.less, self, other)

    def __eq__(self, other: Any) -> Truth:  # type: ignore[override]
        return _truth_of(np.equal, np.not_equal, self, other)

    def __ne__(self, other: Any) -> Truth:  # type: ignore[override]
        return _truth_of(np.not_equal, np.equal, self, other)

    __hash__ = None


def _truth_of(yes: Any, no: Any, one: Any, two: Any) -> Truth:
    """arb's comparisons are true only where they hold for every number of both balls."""
    one, two = np.asarray(one), np.asarray(two)
    return Truth(yes(one, two).astype(bool), no(one, two).astype(bool))


def balls(values: Any) -> Any:
    """An array of balls, or a single one; floats and integers become balls of radius 0."""
    if isinstance(values, BallArray | arb):
        return values
    if np.ndim(values) == 0:
        return arb(values.item() if isinstance(values, np.ndarray) else values)
    return _as_ball(np.asarray(values, dtype=object)).view(BallArray)


_as_ball = np.frompyfunc(lambda x: x if isinstance(x, arb) else arb(x), 1, 1)


def elementwise(function: Callable[..., Any], inputs: int, outputs: int = 1) -> Callable[..., Any]:
    """A function of single balls as one of arrays; arrays are broadcast against each other."""
    lifted = np.frompyfunc(function, inputs, outputs)

    def apply(*arguments: Any) -> Any:
        results = lifted(*(balls(x) for x in arguments))
        if outputs == 1:
            return balls(results)
        return tuple(balls(result) for result in results)

    return apply


def select(condition: Any, yes: Any, no: Any) -> Any:
    """`yes` where the condition certainly holds, `no` where it certainly does not, else both.

    The hull of both is right whatever the answer: it needs no assumption on the branches.
    """
    if isinstance(condition, Truth):
        certain = np.asarray(condition.yes), np.asarray(condition.no)
    else:
        certain = np.asarray(condition, bool), ~np.asarray(condition, bool)
    yes, no, sure, never = np.broadcast_arrays(balls(yes), balls(no), *certain)
    out = np.where(sure, yes, no)
    undecided = ~(sure | never)
    if undecided.any():
        out[undecided] = _union(yes[undecided], no[undecided])
    return out.view(BallArray) if out.ndim else out.item()


_union = np.frompyfunc(lambda x, y: x.union(y), 2, 1)
