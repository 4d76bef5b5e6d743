"""`Scale` in what is proved: a network in which it stands has the bounds of one whose weights hold the factor."""

from __future__ import annotations

import numpy as np
import pytest

import lnkernel as lnk
from lnkernel.bounds.image_upper import upper_bound
from lnkernel.bounds.images import dense_counterpart
from lnkernel.bounds.reach import reach

D, LN = lnk.Dense(8, 1.3, 0.2), lnk.LayerNorm(0.1)
TWICE = lnk.Dense(8, 2.6, 0.2)
X = np.random.default_rng(0).normal(size=(3, 2))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_of_images(sign: float) -> None:
    conv, end = lnk.Conv(8, (3, 3), b_std=0.3), lnk.GlobalAvgPool()
    scaled = lnk.serial(conv, LN, lnk.Relu(), lnk.Scale(2.0 * sign), D, end)
    known = lnk.serial(conv, LN, lnk.Relu(), TWICE, end)
    assert upper_bound(scaled) == pytest.approx(upper_bound(known), rel=1e-14)
    found, expected = (
        lnk.sup_diagonal(dense_counterpart(arch).arch).value for arch in (scaled, known)
    )
    assert found == pytest.approx(expected, rel=1e-14)
    pooled = lnk.serial(
        conv, LN, lnk.Relu(), lnk.Scale(2.0 * sign), lnk.AvgPool((2, 2)), TWICE, end
    )
    assert upper_bound(pooled) >= float(
        lnk.ntk(pooled).diagonal(np.random.default_rng(1).normal(size=(2, 4, 4, 1))).max()
    )


def test_of_bounded_activations() -> None:
    inside = (
        lnk.serial(D, lnk.Scale(2.0), lnk.Tanh(), D),
        lnk.serial(lnk.Dense(8, 2.6, 0.4), lnk.Tanh(), D),
    )
    behind = lnk.serial(D, lnk.Tanh(), lnk.Scale(2.0), D), lnk.serial(D, lnk.Tanh(), TWICE)
    for scaled, known in (inside, behind):
        np.testing.assert_allclose(reach(scaled, X), reach(known, X), rtol=1e-13)
    with pytest.raises(
        lnk.errors.ArchitectureError, match="Shift at layer 2: no bound on the mean"
    ):
        reach(lnk.serial(D, lnk.Tanh(), lnk.Shift(1.0), D), X)


def test_the_supremum_and_its_certificate() -> None:
    """Sigmoid-like, behind a norm: proved, and what a point has."""
    arch = lnk.serial(D, lnk.LayerNorm(), *lnk.stax.Sigmoid_like().arch.layers, D)
    proved = lnk.sup_diagonal(arch, certify=True)
    value = float(lnk.ntk(arch).diagonal(X)[0])
    assert proved.certified and proved.enclosure == pytest.approx((value, value), rel=1e-12)
