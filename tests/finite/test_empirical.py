"""The empirical tangent kernel against the product of Jacobians, written out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.tangents import gram as empirical

RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3))


class Shared(nnx.Module):
    """A module of nobody's: a weight used twice, one of its own, a constant, a running count."""

    def __init__(self, outputs: int, dtype: Any, rngs: nnx.Rngs):
        self.inner = nnx.Linear(3, 3, param_dtype=dtype, rngs=rngs)
        self.outer = nnx.Linear(3, outputs, param_dtype=dtype, rngs=rngs)
        self.slope = nnx.Param(jnp.asarray(0.3, dtype))
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self, x: jax.Array) -> jax.Array:
        self.calls[...] += 1
        h = jnp.tanh(self.inner(jnp.tanh(self.inner(x))))
        return self.outer(h + self.slope[...] * x)


class Pooled(nnx.Module):
    """Images in, one number out, without an axis for it."""

    def __init__(self, rngs: nnx.Rngs):
        self.conv = nnx.Conv(1, 4, (3, 3), rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(self.conv(x)).mean((1, 2, 3))


def jacobian(network: nnx.Module, x: Any) -> np.ndarray:
    """(n, k, parameters), forwards, of the whole batch at once, for products in float64."""
    graph, params, rest = nnx.split(network, nnx.Param, ...)

    def f(params: Any) -> jax.Array:
        return nnx.merge(graph, params, rest, copy=True)(x).reshape(len(x), -1)

    leaves = jax.tree.leaves(jax.jit(jax.jacfwd(f))(params))
    flat = [np.asarray(leaf, np.float64).reshape(*leaf.shape[:2], -1) for leaf in leaves]
    return np.concatenate(flat, 2)


def relative_error(got: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Of the full matrix, relative to √(Θ̂(x,x) Θ̂(x',x'))."""
    error = np.abs(got - np.einsum("aip,bjp->abij", a, b)).max((2, 3))
    ends = [np.sqrt(np.einsum("aip,aip->a", side, side)) for side in (a, b)]
    return float((error / np.multiply.outer(*ends)).max())


TOLERANCE = {jnp.float32: 1e-5, jnp.float64: 1e-12}


TWIN = lnk.serial(  # a sum, norms with parameters, with and without bias, two outputs
    lnk.Dense(8, W_std=1.3, b_std=0.2),
    lnk.residual(lnk.LeakyRelu(0.2), lnk.Dense(8), lnk.RMSNorm(eps=0.1, scale=True)),
    lnk.LayerNorm(eps=0.1, scale=True, bias=True),
    lnk.Dense(2, b_std=0.3),
)
MAKERS = {
    "twin": lambda dtype: lnk.finite.network(TWIN, 3, rngs=1, dtype=dtype),
    "shared": lambda dtype: Shared(2, dtype, nnx.Rngs(0)),
}


@pytest.mark.parametrize(
    ("name", "dtype", "methods"),
    [
        ("twin", jnp.float32, ["structured"]),
        ("shared", jnp.float32, ["jacobian", "vector"]),
        ("twin", jnp.float64, ["structured", "jacobian", "vector"]),
    ],
)
def test_is_the_product_of_jacobians(name: str, dtype: Any, methods: list[str]) -> None:
    """And the mean over outputs and the diagonal beside the full matrix."""
    with jax.enable_x64(dtype == jnp.float64):
        network = MAKERS[name](dtype)
        a, b = (jacobian(network, jnp.asarray(x, dtype)) for x in (X, X2))
    tolerance = TOLERANCE[dtype]
    for method in methods:
        full = lnk.finite.empirical_ntk(network, X, X2, method, outputs="full")
        assert full.shape == (7, 4, 2, 2) and full.dtype == dtype
        assert relative_error(full, a, b) < tolerance
    mean = lnk.finite.empirical_ntk(network, X, X2)
    assert mean.shape == (7, 4) and mean.dtype == dtype
    assert np.abs(mean - np.einsum("aip,bip->ab", a, b) / 2).max() < tolerance * np.abs(mean).max()
    diagonal = lnk.finite.empirical_ntk_diagonal(network, X, outputs="full")
    own = np.einsum("aip,ajp->aij", a, a)
    assert diagonal.dtype == dtype
    assert np.abs(diagonal - own).max() < tolerance * own.max()


def test_structured_sequences_of_flax() -> None:
    """A sequence of Flax's own, and why one layer used twice is none."""
    rngs = nnx.Rngs(0)
    first, twice = nnx.Linear(3, 5, rngs=rngs), nnx.Linear(5, 5, use_bias=False, rngs=rngs)
    norm, last = nnx.LayerNorm(5, rngs=rngs), nnx.Linear(5, 1, rngs=rngs)
    plain = nnx.Sequential(first, jnp.tanh, nnx.Sequential(twice, norm), jnp.tanh, last)
    tied = nnx.Sequential(first, twice, jnp.tanh, twice, last)
    a, b = jacobian(plain, jnp.asarray(X)), jacobian(plain, jnp.asarray(X2))
    found = lnk.finite.empirical_ntk(plain, X, X2, "structured", outputs="full")
    assert relative_error(found, a, b) < 1e-5
    a, b = jacobian(tied, jnp.asarray(X)), jacobian(tied, jnp.asarray(X2))
    assert relative_error(lnk.finite.empirical_ntk(tied, X, X2, outputs="full"), a, b) < 1e-5
    for network in (tied, Shared(1, jnp.float32, nnx.Rngs(0))):
        with pytest.raises(lnk.errors.InputError, match='method: expected "jacobian" or "vector"'):
            lnk.finite.empirical_ntk(network, X, method="structured")


@pytest.mark.parametrize(("method", "outputs"), [("jacobian", "mean"), ("vector", "full")])
def test_tiles_change_nothing(method: str, outputs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of 3 and 2 points; symmetric, and as two sets that happen to be equal."""
    with jax.enable_x64(True):
        network = Shared(2, jnp.float64, nnx.Rngs(0))
    whole = lnk.finite.empirical_ntk(network, X, X2, method, outputs=outputs)
    gram = lnk.finite.empirical_ntk(network, X, X.copy(), method, outputs=outputs)
    per_input = 2 * 8 * sum(np.size(p) for p in jax.tree.leaves(nnx.state(network, nnx.Param)))
    monkeypatch.setattr(empirical, "TILE_BYTES", 3 * per_input)
    for x2, expected in ((X2, whole), (None, gram), (X, gram)):
        tiled = lnk.finite.empirical_ntk(network, X, x2, method, outputs=outputs)
        np.testing.assert_allclose(tiled, expected, rtol=1e-13, atol=1e-14)
    diagonal = lnk.finite.empirical_ntk_diagonal(network, X, outputs=outputs)
    np.testing.assert_allclose(diagonal, gram[range(7), range(7)], rtol=1e-13, atol=1e-14)
    monkeypatch.setattr(empirical, "TILE_BYTES", 1)  # less than one input needs
    one_by_one = lnk.finite.empirical_ntk(network, X, None, method, outputs=outputs)
    np.testing.assert_allclose(one_by_one, gram, rtol=1e-13, atol=1e-14)


def test_only_half_of_a_symmetric_matrix_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = []
    product = empirical._product
    monkeypatch.setattr(empirical, "_product", lambda *args: blocks.append(1) or product(*args))
    monkeypatch.setattr(empirical, "TILE_BYTES", 1)
    network = lnk.finite.network(lnk.mlp(hidden=1), 3, width=4, rngs=0)
    lnk.finite.empirical_ntk(network, X)
    assert len(blocks) == 7 * 8 / 2
    lnk.finite.empirical_ntk(network, X, X2)
    assert len(blocks) == 7 * 8 / 2 + 7 * 4


def test_images_and_outputs_without_an_axis() -> None:
    network, images = Pooled(nnx.Rngs(0)), RNG.normal(size=(3, 5, 5, 1)).astype(np.float32)
    expected = np.einsum("aip,bip->ab", *2 * [jacobian(network, images)])
    got = lnk.finite.empirical_ntk(network, images)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_the_network_is_left_as_it_was() -> None:
    network = Shared(1, jnp.float32, nnx.Rngs(0))
    lnk.finite.empirical_ntk(network, X)
    assert int(network.calls[...]) == 0


@pytest.mark.parametrize("x64", [False, True])
def test_precision_is_that_of_the_network(x64: bool) -> None:
    """Whatever JAX's setting at the time of the call."""
    narrow = lnk.finite.network(lnk.mlp(hidden=1), 3, width=8, rngs=0)
    with jax.enable_x64(True):
        wide = lnk.finite.network(lnk.mlp(hidden=1), 3, width=8, rngs=0, dtype=jnp.float64)
    with jax.enable_x64(x64):
        assert lnk.finite.empirical_ntk(narrow, X).dtype == np.float32
        assert lnk.finite.empirical_ntk(wide, X).dtype == np.float64


def test_half_precision_is_summed_in_float32() -> None:
    network = nnx.Linear(3, 1, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    got = lnk.finite.empirical_ntk(network, X)
    rounded = np.asarray(jnp.asarray(X, jnp.bfloat16), np.float64)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, rounded @ rounded.T + 1, rtol=1e-6)


class Empty(nnx.Module):
    def __call__(self, x: jax.Array) -> jax.Array:
        return x


@pytest.mark.parametrize(
    ("network", "x", "message"),
    [
        (lnk.mlp(), X, "network: expected a flax.nnx.Module, got serial"),
        (None, X, "network: expected a flax.nnx.Module, got None of type NoneType"),
        (Empty(), X, "network: expected at least one trained parameter"),
        ("twin", X[:, :2], r"x: expected inputs that the network accepts, got shape \(7, 2\)"),
        ("linear", X[:, :2], r"x: expected inputs that the network accepts, got shape \(7, 2\)"),
        ("twin", X[0], "x: expected a 2-D array"),
        ("twin", X * np.nan, "x: expected finite numbers, got nan at point 0, coordinate 0"),
        ("twin", X * 1e300, "x: expected numbers in the range of the network's float32"),
        ("twin", X[:0], "x: expected at least one point"),
        ("twin", [["a"]], "x: expected real numbers"),
    ],
)
def test_bad_input(network: Any, x: Any, message: str) -> None:
    made = {
        "twin": lambda: lnk.finite.network(lnk.mlp(hidden=1), 3, width=4, rngs=0),
        "linear": lambda: nnx.Linear(3, 1, rngs=nnx.Rngs(0)),
    }
    network = made[network]() if isinstance(network, str) else network
    for function in (lnk.finite.empirical_ntk, lnk.finite.empirical_ntk_diagonal):
        with pytest.raises(lnk.errors.InputError, match=message):
            function(network, x)


def test_bad_options() -> None:
    network = lnk.finite.network(lnk.mlp(hidden=1), 3, width=4, rngs=0)
    with pytest.raises(lnk.errors.InputError, match='method: expected "auto" or "structured"'):
        lnk.finite.empirical_ntk(network, X, method="fast")
    with pytest.raises(lnk.errors.InputError, match='outputs: expected "mean" or "full"'):
        lnk.finite.empirical_ntk(network, X, outputs="trace")
    with pytest.raises(lnk.errors.InputError, match="x2: expected"):
        lnk.finite.empirical_ntk(network, X, X[:, :1])
    with pytest.raises(lnk.errors.InputError, match=r"outside of jax\.jit"):
        jax.jit(lambda x: lnk.finite.empirical_ntk(network, x))(X)


PROBE = """
import json, resource, sys
import numpy as np, lnkernel as lnk
x = np.random.default_rng(0).normal(size=(int(sys.argv[1]), 9))
network = lnk.finite.network(lnk.mlp(hidden=2, norm="first"), 9, width=1024, rngs=0)
theta = lnk.finite.empirical_ntk(network, x, method=sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([peak, bool(np.isfinite(theta).all()), list(theta.shape)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "jacobian", "vector"])
def test_memory(method: str) -> None:
    """1,000 x 1,000 at width 1,024 within 4 GB."""
    command = [sys.executable, "-c", PROBE, "1000", method]
    peak, finite, shape = json.loads(subprocess.check_output(command))
    assert finite and shape == [1000, 1000]
    assert peak < 4
