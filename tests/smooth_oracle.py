r"""Gaussian expectations of analytic activations to 40 digits, by the trapezoidal rule in two dimensions.

With independent unit Gaussians x, y: $u = r_1(\sqrt z\,x + \sqrt w\,y)$, $v = r_2(\sqrt z\,x - \sqrt w\,y)$, where
$z, w = (1 \pm \rho)/2$. For functions that are analytic in a strip the error falls exponentially with the number
of nodes. It shares nothing with the library, which sums over Hermite polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from flint import arb, ctx, fmpz
from mpmath import mpf

DIGITS = 40
BITS = 192
STRIP = 1.5  # half the width of the strip in which all functions below are analytic, in u


def _sigmoid(v: arb) -> arb:
    return 1 / (1 + (-v).exp())


def _normal(u: arb) -> arb:
    return (-u * u / 2).exp() / (2 * arb.pi()).sqrt()


def _gelu(layer: Any, u: arb) -> tuple[arb, arb]:
    if not layer.approximate:
        below = (-u / arb(2).sqrt()).erfc() / 2
        return u * below, below + u * _normal(u)
    scale = (2 / arb.pi()).sqrt()
    t = (scale * (u + arb(0.044715) * u * u * u)).tanh()
    return u * (1 + t) / 2, (1 + t) / 2 + u * (1 - t * t) / 2 * scale * (
        1 + 3 * arb(0.044715) * u * u
    )


def _silu(layer: Any, u: arb) -> tuple[arb, arb]:
    s = _sigmoid(arb(layer.beta) * u)
    return u * s, s + arb(layer.beta) * u * s * (1 - s)


def _softplus(layer: Any, u: arb) -> tuple[arb, arb]:
    v = arb(layer.beta) * u
    return (1 + v.exp()).log() / arb(layer.beta), _sigmoid(v)


def _sin(layer: Any, u: arb) -> tuple[arb, arb]:
    s, c = (arb(layer.omega) * u + arb(layer.phase)).sin_cos()
    return s, arb(layer.omega) * c


def _cos(layer: Any, u: arb) -> tuple[arb, arb]:
    s, c = (arb(layer.omega) * u).sin_cos()
    return c, -arb(layer.omega) * s


def _tanh(layer: Any, u: arb) -> tuple[arb, arb]:
    t = u.tanh()
    return t, 1 - t * t


def _logistic(layer: Any, u: arb) -> tuple[arb, arb]:
    s = _sigmoid(u)
    return s, s * (1 - s)


def _bell(layer: Any, u: arb) -> tuple[arb, arb]:
    value = (-u * u).exp()
    return value, -2 * u * value


def _erf(layer: Any, u: arb) -> tuple[arb, arb]:
    return u.erf(), 2 * (-u * u).exp() / arb.pi().sqrt()


# phi(u) and phi'(u)
FUNCTIONS: dict[str, Callable[[Any, arb], tuple[arb, arb]]] = {
    "Erf": _erf,
    "Gelu": _gelu,
    "Silu": _silu,
    "Tanh": _tanh,
    "Sigmoid": _logistic,
    "Softplus": _softplus,
    "Sin": _sin,
    "Cos": _cos,
    "Gaussian": _bell,
}


class Expectations(NamedTuple):
    """E phi(u) phi(v), E phi'(u) phi'(v), E u phi'(u) v phi'(v) and E phi(u)."""

    product: mpf
    slopes: mpf
    euler: mpf
    mean: mpf


@cache
def expectations(layer: Any, q1: mpf, q2: mpf, rho: mpf) -> Expectations:
    """For lengths up to about 5 within a second; `long_oracle` has fewer digits, and takes longer ones."""
    with ctx.workprec(BITS):
        r1, r2 = _ball(q1).sqrt(), _ball(q2).sqrt()
        z, w = (((1 + _ball(sign * rho)) / 2).nonnegative_part().sqrt() for sign in (1, -1))
        longest = max(float(r1), float(r2), 1.0)
        across, along = ([step * k for k in range(-n, n + 1)] for step, n in _steps(longest, z, w))
        phi = FUNCTIONS[type(layer).__name__]
        weights = [[(-y * y / 2).exp() for y in nodes] for nodes in (across, along)]
        total = [arb(0)] * 4
        for x, first in zip(across, weights[0], strict=True):
            for y, second in zip(along, weights[1], strict=True):
                weight = first * second
                if float(weight) < 10.0 ** -(DIGITS + 4):
                    continue
                u, v = r1 * (z * x + w * y), r2 * (z * x - w * y)
                (f, df), (g, dg) = phi(layer, u), phi(layer, v)
                for n, value in enumerate((f * g, df * dg, u * df * v * dg, f)):
                    total[n] = total[n] + weight * value
        scale = 1 / (sum(weights[0], arb(0)) * sum(weights[1], arb(0)))
        return Expectations(*(_number(scale * value) for value in total))


def _steps(longest: float, *roots: arb) -> list[tuple[arb, int]]:
    """The distance of the nodes, and how many there are on either side, for x and for y.

    In a strip of half the width d the error is exp(d²/2 - 2 pi d/step).
    """
    digits = DIGITS * math.log(10)
    widest = math.sqrt(2 * digits)  # of the Gaussian alone
    found = []
    for root in roots:
        if float(root) < 1e-60:  # nothing depends on this coordinate
            found.append((arb(1), 0))
            continue
        d = min(STRIP / (longest * float(root)), widest)
        step = 2 * math.pi * d / (digits + d * d / 2)
        found.append((arb(step), math.ceil(math.sqrt(2 * digits + 8) / step)))
    return found


def _ball(t: mpf) -> arb:
    sign, mantissa, exponent, _ = t._mpf_
    whole = arb(fmpz(int(mantissa))) * (-1 if sign else 1)
    return whole * arb(2) ** exponent


def _number(ball: arb) -> mpf:
    mantissa, exponent = ball.mid().man_exp()
    return mpf(int(mantissa)) * mpf(2) ** int(exponent)
