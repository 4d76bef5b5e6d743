"""What training refuses or warns of, and what it says."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import lnkernel as lnk
from lnkernel.errors import DataScaleWarning, DivergedError, InputError

ARCH = lnk.mlp(hidden=1, width=8, norm="first")
X, Y = np.linspace(-2, 2, 6)[:, None], np.ones(6)

REFUSED = {
    "zero seeds": ({"seeds": 0}, "seeds: expected a number of at least 1"),
    "negative seeds": ({"seeds": -3}, "seeds"),
    "equal seeds": ({"seeds": [1, 1]}, "seeds"),
    "zero steps": ({"steps": 0}, "steps: expected an integer, at least 1, got 0"),
    "negative steps": ({"steps": -5}, "steps"),
    "half steps": ({"steps": 2.5}, "steps"),
    "zero batch": ({"batch_size": 0}, "batch_size: expected an integer, at least 1"),
    "large batch": ({"batch_size": 7}, "batch_size: expected at most the number of points, 6"),
    "interval": ({"checkpoint_every": 0}, "checkpoint_every"),
    "optimizer": ({"optimizer": 1e-3}, "optimizer: expected an optimizer of optax, got 0.001"),
    "dtype": ({"dtype": "float16"}, "dtype: expected float32 or float64"),
    "no dtype": ({"dtype": "single precision"}, "dtype: expected float32 or float64"),
    "width": ({"width": 0}, "width"),
    "parameterization": ({"parameterization": "mup"}, "parameterization"),
    "NaN in X": ({"X": np.where(X > 1, np.nan, X)}, "X: expected finite numbers, got nan"),
    "infinity in y": ({"y": np.where(Y > 0, np.inf, Y)}, "y: expected finite numbers, got inf"),
    "lengths": ({"y": Y[:4]}, "y: expected one target per point of X"),
    "flat X": ({"X": X[:, 0]}, "X: expected a 2-D array"),
    "outputs": ({"y": np.ones((6, 2))}, "y: expected as many outputs as the network has, 1, got 2"),
    "beyond float32": (
        {"y": 1e39 * Y},
        "y: expected numbers in the range of the network's float32",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    given, message = REFUSED[case]
    arguments: dict[str, Any] = {"X": X, "y": Y, "seeds": 2, "steps": 3, **given}
    with pytest.raises(InputError) as caught:
        lnk.finite.train_ensemble(ARCH, **arguments)
    assert str(caught.value).startswith(message)


def test_train_wants_a_module_with_parameters() -> None:
    with pytest.raises(InputError, match=r"network: expected a flax\.nnx\.Module"):
        lnk.finite.train(lambda x: x, X, Y, optax.sgd(0.1), 3)
    with pytest.raises(InputError, match="network: expected at least one variable to train"):
        lnk.finite.train(nnx.Dropout(0.1, rngs=nnx.Rngs(0)), X, Y, optax.sgd(0.1), 3)
    net = lnk.finite.network(ARCH, 1, rngs=0)
    with pytest.raises(InputError, match="seeds"):
        lnk.finite.train(net, X, Y, optax.sgd(0.1), 3, seed=-1)


def test_spread_of_one_network() -> None:
    ensemble = lnk.finite.train_ensemble(ARCH, X, Y, 1, steps=2)
    with pytest.raises(InputError, match="at least 2 networks for a spread"):
        ensemble.std(X)
    with pytest.raises(InputError, match="x: expected the dimension of the training inputs, 1"):
        ensemble(np.ones((2, 3)))


SCALES = {
    "large targets": (X, 1e6 * np.sin(X[:, 0]), r"y: its numbers reach 9\.\d+e\+05"),
    "large inputs": (1e6 * X, Y, r"X: its numbers reach 2e\+06"),
    "far from zero": (
        1e5 + X,
        Y,
        "X: column 0 has numbers up to 1e\\+05 that differ by about 1.37",
    ),
}


@pytest.mark.parametrize("case", SCALES)
def test_data_on_the_wrong_scale(case: str) -> None:
    x, y, message = SCALES[case]
    with pytest.warns(DataScaleWarning, match=message) as caught:
        lnk.finite.train_ensemble(ARCH, x, y, 1, steps=2)
    assert caught[0].filename == __file__  # the warning points at the call
    with pytest.warns(DataScaleWarning, match=message) as caught:
        lnk.finite.train_ensemble(ARCH, np.stack([x]), np.stack([y]), 1, steps=2)
    assert caught[0].filename == __file__
    with pytest.warns(DataScaleWarning, match=message) as caught:
        lnk.finite.train(lnk.finite.network(ARCH, 1, rngs=0), x, y, optax.adam(1e-3), 2)
    assert caught[0].filename == __file__


def test_divergence_tells_the_stable_limit() -> None:
    """Of plain gradient descent: 2/λ_max, within what a width of 256 allows; and it is true."""
    arch = lnk.mlp(hidden=1, width=256, norm="first")
    limit = lnk.posterior(arch, X, Y).max_learning_rate
    with pytest.raises(DivergedError) as caught:
        lnk.finite.train_ensemble(arch, X, Y, 2, optax.sgd(20 * limit), 500)
    error = caught.value
    assert error.limit == pytest.approx(limit, rel=0.3)
    assert error.rate == pytest.approx(20 * limit, rel=1e-5)
    assert f"below 2/λ_max = {error.limit:.3g}, and here the learning rate is" in str(error)
    assert error.step < 100  # it stopped early
    fine = lnk.finite.train_ensemble(arch, X, Y, 2, optax.sgd(0.9 * error.limit), 500)
    assert (fine.loss < 0.05 * fine.losses[:, 0]).all()


def test_limit_is_that_of_the_empirical_kernel() -> None:
    net = lnk.finite.network(ARCH, 1, rngs=0)
    before = np.asarray(net(X))
    kernel = np.asarray(lnk.finite.empirical_ntk(net, X))
    with pytest.raises(DivergedError) as caught:
        lnk.finite.train(net, X, Y, optax.sgd(50.0), 500)
    largest = np.linalg.eigvalsh(kernel.reshape(6, 6).astype(float)).max()
    assert caught.value.limit == pytest.approx(2 / largest, rel=1e-4)
    np.testing.assert_array_equal(net(X), before)  # a failed training leaves the network alone


def test_divergence_of_another_optimizer() -> None:
    with pytest.raises(DivergedError, match="this optimizer is another") as caught:
        lnk.finite.train_ensemble(ARCH, X, Y, 2, optax.sgd(50.0, momentum=0.9), 500)
    assert caught.value.rate is None


def test_stuck_far_off_is_divergence_too() -> None:
    """A huge step of Adam ends far above the start without ever blowing up to infinity."""
    with pytest.raises(DivergedError, match="Lower its learning rate"):
        lnk.finite.train_ensemble(ARCH, X, Y, 1, optax.adam(10.0), 3)


def test_weights_that_become_nan_are_noticed_at_the_last_step() -> None:
    class Root(nnx.Module):
        """√|w| has an infinite slope at 0."""

        def __init__(self) -> None:
            self.w = nnx.Param(jnp.zeros(()))

        def __call__(self, x: Any) -> Any:
            return x * jnp.sqrt(self.w[...])

    with pytest.raises(DivergedError, match="the loss of network 0 was nan"):
        lnk.finite.train(Root(), X, Y, optax.sgd(0.1), 1)
