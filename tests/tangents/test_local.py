"""The local structure of the tangent kernel against cosines, grids, gradients and models by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.tangents import local

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(6, 2))


def siren(params: Any, x: Any) -> Any:
    """Two layers of sine with linear head, 2 -> 1, as a plain function."""
    h = jnp.sin(5 * (x @ params["w"] + params["b"]))
    return (jnp.sin(h @ params["v"]) @ params["head"])[:, 0]


def parameters() -> dict[str, np.ndarray]:
    """In NumPy's float64, whatever JAX's setting."""
    shapes = {"w": (2, 12), "b": (12,), "v": (12, 12), "head": (12, 1)}
    draw = np.random.default_rng(1).uniform
    return {name: draw(-1, 1, size=shape) for name, shape in shapes.items()}


T = lnk.tangent(siren, parameters())
HERE = T.local(X)


def gradients(x: np.ndarray) -> np.ndarray:
    """(n, P), written out forwards: not the way of the library."""
    with jax.enable_x64(True):
        made = jax.jacfwd(siren)(jax.tree.map(jnp.asarray, parameters()), jnp.asarray(x))
        leaves = [np.asarray(leaf).reshape(len(x), -1) for leaf in jax.tree.leaves(made)]
    return np.concatenate(leaves, 1)


def slopes(x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """∂g/∂x by central differences: (n, P, d)."""
    steps = [h * e for e in np.eye(x.shape[1])]
    return np.stack([(gradients(x + s) - gradients(x - s)) / (2 * h) for s in steps], -1)


def test_definitions_by_differences() -> None:
    g, G = gradients(X), slopes(X)
    np.testing.assert_allclose(HERE.a, np.linalg.norm(g, axis=1), rtol=1e-12)
    np.testing.assert_allclose(HERE.D, np.einsum("npi,np->ni", G, g), rtol=1e-6, atol=1e-6)
    H = 0.5 * np.einsum("npi,npj->nij", G, G)
    np.testing.assert_allclose(HERE.H, H, rtol=1e-6, atol=1e-6 * H.max())


def test_cauchy_near_the_diagonal() -> None:
    """1 − C is uᵀHu/a² − (Dᵀu)²/2a⁴ to second order; the Cauchy form has the first term. A wrong
    factor of H misses by a multiple of what is allowed here."""
    u = 1e-4 * np.array([0.6, 0.8])
    g, moved = gradients(X), gradients(X + u)
    norms = np.linalg.norm(g, axis=1), np.linalg.norm(moved, axis=1)
    # 1 - cos without cancellation: half the squared distance of the unit vectors
    true = 0.5 * np.sum((g / norms[0][:, None] - moved / norms[1][:, None]) ** 2, 1)
    missing = (HERE.D @ u) ** 2 / (2 * HERE.a**4)
    first = np.einsum("i,nij,j->n", u, HERE.H, u) / HERE.a**2
    np.testing.assert_allclose(1 - HERE.cauchy(u), first, rtol=2e-3)
    np.testing.assert_allclose(first - missing, true, rtol=2e-3)
    wrong = lnk.tangents.local_structure.LocalStructure(HERE.a, HERE.D, 2 * HERE.H)
    assert (np.abs((1 - wrong.cauchy(u) - missing) / true - 1) > 0.9).all()


def affine_gradient(params: Any, x: Any) -> Any:
    """f = w·(Ax + b): the gradient is affine in x, G = A."""
    A = jnp.array([[1.0, 0.5], [-0.3, 2.0], [0.7, 0.1], [0.2, -0.4]])
    return (x @ A.T + jnp.array([0.4, -1.0, 0.8, 2.0])) @ params


def test_linear_model_by_hand() -> None:
    """With a gradient that is affine in x the form is 2 g·g'/(|g|² + |g'|²), for all u."""
    t = lnk.tangent(affine_gradient, np.zeros(4))
    here, u = t.local(X), RNG.normal(size=(7, 2))
    for i, x in enumerate(X):
        K = t.gram(np.concatenate([x[None], x + u]))
        exact = 2 * K[0, 1:] / (K[0, 0] + np.diagonal(K)[1:])
        np.testing.assert_allclose(here.cauchy(u)[i], exact, rtol=1e-12)
    A = np.array([[1.0, 0.5], [-0.3, 2.0], [0.7, 0.1], [0.2, -0.4]])
    g = X @ A.T + np.array([0.4, -1.0, 0.8, 2.0])
    np.testing.assert_allclose(here.D, g @ A, rtol=1e-12)
    np.testing.assert_allclose(here.H, np.broadcast_to(0.5 * A.T @ A, (6, 2, 2)), rtol=1e-12)
    # the least cosine: beta is twice the squared length of g in the span of A
    q = np.linalg.qr(A)[0]
    beta = 2 * np.sum((g @ q) ** 2, 1)
    np.testing.assert_allclose(here.min_cosine, -beta / (4 * here.a**2 - beta), rtol=1e-12)


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_area_of_the_ellipse(floor: float) -> None:
    """π ξ² is the area in which the Cauchy form is above one half plus half of the floor."""
    reach = 3 * HERE.length(floor)
    for i in range(3):
        line = np.linspace(-reach[i], reach[i], 801)
        u = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
        inside = (HERE.cauchy(u)[i] >= 0.5 + floor / 2).mean() * (2 * reach[i]) ** 2
        edge = (np.abs(u).max(1) > 0.999 * reach[i]) & (HERE.cauchy(u)[i] >= 0.5 + floor / 2)
        assert not edge.any()  # the grid holds the whole ellipse
        np.testing.assert_allclose(inside, np.pi * HERE.length(floor)[i] ** 2, rtol=5e-3)


def test_least_cosine_is_a_minimum() -> None:
    """The gradient of the Cauchy form is 0 where it is said to be least, and no step goes below."""
    beta = np.einsum("ni,nij,nj->n", HERE.D, np.linalg.inv(HERE.H), HERE.D)
    where = -(2 * HERE.a**2 / beta)[:, None] * np.linalg.solve(HERE.H, HERE.D[..., None])[..., 0]
    with jax.enable_x64(True):
        form = local.LocalForm(*map(jnp.asarray, (HERE.a, HERE.D, HERE.H)))
        value, slope = jax.vmap(jax.value_and_grad(lambda u, f: local.cauchy(f, u)))(
            jnp.asarray(where), form
        )
    np.testing.assert_allclose(value, HERE.min_cosine, rtol=1e-10)
    assert np.abs(np.asarray(slope) * np.abs(where)).max() < 1e-12
    far = RNG.normal(size=(4000, 2)) * np.abs(where).max()
    assert (HERE.cauchy(far).min(1) >= HERE.min_cosine - 1e-12).all()
    assert ((HERE.min_cosine >= -1) & (HERE.min_cosine <= 0)).all()


def test_mag_ma_is_the_mean_slope_of_log_length() -> None:
    h = 1e-5

    def log_length(x: np.ndarray) -> np.ndarray:
        return np.log(np.linalg.norm(gradients(x), axis=1))

    slope = [(log_length(X + h * e) - log_length(X - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(HERE.mag_ma, np.linalg.norm(np.mean(slope, 1)), rtol=1e-7)


def test_principal_eigenvector_of_gaussian_cosines() -> None:
    """K 1 of K = a a' (c + (1 − c) exp(−|Δ|²/2ξ²)) with slowly changing a, far from the borders."""
    line = np.linspace(-1, 1, 41)
    x = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    a, xi, floor = 1 + 0.02 * x[:, 0] * x[:, 1], 0.12, 0.1
    square = np.sum((x[:, None] - x) ** 2, -1)
    rows = a[:, None] * a * (floor + (1 - floor) * np.exp(-square / (2 * xi**2)))
    # a form whose length at this floor is xi: D = 0 and H = h·1 with (1-c)/c a² = h ξ²
    c = 0.5 + floor / 2
    h = (1 - c) / c * a**2 / xi**2
    with jax.enable_x64(True):
        form = local.LocalForm(
            *map(jnp.asarray, (a, np.zeros_like(x), h[:, None, None] * np.eye(2)))
        )
        made = np.asarray(local.principal(form, floor, (41 * 0.05) ** 2))  # of 41² cells
    inner = np.abs(x).max(1) < 0.5
    np.testing.assert_allclose(rows.mean(1)[inner] / made[inner], 1.0, atol=0.006)


