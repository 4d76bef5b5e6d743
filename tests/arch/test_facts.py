"""Facts about whole networks."""

from __future__ import annotations

import pytest

import lnkernel as lnk
from lnkernel.arch.facts import needs_difference, needs_difference_quickly


@pytest.mark.parametrize(
    ("activation", "quickly"),
    [
        (lnk.Polynomial((0.3, -1.0, 0.5)), True),
        (lnk.RectifiedPower(0.7), True),
        (lnk.Clip(-1.0, 1.0), True),
        (lnk.Erf(), False),  # small angles are left to the careful way
        (lnk.Tanh(), False),
    ],
)
def test_who_needs_the_difference_of_lengths(activation: lnk.Node, quickly: bool) -> None:
    arch = lnk.mlp(hidden=2, activation=activation)
    assert needs_difference(arch)
    assert needs_difference_quickly(arch) == quickly
    # behind a norm nothing is known of small angles, so nothing is left out
    assert needs_difference_quickly(lnk.serial(lnk.Dense(8), lnk.GroupNorm(4), arch))
