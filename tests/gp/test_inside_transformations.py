"""Inside a user's own transformation: posteriors of images, and checks of what is no tracer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk

RNG = np.random.default_rng(0)
IMAGES, NEW = RNG.normal(size=(2, 4, 4, 3)), RNG.normal(size=(3, 4, 4, 3))
X = np.linspace(-2, 2, 6)[:, None]
Y = np.sin(X[:, 0])
METHODS = "mean", "variance", "covariance", "ensemble_variance"


@pytest.fixture(scope="module")
def of_images() -> lnk.Posterior:
    return lnk.posterior(lnk.cnn(), IMAGES, [0.0, 1.0])


@pytest.mark.parametrize("method", METHODS)
def test_posteriors_of_images(of_images: lnk.Posterior, method: str) -> None:
    asked = getattr(of_images, method)
    with jax.enable_x64(True):
        assert np.asarray(jax.jit(asked)(NEW)) == pytest.approx(asked(NEW), abs=1e-14)


def test_posteriors_of_images_as_arguments(of_images: lnk.Posterior) -> None:
    usual = of_images.mean(NEW)
    with jax.enable_x64(True):
        again = jax.tree.map(lambda part: part, of_images)
        assert again.mean(NEW) == pytest.approx(usual, abs=1e-14)
        inside = jax.jit(lambda post, x: post.mean(x))(of_images, NEW)
        made = jax.jit(lambda x: lnk.posterior(lnk.cnn(), x, [0.0, 1.0]).mean(NEW))(IMAGES)
        one_by_one = jax.vmap(lambda x: of_images.mean(x[None])[0])(NEW)
    for found in (inside, made, one_by_one):
        assert np.asarray(found) == pytest.approx(usual, abs=1e-14)
    assert "points=2, dimension=(4, 4, 3)" in repr(of_images)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ma.masked_array(Y, mask=[1, 0, 0, 0, 0, 0]), "1 of 6 masked"),
        (Y + 1j, "complex128"),
        (Y * np.nan, "finite numbers"),
        (None, "None"),
        (["a"] * 6, "real numbers"),
        (Y[:3], r"shape \(3,\)"),
    ],
    ids=["masked", "complex", "nan", "none", "text", "too few"],
)
def test_targets_are_checked_beside_traced_inputs(y: Any, message: str) -> None:
    arch = lnk.mlp(hidden=1, norm="first", b_std=0.3)
    with jax.enable_x64(True), pytest.raises(lnk.errors.InputError, match=message):
        jax.jit(lambda x: lnk.posterior(arch, x, y).mean(X[:1]))(X)


LINE = lnk.mlp(hidden=1, norm="first", b_std=0.3)
OF_LINE = lnk.posterior(LINE, X, Y)
KEY = jax.random.key(0)
RAGGED = r"^{}: .*got a list whose rows differ in length.*same number of {}"
STATIC = "^{0}: expected a plain Python integer, known when.*tracing.*{0} in static_argnames"
TIME = "^t: expected a time from 0 to infinity, got a traced value .*{}"
REAL = "^{}: expected real numbers, got dtype complex128"

TRACED: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "ragged points": (lambda a: lnk.ntk(LINE)([[a, a], [a]]), 1.0, RAGGED.format("x", "coord")),
    "a text among numbers": (lambda a: lnk.ntk(LINE)([[a, "b"]]), 1.0, "hold what is no number"),
    "ragged points of a diagonal": (
        lambda a: lnk.ntk(LINE).diagonal([[a, a], [a]]),
        1.0,
        RAGGED.format("x", "coord"),
    ),
    "ragged images": (
        lambda a: lnk.ntk(lnk.cnn())([[[[a], [a]], [[a]]]]),
        1.0,
        RAGGED.format("x", "coord"),
    ),
    "ragged points of a posterior": (
        lambda a: lnk.posterior(LINE, [[a, a], [a]], Y).mean(X),
        1.0,
        RAGGED.format("X", "coord"),
    ),
    "ragged points to predict": (
        lambda a: OF_LINE.mean([[a, a], [a]]),
        1.0,
        RAGGED.format("x", "coord"),
    ),
    "ragged targets": (
        lambda a: lnk.posterior(LINE, X, [[a, a], [a]]).mean(X),
        1.0,
        RAGGED.format("y", "outputs"),
    ),
    "masked beside a tracer": (
        lambda a: lnk.ntk(LINE)([[a], [np.ma.masked]]),
        1.0,
        "masked array with 1 of 2 masked",
    ),
    "steps": (lambda s: OF_LINE.after(s, 0.1).mean(X), 3, STATIC.format("steps")),
    "shape": (lambda s: OF_LINE.sample(KEY, X, s), 3, STATIC.format("shape")),
    "part of a shape": (lambda s: OF_LINE.sample(KEY, X, (s, 2)), 3, STATIC.format("shape")),
    "complex time": (lambda t: OF_LINE.at(t).mean(X), 3j, TIME.format("complex128")),
    "time of True": (lambda t: OF_LINE.at(t).mean(X), True, TIME.format("bool")),
    "complex times": (lambda t: OF_LINE.at([1.0, t]).mean(X), 3j, REAL.format("t")),
    "complex learning rate": (
        lambda r: OF_LINE.after(3, r).mean(X),
        3j,
        "learning_rate: .*complex128",
    ),
    "complex noise": (
        lambda s: lnk.posterior(LINE, X, Y, noise=s).mean(X),
        3j,
        REAL.format("noise"),
    ),
    "complex targets": (lambda y: lnk.posterior(LINE, X, y).mean(X), Y + 1j, REAL.format("y")),
}


@pytest.mark.parametrize("name", TRACED)
def test_what_is_refused_of_tracers(name: str) -> None:
    call, argument, message = TRACED[name]
    with jax.enable_x64(True), pytest.raises(lnk.errors.InputError, match=message):
        jax.jit(call)(argument)


def test_a_traced_width() -> None:
    message = "width must be a plain Python integer, known when.* tracing. .*static_argnames"
    with pytest.raises(lnk.errors.ArchitectureError, match=message):
        jax.jit(lambda width: lnk.ntk(lnk.mlp(width=width))(X))(8)


def test_a_whole_time_that_is_traced() -> None:
    with jax.enable_x64(True):
        found = jax.jit(lambda t: OF_LINE.at(t).mean(X))(3)
    assert np.asarray(found) == pytest.approx(OF_LINE.at(3).mean(X), abs=1e-13)


@pytest.mark.parametrize("data", [np.zeros(3, np.uint32), jnp.zeros(1, jnp.uint32)], ids=str)
def test_numbers_that_are_no_key(data: Any) -> None:
    post = lnk.posterior(lnk.mlp(), X, Y)
    with pytest.raises(lnk.errors.InputError, match=r"one key of jax\.random"):
        post.sample(data, X)


def test_a_kernel_from_text() -> None:
    assert lnk.Kernel("mlp(norm='first')", ("ntk",)).arch == lnk.mlp(norm="first")


def test_a_variance_for_each_point_in_the_regressor() -> None:
    noise = 0.1 * np.arange(1, 7)
    model = lnk.sklearn.NTKRegressor(noise=noise).fit(X, Y)
    usual = lnk.posterior(model.arch_, X, Y, noise=noise)
    assert model.predict(X) == pytest.approx(usual.mean(X), abs=1e-13)


@pytest.mark.parametrize("norm", [None, "first", "last"])
def test_what_is_no_number_stays_none(norm: str | None) -> None:
    """Nobody can refuse it there; behind a norm it would look like a point."""
    arch = lnk.mlp(hidden=1, norm=norm)
    post, theta = lnk.posterior(arch, X, Y), lnk.ntk(arch)
    points = np.array([[np.nan], [np.inf], [-np.inf], [0.2]])
    asked = [post.mean, post.variance, post.ensemble_variance, post.at(1.0).mean, theta.diagonal]
    if norm:
        asked.append(lnk.bound(post).at)
    with jax.enable_x64(True):
        for ask in asked:
            found = np.asarray(jax.jit(ask)(points))
            assert np.isnan(found[:3]).all() and np.isfinite(found[3])
        matrix = np.asarray(jax.jit(theta)(points))
        assert np.isnan(matrix[:3]).all() and np.isnan(matrix[:, :3]).all()
        assert np.isfinite(matrix[3, 3])


def test_programs_of_closed_forms_behind_a_norm_print_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """XLA ran in circles with numbers that it took for constants, and said so. A stored program would say nothing."""
    arch, stored = lnk.mlp(hidden=2, norm="first", activation=lnk.Gelu()), jax.config.values
    assert stored["jax_enable_compilation_cache"]
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        with jax.enable_x64(True):
            jax.jit(lnk.ntk(arch))(np.eye(3, 4)).block_until_ready()
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert capfd.readouterr().err == ""


def test_a_failure_is_no_certainty() -> None:
    """Of a singular matrix, or of a noise that is none, the standard deviation is unknown and not 0."""
    twice = np.array([[1.0], [1.0], [2.0]])
    y = np.array([1.0, 0.0, 0.5])

    def spread(x: Any, noise: Any) -> Any:
        return lnk.posterior(LINE, x, y, noise=noise).std(X)

    with jax.enable_x64(True):
        for x, noise in ((twice, 0.0), (X[:3], np.nan), (X[:3], -5.0)):
            assert np.isnan(jax.jit(spread)(x, noise)).all()
        post = lnk.posterior(LINE, X, Y)
        at_data = jax.grad(lambda x: post.std(x).sum())(X)
        assert (np.asarray(jax.jit(post.std)(X)) < 1e-6).all() and np.isfinite(at_data).all()


def test_the_mean_of_an_iterated_posterior_by_the_way_that_the_error_names() -> None:
    post = lnk.posterior(LINE, X, Y, noise=0.1, tolerance=1e-6)
    with jax.enable_x64(True):
        with pytest.raises(lnk.errors.SpreadMatrixError, match=r"jax\.jit\(post\.mean\)\(x\)"):
            jax.jit(lambda post, x: post.mean(x))(post, X)
        found = jax.jit(post.mean)(X)
    assert np.asarray(found) == pytest.approx(post.mean(X), abs=1e-13)


def test_equal_noise_is_one_number() -> None:
    with jax.enable_x64(True):
        stack = jax.vmap(lambda y: lnk.posterior(LINE, X, y, noise=0.1))(np.stack([Y, 2 * Y]))
    assert "noise=0.1)" in repr(stack)
    of_each = lnk.posterior(LINE, X, Y, noise=np.full(6, 0.1))
    assert "noise=0.1)" in repr(of_each)
    assert "diag(noise), noise 0.1\n" in str(lnk.bound(of_each))
