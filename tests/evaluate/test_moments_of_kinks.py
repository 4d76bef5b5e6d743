"""Moments of ELU, SELU and clips at lengths from 1e-150 to 1e150, against closed forms in 700 digits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import kinked_oracle
import numpy as np
import pytest
from moments_of_kinks import closed_clip, closed_elu
from mpmath import mp, mpf
from test_moments import LENGTHS, errors

import lnkernel as lnk
from lnkernel.evaluate.float64 import clip_moments
from lnkernel.evaluate.float64.moments import Moments, moments_at, moments_rule

CLOSED: list[tuple[Any, Callable[[Any, mpf], Moments]]] = [
    *((act, closed_elu) for act in (lnk.Elu(), lnk.Elu(-0.3), lnk.Elu(0.0), lnk.Selu())),
    *((act, closed_clip) for act in (lnk.Clip(), lnk.Clip(0.0, 6.0), lnk.Clip(-1.0, 1e-3))),
]


@pytest.mark.parametrize(("act", "closed"), CLOSED, ids=[repr(act) for act, _ in CLOSED])
def test_closed_forms_at_all_lengths(
    act: lnk.Piecewise, closed: Callable[[Any, mpf], Moments]
) -> None:
    found = moments_at(act, LENGTHS)
    with mp.workdps(700):
        for number, length in enumerate(LENGTHS):
            here = Moments(*(part[number] for part in found))
            exact = closed(act, mpf(float(length)))
            # squares of 1e-150 times small weights are subnormal numbers
            assert max(errors(here, exact)) < (3e-15 if length > 1e-100 else 1e-6), length


@pytest.mark.parametrize("act", [lnk.Clip(0.5, 2.0), lnk.Clip(-2.0, -0.5)], ids=repr)
def test_a_clip_that_is_constant_at_zero(act: lnk.Clip) -> None:
    """Down to a slope of 1e-138, relatively; and long inputs."""
    lengths = np.array([0.02, 0.04, 0.1, 0.9, 1.0, 30.0, 1e8, 1e150])
    found = moments_at(act, lengths)
    with mp.workdps(700):
        for number, length in enumerate(lengths):
            here = Moments(*(part[number] for part in found))
            # 1e-16 of the place of the kink, 25 standard deviations out, are 6e-14 of the density there
            bound = 3e-15 * max(1.0, (0.5 / length) ** 2 / 30)
            assert max(errors(here, closed_clip(act, mpf(float(length))))) < bound, length
    assert found.slopes[0] < 1e-137


def test_against_the_formulas_for_pairs() -> None:
    """The closed forms above, beside those of `kinked_oracle` at angle 0."""
    with mp.workdps(60):
        for act, closed in CLOSED:
            r = mpf(1.3)
            pair = kinked_oracle.expectations(act, r * r, r * r, mpf(1))
            known = Moments(
                pair.mean, pair.product, pair.product - pair.mean**2, pair.slopes, pair.euler
            )
            for one, two in zip(closed(act, r), known, strict=True):
                assert abs(one - two) < mpf(10) ** -45


def test_derivatives() -> None:
    """By the length and by both ends of a clip, also where they are symmetric, or one is 0."""

    def slopes_and_variance(r: Any, low: Any, high: Any) -> Any:
        rule = moments_rule(lnk.Clip(low, high))
        assert rule is not None
        found = rule(r)
        return jnp.stack([found.slopes, found.variance])

    with jax.enable_x64(True):
        by_all = jax.jit(jax.jacobian(slopes_and_variance, argnums=(0, 1, 2)))
        for at in ((0.8, -1.0, 1.0), (1.7, 0.0, 6.0)):
            made = np.stack([np.asarray(part) for part in by_all(*map(jnp.asarray, at))], axis=1)
            with mp.workdps(30):
                for name, row in ((3, made[0]), (2, made[1])):
                    for number in range(3):

                        def along(
                            t: mpf, at: Any = at, number: int = number, name: int = name
                        ) -> mpf:
                            r, low, high = (mpf(v) for v in (*at[:number], t, *at[number + 1 :]))
                            return closed_clip(SimpleNamespace(low=low, high=high), r)[name]

                        assert row[number] == pytest.approx(
                            float(mp.diff(along, at[number])), 1e-12
                        )


def test_panels_that_end_elsewhere_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def beyond(left: Any, right: Any) -> Any:
        return left, right + 1e-9

    monkeypatch.setattr(clip_moments, "_ends", beyond)
    act = lnk.Clip(-1.0, 1.25)  # its program is compiled nowhere else
    found = Moments(*map(float, moments_at(act, np.asarray(0.9))))
    with mp.workdps(50):
        assert max(errors(found, closed_clip(act, mpf(0.9)))) > 1e-11
