"""Finite networks tell a right rule of the calculus from a wrong one, at small widths already."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import pytest

import lnkernel as lnk
from benchmarks import width
from lnkernel import Dense, LayerNorm, Node, RectifiedPower, Relu, serial
from lnkernel.calculus import homogeneous, rules

WIDTHS = (32, 512)

D, R = Dense(8, 1.3, 0.3), Dense(1, 1.3, 0.3)
AFFINE = LayerNorm(0.1, scale=True, bias=True)


def forget_the_mean(patch: pytest.MonkeyPatch) -> None:
    """LayerNorm after an activation as if it subtracted nothing."""
    patch.setattr(homogeneous, "mean_share", lambda num, layer: num.real(0.0))


def average_the_scale(patch: pytest.MonkeyPatch) -> None:
    """A trained scale's u_i v_i averaged over the features before the activation has acted."""
    right = rules.with_affine

    def averaged(layer: Any, state: Any, t: Any, o: Any) -> Any:
        naive = right(layer, dataclasses.replace(state, gaussian=False), t, o)
        return dataclasses.replace(naive, gaussian=state.gaussian)

    patch.setattr(rules, "with_affine", averaged)


def shift_the_kernel(patch: pytest.MonkeyPatch) -> None:
    """A rule for LayerNorm whose Θ is 10 % too large."""
    right = rules.with_affine

    def larger(layer: Any, state: Any, t: Any, o: Any) -> Any:
        return right(layer, state, 1.1 * t, o)

    patch.setattr(rules, "with_affine", larger)


WRONG = [
    (serial(D, Relu(), LayerNorm(), R), forget_the_mean, 20),
    pytest.param(
        serial(D, AFFINE, RectifiedPower(2), R), average_the_scale, 100, marks=pytest.mark.slow
    ),
    (serial(D, LayerNorm(), Relu(), R), shift_the_kernel, 30),
]


@pytest.mark.parametrize(("arch", "perturb", "seeds"), WRONG)
def test_a_wrong_rule_is_caught(
    arch: Node,
    perturb: Callable[[pytest.MonkeyPatch], None],
    seeds: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same networks agree with the right rule and contradict the wrong one."""
    samples = {n: width.kernels(arch, n, seeds) for n in WIDTHS}
    monkeypatch.setattr(width, "kernels", lambda arch, n, count: samples[n])

    def measured() -> width.Row:
        theta = cases.uncompiled(arch, width.POINTS).ntk
        return width.measure("", arch, theta, WIDTHS, seeds)

    right = measured()
    assert right.holds, right
    perturb(monkeypatch)
    wrong = measured()
    assert not wrong.limit_holds, wrong
    assert wrong.exponent > right.exponent, "the error of a rule does not shrink with the width"


@pytest.mark.parametrize(
    "name", ["tanh, affine", pytest.param("GELU, last", marks=pytest.mark.slow)]
)
def test_analytic_networks_tend_to_their_limit(name: str) -> None:
    """The error of one network falls like 1/√width, and the mean of a few is near Θ."""
    arch = width.NETWORKS[name]
    theta = np.asarray(lnk.ntk(arch)(width.POINTS))
    row = width.measure(name, arch, theta, (32, 256), seeds=6)
    assert row.limit_holds, row
    assert abs(row.exponent - width.EXPONENT) < 3 * row.exponent_se + 0.1, row


def test_the_largest_of_many_counts_less() -> None:
    """Three standard errors of many samples: alone, and one of ten."""
    samples = np.zeros((10_000, 10)) + np.resize([1.0, -1.0], (10_000, 1))
    samples[:, 3] += 0.03
    assert abs(width.deviation(samples[:, 3:4]) - 3) < 0.01
    # ten times the probability 0.0027 of three is that of 2.21
    assert abs(width.deviation(samples) - 2.21) < 0.01


def test_the_networks_are_those_that_are_promised() -> None:
    """All of them run to the last Dense, with one output."""
    for arch in width.NETWORKS.values():
        assert isinstance(arch, lnk.Serial)
        assert arch.layers[-1] == Dense(1, W_std=2**0.5, b_std=0.1)
