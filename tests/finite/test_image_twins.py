"""Twins of convolutional networks: their shapes, both parametrisations, and their kernels beside the limit."""

from __future__ import annotations

import jax
import numpy as np
import optax
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError
from lnkernel.finite.training import ensemble

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3, 4, 4, 3))
DENSE, R = lnk.Dense(2, W_std=1.2, b_std=0.3), lnk.Relu()


def conv(**options: object) -> lnk.Conv:
    return lnk.Conv(8, (3, 2), **{"W_std": 1.4, "b_std": 0.2, **options})


def local(**options: object) -> lnk.ConvLocal:
    return lnk.ConvLocal(8, (3, 2), **{"W_std": 1.4, "b_std": 0.2, **options})


def transposed(**options: object) -> lnk.ConvTranspose:
    return lnk.ConvTranspose(8, (3, 2), 2, **{"W_std": 1.4, "b_std": 0.2, **options})


NETWORKS = {
    "local": lnk.serial(
        local(padding="CIRCULAR"), R, local(padding="VALID"), R, lnk.GlobalAvgPool(), DENSE
    ),
    "transposed": lnk.serial(
        conv(strides=2), R, transposed(), R, transposed(padding="VALID"), R, lnk.Flatten(), DENSE
    ),
    "transposed, pooled": lnk.serial(
        *(conv(), R, transposed(padding="CIRCULAR", b_std=0.0), R, lnk.GlobalAvgPool(), DENSE)
    ),
    "another size": lnk.serial(
        *(conv(), R, lnk.Resize((3, -1)), conv(), R, lnk.Resize((2, 5), "nearest"), conv(), R),
        *(lnk.Crop(None, None, -2, axis=1), lnk.GlobalAvgPool(), DENSE),
    ),
    "cubic": lnk.serial(conv(), R, lnk.Resize((3, 6), "cubic"), conv(), R, lnk.Flatten(), DENSE),
    "local, flat": lnk.serial(
        conv(), R, local(strides=2, b_std=0.0), lnk.LayerNorm(), R, lnk.Flatten(), DENSE
    ),
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


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("filter, strides", [((2, 3), (2, 1)), ((1, 3), (3, 2)), ((4, 4), (2, 3))])
def test_a_transposed_convolution_is_that_of_jax(
    padding: str, filter: tuple[int, int], strides: tuple[int, int]
) -> None:
    arch = lnk.serial(lnk.ConvTranspose(5, filter, strides, padding), lnk.Flatten())
    net, x = lnk.finite.network(arch, X.shape[1:], rngs=0), X.astype(np.float32)
    theirs = jax.lax.conv_transpose(x, net.layers[0].weights(), strides, padding)
    np.testing.assert_allclose(np.asarray(net(x)).reshape(theirs.shape), theirs, atol=1e-5)


def test_a_pooling_has_derivatives_inside_a_program() -> None:
    pool = lnk.finite.network(lnk.serial(lnk.AvgPool((2, 2)), lnk.Flatten()), (4, 4, 3), rngs=0)
    slope = jax.jit(jax.grad(lambda x: pool(x).sum()))(X.astype(np.float32))
    np.testing.assert_allclose(slope, np.full(X.shape, 0.25))


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flat", "pooled"])
def test_single_twins_come_near_by_the_root_of_the_width(name: str) -> None:
    """The spread of single networks: four times the width halves it, within three times the error of 96 draws."""
    narrow, wide = (
        lnk.finite.empirical_ntk_over_seeds(
            NETWORKS[name], X, width=width, seeds=96, progress=False
        ).standard_error.mean()
        for width in (32, 128)
    )
    assert 1.5 < narrow / wide < 2.7


def test_an_ensemble_on_sequences_learns_and_is_asked_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sequences have three axes, as points for each network of its own have: the network tells which is meant."""
    x, y = RNG.normal(size=(5, 4, 2)), np.array([1.0, -1.0, 1.0, -1.0, 0.0])
    arch = lnk.serial(lnk.Conv(8, 2, b_std=0.1), R, lnk.Flatten(), lnk.Dense(1))
    made = lnk.finite.train_ensemble(
        arch, x, y, seeds=2, steps=60, width=8, optimizer=optax.adam(3e-2)
    )
    assert (made.losses[:, -1] < 0.2 * made.losses[:, 0]).all()
    whole = made(x)
    assert whole.shape == (2, 5, 1) and made.mean(x).shape == (5,)
    monkeypatch.setattr(ensemble, "ROWS", 8)  # positions, of which a sequence has four
    np.testing.assert_allclose(made(x), whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(made.networks[1](x), whole[1], rtol=1e-4, atol=1e-5)


def test_wrong_shapes() -> None:
    with pytest.raises(InputError, match="the shape of one input, positions and channels"):
        lnk.finite.network(NETWORKS["flat"], 3, rngs=0)
    net = lnk.finite.network(NETWORKS["flat"], (4, 4, 3), rngs=jax.random.key(0))
    with pytest.raises(InputError, match=r"shape \(n, 4, 4, 3\)"):
        net(X[:, :3])
