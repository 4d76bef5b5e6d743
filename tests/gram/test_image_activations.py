"""Every kind of activation on images, beside integrals over all pairs of positions.

A convolution, an activation and a readout: K and Θ are written out by hand, and the expectations are double-exponential
quadrature between the kinks, which shares nothing with the library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lnkernel as lnk

RNG = np.random.default_rng(6)
X = RNG.normal(size=(2, 3, 2))  # two sequences of three positions
W2, B2, V2 = 1.2**2, 0.3**2, 1.1**2


def smooth(u: Any) -> Any:
    return 1 / (1 + np.exp(-u))


# activation, φ, φ′, kinks
CASES: dict[str, tuple[lnk.Node, Any, Any, tuple[float, ...]]] = {
    "cos": (lnk.Cos(1.5), lambda u: np.cos(1.5 * u), lambda u: -1.5 * np.sin(1.5 * u), ()),
    "sigmoid": (lnk.Sigmoid(), smooth, lambda u: smooth(u) * (1 - smooth(u)), ()),
    "tanh": (lnk.Tanh(), np.tanh, lambda u: 1 / np.cosh(u) ** 2, ()),
    "polynomial": (
        lnk.Polynomial((0.5, 1.0, -0.25)),
        lambda u: 0.5 + u - 0.25 * u * u,
        lambda u: 1 - 0.5 * u,
        (),
    ),
    "clip": (
        lnk.Clip(-0.5, 1.0),
        lambda u: np.clip(u, -0.5, 1.0),
        lambda u: 1.0 * ((u > -0.5) & (u < 1.0)),
        (-0.5, 1.0),
    ),
    "power 2": (
        lnk.RectifiedPower(2),
        lambda u: np.maximum(u, 0.0) ** 2,
        lambda u: 2 * np.maximum(u, 0.0),
        (0.0,),
    ),
    "power 0.7": (
        lnk.RectifiedPower(0.7),
        lambda u: np.maximum(u, 0.0) ** 0.7,
        lambda u: 0.7 * np.where(u > 0, np.maximum(u, 1e-300) ** -0.3, 0.0),
        (0.0,),
    ),
}


T = np.linspace(-3.5, 3.5, 57)
NODES = 1 / (
    1 + np.exp(-np.pi * np.sinh(T))
)  # of [0, 1], dense at both ends, where slopes may be infinite
WEIGHTS = np.pi * np.cosh(T) * NODES * (1 - NODES) * (T[1] - T[0])


def pieces(
    middle: np.ndarray, size: float, kinks: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights around the middle of a Gaussian, cut at the kinks and in between, on a last axis."""
    cuts = [middle + size * place for place in (-9.0, -5.0, -3.0, -1.0, 1.0, 3.0, 5.0, 9.0)]
    cuts += [np.clip(kink, cuts[0], cuts[-1]) for kink in kinks]
    ends = np.sort(np.stack(cuts, axis=-1), axis=-1)
    lengths = np.diff(ends, axis=-1)[..., None]
    nodes, weights = ends[..., :-1, None] + lengths * NODES, lengths * WEIGHTS
    return tuple(x.reshape(*middle.shape, -1) for x in (nodes, weights))


def expectation(f: Any, q1: float, q2: float, k: float, kinks: tuple[float, ...]) -> float:
    """E f(u) f(v): the outer integral over u, the inner one over v given u."""
    r1, rest = np.sqrt(q1), np.sqrt(q2 - k * k / q1)
    u, outer = pieces(np.zeros(()), r1, kinks)
    m = k / q1 * u
    v, inner = pieces(m, rest, kinks)
    of_v = (f(v) * density((v - m[:, None]) / rest) / rest * inner).sum(axis=-1)
    return float((f(u) * density(u / r1) / r1 * outer) @ of_v)


def density(z: np.ndarray) -> np.ndarray:
    return np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("end", ["flat", "pooled"])
@pytest.mark.parametrize("name", CASES)
def test_beside_integrals(name: str, end: str) -> None:
    layer, phi, slope, kinks = CASES[name]
    readout = lnk.Flatten() if end == "flat" else lnk.GlobalAvgPool()
    conv = lnk.Conv(8, (2,), padding="CIRCULAR", W_std=1.2, b_std=0.3)
    arch = lnk.serial(conv, layer, readout, lnk.Dense(1, W_std=1.1))

    def before(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """K behind the convolution, of all pairs of positions."""
        dot = x @ y.T / x.shape[1]
        return W2 * 0.5 * (dot + np.roll(dot, (-1, -1), (0, 1))) + B2

    own = [np.diagonal(before(x, x)) for x in X]
    K = before(*X)
    places = [(p, p) for p in range(3)] if end == "flat" else list(np.ndindex(3, 3))
    values = [(own[0][p], own[1][q], K[p, q]) for p, q in places]
    features = np.mean([expectation(phi, *v, kinks) for v in values])
    # Θ behind the convolution is its K; behind the readout K' of it and what came through the activation
    through = np.mean([v[2] * expectation(slope, *v, kinks) for v in values])
    found = lnk.kernels(arch)(X[:1], X[1:])
    assert abs(found.nngp[0, 0] / (V2 * features) - 1) < 1e-9
    assert abs(found.ntk[0, 0] / (V2 * (features + through)) - 1) < 1e-8


@pytest.mark.parametrize("name", ["cos", "polynomial"])  # of the others this has not been tried
def test_itself_and_larger_networks(name: str) -> None:
    """Matrices are symmetric, positive, and their diagonals those that are asked for, behind norms and pooling too."""
    layer = CASES[name][0]
    conv = lnk.Conv(8, (2,), W_std=1.2, b_std=0.3)
    body = conv, layer, lnk.AvgPool((2,), 1), conv, lnk.LayerNorm(), layer
    arch = lnk.serial(*body, lnk.GlobalAvgPool(), lnk.Dense(1))
    x = np.concatenate([X, -X, 3 * X])
    for matrix, ends in zip(lnk.kernels(arch)(x), lnk.kernels(arch).diagonal(x), strict=True):
        np.testing.assert_allclose(np.diagonal(matrix), ends, rtol=2e-15)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * ends.max()


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_the_diagonal_of_long_images(name: str) -> None:
    """Between the positions of one image the series needs as many terms as between two."""
    conv = lnk.Conv(8, (2,), padding="CIRCULAR", W_std=1.2, b_std=0.3)
    kernel = lnk.ntk(lnk.serial(conv, CASES[name][0], lnk.GlobalAvgPool(), lnk.Dense(1)))
    x = 3 * X
    np.testing.assert_allclose(kernel.diagonal(x), np.diagonal(kernel(x)), rtol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(x)[0], kernel(x[:1], x)[0, 0], rtol=1e-7)
