"""Moments of ELU, SELU and clips at one length, in closed forms, for as many digits as mpmath is told to have.

At short inputs, and at long ones, nearly all digits cancel: 700 are enough for lengths from 1e-150 to 1e150.
"""

from __future__ import annotations

from typing import Any

from kinked_oracle import above, density
from mpmath import mp, mpf

from lnkernel.evaluate.float64.moments import Moments


def closed_elu(layer: Any, r: mpf) -> Moments:
    """By E[e^(su); u < 0] and its second derivative by s."""
    size, alpha, q = mpf(getattr(layer, "scale", 1)), mpf(layer.alpha), r * r
    one, two = (mp.exp(s * s * q / 2) * above(s * r) for s in (1, 2))
    mean = r * density(mpf(0)) + alpha * (one - mpf(1) / 2)
    square = q / 2 + alpha**2 * (two - 2 * one + mpf(1) / 2)
    euler = q / 2 + alpha**2 * ((q + 4 * q * q) * two - 2 * q * r * density(mpf(0)))
    slopes = mpf(1) / 2 + alpha**2 * two
    parts = square, square - mean**2, slopes, euler
    return Moments(size * mean, *(size**2 * part for part in parts))


def closed_clip(layer: Any, r: mpf) -> Moments:
    low, high = mpf(layer.low), mpf(layer.high)
    h, k = low / r, high / r
    inside = above(h) - above(k)
    first = r * (density(h) - density(k))
    second = r * r * (inside + h * density(h) - k * density(k))
    mean = low * above(-h) + high * above(k) + first
    square = low**2 * above(-h) + high**2 * above(k) + second
    return Moments(mean, square, square - mean**2, inside, second)
