"""Square root, division and polynomials from multiplications: to the last digit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lnkernel.evaluate.float64.elementary import divide, polynomial, root, total

ULP = 2.0**-52


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def magnitudes(seed: int, most: float) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).uniform(-most, most, 100_000))


@pytest.mark.parametrize("most", [0.7, 600.0])
def test_root_is_right_to_one_unit_in_the_last_place(most: float):
    x = magnitudes(0, most)
    np.testing.assert_allclose(jax.jit(root)(x), np.sqrt(x), rtol=ULP)


def test_root_of_zero_and_of_squares():
    assert jax.jit(root)(jnp.asarray([0.0, 1.0, 4.0, 0.25])).tolist() == [0.0, 1.0, 2.0, 0.5]


def test_quotient_is_right_to_one_unit_in_the_last_place():
    x, y = magnitudes(1, 300.0), magnitudes(2, 300.0)
    np.testing.assert_allclose(jax.jit(divide)(x, y), x / y, rtol=ULP)


def test_quotient_by_zero_is_the_numerator():
    assert divide(jnp.asarray([3.0, 0.0]), jnp.zeros(2)).tolist() == [3.0, 0.0]


def test_derivatives():
    x, y = 0.37, 1.7
    np.testing.assert_allclose(jax.grad(root)(x), 0.5 / np.sqrt(x), rtol=4 * ULP)
    assert jax.grad(root)(0.0) == 0.0
    np.testing.assert_allclose(jax.grad(divide, (0, 1))(x, y), (1 / y, -x / y**2), rtol=4 * ULP)
    np.testing.assert_allclose(jax.grad(jax.grad(root))(x), -0.25 * x**-1.5, rtol=8 * ULP)


@pytest.mark.parametrize("degree", range(8))
def test_polynomial_and_total(degree: int):
    coefficients = tuple(np.random.default_rng(degree).normal(size=degree + 1).tolist())
    x = np.linspace(-1, 1, 7)
    expected = np.polynomial.polynomial.polyval(x, coefficients)
    np.testing.assert_allclose(polynomial(coefficients, jnp.asarray(x)), expected, atol=1e-14)
    terms = [jnp.asarray(c) for c in coefficients]
    np.testing.assert_allclose(total(terms), sum(coefficients), atol=1e-14)
