"""`stax.predict`: what `lnkernel.posterior` says, with neural-tangents' arguments.

The ideas are those of neural-tangents' tests/predict_test.py (both ends of time, times in an array,
the order of `get`, predictions at the training inputs, Gaussian-process inference by its formula),
written anew. Its comparisons with trained networks have their like in tests/gp/test_trained.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel import stax

RNG = np.random.default_rng(0)
X, Y, TEST = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2)), RNG.normal(size=(4, 3))
NET = stax.serial(stax.Dense(8, 1.5, 0.3), stax.LayerNorm(), stax.Relu(), stax.Dense(2, 1.5, 0.3))
ensemble = stax.predict.gradient_descent_mse_ensemble
PREDICT = ensemble(NET.kernel_fn, X, Y)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("get", ["nngp", "ntk"])
def test_it_is_inference_by_the_formula(get: str) -> None:
    gram, cross = NET.kernel_fn(X, None, get), NET.kernel_fn(TEST, X, get)
    close(PREDICT(x_test=TEST, get=get), cross @ np.linalg.solve(gram, Y))
    close(PREDICT(get=get), Y)
    relative = gram + 0.1 * np.trace(gram) / 6 * np.eye(6)
    found = ensemble(NET.kernel_fn, X, Y, diag_reg=0.1)(x_test=TEST, get=get)
    close(found, cross @ np.linalg.solve(relative, Y))
    absolute = ensemble(NET.kernel_fn, X, Y, diag_reg=0.1, diag_reg_absolute_scale=True)
    close(absolute(x_test=TEST, get=get), cross @ np.linalg.solve(gram + 0.1 * np.eye(6), Y))


@pytest.mark.parametrize("get", ["nngp", "ntk"])
def test_gradient_flow_on_the_mean_of_the_squares(get: str) -> None:
    """By many small steps of gradient descent in function space."""
    gram, cross = NET.kernel_fn(X, None, get), NET.kernel_fn(TEST, X, get)
    steps, time, rate = 4000, 3.0, 0.5
    at_data, at_test = np.zeros_like(Y), np.zeros((4, 2))
    for _ in range(steps):
        slope = rate * (at_data - Y) / Y.size * time / steps
        at_data, at_test = at_data - gram @ slope, at_test - cross @ slope
    flow = ensemble(NET.kernel_fn, X, Y, learning_rate=rate)
    np.testing.assert_allclose(flow(time, TEST, get), at_test, rtol=3e-3, atol=1e-4)
    np.testing.assert_allclose(flow(time, None, get), at_data, rtol=3e-3, atol=1e-4)


def test_both_ends_of_time_and_those_between() -> None:
    times = np.array([[0.0, 2.0, np.inf]])
    found = PREDICT(t=times, x_test=TEST, get="ntk")
    assert found.shape == (1, 3, 4, 2)
    close(found[0, 0], np.zeros((4, 2)))
    close(found[0, 1], PREDICT(t=2.0, x_test=TEST, get="ntk"))
    close(found[0, 2], PREDICT(x_test=TEST, get="ntk"))


@pytest.mark.parametrize("get", [None, ("nngp", "ntk"), ("ntk", "nngp"), ("NTK",)])
def test_fields_come_in_the_order_asked_for(get: Any) -> None:
    found = PREDICT(x_test=TEST, get=get)
    assert found._fields == tuple(name.lower() for name in get or ("nngp", "ntk"))
    for name in found._fields:
        close(getattr(found, name), PREDICT(x_test=TEST, get=name))


def test_covariance() -> None:
    found = PREDICT(x_test=TEST, compute_cov=True)
    for gaussian, kernel in zip(found, ("nngp", "ntk"), strict=True):
        post = lnk.posterior(NET.arch, X, Y, kernel=kernel)
        close(gaussian.mean, post.mean(TEST))
        close(np.diagonal(gaussian.covariance), post.ensemble_variance(TEST))
        close(gaussian.covariance, gaussian.covariance.T)
        assert np.linalg.eigvalsh(gaussian.covariance)[0] > -1e-12
    close(found.nngp.covariance, lnk.posterior(NET.arch, X, Y, kernel="nngp").covariance(TEST))


@pytest.mark.parametrize("get", ["nngp", "ntk"])
def test_covariance_in_time(get: str) -> None:
    """At the start that of random networks, at the end that of trained ones, none at the data."""
    times = np.array([0.0, 2.0, np.inf])
    found = PREDICT(times, TEST, get, compute_cov=True)
    assert found.mean.shape == (3, 4, 2) and found.covariance.shape == (3, 4, 4)
    close(found.covariance[0], NET.kernel_fn(TEST, None, "nngp"))
    close(found.covariance[2], PREDICT(None, TEST, get, compute_cov=True).covariance)
    close(PREDICT(None, None, get, compute_cov=True).covariance, np.zeros((6, 6)))


STANDARD = stax.Dense(2, 1.5, parameterization="standard")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ensemble(lambda x1, x2, get: None, X, Y), "kernel_fn: expected the kernel_fn of"),
        (lambda: PREDICT(x_test=TEST, get="cov1"), "get: expected one or several .* nngp, ntk"),
        (lambda: ensemble(NET.kernel_fn, X, Y, trace_axes=()), "trace_axes: expected"),
        (lambda: stax.predict.gp_inference, r"no gp_inference: .* Use lnkernel.posterior"),
        (
            lambda: ensemble(NET.kernel_fn, X, Y, diag_reg=0.1)(1.0, TEST, "nngp", True),
            "compute_cov: expected False .* at a time t with diag_reg",
        ),
        (lambda: ensemble(NET.kernel_fn, X, Y, diag_reg=0.1)(), "Give x_test=x_train"),
        (lambda: ensemble(STANDARD.kernel_fn, X, Y)(get="ntk"), "grows with the width"),
    ],
    ids=[
        "kernel_fn",
        "get",
        "trace_axes",
        "other name",
        "regularised in time",
        "regularised at the data",
        "standard",
    ],
)
def test_refused(call: Any, message: str) -> None:
    with pytest.raises(lnk.errors.LnkernelError, match=message):
        call()
