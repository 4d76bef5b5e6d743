"""Pairs of single inputs, listed side by side: as covariances, and of a network beside 30 digits."""

from __future__ import annotations

from collections.abc import Iterable

import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mpf

import lnkernel as lnk
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.evaluate.float64.precise import as_precise
from lnkernel.gram import careful, tiled


def covariance(r1: np.ndarray, r2: np.ndarray, w: np.ndarray, z: np.ndarray) -> Covariance:
    """Of pairs with these lengths and angles."""
    first, second = (Length(as_precise(r * r)) for r in (r1, r2))
    return Covariance(first, second, w, z, z - w, (r1 - r2) / (r1 + r2))


def draw(
    longest: float, shares: tuple[np.ndarray, float, float], small: np.ndarray, turned: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Pairs of lengths and their w and z, all drawn.

    `shares` says which pairs have nearly equal lengths, from which power of 10 on these differ, and from which power
    of 10 of the longest on the other lengths begin. The smaller of w and z begins at the powers `small`, and is z where
    the pair is `turned`.
    """
    near, nearest, shortest = shares
    rng, count = np.random.default_rng(5), len(near)  # the same for every test, whatever ran before
    r1 = longest * rng.uniform(0.1, 1, count)
    alike = r1 * (1 - 10.0 ** rng.uniform(nearest, -1, count))
    r2 = np.where(near, alike, longest * 10.0 ** rng.uniform(shortest, 0, count))
    angle = 10.0 ** rng.uniform(small, -0.31)
    return r1, r2, np.where(turned, 1 - angle, angle), np.where(turned, angle, 1 - angle)


def angles(product: mpf, one: mpf, two: mpf) -> tuple[mpf, mpf]:
    """w and z from a product and two squares."""
    cosine = product / mpmath.sqrt(one * two)
    return (1 - cosine) / 2, (1 + cosine) / 2


def refuse_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error where a matrix would compile one."""

    def refuse(*_: object) -> None:
        raise AssertionError("a program")

    monkeypatch.setattr(careful, "compiled", refuse)
    monkeypatch.setattr(tiled, "compiled", refuse)


def assert_exact(
    arch: lnk.Node, x: np.ndarray, places: Iterable[tuple[int, int]], bound: float
) -> None:
    """Both kernels of these pairs, relative to those of the same inputs with themselves."""
    made = lnk.kernels(arch)(x)
    for i, j in places:
        exact = oracle.pair(arch, x[i], x[j], dps=30)
        assert abs(made.ntk[i, j] - exact.Theta) < bound * exact.Theta_scale
        assert abs(made.nngp[i, j] - exact.K) < bound * exact.K_scale
