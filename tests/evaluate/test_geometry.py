"""Angles and lengths of input pairs against exact rational arithmetic."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from lnkernel.evaluate.float64 import geometry
from lnkernel.evaluate.float64.precise import Precise
from lnkernel.evaluate.float64.projection import project

RNG = np.random.default_rng(0)
DIMENSION = 4
PERTURBED = {
    "random": lambda x: RNG.normal(size=DIMENSION),
    "1e-3 apart": lambda x: x + 1e-3 * RNG.normal(size=DIMENSION),
    "1e-8 apart": lambda x: x + 1e-8 * RNG.normal(size=DIMENSION),
    "1e-14 apart": lambda x: x + 1e-14 * RNG.normal(size=DIMENSION),
    "longer by 1e-10": lambda x: x * (1 + 1e-10),
    "a rounded multiple": lambda x: x * np.pi,
    "a multiple of another size": lambda x: x * 1e150,
    "a tiny multiple": lambda x: (x + 1e-12 * RNG.normal(size=DIMENSION)) * 1e-150,
    "antipodal": lambda x: -x,
    "a rounded negative multiple": lambda x: -x * np.e,
    "nearly antipodal": lambda x: -x + 1e-9 * RNG.normal(size=DIMENSION),
}


class Exact(NamedTuple):
    w: mp.mpf
    z: mp.mpf
    e: mp.mpf
    apart: mp.mpf  # |x - y|/(|x| + |y|), which bounds |e|


def exact(x: np.ndarray, y: np.ndarray) -> Exact:
    a, b = ([mp.mpf(v) for v in vector] for vector in (x, y))
    xx, yy = mp.sqrt(mp.fdot(a, a)), mp.sqrt(mp.fdot(b, b))
    cosine = mp.fdot(a, b) / (xx * yy)
    apart = mp.sqrt(sum((p - q) ** 2 for p, q in zip(a, b, strict=True))) / (xx + yy)
    return Exact((1 - cosine) / 2, (1 + cosine) / 2, (xx - yy) / (xx + yy), apart)


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True), mp.workdps(120):
        yield


@pytest.mark.parametrize("kind", PERTURBED)
def test_careful_angles_have_full_relative_accuracy(kind: str):
    x = RNG.normal(size=(20, DIMENSION))
    y = np.stack([PERTURBED[kind](row) for row in x])
    one, two = geometry.prepare(x, False), geometry.prepare(y, False)
    cov = geometry.careful(one, two, centre=False, all_live=True)
    for i in range(len(x)):
        true = exact(x[i], y[i])
        for mine, small in ((cov.w[i], true.w), (cov.z[i], true.z)):
            # of the angle itself; three steps of 26 bits leave 1e-31 of the longer vector
            difference = mp.sqrt(mp.mpf(float(mine))) - mp.sqrt(abs(small))
            assert abs(difference) <= 5e-16 * mp.sqrt(abs(small)) + 1e-31
        assert abs(mp.mpf(float(cov.e[i])) - true.e) <= 1e-15 * true.apart


def test_quick_angles_and_which_it_gives_up():
    x = RNG.normal(size=(40, DIMENSION))
    x[1], x[2] = x[0] * (1 + 1e-9), -3 * x[0]
    points = geometry.prepare(x, False)
    cov, delicate = geometry.quick(points, points, all_live=True, with_difference=True)
    assert delicate[0, 1] and delicate[0, 2] and delicate.mean() < 0.1
    for i, j in ((3, 4), (5, 9), (20, 30)):
        true = exact(x[i], x[j])
        assert not delicate[i, j]
        assert abs(float(cov.w[i, j]) - true.w) < 4e-16 * mp.sqrt(true.w)
        assert abs(float(cov.z[i, j]) - true.z) < 4e-16 * mp.sqrt(true.z)
        assert abs(float(cov.e[i, j]) - true.e) < 4e-16


def test_many_dimensions_by_matrix_product():
    x = RNG.normal(size=(10, 100))
    points = geometry.prepare(x, False)
    cov, delicate = geometry.quick(points, points, all_live=True, with_difference=False)
    assert delicate[3, 3] and not delicate[3, 4]
    assert abs(float(cov.w[3, 4]) - exact(x[3], x[4]).w) < 4e-16


def test_a_zero_vector_is_orthogonal_to_everything():
    points = geometry.prepare(jnp.asarray([[0.0, 0.0], [1.0, 2.0]]), False)
    cov = geometry.careful(
        geometry.take(points, jnp.asarray([0])),
        geometry.take(points, jnp.asarray([1])),
        centre=False,
        all_live=False,
    )
    assert (cov.w[0], cov.z[0], cov.c[0], cov.e[0]) == (0.5, 0.5, 0.0, -1.0)
    assert points.live.tolist() == [False, True]


def test_centred_geometry_is_the_geometry_of_centred_vectors():
    x, y = RNG.normal(size=(2, 6)) + 1e3
    pair = [geometry.prepare(v[None], True) for v in (x, y)]
    cov = geometry.careful(*pair, centre=True, all_live=True)
    true = exact(*([mp.mpf(a) - mp.fsum(map(mp.mpf, v)) / 6 for a in v] for v in (x, y)))
    assert abs(float(cov.w[0]) - true.w) < 1e-15


@pytest.mark.parametrize("centre", [False, True])
def test_projection_and_its_derivatives(centre: bool):
    x, y, dx, dy = RNG.normal(size=(4, 5))
    one = jnp.asarray(1.0)

    def plain(x: jax.Array, y: jax.Array) -> jax.Array:
        x, y = (v - v.mean() * centre for v in (x, y))
        return y - (x @ y) / (x @ x) * x

    def mine(x: jax.Array, y: jax.Array) -> jax.Array:
        return project(x, y, one, centre).rest

    np.testing.assert_allclose(mine(x, y), plain(x, y), atol=1e-14)
    tangents = [jax.jvp(f, (x, y), (dx, dy))[1] for f in (mine, plain)]
    np.testing.assert_allclose(*tangents, atol=1e-13)
    hessians = [jax.hessian(lambda x, f=f: f(x, y)[0])(x) for f in (mine, plain)]
    np.testing.assert_allclose(*hessians, atol=1e-12)


def test_twice_the_digits():
    """Fifty multiplications by the same rounded factor, and additions, to the last digit."""
    factor, bias = 1.4142135623730951, 0.01
    number, true = Precise(jnp.asarray(0.7), jnp.asarray(0.0)), mp.mpf(0.7)
    for _ in range(50):
        number = factor * (factor * number) * 0.5 + bias
        true = mp.mpf(factor) ** 2 * true / 2 + mp.mpf(bias)
    assert abs(mp.mpf(float(number.high)) + mp.mpf(float(number.low)) - true) < 1e-30 * true
    assert abs(float(number.root()) - mp.sqrt(true)) < 2e-16 * mp.sqrt(true)
