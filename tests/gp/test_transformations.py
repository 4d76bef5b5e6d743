"""Inside jax.jit, jax.grad and jax.vmap: one class, one behaviour, the numbers of plain calls; or one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.gp.filters import Descent, Flow, Root, matrix_function

LN = lnk.mlp(hidden=1, norm="first", W_std=1.2, b_std=0.3)
ARCH = lnk.serial(lnk.Dense(1, W_std=1.2, b_std=0.3))  # a program for it is compiled soon
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((5, 2)), RNG.standard_normal((5, 2))
AT = RNG.standard_normal((3, 2))
BOUND = lnk.bound(LN, X, Y)
KEY = jax.random.key(3)

# every public method of a posterior, as a function of it and of points
METHODS: dict[str, Callable[[lnk.Posterior, Any], Any]] = {
    "mean": lambda post, x: post.mean(x),
    "variance": lambda post, x: post.variance(x),
    "std": lambda post, x: post.std(x),
    "covariance": lambda post, x: post.covariance(x),
    "sample": lambda post, x: post.sample(KEY, x, (2,)),
    "log_marginal_likelihood": lambda post, x: post.log_marginal_likelihood(),
    "max_learning_rate": lambda post, x: post.max_learning_rate,
    "ensemble_variance": lambda post, x: post.ensemble_variance(x),
    "ensemble_covariance": lambda post, x: post.ensemble_covariance(x),
    "at": lambda post, x: post.at(0.7).mean(x),
    "at infinity": lambda post, x: post.at(float("inf")).mean(x),
    "at, spread": lambda post, x: post.at(0.7).ensemble_variance(x),
    "at, curve": lambda post, x: post.at([0.0, 0.7]).mean(x),
    "at, curve of spreads": lambda post, x: post.at([0.0, 0.7]).ensemble_covariance(x),
    "after": lambda post, x: post.after(7, 0.05).mean(x),
}
TESTED = {name.partition(",")[0].partition(" ")[0] for name in METHODS}


# what decides by its numbers
PLAIN: dict[str, Callable[[lnk.Posterior], Any]] = {
    "error": lambda post: post.error,
    "eigenvalue_floor": lambda post: post.eigenvalue_floor(),
    "log_marginal_likelihood_bounds": lambda post: post.log_marginal_likelihood_bounds(),
}


def test_no_public_member_is_forgotten() -> None:
    members = {name for name in dir(lnk.Posterior) if not name.startswith("_")}
    assert members == TESTED | PLAIN.keys()


@pytest.mark.parametrize("name", PLAIN)
def test_what_decides_by_its_numbers_says_so(name: str) -> None:
    post = lnk.posterior(ARCH, X, Y[:, 0], noise=0.1)
    expected = f"^{name}: expected plain numbers"
    with jax.enable_x64(True), pytest.raises(lnk.errors.TransformationError, match=expected):
        jax.jit(PLAIN[name])(post)


def posterior(**changes: Any) -> lnk.Posterior:
    return lnk.posterior(ARCH, **{"X": X, "y": Y, "noise": 0.1} | changes)


def close(one: Any, other: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def in_one_program() -> dict[str, dict[str, Any]]:
    """All methods, each way, in one compiled program a way: compilation is what costs."""

    def each(post: lnk.Posterior, x: Any) -> dict[str, Any]:
        assert type(post) is lnk.Posterior
        return {name: method(post, x) for name, method in METHODS.items()}

    post = posterior()
    with jax.enable_x64(True):
        return {
            "points are traced": jax.jit(lambda x: each(post, x))(AT),
            "an argument": jax.jit(each)(post, AT),
        }


def test_nothing_but_the_data_is_traced_or_nothing_at_all() -> None:
    with jax.enable_x64(True):
        of_data = jax.jit(lambda y: posterior(y=y).mean(AT))(Y)
        of_nothing = jax.jit(lambda: posterior().mean(AT))()
    close(of_data, posterior().mean(AT))
    close(of_nothing, posterior().mean(AT))


@pytest.mark.parametrize("name", METHODS)
def test_the_numbers_are_those_of_plain_calls(name: str, in_one_program: Any) -> None:
    expected = METHODS[name](posterior(), AT)
    for got in in_one_program.values():
        assert got[name].dtype == jnp.float64
        # a sample takes the root of a covariance: its digits are half as many near 0
        close(got[name], expected, 1e-7 if name == "sample" else 1e-12)


def test_derivatives() -> None:
    """By a hyperparameter and by the points, along one direction with parts of both: a program for two takes twice
    as long to compile. Beside it stand central differences, whose own error is about 1e-9.
    """

    def values(b: Any, shift: Any) -> Any:
        post = lnk.posterior(lnk.serial(lnk.Dense(1, W_std=1.2, b_std=b)), X, Y, noise=0.1)
        return {name: method(post, AT + shift) for name, method in METHODS.items()}

    place, direction = (0.3, 0.0), (1.0, 0.7)
    with jax.enable_x64(True):
        slopes = jax.jit(lambda *at: jax.jvp(values, at, direction)[1])(*place)
        reverse = jax.jit(jax.grad(lambda *at: values(*at)["at"].sum(), (0, 1)))(*place)
    step = 1e-5
    ahead, back = (values(*np.add(place, np.multiply(h, direction))) for h in (step, -step))
    for name in METHODS:
        close(slopes[name], (np.asarray(ahead[name]) - back[name]) / (2 * step), 1e-7)
    close(np.dot(reverse, direction), np.asarray(slopes["at"]).sum(), 1e-10)


def test_time_and_learning_rate_may_be_traced() -> None:
    post = posterior()
    with jax.enable_x64(True):
        mean, slope = jax.jit(jax.jvp, static_argnums=0)(
            lambda t: post.at(t).mean(AT), (0.7,), (1.0,)
        )
        after = jax.jit(lambda rate: post.after(7, rate).mean(AT))(0.05)
        curve = jax.jit(lambda t: post.at(t).mean(AT))(np.array([0.0, 0.7]))
    close(mean, post.at(0.7).mean(AT))
    close(slope, (post.at(0.7 + 1e-5).mean(AT) - post.at(0.7 - 1e-5).mean(AT)) / 2e-5, 1e-9)
    close(after, post.after(7, 0.05).mean(AT))
    close(curve, post.at([0.0, 0.7]).mean(AT))


@pytest.mark.parametrize("name", ["mean", "covariance", "sample", "log_marginal_likelihood"])
def test_a_stack_of_posteriors_by_vmap(name: str) -> None:
    many = np.stack([Y, 2 * Y])
    with jax.enable_x64(True):
        stack = jax.vmap(lambda y: posterior(y=y))(many)
        got = jax.vmap(lambda post: METHODS[name](post, AT))(stack)
    assert repr(stack).startswith("Posterior(stack=(2,), kernel='ntk', points=5, dimension=2")
    for y, one in zip(many, got, strict=True):
        close(one, METHODS[name](posterior(y=y), AT), 1e-7 if name == "sample" else 1e-12)
    with pytest.raises(lnk.errors.InputError, match=r"a stack of them.*jax\.vmap"):
        stack.mean(AT)


def test_a_posterior_out_of_a_program_is_like_any_other() -> None:
    with jax.enable_x64(True):
        made = jax.jit(lambda y: posterior(y=y))(Y)
    for one in (made, jax.tree.map(lambda leaf: leaf, posterior())):
        assert repr(one) == repr(posterior())
        assert isinstance(one.mean(AT), np.ndarray)
        close(one.mean(AT), posterior().mean(AT))
        assert lnk.bound(one).lambda_min == pytest.approx(
            lnk.bound(posterior()).lambda_min, rel=1e-12
        )


def test_a_singular_matrix_is_named_when_its_program_is_over() -> None:
    twice = np.concatenate([X, X[:1]])
    y = np.concatenate([Y, Y[:1]])
    with jax.enable_x64(True):
        made = jax.jit(lambda y: lnk.posterior(ARCH, twice, y))(y)
    with pytest.raises(lnk.errors.DuplicateInputsError, match="0 = 5"):
        made.mean(AT)


def test_a_posterior_in_single_precision_passes_through_a_program() -> None:
    x = np.linspace(-3, 3, 1100)[:, None]
    post = lnk.posterior(ARCH, x, np.sin(x[:, 0]), noise=0.1)
    expected = post.mean(x[:4])
    with jax.enable_x64(True):
        got = jax.jit(lambda post: post.mean(x[:4]))(post)
    close(got, expected, 1e-10)


# ------------------------------------------------------------------ kernels and bounds


def test_kernels_are_arguments() -> None:
    theta, both = lnk.ntk(LN), lnk.kernels(LN)
    with jax.enable_x64(True):
        close(jax.jit(lambda k, x: k(x))(theta, X), theta(X))
        close(jax.jit(lambda k, x: k.diagonal(x).ntk)(both, X), theta.diagonal(X))
        slopes = jax.grad(lambda k: k(X).sum())(theta)
    assert isinstance(slopes, lnk.Kernel) and jax.tree.map(lambda leaf: leaf, theta) == theta
    # a zero is structure: no leaf
    assert len(jax.tree.leaves(lnk.ntk(lnk.mlp(hidden=1, b_std=0.0)))) == 2


def test_bounds_are_arguments() -> None:
    b = BOUND
    with jax.enable_x64(True):
        at, again = jax.jit(lambda b, x: (b.at(x), b))(b, AT)
        slope = jax.jit(jax.grad(lambda x: b.at(x).sum()))(AT)
        mapped = jax.vmap(lambda p: b.at(p[None])[0])(AT)
    close(at, b.at(AT))
    close(mapped, b.at(AT))
    assert str(again) == str(b) and float(again) == float(b)
    assert np.abs(slope).max() < 1e-12  # LayerNorm: Θ(x, x) is the same everywhere
    assert jax.tree.map(lambda leaf: leaf, b) == b


@pytest.mark.parametrize(
    "call",
    [
        lambda x: lnk.bound(ARCH, x, Y).value,
        lambda x: lnk.mean_bound(ARCH, x, Y).value,
        lambda x: lnk.bound(lnk.posterior(ARCH, x, Y)).value,
        lambda x: lnk.bound(ARCH, X, Y).value * x.sum(),
        lambda x: BOUND.sharp + x,
        lambda x: float(jax.tree.map(lambda leaf: leaf * x[0, 0], BOUND)),
        lambda x: lnk.sup_diagonal(lnk.mlp(norm="first", W_std=x[0, 0])).value,
        lambda x: lnk.merge_duplicates(x, Y)[0],
        lambda x: lnk.ntk(ARCH).error_estimate(x),
    ],
    ids=[
        "bound",
        "mean_bound",
        "of a posterior",
        "of plain numbers",
        "sharp",
        "float",
        "C",
        "merge",
        "estimate",
    ],
)
def test_what_needs_plain_numbers_says_so(call: Any) -> None:
    with jax.enable_x64(True), pytest.raises(lnk.errors.TransformationError, match="plain numbers"):
        jax.jit(call)(X)


SHORT: dict[str, Callable[[], Any]] = {  # in 32-bit mode
    **{name: lambda m=method: jax.jit(m)(posterior(), AT) for name, method in METHODS.items()},
    "likelihood of a constant": lambda: jax.jit(lambda: posterior().log_marginal_likelihood())(),
    "kernel": lambda: jax.jit(lambda k: k)(lnk.ntk(LN)),
    "both kernels": lambda: jax.device_put(lnk.kernels(LN)),
    "posterior": lambda: jax.jit(lambda p: p)(posterior()),
    "posterior, moved": lambda: jax.device_put(posterior()),
    "bound": lambda: jax.jit(lambda b: b)(BOUND),
}


@pytest.mark.parametrize("name", SHORT)
def test_nothing_is_cut_to_float32_on_its_way(name: str) -> None:
    with jax.enable_x64(False), pytest.raises(lnk.errors.PrecisionError, match="cut to float32"):
        SHORT[name]()


def test_hyperparameters_of_float32_keep_their_value() -> None:
    arch = lnk.serial(lnk.Dense(1, W_std=jax.numpy.float32(1.2)))
    with jax.enable_x64(True):
        theta = jax.jit(lambda k: k)(lnk.ntk(arch))
        made = jax.tree.map(lambda leaf: leaf, lnk.posterior(arch, X, Y, noise=0.1))
    close(theta(X), lnk.ntk(lnk.serial(lnk.Dense(1, W_std=float(np.float32(1.2)))))(X), 0)
    close(made.mean(AT), lnk.posterior(arch, X, Y, noise=0.1).mean(AT))


def test_single_points_of_a_vmap() -> None:
    with (
        jax.enable_x64(True),
        pytest.raises(lnk.errors.InputError, match=r"lambda x: f\(x\[None\]\)"),
    ):
        jax.vmap(lnk.ntk(ARCH))(X)


# ------------------------------------------------------------------ functions of matrices


@pytest.mark.parametrize("function", [Flow(), Descent(6), Descent(1), Root()], ids=str)
@pytest.mark.parametrize("values", [[1.0, 1.0, 0.3], [0.9, 0.5, 1e-7]], ids=["equal", "tiny"])
def test_derivatives_of_functions_of_matrices(function: Any, values: list[float]) -> None:
    """Where eigenvalues coincide, those of eigenvectors do not exist, and jax gives NaN."""
    q = np.linalg.qr(RNG.standard_normal((3, 3)))[0]
    matrix, e = (q * np.array(values)) @ q.T, RNG.standard_normal((3, 3))
    e = e + e.T if values[-1] > 1e-3 else q @ np.diag([1.0, 2.0, 0.0]) @ q.T + e @ e.T * 1e-9
    h = 1e-6 if values[-1] > 1e-3 else 1e-5

    def plain(a: np.ndarray, p: float) -> np.ndarray:
        lam, v = np.linalg.eigh(a)
        return np.asarray((v * function.weights(p, lam)) @ v.T)

    with jax.enable_x64(True):
        value, slope = jax.jvp(
            lambda p, a: matrix_function(function, p, a),
            (0.8, jnp.asarray(matrix)),
            (0.5, jnp.asarray(e)),
        )
    close(value, plain(matrix, 0.8))
    ahead, back = plain(matrix + h * e, 0.8 + h / 2), plain(matrix - h * e, 0.8 - h / 2)
    close(slope, (ahead - back) / (2 * h), 1e-7)
