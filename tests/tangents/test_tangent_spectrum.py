"""The spectrum by three methods, alignment of targets, anisotropy, and LoRA's expectation."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from small_models import X, jacobian, mlp, parameters

import lnkernel as lnk

PARAMS = parameters()
T = lnk.tangent(mlp, PARAMS)
J = jacobian(mlp, PARAMS, X).reshape(18, -1)
S = T.spectrum(X)
Y = np.random.default_rng(1).normal(size=(9, 2))


def test_values_are_squared_singular_values() -> None:
    np.testing.assert_allclose(S.values, np.linalg.svd(J)[1][:18] ** 2, rtol=1e-9, atol=1e-14)
    assert S.vectors.shape == (9, 2, 18) and (S.residuals < 1e-12).all()
    assert math.isclose(S.condition, S.values[0] / S.values[-1])
    assert math.isclose(S.effective_rank, S.values.sum() ** 2 / (S.values**2).sum())


def test_lanczos_is_the_dense_spectrum() -> None:
    few = T.spectrum(X, 4, method="lanczos")
    np.testing.assert_allclose(few.values, S.values[:4], rtol=1e-10)
    overlap = np.abs(few.vectors.reshape(18, 4).T @ S.vectors.reshape(18, 18)[:, :4])
    np.testing.assert_allclose(overlap, np.eye(4), atol=1e-6)
    assert (few.residuals < 1e-9).all()
    for name in ("kta", "alignment"):
        assert math.isclose(getattr(few, name)(Y), getattr(S, name)(Y), rel_tol=1e-10)
    assert math.isclose(few.effective_rank, S.effective_rank, rel_tol=1e-10)
    np.testing.assert_allclose(few.shares(Y), S.shares(Y)[:4], rtol=1e-5)
    with pytest.raises(lnk.errors.InputError, match="condition: expected all 18 eigenvalues"):
        _ = few.condition


def test_nystrom_with_its_error() -> None:
    """From all inputs it is exact; from some, an eigenvalue lies within each residual."""
    whole = T.spectrum(X, 3, method="nystrom", landmarks=9)
    np.testing.assert_allclose(whole.values, S.values[:3], rtol=1e-9)
    assert (whole.residuals < 1e-9).all()
    some = T.spectrum(X, 3, method="nystrom", landmarks=5)
    for value, residual in zip(some.values, some.residuals, strict=True):
        assert np.abs(S.values - value).min() <= residual * (1 + 1e-9)
        assert residual > 1e-6


def test_mean_over_outputs() -> None:
    kernel = np.einsum("iaja->ij", (J @ J.T).reshape(9, 2, 9, 2)) / 2
    dense = T.spectrum(X, outputs="mean")
    np.testing.assert_allclose(dense.values, np.linalg.eigvalsh(kernel)[::-1], atol=1e-12)
    few = T.spectrum(X, 2, method="lanczos", outputs="mean")
    np.testing.assert_allclose(few.values, dense.values[:2], rtol=1e-10)
    assert few.vectors.shape == (9, 2)


def test_alignment() -> None:
    """α(u_i) = λ_i; KTA in [0, 1], 1 for K ∝ y yᵀ, and 1/√n for K = 1."""
    for i in (0, 5, 17):
        assert math.isclose(S.alignment(S.vectors[..., i]), S.values[i], abs_tol=1e-12)
    rows = Y.ravel()
    expected = rows @ J @ J.T @ rows / (rows @ rows)
    assert math.isclose(S.alignment(Y), expected, rel_tol=1e-12)
    assert math.isclose(S.kta(Y), expected / np.linalg.norm(J @ J.T), rel_tol=1e-12)
    assert math.isclose(S.shares(Y).sum(), 1.0, rel_tol=1e-12)
    y = np.array([1.0, -2.0, 0.5])
    one = lnk.tangent(lambda w, x: x[:, 0] * w, np.array(1.0)).spectrum(y[:, None])
    assert math.isclose(one.kta(y), 1.0) and one.condition == math.inf
    unit = lnk.tangent(lambda w, x: x @ w, np.ones(3)).spectrum(np.eye(3))
    assert math.isclose(unit.kta(y), 1 / math.sqrt(3)) and math.isclose(unit.effective_rank, 3.0)


def test_a_kernel_of_zeros() -> None:
    """It has a spectrum, and nothing that is divided by its size."""
    constant = lnk.tangent(lambda w, x: 0.0 * (x @ w), np.ones(3))
    zeros = constant.spectrum(X)
    assert not zeros.values.any() and zeros.condition == math.inf
    for call in (
        lambda: zeros.effective_rank,
        lambda: zeros.kta(X[:, 0]),
        lambda: constant.spectrum(X, 2, method="lanczos"),
    ):
        with pytest.raises(lnk.errors.InputError, match="a tangent kernel of zeros"):
            call()
    with pytest.raises(lnk.errors.InputError, match="k: expected at most 0 of 1 rows"):
        constant.spectrum(X[:1], method="lanczos")


def test_anisotropy() -> None:
    """Against the singular values of ∂²f/∂x∂θ, written out, for one and for two outputs."""
    x0 = np.array([0.3, -0.2, 0.5])
    with jax.enable_x64(True):
        params = jax.tree.map(jnp.asarray, PARAMS)
        mixed = jax.jacfwd(lambda x: jax.jacrev(mlp)(params, x[None]))(jnp.asarray(x0))
        leaves = [np.asarray(leaf).reshape(-1, 3) for leaf in jax.tree.leaves(mixed)]
    _, singular, right = np.linalg.svd(np.concatenate(leaves))
    found = T.anisotropy(x0)
    np.testing.assert_allclose(found.values, singular**2, rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.sum(found.directions * right, 1)), 1, rtol=1e-8)
    first = T.anisotropy(x0, 1, method="lanczos")
    np.testing.assert_allclose(first.values, found.values[:1], rtol=1e-9)
    assert T.anisotropy(x0.reshape(3)).directions.shape == (3, 3)


def test_the_mean_kernel_of_lora() -> None:
    """E_A K_LoRA = rank · A_std² · K of the layer's weights, within five standard errors."""
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(3, 6, rngs=rngs), jnp.tanh, nnx.Linear(6, 1, rngs=rngs))
    rank, spread, draws = 2, 0.8, 200
    made = [
        lnk.tangent(
            lnk.finite.add_lora(model, rank, "layers/0", A_std=spread, rngs=seed), wrt=nnx.LoRAParam
        ).gram(X[:4])
        for seed in range(draws)
    ]
    mean, error = np.mean(made, 0), np.std(made, 0) / math.sqrt(draws)
    expected = rank * spread**2 * lnk.tangent(model, wrt="layers/0/kernel").gram(X[:4])
    assert (np.abs(mean - expected) < 5 * error).all()
    assert (error < 0.2 * np.diagonal(expected).max()).all()


def test_lora_leaves_the_function_as_it_was() -> None:
    twin = lnk.finite.network(lnk.mlp(hidden=2), 3, width=8, rngs=0)
    adapted = lnk.finite.add_lora(twin, rank=2, rngs=1)
    np.testing.assert_array_equal(adapted.layers[0](X), twin.layers[0](X))
    assert len(lnk.tangent(adapted, wrt=nnx.LoRAParam).paths) == 6
    with pytest.raises(lnk.errors.InputError, match="Its linear layers are layers/0, layers/2"):
        lnk.finite.add_lora(twin, 2, "layers/1", rngs=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k: expected an integer, at least 1"),
        ({"k": 18, "method": "lanczos"}, "k: expected at most 17 of 18 rows"),
        ({"method": "power"}, 'method: expected "auto" or "dense"'),
        ({"method": "nystrom"}, "landmarks: expected a number of inputs"),
        ({"k": 9, "method": "nystrom", "landmarks": 2}, "landmarks: expected from 5 to 9 inputs"),
    ],
)
def test_bad_input(arguments: Any, message: str) -> None:
    with pytest.raises(lnk.errors.InputError, match=message):
        T.spectrum(X, **arguments)
