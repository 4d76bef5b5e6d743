"""Arguments of a wrong type or size are refused in our words, not in those of other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import scipy.sparse

import lnkernel as lnk
from lnkernel.errors import ArchitectureError, InputError
from lnkernel.sklearn import NTKClassifier, NTKRegressor

ARCH = lnk.mlp(hidden=1, width=4, norm="first")
X, Y, KEY = np.array([[1.0], [2.0]]), np.array([0.0, 1.0]), jax.random.key(0)
POST = lnk.posterior(ARCH, X, Y)
HUGE = 10**400
MASKED = np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]])
MISSING: Any = np.ma.masked
SPARSE = scipy.sparse.csr_matrix(X)

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "negative shape": (lambda: POST.sample(KEY, X, (-1,)), r"shape: .*0 or more, got \(-1,\)"),
    "shape of a text": (lambda: POST.sample(KEY, X, "ab"), "shape: expected integers"),  # type: ignore[arg-type]
    "seed": (lambda: POST.sample(3, X), r"key: .*got 3. Write jax.random.key\(3\)"),  # type: ignore[arg-type]
    "no key": (lambda: POST.sample(None, X), "key: expected one key of jax.random, got None"),  # type: ignore[arg-type]
    "many keys": (lambda: POST.sample(jax.random.split(KEY, 3), X), r"got shape \(3,\)"),
    "huge time": (lambda: POST.at(HUGE), "t: .*range of float64"),
    "no time of a list": (lambda: POST.at([1, -1]), "t: .*infinity, got -1.0"),
    "times of a generator": (lambda: POST.at(t for t in (1, 2)), "t: .*got a generator. .*list"),  # type: ignore[call-overload]
    "huge number of steps": (lambda: POST.after(HUGE, 0.1), "steps: expected at most 1e308"),
    "huge noise": (lambda: lnk.posterior(ARCH, X, Y, noise=HUGE), "noise: .*range of float64"),
    "sparse points": (lambda: lnk.ntk(ARCH)(SPARSE), r"x: .*sparse.*csr_matrix.*x.toarray\(\)"),
    "sparse targets": (lambda: lnk.posterior(ARCH, X, SPARSE), "y: .*sparse"),
    "no points": (lambda: lnk.ntk(ARCH)(None), "x: expected an array of numbers, got None"),
    "no targets": (lambda: lnk.posterior(ARCH, X, None), "y: .*got None"),
    "masked points": (lambda: lnk.ntk(ARCH)(MASKED), "x: .*masked array with 1 of 2 masked"),
    "masked targets": (lambda: lnk.posterior(ARCH, X, MASKED[:, 0]), "y: .*1 of 2 masked"),
    "masked rows": (lambda: lnk.ntk(ARCH)(list(MASKED)), "x: .*masked array with 1 of 2 masked"),
    "masked among numbers": (lambda: lnk.ntk(ARCH)([[1.0], [MISSING]]), "x: .*1 of 2 masked"),
    "masked in images": (lambda: lnk.ntk(lnk.cnn())([[[[1.0], [MISSING]]]]), "x: .*1 of 2 masked"),
    "masked among targets": (
        lambda: lnk.posterior(ARCH, X, [[1.0], [MISSING]]),
        "y: .*1 of 2 masked. Drop such points, or fill the numbers in.$",
    ),
    "masked time": (lambda: POST.at(MISSING), "t: expected a time .*got masked"),
    "masked time, fine-tuning": (
        lambda: lnk.tangent(lnk.finite.network(ARCH, 1, rngs=0)).ridge(X, Y, 0.1).at(MISSING),
        "t: expected a time .*got masked",
    ),
    "masked noise": (lambda: lnk.posterior(ARCH, X, Y, noise=MISSING), "noise: .*got masked"),
    "masked among numbers, scikit-learn": (
        lambda: NTKRegressor().fit([[1.0], [MISSING]], Y),
        "X: .*1 of 2 masked",
    ),
    "no points, scikit-learn": (
        lambda: NTKRegressor().fit(None, Y),
        "X: .*got None. Give a value for X",
    ),
    "no points to predict": (
        lambda: NTKRegressor().fit(X, Y).predict(None),
        "X: .*got None. Give a value for X",
    ),
    "no points, classifier": (
        lambda: NTKClassifier().fit(None, [0, 1]),
        "X: .*got None. Give a value for X",
    ),
    "no points to classify": (
        lambda: NTKClassifier().fit(X, [0, 1]).predict_proba(None),
        "X: .*got None. Give a value for X",
    ),
    "masked points, scikit-learn": (lambda: NTKRegressor().fit(MASKED, Y), "X: .*1 of 2 masked"),
    "masked targets, scikit-learn": (
        lambda: NTKRegressor().fit(X, MASKED[:, 0]),
        "y: .*1 of 2 masked",
    ),
    "masked points, classifier": (
        lambda: NTKClassifier().fit(MASKED, [0, 1]),
        "X: .*1 of 2 masked",
    ),
    "masked points to predict": (
        lambda: NTKRegressor().fit(X, Y).predict(MASKED),
        "X: .*1 of 2 masked",
    ),
    "masked points to classify": (
        lambda: NTKClassifier().fit(X, [0, 1]).predict(MASKED),
        "X: .*1 of 2 masked",
    ),
    "sparse points of a picture": (lambda: lnk.plot.heatmap(lnk.ntk(ARCH), SPARSE), "x: .*sparse"),
    "sparse points of a bound": (lambda: lnk.plot.bound(ARCH, X, Y, SPARSE), "x: .*sparse"),
    "bound, certify": (lambda: lnk.bound(ARCH, X, Y, certify="no"), "certify: expected True"),  # type: ignore[arg-type]
    "C, certify": (lambda: lnk.sup_diagonal(ARCH, certify="yes"), "certify: expected True"),  # type: ignore[arg-type]
    "norms": (lambda: lnk.sup_diagonal(ARCH).profile(["a"]), "norms: expected real numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((0, 1)), r"at least one point, got shape \(0, 1\)"),
        ([["a"]], "real numbers, got dtype <U1"),
        (None, "got None"),
        (MASKED, "1 of 2 masked"),
        ([[1j]], "real numbers, got dtype complex128"),
        ([[1.0], [1.0, 2.0]], "Give every point the same number"),
    ],
)
def test_inputs_of_a_twin(x: Any, message: str) -> None:
    f = lnk.finite.network(ARCH, 1, rngs=0)
    with pytest.raises(InputError, match=message):
        f(x)


def test_huge_seed() -> None:
    with pytest.raises(InputError, match="rngs: expected a seed of at most 64 bits"):
        lnk.finite.network(ARCH, 1, rngs=2**70)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lnk.Dense(8, W_std=HUGE),
        lambda: lnk.Dense(8, b_std=-HUGE),
        lambda: lnk.LeakyRelu(HUGE),
        lambda: lnk.LayerNorm(eps=HUGE),
        lambda: lnk.Homogeneous(1, a=HUGE),
    ],
)
def test_hyperparameters_beyond_float64(make: Callable[[], Any]) -> None:
    with pytest.raises(ArchitectureError, match="must be in the range of float64"):
        make()


def test_a_width_beyond_64_bits() -> None:
    with pytest.raises(ArchitectureError, match="width must be in the range of 64-bit integers"):
        lnk.Dense(HUGE)


@pytest.mark.parametrize("degree", [1000.0, 151, HUGE])
def test_degrees_beyond_float64(degree: float) -> None:
    with pytest.raises(ArchitectureError, match="degree must be at most 150"):
        lnk.RectifiedPower(degree)


@pytest.mark.parametrize("degree", [150, 149.7])
def test_highest_degrees(degree: float) -> None:
    arch = lnk.serial(lnk.Dense(8), lnk.RectifiedPower(degree), lnk.Dense(1))
    moment = (degree - 1) * math.log(2) + math.lgamma(degree + 0.5) - math.log(math.pi) / 2
    assert math.log(float(lnk.nngp(arch)([[1.0]])[0, 0])) == pytest.approx(moment, rel=1e-12, abs=0)
    assert math.isinf(lnk.sup_diagonal(arch).value)


def test_one_number_is_a_shape() -> None:
    assert np.array_equal(POST.sample(KEY, X, 4), POST.sample(KEY, X, (4,)))


def test_keys_as_of_old() -> None:
    old = jax.random.PRNGKey(0)
    assert np.array_equal(POST.sample(old, X), POST.sample(KEY, X))
    assert np.array_equal(POST.sample(np.asarray(old), X), POST.sample(KEY, X))


def test_a_mask_that_hides_nothing() -> None:
    whole = np.ma.masked_array(X, mask=False)
    assert np.array_equal(lnk.ntk(ARCH)(whole), lnk.ntk(ARCH)(X))


def test_a_time_beyond_all_others() -> None:
    """Warnings are errors here."""
    assert np.allclose(POST.at(1e308).mean(X), POST.mean(X), atol=1e-12)
    assert np.allclose(POST.after(10**308, 0.1).mean(X), POST.mean(X), atol=1e-12)


def test_a_message_within_a_message_ends_once() -> None:
    assert str(lnk.errors.InputError("x", "an array", "an error: It failed.", "Look.")) == (
        "x: expected an array, got an error: It failed. Look."
    )
    assert "got [1, ... Look." in str(lnk.errors.InputError("x", "an array", "[1, ..", "Look"))
