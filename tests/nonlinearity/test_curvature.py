"""The energy of the Hessian by JAX, by finite differences, and in closed form; the ratio of LN-G to LayerNorm."""

from __future__ import annotations

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.errors import InputError
from lnkernel.nonlinearity import hessian_energy, norm_energy

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("groups", "eps", "centre"), [(1, 0.0, True), (2, 0.0, True), (1, 0.3, True), (2, 0.2, False)]
)
def test_closed_forms_against_differentiation(groups: int, eps: float, centre: bool) -> None:
    def norm(x: jnp.ndarray) -> jnp.ndarray:
        u = x.reshape(groups, -1)
        u = u - u.mean(1, keepdims=True) if centre else u
        return (u / jnp.sqrt((u**2).mean(1, keepdims=True) + eps)).ravel()

    x = RNG.normal(size=(3, 8))
    closed = norm_energy(x, groups, eps=eps, centre=centre)
    np.testing.assert_allclose(hessian_energy(norm, x), closed, rtol=1e-11)


def test_layer_norm_by_finite_differences() -> None:
    """In 60 digits, without JAX."""
    x, step = [1, 3, -2, 5, 4], mpmath.mpf(10) ** -20
    with mpmath.workdps(60):

        def norm(v: list[mpmath.mpf]) -> list[mpmath.mpf]:
            mean = mpmath.fsum(v) / 5
            root = mpmath.sqrt(mpmath.fsum((w - mean) ** 2 for w in v) / 5)
            return [(w - mean) / root for w in v]

        total = mpmath.mpf(0)
        for j in range(5):
            for k in range(5):
                corners = {}
                for p in (1, -1):
                    for q in (1, -1):
                        v = [mpmath.mpf(w) for w in x]
                        v[j] += p * step
                        v[k] += q * step
                        corners[p, q] = norm(v)
                for i in range(5):
                    mixed = sum(p * q * corners[p, q][i] for p in (1, -1) for q in (1, -1))
                    total += (mixed / (4 * step**2)) ** 2
        found = float(total)
    assert norm_energy(x) == pytest.approx(found, rel=1e-14, abs=0)
    assert hessian_energy(lnk.LayerNorm(), x) == pytest.approx(found, rel=1e-14, abs=0)


def test_groups_bend_more() -> None:
    d, x = 16, RNG.normal(size=(100, 16))
    for g in (1, 2, 4):
        ratio = norm_energy(x, g) / norm_energy(x)
        assert (ratio >= g * (d - 2 * g) / (d - 2) - 1e-12).all()
    assert (norm_energy(x, 4) / norm_energy(x) >= d / 8).all()
    assert (norm_energy(x, 8) == 0).all()


def test_layers_of_ours() -> None:
    x = RNG.normal(size=(2, 8))
    np.testing.assert_array_equal(hessian_energy(lnk.GroupNorm(4), x), norm_energy(x, 2))
    np.testing.assert_array_equal(hessian_energy(lnk.RMSNorm(), x), norm_energy(x, centre=False))


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="equal features at point 1"):
        norm_energy([[1.0, 2.0], [3.0, 3.0]])
    with pytest.raises(InputError, match="a divisor of the 4 features"):
        norm_energy(np.arange(4.0), 3)
    with pytest.raises(InputError, match="finite second derivatives"):
        hessian_energy(lambda x: 1 / x, [0.0])


def test_any_size_of_numbers() -> None:
    x = RNG.normal(size=(2, 6))
    for eps in (0.0, 0.25):
        small = norm_energy(x, 2, eps=eps)
        large = norm_energy(x * 2.0**90, 2, eps=eps * 2.0**180)
        np.testing.assert_array_equal(large * 2.0**360, small)
    with pytest.raises(InputError, match="in the range of float64"):
        norm_energy(x * 1e-100)


def test_functions_that_are_refused() -> None:
    with pytest.raises(InputError, match="float32"):
        hessian_energy(lambda x: x.astype(jnp.float32), [1.0, 2.0])
    with pytest.raises(InputError, match="leaves JAX"):
        hessian_energy(lambda x: np.sin(x), [1.0, 2.0])
    with pytest.raises(InputError, match="leaves JAX"):
        hessian_energy(lambda x: float(x[0]), [1.0, 2.0])  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="one array"):
        hessian_energy(lambda x: (x, x), [1.0, 2.0])  # type: ignore[arg-type,return-value]
