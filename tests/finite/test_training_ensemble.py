"""Ensembles: each member as if trained alone, their mean and spread, one program for all."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lnkernel as lnk
from lnkernel.finite.training import program

ARCH = lnk.mlp(hidden=1, width=16, norm="first")
X = np.linspace(-2, 2, 11)[:, None]
Y = np.sin(X[:, 0])
FAR = np.array([[0.3], [5.0], [-40.0]])


@pytest.mark.parametrize(("parameterization", "batch_size"), [("ntk", None), ("standard", 4)])
def test_members_are_trained_as_if_alone(parameterization: str, batch_size: int | None) -> None:
    """In float64, where the order of the operations in one program for all hardly shows."""
    seeds, optimizer = [3, 0, 7], optax.adam(0.01)
    together = lnk.finite.train_ensemble(
        ARCH,
        X,
        Y,
        seeds,
        optimizer,
        40,
        parameterization=parameterization,
        batch_size=batch_size,
        dtype=jnp.float64,
    )
    assert together.seeds == seeds
    assert together.losses.shape == (3, 40)
    with jax.enable_x64(True):
        for i, seed in enumerate(seeds):
            alone = lnk.finite.network(
                ARCH, 1, rngs=seed, parameterization=parameterization, dtype=jnp.float64
            )
            result = lnk.finite.train(alone, X, Y, optimizer, 40, batch_size=batch_size, seed=seed)
            np.testing.assert_allclose(result.losses, together.losses[i], rtol=1e-9)
            np.testing.assert_allclose(result.loss, together.loss[i], rtol=1e-9)
            np.testing.assert_allclose(alone(FAR), together(FAR)[i], rtol=0, atol=1e-10)
        np.testing.assert_allclose(together.networks[2](FAR), together(FAR)[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_size", [None, 4])
def test_each_on_its_own_data(batch_size: int | None) -> None:
    """As if each were alone with its data, and predicting at its own points."""
    seeds, optimizer = [3, 0], optax.adam(0.01)
    inputs, targets = np.stack([X, 2 * X + 1]), np.stack([Y, Y**2])
    together = lnk.finite.train_ensemble(
        ARCH, inputs, targets, seeds, optimizer, 40, batch_size=batch_size, dtype=jnp.float64
    )
    with jax.enable_x64(True):
        points = np.stack([FAR, -FAR])
        for i, seed in enumerate(seeds):
            alone = lnk.finite.train_ensemble(
                ARCH,
                inputs[i],
                targets[i],
                [seed],
                optimizer,
                40,
                batch_size=batch_size,
                dtype=jnp.float64,
            )
            np.testing.assert_allclose(alone.losses[0], together.losses[i], rtol=1e-9)
            np.testing.assert_allclose(alone.loss[0], together.loss[i], rtol=1e-9)
            np.testing.assert_allclose(alone(FAR)[0], together(FAR)[i], rtol=0, atol=1e-10)
            np.testing.assert_allclose(alone(points[i])[0], together(points)[i], rtol=0, atol=1e-10)


def test_as_many_data_sets_as_networks() -> None:
    with pytest.raises(lnk.errors.InputError, match="data for each of the 3 networks"):
        lnk.finite.train_ensemble(ARCH, np.stack([X, X]), np.stack([Y, Y]), 3, steps=1)
    with pytest.raises(lnk.errors.InputError, match="data for each of the 2 networks"):
        lnk.finite.train_ensemble(ARCH, np.stack([X, X]), Y, 2, steps=1)
    with pytest.raises(
        lnk.errors.InputError, match=r"as many points for each network, got \[11, 9"
    ):
        lnk.finite.train_ensemble(ARCH, [X, X[:9]], [Y, Y[:9]], 2, steps=1)
    ensemble = lnk.finite.train_ensemble(ARCH, X, Y, 2, steps=1)
    with pytest.raises(lnk.errors.InputError, match="points for each of the 2 networks"):
        ensemble(np.stack([FAR] * 3))


def test_divergence_tells_the_network_with_its_own_data() -> None:
    inputs, targets = np.stack([X, 100 * X]), np.stack([Y, Y])
    with pytest.raises(lnk.errors.DivergedError, match="network 1"):
        lnk.finite.train_ensemble(
            lnk.mlp(hidden=1, width=16), inputs, targets, 2, optax.sgd(0.01), 50
        )


def test_outputs_mean_and_spread() -> None:
    one = lnk.finite.train_ensemble(ARCH, X, Y, 4, steps=5)
    out = one(FAR)
    assert out.shape == (4, 3, 1)
    assert out.dtype == np.float32
    assert one.mean(FAR).shape == one.std(FAR).shape == (3,)
    assert one.mean(FAR).dtype == np.float64
    exact = np.asarray(out, np.float64)[:, :, 0]
    np.testing.assert_allclose(one.mean(FAR), exact.sum(0) / 4, rtol=1e-14)
    spread = np.sqrt(((exact - exact.sum(0) / 4) ** 2).sum(0) / 3)
    np.testing.assert_allclose(one.std(FAR), spread, rtol=1e-13)
    assert repr(one).startswith("Ensemble(seeds=4, steps=5, loss=")
    two_outputs = lnk.serial(lnk.Dense(16), lnk.Relu(), lnk.Dense(2))
    two = lnk.finite.train_ensemble(two_outputs, X, np.stack([Y, -Y], 1), 2, steps=5)
    assert two(FAR).shape == (2, 3, 2)
    assert two.mean(FAR).shape == (3, 2)


def test_many_points_are_predicted_in_blocks() -> None:
    ensemble = lnk.finite.train_ensemble(ARCH, X, Y, 2, steps=1)
    many = np.linspace(-9, 9, 5000)[:, None]
    out = np.asarray(ensemble(many))
    assert out.shape == (2, 5000, 1)
    np.testing.assert_allclose(out[:, ::500], ensemble(many[::500]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("on", [False, True])
def test_double_precision_stays(on: bool) -> None:
    with jax.enable_x64(on):
        ensemble = lnk.finite.train_ensemble(ARCH, X, Y, 2, steps=3, dtype=jnp.float64)
        assert jnp.result_type(float) == (jnp.float64 if on else jnp.float32)
        assert isinstance(ensemble(FAR), np.ndarray)  # JAX would cut its own to float32 if off
        assert ensemble(FAR).dtype == ensemble.losses.dtype == ensemble.loss.dtype == np.float64


def test_equal_calls_share_one_program() -> None:
    def trained(scale: float, seeds: list[int], steps: int) -> None:
        arch = lnk.mlp(hidden=1, width=16, norm="first")
        lnk.finite.train_ensemble(arch, X, scale * Y, seeds, optax.adam(3e-3), steps)

    programs = (program.advance, program.initial_state, program.losses_on_all)
    before = [p._cache_size() for p in programs]  # type: ignore[attr-defined]  # of jax.jit
    trained(1.0, [0, 1], 7)
    after = [p._cache_size() for p in programs]  # type: ignore[attr-defined]
    assert after == [size + 1 for size in before]
    trained(0.5, [5, 6], 1200)
    assert [p._cache_size() for p in programs] == after  # type: ignore[attr-defined]


@pytest.mark.slow
def test_mean_and_spread_are_those_of_theory() -> None:
    """200 wide networks after 40 steps of gradient descent: within 4.5 standard errors."""
    few, targets, rate, networks = X[::5], Y[::5], 0.1, 200
    arch = lnk.mlp(hidden=1, norm="first", b_std=0.5)
    ensemble = lnk.finite.train_ensemble(
        arch, few, targets, networks, optax.sgd(rate), 40, width=256
    )
    stopped = lnk.posterior(arch, few, targets).after(40, rate)
    variance = stopped.ensemble_variance(FAR)
    error = np.abs(ensemble.mean(FAR) - stopped.mean(FAR))
    assert (error < 4.5 * np.sqrt(variance / networks)).all()
    ratio = ensemble.std(FAR) ** 2 / variance
    allowed = 4.5 * np.sqrt(2 / (networks - 1))
    assert (np.abs(ratio - 1) < allowed).all()
    start = lnk.posterior(arch, few, targets).at(0)  # the test tells trained from untrained
    assert (np.abs(ensemble.std(FAR) ** 2 / start.ensemble_variance(FAR) - 1) > allowed).any()
