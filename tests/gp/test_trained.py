"""The posterior beside networks that are really trained: the loss's scale, the mean, the spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
from trained_networks import B_STD, W_STD, initial, outputs, trained

import lnkernel as lnk

ARCH = lnk.mlp(hidden=1, W_std=W_STD, b_std=B_STD)
X = np.array([[1.0, 0.2], [-0.5, 1.0], [0.3, -1.2]])
Y = np.array([1.0, -0.5, 0.7])
FAR = np.array([[2.0, 1.0], [-1.5, -1.5], [0.4, 0.1]])
RATE = 0.05  # a quarter of the limit, where descent and flow differ visibly


def deviation(width: int, steps: int, kernel: str, rescaled: float = 1.0) -> float:
    """Root mean square of f_trained - (f_0 + k(x, X) φ(A) (y - f_0(X))), over networks and points.

    A network's own f_0 is taken into account, so that what is left is the effect of its width.
    """
    start = initial(8, width, 2, seed=width)
    end = trained(start, X, Y, steps, RATE, last_only=kernel == "nngp")
    residues = (Y - outputs(start, X)).T  # the networks as so many outputs
    post = lnk.posterior(ARCH, X, residues, kernel)
    predicted = outputs(start, FAR) + post.after(steps, RATE * rescaled).mean(FAR).T
    return float(np.sqrt(np.mean((outputs(end, FAR) - predicted) ** 2)))


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
@pytest.mark.parametrize("steps", [1, 5, 60])
def test_each_network_follows_its_prediction(steps: int, kernel: str) -> None:
    """The deviation falls like 1/√width, and a learning rate twice as large would not fit."""
    narrow, wide = deviation(128, steps, kernel), deviation(2048, steps, kernel)
    assert wide < 4 / math.sqrt(2048)
    assert wide < narrow / 2  # 1/4 is expected; 8 networks and 3 points tell it within 1/2
    if steps < 60:  # later on all have converged, whatever the rate
        assert deviation(2048, steps, kernel, rescaled=2.0) > 3 * wide
        assert deviation(2048, steps, kernel, rescaled=0.5) > 3 * wide


def test_flow_is_the_limit_of_small_steps() -> None:
    start = initial(8, 2048, 2, seed=1)
    end = trained(start, X, Y, 80, 0.005)
    post = lnk.posterior(ARCH, X, (Y - outputs(start, X)).T)
    distances = {
        t: np.sqrt(np.mean((outputs(end, FAR) - outputs(start, FAR) - post.at(t).mean(FAR).T) ** 2))
        for t in (0.2, 0.4, 0.8)
    }
    assert distances[0.4] < 4 / math.sqrt(2048) < min(distances[0.2], distances[0.8])


@pytest.mark.parametrize("steps", [3, 150])
def test_mean_and_spread_of_an_ensemble(steps: int) -> None:
    """600 networks of width 256: means within 4.5 standard errors, variances within theirs.

    The finite width changes a variance by some 1/256 of itself, far below the standard error.
    """
    networks = 600
    end = trained(initial(networks, 256, 2, seed=7), X, Y, steps, RATE)
    values = outputs(end, FAR)
    stopped = lnk.posterior(ARCH, X, Y).after(steps, RATE)
    variance = stopped.ensemble_variance(FAR)
    assert (np.abs(values.mean(0) - stopped.mean(FAR)) < 4.5 * np.sqrt(variance / networks)).all()
    ratio = values.var(axis=0, ddof=1) / variance
    allowed = 4.5 * math.sqrt(2 / (networks - 1))
    assert (np.abs(ratio - 1) < allowed).all()
    wrong = lnk.posterior(ARCH, X, Y).variance(FAR)  # the test tells the two apart
    assert (np.abs(values.var(axis=0, ddof=1) / wrong - 1) > allowed).any()


def test_converged_ensemble_is_the_limit() -> None:
    post = lnk.posterior(ARCH, X, Y)
    late = post.after(20_000, RATE)
    np.testing.assert_allclose(late.mean(FAR), post.mean(FAR), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        late.ensemble_variance(FAR), post.ensemble_variance(FAR), rtol=0, atol=1e-12
    )
