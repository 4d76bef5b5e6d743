"""Kernels of networks with closed forms, by the textbook's formulas in 700 digits.

They cancel wherever two inputs are close, long or short: hence the digits. Written in q1, q2 and k, they share
nothing with the library's, which are written in angles and shares of lengths.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

import lnkernel as lnk

DIGITS = 700


class Expectations(NamedTuple):
    """E phi phi and E phi' phi'."""

    product: Any
    slopes: Any


def expectations(layer: Any, q1: Any, q2: Any, k: Any) -> Expectations:
    """At Gaussians with variances q1, q2 and covariance k."""
    name = type(layer).__name__
    if name == "Relu":
        root = mp.sqrt(q1 * q2)
        if root == 0:
            return Expectations(mp.mpf(0), mp.mpf(1) / 4)
        rest = q1 * q2 - k * k
        angle = mp.atan2(mp.sqrt(rest if rest > 0 else mp.mpf(0)), k)
        slopes = (mp.pi - angle) / (2 * mp.pi)
        return Expectations(root * mp.sin(angle) / (2 * mp.pi) + k * slopes, slopes)
    if name == "Erf":
        delta = (1 + 2 * q1) * (1 + 2 * q2) - 4 * k * k
        return Expectations(2 / mp.pi * mp.atan2(2 * k, mp.sqrt(delta)), 4 / mp.pi / mp.sqrt(delta))
    if name == "Gaussian":
        delta = (1 + 2 * q1) * (1 + 2 * q2) - 4 * k * k
        return Expectations(delta ** mp.mpf("-0.5"), 4 * k * delta ** mp.mpf("-1.5"))
    if name == "Gelu":
        s1, s2 = 1 + q1, 1 + q2
        delta = s1 * s2 - k * k
        angle, root = mp.atan2(mp.sqrt(delta), -k), mp.sqrt(delta)
        product = k * angle + (k * k / (s1 * s2) + q1 / s1 * q2 / s2 * delta) / root
        slopes = angle + k / root * (1 / delta + 1 / s1 + 1 / s2)
        return Expectations(product / (2 * mp.pi), slopes / (2 * mp.pi))
    omega, phase = mp.mpf(layer.omega), mp.mpf(getattr(layer, "phase", 0.0))
    if name == "Cos":
        phase = mp.pi / 2
    square = omega * omega
    near, far = (mp.exp(-square * (q1 + q2 - sign * 2 * k) / 2) for sign in (1, -1))
    turned = mp.cos(2 * phase) * far
    return Expectations((near - turned) / 2, square * (near + turned) / 2)


class Kernels(NamedTuple):
    """K and Θ of a pair, and their scales."""

    nngp: Any
    ntk: Any
    nngp_scale: Any
    ntk_scale: Any


def kernels(arch: lnk.Serial, x: np.ndarray, x2: np.ndarray) -> Kernels:
    """Of a network of Dense layers and activations."""
    with mp.workdps(DIGITS):
        inputs = [[mp.mpf(float(v)) for v in point] for point in (x, x2)]
        gram = {(i, j): mp.fdot(inputs[i], inputs[j]) / len(x) for i, j in ((0, 0), (0, 1), (1, 1))}
        theta = dict.fromkeys(gram, mp.mpf(0))
        for layer in arch.layers:
            if isinstance(layer, lnk.Dense):
                w, b = mp.mpf(float(layer.W_std)) ** 2, mp.mpf(float(layer.b_std)) ** 2
                gram = {pair: w * k + b for pair, k in gram.items()}
                theta = {pair: gram[pair] + w * theta[pair] for pair in gram}
            else:
                ends = gram[0, 0], gram[1, 1]
                found = {
                    (i, j): expectations(layer, ends[i], ends[j], k) for (i, j), k in gram.items()
                }
                gram = {pair: found[pair].product for pair in gram}
                theta = {pair: theta[pair] * found[pair].slopes for pair in gram}
        return Kernels(
            gram[0, 1],
            theta[0, 1],
            mp.sqrt(gram[0, 0] * gram[1, 1]),
            mp.sqrt(theta[0, 0] * theta[1, 1]),
        )
