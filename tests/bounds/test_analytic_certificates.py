"""Certificates for activations without a closed form: the supremum of Θ(x, x), the bound, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import oracle
import pytest
from flint import arb
from mpmath import mp

import lnkernel as lnk
from lnkernel.bounds.certified.supremum import supremum
from lnkernel.evaluate.balls import ray_moments
from lnkernel.evaluate.balls.analytic import analytic_of
from lnkernel.evaluate.balls.numbers import BITS, working_precision
from lnkernel.evaluate.balls.on_ray import Jet

LAYERS = (lnk.Tanh(), lnk.Sigmoid(), lnk.Silu(), lnk.Softplus(), lnk.Gelu(approximate=True))
layers = pytest.mark.parametrize("layer", LAYERS, ids=repr)
DENSE = lnk.Dense(8, 2**0.5, 0.1)


@layers
def test_behind_a_layernorm_it_is_one_number(layer: lnk.Smooth) -> None:
    arch = lnk.mlp(hidden=2, norm="first", activation=layer)
    proved = lnk.sup_diagonal(arch, certify=True)
    lower, upper = proved.enclosure
    assert proved.certified and upper - lower < 1e-15 * upper
    exact = oracle.kernels(arch, [0.7, -1.0], [0.7, -1.0])[1]
    with mp.workdps(50):
        assert mp.mpf(lower) <= exact <= mp.mpf(upper)


def test_a_layernorm_with_eps() -> None:
    """Lengths go from 0 to 1; the supremum is the limit at infinity."""
    arch = lnk.serial(DENSE, lnk.LayerNorm(eps=0.1, scale=True), lnk.Tanh(), DENSE)
    found, norm = supremum(arch, 1e-4)
    plain = lnk.sup_diagonal(arch)
    assert found.lower <= plain.value * (1 + 1e-14) and plain.value <= found.upper * (1 + 1e-14)
    assert found.upper / found.lower - 1 < 1e-4 and norm == plain.attained_at == np.inf


@pytest.mark.parametrize(
    ("layer", "where"), ((lnk.Silu(), 1.0555), (lnk.Softplus(), np.inf)), ids=repr
)
def test_a_layernorm_behind_it(layer: lnk.Smooth, where: float) -> None:
    """All lengths from 0 to infinity: SiLU has its maximum in between."""
    arch = lnk.serial(DENSE, layer, DENSE, lnk.LayerNorm(), lnk.Dense(1))
    found, norm = supremum(arch, 0.03)
    plain = lnk.sup_diagonal(arch)
    assert found.lower <= plain.value * (1 + 1e-14) and plain.value <= found.upper * (1 + 1e-14)
    assert found.upper / found.lower - 1 < 0.03
    assert norm == pytest.approx(where, rel=0.5)
    assert plain.profile(np.geomspace(1e-3, 1e6, 200)).max() <= found.upper


# ---------------------------------------------------------------- moments on a range of lengths


def jets(shape: ray_moments.Shape) -> list[Jet]:
    return [shape.square, shape.variance, shape.mean, shape.slope, shape.euler()]


@layers
def test_shapes_on_ranges_hold_those_of_points(layer: lnk.Smooth) -> None:
    with working_precision(BITS):
        phi = analytic_of(layer)
        curve, even = phi.odd or phi.even, phi.even is not None
        wide = arb(1, 0.25)
        on_range = ray_moments.sharpen(
            lambda q, bits: ray_moments.shape_near(curve, even, q, bits), wide, BITS
        )
        from_zero = ray_moments.shape_at_zero(curve, even, arb(0).union(arb(1.25)))
        for q in (0.75, 0.9, 1.25):
            at_point = ray_moments.shape_near(curve, even, arb(q), BITS)
            for one, two, three in zip(*map(jets, (at_point, on_range, from_zero)), strict=True):
                assert one.value.overlaps(two.value) and one.value.overlaps(three.value)
                assert one.slope.overlaps(two.slope) and float(one.value.rad()) < 1e-35


@layers
def test_derivatives_of_shapes(layer: lnk.Smooth) -> None:
    """Against differences."""
    step = 2.0**-30
    with working_precision(BITS):
        phi = analytic_of(layer)
        curve, even = phi.odd or phi.even, phi.even is not None
        forms = [lambda q: ray_moments.shape_near(curve, even, q, BITS)]
        if phi.far is not None:
            forms.append(lambda q: ray_moments.shape_long(phi.far, curve, q, BITS))
        for form in forms:
            here, above, below = (jets(form(arb(6) + s * step)) for s in (0, 1, -1))
            for one, up, down in zip(here, above, below, strict=True):
                difference = (up.value - down.value) / (2 * step)
                assert abs(float(difference - one.slope)) < 1e-16


@pytest.mark.parametrize("layer", LAYERS[2:], ids=repr)
def test_long_inputs_in_three_ways(layer: lnk.Smooth) -> None:
    """By f, by the rest, and by the limit at infinity with its error."""
    with working_precision(BITS):
        phi = analytic_of(layer)
        for q in (5.0, 40.0, 900.0):
            near = ray_moments.shape_near(phi.even, True, arb(q), BITS)
            long = ray_moments.shape_long(phi.far, phi.even, arb(q), BITS)
            limit = ray_moments.shape_to_infinity(phi.far, 1 / arb(q))
            mean = near.mean.value + phi.at_zero / arb(q).sqrt()
            assert mean.overlaps(long.mean.value)
            for name in ("variance", "slope"):
                assert getattr(near, name).value.overlaps(getattr(long, name).value)
            assert near.euler().value.overlaps(long.euler().value)
            for one, two in zip(jets(long), jets(limit), strict=True):
                assert one.value.overlaps(two.value)


# ---------------------------------------------------------------- the bound


def test_a_certificate_is_proved_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    arch = lnk.mlp(hidden=2, norm="first", activation=lnk.Tanh())
    b = lnk.bound(arch, X, y, certify=True)
    plain = lnk.bound(arch, X, y)
    assert (
        b.certified
        and b.rkhs == pytest.approx(plain.rkhs, rel=1e-6)
        and b.rkhs >= plain.rkhs * (1 - 1e-9)
    )
    b.certificate.save(tmp_path / "tanh.json")
    again = lnk.Certificate.load(tmp_path / "tanh.json")
    assert again.verify()
    claims = dataclasses.replace(again, lambda_min_lower=again.lambda_min_lower * 1.01)
    assert not claims.verify()
    smaller = dataclasses.replace(again, C=again.C._replace(upper=again.C.upper * (1 - 1e-12)))
    assert not smaller.verify()


def test_what_is_refused() -> None:
    late = lnk.mlp(norm="last", activation=lnk.Tanh())
    with pytest.raises(lnk.errors.CertificateError, match=r"Tanh: it saturates .* Put a LayerNorm"):
        lnk.sup_diagonal(late, certify=True)
    kinked = lnk.mlp(norm="first", activation=lnk.Elu())
    with pytest.raises(lnk.errors.MissingFunctionError, match=r"no certificate .* Without certify"):
        lnk.sup_diagonal(kinked, certify=True)
