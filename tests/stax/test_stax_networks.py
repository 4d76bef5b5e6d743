"""`init_fn` and `apply_fn`: pure functions of the parameters, whose kernels are those of `kernel_fn`.

The Monte Carlo comparison is neural-tangents' own idea (`monte_carlo_kernel_fn` in most of its
tests), written anew over the functions that a user holds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import stax

X = np.random.default_rng(0).normal(size=(4, 3))
KEY = jax.random.key(0)


def dense(width: int = 8, **options: Any) -> stax.Layer:
    return stax.Dense(width, 1.4, 0.3, **options)


NET = stax.serial(dense(), stax.LayerNorm(), stax.Relu(), dense(2))


def residual(width: int) -> stax.Layer:
    """LayerNorm behind a sum, of which one branch is the identity."""
    branch = stax.serial(stax.Relu(), dense(width))
    block = [stax.FanOut(2), stax.parallel(stax.Identity(), branch), stax.FanInSum()]
    return stax.serial(dense(width), *block, stax.LayerNorm(), stax.Relu(), dense(1))


@pytest.mark.parametrize("parameterization", ["ntk", "standard"])
def test_it_is_the_finite_network(parameterization: str) -> None:
    options = {"parameterization": parameterization}
    net = stax.serial(dense(**options), stax.LayerNorm(), stax.Relu(), dense(2, **options))
    shape, params = net.init_fn(KEY, input_shape=X.shape)
    twin = lnk.finite.network(net.arch, 3, rngs=KEY, **options)
    found = net.apply_fn(params, X, rng=KEY)
    assert shape == found.shape == (4, 2)
    np.testing.assert_array_equal(found, twin(X))


def test_shapes() -> None:
    for layer, width in [
        (NET, 2),
        (stax.serial(stax.Dense(5), stax.Relu()), 5),
        (stax.Identity(), 3),
    ]:
        assert layer.init_fn(KEY, (-1, 3))[0] == (-1, width)


def test_an_ensemble_by_vmap() -> None:
    def outputs(keys: Any) -> Any:
        params = jax.vmap(lambda key: NET.init_fn(key, (-1, 3))[1])(keys)
        return jax.vmap(NET.apply_fn, (0, None))(params, X)

    assert jax.eval_shape(outputs, jax.random.split(KEY, 5)).shape == (5, 4, 2)


def test_a_traced_hyperparameter() -> None:
    _, params = stax.serial(dense(), stax.Relu(), dense(1)).init_fn(KEY, (-1, 3))

    def output(W_std: Any) -> Any:
        net = stax.serial(dense(), stax.Relu(), stax.Dense(1, W_std, 0.3))
        return net.apply_fn(params, X[:1])[0, 0]

    value, slope = jax.value_and_grad(output)(1.4)
    bias = 0.3 * params["layers"][2]["bias"][0]
    np.testing.assert_allclose(slope, (value - bias) / 1.4, rtol=1e-5)


@pytest.mark.parametrize("on", [False, True])
def test_precision_is_that_of_the_setting(on: bool) -> None:
    with jax.enable_x64(on):
        _, params = dense().init_fn(KEY, (-1, 3))
        found = dense().apply_fn(params, X)
    assert found.dtype == (np.float64 if on else np.float32)


def test_finite_networks_have_the_kernel() -> None:
    """The mean NTK of random networks lies within four of its own standard errors.

    The NNGP kernel is part of it, as what training the last layer adds. The bias, of the order
    1/width, is below a standard error here.
    """
    networks = 192
    net = residual(256)

    def ntk(key: Any) -> Any:
        _, params = net.init_fn(key, X.shape)
        slopes = jax.jacobian(lambda p: net.apply_fn(p, X)[:, 0])(params)
        return sum(flat @ flat.T for flat in (s.reshape(4, -1) for s in jax.tree.leaves(slopes)))

    drawn = np.asarray(jax.jit(partial(jax.lax.map, ntk))(jax.random.split(KEY, networks)))
    error = drawn.std(0) / networks**0.5
    exact = net.kernel_fn(X, None, "ntk")
    assert (np.abs(drawn.mean(0) - exact) < 4 * error).all()
    assert (error < 0.01 * np.sqrt(np.outer(np.diag(exact), np.diag(exact)))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: NET.init_fn(KEY, (3,)), "input_shape: expected two axes"),
        (lambda: NET.init_fn(KEY, (4, 2, 3)), "input_shape: expected two axes"),
        (lambda: NET.apply_fn({}, X[0]), "inputs: expected two axes"),
        (lambda: NET.apply_fn({}, X), r"params: expected what init_fn .* got shapes \{\}"),
        (
            lambda: NET.apply_fn(NET.init_fn(KEY, (-1, 3))[1], X[:, :2]),
            r"'kernel': \(2, 8\).* got shapes .*'kernel': \(3, 8\)",
        ),
        (lambda: stax.Relu().init_fn(KEY, (-1, 3)), "acts on the raw input"),
    ],
    ids=["one axis", "three axes", "one point", "none", "another dimension", "no network"],
)
def test_refused(call: Any, message: str) -> None:
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        call()
