r"""Gaussian expectations of ELU and SELU at any length to 40 digits, as integrals over $u$ in ball arithmetic.

Given $u$, $v$ is Gaussian with mean $m = \rho u r_2/r_1$ and variance $s^2 = (1 - \rho^2) r_2^2$, and its expectations
are error functions of $m$. What is left is an integral over one number, which Arb encloses.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from flint import acb, arb, ctx
from mpmath import mpf
from smooth_oracle import Expectations, _ball, _number

BITS = 256
TOLERANCE = 1e-45
REACH = 15  # in units of the length


class Given(NamedTuple):
    """E phi(v), E phi'(v) and E v phi'(v), given u."""

    value: acb
    slope: acb
    euler: acb


@cache
def expectations(layer: Any, q1: mpf, q2: mpf, rho: mpf) -> Expectations:
    with ctx.workprec(BITS):
        size, alpha = arb(getattr(layer, "scale", 1)), arb(layer.alpha)
        r1, r2, c = _ball(q1).sqrt(), _ball(q2).sqrt(), _ball(rho)
        s = (r2 * (1 - c * c).nonnegative_part().sqrt()).mid()

        def phi(u: acb, right: bool) -> Given:
            grown = u.exp()
            return (
                Given(u, acb(1), u)
                if right
                else Given(alpha * (grown - 1), alpha * grown, alpha * u * grown)
            )

        def given(u: acb, right: bool) -> Given:
            m = c * u * (r2 / r1)
            if s == 0:
                return phi(m, right == bool(c > 0))
            return _conditional(alpha, m, s)

        # erfc(m/s) turns within some s around 0
        near = [float(s * k * r1 / r2) for k in (1, 10)] if s > 0 else []
        ends = sorted(
            {*near, *(float(r1) * t for t in (0.01, 0.3, 1, 3, 7, REACH)), *(0.3, 1.0, 4.0, 20.0)}
        )
        ends = [0.0, *(t for t in ends if t <= REACH * float(r1))]
        total = [acb(0)] * 4
        for right in (False, True):
            for low, high in pairwise(ends):
                for n, _ in enumerate(total):
                    total[n] += acb.integral(
                        lambda t, _, n=n, right=right: _integrand(
                            n, t if right else -t, right, phi, given, r1
                        ),
                        acb(low),
                        acb(high),
                        abs_tol=arb(TOLERANCE),
                        rel_tol=arb(TOLERANCE),
                    )
        product, slopes, euler, mean = (_number(t.real) for t in total)
        squared = _number(size * size)
        return Expectations(
            squared * product, squared * slopes, squared * euler, _number(size) * mean
        )


def _integrand(n: int, u: acb, right: bool, phi: Any, given: Any, r1: arb) -> acb:
    density = (-(u / r1) * (u / r1) / 2).exp() / (r1 * (2 * arb.pi()).sqrt())
    if n == 3:
        return density * phi(u, right).value
    return density * phi(u, right)[n] * given(u, right)[n]


def _conditional(alpha: arb, m: acb, s: arb) -> Given:
    """Of a Gaussian with mean m and standard deviation s."""
    root, half = arb(2).sqrt(), s * s / 2
    above, below = ((sign * m / (s * root)).erfc() / 2 for sign in (-1, 1))
    density = (-(m / s) * (m / s) / 2).exp() / (2 * arb.pi()).sqrt()
    shifted = m + s * s
    grown = (m + half).exp() * (shifted / (s * root)).erfc() / 2  # E e^v, v < 0
    # E v e^v, v < 0: the density at 0 is that of v itself
    euler = shifted * grown - s * density
    ramp = m * above + s * density
    return Given(ramp + alpha * (grown - below), above + alpha * grown, ramp + alpha * euler)
