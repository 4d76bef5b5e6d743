"""Pairs of clips at any angle: against closed forms to 70 digits, pairs that are integrated, and wrong rules."""

from __future__ import annotations

import kinked_oracle
import mpmath
import numpy as np
import pytest
from listed_pairs import angles, assert_exact, covariance, draw, refuse_programs
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel.evaluate.float64 import clips
from lnkernel.evaluate.float64.clips import dual_of_clips, suits
from lnkernel.evaluate.float64.moments import moments_at
from lnkernel.gram import eager

CLIPS = [
    lnk.Clip(),
    lnk.Clip(0.0, 6.0),
    lnk.Clip(-0.3, 2.0),
    lnk.Clip(-4.0, 0.1),
    lnk.Clip(-3.0, 0.0),
]
COUNT = 12
TAKEN = 1e-14  # of an angle beside its root: what a ReLU behind it makes of it


def pairs(longest: float) -> tuple[np.ndarray, ...]:
    """Lengths and angles of all sizes; nearly equal lengths, obtuse angles."""
    order = np.arange(COUNT)
    powers = np.resize([-24, -16, -8, -4, -2.5, -1, -0.4], COUNT)
    return draw(longest, (order % 2 == 0, -14.0, -4.0), powers, order % 3 == 1)


def errors_of(layer: lnk.Clip, longest: float) -> tuple[float, float]:
    """Of the angles beside their roots; and of the slopes, E uφ'vφ' and the numbers of single inputs."""
    r1, r2, w, z = pairs(longest)
    found = dual_of_clips(layer, covariance(r1, r2, w, z), longest)
    euler, of_angles, of_others = found.euler(), list[mpf](), list[mpf]()
    for k in range(COUNT):
        with mp.workdps(70):
            q1, q2 = mpf(r1[k]) ** 2, mpf(r2[k]) ** 2
            rho = 1 - 2 * mpf(w[k]) if w[k] < z[k] else 2 * mpf(z[k]) - 1
            pair = kinked_oracle.clip(layer, q1, q2, rho)
            one, two = (kinked_oracle.clip(layer, q, q, mpf(1)) for q in (q1, q2))
            size = mpmath.sqrt(one.product * two.product)
            exact = angles(pair.product, one.product, two.product)
            rest = (e.product - e.mean**2 for e in (one, two))
            centred = angles(pair.product - one.mean * two.mean, *rest)
            for cov, right in ((found.total, exact), (found.centred, centred)):
                for mine, angle in zip((cov.w[k], cov.z[k]), right, strict=True):
                    of_angles.append((mine - angle) / mpmath.sqrt(abs(angle) + mpf(10) ** -60))
            slope = r1[k] * r2[k] * pair.slopes / size
            of_others += [
                (found.slope[k] - slope) / max(1, slope),
                euler[k] - pair.euler / size,
                found.mean.first[k] - one.mean / mpmath.sqrt(one.product),
                found.total.first.q.high[k] / one.product - 1,
            ]
    worst = (float(max(map(abs, errors))) for errors in (of_angles, of_others))
    return next(worst), next(worst)


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("layer", CLIPS, ids=repr)
def test_pairs(layer: lnk.Clip, share: float) -> None:
    """The slopes of the longest inputs lose digits: 5e-14 with other seeds."""
    longest = share * (layer.high - layer.low)
    assert suits(layer, longest)
    of_angles, of_others = errors_of(layer, longest)
    assert of_angles < 2e-14 if share == 8 else of_angles < 5e-15
    assert of_others < 1e-13 if share == 8 else of_others < 3e-15


def test_the_same_pair_and_opposite_inputs() -> None:
    """Where no angle is left, and h = k, every quotient has its limit."""
    r, end = np.array([0.5, 0.5, 3.0, 3.0]), np.array([0.0, 1.0, 0.0, 1.0])
    found = dual_of_clips(lnk.Clip(), covariance(r, r, end, 1 - end), 3.0)
    assert found.total.w == pytest.approx(end, abs=1e-15)
    slopes = [moments_at(lnk.Clip(), r[k : k + 1]) for k in (0, 2)]
    for k, exact in zip((0, 2), slopes, strict=True):
        right = r[k] ** 2 * exact.slopes[0] / exact.square[0]
        assert found.slope[k : k + 2] == pytest.approx(right, rel=1e-15)
        euler = exact.euler[0] / exact.square[0]
        assert found.euler()[k : k + 2] == pytest.approx([euler, -euler], rel=1e-15)


def test_what_is_not_served() -> None:
    """What is constant around 0, and long inputs."""
    assert not suits(lnk.Clip(0.5, 2.0), 1.0)
    assert not suits(lnk.Clip(-2.0, -0.5), 1.0)
    assert suits(lnk.Clip(), 16.0) and not suits(lnk.Clip(), 16.1)


@pytest.mark.parametrize("wrong", ["the angle 0", "a corner", "the series"])
def test_a_wrong_rule_is_caught(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wrong == "the angle 0":
        usual = clips._at_angle_0
        monkeypatch.setattr(clips, "_at_angle_0", lambda *sides: (0, usual(*sides)[1]))
    elif wrong == "a corner":
        corners = clips._corners
        monkeypatch.setattr(clips, "_corners", lambda *sides: corners(*sides)[:3])
    else:
        monkeypatch.setattr(clips, "TERMS", 4)
    assert errors_of(lnk.Clip(), 2.0)[0] > 1e-12


@pytest.mark.parametrize("norm", [None, "last"])
@pytest.mark.parametrize("act", [lnk.Clip(), lnk.Clip(0.0, 6.0)], ids=repr)
def test_nothing_is_compiled(
    act: lnk.Clip, norm: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of points on a line, opposite ones and nearly equal ones."""
    refuse_programs(monkeypatch)
    arch = lnk.mlp(hidden=3, norm=norm, activation=act, W_std=1.2, b_std=0.3)
    x = np.concatenate([np.linspace(-5, 5, 21), [2.0 + 1e-9]])[:, None] * [1.0, 0.5, 0.1]
    assert_exact(arch, x, ((12, 21), (0, 20), (3, 11), (10, 19)), 5e-15)


def test_zero_vectors_and_tiny_ones() -> None:
    """Beside integrals of inputs that float64 holds the squares of; without a bias they are in proportion."""
    x = np.array([[0.0, 0.0], [1e-70, 0.0], [1e-9, 2e-9], [-1e-9, -2e-9], [1.0, -3.0], [5.0, 5.0]])
    for bias in (0.0, 0.4):
        both = lnk.kernels(lnk.mlp(hidden=2, activation=lnk.Clip(), b_std=bias))
        made = both(x)
        with eager.without_numpy():
            integrated = both(x)
        for mine, right in zip(made, integrated, strict=True):
            scale = np.sqrt(np.diagonal(right)) + 1e-300
            assert (np.abs(mine - right) / scale / scale[:, None]).max() < 5e-15
        if not bias:
            x[1] = 1e-150, 0.0
            for mine, shorter in zip(made, both(x), strict=True):
                assert shorter[1, 2:] == pytest.approx(1e-80 * mine[1, 2:], rel=1e-14)
                assert shorter[1, 1] == pytest.approx(1e-160 * mine[1, 1], rel=1e-14)
                assert not shorter[0].any()
