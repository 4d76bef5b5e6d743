"""Targets near the end of float64's range: right numbers without a warning, or one clear error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError, NotConvergedError

ARCH = lnk.mlp(hidden=1, norm="first")
X, Y = np.array([[-1.0], [0.3], [1.0]]), np.array([1.0, 0.0, 0.5])
AT = np.array([[0.2], [2.0]])
HUGE = 2.0**1022
ASKED: dict[str, Callable[[lnk.Posterior], Any]] = {
    "mean": lambda post: post.mean(AT),
    "sample": lambda post: post.sample(jax.random.key(0), AT),
    "converged": lambda post: post.at(math.inf).mean(AT),
    "in time": lambda post: post.at(1.0).mean(AT),
    "in a program": lambda post: np.asarray(jax.jit(post.mean)(AT)),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_means_are_those_of_smaller_targets(name: str, shape: tuple[int, ...]) -> None:
    usual = lnk.posterior(ARCH, X, Y.reshape(shape))
    large = lnk.posterior(ARCH, X, HUGE * Y.reshape(shape))
    with jax.enable_x64(True):
        got = ASKED[name](large) / HUGE
        expected = (usual.mean(AT) if name == "sample" else ASKED[name](usual)) * 1.0
    assert got == pytest.approx(expected, rel=1e-13)


def test_by_iteration() -> None:
    exact = lnk.posterior(ARCH, X, Y, noise=0.1)
    post = lnk.posterior(ARCH, X, HUGE * Y, noise=0.1, tolerance=1e-8 * HUGE)
    assert post.error <= 1e-8 * HUGE
    assert post.mean(AT) / HUGE == pytest.approx(exact.mean(AT), abs=1e-8)
    assert lnk.bound(post).rkhs / HUGE == pytest.approx(
        lnk.bound(ARCH, X, Y, noise=0.1).rkhs, rel=1e-6
    )
    with pytest.raises(NotConvergedError, match=r"at most [\d.]+e\+2\d\d, got [\d.]+e\+"):
        lnk.posterior(ARCH, X, HUGE * Y, noise=0.1, tolerance=1e-20 * HUGE)


def test_a_likelihood_of_nothing() -> None:
    post = lnk.posterior(ARCH, X, HUGE * Y, noise=0.1)
    assert post.log_marginal_likelihood() == -math.inf
    near = lnk.posterior(ARCH, X, 1e200 * Y, noise=0.1, tolerance=1e190)
    assert near.log_marginal_likelihood_bounds() == (-math.inf, -math.inf)


TANH = lnk.mlp(activation=lnk.Tanh())
REFUSED: dict[str, Callable[[], Any]] = {
    "coefficients": lambda: lnk.mean_bound(TANH, X, 4e307 * Y),
    "mean": lambda: lnk.posterior(lnk.mlp(), X, 1.7e308 * Y).mean(1e3 * AT),
    "curve": lambda: lnk.posterior(ARCH, X, 4e307 * Y).at([1.0, math.inf]).mean(AT),
    "fit of noise": lambda: lnk.fit(ARCH, X, 1e200 * Y, over="noise"),
    "fit of small": lambda: lnk.fit(ARCH, X, 1e-200 * Y, over="noise"),
    "fit": lambda: lnk.fit(lnk.mlp(hidden=1, b_std=0.1), X, 1e200 * Y, over="W_std", noise=0.1),
    "witness": lambda: lnk.diverging_witness(lnk.mlp(), X, 1e308 * Y),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"^y: expected .* Divide the targets by their largest"):
        REFUSED[name]()


@pytest.mark.parametrize("certify", [False, True])
def test_the_bound_says_why_it_is_infinite(certify: bool) -> None:
    b = lnk.bound(ARCH, X, 4e307 * Y, certify=certify)
    text = str(b)
    assert b.value == math.inf and "C = sup Θ(x, x) is infinite" not in text
    assert "beyond the range of float64, because the targets are as large as 4e+307" in text
    assert "`rkhs`, 8.1165" in text
