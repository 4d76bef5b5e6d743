"""Gaussian expectations in closed form, by the textbook's formulas.

They cancel wherever two inputs are close, long or short: hence the digits, of which `oracle.precision` finds the
number. Written in q1, q2 and k, they share nothing with the library's, which are written in angles and shares of
lengths. `test_oracle.py` compares them to quadrature in the plane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mp, mpf
from smooth_oracle import Expectations


def erf(layer: Any, q1: mpf, q2: mpf, k: mpf) -> Expectations:
    delta = (1 + 2 * q1) * (1 + 2 * q2) - 4 * k * k
    root = mpmath.sqrt(delta)
    return Expectations(
        product=2 / mp.pi * mpmath.atan2(2 * k, root),
        slopes=4 / mp.pi / root,
        euler=4 / mp.pi * k / (delta * root),
        mean=mpf(0),
    )


def gelu(layer: Any, q1: mpf, q2: mpf, k: mpf) -> Expectations:
    s1, s2 = 1 + q1, 1 + q2
    rest, delta = q1 * q2 - k * k, s1 * s2 - k * k
    angle, root = mpmath.atan2(mpmath.sqrt(delta), -k), mpmath.sqrt(delta)
    product = k * angle + (k * k / (s1 * s2) + q1 / s1 * q2 / s2 * delta) / root
    slopes = angle + k / root * (1 / delta + 1 / s1 + 1 / s2)

    def crossed(q1: mpf, q2: mpf) -> mpf:
        return (q2 * (q1 + rest) * delta + k * k * (1 + q2 + delta)) / (
            (1 + q2) ** 2 * delta * root
        )

    last = ((q1 + rest) * (q2 + rest) + 2 * k * k) / (delta * delta * root)
    whole = 2 * mp.pi
    return Expectations(
        product=product / whole,
        slopes=slopes / whole,
        euler=(product + crossed(q1, q2) + crossed(q2, q1) + last) / whole,
        mean=q1 / mpmath.sqrt(whole * s1),
    )


def gaussian(layer: Any, q1: mpf, q2: mpf, k: mpf) -> Expectations:
    rest = 2 * (q1 * q2 - k * k)
    delta = 1 + 2 * (q1 + q2) + 2 * rest
    root = mpmath.sqrt(delta)
    return Expectations(
        product=1 / root,
        slopes=4 * k / (delta * root),
        euler=4 * ((q1 + rest) * (q2 + rest) + 2 * k * k) / (delta * delta * root),
        mean=1 / mpmath.sqrt(1 + 2 * q1),
    )


def sine(layer: Any, q1: mpf, q2: mpf, k: mpf) -> Expectations:
    """sin(omega u + phase); a cosine is that with the phase pi/2."""
    cosine = type(layer).__name__ == "Cos"
    phase = mp.pi / 2 if cosine else mpf(layer.phase)
    square = mpf(layer.omega) ** 2
    near, far = (mpmath.exp(-square * (q1 + q2 - sign * 2 * k) / 2) for sign in (1, -1))
    turn = mpmath.cos(2 * phase)
    return Expectations(
        product=(near - turn * far) / 2,
        slopes=square * (near + turn * far) / 2,
        euler=square
        * (
            (k + square * (q1 - k) * (q2 - k)) * near
            + turn * (k - square * (q1 + k) * (q2 + k)) * far
        )
        / 2,
        mean=mpmath.sin(phase) * mpmath.exp(-square * q1 / 2),
    )


FUNCTIONS: dict[str, Callable[[Any, mpf, mpf, mpf], Expectations]] = {
    "Erf": erf,
    "Gelu": gelu,
    "Gaussian": gaussian,
    "Sin": sine,
    "Cos": sine,
}


def has_form(layer: Any) -> bool:
    return type(layer).__name__ in FUNCTIONS and not getattr(layer, "approximate", False)


def expectations(layer: Any, q1: mpf, q2: mpf, k: mpf) -> Expectations:
    """At Gaussians with variances q1, q2 and covariance k, with the digits of `mp`."""
    return FUNCTIONS[type(layer).__name__](layer, q1, q2, k)
