"""All layers behind a normalisation as one function of the angle."""

import jax
import mpmath
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.calculus.covariance import Covariance, Length
from lnkernel.evaluate.float64 import angle_function
from lnkernel.evaluate.float64.angle_function import (
    AngleFunction,
    is_gentle,
    with_angle_function,
)
from lnkernel.evaluate.float64.expansion import expand
from lnkernel.evaluate.float64.gaps import NOTHING_DELICATE
from lnkernel.gram import compiled, eager, tiled
from lnkernel.gram.by_angle import by_angle
from lnkernel.gram.program import network_of

pytestmark = pytest.mark.usefixtures("programs_for_all_but_few")

X = np.random.default_rng(0).normal(size=(130, 7)) * np.geomspace(0.01, 100, 130)[:, None]


def program_of(theta: lnk.Kernel):
    return theta._program(X, X, theta._has_series)


NETWORKS = {
    "relu": lnk.mlp(hidden=2, norm="first"),
    "no bias": lnk.mlp(hidden=2, norm="first", b_std=0.0),
    "norm in every layer": lnk.mlp(hidden=3, norm="all", activation=lnk.LeakyRelu(-0.3)),
    "norm last": lnk.mlp(hidden=2, norm="last"),
    "deep": lnk.mlp(hidden=40, norm="first"),
    "gelu": lnk.mlp(hidden=2, norm="first", activation=lnk.Gelu()),
    "erf": lnk.mlp(hidden=4, norm="first", activation=lnk.Erf()),
    "tanh, relu": lnk.serial(
        *(lnk.Dense(8, b_std=0.3), lnk.LayerNorm(), lnk.Tanh(), lnk.Dense(8), lnk.Relu()),
        lnk.Dense(1),
    ),
    "step": lnk.serial(lnk.Dense(8), lnk.LayerNorm(), lnk.Step(), lnk.Dense(1)),
    "norm of the input": lnk.serial(lnk.LayerNorm(), lnk.Dense(8), lnk.Relu(), lnk.Dense(1)),
    "trainable scale and bias": lnk.serial(
        *(lnk.Dense(8, b_std=0.3), lnk.LayerNorm(scale=True, bias=True), lnk.Relu()),
        *(lnk.Dense(8), lnk.Relu(), lnk.Dense(1)),
    ),
    "residual": lnk.serial(
        *(lnk.Dense(8), lnk.RMSNorm()),
        lnk.residual(lnk.Dense(8), lnk.Relu(), lnk.Dense(8)),
        *(lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1)),
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_kernels_as_by_the_rules(name: str) -> None:
    """The matrices by the program of the angle, and layer by layer in NumPy."""
    make = lnk.nngp if name == "step" else lnk.kernels
    kernel = make(NETWORKS[name])
    program = program_of(kernel)
    assert by_angle(program) is not program
    with eager.without_numpy():
        found = kernel(X)
    matrices = found if isinstance(found, tuple) else (found,)
    for by_program, by_rules in zip(matrices, eager.symmetric(program, X)[0], strict=True):
        root = np.sqrt(np.diagonal(by_rules))
        assert np.max(np.abs(by_program - by_rules) / root / root[:, None]) < 3e-15


def test_a_relu_network_without_bias_by_its_formula() -> None:
    """Two layers of ReLU behind a LayerNorm, by the arc-cosine kernel in 30 digits (Cho and Saul, 2009)."""
    arch = lnk.mlp(hidden=2, norm="first", W_std=2**0.5, b_std=0.0)
    made = with_angle_function(arch)
    assert made is not None
    function = made.layers[-1]
    rho = 0.37
    with mpmath.workdps(30):

        def kappa(r):
            return (mpmath.sqrt(1 - r * r) + r * (mpmath.pi - mpmath.acos(r))) / mpmath.pi

        def slope(r):
            return (mpmath.pi - mpmath.acos(r)) / mpmath.pi

        r = mpmath.mpf(rho)
        first = kappa(r)
        second = kappa(first)
        # W_std² = 2 makes up for the half of a ReLU, so that K' = kappa(K) and Θ' = K' + Θ slope(K)
        expected_nngp = second
        expected_ntk = second + (first + r * slope(r)) * slope(first)
    w, z = (1 - rho) / 2, (1 + rho) / 2
    cov = Covariance(Length(1.0), Length(1.0), np.array(w), np.array(z), rho, 0.0)
    num = angle_function.EagerFloat64()
    for curve, expected in ((function.nngp, expected_nngp), (function.ntk, expected_ntk)):
        found = angle_function._evaluate(curve, function.powers, cov, num)
        assert abs(float(found) - float(expected)) < 2e-15 * float(expected)


def test_a_wrong_coefficient_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve that misses the rules between its nodes is not taken."""
    usual = angle_function._waves()
    assert with_angle_function(NETWORKS["relu"]) is not None
    wrong = usual.copy()
    wrong[1] *= 1 + 1e-13
    monkeypatch.setattr(angle_function, "_waves", lambda: wrong)
    assert with_angle_function(NETWORKS["relu"]) is None


@pytest.mark.parametrize(
    "arch",
    [
        lnk.mlp(hidden=2),
        lnk.serial(lnk.Dense(8), lnk.LayerNorm(eps=1e-3), lnk.Relu(), lnk.Dense(1)),
        lnk.mlp(hidden=2, norm="first", activation=lnk.RectifiedPower(0.6)),
        lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Dense(1), lnk.LayerNorm()),
    ],
    ids=["no norm", "eps", "degree 0.6", "norm at the end"],
)
def test_networks_that_are_no_such_function(arch: lnk.Node) -> None:
    program = program_of(lnk.ntk(arch))
    assert by_angle(program) is program
    assert with_angle_function(network_of(program).arch) is None


def test_zero_inputs_keep_the_rules() -> None:
    """A zero vector has no angle behind a LayerNorm."""
    theta = lnk.ntk(lnk.mlp(hidden=1, norm="first", b_std=0.0))
    x = X.copy()
    x[3] = 0
    program = theta._program(x, x, False)
    assert by_angle(program) is program


def test_networks_of_other_depth_compile_nothing() -> None:
    with eager.without_numpy():
        lnk.ntk(lnk.mlp(hidden=3, norm="first"))(X)
        before = set(compiled._kept)
        lnk.ntk(lnk.mlp(hidden=7, norm="first", W_std=1.3))(X)
    assert set(compiled._kept) == before


def test_all_fields_are_hyperparameters_of_the_program() -> None:
    """So that other numbers make no other program; an exact zero would be structure."""
    made = with_angle_function(NETWORKS["no bias"])
    assert made is not None and isinstance(made.layers[-1], AngleFunction)
    assert all(leaf != 0 for leaf in jax.tree.leaves(made.layers[-1]))


@pytest.mark.parametrize("activation", [lnk.Erf(), lnk.Gelu()])
def test_gentle_functions_take_small_angles_from_their_cosines(activation: lnk.Elementwise) -> None:
    """The careful way agrees to a few roundings, also where pairs are close or opposite."""
    x = np.random.default_rng(5).normal(size=(90, 9))
    x[1], x[2], x[3] = x[0] * (1 + 1e-12), -3 * x[0], x[0] + 1e-7 * x[4]
    both = lnk.kernels(lnk.mlp(hidden=2, norm="first", activation=activation))
    program = both._program(x, x, True)
    assert by_angle(program).needs.delicate == NOTHING_DELICATE
    with jax.enable_x64(True):
        (by_care, _), (quickly, _) = (way.symmetric(program, x) for way in (eager, tiled))
    for one, two in zip(by_care, quickly, strict=True):
        assert (np.abs(one - two) / one[0, 0]).max() < 1e-15


GENTLE = {
    "two layers": (lnk.mlp(hidden=2, norm="first", activation=lnk.Gelu()), True),
    "steep": (lnk.mlp(hidden=3, norm="first", activation=lnk.Sin(), W_std=2**0.5), False),
    "kinks": (lnk.mlp(hidden=2, norm="first"), False),
    "activation before": (
        lnk.serial(lnk.Dense(8), lnk.Gelu(), lnk.Dense(8), lnk.RMSNorm(), lnk.Gelu(), lnk.Dense(1)),
        False,
    ),
}


@pytest.mark.parametrize("name", GENTLE)
def test_what_is_gentle(name: str) -> None:
    """Steep functions, kinks in the angle, and small angles that an activation has left keep their careful pairs."""
    arch, gentle = GENTLE[name]
    made = with_angle_function(expand(arch, np.array([[1.0, 2.0, 4.0]])))
    assert made is not None
    assert is_gentle(made) is gentle
