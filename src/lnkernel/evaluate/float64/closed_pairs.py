"""Pairs of activations with kinks by closed forms: the quick way, for lengths and angles at which nothing cancels.

Those of other lengths and of small angles are NaN, and are integrated. Numbers of single inputs come from their
moments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from lnkernel.arch.node import Node
from lnkernel.evaluate.float64 import namespace
from lnkernel.evaluate.float64.moments import Moments, moments_rule


class Own(NamedTuple):
    """What one input tells: its moments, and what else the form takes."""

    length: Any
    moments: Moments
    more: tuple[Any, ...]


NO_MOMENTS = Moments(*[np.full((), np.nan)] * 5)  # where no expectation takes them


class Expectations(NamedTuple):
    """Of a pair."""

    product: Any  # E phi(u) phi(v)
    slopes: Any  # E phi'(u) phi'(v)
    euler: Callable[[], Any]  # E u phi'(u) v phi'(v)
    sure: Any  # whether nothing cancels


class ClosedPair(NamedTuple):
    """The closed form of an activation: what it takes of one input at these lengths; what it gives for pairs with these
    w and z, none longer than some length; and E phi'(u) phi'(v) and E u phi'(u) v phi'(v) of pairs of one length, at
    all angles."""

    of_input: Callable[[Any], tuple[Any, ...]]
    of_pair: Callable[[Own, Own, Any, Any, float], Expectations]
    at_one_length: Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@singledispatch
def closed_pair(layer: Node) -> ClosedPair | None:
    """The closed form of an activation; None where there is none."""
    return None


AT_ONCE = 1024  # inputs, whose moments are sums over hundreds of nodes


def own_numbers(layer: Node, form: ClosedPair, length: Any) -> Own:
    """What inputs of these lengths tell, of NumPy's numbers some at a time."""
    xp = namespace.of(length)
    rule = moments_rule(layer)
    assert rule is not None
    if xp is not np or length.size <= AT_ONCE:
        return Own(length, rule(length), form.of_input(length))
    flat = length.ravel()
    parts = [rule(flat[k : k + AT_ONCE]) for k in range(0, flat.size, AT_ONCE)]
    found = (xp.concatenate(column).reshape(length.shape) for column in zip(*parts, strict=True))
    return Own(length, Moments(*found), form.of_input(length))
