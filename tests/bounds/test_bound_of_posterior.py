"""`bound(post)`: the bound of the data that a posterior has, without a second Gram matrix."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError, NotEnoughMemoryError, UnresolvedEigenvalueError
from lnkernel.gp import mixed_precision, spectrum
from lnkernel.gp.mixed_precision import SinglePrecision
from lnkernel.gram import eager, memory, tiled

FIRST = lnk.mlp(hidden=2, norm="first")
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(40, 3)), RNG.normal(size=40)
INPUTS = np.concatenate([X + 0.1, 1e3 * X])


def numbers(b: lnk.Bound) -> dict[str, Any]:
    skipped = ("sup", "certificate")
    return {k: v for k, v in dataclasses.asdict(b).items() if k not in skipped}


@pytest.fixture(params=["float64", "mixed precision"])
def _precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "mixed precision":
        monkeypatch.setattr(mixed_precision, "FEWEST", 10)


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("s", ["sharp", "paper", "norms", 1e9])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("y", [Y, np.stack([Y, -2 * Y[::-1]], axis=1)], ids=["one", "several"])
def test_it_is_the_bound_of_the_data(y: np.ndarray, noise: float, s: str | float) -> None:
    """Bit for bit: the matrix and its factor are the same."""
    post = lnk.posterior(FIRST, X, y, noise=noise)
    found, expected = lnk.bound(post, s=s), lnk.bound(FIRST, X, y, s=s, noise=noise)
    assert numbers(found) == numbers(expected)
    assert found.sup == expected.sup and str(found) == str(expected)
    np.testing.assert_array_equal(found.at(INPUTS), expected.at(INPUTS))


def test_beyond_the_eigensolver(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Lanczos on the factor, as for many points."""
    direct = lnk.bound(FIRST, X, Y)
    monkeypatch.setattr(spectrum, "DIRECT", 10)
    found, expected = lnk.bound(lnk.posterior(FIRST, X, Y)), lnk.bound(FIRST, X, Y)
    assert numbers(found) == numbers(expected)
    assert found.lambda_min == pytest.approx(direct.lambda_min, rel=1e-7)


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("direct", [10, 5000])
def test_the_posterior_stays_as_it_was(direct: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectrum, "DIRECT", direct)
    post, other = lnk.posterior(FIRST, X, Y), lnk.posterior(FIRST, X, Y)
    other.variance(INPUTS)  # it makes the factor in float64, as the bound does
    lnk.bound(post)
    for name in ("mean", "variance", "covariance", "ensemble_variance", "ensemble_covariance"):
        np.testing.assert_array_equal(getattr(post, name)(INPUTS), getattr(other, name)(INPUTS))
    assert post.log_marginal_likelihood() == other.log_marginal_likelihood()
    np.testing.assert_array_equal(post.at(3.0).mean(INPUTS), other.at(3.0).mean(INPUTS))
    assert lnk.bound(post) == lnk.bound(post)


def test_a_factor_in_single_precision_goes_on_working(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_precision, "FEWEST", 10)
    post = lnk.posterior(FIRST, X, Y)
    assert isinstance(post._fit.solver, SinglePrecision)
    before = post.mean(INPUTS)
    lnk.bound(post)
    np.testing.assert_array_equal(post.mean(INPUTS), before)


def test_the_gram_matrix_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(program: Any, x: Any) -> Any:
        made.append(len(x))
        return symmetric(program, x)

    def refused(program: Any, x: Any, x2: Any) -> Any:
        raise AssertionError("no other matrix is needed")

    symmetric = eager.symmetric
    monkeypatch.setattr(eager, "symmetric", counted)
    for way in (eager, tiled):
        monkeypatch.setattr(way, "rectangular", refused)
    post = lnk.posterior(FIRST, X, Y)
    assert made == [40]
    lnk.bound(post)
    assert made == [40]
    lnk.bound(FIRST, X, Y)
    assert made == [40, 40]


def test_certified() -> None:
    b = lnk.bound(lnk.posterior(FIRST, X[:6], Y[:6]), certify=True)
    assert b.certified and isinstance(b.certificate, lnk.Certificate)
    assert numbers(b) == numbers(lnk.bound(FIRST, X[:6], Y[:6], certify=True))
    noisy = lnk.bound(lnk.posterior(FIRST, X[:6], Y[:6], noise=0.1), certify=True)
    assert noisy.certified and noisy.noise == 0.1


def test_in_64_bit_mode() -> None:
    with jax.enable_x64(True):
        b = lnk.bound(lnk.posterior(FIRST, jax.numpy.asarray(X), jax.numpy.asarray(Y)))
    assert numbers(b) == numbers(lnk.bound(FIRST, X, Y))


def test_an_eigenvalue_below_the_resolution() -> None:
    """Norms 1 and 1e10 without LayerNorm: there is a posterior, but no bound."""
    plain, scale = lnk.mlp(hidden=2), np.array([1, 1, 1, 1, 1, 1e10])[:, None]
    post = lnk.posterior(plain, X[:6] * scale, Y[:6])
    with pytest.raises(UnresolvedEigenvalueError, match="rounding noise"):
        lnk.bound(post)


def test_no_room_for_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    post = lnk.posterior(FIRST, X, Y)
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(NotEnoughMemoryError, match="A copy of the Gram matrix of 40 points"):
        lnk.bound(post)


POST = lnk.posterior(FIRST, X, Y, noise=0.1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((POST, X, Y), {}, r"^X: expected no data beside a posterior, .* Write bound\(post\)"),
        ((POST, "paper"), {}, r'^X: expected no data .*, got str\. .*bound\(post, s="paper"\)'),
        ((POST,), {"y": Y}, r"^y: expected no data beside a posterior"),
        ((POST,), {"noise": 0.2}, r"^noise: expected nothing, .* its own, 0\.1, got 0\.2"),
        ((POST,), {"noise": "some"}, r"^noise: expected nothing"),
        ((POST,), {"s": "shrap"}, r"^s: expected"),
        ((FIRST,), {}, r"^X: expected the data that the network is trained on, got None\. Write"),
        ((FIRST, X), {}, r"^y: expected the data that the network is trained on"),
        (
            (lnk.posterior(FIRST, X, Y, kernel="nngp"),),
            {},
            r"^arch: expected a posterior with kernel=\"ntk\", got one with kernel='nngp'",
        ),
    ],
)
def test_wrong_arguments(arguments: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lnk.bound(*arguments, **options)


def test_its_own_noise_may_be_said_again() -> None:
    assert lnk.bound(POST, noise=0.1) == lnk.bound(POST)


def test_a_posterior_of_tracers() -> None:
    def value(noise: Any) -> Any:
        return lnk.bound(lnk.posterior(FIRST, X, Y, noise=noise)).value

    with (
        jax.enable_x64(True),
        pytest.raises(lnk.errors.TransformationError, match=r"outside of jax\.jit, jax\.grad and"),
    ):
        jax.grad(value)(0.1)
