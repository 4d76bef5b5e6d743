"""Gradient descent of several networks, one rate each: beside the same steps by hand."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.experiments.descent import descend

RATES, STEPS = (0.01, 0.03), 7
X = np.array([[1.0, -1.0], [0.5, 2.0], [-1.5, 0.3]])
Y = np.array([1.0, -2.0, 0.5])
THERE = np.array([[3.0, 1.0], [-2.0, 4.0]])


def by_hand(weights: np.ndarray, rate: float) -> np.ndarray:
    for _ in range(STEPS):
        weights = weights - rate * X.T @ (X @ weights - Y[:, None])
    return weights


@pytest.mark.parametrize("each_its_own", [False, True])
def test_predictions_of_linear_networks(each_its_own: bool) -> None:
    with jax.enable_x64(True):
        networks = [
            nnx.Linear(2, 1, use_bias=False, param_dtype=np.float64, rngs=nnx.Rngs(seed))
            for seed in range(len(RATES))
        ]
        starts = [np.asarray(network.kernel[...]) for network in networks]
    there = np.stack([THERE, 2 * THERE]) if each_its_own else THERE
    w = lnk.watch(X, Y, ["loss"], at=[0, STEPS])
    made = descend(networks, X, Y, RATES, STEPS, w, predict_at=there)
    points = there if each_its_own else [there] * len(RATES)
    expected = [x @ by_hand(*start) for x, *start in zip(points, starts, RATES, strict=True)]
    assert made.outputs is not None
    np.testing.assert_allclose(made.outputs, expected, rtol=1e-13)
