"""Twins of attention: both parametrisations, their kernels beside the limit, and how these come near it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import lnkernel as lnk

X = np.random.default_rng(3).normal(size=(2, 4, 3))
D, R, E = lnk.Dense(16, 1.3, 0.2), lnk.Relu(), lnk.PositionalEmbedding
END = lnk.Flatten(), lnk.Dense(2, 1.1, 0.3)
AFFINE = lnk.LayerNorm(scale=True, bias=True)


def look(**options: object) -> lnk.Attention:
    return lnk.Attention(16, **{"heads": 2, "QK_std": 1.3, "OV_std": 0.9, "b_std": 0.2, **options})


RANDOM = {"weights": "identity", "scaling": "sqrt", "heads": 4, "OV_std": 0.4}
NETWORKS = {
    "softmax": lnk.serial(D, AFFINE, look(embedding=E(0.7, 2.0, 1.0)), R, *END),
    "embedding": lnk.serial(D, E(0.5, 1.5), look(), R, look(), *END),
    "abs": lnk.serial(D, look(weights="abs", QK_std=0.5), *END),
    "features": lnk.serial(D, R, E(0.5), look(weights="relu", QK_std=0.5, b_std=0.0), *END),
    "random": lnk.serial(D, AFFINE, look(**RANDOM, embedding=E(0.7)), *END),
    "residual": lnk.serial(D, E(0.5), lnk.residual(lnk.LayerNorm(), look()), R, *END),
    "images": lnk.serial(lnk.Conv(16, (2, 2)), look(weights="identity", QK_std=0.5), R, *END),
}


def inputs(name: str) -> np.ndarray:
    return X.reshape(2, 2, 2, 3) if name == "images" else X


def off(name: str, width: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """How far the mean of twins is from the limit, and its standard error, by the root of the diagonals."""
    arch, x = NETWORKS[name], inputs(name)
    found = lnk.finite.empirical_ntk_over_seeds(arch, x, width=width, seeds=draws, progress=False)
    limit = lnk.ntk(arch)(x)
    ends = np.sqrt(np.outer(np.diagonal(limit), np.diagonal(limit)))
    return (found.mean - limit) / ends, found.standard_error / ends


@pytest.mark.parametrize("name", NETWORKS)
def test_one_function_in_both_parametrisations(name: str) -> None:
    x = inputs(name)
    made = [
        lnk.finite.network(NETWORKS[name], x.shape[1:], width=16, rngs=1, parameterization=kind)(x)
        for kind in ("ntk", "standard")
    ]
    assert made[0].shape == (2, 2)
    np.testing.assert_allclose(made[0], made[1], rtol=2e-4, atol=1e-5)  # float32


def test_heads_grow_or_become_more() -> None:
    for name, shape in (("softmax", (16, 2, 32)), ("random", (16, 16, 4))):
        net = lnk.finite.network(NETWORKS[name], X.shape[1:], width=64, rngs=jax.random.key(0))
        attention = net.layers[2]
        assert attention.keys.kernel.shape == (64, *shape[1:])
        assert (attention.queries is None) == (name == "softmax")  # tied to the keys


def test_attention_has_its_kernel() -> None:
    """Without one of the layer's two parts of Θ, of values and of outputs, it would be off by a fifth."""
    difference, error = off("softmax", 128, 10)
    assert error.max() < 0.08
    assert (np.abs(difference) < 4 * error + 4 / 128).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_wide_twins_have_the_kernel(name: str) -> None:
    difference, error = off(name, 256, 16)
    assert error.max() < 0.15
    assert (np.abs(difference) < 4 * error + 4 / 256).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["softmax", "random"])
def test_single_twins_come_near_by_the_root_of_the_width(name: str) -> None:
    """The spread of single networks: four times the width halves it, within what 24 draws tell."""
    draws = 24
    narrow, wide = (np.mean(off(name, width, draws)[1]) for width in (64, 256))
    assert 1.5 < narrow / wide < 2.7
