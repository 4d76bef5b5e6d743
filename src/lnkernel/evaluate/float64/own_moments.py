r"""What a closed form makes of one input by itself, to some twenty digits.

With $V = E\,\phi^2$, the growth $R = q\,E\,\phi'^2/V$ multiplies Θ/K in every layer. Where the length has become
constant, an error of R is the same in all layers, and that of Θ is their sum. There is one V and one R per input and
not per pair, so that twice the digits cost nothing that can be measured.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from functools import partial, singledispatch
from threading import Lock
from typing import NamedTuple

import jax
import numpy as np

from lnkernel.calculus.closed import Form
from lnkernel.calculus.forms import ErfForm, GaussianForm, GeluForm, SineForm
from lnkernel.evaluate.float64.gathered import FEW, Gathered
from lnkernel.evaluate.float64.kept import keep, per_input
from lnkernel.evaluate.float64.precise import Precise, as_precise
from lnkernel.evaluate.float64.precise_functions import (
    arctangent,
    constant_pi,
    falling_and_fallen,
    ratio,
    root,
)


class OwnMoments(NamedTuple):
    r"""V, the variance of $\phi$, and R."""

    square: Precise
    variance: Precise
    growth: Precise


@singledispatch
def own_moments(form: Form, q: Precise) -> OwnMoments | None:
    """The moments at the squared length q; None where the formulas of pairs have to suffice."""
    return None


def kept_moments(form: Form, q: Precise, again: bool = False) -> OwnMoments | None:
    """The same. Those of few inputs are kept; those of many until they are asked for `again`, as the diagonal does
    behind the pairs of a matrix."""
    numbers = numbers_of(form)
    if numbers is None:
        return own_moments(form, q)
    rules = "moments", type(form), numbers
    if np.size(q.high if not isinstance(q, Gathered) else q.inputs.high) <= FEW:
        return keep(rules, partial(own_moments, form), q)
    if isinstance(q, Gathered):
        return per_input(partial(own_moments, form), q)
    if not (isinstance(q.high, np.ndarray) and q.exponent is None):
        return own_moments(form, q)
    high, low = (np.broadcast_to(part, q.high.shape) for part in (q.high, q.low))
    key = rules, high.tobytes(), low.tobytes()
    with _lock:
        found = _latest.pop(key, None)
    found = found or own_moments(form, Precise(high.ravel(), low.ravel()))
    if not again:
        with _lock:
            _latest[key] = found
            while len(_latest) > MOST_KEPT:
                _latest.popitem(last=False)
    made: OwnMoments | None = jax.tree.map(lambda part: part.reshape(high.shape), found)
    return made


def numbers_of(form: Form) -> tuple[float, ...] | None:
    """What tells the form from others of its kind; None where it is no plain number."""
    found = tuple(vars(form).values())
    return found if all(isinstance(x, float | int) for x in found) else None


MOST_KEPT = 4  # layers
_latest: OrderedDict[Hashable, OwnMoments | None] = OrderedDict()
_lock = Lock()


@own_moments.register
def _(form: ErfForm, q: Precise) -> OwnMoments:
    r"""$V = \frac2\pi\theta$ with $\sin\theta = 2q/(1+2q)$, and $R = 2q/(\theta\sqrt{1+4q})$."""
    angle = arctangent(ratio(q, q + 0.5 + root(q + 0.25))) * 2.0
    square = ratio(angle * 2.0, constant_pi())
    return OwnMoments(square, square, ratio(q * 2.0, root(q * 4.0 + 1.0) * angle))


@own_moments.register
def _(form: GeluForm, q: Precise) -> OwnMoments:
    r"""With $\sin\theta = q/(1+q)$ and $s = \sqrt{1+2q}$: $\frac{2\pi}q V = \frac\pi2 + \theta + \frac2s\sin\theta$,
    $2\pi E\phi'^2 = \frac\pi2 + \theta + \frac qs(\frac1{s^2} + \frac2{1+q})$, and the mean has the square
    $\frac q{2\pi}\sin\theta$.
    """
    square, s = q * 2.0 + 1.0, root(q * 2.0 + 1.0)
    sine = ratio(q, q + 1.0)
    angle = arctangent(ratio(q, q + 1.0 + s)) * 2.0 + constant_pi() * 0.5
    whole = angle + ratio(sine * 2.0, s)
    slopes = angle + ratio(ratio(q, square) + sine * 2.0, s)
    turn = constant_pi() * 2.0
    return OwnMoments(
        q * ratio(whole, turn), q * ratio(whole + sine * -1.0, turn), ratio(slopes, whole)
    )


@own_moments.register
def _(form: GaussianForm, q: Precise) -> OwnMoments:
    r"""With $D = 1+4q$ and $S = 1+2q$: $V = D^{-1/2}$, of which the square of the mean is $1/S$; $R = 4q^2/D$."""
    four, two = q * 4.0 + 1.0, q * 2.0 + 1.0
    s, bent = root(four), ratio(q * 2.0, two)
    variance = bent * bent * ratio(ratio(two, two + s), s)
    return OwnMoments(ratio(1.0, s), variance, ratio(q * 4.0, four) * q)


@own_moments.register
def _(form: SineForm, q: Precise) -> OwnMoments:
    r"""With $x = \omega^2 q$: $V = \sin^2 c\,e^{-2x} + \frac12(1 - e^{-2x})$; of $\phi'/\omega$ it is the same with the
    cosine of the phase; and the variance is $\frac12(1 - e^{-x})(2\cos^2 c\,e^{-x} + 1 - e^{-x})$.
    """
    omega, sine, cosine = (as_precise(v) for v in (form.omega, form.sine, form.cosine))
    x = omega * omega * q
    once, rest = falling_and_fallen(x)
    half = rest * (once + 1.0) * 0.5
    square, slopes = (part * part * (once * once) + half for part in (sine, cosine))
    variance = square  # without a mean, to the last bit: lengths are then known by either
    if form.has_mean:
        variance = rest * 0.5 * (cosine * cosine * once * 2.0 + rest)
    return OwnMoments(square, variance, x * ratio(slopes, square))
