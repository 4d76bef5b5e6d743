"""Twins of convolutional networks: their shapes, both parametrisations, and their kernels beside the limit."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4, 4, 3))
DENSE, R = lnk.Dense(2, W_std=1.2, b_std=0.3), lnk.Relu()


def conv(**options: object) -> lnk.Conv:
    return lnk.Conv(8, (3, 2), **{"W_std": 1.4, "b_std": 0.2, **options})


NETWORKS = {
    "flat": lnk.serial(conv(strides=2), R, conv(), R, lnk.Flatten(), DENSE),
    "LN": lnk.serial(
        conv(padding="CIRCULAR"), lnk.LayerNorm(scale=True, bias=True), R, lnk.Flatten(), DENSE
    ),
    "LN all": lnk.serial(
        conv(), R, lnk.LayerNorm(axes="all"), conv(padding="VALID"), R, lnk.Flatten(), DENSE
    ),
    "pooled": lnk.serial(conv(), R, lnk.AvgPool((2, 2)), conv(), R, lnk.GlobalAvgPool(), DENSE),
    "sum": lnk.serial(
        conv(), lnk.residual(R, conv()), lnk.SumPool((2, 2), 1, "SAME"), lnk.GlobalSumPool(), DENSE
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_one_function_in_both_parametrisations(name: str) -> None:
    made = [
        lnk.finite.network(NETWORKS[name], X.shape[1:], width=16, rngs=1, parameterization=kind)(X)
        for kind in ("ntk", "standard")
    ]
    assert made[0].shape == (3, 2)
    np.testing.assert_allclose(made[0], made[1], rtol=2e-4, atol=1e-5)  # float32


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_wide_twins_have_the_kernel(name: str) -> None:
    """The mean over draws, within four of its standard errors and the bias of order 1/width."""
    width, draws, arch = 256, 12, NETWORKS[name]
    found = np.stack(
        [
            lnk.finite.empirical_ntk(lnk.finite.network(arch, X.shape[1:], width, rngs=seed), X)
            for seed in range(draws)
        ]
    )
    limit = lnk.ntk(arch)(X)
    error = found.std(axis=0, ddof=1) / np.sqrt(draws)
    ends = np.sqrt(np.outer(np.diagonal(limit), np.diagonal(limit)))
    assert (np.abs(found.mean(axis=0) - limit) < 4 * error + 4 / width * ends).all()


def test_wrong_shapes() -> None:
    with pytest.raises(InputError, match="the shape of one input, positions and channels"):
        lnk.finite.network(NETWORKS["flat"], 3, rngs=0)
    net = lnk.finite.network(NETWORKS["flat"], (4, 4, 3), rngs=jax.random.key(0))
    with pytest.raises(InputError, match=r"shape \(n, 4, 4, 3\)"):
        net(X[:, :3])
