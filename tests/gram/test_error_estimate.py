"""`kernel.error_estimate` is never below the error itself, which the oracle knows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest

import lnkernel as lnk
from lnkernel.evaluate.float64.choice import CHOICES, choice_for

CORE, OTHER, STEP = np.random.default_rng(2).normal(size=(3, 3))
# pairs of the first point with the others: itself, 1e-13 apart, on one line, opposite, anywhere
POINTS = np.stack([CORE, CORE + 1e-13 * STEP, 2 * CORE, -CORE, OTHER]) / np.linalg.norm(CORE)
SIZES = 1e-3, 1.0, 30.0
ACTIVATIONS = {
    "tanh": lnk.Tanh(),
    "silu": lnk.Silu(),
    "softplus": lnk.Softplus(),
    "sigmoid": lnk.Sigmoid(),
    "gelu, approximate": lnk.Gelu(approximate=True),
    "elu": lnk.Elu(),
    "clip": lnk.Clip(),
    "own tanh": lnk.Activate(jnp.tanh),
    "own gelu": lnk.Activate(jax.nn.gelu),
}
DENSE = lnk.Dense(8, 1.7, 0.3)
NORMS: dict[str, tuple[lnk.Node, ...]] = {
    "no norm": (),
    "LN": (lnk.LayerNorm(scale=True, bias=True),),
    "LN, eps": (lnk.LayerNorm(eps=0.1),),
}


def network(activation: str, norm: str, depth: int = 1) -> lnk.Serial:
    return lnk.serial(*(DENSE, *NORMS[norm], ACTIVATIONS[activation]) * depth, DENSE)


def error_and_estimate(arch: lnk.Node, points: np.ndarray) -> tuple[float, float]:
    """The largest error of both kernels at the pairs of the first point, and what is said of it."""
    both = lnk.kernels(arch)
    found, worst = both(points), 0.0
    for j, x in enumerate(points):
        exact = oracle.pair(arch, points[0], x, dps=20)
        parts = (found.ntk, exact.Theta, exact.Theta_scale), (found.nngp, exact.K, exact.K_scale)
        worst = max(
            worst, *(float(abs(made[0, j] - right) / scale) for made, right, scale in parts)
        )
    return worst, both.error_estimate(points)


def parameters() -> list[Any]:
    """Behind a norm without eps the size does not matter."""
    rows = [(a, n, s) for a in ACTIVATIONS for n in NORMS for s in SIZES if n != "LN" or s == 1]
    return [pytest.param(*row, id="-".join(map(str, row))) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "norm", "size"), parameters())
def test_no_error_is_beyond_it(activation: str, norm: str, size: float) -> None:
    error, estimate = error_and_estimate(network(activation, norm), size * POINTS)
    assert error <= estimate < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "silu", "elu", "own tanh"])
def test_three_layers(activation: str) -> None:
    error, estimate = error_and_estimate(network(activation, "no norm", 3), POINTS)
    assert error <= estimate < 1e-12


def test_twice_the_most_terms() -> None:
    """Of inputs that take all 2,048 Hermite polynomials."""
    act = lnk.Tanh()
    assert choice_for(act, 2.5).terms == CHOICES[-1]
    arch, x = lnk.serial(lnk.Dense(8), act, lnk.Dense(1)), 2.5 * np.eye(2) * 2**0.5
    error, estimate = error_and_estimate(arch, x)
    assert error <= estimate < 1e-13


def test_panels_that_are_too_long_are_noticed() -> None:
    """The poles of jax.nn.gelu come closer than panels for functions of one's own expect: an error of 1e-12."""
    error, estimate = error_and_estimate(network("own gelu", "no norm"), 30 * POINTS[:2])
    assert 1e-14 < error <= estimate
