"""Networks that are really trained: one hidden layer of ReLU, NTK parametrisation, float64.

    f(x) = W_std/√width · v·relu(h) + b_std c,    h = W_std/√d · W x + b_std b

with standard normal v, c, W, b; gradient descent on 1/2 Σ_i (f(x_i) - y_i)², by hand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

W_STD, B_STD = 2**0.5, 0.5


class Parameters(NamedTuple):
    """Of many networks at once, stacked along the first axis."""

    v: np.ndarray  # (networks, width)
    c: np.ndarray  # (networks,)
    W: np.ndarray  # (networks, width, d)
    b: np.ndarray  # (networks, width)


def initial(networks: int, width: int, d: int, seed: int) -> Parameters:
    draw = np.random.default_rng(seed).normal
    return Parameters(
        draw(size=(networks, width)),
        draw(size=networks),
        draw(size=(networks, width, d)),
        draw(size=(networks, width)),
    )


def outputs(p: Parameters, x: np.ndarray) -> np.ndarray:
    """(networks, points)."""
    return _readout(p, np.maximum(_hidden(p, x), 0))


def trained(
    p: Parameters, x: np.ndarray, y: np.ndarray, steps: int, rate: float, last_only: bool = False
) -> Parameters:
    """After so many steps of gradient descent, of all layers or of the last one only."""
    inner, outer = W_STD / math.sqrt(x.shape[1]), W_STD / math.sqrt(p.v.shape[1])
    for _ in range(steps):
        h = _hidden(p, x)
        a = np.maximum(h, 0)
        error = _readout(p, a) - y
        v = p.v - rate * outer * np.einsum("si,siw->sw", error, a)
        c = p.c - rate * B_STD * error.sum(axis=1)
        if last_only:
            p = p._replace(v=v, c=c)
            continue
        back = outer * (error[:, :, None] * (h > 0)) * p.v[:, None, :]
        W = p.W - rate * inner * np.einsum("siw,id->swd", back, x)
        b = p.b - rate * B_STD * back.sum(axis=1)
        p = Parameters(v, c, W, b)
    return p


def _hidden(p: Parameters, x: np.ndarray) -> np.ndarray:
    """(networks, points, width)."""
    inner = W_STD / math.sqrt(x.shape[1])
    return inner * np.einsum("swd,id->siw", p.W, x) + B_STD * p.b[:, None, :]


def _readout(p: Parameters, a: np.ndarray) -> np.ndarray:
    outer = W_STD / math.sqrt(p.v.shape[1])
    return outer * np.einsum("siw,sw->si", a, p.v) + B_STD * p.c[:, None]
