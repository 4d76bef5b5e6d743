"""How many Hermite polynomials an activation needs for vectors of up to some length: the least choice that suffices."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import jax
import numpy as np

from lnkernel.arch.elementwise import Elementwise
from lnkernel.evaluate.float64.alone import multiply_alone
from lnkernel.evaluate.float64.functions import function_of
from lnkernel.evaluate.float64.hermite_features import nodes_and_weights
from lnkernel.evaluate.float64.hermite_tables import Parity, degrees_for

CHOICES = (32, 64, 128, 256, 512, 1024, 2048)
# Of so many the largest choice leaves out a fifth or more, to see how small the rest is.
KNOWN = (1024, 2560)
ENOUGH = 1e-16  # of the NTK's series, relatively: what is left out
STEPS = 8  # lengths are rounded up to powers of 2^(1/8), so that few programs are compiled


class Choice(NamedTuple):
    """How many Hermite polynomials, and of which degrees the tables are that replace them; up to which length."""

    terms: int
    degrees: Parity | None
    longest: float | None = None


def choice_for(layer: Elementwise, length: float) -> Choice | None:
    """The least choice that suffices for vectors of up to this length, if there is one.

    >>> from lnkernel import Tanh
    >>> choice_for(Tanh(), 1.0)    # 27 coefficients for the odd ones, and none for the even
    Choice(terms=256, degrees=(-1, 26), longest=1.0)
    """
    return _choice(layer, math.ceil(STEPS * math.log2(max(length, 2.0**-4))))


def longest_series(layer: Elementwise, length: float) -> float:
    """The length up to which the largest choice suffices."""
    start = math.ceil(STEPS * math.log2(max(length, 2.0**-4)))
    steps = range(min(start, 8 * STEPS), -6 * STEPS, -1)
    found = (
        None if function_of(layer).kinks else next((s for s in steps if _choice(layer, s)), None)
    )
    return 0.0 if found is None else 2.0 ** (found / STEPS)


@lru_cache(maxsize=1024)
def _choice(layer: Elementwise, step: int) -> Choice | None:
    found = (_choice_of(known, layer, step) for known in KNOWN)
    return next((choice for choice in found if choice is not None), None)


def _choice_of(known: int, layer: Elementwise, step: int) -> Choice | None:
    """The least that suffices, up to four fifths of the Hermite polynomials that are known."""
    x, weights = nodes_and_weights(known)
    longest = 2.0 ** (step / STEPS)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        phi = function_of(layer)
        values = np.asarray(phi.rest(longest * x))
        start = float(phi.at_zero)
    if not np.isfinite(values).all():
        return None
    a = multiply_alone(values[None], weights)[0]
    if not (a[1:].any() or a[0] + start):  # the function 0, which `prepare_integrals` refuses
        return None
    with np.errstate(all="ignore"):  # of a function that grows too fast no choice suffices
        parts = np.arange(len(a)) * np.square(a)
        left = np.cumsum(parts[::-1])[::-1] / (np.sum(np.square(a[1:])) + (a[0] + start) ** 2)
    terms = next((n for n in CHOICES if 1.25 * n <= known and left[n] < ENOUGH), None)
    return None if terms is None else Choice(terms, degrees_for(np.square(a[:terms])), longest)