def test_batches_and_transformations() -> None:
    """Batches change nothing; the pure functions work inside jit, grad and vmap over parameters."""
    few = lnk.tangent(siren, parameters(), batch_size=4).local(X)
    np.testing.assert_allclose(few.H, HERE.H, rtol=1e-12)
    with jax.enable_x64(True):
        one = jax.tree.map(jnp.asarray, parameters())
        two = jax.tree.map(lambda leaf: jnp.stack([leaf, 1.1 * leaf]), one)

        def measure(params: Any) -> Any:
            f = local.local_forms(lambda p, x: siren(p, x[None])[0], params, jnp.asarray(X))
            return local.mag_ma(f), local.length(f, 0.1), local.min_cosine(f)

        made = jax.jit(jax.vmap(measure))(two)
        slope = jax.jit(jax.grad(lambda p: measure(p)[0]))(one)
    np.testing.assert_allclose(made[0][0], HERE.mag_ma, rtol=1e-10)
    np.testing.assert_allclose(made[1][0], HERE.length(0.1), rtol=1e-10)
    np.testing.assert_allclose(made[2][0], HERE.min_cosine, rtol=1e-10)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


@pytest.mark.parametrize("model", ["sequence", "with norm"])
def test_factors_of_the_jacobian(model: str) -> None:
    """The forms from a Jacobian in factors are those of the gradients themselves, of every output."""
    layers = [lnk.Dense(7, b_std=0.3), lnk.Tanh(), lnk.Dense(2, b_std=0.2)]
    if model == "with norm":
        layers = [lnk.Dense(7, b_std=0.3), lnk.LayerNorm(scale=True, bias=True), *layers[1:]]
    with jax.enable_x64(True):
        net = lnk.finite.network(lnk.serial(*layers), in_dim=2, rngs=0, dtype=jnp.float64)
        t = lnk.tangent(net)
    assert t.structured
    made = t.local(X, output=1)
    with jax.enable_x64(True):
        dense = local.local_forms(lambda p, x: t.function(p, x)[1], t.params, jnp.asarray(X))
    for ours, theirs in zip((made.a, made.D, made.H), dense, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_direction_without_change() -> None:
    """Where the gradient does not see a coordinate the ellipse is a strip."""
    t = lnk.tangent(lambda w, x: w[0] + w[1] * x[:, 0], np.ones(2))
    here = t.local([[1.0, 5.0]])
    assert np.isinf(here.length()[0])
    np.testing.assert_allclose(here.min_cosine, [-1 / 3])
    np.testing.assert_allclose(here.cauchy([0.0, 7.0]), [1.0])


def test_refusals() -> None:
    two = lnk.tangent(lambda w, x: x @ w, np.ones((2, 2)))
    with pytest.raises(lnk.errors.InputError, match="output: expected one of the outputs, 0 to 1"):
        two.local(X)
    assert two.local(X + 2, output=1).a.shape == (6,)
    images = lnk.tangent(lambda w, x: x.reshape(len(x), -1) @ w, np.ones(4))
    with pytest.raises(
        lnk.errors.InputError, match=r"vectors, shape \(n, d\), got shape \(3, 2, 2"
    ):
        images.local(np.ones((3, 2, 2)))
    with pytest.raises(lnk.errors.InputError, match="u: expected one step of shape"):
        HERE.cauchy(np.ones(3))
    with pytest.raises(lnk.errors.InputError, match="c_inf: expected a cosine"):
        HERE.length(1.0)
    with pytest.raises(lnk.errors.InputError, match="gradient of zero in row 1"):
        lnk.tangent(lambda w, x: x @ w, np.ones(2)).local([[1.0, 0.0], [0.0, 0.0]])
